"""Attention of many heads, which may lie in memory in many ways, with the sums by which weights were divided.

A batch has axes (`batches`). Queries, keys and values lie with so many elements from one matrix to the next along each
axis, and from one row to the next (`…_strides`); a stride of 0 gives one matrix to many heads. The elements of a row
are neighbours. The result and the sums are dense. Of each row the logarithm to base 2 of its sum of e^(scale·q·k) is
told: whoever computes gradients makes the weights from it again. Samples of a batch may have fewer keys (`lengths`),
and sequences may lie one after another, each place with the span of its own (`spans`: all beginnings, then all ends).

With dropout, weights whose byte of random bits is less than a number are left out of the products with values, and the
rest are made as much greater (`support/threefry.py`). Sums are of all weights.

Not all keys need be seen: with a window, only those fewer than so many places away; with a mask, of truth values, those
where it holds; and what is added to scores (`bias`) may be -∞. A query that sees nothing has a result of 0, and +∞ is
told of its sum.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence

import numpy as np

from eshkol.atlas.isa import Arrays, CodeBuilder, Field, Group, Instruction, Kind
from eshkol.atlas.operands import Condition, Register
from eshkol.atlas.table import emit
from eshkol.atlas.table.rows import TY, count, read, real, row, write
from eshkol.atlas.types import FLOATS, Array, Type
from eshkol.errors import IsaError
from eshkol.support import threefry

OPERANDS = ("query", "key", "value")
LINES = {"query": "queries", "key": "keys", "value": "keys", "cotangent": "queries"}  # what tells how many there are
LOG2_E = math.log2(math.e)
LOWEST = -1e30  # the greatest score of those that see nothing


MASKS = ("mask", "bias")
LAST = (*MASKS, "lengths", "spans", "dropout_key")  # what is read last, in this order


def _extents(i: Instruction, name: str) -> tuple[int, ...]:
    if name in MASKS:
        return (*i.batches, i.queries, i.keys)
    return (*i.batches, getattr(i, LINES[name]), i.head_dim)


def _strides(i: Instruction, name: str) -> tuple[int, ...]:
    return (*(mask_strides(i) if name in MASKS else getattr(i, f"{name}_strides")), 1)


def mask_strides(i: Instruction) -> tuple[int, ...]:
    """The distances along the axes of the batch, and from one query to the next, in a mask: it is dense unless said."""
    extents = _extents(i, "mask")
    return i.mask_strides or tuple(math.prod(extents[axis + 1 :]) for axis in range(len(extents) - 1))


def length_strides(i: Instruction) -> tuple[int, ...]:
    """The distances along the axes of the batch of lengths: they are dense unless said."""
    return i.lengths_strides or tuple(math.prod(i.batches[axis + 1 :]) for axis in range(len(i.batches)))


def reach(i: Instruction, name: str) -> tuple[int, ...]:
    """Everything from the first element to the last."""
    extents = _extents(i, name)
    if 0 in extents:
        return (0,)
    return (1 + sum((extent - 1) * stride for extent, stride in zip(extents, _strides(i, name), strict=True)),)


def matrices(i: Instruction, name: str, x: Array) -> Array:
    places: Array = np.zeros((), np.int64)
    for extent, stride in zip(_extents(i, name), _strides(i, name), strict=True):
        places = places[..., None] + np.arange(extent, dtype=np.int64) * stride
    return x[places]


def scores(i: Instruction, q: Array, k: Array, masks: Sequence[Array]) -> Array:
    """Those of all heads, -∞ where nothing is seen; the mask or what is added comes last of what is read."""
    found: Array = (q @ k.swapaxes(-1, -2)) * i.scale
    apart = np.arange(i.queries)[:, None] - np.arange(i.keys)
    if i.causal:
        found = np.where(apart < 0, -np.inf, found)
    if i.window:
        found = np.where(abs(apart) < i.window, found, -np.inf)
    given = last(i, masks)
    for name in MASKS:
        if name in given:
            here = matrices(i, name, given[name])
            found = np.where(here != 0, found, -np.inf) if name == "mask" else found + here
    if "lengths" in given:
        there = given["lengths"][_samples(i)][..., None, None]
        found = np.where(np.arange(i.keys) < there, found, -np.inf)
    if "spans" in given:
        begin, end = given["spans"].reshape(2, i.queries, 1)
        found = np.where((np.arange(i.keys) >= begin) & (np.arange(i.keys) < end), found, -np.inf)
    return found


def last(i: Instruction, given: Sequence[Array]) -> dict[str, Array]:
    """What is read after the matrices, and the numbers of queries, by its name."""
    return dict(zip((name for name in LAST if getattr(i, name) is not None), given, strict=True))


def _samples(i: Instruction) -> Array:
    """Where each head's length lies."""
    places: Array = np.zeros((), np.int64)
    for extent, stride in zip(i.batches, length_strides(i), strict=True):
        places = places[..., None] + np.arange(extent, dtype=np.int64) * stride
    return places


def shared(i: Instruction, x: Array, given: Sequence[Array]) -> Array:
    """Weights, or what is multiplied with them: 0 if dropped, else made greater."""
    if i.dropout_key is None:
        return x
    left_out = threefry.dropped(last(i, given)["dropout_key"], i.batch, i.queries, i.keys, i.dropout)
    found: Array = np.where(left_out.reshape(*i.batches, i.queries, i.keys), 0, x * threefry.kept(i.dropout))
    return found


def in_part(i: Instruction) -> bool:
    """Whether there may be queries that see nothing."""
    return i.window > 0 or any(getattr(i, name) is not None for name in LAST[:-1])


def _result(i: Instruction) -> tuple[int, ...]:
    return (i.batch, i.queries, i.head_dim)


def _attend(i: Instruction, q: Array, k: Array, v: Array, *masks: Array) -> tuple[Array, Array]:
    if i.batch == 0:
        return np.empty(_result(i)), np.empty(_result(i)[:-1])
    q, k, v = (matrices(i, name, x) for name, x in zip(OPERANDS, (q, k, v), strict=True))
    given = scores(i, q, k, masks)
    top = given.max(-1, keepdims=True)
    with np.errstate(invalid="ignore", divide="ignore"):
        powers = np.exp(given - top)
        total = powers.sum(-1, keepdims=True)
        weights, sums = powers / total, (top + np.log(total)) * LOG2_E
    if in_part(i):
        weights, sums = np.where(np.isneginf(top), 0, weights), np.where(np.isneginf(top), np.inf, sums)
    return np.matmul(shared(i, weights, masks), v).reshape(_result(i)), sums.reshape(_result(i)[:-1])


# --- code of lanes ------------------------------------------------------------------------------------


def each_head(b: CodeBuilder, batches: Sequence[int], do: Callable[[list[emit.Index]], None]) -> None:
    """Loops over the axes of a batch around what is done for a head."""
    at = list[emit.Index]()

    def over(axes: Sequence[int]) -> None:
        if not axes:
            do(at)
            return
        with b.loop(axes[0]) as s:
            at.append(s)
            over(axes[1:])
            at.pop()

    over(tuple(batches))


def place(b: CodeBuilder, i: Instruction, name: str, indices: Sequence[emit.Index]) -> Register:
    """Where an element of an operand lies."""
    return emit.offset(b, list(zip(indices, _strides(i, name), strict=True)))


def seen(b: CodeBuilder, i: Instruction, t: Register) -> Register | int:
    """How many keys a query attends to."""
    if not i.causal:
        return int(i.keys)
    found = b.reg(Type.U32)
    b.add(found, t, b.constant(Type.U32, 1))
    b.min(found, found, b.constant(Type.U32, i.keys))
    return found


def masked(b: CodeBuilder, i: Instruction, at: Sequence[emit.Index], t: Register, u: Register, score: Register) -> None:
    """Add to a score what is added there, and make it -∞ where it is not seen."""
    if not in_part(i):
        return
    nothing, seen = b.constant(emit.compute_type(i.ty), -math.inf), b.pred()
    if i.window:
        for near, far in ((t, u),) if i.causal else ((t, u), (u, t)):
            limit = b.reg(Type.U32)
            b.add(limit, far, b.constant(Type.U32, i.window))
            b.setcc(Condition.LT, seen, near, limit)
            b.sel(score, seen, score, nothing)
    if i.bias is not None:
        there = place(b, i, "bias", (*at, t, u))
        b.add(score, score, emit.fetch(b, i.bias, there, Type.F32, emit.compute_type(i.ty)))
    if i.lengths is not None:
        length = emit.fetch(b, i.lengths, emit.offset(b, list(zip(at, length_strides(i), strict=True))), Type.I32)
        b.setcc(Condition.LT, seen, _signed(b, u), length)
        b.sel(score, seen, score, nothing)
    if i.spans is not None:
        for n, condition in enumerate((Condition.GE, Condition.LT)):
            limit = emit.fetch(b, i.spans, emit.offset(b, [(n, i.queries), (t, 1)]), Type.I32)
            b.setcc(condition, seen, _signed(b, u), limit)
            b.sel(score, seen, score, nothing)
    if i.mask is not None:
        there = place(b, i, "mask", (*at, t, u))
        b.setcc(Condition.NE, seen, emit.fetch(b, i.mask, there, Type.U8, Type.U32), b.constant(Type.U32, 0))
        b.sel(score, seen, score, nothing)


def share(b: CodeBuilder, i: Instruction, at: Sequence[emit.Index], t: Register, u: Register, part: Register) -> None:
    """The same of one: make it 0, or greater."""
    if i.dropout_key is None:
        return
    rows, columns = threefry.blocks(i.queries, i.keys)
    b.mul(part, part, b.constant(emit.compute_type(i.ty), threefry.kept(i.dropout)))
    row_, column = _block(b, t, threefry.ROWS, 1), _block(b, u, threefry.COLUMNS, 2)
    counter = emit.flat(b, (*i.batches, rows, columns), (*at, row_, column))
    first, second, both = (emit.fetch(b, i.dropout_key, b.constant(Type.U32, n), Type.U32) for n in (0, 1, 0))
    threefry.schedule(_words(b), (both, second))  # leaves it in the first
    words = threefry.mixed(_words(b), (first, second, both), (b.constant(Type.U32, 0), counter))
    even, shift = b.pred(), b.reg(Type.U32)
    b.setcc(Condition.EQ, even, _and(b, u, 1), b.constant(Type.U32, 0))
    word = b.reg(Type.U32)
    b.sel(word, even, *words)
    b.mul(shift, _and(b, t, 8), b.constant(Type.U32, 2))
    b.add(shift, shift, _and(b, u, 8))
    b.shr(word, word, shift)
    kept = b.pred()
    b.setcc(Condition.GE, kept, _and(b, word, threefry.BYTES - 1), b.constant(Type.U32, i.dropout))
    b.sel(part, kept, part, b.constant(emit.compute_type(i.ty), 0))


def _and(b: CodeBuilder, x: Register, mask: int) -> Register:
    found = b.reg(Type.U32)
    b.and_(found, x, b.constant(Type.U32, mask))
    return found


def _block(b: CodeBuilder, place: Register, count: int, neighbours: int) -> Register:
    """The row or column of the block of a query or key: so many of 16, of which so many neighbours have one."""
    found, inner = b.reg(Type.U32), _and(b, place, threefry.ROWS - 1)
    b.div(found, place, b.constant(Type.U32, threefry.SIDE))
    if neighbours > 1:
        b.div(inner, inner, b.constant(Type.U32, neighbours))
    b.fma(found, found, b.constant(Type.U32, count), inner)
    return found


def _words(b: CodeBuilder) -> threefry.WordArithmetic:
    """Arithmetic that leaves its result in the first operand: there are not registers enough for all."""

    def into(name: str, x: Register, y: Register | int) -> Register:
        other = b.constant(Type.U32, y) if isinstance(y, int) else y
        getattr(b, name)(x, x, other)
        if isinstance(y, int):
            b.release(other)
        return x

    def rotate(x: Register, by: int) -> Register:
        low = b.reg(Type.U32)
        b.mov(low, x)
        into("shr", low, 32 - by)
        into("or_", into("shl", x, by), low)
        b.release(low)
        return x

    return threefry.WordArithmetic(functools.partial(into, "add"), functools.partial(into, "xor"), rotate)


def _signed(b: CodeBuilder, u: Register) -> Register:
    found = b.reg(Type.I32)
    b.cvt(Type.U32, Type.I32, found, u)
    return found


def _expand(b: CodeBuilder, i: Instruction) -> None:
    """Three passes over the keys for each query: maximum, sum, and the weighted sum of values."""

    def head(at: list[emit.Index]) -> None:
        with b.loop(i.queries) as t:
            _attend_one(b, i, at, t)

    each_head(b, i.batches, head)


def softmaxed(
    b: CodeBuilder, compute: Type, keys: Register | int, score: Callable[[Register], Register], *, partly: bool
) -> tuple[Callable[[Register], Register], Register, Register]:
    """The weight of each key before it is divided, their sum, and the sum's logarithm to base 2, in two passes over the
    keys; `partly`: there may be none that is seen, which have +∞."""
    top, total = b.constant(compute, -math.inf), b.constant(compute, 0)
    with b.loop(keys) as u:
        b.max(top, top, score(u))
    if partly:
        b.max(top, top, b.constant(compute, LOWEST))

    def weight(u: Register) -> Register:
        found = score(u)
        b.sub(found, found, top)
        b.exp(found, found)
        return found

    with b.loop(keys) as u:
        b.add(total, total, weight(u))
    logarithm, nothing = b.reg(compute), b.pred()
    b.log(logarithm, total)
    b.add(logarithm, logarithm, top)
    b.mul(logarithm, logarithm, b.constant(compute, LOG2_E))
    if partly:
        b.setcc(Condition.EQ, nothing, total, b.constant(compute, 0))
        b.sel(logarithm, nothing, b.constant(compute, math.inf), logarithm)
        b.sel(total, nothing, b.constant(compute, 1), total)
    return weight, total, logarithm


def _attend_one(b: CodeBuilder, i: Instruction, at: list[emit.Index], t: Register) -> None:
    compute = emit.compute_type(i.ty)

    def there(name: str, line: emit.Index, element: emit.Index) -> Register:
        return place(b, i, name, (*at, line, element))

    def score(u: Register) -> Register:
        total = b.constant(compute, 0)
        with b.loop(i.head_dim) as d:
            left, right = (i.query, there("query", t, d), i.ty), (i.key, there("key", u, d), i.ty)
            emit.accumulate_product(b, total, left, right, compute)
        b.mul(total, total, b.constant(compute, i.scale))
        masked(b, i, at, t, u, total)
        return total

    keys = seen(b, i, t)
    weight, total, logarithm = softmaxed(b, compute, keys, score, partly=in_part(i))
    line = emit.flat(b, (*i.batches, i.queries), (*at, t))
    with b.loop(i.head_dim) as d:
        mixed = b.constant(compute, 0)
        with b.loop(keys) as u:
            part = weight(u)
            share(b, i, at, t, u, part)
            b.fma(mixed, part, emit.fetch(b, i.value, there("value", u, d), i.ty), mixed)
        b.div(mixed, mixed, total)
        emit.put(b, i.output, emit.offset(b, [(line, i.head_dim), (d, 1)]), i.ty, mixed)
    emit.put(b, i.sums, line, Type.F32, logarithm, compute)


def check(i: Instruction, operands: Sequence[str]) -> None:
    """Batches are as many as heads, and there are strides for each of their axes."""
    if math.prod(i.batches) != i.batch:
        raise IsaError(f"{i.op.name}: batches of {i.batches} are not {i.batch} heads", span=i.span)
    for name in operands:
        given = getattr(i, f"{name}_strides")
        if len(given) != len(i.batches) + 1:
            raise IsaError(
                f"{i.op.name}: {name}_strides {given} are not one for each axis of the batch {i.batches} and one "
                "for rows",
                span=i.span,
            )
    if i.lengths_strides and len(i.lengths_strides) != len(i.batches):
        raise IsaError(
            f"{i.op.name}: lengths_strides {i.lengths_strides} are not one for each axis of the batch {i.batches}",
            span=i.span,
        )
    if i.spans is not None and i.queries != i.keys:
        raise IsaError(f"{i.op.name}: sequences of {i.queries} queries have as many keys, not {i.keys}", span=i.span)
    if (i.dropout_key is None) != (i.dropout == 0):
        raise IsaError(f"{i.op.name}: dropout and its key come together", span=i.span)
    if i.mask_strides and len(i.mask_strides) != len(i.batches) + 1:
        raise IsaError(
            f"{i.op.name}: mask_strides {i.mask_strides} are not one for each axis of the batch {i.batches} and one "
            "for queries",
            span=i.span,
        )


def _lengths(i: Instruction) -> tuple[int, ...]:
    if 0 in i.batches:
        return (0,)
    return (1 + sum((extent - 1) * stride for extent, stride in zip(i.batches, length_strides(i), strict=True)),)


SEEN = (
    count("window", default=0),
    Field("mask", Kind.READ, Type.U8, None, shape=lambda i: reach(i, "mask")),
    Field("bias", Kind.READ, Type.F32, None, shape=lambda i: reach(i, "bias")),
    Field("mask_strides", Kind.COUNTS, default=()),
    Field("lengths", Kind.READ, Type.I32, None, shape=_lengths),
    Field("lengths_strides", Kind.COUNTS, default=()),
    Field("spans", Kind.READ, Type.I32, None, shape=lambda i: (2 * i.queries,)),
    count("dropout", high=threefry.BYTES, default=0),
    Field("dropout_key", Kind.READ, Type.U32, None, shape=lambda i: (2,)),
)

row("BatchedAttention", Group.ADVANCED,
    "softmax(scale·Q·Kᵀ)·V for each of batch heads, along the axes batches, and log2 of each row's sum of "
    "e^(scale·q·k); strides: of each axis of the batch and of rows, in elements; causal: query t attends to keys u ≤ t;"
    " window: to keys fewer than so many places away; mask: where it is not 0; bias: is added to scores; both are of "
    "batches × queries × keys, dense or mask_strides apart along all axes but the last; lengths: how many keys there "
    "are, dense or lengths_strides apart; spans: of sequences that lie one after another, where that of each query "
    "begins, then where it ends; dropout: weights are left out that have a byte of bits of dropout_key that is less",
    (TY, write("output", _result), write("sums", lambda i: _result(i)[:-1], Type.F32),
     *(read(name, lambda i, name=name: reach(i, name)) for name in OPERANDS),  # type: ignore[misc]
     count("batch"), count("queries"), count("keys", 1), count("head_dim", 1), real("scale"),
     Field("causal", Kind.FLAG, default=False),
     *(Field(name, Kind.COUNTS) for name in ("batches", *(f"{name}_strides" for name in OPERANDS))), *SEEN),
    Arrays(_attend), FLOATS, expand=_expand, check=lambda i: check(i, OPERANDS), traps=True)  # fmt: skip
