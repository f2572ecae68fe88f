"""Rows that compiled graphs have for integers divided by a number that is known, and is not 0; and for small multiples.

Kernels take numbers as parameters, so that one serves them all; but to divide by a known number is a product and a
shift. What is divided so cannot fail, and is computed with its neighbours. A small multiple of an integer of 64 bits is
shifts and a sum, where machines are slow at products of these, and have few in vectors or none.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from eshkol.graph.node import Node, make
from eshkol.ops import TABLE
from eshkol.ops.row import STRUCTURE, Aval, NoDerivative, Op, Pull, row
from eshkol.ops.structural import CONST
from eshkol.schedule.kernels.kernel import chosen

DIVIDING = ("remainder", "fmod", "floor_divide")
SMALL = range(2, 11)  # multiples; a kernel for each of them is no great matter


class By(NamedTuple):
    """By what is divided or multiplied."""

    number: int


def _by(name: str) -> Op:
    op = TABLE[name]

    def code(e: Any, a: By, i: Any, x: Any) -> Any:
        how = chosen(op.lower, None, (x, x))
        assert isinstance(how, Pull)
        return how.code(e, None, i, x, lambda index: e.constant(a.number, x.dtype))

    return row(Op(
        name=f"{name}_by", doc=f"{name} by a number that is known.", function=None, names=("x",), group=STRUCTURE,
        method=False, infer=lambda a, x: Aval(x.shape, x.dtype), elementwise=True, exact="all",
        reference=lambda a, x: op.reference(None, x, np.asarray(a.number, x.dtype)), lower=Pull(code),
        derivative=NoDerivative("derivatives are taken before graphs are compiled", zero=False),
    ))  # fmt: skip


BY = {TABLE[name]: _by(name) for name in (*DIVIDING, "mul")}


def by_known(node: Node) -> Node | None:
    """An integer divided by a known number other than 0 and -1, as a node that needs nothing else."""
    x, y = node.inputs
    if not node.dtype.is_integer or y.op is not CONST or x.op is CONST or x.shape != node.shape:
        return None
    divisor = int(y.attrs.array.item())
    return None if divisor in (0, -1) or x.dtype is not node.dtype else make(BY[node.op], (x,), By(divisor))


def multiple(node: Node) -> Node | None:
    """A small multiple of integers of 64 bits, likewise."""
    x, y = node.inputs if node.inputs[1].op is CONST else node.inputs[::-1]
    if not node.dtype.is_integer or node.dtype.bits != 64 or y.op is not CONST or x.op is CONST:
        return None
    number = int(y.attrs.array.item())
    fits = number in SMALL and x.shape == node.shape and x.dtype is node.dtype
    return make(BY[node.op], (x,), By(number)) if fits else None
