"""What a graph is but for its data, as text that another process writes alike: plans on disk are found by it.

Comes in: the results of a function and its parameters, before any pass. Goes out: an `Outline`: a text that says op by
op what is computed, with attributes, shapes and dtypes, which operands are the same, and which nodes the same line of
the user's asked for; and, by their numbers in it, those lines, and the arrays that the graph holds. The text says of
arrays what they hold, by a hash. A graph that it cannot describe in full has none.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np
from blake3 import blake3

from eshkol.graph.function import Function
from eshkol.graph.node import Node
from eshkol.ops.row import TABLE, Nested
from eshkol.ops.structural import BUFFER, CONST, PLACEHOLDER
from eshkol.schedule.plan.values import NotKept, as_json


class Outline:
    """A graph by its structure."""

    def __init__(self, results: Sequence[Node], params: Sequence[Node]) -> None:
        self.sites: list[Any] = []  # lines of the user's, by the numbers that they have in the text
        self.arrays: list[Any] = []  # what the graph holds, likewise
        self._numbers: dict[Any, int] = {}  # of lines
        self._functions: dict[Function, Any] = {}
        self.nodes = 0
        parts = self._described(results, params)
        self.text = repr(parts).encode()
        self._functions.clear()

    def number_of(self, site: Any) -> int:
        """The number of a line; -1 of none. What is made of numbers alone is found again, and may have another's."""
        return -1 if site is None else self._numbers.get(_identity(site), -1)

    def place_of(self, array: Any) -> int | None:
        """The number of an array that the graph holds; None where it is another."""
        return next((k for k, held in enumerate(self.arrays) if held is array), None)

    def _described(self, results: Sequence[Node], params: Sequence[Node]) -> list[Any]:
        number: dict[Node, int] = {}
        parts: list[Any] = [len(params)]
        for p in params:
            number[p] = len(number)
            parts.append((p.shape, p.dtype.name))
            if not all(type(extent) is int for extent in p.shape):
                raise NotKept("a size that is not known yet")
        stack = [*reversed(results)]
        while stack:
            node = stack[-1]
            if node in number:
                stack.pop()
                continue
            given = [number.get(x) for x in node.inputs]
            if None in given:
                stack += [x for x in reversed(node.inputs) if x not in number]
                continue
            stack.pop()
            number[node] = len(number)
            parts.append((node.op.name, self._attributes(node), self._site(node), *given))
        self.nodes += len(parts)
        parts.append([number[r] for r in results])
        return parts

    def _attributes(self, node: Node) -> Any:
        """The attributes of a node as far as they change what is computed, as text."""
        op, attrs = node.op, node.attrs
        if TABLE.get(op.name) is not op or op is PLACEHOLDER:
            raise NotKept(f"a {op.name}")
        if op is BUFFER:
            array = node.data
            if type(array) is not np.ndarray:
                raise NotKept("data that is not on the host")
            self.arrays.append(array)
            return node.shape, node.dtype.name, blake3(np.ascontiguousarray(array).tobytes()).hexdigest()
        if attrs is None:
            return None
        if op.shared or op is CONST:
            return json.dumps(as_json(attrs))
        if isinstance(op.lower, Nested):
            return json.dumps([self._function(a) if isinstance(a, Function) else as_json(a) for a in attrs])
        return json.dumps(as_json(getattr(attrs, "results", None)))

    def _function(self, function: Function) -> Any:
        """A function of the graph by its structure."""
        if function not in self._functions:
            self._functions[function] = ["function", repr(self._described(function.results, function.params))]
        return self._functions[function]

    def _site(self, node: Node) -> int:
        site = node.site
        if site is None:
            return -1
        key = _identity(site)
        found = self._numbers.get(key)
        if found is None:
            found = self._numbers[key] = len(self.sites)
            self.sites.append(site)
        return found


def _identity(site: Any) -> Any:
    """What a line is known by: code is compared by what it is, which takes long, and says where it stands by itself."""
    return (id(site[0]), site[1]) if type(site) is tuple else site
