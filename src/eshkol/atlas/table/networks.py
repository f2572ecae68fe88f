"""Extensions for neural networks: normalization, softmax, attention, rotary embedding, caches, collectives.

All floats; statistics and sums are exact arithmetic within the bound of the compute type.
"""

from __future__ import annotations

import math

import numpy as np

from eshkol.atlas.isa import Arrays, CodeBuilder, Effect, Field, Group, Instruction, Kind
from eshkol.atlas.operands import Address, ReduceOperation, Register
from eshkol.atlas.table import emit
from eshkol.atlas.table.rows import TY, choice, count, read, real, row, write
from eshkol.atlas.types import ALL_TYPES, FLOATS, Array, Type
from eshkol.errors import IsaError
from eshkol.support.formulas import NUMPY, attention, normalized, softmax, standardized

G, V = Group.COMPLEX, Group.ADVANCED
_n = lambda i: (i.n,)


# --- normalization --------------------------------------------------------------------------------


def _layer_norm(i: Instruction, x: Array, gamma: Array, beta: Array) -> tuple[Array]:
    return (standardized(NUMPY, x, 0, i.eps) * gamma + beta,)


def _batch_norm(i: Instruction, x: Array, gamma: Array, beta: Array, mean: Array, variance: Array) -> tuple[Array]:
    per_channel = [v[None, :, None] for v in (gamma, beta, mean, variance)]
    scale, shift, centre, spread = per_channel
    return (normalized(NUMPY, x, centre, spread, i.eps) * scale + shift,)


def _group_norm(i: Instruction, x: Array, gamma: Array, beta: Array) -> tuple[Array]:
    grouped = x.reshape(i.batch, i.groups, -1)
    normal = standardized(NUMPY, grouped, 2, i.eps).reshape(x.shape)
    return (normal * gamma[None, :, None] + beta[None, :, None],)


def _statistics(
    b: CodeBuilder, source: Address, ty: Type, n: int, start: Register, eps: float
) -> tuple[Register, Register]:
    """Mean and 1/sqrt(variance + eps) of n elements from `start`, in two passes."""
    compute = emit.compute_type(ty)
    count_, mean, variance, scale = (b.constant(compute, v) for v in (n, 0, 0, 1))
    at = b.reg(Type.U32)
    with b.loop(n) as k:
        b.add(at, start, k)
        b.add(mean, mean, emit.fetch(b, source, at, ty))
    b.div(mean, mean, count_)
    with b.loop(n) as k:
        b.add(at, start, k)
        deviation = emit.fetch(b, source, at, ty)
        b.sub(deviation, deviation, mean)
        b.fma(variance, deviation, deviation, variance)
    b.div(variance, variance, count_)
    b.add(variance, variance, b.constant(compute, eps))
    b.sqrt(variance, variance)
    b.div(scale, scale, variance)
    return mean, scale


def _affine(b: CodeBuilder, i: Instruction, at: Register, channel: Register, mean: Register, scale: Register) -> None:
    """output[at] = (input[at] - mean) × scale × gamma[channel] + beta[channel]"""
    value = emit.fetch(b, i.input, at, i.ty)
    b.sub(value, value, mean)
    b.mul(value, value, scale)
    gamma, beta = emit.fetch(b, i.gamma, channel, i.ty), emit.fetch(b, i.beta, channel, i.ty)
    b.fma(value, value, gamma, beta)
    emit.put(b, i.output, at, i.ty, value)


def _expand_layer_norm(b: CodeBuilder, i: Instruction) -> None:
    mean, scale = _statistics(b, i.input, i.ty, i.n, b.constant(Type.U32, 0), i.eps)
    with b.loop(i.n) as k:
        _affine(b, i, k, k, mean, scale)


def _expand_batch_norm(b: CodeBuilder, i: Instruction) -> None:
    compute = emit.compute_type(i.ty)
    with b.loop(i.channels) as c:
        mean, scale = emit.fetch(b, i.mean, c, i.ty), emit.fetch(b, i.variance, c, i.ty)
        b.add(scale, scale, b.constant(compute, i.eps))
        b.sqrt(scale, scale)
        b.div(scale, b.constant(compute, 1), scale)
        with b.loop(i.batch) as s, b.loop(i.spatial) as p:
            _affine(b, i, emit.flat(b, (i.batch, i.channels, i.spatial), (s, c, p)), c, mean, scale)


def _expand_group_norm(b: CodeBuilder, i: Instruction) -> None:
    per_group = i.channels // i.groups
    with b.loop(i.batch) as s, b.loop(i.groups) as g:
        size = per_group * i.spatial
        start = emit.flat(b, (i.batch, i.groups, size), (s, g, 0))
        mean, scale = _statistics(b, i.input, i.ty, size, start, i.eps)
        with b.loop(per_group) as c, b.loop(i.spatial) as p:
            channel = emit.flat(b, (i.groups, per_group), (g, c))
            _affine(b, i, emit.flat(b, (i.batch, i.channels, i.spatial), (s, channel, p)), channel, mean, scale)


def _check_group_norm(i: Instruction) -> None:
    if i.channels % i.groups:
        raise IsaError(f"GroupNorm: {i.channels} channels do not divide into {i.groups} groups", span=i.span)


_bcs = lambda i: (i.batch, i.channels, i.spatial)
_c = lambda i: (i.channels,)
row("LayerNorm", G, "output = (input - mean) / sqrt(variance + eps) × gamma + beta over n elements",
    (TY, write("output", _n), read("input", _n), read("gamma", _n), read("beta", _n), count("n", 1), real("eps", 1e-5)),
    Arrays(_layer_norm), FLOATS, expand=_expand_layer_norm, traps=True, in_place=True)  # fmt: skip
row("BatchNorm", G, "the same per channel with given mean and variance; layout batch × channels × spatial",
    (TY, write("output", _bcs), read("input", _bcs), read("gamma", _c), read("beta", _c), read("mean", _c),
     read("variance", _c), count("batch"), count("channels"), count("spatial"), real("eps", 1e-5)),
    Arrays(_batch_norm), FLOATS, expand=_expand_batch_norm, traps=True, in_place=True)  # fmt: skip
row("GroupNorm", V, "the same per sample and group of channels; layout batch × channels × spatial",
    (TY, write("output", _bcs), read("input", _bcs), read("gamma", _c), read("beta", _c),
     count("batch"), count("channels", 1), count("groups", 1), count("spatial", 1), real("eps", 1e-5)),
    Arrays(_group_norm), FLOATS, expand=_expand_group_norm, check=_check_group_norm, traps=True,
    in_place=True)  # fmt: skip


# --- softmax and attention ------------------------------------------------------------------------


def _expand_softmax(b: CodeBuilder, i: Instruction) -> None:
    ty = i.ty
    top, total = emit.scalar(b, ty, -math.inf), emit.scalar(b, ty, 0)

    def shifted(k: Register) -> Register:
        value = emit.fetch(b, i.input, k, ty)
        b.sub(value, value, top)
        b.exp(value, value)
        return value

    with b.loop(i.n) as k:
        b.max(top, top, emit.fetch(b, i.input, k, ty))
    with b.loop(i.n) as k:
        b.add(total, total, shifted(k))
    with b.loop(i.n) as k:
        value = shifted(k)
        b.div(value, value, total)
        emit.put(b, i.output, k, ty, value)


def _attention(i: Instruction, q: Array, k: Array, v: Array) -> tuple[Array]:
    return (attended(q, k, v, causal=i.causal, interleaved=i.interleaved),)


def attended(q: Array, k: Array, v: Array, *, causal: bool, interleaved: bool) -> Array:
    """What Attention computes."""
    if not interleaved:
        return np.asarray(attention(q, k, v, causal=causal))
    return np.asarray(attention(*(x.swapaxes(1, 2) for x in (q, k, v)), causal=causal)).swapaxes(1, 2)


def _score(b: CodeBuilder, i: Instruction, query: Register, key: Register) -> Register:
    """The scaled dot product of the head vectors that start at these positions."""
    compute, total = emit.compute_type(i.ty), emit.scalar(b, i.ty, 0)
    with b.loop(i.head_dim) as d:
        left, right = emit.offset(b, [(query, 1), (d, 1)]), emit.offset(b, [(key, 1), (d, 1)])
        emit.accumulate_product(b, total, (i.query, left, i.ty), (i.key, right, i.ty), compute)
    b.mul(total, total, b.constant(compute, 1 / math.sqrt(i.head_dim)))
    return total


def _heads_shape(i: Instruction) -> tuple[int, ...]:
    inner = (i.seq_len, i.heads) if i.interleaved else (i.heads, i.seq_len)
    return (i.batch, *inner, i.head_dim)


def _vectors(b: CodeBuilder, i: Instruction, s: Register, h: Register, t: Register) -> Register:
    if i.interleaved:
        return emit.flat(b, _heads_shape(i), (s, t, h, 0))
    return emit.flat(b, _heads_shape(i), (s, h, t, 0))


def _keys(b: CodeBuilder, i: Instruction, t: Register) -> Register | int:
    """How many keys position t attends to."""
    if not i.causal:
        return int(i.seq_len)
    seen = b.reg(Type.U32)
    b.add(seen, t, b.constant(Type.U32, 1))
    return seen


def _expand_attention(b: CodeBuilder, i: Instruction) -> None:
    """Three passes over the keys for each query: maximum, sum, and the weighted sum of values."""
    with b.loop(i.batch) as s, b.loop(i.heads) as h, b.loop(i.seq_len) as t:
        query, keys = _vectors(b, i, s, h, t), _keys(b, i, t)
        top, total = emit.scalar(b, i.ty, -math.inf), emit.scalar(b, i.ty, 0)
        with b.loop(keys) as u:
            b.max(top, top, _score(b, i, query, _vectors(b, i, s, h, u)))
        with b.loop(keys) as u:
            weight = _score(b, i, query, _vectors(b, i, s, h, u))
            b.sub(weight, weight, top)
            b.exp(weight, weight)
            b.add(total, total, weight)
        with b.loop(i.head_dim) as d:
            mixed = emit.scalar(b, i.ty, 0)
            with b.loop(keys) as u:
                key = _vectors(b, i, s, h, u)
                weight = _score(b, i, query, key)
                b.sub(weight, weight, top)
                b.exp(weight, weight)
                b.fma(mixed, weight, emit.fetch(b, i.value, emit.offset(b, [(key, 1), (d, 1)]), i.ty), mixed)
            b.div(mixed, mixed, total)
            emit.put(b, i.output, emit.offset(b, [(query, 1), (d, 1)]), i.ty, mixed)


def _expand_flash(b: CodeBuilder, i: Instruction) -> None:
    """One pass over the keys per output element with a running maximum and rescaled sums."""
    with b.loop(i.batch) as s, b.loop(i.heads) as h, b.loop(i.seq_len) as t, b.loop(i.head_dim) as d:
        query, keys = _vectors(b, i, s, h, t), _keys(b, i, t)
        lowest = float(np.finfo(emit.compute_type(i.ty).dtype).min)  # not -inf: a score of -inf less it would be NaN
        top, total, mixed = (emit.scalar(b, i.ty, v) for v in (lowest, 0, 0))
        with b.loop(keys) as u:
            key, higher, fade = _vectors(b, i, s, h, u), b.reg(), b.reg()
            weight = _score(b, i, query, key)
            b.max(higher, top, weight)
            b.sub(fade, top, higher)
            b.exp(fade, fade)
            b.sub(weight, weight, higher)
            b.exp(weight, weight)
            b.fma(total, total, fade, weight)
            b.mul(mixed, mixed, fade)
            b.fma(mixed, weight, emit.fetch(b, i.value, emit.offset(b, [(key, 1), (d, 1)]), i.ty), mixed)
            b.mov(top, higher)
        b.div(mixed, mixed, total)
        emit.put(b, i.output, emit.offset(b, [(query, 1), (d, 1)]), i.ty, mixed)


_HEADS = (write("output", _heads_shape), read("query", _heads_shape), read("key", _heads_shape),
          read("value", _heads_shape),
          count("batch"), count("heads"), count("seq_len", 1), count("head_dim", 1))  # fmt: skip
row("Softmax", G, "output = exp(input) / sum(exp(input)) over n elements, stable",
    (TY, write("output", _n), read("input", _n), count("n", 1)),
    Arrays(lambda i, x: (softmax(NUMPY, x, 0),)), FLOATS, expand=_expand_softmax, traps=True,
    in_place=True)  # fmt: skip
_CAUSAL = (Field("causal", Kind.FLAG, default=False), Field("interleaved", Kind.FLAG, default=False))
row("Attention", G, "softmax(Q·Kᵀ/√d)·V; layout batch × heads × seq_len × head_dim (interleaved: seq_len × heads); "
    "causal: t attends to u ≤ t only",
    (TY, *_HEADS, *_CAUSAL), Arrays(_attention), FLOATS, expand=_expand_attention, traps=True)  # fmt: skip
row("FlashAttention", V, "Attention in one pass over keys, block_size at a time",
    (TY, *_HEADS, count("block_size", 1, default=64), *_CAUSAL), Arrays(_attention), FLOATS, expand=_expand_flash,
    traps=True)  # fmt: skip


# --- elementwise with structure -------------------------------------------------------------------


def _expand_layer_scale(b: CodeBuilder, i: Instruction) -> None:
    with b.loop(i.n) as k:
        value = emit.fetch(b, i.input, k, i.ty)
        b.mul(value, value, emit.fetch(b, i.scale, k, i.ty))
        emit.put(b, i.output, k, i.ty, value)


def _rope(i: Instruction, x: Array, angles: Array) -> tuple[Array]:
    cos, sin = np.cos(angles)[None, :, None, :], np.sin(angles)[None, :, None, :]
    even, odd = x[..., 0::2], x[..., 1::2]
    turned = np.stack([even * cos - odd * sin, even * sin + odd * cos], axis=-1)
    return (turned.reshape(x.shape),)


def _expand_rope(b: CodeBuilder, i: Instruction) -> None:
    shape = (i.batch, i.seq_len, i.heads, i.head_dim // 2, 2)
    with b.loop(i.batch) as s, b.loop(i.seq_len) as t, b.loop(i.heads) as h, b.loop(i.head_dim // 2) as d:
        angle = emit.fetch(b, i.freqs, emit.flat(b, (i.seq_len, i.head_dim // 2), (t, d)), i.ty)
        cos, sin, minus, first, second = b.reg(), b.reg(), b.reg(), b.reg(), b.reg()
        b.cos(cos, angle)
        b.sin(sin, angle)
        b.neg(minus, sin)
        at_even, at_odd = (emit.flat(b, shape, (s, t, h, d, part)) for part in (0, 1))
        even, odd = emit.fetch(b, i.input, at_even, i.ty), emit.fetch(b, i.input, at_odd, i.ty)
        b.mul(first, even, cos)
        b.fma(first, odd, minus, first)
        b.mul(second, even, sin)
        b.fma(second, odd, cos, second)
        emit.put(b, i.output, at_even, i.ty, first)
        emit.put(b, i.output, at_odd, i.ty, second)


def _check_rope(i: Instruction) -> None:
    if i.head_dim % 2:
        raise IsaError(f"RoPE: head_dim must be even, not {i.head_dim}", span=i.span)


def _expand_kv(b: CodeBuilder, i: Instruction) -> None:
    size = i.batch * i.heads * i.head_dim
    with b.loop(size) as k:
        value = emit.fetch(b, i.new_kv, k, i.ty, i.ty)
        emit.put(b, i.cache, emit.offset(b, [(k, 1), (i.position, size)]), i.ty, value, i.ty)


_bthd = lambda i: (i.batch, i.seq_len, i.heads, i.head_dim)
_bhd = lambda i: (i.batch, i.heads, i.head_dim)
row("LayerScale", V, "output = input × scale, element by element",
    (TY, write("output", _n), read("input", _n), read("scale", _n), count("n")),
    Arrays(lambda i, x, s: (x * s,)), FLOATS, expand=_expand_layer_scale, traps=True, in_place=True)  # fmt: skip
row("RoPE", V, "turn pairs (2d, 2d+1) by the angle freqs[t, d]; layout batch × seq_len × heads × head_dim",
    (TY, write("output", _bthd), read("input", _bthd), read("freqs", lambda i: (i.seq_len, i.head_dim // 2)),
     count("batch"), count("seq_len"), count("heads"), count("head_dim", 2)),
    Arrays(_rope), FLOATS, expand=_expand_rope, check=_check_rope, traps=True, in_place=True,
    method="rope")  # fmt: skip
row("KVCacheUpdate", V, "cache[position] = new_kv; cache layout positions × batch × heads × head_dim",
    (TY, Field("cache", Kind.WRITE, "ty", shape=_bhd, start=lambda i: i.position * i.batch * i.heads * i.head_dim),
     read("new_kv", _bhd), count("position"), count("batch"), count("heads"), count("head_dim")),
    Arrays(lambda i, x: (x,)), FLOATS, expand=_expand_kv, traps=True)  # fmt: skip


# --- collectives over devices ---------------------------------------------------------------------


def _expand_all_reduce(b: CodeBuilder, i: Instruction) -> None:
    _one_device(i)  # over one device the sum is the buffer itself


def _expand_all_gather(b: CodeBuilder, i: Instruction) -> None:
    _one_device(i)
    with b.loop(i.n) as k:
        emit.put(b, i.output, k, i.ty, emit.fetch(b, i.input, k, i.ty, i.ty), i.ty)


def _one_device(i: Instruction) -> None:
    if len(i.devices) != 1:
        raise IsaError(
            f"{i.op.name} over devices {i.devices} has no expansion: it needs an executor across devices",
            span=i.span,
        )


def _check_devices(i: Instruction) -> None:
    if not i.devices or len(set(i.devices)) != len(i.devices):
        raise IsaError(f"{i.op.name}: devices must be distinct and at least one, not {i.devices}", span=i.span)


DEVICES = Field("devices", Kind.COUNTS, default=(0,))
row("AllReduce", V, "buffer = the reduction of the devices' buffers, on every device",
    (TY, choice("operation", ReduceOperation), Field("buffer", Kind.UPDATE, "ty", shape=_n), count("n"), DEVICES),
    Effect(lambda m, i: m.exchange(i)), ALL_TYPES, expand=_expand_all_reduce, check=_check_devices,
    traps=True)  # fmt: skip
row("AllGather", V, "output = the devices' inputs one after another, on every device",
    (TY, write("output", lambda i: (i.n * len(i.devices),)), read("input", _n), count("n"), DEVICES),
    Effect(lambda m, i: m.exchange(i)), ALL_TYPES, expand=_expand_all_gather, check=_check_devices,
    traps=True)  # fmt: skip
