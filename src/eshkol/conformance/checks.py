"""One sample of a row on a machine: computed there, forward or its gradient, and compared with the interpreter.

Comes in: a row, a sample and a dtype. Goes out: an `Outcome`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from eshkol.conformance.outcomes import Outcome, outcome_of
from eshkol.conformance.samples import (
    Array,
    arguments,
    arrays_in,
    as_buffer,
    cases,
    close,
    computed,
    flat,
    refilled,
    rng_of,
)
from eshkol.errors import DerivativeError
from eshkol.graph import derive, interpret
from eshkol.graph.node import Node, Scope, mark
from eshkol.ops import dtypes
from eshkol.ops.dtypes import DType
from eshkol.ops.row import Op, Sample
from eshkol.schedule.check.agreement import difference
from eshkol.tensors.devices import device
from eshkol.tensors.make import tensor
from eshkol.tensors.value import Tensor, operate


@dataclass(frozen=True, slots=True)
class Case:
    """A sample of a row in a dtype."""

    op: Op
    number: int
    sample: Sample
    dtype: DType

    @property
    def name(self) -> str:
        return f"{self.op.name} sample {self.number} {self.dtype}"

    def arguments(self) -> list[Any]:
        return arguments(self.sample, self.dtype, rng_of(self.op.name, self.number, self.dtype))


def cases_of(op: Op) -> list[Case]:
    """All samples of a row in all dtypes that it takes; those with float32 first."""
    found = [Case(op, *case) for case in cases(op)]
    return sorted(found, key=lambda case: (case.number, case.dtype is not dtypes.float32))


def gradient_case(op: Op) -> Case | None:
    """The sample that a row is differentiated at; none where it is not."""
    if "float" not in op.dtypes or not op.inputs or op.random:
        return None
    return next((c for c in cases_of(op) if c.dtype is dtypes.float64), None)


def forward(case: Case, machine: str) -> Outcome:
    """The results of a row on a machine, against the interpreter's."""
    return outcome_of(case.name, "forward", lambda: _forward(case, machine))


def gradient(case: Case, machine: str) -> Outcome:
    """The gradient of a weighted sum of all results on a machine, against the interpreter's."""
    return outcome_of(case.name, "gradient", lambda: _gradient(case, machine))


def _forward(case: Case, machine: str) -> None:
    op, sample, args = case.op, case.sample, case.arguments()
    with device(machine):
        tensors = [tensor(a) for a in arrays_in(args)]
        found = flat(operate(op, tuple(refilled(args, tensors)), dict(sample.attrs)))
        results = [np.asarray(x) for x in found]
    away = {x.device for x in found if isinstance(x, Tensor)} - {machine}
    assert not away, f"a result is on {away}"
    if op.random:
        return
    for got, wanted in zip(results, computed(op, args, sample.attrs), strict=True):
        close(got, wanted, op.tolerance)


def _gradient(case: Case, machine: str) -> None:
    op, sample, args = case.op, case.sample, case.arguments()
    with device(machine):
        leaves = [tensor(a, requires_grad=a.dtype == np.float64) for a in arrays_in(args)]
        results = flat(operate(op, tuple(refilled(args, leaves)), dict(sample.attrs)))
        varying = [r for r in results if isinstance(r, Tensor) and r.requires_grad]
        if not varying or any(r.dtype.is_complex for r in varying):
            return
        try:
            weighted = [(r * tensor(w)).sum() for r, w in zip(varying, _weights(case, varying), strict=True)]
            sum(weighted[1:], weighted[0]).backward()
        except DerivativeError:  # of what is constant between steps
            return
        got = [None if x.grad is None else x.grad.numpy() for x in leaves if x.requires_grad]
    nodes = _gradients(case, args)
    wanted = interpret.evaluate(nodes)
    finite = [np.abs(w[np.isfinite(w)]) for w in wanted]
    largest = max((float(np.max(f, initial=0.0)) for f in finite), default=0.0)
    found = [np.zeros_like(other) if one is None else one for one, other in zip(got, wanted, strict=True)]
    try:
        for one, other in zip(found, wanted, strict=True):
            close(one, other, op.tolerance, largest)
    except AssertionError:  # what nearly cancels moves as far by rounding alone
        if difference(nodes, {}, wanted, found) is not None:
            raise


def _weights(case: Case, results: Sequence[Any]) -> list[Array]:
    """Weights of the results: with them gradients do not cancel, as those of squares do after a norm."""
    rng = rng_of(case.op.name, "weights")
    return [
        np.asarray(rng.uniform(0.5, 1.5, r.shape) * rng.choice([-1, 1], r.shape)).astype(r.dtype.numpy) for r in results
    ]


def _gradients(case: Case, args: list[Any]) -> list[Node]:
    """The same gradients, for the interpreter of the graph."""
    scope = Scope("grad", "conformance")
    inputs = [as_buffer(a) for a in arrays_in(args)]
    marked = [mark(x, scope) if x.dtype is dtypes.float64 else x for x in inputs]
    outputs = flat(case.op(*refilled(args, marked), **case.sample.attrs))
    varying = [o for o in outputs if scope in o.scopes and o.dtype.differentiable]
    weights = dict(zip(varying, _weights(case, varying), strict=True))
    cotangents = [as_buffer(weights[o]) if o in weights else None for o in outputs]
    varied = [x for x in marked if x.dtype is dtypes.float64]
    found = derive.vjp(outputs, varied, scope)(cotangents)
    return [derive.zeros(x) if f is None else f for f, x in zip(found, varied, strict=True)]
