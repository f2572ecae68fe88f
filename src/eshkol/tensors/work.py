"""How many floating-point operations values take, counted in the graph before anything is computed.

A product of matrices counts 2·m·n·k, a convolution likewise; other ops one for each element they make or read. Moving
elements, comparing and integers count nothing; rows that take other work say how much. A loop of known length counts
its body as often as it runs, another once, and a branch the longer way.
"""

from __future__ import annotations

from collections.abc import Iterable

from eshkol.graph.node import topological
from eshkol.graph.work import operations as of_node
from eshkol.tensors.value import Tensor


def operations(results: Iterable[Tensor], inputs: Iterable[Tensor] = ()) -> int:
    """The operations that lead from some tensors to others; nothing is computed."""
    known = {x._node for x in inputs}
    order = topological(
        [r._node for r in results],
        through=lambda n: () if n in known or n.data is not None else n.inputs,
    )
    return sum(of_node(n) for n in order if n not in known and n.data is None)
