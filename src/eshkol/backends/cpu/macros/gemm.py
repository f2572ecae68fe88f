"""Matrix products of floats as macros: which style, and what becomes of the sums; the work is in `gemm_tiles`."""

from __future__ import annotations

import struct
from collections.abc import Callable

from eshkol.atlas.isa import Instruction
from eshkol.atlas.table.fused import fused_compute_type
from eshkol.atlas.types import Type
from eshkol.backends.cpu.macros.gemm_tiles import Epilogue, Product
from eshkol.backends.cpu.macros.gemm_units import float_style
from eshkol.backends.cpu.macros.kit import Kernel, Value, compute_type
from eshkol.backends.llvm.compile import Target
from eshkol.backends.llvm.macro import Lowering, Macro


def real_bits(value: float) -> int:
    """A number as the word that `Kernel.real_word` reads."""
    return int(struct.unpack("<q", struct.pack("<d", value))[0])


def _stored(k: Kernel, out: Type) -> Callable[[Value, Value], None]:
    """Values rounded to the type of C and stored."""
    c = k.operand(0, out)
    return lambda value, place: c.put(place, value.to(compute_type(out)))


def _plain(out: Type) -> Callable[[Kernel, int], Epilogue]:
    """C = sums."""
    return lambda k, word: Epilogue(lambda value, place, column: value, _stored(k, out))


def gemm(i: Instruction, target: Target) -> Macro:
    """C = alpha·A·B + beta·C; where beta is 0, code that does not read C."""
    compute, scaled = compute_type(i.ty), i.beta != 0

    def epilogue(k: Kernel, word: int) -> Epilogue:
        c, alpha = k.operand(0, i.ty), k.real_word(word, compute)
        beta = k.real_word(word + 1, compute) if scaled else None

        def before(value: Value, place: Value, column: Value) -> Value:
            value = value * alpha
            return value if beta is None else k.muladd(c.vector(place, value.lanes), beta, value)

        return Epilogue(before, _stored(k, i.ty))

    words = (real_bits(i.alpha), real_bits(i.beta))
    name = f"gemm_{i.ty}{'_update' if scaled else ''}".lower()
    style = float_style(compute, target)
    return Product(name, target, style, i.ty, 1, i.m, i.n, i.k, epilogue, epilogue_words=words).macro()


def batched_gemm(i: Instruction, target: Target) -> Macro:
    """C = A·B for each of a batch."""
    style, name = float_style(compute_type(i.ty), target), f"batched_gemm_{i.ty}".lower()
    return Product(name, target, style, i.ty, i.batch, i.m, i.n, i.k, _plain(i.ty)).macro()


def mixed_gemm(i: Instruction, target: Target) -> Macro:
    """16-bit A and B, C in F32."""
    style, name = float_style(Type.F32, target), f"mixed_gemm_{i.ty}".lower()
    return Product(name, target, style, i.ty, 1, i.m, i.n, i.k, _plain(Type.F32)).macro()


def fused_gemm(i: Instruction, target: Target) -> Macro:
    """C = activation(alpha·A·B + bias) + residual, while the sums are at hand."""
    compute, mnemonic = fused_compute_type(i), i.activation.value
    extras = [name for name in ("bias", "residual") if getattr(i, name) is not None]

    def epilogue(k: Kernel, word: int) -> Epilogue:
        alpha = k.real_word(word, compute)
        arrays = {name: k.operand(3 + number, i.out_ty) for number, name in enumerate(extras)}
        store = _stored(k, i.out_ty)

        def before(value: Value, place: Value, column: Value) -> Value:
            value = value * alpha
            return value + arrays["bias"].vector(column, value.lanes).to(compute) if "bias" in arrays else value

        def finish(value: Value, place: Value) -> None:
            if "residual" in arrays:
                value = value + arrays["residual"].vector(place, value.lanes).to(compute)
            store(value, place)

        return Epilogue(before, finish, (lambda value: k.math(mnemonic, value)) if mnemonic else None)

    name = "_".join(["fused_gemm", str(i.ty), str(i.out_ty), str(i.activation), *extras]).lower()
    return Product(
        name, target, float_style(compute, target), i.ty, 1, i.m, i.n, i.k, epilogue, 3 + len(extras),
        (real_bits(i.alpha),),
    ).macro()  # fmt: skip


LOWERINGS: dict[str, Lowering] = {
    "GEMM": gemm,
    "BatchedGEMM": batched_gemm,
    "MixedPrecisionGEMM": mixed_gemm,
    "FusedGEMM": fused_gemm,
}
