"""What goes wrong with a GPU, on the interpreted driver made to fail: a named error, a remedy, and all else goes on."""

from __future__ import annotations

import ctypes
import types

import numpy as np
import pytest
from interpreted_driver import installed

import eshkol as ek
from eshkol.backends.cuda import driver as drivers
from eshkol.errors import AllocationFailed, BackendUnavailable, DeviceLost, EshkolError, ExecutionFailed


@pytest.fixture
def driver(monkeypatch):
    with installed(monkeypatch) as made:
        yield made


@pytest.fixture
def unopened():
    """No driver is known yet."""
    drivers._opened.cache_clear()
    yield
    drivers._opened.cache_clear()


def library(version=13000, count=1, **codes):
    """A library of the driver's functions; those that are named report a number."""

    def function(name):
        def call(*given):
            if name in codes:
                return codes[name]
            if name == "cuDriverGetVersion":
                given[0]._obj.value = version
            elif name == "cuDeviceGetCount":
                given[0]._obj.value = count
            elif name == "cuGetErrorName":
                given[1]._obj.value = f"CUDA_ERROR_{given[0]}".encode()
            elif name == "cuModuleLoadDataEx" and "log" in codes:
                (ctypes.c_char * 20).from_address(given[4][0]).value = b"line 3:  no such"
            return 0

        return call

    return types.SimpleNamespace(**{name: function(name) for name in drivers._FUNCTIONS if codes.get(name) != "absent"})


# --- the driver ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("found", "words"),
    [
        (None, "no NVIDIA driver here: "),
        (library(version=11030), r"too old: it is for CUDA 11\.3, 11\.4 is needed"),
        (library(cuCtxSynchronize="absent"), "too old: it has no cuCtxSynchronize"),
        (library(cuInit=35), "install a newer NVIDIA driver"),
        (library(cuInit=100), "check nvidia-smi and CUDA_VISIBLE_DEVICES"),
        (library(cuInit=802), "nvidia-fabricmanager"),
        (library(cuInit=803), "restart the machine"),
        (library(cuInit=999), "does not answer"),
        (library(count=0), "there is no NVIDIA GPU"),
    ],
)
def test_a_driver_that_is_missing_too_old_or_broken(found, words, unopened, monkeypatch):
    monkeypatch.setattr(drivers, "_library", lambda: found)
    with pytest.raises(BackendUnavailable, match=words) as caught:
        ek.ones((2,)).to("cuda")
    assert "ESHKOL_DEVICE=cpu" in (caught.value.hint or "")
    assert (ek.ones((2,)) + 1).tolist() == [2.0, 2.0]
    from eshkol.tensors import devices

    with pytest.raises(BackendUnavailable, match=words):
        devices.cuda_name()


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (222, "newer NVIDIA driver"),
        (221, "libnvidia-ptxjitcompiler"),
        (223, "CUDA_DISABLE_PTX_JIT"),
        (218, "report it"),
    ],
)
def test_ptx_that_the_driver_does_not_take(code, words):
    with pytest.raises(EshkolError) as caught:
        drivers.Driver(library(cuModuleLoadDataEx=code)).loaded(b"")
    assert words in caught.value.hint
    assert f"CUDA_ERROR_{code}" in caught.value.message


def test_programs_are_refused_by_an_old_driver_and_others_go_on(driver):
    with ek.device("cuda"):
        x = ek.ones((3,)).realize()
        driver.fails["cuModuleLoadDataEx"] = 222
        with pytest.raises(BackendUnavailable, match="error 222") as caught:
            (x * 41.0 + 3.0).numpy()
        assert "newer" in caught.value.hint
        assert x.tolist() == [1.0] * 3
        assert (x.to("cpu") * 41.0).tolist() == [41.0] * 3
        driver.fails.clear()
        assert (x * 41.0 + 3.0).tolist() == [44.0] * 3


# --- the device ---------------------------------------------------------------------------------------


def test_a_busy_device_is_named_and_may_be_free_later(driver):
    driver.fails["cuDevicePrimaryCtxRetain"] = 46
    with pytest.raises(BackendUnavailable, match="error 46") as caught:
        ek.ones((2,)).to("cuda")
    assert "another process" in caught.value.hint
    assert ek.ones((2,)).tolist() == [1.0, 1.0]
    driver.fails.clear()
    assert ek.ones((2,)).to("cuda").tolist() == [1.0, 1.0]


@pytest.mark.parametrize("code", [214, 700, 702, 719, 999])
@pytest.mark.parametrize("where", ["cuLaunchKernel", "cuMemcpyHtoDAsync_v2", "cuEventSynchronize"])
def test_a_lost_device_is_named_and_the_process_goes_on(driver, code, where):
    with ek.device("cuda") as machine:
        seen = ek.tensor([5.0, 6.0])
        assert (seen * 2.0).tolist() == [10.0, 12.0]
        known = (seen * 2.0).realize()
        known.tolist()  # the host has a copy now
        driver.fails[where] = code
        with pytest.raises(DeviceLost) as caught:
            (ek.tensor(np.array([1.0, 2.0], np.float32)) * 2.0).tolist()
        assert "start the process again" in caught.value.hint
        driver.lost = code
        with pytest.raises(DeviceLost):
            (seen * 3.0).tolist()
        with pytest.raises(DeviceLost):
            machine.synchronize()
        assert known.tolist() == [10.0, 12.0], "what the host has is still there"
        assert (known.to("cpu") + 1.0).tolist() == [11.0, 13.0]
    assert (ek.ones((2,)) + 1).tolist() == [2.0, 2.0]
    del seen, known  # which asks the driver for nothing that could fail again


def test_more_memory_than_there_is(driver):
    with ek.device("cuda") as machine:
        x = ek.ones((4,)).realize()
        used = machine.statistics.used
        with pytest.raises(AllocationFailed, match="over the limit") as caught:
            ek.zeros((1 << 30,), dtype="uint8").realize()
        assert "smaller" in caught.value.hint
        with pytest.raises(AllocationFailed, match=r"no \d+ bytes left") as caught:
            ek.zeros((driver.memory,), dtype="uint8").realize()
        assert "nvidia-smi" in caught.value.hint
        driver.fails["cuMemHostAlloc"] = 2
        with pytest.raises(AllocationFailed):
            machine.pinned((100,), np.float32)
        driver.fails.clear()
        assert (x + 1).tolist() == [2.0] * 4
        assert machine.statistics.used <= used + 4096


def test_an_index_out_of_bounds_stops_its_launch_alone(driver):
    with ek.device("cuda"):
        x = ek.tensor(np.arange(5.0, dtype=np.float32))
        good, bad = ek.tensor(np.array([1, 4])), ek.tensor(np.array([1, 7]))
        with pytest.raises(EshkolError, match="index") as caught:
            ek.take(x, bad).numpy()
        assert not isinstance(caught.value, DeviceLost)
        assert ek.take(x, good).tolist() == [1.0, 4.0]


def test_a_lost_device_is_a_launch_that_failed():
    assert issubclass(DeviceLost, ExecutionFailed)
