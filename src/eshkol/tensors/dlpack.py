"""DLPack's structures, as capsules that are given to other libraries and taken from them: memory without a copy.

Comes in: addresses with shapes, dtypes and devices, and what keeps the memory alive. Goes out: capsules, old and
versioned (from DLPack 1.0 on, which can say that memory is read-only). What is given away is held here until the other
library calls its deleter, which it may do from any thread. What is taken is given back when nothing refers to it here.
When Python ends, deleters that were not called are taken out: the other library may be the last to go.
"""

from __future__ import annotations

import atexit
import ctypes
import itertools
import sys
from collections.abc import Callable
from ctypes import POINTER, c_char_p, c_int32, c_int64, c_uint8, c_uint16, c_uint32, c_uint64, c_void_p, py_object
from dataclasses import dataclass
from typing import Any

from eshkol.errors import DTypeError, TensorError
from eshkol.ops import dtypes
from eshkol.ops.dtypes import DType
from eshkol.ops.row import Shape

CPU, CUDA = 1, 2  # kinds of devices
VERSION = (1, 0)  # of DLPack, that is written here
READ_ONLY, COPIED = 1, 2  # flags
_CODES = {"int": 0, "uint": 1, "float": 2, "bfloat": 4, "complex": 5, "bool": 6}
_NAMES = b"dltensor", b"dltensor_versioned"
_USED = b"used_dltensor", b"used_dltensor_versioned"


class _Tensor(ctypes.Structure):
    _fields_ = (
        ("data", c_void_p), ("device_type", c_int32), ("device_id", c_int32), ("ndim", c_int32), ("code", c_uint8),
        ("bits", c_uint8), ("lanes", c_uint16), ("shape", POINTER(c_int64)), ("strides", POINTER(c_int64)),
        ("byte_offset", c_uint64),
    )  # fmt: skip


class _Managed(ctypes.Structure):
    _fields_ = (("tensor", _Tensor), ("context", c_void_p), ("deleter", c_void_p))


class _Versioned(ctypes.Structure):
    _fields_ = (
        ("major", c_uint32), ("minor", c_uint32), ("context", c_void_p), ("deleter", c_void_p), ("flags", c_uint64),
        ("tensor", _Tensor),
    )  # fmt: skip


_Deleter = ctypes.CFUNCTYPE(None, c_void_p)
_Destructor = ctypes.PYFUNCTYPE(None, c_void_p)  # which is called with the lock held
# Our own: what is said of the functions of `ctypes.pythonapi` is everyone's, and others may say something else.
_api = ctypes.PyDLL("python", handle=ctypes.pythonapi._handle)
_api.PyCapsule_New.restype, _api.PyCapsule_New.argtypes = py_object, (c_void_p, c_char_p, _Destructor)
_api.PyCapsule_IsValid.argtypes = c_void_p, c_char_p
_api.PyCapsule_GetPointer.restype, _api.PyCapsule_GetPointer.argtypes = c_void_p, (c_void_p, c_char_p)
_api.PyCapsule_SetName.argtypes = c_void_p, c_char_p
_api.Py_IncRef.argtypes, _api.Py_IncRef.restype = (py_object,), None


# --- dtypes -----------------------------------------------------------------------------------------


def _code(dtype: DType) -> tuple[int, int]:
    if dtype is dtypes.bfloat16:
        return _CODES["bfloat"], 16
    if dtype.is_bool:
        return _CODES["bool"], 8
    kind = "complex" if dtype.is_complex else "float" if dtype.is_float else "int" if dtype.signed else "uint"
    return _CODES[kind], dtype.numpy.itemsize * 8


_DTYPES = {_code(d): d for d in dtypes.ALL}


# --- given to others --------------------------------------------------------------------------------


class _Given:
    """What another library refers to, and what is done when it lets go."""

    def __init__(self, managed: Any, parts: tuple[Any, ...], released: Callable[[], None]) -> None:
        self.managed, self.parts, self.released = managed, parts, released


_given: dict[int, _Given] = {}  # by the address of the structure


def _let_go(address: int, given: dict[int, _Given] = _given) -> None:
    found = given.pop(address, None)
    if found is not None:
        found.released()


def _unused(capsule: int) -> None:
    """A capsule goes: if no one has taken what it holds, that goes too."""
    for name in _NAMES:
        if _api.PyCapsule_IsValid(capsule, name):
            _let_go(_api.PyCapsule_GetPointer(capsule, name))


_deleter, _destructor = _Deleter(_let_go), _Destructor(_unused)


@atexit.register
def _leave_to_the_system() -> None:
    for found in _given.values():
        found.managed.deleter = None
        _api.Py_IncRef(found)  # others may read it when Python has gone
    _given.clear()


def given(
    address: int, shape: Shape, dtype: DType, device: tuple[int, int], released: Callable[[], None], *,
    versioned: bool, flags: int = 0,
) -> Any:  # fmt: skip
    """A capsule of contiguous memory, which must stay as it is until `released` is called."""
    strides = list(itertools.accumulate(reversed(shape[1:]), lambda a, b: a * b, initial=1))[::-1]
    extents, steps = (c_int64 * len(shape))(*shape), (c_int64 * len(shape))(*strides[: len(shape)])
    managed: Any = _Versioned() if versioned else _Managed()
    tensor = managed.tensor
    tensor.data, tensor.ndim, tensor.lanes, tensor.byte_offset = address, len(shape), 1, 0
    tensor.device_type, tensor.device_id = device
    tensor.code, tensor.bits = _code(dtype)
    tensor.shape, tensor.strides = ctypes.cast(extents, POINTER(c_int64)), ctypes.cast(steps, POINTER(c_int64))
    managed.deleter = ctypes.cast(_deleter, c_void_p).value
    if versioned:
        managed.major, managed.minor, managed.flags = *VERSION, flags
    place = ctypes.addressof(managed)
    _given[place] = _Given(managed, (extents, steps), released)
    return _api.PyCapsule_New(place, _NAMES[versioned], _destructor)


# --- taken from others ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class TakenMemory:
    """Memory of another library; `owner` gives it back when it goes."""

    address: int
    shape: Shape
    dtype: DType
    device: tuple[int, int]
    owner: Any


class _Owner:
    """Gives a structure of another library back."""

    def __init__(self, place: int, deleter: int | None) -> None:
        self._place, self._deleter = place, deleter

    def __del__(self, ending: Callable[[], bool] = sys.is_finalizing) -> None:
        if self._deleter and not ending():
            _Deleter(self._deleter)(self._place)


def is_capsule(value: Any) -> bool:
    return type(value).__name__ == "PyCapsule"


def taken(capsule: Any) -> TakenMemory:
    """What a capsule holds, which is ours from here on."""
    at = id(capsule)
    versioned = next((k for k, name in enumerate(_NAMES) if _api.PyCapsule_IsValid(at, name)), None)
    if versioned is None:
        raise TensorError("this capsule holds no DLPack tensor, or another library has taken it already")
    place = _api.PyCapsule_GetPointer(at, _NAMES[versioned])
    managed: Any = (_Versioned if versioned else _Managed).from_address(place)
    if versioned and managed.major > VERSION[0]:
        raise TensorError(f"a DLPack tensor of version {managed.major}.{managed.minor}, and {VERSION[0]} is known")
    tensor = managed.tensor
    shape = tuple(tensor.shape[k] for k in range(tensor.ndim))
    strides = tuple(tensor.strides[k] for k in range(tensor.ndim)) if tensor.strides else None
    dtype = _DTYPES.get((tensor.code, tensor.bits)) if tensor.lanes == 1 else None
    if dtype is None:
        raise DTypeError(f"there is no dtype for DLPack's code {tensor.code} with {tensor.bits} bits × {tensor.lanes}")
    check_contiguous(shape, strides)
    _api.PyCapsule_SetName(at, _USED[versioned])
    owner = _Owner(place, managed.deleter)
    address = (tensor.data or 0) + tensor.byte_offset
    return TakenMemory(address, shape, dtype, (tensor.device_type, tensor.device_id), owner)


def check_contiguous(shape: Shape, strides: Shape | None) -> None:
    """Refuse memory whose elements are not next to each other; strides are in elements."""
    if strides is None or 0 in shape:
        return
    step = 1
    for extent, stride in zip(reversed(shape), reversed(strides), strict=True):
        if extent != 1 and stride != step:
            raise TensorError(
                f"memory of a device with shape {list(shape)} and strides {list(strides)} is not contiguous",
                hint="make it so before: x.contiguous() in PyTorch, cupy.ascontiguousarray(x)",
            )
        step *= extent
