"""Row by row: softmax, normalization and the like, each a few passes over a row that stays in cache."""

from __future__ import annotations

import math

from eshkol.atlas.isa import Instruction
from eshkol.backends.cpu.macros.kit import Kernel, compute_type
from eshkol.backends.llvm.compile import Target
from eshkol.backends.llvm.macro import Lowering, Macro, Phase


def softmax(i: Instruction, target: Target) -> Macro:
    """exp(x - max) / sum; the exponentials are written to the output and scaled there."""
    name = f"softmax_{i.ty}".lower()
    k, compute = Kernel(name, target, operands=2), compute_type(i.ty)
    y, x, n = k.operand(0, i.ty), k.operand(1, i.ty), k.word(0)
    top, total = k.variable(k.const(compute, -math.inf)), k.variable(k.const(compute, 0))
    with k.loop(0, n) as p:
        top.value = k.maximum(top.value, x[p])
    with k.reordering(), k.loop(0, n) as p:
        weight = k.math("EXP", x[p] - top.value)
        total.value = total.value + weight
        y[p] = weight
    scale = 1.0 / total.value
    with k.loop(0, n) as p:
        y[p] = y[p] * scale
    return Macro((k.function(),), (Phase(name, 1),), (i.n,), k.declarations)


LOWERINGS: dict[str, Lowering] = {"Softmax": softmax}
