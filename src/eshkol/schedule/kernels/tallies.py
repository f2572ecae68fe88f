"""Rows that compiled graphs have for many numbers that are added at few places: histograms, and their kin.

`decompose.py` makes them, for machines whose cores walk over lanes. The updates are cut into parts, of which there are
as many whatever the number of threads, so that sums are always the same: `tallied` adds each part up by itself, from 0
on, checking positions as it reads them; `united` adds the parts to what was there, one after another.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from eshkol.graph.node import Node, constant, make
from eshkol.ops.indexing import position
from eshkol.ops.movement import expand, reshape
from eshkol.ops.row import Aval, HasAval, KernelOp, Op, Pull, Update, row
from eshkol.ops.shapes import count
from eshkol.schedule.kernels.kernel import described

PARTS = 8
MANY = 1 << 14  # updates that are worth parts
EACH = 4  # updates for every element that parts have


class Tallied(NamedTuple):
    """Below which extent positions are to be, how errors call the op that asked, whether some count from the end."""

    extent: int
    asked: str
    wrap: bool


def _reference(a: Tallied, x: Any, indices: Any, updates: Any) -> Any:
    result, number = np.array(x, copy=True), indices.size
    places = position.reference((a.extent, a.wrap), indices).reshape(-1)
    parts = np.minimum(np.arange(number) // (number // x.shape[0]), x.shape[0] - 1)
    np.add.at(result, (parts, places), np.broadcast_to(updates, number))
    return result


def _tally(e: Any, a: Tallied, r: Any, write: Any, x: Any, indices: Any, updates: Any) -> None:
    (parts, extent), number, (part,) = x.shape, count(indices.shape), r
    length = number // parts

    def added(here: Any) -> None:
        place, fine = e.located(indices.load(here), a.extent, a.wrap)
        e.stop_unless(fine, a.extent)
        there = part * extent + place
        new = updates.load(here) if count(updates.shape) == number else updates([0] * len(updates.shape))
        write.store(there, e.op("ADD", write.load(there), new))

    with e.counted(length) as j:
        added(part * length + j)
    if rest := number - parts * length:  # the last part has them too
        with e.counted(e.select(e.compare("EQ", part, parts - 1), e.number(rest), e.number(0))) as j:
            added(e.number(parts * length) + e.at_most(j, rest - 1))


TALLIED: Op = row(KernelOp(
    name="tallied", doc="Updates added at positions, each part of them to a row of its own.",
    names=("x", "indices", "updates"), infer=lambda a, x, i, u: Aval(x.shape, x.dtype), reference=_reference,
    lower=Update(lambda a, x, *_: x.shape[:1], _tally, lambda a, x, i, u: count(i.shape) // x.shape[0]),
))  # fmt: skip


def _infer_united(a: Any, x: HasAval, parts: HasAval) -> Aval:
    return Aval(x.shape, x.dtype)


def _unite(e: Any, a: Any, i: Any, x: Any, parts: Any) -> Any:
    total = x(i)
    for part in range(parts.shape[0]):
        total = e.op("ADD", total, parts([part, *i]))
    return total


UNITED: Op = row(KernelOp(
    name="united", doc="Parts of sums, added to a vector one after another.", names=("x", "parts"), infer=_infer_united,
    lower=Pull(_unite),
    reference=lambda a, x, parts: np.add.accumulate(np.concatenate([x[None], parts]), 0, dtype=x.dtype)[-1],
))  # fmt: skip


def in_parts(node: Node) -> Node | None:
    """Single numbers added to the elements of a vector, in parts; None where they are too few, or anything else."""
    x, indices, updates = node.inputs
    number, extent = count(indices.shape), count(x.shape)
    if not node.attrs.add or x.shape != (extent,) or not extent or node.dtype.is_bool or node.dtype.is_complex:
        return None
    if node.dtype.bits == 16 and not node.dtype.is_integer:  # whose sums would be rounded more often
        return None
    if number < max(MANY, EACH * PARTS * extent) or count(updates.shape) not in (1, number):
        return None
    checked = Tallied(extent, described(node), True)
    if indices.op is position and indices.data is None:
        checked = Tallied(indices.attrs.extent, described(indices), indices.attrs.wrap)
        (indices,) = indices.inputs
    if checked.extent > extent:
        return None
    nothing = constant(-0.0 if node.dtype.is_float else 0, node.dtype)  # -0 changes nothing, 0 would change -0
    empty = expand(nothing, (PARTS, extent))
    found = make(TALLIED, (empty, reshape(indices, (number,)), updates), checked)
    return make(UNITED, (x, found), None)
