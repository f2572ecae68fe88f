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
from eshkol.ops.row import HOST, STRUCTURE, Aval, HasAval, Jvp, Linear, Op, Pull, row
from eshkol.ops.shapes import same

_numbers = itertools.count()


class Forward(Protocol):
    """A derivative of the user's: the tangents of the results; None where an input does not vary, or one is zero."""

    def jvp(self, inputs: Sequence[Node], tangents: Sequence[Any]) -> Sequence[Any]: ...


class Backward(Protocol):
    """The backward half of one: the cotangents of the inputs."""

    def vjp(self, residuals: Sequence[Node], cotangents: Sequence[Node]) -> Sequence[Any]: ...


class Custom(NamedTuple):
    results: int  # how many inputs are the results
    rule: Any


def _infer_results(a: Any, *inputs: HasAval) -> tuple[Aval, ...]:
    return tuple(Aval(x.shape, x.dtype) for x in inputs[: a.results])


def custom(results: Sequence[Node], inputs: Sequence[Node], rule: Forward) -> tuple[Node, ...]:
    """The results, which from now on vary with the inputs as the rule says."""
    return picks(make(CUSTOM, (*results, *inputs), Custom(len(results), rule)))


def _jvp_custom(a: Custom, result: Any, inputs: Sequence[Node], tangents: Sequence[Any]) -> Sequence[Any]:
    found: Sequence[Any] = a.rule.jvp(inputs[a.results :], tangents[a.results :])
    return found


class _Examples:
    """A batch seen as one example: what a rule for one example is given, and how its results become a batch's."""

    def __init__(self, size: int) -> None:
        self.size, self.scope = size, Scope("trace", "vmap of a custom derivative")
        self.wide: dict[Node, Node] = {}

    def one(self, x: Node, is_batched: bool) -> Node:
        if not is_batched:
            return x
        found = placeholder(Aval(x.shape[1:], x.dtype), self.scope)
        self.wide[found] = x
        return found

    def all(self, results: Sequence[Any]) -> list[Any]:
        live = [r for r in results if r is not None]
        pairs = zip(batch(live, self.wide, self.scope), live, strict=True)
        feed = iter([w if w is not None else repeated(r, self.size) for w, r in pairs])
        self.scope.open = False
        return [None if r is None else next(feed) for r in results]


class _Batched:
    """A rule for one example, used for each example of a batch."""

    def __init__(self, rule: Forward, is_batched: Sequence[bool]) -> None:
        self.rule, self.is_batched = rule, is_batched

    def jvp(self, inputs: Sequence[Node], tangents: Sequence[Any]) -> Sequence[Any]:
        examples = _Examples(next(x.shape[0] for x, b in zip(inputs, self.is_batched, strict=True) if b))
        ones = [examples.one(x, b) for x, b in zip(inputs, self.is_batched, strict=True)]
        # Tangents of what is not batched may still differ from example to example.
        moving = [
            None if t is None else examples.one(t if b else repeated(t, examples.size), True)
            for t, b in zip(tangents, self.is_batched, strict=True)
        ]
        return examples.all(self.rule.jvp(ones, moving))


def _batch_custom(a: Custom, inputs: Sequence[Node], is_batched: Sequence[bool]) -> tuple[Node, ...]:
    size = next(x.shape[0] for x, b in zip(inputs, is_batched, strict=True) if b)
    results = [x if b else repeated(x, size) for x, b in zip(inputs[: a.results], is_batched, strict=False)]
    given = is_batched[a.results :]
    if not any(given):
        return tuple(results)
    return custom(results, inputs[a.results :], _Batched(a.rule, given))


CUSTOM: Op = row(Op(
    name="custom", doc="Values with a derivative of the user's own.", function=None, group=STRUCTURE, method=False,
    shared=False, infer=_infer_results, reference=lambda a, *arrays: arrays[: a.results], derivative=Jvp(_jvp_custom),
    batch=_batch_custom, lower=HOST, blocked=lambda a: a.results,
))  # fmt: skip


# --- a linear map of which only the transpose is known ---------------------------------------------


class Known(NamedTuple):
    rule: Any
    tangents: int  # the first inputs; residuals follow
    avals: tuple[Aval, ...]


def only_transposed(
    rule: Backward, tangents: Sequence[Node], residuals: Sequence[Node], avals: Sequence[Aval]
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

    def __init__(self, rule: Backward, tangents: Sequence[bool], residuals: Sequence[bool]) -> None:
        self.rule, self.tangents, self.residuals = rule, tangents, residuals

    def vjp(self, residuals: Sequence[Node], cotangents: Sequence[Node]) -> list[Any]:
        examples = _Examples(cotangents[0].shape[0])
        ones = [examples.one(x, b) for x, b in zip(residuals, self.residuals, strict=True)]
        given = examples.all(self.rule.vjp(ones, [examples.one(ct, True) for ct in cotangents]))
        # What all examples share gets the cotangents of all.
        return [ct if b or ct is None else sum_to(ct, ct.shape[1:]) for ct, b in zip(given, self.tangents, strict=True)]


def _batch_known(a: Known, inputs: Sequence[Node], is_batched: Sequence[bool]) -> tuple[Node, ...]:
    size = next(x.shape[0] for x, b in zip(inputs, is_batched, strict=True) if b)
    rule = _BatchedBackward(a.rule, is_batched[: a.tangents], is_batched[a.tangents :])
    avals = [Aval((size, *v.shape), v.dtype) for v in a.avals]
    return only_transposed(rule, inputs[: a.tangents], inputs[a.tangents :], avals)


BACKWARD: Op = row(Op(
    name="backward_only", doc="A linear map of which only the transpose is known.", function=None, group=STRUCTURE,
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
    shared=False, group=STRUCTURE, method=False,
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
    name="checkpoint", doc="Values whose derivative computes them again.", function=None, group=STRUCTURE, method=False,
    shared=False,
    infer=_infer_results, reference=lambda a, *arrays: arrays[: a.results], derivative=Jvp(_jvp_checkpoint),
    batch=_batch_checkpoint, lower=HOST, blocked=lambda a: a.results,
))  # fmt: skip
