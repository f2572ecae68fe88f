"""What an element of a node costs, in instructions: an estimate, made once for each op and dtypes."""

from __future__ import annotations

from typing import Any

from eshkol.atlas.isa import Group
from eshkol.atlas.table import ROWS
from eshkol.graph.node import Node
from eshkol.ops.dtypes import DType
from eshkol.ops.row import Pull
from eshkol.schedule.kernels.emit import Emitter
from eshkol.schedule.kernels.kernel import lowering
from eshkol.schedule.kernels.scalars import TYPES, Scalar

TRANSCENDENTAL = 24  # what an exponential or a sine counts
EXPANDED = 3  # what other instructions count that are said with several
DEAR = 20  # from which on a value is better kept than computed again
_found: dict[Any, int] = {}


def weight(node: Node) -> int:
    """The instructions of one element of an elementwise node, or of one that moves elements."""
    if not node.op.elementwise:
        return 2 + len(node.shape)  # for the index
    dtypes = tuple(x.dtype for x in node.inputs)
    key = (node.op, node.dtype, dtypes)
    found = _found.get(key)
    if found is None:
        found = _found[key] = _weighed(node, dtypes)
    return found


def dear(node: Node) -> bool:
    """Whether a node's elements are better kept than computed again."""
    return node.op.elementwise and weight(node) >= DEAR


def _weighed(node: Node, dtypes: tuple[DType, ...]) -> int:
    how = lowering(node)
    if not isinstance(how, Pull):
        return 0
    e = Emitter(())
    how.code(e, node.attrs, e.here, *(_Given(e, dtype) for dtype in dtypes))
    return max(1, sum(_counted(item.name) for item in (*e.prologue, *e.body)))


def _counted(name: str) -> int:
    row = ROWS[name]
    if row.group is Group.TRANSCENDENTAL:
        return TRANSCENDENTAL
    return 1 if row.expand is None else EXPANDED


class _Given:
    """An input that lies in a register."""

    def __init__(self, e: Emitter, dtype: DType) -> None:
        self.dtype, self.shape, self.size = dtype, (), 1
        parts = [Scalar(e, dtype.real, e.fresh(TYPES[dtype.real])) for _ in range(1 + dtype.is_complex)]
        self.scalar = e.pair(*parts) if dtype.is_complex else parts[0]

    def __call__(self, index: Any) -> Scalar:
        return self.scalar
