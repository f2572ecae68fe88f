"""Many updates of rows, for machines of blocks: sorted by where they go, so that each element of the result is a lane.

Comes in: `scatter_into` along the first axis. Goes out: nodes that sort the updates' places, find where those of each
row begin among them, and one that adds them up, or takes the last. Updates of one place keep their order, so sums are
those that they would be one after another, whatever the machine; no lane waits for another. Of large results a lane has
a vector of neighbours (`settled_kernel`), and what begins with zeros need not be read.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from eshkol.atlas.machines import MachineDescription
from eshkol.atlas.program import VECTORS, LaunchConfig
from eshkol.graph.node import Node, make
from eshkol.ops import dtypes
from eshkol.ops.contraction import wide
from eshkol.ops.creation import iota
from eshkol.ops.movement import expand, reshape
from eshkol.ops.row import Aval, KernelOp, Op, Pull, Shape, row
from eshkol.ops.shapes import count
from eshkol.ops.sorting import search, sort
from eshkol.ops.structural import CONST
from eshkol.schedule.kernels.emit import Emitter
from eshkol.schedule.kernels.kernel import Kernel, bound, shown
from eshkol.schedule.kernels.reads import Number, Read, Write
from eshkol.schedule.kernels.sharing import neighbours
from eshkol.schedule.kernels.takes import checked_places
from eshkol.support.extents import Extent

MANY = 64  # updates that are worth to be sorted


class Settled(NamedTuple):
    """Whether updates are added to what is there, else the last one replaces it; and the shape of all."""

    add: bool
    shape: Shape


def _reference(a: Settled, x: Any, starts: Any, order: Any, updates: Any) -> Any:
    places = np.repeat(np.arange(a.shape[0]), np.diff(starts))
    result = np.array(np.broadcast_to(wide(x), a.shape), copy=True).reshape(a.shape[0], -1)
    new = wide(updates)[order]
    if a.add:
        np.add.at(result, places, new)
    else:
        result[places] = new
    return result.reshape(a.shape)


def _code(e: Any, a: Settled, i: Any, x: Any, starts: Any, order: Any, updates: Any) -> Any:
    _, width = updates.shape
    places = list(i)
    here, column = places[0], e.ravel(places[1:], a.shape[1:])
    before = x(i) if x.shape else x([])
    return _changed(e, a, starts, order, updates, here, [before], lambda at: [at * width + column])[0]


def _changed(
    e: Any, a: Settled, starts: Any, order: Any, updates: Any, row: Any, before: Sequence[Any],
    positions: Callable[[Any], Sequence[Any]],
) -> list[Any]:  # fmt: skip
    """Elements of a row with their updates; `positions` says where those of an update lie."""
    number, dtype = updates.shape[0], updates.dtype
    first, end = (e.sure_index(starts.load(e.at_most(row + k, a.shape[0])), number + 1) for k in range(2))
    working = dtypes.float32 if dtype.is_float and dtype.bits == 16 else dtype
    totals = [e.variable(e.convert(one, working)) for one in before]
    some = e.compare("LT", first, end)
    rounds = e.select(some, end - first if a.add else e.number(1), e.number(0))
    with e.counted(e.at_most(e.op("MIN", rounds, e.number(number)), number)) as j:
        at = first + j if a.add else end - 1
        place = e.sure_index(order.load(e.at_most(e.op("MIN", at, e.number(number - 1)), number - 1)), number)
        for total, new in zip(totals, [updates.load(position) for position in positions(place)], strict=True):
            new = e.convert(new, working)
            e.assign(total, e.op("ADD", total, new) if a.add else new)
    return [e.convert(total, dtype) for total in totals]


SETTLED: Op = row(KernelOp(
    name="settled", doc="Rows with their updates, which are sorted by rows: from where on each has some is told.",
    names=("x", "starts", "order", "updates"), infer=lambda a, x, starts, order, updates: Aval(a.shape, x.dtype),
    reference=_reference, lower=Pull(_code),
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
    while x.op is expand and x.data is None:  # one number, wherever it is read
        (x,) = x.inputs
    x = node.inputs[0] if x.shape else x
    return make(SETTLED, (x, starts, order, reshape(new, (number, width))), Settled(node.attrs.add, node.shape))


def is_settled(node: Node, target: MachineDescription) -> bool:
    """Whether a node is computed by `settled_kernel`: one of many elements."""
    return node.op is SETTLED and count(node.shape) >= target.wide and not any(type(n) is Extent for n in node.shape)


def settled_kernel(node: Node, target: MachineDescription) -> Kernel:
    """One lane for each vector of neighbours of a row."""
    x, _, _, new = node.inputs
    vector, width = target.vector // node.dtype.size, new.shape[1]
    while width % vector:
        vector //= 2
    across = width // vector
    lanes = node.shape[0] * across
    e = Emitter((lanes,))
    reads = [
        Number(e, f"x{k}", x.dtype) if x.op is CONST else Read(e, f"x{k}", x.shape, x.dtype)
        for k, x in enumerate(node.inputs)
    ]
    given, starts, order, updates = reads
    write = Write(e, "out", node.shape, node.dtype)
    row, number = e.lane // across, e.lane % across
    here = neighbours(e, e.lane, vector)
    before = [given.load(position if x.shape else e.number(0)) for position in here]
    found = _changed(
        e, node.attrs, starts, order, updates, row, before, lambda at: neighbours(e, at * across + number, vector)
    )
    for position, value in zip(here, found, strict=True):
        write.store(position, value)
    program = shown(e.finish("settled", reads, [write], lanes, {VECTORS: ""}))
    buffers, numbers = bound(program, node.inputs)
    return Kernel(program, LaunchConfig.linear(lanes, target.block), None, ("out",), buffers, numbers)
