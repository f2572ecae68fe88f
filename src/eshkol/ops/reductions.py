"""Reductions along axes: sums, products, extremes, and what is said with them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from eshkol.ops import dtypes, shapes
from eshkol.ops.movement import expand, reshape
from eshkol.ops.row import TABLE, Aval, HasAval, Linear, Pull, Shape, Value, composite, primitive, sample
from eshkol.ops.shapes import Axes

GROUP = "reductions"


class Along(NamedTuple):
    """Axes in order, and whether they stay with extent 1."""

    axes: tuple[int, ...]
    keepdims: bool


def _infer_sum(a: Along, x: HasAval) -> Aval:
    return Aval(shapes.without(x.shape, a.axes, a.keepdims), dtypes.summed(x.dtype))


def _sum(a: Along, x: Any) -> Any:
    dtype = dtypes.summed(dtypes.of(x.dtype)).numpy
    wide = np.float32 if dtype.itemsize == 2 else dtype
    return np.sum(x, axis=a.axes, keepdims=a.keepdims, dtype=wide).astype(dtype)


def kept(a: Along, x: HasAval) -> Shape:
    """The shape of a reduction with its axes kept."""
    return shapes.without(x.shape, a.axes, True)


def _sum_transpose(a: Along, ct: Any, k: int, x: HasAval) -> Any:
    return expand(reshape(ct, kept(a, x)), x.shape)


def batched_along(name: str) -> Any:
    """The batch rule of an op with axes: they move by one."""

    def batch(a: Along, inputs: Any, batched: Any) -> Any:
        return inputs[0].apply(TABLE[name], inputs, Along(tuple(k + 1 for k in a.axes), a.keepdims))

    return batch


def pull_along(instruction: str, first: Any) -> Pull:
    """One element of a reduction: a loop over the axes that go, starting with the neutral element."""

    def code(e: Any, a: Along, i: Any, x: Any) -> Any:
        def body(j: Any) -> Any:
            places = iter(j)
            outer = iter(i[k] for k in range(len(x.shape))) if a.keepdims else iter(i)
            index = []
            for k in range(len(x.shape)):
                if k in a.axes:
                    index.append(next(places))
                    if a.keepdims:
                        next(outer)
                else:
                    index.append(next(outer))
            return e.convert(x(index), dtypes.summed(x.dtype) if instruction in ("ADD", "MUL") else x.dtype)

        return e.reduce(instruction, [x.shape[k] for k in a.axes], body, first)

    return Pull(code)


@primitive(
    group=GROUP, infer=_infer_sum, reference=_sum, derivative=Linear(_sum_transpose), batch=batched_along("sum"),
    dtypes=("bool", "int", "float", "complex"), lower=pull_along("ADD", 0), scheme=("tensor-sum",),
    samples=(
        sample((2, 3)), sample((2, 3, 4), axis=1), sample((2, 3), axis=(0, 1), keepdims=True), sample(()),
        sample((0, 3), axis=0),
    ),
)  # fmt: skip
def sum_(x: Value, axis: Axes = None, keepdims: bool = False) -> Along:
    """The sum along axes (all of them by default); bools and integers are summed in 64 bits."""
    return Along(shapes.axes(axis, x.ndim), bool(keepdims))


@composite(
    group=GROUP, reference=lambda x, shape: _sum_to(x, shape), method=False,
    samples=(sample((2, 3), shape=(1, 3)), sample((4, 2, 3), shape=(3,)), sample((2, 3), shape=())),
)  # fmt: skip
def sum_to(x: Value, shape: Shape) -> Any:
    """The sum over what broadcasting from a shape would repeat."""
    extra = x.ndim - len(shape)
    axes = [*range(extra), *(k + extra for k, n in enumerate(shape) if n == 1 and x.shape[k + extra] != 1)]
    total = sum_(x, axes) if axes else x
    return total if total.shape == tuple(shape) else reshape(total, shape)


def _sum_to(x: Any, shape: Shape) -> Any:
    extra = x.ndim - len(shape)
    axes = (*range(extra), *(k + extra for k, n in enumerate(shape) if n == 1))
    return x.sum(axis=axes).reshape(shape)
