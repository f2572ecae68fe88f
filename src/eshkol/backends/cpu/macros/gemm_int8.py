"""The product of I8 matrices: sums in I32, scaled in F64, rounded to even and saturated, as the reference does it.

Where the machine multiplies and sums groups of four I8 at once, units are such groups. VNNI takes one factor without
sign: 128 is added to A, and sums begin at what that adds too much. Elsewhere units are pairs of I16, or single I32.
"""

from __future__ import annotations

from dataclasses import replace

from eshkol.atlas.isa import Instruction
from eshkol.atlas.table.linear import combined_scale
from eshkol.atlas.types import Type
from eshkol.backends.cpu.kernels.macro import Lowering, Macro
from eshkol.backends.cpu.macros.gemm_amx import amx_style
from eshkol.backends.cpu.macros.gemm_plan import Epilogue, Product
from eshkol.backends.cpu.macros.gemm_tiles import product_macro
from eshkol.backends.cpu.macros.gemm_units import Style, dot_step, single_style
from eshkol.backends.cpu.macros.kit import Kernel, Value, real_bits
from eshkol.llvm.targets import Target

ROUNDING = 1.5 * 2**52  # a small F64 plus this has no place for a fraction: it is rounded to even


def int8_style(target: Target, m: int, n: int) -> Style:
    """The fastest way this machine multiplies I8."""
    style = single_style(Type.I32, target, m, n)
    fours, pairs = replace(style, element=Type.I8, group=4), replace(style, element=Type.I16, group=2)
    bits = style.lanes * 32
    if target.has("dotprod"):
        return replace(fours, name=f"sdot_{style.name}", step=dot_step("llvm.aarch64.neon.sdot.v4i32.v16i8", Type.I8))
    if (tiles := amx_style(Type.I8, target)) is not None:
        return tiles
    if (bits == 512 and target.has("avx512vnni")) or (bits == 256 and target.has("avxvnni")):
        step = dot_step(f"llvm.x86.avx512.vpdpbusd.{bits}", Type.I8, unsigned_a=True)
        return replace(fours, name=f"vnni_{style.name}", step=step, unsigned_a=True)
    if bits >= 256:
        intrinsic = "llvm.x86.avx2.pmadd.wd" if bits == 256 else "llvm.x86.avx512.pmaddw.d.512"
        return replace(pairs, name=f"i16_{style.name}", step=dot_step(intrinsic, Type.I16, adds=False))
    return style


def quantized_gemm(i: Instruction, target: Target) -> Macro:
    """C = A·B·scale in I8."""

    def epilogue(k: Kernel, word: int) -> Epilogue:
        c, scale = k.operand(0, Type.I8), k.real_word(word, Type.F64)

        def before(value: Value, place: Value, column: Value) -> Value:
            wide = value.to(Type.F64) * scale
            inside = k.minimum(k.maximum(wide, k.like(wide, -128.0)), k.like(wide, 127.0))
            whole = inside + ROUNDING - ROUNDING
            text = k.op(f"fptosi {whole.llvm} {whole} to {k.llvm(Type.I32, whole.lanes)}")
            return Value(k, Type.I32, text, whole.lanes)

        return Epilogue(before, lambda value, place: c.put(place, value.to(Type.I8)))

    style = int8_style(target, i.m, i.n)
    return product_macro(Product(
        "quantized_gemm", target, style, Type.I8, 1, i.m, i.n, i.k, epilogue,
        epilogue_words=(real_bits(combined_scale(i)),),
    ))  # fmt: skip


LOWERINGS: dict[str, Lowering] = {"QuantizedGEMM": quantized_gemm}
