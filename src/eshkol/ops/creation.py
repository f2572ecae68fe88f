"""Tensors from nothing but a shape: counters and constants.

These ops have no inputs. A rule makes them with `op.on(like, ...)`, in the world of some value.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from eshkol.ops import dtypes, shapes
from eshkol.ops.dtypes import DType, Number
from eshkol.ops.movement import expand
from eshkol.ops.row import Aval, NoDerivative, Pull, Shape, Value, primitive, sample
from eshkol.ops.structural import CONST, Constant

GROUP = "creation"
_NOTHING = NoDerivative("it depends on nothing")


class Counter(NamedTuple):
    shape: Shape
    axis: int
    dtype: DType


def _iota(a: Counter) -> Any:
    along = [1] * len(a.shape)
    along[a.axis] = a.shape[a.axis]
    return np.broadcast_to(np.arange(a.shape[a.axis]).reshape(along), a.shape)


def _never(a: Any, inputs: Any, batched: Any) -> Any:
    raise AssertionError("an op without inputs is never batched")


@primitive(
    group=GROUP, infer=lambda a: Aval(a.shape, a.dtype), reference=_iota, derivative=_NOTHING, batch=_never,
    method=False, lower=Pull(lambda e, a, i: e.convert(i[a.axis], a.dtype)),
    samples=(sample(shape=(2, 3), axis=1), sample(shape=(4,)), sample(shape=(2, 0)), sample(shape=3, dtype="float32")),
)  # fmt: skip
def iota(shape: int | Shape, axis: int = 0, dtype: Any = "int64") -> Counter:
    """0, 1, 2 … along an axis, the same along the others."""
    found = shapes.extents(shape)
    return Counter(found, shapes.axis(axis, len(found)), dtypes.of(dtype))


def full(like: Value, shape: Shape, number: Number, dtype: DType | None = None) -> Any:
    """One number everywhere; for rules (users have `ek.full`)."""
    value = like.apply(CONST, (), Constant.of(number, dtype or like.dtype))
    return expand(value, shape) if shape else value
