"""What the steps of a plan do: the bytes that they read and write, and the floating-point operations that they take.

Comes in: a plan. Goes out: a `Work` for each launch, and for each node that the host computes. Products and
convolutions count the operations that their shapes say; other nodes one for each element, and those that move elements
none.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from eshkol.atlas.isa import Instruction
from eshkol.atlas.program import Program
from eshkol.atlas.table.convolutions import conv_output
from eshkol.graph.node import span_of
from eshkol.graph.work import operations
from eshkol.schedule.plan.steps import Launch, OnHost, Plan


@dataclass(frozen=True, slots=True)
class Work:
    """One step: what it is called, what it works on, and where the user asked for it."""

    name: str
    shapes: str
    file: str
    line: int
    moved: int  # bytes
    operations: int


class PlanWork:
    """What a plan's steps do."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan

    def of(self, step: Launch | OnHost) -> Work:
        """What a step does."""
        places = [[self._plan.places[p] for p in numbers] for numbers in (step.writes, step.reads)]
        name = step.kernel.program.name if isinstance(step, Launch) else step.node.op.name
        if any(type(n) is not int for found in places for p in found for n in p.shape):
            return Work(name, "any length", "", 0, 0, 0)  # one plan for many sizes
        shapes = " ← ".join(", ".join("×".join(map(str, p.shape)) or "1" for p in found) for found in places)
        span = None if isinstance(step.node.site, int) else span_of(step.node.site)
        return Work(
            name, shapes, "" if span is None else span.file, 0 if span is None else span.line,
            self._moved(step), self._operations(step),
        )  # fmt: skip

    def _moved(self, step: Launch | OnHost) -> int:
        return sum(self._plan.places[p].size for p in (*step.writes, *step.reads))

    def _operations(self, step: Launch | OnHost) -> int:
        if isinstance(step, Launch):
            said = _of_instructions(step.kernel.program)
            if said is not None:
                return said
            if step.operations is not None:
                return step.operations
        return operations(step.node)


def _of_instructions(program: Program) -> int | None:
    """The operations of a program that is an array instruction; None of others."""
    found = [count for item in program.instructions if (count := _of_fields(item)) is not None]
    return sum(found) if found else None


def _of_fields(item: Instruction) -> int | None:
    """The operations of an array instruction, by the sizes that it says."""
    said = {field.name for field in item.op.fields}

    def product(*names: str) -> int:
        return math.prod(int(getattr(item, name)) for name in names)

    if said >= {"m", "n", "k"}:
        return 2 * product("m", "n", "k") * (product("batch") if "batch" in said else 1)
    if said >= {"in_channels", "out_channels", "kernel_h"}:
        taps = product("in_channels", "out_channels", "kernel_h", "kernel_w") // product("groups")
        return 2 * product("batch") * math.prod(conv_output(item)) * taps
    if said >= {"batch", "heads", "seq_len", "head_dim"}:
        return 4 * product("batch", "heads", "seq_len", "seq_len", "head_dim")
    if said >= {"batch", "queries", "keys", "head_dim"}:
        return (8 if "inner" in said else 4) * product("batch", "queries", "keys", "head_dim")
    return None
