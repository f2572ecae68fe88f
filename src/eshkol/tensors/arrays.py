"""NumPy arrays of what a user gives: numbers, nested lists, arrays of other dtypes.

Comes in: any data, and perhaps a dtype. Goes out: a contiguous array of a dtype that tensors have, or an error that
says why there is none. Tensors themselves are not known here; `value.py` and `make.py` put arrays into them.
"""

from __future__ import annotations

import mmap
import sys
import warnings
from itertools import chain
from typing import Any

import numpy as np

from eshkol.errors import DTypeError, ShapeError
from eshkol.graph.node import here
from eshkol.ops import dtypes
from eshkol.ops.dtypes import DType
from eshkol.schedule.run.memory import counted


def array_of(data: Any, dtype: DType | None) -> Any:
    """A contiguous array of a dtype that tensors have; shares memory with `data` where it can.

    Python floats give the default dtype, integers int64 (uint64 where only that holds them); a NumPy array keeps its
    dtype. Numbers that the dtype cannot hold are an error.
    """
    if "numpy.ma" in sys.modules and isinstance(data, np.ma.MaskedArray):  # whose import takes its time
        raise DTypeError("a masked array cannot be a tensor", span=here(), hint="say what stands there: x.filled(0)")
    array = np.asarray(data if isinstance(data, np.ndarray | np.generic) else _of_python(data, dtype))
    if array.dtype.kind not in "biufcV" or (array.dtype.kind == "V" and array.dtype != dtypes.bfloat16.numpy):
        what = "Python objects" if array.dtype == object else str(array.dtype)
        raise DTypeError(
            f"an array of {what} cannot be a tensor: {_brief(data)}", span=here(),
            hint="tensors are made of numbers, nested lists of numbers and NumPy arrays",
        )  # fmt: skip
    found = dtypes.of(array.dtype)
    wanted = dtype or found
    if not isinstance(data, np.ndarray | np.generic) and dtype is None and found is dtypes.float64:
        wanted = dtypes.default_float()
    elif not isinstance(data, np.ndarray | np.generic) and dtype is None and found is dtypes.complex128:
        wanted = dtypes.default("complex")
    if wanted is not found:
        array = _converted(array, wanted)
    return np.ascontiguousarray(array, wanted.numpy).reshape(array.shape)


_NUMBERS = frozenset((float, int, bool))
_MODERATE = 1e36  # floats whose squares are less, even in all, fit every dtype of 32 bits and more


def of_numbers(data: Any, dtype: DType | None) -> Any:
    """An array of a number, a list of numbers or a list of such lists, where nothing is to be said about them; None of
    anything else. It is what `array_of` gives."""
    kinds = {type(data)} if type(data) is not list else {*map(type, data)}
    if kinds == {list}:
        kinds = {*map(type, chain.from_iterable(data))}
    if not kinds or not kinds <= _NUMBERS:
        return None
    try:
        array = np.array(data)
        found = array.dtype
        if found == _DOUBLE:
            wanted = dtype or dtypes.default_float()
            if wanted.bits < 32 or not wanted.is_float or not np.vdot(array, array) < _MODERATE:
                return None
            return array.astype(wanted.numpy)
    except (ValueError, OverflowError, FloatingPointError):
        return None  # which is told, if it is wrong
    return array if dtype is None and found in (_LONG, _BOOL) else None


_DOUBLE, _LONG, _BOOL = np.dtype(np.float64), np.dtype(np.int64), np.dtype(np.bool_)


def own_array(data: Any, dtype: DType | None) -> Any:
    """The same, sharing memory with nothing: whoever holds the data may go on writing to it."""
    array = array_of(data, dtype)
    if isinstance(data, bool | int | float | complex | list | tuple | np.generic):
        return array
    return counted(array) if not isinstance(data, np.ndarray) or np.may_share_memory(array, data) else array


def _of_python(data: Any, dtype: DType | None) -> Any:
    if hasattr(data, "__array__"):
        return np.asarray(data)
    try:
        array = np.array(data)
        if array.dtype.kind in "fO" and dtype is not None and dtype.differentiable:
            return np.array(data, np.complex128 if dtype.is_complex else np.float64)  # integers beyond 64 bits too
    except (ValueError, TypeError) as error:
        if "inhomogeneous" not in str(error):
            raise DTypeError(f"this cannot be a tensor: {_brief(data)}", span=here()) from None
        raise ShapeError(
            f"rows of different lengths cannot be a tensor: {_brief(data)}", span=here(),
            hint="pad them to one length",
        ) from None  # fmt: skip
    except OverflowError:
        array = np.array(None)
    if array.dtype.kind in "fO" and _too_large(array, data):
        raise DTypeError(
            f"no integer dtype holds all numbers in {_brief(data)}", span=here(), hint="give dtype=ek.float64"
        )
    return array


def _too_large(array: Any, data: Any) -> bool:
    """Whether NumPy made floats or objects of integers, as no integer dtype holds them all."""
    if array.dtype != object and not (array.size and np.max(np.abs(array)) >= 2.0**63):
        return False
    return all(isinstance(x, int) for x in np.array(data, object).flat)


def _brief(data: Any) -> str:
    text = repr(data)
    return text if len(text) <= 60 else text[:57] + "..."


def _converted(array: Any, wanted: DType) -> Any:
    """The numbers in another dtype; one that it cannot hold is an error, rounding of floats is not."""
    kind = dtypes.of(array.dtype).rank
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # NumPy's, about imaginary parts: they are looked at here
        result = array.astype(wanted.numpy)
    if kind > wanted.rank or (wanted.is_integer and array.dtype.kind in "iu"):
        lost = np.asarray(result != array)
    elif wanted.differentiable:
        lost = np.isinf(result) & np.isfinite(array)
    else:
        return result
    if lost.any():
        raise DTypeError(
            f"{array[lost].reshape(-1)[0]} does not fit {wanted}", span=here(),
            hint="choose a dtype that holds it, or cast later",
        )  # fmt: skip
    return result


def is_fixed(array: Any) -> bool:
    """Whether nothing can write to an array: it is read-only, and so is whatever it is a view of."""
    while isinstance(array, np.ndarray):
        if array.flags.writeable:
            return False
        array = array.base
    return array is None or isinstance(array, bytes | mmap.mmap)
