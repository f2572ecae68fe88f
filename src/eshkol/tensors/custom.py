"""Derivatives that users give themselves, and memory traded for time: `custom_jvp`, `custom_vjp`, `checkpoint`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial, update_wrapper, wraps
from inspect import signature
from typing import Any

from eshkol.errors import DerivativeError, TensorError
from eshkol.graph import custom
from eshkol.graph.derive import zeros
from eshkol.graph.function import trace
from eshkol.graph.node import Node, here
from eshkol.ops.row import Aval
from eshkol.tensors import pytree
from eshkol.tensors.transforms import nodes_of, of_inputs, results_of
from eshkol.tensors.value import as_node, is_input, wrapped

Code = Callable[..., Any]


class _Custom:
    """A function with a rule of its own, and which of its arguments are passed on to the rule as they are."""

    def __init__(self, function: Code, nondiff_argnums: int | Sequence[int] = ()) -> None:
        self.function = function
        self.apart = (nondiff_argnums,) if isinstance(nondiff_argnums, int) else tuple(nondiff_argnums)
        update_wrapper(self, function, updated=())

    def __call__(self, *args: Any, **given: Any) -> Any:
        raise NotImplementedError  # each kind has its own

    def _divided(self, args: tuple[Any, ...], given: dict[str, Any]) -> tuple[list[Any], tuple[Any, ...], Code]:
        """The arguments that are passed on, those that are differentiated, and the function of the latter."""
        if given:
            bound = signature(self.function).bind(*args, **given)
            bound.apply_defaults()
            if bound.kwargs:
                raise DerivativeError(f"{self.function.__name__}: arguments by name alone have no derivative rule")
            args = bound.args
        for k in self.apart:
            if not -len(args) <= k < len(args):
                raise TensorError(f"{self.function.__name__}: there is no argument {k} among {len(args)}", span=here())
        places = sorted(k % len(args) for k in self.apart)
        kept = [args[k] for k in places]
        rest = tuple(arg for k, arg in enumerate(args) if k not in places)
        return kept, rest, lambda *others: self.function(*self._together(kept, others))

    def _together(self, kept: Sequence[Any], rest: Sequence[Any]) -> list[Any]:
        """All arguments in their order."""
        count = len(kept) + len(rest)
        places = sorted(k % count for k in self.apart)
        one, other = iter(kept), iter(rest)
        return [next(one) if k in places else next(other) for k in range(count)]


class custom_jvp(_Custom):
    """A function with a derivative of its own, in both directions: `rule(primals, tangents)` gives (value, tangent).

    Arguments whose places are in `nondiff_argnums` are not differentiated; the rule is given them in front.

    >>> @ek.custom_jvp
    ... def f(x): return x.log1p()
    >>> @f.defjvp
    ... def rule(primals, tangents): return f(*primals), tangents[0] / (1 + primals[0])
    """

    rule: Code | None = None

    def defjvp(self, rule: Code) -> Code:
        """Give the derivative; may be used as a decorator."""
        self.rule = rule
        return rule

    def defjvps(self, *rules: Code | None) -> None:
        """Give the derivative by each argument, `rule(tangent, value, *primals)`; None where there is none."""
        if self.apart:
            raise DerivativeError("defjvps knows no nondiff_argnums; use defjvp", span=here())

        def rule(primals: Any, tangents: Any) -> Any:
            value = self(*primals)
            parts = [r(t, value, *primals) for r, t in zip(rules, tangents, strict=True) if r is not None]
            return value, sum(parts[1:], parts[0]) if parts else value * 0

        self.rule = rule

    def __call__(self, *args: Any, **given: Any) -> Any:
        if self.rule is None:
            raise DerivativeError(f"{self.function.__name__} has no derivative rule yet", hint="give it with defjvp")
        kept, rest, function = self._divided(args, given)
        inputs, tree = nodes_of(rest, "the arguments of a custom_jvp function")
        results, out_tree = results_of(function, rest, {})
        rule = partial(self.rule, *kept) if kept else self.rule
        return out_tree.build(wrapped(custom.custom(results, inputs, _Forward(rule, tree, out_tree))))


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


class custom_vjp(_Custom):
    """A function whose reverse derivative is given.

    `forward(*args)` gives (value, residuals); `backward(residuals, cotangent)` the cotangents of all arguments, where
    None stands for zeros. Arguments whose places are in `nondiff_argnums` are not differentiated; `backward` is given
    them in front.
    """

    forward: Code | None = None
    backward: Code | None = None

    def defvjp(self, forward: Code, backward: Code) -> None:
        """Give both halves of the derivative."""
        self.forward, self.backward = forward, backward

    def __call__(self, *args: Any, **given: Any) -> Any:
        if self.forward is None or self.backward is None:
            raise DerivativeError(f"{self.function.__name__} has no derivative rule yet", hint="give it with defvjp")
        kept, rest, function = self._divided(args, given)
        inputs, tree = nodes_of(rest, "the arguments of a custom_vjp function")
        results, out_tree = results_of(function, rest, {})
        forward, backward = self.forward, self.backward
        if kept:
            backward = partial(self.backward, *kept)
            whole = self.forward
            forward = lambda *others: whole(*self._together(kept, others))
        return out_tree.build(wrapped(custom.custom(results, inputs, _Reverse(forward, backward, tree, out_tree))))


class _Reverse:
    """A user's VJP over nodes."""

    def __init__(self, forward: Code, backward: Code, tree: pytree.Tree, out_tree: pytree.Tree) -> None:
        self.forward, self.backward, self.tree, self.out_tree = forward, backward, tree, out_tree
        self.residual_tree = pytree.LEAF
        self.avals: list[Aval] = []

    def jvp(self, inputs: Sequence[Node], tangents: Sequence[Node | None]) -> Sequence[Node]:
        self.avals = [Aval(x.shape, x.dtype) for x in inputs]
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
        given = self._with_zeros(given)
        found, found_tree = nodes_of(given, "the cotangents of custom_vjp")
        if found_tree != self.tree:
            raise TensorError(f"the cotangents have structure {found_tree}, the arguments {self.tree}", span=here())
        return list(found)

    def _with_zeros(self, given: Any) -> Any:
        """Cotangents with zeros for the arguments that have None."""
        if not isinstance(given, tuple) or None not in [c if c is None else 0 for c in given]:
            return given
        feed, whole = iter(self.avals), []
        for child, cotangent in zip(self.tree.children, given, strict=False):
            like = [next(feed) for _ in range(child.leaves)]
            whole.append(child.build(wrapped([zeros(a) for a in like])) if cotangent is None else cotangent)
        return tuple(whole)


def checkpoint(function: Code | None = None, *, policy: Any = None, prevent_cse: bool = True) -> Code:
    """The function, computed again for its derivative instead of keeping what is computed within.

    Tensors among the arguments are what it is computed of; other arguments are passed on. There is one policy, to keep
    nothing; `prevent_cse` says nothing new, for what is computed again is never merged with what was computed before.
    """
    if policy is not None:
        raise TensorError(
            f"checkpoint keeps nothing of what is computed within; it has no policy {policy!r}", span=here(),
            hint="checkpoint the parts of the function that should be computed again, one by one",
        )  # fmt: skip
    if function is None:
        return partial(checkpoint, prevent_cse=prevent_cse)
    code: Code = function

    @wraps(code)
    def transformed(*args: Any, **given: Any) -> Any:
        leaves, tree = pytree.flatten((args, given))
        places = [k for k, x in enumerate(leaves) if is_input(x)]
        inputs = [as_node(leaves[k]) for k in places]
        trees: list[pytree.Tree] = []
        run, avals = of_inputs(code, leaves, tree, places, trees), [Aval(x.shape, x.dtype) for x in inputs]
        traced, captures = trace(run, avals, f"checkpoint of {code.__name__}")
        return trees[0].build(wrapped(custom.checkpoint(traced, [*inputs, *captures])))

    return transformed
