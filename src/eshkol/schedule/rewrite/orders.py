"""Sorts as far as they are read: in compiled code they say which ranks of an order, and what of them, anyone asks for.

Comes in: nodes whose derivatives have been taken. Goes out: the same, with `ordered` for every `sort`: along the last
axis, the values or their places or both, and only those ranks that slices read (`topk`, `kthvalue`, `median`), if they
are few. Searches among boundaries and the places of extreme elements in long rows become ops with native code, too,
all of this in bodies of loops and branches as elsewhere. Machines without native code keep all of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from eshkol.atlas.machines import MachineDescription
from eshkol.graph.node import Node, make
from eshkol.ops import dtypes
from eshkol.ops.movement import permute, reshape
from eshkol.ops.reductions import Along, argmax, argmin
from eshkol.ops.row import NATIVE, Aval, HasAval, KernelOp, Op, row
from eshkol.ops.shapes import count
from eshkol.ops.slicing import slice_
from eshkol.ops.sorting import Sort, search, sort
from eshkol.ops.structural import PICK, Pick
from eshkol.schedule.rewrite.walk import New, in_order, visible, walked

Ranks = tuple[int, int]
SHORT_SEARCH = 4  # boundaries that a kernel compares with as quickly
SHORT_ROW = 256  # elements that a kernel compares as quickly
FEW = 2  # a row has at least so many times the elements that are read; otherwise it is sorted as a whole


class Ordered(NamedTuple):
    """Which way, which ranks (rising, apart from each other), and whether values and their places are wanted."""

    descending: bool
    ranges: tuple[Ranks, ...]
    values: bool
    places: bool


def _infer(a: Ordered, x: HasAval) -> Any:
    shape = (*x.shape[:-1], sum(end - begin for begin, end in a.ranges))
    found = [Aval(shape, dtype) for dtype, wanted in ((x.dtype, a.values), (dtypes.int64, a.places)) if wanted]
    return tuple(found) if len(found) > 1 else found[0]


def _reference(a: Ordered, x: Any) -> Any:
    whole = sort.reference(Sort(x.ndim - 1, a.descending), x)
    found = [np.concatenate([y[..., begin:end] for begin, end in a.ranges], -1) for y in whole]
    return tuple(found) if a.values and a.places else found[0 if a.values else 1]


ORDERED: Op = row(KernelOp(
    name="ordered", doc="Elements of some ranks along the last axis, in order, their positions, or both.", names=("x",),
    infer=_infer, reference=_reference, lower=NATIVE,
))  # fmt: skip


class Extreme(NamedTuple):
    """Whether the least elements are looked for, and not the greatest."""

    least: bool


def _place(a: Extreme, x: Any) -> Any:
    return (argmin if a.least else argmax).reference(Along((x.ndim - 1,), keepdims=False), x)


SEARCHED: Op = row(KernelOp(
    name="searched", doc="Where values would have to be put in to keep sorted boundaries sorted.",
    names=("boundaries", "values"), infer=search.infer, reference=search.reference, lower=NATIVE,
))  # fmt: skip
EXTREME: Op = row(KernelOp(
    name="extreme_place", doc="Where the extreme elements along the last axis are.", names=("x",),
    infer=lambda a, x: Aval(x.shape[:-1], dtypes.int64), reference=_place, lower=NATIVE,
))  # fmt: skip


def cut_sorts(results: Sequence[Node], target: MachineDescription) -> list[Node]:
    """The results, with sorts as far as they are read."""
    order = in_order(results)
    if not target.native or not any(_concerns(node) for node in order):
        return list(results)
    users: dict[Node, list[Node]] = {}
    for node in order:
        for x in visible(node):
            users.setdefault(x, []).append(node)
    cut: dict[Node, Node] = {}  # what results of sorts are now
    ranges: dict[Node, tuple[Ranks, ...]] = {}  # of these, where only some are read

    def as_read(node: Node, new: New) -> Node | None:
        if node.data is not None:
            return None
        if node.op is sort:
            picks = [user for user in users.get(node, []) if user.op is PICK and user.data is None]
            found = _read_of(node, picks, users, set(results))
            cut.update(zip(picks, _ordered(node, new[node.inputs[0]], picks, found), strict=True))
            ranges.update(dict.fromkeys(picks, found))
            return node  # nobody reads it
        if node.op is slice_ and node.inputs[0] in ranges:
            return _sliced(node, new[node.inputs[0]], ranges[node.inputs[0]])
        if node.op in _TAKEN:
            return _natively(node, tuple(new[x] for x in node.inputs))
        return cut.get(node)

    return walked(results, order, as_read)


_TAKEN = frozenset({sort, search, argmax, argmin})


def _concerns(node: Node) -> bool:
    return node.data is None and node.op in _TAKEN


def _natively(node: Node, inputs: tuple[Node, ...]) -> Node | None:
    """A search, or the place of an extreme element, by native code; None where a kernel does as well."""
    if node.op is search:
        return make(SEARCHED, inputs, node.attrs) if inputs[0].shape[-1] > SHORT_SEARCH else None
    (x,), axes = inputs, node.attrs.axes
    length = count(tuple(x.shape[k] for k in axes))
    if length < SHORT_ROW or axes != tuple(range(x.ndim - len(axes), x.ndim)) or x.dtype.is_bool:
        return None
    found = make(EXTREME, (reshape(x, (*x.shape[: x.ndim - len(axes)], length)),), Extreme(node.op is argmin))
    return found if found.shape == node.shape else reshape(found, node.shape)


def _ordered(node: Node, x: Node, picks: Sequence[Node], ranges: tuple[Ranks, ...]) -> list[Node]:
    """What results of a sort are: along the last axis, and from there along its own."""
    axis, descending = node.attrs
    wanted = {pick.attrs.place for pick in picks}
    last = x.ndim - 1
    there = (*(k for k in range(last + 1) if k != axis), axis)
    if axis != last:
        x = permute(x, there)
    made = make(ORDERED, (x,), Ordered(descending, ranges, 0 in wanted, 1 in wanted))
    found = {place: make(PICK, (made,), Pick(place)) if len(wanted) > 1 else made for place in wanted}
    if axis != last:
        found = {place: permute(y, tuple(int(k) for k in np.argsort(there))) for place, y in found.items()}
    return [found[pick.attrs.place] for pick in picks]


def _read_of(node: Node, picks: Sequence[Node], users: dict[Node, list[Node]], results: set[Node]) -> tuple[Ranks, ...]:
    """The ranks that are read of a sort: all of them, unless those of slices are few."""
    axis = node.attrs.axis
    extent = node.inputs[0].shape[axis]
    whole = ((0, extent),)
    if any(pick in results for pick in picks):
        return whole
    found: list[Ranks] = []
    for user in (user for pick in picks for user in users.get(pick, [])):
        if user.op is not slice_:
            return whole
        found.append((user.attrs.start[axis], user.attrs.stop[axis]))
    merged: list[Ranks] = []
    for begin, end in sorted(ranks for ranks in found if ranks[0] < ranks[1]):
        if merged and begin <= merged[-1][1]:
            merged[-1] = merged[-1][0], max(end, merged[-1][1])
        else:
            merged.append((begin, end))
    return tuple(merged) if merged and FEW * sum(end - begin for begin, end in merged) <= extent else whole


def _sliced(cut: Node, found: Node, ranges: tuple[Ranks, ...]) -> Node:
    """A slice of a sort's result, of what is there of it."""
    axis = cut.inputs[0].inputs[0].attrs.axis
    start, stop, step = (list(n) for n in cut.attrs)
    before = 0
    for begin, end in ranges:
        if begin <= start[axis] and stop[axis] <= end:
            start[axis], stop[axis] = (n - begin + before for n in (start[axis], stop[axis]))
            break
        before += end - begin
    else:
        start[axis] = stop[axis] = 0  # an empty slice
    if not any(start) and tuple(stop) == found.shape and all(n == 1 for n in step):
        return found
    return make(slice_, (found,), cut.attrs._replace(start=tuple(start), stop=tuple(stop)))
