"""Rows that compiled graphs have for `take` and `scatter_into`: positions are checked by themselves, before.

`decompose.py` makes them. `places` gives positions from 0 on and stops the launch if one is out of range, with the
message that the op it was made of would give; `taken` reads elements at places that are known to be in range, so that
it can be computed with its neighbours like any op that only says where elements come from. `scattered` puts or adds
updates at such places: without a check before each row, rows are updated in vectors. `taken_alone` checks and reads in
one loop, where a take of single elements is all there is to compute.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from eshkol.graph.node import Node, make
from eshkol.ops import dtypes
from eshkol.ops.elementwise import add, mul
from eshkol.ops.indexing import (
    STRETCH,
    Along,
    check_positions,
    position,
    row_into,
    scatter_into,
    take,
    update_scatter,
    wrapped,
)
from eshkol.ops.movement import expand, permute, reshape
from eshkol.ops.row import Aval, HasAval, KernelOp, Op, Pull, Push, Shape, row
from eshkol.ops.shapes import count
from eshkol.ops.structural import CONST, MARK
from eshkol.schedule.kernels.kernel import described

FEW = 64  # elements that are not worth a kernel more
SHORT = 16  # elements of a row that is not worth being updated in vectors
FEW_STEPS = 8  # of arithmetic on positions that are followed


class Places(NamedTuple):
    """Below which extent, and how errors call the op that asked."""

    extent: int
    asked: str
    wrap: bool = True


_SAME_NUMBERS = frozenset({reshape, permute, expand, MARK})  # ops that give the integers they are given


def _dtype(extent: int) -> dtypes.DType:
    return dtypes.uint32 if extent <= 1 << 32 else dtypes.uint64


def _infer_places(a: Places, indices: HasAval) -> Aval:
    return Aval(indices.shape, _dtype(a.extent))


PLACES: Op = row(KernelOp(
    name="places", doc="Positions from 0 on, in range.", names=("indices",), infer=_infer_places,
    lower=check_positions(lambda a: _dtype(a.extent)),
    reference=lambda a, i: wrapped(i, a.extent).astype(_dtype(a.extent).numpy),
))  # fmt: skip


def element(a: Along, i: Any, place: Any, x: Any, indices: Any) -> Any:
    """An element of what is taken, given its place along the axis."""
    examples, before, _, behind = a.split(i, indices)
    return x([*examples, *before, place, *behind])


def place_of(e: Any, a: Along, i: Any, extent: int, indices: Any) -> Any:
    """The place along the axis that an index of what is taken is about."""
    examples, _, place, _ = a.split(i, indices)
    return e.sure_index(indices([*examples, *place]), extent)


def _pull_taken(e: Any, a: Along, i: Any, x: Any, indices: Any) -> Any:
    return element(a, i, place_of(e, a, i, x.shape[a.axis], indices), x, indices)


TAKEN: Op = row(KernelOp(
    name="taken", doc="Elements at places that are in range.", names=("x", "places"), infer=take.infer,
    reference=take.reference, lower=Pull(_pull_taken), moves=True,
))  # fmt: skip


class Alone(NamedTuple):
    """Along which axis, and how errors call the op that asked."""

    along: Along
    asked: str


def _infer_alone(a: Alone, x: HasAval, indices: HasAval) -> Aval:
    return Aval(a.along.taken(x, indices), x.dtype)


def _rows_alone(a: Alone, x: HasAval, indices: HasAval) -> Shape:
    """Rows that have positions of their own, and stretches of these."""
    number = count(indices.shape[a.along.batch :])
    return count(x.shape[: a.along.batch]), max(1, -(-number // STRETCH))


def _code_alone(e: Any, a: Alone, r: Any, write: Any, x: Any, indices: Any) -> None:
    number, extent = count(indices.shape[a.along.batch :]), x.shape[-1]
    length = min(number, STRETCH)
    rounds, last = e.extent(length), e.extent(number - length)
    # The last stretch of a row is as long as the others, and overlaps with the one before it.
    start = e.at_most(e.op("MIN", r[1] * rounds, last), number - length)
    start, row = (r[0] * number + start, r[0] * extent) if a.along.batch else (start, 0)
    inside, rising = (e.variable(e.constant(1, dtypes.uint32)) for _ in range(2))
    signed = indices.dtype.signed
    with e.counted(rounds) as j:
        given = indices.load(start + j)
        e.accumulate(inside, "Min", e.located(given, extent)[1])
        if signed:
            e.accumulate(rising, "Min", e.convert(e.compare("GE", given, 0), dtypes.uint32))
    e.stop_unless(inside, extent)
    zero, plain = e.number(0), e.compare("NE", rising, 0)
    for wraps in (False, True) if signed else (False,):  # nearly always none is negative, and less is to be done
        with e.counted(e.select(plain, *((zero, rounds) if wraps else (rounds, zero)))) as j:
            given = indices.load(start + j)
            place = e.located(given, extent)[0] if wraps else e.sure_index(given, extent)
            write.store(start + j, x.load(place + row))


ALONE: Op = row(KernelOp(
    name="taken_alone", doc="Elements at positions, which are checked as they are read.", names=("x", "indices"),
    infer=_infer_alone, reference=lambda a, x, i: take.reference(a.along, x, i), lower=Push(_rows_alone, _code_alone),
))  # fmt: skip


SCATTERED: Op = row(KernelOp(
    name="scattered", doc="Updates put or added at places that are in range.", names=("x", "places", "updates"),
    infer=scatter_into.infer, reference=scatter_into.reference, lower=update_scatter(row_into, checked=True),
))  # fmt: skip


def own_axes(node: Node) -> set[int]:
    """The axes of what is taken that the places have too."""
    a, indices = node.attrs, node.inputs[1]
    return {*range(a.batch), *range(a.axis, a.axis + len(indices.shape) - a.batch)}


def one_in_each_row(x: Node, places: Node, along: Along) -> bool:
    """Whether indices along the last axis of x name one element of each row, which has an index of its own."""
    if along.axis != len(x.shape) - 1 or not count(x.shape) or count(x.shape[along.batch : along.axis]) != 1:
        return False  # rows outside of the batch would share all the indices, however many these are
    return count(places.shape) * x.shape[-1] == count(x.shape)


def in_range(indices: Node, extent: int) -> bool:
    """Whether indices are known to be positions below an extent."""
    most = _greatest(indices, FEW_STEPS)
    return most is not None and most < extent


def _greatest(node: Node, steps: int) -> int | None:
    """The greatest of integers that are known to be none below 0; of sums and products of such, too."""
    while node.op in _SAME_NUMBERS and node.data is None:
        (node,) = node.inputs
    if not node.dtype.is_integer or not steps:
        return None
    found: int | None = None
    if node.op is CONST:
        array = node.attrs.array
        found = int(array.max()) if 0 < array.size <= FEW and int(array.min()) >= 0 else None
    elif node.data is None and node.op in (position, PLACES):
        found = node.attrs.extent - 1
    elif node.data is None and node.op in (add, mul):
        one, other = (_greatest(x, steps - 1) for x in node.inputs)
        if one is not None and other is not None:
            found = one + other if node.op is add else one * other
    return found if found is not None and found <= node.dtype.limits()[1] else None


def checked_places(node: Node) -> Node:
    """The places of a take or scatter, known to be in range."""
    x, indices, *updates = node.inputs
    extent = x.shape[(node.attrs.along if updates else node.attrs).axis]
    return indices if in_range(indices, extent) else _checked(indices, Places(extent, described(node)))


def _checked(indices: Node, a: Places) -> Node:
    """Places of indices; of those that only lie in another order, in the order in which they are read."""
    if indices.op is permute and indices.data is None:
        return make(permute, (_checked(indices.inputs[0], a),), indices.attrs)
    return make(PLACES, (indices,), a)


def single(node: Node) -> bool:
    """Whether each element that is taken has a place of its own."""
    x, a = node.inputs[0], node.attrs
    return bool(a.batch == a.axis == len(x.shape) - 1)


def taken_alone(node: Node) -> Node | None:
    """A take of single elements that nothing else is computed with: one loop checks and reads; None for any other."""
    x, indices = node.inputs
    number = count(indices.shape[node.attrs.batch :])
    if any(y.inputs for y in node.inputs if y.data is None) or node.dtype.is_complex or CONST in (x.op, indices.op):
        return None  # what is computed before it may be so together with it
    if node.attrs.axis != len(x.shape) - 1 or node.attrs.axis != node.attrs.batch or number < FEW or not x.shape[-1]:
        return None
    return make(ALONE, node.inputs, Alone(node.attrs, described(node)))


def checked_apart(node: Node) -> Node | None:
    """A take or scatter as its places and what relies on them; None where it is better left as it is."""
    x, indices, *updates = node.inputs
    along = node.attrs.along if updates else node.attrs
    if count(along.taken(x, indices)) <= FEW or node.dtype.is_complex:
        return None
    if updates and count(x.shape[along.axis + 1 :]) < SHORT:
        return None
    return make(SCATTERED if updates else TAKEN, (x, checked_places(node), *updates), node.attrs)
