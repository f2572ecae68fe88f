"""Peephole rules: one instruction, and what is known of its operands, against a cheaper way to say it.

Every rule keeps every bit: there is no x + 0.0 → x for floats, because -0.0 + 0.0 is 0.0.
"""

from __future__ import annotations

from collections.abc import Callable

from eshkol.atlas.flow import Flow, slots_written
from eshkol.atlas.isa import Control, Field, Instruction, Kind
from eshkol.atlas.operands import Immediate, Indexed, Label, Register, RegisterIndirect
from eshkol.atlas.optimize.constants import Known, known_before
from eshkol.atlas.program import Program
from eshkol.atlas.table import ROWS
from eshkol.atlas.types import Type
from eshkol.atlas.validate import validate


def peephole(program: Program) -> Program:
    """Identities removed, copies read at their source, jumps shortened, trivial loops undone."""
    for step in (forward_copies, apply_identities, shorten_jumps, undo_trivial_loops):
        program = step(program)
    return program


# --- identities -----------------------------------------------------------------------------------

_ANY: Callable[[Type], bool] = lambda ty: True
_INTEGER: Callable[[Type], bool] = lambda ty: ty.is_integer


def _is(value: int) -> Callable[[Immediate], bool]:
    return lambda c: c.value == value and str(c.value)[0] != "-"  # a negative zero is not this zero


def _all_ones(c: Immediate) -> bool:
    return c.value == (-1 if c.ty.is_signed else c.ty.max_value)


# op, operand that is constant, test of it, types → the operand that is the result
IDENTITIES: list[tuple[str, str, Callable[[Immediate], bool], Callable[[Type], bool], str]] = [
    ("ADD", "rhs", _is(0), _INTEGER, "lhs"),
    ("ADD", "lhs", _is(0), _INTEGER, "rhs"),
    ("SUB", "rhs", _is(0), _ANY, "lhs"),
    ("MUL", "rhs", _is(1), _ANY, "lhs"),
    ("MUL", "lhs", _is(1), _ANY, "rhs"),
    ("MUL", "rhs", _is(0), _INTEGER, "rhs"),
    ("MUL", "lhs", _is(0), _INTEGER, "lhs"),
    ("DIV", "rhs", _is(1), _ANY, "lhs"),
    ("AND", "rhs", _all_ones, _INTEGER, "lhs"),
    ("AND", "lhs", _all_ones, _INTEGER, "rhs"),
    ("OR", "rhs", _is(0), _INTEGER, "lhs"),
    ("OR", "lhs", _is(0), _INTEGER, "rhs"),
    ("XOR", "rhs", _is(0), _INTEGER, "lhs"),
    ("XOR", "lhs", _is(0), _INTEGER, "rhs"),
    ("SHL", "amount", _is(0), _INTEGER, "src"),
    ("SHR", "amount", _is(0), _INTEGER, "src"),
]


def apply_identities(program: Program) -> Program:
    analysis = validate(program)
    changes: dict[int, list[Instruction]] = {}
    for index, known in known_before(program).items():
        if analysis.certain(index):
            instruction = program.instructions[index]
            replacement = _identity(instruction, known)
            if replacement is not None:
                changes[index] = replacement
    return program.with_changes(changes)


def _identity(i: Instruction, known: Known) -> list[Instruction] | None:
    if i.op is ROWS["MOV"] and i.dst == i.src:
        return []
    if i.op is ROWS["CVT"] and i.src_ty is i.dst_ty:
        return [ROWS["MOV"](i.dst, i.src, span=i.span)]
    for name, operand, test, fits, result in IDENTITIES:
        if i.op.name == name:
            constant = known.get(getattr(i, operand))
            if isinstance(constant, Immediate) and fits(constant.ty) and test(constant):
                return [ROWS["MOV"](i.dst, getattr(i, result), span=i.span)]
    return None


# --- copies ---------------------------------------------------------------------------------------


def forward_copies(program: Program) -> Program:
    """After MOV d, s read s instead of d, as long as neither is written again, inside a basic block."""
    analysis = validate(program)
    changes: dict[int, list[Instruction]] = {}
    source: dict[Register, Register] = {}
    for index, instruction in enumerate(program.instructions):
        if index in analysis.flow.block_starts or not analysis.reachable(index):
            source = {}
        if not analysis.reachable(index):
            continue
        renamed = _rename_reads(instruction, source)
        if renamed != instruction:
            changes[index] = [renamed]
        for slot in (*slots_written(renamed), analysis.flow.counter_of(index)):
            source = {d: s for d, s in source.items() if slot not in (d, s)}
        if renamed.op is ROWS["MOV"] and renamed.dst != renamed.src and analysis.certain(index):
            source[renamed.dst] = renamed.src
    return program.with_changes(changes)


def _rename_reads(instruction: Instruction, source: dict[Register, Register]) -> Instruction:
    def rename(f: Field, operand: object) -> object:
        if f.kind in (Kind.USE, Kind.TRIPS) and isinstance(operand, Register):
            return source.get(operand, operand)
        if isinstance(operand, Indexed):
            return Indexed(operand.base, source.get(operand.index, operand.index), operand.scale)
        if isinstance(operand, RegisterIndirect):
            return RegisterIndirect(source.get(operand.register, operand.register))
        return operand

    return instruction.with_operands(rename) if source else instruction


# --- jumps and loops ------------------------------------------------------------------------------


def shorten_jumps(program: Program) -> Program:
    """Jumps to an unconditional jump go where that one goes; jumps to the next instruction go."""
    analysis = validate(program)
    changes: dict[int, list[Instruction]] = {}
    for index, target in analysis.flow.targets.items():
        instruction = program.instructions[index]
        if instruction.op.control is not Control.BRANCH or not analysis.reachable(index):
            continue
        if target == index + 1 and analysis.certain(index):
            changes[index] = []
            continue
        beyond = _final_target(analysis.flow, target)
        if beyond is not None and beyond.name != instruction.target.name:
            changes[index] = [instruction.op(beyond, instruction.pred, span=instruction.span)]
    return program.with_changes(changes)


def _final_target(flow: Flow, index: int) -> Label | None:
    """Where a chain of unconditional jumps that starts at an instruction leads; None if there is none."""
    label: Label | None = None
    seen: set[int] = set()
    while index < len(flow.program) and index not in seen:
        seen.add(index)
        instruction = flow.program.instructions[index]
        if instruction.op.control is not Control.BRANCH or instruction.pred is not None:
            break
        label = instruction.target
        index = flow.targets[index]
    return label


def undo_trivial_loops(program: Program) -> Program:
    """A loop of no rounds sets its counter and goes; a loop of one round is its body."""
    flow = validate(program).flow
    changes: dict[int, list[Instruction]] = {}
    for start, end in flow.loop_end.items():
        loop = program.instructions[start]
        if loop.iterations == 1 or (loop.iterations == 0 and end == start + 1):
            changes[start] = [ROWS["MOV_IMM"](loop.counter, Immediate(Type.U32, 0), span=loop.span)]
            changes[end] = []
        elif loop.iterations == 0 and _nothing_jumps_into(program, flow, start, end):
            changes.update({index: [] for index in range(start, end + 1)})
            changes[start] = [ROWS["MOV_IMM"](loop.counter, Immediate(Type.U32, 0), span=loop.span)]
    return program.with_changes(changes)


def _nothing_jumps_into(program: Program, flow: Flow, start: int, end: int) -> bool:
    """Whether no label inside the loop is a call target (jumps into loops are illegal anyway)."""
    outside = (target for index, target in flow.targets.items() if not start < index < end)
    return not any(start < target <= end for target in outside)
