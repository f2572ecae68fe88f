"""Simple extensions: register instructions that expand into a few base instructions.

Each meaning is the composition of the base meanings it expands into, so both forms give the same bits.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from eshkol.atlas import numerics as nx
from eshkol.atlas.isa import CodeBuilder, Group, Instruction, Values
from eshkol.atlas.numerics import plain
from eshkol.atlas.operands import Condition, Register
from eshkol.atlas.table.rows import DST, SRC, UNARY, row, use
from eshkol.atlas.types import ALL_TYPES, FLOATS, SIGNED, Array, Type

G = Group.SIMPLE
A, B, C = use("a"), use("b"), use("c")


def _fms(b: CodeBuilder, i: Instruction) -> None:
    minus = b.reg()
    b.neg(minus, i.c)
    b.fma(i.dst, i.a, i.b, minus)


def _rcp(b: CodeBuilder, i: Instruction) -> None:
    b.div(i.dst, b.constant(b.type_of(i.src), 1), i.src)


def _rsqrt(b: CodeBuilder, i: Instruction) -> None:
    root = b.reg()
    b.sqrt(root, i.src)
    b.div(i.dst, b.constant(b.type_of(i.src), 1), root)


def _clamp(b: CodeBuilder, i: Instruction) -> None:
    raised = b.reg()
    b.max(raised, i.src, i.min)
    b.min(i.dst, raised, i.max)


def _lerp(b: CodeBuilder, i: Instruction) -> None:
    span = b.reg()
    b.sub(span, i.b, i.a)
    b.fma(i.dst, span, i.t, i.a)


def _sign(b: CodeBuilder, i: Instruction) -> None:
    ty, positive, result = b.type_of(i.src), b.pred(), b.reg()
    zero = b.constant(ty, 0)
    b.setcc(Condition.GT, positive, i.src, zero)
    if ty.is_signed:
        negative = b.pred()
        b.setcc(Condition.LT, negative, i.src, zero)
        b.sel(result, negative, b.constant(ty, -1), i.src)
    else:
        b.mov(result, i.src)
    b.sel(i.dst, positive, b.constant(ty, 1), result)


def _relu(b: CodeBuilder, i: Instruction) -> None:
    negative, zero = b.pred(), b.constant(b.type_of(i.src), 0)
    b.setcc(Condition.LT, negative, i.src, zero)
    b.sel(i.dst, negative, zero, i.src)


def _signed_round(b: CodeBuilder, src: Register, *, truncate: bool) -> Register:
    """src rounded to even (or toward zero), for |src| below 2^mantissa: adding that power drops the fraction."""
    ty = b.type_of(src)
    magnitude, rounded, flipped, result, negative = b.reg(), b.reg(), b.reg(), b.reg(), b.pred()
    power = b.constant(ty, 2.0**ty.mantissa_bits)
    b.abs(magnitude, src)
    b.add(rounded, magnitude, power)
    b.sub(rounded, rounded, power)
    if truncate:
        over, lower = b.pred(), b.reg()
        b.sub(lower, rounded, b.constant(ty, 1))
        b.setcc(Condition.GT, over, rounded, magnitude)
        b.sel(rounded, over, lower, rounded)
    b.neg(flipped, rounded)
    b.setcc(Condition.LT, negative, src, b.constant(ty, 0))
    b.sel(result, negative, flipped, rounded)
    return result


def _keep_integral(b: CodeBuilder, dst: Register, src: Register, rounded: Register) -> None:
    """dst = rounded, or src itself where it is zero, already integral by size, infinite or NaN."""
    ty, magnitude, small, zero = b.type_of(src), b.reg(), b.pred(), b.pred()
    kept = b.reg()
    b.abs(magnitude, src)
    b.setcc(Condition.LT, small, magnitude, b.constant(ty, 2.0**ty.mantissa_bits))
    b.setcc(Condition.EQ, zero, src, b.constant(ty, 0))
    b.sel(kept, small, rounded, src)
    b.sel(dst, zero, src, kept)


def _round(b: CodeBuilder, i: Instruction) -> None:
    _keep_integral(b, i.dst, i.src, _signed_round(b, i.src, truncate=False))


def _trunc(b: CodeBuilder, i: Instruction) -> None:
    _keep_integral(b, i.dst, i.src, _signed_round(b, i.src, truncate=True))


def _floor_into(b: CodeBuilder, dst: Register, src: Register) -> None:
    rounded = _signed_round(b, src, truncate=False)
    above, lower = b.pred(), b.reg()
    b.sub(lower, rounded, b.constant(b.type_of(src), 1))
    b.setcc(Condition.GT, above, rounded, src)
    b.sel(rounded, above, lower, rounded)
    _keep_integral(b, dst, src, rounded)


def _floor(b: CodeBuilder, i: Instruction) -> None:
    _floor_into(b, i.dst, i.src)


def _ceil(b: CodeBuilder, i: Instruction) -> None:
    minus, floored = b.reg(b.type_of(i.src)), b.reg()
    b.neg(minus, i.src)
    _floor_into(b, floored, minus)
    b.neg(i.dst, floored)


def _gelu(b: CodeBuilder, i: Instruction) -> None:
    ty, scaled, half = b.type_of(i.src), b.reg(), b.reg()
    b.mul(scaled, i.src, b.constant(ty, ROOT_HALF))
    b.erf(scaled, scaled)
    b.add(scaled, scaled, b.constant(ty, 1))
    b.mul(half, i.src, b.constant(ty, 0.5))
    b.mul(i.dst, half, scaled)


def _swish(b: CodeBuilder, i: Instruction) -> None:
    gate = b.reg()
    b.sigmoid(gate, i.src)
    b.mul(i.dst, i.src, gate)


ROOT_HALF = 0.7071067811865476


def _composed(steps: Callable[..., Array]) -> Values:
    """A float meaning made of several base steps, each rounded to the type as the expansion rounds it.

    `steps` gets a rounding function and the inputs, 16-bit floats as F32.
    """

    def meaning(i: Instruction, ty: Type, *inputs: Array) -> Array:
        compute = np.dtype(np.float32) if ty.is_half else ty.dtype

        def rounded(value: Array | float) -> Array:
            return np.asarray(value).astype(ty.dtype).astype(compute)

        return np.asarray(steps(rounded, *(a.astype(compute) for a in inputs))).astype(ty.dtype)

    return Values(meaning, raw=True)


Rounding = Callable[[Array | float], Array]


def _gelu_steps(rounded: Rounding, x: Array) -> Array:
    scaled = rounded(x * rounded(ROOT_HALF))
    inner = rounded(rounded(nx.erf(scaled.astype(np.float64))) + rounded(1.0))
    return rounded(x * rounded(0.5)) * inner


def _swish_steps(rounded: Rounding, x: Array) -> Array:
    return np.asarray(x * rounded(nx.sigmoid(x.astype(np.float64))))


def _rsqrt_steps(rounded: Rounding, x: Array) -> Array:
    return rounded(1.0) / rounded(np.sqrt(x))


def _lerp_steps(rounded: Rounding, a: Array, b: Array, t: Array) -> Array:
    return nx.fma(Type.of_dtype(a.dtype), rounded(b - a), t, a)


row("FMS", G, "dst = a × b - c, rounded once", (DST, A, B, C),
    Values(lambda i, t, a, b, c: nx.fma(t, a, b, -c)), ALL_TYPES, expand=_fms)  # fmt: skip
row("RCP", G, "dst = 1 / src", UNARY, plain(np.reciprocal), FLOATS, expand=_rcp)
row("RSQRT", G, "dst = 1 / sqrt(src)", UNARY, _composed(_rsqrt_steps), FLOATS, expand=_rsqrt)
row("CLAMP", G, "dst = src brought between min and max", (DST, SRC, use("min"), use("max")),
    Values(lambda i, t, x, low, high: nx.minimum(i, t, nx.maximum(i, t, x, low), high)), ALL_TYPES,
    expand=_clamp)  # fmt: skip
row("LERP", G, "dst = a + (b - a) × t, the product and sum rounded once", (DST, A, B, use("t")),
    _composed(_lerp_steps), FLOATS, expand=_lerp)  # fmt: skip
row("SIGN", G, "dst = -1, 0 or 1; keeps -0.0 and NaN", UNARY, Values(nx.sign), ALL_TYPES, expand=_sign)
row("FLOOR", G, "the greatest integer not above src", UNARY, plain(np.floor), FLOATS, expand=_floor)
row("CEIL", G, "the least integer not below src", UNARY, plain(np.ceil), FLOATS, expand=_ceil)
row("ROUND", G, "the nearest integer, ties to even", UNARY, plain(np.rint), FLOATS, expand=_round)
row("TRUNC", G, "src without its fraction", UNARY, plain(np.trunc), FLOATS, expand=_trunc)
row("RELU", G, "src where it is not negative, else 0; NaN stays NaN", UNARY,
    Values(lambda i, t, x: np.where(x < 0, np.zeros_like(x), x)), FLOATS | SIGNED, expand=_relu)  # fmt: skip
row("GELU", Group.ADVANCED, "src × Φ(src) with the exact Gaussian Φ", UNARY, _composed(_gelu_steps), FLOATS,
    expand=_gelu)  # fmt: skip
row("SWISH", Group.ADVANCED, "src × sigmoid(src)", UNARY, _composed(_swish_steps), FLOATS, expand=_swish)
