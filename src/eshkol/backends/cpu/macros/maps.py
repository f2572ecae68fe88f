"""An operation on every element: ParallelMap and ParallelMapBinary.

Comes in: a map over arrays of any type up to 64 bits; goes out: tasks of some thousand elements, which LLVM vectorizes
where the scalar row is straight-line code, in place too. Every operation rounds once, so 16-bit floats are computed in
F32 with the row's own result.
"""

from __future__ import annotations

from eshkol.atlas.isa import Instruction
from eshkol.backends.cpu.macros.kit import Kernel, Value, macro_of
from eshkol.backends.llvm.compile import Target
from eshkol.backends.llvm.macro import Lowering, Macro, Phase

PIECE = 1 << 12  # elements of a task
CHEAP = frozenset({"ABS", "NEG", "SQRT", "RELU", "ADD", "SUB", "MUL", "DIV", "MIN", "MAX"})
CHEAP_GRAIN = 8  # tasks that are too little for a core where the operation is cheap


def map_elements(i: Instruction, target: Target) -> Macro | None:
    if i.ty.is_wide:
        return None
    mnemonic, sources = i.operation.value, len(i.op.memory) - 1
    k = Kernel(f"map_{mnemonic}_{i.ty}".lower(), target, operands=1 + sources)
    y, *inputs = (k.operand(number, i.ty) for number in range(1 + sources))
    divides = mnemonic == "DIV" and i.ty.is_integer
    with k.pieces(k.word(0), PIECE) as (start, length), k.parallel(start, start + length) as p:
        values = [x[p] for x in inputs]
        y[p] = _quotient(k, *values) if divides else k.math(mnemonic, *values)
    phase = Phase(k.function_name, -(-i.count // PIECE), CHEAP_GRAIN if mnemonic in CHEAP else 1)
    return macro_of([k], [phase], (i.count,), faults=("integer division by zero",) if divides else ())


def _quotient(k: Kernel, dividend: Value, divisor: Value) -> Value:
    """Division of integers, of which zero is a fault."""
    is_zero = divisor.compare("eq", 0)
    with k.when(is_zero):
        k.fault(0)
    return k.math("DIV", dividend, k.select(is_zero, k.const(divisor.ty, 1), divisor), fail=lambda *known: None)


LOWERINGS: dict[str, Lowering] = {"ParallelMap": map_elements, "ParallelMapBinary": map_elements}
