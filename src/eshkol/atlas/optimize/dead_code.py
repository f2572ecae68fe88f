"""Dead code: what cannot be reached, and values that nothing reads.

An instruction goes only if leaving it out cannot hide an error: it must not be one that can fail, and its
operands must surely be written and of known types.
"""

from __future__ import annotations

from eshkol.atlas.flow import slots_written
from eshkol.atlas.isa import Control, Instruction
from eshkol.atlas.operands import Immediate
from eshkol.atlas.optimize.constants import Known, known_before
from eshkol.atlas.program import Program
from eshkol.atlas.validate import Analysis, validate


def eliminate_dead_code(program: Program) -> Program:
    """The program without unreachable instructions and unused values."""
    analysis = validate(program)
    flow, constants = analysis.flow, known_before(program)
    changes: dict[int, list[Instruction]] = {}
    for index, instruction in enumerate(program.instructions):
        structural = instruction.op.control in (Control.LOOP, Control.ENDLOOP)
        if not analysis.reachable(index):
            if not structural:  # a loop goes as a whole, or not at all: see below
                changes[index] = []
        elif analysis.certain(index) and _only_computes(analysis, index, constants[index]):
            used = flow.any_live_after(index, slots_written(instruction))
            if not used:
                changes[index] = []
    for start, end in flow.loop_end.items():
        if not analysis.reachable(start) and not analysis.reachable(end):
            changes[start], changes[end] = [], []
    return program.with_changes(changes)


def _only_computes(analysis: Analysis, index: int, known: Known) -> bool:
    """Whether all that the instruction can do is write registers or predicates."""
    instruction = analysis.flow.program.instructions[index]
    op = instruction.op
    if op.control is not Control.NEXT or not slots_written(instruction):
        return False
    if not op.traps:
        return True
    if op.zero_trap is None:
        return False
    divisor = getattr(instruction, op.zero_trap)
    ty, constant = analysis.type_before(index, divisor), known.get(divisor)
    return (ty is not None and ty.is_float) or (isinstance(constant, Immediate) and constant.value != 0)
