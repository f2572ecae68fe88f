"""What Scheme prints of a tensor: data that look like it, which Scheme's own printer writes.

Comes in: a tensor. Goes out: its number, or lists of rows, in which `…` stands for what is left out of a large tensor.
Numbers of narrow floats are given as the doubles with the fewest digits that are read back as the same number in their
own dtype, so 0.1 in float32 is shown as 0.1. A tensor whose elements are not known (it is being traced) is text.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from eshkol.bindings.values import Symbol
from eshkol.errors import TraceError
from eshkol.ops import dtypes

if TYPE_CHECKING:
    from eshkol.tensors.value import Tensor

THRESHOLD, EDGE = 200, 3  # tensors with more elements are summarised; so many of each axis are shown at both ends
LEFT_OUT = Symbol("…")
DIGITS = {dtypes.bfloat16: 4}  # enough for every number of a dtype that NumPy does not know how to write


def shown(tensor: Tensor, write: bool) -> Any:
    """For `display` the data; for `write` the text before them, and the data. Text alone where nothing is known."""
    shape = " ".join(map(str, tensor.shape))
    head = f"#<tensor {tensor.dtype.name.rstrip('_')} ({shape})"
    node = tensor._node
    if any(scope.open and scope.kind == "trace" for scope in node.scopes):
        return f"{head} traced>"
    try:
        array = tensor._array()
    except TraceError as error:  # carried out of the transformation that it belongs to
        return f"{head} not known: {error.message}>"
    data = rows(array, tensor.dtype)
    return [f"{head} ", data] if write else data


def rows(array: Any, dtype: dtypes.DType) -> Any:
    """An array as nested lists, without the middle of long axes where it is large."""
    if array.size > THRESHOLD:
        cut = [tuple(range(n)) if n <= 2 * EDGE else (*range(EDGE), *range(n - EDGE, n)) for n in array.shape]
        kept = array[np.ix_(*cut)]
    else:
        kept = array
    return _marked(_numbers(kept, dtype), array.shape if kept is not array else ())


def _marked(data: Any, shape: tuple[int, ...]) -> Any:
    """With a sign where something of an axis of that length was left out."""
    if not shape:
        return data
    inner = [_marked(row, shape[1:]) for row in data]
    return inner if shape[0] <= 2 * EDGE else [*inner[:EDGE], LEFT_OUT, *inner[EDGE:]]


def _numbers(array: Any, dtype: dtypes.DType) -> Any:
    """The elements as Python numbers that are written with the fewest digits."""
    if dtype in (dtypes.float32, dtypes.float16):
        return _each(array, lambda x: float(str(x)))
    if dtype is dtypes.complex64:
        return _each(array, lambda z: complex(float(str(z.real)), float(str(z.imag))))
    if dtype in DIGITS:
        return _each(array, lambda x: _shortest(x, DIGITS[dtype]))
    return array.tolist()


def _each(array: Any, change: Any) -> Any:
    if not array.ndim:
        return change(array[()])
    return [_each(row, change) for row in array] if array.ndim > 1 else [change(x) for x in array]


def _shortest(number: Any, most: int) -> float:
    wide, kind = float(number), type(number)
    for digits in range(1, most):
        short = float(f"{wide:.{digits}g}")
        if kind(short) == number:
            return short
    return wide if most == 0 or wide != wide else float(f"{wide:.{most}g}")
