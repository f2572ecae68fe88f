"""Expansion: extensions rewritten into base instructions, for a backend or a test that wants only those.

An extension's row carries the code it means (`Opcode.expand`). Array extensions with a memory output and no
register in their addresses are carried out once for all lanes: their expansion runs in one lane, between two
barriers that every lane passes.
"""

from __future__ import annotations

from collections.abc import Callable

from eshkol.atlas.builder import ProgramBuilder
from eshkol.atlas.flow import located
from eshkol.atlas.isa import Instruction, element_type
from eshkol.atlas.operands import (
    GLOBAL,
    Condition,
    Register,
    Shared,
    SpecialRegister,
    address_base,
)
from eshkol.atlas.program import Program
from eshkol.atlas.table.emit import COUNTABLE
from eshkol.atlas.types import Type
from eshkol.atlas.validate import Analysis, extent, memory_operands, validate


def is_collective(instruction: Instruction) -> bool:
    """Whether all lanes of the block or launch carry the instruction out once, together."""
    operands = list(memory_operands(instruction))
    has_shape = any(f.shape is not None for f, _ in operands)
    return has_shape and instruction.op.writes_memory and instruction.is_uniform


def is_block_wide(instruction: Instruction) -> bool:
    """Whether a collective instruction belongs to each block, because it touches shared memory."""
    return any(isinstance(address_base(a), Shared) for _, a in memory_operands(instruction))


def expand(program: Program, wanted: Callable[[Instruction], bool] = lambda instruction: True) -> Program:
    """The program with every extension for which `wanted` holds replaced by base instructions."""
    while any(_expandable(i, wanted) for i in program.instructions):
        program = _expand_once(program, wanted)
    return program


def _expandable(instruction: Instruction, wanted: Callable[[Instruction], bool]) -> bool:
    return instruction.op.is_extension and wanted(instruction)


def _expand_once(program: Program, wanted: Callable[[Instruction], bool]) -> Program:
    analysis = validate(program)
    whole = ProgramBuilder(program.name)
    whole.reserve(program)
    whole.params, whole.entry, whole.metadata = list(program.params), program.entry, dict(program.metadata)
    for index in range(len(program) + 1):
        for name in program.labels_at.get(index, []):
            whole.labels[name] = len(whole.instructions)
        if index == len(program):
            break
        instruction = program.instructions[index]
        # Code that cannot be reached has no types to expand it by; it is left out.
        if not _expandable(instruction, wanted):
            whole.emit(instruction)
        elif analysis.reachable(index):
            _expand_instruction(whole, instruction, index, analysis)
    return whole.build()


def _expand_instruction(b: ProgramBuilder, instruction: Instruction, index: int, analysis: Analysis) -> None:
    _check_countable(instruction, index, analysis)
    types = {r: analysis.type_before(index, r) for r in instruction.reads()}
    b.span = instruction.span
    assert instruction.op.expand is not None
    with b.scratch({register: ty for register, ty in types.items() if ty is not None}):
        if is_collective(instruction):
            _in_one_lane(b, instruction)
        else:
            instruction.op.expand(b, instruction)
    b.span = None


def _check_countable(instruction: Instruction, index: int, analysis: Analysis) -> None:
    """Expansions count elements in U32; an array for which that is too small is refused, not wrapped around."""
    for f, address in memory_operands(instruction):
        start, size = extent(instruction, f)
        elements = (start + size) // element_type(instruction, f).size_bytes
        if elements >= COUNTABLE:
            message = f"{f.name} {address} goes to element {elements}, but expansions count to {COUNTABLE - 1}"
            raise located(analysis.flow.program, index, message, "split it into several instructions")


def _in_one_lane(b: ProgramBuilder, instruction: Instruction) -> None:
    """Barrier, the expansion in lane 0 of the block or launch, barrier."""
    assert instruction.op.expand is not None
    first = b.pred()
    if is_block_wide(instruction):
        barrier = b.bar_sync
        lane = b.reg(Type.U32)
        b.sreg(SpecialRegister.LaneX, lane)
        for axis in (SpecialRegister.LaneY, SpecialRegister.LaneZ):
            other = b.reg(Type.U32)
            b.sreg(axis, other)
            b.or_(lane, lane, other)
        zero = b.constant(Type.U32, 0)
    else:
        barrier, lane, zero = b.grid_sync, Register(GLOBAL), b.constant(Type.U64, 0)
    barrier()
    b.setcc(Condition.EQ, first, lane, zero)
    with b.when(first):
        instruction.op.expand(b, instruction)
    barrier()
