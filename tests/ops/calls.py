"""Calling ops of the table by name on arrays: their values, and the gradients of their sums."""

from __future__ import annotations

from typing import Any

import numpy as np
from op_harness import as_buffer, flat

from eshkol.graph import derive, interpret
from eshkol.graph.node import Node, Scope, mark
from eshkol.ops import TABLE


def called(name: str, args: tuple[Any, ...], attrs: dict[str, Any]) -> list[Node]:
    return flat(TABLE[name](*(as_buffer(np.asarray(x)) if isinstance(x, np.ndarray) else x for x in args), **attrs))


def value(name: str, *args: Any, **attrs: Any) -> Any:
    """The result of an op (or a tuple of them); arrays become tensors, anything else is passed on as it is."""
    found = interpret.evaluate(called(name, args, attrs))
    return found[0] if len(found) == 1 else tuple(found)


def gradient(name: str, *args: Any, **attrs: Any) -> Any:
    """The derivative of the sum of the (first) result with respect to every floating array."""
    scope = Scope("grad", "test")
    nodes = [as_buffer(x) if isinstance(x, np.ndarray) else x for x in args]
    nodes = [mark(x, scope) if isinstance(x, Node) and x.dtype.differentiable else x for x in nodes]
    inputs = [x for x in nodes if isinstance(x, Node) and scope in x.scopes]
    result = flat(TABLE[name](*nodes, **attrs))[0]
    ones = as_buffer(np.ones(result.shape, result.dtype.numpy))
    found = derive.vjp([result], inputs, scope)([ones])
    arrays = interpret.evaluate([derive.zeros(x) if f is None else f for f, x in zip(found, inputs, strict=True)])
    return arrays[0] if len(arrays) == 1 else tuple(arrays)
