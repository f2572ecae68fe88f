"""The guard that most programs start with: "end if r255 ≥ n", for launches come in whole blocks.

Comes in: a program's analysis. Goes out: the branch and its bound, a constant or a scalar parameter. Whoever runs lanes
may then run no more than that many, or rely on there being no more.
"""

from __future__ import annotations

from dataclasses import dataclass

from eshkol.atlas.isa import Control, Instruction
from eshkol.atlas.operands import GLOBAL, BufferOffset, Condition, Register
from eshkol.atlas.program import ParamKind, Program
from eshkol.atlas.types import Type
from eshkol.atlas.validate import Analysis


@dataclass(frozen=True)
class Guard:
    """A branch at the start by which lanes from `bound` on end: a scalar parameter or a constant."""

    branch: int
    bound: str | int


def find_guard(program: Program, analysis: Analysis) -> Guard | None:
    """The guard that a program starts with, if it has one: constants, scalars, one comparison, one branch."""
    if program.start != 0:
        return None
    values: dict[Register, str | int] = {}
    compared: Instruction | None = None
    for index, i in enumerate(program.instructions):
        if index in program.labels_at and index > 0:
            return None
        if i.op.name == "MOV_IMM":
            if i.value.ty is Type.U64:
                values[i.dst] = i.value.value
        elif i.op.name == "LDG" and _is_scalar(program, i):
            if i.ty is Type.U64:
                values[i.dst] = i.src.handle
        elif i.op.name == "SETcc" and compared is None:
            compared = i
        elif i.op.control is Control.BRANCH and compared is not None and i.pred == compared.pred:
            ends = _is_end(program, analysis.flow.targets[index])
            right = compared.cond is Condition.GE and compared.lhs.index == GLOBAL and compared.rhs in values
            return Guard(index, values[compared.rhs]) if ends and right else None
        else:
            return None
    return None


def _is_scalar(program: Program, i: Instruction) -> bool:
    param = program.param.get(getattr(i.src, "handle", ""))
    return isinstance(i.src, BufferOffset) and param is not None and param.kind is ParamKind.SCALAR


def _is_end(program: Program, index: int) -> bool:
    return index == len(program) or program.instructions[index].op.control is Control.EXIT
