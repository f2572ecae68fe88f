"""Products of floats of 8 bits, which lie in memory as bytes: e4m3, without infinity, and e5m2, the half of an F16."""

from __future__ import annotations

import math

import numpy as np

from eshkol.atlas.isa import Arrays, CodeBuilder, Field, Group, Instruction, Kind
from eshkol.atlas.operands import Condition, Register
from eshkol.atlas.table import emit
from eshkol.atlas.table.rows import TY, count, read, row, write
from eshkol.atlas.types import Array, Type

MANTISSA, BIAS = {False: 3, True: 2}, {False: 7, True: 15}  # by whether the exponent is the wider one
SIGN = 0x80


def decoded(x: Array, wide: bool) -> Array:
    """What bytes stand for."""
    mantissa = MANTISSA[wide]
    size = np.asarray(x, np.int64) & (SIGN - 1)
    exponent, rest = size >> mantissa, size & ((1 << mantissa) - 1)
    found = np.where(exponent > 0, (1 << mantissa) + rest, 2 * rest) * 2.0 ** (exponent - BIAS[wide] - mantissa)
    if wide:
        found = np.where(size == 0x7C, np.inf, np.where(size > 0x7C, np.nan, found))
    else:
        found = np.where(size == SIGN - 1, np.nan, found)
    negated: Array = np.where(np.asarray(x, np.int64) >= SIGN, -found, found)
    return negated


def _product(i: Instruction, a: Array, b: Array, scale: Array) -> tuple[Array]:
    return ((decoded(a, i.wide_a) @ decoded(b, i.wide_b).T) * scale[0],)


def _decode(b: CodeBuilder, byte: Register, *, wide: bool) -> Register:
    """The same in F32, exactly: a whole number times a power of two."""
    mantissa, one = MANTISSA[wide], b.constant(Type.U32, 1)
    size, exponent, rest, power = (b.reg(Type.U32) for _ in range(4))
    b.and_(size, byte, b.constant(Type.U32, SIGN - 1))
    b.shr(exponent, size, b.constant(Type.U32, mantissa))
    b.and_(rest, size, b.constant(Type.U32, (1 << mantissa) - 1))
    b.shl(power, one, exponent)
    normal, full, double = b.pred(), b.reg(Type.U32), b.reg(Type.U32)
    b.setcc(Condition.NE, normal, exponent, b.constant(Type.U32, 0))
    b.add(full, rest, b.constant(Type.U32, 1 << mantissa))
    b.add(double, rest, rest)
    b.sel(full, normal, full, double)
    found, factor = b.reg(Type.F32), b.reg(Type.F32)
    b.cvt(Type.U32, Type.F32, found, full)
    b.cvt(Type.U32, Type.F32, factor, power)
    b.mul(found, found, factor)
    b.mul(found, found, b.constant(Type.F32, 2.0 ** (-BIAS[wide] - mantissa)))
    beyond = b.pred()
    for least, value in ((0x7C, math.inf), (0x7D, math.nan)) if wide else ((0x7F, math.nan),):
        b.setcc(Condition.GE, beyond, size, b.constant(Type.U32, least))
        b.sel(found, beyond, b.constant(Type.F32, value), found)
    negative, against = b.pred(), b.reg(Type.F32)
    b.setcc(Condition.GE, negative, byte, b.constant(Type.U32, SIGN))
    b.neg(against, found)
    b.sel(found, negative, against, found)
    return found


def _expand(b: CodeBuilder, i: Instruction) -> None:
    with b.loop(i.m) as r, b.loop(i.n) as c:
        total = b.constant(Type.F32, 0)
        with b.loop(i.k) as p:
            left, right = (
                _decode(b, emit.fetch(b, x, emit.flat(b, (1, i.k), (line, p)), Type.U8, Type.U32), wide=wide)
                for x, line, wide in ((i.a, r, i.wide_a), (i.b, c, i.wide_b))
            )
            b.fma(total, left, right, total)
        b.mul(total, total, emit.fetch(b, i.scale, b.constant(Type.U32, 0), Type.F32))
        emit.put(b, i.c, emit.flat(b, (i.m, i.n), (r, c)), i.ty, total, Type.F32)


row("Float8GEMM", Group.ADVANCED,
    "C = scale·A·Bᵀ of bytes that are floats of 8 bits, e4m3, or e5m2 where a factor is wide; summed in F32",
    (TY, write("c", lambda i: (i.m, i.n)), read("a", lambda i: (i.m, i.k), Type.U8),
     read("b", lambda i: (i.n, i.k), Type.U8), read("scale", lambda i: (1,), Type.F32), count("m"), count("n"),
     count("k"), Field("wide_a", Kind.FLAG, default=False), Field("wide_b", Kind.FLAG, default=False)),
    Arrays(_product), frozenset({Type.F32, Type.F16, Type.BF16}), expand=_expand, traps=True,
    method="float8_gemm")  # fmt: skip
