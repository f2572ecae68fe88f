"""Extensions of linear algebra: matrix products, contraction, Fourier transform.

Matrices are row-major and dense unless said otherwise. Float results are those of exact arithmetic within
the usual bound of the compute type (F32 for 16-bit floats), whatever the order of summation.
"""

from __future__ import annotations

import math

import numpy as np

from eshkol.atlas.isa import Arrays, CodeBuilder, Field, Group, Instruction, Kind
from eshkol.atlas.operands import Condition, Register
from eshkol.atlas.table import emit
from eshkol.atlas.table.rows import TY, count, read, real, row, write
from eshkol.atlas.types import FLOATS, Array, Type
from eshkol.errors import IsaError

G = Group.COMPLEX
M, N, K, BATCH = count("m"), count("n"), count("k"), count("batch")
LONGEST_FFT = 1 << 20
LONGEST_SUM = 1 << 16  # products of I8, whose sum I32 holds


# --- matrix products ------------------------------------------------------------------------------


def stored(i: Instruction, name: str) -> tuple[int, int]:
    """Rows and columns of A or B as they lie in memory."""
    shape = (i.m, i.k) if name == "a" else (i.k, i.n)
    return shape[::-1] if is_transposed(i, name) else shape


def is_transposed(i: Instruction, name: str) -> bool:
    """Whether A or B lies in memory as its transpose; rows without the flag have none that does."""
    return f"transpose_{name}" in i.op.positions and getattr(i, f"transpose_{name}")


def factors(i: Instruction, a: Array, b: Array) -> tuple[Array, Array]:
    """A and B as they are multiplied."""
    return (a.swapaxes(-1, -2) if is_transposed(i, "a") else a, b.swapaxes(-1, -2) if is_transposed(i, "b") else b)


def _gemm(i: Instruction, *inputs: Array) -> tuple[Array]:
    a, b = factors(i, *inputs[-2:])
    return (i.alpha * (a @ b) + i.beta * inputs[0] if i.beta != 0 else i.alpha * (a @ b),)


def product(b: CodeBuilder, i: Instruction, ty: Type, compute: Type, r: Register, c: Register) -> Register:
    """The dot product of row r of A and column c of B, over k."""
    total = b.constant(compute, 0)
    with b.loop(i.k) as p:
        left, right = (
            (getattr(i, name), emit.flat(b, stored(i, name), at[::-1] if is_transposed(i, name) else at), ty)
            for name, at in (("a", (r, p)), ("b", (p, c)))
        )
        emit.accumulate_product(b, total, left, right, compute)
    return total


def _expand_gemm(b: CodeBuilder, i: Instruction) -> None:
    ty = i.ty
    with b.loop(i.m) as r, b.loop(i.n) as c:
        total, place = product(b, i, ty, emit.compute_type(ty), r, c), emit.flat(b, (i.m, i.n), (r, c))
        b.mul(total, total, emit.scalar(b, ty, i.alpha))
        if i.beta != 0:
            b.fma(total, emit.fetch(b, i.c, place, ty), emit.scalar(b, ty, i.beta), total)
        emit.put(b, i.c, place, ty, total)


def _expand_mixed(b: CodeBuilder, i: Instruction) -> None:
    with b.loop(i.m) as r, b.loop(i.n) as c:
        total = product(b, i, i.ty, Type.F32, r, c)
        emit.put(b, i.c, emit.flat(b, (i.m, i.n), (r, c)), Type.F32, total)


def _integer(i: Instruction, a: Array, b: Array) -> tuple[Array]:
    one, other = factors(i, a, b)
    return (one.astype(np.int64) @ other.astype(np.int64),)


def _expand_integer(b: CodeBuilder, i: Instruction) -> None:
    with b.loop(i.m) as r, b.loop(i.n) as c:
        total = product(b, i, Type.I8, Type.I32, r, c)
        emit.put(b, i.c, emit.flat(b, (i.m, i.n), (r, c)), Type.I32, total)


def _check_terms(i: Instruction) -> None:
    if i.k > LONGEST_SUM:
        raise IsaError(f"{i.op.name}: k = {i.k} could overflow the I32 sum; the limit is {LONGEST_SUM}", span=i.span)


def combined_scale(i: Instruction) -> float:
    return float(i.a_scale * i.b_scale / i.c_scale)


def _quantized(i: Instruction, a: Array, b: Array) -> tuple[Array]:
    total = (a.astype(np.int64) @ b.astype(np.int64)).astype(np.float64)
    return (np.clip(np.rint(total * combined_scale(i)), -128, 127).astype(np.int8),)


def _expand_quantized(b: CodeBuilder, i: Instruction) -> None:
    scale = b.constant(Type.F64, combined_scale(i))
    low, high = b.constant(Type.F64, -128), b.constant(Type.F64, 127)
    with b.loop(i.m) as r, b.loop(i.n) as c:
        total = product(b, i, Type.I8, Type.I32, r, c)
        value, rounded = b.reg(Type.F64), b.reg(Type.F64)
        b.cvt(Type.I32, Type.F64, value, total)
        b.mul(value, value, scale)
        b.max(value, value, low)
        b.min(value, value, high)
        b.round(rounded, value)  # ties to even, before the exact conversion
        emit.put(b, i.c, emit.flat(b, (i.m, i.n), (r, c)), Type.I8, rounded, Type.F64)


def _check_quantized(i: Instruction) -> None:
    scales = (i.a_scale, i.b_scale, i.c_scale)
    if not all(math.isfinite(s) and s > 0 for s in scales):
        raise IsaError(f"QuantizedGEMM: scales must be positive numbers, not {scales}", span=i.span)
    if not 0 < combined_scale(i) < math.inf:  # infinite or lost, it would make every sum an extreme or 0
        raise IsaError(
            f"QuantizedGEMM: a_scale·b_scale/c_scale is {combined_scale(i)} for scales {scales}", span=i.span,
            hint="keep the product and the quotient of the scales in the range of F64",
        )  # fmt: skip
    _check_terms(i)


_mk, _kn, _mn = (lambda i: stored(i, "a")), (lambda i: stored(i, "b")), (lambda i: (i.m, i.n))
TRANSPOSED = (Field("transpose_a", Kind.FLAG, default=False), Field("transpose_b", Kind.FLAG, default=False))
row("GEMM", G, "C = alpha·A·B + beta·C for A of m×k (k×m in memory if transposed), B of k×n; beta 0 does not read C",
    (TY, Field("c", Kind.UPDATE, "ty", shape=_mn, read_if=lambda i: i.beta != 0), read("a", _mk), read("b", _kn),
     M, N, K, real("alpha", 1.0), real("beta", 0.0), *TRANSPOSED),
    Arrays(_gemm), FLOATS, expand=_expand_gemm, traps=True)  # fmt: skip
row("MixedPrecisionGEMM", Group.ADVANCED, "C = A·B with 16-bit A and B, summed and stored in F32",
    (TY, write("c", _mn, Type.F32), read("a", _mk), read("b", _kn), M, N, K),
    Arrays(lambda i, a, b: (a @ b,)), frozenset({Type.F16, Type.BF16}), expand=_expand_mixed, traps=True)  # fmt: skip
row("IntegerGEMM", Group.ADVANCED, "C = A·B with I8 A and B, transposed or not, summed and stored in I32",
    (write("c", _mn, Type.I32), read("a", _mk, Type.I8), read("b", _kn, Type.I8), M, N, K, *TRANSPOSED),
    Arrays(_integer), expand=_expand_integer, check=_check_terms, traps=True)  # fmt: skip
row("QuantizedGEMM", Group.ADVANCED, "C = A·B·(a_scale·b_scale/c_scale) in I8: summed in I32, rounded, saturated",
    (write("c", _mn, Type.I8), read("a", _mk, Type.I8), read("b", _kn, Type.I8),
     real("a_scale"), real("b_scale"), real("c_scale"), M, N, K),
    Arrays(_quantized), expand=_expand_quantized, check=_check_quantized, traps=True)  # fmt: skip


# --- sparse and general contraction ---------------------------------------------------------------


def _sparse(i: Instruction, values: Array, indices: Array, ptr: Array, dense: Array) -> tuple[Array]:
    """CSR times dense; a malformed matrix is an error, never a wild read."""
    starts = ptr.astype(np.int64)
    if starts[0] != 0 or starts[-1] > i.nnz or (np.diff(starts) < 0).any():
        raise IsaError(f"SparseGEMM: a_ptr must rise from 0 to at most nnz = {i.nnz}", span=i.span)
    used = indices[: starts[-1]].astype(np.int64)
    if used.size and used.max() >= i.k:
        raise IsaError(f"SparseGEMM: column {used.max()} of a matrix with k = {i.k} columns", span=i.span)
    result = np.zeros((i.m, i.n))
    rows = np.repeat(np.arange(i.m), np.diff(starts))
    np.add.at(result, rows, values[: starts[-1], None] * dense[used])
    return (result,)


def _check_csr(b: CodeBuilder, i: Instruction) -> None:
    """Fault where the native form refuses the matrix."""
    bad, zero, one = b.pred(), b.constant(Type.U32, 0), b.constant(Type.U32, 1)

    def refuse(left: Register, condition: Condition, right: Register) -> None:
        b.setcc(condition, bad, left, right)
        emit.fault_where(b, bad, i.a_ptr, Type.U32)

    def start(r: Register) -> Register:
        return emit.fetch(b, i.a_ptr, r, Type.U32)

    refuse(start(zero), Condition.NE, zero)
    with b.loop(i.m) as r:
        after = b.reg(Type.U32)
        b.add(after, r, one)
        refuse(start(after), Condition.LT, start(r))
    last = start(b.constant(Type.U32, i.m))
    refuse(last, Condition.GT, b.constant(Type.U32, i.nnz))
    with b.loop(last) as q:
        refuse(emit.fetch(b, i.a_indices, q, Type.U32), Condition.GE, b.constant(Type.U32, i.k))


def _expand_sparse(b: CodeBuilder, i: Instruction) -> None:
    emit.touch_ends(b, i)
    if not i.m or not i.n:
        return
    _check_csr(b, i)
    ty, one = i.ty, b.constant(Type.U32, 1)
    with b.loop(i.m) as r, b.loop(i.n) as c:
        total, after, length = emit.scalar(b, ty, 0), b.reg(), b.reg()
        b.add(after, r, one)
        start = emit.fetch(b, i.a_ptr, r, Type.U32)
        b.sub(length, emit.fetch(b, i.a_ptr, after, Type.U32), start)
        with b.loop(length) as q:
            place = b.reg()
            b.add(place, start, q)
            column = emit.fetch(b, i.a_indices, place, Type.U32)
            at = emit.flat(b, (i.k, i.n), (column, c))
            b.fma(total, emit.fetch(b, i.a_values, place, ty), emit.fetch(b, i.b, at, ty), total)
        emit.put(b, i.c, emit.flat(b, (i.m, i.n), (r, c)), ty, total)


def contract_axes(i: Instruction) -> tuple[list[int], list[int]]:
    """The free axes of A and of B, in order."""
    left, right = {p for p, _ in i.contract_dims}, {q for _, q in i.contract_dims}
    return [k for k in range(len(i.shape_a)) if k not in left], [k for k in range(len(i.shape_b)) if k not in right]


def _contract_shape(i: Instruction) -> tuple[int, ...]:
    free_a, free_b = contract_axes(i)
    return tuple(i.shape_a[k] for k in free_a) + tuple(i.shape_b[k] for k in free_b)


def _check_contract(i: Instruction) -> None:
    for p, q in i.contract_dims:
        if p >= len(i.shape_a) or q >= len(i.shape_b):
            raise IsaError(f"TensorContract: axes ({p}, {q}) of shapes {i.shape_a} and {i.shape_b}", span=i.span)
        if i.shape_a[p] != i.shape_b[q]:
            raise IsaError(
                f"TensorContract: axis {p} of {i.shape_a} and axis {q} of {i.shape_b} differ in length",
                span=i.span,
            )
    if any(len({pair[side] for pair in i.contract_dims}) != len(i.contract_dims) for side in (0, 1)):
        raise IsaError("TensorContract: an axis is contracted twice", span=i.span)


def _contract(i: Instruction, a: Array, b: Array) -> tuple[Array]:
    left, right = [p for p, _ in i.contract_dims], [q for _, q in i.contract_dims]
    return (np.tensordot(a, b, (left, right)),)


def _expand_contract(b: CodeBuilder, i: Instruction) -> None:
    free_a, free_b = contract_axes(i)
    at_a: dict[int, Register] = {}
    at_b: dict[int, Register] = {}

    def outer(remaining: list[tuple[dict[int, Register], int, int]]) -> None:
        if remaining:
            (places, axis, extent), *rest = remaining
            with b.loop(extent) as k:
                places[axis] = k
                outer(rest)
            return
        total = emit.scalar(b, i.ty, 0)
        inner(list(i.contract_dims), total)
        free = [at_a[k] for k in free_a] + [at_b[k] for k in free_b]
        emit.put(b, i.output, emit.flat(b, _contract_shape(i), free), i.ty, total)

    def inner(pairs: list[tuple[int, int]], total: Register) -> None:
        if pairs:
            (p, q), *rest = pairs
            with b.loop(i.shape_a[p]) as k:
                at_a[p] = at_b[q] = k
                inner(rest, total)
            return
        left = emit.flat(b, i.shape_a, [at_a[k] for k in range(len(i.shape_a))])
        right = emit.flat(b, i.shape_b, [at_b[k] for k in range(len(i.shape_b))])
        emit.accumulate_product(b, total, (i.a, left, i.ty), (i.b, right, i.ty), emit.compute_type(i.ty))

    outer([(at_a, k, i.shape_a[k]) for k in free_a] + [(at_b, k, i.shape_b[k]) for k in free_b])


row("SparseGEMM", Group.ADVANCED, "C = A·B for A of m×k in CSR with nnz stored elements, B dense of k×n",
    (TY, write("c", _mn), read("a_values", lambda i: (i.nnz,)), read("a_indices", lambda i: (i.nnz,), Type.U32),
     read("a_ptr", lambda i: (i.m + 1,), Type.U32), read("b", _kn), M, N, K, count("nnz")),
    Arrays(_sparse), FLOATS, expand=_expand_sparse, traps=True)  # fmt: skip
row("TensorContract", Group.ADVANCED, "sum over the paired axes of A and B; free axes of A, then of B",
    (TY, write("output", _contract_shape), read("a", lambda i: i.shape_a), read("b", lambda i: i.shape_b),
     Field("shape_a", Kind.COUNTS), Field("shape_b", Kind.COUNTS), Field("contract_dims", Kind.PAIRS)),
    Arrays(_contract), FLOATS,
    expand=_expand_contract, check=_check_contract, traps=True)  # fmt: skip


# --- Fourier transform ----------------------------------------------------------------------------


def _signals(i: Instruction) -> tuple[int, ...]:
    return (i.batch, i.n, i.inner, 2)


def _fft(i: Instruction, x: Array) -> tuple[Array]:
    signals = x[..., 0] + 1j * x[..., 1]
    result = (np.fft.ifft if i.inverse else np.fft.fft)(signals, axis=1) * i.scale
    return (np.stack([result.real, result.imag], axis=-1),)


def _expand_fft(b: CodeBuilder, i: Instruction) -> None:
    """The transform's defining sum; angles are reduced modulo n first, so they stay accurate."""
    ty, compute, shape = i.ty, emit.compute_type(i.ty), _signals(i)
    sign = 1.0 if i.inverse else -1.0
    n, step = b.constant(Type.U64, i.n), b.constant(compute, sign * 2 * math.pi / i.n)
    with b.loop(i.batch) as s, b.loop(i.inner) as q, b.loop(i.n) as k:
        real_sum, imag_sum, wide = b.constant(compute, 0), b.constant(compute, 0), b.reg()
        b.cvt(Type.U32, Type.U64, wide, k)
        with b.loop(i.n) as t:
            turn, angle, cos, sin, minus = b.reg(), b.reg(), b.reg(), b.reg(), b.reg()
            b.cvt(Type.U32, Type.U64, turn, t)
            b.mul(turn, wide, turn)
            b.rem(turn, turn, n)
            b.cvt(Type.U64, compute, angle, turn)
            b.mul(angle, angle, step)
            b.cos(cos, angle)
            b.sin(sin, angle)
            b.neg(minus, sin)
            re = emit.fetch(b, i.input, emit.flat(b, shape, (s, t, q, 0)), ty)
            im = emit.fetch(b, i.input, emit.flat(b, shape, (s, t, q, 1)), ty)
            b.fma(real_sum, re, cos, real_sum)
            b.fma(real_sum, im, minus, real_sum)
            b.fma(imag_sum, re, sin, imag_sum)
            b.fma(imag_sum, im, cos, imag_sum)
        for part, total in enumerate((real_sum, imag_sum)):
            if i.inverse:
                b.div(total, total, b.constant(compute, i.n))
            if i.scale != 1:
                b.mul(total, total, emit.scalar(b, ty, i.scale))
            emit.put(b, i.output, emit.flat(b, shape, (s, k, q, part)), ty, total)


row("FFT", G,
    "scale × the discrete Fourier transforms of n complex numbers as (re, im) pairs, along the second axis of "
    "batch × n × inner; inverse divides by n",
    (TY, write("output", _signals), read("input", _signals), count("n", 1, LONGEST_FFT),
     Field("inverse", Kind.FLAG, default=False), count("batch", default=1), count("inner", default=1),
     real("scale", 1.0)),
    Arrays(_fft), FLOATS, expand=_expand_fft, traps=True)  # fmt: skip
