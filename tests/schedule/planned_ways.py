"""Functions that are planned for `plan_sizes.txt`, by what they go through: rules, orders, loops, linear algebra.

`planned_functions.py` says for which inputs and machines.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

import eshkol as ek


# Rules of simplification: each expression is one that some of them are about.
def signs(x: Any, y: Any) -> Any:
    u, v = ek.sin(x), ek.cos(y)
    return (
        x + -u, -u + y, x - -u, -u * -v, x * 1, x * -1, -u * 3.0, -u / -v, x / 4, x / 3, u / 0.3, -u / 3.0,
        ek.negative(-u), -(u * 3), -(u / 3), 2.0 + x, 2.0 * u, u - 0, x - x, u * 0, 1 / x, -(u * v), x.sum(0) / 4,
        x.astype(ek.float64) / 2**-1022,
    )  # fmt: skip


def powers(x: Any, h: Any) -> Any:
    roots = (x * x, abs(x), ek.exp(x), x * x + ek.sigmoid(x), ek.exp(x) / 2, ek.sqrt(x * x), (x * x).sum(0), -x, x * 3)
    whole = [x**n for n in (0, 1, 2, 3, 4, 5, -1, -2, 0.5, -0.5)]
    return [
        *whole, *(r**0.5 for r in roots), (x * x)[:2] ** -0.5, h**2, h**3, h**4, ek.full((4,), 2.0) ** x[0],
        ek.minimum(x * x, 2.0) ** 0.5,
    ]  # fmt: skip


def extremes(x: Any, y: Any, i: Any) -> Any:
    most, least = ek.maximum, ek.minimum
    low, high = float(np.finfo(np.float32).min), float(np.finfo(np.float32).max)
    return (
        most(x, x), most(x, -np.inf), least(x, np.inf), most(x, low), least(x, high), most(most(x, 1.0), 2.0),
        least(least(x, 1.0), 2.0), most(most(x, y), y), most(x, most(x, y)), most(1.0, x), most(least(x, 1.0), 2.0),
        most(i, -(2**63)), least(i, 2**63 - 1), least(y, least(x, y)), most(most(x, 1.0), y), most(i, 7),
    )  # fmt: skip


def nothing_left(x: Any, i: Any, t: Any) -> Any:
    floats = i.astype(ek.float32)
    steps = ek.arange(12).reshape(3, 4)
    return (
        i * 0, i - i, floats * 0, steps.astype(ek.float32) * 0, floats.T[::-1] * 0, ek.full((3, 4), 2.0) * 0 + x,
        i.astype(ek.float16) * 0, t.astype(ek.float16) * 0, steps * 0 + i, (x * 0).sum(), floats.astype(ek.float64) * 0,
        i.astype(ek.int8).astype(ek.float16) * 0, ek.arange(5.0) * 0,
    )  # fmt: skip


def of_one_operand(x: Any, i: Any, u: Any, z: Any) -> Any:
    return (
        ek.floor(ek.ceil(x)), ek.round(ek.trunc(x)), ek.floor(i), ek.trunc(ek.floor(x * 2)), ek.floor(x * 2),
        ek.sign(ek.sign(x)),
        ek.relu(ek.relu(x)), ek.relu(u), abs(abs(x)), abs(-x), abs(u), abs(i), abs(-i), ek.conj(x), ek.conj(ek.conj(z)),
        ek.real(x), ek.imag(x), ek.stop_gradient(x), ek.sign(i), ek.real(ek.conj(z)), ek.round(x) * 2,
        ek.ceil(ek.round(x)),
    )  # fmt: skip


def logic(x: Any, y: Any, i: Any, j: Any) -> Any:
    less, same = x < y, i == j
    return (
        i == i, i < i, i >= i, i != i, x == x, i <= i, i > i, i == 3, i > 3, ~(x < y), ~(x == y), ~(x != y), ~(i < j),
        ~(i >= j), ~(i > j),
        ~(i <= j), ~~less, less & less, less | less, less & True, less | True, less & False, less | False, i & -1,
        i | -1, i & 0, i | 0,
        i ^ 0, i ^ i, i ^ 7, 7 & i, i & 6, i | 6, less ^ same, ~i, ~~i,
    )  # fmt: skip


def choices(x: Any, y: Any, i: Any) -> Any:
    c = x < y
    return (
        ek.where(ek.full((3, 4), True), x, y), ek.where(ek.full((3, 4), False), x, y), ek.where(c, x, x),
        ek.where(~c, x, y),
        ek.where(c, ek.where(c, x, y), 2.0), ek.where(c, 2.0, ek.where(c, x, y)), ek.where(~(x == y), ek.sin(x), y[0]),
        ek.where(i < 3, ek.where(c, x, y), ek.where(c, y, 1.0)), ek.where(c, x, 0.0), ek.where(c, 1.0, 0.0),
    )  # fmt: skip


def dtypes_between(i: Any, x: Any, b: Any) -> Any:
    between = (
        (i, "int8", "int32"), (i, "float32", "int32"), (i.astype(ek.int8), "int32", "int64"),
        (i.astype(ek.int8), "float32", "int32"),
        (i.astype(ek.int8), "float32", "uint8"), (i.astype(ek.uint8), "float16", "int32"),
        (i.astype(ek.uint8), "int8", "int32"),
        (i.astype(ek.uint16), "float16", "float32"), (b, "float32", "int32"), (b, "int64", "float16"),
        (x, "float64", "float32"),
        (x, "float16", "float32"), (x, "bfloat16", "float32"), (x.astype(ek.float16), "float32", "float64"),
        (x, "complex64", "complex128"),
        (x.astype(ek.float16), "bfloat16", "float32"), (x, "bool", "float32"),
        (i.astype(ek.int32), "float32", "float64"),
        (i.astype(ek.uint32), "int64", "float32"), (i.astype(ek.int16), "uint16", "int32"), (x, "int32", "float32"),
    )  # fmt: skip
    return [given.astype(getattr(ek, first)).astype(getattr(ek, then)) for given, first, then in between]


def moved(x: Any, y: Any) -> Any:
    """Movements of movements."""
    u, wide, row = ek.sin(x), ek.broadcast_to(y, (3, 4, 5)), ek.cos(y[:1, :])
    padded = ek.pad(u, ((1, 1), (2, 0), (0, 0)))
    return (
        u.permute(1, 0, 2).permute(2, 0, 1), u.reshape(3, 20).reshape(12, 5), u[:, :1].permute(1, 0, 2),
        wide.permute(2, 0, 1),
        ek.broadcast_to(2.0 * ek.ones(()), (3, 4)).T + y[0, :3], u[1:][:, 1:3][::1], u[::2][1:], wide[1:, 1:3, ::2],
        ek.full((3, 4), 2.0)[1:] * 2,
        ek.concatenate((u, x), 1)[:, 1:3], ek.concatenate((u, x), 1)[:, 5:7], ek.concatenate((u, x), 1)[:, 3:6],
        padded[1:3, 2:4], padded[0:2], padded[1:4, 2:6], padded[1:4:2, 3:6:2], ek.pad(padded, ((0, 1), (0, 0), (1, 1))),
        ek.pad(ek.full((3, 4), 0.0), ((1, 1), (0, 0))) + 1, ek.pad(padded, ((1, 0), (0, 0), (0, 0)), value=2.0),
        ek.flip(ek.flip(u, (0,)), (0, 1)), ek.flip(wide, (0, 1)), ek.flip(ek.broadcast_to(row, (4, 5)), (0,)),
        ek.flip(u[:, :1], (0, 1)),
        ek.flip(u[:1, :1], (0, 1)), ek.concatenate((u[:1], u[1:2], u[2:]), 0), ek.concatenate((u[:1], u[2:]), 0),
        ek.concatenate((ek.concatenate((x, u), 0), u), 0),
        ek.concatenate((ek.zeros((2, 4)), ek.zeros((1, 4)), ek.ones((1, 4))), 0),
        u[:1].expand(3, 4, 5).expand(2, 3, 4, 5), u[:0].reshape(0, 20), ek.concatenate((u[:0], u), 0),
        u.reshape(1, 60).expand(2, 60),
    )  # fmt: skip


def reduced(x: Any, y: Any, i: Any) -> Any:
    """Reductions of what is moved, repeated or empty."""
    wide, thin = ek.broadcast_to(y, (3, 4, 5)), ek.sin(x)[:, :1]
    return (
        wide.sum(0), wide.sum((0, 1)), wide.max(axis=0), wide.sum(0, keepdims=True), thin.sum(1), thin.sum((0, 1)),
        thin.sum((0, 1), keepdims=True),
        thin.max(axis=1), ek.argmax(thin, 1), x.permute(1, 0, 2).sum((0, 1)), x.permute(1, 0, 2).sum(2),
        x.permute(2, 0, 1).sum(0), x.reshape(3, 20).sum(),
        x[:0].sum(0), ek.prod(x[:0], 0), ek.prod(x, 1), x.min(axis=0), ek.logsumexp(wide, 0), ek.all(x > 1, 1),
        ek.any(x > 1), i.sum(0), i.max(axis=1),
        i.min(), ek.prod(i, 0), ek.argmin(x, 0), ek.broadcast_to(i[0], (3, 4)).sum(0),
        ek.broadcast_to(x[0, 0].astype(ek.float16), (9, 5)).sum(0),
    )  # fmt: skip


def halves(x: Any) -> Any:
    return x.sum(1), x.max(axis=1), ek.prod(x, 0), x.sum(), x.min(axis=0), ek.cumsum(x, 0), ek.softmax(x, -1)


def large(x: Any, z: Any, i: Any) -> Any:
    return x.sum(), ek.prod(x), x.max(), z.sum(), i.sum(), i.max(), ek.prod(z, 0), (x * 2).min()


def seen_parts(x: Any) -> Any:
    """One tensor of which queries, keys and values are parts."""
    q, k, v = (x[:, :, n].permute(0, 2, 1, 3) for n in range(3))
    return ek.scaled_dot_product_attention(q, k, v)


def heads(q: Any, k: Any, v: Any) -> Any:
    """Heads beside each other, as layers have them."""
    split = [x.reshape(2, 9, 2, 4).permute(0, 2, 1, 3) for x in (q, k, v)]
    return ek.scaled_dot_product_attention(*split).permute(0, 2, 1, 3).reshape(2, 9, 8)


def linear_algebra(x: Any, b: Any) -> Any:
    definite = x @ x.swapaxes(-1, -2) * 4  # as far as plans see; nothing is run
    lower = ek.tril(x) * 3
    return (
        ek.det(x), *ek.slogdet(x), ek.cholesky(definite), ek.solve(definite, b), ek.solve_triangular(lower, b),
        ek.inv(definite),
        *ek.qr(x), *ek.lu(x),
    )  # fmt: skip


def triangles(x: Any, b: Any) -> Any:
    solve = ek.triangular_matrix_solve

    ways = itertools.product((True, False), repeat=3)
    return [solve(x, b, lower, turned, unit) for lower, turned, unit in ways]


def empty_algebra(x: Any, b: Any) -> Any:
    return ek.det(x), *ek.slogdet(x), ek.cholesky(x), ek.solve(x, b), *ek.qr(x), ek.triangular_matrix_solve(x, b)


def spectra_of(x: Any, y: Any) -> Any:
    """Values that are read alone, and with their vectors."""
    values, vectors = ek.eigh(x)
    return values, vectors, ek.eigvalsh(x), ek.eigh(y)[0], ek.svd(x)[1], ek.svdvals(y), ek.eigvalsh(y + 1)


def systems(a: Any, b: Any) -> Any:
    return ek.solve(a, b), ek.solve(a.T, b), ek.solve(a + 1, b), ek.solve(a, b * 2)


def ranks(x: Any, i: Any) -> Any:
    values, places = ek.sort(x, 1)
    down = ek.sort(x, 0, descending=True)
    return (
        values[:, 2:5],
        places[:, 1:3],
        values[:, 20:22],
        down[0][:4],
        ek.sort(i, 1)[0],
        ek.median(x, 1)[0],
        values[:, 4:4],
    )


def searched(x: Any, y: Any) -> Any:
    return (
        ek.searchsorted(x, y),
        ek.searchsorted(x[:3], y),
        ek.argmax(y, 1),
        ek.argmin(y),
        ek.argmax(y, 0),
        ek.argmax(y > 1, 1),
    )


def signals(x: Any, z: Any) -> Any:
    """Transforms of many lengths: radices of all kinds, a prime, real ones, halves."""
    short = (z[:, :n] for n in (1, 2, 3, 4, 5, 7, 8, 12, 16, 30, 48, 64, 67, 61))
    return (
        *(ek.fft(s) for s in short), ek.ifft(z) * 3, ek.fft(z, axis=0), ek.rfft(x) * 2, ek.rfft(x[:, :32])[:, 2:5],
        ek.irfft(z[:, :17], 32),
        ek.irfft(z[:, :9], 40), ek.real(ek.fft(x)), ek.rfft(x[:, :31]), ek.irfft(z[:, :20], 24), ek.fft(2 * x),
        ek.rfft(x.astype(ek.float64)),
    )  # fmt: skip


def updates(x: Any, y: Any, i: Any) -> Any:
    once = x.at[2:5].set(y)
    return (
        once,
        x.at[:, 1:3].add(1.0),
        x.at[i].set(y[:2]),
        x.at[1].set(2.0),
        x.at[2:5, ::2].multiply(2.0),
        ek.vmap(lambda e: e.at[1:4].set(y[0, :3]))(x),
    )


def in_rounds(x: Any, y: Any, i: Any) -> Any:
    """Loops that change what they carry where it lies."""
    added = ek.fori_loop(0, 4, lambda k, s: s.index_add(0, i, y), x)
    rows = ek.scan(lambda s, row: (s.at[1].add(row), s.sum()), x, y)
    until = ek.while_loop(lambda s: s.sum() < 99, lambda s: s.index_add(0, i, y + 1), x)
    chosen = ek.cond(x.sum() > 0, lambda s: s.index_add(0, i, y), lambda s: s * 2, x + 1)
    return added, *rows, until, chosen


def cells(x: Any, w: Any, u: Any, h: Any) -> Any:
    """A recurrent network: products of all rounds that are one, sums that are taken behind the loop."""

    def step(h: Any, row: Any) -> Any:
        new = ek.tanh(row @ u + h @ w.T)
        return new, new @ w

    return ek.scan(step, h, x)


def loops(x: Any, y: Any) -> Any:
    """Loops of which not all is needed, or not in every round."""

    def step(s: Any, row: Any) -> Any:
        a, b, c, d = s
        fixed = ek.exp(y) @ y
        return (a + row @ fixed, b, c * 2, a.sum() + d), (row * 2, fixed.sum(), c, ek.zeros((2,)))

    (a, b, _, d), (rows, still, _, zeros) = ek.scan(step, (x[0], y, x[1], x.sum()), x)
    none = ek.scan(lambda s, r: (s + r, s), x[0], x[:0])
    one = ek.scan(lambda s, r: (s + r, s * 2), x[0], x[:1])
    twice = ek.scan(lambda s, r: (s + r[0] * r[1], r[0]), x[0], (x, x))[0]
    spread = ek.scan(lambda s, r: (s * r, None), x[0], ek.broadcast_to(x[1], (6, 4)))[0]
    nested = ek.scan(lambda s, r: (ek.fori_loop(0, 3, lambda k, t: ek.sin(t) + r, s), s.max()), x[0], x)
    backwards = ek.scan(lambda s, r: (s + ek.softmax(r, -1), s), x[0], x, reverse=True)
    return a, b, d, rows, still, zeros, *none, *one, twice, spread, *nested, *backwards


def branches(x: Any, y: Any) -> Any:
    several = ek.cond(x.sum() > 0, lambda a, b: (a, b * 2, a + 1), lambda a, b: (b, b * 2, a.sum() + b), x, y)
    chosen = ek.switch(x.sum().astype(ek.int32), [lambda a: a * 2, lambda a: ek.sin(a), lambda a: a - 1], x)
    held = ek.checkpoint(lambda a: ek.exp(ek.sin(a)) * a)(x)
    counted = ek.while_loop(lambda s: s[0] < y.max(), lambda s: (s[0] + 1, s[1] * y, s[2]), (y[0, 0], x, y))
    return several[0], several[2], chosen, held, counted[0], counted[1]


def long_way(x: Any) -> Any:
    """More than one kernel has room for."""
    kept = []
    for k in range(30):
        x = ek.tanh(x * (k + 1.5)) + ek.sin(x + k)
        kept.append(x)
    return x, sum(y.sum(1) * k for k, y in enumerate(kept[:12]))


def bent(x: Any) -> Any:
    for k in range(14):
        x = ek.roll(x.reshape(4, 6).T.reshape(-1), k + 1, 0)
    return x


def divided_by(i: Any, x: Any, u: Any) -> Any:

    pairs = ((i, 3), (i, 8), (i, -5), (x, 2.0), (u, 7))
    found = [divide(n, by) for divide in (ek.remainder, ek.fmod, ek.floor_divide) for n, by in pairs]
    return [*found, i // i, 7 % (i + 1)]


# Of axes whose lengths programs are told.
def told_rows(x: Any) -> Any:
    return x.sum(1), x.sum(0), (x * 2).max(axis=1), ek.softmax(x, -1), ek.softmax(x, 0), x.sum(), ek.exp(x) - x.mean(0)


def told_middle(x: Any, y: Any) -> Any:
    return x.sum(1), x.sum((0, 1)), x.sum((1, 2)), x.max(axis=(0, 2)), ek.einsum("ijk,j->ik", x, y), x * y[:, None]


def told_moved(x: Any, y: Any) -> Any:
    return (
        ek.concatenate((x, ek.sin(y)), 0), x.T + 1, x[1:] * y[:-1], ek.flip(x, (0,)), x.reshape(-1) * 2,
        ek.pad(x, ((1, 0), (0, 2))), x @ y.T, x.T @ y, ek.cumsum(x, 0), ek.cumsum(x, 1), ek.where(x > y, x, 0.0),
        ek.stack((x, y), 1), ek.tril(x @ y.T),
    )  # fmt: skip


def known_loops(x: Any, y: Any, i: Any) -> Any:
    """Loops and branches of which much is known: constants that stay, sides that are the same, tests that fail."""
    constant = ek.scan(lambda s, r: ((s[0] + r, ek.zeros((4,))), s[1] + r), (x[0], ek.zeros((4,))), x)
    one = ek.broadcast_to(ek.sin(y[0]), (4, 4))
    spread = ek.while_loop(lambda s: s.sum() < y.max(), lambda s: s @ one + y, x[:4, :4])
    never = ek.while_loop(lambda s: ek.full((), False), lambda s: s * 2, y)
    same = ek.cond(x.sum() > 0, lambda a: ek.sin(a), lambda a: ek.sin(a), y)
    wide = ek.cond(x.sum() > 0, lambda a, b: (a + b, b, a * 2), lambda a, b: (a - b, b, a * 2), y, one)
    handed = ek.cond(x.sum() > 0, lambda a: (a, ek.ones(())), lambda a: (a, ek.ones(())), y)
    divided = ek.while_loop(lambda s: s.sum() < 9, lambda s: s + (i // i[0]).sum() + ek.exp(y).T.sum(0), x[0])
    turned = ek.scan(lambda s, r: (s + ek.exp(y).T @ r, None), x[0], x)[0]
    return *constant, spread, never, same, *wide, *handed, divided, turned


def behind_loops(x: Any, w: Any) -> Any:
    """Sums of what loops go along, which are taken behind them: of rows, of matrices, of more than is worth it."""
    rows = x.reshape(6, 2, 4)
    sums = ek.scan(lambda s, r: (s + r.sum(0), None), w[0], rows)[0]
    outer = ek.scan(lambda s, r: (r.T @ (r * 2) + s, None), w, rows)[0]
    small = ek.scan(lambda s, r: (s + ek.exp(r)[:1].T @ ek.sin(r)[:1], None), w, rows)[0]
    both = ek.scan(lambda s, r: ((s[0] + r.T @ s[1], s[1] * 2), r @ w), (w, rows[0]), rows)
    vectors = ek.scan(lambda s, r: (s + r.sum(), r[0] @ w), w[0, 0], rows)
    back = ek.scan(lambda s, r: (s + r.sum(0), r @ w), w[0], rows, reverse=True)
    return sums, outer, small, *both[0], both[1], *vectors, *back


def turned_reductions(x: Any, y: Any, z: Any) -> Any:
    """Reductions along short rows that are done along the axis before, and those that are not."""
    distances = ((x[:, None] - y[None]) ** 2).sum(-1)
    others = (ek.exp(x[:, None] * 2.0) * abs(y)).max(axis=-1), (x[:, None] + x[:, :1, None]).sum(-1)
    large = (ek.sin(z) * 2).sum(-1), (z * y[None, :40]).sum(-1)
    short = ek.softmax(z.reshape(-1, 2), -1), ek.softmax(z.reshape(-1, 10), -1), ek.softmax(z.reshape(-1, 4), -1)
    return distances, *others, *large, *short, ek.softmax(z.reshape(-1, 7), -1).astype(ek.float16)


def columns_beside(x: Any) -> Any:
    """Scans along axes that are not the last: of as many columns as lanes divide, and of more."""
    return (
        ek.cumsum(x, 1),
        ek.cumsum(x[:, :, :150], 1),
        ek.cumprod(x[:1], 1),
        ek.flip(ek.cumsum(ek.flip(x, (1,)), 1), (1,)),
    )


def masked(q: Any, k: Any, v: Any, m: Any) -> Any:
    """Attention, and what is nearly that: with masks, numbers and axes that are other ones. Nothing is shared."""
    wide = [x.astype(ek.float32) for x in (q, k, v)]
    rows, columns, least = ek.arange(9)[:, None], ek.arange(9), float(np.finfo(np.float32).min)
    causal, number = rows >= columns, itertools.count(1)

    def scores() -> Any:
        return (wide[0] * (next(number) * 8**-0.5)) @ wide[1].swapaxes(1, 2)

    def twice(mask: Any, number: float, behind: Any = None) -> Any:
        return ek.where(mask if behind is None else behind, ek.softmax(ek.where(mask, scores(), number), -1), 0.0)

    weights = (
        twice(m, least), twice(causal, -1.0), twice(causal, least), twice(rows > columns, least),
        ek.softmax(scores(), 1), ek.softmax(ek.where(causal, scores(), least), -1), twice(causal, least, m),
        ek.softmax(scores(), -1),
    )  # fmt: skip
    found = [(w @ wide[2]).astype(q.dtype) for w in weights]
    found += [ek.softmax(scores(), -1) @ wide[2][:, :, :3], ek.softmax(scores(), -1) @ (wide[2] * 2)]
    return [*found, ek.scaled_dot_product_attention(q, k, v, m), ek.scaled_dot_product_attention(q, k, v, causal=True)]


def images(x: Any, w: Any, b: Any, s: Any) -> Any:
    """What follows a convolution, in every order."""
    y = ek.conv2d(x, w)
    return ek.relu(b - y), ek.relu(y * s + b), ek.relu(s * (b - y) - b), ek.relu(2.0 - y), (y + b) * s, ek.relu(y / s)


def pooled_over(x: Any) -> Any:
    """Windows that share elements, that have gaps, and that are padded."""
    pool = ek.max_pool2d
    return pool(x, 3, 2), pool(x, 3, 1, 1), pool(x, (1, 3), 1), pool(x, 2), pool(x, 3, 2, 1), ek.avg_pool2d(x, 2, 1)


def chains(a: Any, b: Any, c: Any, i: Any) -> Any:
    """Products of products, and of what was joined, cut or laid out on diagonals."""
    return (
        (a @ b) @ c, a @ (b @ c), c.T @ b.T @ a.T, (a * 2) @ b, ek.concatenate((a, a), 0) @ b,
        a @ ek.concatenate((b, b), 1), ek.diag(a[0]) @ b, ek.diag(i) @ i[:, None], ek.diagonal(a.T @ a), a[:1] @ b,
        ek.diagonal(i[:, None] @ i[None]), a @ b[:, :1], a[:, :1] @ b[:1], (a @ b).T, a @ b + a @ b * 2,
    )  # fmt: skip


def halves_in_order(x: Any) -> Any:
    return *ek.sort(x, 1), ek.argsort(x, 1, descending=True), ek.topk(x, 3)[0], ek.sort(x[:0], 1)[0]


def few_of_many(x: Any, i: Any) -> Any:
    """Parts of an order, at both ends and between, of values and of places; none of it."""
    values, places = ek.sort(x, 1)
    return (
        values[:, :2], values[:, -1:], values[:, 3:5], places[:, 0], ek.sort(x, 1, descending=True)[0][:, :3],
        values[:, 2:2], ek.sort(i, 0)[1][1:3], ek.topk(i, 1, 0)[0], ek.argsort(x, 0)[0], values[1], places.sum(1),
    )  # fmt: skip


def complex_ways(z: Any, x: Any, t: Any) -> Any:
    """Complex numbers through all that moves, chooses and reduces them."""
    w = z * 2 + x
    return (
        z.T, w.reshape(-1)[::2], ek.where(t, z, 0), ek.concatenate((z, w), 0), ek.pad(z, ((1, 0), (0, 1))),
        w.sum(), w.sum(0), ek.cumsum(z, 0), z @ w.T, z @ x.T, x @ z.T, ek.real(z) * ek.imag(w), abs(z), ek.angle(z),
        ek.exp(z), ek.sqrt(z), z / w, 1 / z, z**2, z == w, z.conj().T @ z, z.astype(ek.complex128), ek.stack((z, w), 1),
        ek.flip(z, (0,)), ek.take(z, ek.arange(2), 0), ek.tril(z @ z.T), ek.broadcast_to(z[:1], z.shape) * z,
        ek.scan(lambda s, r: (s * r, s), z[0], z)[1], ek.cond(x.sum() > 0, lambda y: y * 2, lambda y: y.conj(), z),
        z.at[1].set(2j), ek.roll(z, 1, 1), ek.prod(z, 1), -z, z - 1, ek.complex(x, x), z * 1j, 2 * z, z.mean(),
    )  # fmt: skip


# What one kernel has no room for: each at both sides of a bound.
def crowded(*xs: Any) -> Any:
    """More inputs and results than a kernel takes."""
    few = sum(ek.sin(x) for x in xs[:23])
    results = [xs[0] * x for x in xs[1:14]]
    return few, sum(ek.cos(x) * xs[0] for x in xs), *results, sum(results) + xs[20]


def of_many_numbers(x: Any) -> Any:
    rows = [x.sum(1) * k for k in range(3)]
    return sum(ek.tanh(x * (k + 0.25)) for k in range(40)), sum(abs(x - k * 1.5) for k in range(70)), *rows


def one_after_another(x: Any) -> Any:
    """Reductions of rows, each of what the one before gives."""
    y = x
    for k in range(11):
        y = y - ek.exp(y).sum(1, keepdims=True) * (k + 1.0)
    z = x
    for _ in range(4):
        z = ek.softmax(z * 2, -1)
    return y, z, (z - z.mean(0)).max(axis=1)


def stretched(x: Any, y: Any) -> Any:
    """Rows of which parts come from elsewhere, beside others that have rows of another length."""
    joined = ek.concatenate((x, y, x), 1)
    rolled = ek.roll(ek.roll(joined, 2, 1), 1, 0)
    padded = ek.pad(x, ((0, 0), (1, 4))) + ek.pad(y, ((0, 0), (3, 4)))
    folded = ek.concatenate((x.reshape(3, 10), x.reshape(3, 10) * 2), 0).reshape(12, 5)
    many = ek.concatenate([x[:, k % 5 : k % 5 + 1] for k in range(24)], 1) * 2
    other = ek.concatenate((x, y), 1).reshape(3, 16) + ek.pad(x.reshape(3, 10), ((0, 0), (4, 2)))
    return (
        joined * rolled,
        padded * 2,
        folded + x.sum(),
        many,
        other,
        joined[:, :12:2] + rolled[:, 1::2],
        ek.sin(rolled),
    )


def seen_batches(a: Any, b: Any) -> Any:
    """Products of matrices that lie in many ways, along axes of one element and of more."""
    return (
        ek.einsum("abij,abjk->abik", a, b), ek.einsum("abij,abjk->baik", a, b), ek.einsum("abij,abkj->abik", a, a),
        ek.einsum("abij,abjk->aibk", a, b), a[:1] @ b[:1], a[:, :1] @ b[:, :1], a[:, ::2] @ b[:, ::2], a[0, 0] @ b,
        a @ b[0, 0], a[:, :, :1] @ b, ek.einsum("abij,cjk->abcik", a, b[0]), a.swapaxes(0, 1) @ b.swapaxes(0, 1),
    )  # fmt: skip


def deep_loops(x: Any) -> Any:
    """Loops in loops in loops, two of them the same."""

    def inner(s: Any) -> Any:
        return ek.fori_loop(0, 2, lambda k, t: ek.tanh(t) + k, s)

    def outer(s: Any, r: Any) -> Any:
        return ek.fori_loop(0, 3, lambda k, t: inner(t) * r, s), inner(r)

    branch = ek.cond(x.sum() > 0, lambda y: ek.scan(outer, y[0], y)[0], lambda y: inner(y[1]), x)
    return *ek.scan(outer, x[0], x), branch


def of_orders(x: Any, y: Any) -> Any:
    """Orders of which next to nothing is read."""
    return ek.sort(x, 1)[0][:, 2:2], ek.sort(y, 1)[0][:, 3:4], ek.sort(y, 1)[1][:, 5:9], ek.sort(x, 1)[0][:, 1:30]


def lengths_of_signals(z: Any) -> Any:
    """Transforms at both sides of what decides how they are made."""
    lengths = (999, 1000, 1001, 512, 122, 131)
    return [ek.fft(z[:, :n]) for n in lengths] + [ek.fft(z[:7, :n]) for n in (64, 100)] + [ek.fft(z[:1, :1003])]


def bounds(x: Any, y: Any) -> Any:
    most, least = ek.maximum, ek.minimum
    return (
        most(most(x, y), 2.0),
        least(least(x, y), 2.0),
        most(most(x, 2.0), 1.0),
        most(2.0, most(1.0, x)),
        most(x, 0.0),
    )


def of_nothing(x: Any, i: Any) -> Any:
    """Empty axes through what looks for extremes, orders, joins and multiplies."""
    return (
        ek.cummax(x, 1)[0], ek.cumsum(x, 0), ek.sort(x, 0)[0], ek.concatenate((x, x), 0), x @ x.T, x.T @ x,
        ek.take(x, i, 1), ek.max_pool1d(x[None], 1), x.sum(0), ek.softmax(x, 1), ek.flip(x, (0,)), ek.tril(x.T @ x),
    )  # fmt: skip


def sliced_apart(x: Any, y: Any) -> Any:
    """Slices that follow one another, that nearly do, and slices of what is repeated."""
    join = ek.concatenate
    wide, ones = ek.broadcast_to(y[:1], (6, 8)), ek.full((6, 8), 3.0)
    return (
        join((x[:, 0:4:2], x[:, 4:8:2]), 1), join((x[:, 0:2], x[:, 2:8:2]), 1), join((x[0:2], x[2:4], x[4:6]), 0),
        join((x[0:2, 1:], x[2:4, :7]), 0), join((x[:, 0:2], x[:, 3:5]), 1), wide[1:5:2, 2:8:3], wide[2:, :1],
        ones[1:4, ::2] * x[1:4, ::2], join((ek.zeros((2, 3)), ek.zeros((1, 3))), 0), wide[:, 1:],
        join((ones[:2], ones[:3]), 0), join((x[:, 4:8:2], x[:, 0:4:2]), 1),
    )  # fmt: skip


def few_terms(x: Any, i: Any, y: Any) -> Any:
    """Sums over few elements along axes that lie apart, and of products of whole numbers."""
    whole = i @ i.swapaxes(1, 2), ek.einsum("ijk,ijk->j", i, i), y.sum((1, 3)), (y * 2).max(axis=(1, 3))
    return (
        x.sum((0, 2)), x.mean((1, 3)), x.max(axis=(0, 2)), ek.prod(x.sum(2), 1), i.sum((0, 2)), i.max(axis=1),
        (x * 2).sum((0, 1)), *whole,
    )  # fmt: skip
