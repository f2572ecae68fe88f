"""Native linear algebra: every size, dtype and way against the definition; faults; batches; the table."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest
import scipy.linalg

import eshkol as ek
from batches import checkered
from eshkol.backends.cpu import fourier, lapack, linear, order
from eshkol.errors import TensorError
from eshkol.ops import TABLE
from eshkol.ops.row import Host
from eshkol.runtime.library import native

DTYPES = [np.float32, np.float64, np.complex64, np.complex128]
# Around what is halved at all, the width of tiles, and sizes that several threads share.
SIZES = [(1, 1), (7, 7), (2, 3, 8, 8), (24, 24), (25, 25), (2, 33, 33), (130, 130), (261, 261)]


def drawn(dtype, *shape):
    rng = np.random.default_rng(sum(shape))
    x = rng.standard_normal(shape)
    return (x + 1j * rng.standard_normal(shape) if np.dtype(dtype).kind == "c" else x).astype(dtype)


def adjoint(x):
    return np.conj(np.swapaxes(x, -1, -2))


def near(found, wanted, scale):
    """Rounding alone apart, for numbers of a scale."""
    epsilon = np.finfo(wanted.dtype).eps
    assert np.abs(found - wanted).max(initial=0) <= 8 * epsilon * wanted.shape[-1] * max(scale, 1)


@checkered(shape=SIZES, dtype=DTYPES)
def test_what_is_solved_is_a_solution(shape, dtype):
    n = shape[-1]
    x = drawn(dtype, *shape) + (2 * np.sqrt(n) * np.eye(n)).astype(dtype)
    for columns in (1, 3, 40):
        b = drawn(dtype, *shape[:-1], columns)
        found = ek.linalg.solve(ek.tensor(x), ek.tensor(b)).numpy()
        near(x @ found, b, np.abs(x).max() * np.abs(found).max() * n)
        for way in range(8):
            lower, transpose, unit = bool(way & 1), bool(way & 2), bool(way & 4)
            given = (x / (4 * n)).astype(dtype) if unit else x
            triangle = np.tril(given) if lower else np.triu(given)
            if unit:
                triangle = triangle * (1 - np.eye(n, dtype=dtype)) + np.eye(n, dtype=dtype)
            triangle = np.swapaxes(triangle, -1, -2) if transpose else triangle
            found = ek.triangular_solve(ek.tensor(given), ek.tensor(b), lower, transpose, unit).numpy()
            near(triangle @ found, b, np.abs(triangle).max() * np.abs(found).max() * n)


@checkered(n=[385, 500, 545, 777], dtype=[np.float32, np.float64], upper=[False, True])
def test_factors_of_matrices_of_several_panels(n, dtype, upper):
    x = drawn(dtype, n, n)
    definite = x @ x.T + n * np.eye(n, dtype=dtype)
    factor = ek.cholesky(ek.tensor(definite), upper=upper).numpy()
    np.testing.assert_array_equal(factor, np.triu(factor) if upper else np.tril(factor))
    wanted = scipy.linalg.cholesky(((definite + definite.T) / 2).astype(np.float64), lower=not upper)
    assert np.abs(factor - wanted).max() <= 8 * n * np.finfo(dtype).eps * np.abs(wanted).max()
    definite[n - 2, n - 2] = -1
    with pytest.raises(TensorError, match="not positive definite"):
        ek.cholesky(ek.tensor(definite), upper=upper).numpy()


def nearest(x, b, rtol):
    """By the definition, in twice the digits where there are any: of singular values that count."""
    wide = np.complex128 if np.iscomplexobj(x) else np.float64
    u, s, vh = np.linalg.svd(x.astype(wide), full_matrices=False)
    kept = np.where(s > rtol * s.max(-1, keepdims=True), 1 / np.where(s > 0, s, 1), 0)
    return adjoint(vh) @ (kept[..., None] * (adjoint(u) @ b.astype(wide)))


HIGH_AND_WIDE = [
    (1, 1),
    (5, 3),
    (3, 5),
    (17, 17),
    (2, 40, 16),
    (2, 17, 40),
    (200, 33),
    (33, 200),
    (2, 3, 8, 2),
    (130, 70),
]


@checkered(shape=HIGH_AND_WIDE, dtype=DTYPES, sides=[1, 3, 40])
def test_least_squares(shape, dtype, sides):
    """By reflections; and where columns repeat others, the shortest of all that are as near, by singular values."""
    *batch, rows, columns = shape
    x, b, eps = drawn(dtype, *shape), drawn(dtype, *batch, rows, sides), float(np.finfo(dtype).eps)
    cases = [(x, None), (x * dtype(1e-30), None), (x, 0.0), (x, 0.3)]
    if min(rows, columns) > 2:
        repeated = x.copy()
        if rows >= columns:
            repeated[..., 1] = repeated[..., 0]
        else:
            repeated[..., 1, :] = repeated[..., 0, :]
        cases.append((repeated, None))
    for given, rtol in cases:
        found = ek.matrix_lstsq(ek.tensor(given), ek.tensor(b), rtol).numpy()
        values = np.linalg.svd(given.astype(np.complex128), compute_uv=False)
        cutoff = max(rows, columns) * eps if rtol is None else rtol
        part = values / values.max(-1, keepdims=True)
        if ((part > cutoff / 2) & (part < cutoff * 2)).any():
            continue  # whether it counts is a matter of rounding
        wanted = nearest(given, b, cutoff)
        least = np.where(part > cutoff, part, 1).min()
        size = np.abs(wanted).max() + np.abs(b).max() / (np.abs(given).max() * least)
        assert found.dtype == dtype
        assert np.abs(found - wanted).max() <= 40 * eps * max(rows, columns) / least * size


def test_least_squares_that_are_broadcast_or_not_finite():
    x, b = drawn(np.float64, 3, 1, 9, 4), drawn(np.float64, 5, 9, 2)
    found = ek.matrix_lstsq(ek.tensor(x), ek.tensor(b)).numpy()
    np.testing.assert_allclose(found, nearest(x, b, 1e-15), atol=1e-12)
    wrong = b.copy()
    wrong[2, 3, 1] = np.nan  # of a right side: it stays there
    found = ek.matrix_lstsq(ek.tensor(x), ek.tensor(wrong)).numpy()
    assert np.isnan(found[:, 2, :, 1]).all()
    np.testing.assert_allclose(np.delete(found, 2, 1), np.delete(nearest(x, b, 1e-15), 2, 1), atol=1e-12)
    np.testing.assert_allclose(found[:, 2, :, 0], nearest(x, b, 1e-15)[:, 2, :, 0], atol=1e-12)
    x[1, 0, 2, 2] = np.inf
    with pytest.raises(TensorError, match="NaN or infinities"):
        ek.matrix_lstsq(ek.tensor(x), ek.tensor(b)).numpy()


@checkered(shape=[*SIZES, (30, 9), (9, 30), (90, 40), (40, 90), (3, 0), (0, 0)], dtype=DTYPES)
def test_factors_give_the_matrix_back(shape, dtype):
    x, n = drawn(dtype, *shape), max(shape[-2:])
    exchange, lower, upper = (r.numpy() for r in ek.lu(ek.tensor(x)))
    near(exchange @ lower @ upper, x, n * np.abs(upper).max(initial=0))
    np.testing.assert_array_equal(lower, np.tril(lower))
    assert np.abs(lower).max(initial=0) <= np.sqrt(2) * (1 + 1e-6)
    if shape[-1] != shape[-2]:
        return
    definite = x @ adjoint(x) + n * np.eye(n, dtype=dtype)
    factor = ek.cholesky(ek.tensor(definite)).numpy()
    near(factor @ adjoint(factor), (definite + adjoint(definite)) / 2, n * np.abs(definite).max(initial=0))
    np.testing.assert_array_equal(factor, np.tril(factor))
    np.testing.assert_array_equal(ek.cholesky(ek.tensor(definite), upper=True).numpy(), adjoint(factor))
    wide = x.astype(np.complex128 if np.dtype(dtype).kind == "c" else np.float64)
    (sign, logarithm), wanted = ek.slogdet(ek.tensor(x)), np.linalg.slogdet(wide)
    far = 400 * max(n, 1) * np.finfo(dtype).eps
    np.testing.assert_allclose(sign.numpy(), wanted[0], atol=far)
    np.testing.assert_allclose(logarithm.numpy(), wanted[1], atol=far, rtol=far)
    small = (x / np.sqrt(max(n, 1))).astype(dtype)
    wanted = np.linalg.det(small.astype(wide.dtype))
    np.testing.assert_allclose(ek.det(ek.tensor(small)).numpy(), wanted, rtol=10 * far, atol=np.finfo(dtype).tiny)


def hard(n):
    """Matrices whose rows differ in scale, that are nearly singular, in another order, full of equal pivots."""
    rng = np.random.default_rng(n)
    x, i = rng.standard_normal((n, n)), np.arange(n)
    yield x
    yield x * 10.0 ** -(i[:, None] % 7)
    yield x * 10.0 ** (i % 5)
    yield np.where(i[:, None] == n - 1, x[0] + 1e-6 * x, x)
    yield np.eye(n)[rng.permutation(n)] * rng.uniform(1, 2, n)
    yield 1 / (i[:, None] + i + 1.0) + 1e-3 * np.eye(n)
    yield np.sign(x)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_factors_are_those_of_lapack_and_as_good(dtype):
    """Pivots are the first of the greatest; solutions and inverses leave at most twice as much as LAPACK's do."""
    for n in (26, 75):
        for x in (given.astype(dtype) for given in hard(n)):
            wide, b = x.astype(np.float64), drawn(dtype, n, 5)
            factors, pivots = (r.numpy() for r in ek.linalg.lu_factor(ek.tensor(x)))
            theirs = scipy.linalg.lu_factor(x)
            np.testing.assert_array_equal(pivots, theirs[1] + 1)
            near(factors, theirs[0], 1e4 * np.abs(theirs[0]).max())
            for wanted in (b, np.eye(n, dtype=dtype)):
                left, limit = (
                    np.abs(wide @ found - wanted).max() / (np.abs(wide) @ np.abs(found) + np.abs(wanted)).max()
                    for found in (
                        ek.linalg.solve(ek.tensor(x), ek.tensor(wanted)).numpy().astype(np.float64),
                        scipy.linalg.lu_solve(theirs, wanted).astype(np.float64),
                    )
                )
                assert left <= 2 * limit + np.finfo(dtype).eps


@pytest.mark.parametrize("dtype", DTYPES)
def test_inverses_of_what_is_not_small(dtype):
    """Of unit vectors, side by side or by halves; nothing but the identity is taken for them."""
    for n in (61, 200, 401):  # with rows in another order
        x = (drawn(dtype, n, n) + 2 * np.sqrt(n) * np.eye(n, dtype=dtype)).astype(dtype)[
            np.random.default_rng(n).permutation(n)
        ]
        found = ek.linalg.inv(ek.tensor(x)).numpy()
        near(x @ found, np.eye(n, dtype=dtype), np.abs(x).max() * np.abs(found).max() * n)
    n = 70
    x = drawn(dtype, n, n) + 30 * np.eye(n, dtype=dtype)
    near(ek.linalg.inv(ek.tensor(x)).numpy(), np.linalg.inv(x), 1)
    for row, column, number in ((n - 1, 0, 1), (3, 3, 2), (0, n - 1, np.nan)):
        b = np.eye(n, dtype=dtype)
        b[row, column] = number
        found = ek.linalg.solve(ek.tensor(x), ek.tensor(b)).numpy()
        assert np.isnan(found[:, column]).all() == np.isnan(number)
        kept = np.arange(n) != column if np.isnan(number) else np.arange(n) >= 0
        near(found[:, kept], np.linalg.solve(x, b[:, kept]), 1)
    x[5, 7] = np.nan
    assert np.isnan(ek.linalg.inv(ek.tensor(x)).numpy()).all()


SAID: list[int] = []  # how many threads LAPACK was told to use, by plans that may outlive a test
TELLS = ctypes.CFUNCTYPE(ctypes.c_int)(lambda: 7)
SETS = ctypes.CFUNCTYPE(None, ctypes.c_int)(SAID.append)


def test_lapack_computes_what_is_not_large_on_one_thread_and_has_the_others_back(monkeypatch):
    assert all(lapack.threads()) or not any(lapack.threads())
    addresses = tuple(ctypes.cast(f, ctypes.c_void_p).value for f in (TELLS, SETS))
    monkeypatch.setattr(lapack, "threads", lambda: addresses)
    x = drawn(np.float64, 1, 1, 1, 1, 19, 19)  # of a shape that no plan was made for yet
    for function in (ek.eigvals, ek.eigvalsh, ek.svdvals):
        SAID.clear()
        function(ek.tensor(x)).numpy()
        assert SAID == [1, 7]
    monkeypatch.setattr(linear, "LARGE", 0)
    SAID.clear()
    ek.eigvals(ek.tensor(x[None])).numpy()
    assert SAID == []


def test_threads_of_lapack_are_given_back_by_the_last_who_did_without():
    record = (ctypes.c_uint64 * linear.facts()["batch"])()
    record[linear.facts()["threads"]], record[linear.facts()["threads"] + 1] = (
        ctypes.cast(f, ctypes.c_void_p).value for f in (TELLS, SETS)
    )
    SAID.clear()
    for alone, said in ((1, [1]), (1, [1]), (0, [1]), (0, [1, 7])):
        native().eshkol_linear_alone(record, ctypes.c_int(alone))
        assert said == SAID


def spectra(dtype):
    """Matrices around the sizes that rotations serve, and such as are hard for them: one after the other."""
    for shape in [(1, 1), (2, 2), (5, 7, 7), (3, 10, 10), (11, 11), (2, 3, 17, 17), (33, 33), (9, 4), (4, 9), (40, 23),
                  (3, 12, 30), (12, 11, 11), (41, 16, 16), (5, 4, 13, 9), (9, 12, 16), (40, 17, 8)]:  # fmt: skip
        yield drawn(dtype, *shape)
    for n in (6, 14):
        turn = np.linalg.qr(drawn(dtype, n, n))[0]
        hard = [((turn * values) @ adjoint(turn)).astype(dtype) for values in (
            np.zeros(n), np.ones(n), np.repeat([1.0, -2.0], [n // 2, n - n // 2]), 10.0 ** -np.arange(n),
            np.where(np.arange(n) < 2, 1.0, 0.0), np.full(n, 1e-30), np.full(n, 1e30), 1 + np.arange(n) * 1e-7,
        )]  # fmt: skip
        yield from hard
        yield np.stack([x for x in hard if np.abs(x).max() < 1e9])  # together, of about one scale
        yield np.triu(drawn(dtype, n, n))
        yield np.eye(n, n + 2, dtype=dtype)
    yield np.stack([np.zeros((3, 3)), np.ones((3, 3)), np.eye(3)]).astype(dtype)  # of which some are hard


def at_right_angles(vectors):
    near(adjoint(vectors) @ vectors, np.eye(vectors.shape[-1], dtype=vectors.dtype), vectors.shape[-2])


@checkered(native=[True, False], dtype=DTYPES)
def test_spectra_and_their_vectors_give_the_matrix_back(dtype, native, monkeypatch):
    """With LAPACK called by native code, and where there is none to be called."""
    if not native:
        monkeypatch.setattr(lapack, "address", lambda *_: None)
    for x in spectra(dtype):
        if not native:
            x = x[None, None, None]  # of a shape that no plan was made for yet
        given, scale = ek.tensor(x), x.shape[-1] * np.abs(x).max(initial=0)
        far = 8 * np.finfo(dtype).eps * max(x.shape) * scale
        u, s, vh = (r.numpy() for r in ek.svd(given))
        at_right_angles(u)
        at_right_angles(adjoint(vh))
        assert (s >= 0).all()
        assert (np.diff(s, axis=-1) <= 0).all()
        assert np.abs((u * s[..., None, :]) @ vh - x).max(initial=0) <= far
        assert np.abs(ek.svdvals(given).numpy() - s).max(initial=0) <= far
        if native:
            q, r = (y.numpy() for y in ek.qr(given))
            at_right_angles(q)
            np.testing.assert_array_equal(r, np.triu(r))
            assert np.abs(q @ r - x).max(initial=0) <= far
        if x.shape[-1] != x.shape[-2]:
            continue
        w, v = (r.numpy() for r in ek.eigh(given))
        at_right_angles(v)
        assert (np.diff(w, axis=-1) >= 0).all()
        assert np.abs((v * w[..., None, :]) @ adjoint(v) - (x / 2 + adjoint(x) / 2)).max(initial=0) <= far
        assert np.abs(ek.eigvalsh(given).numpy() - w).max(initial=0) <= far
        w, v = (r.numpy() for r in ek.eig(given))
        assert np.abs(x @ v - v * w[..., None, :]).max(initial=0) <= far
        total = np.trace(x, axis1=-2, axis2=-1)
        assert np.abs(ek.eigvals(given).numpy().sum(-1) - total).max(initial=0) <= far * x.shape[-1]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [3, 15])
def test_what_is_not_finite_has_no_spectrum_but_factors(dtype, n):
    for number in (np.nan, np.inf):
        x = np.stack([np.eye(n, dtype=dtype)] * 3)
        x[1, 0, n - 1] = number
        for function in (ek.svd, ek.svdvals, ek.eigh, ek.eigvalsh, ek.eig, ek.eigvals, ek.pinv):
            for given in (x, np.concatenate([x[:1]] * 30 + [x])):
                with pytest.raises(TensorError, match="NaN or infinities"):
                    function(ek.tensor(given))
        q, r = (y.numpy() for y in ek.qr(ek.tensor(x)))
        assert not np.isfinite(q[1] @ r[1]).all()
        np.testing.assert_array_equal(np.abs(q[0]), np.eye(n))


@pytest.mark.parametrize("dtype", [np.float64, np.complex128])
def test_a_solution_and_its_gradient_share_the_factors(dtype):
    x, b, c = drawn(dtype, 40, 40) + 12 * np.eye(40, dtype=dtype), drawn(dtype, 40, 3), drawn(dtype, 2, 40, 3)

    @ek.jit
    def both_ways(x, b, c):
        return ek.linalg.solve(x, b), ek.linalg.solve(x.T, c)

    found = both_ways(ek.tensor(x), ek.tensor(b), ek.tensor(c))
    near(found[0].numpy(), np.linalg.solve(x, b), 10)
    near(found[1].numpy(), np.linalg.solve(x.T, c), 10)
    for _ in range(2):
        with pytest.raises(TensorError, match="a matrix is singular"):
            both_ways(ek.tensor(np.zeros_like(x)), ek.tensor(b), ek.tensor(c))
    if dtype is np.float64:
        slope = ek.jit(ek.grad(lambda x: (ek.linalg.solve(x, ek.tensor(b)) * ek.tensor(c[0])).sum()))
        near(slope(ek.tensor(x)).numpy(), -np.linalg.solve(x.T, c[0]) @ np.linalg.solve(x, b).T, 10)


def test_vectors_are_computed_where_they_are_read():
    x = drawn(np.float64, 12, 12)
    values = ek.jit(lambda x: (ek.svd(x)[1], ek.eigh(x)[0], ek.eig(x)[0]))(ek.tensor(x))
    wanted = ek.svdvals(ek.tensor(x)), ek.eigvalsh(ek.tensor(x)), ek.eigvals(ek.tensor(x))
    for found, alone in zip(values, wanted, strict=True):
        np.testing.assert_array_equal(found.numpy(), alone.numpy())
    both = ek.jit(lambda x: (ek.svdvals(x), *ek.svd(x)))(ek.tensor(x))
    np.testing.assert_array_equal(both[0].numpy(), both[2].numpy())  # the same numbers to the last digit


def test_batches_broadcast():
    x, b = drawn(np.float64, 2, 1, 5, 5), drawn(np.float64, 3, 5, 2)
    near(ek.linalg.solve(ek.tensor(x), ek.tensor(b)).numpy(), np.linalg.solve(x, b), 100)
    near(ek.linalg.inv(ek.tensor(x)).numpy(), np.linalg.inv(x), 100)


def test_a_determinant_is_neither_lost_nor_endless_on_the_way():
    assert float(ek.det(ek.tensor(np.diag([1e200, 1e200, 1e-200, 1e-200])))) == pytest.approx(1)
    assert float(ek.det(ek.tensor(np.diag([1e-200, 1e-200, 1e200, 1e200])))) == pytest.approx(1)
    assert float(ek.det(ek.tensor(np.full((3, 3), np.nan)))) != 0
    assert float(ek.det(ek.tensor(np.zeros((40, 40))))) == 0
    sign, logarithm = ek.slogdet(ek.tensor(np.zeros((2, 3, 3))))
    np.testing.assert_array_equal(sign.numpy(), 0)
    np.testing.assert_array_equal(logarithm.numpy(), -np.inf)


@pytest.mark.parametrize("n", [3, 40])
def test_matrices_that_cannot_be_solved_are_named(n):
    whole, singular = np.eye(n), np.eye(n)
    singular[:, n - 2] = 0
    with pytest.raises(TensorError, match="a matrix is singular"):
        ek.linalg.solve(ek.tensor(np.stack([whole, singular])), ek.tensor(np.ones((n, 1))))
    with pytest.raises(TensorError, match=f"element {n - 2} of its diagonal is 0"):
        ek.triangular_solve(ek.tensor(np.stack([whole, singular])), ek.tensor(np.ones((2, n, 1))))
    ek.triangular_solve(ek.tensor(singular), ek.tensor(np.ones((n, 1))), unit_diagonal=True)
    for given in (-np.eye(n), np.full((n, n), np.nan), np.diag([np.inf] * n)):
        with pytest.raises(TensorError, match="not positive definite"):
            ek.cholesky(ek.tensor(given))
    assert np.isnan(ek.linalg.solve(ek.tensor(np.full((n, n), np.nan)), ek.tensor(np.ones((n, 1)))).numpy()).all()


def test_an_error_in_a_plan_belongs_to_its_statement():
    @ek.jit
    def function(x):
        return ek.linalg.solve(x * 2, x) + 1

    near(function(ek.tensor(np.eye(3))).numpy(), np.full((3, 3), 1) + np.eye(3) / 2, 1)
    with pytest.raises(TensorError, match="a matrix is singular") as caught:
        function(ek.tensor(np.zeros((3, 3))))
    assert caught.value.span is not None
    near(function(ek.tensor(np.eye(3))).numpy(), np.full((3, 3), 1) + np.eye(3) / 2, 1)


def test_loops_with_native_code_are_one_sequence():
    def step(x, b):
        return ek.linalg.solve(x, b) * 0.5 + x, ek.cholesky(ek.eye(4, dtype="float64") + b @ b.T).sum()

    x, bs = drawn(np.float64, 4, 4) + 4 * np.eye(4), drawn(np.float64, 5, 4, 4)
    last, sums = ek.scan(step, ek.tensor(x), ek.tensor(bs))
    for k, b in enumerate(bs):
        x, wanted = np.linalg.solve(x, b) * 0.5 + x, np.linalg.cholesky(np.eye(4) + b @ b.T).sum()
        assert float(sums[k]) == pytest.approx(wanted)
    near(last.numpy(), x, 1e3)


def test_the_table_says_what_the_cpu_has_code_for():
    native = {op.name for op in TABLE.values() if isinstance(op.lower, Host) and op.lower.native}
    native -= {"sort", "expm", "expm_frechet"}  # which are `ordered`, and products, in compiled graphs
    assert native == linear.CODES.keys() | fourier.CODES.keys() | order.CODES.keys()


def test_results_of_an_op_with_several_may_be_asked_for_one_after_the_other():
    """The memory of its input is not given away with the first of them."""
    x = drawn(np.float64, 300, 300)
    for scale in (1, 2):
        sign, logarithm = ek.slogdet(ek.tensor(x) * scale if scale > 1 else ek.tensor(x))
        assert float(sign) == np.linalg.slogdet(x * scale)[0]
        assert float(logarithm) == pytest.approx(np.linalg.slogdet(x * scale)[1])
