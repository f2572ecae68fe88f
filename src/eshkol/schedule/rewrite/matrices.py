"""Linear algebra as loops, for machines that have no code of their own for it, GPUs: a pass over graphs.

Comes in: the results of a function, and the machine. Goes out: equivalent nodes, in which factorizations of real
matrices are loops over columns (`eliminations.py`), and eigenvalues and singular values loops of rotations
(`rotations.py`). Machines of cores, whose runtime does all this at once, and complex matrices stay as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from eshkol.atlas.machines import MachineDescription
from eshkol.graph.function import Function
from eshkol.graph.node import Node, make
from eshkol.ops.structural import PICK
from eshkol.schedule.kernels.kernel import composed
from eshkol.schedule.rewrite import eliminations, rotations
from eshkol.schedule.rewrite.walk import New, again, in_order, walked

RULES: dict[str, Callable[[Node], Any]] = {**eliminations.RULES, **rotations.RULES, "pinv": composed}
"""What a node of these names becomes; a tuple for several results."""
AGAIN = ("pinv", "expm", "expm_frechet")  # whose parts are such nodes themselves


def eliminate(results: Sequence[Node], target: MachineDescription) -> list[Node]:
    """The results, of loops in the place of linear algebra."""
    if not target.blocks:
        return list(results)
    order = in_order(results)
    if not any(node.op.name in RULES or _bodies(node) for node in order):
        return list(results)
    several: dict[Node, tuple[Node, ...]] = {}  # the results of what has more than one

    def looped(node: Node, new: New) -> Any:
        if node.data is not None:
            return None
        if node.op is PICK and node.inputs[0] in several:
            return several[node.inputs[0]][node.attrs.place]
        found = again(node, new)
        if node.op.name in RULES and not found.inputs[0].dtype.is_complex:
            made = RULES[node.op.name](found)
            if not isinstance(made, tuple):
                return eliminate([made], target)[0] if node.op.name in AGAIN else made
            several[node] = made
        elif bodies := _bodies(node):
            made_of = {name: _eliminated(body, target) for name, body in bodies.items()}
            if any(made_of[name] is not body for name, body in bodies.items()):
                return make(found.op, found.inputs, found.attrs._replace(**made_of))
        return found

    return walked(results, order, looped)


def _bodies(node: Node) -> dict[str, Function]:
    fields: dict[str, Any] = getattr(node.attrs, "_asdict", dict)() if node.data is None else {}
    return {name: f for name, f in fields.items() if isinstance(f, Function)}


def _eliminated(function: Function, target: MachineDescription) -> Function:
    results = eliminate(function.results, target)
    same = all(a is b for a, b in zip(results, function.results, strict=True))
    return function if same else Function(function.params, tuple(results), function.scope)
