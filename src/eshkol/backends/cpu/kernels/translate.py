"""A program as an LLVM module with one function `kernel(record, first block, last block)`.

Comes in: a program, in instructions that have a lowering, and the macros for the rest. Goes out: a `KernelModule`, text
with what the host must know to call it. The code of lanes is written by `lane.py`, the loops around it by `loops.py`;
here is decided which loops those are.

Without barriers and shared memory the lanes of all blocks are one loop, which LLVM vectorizes, or else the loops in it.
Accesses whose range follows from the lane's number are checked before the loop: lanes for which all of them are in
range run in a version of the lane without those checks, the rest in a checked one (see `lanes/ranges.py`; where
everything follows from declared sizes there is none). So are loads at fixed places at the start, which are done before
the loop (`uniform.py`), and which buffers overlap, where loops are parallel only if they do not (`parallel.py`). A
guard "end if r255 ≥ n" at the start of the program becomes the end of the loop.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from eshkol.atlas.expand import is_collective
from eshkol.atlas.isa import Control, Instruction, Kind, element_type
from eshkol.atlas.operands import Shared, address_base
from eshkol.atlas.program import Program
from eshkol.atlas.types import Type
from eshkol.atlas.validate import Analysis, extent, memory_operands, validate
from eshkol.backends.cpu.kernels import called, loops, macro
from eshkol.backends.cpu.kernels.lane import CpuLane
from eshkol.backends.cpu.kernels.loops import Promises
from eshkol.backends.cpu.kernels.macro import INTERNAL, Macro
from eshkol.backends.cpu.kernels.parallel import LANES, LoopMetadata, parallel_loops
from eshkol.backends.cpu.kernels.rare import functions as rare_functions
from eshkol.backends.cpu.kernels.rare import kept, rare_stretches
from eshkol.backends.cpu.kernels.remainders import in_vectors
from eshkol.backends.cpu.kernels.uniform import MANY_STEPS, early_loads, uniform_steps
from eshkol.backends.lanes.guards import find_guard
from eshkol.backends.lanes.layout import Layout
from eshkol.backends.lanes.module import METADATA, SCALAR_LOOP, helpers
from eshkol.backends.lanes.ranges import ranges
from eshkol.llvm.targets import Target

MANY_BITS = 256  # of an integer, from which on a lane is computed by itself
SHORT = 64  # instructions of a program in which a division counts
GRID_WIDE = frozenset({"GridSync", "PoolAlloc", "PoolFree"})


@dataclass(frozen=True)
class KernelModule:
    """LLVM text with what the host must know to call it."""

    text: str
    layout: Layout
    grid_wide: bool  # whether lanes may wait for the whole launch
    serial: bool  # whether blocks must run one after another
    steps: Sequence[int]  # about how many instructions a lane has before it, at the start and after each barrier
    one_loop: bool  # whether lanes are a loop, without barriers and shared memory
    told: bool = False  # whether a lane's loops are as long as the program is told, which `steps` cannot know


def translate(program: Program, target: Target, macros: Mapping[int, Macro] | None = None) -> KernelModule:
    """The module of a program that contains only instructions with a lowering, or with a macro (by their place)."""
    analysis, layout, macros = validate(program), Layout.of(program), macros or {}
    in_lanes = [found for index, found in macros.items() if not is_collective(program.instructions[index])]
    together = {index for index in macros if is_collective(program.instructions[index])}
    together |= {index for index, i in enumerate(program.instructions) if i.op.name in GRID_WIDE}
    shifts = target.shifts_bf16
    by_blocks = bool(together) or any(_needs_its_block(i) for i in program.instructions)
    functions = list(dict.fromkeys(text for found in in_lanes for text in found.text(INTERNAL)))
    if by_blocks:
        only = CpuLane(analysis, layout, macros=macros, shifts_bf16=shifts)
        functions.append(only.write("lane"))
        calls = only.called
        over_lanes = SCALAR_LOOP if _is_costly(program) else ""
        kernel = loops.block_by_block(layout, together, over_lanes, allocates=not target.is_wasm)
        declared = {**only.e.declared, **loops.RUNTIME}
    else:
        guard = find_guard(program, analysis)
        never = frozenset() if guard is None else frozenset({guard.branch})  # the loop ends before it would be taken
        early = early_loads(program, never)
        bound = guard.bound if guard is not None and isinstance(guard.bound, int) else None
        known = ranges(analysis, bound)
        rare = rare_stretches(analysis, target.vector_bits)
        parallel = parallel_loops(analysis, known, rare)
        metadata = LoopMetadata(parallel, known, target.interleave)
        fast = CpuLane(analysis, layout, known, never, macros, frozenset(early), metadata, rare, shifts_bf16=shifts)
        stretches, declared = rare_functions(analysis, rare.values(), target)
        lane, remainders, more = in_vectors(fast.write("lane_fast"), target)
        functions += [lane, *stretches, *remainders]
        declared |= fast.e.declared | more
        calls = fast.called
        promises = Promises(known, parallel, early, bound)
        if not promises.hold_always:
            checked = CpuLane(analysis, layout, None, never, macros, shifts_bf16=shifts)
            functions.append(checked.write("lane", seldom=True))
            declared |= checked.e.declared
            calls |= checked.called
        one_by_one = _is_costly(program, early) or _divides(analysis)
        over_lanes = SCALAR_LOOP if one_by_one else metadata.loops[LANES]
        kernel = loops.one_loop(program, layout, promises, guard, over_lanes)
    for op, ty in calls:
        written, more = called.function(op, ty, shifts)
        functions.append(written)
        declared = {**declared, **more}
    body = "\n\n".join(functions)
    parts = [
        *helpers(body),
        body,
        kept(body),
        kernel(8 * layout.words, target.attributes),
        *dict.fromkeys([*declared.values(), *(text for found in in_lanes for text in found.declared)]),
        METADATA,
        "" if by_blocks else metadata.text,
        macro.METADATA,
    ]
    serial = any(i.op.name == "PhaseWrite" for i in program.instructions)
    steps = tuple(_steps(program, macros, after) for after in (-1, *layout.barriers))
    text = "\n\n".join(filter(None, parts)) + "\n"
    told = any(i.op.control is Control.LOOP and not isinstance(i.iterations, int) for i in program.instructions)
    return KernelModule(text, layout, bool(together), serial, steps, one_loop=not by_blocks, told=told)


def _is_costly(program: Program, early: Collection[int] = ()) -> bool:
    """Whether LLVM would take too long over several lanes at once: its vectorizer, or what comes after it."""
    if any(i.operands[k].bits > MANY_BITS for i in program.instructions for k in i.op.places[Kind.TYPE]):
        return True  # copies of code for so wide integers make LLVM slow, not the program fast
    return uniform_steps(program, frozenset(early)) > MANY_STEPS


def _divides(analysis: Analysis) -> bool:
    """Whether a short program divides integers of 64 bits, which no machine does with vectors.

    These would be taken apart and put together around each division, which takes longer than lane after lane does.
    """
    instructions = analysis.flow.program.instructions
    return len(instructions) <= SHORT and any(
        i.op.name in ("DIV", "REM") and analysis.type_before(k, i.reads()[0]) in (Type.I64, Type.U64)
        for k, i in enumerate(instructions)
    )


def _needs_its_block(i: Instruction) -> bool:
    """Whether lanes wait here for the others of their block, or touch the memory that they share."""
    return i.op.control is Control.WAIT or any(isinstance(address_base(a), Shared) for _, a in memory_operands(i))


def _steps(program: Program, macros: Mapping[int, Macro], after: int) -> int:
    """About how many instructions a lane has before it behind an instruction, if it does not go back.

    Loops whose rounds are not known are taken to run 16 times; of a loop around the instruction all rounds are counted.
    """
    total, counted, rounds, starts = 1, 0, [1], [0]
    for index, i in enumerate(program.instructions):
        if i.op.control is Control.LOOP:
            rounds.append(rounds[-1] * (i.iterations if isinstance(i.iterations, int) else 16))
            starts.append(total)
        elif i.op.control is Control.ENDLOOP:
            rounds.pop()
            starts.pop()
        if index in macros:
            elements = [extent(i, f)[1] // element_type(i, f).size_bytes for f, _ in memory_operands(i)]
            total += rounds[-1] * max(elements, default=1)
        else:
            total += rounds[-1]
        if index == after:
            counted = total if len(starts) == 1 else starts[1]
    return min(total - counted + 1, 1 << 40)
