"""Linear algebra: what decompositions must satisfy, singular and malformed matrices, corners of derivatives."""

from __future__ import annotations

import numpy as np
import pytest
from calls import gradient, value

import eshkol as ek
from batches import checkered
from eshkol.errors import DerivativeError, DTypeError, EshkolError, ShapeError, TensorError

SQUARE = (
    "inv", "det", "cofactor", "slogdet", "cholesky", "eigh", "eigvalsh", "eig", "eigvals", "expm",
)  # fmt: skip
ANY = ("qr", "svd", "svdvals", "pinv", "matrix_norm", "matrix_rank", "condition_number")


def random(*shape, kind=float):
    rng = np.random.default_rng(len(shape))
    x = rng.normal(size=shape)
    return x + 1j * rng.normal(size=shape) if kind is complex else x


def adjoint(x):
    return np.conj(np.swapaxes(x, -1, -2))


@pytest.mark.parametrize("kind", [float, complex])
@pytest.mark.parametrize("shape", [(4, 3), (3, 4), (2, 3, 3), (0, 3), (3, 0), (1, 1)])
def test_decompositions_give_the_matrix_back(shape, kind):
    x = random(*shape, kind=kind)
    u, s, vh = value("svd", x)
    np.testing.assert_allclose((u * s[..., None, :]) @ vh, x, atol=1e-12)
    np.testing.assert_allclose(s, np.linalg.svd(x, compute_uv=False), atol=1e-12)
    np.testing.assert_allclose(adjoint(u) @ u - np.eye(s.shape[-1]), 0, atol=1e-12)
    q, r = value("qr", x)
    np.testing.assert_allclose(q @ r, x, atol=1e-12)
    np.testing.assert_allclose(r, np.triu(r))
    p = value("pinv", x)
    np.testing.assert_allclose(x @ p @ x, x, atol=1e-12)


@pytest.mark.parametrize("kind", [float, complex])
def test_eigenvectors_belong_to_their_values(kind):
    x = random(2, 4, 4, kind=kind)
    w, v = value("eig", x)
    np.testing.assert_allclose(x @ v, v * w[..., None, :], atol=1e-12)
    np.testing.assert_allclose(np.linalg.norm(v, axis=-2), 1)
    h = x + adjoint(x)
    w, v = value("eigh", h)
    np.testing.assert_allclose(v @ (w[..., None] * adjoint(v)), h, atol=1e-12)
    np.testing.assert_allclose(w, np.linalg.eigvalsh(h))
    assert value("eig", np.eye(2, dtype=np.float32))[0].dtype == np.complex64


@pytest.mark.parametrize("kind", [float, complex])
def test_signs_and_phases_do_not_depend_on_the_library(kind):
    """The same matrix turned by a phase, or written otherwise, has the same vectors."""
    x = random(4, 3, kind=kind)
    for vectors in (value("svd", x)[0], value("eigh", x[:3] + adjoint(x[:3]))[1], value("eig", x[:3])[1]):
        modulus = np.abs(vectors)
        first = np.argmax(modulus >= 0.5 * modulus.max(0), axis=0)
        chosen = np.take_along_axis(vectors, first[None], 0)
        assert (np.real(chosen) > 0).all()
        np.testing.assert_allclose(np.imag(chosen), 0, atol=1e-14)
    np.testing.assert_allclose(
        value("eigh", np.array([[2.0, 1.0], [1.0, 2.0]]))[1], np.sqrt(0.5) * np.array([[1, 1], [-1, 1]])
    )


@pytest.mark.parametrize("name", ["solve", "inv"])
def test_singular_matrices_are_named(name):
    x = np.array([[1.0, 2.0], [2.0, 4.0]])
    with pytest.raises(TensorError, match="singular"):
        value(name, *((x, np.ones(2)) if name == "solve" else (x,)))


def test_a_triangular_matrix_names_the_zero_of_its_diagonal():
    with pytest.raises(TensorError, match="element 1 of its diagonal"):
        value("triangular_solve", np.array([[1.0, 0.0], [2.0, 0.0]]), np.ones(2))
    assert value("triangular_solve", np.array([[0.0, 9.0], [2.0, 0.0]]), np.ones(2), unit_diagonal=True).tolist() == [
        1,
        -1,
    ]


def test_matrices_without_a_cholesky_factor_are_named():
    for x in ([[1.0, 2.0], [2.0, 1.0]], [[0.0]], [[-1.0]]):
        with pytest.raises(TensorError, match="not positive definite"):
            value("cholesky", np.array(x))
    assert np.isnan(value("cholesky", np.array([[np.nan]])))


@pytest.mark.parametrize("name", ["svd", "svdvals", "eigh", "eig", "pinv"])
@pytest.mark.parametrize("number", [np.nan, np.inf])
def test_what_is_not_finite_has_no_spectrum(name, number):
    with pytest.raises(TensorError, match="NaN or infinities"):
        value(name, np.array([[1.0, number], [number, 2.0]]))


@pytest.mark.parametrize("name", [*SQUARE, *ANY])
@pytest.mark.parametrize("dtype", [np.float16, np.int32, np.bool_])
def test_other_dtypes_are_refused_with_a_way_out(name, dtype):
    with pytest.raises(DTypeError, match="cast"):
        value(name, np.ones((2, 2), dtype))


@pytest.mark.parametrize("name", SQUARE)
def test_matrices_must_be_square(name):
    with pytest.raises(ShapeError, match="2 by 3"):
        value(name, np.ones((2, 3)))
    with pytest.raises(ShapeError, match="not a matrix"):
        value(name, np.ones(3))


@pytest.mark.parametrize(
    ("name", "args", "attrs"),
    [
        ("solve", (np.eye(2), np.ones(3)), {}),
        ("solve", (np.eye(2), 3.0), {}),
        ("solve", (np.ones((2, 2, 2)), np.ones((3, 2, 1))), {}),
        ("solve", (np.ones((2, 3)), np.ones(2)), {}),
        ("lstsq", (np.ones((2, 3)), np.ones(3)), {}),
        ("cholesky_solve", (np.ones(3), np.eye(2)), {}),
        ("qr", (np.ones((2, 2)),), {"mode": "complete"}),
        ("pinv", (np.ones((2, 2)),), {"rtol": 2.0}),
        ("pinv", (np.ones(3),), {}),
        ("matrix_power", (np.ones((2, 2)),), {"n": 0.5}),
        ("matrix_power", (np.ones((2, 3)),), {"n": 2}),
        ("matrix_norm", (np.ones((2, 2)),), {"ord": 3}),
        ("matrix_norm", (np.ones((2, 2)),), {"ord": "frobenius"}),
        ("matrix_norm", (np.ones((2, 2)),), {"axis": (0, 0)}),
        ("matrix_norm", (np.ones(2),), {}),
        ("expm_frechet", (np.ones((2, 2)), np.ones((3, 3))), {}),
    ],
)
def test_misfits_are_refused(name, args, attrs):
    with pytest.raises(EshkolError):
        value(name, *args, **attrs)


def test_determinants_of_singular_matrices_have_derivatives():
    x = np.array([[1.0, 1.0, 1.0], [2.0, 0.0, 2.0], [3.0, 0.0, 3.0]])
    np.testing.assert_allclose(gradient("det", x), [[0, 0, 0], [-3, 0, 3], [2, 0, -2]], atol=1e-12)
    np.testing.assert_allclose(gradient("det", np.zeros((3, 3))), np.zeros((3, 3)))
    sign, logarithm = value("slogdet", x)
    assert abs(sign * np.exp(logarithm)) < 1e-12


def test_determinants_beyond_the_range_of_floats_have_logarithms():
    sign, logarithm = value("slogdet", -1e200 * np.eye(3))
    assert (sign, round(float(logarithm), 6)) == (-1, round(600 * np.log(10), 6))
    assert value("slogdet", np.zeros((2, 2))) == (0, -np.inf)


def test_pseudo_inverses_keep_a_rank():
    """Of a matrix that is not of full rank, along directions that do not change it."""
    one, other = np.array([[1.0], [2.0], [0.5]]), np.array([[1.0, 2.0]])
    d = np.array([[0.3], [-0.2], [0.7]])
    step = 1e-5
    slope = (value("pinv", (one + step * d) @ other) - value("pinv", (one - step * d) @ other)) / (2 * step)
    got = np.sum(gradient("pinv", one @ other) * (d @ other))
    np.testing.assert_allclose(got, np.sum(slope), rtol=1e-8)


def test_least_squares_of_deficient_rank_is_the_shortest():
    x, b = np.ones((3, 2)), np.array([1.0, 2.0, 3.0])
    np.testing.assert_allclose(value("lstsq", x, b), np.linalg.lstsq(x, b, rcond=None)[0])


def test_singular_values_that_coincide_have_a_derivative_but_vectors_have_none():
    np.testing.assert_allclose(gradient("svdvals", np.eye(2)), np.eye(2))
    with np.errstate(all="ignore"):
        assert not np.isfinite(gradient("svd", np.eye(2))).all()


def test_full_matrices_have_values_but_no_derivative():
    x = random(4, 2)
    u, s, vh = value("svd", x, full_matrices=True)
    assert u.shape == (4, 4)
    np.testing.assert_allclose(u[:, :2] * s @ vh, x)
    np.testing.assert_allclose(u.T @ u, np.eye(4), atol=1e-12)
    with pytest.raises(DerivativeError):
        gradient("svd", x, full_matrices=True)


def test_rank_and_condition():
    assert value("matrix_rank", np.ones((3, 3), np.float32)) == 1
    assert value("matrix_rank", np.zeros((2, 3))) == 0
    assert value("matrix_rank", np.stack([np.eye(2), np.ones((2, 2))])).tolist() == [2, 1]
    assert value("condition_number", np.diag([4.0, 2.0])) == 2.0
    assert value("condition_number", np.diag([1.0, 0.0])) == np.inf


def test_exponentials_of_large_matrices_are_scaled():
    x = np.array([[-49.0, 24.0], [-64.0, 31.0]])  # the example of Moler and Van Loan
    wanted = [[-0.735759, 0.551819], [-1.471518, 1.103638]]
    np.testing.assert_allclose(value("expm", x), wanted, atol=1e-6)


def test_least_squares_keep_the_digits_of_the_right_side():
    """A matrix of float32 with a right side of float64: the solution is float64, and as exact."""
    x, b = np.array([[2.0, 1.0], [1.0, 3.0], [0.5, -1.0]], np.float32), random(3)
    found = value("lstsq", x, b)
    assert found.dtype == np.float64
    np.testing.assert_allclose(found, np.linalg.lstsq(x.astype(np.float64), b, rcond=None)[0], rtol=1e-13)
    noisy = np.array([[1.0, 1.0], [1.0, 1.0 + 1e-7]], np.float32)  # of rank 1 by the digits of float32
    np.testing.assert_allclose(value("lstsq", noisy, np.ones(2)), [0.5, 0.5], rtol=1e-6)


def exactly(x, direction=None):
    """e^x in long doubles, which hold more on some machines; or its derivative, which is a corner of that of blocks."""
    if direction is not None:
        n = x.shape[-1]
        return exactly(np.block([[x, direction], [np.zeros_like(x), x]]))[..., :n, n:]
    wide = np.clongdouble if x.dtype.kind == "c" else np.longdouble
    halvings = int(max(0, np.ceil(np.log2(np.abs(x).sum(-2).max() / 0.1))))
    small = x.astype(wide) / np.longdouble(2) ** halvings
    total = term = np.broadcast_to(np.eye(x.shape[-1], dtype=wide), x.shape)
    for k in range(1, 24):
        term = term @ small / k
        total = total + term
    for _ in range(halvings):
        total = total @ total
    return total


@checkered(dtype=[np.float32, np.float64, np.complex64, np.complex128], norm=[1e-3, 0.3, 1.4, 1.5, 6.0, 40.0])
def test_compiled_exponentials_and_their_derivatives_are_accurate(dtype, norm):
    """As products, to a few units in the last place of the greatest element; each matrix of a batch by itself."""
    rng = np.random.default_rng(int(norm * 10))
    x, direction = rng.normal(size=(2, 6, 5, 5))
    x[:2] -= np.swapaxes(x[:2], -1, -2)  # rotations
    x[2] = -x[2] @ x[2].T
    x[3] = np.triu(x[3])
    x = x * norm / np.abs(x).sum(-2).max(-1)[:, None, None]
    x[4] *= 1e-3  # is not halved as often
    if np.dtype(dtype).kind == "c":
        x = x + 0.5j * np.roll(x, 1, -1)
    x, direction = x.astype(dtype), direction.astype(dtype)
    units = np.finfo(dtype).eps * (4 + 4 * norm)
    for found, wanted in (
        (ek.expm(ek.tensor(x)), exactly(x)),
        (ek.jvp(ek.expm, (ek.tensor(x),), (ek.tensor(direction),))[1], exactly(x, direction)),
    ):
        assert found.numpy().dtype == dtype
        largest = np.abs(wanted).max((-2, -1), keepdims=True)
        assert (np.abs(found.numpy() - wanted) <= units * largest).all()


def test_compiled_exponentials_of_nothing_and_of_what_is_not_finite():
    assert (ek.expm(ek.zeros((2, 2))).numpy() == np.eye(2)).all()
    assert ek.expm(ek.zeros((3, 0, 0))).shape == (3, 0, 0)
    assert ek.expm(ek.zeros((0, 3, 3))).shape == (0, 3, 3)
    assert np.isinf(ek.expm(ek.tensor([[1e4]])).item())
    mixed = ek.expm(ek.tensor([[[np.nan, 1.0], [0.0, 1.0]], [[np.inf, 0.0], [0.0, 1.0]], [[0.0, 0.0], [0.0, 0.0]]]))
    assert np.isnan(mixed.numpy()[:2, 0, 0]).all()
    assert (mixed.numpy()[2] == np.eye(2)).all()


def test_second_derivatives_and_batches_of_exponentials():
    x = np.random.default_rng(0).normal(size=(4, 3, 3))

    def total(y):
        return (ek.expm(y) ** 2).sum()

    for way in (ek.jit, lambda f: f):
        hessian = way(ek.hessian(total))(ek.tensor(x[0])).numpy().reshape(9, 9)
        wanted = np.zeros((9, 9))
        for k in range(9):
            step = np.zeros(9)
            step[k] = 1e-5
            ahead, behind = (
                ek.grad(total)(ek.tensor(x[0] + sign * step.reshape(3, 3))).numpy().ravel() for sign in (1, -1)
            )
            wanted[k] = (ahead - behind) / 2e-5
        np.testing.assert_allclose(hessian, wanted, rtol=1e-6, atol=1e-6 * np.abs(wanted).max())
        batched = way(ek.vmap(ek.grad(total)))(ek.tensor(x)).numpy()
        for one, alone in zip(batched, x, strict=True):
            np.testing.assert_allclose(one, ek.grad(total)(ek.tensor(alone)).numpy(), rtol=1e-12)
