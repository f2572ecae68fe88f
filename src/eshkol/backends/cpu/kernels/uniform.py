"""What is the same for all lanes: loads that can be done once for all of them, and how much is computed from the rest.

LLVM moves what no lane number influences out of the loop over lanes, but not loads that a lane's stores might meet.
Loads at the very start of a program are therefore done before the loop. Where values of other such loads go through
many steps, the loop must not be vectorized: LLVM's vectorizer asks of each step whether it is the same for all lanes by
asking that of everything that it is computed from, again and again, so that its time doubles with every few steps.
"""

from __future__ import annotations

from eshkol.atlas.isa import Instruction, Values
from eshkol.atlas.operands import BufferOffset
from eshkol.atlas.program import ParamKind, Program

MANY_STEPS = 24
LOADS = frozenset({"LDG", "LDS", "PoolLoad"})


def early_loads(program: Program, never: frozenset[int]) -> dict[int, BufferOffset]:
    """Loads at fixed places of buffers before anything is stored, by instruction; branches in `never` are not taken."""
    found: dict[int, BufferOffset] = {}
    if program.start != 0:
        return found
    for index, i in enumerate(program.instructions):
        if index > 0 and index in program.labels_at:
            break  # from here on, a lane may have come back from further on
        if i.op.name == "LDG":
            if isinstance(i.src, BufferOffset) and _is_fixed(program, i):
                found[index] = i.src
        elif not (isinstance(i.op.meaning, Values) or index in never):
            break
    return found


def _is_fixed(program: Program, i: Instruction) -> bool:
    """Whether an LDG reads a small element of a buffer parameter, aligned."""
    param = program.param.get(i.src.handle)
    small = i.ty.size_bytes <= 8 and i.src.offset % i.ty.alignment == 0
    return small and param is not None and param.kind is ParamKind.BUFFER


def uniform_steps(program: Program, done: frozenset[int]) -> int:
    """About how many instructions compute the same for all lanes from loads that are not `done` before the loop."""
    origin: dict[object, bool] = {}  # registers that are the same for all lanes → whether they come from such a load
    count = 0
    for index, i in enumerate(program.instructions):
        reads, loads = i.touched.slots_read, i.op.name in LOADS
        same = (loads or isinstance(i.op.meaning, Values)) and all(r in origin for r in reads)
        behind = same and (
            any(origin[r] for r in reads) or (loads and index not in done and not _is_scalar(program, i))
        )
        for written in i.touched.slots_written:
            if same:
                origin[written] = behind
            else:
                origin.pop(written, None)
        count += behind
    return count


def _is_scalar(program: Program, i: Instruction) -> bool:
    """Whether a load reads a scalar parameter: LLVM is told that those do not change."""
    address = getattr(i, "src", None)
    param = program.param.get(address.handle) if isinstance(address, BufferOffset) else None
    return param is not None and param.kind is ParamKind.SCALAR
