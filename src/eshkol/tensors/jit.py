"""`jit`: a function traced once for each structure, shapes and dtypes of its arguments, and then run as a plan.

The function runs on placeholders; what it builds becomes a function of the graph, whose plan is kept. Tensors and
arrays among the arguments are its inputs; everything else (Python numbers too) belongs to the key, so another value
traces again. Tensors that the function captures are constants. Within `grad`, `vmap` or on tensors that require grad
the traced graph is used instead of the plan, so transformations go through.
"""

from __future__ import annotations

import os
import sys
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import update_wrapper
from typing import Any

import numpy as np

from eshkol.errors import TraceError
from eshkol.graph.function import Function, trace
from eshkol.graph.node import Node, buffer, here
from eshkol.ops.row import Aval
from eshkol.schedule import execute
from eshkol.tensors import devices, pytree
from eshkol.tensors.tape import TAPE
from eshkol.tensors.transforms import results_of
from eshkol.tensors.value import Tensor, as_node, wrapped

KEPT = 64  # traces of one function


@dataclass(frozen=True)
class _Traced:
    """One trace of a function."""

    function: Function
    captured: Sequence[Node]
    tree: pytree.Tree  # of the results


class jit:
    """The function, traced once and then run without Python; a decorator or a function.

    >>> @ek.jit
    ... def step(w, x, y): return w - 0.1 * ek.grad(loss)(w, x, y)
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        self._traces: OrderedDict[Any, _Traced] = OrderedDict()
        self._last: Any = None
        update_wrapper(self, function, updated=())  # the attributes are ours, also where `function` is like this

    @property
    def name(self) -> str:
        return f"jit of {getattr(self.function, '__name__', type(self.function).__name__)}"

    def __call__(self, *args: Any, **given: Any) -> Any:
        leaves, tree = pytree.flatten((args, given))
        inputs = [as_node(x) for x in leaves if _is_input(x)]
        avals = tuple(Aval(x.shape, x.dtype) for x in inputs)
        key = (tree, avals, tuple(_ASIDE if _is_input(x) else (type(x), x) for x in leaves))
        found = self._traces.get(key)
        if found is None:
            found = self._trace(key, leaves, tree, avals)
        else:
            self._traces.move_to_end(key)
        if any(s.open for x in inputs for s in x.scopes):
            return found.tree.build(wrapped(found.function(*inputs, *found.captured)))
        machine = devices.current_backend()
        arrays = execute.run(found.function, execute.realize([*inputs, *found.captured], machine), machine)
        nodes = [buffer(a, r.dtype) for a, r in zip(arrays, found.function.results, strict=True)]
        return found.tree.build(wrapped(nodes))

    def _trace(self, key: Any, leaves: Sequence[Any], tree: pytree.Tree, avals: Sequence[Aval]) -> _Traced:
        self._explain(key)
        trees: list[pytree.Tree] = []

        def run(*params: Node) -> list[Node]:
            feed = iter(params)
            args, given = tree.build(Tensor(next(feed)) if _is_input(x) else x for x in leaves)
            results, out_tree = results_of(self.function, args, given)
            trees.append(out_tree)
            return results

        function, captured = trace(run, avals, self.name)
        for node in captured:
            if TAPE in node.scopes:
                raise TraceError(
                    f"{self.name} captures a tensor that requires grad, whose later values it would not see",
                    span=here(), hint="pass it as an argument",
                )  # fmt: skip
        found = self._traces[key] = _Traced(function, captured, trees[0])
        if len(self._traces) > KEPT:
            self._traces.popitem(last=False)
        return found

    def _explain(self, key: Any) -> None:
        """Say what changed since the last trace, if that is asked for."""
        before, self._last = self._last, key
        if os.environ.get("ESHKOL_EXPLAIN") != "1":
            return
        if before is None:
            why = "it is called for the first time"
        elif before[0] != key[0]:
            why = f"the structure of the arguments changed from {before[0]} to {key[0]}"
        elif before[1] != key[1]:
            k = next(k for k, (a, b) in enumerate(zip(before[1], key[1], strict=True)) if a != b)
            (shape, dtype), (new_shape, new_dtype) = before[1][k], key[1][k]
            why = f"tensor {k} changed from {dtype}{list(shape)} to {new_dtype}{list(new_shape)}"
        else:
            old, new = next((a, b) for a, b in zip(before[2], key[2], strict=True) if a != b)
            why = f"an argument changed from {old[1]!r} to {new[1]!r} (pass a tensor if it changes often)"
        print(f"{self.name} is traced: {why}", file=sys.stderr)


_ASIDE = "input"  # stands in a key for what is an input


def _is_input(leaf: Any) -> bool:
    return isinstance(leaf, Tensor | np.ndarray | np.generic)
