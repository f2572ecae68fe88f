"""The greatest elements of windows, where nothing asks which they are: maxima of slices, one for each place.

Max-pooling is a `take` at the places that `window_argmax` finds, so that its derivative is that of `take`. A result
that is not differentiated needs no places: the slices are read by one kernel, which writes nothing but the maxima.
Likewise `cummax` and `cummin` along the last axis.

The derivative puts a number at one place of each window. On machines of blocks each element asks the windows around it
instead whether it is that place: neighbouring lanes write neighbouring elements, once.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Sequence
from typing import Any

from eshkol.atlas.machines import MachineDescription
from eshkol.graph.node import Node, constant, make
from eshkol.ops import dtypes
from eshkol.ops.correlation import reach
from eshkol.ops.creation import iota
from eshkol.ops.elementwise import cast, equal, maximum, where
from eshkol.ops.indexing import scatter_into, take
from eshkol.ops.movement import ToShape, expand, reshape
from eshkol.ops.pooling import window_argmax
from eshkol.ops.reductions import Along, max_
from eshkol.ops.shapes import count
from eshkol.ops.slicing import pad_constant, slice_
from eshkol.ops.structural import CONST
from eshkol.schedule.kernels.scanning import EXTREMES
from eshkol.schedule.rewrite.rules import made
from eshkol.schedule.rewrite.walk import New, in_order, visible, walked

MOST = 16  # places of a window that are looked at one by one
FEW = 9  # of windows that share nothing, all of which are looked at together


def greatest_of_windows(results: Sequence[Node], target: MachineDescription) -> list[Node]:
    """The results, with maxima of slices for elements that are taken at the places of windows' greatest."""
    order = in_order(results)
    if not any(made(node, window_argmax) or node.op in EXTREMES for node in order):
        return list(results)
    users = Counter(x for node in order for x in visible(node))
    users.update(results)

    def greatest(node: Node, new: New) -> Node | None:
        if _pools(node, users, target):
            return _maxima(new[node.inputs[1].inputs[0]], node, target)
        if target.blocks and _fills_windows(node):
            return _filled(new[node.inputs[1]], new[node.inputs[2]], node)
        if _accumulates(node, users):
            return make(EXTREMES[node.inputs[1].op], (new[node.inputs[0]],), None)
        return None

    return walked(results, order, greatest)


def _pools(node: Node, users: Counter[Node], target: MachineDescription) -> bool:
    """Whether a node takes the greatest elements of windows, whose places nothing else reads, or who cares.

    Lanes side by side read windows sooner a second time than elements at places that have to be checked.
    """
    if not made(node, take):
        return False
    planes, places = node.inputs
    if not made(places, window_argmax):
        return False
    kernel = places.attrs.kernel
    looked_at = (
        [k for n, k in enumerate(kernel) if not _tiles(places, n)] if _apart(places, target) else [count(kernel)]
    )
    if sum(looked_at) > MOST:
        return False
    if users[places] != 1 and not target.blocks:
        return False
    (x,) = places.inputs
    lead = len(x.shape) - len(places.attrs.kernel)
    whole = planes.inputs[0] if made(planes, reshape) else planes
    flat = (*x.shape[:lead], count(x.shape[lead:]))
    return whole is x and planes.shape == flat and node.attrs.axis == lead and node.shape == places.shape


def _accumulates(node: Node, users: Counter[Node]) -> bool:
    """Whether a node takes the extremes of all elements up to each of a row, whose places nothing else reads."""
    if not made(node, take):
        return False
    x, places = node.inputs
    last = len(x.shape) - 1
    if places.op not in EXTREMES or places.data is not None or users[places] != 1 or places.inputs[0] is not x:
        return False
    along = places.attrs.axis == last and tuple(node.attrs[:2]) == (last, last) and node.shape == x.shape
    return along and count(x.shape) > 0 and x.dtype.numpy.kind in "iuf"  # NumPy has no order of others


def _fills_windows(node: Node) -> bool:
    """Whether a node adds one number to zeros for each window, where that has its greatest; few windows share one."""
    if not made(node, scatter_into) or not node.attrs.add:
        return False
    zeros, places, updates = node.inputs
    if not made(places, window_argmax) or not _is_zero(zeros) or updates.shape != places.shape:
        return False
    (x,), a = places.inputs, places.attrs
    lead = len(x.shape) - len(a.kernel)
    flat = (*x.shape[:lead], count(x.shape[lead:]))
    if node.shape != flat or tuple(node.attrs.along) != (lead, lead) or not 0 < count(x.shape) < 1 << 31:
        return False
    return count(tuple(_around(a))) <= MOST and all(d == 1 for d in a.dilation)


def _around(a: Any) -> list[int]:
    """How many windows an element lies in along each axis, at most."""
    return [-(-k // s) for k, s in zip(a.kernel, a.stride, strict=True)]


def _is_zero(node: Node) -> bool:
    number = node.inputs[0] if made(node, expand) else node
    return number.op is CONST and not any(number.attrs.raw)


def _filled(places: Node, updates: Node, node: Node) -> Node:
    """For each element, the numbers of those windows around it that are for this place.

    Elements are seen as steps of windows with what lies in a step. The window that begins with a step may have its
    greatest there, and so may those before it that reach so far.
    """
    a, x = node.inputs[1].attrs, node.inputs[1].inputs[0]
    axes = len(a.kernel)
    lead, space = x.shape[: len(x.shape) - axes], x.shape[len(x.shape) - axes :]
    steps = [-(-(n + p) // s) for n, p, s in zip(space, a.padding, a.stride, strict=True)]
    apart = [n for pair in zip(steps, a.stride, strict=True) for n in pair]  # steps, and places in them
    zero, nowhere = constant(0, updates.dtype), constant(-1, dtypes.int32)
    none, around = (0,) * len(lead), _around(a)

    def spread(value: Node, first: Sequence[int]) -> Node:
        """What belongs to the windows that begin so many steps earlier, for every element of a step."""
        begin = [n - 1 - k for n, k in zip(around, first, strict=True)]
        stop = [k + n for k, n in zip(begin, steps, strict=True)]
        if (*lead, *steps) != value.shape:
            value = slice_(value, (*none, *begin), (*lead, *stop), (1,) * len(value.shape))
        narrow = [n for step in steps for n in (step, 1)]
        wide: Node = expand(reshape(value, (*lead, *narrow)), (*lead, *apart))
        return wide

    def with_edges(value: Node, number: Node) -> Node:
        """Windows, and before and behind them as many as elements ask for."""
        low = [n - 1 for n in around]
        high = [max(0, step - n) for step, n in zip(steps, a.counts, strict=True)]
        found: Node = pad_constant(value, number, (*none, *low), (*none, *high)) if any((*low, *high)) else value
        return found

    own: Node | None = None  # the place of an element among all of `space`
    for k, (extent, width, before) in enumerate(zip(space, a.stride, a.padding, strict=True)):
        step, inner = (iota.on(places, (*lead, *apart), len(lead) + 2 * k + j, dtypes.int32) for j in (0, 1))
        along = step * width + inner - before if before else step * width + inner
        own = along if own is None else own * extent + along
    assert own is not None
    places, updates = with_edges(cast(places, dtypes.int32), nowhere), with_edges(updates, zero)
    found: Node | None = None
    for first in itertools.product(*map(range, around)):
        one = where(equal(spread(places, first), own), spread(updates, first), zero)
        found = one if found is None else found + one
    found = reshape(found, (*lead, *(n * s for n, s in zip(steps, a.stride, strict=True))))
    begin = tuple(a.padding)
    stop = tuple(p + n for p, n in zip(a.padding, space, strict=True))
    if any(begin) or (*lead, *stop) != found.shape:
        found = slice_(found, (*none, *begin), (*lead, *stop), (1,) * len(found.shape))
    whole: Node = reshape(found, node.shape)
    return whole


def _maxima(x: Node, node: Node, target: MachineDescription) -> Node:
    """The greatest of each window: of all its places at once, or along one axis after the other.

    Along an axis before the last, neighbours are compared as they lie, and what was found for a row serves all windows
    that share it: of 3 × 3 places in steps of 2 there are 3 + 3 to look at, and not 9, most of them two apart.
    """
    places = node.inputs[1]
    a = places.attrs
    axes = range(len(a.kernel))
    if not _apart(places, target):
        return _greatest(x, a, axes)
    for k in axes:
        x = _of_tiles(x, a, k) if _tiles(places, k) else _greatest(x, a, (k,))
    return x


def _apart(places: Node, target: MachineDescription) -> bool:
    """Whether windows are looked at along one axis after the other: those that share elements, or have many."""
    a = places.attrs
    shared = any(k > s for k, s in zip(a.kernel, a.stride, strict=True))
    tiled = count(a.kernel) > FEW and any(_tiles(places, k) for k in range(len(a.kernel)))
    return (tiled or (shared and sum(k > 1 for k in a.kernel) > 1)) and not target.blocks


def _tiles(places: Node, k: int) -> bool:
    """Whether windows lie side by side along an axis, and fill it: then its greatest elements are a reduction's."""
    a, (x,) = places.attrs, places.inputs
    extent = x.shape[len(x.shape) - len(a.kernel) + k]
    alone = a.kernel[k] == a.stride[k] or a.counts[k] == 1
    return bool(alone and a.dilation[k] == 1 and a.padding[k] == 0 and a.counts[k] * a.kernel[k] == extent)


def _of_tiles(x: Node, a: Any, k: int) -> Node:
    axis = len(x.shape) - len(a.kernel) + k
    if a.kernel[k] == 1:
        return x
    apart = make(reshape, (x,), ToShape((*x.shape[:axis], a.counts[k], a.kernel[k], *x.shape[axis + 1 :])))
    return make(max_, (apart,), Along((axis + 1,), False))


def _greatest(x: Node, a: Any, axes: Sequence[int]) -> Node:
    """The greatest elements along some axes of windows; the other axes stay as they are."""
    lead = len(x.shape) - len(a.kernel)
    low, high, steps = [0] * len(x.shape), [0] * len(x.shape), [1] * len(x.shape)
    for k in axes:
        end = (a.counts[k] - 1) * a.stride[k] + reach(a.kernel[k], a.dilation[k])
        low[lead + k], high[lead + k] = a.padding[k], max(0, end - a.padding[k] - x.shape[lead + k])
        steps[lead + k] = a.stride[k]
    if any(low) or any(high):
        least, _ = x.dtype.limits()
        x = pad_constant(x, constant(least, x.dtype), tuple(low), tuple(high))
    found: Node | None = None
    for places in itertools.product(*(range(a.kernel[k]) for k in axes)):
        first, stop = [0] * len(x.shape), list(x.shape)
        for k, place in zip(axes, places, strict=True):
            first[lead + k] = place * a.dilation[k]
            stop[lead + k] = first[lead + k] + (a.counts[k] - 1) * a.stride[k] + 1
        one = slice_(x, tuple(first), tuple(stop), tuple(steps))
        found = one if found is None else maximum(found, one)
    assert found is not None
    return found
