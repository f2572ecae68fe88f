"""An operation on every element: ParallelMap and ParallelMapBinary.

Comes in: a map over arrays of any type up to 64 bits; goes out: tasks of some thousand elements, which LLVM vectorizes
where the scalar row is straight-line code, in place too. Every operation rounds once, so 16-bit floats are computed in
F32 with the row's own result.
"""

from __future__ import annotations

from functools import cache

from eshkol.atlas.isa import Instruction
from eshkol.atlas.types import Type
from eshkol.backends.cpu.kernels.macro import Lowering, Macro, Phase
from eshkol.backends.cpu.macros.angles import sines_and_cosines
from eshkol.backends.cpu.macros.kit import Kernel, Value, macro_of
from eshkol.llvm.targets import Target

PIECE = 1 << 12  # elements of a task
CHEAP = frozenset({"ABS", "NEG", "SQRT", "RELU", "ADD", "SUB", "MUL", "DIV", "MIN", "MAX"})
DIVISION_BY_ZERO = "integer division by zero"
CHEAP_GRAIN = 8  # tasks that are too little for a core where the operation is cheap


def map_elements(i: Instruction, target: Target) -> Macro | None:
    if i.ty.is_wide:
        return None
    k = _kernel(i.operation.value, len(i.op.memory) - 1, i.ty, target)
    phase = Phase(k.function_name, -(-i.count // PIECE), CHEAP_GRAIN if i.operation.value in CHEAP else 1)
    faults = (DIVISION_BY_ZERO,) if _may_fail(i.operation.value, i.ty) else ()
    return macro_of([k], [phase], (i.count,), faults=faults)


def _may_fail(mnemonic: str, ty: Type) -> bool:
    return mnemonic == "DIV" and ty.is_integer


@cache
def _kernel(mnemonic: str, sources: int, ty: Type, target: Target) -> Kernel:
    k = Kernel(f"map_{mnemonic}_{ty}".lower(), target, operands=1 + sources)
    y, *inputs = (k.operand(number, ty) for number in range(1 + sources))
    with k.pieces(k.word(0), PIECE) as (start, length):
        if mnemonic in ("SIN", "COS"):
            out = y.at(start)
            chosen = ("SIN", "COS").index(mnemonic)
            sines_and_cosines(k, inputs[0].at(start), length, lambda p, *both: out.put(p, both[chosen]))
            return k
        with k.parallel(start, start + length) as p:
            values = [x[p] for x in inputs]
            y[p] = _quotient(k, *values) if _may_fail(mnemonic, ty) else k.math(mnemonic, *values)
    return k


def _quotient(k: Kernel, dividend: Value, divisor: Value) -> Value:
    """Division of integers, of which zero is a fault."""
    is_zero = divisor.compare("eq", 0)
    with k.when(is_zero):
        k.fault(0)
    return k.math("DIV", dividend, k.select(is_zero, k.const(divisor.ty, 1), divisor), fail=lambda *known: None)


LOWERINGS: dict[str, Lowering] = {"ParallelMap": map_elements, "ParallelMapBinary": map_elements}
