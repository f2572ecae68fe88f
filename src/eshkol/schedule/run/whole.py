"""Graphs that a machine compiles as a whole: written as one text, compiled once, run on values that stay there.

Comes in: a function of the graph, a machine that says `whole_graphs`, and values. Goes out: results in the memory of
that machine. Before a graph is written, the passes over graphs that help such a machine go over it. Checks in the text
give the number of the first that failed, and the error is the one that every machine gives.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from eshkol.atlas.machines import MachineDescription
from eshkol.atlas.types import Type
from eshkol.errors import EshkolError, ExecutionFailed, NotANumberError, Span
from eshkol.graph.node import Node
from eshkol.ops.row import Aval, Parts
from eshkol.schedule.kernels.indices import INDEX_TRAP
from eshkol.schedule.kernels.kernel import composed, described
from eshkol.schedule.order import needed
from eshkol.schedule.rewrite.arrange import arrange
from eshkol.schedule.rewrite.decompose import RULES
from eshkol.schedule.rewrite.exponentials import exponentials
from eshkol.schedule.rewrite.factors import share_factors
from eshkol.schedule.rewrite.matrices import eliminate
from eshkol.schedule.rewrite.simplify import simplify
from eshkol.schedule.rewrite.walk import New, Pass, again, everywhere, in_order, walked
from eshkol.schedule.run.failures import failure, where_asked
from eshkol.schedule.run.resident import Machine, Resident, Stored, on_machine, stored_as
from eshkol.schedule.whole.program import INFINITY, NAN, Check, program
from eshkol.support import flags

PARTS = ("argmax", "argmin")  # whose places are found by comparing, which reductions do at once


def in_parts(results: Sequence[Node], target: MachineDescription) -> list[Node]:
    """The results, of nodes that are computed as their parts."""

    def parts(node: Node, new: New) -> Node | None:
        if node.data is not None:
            return node
        found = again(node, new)
        if type(node.op.lower) is Parts:
            return composed(found)
        return (RULES[node.op.name](found) if node.op.name in PARTS else None) or found

    return walked(results, in_order(results), parts)


PASSES: tuple[tuple[str, Pass], ...] = (
    ("exponentials", everywhere(exponentials)),
    ("matrices", everywhere(eliminate)),
    ("simplify", lambda results, target: simplify(results)),
    ("arrange", everywhere(arrange)),
    ("factors", everywhere(share_factors)),
    ("parts", everywhere(in_parts)),
)


class Executable(Protocol):
    """A graph as a machine has compiled it."""

    def run(self, memory: Sequence[Any]) -> list[Any]:
        """The memory of the results, of that of the parameters."""
        ...


class WholeMachine(Machine, Protocol):
    """What such a machine offers beside the others."""

    def graph_program(self, text: str, outs: Sequence[tuple[Type, int]]) -> Executable:
        """A program of StableHLO, compiled; what its results are is told."""
        ...


@dataclass(frozen=True, slots=True)
class _Out:
    aval: Aval
    place: int | None  # of the parameter that it is, as it was given


class WholePlan:
    """A function of the graph ready to be run on a machine."""

    def __init__(
        self, results: Sequence[Node], params: Sequence[Node], machine: Any, donated: Sequence[int] = (), *,
        looked_at: bool = False,
    ) -> None:  # fmt: skip
        self.machine, self.donated = machine, tuple(donated)
        if not looked_at:
            for name, graph_pass in PASSES:
                results = graph_pass(results, machine.description)
                if flags.dumps(name):
                    print(f"--- {name}", *map(described, needed(results, params)), sep="\n", file=sys.stderr)
        self._params = [Aval(x.shape, x.dtype) for x in params]
        places = {x: k for k, x in enumerate(params)}
        self._outs = [_Out(Aval(x.shape, x.dtype), places.get(x)) for x in results]
        computed = [x for x in results if x not in places]
        self._checks: tuple[Check, ...] = ()
        self._executable: Executable | None = None
        if computed:
            # What is given back as it came is not given away.
            taken = [k for k in donated if k not in {out.place for out in self._outs}]
            written = program(computed, params, donated=taken, looked_at=looked_at)
            if written.checks and taken:  # an error must leave what was given
                taken = []
                written = program(computed, params, looked_at=looked_at)
            self._checks, self._taken = written.checks, taken
            outs = [stored_as(x.shape, x.dtype) for x in computed]
            self._executable = machine.graph_program(written.text, [*outs, (Type.I32, 1)] if self._checks else outs)
        else:
            self._taken = []

    def run(self, given: Sequence[Any]) -> list[Any]:
        """The results for values of the parameters, on the machine."""
        machine = self.machine
        values = [on_machine(x, aval.dtype, machine) for x, aval in zip(given, self._params, strict=True)]
        if self._executable is None:
            memory: list[Any] = []
        else:
            for k in self._taken:
                if not values[k].exclusive:  # something else refers to it: what is given away is a copy
                    values[k] = values[k].copy()
            try:
                memory = self._executable.run([x.buffer() for x in values])
            except EshkolError as error:
                error.donated_kept = not any(_is_gone(values[k]) for k in self._taken)
                raise
        if self._checks:
            self._refuse(int(memory.pop().read()[0]))
        feed = iter(memory)
        return [self._result(out, values, feed) for out in self._outs]

    def _result(self, out: _Out, values: Sequence[Resident], feed: Any) -> Resident:
        if out.place is not None:
            return values[out.place].reshaped(*out.aval)
        ty, size = stored_as(*out.aval)
        return Resident(Stored(self.machine, ty, size, None, next(feed)), *out.aval)

    def _refuse(self, number: int) -> None:
        """Raise what a check has found, which is its number."""
        if not number:
            return
        node, said = self._checks[number - 1]
        error = _said(node, said)
        error.donated_kept = True
        raise error


def _is_gone(value: Resident) -> bool:
    gone: bool = getattr(value.buffer(), "gone", False)
    return gone


def _said(node: Node, said: Any) -> EshkolError:
    """The error of a check that failed."""
    if said in (NAN, INFINITY):
        return NotANumberError(
            f"{described(node)} gave {said}, though its inputs are finite", span=where_asked(node),
            hint="look at the inputs: a logarithm or division of 0, a root of a negative number, or an overflow",
        )  # fmt: skip
    if isinstance(said, int):
        stopped = ExecutionFailed("an index is out of range", span=Span(INDEX_TRAP, 1, 1, 1, str(said)))
        return failure(node, stopped)
    return failure(node, ExecutionFailed(str(said)))
