"""Elementary functions as functions that lanes call, in code that is compiled as it is written.

Comes in: an instruction such as SIN, and the type of its operands. Goes out: the text of an LLVM function that computes
its expansion, and the call of it. An expansion has hundreds of instructions; where nothing is optimized (see
`llvm/passes.py`), copies of it wherever the function is used are most of what there is to translate and to compile. A
function is written once for each type. Where LLVM optimizes, lanes have the expansions themselves, which its vectorizer
needs.
"""

from __future__ import annotations

from functools import cache

from eshkol.atlas.builder import ProgramBuilder
from eshkol.atlas.expand import expand
from eshkol.atlas.isa import Instruction, Kind, Opcode, Values
from eshkol.atlas.operands import Immediate, Register
from eshkol.atlas.table import ROWS
from eshkol.atlas.types import Type
from eshkol.atlas.validate import validate
from eshkol.backends.lanes.emitter import Emitter, llvm_type
from eshkol.backends.lanes.layout import Layout
from eshkol.backends.lanes.scalars import LOWERINGS
from eshkol.backends.lanes.writer import LaneWriter


def is_called(i: Instruction) -> bool:
    """Whether an instruction gives one float for floats of its type, by an expansion."""
    op = i.op
    return (
        op.is_extension
        and op.name not in LOWERINGS
        and isinstance(op.meaning, Values)
        and [f.kind for f in op.fields] == [Kind.DEF, *[Kind.USE] * (len(op.fields) - 1)]
        and all(f.ty == "T" for f in op.fields)
    )


def call(e: Emitter, op: Opcode, ty: Type, values: list[str]) -> str:
    """The value of a function."""
    given = ", ".join(f"{llvm_type(ty)} {value}" for value in values)
    return e.op(f"call {llvm_type(ty)} @{_name(op, ty)}({given})")


@cache
def function(op: Opcode, ty: Type, shifts_bf16: bool) -> tuple[str, dict[str, str]]:
    """The text of a function, and what it declares."""
    b = ProgramBuilder(op.name)
    operands = [b.reg(ty) for _ in op.fields]
    for register in operands[1:]:  # in place of these come the arguments
        b.emit(ROWS["MOV_IMM"](register, Immediate(ty, 0)))
    b.emit(op(*operands))
    program = expand(b.build(), lambda i: i.op.name not in LOWERINGS)
    writer = _Function(validate(program), Layout.of(program), shifts_bf16=shifts_bf16)
    return writer.text(_name(op, ty), ty, operands[0], len(operands) - 1), writer.e.declared


def _name(op: Opcode, ty: Type) -> str:
    return f"called.{op.name}.{ty}"


class _Function(LaneWriter):
    """Writes a function of values instead of one of a lane."""

    def text(self, name: str, ty: Type, result: Register, given: int) -> str:
        """The program, whose first instructions write the registers that are given."""
        t, instructions = llvm_type(ty), self.program.instructions
        for index, instruction in enumerate(instructions):
            if not self.analysis.reachable(index):
                continue
            self.begin(index)
            if index < given:
                self.write_register(instruction.dst, ty, f"%x{index}")
                self.go(index + 1)
            else:
                self._instruction(instruction)
        self.begin(len(instructions))
        self.e.do(f"ret {t} {self.e.load(t, self.slot(result, ty))}")
        parameters = ", ".join(f"{t} %x{k}" for k in range(given))
        return self.e.defined(f"internal {t} @{name}({parameters}) nounwind", begin=[f"  {self.begins()}"])
