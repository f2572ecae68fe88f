"""Linear algebra as loops and other rows, for machines that have no code of their own for it, GPUs: a pass over graphs.

Comes in: the results of a function, and the machine. Goes out: equivalent nodes, in which factorizations of
matrices are loops over columns (`eliminations.py`), eigenvalues and singular values of real ones loops of rotations
(`rotations.py`), patterns of sparse matrices counts and sorts (`sparse.py`), and convolutions and scatters of complex
numbers those of their parts (`parted.py`). Machines of cores, whose runtime does all this at once, stay as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from eshkol.atlas.machines import MachineDescription
from eshkol.graph.node import Node
from eshkol.ops.inverses import nearest_by_inverse
from eshkol.ops.structural import PICK
from eshkol.schedule.kernels.kernel import composed, is_complex
from eshkol.schedule.rewrite import eliminations, parted, rotations, sparse
from eshkol.schedule.rewrite.walk import New, again, in_order, walked

Rules = dict[str, Callable[[Node], Any]]
"""What a node of these names becomes; a tuple for several results."""
_NEAREST: Rules = {"matrix_lstsq": lambda node: nearest_by_inverse(node.attrs, *node.inputs)}
REAL: Rules = {
    **eliminations.RULES, **rotations.RULES, **sparse.RULES, **_NEAREST, "pinv": composed, "cofactor": composed,
}  # fmt: skip
COMPLEX: Rules = {**eliminations.RULES, **parted.RULES, **_NEAREST}
AGAIN = ("matrix_lstsq", "pinv", "cofactor")  # whose parts are such nodes themselves


def _rule(node: Node) -> Callable[[Node], Any] | None:
    return (COMPLEX if is_complex(node) else REAL).get(node.op.name)


def eliminate(results: Sequence[Node], target: MachineDescription) -> list[Node]:
    """The results, of loops in the place of linear algebra."""
    if not target.blocks:
        return list(results)
    order = in_order(results)
    if not any(map(_rule, order)):
        return list(results)
    several: dict[Node, tuple[Node, ...]] = {}  # the results of what has more than one

    def looped(node: Node, new: New) -> Any:
        if node.data is not None:
            return None
        if node.op is PICK and node.inputs[0] in several:
            return several[node.inputs[0]][node.attrs.place]
        found = again(node, new)
        if rule := _rule(node):
            made = rule(found)
            if not isinstance(made, tuple):
                return eliminate([made], target)[0] if node.op.name in AGAIN else made
            several[node] = made
        return found

    return walked(results, order, looped)
