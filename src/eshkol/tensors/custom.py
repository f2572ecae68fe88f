"""Derivatives that users give themselves, and memory traded for time: `custom_jvp`, `custom_vjp`, `checkpoint`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import update_wrapper, wraps
from typing import Any

from eshkol.errors import DerivativeError, TensorError
from eshkol.graph import custom
from eshkol.graph.derive import zeros
from eshkol.graph.function import trace
from eshkol.graph.node import Node, here
from eshkol.ops.row import Aval
from eshkol.tensors import pytree
from eshkol.tensors.transforms import nodes_of, results_of
from eshkol.tensors.value import wrapped

Code = Callable[..., Any]


class custom_jvp:
    """A function with a derivative of its own, in both directions: `rule(primals, tangents)` gives (value, tangent).

    >>> @ek.custom_jvp
    ... def f(x): return x.log1p()
    >>> @f.defjvp
    ... def rule(primals, tangents): return f(*primals), tangents[0] / (1 + primals[0])
    """

    def __init__(self, function: Code) -> None:
        self.function, self.rule = function, None
        update_wrapper(self, function, updated=())

    rule: Code | None

    def defjvp(self, rule: Code) -> Code:
        """Give the derivative; may be used as a decorator."""
        self.rule = rule
        return rule

    def __call__(self, *args: Any) -> Any:
        if self.rule is None:
            raise DerivativeError(f"{self.function.__name__} has no derivative rule yet", hint="give it with defjvp")
        inputs, tree = nodes_of(args, "the arguments of a custom_jvp function")
        results, out_tree = results_of(self.function, args, {})
        return out_tree.build(wrapped(custom.custom(results, inputs, _Forward(self.rule, tree, out_tree))))


class _Forward:
    """A user's JVP over nodes."""

    def __init__(self, rule: Code, tree: pytree.Tree, out_tree: pytree.Tree) -> None:
        self.rule, self.tree, self.out_tree = rule, tree, out_tree

    def jvp(self, inputs: Sequence[Node], tangents: Sequence[Node | None]) -> list[Node]:
        primals = self.tree.build(wrapped(list(inputs)))
        moved = [zeros(x) if t is None else t for t, x in zip(tangents, inputs, strict=True)]
        given = self.rule(primals, self.tree.build(wrapped(moved)))
        if not (isinstance(given, tuple) and len(given) == 2):
            raise TensorError("the rule of custom_jvp gives a pair (value, tangent)", span=here())
        found, found_tree = nodes_of(given[1], "the tangent of a custom_jvp rule")
        if found_tree != self.out_tree:
            raise TensorError(f"the rule's tangent has structure {found_tree}, the value {self.out_tree}", span=here())
        return found


class custom_vjp:
    """A function whose reverse derivative is given.

    `forward(*args)` gives (value, residuals); `backward(residuals, cotangent)` the cotangents of all arguments.
    """

    def __init__(self, function: Code) -> None:
        self.function = function
        self.forward: Code | None = None
        self.backward: Code | None = None
        update_wrapper(self, function, updated=())

    def defvjp(self, forward: Code, backward: Code) -> None:
        """Give both halves of the derivative."""
        self.forward, self.backward = forward, backward

    def __call__(self, *args: Any) -> Any:
        if self.forward is None or self.backward is None:
            raise DerivativeError(f"{self.function.__name__} has no derivative rule yet", hint="give it with defvjp")
        inputs, tree = nodes_of(args, "the arguments of a custom_vjp function")
        results, out_tree = results_of(self.function, args, {})
        return out_tree.build(
            wrapped(custom.custom(results, inputs, _Reverse(self.forward, self.backward, tree, out_tree)))
        )


class _Reverse:
    """A user's VJP over nodes."""

    def __init__(self, forward: Code, backward: Code, tree: pytree.Tree, out_tree: pytree.Tree) -> None:
        self.forward, self.backward, self.tree, self.out_tree = forward, backward, tree, out_tree
        self.residual_tree = pytree.LEAF

    def jvp(self, inputs: Sequence[Node], tangents: Sequence[Node | None]) -> Sequence[Node]:
        given = self.forward(*self.tree.build(wrapped(list(inputs))))
        if not (isinstance(given, tuple) and len(given) == 2):
            raise TensorError("the forward half of custom_vjp gives a pair (value, residuals)", span=here())
        results, _ = nodes_of(given[0], "the value of custom_vjp")
        residuals, self.residual_tree = nodes_of(given[1], "the residuals of custom_vjp")
        moved = [zeros(x) if t is None else t for t, x in zip(tangents, inputs, strict=True)]
        return custom.only_transposed(self, moved, residuals, [Aval(r.shape, r.dtype) for r in results])

    def vjp(self, residuals: Sequence[Node], cotangents: Sequence[Node]) -> list[Any]:
        given = self.backward(
            self.residual_tree.build(wrapped(list(residuals))), self.out_tree.build(wrapped(list(cotangents)))
        )
        if self.tree.kind is tuple and len(self.tree.children) == 1 and not isinstance(given, tuple):
            given = (given,)
        found, found_tree = nodes_of(given, "the cotangents of custom_vjp")
        if found_tree != self.tree:
            raise TensorError(f"the cotangents have structure {found_tree}, the arguments {self.tree}", span=here())
        return list(found)


def checkpoint(function: Code) -> Code:
    """The function, computed again for its derivative instead of keeping what is computed within."""

    @wraps(function)
    def transformed(*args: Any) -> Any:
        inputs, tree = nodes_of(args, "the arguments of a checkpointed function")
        trees: list[pytree.Tree] = []

        def run(*nodes: Node) -> list[Node]:
            results, out_tree = results_of(function, tree.build(wrapped(list(nodes))), {})
            trees.append(out_tree)
            return results

        traced, captures = trace(run, [Aval(x.shape, x.dtype) for x in inputs], f"checkpoint of {function.__name__}")
        return trees[0].build(wrapped(custom.checkpoint(traced, [*inputs, *captures])))

    return transformed
