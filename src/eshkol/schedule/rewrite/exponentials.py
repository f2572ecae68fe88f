"""Exponentials of matrices as products: a pass over graphs.

Comes in: the results of a function. Goes out: the same without `expm` and `expm_frechet`, in bodies too: the polynomial
of `ops/exponentials.py`, and a loop of squarings for as long as a matrix of a batch needs another; those that are done
wait. So nothing of it is left to the host, on any machine.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from eshkol.atlas.machines import MachineDescription
from eshkol.graph.control import while_loop
from eshkol.graph.function import trace
from eshkol.graph.node import Node, constant
from eshkol.ops.elementwise import absolute, cast, ceil, less, log, maximum, power, where
from eshkol.ops.exponentials import expm, expm_frechet, polynomial_for, small_exponential, times
from eshkol.ops.functions import isfinite
from eshkol.ops.matrices import identity
from eshkol.ops.movement import expand, reshape
from eshkol.ops.reductions import max_, sum_
from eshkol.ops.row import Aval
from eshkol.schedule.rewrite.walk import New, in_order, walked


def exponentials(results: Sequence[Node], target: MachineDescription) -> list[Node]:
    """The results, of products in the place of exponentials."""
    order = in_order(results)
    if not any(node.data is None and node.op in _TAKEN for node in order):
        return list(results)

    def as_products(node: Node, new: New) -> Node | None:
        if node.data is None and node.op in _TAKEN:
            x, *direction = (new[x] for x in node.inputs)
            return _exponential([expand(y, node.shape) if y.shape != node.shape else y for y in (x, *direction)])
        return None

    return walked(results, order, as_products)


_TAKEN = frozenset({expm, expm_frechet})

Dual = Sequence[Node]  # a matrix, and its derivative along a direction where one is asked for


def _exponential(x: Dual) -> Node:
    """The exponential of a matrix, or its derivative along a direction: the last of the pair."""
    value = x[0]
    if not value.size:
        return x[-1]
    batch, real, chosen = value.shape[:-2], value.dtype.real, polynomial_for(value.dtype)
    norm = max_(sum_(absolute(value), -2), -1)
    needed = ceil(log(maximum(norm * (1 / chosen.norm), 1)) * (1 / math.log(2)))
    halvings = where(isfinite(norm), needed, 0)  # what is not finite stays so without
    scale = reshape(power(constant(2, real), -halvings), (*batch, 1, 1))
    scale = cast(scale, value.dtype) if value.dtype.is_complex else scale
    found = small_exponential([y * scale for y in x], identity(value), chosen)
    return _squared(found, halvings)[-1]


def _squared(x: Dual, often: Node) -> tuple[Node, ...]:
    """Each matrix squared as often as it says."""
    batch, counter = often.shape, constant(0, often.dtype)
    most = max_(often, tuple(range(len(batch)))) if batch else often
    wanted = reshape(often, (*batch, 1, 1))
    given = [Aval((), often.dtype), *(Aval(y.shape, y.dtype) for y in x)]

    def step(k: Node, *x: Node) -> list[Node]:
        squares = times(x, x)
        if batch:
            squares = [where(less(k, wanted), new, old) for new, old in zip(squares, x, strict=True)]
        return [k + 1, *squares]

    body, used = trace(step, given, "the exponential of a matrix")
    test, tested = trace(lambda k, *x: [less(k, most)], given, "the exponential of a matrix")
    return while_loop(test, body, [counter, *x], tested, used)[1:]
