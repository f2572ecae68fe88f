"""Dead code: what cannot be reached, and values that nothing reads.

An instruction goes only if leaving it out cannot hide an error: it must not be one that can fail, and its
operands must surely be written and of known types.
"""

from __future__ import annotations

from eshkol.atlas.flow import slots_written
from eshkol.atlas.isa import Control, Instruction
from eshkol.atlas.program import Program
from eshkol.atlas.validate import validate


def eliminate_dead_code(program: Program) -> Program:
    """The program without unreachable instructions and unused values."""
    analysis = validate(program)
    live_out = analysis.flow.live_out
    changes: dict[int, list[Instruction]] = {}
    for index, instruction in enumerate(program.instructions):
        structural = instruction.op.control in (Control.LOOP, Control.ENDLOOP)
        if not analysis.reachable(index):
            if not structural:  # a loop goes as a whole, or not at all: see below
                changes[index] = []
        elif _only_computes(instruction) and analysis.certain(index):
            used = live_out[index].intersection(slots_written(instruction))
            if not used:
                changes[index] = []
    for start, end in analysis.flow.loop_end.items():
        if not analysis.reachable(start) and not analysis.reachable(end):
            changes[start], changes[end] = [], []
    return program.with_changes(changes)


def _only_computes(instruction: Instruction) -> bool:
    """Whether all it can do is write registers or predicates."""
    op = instruction.op
    return not op.traps and op.control is Control.NEXT and bool(slots_written(instruction))
