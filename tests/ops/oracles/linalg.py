"""Oracles of linear algebra: elimination, expansion and series by hand, or judges of what a decomposition must be."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import scipy.linalg

from eshkol.ops.row import Draw, sample
from oracles.registry import complex_of, first, meet, normal_axis, oracle, place, real_of

REAL = real_of(first)


def _each_matrix(function: Any, *stacks: Any) -> Any:
    """A function of matrices, of every matrix in stacks that broadcast."""
    lead = np.broadcast_shapes(*(x.shape[:-2] for x in stacks))
    wide = [np.broadcast_to(x, (*lead, *x.shape[-2:])) for x in stacks]
    found = [function(*(x[k] for x in wide)) for k in np.ndindex(*lead)]
    if not found:
        return np.zeros((*lead, *np.shape(function(*(np.zeros(x.shape[-2:]) for x in stacks)))))
    return np.stack(found).reshape((*lead, *np.shape(found[0])))


def _eliminated(x: Any, b: Any) -> Any:
    """Gauss and Jordan, with the greatest pivot of each column."""
    n = x.shape[0]
    both = np.concatenate([x, b], axis=1).astype(np.result_type(x, b, np.float64))
    for k in range(n):
        pivot = max(range(k, n), key=lambda row: abs(both[row, k]))
        both[[k, pivot]] = both[[pivot, k]]
        both[k] = both[k] / both[k, k]
        for row in range(n):
            if row != k:
                both[row] = both[row] - both[row, k] * both[k]
    return both[:, n:]


def _solved(x: Any, b: Any) -> Any:
    if b.ndim == 1:
        return _each_matrix(_eliminated, x, b[:, None])[..., 0]
    return _each_matrix(_eliminated, x, b)


oracle("matrix_solve", "solve", dtype=meet, tolerance=4.0)(_solved)


@oracle("triangular_matrix_solve", "triangular_solve", dtype=meet, tolerance=4.0)
def _triangular(x: Any, b: Any, lower: bool = True, transpose: bool = False, unit_diagonal: bool = False) -> Any:
    part = x.copy()
    for at in np.ndindex(*x.shape):
        row, column = at[-2:]
        if row == column and unit_diagonal:
            part[at] = 1
        elif (row < column) if lower else (row > column):
            part[at] = 0
    return _solved(np.swapaxes(part, -1, -2) if transpose else part, b)


@oracle("cholesky_solve", dtype=meet, tolerance=16.0)
def _cholesky_solve(b: Any, factor: Any, upper: bool = False) -> Any:
    lower = np.tril(np.conj(np.swapaxes(factor, -1, -2)) if upper else factor)
    return _solved(np.einsum("...ij,...kj->...ik", lower, np.conj(lower)), b)


oracle("inv", tolerance=4.0)(lambda x: _each_matrix(lambda m: _eliminated(m, np.eye(len(m))), x))


def _determinant(x: Any) -> Any:
    """Leibniz' sum over permutations."""
    n = len(x)
    total: Any = 0
    for order in itertools.permutations(range(n)):
        swaps = sum(order[i] > order[j] for i in range(n) for j in range(i + 1, n))
        total += (-1) ** swaps * math.prod((x[i, order[i]].item() for i in range(n)), start=1)
    return total


def _minors(x: Any) -> Any:
    n = len(x)
    found = np.zeros_like(x)
    for i, j in np.ndindex(n, n):
        rest = np.delete(np.delete(x, i, 0), j, 1)
        found[i, j] = (-1) ** (i + j) * _determinant(rest)
    return found


_SINGULAR = sample(Draw((2, 3, 3), make=lambda rng: np.arange(18).reshape(2, 3, 3)))

oracle("det", dtype=first, tolerance=4.0)(lambda x: _each_matrix(_determinant, x))
oracle("cofactor", dtype=first, tolerance=8.0, more=[_SINGULAR])(lambda x: _each_matrix(_minors, x))


@oracle("slogdet", dtype=(first, REAL), tolerance=4.0)
def _slogdet(x: Any) -> Any:
    found = np.asarray(_each_matrix(_determinant, x))
    return found / np.abs(found), np.log(np.abs(found))


def _pseudo(x: Any, rtol: float | None) -> Any:
    """From the eigenvectors of xᴴx whose eigenvalues count."""
    if rtol is None:
        return (
            _eliminated(x.conj().T @ x, x.conj().T)
            if x.shape[0] >= x.shape[1]
            else _eliminated(x @ x.conj().T, x).conj().T
        )
    w, v = scipy.linalg.eigh(x.conj().T @ x)
    kept = w > (rtol**2) * w.max()
    return (v[:, kept] / w[kept]) @ v[:, kept].conj().T @ x.conj().T


@oracle("pinv", dtype=first, tolerance=8.0, more=[
    sample(Draw((3, 2), make=lambda rng: [[1.0, 2.0], [2.0, 4.0], [3.0, 6.5]]), rtol=r) for r in (0.2, 1e-3)
])  # fmt: skip
def _pinv(x: Any, rtol: float | None = None) -> Any:
    return _each_matrix(lambda m: _pseudo(m, rtol), x)


@oracle("matrix_lstsq", dtype=meet, tolerance=32.0)
@oracle("lstsq", dtype=meet, tolerance=32.0)
def _lstsq(x: Any, b: Any, rtol: float | None = None) -> Any:
    if b.ndim == 1:
        return (_pinv(x, rtol) @ b[:, None])[..., 0]
    return _pinv(x, rtol) @ b


@oracle("matrix_power", dtype=first, tolerance=32.0, more=[
    sample(Draw((2, 2), make=lambda rng: [[2.0, 1.0], [0.5, 1.5]]), n=n) for n in range(-4, 6)
])  # fmt: skip
def _matrix_power(x: Any, n: int) -> Any:
    def power(m: Any) -> Any:
        base = m if n >= 0 else _eliminated(m, np.eye(len(m)))
        found = np.eye(len(m), dtype=base.dtype)
        for _ in range(abs(n)):
            found = np.einsum("ij,jk->ik", found, base)
        return found

    return _each_matrix(power, x)


def _series(x: Any) -> Any:
    """The sum of powers over factorials, of a matrix halved until it is small, then squared back."""
    halvings = 12
    small = x.astype(np.result_type(x, np.float64)) / 2**halvings
    total, term = np.eye(len(x), dtype=small.dtype), np.eye(len(x), dtype=small.dtype)
    for k in range(1, 12):
        term = term @ small / k
        total = total + term
    for _ in range(halvings):
        total = total @ total
    return total


oracle("expm", dtype=first, tolerance=2.0e4)(lambda x: _each_matrix(_series, x) if x.size else x)


@oracle("expm_frechet", dtype=meet, tolerance=16.0)
def _expm_frechet(x: Any, direction: Any) -> Any:
    """scipy's own algorithm for the derivative; ours is a corner of the exponential of blocks."""
    return _each_matrix(lambda a, e: scipy.linalg.expm_frechet(a, e, compute_expm=False), x, direction)


# --- decompositions ---------------------------------------------------------------------------------


def _near(one: Any, other: Any, like: Any, factor: float = 64.0) -> None:
    epsilon = float(np.finfo(np.asarray(like).dtype).eps)
    scale = max(1.0, float(np.max(np.abs(other), initial=0.0)))
    assert np.shape(one) == np.shape(other), f"shape {np.shape(one)}, not {np.shape(other)}"
    assert np.max(np.abs(np.asarray(one) - other), initial=0.0) <= factor * epsilon * scale


def _adjoint(x: Any) -> Any:
    return np.conj(np.swapaxes(x, -1, -2))


def _orthonormal(q: Any) -> None:
    _near(_adjoint(q) @ q, np.broadcast_to(np.eye(q.shape[-1]), (*q.shape[:-2], q.shape[-1], q.shape[-1])), q)


def _hermitian(x: Any) -> Any:
    return (x + _adjoint(x)) / 2


@oracle("cholesky", dtype=first, tolerance=8.0)
def _cholesky(x: Any, upper: bool = False) -> Any:
    def factor(m: Any) -> Any:
        """Column by column (Banachiewicz)."""
        n = len(m)
        found = np.zeros((n, n), np.result_type(m, np.float64))
        for j in range(n):
            for i in range(j, n):
                rest = m[i, j] - sum(found[i, k] * np.conj(found[j, k]) for k in range(j))
                found[i, j] = np.sqrt(rest.real) if i == j else rest / found[j, j]
        return found.conj().T if upper else found

    return _each_matrix(factor, _hermitian(x))


def _judge_qr(results: Any, x: Any, mode: str = "reduced") -> None:
    """x = Q·R, Q orthonormal, R upper triangular; its first element of LAPACK's sign, against x[0, 0]."""
    *q, r = results
    below = np.arange(r.shape[-2])[:, None] > np.arange(r.shape[-1])
    assert not np.any(r[..., below])
    lead = np.real(x[..., 0, 0])
    diagonal = np.diagonal(r, axis1=-2, axis2=-1)
    assert np.all(np.real(diagonal[..., 0]) * lead < 0), "a Householder reflection takes the sign away from x"
    least = min(x.shape[-2:])
    assert np.all(np.abs(np.imag(diagonal[..., : least - (x.shape[-2] == least)])) < 1e-5)
    if q:
        _orthonormal(q[0])
        _near(q[0] @ r, x, r)
    else:
        _near(_adjoint(r) @ r, _adjoint(x) @ x, r)


oracle("qr", judges=True, dtype=first)(_judge_qr)
oracle("tall_qr", judges=True, dtype=first)(_judge_qr)


def _judge_lu(results: Any, x: Any) -> None:
    exchange, lower, upper = (np.asarray(r) for r in results)
    np.testing.assert_array_equal(lower, np.tril(lower))
    np.testing.assert_array_equal(np.abs(np.diagonal(lower, axis1=-2, axis2=-1)), 1)
    np.testing.assert_array_equal(upper, np.triu(upper))
    np.testing.assert_array_equal(np.abs(exchange).sum(-1), np.ones(exchange.shape[:-1]))
    assert not lower.size or np.abs(lower).max() <= np.sqrt(2) + 1e-6  # the greatest of its column was the pivot
    _near(exchange @ lower @ upper, x, upper)


def _exchanged(pivots: Any, rows: int) -> Any:
    found = np.zeros((*pivots.shape[:-1], rows), np.int64)
    for at in np.ndindex(*pivots.shape[:-1]):
        order = [*range(rows)]
        for k, row in enumerate(pivots[at]):
            order[k], order[row - 1] = order[row - 1], order[k]
        found[at] = order
    return found


def _judge_factors(results: Any, x: Any) -> None:
    factors, pivots, *order = (np.asarray(r) for r in results)
    rows, columns = x.shape[-2:]
    k = min(rows, columns)
    told = _exchanged(pivots, rows)
    assert not order or np.array_equal(order[0], told)
    exchange = np.swapaxes(np.eye(rows, dtype=x.dtype)[told], -1, -2)
    _judge_lu((exchange, np.tril(factors[..., :k], -1) + np.eye(rows, k), np.triu(factors[..., :k, :])), x)


oracle("lu", judges=True, dtype=first)(_judge_lu)
oracle("lu_factor", judges=True, dtype=(first, lambda *_: "int32"))(_judge_factors)
oracle("lu_rows", judges=True, dtype=(first, lambda *_: "int32", place))(_judge_factors)
oracle("pivoted_rows", dtype=place)(_exchanged)


@oracle("lu_solve", dtype=first, tolerance=16.0, fixed=("left",))
def _lu_solve(factors: Any, pivots: Any, b: Any, left: bool = True, adjoint: bool = False) -> Any:
    n = factors.shape[-1]
    exchange = np.swapaxes(np.eye(n)[_exchanged(pivots, n)], -1, -2)
    x = exchange @ (np.tril(factors, -1) + np.eye(n)) @ np.triu(factors)
    x = _adjoint(x) if adjoint else x
    if left:
        return _solved(x, b)
    return np.swapaxes(_solved(np.swapaxes(x, -1, -2), np.swapaxes(b, -1, -2)), -1, -2)


def _first_great(vectors: Any) -> Any:
    """For each column, the first component of at least half the greatest modulus."""
    sizes = np.abs(vectors)
    found = np.zeros((*vectors.shape[:-2], vectors.shape[-1]), int)
    for at in np.ndindex(*found.shape):
        column = sizes[(*at[:-1], slice(None), at[-1])]
        found[at] = next(k for k, s in enumerate(column) if s >= 0.5 * column.max() * (1 - 1e-6))
    return found


def _phased(vectors: Any) -> Any:
    pivots = _first_great(vectors)
    chosen = np.take_along_axis(vectors, pivots[..., None, :], -2)
    assert np.all(np.abs(np.imag(chosen)) <= 1e-5 * np.abs(chosen))
    assert np.all(np.real(chosen) > 0)
    return pivots


def _judge_svd(results: Any, x: Any, full_matrices: bool = False, compute_uv: bool = True) -> None:
    pivots = None
    if len(results) == 1:
        (s,) = results
    else:
        u, s, vh, *pivots = results
        least = s.shape[-1]
        _orthonormal(u)
        _orthonormal(_adjoint(vh))
        assert u.shape[-1] == (u.shape[-2] if full_matrices else least)
        assert vh.shape[-2] == (vh.shape[-1] if full_matrices else least)
        _near((u[..., :least] * s[..., None, :]) @ vh[..., :least, :], x, u)
        if least:
            places = _phased(u[..., :least])
            if pivots:
                assert np.array_equal(pivots[0], places)
    assert np.all(s >= 0)
    assert np.all(np.diff(s, axis=-1) <= 0)
    squares = np.sum(np.abs(x) ** 2, axis=(-2, -1))
    _near(np.sum(s.astype(np.float64) ** 2, axis=-1), squares, s)
    if x.shape[-1] <= x.shape[-2] and x.size:
        product = np.real(np.asarray(_each_matrix(_determinant, _adjoint(x) @ x)))
        _near(np.prod(s.astype(np.float64) ** 2, axis=-1), product, s, 256.0)


oracle("svd_with_pivots", judges=True, dtype=(first, REAL, first, place), more=[
    sample(Draw((3, 2), make=lambda rng: [[2.0, 0.5], [0.3, 1.0], [0.1, -0.2]]), full_matrices=True),
])(_judge_svd)  # fmt: skip


def _svd_dtype(k: int) -> Any:
    return lambda call: REAL(call) if call.given.get("compute_uv") is False or k == 1 else first(call)


oracle("svd", judges=True, dtype=tuple(_svd_dtype(k) for k in range(3)))(_judge_svd)
oracle("svdvals", judges=True, dtype=REAL)(lambda results, x: _judge_svd(results, x))


def _judge_eigh(results: Any, x: Any) -> None:
    w, v, *pivots = results
    wanted = _hermitian(x)
    assert np.all(np.diff(w, axis=-1) >= 0)
    _orthonormal(v)
    _near(wanted @ v, v * w[..., None, :], v)
    if v.size:
        places = _phased(v)
        if pivots:
            assert np.array_equal(pivots[0], places)


oracle("eigh_with_pivots", judges=True, dtype=(REAL, first, place))(_judge_eigh)
oracle("eigh", judges=True, dtype=(REAL, first))(_judge_eigh)


@oracle("eigvalsh", dtype=REAL, tolerance=8.0)
def _eigvalsh(x: Any) -> Any:
    """scipy's driver of divide and conquer, and the trace."""
    return _each_matrix(lambda m: scipy.linalg.eigh(m, eigvals_only=True, driver="evx"), _hermitian(x))


def _judge_eig(results: Any, x: Any) -> None:
    w, *rest = results
    _near(np.sum(w, axis=-1), np.trace(x, axis1=-2, axis2=-1), w)
    if x.size:
        _near(np.prod(w, axis=-1), np.asarray(_each_matrix(_determinant, x)), w, 256.0)
    if rest:
        v, *pivots = rest
        _near(x @ v, v * w[..., None, :], v)
        _near(np.sum(np.abs(v) ** 2, axis=-2), np.ones(w.shape), w)
        if v.size:
            places = _phased(v)
            if pivots:
                assert np.array_equal(pivots[0], places)


oracle("eig_with_pivots", judges=True, dtype=(complex_of(first), complex_of(first), place))(_judge_eig)
oracle("eig", judges=True, dtype=complex_of(first))(_judge_eig)
oracle("eigvals", judges=True, dtype=complex_of(first))(_judge_eig)


# --- norms and ranks --------------------------------------------------------------------------------


def _singular(m: Any) -> Any:
    """The singular values, falling: roots of the eigenvalues of the lesser of mᴴm and mmᴴ."""
    product = m.conj().T @ m if m.shape[1] <= m.shape[0] else m @ m.conj().T
    return np.sqrt(np.maximum(scipy.linalg.eigh(product, eigvals_only=True)[::-1], 0))


def _norm_of(m: Any, order: Any) -> float:
    sizes = np.abs(m)
    if order == "fro":
        return math.sqrt(sum(float(v) ** 2 for v in sizes.ravel()))
    if order in (1, -1):
        return (max if order > 0 else min)(sum(sizes[i, j] for i in range(len(m))) for j in range(m.shape[1]))
    if order in (math.inf, -math.inf):
        return (max if order > 0 else min)(sum(row) for row in sizes)
    s = _singular(m)
    return float({"nuc": s.sum(), 2: s[0], -2: s[-1]}[order])


_TWO = Draw((2, 3, 2), make=lambda rng: 0.3 * rng.uniform(-1, 1, (2, 3, 2)) + np.eye(3, 2))


@oracle("matrix_norm", dtype=REAL, tolerance=16.0, fixed=("axis",), more=[
    sample(_TWO, ord=o, axis=a, keepdims=k)
    for o in ("fro", "nuc", 1, -1, 2, -2, math.inf, -math.inf) for a, k in (((1, 2), False), ((-1, 0), True))
])  # fmt: skip
def _matrix_norm(x: Any, ord: Any = "fro", axis: tuple[int, int] = (-2, -1), keepdims: bool = False) -> Any:
    row, column = (normal_axis(k, x.ndim) for k in axis)
    lead = [k for k in range(x.ndim) if k not in (row, column)]
    found = np.asarray(_each_matrix(lambda m: _norm_of(m, ord), np.transpose(x, (*lead, row, column))))
    return found.reshape([1 if k in (row, column) else n for k, n in enumerate(x.shape)]) if keepdims else found


@oracle("condition_number", dtype=REAL, tolerance=64.0)
def _condition_number(x: Any) -> Any:
    return _each_matrix(lambda m: _singular(m)[0] / _singular(m)[-1], x)


@oracle("matrix_rank", dtype=place, more=[sample(_TWO, rtol=r) for r in (0.1, 0.9)])
def _matrix_rank(x: Any, rtol: float | None = None) -> Any:
    part = 1e-5 if rtol is None else rtol
    return _each_matrix(lambda m: sum(_singular(m) > part * _singular(m)[0]), x)
