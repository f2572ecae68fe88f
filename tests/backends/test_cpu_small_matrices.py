"""Small matrices that native code works on side by side: every size and number of them, of every kind of processor.

The functions of each kind (`linear.h`) are called as a plan calls them: with a record, by pieces of the batch.
"""

from __future__ import annotations

import ctypes
from types import SimpleNamespace

import numpy as np
import pytest

import eshkol as ek
from batches import checkered
from eshkol.backends.cpu import linear
from eshkol.errors import TensorError
from eshkol.llvm.targets import host_features
from eshkol.runtime.library import native

FUNCTIONS = ("solve", "triangle", "cholesky", "det", "slogdet", "lu", "eigh", "svd", "eig", "qr", "factored",
             "nearest")  # fmt: skip
KINDS = [kind for kind, needed in (("plain", ()), ("avx2", ("avx2", "fma")), ("avx512", ("avx512f",)))
         if all(host_features().get(name) for name in needed)]  # fmt: skip
DTYPES = [np.float32, np.float64]
COUNTS = (0, 1, 3, 7, 8, 9, 16, 33)
BODY = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)
FINE = linear.FINE


def called(kind, name, given, outs, piece=0, flags=0):
    """A function of a kind of processor over a batch: its results, and what it found wrong."""
    known, given = linear.facts(), [np.ascontiguousarray(x) for x in given]
    a, columns = given[0], (given[1] if len(given) > 1 else given[0]).shape[-1]
    words = [0] * known["batch"]
    words[0] = FINE
    words[known["dtype"]] = known[a.dtype.name]
    words[known["rows"]], words[known["columns"]], words[known["flags"]] = a.shape[-1], columns, flags
    batch = np.broadcast_shapes(*(x.shape[:-2] for x in given))
    axes = linear._axes(batch, [x.shape[:-2] for x in given])
    words[known["rank"]] = len(axes)
    for extent, strides in axes:
        words += [extent, *strides, *[0] * (2 - len(strides))]
    results = [np.full(batch + shape, 7, a.dtype) for shape in outs]
    for first, arrays in ((known["in"], given), (known["out"], results)):
        for k, x in enumerate(arrays):
            words[first + k] = x.ctypes.data
    record = (ctypes.c_uint64 * len(words))(*words)
    table = (ctypes.c_void_p * (len(FUNCTIONS) * 4)).in_dll(native(), f"eshkol_linear_{kind}")
    body = BODY(table[known[a.dtype.name] * len(FUNCTIONS) + FUNCTIONS.index(name)])
    count = int(np.prod(batch))
    for begin in range(0, count, piece or max(count, 1)):
        body(ctypes.addressof(record), begin, min(count, begin + (piece or count)))
    return (*results, record[0])


def drawn(dtype, *shape):
    """Matrices whose rows must be exchanged, no two in the same order."""
    rng = np.random.default_rng(sum(shape))
    x = rng.standard_normal(shape) + 2 * np.eye(shape[-1]) * np.sqrt(shape[-1])
    order = rng.permuted(np.broadcast_to(np.arange(x.shape[-1]), x.shape[:-1]), axis=-1)
    return np.take_along_axis(x, order[..., None], -2).astype(dtype)


@checkered(kind=KINDS, dtype=DTYPES, n=range(1, 19))
def test_every_size_and_number(kind, dtype, n):
    far = 40 * n * np.finfo(dtype).eps
    for count in COUNTS:
        x = drawn(dtype, count, n, n)
        wide = x.astype(np.float64)
        for columns in (1, 2, n, 17):
            b = np.random.default_rng(n).standard_normal((count, n, columns)).astype(dtype)
            found, fault = called(kind, "solve", (x, b), [(n, columns)])
            assert fault == FINE
            near = np.abs(wide) @ np.abs(found) + np.abs(b)
            assert (np.abs(wide @ found - b) <= far * near.max(initial=0)).all()
            for piece in (5, 16):  # however the batch is shared out, the numbers are the same to the last digit
                np.testing.assert_array_equal(called(kind, "solve", (x, b), [(n, columns)], piece)[0], found)
        found, fault = called(kind, "det", (x,), [()])
        assert fault == FINE
        np.testing.assert_allclose(found, np.linalg.det(wide), rtol=100 * far)
        np.testing.assert_array_equal(called(kind, "det", (x,), [()], 5)[0], found)
        sign, logarithm, fault = called(kind, "slogdet", (x,), [(), ()])
        assert fault == FINE
        wanted = np.linalg.slogdet(wide)
        np.testing.assert_array_equal(sign, wanted[0])
        np.testing.assert_allclose(logarithm, wanted[1], rtol=100 * far, atol=100 * far)


def strange(dtype, n):
    """Matrices that are not worked on beside others, or hardly: with the names of what becomes of them."""
    rng = np.random.default_rng(n)
    x = rng.standard_normal((n, n)) + 3 * np.eye(n)
    small, large = (1e-39, 1e38) if dtype is np.float32 else (1e-309, 1e308)
    yield "singular", np.zeros((n, n))
    yield "singular", np.where(np.arange(n) == n - 1, 0, x)
    yield "NaN", np.full((n, n), np.nan)
    yield "NaN", np.where(np.arange(n)[:, None] == n - 1, np.nan, x)
    yield "small", np.eye(n) * small
    yield "large", np.eye(n) * large
    yield "infinite", np.where(np.eye(n) == 1, np.inf, 0)
    yield "rank", np.outer(np.arange(1, n + 1), np.ones(n))


@checkered(kind=KINDS, dtype=DTYPES, n=(1, 2, 3, 4, 5, 8, 13, 16))
def test_what_is_strange_is_as_if_it_were_alone_and_leaves_the_others_alone(kind, dtype, n):
    usual = drawn(dtype, 40, n, n)
    b = (np.random.default_rng(0).standard_normal((40, n, 2)) / 100).astype(dtype)
    wanted, _ = called(kind, "solve", (usual, b), [(n, 2)])
    sizes, _ = called(kind, "det", (usual,), [()])
    with np.errstate(all="ignore"):
        cases = [(what, x.astype(dtype)) for what, x in strange(dtype, n)]
    for at in (0, 17, 39):
        for what, x in cases:
            given, others = usual.copy(), np.arange(40) != at
            given[at] = x
            found, fault = called(kind, "solve", (given, b), [(n, 2)])
            np.testing.assert_array_equal(found[others], wanted[others])
            size, _ = called(kind, "det", (given,), [()])
            np.testing.assert_array_equal(size[others], sizes[others])
            sign, logarithm, _ = called(kind, "slogdet", (given,), [(), ()])
            assert (fault == at) if what == "singular" else (fault == FINE or what == "rank")
            if what == "singular":
                assert (size[at], sign[at], logarithm[at]) == (0, 0, -np.inf)
            elif what == "NaN":
                assert np.isnan(found[at]).all()
                assert np.isnan(size[at])
                assert np.isnan(logarithm[at])
            elif what in ("small", "large"):
                np.testing.assert_allclose(found[at], b[at] / x[0, 0], rtol=1e-6)
                np.testing.assert_allclose(logarithm[at], n * np.log(np.float64(x[0, 0])), rtol=1e-6)
                assert sign[at] == 1
            elif what == "infinite":
                assert np.isnan(found[at]).any() or (found[at] == 0).all()
                assert size[at] == np.inf or np.isnan(size[at])


@pytest.mark.parametrize("kind", KINDS)
def test_the_least_of_those_that_are_singular_is_told(kind):
    x = drawn(np.float64, 50, 6, 6)
    x[[41, 13, 20], :, 3] = 0
    for piece in (0, 16, 7):
        assert called(kind, "solve", (x, x), [(6, 6)], piece)[-1] == 13


@pytest.mark.parametrize("kind", KINDS)
def test_products_that_are_large_or_small_on_the_way(kind):
    x = np.stack([np.diag(d) for d in ([1e200, 1e200, 1e-200, 1e-200], [1e-200, 1e-200, 1e200, 1e200], [1, 2, 3, 4],
                                       [1e200] * 4, [1e-200] * 4)] * 4)  # fmt: skip
    found, _ = called(kind, "det", (x,), [()])
    np.testing.assert_allclose(found, [1, 1, 24, np.inf, 0] * 4)
    sign, logarithm, _ = called(kind, "slogdet", (x,), [(), ()])
    np.testing.assert_array_equal(sign, 1)
    np.testing.assert_allclose(logarithm, [0, 0, np.log(24), 800 * np.log(10), -800 * np.log(10)] * 4, atol=1e-10)


@checkered(kind=KINDS, dtype=DTYPES)
def test_operands_that_broadcast(kind, dtype):
    x, b = drawn(dtype, 5, 1, 7, 7), drawn(dtype, 3, 7, 7)[..., :3]
    found, _ = called(kind, "solve", (x, b), [(7, 3)])
    np.testing.assert_allclose(found, np.linalg.solve(x.astype(np.float64), b), rtol=2e-3, atol=2e-3)
    one = np.eye(7, dtype=dtype)
    found, _ = called(kind, "solve", (x, one), [(7, 7)])
    np.testing.assert_allclose(found, np.linalg.inv(x.astype(np.float64)), rtol=2e-3, atol=2e-3)


def test_axes_that_lie_one_behind_the_other_are_one():
    assert linear._axes((), [(), ()]) == []
    assert linear._axes((2, 3, 4), [(2, 3, 4), (2, 3, 4)]) == [(24, [1, 1])]
    assert linear._axes((2, 3, 4), [(2, 3, 4), ()]) == [(24, [1, 0])]
    assert linear._axes((2, 3, 4), [(2, 3, 4), (3, 4)]) == [(2, [12, 0]), (12, [1, 1])]
    assert linear._axes((2, 3, 4), [(2, 1, 4), (3, 1)]) == [(2, [4, 0]), (3, [0, 1]), (4, [1, 0])]
    assert linear._axes((2, 1, 4), [(2, 1, 4)]) == [(8, [1])]
    assert linear._axes((1,), [(1,)]) == []


def test_turns_of_small_matrices_have_whole_registers():
    def turn(count, n):
        x = SimpleNamespace(dtype=ek.float32, shape=(count, n, n))
        return linear.CODES["det"](None, [x], [SimpleNamespace(shape=(count,))])

    assert all(turn(10_000, n).grain % linear.SIDE_BY_SIDE == 0 for n in range(1, 17))
    assert turn(10, 300).grain == 1


@pytest.mark.parametrize("dtype", DTYPES)
def test_thousands_through_plans(dtype):
    for n in (2, 4, 8, 16):
        x = drawn(dtype, 1000, n, n)
        wide, given = x.astype(np.float64), ek.tensor(x)
        near = {"rtol": 5e-2, "atol": 5e-3} if dtype is np.float32 else {"rtol": 1e-8, "atol": 1e-9}
        np.testing.assert_allclose(ek.linalg.inv(given).numpy(), np.linalg.inv(wide), **near)
        np.testing.assert_allclose(ek.linalg.det(given).numpy(), np.linalg.det(wide), **near)
        x[700, 0] = 0
        with pytest.raises(TensorError, match="a matrix is singular"):
            ek.linalg.inv(ek.tensor(x)).numpy()


# Around registers, strips, blocks, and matrices that are halved.
SIDES = (*range(1, 19), 23, 24, 25, 31, 32, 33, 47, 48, 49, 63, 65, 96, 100, 129, 300, 385, 401, 513)


def definite(dtype, *shape):
    x = np.random.default_rng(sum(shape)).standard_normal(shape)
    return (x @ np.swapaxes(x, -1, -2) / shape[-1] + np.eye(shape[-1])).astype(dtype)


@checkered(kind=KINDS, dtype=DTYPES, n=SIDES)
def test_factors_of_definite_matrices(kind, dtype, n):
    """Of the mean of both triangles; the other triangle of the factor is 0, whatever was there before."""
    count = 3 if n < 100 else 1
    x = definite(dtype, count, n, n)
    given = x + np.triu(np.ones((n, n), dtype), 1) - np.tril(np.ones((n, n), dtype), -1)
    found, fault = called(kind, "cholesky", (given,), [(n, n)])
    assert fault == FINE
    np.testing.assert_allclose(found, np.linalg.cholesky(x.astype(np.float64)), atol=40 * n * np.finfo(dtype).eps)
    np.testing.assert_array_equal(found, np.tril(found))
    upper = linear.facts()["upper"]
    turned, _ = called(kind, "cholesky", (given,), [(n, n)], flags=upper)
    np.testing.assert_array_equal(turned, np.swapaxes(found, -1, -2))


@checkered(kind=KINDS, n=(1, 7, 8, 9, 17, 40, 65, 130, 400))
def test_matrices_that_are_not_definite_are_told_wherever_it_shows(kind, n):
    x = definite(np.float64, 4, n, n)
    for at in {0, n // 2, n - 1}:
        for number in (0.0, -1.0, np.nan, np.inf):
            wrong = x.copy()
            wrong[2:, at, at] = number
            assert called(kind, "cholesky", (wrong,), [(n, n)])[-1] == 2
        if at:
            wrong = x.copy()
            wrong[1, at, 0] = np.nan
            assert called(kind, "cholesky", (wrong,), [(n, n)])[-1] == 1


@pytest.mark.parametrize(("dtype", "n"), [(np.float64, 380), (np.float64, 701), (np.float32, 650)])
def test_factors_are_the_same_on_any_number_of_threads(dtype, n):
    x = definite(dtype, n, n)
    alone, _ = called(KINDS[-1], "cholesky", (x,), [(n, n)])  # the record has no pool
    np.testing.assert_array_equal(ek.linalg.cholesky(ek.tensor(x)).numpy(), alone)


@checkered(kind=KINDS, dtype=DTYPES, n=(17, 40, 65, 129, 300))
def test_triangular_systems_whose_solutions_begin_with_zeros(kind, dtype, n):
    """They are left out, unless numbers of the triangle that are not finite make NaN of them."""
    facts, rng = linear.facts(), np.random.default_rng(n)
    x = (rng.standard_normal((n, n)) / n + 2 * np.eye(n)).astype(dtype)
    for way in range(8):
        lower, transpose, unit = way & 1, way & 2, way & 4
        flags = facts["lower"] * lower + facts["transpose"] * bool(transpose) + facts["unit"] * bool(unit)
        triangle = np.tril(x, -1 if unit else 0) if lower else np.triu(x, 1 if unit else 0)
        triangle = triangle.astype(np.float64) + (np.eye(n) if unit else 0)
        triangle = triangle.T if transpose else triangle
        b = rng.standard_normal((n, n + 3)).astype(dtype)
        kept = bool(lower) != bool(transpose)  # a lower triangle: the first rows are solved first
        for given in (
            np.tril(b) if kept else np.triu(b),
            np.zeros_like(b),
            np.where(np.arange(n)[:, None] == n // 2, b, 0),
        ):
            found, fault = called(kind, "triangle", (x, given), [(n, n + 3)], flags=flags)
            assert fault == FINE
            np.testing.assert_allclose(found, np.linalg.solve(triangle, given), atol=100 * np.finfo(dtype).eps)
            wild = x.copy()
            wild[(n - 1, 0) if lower else (0, n - 1)] = np.inf
            found, _ = called(kind, "triangle", (wild, given), [(n, n + 3)], flags=flags)
            last = found[n - 1 if kept else 0]  # the one that the number belongs to
            assert np.isnan(last[(given[0 if kept else n - 1] == 0)]).all()
