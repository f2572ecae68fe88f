"""Matrix products of floats as macros: which style, how operands lie, what becomes of the sums.

The work is in `gemm_plan` (how a product is cut up), `gemm_pack`, `gemm_tiles`, and for what tiles would not suit: for
vectors `gemv`, for a few of them `gemm_few`, for many small matrices `gemm_small`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

from eshkol.atlas.isa import Instruction
from eshkol.atlas.operands import Activation
from eshkol.atlas.table.batched import batch_axes, strides
from eshkol.atlas.table.fused import fused_compute_type
from eshkol.atlas.table.linear import contract_axes, is_transposed
from eshkol.atlas.types import Type
from eshkol.backends.cpu.kernels.macro import Lowering, Macro, Phase
from eshkol.backends.cpu.macros.gemm_amx import amx_style
from eshkol.backends.cpu.macros.gemm_plan import OPERAND, WORDS, Epilogue, Laid, Product, dense
from eshkol.backends.cpu.macros.gemm_tiles import product_macro
from eshkol.backends.cpu.macros.gemm_units import Style, dot_step, single_style
from eshkol.backends.cpu.macros.kit import Kernel, Value, compute_type, real_bits
from eshkol.llvm.targets import Target

ARRANGED = 1 << 14  # elements that a task of arranging axes is worth


def float_style(ty: Type, compute: Type, target: Target, m: int, n: int) -> Style:
    """How floats of a type are multiplied: pairs of BF16 where the machine does that, else single numbers."""
    single = single_style(compute, target, m, n)
    if ty is Type.BF16 and compute is Type.F32:
        if (tiles := amx_style(ty, target)) is not None:
            return tiles
        if target.vector_bits == 512 and target.has("avx512bf16"):
            step = dot_step("llvm.x86.avx512bf16.dpbf16ps.512", ty)
            return replace(single, name=f"bf16_{single.name}", element=ty, group=2, unit=Type.I32, step=step)
    return single


def _stored(k: Kernel, out: Type) -> Callable[[Value, Value], None]:
    """Values rounded to the type of C and stored."""
    c = k.operand(0, out)
    return lambda value, place: c.put(place, value.to(compute_type(out)))


def _plain(out: Type) -> Callable[[Kernel, int], Epilogue]:
    """C = sums."""
    return lambda k, word: Epilogue(lambda value, place, column: value, _stored(k, out))


def _laid(i: Instruction, name: str) -> Laid:
    """How A or B lies in memory, dense but perhaps transposed."""
    rows, columns = (i.m, i.k) if name == "a" else (i.k, i.n)
    return _straightened(dense(rows, columns, turned=is_transposed(i, name)), rows, columns)


def _straightened(laid: Laid, rows: int, columns: int) -> Laid:
    """A transposed column (or row) of neighbours is a row (or column) that is not transposed."""
    if laid.turned and laid.line == 1 and rows == 1:
        return replace(laid, turned=False, line=columns)
    return replace(laid, turned=False, line=1) if laid.turned and columns == 1 else laid


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
    style = float_style(i.ty, compute, target, i.m, i.n)
    return product_macro(
        Product(
            name,
            target,
            style,
            i.ty,
            1,
            i.m,
            i.n,
            i.k,
            epilogue,
            epilogue_words=words,
            laid_a=_laid(i, "a"),
            laid_b=_laid(i, "b"),
            follows=scaled,
        )
    )


def batched_gemm(i: Instruction, target: Target) -> Macro | None:
    """C = alpha·A·B for each of a batch, if its axes are no more than two once those that allow it are one."""
    axes = [axis for axis in zip(batch_axes(i), *(strides(i, name) for name in "abc"), strict=False) if axis[0] != 1]
    merged: list[tuple[int, ...]] = []
    for extent, *steps in reversed(axes):
        if merged and all(step == merged[-1][0] * below for step, below in zip(steps, merged[-1][1:], strict=True)):
            merged[-1] = (merged[-1][0] * extent, *merged[-1][1:])
        else:
            merged.append((extent, *steps))
    if len(merged) > 2:
        return None
    compute = compute_type(i.ty)
    (inner, *inner_steps), (_, *outer_steps) = [*merged, (1, 0, 0, 0), (1, 0, 0, 0)][:2]
    if len(merged) < 2:  # one axis: the outer one
        inner, outer_steps, inner_steps = 1, inner_steps, [0, 0, 0]
    lines = [strides(i, name)[-2] for name in "abc"]
    a, b, c = (
        Laid(line, outer, step, is_transposed(i, name))
        for name, line, outer, step in zip("abc", lines, outer_steps, inner_steps, strict=True)
    )
    a, b = _straightened(a, i.m, i.k), _straightened(b, i.k, i.n)
    batch, m = i.batch, i.m
    together = len(merged) == 1 and b.outer == 0 and not a.turned
    if together and (a.outer, c.outer) == (m * a.line, m * c.line):  # one B for all: one long product
        batch, m = 1, m * batch

    def epilogue(k: Kernel, word: int) -> Epilogue:
        alpha = k.real_word(word, compute)
        return Epilogue(lambda value, place, column: value * alpha, _stored(k, i.ty))

    return product_macro(Product(
        f"batched_gemm_{i.ty}".lower(), target, float_style(i.ty, compute, target, m, i.n), i.ty, batch, m, i.n, i.k,
        epilogue, epilogue_words=(real_bits(i.alpha),), laid_a=a, laid_b=b, laid_c=c, inner=inner, follows=False,
    ))  # fmt: skip


def mixed_gemm(i: Instruction, target: Target) -> Macro:
    """16-bit A and B, C in F32."""
    style, name = float_style(i.ty, Type.F32, target, i.m, i.n), f"mixed_gemm_{i.ty}".lower()
    return product_macro(Product(name, target, style, i.ty, 1, i.m, i.n, i.k, _plain(Type.F32)))


def fused_gemm(i: Instruction, target: Target) -> Macro:
    """C = activation(alpha·A·B + bias) + residual, while the sums are at hand."""
    compute, mnemonic = fused_compute_type(i), i.activation.value
    extras = [name for name in ("bias", "residual") if getattr(i, name) is not None]
    rectified = i.activation is Activation.Relu  # done in registers

    def epilogue(k: Kernel, word: int) -> Epilogue:
        alpha = k.real_word(word, compute)
        arrays = {name: k.operand(3 + number, i.out_ty) for number, name in enumerate(extras)}
        store = _stored(k, i.out_ty)

        def before(value: Value, place: Value, column: Value) -> Value:
            value = value * alpha
            if "bias" in arrays:
                value = value + arrays["bias"].vector(column, value.lanes).to(compute)
            return k.where(value < 0.0, k.like(value, 0.0), value) if rectified else value

        def finish(value: Value, place: Value) -> None:
            if "residual" in arrays:
                value = value + arrays["residual"].vector(place, value.lanes).to(compute)
            store(value, place)

        single = mnemonic and not rectified
        return Epilogue(before, finish, (lambda value: k.math(mnemonic, value)) if single else None)

    name = "_".join(["fused_gemm", str(i.ty), str(i.out_ty), str(i.activation), *extras]).lower()
    return product_macro(Product(
        name, target, float_style(i.ty, compute, target, i.m, i.n), i.ty, 1, i.m, i.n, i.k, epilogue, 3 + len(extras),
        (real_bits(i.alpha),), laid_a=_laid(i, "a"), laid_b=_laid(i, "b"),
    ))  # fmt: skip


# --- contraction ----------------------------------------------------------------------------------


def tensor_contract(i: Instruction, target: Target) -> Macro:
    """A and B with their axes arranged as matrices (in copies, where they are not so already), and a product."""
    pairs = sorted(i.contract_dims)  # sums may be taken in any order: A needs no copy if these axes are its last
    free_a, free_b = contract_axes(i)
    orders = [*free_a, *(p for p, _ in pairs)], [*(q for _, q in pairs), *free_b]
    m, n = (math.prod(shape[axis] for axis in free) for shape, free in ((i.shape_a, free_a), (i.shape_b, free_b)))
    sources, scratch = [OPERAND, OPERAND], 0
    first: list[tuple[str, Phase]] = []
    words: list[int] = []
    declared: list[str] = []
    for operand, (shape, order) in enumerate(((i.shape_a, orders[0]), (i.shape_b, orders[1]))):
        if order == sorted(order):
            continue
        k = _arrange(i.ty, target, operand + 1, len(order), len(words))
        *outer, last = (shape[axis] for axis in order)
        first.append((k.function(), Phase(k.function_name, math.prod(outer), max(1, ARRANGED // max(last, 1)))))
        declared += k.declarations
        words += [scratch, *(shape[axis] for axis in order), *(math.prod(shape[axis + 1 :]) for axis in order)]
        sources[operand] = scratch
        scratch += -(-math.prod(shape) * i.ty.size_bytes // 64) * 64
    style = float_style(i.ty, compute_type(i.ty), target, m, n)
    size = math.prod(i.shape_a[p] for p, _ in pairs)
    return product_macro(Product(
        f"contract_{i.ty}".lower(), target, style, i.ty, 1, m, n, size, _plain(i.ty), epilogue_words=tuple(words),
        a_from=sources[0], b_from=sources[1], scratch=scratch, first=tuple(first), declared=tuple(declared),
    ))  # fmt: skip


def _arrange(ty: Type, target: Target, operand: int, rank: int, word: int) -> Kernel:
    """A copy of an operand with its axes in another order. From `word` on: where to, the new extents, their strides."""
    raw = Type.U16 if ty.is_half else ty
    k = Kernel(f"arrange_{raw}_{operand}_{rank}_{word}".lower(), target, 3)
    into_at, *numbers = (k.word(len(WORDS) + word + n) for n in range(1 + 2 * rank))
    extents, strides = numbers[:rank], numbers[rank:]
    source, into = k.operand(operand, raw), k.scratch(raw, into_at)
    with k.tasks() as task:  # a task is a line of the copy
        start, rest = k.const(Type.I64, 0), task
        for extent, stride in reversed(list(zip(extents[:-1], strides[:-1], strict=True))):
            start, rest = start + rest % extent * stride, rest // extent
        with k.parallel(0, extents[-1]) as e:
            into[task * extents[-1] + e] = source[start + e * strides[-1]]
    return k


LOWERINGS: dict[str, Lowering] = {
    "GEMM": gemm,
    "BatchedGEMM": batched_gemm,
    "MixedPrecisionGEMM": mixed_gemm,
    "FusedGEMM": fused_gemm,
    "TensorContract": tensor_contract,
}
