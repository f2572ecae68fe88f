"""Rows that hold a graph together: leaves, marks, and the results of ops that have several.

They have no Python name of their own: constants come of numbers, buffers of data, the others of transformations.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from eshkol.ops.dtypes import DType, Number, of
from eshkol.ops.row import HOST, STRUCTURE, Aval, HasAval, KernelOp, Linear, NoDerivative, Op, Pull, Shape, Value, row


class Constant(NamedTuple):
    """A number of a dtype, by its bytes: 0.0 and -0.0 are two constants, NaN is one."""

    raw: bytes
    dtype: DType

    @staticmethod
    def of(number: Number, dtype: DType) -> Constant:
        with np.errstate(over="ignore"):
            return Constant(np.asarray(number).astype(dtype.numpy).tobytes(), dtype)

    @property
    def array(self) -> Any:
        return np.frombuffer(self.raw, self.dtype.numpy).reshape(())


class Leaf(NamedTuple):
    """A leaf that is like no other: a buffer, or a placeholder."""

    number: int
    shape: Shape
    dtype: DType


class Mark(NamedTuple):
    """A value that a transformation works with respect to: one of one scope."""

    scope: Any
    number: int


class Pick(NamedTuple):
    """Which result."""

    place: int


def _leaf(a: Leaf) -> Aval:
    return Aval(a.shape, a.dtype)


def _unbound(a: Any, *arrays: Any) -> Any:
    raise AssertionError("a leaf is not computed")


_NOTHING = NoDerivative("it depends on nothing")

CONST: Op = row(Op(
    name="const", doc="A number.", function=None, group=STRUCTURE, method=False,
    infer=lambda a: Aval((), a.dtype), reference=lambda a: a.array, derivative=_NOTHING,
    lower=Pull(lambda e, a, i: e.constant(a.array.item(), a.dtype)), of_complex=True,
))  # fmt: skip
BUFFER: Op = row(Op(
    name="buffer", doc="Data that is there.", function=None, group=STRUCTURE, method=False,
    shared=False, infer=_leaf, reference=_unbound, derivative=_NOTHING, lower=HOST,
))  # fmt: skip
PLACEHOLDER: Op = row(Op(
    name="placeholder", doc="A value to come.", function=None, group=STRUCTURE, method=False,
    shared=False, infer=_leaf, reference=_unbound, derivative=_NOTHING, lower=HOST,
))  # fmt: skip


def number(like: Value, given: Any, dtype: Any = None) -> Any:
    """A number as a value of the world of another, and of its dtype unless one is given."""
    return like.apply(CONST, (), Constant.of(given, dtype or like.dtype))


def _same(a: Any, x: HasAval) -> Aval:
    return Aval(x.shape, x.dtype)


MARK: Op = row(Op(
    name="mark", doc="The value itself, marked for a transformation.", function=None, group=STRUCTURE, method=False,
    shared=False, infer=_same, reference=lambda a, x: x, derivative=Linear(lambda a, ct, k, x: ct),
    batch=lambda a, inputs, batched: inputs[0], lower=HOST,
))  # fmt: skip
PICK: Op = row(Op(
    name="pick", doc="One of the results of an op that has several.", function=None, group=STRUCTURE, method=False,
    infer=lambda a, x: x.outs[a.place], reference=lambda a, x: x[a.place],
    derivative=NoDerivative("the op it picks from has it", zero=False), lower=HOST,
))  # fmt: skip
STOP: Op = row(Op(
    name="stop_gradient", doc="x, as if it were constant.", function=None, names=("x",), group=STRUCTURE, method=False,
    elementwise=True, infer=_same, reference=lambda a, x: x,
    severs=True, derivative=NoDerivative("it was asked to have none"), lower=Pull(lambda e, a, i, x: x(i)),
    of_complex=True,
))  # fmt: skip


# --- complex numbers as they lie in memory ----------------------------------------------------------


def _pairs(a: None, x: HasAval) -> Aval:
    return Aval((*x.shape, 2), x.dtype.real)


def _numbers(a: None, x: HasAval) -> Aval:
    return Aval(x.shape[:-1], x.dtype.complex)


def _seen_as(x: Any, dtype: DType, shape: Shape) -> Any:
    return np.ascontiguousarray(x).reshape(-1).view(dtype.numpy).reshape(shape)


PAIRS: Op = row(KernelOp(
    name="pairs", doc="Real and imaginary parts along a last axis: the same memory.", names=("x",), infer=_pairs,
    lower=HOST, reference=lambda a, x: _seen_as(x, of(x.dtype).real, (*x.shape, 2)),
))  # fmt: skip
NUMBERS: Op = row(KernelOp(
    name="numbers", doc="The complex numbers whose parts lie along the last axis: the same memory.", names=("x",),
    infer=_numbers, lower=HOST, reference=lambda a, x: _seen_as(x, of(x.dtype).complex, x.shape[:-1]),
))  # fmt: skip


# --- machines -------------------------------------------------------------------------------------


class DevicePlace(NamedTuple):
    """A machine by its name, and where the value comes from; None stands for any."""

    device: str
    source: str | None


def _back(a: DevicePlace, ct: Any, k: int, x: HasAval) -> Any:
    return ct if a.source is None else ct.apply(TO, (ct,), DevicePlace(a.source, a.device))


TO: Op = row(Op(
    name="to", doc="x in the memory of another machine.", function=None, names=("x",), group=STRUCTURE, method=False,
    infer=_same, reference=lambda a, x: x, derivative=Linear(_back),
    batch=lambda a, inputs, batched: inputs[0].apply(TO, inputs, a), lower=HOST,
))  # fmt: skip
