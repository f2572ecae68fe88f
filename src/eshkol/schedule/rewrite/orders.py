"""Sorts of which only the beginning is read (`topk`): compiled code looks for that part, and does not sort the rest.

Comes in: nodes whose derivatives have been taken. Goes out: the same, with `sorted_first` for a `sort` that is read
only through slices of its first few elements. Machines of blocks sort whole rows in kernels, and keep them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from eshkol.atlas.machines import MachineDescription
from eshkol.graph.node import Node, make
from eshkol.ops import dtypes
from eshkol.ops.row import HOST, STRUCTURE, Aval, HasAval, NoDerivative, Op, row
from eshkol.ops.slicing import slice_
from eshkol.ops.sorting import Sort, sort
from eshkol.ops.structural import PICK
from eshkol.schedule.rewrite.walk import New, in_order, visible, walked

PART = 16  # a row has so many times the elements that are read; otherwise it is sorted


class First(NamedTuple):
    """Which way along which axis, and how many."""

    axis: int
    descending: bool
    kept: int

    def cut(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        return (*shape[: self.axis], self.kept, *shape[self.axis + 1 :])


def _infer(a: First, x: HasAval) -> tuple[Aval, Aval]:
    return Aval(a.cut(x.shape), x.dtype), Aval(a.cut(x.shape), dtypes.int64)


def _reference(a: First, x: Any) -> Any:
    found = sort.reference(Sort(a.axis, a.descending), x)
    return tuple(y[(slice(None),) * a.axis + (slice(a.kept),)] for y in found)


SORTED_FIRST: Op = row(Op(
    name="sorted_first", doc="The first elements in order along an axis, and their positions.", function=None,
    names=("x",), group=STRUCTURE, method=False, infer=_infer, reference=_reference, lower=HOST,
    derivative=NoDerivative("derivatives are taken before graphs are compiled", zero=False),
))  # fmt: skip


def cut_sorts(results: Sequence[Node], target: MachineDescription) -> list[Node]:
    """The results, with sorts as far as they are read."""
    order = in_order(results)
    sorts = [node for node in order if node.op is sort and node.data is None]
    if target.blocks or not sorts:
        return list(results)
    users: dict[Node, list[Node]] = {}
    for node in order:
        for x in visible(node):
            users.setdefault(x, []).append(node)
    kept = {node: k for node in sorts if (k := _read_of(node, users, set(results))) is not None}
    if not kept:
        return list(results)

    def cut(node: Node, new: New) -> Node | None:
        if node in kept:
            axis, descending = node.attrs
            return make(SORTED_FIRST, (new[node.inputs[0]],), First(axis, descending, kept[node]))
        if node.op is slice_ and node.data is None and node.inputs[0].op is PICK and _source(node) in kept:
            return new[node.inputs[0]]
        return None

    return walked(results, order, cut)


def _source(cut: Node) -> Node:
    return cut.inputs[0].inputs[0] if cut.inputs[0].inputs else cut.inputs[0]


def _read_of(node: Node, users: dict[Node, list[Node]], results: set[Node]) -> int | None:
    """How many elements of each row of a sort are read, if they are the first few, and the same of all its results."""
    picks = users.get(node, [])
    if node in results or any(pick.op is not PICK or pick in results for pick in picks):
        return None
    shape, axis = node.inputs[0].shape, node.attrs.axis
    found = {_beginning(cut, shape, axis) for pick in picks for cut in users.get(pick, [])}
    if len(found) != 1:
        return None
    (kept,) = found
    return kept if kept is not None and 0 < kept * PART <= shape[axis] else None


def _beginning(cut: Node, shape: tuple[int, ...], axis: int) -> int | None:
    """How many of the first elements along an axis a slice takes, all of the other axes; None for anything else."""
    if cut.op is not slice_ or any(cut.attrs.start) or any(step != 1 for step in cut.attrs.step):
        return None
    kept: int = cut.attrs.stop[axis]
    return kept if cut.attrs.stop == (*shape[:axis], kept, *shape[axis + 1 :]) else None
