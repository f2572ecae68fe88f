"""Patterns of sparse matrices by counts, sums and sorts, for machines that have no code of their own for them: GPUs.

Comes in: a node (`matrices.py` finds them). Goes out: equivalent nodes. Each row begins somewhere among the stored
elements; how many have begun up to an element, minus one, is its row. A pattern that is none stops with an error.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from eshkol.graph.node import Node, constant
from eshkol.ops import dtypes
from eshkol.ops.elementwise import greater, not_equal
from eshkol.ops.indexing import position, scatter_into, take_along
from eshkol.ops.joining import along
from eshkol.ops.movement import expand
from eshkol.ops.reductions import any_
from eshkol.ops.scans import cumsum
from eshkol.ops.sorting import argsort
from eshkol.ops.sparse import strange_pointers
from eshkol.schedule.rewrite.eliminations import demanded


def _begun(places: Node, extent: int) -> Any:
    """How many of the places are not after each of so many."""
    lead = len(places.shape) - 1
    none, one = (expand(constant(k, dtypes.int64), (*places.shape[:-1], n)) for k, n in ((0, extent), (1, 1)))
    ones = expand(one, places.shape)
    return cumsum(scatter_into(none, places, ones, lead, True, lead), lead)


def _rows(pointers: Node, count: int) -> Any:
    last = pointers.ndim - 1
    ends = along(pointers, last, 1, pointers.shape[last])
    falling = any_(greater(along(pointers, last, 0, pointers.shape[last] - 1), ends), last)
    first, total = (along(pointers, last, k, k + 1) for k in (0, pointers.shape[last] - 1))
    wrong = any_(not_equal(first, 0), last) | any_(not_equal(total, count), last) | falling
    ends = demanded(ends, wrong, strange_pointers(count))
    return along(_begun(ends, count + 1), last, 0, count)


def _csr_rows(node: Node) -> Any:
    return _rows(node.inputs[0], node.attrs.stored)


def _csr_turned(node: Node) -> tuple[Node, ...]:
    indices, pointers = node.inputs
    last, columns = indices.ndim - 1, node.attrs.columns
    found = position(indices, columns, wrap=False)
    order = argsort(found, last)
    return order, take_along(_rows(pointers, indices.shape[last]), order, last), _begun(found + 1, columns + 1)


RULES: dict[str, Callable[[Node], Any]] = {"csr_rows": _csr_rows, "csr_turned": _csr_turned}
