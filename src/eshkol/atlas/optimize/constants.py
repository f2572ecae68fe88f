"""Constant propagation: what is computed from constants alone is computed now.

Folding evaluates the row's own meaning, so it gives the very bits that running would. Instructions that would
fail (division by zero) are left to fail at run time.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from eshkol.atlas.flow import Flow, Slot, slots_written
from eshkol.atlas.isa import Control, Instruction, Kind, LaneFault, Values
from eshkol.atlas.numerics import evaluate
from eshkol.atlas.operands import Immediate, Register
from eshkol.atlas.program import Program
from eshkol.atlas.table import ROWS
from eshkol.atlas.types import Array, Type
from eshkol.atlas.typing_rule import resolve_types
from eshkol.atlas.validate import validate
from eshkol.errors import IsaError

Known = dict[Slot, Immediate | bool]


def known_before(program: Program) -> dict[int, Known]:
    """For each reachable instruction, the registers and predicates that hold a known constant there."""
    analysis = validate(program)
    flow = analysis.flow
    states: dict[int, Known] = {program.start: {}}
    pending = [program.start]
    while pending:
        index = pending.pop()
        if index >= len(program):
            continue
        after = _after(flow, index, states[index])
        for successor in flow.successors(index):
            old = states.get(successor)
            new = after if old is None else {s: v for s, v in old.items() if after.get(s) == v}
            if new != old:
                states[successor] = new
                pending.append(successor)
    # A RET is taken to go back to every call here; the validator knows better which instructions are reached.
    return {index: known for index, known in states.items() if analysis.reachable(index)}


def _after(flow: Flow, index: int, before: Known) -> Known:
    instruction = flow.program.instructions[index]
    changed: list[Slot] = [*slots_written(instruction)]
    counter = flow.counter_of(index)
    if counter is not None:
        changed.append(counter)
    if instruction.op.control is Control.CALL or not changed:
        return before  # what a callee writes is seen where it writes it
    after = {slot: value for slot, value in before.items() if slot not in changed}
    value = fold(instruction, before)
    if value is not None:
        after[changed[0]] = value
    return after


def fold(instruction: Instruction, known: Known) -> Immediate | bool | None:
    """The constant an instruction gives, if its operands are known and it cannot fail on them."""
    meaning = instruction.op.meaning
    if not isinstance(meaning, Values):
        return None
    operands = instruction.of_kind(Kind.USE, Kind.PUSE)
    values = [known.get(operand) for operand in operands]
    if any(value is None for value in values):
        return None
    types = [value.ty for value in values if isinstance(value, Immediate)]
    inputs: list[Array] = [v.array() if isinstance(v, Immediate) else np.array([v]) for v in values]
    try:
        outputs = resolve_types(instruction, types)
        result = evaluate(instruction, inputs, types[0] if types else outputs[0], outputs[0] if outputs else None)
    except (LaneFault, IsaError):  # it would fail, or these constants meet only on a path that no lane can take
        return None
    return bool(result[0]) if not outputs else as_immediate(result[0], outputs[0])


def as_immediate(value: Any, ty: Type) -> Immediate:
    return Immediate(ty, float(value) if ty.is_float else int(value))


def propagate_constants(program: Program) -> Program:
    """Instructions on constants become MOV_IMM; selections and branches on known predicates are decided."""
    changes: dict[int, list[Instruction]] = {}
    for index, known in known_before(program).items():
        instruction = program.instructions[index]
        replacement = _rewrite(instruction, known)
        if replacement != [instruction]:
            changes[index] = replacement
    return program.with_changes(changes)


def _rewrite(instruction: Instruction, known: Known) -> list[Instruction]:
    op, span = instruction.op, instruction.span
    value = fold(instruction, known)
    if isinstance(value, Immediate):
        return [ROWS["MOV_IMM"](instruction.dst, value, span=span)]
    predicates = instruction.of_kind(Kind.PUSE)
    decided = known.get(predicates[0]) if predicates else None
    if isinstance(decided, bool) and op.control is Control.BRANCH:
        return [op(instruction.target, span=span)] if decided else []
    if isinstance(decided, bool) and op is ROWS["SEL"]:
        chosen = instruction.true_val if decided else instruction.false_val
        return [ROWS["MOV"](instruction.dst, chosen, span=span)]
    if op.control is Control.LOOP and isinstance(instruction.iterations, Register):
        count = known.get(instruction.iterations)
        if isinstance(count, Immediate) and count.ty is Type.U32:  # any other type would change the counter's
            return [op(instruction.counter, count.value, span=span)]
    return [instruction]
