"""Products that sum over axes: matrices, vectors and what is said with them. Everything ends in `matrix_product`."""

from __future__ import annotations

from typing import Any

import numpy as np

from eshkol.errors import ShapeError
from eshkol.ops import dtypes, shapes
from eshkol.ops.movement import permute, reshape
from eshkol.ops.row import Aval, Choice, HasAval, Linear, Macro, Pull, Shape, Value, composite, primitive, sample

GROUP = "contraction"
_NUMBERS = ("int", "float", "complex")
_COUNTED = 1 << 32  # the array instructions count elements in 32 bits


# --- the one primitive ----------------------------------------------------------------------------


def wide(array: Any) -> Any:
    """An array in a dtype that NumPy computes in: 16-bit floats as float32."""
    return array.astype(np.float32) if dtypes.of(array.dtype) in (dtypes.float16, dtypes.bfloat16) else array


def _infer_product(a: None, x: HasAval, y: HasAval) -> Aval:
    if len(x.shape) < 2 or len(y.shape) < 2:
        raise ShapeError(f"{list(x.shape)} and {list(y.shape)} are not both matrices", hint="use matmul for vectors")
    if x.shape[-1] != y.shape[-2]:
        raise _misfit(x.shape, y.shape)
    return Aval((*shapes.broadcast(x.shape[:-2], y.shape[:-2]), x.shape[-2], y.shape[-1]), x.dtype)


def _misfit(x: Shape, y: Shape) -> ShapeError:
    inner = y[-2] if len(y) > 1 else y[0]
    return ShapeError(
        f"shapes {list(x)} and {list(y)} do not fit: rows of {x[-1]} against columns of {inner}",
        hint="the last axis of x must be as long as the last but one of y: transpose one of them?",
    )


def _transpose_product(a: None, ct: Any, k: int, x: Any, y: Any) -> Any:
    return matmul(ct, turned(y)) if k == 0 else matmul(turned(x), ct)


def turned(x: Any) -> Any:
    """The matrices of the last two axes, transposed."""
    return permute(x, (*range(x.ndim - 2), x.ndim - 1, x.ndim - 2))


def _batch_product(a: None, inputs: Any, batched: Any) -> Any:
    return matmul(*shapes.align(inputs, batched, core=2))


def _pull_product(e: Any, a: None, i: Any, x: Any, y: Any) -> Any:
    dtype = x.dtype
    exact = dtypes.float32 if dtype in (dtypes.float16, dtypes.bfloat16) else dtype
    *batch, row, column = i

    def within(read: Any) -> list[Any]:
        extents = read.shape[:-2]
        return [0 if n == 1 else k for n, k in zip(extents, batch[len(batch) - len(extents) :], strict=True)]

    def body(j: Any) -> Any:
        one, other = x([*within(x), row, j[0]]), y([*within(y), j[0], column])
        return e.op("MUL", e.convert(one, exact), e.convert(other, exact))

    return e.convert(e.reduce("ADD", [x.shape[-1]], body, 0), dtype)


def _macro_product(b: Any, a: None, out: Any, x: Any, y: Any) -> None:
    sizes = {"m": x.shape[-2], "n": y.shape[-1], "k": x.shape[-1]}
    if len(x.shape) == 2:
        b.gemm(out.ty, out.address, x.address, y.address, **sizes)
    else:
        batch = shapes.count(x.shape[:-2])
        b.batched_gemm(out.ty, out.address, x.address, y.address, batch=batch, **sizes)


def _plain(a: None, x: HasAval, y: HasAval) -> bool:
    """Whether an array instruction says it: floats, and the same batches on both sides."""
    sizes = (x.shape, y.shape, (*x.shape[:-1], y.shape[-1]))
    return x.dtype.is_float and x.shape[:-2] == y.shape[:-2] and all(shapes.count(s) < _COUNTED for s in sizes)


@primitive(
    group=GROUP, promote="number", dtypes=_NUMBERS, infer=_infer_product, method=False,
    reference=lambda a, x, y: np.matmul(wide(x), wide(y)),
    derivative=Linear(_transpose_product), batch=_batch_product,
    lower=Choice(_plain, Macro(_macro_product), Pull(_pull_product)),
    samples=(
        sample((2, 3), (3, 4)), sample((2, 2, 3), (2, 3, 2)), sample((2, 1, 2, 3), (3, 3, 2)), sample((2, 0), (0, 3)),
        sample((0, 2), (2, 3)), sample((2, 3), (2, 3, 1)),
    ),
)  # fmt: skip
def matrix_product(x: Value, y: Value) -> None:
    """The product of the matrices in the last two axes, batches in front broadcasting; `matmul` takes vectors too."""


# --- products of matrices and vectors -------------------------------------------------------------


def _shape(x: Any) -> Shape:
    """The shape of a tensor, or of a Python number."""
    return tuple(x.shape) if isinstance(x, Value) else ()


@composite(
    group=GROUP, reference=lambda x, y: np.matmul(wide(x), wide(y)), dtypes=_NUMBERS,
    scheme=("matmul", "tensor-matmul", "parallel-tensor-matmul"),
    samples=(
        sample((2, 3), (3, 4)), sample((3,), (3,)), sample((3,), (3, 2)), sample((2, 3), (3,)),
        sample((2, 2, 3), (3, 2)), sample((3,), (2, 3, 2)), sample((2, 1, 2, 3), (3, 1)), sample((2, 2, 3), (3,)),
        sample((2, 0), (0, 3)), sample((0, 2, 3), (3, 1)),
    ),
)  # fmt: skip
def matmul(x: Value, y: Value) -> Any:
    """The matrix product as NumPy's: vectors lose their axis, batches broadcast; integers wrap in their own dtype."""
    left, right = _shape(x), _shape(y)
    if not left or not right:
        raise ShapeError(f"shapes {list(left)} and {list(right)}: a scalar is no matrix", hint="use * for scalars")
    if left[-1] != right[-2 if len(right) > 1 else 0]:
        raise _misfit(left, right)
    if len(right) == 1:
        return _dropped(matmul(x, reshape(y, (right[0], 1))), -1)
    if len(left) == 1:
        return _dropped(matmul(reshape(x, (1, left[0])), y), -2)
    if len(right) == 2 and len(left) > 2:  # one matrix for all: one long product
        rows = shapes.count(left[:-1])
        return reshape(matrix_product(reshape(x, (rows, left[-1])), y), (*left[:-1], right[-1]))
    return matrix_product(x, y)


def _dropped(x: Any, axis: int) -> Any:
    """Without an axis of extent 1."""
    return reshape(x, shapes.without(x.shape, (axis % x.ndim,)))
