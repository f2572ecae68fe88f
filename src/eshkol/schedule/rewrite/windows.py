"""The greatest elements of windows, where nothing asks which they are: maxima of slices, one for each place.

Max-pooling is a `take` at the places that `window_argmax` finds, so that its derivative is that of `take`. A result
that is not differentiated needs no places: the slices are read by one kernel, which writes nothing but the maxima.
Likewise `cummax` and `cummin` along the last axis.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Sequence

from eshkol.atlas.machines import MachineDescription
from eshkol.graph.node import Node, constant, make
from eshkol.ops.correlation import reach
from eshkol.ops.elementwise import maximum
from eshkol.ops.indexing import take
from eshkol.ops.movement import reshape
from eshkol.ops.pooling import window_argmax
from eshkol.ops.shapes import count
from eshkol.ops.slicing import pad_constant, slice_
from eshkol.schedule.kernels.scanning import EXTREMES
from eshkol.schedule.rewrite.rules import made
from eshkol.schedule.rewrite.walk import New, in_order, visible, walked

MOST = 16  # places of a window


def greatest_of_windows(results: Sequence[Node], target: MachineDescription) -> list[Node]:
    """The results, with maxima of slices for elements that are taken at the places of windows' greatest."""
    order = in_order(results)
    if not any(made(node, window_argmax) or node.op in EXTREMES for node in order):
        return list(results)
    users = Counter(x for node in order for x in visible(node))
    users.update(results)

    def greatest(node: Node, new: New) -> Node | None:
        if _pools(node, users):
            return _maxima(new[node.inputs[1].inputs[0]], node)
        if _accumulates(node, users):
            return make(EXTREMES[node.inputs[1].op], (new[node.inputs[0]],), None)
        return None

    return walked(results, order, greatest)


def _pools(node: Node, users: Counter[Node]) -> bool:
    """Whether a node takes the greatest elements of windows, whose places nothing else reads."""
    if not made(node, take):
        return False
    planes, places = node.inputs
    if not made(places, window_argmax) or users[places] != 1 or count(places.attrs.kernel) > MOST:
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


def _maxima(x: Node, node: Node) -> Node:
    a = node.inputs[1].attrs
    lead = len(x.shape) - len(a.kernel)
    ends = [(n - 1) * s + reach(k, d) for n, s, k, d in zip(a.counts, a.stride, a.kernel, a.dilation, strict=True)]
    behind = [max(0, end - p - n) for end, p, n in zip(ends, a.padding, x.shape[lead:], strict=True)]
    if any(a.padding) or any(behind):
        none = (0,) * lead
        least, _ = x.dtype.limits()
        x = pad_constant(x, constant(least, x.dtype), (*none, *a.padding), (*none, *behind))
    found: Node | None = None
    for places in itertools.product(*map(range, a.kernel)):
        first = [p * d for p, d in zip(places, a.dilation, strict=True)]
        stop = [f + (n - 1) * s + 1 for f, n, s in zip(first, a.counts, a.stride, strict=True)]
        one = slice_(x, (*(0,) * lead, *first), (*x.shape[:lead], *stop), (*(1,) * lead, *a.stride))
        found = one if found is None else maximum(found, one)
    assert found is not None
    return found
