"""Worker processes: they give what one process gives, and their death is told at once."""

from __future__ import annotations

import os
import pickle
import signal
import threading
import time

import numpy as np
import pytest
from unusual import Numbered, Together, noisy

from eshkol.data import ArrayDataset, DataLoader, load_npy
from eshkol.errors import DataError

LARGE = np.random.default_rng(0).random((23, 5000)).astype(np.float32)  # goes through a file that is mapped


def test_processes_give_what_one_process_gives_and_their_death_is_told() -> None:
    """One test, as starting processes takes its time."""
    data = Together(Numbered(23).map(noisy, random=True), LARGE)
    with DataLoader(data, 4, shuffle=True, seed=5, workers=2, worker="process", timeout=60) as loader:
        plain = DataLoader(data, 4, shuffle=True, seed=5)
        for mine, other in zip(loader, plain, strict=True):
            for a, b in zip(mine, other, strict=True):
                np.testing.assert_array_equal(a.numpy(), b.numpy())
        walk = iter(loader)
        next(walk)
        assert loader._pool is not None
        began = time.monotonic()
        os.kill(loader._pool.processes[0], signal.SIGKILL)
        with pytest.raises(DataError, match=r"worker 0 \(process \d+\) was killed by SIGKILL while it loaded batch \d"):
            list(walk)
        assert time.monotonic() - began < 2
        assert loader._pool is None  # the next walk would start new ones


@pytest.mark.slow
def test_errors_in_processes_are_told() -> None:
    with DataLoader(Numbered(20, broken=(7,)), 4, workers=1, worker="process") as loader:
        with pytest.raises(DataError, match="sample 7 cannot be loaded: ValueError: no 7 here") as caught:
            list(loader)
        assert any("In the worker" in note for note in caught.value.__notes__)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("death", "words"),
    [
        ("exit", r"ended with status 7 while it loaded batch 2 with samples \[8, 9, 10, 11\]"),
        ("leave", r"ended with status 5 while it loaded batch 2 with samples"),
        ("kill", r"was killed by SIGKILL while it loaded batch 2 with samples"),
        ("memory", r"sample 9 cannot be loaded: MemoryError"),
    ],
)
def test_no_death_of_a_process_is_waited_for(death, words) -> None:
    """The timeout is that of the test: nobody comes near it, and one who waited would be told so."""
    data = Numbered(20, fatal=9, death=death)
    with DataLoader(data, 4, workers=2, worker="process", timeout=60) as loader:
        for _ in range(2):  # new processes are started for the second walk
            began = time.monotonic()
            with pytest.raises(DataError, match=words):
                list(loader)
            assert time.monotonic() - began < 20
    with DataLoader(Numbered(9, slow=30), 4, workers=1, worker="process", timeout=60) as loader:
        walk = iter(loader)
        threading.Timer(0.2, lambda: os.kill(loader._pool.processes[0], signal.SIGKILL)).start()
        with pytest.raises(DataError, match=r"was killed by SIGKILL while it loaded batch 0"):
            next(walk)  # it was in the middle of a sample


def test_what_cannot_be_pickled_is_told() -> None:
    loader = DataLoader(Numbered(4).map(lambda s: s), 2, workers=1, worker="process")
    with pytest.raises(DataError, match="can be pickled"):
        list(loader)


def test_a_mapped_file_goes_to_processes_by_its_name(tmp_path) -> None:
    array = np.arange(40000, dtype=np.float32).reshape(-1, 4)
    np.save(tmp_path / "a.npy", array)
    data = ArrayDataset(load_npy(tmp_path / "a.npy"))
    sent = pickle.dumps(data)
    assert len(sent) < 1000
    np.testing.assert_array_equal(pickle.loads(sent).take(np.array([5, 9999]), None), array[[5, 9999]])
    part = pickle.dumps(ArrayDataset(load_npy(tmp_path / "a.npy")[7:9]))
    np.testing.assert_array_equal(pickle.loads(part)[0], array[7])
