"""Reductions of an array to one element, for the lane that asks: sums, products, extremes.

Comes in: ReduceAdd and its kin, ParallelReduce; goes out: a macro of one task that writes the lane's register. Floats
are summed in many partial sums at once, 16-bit ones in F32, so a core is kept busy by memory alone.
"""

from __future__ import annotations

from functools import partial

from eshkol.atlas.isa import Instruction
from eshkol.atlas.operands import ReduceOperation
from eshkol.atlas.table.arrays import identity
from eshkol.atlas.types import Type
from eshkol.backends.cpu.kernels.macro import Lowering, Macro, Phase
from eshkol.backends.cpu.macros.kit import Kernel, Value, compute_type
from eshkol.llvm.targets import Target

AHEAD = 1024  # bytes by which memory is asked for before it is read: ARM's own prefetching comes a little late
SHORT = 128  # elements of an array for which a lane's call is worth avoiding


class Fold:
    """A reduction under way over vectors of all the widths that `Kernel.strips` takes an array by.

    The operation is add, mul, min, max (these two pass over NaN) or maximum (which does not).
    """

    def __init__(self, k: Kernel, operation: str, ty: Type, start: int | float) -> None:
        self.k, self.operation, compute = k, operation, compute_type(ty)
        self.parts = {lanes: k.variable(k.const(compute, start, lanes)) for lanes in k.widths(ty)}

    def take(self, value: Value) -> None:
        part = self.parts[value.lanes]
        part.value = self._step(part.value, value)

    def result(self) -> Value:
        first, *others = (self.k.reduce(self.operation, part.value) for part in self.parts.values())
        for other in others:
            first = self._step(first, other)
        return first

    def _step(self, a: Value, b: Value) -> Value:
        k = self.k
        if self.operation in ("add", "mul"):
            with k.reordering():
                return a + b if self.operation == "add" else a * b
        return {"min": k.min_number, "max": k.max_number, "maximum": k.maximum}[self.operation](a, b)


def _reduce(i: Instruction, target: Target, operation: ReduceOperation) -> Macro | None:
    if i.ty.is_wide:
        return None
    short, word = i.count <= SHORT, operation.value.lower()
    name = f"reduce_{operation.name}_{i.ty}{'_short' if short else ''}".lower()
    k = Kernel(name, target, operands=2, inline=short)
    out, x, n = k.operand(0, i.ty), k.operand(1, i.ty), k.word(0)
    empty = identity(operation, i.ty)
    # Of floats, extremes start from NaN, which any number displaces: NaN is left only where all are.
    passes_over = i.ty.is_float and word in ("min", "max")
    fold = Fold(k, word, i.ty, float("nan") if passes_over else empty)
    for p, lanes in k.strips(i.ty, n):
        if target.is_arm and not short and lanes == k.widths(i.ty)[0]:
            k.prefetch(x.at(p + AHEAD // i.ty.size_bytes), near=True)
        fold.take(x.vector(p, lanes))
    result = fold.result()
    if passes_over:
        result = k.select(n > 0, result, k.const(result.ty, empty))
    out[0] = result
    return Macro((k.function(),), (Phase(name, 1),), (i.count,), k.declarations)


def _by_operand(i: Instruction, target: Target) -> Macro | None:
    return _reduce(i, target, i.operation)


LOWERINGS: dict[str, Lowering] = {
    "ReduceAdd": partial(_reduce, operation=ReduceOperation.Sum),
    "ReduceMul": partial(_reduce, operation=ReduceOperation.Product),
    "ReduceMin": partial(_reduce, operation=ReduceOperation.Min),
    "ReduceMax": partial(_reduce, operation=ReduceOperation.Max),
    "ParallelReduce": _by_operand,
}
