"""Eigenvalues and singular values as loops of rotations, for machines that have no code of their own for them: GPUs.

Comes in: a node, of real matrices. Goes out: equivalent nodes: Jacobi's way, in which a round rotates every row and
column against one other (n/2 pairs at a time, in an order in which n - 1 rounds, a sweep, bring all together), of all
matrices of a batch, in a few kernels. Sweeps go on until nothing is left to be rotated: the host looks once for each.
Symmetric matrices are rotated from both sides; of others columns are made orthogonal (Hestenes), which finds small
singular values as well as large ones. Signs of vectors are those that `ops/decompositions.py` says.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from eshkol.graph.control import while_loop
from eshkol.graph.function import trace
from eshkol.graph.node import Node, constant, make
from eshkol.ops import dtypes
from eshkol.ops.creation import iota
from eshkol.ops.elementwise import absolute, bitwise_and, cast, equal, greater, greater_equal, sqrt, where
from eshkol.ops.joining import along, concatenate
from eshkol.ops.matrices import diagonal_of
from eshkol.ops.movement import expand, expanded, permute, reshape
from eshkol.ops.padding import pad
from eshkol.ops.reductions import argmax, max_, sum_
from eshkol.ops.row import Aval, KernelOp, Op, Pull, row
from eshkol.ops.shapes import count
from eshkol.ops.sorting import sort
from eshkol.schedule.rewrite.eliminations import demanded, loop, reflected, reflections

SWEEPS = 24  # at most; matrices of hundreds of rows take ten
SAFE = (1e-9, 1e9)  # greatest elements of matrices whose squares need no care
NOT_FINITE = ("a matrix holds NaN or infinities", "find where they come from with check_nan")


# --- rows -----------------------------------------------------------------------------------------


class Sides(NamedTuple):
    """Whether rows are rotated; columns always are."""

    rows: bool


def _order(n: int) -> list[int]:
    """Which place each one comes from for the next round: all but the first go around, so that pairs are others."""
    m = n // 2
    return [*range(n)] if m == 1 else [0, m, *range(1, m - 1), *range(m + 1, n), m - 1]


def _rotate(x: Any, cosine: Any, sine: Any) -> Any:
    """Columns j and j + n/2 rotated, in the order of the next round."""
    m = x.shape[-1] // 2
    one, other = x[..., :m], x[..., m:]
    return np.concatenate([cosine * one - sine * other, sine * one + cosine * other], -1)[..., _order(2 * m)]


def _rotated(a: Sides, x: Any, cosine: Any, sine: Any) -> Any:
    cosine, sine = cosine[..., None, :], sine[..., None, :]
    if a.rows:
        x = np.swapaxes(_rotate(np.swapaxes(x, -1, -2), cosine, sine), -1, -2)
    return _rotate(x, cosine, sine)


def _source(e: Any, place: Any, n: int) -> Any:
    """Where the one at a place was before the round."""
    m = n // 2
    if m == 1:
        return place
    found = e.select(e.compare("LT", place, m), place - e.number(1), place + 1)
    for here, was in ((0, 0), (1, m), (n - 1, m - 1)):
        found = e.select(e.compare("EQ", place, here), e.number(was), found)
    return e.within(found, n)


def _pull_rotated(e: Any, a: Sides, i: Any, x: Any, cosine: Any, sine: Any) -> Any:
    n = x.shape[-1]
    m, last = n // 2, len(x.shape) - 1
    batch = [i[k] for k in range(last - 1)]

    def pair(place: Any) -> tuple[Any, Any, Any, Any]:
        """Of the one at a place: where it and its partner are, and what they are multiplied by."""
        own = _source(e, place, n)
        upper = e.compare("LT", own, m)
        other, which = e.digit(own + m, 1, n), e.digit(own, 1, m)
        turn = sine([*batch, which])
        return own, other, cosine([*batch, which]), e.select(upper, e.op("NEG", turn), turn)

    column = pair(i[last])
    if not a.rows:
        own, other, straight, across = column
        rows = [i[last - 1]]
        return straight * x([*batch, *rows, own]) + across * x([*batch, *rows, other])
    line = pair(i[last - 1])

    def in_column(j: Any) -> Any:
        return line[2] * x([*batch, line[0], j]) + line[3] * x([*batch, line[1], j])

    return column[2] * in_column(column[0]) + column[3] * in_column(column[1])


ROTATED: Op = row(KernelOp(
    name="rotated", doc="Matrices whose columns (and rows) are rotated in pairs, in the order of the next round.",
    names=("x", "cosine", "sine"), infer=lambda a, x, cosine, sine: Aval(x.shape, x.dtype), reference=_rotated,
    lower=Pull(_pull_rotated),
))  # fmt: skip


def _moved(a: None, x: Any, change: Any) -> Any:
    m = x.shape[-1] // 2
    return np.concatenate([x[..., :m] - change, x[..., m:] + change], -1)[..., _order(2 * m)]


def _pull_moved(e: Any, a: None, i: Any, x: Any, change: Any) -> Any:
    n, last = x.shape[-1], len(x.shape) - 1
    own, batch = _source(e, i[last], n), [i[k] for k in range(last)]
    moved = change([*batch, e.digit(own, 1, n // 2)])
    return x([*batch, own]) + e.select(e.compare("LT", own, n // 2), e.op("NEG", moved), moved)


MOVED: Op = row(KernelOp(
    name="diagonals_rotated", doc="Diagonals of matrices after a round, in the order of the next one.",
    names=("x", "change"), infer=lambda a, x, change: Aval(x.shape, x.dtype), reference=_moved, lower=Pull(_pull_moved),
))  # fmt: skip


def _pull_columns(e: Any, a: None, i: Any, x: Any, places: Any) -> Any:
    last = len(x.shape) - 1
    batch = [i[k] for k in range(last - 1)]
    return x([*batch, i[last - 1], e.within(e.convert(places([*batch, i[last]]), dtypes.int64), x.shape[-1])])


COLUMNS: Op = row(KernelOp(
    name="columns_in_order", doc="The columns of matrices at places that there are.", names=("x", "places"),
    infer=lambda a, x, places: Aval((*x.shape[:-1], places.shape[-1]), x.dtype),
    reference=lambda a, x, places: np.take_along_axis(x, places[..., None, :].astype(np.int64), -1),
    lower=Pull(_pull_columns),
))  # fmt: skip


# --- sweeps ---------------------------------------------------------------------------------------

Round = Callable[..., tuple[list[Any], Any]]


def _swept(carried: Sequence[Node], pairs: Sequence[int], code: Round, enough: float) -> Sequence[Any]:
    """What is carried after sweeps: a round's `code(*carried)` gives what follows, and how far pairs were off.

    The last has the shape of the pairs. A sweep in which none was off by more than `enough` ends it.
    """
    dtype, rounds = carried[0].dtype, 2 * pairs[-1] - 1
    given = [expand(constant(0, dtypes.int32), ()), expand(constant(math.inf, dtype), pairs), *carried]
    avals = [Aval(x.shape, x.dtype) for x in given]

    def going_on(number: Node, left: Node, *_: Node) -> list[Any]:
        return [bitwise_and(greater(max_(left), enough), greater(SWEEPS, number))]

    def sweep(number: Node, left: Node, *state: Node) -> list[Any]:
        def step(k: Node, left: Node, *state: Node) -> tuple[list[Any], list[Node]]:
            after, off = code(*state)
            return [where(greater(off, left), off, left), *after], []

        return [number + 1, *loop(rounds, [where(greater(left, 0), 0, left), *state], step)]

    test, tested = trace(going_on, avals, "rotations")
    body, used = trace(sweep, avals, "rotations")
    return while_loop(test, body, given, tested, used)[2:]


def _angles(one: Node, other: Node, across: Node) -> tuple[Any, Any, Any]:
    """The cosines, sines and tangents that make what stands between two diagonal elements 0."""
    flat = equal(across, 0)
    slope = (other - one) / (2 * where(flat, 1, across))
    size = absolute(slope)
    tangent = 1 / (size + sqrt(1 + slope * slope))
    tangent = where(flat, 0, where(greater(0, slope), -tangent, tangent))
    cosine = 1 / sqrt(1 + tangent * tangent)
    return cosine, tangent * cosine, tangent


def _halves(x: Node) -> tuple[Any, Any]:
    n = x.shape[-1]
    return along(x, x.ndim - 1, 0, n // 2), along(x, x.ndim - 1, n // 2, n)


def _ready(x: Node) -> tuple[Any, Any]:
    """Matrices of finite elements whose squares are neither too large nor too small, and what they were divided by."""
    x = demanded(x, ~greater(math.inf, absolute(x)), NOT_FINITE)
    most = max_(absolute(x), (-2, -1), keepdims=True)
    plain = greater(SAFE[1], most) & greater(most, SAFE[0]) | equal(most, 0)
    scale = where(plain, 1, most)
    return x / scale, reshape(scale, (*x.shape[:-2], 1))


def _even(x: Node, *axes: int) -> Any:
    """With one more row or column of zeros where the number of them is odd."""
    return pad(x, [(0, x.shape[k] % 2 if k - x.ndim in axes else 0) for k in range(x.ndim)])


def _turned(x: Node) -> Any:
    return permute(x, (*range(x.ndim - 2), x.ndim - 1, x.ndim - 2))


def _unit_matrices(x: Node, rows: int) -> Any:
    """An identity for each matrix, as wide as it."""
    n = x.shape[-1]
    ones = cast(equal(iota.on(x, (rows, 1), 0, dtypes.int32), iota.on(x, (n,), 0, dtypes.int32)), x.dtype)
    return expanded(ones, (*x.shape[:-2], rows, n))


# --- symmetric matrices ---------------------------------------------------------------------------


def _symmetric(x: Node, vectors: bool) -> list[Any]:
    """Eigenvalues, rising, and their vectors if these are wanted."""
    n, dtype = x.shape[-1], x.dtype
    given, scale = _ready((x + _turned(x)) * 0.5)
    a = _even(given, -2, -1)
    diagonal = diagonal_of(a)
    carried = [diagonal, a, _unit_matrices(a, n)] if vectors else [diagonal, a]

    size = max_(absolute(a), (-2, -1))
    size = reshape(where(equal(size, 0), 1, size), (*size.shape, 1))

    def round_(diagonal: Node, a: Node, *rest: Node) -> tuple[list[Any], Any]:
        across = _between(a)
        cosine, sine, tangent = _angles(*_halves(diagonal), across)
        rotated = [make(ROTATED, (y, cosine, sine), Sides(k == 0)) for k, y in enumerate((a, *rest))]
        # By what diagonals change, which is little in the end, so that nothing is rounded off any more.
        return [make(MOVED, (diagonal, tangent * across), None), *rotated], absolute(across) / size

    pairs = (*x.shape[:-2], a.shape[-1] // 2)
    diagonal, _, *rest = _swept(carried, pairs, round_, dtype.epsilon / 2) if n > 1 else carried
    values, places = sort(along(diagonal, diagonal.ndim - 1, 0, n), -1)
    return [values * scale, *(make(COLUMNS, (y, places), None) for y in rest)]


def _between(a: Node) -> Any:
    """What stands between the elements of each pair: every (n + 1)th one, in the order of memory."""
    *batch, n, _ = a.shape
    m = n // 2
    flat = along(reshape(a, (*batch, n * n)), len(batch), m, m + m * (n + 1))
    return reshape(along(reshape(flat, (*batch, m, n + 1)), len(batch) + 1, 0, 1), (*batch, m))


def _pivots(vectors: Node) -> Any:
    """For each column the first place whose modulus is at least half of the greatest."""
    size = absolute(vectors)
    large = greater_equal(size, 0.5 * max_(size, -2, keepdims=True))
    return argmax(cast(large, dtypes.int32), vectors.ndim - 2)


def _signs(vectors: Node, pivots: Node) -> Any:
    """1 or -1 for each column, as a row, by the sign of its component at the pivot."""
    rows = iota.on(vectors, (vectors.shape[-2], 1), 0, dtypes.int64)
    there = equal(rows, reshape(pivots, (*pivots.shape[:-1], 1, pivots.shape[-1])))
    chosen = sum_(where(there, vectors, 0), -2, keepdims=True)
    return where(greater(0, chosen), constant(-1, vectors.dtype), constant(1, vectors.dtype))


def _nothing(node: Node) -> tuple[Node, ...]:
    assert node.outs is not None
    return tuple(expand(constant(0, a.dtype), a.shape) for a in node.outs)


def _eigh(node: Node) -> tuple[Any, ...]:
    if not count(node.inputs[0].shape):
        return _nothing(node)
    values, vectors = _symmetric(node.inputs[0], vectors=True)
    pivots = _pivots(vectors)
    return values, vectors * _signs(vectors, pivots), pivots


def _eigvalsh(node: Node) -> Any:
    if not count(node.shape):
        return expand(constant(0, node.dtype), node.shape)
    return _symmetric(node.inputs[0], vectors=False)[0]


# --- singular values ------------------------------------------------------------------------------


def _orthogonal(x: Node, vectors: bool) -> list[Any]:
    """Of matrices that are not wider than high: singular values, falling; and if wanted columns of these lengths that
    are orthogonal, divided by them, and the rotations that made them."""
    (rows, n), dtype = x.shape[-2:], x.dtype
    given, scale = _ready(x)
    a = _even(given, -1)
    carried = [a, _unit_matrices(a, n)] if vectors else [a]

    def round_(a: Node, *rest: Node) -> tuple[list[Any], Any]:
        one, other = _halves(a)
        first, second, across = (sum_(y * z, -2) for y, z in ((one, one), (other, other), (one, other)))
        lengths = sqrt(first) * sqrt(second)
        cosine, sine, _ = _angles(first, second, where(equal(lengths, 0), 0, across))
        rotated = [make(ROTATED, (y, cosine, sine), Sides(False)) for y in (a, *rest)]
        return rotated, absolute(across) / where(equal(lengths, 0), 1, lengths)

    enough = dtype.epsilon * max(4.0, math.sqrt(rows))
    a, *rest = _swept(carried, (*x.shape[:-2], a.shape[-1] // 2), round_, enough) if n > 1 else carried
    lengths = sqrt(sum_(a * a, -2))
    values, places = sort(along(lengths, a.ndim - 2, 0, n), -1, True)
    if not vectors:
        return [values * scale]
    columns, turns = (make(COLUMNS, (y, places), None) for y in (a, *rest))
    across = reshape(values, (*values.shape[:-1], 1, n))
    columns = where(equal(across, 0), 0, columns / where(equal(across, 0), 1, across))
    return [values * scale, columns, turns]


def _svd(node: Node) -> tuple[Any, ...]:
    (x,) = node.inputs
    if not count(x.shape):
        return _nothing(node)
    rows, columns = x.shape[-2:]
    wide = columns > rows
    values, left, right = _orthogonal(_turned(x) if wide else x, vectors=True)
    left = _completed(left, node.attrs.full_matrices)
    u, v = (right, left) if wide else (left, right)
    least = values.shape[-1]
    pivots = _pivots(along(u, u.ndim - 1, 0, least))
    signs = _signs(along(u, u.ndim - 1, 0, least), pivots)
    u, v = (_signed(y, signs) for y in (u, v))
    return u, values, _turned(v), pivots


def _signed(vectors: Node, signs: Node) -> Any:
    more = vectors.shape[-1] - signs.shape[-1]
    if more:
        ones = expand(constant(1, signs.dtype), (*signs.shape[:-1], more))
        signs = concatenate([signs, ones], -1)
    return vectors * signs


def _completed(columns: Node, full: bool) -> Any:
    """Orthonormal columns, with others for those that are 0; as many as there are rows if full."""
    rows, n = columns.shape[-2:]
    triangle, mirrors, weights = reflections(columns)
    found = reflected(_unit_matrices(_wide(columns, rows if full else n), rows), mirrors, weights)
    own = diagonal_of(along(triangle, triangle.ndim - 2, 0, n))
    signs = where(greater(0, own), constant(-1, own.dtype), constant(1, own.dtype))
    return _signed(found, reshape(signs, (*signs.shape[:-1], 1, n)))


def _wide(x: Node, width: int) -> Any:
    return expand(constant(0, x.dtype), (*x.shape[:-1], width))


def _svdvals(node: Node) -> Any:
    (x,) = node.inputs
    if not count(x.shape):
        return expand(constant(0, node.dtype), node.shape)
    return _orthogonal(_turned(x) if x.shape[-1] > x.shape[-2] else x, vectors=False)[0]


RULES: dict[str, Callable[[Node], Any]] = {
    "eigh_with_pivots": _eigh, "eigvalsh": _eigvalsh, "svd_with_pivots": _svd, "svdvals": _svdvals,
}  # fmt: skip
