"""Functions that are planned for `plan_sizes.txt`: what only few shapes, dtypes and numbers make the compiler do.

`planned_functions.py` says for which inputs and machines.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

import eshkol as ek


def complex_matrices(z: Any, b: Any) -> Any:
    """Factors, solutions and determinants of complex matrices, which machines of blocks make by loops."""
    definite = z @ z.conj().swapaxes(-1, -2)
    return (
        ek.det(z), *ek.slogdet(z), *ek.lu(z), *ek.lu_factor(z), *ek.qr(z[:, :, :2]), *ek.qr(z[:, :2]), ek.solve(z, b),
        ek.inv(z), ek.cholesky(definite), ek.cholesky(definite, upper=True), ek.triangular_matrix_solve(z, b),
        ek.det(z[:0]),
    )  # fmt: skip


def pivots(x: Any, b: Any, i: Any) -> Any:
    """Systems whose factors are given, with the rows that were exchanged."""
    return (
        *ek.lu(x[:, :, :0]),
        *ek.lu_factor(x),
        ek.lu_solve(x, i, b),
        ek.lu_solve(x, i, b, adjoint=True),
        ek.lu_solve(x[:0], i[:0], b[:0]),
    )


def complex_parts(z: Any, i: Any, w: Any) -> Any:
    """Complex numbers that are put into places, and convolutions of them."""
    return z.at[i].set(z[:2]), z.at[i].add(z[1:3] * 2), ek.conv1d(z[None], w), ek.conv1d(z[None], w, padding=1)


def sparse(values: Any, places: Any, pointers: Any, dense: Any) -> Any:
    """A sparse matrix times a dense one, and what it is turned."""
    pattern = values, places, pointers, (3, 4)
    return ek.sparse_mm(*pattern, dense), ek.sparse_mm(*pattern, dense[:, 0]), *ek.csr_turned(places, pointers, 4)


def tallied(x: Any, i: Any, y: Any, n: Any, h: Any) -> Any:
    """Many numbers that are added at few places: one for each, one for all, whole ones, halves, too many places."""
    return (
        x.index_add(0, i, y), x.at[i].add(2.0), x[:4].index_add(0, i % 4, y), n.index_add(0, i, i), x.at[i].set(y),
        h.index_add(0, i, y.astype(ek.float16)), ek.zeros((3000,)).index_add(0, i, y),
    )  # fmt: skip


def taken_alone(x: Any, i: Any, j: Any, y: Any, u: Any) -> Any:
    """Single elements at positions that are given, which nothing else is computed with."""
    return (
        ek.take(x, i, 0), ek.take_along(y, j, 1), ek.take(x, u, 0), ek.take(x, i[:9], 0), ek.take(x * 2, i, 0),
        ek.take(y, i, 1), ek.take(x.astype(ek.complex64), i, 0),
    )  # fmt: skip


def odd_lengths(x: Any, y: Any) -> Any:
    """Rows and columns that are cut into parts of which the last is shorter."""
    return x.sum(1), (x * 2).max(axis=1), y.sum(0), (y + 1).sum((0, 1)), y.sum((0, 2)), ek.softmax(x, -1), x.sum()


def beside_each_other(x: Any) -> Any:
    """Sums of what is padded with zeros: parts that follow one another, with gaps, and that overlap."""

    def put(first: int, length: int, axis: int = 0, value: float = 0.0) -> Any:
        part = ek.sin(x[first : first + length] if axis == 0 else x[:, first : first + length])
        rest = (first, x.shape[axis] - first - length)
        return ek.pad(part, (rest, (0, 0)) if axis == 0 else ((0, 0), rest), value=value)

    return (
        put(0, 2) + put(4, 2), put(0, 2) + put(4, 2) + put(7, 2), put(0, 2) + put(7, 2) + put(4, 2),
        put(0, 3) + put(2, 2), put(1, 2) + put(1, 2, 1), put(0, 2) + put(2, 7), put(5, 4) + put(0, 2) + put(2, 1),
        put(0, 2, 1) + put(3, 1, 1), put(0, 2, 0, 1.0) + put(4, 2), put(1, 2) + put(4, 2) + put(3, 3),
    )  # fmt: skip


def behind_one_image(x: Any, w: Any, b: Any, s: Any) -> Any:
    """What follows a convolution, in every order; each is one of its own."""
    y = (ek.conv2d(x * (k + 2.0), w) for k in range(12))
    return (
        ek.relu(b - next(y)), ek.relu(next(y) * s + b), ek.relu(s * (b - next(y)) - b), ek.relu(2.0 - next(y)),
        (next(y) + b) * s, ek.relu(next(y) / s), b - next(y) * s, 1.0 - (b - next(y)), next(y) - b + s,
        (lambda z: z * z)(next(y)), s / next(y), ek.relu(next(y) * x[:, :1, :4, :4]),
    )  # fmt: skip


def to_the_power(x: Any, z: Any, i: Any) -> Any:
    """Powers by numbers that stand in the graph."""
    power, number = ek.power, ek.full
    return (
        *(power(x, number((), n)) for n in (0.0, 1.0, 2.0, 3.0, 4.0, 5.0, -1.0, 0.5)), power(x[0], number((3, 4), 1.0)),
        power(x[0], number((3, 4), 2.0)), power(x[0], number((3, 4), 3.0)), z**2, z**0, z**1, i**2, i**3,
        power(i, number((), 1, dtype=ek.int64)), power(x.astype(ek.float16), 2.0), power(x.astype(ek.float16), 4.0),
    )  # fmt: skip


def scaled_keys(q: Any, k: Any, v: Any) -> Any:
    """Attention whose scale is at the keys, at both, at the values, or none."""
    turned, scale = (lambda y: y.swapaxes(1, 2)), 8**-0.5
    scores = (
        q @ turned(k * scale), (q * 0.5) @ turned(k * (2 * scale)), (q @ turned(k)) * scale, q @ turned(k),
        (q * scale) @ turned(k) * 2,
    )  # fmt: skip
    return [*(ek.softmax(s, -1) @ v for s in scores), ek.softmax(q @ turned(k * scale), -1) @ (v * 2)]


def nearly_attention(q: Any, k: Any, v: Any, m: Any) -> Any:
    """Causal attention, and what has another mask, another number, another dtype or another user."""
    rows, columns, number = ek.iota((9, 1), 0), ek.iota((1, 9), 1), itertools.count(1.0)
    causal, least = rows >= columns, float(np.finfo(np.float32).min)

    def attended(mask: Any, low: float, high: float = 0.0, again: Any = None, dtype: Any = ek.float32) -> Any:
        scores = (q.astype(dtype) + next(number)) * 8**-0.5 @ k.astype(dtype).swapaxes(1, 2)
        weights = ek.softmax(ek.where(mask, scores, low), -1)
        return ek.where(mask if again is None else again, weights, high) @ v.astype(dtype)

    twice = ek.softmax((q + next(number)) * 8**-0.5 @ k.swapaxes(1, 2), -1)
    return (
        attended(causal, least), attended(causal, -1.0), attended(causal, -np.inf), attended(causal, least, 1.0),
        attended(m, least), attended(rows > columns, least), attended(causal, least, again=m), twice @ v, twice,
        attended(causal, float(np.finfo(np.float64).min), dtype=ek.float64), attended(columns >= rows, least),
        attended(rows + 1 >= columns, least),
    )  # fmt: skip


def long_signals(z: Any, y: Any, x: Any) -> Any:
    """Transforms that blocks make in two parts and in three, by chirps, and halves of scaled real ones."""
    return (
        ek.fft(z), ek.ifft(y, axis=0), *(ek.fft(z[:, :n]) for n in (23, 29, 43, 47, 49)), ek.rfft(x * 2),
        ek.rfft(x * 2) * 3, ek.irfft(ek.rfft(x) * 2), ek.real(ek.ifft(ek.fft(x) * 2)),
    )  # fmt: skip


def fragments_in_batches(a: Any, b: Any) -> Any:
    """Batches of halves, some of which begin later, are turned, or are the same for all."""
    return (
        a @ b, a[1:] @ b[1:], a[:1] @ b, a @ b[2], a.swapaxes(1, 2) @ a, a[:, 8:] @ b[:, :, 8:],
        ek.einsum("bij,bkj->bik", a, a), a[::2] @ b[::2], ek.einsum("bij,bjk->ibk", a, b),
    )  # fmt: skip


def later_parts(x: Any) -> Any:
    """Attention of parts that begin later in what they are parts of."""
    q, k, v = (x[1:, n : n + 2] for n in range(3))
    return ek.scaled_dot_product_attention(q, k, v), ek.scaled_dot_product_attention(x[:1, 2:], x[:1, 1:3], x[:1, :2])


def little_of_orders(y: Any) -> Any:
    """Some ranks of an order, among them none; those at both ends."""
    values, places = ek.sort(y, 1)
    down, others = ek.sort(y * 2, 1, descending=True)
    return (
        values[:, 3:4], values[:, 5:5], values[:, 7:9], places[:, 8:10], values[1:, 3:4], down[:, :1], others[:, -1:],
        down[:, 1:2], ek.sort(y + 1, 1)[0][:, 7:7],
    )  # fmt: skip


def handed_on(x: Any, y: Any, i: Any) -> Any:
    """Branches and loops that hand on what they are given, or constants, beside what they compute."""
    truth, zeros = x.sum() > 0, ek.zeros((4,))
    one = ek.cond(truth, lambda a, b: (a, b * 2, zeros), lambda a, b: (a, b * 3, zeros), x, y)
    same = ek.cond(truth, lambda a, c: c + 0, lambda a, c: ek.zeros((4,)), x, zeros)
    sides = ek.cond(truth, lambda a, b: (a, b, a), lambda a, b: (b, a, b), x, x * 2)
    never = ek.scan(lambda s, r: (s + r, s * 2), x[0], y[:0])
    still = ek.scan(lambda s, r: ((s[0], s[1] + r, s[3], s[2]), s[0]), (x[0], x[1], x[2], x[3]), y)
    divided = ek.while_loop(lambda s: s.sum() < 99, lambda s: s + (i // i.sum()).sum() + (ek.exp(y) @ y).T[0], x[0])
    return *one, same, *sides, *never, *still[0], still[1], divided


def gates(x: Any, w: Any, b: Any, r: Any) -> Any:
    """Products with what may follow them in one step: a number, a bias, an activation, a residual."""
    product = ((x * (k + 2.0)) @ w for k in range(14))
    behind = [ek.silu(next(product) + b), ek.tanh(next(product)), ek.relu(next(product) * 2 + b) + r]
    behind += [(lambda y: y * ek.sigmoid(y))(next(product)), (lambda y: ek.sigmoid(y) * y)(next(product) + b) + r]
    behind += [next(product) + r, b + next(product), ek.sigmoid(next(product) + b) + r, next(product) * 3 + b]
    behind += [ek.relu(next(product) + x[:, :1]), ek.relu(next(product) + r[0, 0]), next(product).reshape(2, 3, 4) + b]
    return [*behind, ek.relu(next(product).reshape(24) + r.reshape(24)), (lambda y: y + y)(next(product))]


def halves_of_spectra(x: Any) -> Any:
    """Parts of transforms of real numbers, some of which are scaled as complex ones."""
    z = x.astype(ek.complex64)
    return (
        ek.fft(z * 2)[:, :33], ek.fft(z * 3)[:, :5], ek.fft(z * 2j)[:, :33], ek.fft(z)[:, 3:20], ek.fft(z)[:, :40],
        ek.fft(z * 4)[:, 31:34], ek.real(ek.ifft(ek.pad(ek.fft(z)[:, :33], ((0, 0), (0, 31))))) * 2,
        ek.irfft(ek.rfft(x.reshape(2, 4, 16))), ek.irfft(ek.rfft(x)[:, :20], 64), ek.irfft(ek.rfft(x), 40),
    )  # fmt: skip


def in_periods(x: Any, y: Any, z: Any) -> Any:
    """Rows along which what they meet comes again."""
    rows = x.reshape(4, 3, 64)
    met = rows + y, rows * z, rows * y + z
    return [*(ek.softmax(r.reshape(4, 192), -1) for r in met), (rows * z + 1).reshape(4, 192).sum(1)]


def gradients_by_hand(q: Any, k: Any, v: Any, c: Any) -> Any:
    """The gradients of attention as they are derived, and what is nearly that."""
    number = itertools.count(1.0)

    def made(total: Any, scale: float = 0.25, other: Any = None, dtype: Any = ek.bfloat16, turned: Any = None) -> Any:
        a, b, x, y = (given.astype(ek.float32) for given in (q + next(number), k, v, c))
        weights = ek.softmax((a * 0.25) @ b.swapaxes(1, 2), -1)
        times = weights * (y @ x.swapaxes(1, 2))
        scores = times + weights * total(-times)
        of_keys = (scores.swapaxes(1, 2) if turned is None else turned(scores)) @ a
        of_queries, of_values = scores @ (b if other is None else other), weights.swapaxes(1, 2) @ y
        found = (weights @ x, of_queries * scale, of_keys * scale, of_values)
        return [y.astype(dtype) for y in found]

    def usual(n: Any) -> Any:
        return n.sum(-1)[..., None]

    return (
        *made(usual), *made(lambda n: n.sum(-1, keepdims=True)), *made(lambda n: n.sum(-2)[..., None]),
        *made(lambda n: n.sum(-1)[:, None]), *made(usual, scale=0.5), *made(usual, other=v.astype(ek.float32)),
        *made(usual, dtype=ek.float16), *made(usual, turned=lambda s: s)[1:],
    )  # fmt: skip


def other_products(x: Any, w: Any, i: Any, h: Any) -> Any:
    """Products in dtypes that machines have no fragments for, and of two dtypes."""
    return x @ w, i @ i, (h @ h).astype(ek.float32), h.astype(ek.float32) @ h.astype(ek.float32), h @ h.T


def set_in_rows(x: Any, i: Any, u: Any) -> Any:
    """One number for each row, taken, set and added, where there are numbers or zeros; at places known to be some."""
    at, new, known, zeros = i.reshape(-1, 1), u.reshape(-1, 1), ek.argmax(x, 1, keepdims=True), ek.zeros(x.shape)
    largest = ek.take_along(x * 3, known, 1)
    return (
        (x - largest).sum(0), ek.exp(largest) * new, ek.cumsum(largest, 0), largest @ new.T,
        x.scatter(1, at, new), ek.scatter_add(x, 1, at, new), zeros.scatter(1, at, new),
        ek.scatter_add(zeros, 1, at, new), (x * 2).scatter(1, known, new), ek.scatter_add(x + 1, 1, known, 3 * new),
        ek.take_along(x, at, 1), ek.take_along(x, known, 1), x.astype(ek.complex64).scatter(1, at, new + 0j),
        x[:, :3].scatter(1, at, new), x.reshape(16, 5, 5).scatter(2, at.reshape(16, 5, 1), new.reshape(16, 5, 1)),
    )  # fmt: skip


def picked_in_rows(u: Any, v: Any, i: Any) -> Any:
    """An element of each row, which is made of operands that are broadcast along parts of it; for several readers."""
    sums = (u[:, :, None] + v[:, None]).reshape(u.shape[0], -1)
    largest = ek.take_along(sums, ek.argmax(sums, 1, keepdims=True), 1)
    return ek.cross_entropy(sums, i), (sums - largest).sum(1), largest * v, ek.exp(largest).sum(), ek.softmax(sums, 1)


def places_in_planes(x: Any, y: Any) -> Any:
    """Places of extremes over several axes, of which some have one element, or all have."""
    return ek.argmax(x, (1, 2)), ek.argmin(x * 2, (0, 1)), ek.argmax(y, (0, 1)), ek.argmax(x), ek.argmin(x[:, :, :1], 1)


def taken_at_computed(x: Any, i: Any, b: Any) -> Any:
    """Rows at places that are computed beside them, from numbers of their own and from one for many."""
    return (
        (ek.take(x, i % 5, 0) * 2).sum(1), ek.softmax(ek.take(x, i + b, 0), -1), ek.take(x, i, 0).sum(1),
        (ek.take(x, ek.where(i > 2, i, b), 0) + x[:1]).max(axis=1), ek.take(x, i[:1] * 0 + i, 0).sum(0),
    )  # fmt: skip


def many_updates(x: Any, y: Any, i: Any, u: Any, h: Any) -> Any:
    """More updates than there are rows, each of them alone and whole rows, one for all, halves, whole numbers."""
    return (
        x.at[i].add(u), x.at[i].set(u), x.at[i].add(2.0), y.at[i].set(u[:, 0]), y.at[i].add(u[:, 0]), h.at[i].add(1.5),
        x.astype(ek.int64).at[i].add(3), (x > 0).at[i].set(u > 0), x.at[i[:20]].add(u[:20]), y[:0].at[i[:0]].add(1.0),
        x.reshape(5, 2, 2).at[i.reshape(10, 7)].add(u.reshape(10, 7, 2, 2)),
    )  # fmt: skip


def values_before_vectors(x: Any, y: Any) -> Any:
    """Eigenvalues and singular values that are asked for before their vectors are, and of a matrix without them."""
    return ek.eigvalsh(x), *ek.eigh(x), ek.svdvals(y), *ek.svd(y), ek.eigvalsh(y), ek.svdvals(x)


def diagonals_alone(x: Any, i: Any, z: Any, h: Any) -> Any:
    """Diagonals of products that are read alone, which sums of floats suffice for; a row where a diagonal might be."""
    row = ek.pad(x[:, 0], ((0, 20),)).reshape(5, 5)
    return [ek.diagonal(a @ a.T) for a in (x, i, z, h, x.astype(ek.float64))] + [
        ek.diagonal(x @ x.T, 1), (x.T @ x)[0], row @ x, x.T @ row,
    ]  # fmt: skip


def complex_arithmetic(z: Any, w: Any) -> Any:
    """What is left out of arithmetic of real numbers, and is another thing where infinities have two parts."""
    zero, one = (ek.full(z.shape, n, dtype=ek.complex64) for n in (0, 1))
    products = one * 2j * z, z * one, z * -one, -z * -w, -z * w, z * zero, z / one, z * z / z
    return *products, one + z, z + zero, z - zero, z - z, zero - z, ek.negative(-z)


def scaled_distances(x: Any, y: Any, t: Any, s: Any) -> Any:
    """Distances that each axis has a share in, of which there are two, and a number that is given."""
    squares = (x[:, None] - y) ** 2
    return (squares * t + s).sum(-1), (squares * s).max(axis=-1)
