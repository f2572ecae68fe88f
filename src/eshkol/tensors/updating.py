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
from sys import getrefcount
from typing import Any

import numpy as np

from eshkol.errors import EshkolError
from eshkol.graph.node import Node, buffers
from eshkol.schedule.run import execute
from eshkol.schedule.run.memory import exclusive
from eshkol.support.references import ALONE
from eshkol.tensors import pytree
from eshkol.tensors.holding import Taken, is_marked
from eshkol.tensors.jit import Traced, jit
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
        nodes, marks, own = _held(tensors)
        read = [t._node for t in given]
        if not _PLAIN.issuperset(map(type, leaves)) or any(node.scopes for node in (*nodes, *read)):
            self._by_values(tensors, given, numbers)  # within a transformation, say
            return
        signature: list[Any] = [outline, len(nodes)]
        for node in nodes:
            signature += (node.shape, node.dtype)
        for node in read:
            signature += (node.shape, node.dtype)
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
        self._run(found, tensors, nodes, marks, own, read, [np.array(x) for x in leaves if type(x) is float])

    def _run(
        self, found: Traced, tensors: Sequence[Tensor], nodes: list[Node], marks: list[bool], own: list[int],
        read: list[Node], numbers: list[Any],
    ) -> None:  # fmt: skip
        machine, arrays = execute.values_of([*nodes, *read, *found.needs])
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


_PLAIN = {float, int, bool, str, type(None)}


def _held(tensors: Sequence[Tensor]) -> tuple[list[Node], list[bool], list[int]]:
    """The nodes that hold the values, which tensors are marked, and the places of those that nothing else refers to."""
    nodes: list[Node] = []
    marks: list[bool] = []
    own: list[int] = []
    for k, tensor in enumerate(tensors):
        node = tensor._node
        marked = bool(node.scopes) and is_marked(tensor)
        alone = getrefcount(node) <= ALONE
        if marked:
            if alone:
                node.data = None  # it is its input's, which is about to change
            node = node.inputs[0]
            alone = alone and getrefcount(node) <= ALONE
        if alone and not node.inputs and exclusive(node):
            own.append(k)
        nodes.append(node)
        marks.append(marked)
    return nodes, marks, own
