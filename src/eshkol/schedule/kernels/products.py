"""Rows that compiled graphs have for matrix products: of operands where they lie, with what follows them, attention.

No user calls them: `patterns.py` makes them of `matrix_product` and its neighbours, after derivatives have been
taken. A `View` says how a tensor's elements are seen as matrices, as NumPy's strides do, in elements.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from eshkol.atlas.operands import Activation, BufferOffset
from eshkol.atlas.table.networks import attended
from eshkol.ops import dtypes, shapes
from eshkol.ops.contraction import BATCH_AXES, wide
from eshkol.ops.float8 import FLOAT8_PRODUCT, Formats
from eshkol.ops.row import Aval, HasAval, KernelOp, Macro, Op, Shape, row

ACTIVATIONS = {"relu": Activation.Relu, "tanh": Activation.Tanh, "sigmoid": Activation.Sigmoid, "silu": Activation.Silu}
_MEANING: dict[str | None, Callable[[Any], Any]] = {
    None: lambda x: x,
    "relu": lambda x: np.maximum(x, np.zeros((), x.dtype)),
    "tanh": np.tanh,
    "sigmoid": lambda x: _sigmoid(x),
    "silu": lambda x: x * _sigmoid(x),
}


def _sigmoid(x: Any) -> Any:
    return np.exp(-np.logaddexp(0, -x.astype(np.float64))).astype(x.dtype)


class View(NamedTuple):
    """Elements of a contiguous tensor as an array: where the first lies, the extents, and the distances along them."""

    offset: int
    shape: Shape
    strides: Shape

    @staticmethod
    def of(shape: Shape) -> View:
        """A whole tensor as it is."""
        return View(0, shape, dense(shape))

    def array(self, x: Any) -> Any:
        """The elements of an array."""
        flat = np.ascontiguousarray(x).reshape(-1)[self.offset :]
        steps = tuple(stride * flat.itemsize for stride in self.strides)
        return np.lib.stride_tricks.as_strided(flat, self.shape, steps, writeable=False)

    def matrix(self) -> tuple[int, bool] | None:
        """Distance of neighbouring rows, and whether what lies there are columns; None: elements of neither adjoin."""
        (rows, columns), (down, across) = self.shape[-2:], self.strides[-2:]
        if across == 1 or columns == 1:
            return (down if rows > 1 else columns), False
        if down == 1 or rows == 1:
            return across, True
        return None

    def turned(self) -> View:
        """The matrices transposed."""
        order = (*range(len(self.shape) - 2), len(self.shape) - 1, len(self.shape) - 2)
        return View(self.offset, tuple(self.shape[k] for k in order), tuple(self.strides[k] for k in order))


def dense(shape: Shape) -> Shape:
    """The distances of a contiguous array."""
    return tuple(shapes.count(shape[k + 1 :]) for k in range(len(shape)))


# --- products of views ----------------------------------------------------------------------------


class Seen(NamedTuple):
    """alpha · x · y of two views, the axes of the result in an order that leaves the last one last."""

    x: View
    y: View
    alpha: float
    order: tuple[int, ...]

    @property
    def batch(self) -> Shape:
        return shapes.broadcast(self.x.shape[:-2], self.y.shape[:-2])

    def axes(self) -> list[tuple[int, int, int, int]]:
        """For each axis of the batch its extent, and the distances along it in x, in y, and in the result."""
        batch = self.batch
        shape = (*batch, self.x.shape[-2], self.y.shape[-1])
        places = dict(zip(self.order, dense(tuple(shape[k] for k in self.order)), strict=True))
        found = []
        for axis, extent in enumerate(batch):
            steps = []
            for view in (self.x, self.y):
                k = axis - len(batch) + len(view.shape) - 2
                steps.append(view.strides[k] if k >= 0 and view.shape[k] > 1 else 0)
            found.append((extent, steps[0], steps[1], places[axis]))
        return found

    def line(self) -> int:
        """The distance of neighbouring rows of the result."""
        shape = (*self.batch, self.x.shape[-2], self.y.shape[-1])
        return dict(zip(self.order, dense(tuple(shape[k] for k in self.order)), strict=True))[len(shape) - 2]

    def fits(self) -> bool:
        """Whether an array instruction says it at full speed."""
        if self.x.matrix() is None or self.y.matrix() is None:
            return False
        merged: list[tuple[int, ...]] = []
        for extent, *steps in reversed([axis for axis in self.axes() if axis[0] > 1]):
            if merged and all(s == merged[-1][0] * t for s, t in zip(steps, merged[-1][1:], strict=True)):
                merged[-1] = (merged[-1][0] * extent, *merged[-1][1:])
            else:
                merged.append((extent, *steps))
        return len(merged) <= BATCH_AXES


def _infer_seen(a: Seen, x: HasAval, y: HasAval) -> Aval:
    shape = (*a.batch, a.x.shape[-2], a.y.shape[-1])
    return Aval(tuple(shape[k] for k in a.order), x.dtype)


def _reference_seen(a: Seen, x: Any, y: Any) -> Any:
    found = np.matmul(wide(a.x.array(x)), wide(a.y.array(y)))
    return np.transpose(found * np.asarray(a.alpha, found.dtype), a.order)


def _macro_seen(b: Any, a: Seen, out: Any, x: Any, y: Any) -> None:
    left, right, size = a.x.matrix(), a.y.matrix(), x.ty.size_bytes
    assert left is not None
    assert right is not None
    sizes = {"m": a.x.shape[-2], "n": a.y.shape[-1], "k": a.x.shape[-1], "alpha": a.alpha}
    flags = {"transpose_a": left[1], "transpose_b": right[1]}
    places = [out.address, *(BufferOffset(s.name, v.offset * size) for s, v in ((x, a.x), (y, a.y)))]
    axes = a.axes()
    lines = (left[0], right[0], a.line())
    rows = [v.shape[-2] if turned else v.shape[-1] for v, turned in ((a.x, left[1]), (a.y, right[1]))]
    if shapes.count(a.batch) == 1 and lines == (*rows, a.y.shape[-1]):
        b.gemm(out.ty, *places, **sizes, **flags)
        return
    strides = {f"{name}_strides": (*(axis[k + 1] for axis in axes), lines[k]) for k, name in enumerate("abc")}
    if not axes:
        axes, strides = [(1, 0, 0, 0)], {name: (0, *line) for name, line in strides.items()}
    extents = tuple(axis[0] for axis in axes)
    b.batched_gemm(out.ty, *places, batch=shapes.count(extents), batches=extents, **sizes, **flags, **strides)


SEEN_PRODUCT: Op = row(KernelOp(
    name="seen_product", doc="alpha·x·y of matrices that are read where they lie.", names=("x", "y"), infer=_infer_seen,
    reference=_reference_seen, lower=Macro(_macro_seen),
))  # fmt: skip


def _integer_sizes(x: HasAval, y: HasAval) -> dict[str, int]:
    return {"m": x.shape[0], "n": y.shape[0], "k": x.shape[1]}


def _macro_integers(b: Any, a: None, out: Any, x: Any, y: Any) -> None:
    b.integer_gemm(out.address, x.address, y.address, transpose_b=True, **_integer_sizes(x, y))


INTEGER_PRODUCT: Op = row(KernelOp(
    name="integer_product", doc="x·yᵀ of matrices of int8, in int32.", names=("x", "y"),
    infer=lambda a, x, y: Aval((x.shape[0], y.shape[0]), dtypes.int32),
    reference=lambda a, x, y: np.matmul(x.astype(np.int32), y.astype(np.int32).T), lower=Macro(_macro_integers),
))  # fmt: skip


def _macro_float8(b: Any, a: Formats, out: Any, x: Any, y: Any, scale: Any) -> None:
    b.float8_gemm(
        out.ty, out.address, x.address, y.address, scale.address, wide_a=a.x == "e5m2", wide_b=a.y == "e5m2",
        **_integer_sizes(x, y),
    )  # fmt: skip


FLOAT8_KERNEL: Op = row(KernelOp(
    name="float8_kernel", doc="x·yᵀ of floats of 8 bits, times a number, as one instruction.",
    names=("x", "y", "scale"), infer=lambda a, x, y, scale: Aval((x.shape[0], y.shape[0]), a.dtype),
    reference=FLOAT8_PRODUCT.reference, lower=Macro(_macro_float8),
))  # fmt: skip


# --- products with what follows them --------------------------------------------------------------


class Followed(NamedTuple):
    """activation(alpha · x · y + bias) + residual of two matrices, transposed or not; inputs in this order."""

    transpose_x: bool
    transpose_y: bool
    alpha: float
    bias: bool
    activation: str | None
    residual: bool


def _sizes(a: Followed, x: HasAval, y: HasAval) -> dict[str, int]:
    (k, m), (n, inner) = (x.shape if a.transpose_x else x.shape[::-1]), (y.shape if a.transpose_y else y.shape[::-1])
    assert k == inner
    return {"m": m, "n": n, "k": k}


def _infer_followed(a: Followed, x: HasAval, y: HasAval, *extras: HasAval) -> Aval:
    sizes = _sizes(a, x, y)
    return Aval((sizes["m"], sizes["n"]), x.dtype)


def _reference_followed(a: Followed, x: Any, y: Any, *extras: Any) -> Any:
    rest = [wide(e) for e in extras]
    found = np.matmul(wide(x.T if a.transpose_x else x), wide(y.T if a.transpose_y else y))
    found = found * np.asarray(a.alpha, found.dtype)
    if a.bias:
        found = found + rest.pop(0)
    found = _MEANING[a.activation](found)
    return found + rest.pop(0) if a.residual else found


def _macro_followed(b: Any, a: Followed, out: Any, x: Any, y: Any, *extras: Any) -> None:
    rest = [extra.address for extra in extras]
    activation = Activation.Identity if a.activation is None else ACTIVATIONS[a.activation]
    b.fused_gemm(
        out.ty, out.ty, activation, out.address, x.address, y.address,
        bias=rest.pop(0) if a.bias else None, residual=rest.pop(0) if a.residual else None,
        alpha=a.alpha, transpose_a=a.transpose_x, transpose_b=a.transpose_y, **_sizes(a, x, y),
    )  # fmt: skip


FOLLOWED_PRODUCT: Op = row(KernelOp(
    name="followed_product", doc="activation(alpha·x·y + bias) + residual of matrices.", names=("x", "y"),
    infer=_infer_followed, reference=_reference_followed, lower=Macro(_macro_followed),
))  # fmt: skip


# --- attention ------------------------------------------------------------------------------------


class Attended(NamedTuple):
    """softmax(q·kᵀ/√dim)·v of batch × heads × length × dim, or batch × length × heads × dim where it is interleaved."""

    causal: bool
    interleaved: bool


def _reference_attended(a: Attended, q: Any, k: Any, v: Any) -> Any:
    return attended(*(wide(x) for x in (q, k, v)), causal=a.causal, interleaved=a.interleaved)


def _macro_attended(b: Any, a: Attended, out: Any, q: Any, k: Any, v: Any) -> None:
    batch, first, second, dim = q.shape
    heads, length = (second, first) if a.interleaved else (first, second)
    b.attention(
        out.ty, out.address, q.address, k.address, v.address, batch=batch, heads=heads, seq_len=length, head_dim=dim,
        causal=a.causal, interleaved=a.interleaved,
    )  # fmt: skip


ATTENDED: Op = row(KernelOp(
    name="attended", doc="softmax(q·kᵀ/√dim)·v, whose weights nobody else needs.", names=("q", "k", "v"),
    infer=lambda a, q, k, v: Aval(q.shape, q.dtype), reference=_reference_attended, lower=Macro(_macro_attended),
))  # fmt: skip
