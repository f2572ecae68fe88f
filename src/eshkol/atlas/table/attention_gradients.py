"""The gradients of attention of many heads: one instruction for that of queries, one for those of keys and values.

Operands lie as those of `BatchedAttention` do (`attentions.py`), and a cotangent of its result likewise. Weights are
made again from the sums that it told; `inner` has cotangent · result for each query. Gradients are dense. Where heads
along the last axis of the batch share keys and values (`grouped`), so do they the gradients of these, which are sums.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from eshkol.atlas.isa import Arrays, CodeBuilder, Field, Group, Instruction, Kind
from eshkol.atlas.operands import Condition, Register
from eshkol.atlas.table import emit
from eshkol.atlas.table.attentions import (
    LOG2_E,
    SEEN,
    check,
    each_head,
    in_part,
    masked,
    matrices,
    place,
    reach,
    scores,
    seen,
    share,
    shared,
)
from eshkol.atlas.table.rows import TY, count, read, real, row, write
from eshkol.atlas.types import FLOATS, Array, Type
from eshkol.errors import IsaError

OPERANDS = ("query", "key", "value", "cotangent")
NUMBERS = ("sums", "inner")  # one for each query


def _weights(i: Instruction, given: tuple[Array, ...]) -> tuple[Array, Array, list[Array]]:
    """Weights with their dropout, gradients of the scores, and the matrices of the operands."""
    q, k, v, ct = found = [matrices(i, name, x) for name, x in zip(OPERANDS, given, strict=False)]
    sums, inner = (x.reshape(*i.batches, i.queries, 1) for x in given[len(OPERANDS) :][:2])
    rest = given[len(OPERANDS) + len(NUMBERS) :]
    seen = scores(i, q, k, rest)
    weights = np.exp(seen - sums / LOG2_E)
    slopes = weights * (shared(i, ct @ v.swapaxes(-1, -2), rest) - inner) * i.scale
    weights, slopes = (np.where(np.isneginf(seen), 0, x) for x in (shared(i, weights, rest), slopes))
    return weights, slopes, found


def _of_query(i: Instruction, *given: Array) -> tuple[Array]:
    if i.batch == 0:
        return (np.empty(_queries(i)),)
    _, slopes, (_, k, _, _) = _weights(i, given)
    return (np.matmul(slopes, k).reshape(_queries(i)),)


def _of_key_value(i: Instruction, *given: Array) -> tuple[Array, Array]:
    if i.batch == 0:
        return np.empty(_keys(i)), np.empty(_keys(i))
    weights, slopes, (q, _, _, ct) = _weights(i, given)
    of_key, of_value = (np.matmul(x.swapaxes(-1, -2), y) for x, y in ((slopes, q), (weights, ct)))
    if i.grouped:
        of_key, of_value = of_key.sum(-3), of_value.sum(-3)
    return of_key.reshape(_keys(i)), of_value.reshape(_keys(i))


def _queries(i: Instruction) -> tuple[int, ...]:
    return (i.batch, i.queries, i.head_dim)


def _keys(i: Instruction) -> tuple[int, ...]:
    return (math.prod(_apart(i)), i.keys, i.head_dim)


def _apart(i: Instruction) -> tuple[int, ...]:
    """Axes of the batch along which heads have keys and values of their own."""
    return tuple(i.batches[:-1] if i.grouped else i.batches)


class _Head:
    """Code of one head: what a query and a key have with each other."""

    def __init__(self, b: CodeBuilder, i: Instruction, at: list[emit.Index]) -> None:
        self.b, self.i, self.at, self.compute = b, i, at, emit.compute_type(i.ty)

    def element(self, name: str, line: Register, d: Register) -> Register:
        return emit.fetch(self.b, getattr(self.i, name), place(self.b, self.i, name, (*self.at, line, d)), self.i.ty)

    def dot(self, left: str, t: Register, right: str, u: Register) -> Register:
        b, total = self.b, self.b.constant(self.compute, 0)
        with b.loop(self.i.head_dim) as d:
            b.fma(total, self.element(left, t, d), self.element(right, u, d), total)
        return total

    def number(self, name: str, t: Register) -> Register:
        line = emit.flat(self.b, (*self.i.batches, self.i.queries), (*self.at, t))
        return emit.fetch(self.b, getattr(self.i, name), line, Type.F32, self.compute)

    def weight(self, t: Register, u: Register) -> Register:
        b, i = self.b, self.i
        found, less = self.dot("query", t, "key", u), self.number("sums", t)
        b.mul(found, found, b.constant(self.compute, i.scale))
        masked(b, i, self.at, t, u, found)
        b.mul(less, less, b.constant(self.compute, 1 / LOG2_E))
        b.sub(found, found, less)
        b.exp(found, found)
        return found

    def slope(self, t: Register, u: Register) -> Register:
        """The gradient of a score."""
        b, found, weight = self.b, self.dot("cotangent", t, "value", u), self.weight(t, u)
        share(b, self.i, self.at, t, u, found)
        b.sub(found, found, self.number("inner", t))
        b.mul(found, found, weight)
        b.mul(found, found, b.constant(self.compute, self.i.scale))
        if in_part(self.i):  # what is not seen is not looked at
            seen, nothing = b.pred(), b.constant(self.compute, 0)
            b.setcc(Condition.NE, seen, weight, nothing)
            b.sel(found, seen, found, nothing)
        return found


def _put(
    b: CodeBuilder, i: Instruction, name: str, extents: Sequence[int], at: Sequence[emit.Index], value: Register
) -> None:
    emit.put(b, getattr(i, name), emit.flat(b, (*extents, i.head_dim), at), i.ty, value)


def _expand_query(b: CodeBuilder, i: Instruction) -> None:
    def head(at: list[emit.Index]) -> None:
        h = _Head(b, i, at)
        with b.loop(i.queries) as t, b.loop(i.head_dim) as d:
            total = b.constant(h.compute, 0)
            with b.loop(seen(b, i, t)) as u:
                b.fma(total, h.slope(t, u), h.element("key", u, d), total)
            _put(b, i, "output", (*i.batches, i.queries), (*at, t, d), total)

    each_head(b, i.batches, head)
    emit.touch_ends(b, i)


def _expand_key_value(b: CodeBuilder, i: Instruction) -> None:
    compute = emit.compute_type(i.ty)

    def add(at: list[emit.Index], u: Register, d: Register, of_key: Register, of_value: Register) -> None:
        h = _Head(b, i, at)
        first, rounds = b.constant(Type.U32, 0), b.constant(Type.U32, i.queries)
        if i.causal:
            b.min(first, u, rounds)
            b.sub(rounds, rounds, first)
        with b.loop(rounds) as t:
            b.add(t, t, first)
            b.fma(of_key, h.slope(t, u), h.element("query", t, d), of_key)
            weight = h.weight(t, u)
            share(b, i, at, t, u, weight)
            b.fma(of_value, weight, h.element("cotangent", t, d), of_value)

    def head(at: list[emit.Index]) -> None:
        with b.loop(i.keys) as u, b.loop(i.head_dim) as d:
            of_key, of_value = b.constant(compute, 0), b.constant(compute, 0)
            if i.grouped:
                with b.loop(i.batches[-1]) as member:
                    add([*at, member], u, d, of_key, of_value)
            else:
                add(at, u, d, of_key, of_value)
            for name, total in (("key_output", of_key), ("value_output", of_value)):
                _put(b, i, name, (*_apart(i), i.keys), (*at, u, d), total)

    each_head(b, _apart(i), head)
    emit.touch_ends(b, i)


def _check_groups(i: Instruction) -> None:
    check(i, OPERANDS)
    if i.grouped and (not i.batches or i.key_strides[-2] or i.value_strides[-2]):
        raise IsaError(
            f"{i.op.name}: heads that are grouped share keys and values along the last axis of the batch, of strides "
            f"0, not of {i.key_strides} and {i.value_strides}",
            span=i.span,
        )


_SAME = (
    *(read(name, lambda i, name=name: reach(i, name)) for name in OPERANDS),  # type: ignore[misc]
    *(read(name, lambda i: _queries(i)[:-1], Type.F32) for name in NUMBERS),
    count("batch"), count("queries"), count("keys", 1), count("head_dim", 1), real("scale"),
    Field("causal", Kind.FLAG, default=False),
    *(Field(name, Kind.COUNTS) for name in ("batches", *(f"{name}_strides" for name in OPERANDS))),
    *SEEN,
)  # fmt: skip

row("BatchedAttentionGradQuery", Group.ADVANCED,
    "The gradient of Q for a cotangent of what BatchedAttention gives, from the sums that it told and "
    "inner = cotangent·result for each query",
    (TY, write("output", _queries), *_SAME),
    Arrays(_of_query), FLOATS, expand=_expand_query, check=lambda i: check(i, OPERANDS), traps=True)  # fmt: skip
row("BatchedAttentionGradKeyValue", Group.ADVANCED,
    "The gradients of K and V for a cotangent of what BatchedAttention gives, from the sums that it told and "
    "inner = cotangent·result for each query; grouped: heads along the last axis of the batch share keys and values, "
    "and the gradients are sums over it",
    (TY, write("key_output", _keys), write("value_output", _keys), *_SAME, Field("grouped", Kind.FLAG, default=False)),
    Arrays(_of_key_value), FLOATS, expand=_expand_key_value, check=_check_groups, traps=True)  # fmt: skip
