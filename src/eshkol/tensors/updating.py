"""`Update`: tensors that a compiled function gives new values, in their own memory where nothing else sees it.

Comes in: a function of values, of tensors that it only reads, and of numbers, which gives the next values; then, at
each call, the handles of the tensors themselves. An optimizer does nothing else for hundreds of tensors in every step,
so nothing is made for a tensor that keeps its memory: its node, and its mark if it requires grad, stay, and hold the
new value. That is seen by nothing else, because it is done only where nothing else refers to node, mark or array. Other
tensors are given new nodes, and whoever holds the old ones keeps the old values.

The caller keeps Ctrl-C away while a call is under way (`support/interrupts.py`).
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from eshkol.errors import EshkolError
from eshkol.graph.node import HOST, Node, buffers
from eshkol.runtime import front
from eshkol.schedule.run import execute
from eshkol.tensors import pytree
from eshkol.tensors.holding import Taken
from eshkol.tensors.jit import Traced, jit
from eshkol.tensors.tape import TAPE
from eshkol.tensors.value import Tensor

KEPT = 8  # traces: of other numbers that are part of the computation, and of other shapes


class Update:
    """A function `(values, given, *numbers) → values`, both lists of tensors, as a change of tensors in place.

    Floats among the numbers are inputs of what is compiled; everything else is part of it.
    """

    _lock = threading.Lock()  # guards what is kept

    def __init__(self, function: Callable[..., Sequence[Any]], name: str | None = None) -> None:
        self._jit = jit(function, donate=0, floats=True, name=name)
        self._traces: OrderedDict[Any, Traced] = OrderedDict()

    def __call__(self, tensors: Sequence[Tensor], given: Sequence[Tensor], *numbers: Any) -> None:
        """Give the tensors their next values; on an error they keep the old ones, unless these were overwritten."""
        leaves: list[Any] = []
        outline = pytree.outline(numbers, leaves)
        nodes, marks, own, read, said, arrays = front.held([*tensors], [*given], TAPE)
        if not _PLAIN.issuperset(map(type, leaves)) or any(node.scopes for node in (*nodes, *read)):
            self._by_values(tensors, given, numbers)  # within a transformation, say
            return
        signature: list[Any] = [outline, len(nodes), *said]
        for x in leaves:  # which of them are inputs is part of the key, and so is that True is not 1
            signature += (float,) if type(x) is float else (type(x), x)
        key = tuple(signature)
        found = self._traces.get(key)
        if found is None:
            found = self._jit.traced([*map(Tensor, nodes)], [*given], *numbers)
            with self._lock:
                self._traces[key] = found
                if len(self._traces) > KEPT:
                    self._traces.popitem(last=False)
        floats = [np.array(x) for x in leaves if type(x) is float]
        self._run(found, tensors, nodes, marks, own, read, arrays, floats)

    def _run(
        self, found: Traced, tensors: Sequence[Tensor], nodes: list[Node], marks: list[bool], own: list[int],
        read: list[Node], known: list[Any] | None, numbers: list[Any],
    ) -> None:  # fmt: skip
        if known is None or found.needs:
            machine, arrays = execute.values_of([*nodes, *read, *found.needs])
        else:
            machine, arrays = execute.Machines.named(HOST), known
        arrays[len(nodes) + len(read) : len(nodes) + len(read)] = numbers
        for k in own:
            nodes[k].data = None
        try:
            results = execute.run_compiled(found.compiled, arrays, machine, own)
        except BaseException as error:
            if isinstance(error, EshkolError) and error.donated_kept:
                for k in own:
                    nodes[k].data = arrays[k]
            raise
        for k in own:
            nodes[k].data = results[k]
            if marks[k]:
                tensors[k]._node.data = results[k]
        if len(own) < len(nodes):
            kept = set(own)
            for k, node in enumerate(buffers(results, found.dtypes)):
                if k not in kept:
                    tensors[k]._become(node)
                    if marks[k]:
                        tensors[k]._mark()

    def _by_values(self, tensors: Sequence[Tensor], given: Sequence[Tensor], numbers: tuple[Any, ...]) -> None:
        taken = Taken(tensors)
        try:
            values = self._jit(taken.values(), [*given], *numbers)
        except BaseException:
            taken.put_back()
            raise
        taken.put(values)


def trained(tensors: list[Tensor]) -> list[bool]:
    """For each, whether it has a gradient and requires one."""
    return front.trained(tensors, TAPE)


def spend(tensors: list[Tensor], gradients: list[Tensor], kind: type[Tensor]) -> None:
    """Let the gradients of tensors be of a kind that says that they were used."""
    front.spend(tensors, gradients, kind)


_PLAIN = {float, int, bool, str, type(None)}
