"""Rows that compiled graphs have for integers divided by a number that is known, and is not 0; and for small multiples.

Kernels take numbers as parameters, so that one serves them all; but to divide by a known number is a product and a
shift. What is divided so cannot fail, and is computed with its neighbours. A small multiple of an integer of 64 bits is
shifts and a sum, where machines are slow at products of these, and have few in vectors or none; and what is left of
such integers cores find by floats, of which vectors have products.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from eshkol.graph.node import Node, make
from eshkol.ops import TABLE
from eshkol.ops.dtypes import float64, int64, uint64
from eshkol.ops.row import Aval, KernelOp, Op, Pull, row
from eshkol.ops.structural import CONST
from eshkol.schedule.kernels.kernel import chosen

DIVIDING = ("remainder", "fmod", "floor_divide")
SMALL = range(2, 11)  # multiples; a kernel for each of them is no great matter
MODERATE = 1 << 19  # divisors below: see `_by_halves`


class By(NamedTuple):
    """By what is divided or multiplied."""

    number: int


def _by(name: str) -> Op:
    op = TABLE[name]

    def code(e: Any, a: By, i: Any, x: Any) -> Any:
        how = chosen(op.lower, None, (x, x))
        assert isinstance(how, Pull)
        return how.code(e, None, i, x, lambda index: e.constant(a.number, x.dtype))

    return row(KernelOp(
        name=f"{name}_by", doc=f"{name} by a number that is known.", names=("x",),
        infer=lambda a, x: Aval(x.shape, x.dtype), elementwise=True, exact="all",
        reference=lambda a, x: op.reference(None, x, np.asarray(a.number, x.dtype)), lower=Pull(code),
    ))  # fmt: skip


BY = {TABLE[name]: _by(name) for name in (*DIVIDING, "mul")}


def _by_halves(e: Any, a: By, i: Any, x: Any) -> Any:
    """What floor division leaves of h·2³² + l: that of t = h·(2³² mod d) + l, which a double holds exactly.

    (t + 1/2)/d is less than 2³², which rounding moves by less than 2⁻²⁰, and at least 1/(2d) away from every integer:
    so its floor is right for d below 2¹⁹.
    """
    value = x(i)
    turned = e.op("XOR", e.bits(value, uint64), e.constant(1 << 63, uint64))  # 2⁶³ more, and no sign
    high = e.op("SUB", _as_float(e, e.op("SHR", turned, 32)), e.constant(_UNIT + 2.0**31, float64))
    low = e.op("AND", e.bits(value, uint64), e.constant((1 << 32) - 1, uint64))
    low = e.op("SUB", _as_float(e, low), e.constant(_UNIT, float64))
    t = e.op("ADD", e.op("MUL", high, e.constant(float((1 << 32) % a.number), float64)), low)
    times = e.op("MUL", e.op("ADD", t, e.constant(0.5, float64)), e.constant(1 / a.number, float64))
    times = e.op("MUL", e.op("FLOOR", times), e.constant(float(a.number), float64))
    left = e.op("ADD", e.op("SUB", t, times), e.constant(_UNIT, float64))
    return e.op("XOR", e.bits(left, int64), e.constant(_BITS_OF_UNIT, int64))


_UNIT, _BITS_OF_UNIT = 2.0**52, 0x433 << 52  # from there to twice as much, a double's last bits are what is added to it


def _as_float(e: Any, number: Any) -> Any:
    """An integer below 2³² and _UNIT, as a double: conversions of 64 bits are slow, where vectors have them at all."""
    return e.bits(e.op("OR", number, e.constant(_BITS_OF_UNIT, uint64)), float64)


BY_HALVES: Op = row(KernelOp(
    name="remainder_by_halves", doc="What floor division by a number that is known leaves of 64 bits.", names=("x",),
    infer=lambda a, x: Aval(x.shape, x.dtype), elementwise=True, exact="all",
    reference=lambda a, x: np.remainder(x, np.asarray(a.number, x.dtype)), lower=Pull(_by_halves),
))  # fmt: skip


def by_known(node: Node) -> Node | None:
    """An integer divided by a known number other than 0 and -1, as a node that needs nothing else."""
    x, y = node.inputs
    if not node.dtype.is_integer or y.op is not CONST or x.op is CONST or x.shape != node.shape:
        return None
    divisor = int(y.attrs.array.item())
    return None if divisor in (0, -1) or x.dtype is not node.dtype else make(BY[node.op], (x,), By(divisor))


def left_on_cores(node: Node) -> Node | None:
    """The same of a remainder, on machines whose vectors have products of doubles, and none of 64-bit integers."""
    found = by_known(node)
    if found is None or found.dtype is not int64:
        return found
    divisor = found.attrs.number
    fits = 2 < divisor < MODERATE and divisor.bit_count() > 1
    return make(BY_HALVES, found.inputs, found.attrs) if fits else found


def multiple(node: Node) -> Node | None:
    """A small multiple of integers of 64 bits, likewise."""
    x, y = node.inputs if node.inputs[1].op is CONST else node.inputs[::-1]
    if not node.dtype.is_integer or node.dtype.bits != 64 or y.op is not CONST or x.op is CONST:
        return None
    number = int(y.attrs.array.item())
    fits = number in SMALL and x.shape == node.shape and x.dtype is node.dtype
    return make(BY[node.op], (x,), By(number)) if fits else None
