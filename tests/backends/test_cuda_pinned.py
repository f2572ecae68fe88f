"""Page-locked memory of the host for a GPU, on the interpreted driver: what lies there, when it is used again."""

from __future__ import annotations

import gc
import threading

import numpy as np
import pytest
from interpreted_driver import installed

import eshkol as ek
from eshkol.backends.cuda.memory import STAGED


@pytest.fixture
def driver(monkeypatch):
    with installed(monkeypatch) as made:
        yield made


def test_copies_of_pinned_arrays_need_no_staging(driver):
    with ek.device("cuda") as machine:
        array = machine.pinned((3, 1000), np.float32)
        array[...] = np.arange(3000).reshape(3, 1000)
        buffer = machine.allocate(4000)
        before = driver.calls.count("cuMemHostAlloc")
        machine.copy_to(buffer, array[1])
        assert driver.calls.count("cuMemHostAlloc") == before, "no block for staging was needed"
        np.testing.assert_array_equal(np.frombuffer(machine.copy_from(buffer), np.float32), np.arange(1000, 2000))
        other = np.ones(1000, np.float32)  # memory that is not pinned goes the other way
        machine.copy_to(buffer, other)
        np.testing.assert_array_equal(np.frombuffer(machine.copy_from(buffer), np.float32), other)


def test_memory_is_used_again_when_its_copies_are_made_and_no_one_holds_it(driver):
    with ek.device("cuda") as machine:
        array = machine.pinned((STAGED,), np.uint8)
        address = array.__array_interface__["data"][0]
        part = array[5:10]
        machine.copy_to(machine.allocate(STAGED), array)
        del array
        gc.collect()
        other = machine.pinned((STAGED,), np.uint8)
        assert other.__array_interface__["data"][0] != address, "a part is still held"
        waits = driver.calls.count("cuEventSynchronize")
        dropping = threading.Thread(target=lambda held: held.clear(), args=([part],))
        del part
        dropping.start()
        dropping.join()
        gc.collect()
        again = machine.pinned((STAGED,), np.uint8)
        assert again.__array_interface__["data"][0] == address
        assert driver.calls.count("cuEventSynchronize") == waits + 1, "the copy was waited for"
        assert machine.pinned((0, 3), np.float64).shape == (0, 3)


@pytest.mark.parametrize("numpy", [False, True])
def test_a_loader_pins_its_batches(driver, numpy):
    x, y = np.arange(40, dtype=np.float32).reshape(20, 2), np.arange(20)
    with ek.device("cuda"):
        loader = ek.data.DataLoader((x, y), 4, pin=True, numpy=numpy)
        for _ in range(3):
            found = [(np.asarray(a).copy(), np.asarray(b).copy()) for a, b in loader]
            np.testing.assert_array_equal(np.concatenate([a for a, _ in found]), x)
            np.testing.assert_array_equal(np.concatenate([b for _, b in found]), y)
        pinned = driver.calls.count("cuMemHostAlloc")
        for a, _ in loader:
            (ek.asarray(a) * 2.0).numpy()
        assert driver.calls.count("cuMemHostAlloc") <= pinned + 2, "but for blocks of staging, all is used again"
    assert 0 < pinned < 20
