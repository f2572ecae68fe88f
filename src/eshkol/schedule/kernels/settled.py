"""Many updates of rows, for machines of blocks: sorted by where they go, so that each element of the result is a lane.

Comes in: `scatter_into` along the first axis. Goes out: nodes that sort the updates' places, find where those of each
row begin among them, and one that adds them up, or takes the last. Updates of one place keep their order, so sums are
those that they would be one after another, whatever the machine; no lane waits for another.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from eshkol.graph.node import Node, make
from eshkol.ops import dtypes
from eshkol.ops.contraction import wide
from eshkol.ops.creation import iota
from eshkol.ops.movement import expand, reshape
from eshkol.ops.row import STRUCTURE, Aval, NoDerivative, Op, Pull, Shape, row
from eshkol.ops.shapes import count
from eshkol.ops.sorting import search, sort
from eshkol.schedule.kernels.takes import checked_places

MANY = 64  # updates that are worth to be sorted
_AFTER = NoDerivative("derivatives are taken before graphs are compiled", zero=False)


class Settled(NamedTuple):
    """Whether updates are added to what is there; else the last one replaces it."""

    add: bool


def _reference(a: Settled, x: Any, starts: Any, order: Any, updates: Any) -> Any:
    places = np.repeat(np.arange(x.shape[0]), np.diff(starts))
    result = np.array(wide(x), copy=True).reshape(x.shape[0], -1)
    new = wide(updates)[order]
    if a.add:
        np.add.at(result, places, new)
    else:
        result[places] = new
    return result.reshape(x.shape)


def _code(e: Any, a: Settled, i: Any, x: Any, starts: Any, order: Any, updates: Any) -> Any:
    number, width = updates.shape
    places = list(i)
    here, column = places[0], e.ravel(places[1:], x.shape[1:])
    first, end = (e.sure_index(starts.load(e.at_most(here + k, x.shape[0])), number + 1) for k in range(2))
    working = dtypes.float32 if x.dtype.is_float and x.dtype.bits == 16 else x.dtype

    def update(at: Any) -> Any:
        place = e.sure_index(order.load(e.at_most(e.op("MIN", at, e.number(number - 1)), number - 1)), number)
        return e.convert(updates.load(place * width + column), working)

    before = e.convert(x(i), working)
    some = e.compare("LT", first, end)
    if not a.add:
        last = e.select(some, end, e.number(1)) - 1
        return e.convert(e.select(some, update(last), before), x.dtype)
    total = e.variable(before)
    rounds = e.select(some, end - first, e.number(0))
    with e.counted(e.at_most(e.op("MIN", rounds, e.number(number)), number)) as j:
        e.assign(total, e.op("OR" if x.dtype.is_bool else "ADD", total, update(first + j)))
    return e.convert(total, x.dtype)


SETTLED: Op = row(Op(
    name="settled", doc="Rows with their updates, which are sorted by rows: from where on each has some is told.",
    function=None, names=("x", "starts", "order", "updates"), group=STRUCTURE, method=False,
    infer=lambda a, x, starts, order, updates: Aval(x.shape, x.dtype), reference=_reference, derivative=_AFTER,
    lower=Pull(_code),
))  # fmt: skip


def settled(node: Node) -> Node | None:
    """A scatter along the first axis by sorted updates; None for others, and for few of them."""
    x, indices, updates = node.inputs
    along, number, width = node.attrs.along, count(indices.shape), count(x.shape[1:])
    if along.axis or along.batch or number < MANY or not width or node.dtype.is_complex or node.dtype.is_bool:
        return None
    places = reshape(checked_places(node), (number,))
    in_order, order = sort(places)
    starts = search(in_order, iota.on(places, (x.shape[0] + 1,)))
    taken: Shape = along.taken(x, indices)
    new = updates if updates.shape == taken else expand(updates, taken)
    return make(SETTLED, (x, starts, order, reshape(new, (number, width))), Settled(node.attrs.add))
