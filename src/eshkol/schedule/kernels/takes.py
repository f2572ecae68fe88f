"""Rows that compiled graphs have for `take` and `scatter_into`: positions are checked by themselves, before.

`decompose.py` makes them. `places` gives positions from 0 on and stops the launch if one is out of range, with the
message that the op it was made of would give; `taken` reads elements at places that are known to be in range, so that
it can be computed with its neighbours like any op that only says where elements come from. `scattered` puts or adds
updates at such places: without a check before each row, rows are updated in vectors. `taken_alone` checks and reads in
one loop, where a take of single elements is all there is to compute.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from eshkol.graph.node import Node, make
from eshkol.ops import dtypes
from eshkol.ops.elementwise import add, mul
from eshkol.ops.indexing import (
    STRETCH,
    Along,
    Axis,
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
    """The axes along which there are indices, and how errors call the op that asked."""

    axes: tuple[Axis, ...]
    asked: str

    @property
    def extent(self) -> int:
        return 1 + sum((axis.extent - 1) * axis.stride for axis in self.axes)


_SAME_NUMBERS = frozenset({reshape, permute, expand, MARK})  # ops that give the integers they are given


def _dtype(extent: int) -> dtypes.DType:
    return dtypes.uint32 if extent <= 1 << 32 else dtypes.uint64


def _infer_places(a: Places, *indices: HasAval) -> Aval:
    return Aval(indices[0].shape, _dtype(a.extent))


def _joint(axes: Sequence[Axis], indices: Sequence[Any]) -> Any:
    return sum(wrapped(i, axis.extent, axis.wrap) * axis.stride for axis, i in zip(axes, indices, strict=True))


PLACES: Op = row(KernelOp(
    name="places", doc="Positions from 0 on, in range; one of those along several axes.", names=("indices",),
    infer=_infer_places, lower=check_positions(lambda a: _dtype(a.extent), lambda a: a.axes),
    reference=lambda a, *indices: _joint(a.axes, indices).astype(_dtype(a.extent).numpy),
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
    reference=take.reference, lower=Pull(_pull_taken), moves=True, of_complex=True,
))  # fmt: skip


class Alone(NamedTuple):
    """How many axes of x are batch, along which axes of the rest there are indices, and how errors call the op."""

    batch: int
    axes: tuple[Axis, ...]
    asked: str


def _infer_alone(a: Alone, x: HasAval, indices: HasAval, *others: HasAval) -> Aval:
    return Aval(indices.shape, x.dtype)


def _reference_alone(a: Alone, x: Any, *indices: Any) -> Any:
    return take.reference(Along(a.batch, a.batch), x, _joint(a.axes, indices))


def _rows_alone(a: Alone, x: HasAval, indices: HasAval, *others: HasAval) -> Shape:
    """Rows that have positions of their own, and stretches of these."""
    number = count(indices.shape[a.batch :])
    return count(x.shape[: a.batch]), max(1, -(-number // STRETCH))


def _code_alone(e: Any, a: Alone, r: Any, write: Any, x: Any, *indices: Any) -> None:
    number, extent = count(indices[0].shape[a.batch :]), x.shape[-1]
    length = min(number, STRETCH)
    rounds, last = e.extent(length), e.extent(number - length)
    # The last stretch of a row is as long as the others, and overlaps with the one before it.
    start = e.at_most(e.op("MIN", r[1] * rounds, last), number - length)
    start, row = (r[0] * number + start, r[0] * extent) if a.batch else (start, 0)
    rising, *inside = (e.variable(e.constant(1, dtypes.uint32)) for _ in range(1 + len(a.axes)))
    wraps_ever = any(axis.wrap and i.dtype.signed for axis, i in zip(a.axes, indices, strict=True))
    with e.counted(rounds) as j:
        for axis, i, fine in zip(a.axes, indices, inside, strict=True):
            given = i.load(start + j)
            e.accumulate(fine, "Min", e.located(given, axis.extent, axis.wrap)[1])
            if axis.wrap and i.dtype.signed:
                e.accumulate(rising, "Min", e.convert(e.compare("GE", given, 0), dtypes.uint32))
    for axis, fine in zip(a.axes, inside, strict=True):
        e.stop_unless(fine, axis.extent)
    zero, plain = e.number(0), e.compare("NE", rising, 0)
    for wraps in (False, True) if wraps_ever else (False,):  # nearly always none is negative, and less is to be done
        with e.counted(e.select(plain, *((zero, rounds) if wraps else (rounds, zero)))) as j:
            place = row
            for axis, i in zip(a.axes, indices, strict=True):
                given = i.load(start + j)
                found = e.located(given, axis.extent, axis.wrap)[0] if wraps else e.sure_index(given, axis.extent)
                place = found * axis.stride + place
            write.store(start + j, x.load(place))


ALONE: Op = row(KernelOp(
    name="taken_alone", doc="Elements at positions, which are checked as they are read.", names=("x", "indices"),
    infer=_infer_alone, reference=_reference_alone, lower=Push(_rows_alone, _code_alone),
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
    if (terms := _terms(indices)) is not None:
        return make(PLACES, _shaped(terms, indices.shape), Places(tuple(axis for _, axis in terms), described(node)))
    return indices if in_range(indices, extent) else _checked(indices, Places((Axis(extent),), described(node)))


def _checked(indices: Node, a: Places) -> Node:
    """Places of indices; of those that only lie in another order, in the order in which they are read."""
    if indices.op is permute and indices.data is None:
        return make(permute, (_checked(indices.inputs[0], a),), indices.attrs)
    return make(PLACES, (indices,), a)


def _shaped(terms: Sequence[tuple[Node, Axis]], shape: Shape) -> tuple[Node, ...]:
    """The indices of all axes, of one shape."""
    return tuple(i if i.shape == shape else reshape(i, shape) for i, _ in terms)


def _terms(node: Node) -> list[tuple[Node, Axis]] | None:
    """The indices whose checked positions add up to a place, and their axes; None for what is anything else."""
    found = _added(node, 1)
    return found if found is not None and len(found) > 1 else None


def _added(node: Node, stride: int) -> list[tuple[Node, Axis]] | None:
    while node.op is reshape and node.data is None:
        (node,) = node.inputs
    if node.data is not None:
        return None
    if node.op is position:
        return [(node.inputs[0], Axis(node.attrs.extent, stride, node.attrs.wrap))]
    if node.op is mul:
        one, factor = node.inputs
        if factor.op is not CONST or factor.attrs.array.size != 1:
            return None
        return _added(one, stride * int(factor.attrs.array.reshape(())))
    if node.op is not add:
        return None
    terms = [_added(x, stride) if x.size == node.size else None for x in node.inputs]
    return None if None in terms else [term for found in terms for term in found or ()]


def single(node: Node) -> bool:
    """Whether each element that is taken has a place of its own."""
    x, a = node.inputs[0], node.attrs
    return bool(a.batch == a.axis == len(x.shape) - 1)


def taken_alone(node: Node) -> Node | None:
    """A take of single elements that nothing else is computed with: one loop checks and reads; None for any other."""
    (x, indices), a = node.inputs, node.attrs
    number = count(indices.shape[a.batch :])
    terms = _terms(indices) or [(indices, Axis(x.shape[a.axis]))]
    while x.op is reshape and x.data is None and len(terms) > 1:  # as x[i, j] says that x is one axis
        (x,) = x.inputs
    if any(y.inputs for y in (x, *(i for i, _ in terms)) if y.data is None) or node.dtype.is_complex:
        return None  # what is computed before it may be so together with it
    if CONST in (x.op, *(i.op for i, _ in terms)) or number < FEW or not node.inputs[0].shape[-1]:
        return None
    if a.axis != len(node.inputs[0].shape) - 1 or a.axis != a.batch:
        return None
    given = _shaped(terms, indices.shape)
    return make(ALONE, (node.inputs[0], *given), Alone(a.batch, tuple(axis for _, axis in terms), described(node)))


def checked_apart(node: Node) -> Node | None:
    """A take or scatter as its places and what relies on them; None where it is better left as it is."""
    x, indices, *updates = node.inputs
    along = node.attrs.along if updates else node.attrs
    if count(along.taken(x, indices)) <= FEW or (updates and node.dtype.is_complex):
        return None
    if updates and count(x.shape[along.axis + 1 :]) < SHORT:
        return make(node.op, (x, checked_places(node), *updates), node.attrs) if _terms(indices) else None
    return make(SCATTERED if updates else TAKEN, (x, checked_places(node), *updates), node.attrs)
