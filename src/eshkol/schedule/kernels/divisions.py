"""Rows that compiled graphs have for integers divided by a number that is known, and is not 0.

Kernels take numbers as parameters, so that one serves them all; but to divide by a known number is a product and a
shift. What is divided so cannot fail, and is computed with its neighbours.
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


class By(NamedTuple):
    """By what is divided."""

    divisor: int


def _divided(name: str) -> Op:
    op = TABLE[name]

    def code(e: Any, a: By, i: Any, x: Any) -> Any:
        how = chosen(op.lower, None, (x, x))
        assert isinstance(how, Pull)
        return how.code(e, None, i, x, lambda index: e.constant(a.divisor, x.dtype))

    return row(Op(
        name=f"{name}_by", doc=f"{name} by a number that is known.", function=None, names=("x",), group=STRUCTURE,
        method=False, infer=lambda a, x: Aval(x.shape, x.dtype), elementwise=True, exact="all",
        reference=lambda a, x: op.reference(None, x, np.asarray(a.divisor, x.dtype)), lower=Pull(code),
        derivative=NoDerivative("derivatives are taken before graphs are compiled", zero=False),
    ))  # fmt: skip


BY = {TABLE[name]: _divided(name) for name in DIVIDING}


def by_known(node: Node) -> Node | None:
    """An integer divided by a known number other than 0 and -1, as a node that needs nothing else."""
    x, y = node.inputs
    if not node.dtype.is_integer or y.op is not CONST or x.op is CONST or x.shape != node.shape:
        return None
    divisor = int(y.attrs.array.item())
    return None if divisor in (0, -1) or x.dtype is not node.dtype else make(BY[node.op], (x,), By(divisor))
