"""Loaders: order, batches, epochs, resuming, samplers, errors; with and without threads."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
import threading
import time
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from unusual import Counting, Numbered, noisy

import eshkol as ek
from eshkol.data import ArrayDataset, DataLoader, DistributedSampler, SkippedData, WeightedSampler
from eshkol.data.loader import CPUS
from eshkol.errors import DataError, EshkolError

DATA = ArrayDataset(np.arange(40, dtype=np.float32).reshape(20, 2), np.arange(20))


def labels(loader) -> list[list[int]]:
    return [y.tolist() for _, y in loader]


def flat(batches: list[list[int]]) -> list[int]:
    return [k for batch in batches for k in batch]


def test_batches_are_tensors_in_order() -> None:
    loader = DataLoader(DATA, 6)
    assert len(loader) == 4
    batches = list(loader)
    assert [x.shape for x, _ in batches] == [(6, 2), (6, 2), (6, 2), (2, 2)]
    assert isinstance(batches[0][0], ek.Tensor)
    assert batches[1][1].tolist() == [6, 7, 8, 9, 10, 11]
    assert len(DataLoader(DATA, 6, drop_last=True)) == len(list(DataLoader(DATA, 6, drop_last=True))) == 3
    (x, _), *_ = DataLoader((np.ones((4, 3)), np.zeros(4)), 2, numpy=True)  # a tuple of arrays
    assert isinstance(x, np.ndarray)
    assert [b.tolist() for b in DataLoader([1, 2, 3], 2)] == [[1, 2], [3]]  # a list of samples
    assert list(DataLoader(["a", "b", "c"], 2)) == [["a", "b"], ["c"]]
    assert list(DataLoader([], 2)) == []


def test_shuffling_by_seed_and_epoch() -> None:
    loader, same, other = (DataLoader(DATA, 7, shuffle=True, seed=s) for s in (1, 1, 2))
    first, second = labels(loader), labels(loader)
    assert flat(first) != flat(second)
    assert sorted(flat(first)) == sorted(flat(second)) == list(range(20))
    assert first != second
    assert [labels(same), labels(same)] == [first, second]
    assert labels(other) != first
    same.set_epoch(1)
    assert labels(same) == second


def test_without_a_seed_the_seed_of_all_decides() -> None:
    def fresh() -> list[list[int]]:
        ek.seed(3)
        return labels(DataLoader(DATA, 7, shuffle=True))

    assert fresh() == fresh()


def test_a_walk_that_is_left_early_is_an_epoch() -> None:
    loader = DataLoader(DATA, 7, shuffle=True, seed=1)
    reference = DataLoader(DATA, 7, shuffle=True, seed=1)
    next(iter(loader))
    labels(reference)
    assert labels(loader) == labels(reference)
    assert loader.epoch == 2


MAPPED = Numbered(23).map(noisy, random=True)


@given(st.integers(0, 30), st.sampled_from([0, 2]), st.sampled_from([0, 3]), st.booleans())
@settings(max_examples=12)
def test_a_loader_goes_on_where_another_stood(stop, before, after, drop) -> None:
    def made(workers: int, seed: int) -> DataLoader:
        return DataLoader(MAPPED, 5, shuffle=True, seed=seed, workers=workers, drop_last=drop, numpy=True)

    def rest(loader: DataLoader, epochs: int) -> list[np.ndarray]:
        found = []
        while loader.epoch < epochs:
            found += [x for x, _ in loader]
        return found

    with made(0, 8) as whole, made(before, 8) as first, made(after, 99) as second:
        expected = rest(whole, 3)[stop:]
        seen = 0
        while seen < stop and first.epoch < 3:
            for _ in first:
                seen += 1
                if seen == stop:
                    break
            else:
                continue
            break
        state = first.state_dict()
        second.load_state_dict(state)
        found = rest(second, 3)
    assert len(found) == len(expected)
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_array_equal(a, b)


def test_a_stream_goes_on_where_another_stood() -> None:
    first = DataLoader(Counting(23).shuffled(7), 4, seed=3, workers=1)
    whole = [b.tolist() for b in DataLoader(Counting(23).shuffled(7), 4, seed=3)]
    walk = iter(first)
    assert [next(walk).tolist() for _ in range(2)] == whole[:2]
    second = DataLoader(Counting(23).shuffled(7), 4)
    second.load_state_dict(first.state_dict())
    assert [b.tolist() for b in second] == whole[2:]
    assert second.epoch == 1
    assert [len(b) for b in whole] == [4, 4, 4, 4, 4, 3]
    assert len(list(DataLoader(Counting(23), 4, drop_last=True))) == 5
    first.close()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"batch_size": 3}, "batch_size 3, and this one has 5"),
        ({"samples": 4}, "samples 4"),
        ({"shuffle": True}, "shuffle True, and this one has False"),
        ({"position": 9}, "batch 9 of epoch 0"),
        ({"version": 2}, "no state"),
        ({"seed": -1}, "seed"),
        ({"more": 1}, "no state"),
    ],
)
def test_a_state_of_other_data_is_refused(change, words) -> None:
    loader = DataLoader(DATA, 5)
    with pytest.raises(DataError, match=words):
        loader.load_state_dict({**loader.state_dict(), **change})


@pytest.mark.parametrize("workers", [1, 3])
def test_threads_give_what_one_thread_gives(workers) -> None:
    with DataLoader(MAPPED, 4, shuffle=True, seed=5, workers=workers) as loader:
        plain = DataLoader(MAPPED, 4, shuffle=True, seed=5)
        for _ in range(2):
            for (a, i), (b, j) in zip(loader, plain, strict=True):
                assert i.tolist() == j.tolist()
                np.testing.assert_array_equal(a.numpy(), b.numpy())
        next(iter(loader))  # left early: what is under way for it goes nowhere
        labels(plain)
        loader.set_epoch(2)
        plain.set_epoch(2)
        assert labels(loader) == labels(plain)


@pytest.mark.parametrize("workers", [0, 2])
def test_a_broken_sample_is_named_or_left_out(workers) -> None:
    data = Numbered(20, broken=(7, 13))
    with DataLoader(data, 4, workers=workers) as loader:
        walk = iter(loader)
        next(walk)
        with pytest.raises(DataError, match="sample 7 cannot be loaded: ValueError: no 7 here") as caught:
            next(walk)
        assert isinstance(caught.value.__cause__, ValueError)
    with DataLoader(data, 4, workers=workers, on_error="skip") as loader:
        with pytest.warns(SkippedData, match="2 samples of epoch 0 .* the first: sample 7: ValueError"):
            assert flat(labels(loader)) == [k for k in range(20) if k not in (7, 13)]
        assert [k for k, _ in loader.skipped] == [7, 13]


def test_a_broken_stream_is_named() -> None:
    with pytest.raises(DataError, match="sample 6 cannot be loaded: OSError: the line was cut"):
        list(DataLoader(Counting(6, fails=True), 4))


def test_a_whole_batch_that_cannot_be_left_out_is_not_delivered() -> None:
    loader = DataLoader(Numbered(6, broken=(2, 3)), 2, on_error="skip")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SkippedData)
        assert labels(loader) == [[0, 1], [4, 5]]


def test_a_fast_batch_that_fails_names_its_sample() -> None:
    data = DATA.map(ek.data.OneHot(11), on=1)
    with pytest.raises(DataError, match="sample 11 cannot be loaded: OneHot: class 11 is out of range"):
        list(DataLoader(data, 8))


class Fussy(ArrayDataset):
    """Rows of arrays that are not to be taken together from number 8 on."""

    def take(self, indices, at):
        if (indices > 7).any():
            raise RuntimeError(f"not {len(indices)} at once")
        return super().take(indices, at)


@pytest.mark.parametrize("workers", [0, 1])
@pytest.mark.parametrize("on_error", ["raise", "skip"])
def test_what_is_wrong_with_a_batch_alone_is_not_hidden(workers, on_error) -> None:
    """Each sample can be loaded, so that no sample is to blame and none is left out."""
    with DataLoader(Fussy(*DATA.arrays), 4, workers=workers, on_error=on_error) as loader:
        walk = iter(loader)
        next(walk), next(walk)
        with pytest.raises(DataError, match="batch 2 cannot be put together: RuntimeError: not 4 at once") as caught:
            next(walk)
        assert isinstance(caught.value.__cause__, RuntimeError)


def test_a_fast_batch_goes_on_without_its_broken_samples() -> None:
    data = ArrayDataset(np.arange(12), np.arange(12)).map(ek.data.OneHot(10), on=1)
    loader = DataLoader(data, 5, on_error="skip")
    with pytest.warns(SkippedData, match="2 samples of epoch 0 .* the first: sample 10: OneHot: class 10"):
        batches = list(loader)
    assert [len(x) for x, _ in batches] == [5, 5]  # of the last batch nothing is left
    loader = DataLoader(data, 7, on_error="skip")
    with pytest.warns(SkippedData, match="2 samples"):
        last = list(loader)[-1]
    np.testing.assert_array_equal(last[1].numpy(), np.eye(10, dtype=np.float32)[7:])
    with pytest.raises(DataError, match=r"batch 2 .*: not 1 at once"):
        list(DataLoader(Fussy(*DATA.arrays).map(ek.data.OneHot(9), on=1), 4, on_error="skip"))


class Doubling(ArrayDataset):
    """A user's own, which writes what a sample is anew."""

    def __getitem__(self, index):
        return super().__getitem__(index) * 2


def test_a_sample_that_is_written_anew_is_what_is_loaded() -> None:
    data = Doubling(np.arange(4))
    assert [b.tolist() for b in DataLoader(data, 2)] == [[0, 2], [4, 6]]
    assert [b.tolist() for b in DataLoader(data.map(ek.data.Scale(1.0)), 2)] == [[0, 2], [4, 6]]
    assert DataLoader(data, 2).workers == 0


def test_waiting_has_an_end() -> None:
    with (
        DataLoader(Numbered(4, slow=0.3), 2, workers=1, timeout=0.05) as loader,
        pytest.raises(DataError, match="did not come within"),
    ):
        list(loader)


@pytest.mark.parametrize("workers", [None, 0, 2])
def test_two_walks_at_once(workers) -> None:
    with DataLoader(DATA, 5, workers=workers) as loader:
        both = [(a[1].tolist(), b[1].tolist()) for a, b in zip(loader, loader, strict=True)]
    assert both == [(list(range(k, k + 5)),) * 2 for k in (0, 5, 10, 15)]


def test_a_worker_reads_a_stream_for_one_walk() -> None:
    with DataLoader(Counting(20), 4, workers=1) as loader:
        first = iter(loader)
        next(first)
        second = iter(loader)
        next(second)
        with pytest.raises(DataError, match="another walk over this stream"):
            list(first)
        assert [b.tolist() for b in second][-1] == [16, 17, 18, 19]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"batch_size": 0}, "batch_size is an integer from 1 on"),
        ({"workers": -1}, "workers"),
        ({"workers": 1, "worker": "proces"}, "did you mean 'process'"),
        ({"on_error": "ignore"}, "on_error"),
        ({"shuffle": True, "sampler": [1]}, "sampler decides"),
        ({"sampler": iter([1])}, "walked once for each epoch"),
        ({"sampler": [25]}, "index 25"),
        ({"seed": 1.5, "shuffle": True}, "seed"),
    ],
)
def test_misuse_of_a_loader_is_told(options, words) -> None:
    with pytest.raises(EshkolError, match=words):
        list(DataLoader(DATA, **{"batch_size": 4, **options}))


def test_pinning_changes_nothing_without_a_gpu() -> None:
    assert labels(DataLoader(DATA, 4, pin=True)) == labels(DataLoader(DATA, 4))


def test_misuse_of_data_is_told() -> None:
    with pytest.raises(DataError, match="is no data set"):
        DataLoader(iter([1]), 2)
    for options in ({"shuffle": True}, {"workers": 2}):
        with pytest.raises(DataError, match="stream"):
            DataLoader(Counting(3), **options)
    with pytest.raises(DataError, match="known when it ends"):
        len(DataLoader(Counting(3)))


def test_samplers() -> None:
    assert labels(DataLoader(DATA, 2, sampler=[3, 1, 3])) == [[3, 1], [3]]
    shares = [DistributedSampler(DATA, r, 3, seed=1).order(4) for r in range(3)]
    assert [len(s) for s in shares] == [7, 7, 7]
    assert set(np.concatenate(shares)) == set(range(20))
    short = [DistributedSampler(DATA, r, 3, seed=1, drop_last=True).order(4) for r in range(3)]
    assert len(set(np.concatenate(short))) == 18
    assert DistributedSampler(DATA, 1, 3, shuffle=False).order(0).tolist() == [1, 4, 7, 10, 13, 16, 19]
    assert DistributedSampler(2, 2, 3).order(0).shape == (1,)
    assert labels(DataLoader(DATA, 7, sampler=DistributedSampler(DATA, 0, 3, seed=1))) != labels(
        DataLoader(DATA, 7, sampler=DistributedSampler(DATA, 1, 3, seed=1))
    )
    with pytest.raises(DataError, match="rank 3 of 3"):
        DistributedSampler(DATA, 3, 3)
    drawn = WeightedSampler([1, 0, 3], 4000, seed=0).order(0)
    assert set(drawn) == {0, 2}
    assert abs((drawn == 2).mean() - 0.75) < 0.03
    with pytest.raises(DataError, match="weight"):
        WeightedSampler([0, 0])


# --- the thread ahead -------------------------------------------------------------------------------

IMAGES = ArrayDataset(np.random.default_rng(0).integers(0, 256, (40, 1, 8, 8), np.uint8), np.arange(40))
CHAIN = ek.data.Compose(ek.data.RandomCrop(8, padding=2), ek.data.RandomFlip())
AUGMENTED = IMAGES.map(ek.data.Scale(1 / 255), on=0).map(CHAIN, on=0)


class Mine(ek.data.Scale):
    """A transform of a user's."""


def of_loaders() -> set[threading.Thread]:
    return {t for t in threading.enumerate() if t.name.startswith("eshkol-data-")}


def ended(threads: set[threading.Thread]) -> bool:
    """Whether they are gone, or go within seconds."""
    gc.collect()
    for thread in threads:
        thread.join(5)
    return not any(thread.is_alive() for thread in threads)


@pytest.mark.skipif(CPUS < 2, reason="one CPU has nobody who could load ahead")
def test_a_thread_is_ahead_where_nobody_notices() -> None:
    tokens = ek.data.BlockDataset(np.arange(100), 4)
    table = ek.data.Table({"a": np.arange(5)})
    for data in (IMAGES, AUGMENTED, AUGMENTED.subset([3, 1]), IMAGES + IMAGES, tokens, table, (np.ones(3), np.ones(3))):
        assert DataLoader(data, 2).workers == 1
    for data in (
        [1, 2, 3], Numbered(3), IMAGES.map(abs, on=0), IMAGES.map(abs, on=0, batched=True), Fussy(np.ones(3)),
        IMAGES.map(Mine(2.0), on=0), IMAGES.map(ek.data.Compose(Mine(2.0)), on=0), IMAGES + Numbered(3), Counting(3),
    ):  # fmt: skip
        assert DataLoader(data, 2).workers == 0
    assert DataLoader(IMAGES, 2, collate=list).workers == 0
    assert DataLoader(IMAGES, 2, workers=0).workers == 0


def test_the_thread_ahead_changes_nothing() -> None:
    plain = DataLoader(AUGMENTED, 6, shuffle=True, seed=3, workers=0, numpy=True)
    ahead = DataLoader(AUGMENTED, 6, shuffle=True, seed=3, numpy=True)
    for _ in range(3):
        for (a, i), (b, j) in zip(plain, ahead, strict=True):
            np.testing.assert_array_equal(a, b)
            np.testing.assert_array_equal(i, j)
    walk = iter(ahead)
    next(walk)
    time.sleep(0.05)  # the thread has more ready
    assert ahead.state_dict()["position"] == 1  # but what counts is what was given
    ahead.close()
    assert len(list(walk)) == 6  # without the thread it goes on by itself
    with DataLoader(AUGMENTED, 6, workers=1) as loader:
        walk = iter(loader)
        next(walk)
        loader.close()
        with pytest.raises(DataError, match="closed while it was walked"):
            list(walk)


def test_no_thread_is_left_behind() -> None:
    others = of_loaders()
    loader = DataLoader(IMAGES, 4, workers=1)
    walk = iter(loader)
    next(walk)
    (thread,) = of_loaders() - others
    del loader  # the walk still needs it
    next(walk)
    assert thread.is_alive()
    del walk
    assert ended({thread})
    for _ in DataLoader(IMAGES, 4):
        break
    assert ended(of_loaders() - others)
    list(DataLoader(IMAGES, 40))  # one batch needs nobody ahead
    list(DataLoader(IMAGES, 4))  # nor do a few
    assert of_loaders() <= others


def test_a_thread_that_is_ended_is_told() -> None:
    def leave(sample):
        if sample[1] == 9:
            raise SystemExit(3)
        return sample

    with DataLoader(DATA.map(leave), 4, workers=1, timeout=20) as loader:
        with pytest.raises(DataError, match="was ended by SystemExit: 3, while it loaded batch 2"):
            list(loader)
        loader.data._mapper.function = lambda sample: sample
        assert flat(labels(loader)) == list(range(20))  # a new thread


def test_memory_that_does_not_suffice_is_told() -> None:
    def greedy(sample):
        return bytearray(1 << 62)

    for workers in (0, 1):
        with (
            DataLoader(DATA.map(greedy), 4, workers=workers, timeout=20) as loader,
            pytest.raises(DataError, match="sample 0 cannot be loaded: MemoryError"),
        ):
            list(loader)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_forked_process_loads_by_itself() -> None:
    script = """
import os, sys, numpy as np
from eshkol.data import ArrayDataset, DataLoader
for workers in (None, 1):
    loader = DataLoader(ArrayDataset(np.arange(40)), 4, workers=workers, numpy=True)
    walk = iter(loader)
    seen = [next(walk).tolist()]
    child = os.fork()
    rest = [b.tolist() for b in walk]
    assert sum(seen + rest, []) == list(range(40)), rest
    assert len(list(loader)) == 10
    if child == 0:
        os._exit(5)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 5
"""
    subprocess.run([sys.executable, "-c", script], check=True, timeout=60)


@pytest.mark.parametrize(("end", "status"), [("", 0), ("raise KeyboardInterrupt", 130), ("raise SystemExit(4)", 4)])
def test_python_ends_while_threads_load(end, status) -> None:
    script = f"""
import sys, time, numpy as np
from eshkol.data import ArrayDataset, DataLoader
loaders = [DataLoader(ArrayDataset(np.arange(40)), 4, workers=w, numpy=True) for w in (1, 2, 3)]
walks = [iter(loader) for loader in loaders]
for walk in walks:
    next(walk)
{end}
"""
    found = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=False)
    assert found.returncode in (status, -2 if status == 130 else status), found.stderr
    assert "Fatal" not in found.stderr


@pytest.mark.parametrize("workers", [0, 1])
def test_ctrl_c_ends_waiting_for_a_batch(workers) -> None:
    script = f"""
import sys, time
from eshkol.data import DataLoader, Dataset
class Slow(Dataset):
    def __len__(self): return 4
    def __getitem__(self, index):
        print("begun", flush=True)
        time.sleep(120)
list(DataLoader(Slow(), 2, workers={workers}))
"""
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)
    assert b"KeyboardInterrupt" in errors
    assert process.returncode in (1, -signal.SIGINT)
