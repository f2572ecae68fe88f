"""Linear algebra as loops and other rows, on a machine of blocks: against NumPy, at corners, in loops, errors."""

from __future__ import annotations

import numpy as np
import pytest

import eshkol as ek
from eshkol.atlas.machines import BLOCKS
from eshkol.errors import TensorError
from eshkol.graph.node import topological
from eshkol.ops import TABLE, dtypes
from eshkol.ops.convolution import conv1d
from eshkol.ops.decompositions import cholesky, qr
from eshkol.ops.linalg import det, solve
from eshkol.ops.lookup import index_add
from eshkol.ops.lu import lu_factor, lu_solve
from eshkol.ops.sparse import csr_rows, csr_turned
from eshkol.schedule.pipeline import Compiled
from eshkol.schedule.plan.steps import OnHost, walk
from eshkol.schedule.rewrite.matrices import COMPLEX, REAL

from .fusing import leaf

RNG = np.random.default_rng(5)


@pytest.fixture(autouse=True)
def of_blocks():
    with ek.device("blocks"):
        yield


def close(found, wanted):
    np.testing.assert_allclose(found.numpy(), wanted, rtol=1e-9, atol=1e-9)


def drawn(kind, *shape):
    return RNG.standard_normal(shape) + (1j * RNG.standard_normal(shape) if kind == "complex" else 0)


@pytest.mark.parametrize("kind", ["real", "complex"])
@pytest.mark.parametrize("shape", [(1, 1), (2, 3, 3)])
def test_square_matrices(shape, kind):
    a, b, n = drawn(kind, *shape), drawn(kind, *shape[:-1], 2), shape[-1]
    x, y = ek.tensor(a), ek.tensor(b)
    close(ek.solve(x, y), np.linalg.solve(a, b))
    close(ek.det(x), np.linalg.det(a))
    for found, wanted in zip(ek.slogdet(x), np.linalg.slogdet(a), strict=True):
        close(found, wanted)
    for found, wanted in zip(ek.qr(x), np.linalg.qr(a), strict=True):
        close(found, wanted)
    definite = a @ np.swapaxes(a.conj(), -1, -2) + n * np.eye(n)
    for upper in (False, True):
        close(ek.cholesky(ek.tensor(definite), upper=upper), np.linalg.cholesky(definite, upper=upper))
    place, lower, upper = (part.numpy() for part in ek.lu(x))
    np.testing.assert_allclose(place @ lower @ upper, a, atol=1e-12)
    sizes = np.abs(a.real) + np.abs(a.imag)
    assert (np.swapaxes(place, -1, -2) @ sizes)[..., 0, 0] == pytest.approx(sizes[..., 0].max(-1)), "the largest pivot"
    pivots = ek.linalg.lu_factor(x)
    close(ek.linalg.lu_solve(*pivots, y), np.linalg.solve(a, b))


@pytest.mark.parametrize("upper", [False, True])
def test_triangles_whose_other_half_is_not_read(upper):
    a, b = RNG.standard_normal((3, 3)) + 4 * np.eye(3), RNG.standard_normal((2, 3, 2))
    triangle = np.triu(a) if upper else np.tril(a)
    nothing = np.tril(np.full((3, 3), np.nan), -1)
    x = ek.tensor(triangle + (nothing if upper else nothing.T))
    ones = np.tril(triangle, -1) + np.triu(triangle, 1) + np.eye(3)
    for how, matrix in (({}, triangle), ({"transpose": True}, triangle.T), ({"unit_diagonal": True}, ones)):
        close(ek.triangular_solve(x, ek.tensor(b), lower=not upper, **how), np.linalg.solve(matrix, b))


@pytest.mark.parametrize("kind", ["real", "complex"])
def test_matrices_that_are_not_square(kind):
    for shape in ((4, 3), (2, 3, 2)):
        a = drawn(kind, *shape)
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


def solved_by(pivots):
    return ek.linalg.lu_solve(ek.eye(2), ek.tensor(np.array(pivots, np.int32)), ek.ones(2, 1))


@pytest.mark.parametrize(
    ("code", "said"),
    [
        (lambda: ek.solve(ek.tensor([[1.0, 2.0], [2.0, 4.0]]), ek.tensor([1.0, 2.0])), r"singular.*lstsq"),
        (lambda: ek.triangular_solve(ek.tensor([[1.0, 2.0], [2.0, 0.0]]), ek.tensor([1.0, 2.0])), r"singular.*lstsq"),
        (lambda: ek.cholesky(ek.tensor([[1.0, 2.0], [2.0, 1.0]])), r"not positive definite.*eigh"),
        (lambda: ek.cholesky(ek.tensor([[1.0, 2j], [-2j, 1.0]])), r"not positive definite.*eigh"),
        (lambda: ek.solve(ek.tensor([[1.0, 2j], [2.0, 4j]]), ek.tensor([1.0, 2.0])), r"singular.*lstsq"),
        (lambda: solved_by([3, 3]), r"pivot is not from 1 to 2.*lu_factor"),
        (lambda: ek.csr_rows(ek.tensor([0, 2, 1, 3]), 3), r"pointers .* must rise from 0 to its 3 elements"),
        (lambda: ek.csr_rows(ek.tensor([1, 2, 3]), 3), r"pointers .* must rise from 0 to its 3 elements"),
        (lambda: ek.csr_rows(ek.tensor([0, 2, 4]), 3), r"pointers .* must rise from 0 to its 3 elements"),
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


def test_patterns_of_sparse_matrices():
    pointers, indices = np.array([0, 2, 2, 5, 6]), np.array([3, 0, 1, 0, 1, 2])
    assert ek.csr_rows(ek.tensor(pointers), 6).tolist() == [0, 0, 2, 2, 2, 3]
    order, rows, starts = ek.csr_turned(ek.tensor(indices), ek.tensor(pointers), 5)
    assert (order.tolist(), rows.tolist()) == ([1, 3, 2, 4, 5, 0], [0, 2, 2, 2, 3, 0])
    assert starts.tolist() == [0, 2, 4, 5, 6, 6]
    both = ek.vmap(lambda p: ek.csr_rows(p, 2))(ek.tensor([[0, 1, 2], [0, 0, 2]]))
    assert both.tolist() == [[0, 1], [1, 1]]


def test_complex_numbers_by_their_parts():
    x, u = drawn("complex", 4, 2), drawn("complex", 3, 2)
    wanted = x.copy()
    np.add.at(wanted, [1, 3, 1], u)
    close(ek.index_add(ek.tensor(x), 0, ek.tensor([1, 3, 1]), ek.tensor(u)), wanted)
    signal, taps = drawn("complex", 7), drawn("complex", 3)
    found = ek.conv1d(ek.tensor(signal[None, None]), ek.tensor(taps[None, None]))
    close(found[0, 0], np.convolve(signal, taps[::-1], "valid"))
    slope = ek.grad(lambda w: (abs(ek.conv1d(ek.tensor(signal[None, None]), w)) ** 2).sum())(
        ek.tensor(taps[None, None])
    )
    windows = np.lib.stride_tricks.sliding_window_view(signal, 3)
    close(slope[0, 0], 2 * windows.conj().T @ (windows @ taps))


def test_the_host_is_not_needed():
    """On a GPU it would be refused."""
    z, b, pointers = leaf(3, 3, dtype=dtypes.complex64), leaf(3, 2, dtype=dtypes.complex64), leaf(4, dtype=dtypes.int64)
    turned = csr_turned(leaf(3, dtype=dtypes.int64), pointers, 4)
    results = [solve(z, b), qr(z)[0], det(z), cholesky(z), lu_solve(*lu_factor(z), b), *turned, csr_rows(pointers, 3)]
    results.append(index_add(z, 0, leaf(1, dtype=dtypes.int64), leaf(1, 3, dtype=dtypes.complex64)))
    results.append(conv1d(leaf(1, 2, 5, dtype=dtypes.complex64), leaf(1, 2, 3, dtype=dtypes.complex64)))
    leaves = [n for n in topological(results) if n.op.name == "buffer"]
    made = Compiled(results, leaves).plan(BLOCKS)
    assert [step.node.op.name for step in walk(made.steps) if isinstance(step, OnHost)] == []


def test_rules_are_for_rows_that_there_are():
    assert set(REAL) | set(COMPLEX) <= set(TABLE)
