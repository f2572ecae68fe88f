"""Derivatives that a user gives, and values that derivatives do not flow through.

`custom` holds the results of a function beside its inputs: its value is the results, its derivative is the user's rule
of the inputs. `checkpoint` does the same with a function that is computed again where its derivative is needed.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

from eshkol.errors import DerivativeError
from eshkol.graph import derive
from eshkol.graph.batch import batch
from eshkol.graph.function import Function, batched, repeated
from eshkol.graph.node import Current, Node, Scope, make, mark, picks, placeholder, span_of
from eshkol.ops.reductions import sum_to
from eshkol.ops.row import HOST, Aval, HasAval, Jvp, Linear, Op, Pull, row
from eshkol.ops.shapes import same

GROUP = "structure"
_numbers = itertools.count()


class Rule(Protocol):
    """A user's derivative; both methods work on nodes."""

    def jvp(self, inputs: Sequence[Node], tangents: Sequence[Any]) -> Sequence[Any]:
        """The tangents of the results; None where an input does not vary, or a result's tangent is zero."""

    def vjp(self, residuals: Sequence[Node], cotangents: Sequence[Node]) -> Sequence[Any]:
        """The cotangents of the inputs."""


class Custom(NamedTuple):
    results: int  # how many inputs are the results
    rule: Any


def _infer_results(a: Any, *inputs: HasAval) -> tuple[Aval, ...]:
    return tuple(Aval(x.shape, x.dtype) for x in inputs[: a.results])


def custom(results: Sequence[Node], inputs: Sequence[Node], rule: Rule) -> tuple[Node, ...]:
    """The results, which from now on vary with the inputs as the rule says."""
    return picks(make(CUSTOM, (*results, *inputs), Custom(len(results), rule)))


def _jvp_custom(a: Custom, result: Any, inputs: Sequence[Node], tangents: Sequence[Any]) -> Sequence[Any]:
    return a.rule.jvp(inputs[a.results :], tangents[a.results :])  # type: ignore[no-any-return]


class _Batched:
    """A rule for one example, used for each example of a batch."""

    def __init__(self, rule: Rule, is_batched: Sequence[bool]) -> None:
        self.rule, self.is_batched = rule, is_batched

    def jvp(self, inputs: Sequence[Node], tangents: Sequence[Any]) -> Sequence[Any]:
        scope = Scope("trace", "vmap of a custom derivative")
        wide: dict[Node, Node] = {}

        def narrow(x: Node, b: bool) -> Node:
            if not b:
                return x
            one = placeholder(Aval(x.shape[1:], x.dtype), scope)
            wide[one] = x
            return one

        ones = [narrow(x, b) for x, b in zip(inputs, self.is_batched, strict=True)]
        size = next(x.shape[0] for x, b in zip(inputs, self.is_batched, strict=True) if b)
        # Tangents of what is not batched may still differ from example to example.
        moving = [
            None if t is None else narrow(t if b else repeated(t, size), True)
            for t, b in zip(tangents, self.is_batched, strict=True)
        ]
        found = list(self.rule.jvp(ones, moving))
        live = [t for t in found if t is not None]
        results = iter(
            [w if w is not None else repeated(t, size) for w, t in zip(batch(live, wide, scope), live, strict=True)]
        )
        scope.open = False
        return [None if t is None else next(results) for t in found]


def _batch_custom(a: Custom, inputs: Sequence[Node], is_batched: Sequence[bool]) -> tuple[Node, ...]:
    size = next(x.shape[0] for x, b in zip(inputs, is_batched, strict=True) if b)
    results = [x if b else repeated(x, size) for x, b in zip(inputs[: a.results], is_batched, strict=False)]
    given = is_batched[a.results :]
    if not any(given):
        return tuple(results)
    return custom(results, inputs[a.results :], _Batched(a.rule, given))  # type: ignore[arg-type]


CUSTOM: Op = row(Op(
    name="custom", doc="Values with a derivative of the user's own.", function=None, group=GROUP, method=False,
    shared=False, infer=_infer_results, reference=lambda a, *arrays: arrays[: a.results], derivative=Jvp(_jvp_custom),
    batch=_batch_custom, lower=HOST, blocked=lambda a: a.results,
))  # fmt: skip


# --- a linear map of which only the transpose is known ---------------------------------------------


class Known(NamedTuple):
    rule: Any
    tangents: int  # the first inputs; residuals follow
    avals: tuple[Aval, ...]


def only_transposed(
    rule: Rule, tangents: Sequence[Node], residuals: Sequence[Node], avals: Sequence[Aval]
) -> tuple[Node, ...]:
    """Tangents of which nothing is known but how cotangents come back."""
    return picks(make(BACKWARD, (*tangents, *residuals), Known(rule, len(tangents), tuple(avals))))


def _transpose_known(a: Known, cotangents: Sequence[Any], linear: Sequence[bool], inputs: Sequence[Node]) -> list[Any]:
    cts = [derive.zeros(v) if c is None else c for c, v in zip(cotangents, a.avals, strict=True)]
    found = list(a.rule.vjp(inputs[a.tangents :], cts))
    return [*found, *([None] * (len(inputs) - a.tangents))]


def _forward_refused(*given: Any) -> Any:
    raise DerivativeError(
        "a function with custom_vjp has no forward derivative", span=span_of(Current.site),
        hint="use custom_jvp, which serves both directions",
    )  # fmt: skip


class _BatchedBackward:
    """The backward half of a rule for one example, used for each example of a batch."""

    def __init__(self, rule: Rule, tangents: Sequence[bool], residuals: Sequence[bool]) -> None:
        self.rule, self.tangents, self.residuals = rule, tangents, residuals

    def vjp(self, residuals: Sequence[Node], cotangents: Sequence[Node]) -> list[Any]:
        scope = Scope("trace", "vmap of a custom derivative")
        wide: dict[Node, Node] = {}

        def narrow(x: Node, b: bool) -> Node:
            if not b:
                return x
            one = placeholder(Aval(x.shape[1:], x.dtype), scope)
            wide[one] = x
            return one

        size = cotangents[0].shape[0]
        ones = [narrow(x, b) for x, b in zip(residuals, self.residuals, strict=True)]
        found = list(self.rule.vjp(ones, [narrow(ct, True) for ct in cotangents]))
        live = [ct for ct in found if ct is not None]
        results = [
            w if w is not None else repeated(ct, size) for w, ct in zip(batch(live, wide, scope), live, strict=True)
        ]
        scope.open = False
        feed = iter(results)
        given = [None if ct is None else next(feed) for ct in found]
        # What all examples share gets the cotangents of all.
        return [ct if b or ct is None else sum_to(ct, ct.shape[1:]) for ct, b in zip(given, self.tangents, strict=True)]


def _batch_known(a: Known, inputs: Sequence[Node], is_batched: Sequence[bool]) -> tuple[Node, ...]:
    size = next(x.shape[0] for x, b in zip(inputs, is_batched, strict=True) if b)
    rule = _BatchedBackward(a.rule, is_batched[: a.tangents], is_batched[a.tangents :])
    avals = [Aval((size, *v.shape), v.dtype) for v in a.avals]
    return only_transposed(rule, inputs[: a.tangents], inputs[a.tangents :], avals)  # type: ignore[arg-type]


BACKWARD: Op = row(Op(
    name="backward_only", doc="A linear map of which only the transpose is known.", function=None, group=GROUP,
    shared=False, method=False, infer=lambda a, *inputs: a.avals, reference=_forward_refused,
    derivative=Jvp(_forward_refused, _transpose_known), batch=_batch_known, lower=HOST,
))  # fmt: skip


# --- barrier, checkpoint -----------------------------------------------------------


class Barrier(NamedTuple):
    number: int


def _transpose_barrier(a: Barrier, ct: Any, k: int, x: Node) -> Any:
    return ct


def _batch_barrier(a: Barrier, inputs: Sequence[Node], is_batched: Sequence[bool]) -> Node:
    return make(BARRIER, (inputs[0],), a)


BARRIER: Op = row(Op(
    name="barrier", doc="x, told apart from what was computed before: what follows is computed again.", function=None,
    shared=False, group=GROUP, method=False,
    infer=same(), reference=lambda a, x: x, derivative=Linear(_transpose_barrier),
    batch=_batch_barrier, lower=Pull(lambda e, a, i, x: x(i)),
))  # fmt: skip


def barrier(x: Node) -> Node:
    """The same value as another node, of which everything that follows is computed anew."""
    return make(BARRIER, (x,), Barrier(next(_numbers)))


class Again(NamedTuple):
    results: int
    function: Function


def checkpoint(function: Function, inputs: Sequence[Node]) -> tuple[Node, ...]:
    """The function's results; for derivatives it is computed again, so nothing within is kept."""
    results = function(*inputs)
    return picks(make(CHECKPOINT, (*results, *inputs), Again(len(results), function)))


def _jvp_checkpoint(a: Again, result: Any, inputs: Sequence[Node], tangents: Sequence[Any]) -> list[Any]:
    scope = Scope("grad", "checkpoint")
    again = [barrier(x) for x in inputs[a.results :]]
    given = tangents[a.results :]
    marked = [x if t is None else mark(x, scope) for x, t in zip(again, given, strict=True)]
    found = derive.jvp(a.function(*marked), {x: t for x, t in zip(marked, given, strict=True) if t is not None}, scope)
    scope.open = False
    return list(found)


def _batch_checkpoint(a: Again, inputs: Sequence[Node], is_batched: Sequence[bool]) -> tuple[Node, ...]:
    size = next(x.shape[0] for x, b in zip(inputs, is_batched, strict=True) if b)
    given = is_batched[a.results :]
    if not any(given):
        return tuple(x if b else repeated(x, size) for x, b in zip(inputs[: a.results], is_batched, strict=False))
    function, _ = batched(a.function, given, size, force=[True] * a.results)
    return checkpoint(function, inputs[a.results :])


CHECKPOINT: Op = row(Op(
    name="checkpoint", doc="Values whose derivative computes them again.", function=None, group=GROUP, method=False,
    shared=False,
    infer=_infer_results, reference=lambda a, *arrays: arrays[: a.results], derivative=Jvp(_jvp_checkpoint),
    batch=_batch_checkpoint, lower=HOST, blocked=lambda a: a.results,
))  # fmt: skip
