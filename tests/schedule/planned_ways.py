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
    )
    values[:, 4:4]


def searched(x: Any, y: Any) -> Any:
    return (
        ek.searchsorted(x, y),
        ek.searchsorted(x[:3], y),
        ek.argmax(y, 1),
        ek.argmin(y),
        ek.argmax(y, 0),
    )
    ek.argmax(y > 1, 1)


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
    )
    ek.vmap(lambda e: e.at[1:4].set(y[0, :3]))(x)


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
