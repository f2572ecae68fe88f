"""Linear algebra as loops over columns, on a machine of blocks: against NumPy, at corners, inside of loops, errors."""

from __future__ import annotations

import numpy as np
import pytest

import eshkol as ek
from eshkol.errors import TensorError
from eshkol.ops import TABLE
from eshkol.schedule.rewrite.matrices import RULES

RNG = np.random.default_rng(5)


@pytest.fixture(autouse=True)
def of_blocks():
    with ek.device("blocks"):
        yield


def close(found, wanted):
    np.testing.assert_allclose(found.numpy(), wanted, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("shape", [(1, 1), (2, 3, 3)])
def test_square_matrices(shape):
    a, b, n = RNG.standard_normal(shape), RNG.standard_normal((*shape[:-1], 2)), shape[-1]
    x, y = ek.tensor(a), ek.tensor(b)
    close(ek.solve(x, y), np.linalg.solve(a, b))
    close(ek.det(x), np.linalg.det(a))
    for found, wanted in zip(ek.slogdet(x), np.linalg.slogdet(a), strict=True):
        close(found, wanted)
    for found, wanted in zip(ek.qr(x), np.linalg.qr(a), strict=True):
        close(found, wanted)
    definite = a @ np.swapaxes(a, -1, -2) + n * np.eye(n)
    for upper in (False, True):
        close(ek.cholesky(ek.tensor(definite), upper=upper), np.linalg.cholesky(definite, upper=upper))
    place, lower, upper = (part.numpy() for part in ek.lu(x))
    np.testing.assert_allclose(place @ lower @ upper, a, atol=1e-12)
    assert (np.abs(lower) <= 1).all(), "the largest pivot was taken"


@pytest.mark.parametrize("upper", [False, True])
def test_triangles_whose_other_half_is_not_read(upper):
    a, b = RNG.standard_normal((3, 3)) + 4 * np.eye(3), RNG.standard_normal((2, 3, 2))
    triangle = np.triu(a) if upper else np.tril(a)
    nothing = np.tril(np.full((3, 3), np.nan), -1)
    x = ek.tensor(triangle + (nothing if upper else nothing.T))
    ones = np.tril(triangle, -1) + np.triu(triangle, 1) + np.eye(3)
    for how, matrix in (({}, triangle), ({"transpose": True}, triangle.T), ({"unit_diagonal": True}, ones)):
        close(ek.triangular_solve(x, ek.tensor(b), lower=not upper, **how), np.linalg.solve(matrix, b))


def test_matrices_that_are_not_square():
    for shape in ((4, 3), (2, 3, 2)):
        a = RNG.standard_normal(shape)
        for found, wanted in zip(ek.qr(ek.tensor(a)), np.linalg.qr(a), strict=True):
            close(found, wanted)
        place, lower, upper = (part.numpy() for part in ek.lu(ek.tensor(a)))
        np.testing.assert_allclose(place @ lower @ upper, a, atol=1e-12)
    huge = np.array([[3e200, 1.0], [4e200, 2.0]])
    close(ek.qr(ek.tensor(huge))[1], np.linalg.qr(huge)[1])
    flat = np.array([[2.0, 1.0], [0.0, 3.0]])  # nothing to be reflected
    close(ek.qr(ek.tensor(flat))[1], flat)


def test_nothing_to_be_solved():
    empty = ek.tensor(np.zeros((0, 0)))
    assert ek.solve(empty, ek.tensor(np.zeros((0, 2)))).shape == (0, 2)
    assert ek.cholesky(ek.tensor(np.zeros((2, 0, 0)))).shape == (2, 0, 0)
    assert (ek.det(empty).item(), [part.item() for part in ek.slogdet(empty)]) == (1.0, [1.0, 0.0])
    assert ek.det(ek.tensor([[1.0, 2.0], [2.0, 4.0]])).item() == 0.0
    assert [part.item() for part in ek.slogdet(ek.tensor([[1.0, 2.0], [2.0, 4.0]]))] == [0.0, -np.inf]


@pytest.mark.parametrize(
    ("code", "said"),
    [
        (lambda: ek.solve(ek.tensor([[1.0, 2.0], [2.0, 4.0]]), ek.tensor([1.0, 2.0])), r"singular.*lstsq"),
        (lambda: ek.triangular_solve(ek.tensor([[1.0, 2.0], [2.0, 0.0]]), ek.tensor([1.0, 2.0])), r"singular.*lstsq"),
        (lambda: ek.cholesky(ek.tensor([[1.0, 2.0], [2.0, 1.0]])), r"not positive definite.*eigh"),
    ],
)
def test_what_has_no_one_answer_is_an_error(code, said):
    with pytest.raises(TensorError, match=f"(?s){said}"):
        code().numpy()


def test_in_loops_under_jit_with_derivatives_and_for_many():
    a, b = RNG.standard_normal((3, 3)) + 3 * np.eye(3), RNG.standard_normal(3)
    x, y = ek.tensor(a), ek.tensor(b)

    def twice(x, y):
        return ek.fori_loop(0, 2, lambda k, y: ek.solve(x, y), y)

    close(ek.jit(twice)(x, y), np.linalg.solve(a, np.linalg.solve(a, b)))
    slope = ek.grad(lambda x, y: (ek.solve(x, y) ** 2).sum(), argnums=0)(x, y)
    found = np.linalg.solve(a, b)
    close(slope, -np.outer(np.linalg.solve(a.T, 2 * found), found))
    close(ek.vmap(ek.solve, in_axes=(None, 0))(x, ek.tensor(np.stack([b, 2 * b]))), np.stack([found, 2 * found]))


def test_rules_are_for_rows_that_there_are():
    assert set(RULES) <= set(TABLE)
