"""Ops that are better computed as their parts: a pass over graphs right before nodes are put into groups.

Comes in: the results of a function. Goes out: equivalent nodes. Ops whose rows say what they are composed of (`Parts`:
softmax, log_softmax, logsumexp) become the reductions and the elementwise ops that they consist of, which are computed
together with what is before and behind them (`fuse.py`): one kernel, which reads a row while it is in the cache.
argmax becomes the greatest element and the least place where it stands, both of which vectorize. Putting one number
into each row, as the derivative of a loss over classes does, becomes a comparison with the place, so that no array of
zeros is made. In it e^log_softmax is softmax, whose exponentials the sum has already. Integers are divided by
known numbers in kernels that know them; products of matrices of integers become sums of columns, on cores. Bodies of
loops and branches are treated alike.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from eshkol.atlas.machines import CORES, MachineDescription
from eshkol.graph.node import Node, constant
from eshkol.ops import dtypes
from eshkol.ops.activations import log_softmax, softmax
from eshkol.ops.creation import iota
from eshkol.ops.elementwise import bitwise_or, cast, equal, exp, not_equal, where
from eshkol.ops.indexing import take
from eshkol.ops.movement import expand, reshape
from eshkol.ops.reductions import max_, min_, sum_
from eshkol.ops.row import Parts
from eshkol.ops.scans import doubled
from eshkol.ops.shapes import count
from eshkol.ops.structural import CONST
from eshkol.schedule.kernels.divisions import DIVIDING, by_known, left_on_cores, multiple
from eshkol.schedule.kernels.kernel import composed
from eshkol.schedule.kernels.placing import placed
from eshkol.schedule.kernels.settled import settled
from eshkol.schedule.kernels.takes import (
    checked_apart,
    checked_places,
    in_range,
    one_in_each_row,
    taken_alone,
)
from eshkol.schedule.kernels.tallies import in_parts
from eshkol.schedule.kernels.values import SAME
from eshkol.schedule.rewrite.walk import New, again, in_order, walked

COLUMNS = 8  # of a product of integers, which make a vector
LONG_ROW, MANY_ROWS = 64, 4096  # steps of a recurrence that are not few, and rows that keep a machine of blocks busy


def decompose(results: Sequence[Node], target: MachineDescription = CORES) -> list[Node]:
    """The results, of nodes that are computed as their parts."""
    if not target.blocks:  # a take that a function gives is computed with nothing else, and need not be checked apart
        results = [taken_alone(node) or node if node.op is take and node.data is None else node for node in results]
    rules = {**RULES, **(ON_BLOCKS if target.blocks else ON_CORES)}

    def parts(node: Node, new: New) -> Node | None:
        if node.data is not None:
            return node
        found = again(node, new)
        if node.op is exp and node.inputs[0].op is log_softmax and node.inputs[0].data is None:
            found = softmax(new[node.inputs[0].inputs[0]], node.inputs[0].attrs.axis)
        rule = composed if type(found.op.lower) is Parts else rules.get(node.op.name)
        return (rule(found) if rule is not None else None) or found

    return walked(results, in_order(results), parts)


# --- places of extremes ---------------------------------------------------------------------------


def _extreme_place(extreme: Any) -> Callable[[Node], Any]:
    def parts(node: Node) -> Any:
        (x,), axes = node.inputs, node.attrs.axes
        if not count(x.shape) or (len(axes) > 1 and len(axes) < len(x.shape)):
            return None
        flat = x if len(axes) == 1 else reshape(x, (count(x.shape),))
        (axis,) = axes if len(axes) == 1 else (0,)
        extent = flat.shape[axis]
        dtype = dtypes.int32 if extent < 1 << 31 else dtypes.int64
        found = equal(flat, extreme(flat, axis, keepdims=True))
        if x.dtype.is_float:  # the extreme is NaN if an element is, and equal to none
            found = bitwise_or(found, not_equal(flat, flat))
        along = (extent, *(1,) * (len(flat.shape) - 1 - axis))
        places = iota.on(x, along, 0, dtype)
        least = min_(where(found, places, constant(extent, dtype)), axis)
        return cast(least if least.shape == node.shape else reshape(least, node.shape), dtypes.int64)

    return parts


# --- one number in each row -----------------------------------------------------------------------


def _take(node: Node) -> Any:
    x, indices = node.inputs
    known = one_in_each_row(x, indices, node.attrs) and in_range(indices, x.shape[-1])
    return None if known else checked_apart(node)


def _scatter_into(node: Node) -> Any:
    return _placed(node) or checked_apart(node)


def _placed(node: Node) -> Any:
    x, places, updates = node.inputs
    if not one_in_each_row(x, places, node.attrs.along) or x.dtype.is_complex:
        return None
    rows = (*x.shape[:-1], 1)
    if count(updates.shape) != count(rows) and count(updates.shape) != 1:
        return None
    value = reshape(updates, rows) if count(updates.shape) == count(rows) else reshape(updates, (1,) * len(rows))
    if node.attrs.add and not _zero(x):
        value = x + value
    if not in_range(places, x.shape[-1]):  # as when the loss was read before its gradient was asked for
        places = checked_places(node)
    here = equal(iota.on(x, x.shape[-1]), reshape(places, rows))
    return where(here, value, constant(0, x.dtype) if _zero(x) else x)


def _zero(x: Node) -> bool:
    while x.op is expand or x.op in SAME:
        (x,) = x.inputs
    return x.op is CONST and not x.attrs.array.any()


# --- recurrences ----------------------------------------------------------------------------------


def _recurrence(node: Node) -> Any:
    """Few long rows are gone over again and again by all lanes, rather than once by a few that wait for memory."""
    gains, x = node.inputs
    extent = x.shape[node.attrs.axis]
    if type(extent) is not int or extent < LONG_ROW or count(x.shape) >= extent * MANY_ROWS:
        return None
    return doubled(node.attrs, gains, x)


# --- products of integers -------------------------------------------------------------------------


def _integer_product(node: Node) -> Any:
    """Sums down columns: rows of the second factor are read as vectors, as they lie."""
    x, y = node.inputs
    if not node.dtype.is_integer or y.shape[-1] < COLUMNS or not count(node.shape):
        return None
    terms = reshape(x, (*x.shape, 1)) * reshape(y, (*y.shape[:-2], 1, *y.shape[-2:]))
    return cast(sum_(terms, -2), node.dtype)


RULES: dict[str, Callable[[Node], Any]] = {
    "scatter_into": _scatter_into, "take": _take, "argmax": _extreme_place(max_), "argmin": _extreme_place(min_),
    **dict.fromkeys(DIVIDING, by_known), "mul": multiple, "where": placed,
}  # fmt: skip
ON_BLOCKS: dict[str, Callable[[Node], Any]] = {
    "scatter_into": lambda node: _placed(node) or settled(node) or checked_apart(node),
    "recurrence": _recurrence,
}
ON_CORES: dict[str, Callable[[Node], Any]] = {
    "scatter_into": lambda node: in_parts(node) or _scatter_into(node), "remainder": left_on_cores,
    "matrix_product": _integer_product,
}  # fmt: skip
