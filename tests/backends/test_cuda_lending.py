"""Memory of a GPU shared with other libraries, on the interpreted driver, whose memory can be looked at.

What the other library would do is done here with ctypes: a structure of DLPack is read and given back, and an object
says where its memory is.
"""

from __future__ import annotations

import ctypes
import gc
import threading

import numpy as np
import pytest
from interpreted_driver import installed

import eshkol as ek
from eshkol.errors import DTypeError, TensorError, TraceError
from eshkol.tensors import dlpack

VERSIONED = {"max_version": (1, 0)}


@pytest.fixture
def driver(monkeypatch):
    with installed(monkeypatch) as made:
        yield made


def at(address, shape, dtype=np.float32):
    """What lies at an address."""
    size = int(np.prod(shape)) * np.dtype(dtype).itemsize
    return np.frombuffer(ctypes.string_at(address, size), dtype).reshape(shape)


class Foreign:
    """An array of another library on the device."""

    def __init__(self, driver, values, **more):
        found = ctypes.c_ulonglong()
        driver.cuMemAlloc_v2(ctypes.byref(found), values.nbytes)
        self.address = found.value
        ctypes.memmove(self.address, np.ascontiguousarray(values).ctypes.data, values.nbytes)
        self.__cuda_array_interface__ = {
            "version": 3, "shape": values.shape, "typestr": values.dtype.str, "data": (self.address, False),
        } | more  # fmt: skip


# --- __cuda_array_interface__ -------------------------------------------------------------------------


def test_only_tensors_on_a_gpu_have_the_interface(driver):
    for device in ("cpu", "discrete", "reference"):
        assert not hasattr(ek.ones((2,), device=device), "__cuda_array_interface__")
    x = ek.tensor([[1.0, 2.0], [3.0, 4.0]], device="cuda")
    for value in (x, x * 2.0):
        said = value.__cuda_array_interface__
        assert (said["version"], said["shape"], said["typestr"], said["data"][1]) == (3, (2, 2), "<f4", True)
        assert said["stream"] not in (None, 0)
        np.testing.assert_array_equal(at(said["data"][0], (2, 2)), value.numpy())
    with pytest.raises(TraceError, match="detach"):
        _ = ek.ones((2,), device="cuda").requires_grad_().__cuda_array_interface__
    with pytest.raises(DTypeError, match="bfloat16"):
        _ = ek.ones((2,), dtype="bfloat16", device="cuda").__cuda_array_interface__


def test_memory_that_was_shown_stays_while_the_tensor_lives(driver):
    with ek.device("cuda") as machine:
        compiled = ek.tensor([1.0, 2.0])
        compiled += 1
        compiled.realize(), ek.full((2,), 9.0).realize()
        del compiled
        used = machine.statistics.used
        x = ek.tensor([1.0, 2.0])
        address = x.__cuda_array_interface__["data"][0]
        assert x.__cuda_array_interface__["data"][0] == address
        x += 1
        filled = [ek.full((2,), 9.0).realize() for _ in range(3)]
        assert at(address, 2).tolist() == [1.0, 2.0]
        assert x.tolist() == [2.0, 3.0]
        del x, filled
        gc.collect()
        assert machine.statistics.used == used


def test_an_array_of_another_library_is_taken_without_a_copy(driver):
    theirs = Foreign(driver, np.arange(6, dtype=np.float32).reshape(2, 3), stream=77)
    driver.calls.clear()
    with ek.transfers() as seen:
        x = ek.tensor(theirs)
    assert (x.device, x.dtype, x.shape, seen.uploads) == ("cuda", ek.float32, (2, 3), 0)
    assert driver.calls.count("cuStreamSynchronize") == 1, "what their stream does was waited for"
    assert x.__cuda_array_interface__["data"][0] == theirs.address
    np.testing.assert_array_equal((x * 2).numpy(), np.arange(6).reshape(2, 3) * 2)
    x += 1
    assert x.tolist() == [[1, 2, 3], [4, 5, 6]]
    np.testing.assert_array_equal(at(theirs.address, (2, 3)), np.arange(6).reshape(2, 3), err_msg="theirs stays")
    assert ek.tensor(theirs, dtype="float64").dtype is ek.float64
    assert ek.tensor(theirs, device="cpu").device == "cpu"


def test_memory_that_begins_in_between_is_copied(driver):
    """Kernels read several elements at once, where buffers are aligned as they are on the device."""
    theirs = Foreign(driver, np.arange(9, dtype=np.float32))
    theirs.__cuda_array_interface__ |= {"data": (theirs.address + 4, False), "shape": (8,)}
    x = ek.tensor(theirs)
    assert x.__cuda_array_interface__["data"][0] % 16 == 0
    ctypes.memset(theirs.address, 0, 36)
    np.testing.assert_array_equal((x + 1).numpy(), np.arange(2, 10))


def test_memory_of_another_library_is_held_as_long_as_the_tensor(driver):
    class Watched(Foreign):
        def __del__(self):
            gone.append(driver.calls[-3:])

    gone = []
    x = ek.tensor(Watched(driver, np.ones(3, np.float32)))
    y = x.reshape(3, 1)
    del x
    gc.collect()
    assert not gone
    assert y.tolist() == [[1.0]] * 3
    y = None
    gc.collect()
    assert gone
    assert "cuCtxSynchronize" in gone[0], "what was still reading it was waited for"


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"strides": (4, 8)}, "not contiguous"),
        ({"typestr": "<M8"}, "cannot be a tensor"),
        ({"mask": object()}, "a mask"),
        ({"typestr": "<c8", "shape": (3,)}, "complex64"),
    ],
)
def test_arrays_that_cannot_be_taken(driver, more, words):
    with pytest.raises(TensorError, match=words):
        ek.tensor(Foreign(driver, np.ones((2, 3), np.float32), **more))


# --- DLPack -------------------------------------------------------------------------------------------


def structure(capsule, versioned):
    """What a capsule points to."""
    api = dlpack._api
    name = b"dltensor_versioned" if versioned else b"dltensor"
    place = api.PyCapsule_GetPointer(id(capsule), name)
    return place, (dlpack._Versioned if versioned else dlpack._Managed).from_address(place)


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16", "int8", "uint16", "int64", "bool"])
def test_dlpack_goes_round_on_the_device_without_a_copy(driver, dtype):
    x = ek.tensor([[1, 0, 1], [0, 1, 1]], dtype=dtype, device="cuda:1")
    assert x.__dlpack_device__() == (2, 1)
    with ek.transfers() as seen:
        y = ek.from_dlpack(x)
        z = ek.from_dlpack(x.__dlpack__())  # a capsule, and an old one
        assert seen.reads == 0
    for other in (y, z):
        assert (other.device, other.dtype, other.shape) == ("cuda:1", x.dtype, x.shape)
        assert other._node.data.address() == x._node.data.address()
        assert other.tolist() == x.tolist()


def test_others_may_say_something_else_of_pythons_functions(driver, monkeypatch):
    ek.svd(ek.tensor(np.eye(12), device="cpu"))[1].numpy()  # by LAPACK, whose address is in a capsule
    monkeypatch.setattr(ctypes.pythonapi.PyCapsule_GetPointer, "argtypes", [ctypes.py_object, ctypes.c_char_p])
    x = ek.tensor([1.0, 2.0], device="cuda")
    assert ek.from_dlpack(x.__dlpack__()).tolist() == [1.0, 2.0]


def test_what_a_capsule_says(driver):
    x = ek.tensor(np.arange(24, dtype=np.float32).reshape(2, 3, 4), device="cuda")
    for versioned in (False, True):
        capsule = x.__dlpack__(**VERSIONED if versioned else {})
        _, found = structure(capsule, versioned)
        said = found.tensor
        assert (said.device_type, said.device_id, said.ndim, said.code, said.bits, said.lanes) == (2, 0, 3, 2, 32, 1)
        assert [said.shape[k] for k in range(3)] == [2, 3, 4]
        assert [said.strides[k] for k in range(3)] == [12, 4, 1]
        np.testing.assert_array_equal(at(said.data, (2, 3, 4)), x.numpy())
        if versioned:
            assert (found.major, found.flags) == (1, dlpack.READ_ONLY)
    _, copy = structure(kept := x.__dlpack__(copy=True, **VERSIONED), True)
    assert (copy.flags, copy.tensor.data != x._node.data.address()) == (dlpack.COPIED, True)
    del kept


def test_streams_of_dlpack(driver):
    x = (ek.ones((2,), device="cuda") * 2).realize()
    for stream, waits in ((None, 1), (1, 1), (2, 1), (12345, 1), (-1, 0)):
        driver.calls.clear()
        x.__dlpack__(stream=stream)
        assert driver.calls.count("cuStreamSynchronize") == waits
    for stream in (0, -2, "a"):
        with pytest.raises(BufferError, match="stream"):
            x.__dlpack__(stream=stream)
    assert np.from_dlpack(x, device="cpu").tolist() == [2.0, 2.0]
    with pytest.raises(BufferError, match="copied to the host"):
        x.__dlpack__(dl_device=(1, 0), copy=False)
    with pytest.raises(TraceError, match="detach"):
        ek.ones((2,), device="cuda").requires_grad_().__dlpack__()


def test_memory_lives_until_the_consumer_lets_go_from_any_thread(driver):
    with ek.device("cuda") as machine:
        (ek.ones((1000,)) * 3).realize(), ek.full((1000,), 7.0).realize()  # what is compiled for them stays
        used = machine.statistics.used
        for versioned in (False, True):
            x = (ek.ones((1000,)) * 3).realize()
            capsule = x.__dlpack__(**VERSIONED if versioned else {})
            place, found = structure(capsule, versioned)
            dlpack._api.PyCapsule_SetName(id(capsule), dlpack._USED[versioned])  # as a consumer does
            address, deleter = found.tensor.data, dlpack._Deleter(found.deleter)
            del x, capsule
            gc.collect()
            others = [ek.full((1000,), 7.0).realize() for _ in range(3)]
            np.testing.assert_array_equal(at(address, 1000), 3.0)
            thread = threading.Thread(target=deleter, args=(place,))
            thread.start()
            thread.join()
            del others
            gc.collect()
            assert machine.statistics.used == used
        x = (ek.ones((1000,)) * 3).realize()
        x.__dlpack__()  # a capsule that no one takes
        del x
        gc.collect()
        assert machine.statistics.used == used


def test_a_capsule_is_taken_once(driver):
    capsule = ek.ones((2,), device="cuda").__dlpack__()
    assert ek.from_dlpack(capsule).tolist() == [1.0, 1.0]
    with pytest.raises(TensorError, match="taken it already"):
        ek.from_dlpack(capsule)
    with pytest.raises(TensorError, match="none of a GPU"):
        ek.from_dlpack(np.ones(2).__dlpack__())


def test_what_is_still_lent_when_python_ends_is_left_to_the_consumer():
    held = dlpack._Given(dlpack._Managed(deleter=1), (), lambda: None)
    before = dict(dlpack._given)
    dlpack._given.clear()
    try:
        dlpack._given[1] = held
        dlpack._leave_to_the_system()
        assert held.managed.deleter is None
        assert not dlpack._given
    finally:
        dlpack._given.update(before)
