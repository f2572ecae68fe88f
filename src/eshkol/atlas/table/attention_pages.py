"""Attention of few queries to keys and values in pages, of which a table says which ones a sample has.

Pages are dense, pages × page × heads × head_dim; so are queries, batch × heads × members × queries × head_dim, the
members of a group being the query heads that share a head of keys, and the result. Of a sample's pages as many places
count as its length says, and entries of the table for what lies beyond are not looked at; one that is no page is taken
for the nearest. As `BatchedAttention` does,
it tells the logarithm to base 2 of each row's sum of e^(scale·q·k), +∞ where there are no keys.
"""

from __future__ import annotations

import numpy as np

from eshkol.atlas.isa import Arrays, CodeBuilder, Group, Instruction
from eshkol.atlas.operands import Register
from eshkol.atlas.table import emit
from eshkol.atlas.table.attentions import LOG2_E, softmaxed
from eshkol.atlas.table.rows import TY, count, read, real, row, write
from eshkol.atlas.types import FLOATS, Array, Type


def _queries(i: Instruction) -> tuple[int, ...]:
    return (i.batch, i.heads, i.members, i.queries, i.head_dim)


def _pages(i: Instruction) -> tuple[int, ...]:
    return (i.pages, i.page, i.heads, i.head_dim)


def _attend(
    i: Instruction, query: Array, keys: Array, values: Array, table: Array, lengths: Array
) -> tuple[Array, Array]:
    found, sums = np.zeros(_queries(i)), np.full(_queries(i)[:-1], np.inf)
    for n, length in enumerate(np.clip(lengths, 0, i.most * i.page)):
        if length <= 0:
            continue
        entries = table.reshape(i.batch, i.most)[n, : -(-int(length) // i.page)]
        entries = np.clip(entries, 0, i.pages - 1)
        k, v = (x[entries].reshape(-1, i.heads, i.head_dim)[:length].swapaxes(0, 1) for x in (keys, values))
        scores = np.einsum("hmtd,hud->hmtu", query[n], k) * i.scale
        top = scores.max(-1, keepdims=True)
        powers = np.exp(scores - top)
        total = powers.sum(-1, keepdims=True)
        found[n] = np.einsum("hmtu,hud->hmtd", powers / total, v)
        sums[n] = ((top + np.log(total)) * LOG2_E)[..., 0]
    return found, sums


def _expand(b: CodeBuilder, i: Instruction) -> None:
    """Three passes over the keys for each query: maximum, sum, and the weighted sum of values."""
    with b.loop(i.batch) as n, b.loop(i.heads) as h, b.loop(i.members) as m, b.loop(i.queries) as t:
        _attend_one(b, i, n, h, emit.flat(b, (i.batch, i.heads, i.members, i.queries), (n, h, m, t)))


def _attend_one(b: CodeBuilder, i: Instruction, n: Register, h: Register, line: Register) -> None:
    compute = emit.compute_type(i.ty)
    signed, keys = emit.fetch(b, i.lengths, n, Type.I32), b.reg(Type.U32)
    b.max(signed, signed, b.constant(Type.I32, 0))
    b.min(signed, signed, b.constant(Type.I32, i.most * i.page))
    b.cvt(Type.I32, Type.U32, keys, signed)

    def place(u: Register, d: Register) -> Register:
        """Where an element of a key lies."""
        number, inner, page = b.reg(Type.U32), b.reg(Type.U32), b.constant(Type.U32, i.page)
        b.div(number, u, page)
        b.mul(inner, number, page)
        b.sub(inner, u, inner)
        entry = emit.fetch(b, i.table, emit.flat(b, (i.batch, i.most), (n, number)), Type.I32)
        b.max(entry, entry, b.constant(Type.I32, 0))
        b.min(entry, entry, b.constant(Type.I32, i.pages - 1))
        b.cvt(Type.I32, Type.U32, number, entry)
        return emit.flat(b, _pages(i), (number, inner, h, d))

    def score(u: Register) -> Register:
        total = b.constant(compute, 0)
        with b.loop(i.head_dim) as d:
            left = (i.query, emit.offset(b, [(line, i.head_dim), (d, 1)]), i.ty)
            emit.accumulate_product(b, total, left, (i.key, place(u, d), i.ty), compute)
        b.mul(total, total, b.constant(compute, i.scale))
        return total

    weight, total, logarithm = softmaxed(b, compute, keys, score, partly=True)
    with b.loop(i.head_dim) as d:
        mixed = b.constant(compute, 0)
        with b.loop(keys) as u:
            b.fma(mixed, weight(u), emit.fetch(b, i.value, place(u, d), i.ty), mixed)
        b.div(mixed, mixed, total)
        emit.put(b, i.output, emit.offset(b, [(line, i.head_dim), (d, 1)]), i.ty, mixed)
    emit.put(b, i.sums, line, Type.F32, logarithm, compute)


row("PagedAttention", Group.ADVANCED,
    "softmax(scale·Q·Kᵀ)·V of batch × heads × members × queries, whose keys and values lie in pages, pages × page × "
    "heads × head_dim: a sample's are those of its row of the table, batch × most, and as many as lengths says",
    (TY, write("output", _queries), write("sums", lambda i: _queries(i)[:-1], Type.F32), read("query", _queries),
     read("key", _pages), read("value", _pages), read("table", lambda i: (i.batch * i.most,), Type.I32),
     read("lengths", lambda i: (i.batch,), Type.I32), count("batch"), count("heads"), count("members", 1),
     count("queries"), count("pages", 1), count("page", 1), count("most", 1), count("head_dim", 1), real("scale")),
    Arrays(_attend), FLOATS, expand=_expand, traps=True)  # fmt: skip
