"""Decompositions of matrices, with derivatives, and what singular values and eigenvalues give.

Vectors are fixed up to a sign, or a phase, which is chosen so that results are the same everywhere and vary smoothly:
the first component of a vector whose modulus is at least half of the greatest is real and positive. The primitives
give the places of these components as a further result, which the derivatives use. Where singular values or
eigenvalues coincide, their vectors have no derivative, and the rules give NaN or infinities.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from eshkol.errors import DerivativeError, ShapeError, TensorError
from eshkol.ops import dtypes, shapes
from eshkol.ops.contraction import matmul, turned
from eshkol.ops.creation import iota
from eshkol.ops.elementwise import cast, conj, equal, imag, real, where
from eshkol.ops.joining import along, concatenate
from eshkol.ops.linalg import matrix_solve, triangular_matrix_solve
from eshkol.ops.matrices import (
    GROUP,
    KINDS,
    adjoint,
    batch_alone,
    both,
    conditioned,
    definite,
    diagonal_of,
    hermitian,
    identity,
    lapack,
    lower_of,
    matrices,
    noise,
    refusing,
    same_square,
    spectrum,
    square,
)
from eshkol.ops.movement import permute, reshape
from eshkol.ops.reductions import max_, min_, norm, sum_
from eshkol.ops.row import NATIVE, Aval, Draw, HasAval, Jvp, Value, composite, primitive, sample

# --- Cholesky -------------------------------------------------------------------------------------


class Side(NamedTuple):
    upper: bool


def _hermitian(x: Any) -> Any:
    return (x + np.conj(np.swapaxes(x, -1, -2))) / 2


def _cholesky(a: Side, x: Any) -> Any:
    with refusing("a matrix is not positive definite", "add a small multiple of the identity, or use eigh"):
        return np.linalg.cholesky(_hermitian(x), upper=a.upper)


def _jvp_cholesky(a: Side, r: Any, inputs: Any, tangents: Any) -> Any:
    lower = adjoint(r) if a.upper else r
    half = triangular_matrix_solve(lower, hermitian(tangents[0]))
    inner = adjoint(triangular_matrix_solve(lower, adjoint(half)))
    change = matmul(lower, lower_of(inner) - inner * identity(inner) * 0.5)
    return adjoint(change) if a.upper else change


@primitive(
    at_once=True,
    group=GROUP, dtypes=KINDS, infer=same_square, reference=_cholesky, lower=NATIVE, derivative=Jvp(_jvp_cholesky),
    batch=batch_alone("cholesky"), scheme=("tensor-cholesky",), tolerance=4.0,
    samples=both(
        lambda kind: sample(definite(3, 3, kind=kind)), lambda kind: sample(definite(2, 2, 2, kind=kind)),
        lambda kind: sample(definite(2, 2, kind=kind), upper=True), lambda kind: sample(Draw((0, 0), kind=kind)),
    ),
)  # fmt: skip
def cholesky(x: Value, upper: bool = False) -> Side:
    """The lower triangular matrix (or the upper one) whose product with its adjoint is x, read as (x + xᴴ)/2."""
    return Side(bool(upper))


# --- QR -------------------------------------------------------------------------------------------


def _infer_qr(a: None, x: HasAval) -> tuple[Aval, Aval]:
    batch, rows, columns = matrices(x)
    if rows < columns:
        raise ShapeError(f"the matrices are {rows} by {columns}, wider than high", hint="qr takes these too")
    return Aval(x.shape, lapack(x.dtype)), Aval((*batch, columns, columns), x.dtype)


def _jvp_qr(a: None, r: Any, inputs: Any, tangents: Any) -> Any:
    (q, triangle), (dx,) = r, tangents
    scaled = turned(triangular_matrix_solve(triangle, turned(dx), lower=False, transpose=True))  # dx · R⁻¹
    inner = matmul(adjoint(q), scaled)
    under = lower_of(inner, strict=True)
    turn = under - adjoint(under)
    if inner.dtype.is_complex:  # the diagonal of R stays real, so that of Qᴴ·dQ takes the imaginary part
        turn = turn + where(equal(identity(inner), 1), cast(imag(inner), inner.dtype) * 1j, 0)
    return matmul(q, turn - inner) + scaled, matmul(inner - turn, triangle)


@primitive(
    gives="tuple[Tensor, Tensor]",
    group=GROUP, dtypes=KINDS, infer=_infer_qr, reference=lambda a, x: tuple(np.linalg.qr(x)), lower=NATIVE,
    method=False,
    derivative=Jvp(_jvp_qr), batch=batch_alone("tall_qr"), tolerance=4.0,
    samples=both(
        lambda kind: sample(conditioned(3, 2, kind=kind)), lambda kind: sample(conditioned(2, 2, 2, kind=kind))
    ),
)  # fmt: skip
def tall_qr(x: Value) -> None:
    """`qr` of matrices that are not wider than high."""


def _qr(x: Any, mode: str = "reduced") -> Any:
    return np.linalg.qr(x, "r") if mode == "r" else tuple(np.linalg.qr(x))


@composite(
    gives="tuple[Tensor, Tensor]",
    gives_if={"mode": ("r", "Tensor")},
    group=GROUP, reference=_qr, dtypes=KINDS, scheme=("tensor-qr",), tolerance=8.0,
    samples=both(
        lambda kind: sample(conditioned(3, 2, kind=kind)), lambda kind: sample(conditioned(2, 3, kind=kind)),
        lambda kind: sample(conditioned(2, 2, 2, kind=kind)),
        lambda kind: sample(conditioned(3, 2, kind=kind), mode="r"),
    ),
)  # fmt: skip
def qr(x: Value, mode: str = "reduced") -> Any:
    """(Q, R) with orthonormal columns in Q and an upper triangular R, with LAPACK's signs; only R in the mode "r"."""
    if mode not in ("reduced", "r"):
        raise TensorError(f"qr has no mode '{mode}'", hint='the modes are "reduced" and "r"')
    _, rows, columns = matrices(x)
    if rows >= columns:
        q, triangle = tall_qr(x)
    else:
        q, left = tall_qr(along(x, x.ndim - 1, 0, rows))
        triangle = concatenate([left, matmul(adjoint(q), along(x, x.ndim - 1, rows, columns))], -1)
    return triangle if mode == "r" else (q, triangle)


# --- signs and phases -----------------------------------------------------------------------------


def _pivots(vectors: Any) -> Any:
    """For each column the first place whose modulus is at least half of the greatest."""
    modulus = np.abs(vectors)
    if not modulus.shape[-2]:
        return np.zeros((*modulus.shape[:-2], modulus.shape[-1]), np.int64)
    return np.argmax(modulus >= 0.5 * modulus.max(-2, keepdims=True), axis=-2)


def _phases(vectors: Any, pivots: Any) -> Any:
    """For each column, as a row of one, what makes its component at the pivot real and positive."""
    if not vectors.shape[-2]:
        return np.ones((*vectors.shape[:-2], 1, vectors.shape[-1]), vectors.dtype)
    chosen = np.take_along_axis(vectors, pivots[..., None, :], -2)
    modulus = np.abs(chosen)
    return np.where(modulus == 0, 1, np.conj(chosen) / np.where(modulus == 0, 1, modulus))


def _turning(vectors: Any, change: Any, pivots: Any) -> Any:
    """By which imaginary multiple of each vector its change leaves the chosen phase."""
    rows = iota.on(vectors, vectors.shape, vectors.ndim - 2)
    chosen = equal(rows, _row(pivots))
    at = sum_(where(chosen, vectors, 0), -2, keepdims=True)
    moved = sum_(where(chosen, change, 0), -2, keepdims=True)
    return cast(imag(moved), vectors.dtype) * 1j / at


def _row(x: Any) -> Any:
    """Numbers for each column, as matrices of one row."""
    return reshape(x, (*x.shape[:-1], 1, x.shape[-1]))


def _column(x: Any) -> Any:
    return reshape(x, (*x.shape, 1))


def _apart(one: Any) -> Any:
    """1 / (w[j] - w[i]) at row i and column j, and 0 on the diagonal."""
    gaps = _row(one) - _column(one)
    diagonal = equal(*(iota.on(one, gaps.shape[-2:], k) for k in (0, 1)))
    return where(diagonal, 0, 1 / where(diagonal, 1, gaps))


# --- singular values ------------------------------------------------------------------------------


class Whole(NamedTuple):
    full_matrices: bool


def _infer_svd(a: Whole, x: HasAval) -> tuple[Aval, ...]:
    batch, rows, columns = matrices(x)
    dtype, least = lapack(x.dtype), min(rows, columns)
    return (
        Aval((*batch, rows, rows if a.full_matrices else least), dtype),
        Aval((*batch, least), dtype.real),
        Aval((*batch, columns if a.full_matrices else least, columns), dtype),
        Aval((*batch, least), dtypes.int64),
    )


def _svd(a: Whole, x: Any) -> Any:
    with spectrum(x):
        u, s, vh = np.linalg.svd(x, full_matrices=a.full_matrices)
    least = s.shape[-1]
    pivots = _pivots(u[..., :least])
    phases = _phases(u[..., :least], pivots)
    u, vh = u.copy(), vh.copy()
    u[..., :least] *= phases
    vh[..., :least, :] *= np.conj(np.swapaxes(phases, -1, -2))
    return u, s, vh, pivots


def _jvp_svd(a: Whole, r: Any, inputs: Any, tangents: Any) -> Any:
    (u, s, vh, pivots), (dx,) = r, tangents
    rows, columns = dx.shape[-2:]
    if a.full_matrices and rows != columns:
        raise DerivativeError("svd with full_matrices has no derivative: vectors without singular values are arbitrary")
    v = adjoint(vh)
    inner = matmul(matmul(adjoint(u), dx), v)
    across, down = cast(_row(s), inner.dtype), cast(_column(s), inner.dtype)
    apart = cast(_apart(s * s), inner.dtype)
    left, right = across * inner, down * inner
    du = matmul(u, apart * (left + adjoint(left)))
    dv = matmul(v, apart * (right + adjoint(right)))
    if rows > columns:
        moved = matmul(dx, v)
        du = du + (moved - matmul(u, matmul(adjoint(u), moved))) / across
    if columns > rows:
        moved = matmul(adjoint(dx), u)
        dv = dv + (moved - matmul(v, matmul(vh, moved))) / across
    if dx.dtype.is_complex:
        twist = where(equal(identity(inner), 1), cast(imag(inner), inner.dtype) * 1j, 0)
        du = du + matmul(u, twist / across)
        turning = _turning(u, du, pivots)
        du, dv = du - u * turning, dv - v * turning
    return du, real(diagonal_of(inner)), adjoint(dv), None


def _spread(*shape: int, kind: str = "any") -> Draw:
    """Matrices with singular values apart from each other and from 0."""

    def make(rng: Any) -> Any:
        return 0.3 * noise(rng, *shape) + np.diag(1.0 + np.arange(max(shape)))[: shape[-2], : shape[-1]]

    return Draw(shape, kind=kind, make=make)


_spread_samples = both(
    lambda kind: sample(_spread(3, 2, kind=kind)), lambda kind: sample(_spread(2, 3, kind=kind)),
    lambda kind: sample(_spread(2, 2, 2, kind=kind)),
)  # fmt: skip


@primitive(
    gives="tuple[Tensor, Tensor, Tensor, Tensor]",
    at_once=True,
    group=GROUP, dtypes=KINDS, infer=_infer_svd, reference=_svd, lower=NATIVE, method=False, derivative=Jvp(_jvp_svd),
    batch=batch_alone("svd_with_pivots"), tolerance=8.0,
    samples=(*_spread_samples, sample(_spread(2, 2), full_matrices=True)),
)  # fmt: skip
def svd_with_pivots(x: Value, full_matrices: bool = False) -> Whole:
    """`svd`, and for each singular value the component of the vector in U that is real and positive."""
    return Whole(bool(full_matrices))


def _infer_singular(a: None, x: HasAval) -> Aval:
    batch, rows, columns = matrices(x)
    return Aval((*batch, min(rows, columns)), lapack(x.dtype).real)


def _singular(a: None, x: Any) -> Any:
    with spectrum(x):
        return np.linalg.svd(x, compute_uv=False)


def _jvp_singular(a: None, r: Any, inputs: Any, tangents: Any) -> Any:
    u, _, vh, _ = svd_with_pivots(inputs[0])
    return real(sum_(conj(u) * matmul(tangents[0], adjoint(vh)), -2))


@primitive(
    at_once=True,
    group=GROUP, dtypes=KINDS, infer=_infer_singular, reference=_singular, lower=NATIVE,
    derivative=Jvp(_jvp_singular), batch=batch_alone("svdvals"), tolerance=8.0, samples=_spread_samples,
)  # fmt: skip
def svdvals(x: Value) -> None:
    """The singular values, falling."""


def _svd_reference(x: Any, full_matrices: bool = False, compute_uv: bool = True) -> Any:
    if not compute_uv:
        return np.linalg.svd(x, compute_uv=False)
    return _svd(Whole(full_matrices), x)[:3]


@composite(
    gives="tuple[Tensor, Tensor, Tensor]",
    gives_if={"compute_uv": (False, "Tensor")},
    group=GROUP, reference=_svd_reference, dtypes=KINDS, tolerance=8.0, scheme=("tensor-svd",),
    samples=(
        *_spread_samples, sample(_spread(3, 2), compute_uv=False), sample(_spread(2, 2), full_matrices=True),
        sample(Draw((0, 2))),
    ),
)  # fmt: skip
def svd(x: Value, full_matrices: bool = False, compute_uv: bool = True) -> Any:
    """(U, s, Vᴴ) with x = U · diag(s) · Vᴴ, s falling; only s if compute_uv is False. Full matrices have no derivative.

    The first component of at least half the greatest modulus in each vector of U is real and positive.
    """
    return svd_with_pivots(x, bool(full_matrices))[:3] if compute_uv else svdvals(x)


# --- eigenvalues ----------------------------------------------------------------------------------


def _infer_eigh(a: None, x: HasAval) -> tuple[Aval, ...]:
    batch, n = square(x)
    return Aval((*batch, n), x.dtype.real), Aval(x.shape, x.dtype), Aval((*batch, n), dtypes.int64)


def _eigh(a: None, x: Any) -> Any:
    with spectrum(x):
        w, v = np.linalg.eigh(_hermitian(x))
    pivots = _pivots(v)
    return w, v * _phases(v, pivots), pivots


def _jvp_eigh(a: None, r: Any, inputs: Any, tangents: Any) -> Any:
    (w, v, pivots), (dx,) = r, tangents
    inner = matmul(matmul(adjoint(v), hermitian(dx)), v)
    dv = matmul(v, cast(_apart(w), inner.dtype) * inner)
    if dx.dtype.is_complex:
        dv = dv - v * _turning(v, dv, pivots)
    return real(diagonal_of(inner)), dv, None


_definite_samples = both(
    lambda kind: sample(definite(3, 3, kind=kind)), lambda kind: sample(definite(2, 2, 2, kind=kind))
)


@primitive(
    gives="tuple[Tensor, Tensor, Tensor]",
    at_once=True,
    group=GROUP, dtypes=KINDS, infer=_infer_eigh, reference=_eigh, lower=NATIVE, method=False,
    derivative=Jvp(_jvp_eigh), batch=batch_alone("eigh_with_pivots"), tolerance=8.0, samples=_definite_samples,
)  # fmt: skip
def eigh_with_pivots(x: Value) -> None:
    """`eigh`, and for each eigenvalue the component of its vector that is real and positive."""


@composite(
    gives="tuple[Tensor, Tensor]",
    group=GROUP, reference=lambda x: _eigh(None, x)[:2], dtypes=KINDS, tolerance=8.0,
    samples=(*_definite_samples, sample(Draw((0, 0)))),
)  # fmt: skip
def eigh(x: Value) -> Any:
    """The eigenvalues of a Hermitian matrix, rising, and its eigenvectors in columns; x is read as (x + xᴴ)/2.

    The first component of at least half the greatest modulus in each vector is real and positive.
    """
    return eigh_with_pivots(x)[:2]


def _infer_hermitian(a: None, x: HasAval) -> Aval:
    batch, n = square(x)
    return Aval((*batch, n), x.dtype.real)


def _eigvalsh(a: None, x: Any) -> Any:
    with spectrum(x):
        return np.linalg.eigvalsh(_hermitian(x))


def _jvp_hermitian(a: None, r: Any, inputs: Any, tangents: Any) -> Any:
    _, v, _ = eigh_with_pivots(inputs[0])
    return real(sum_(conj(v) * matmul(hermitian(tangents[0]), v), -2))


@primitive(
    at_once=True,
    group=GROUP, dtypes=KINDS, infer=_infer_hermitian, reference=_eigvalsh, lower=NATIVE,
    derivative=Jvp(_jvp_hermitian), batch=batch_alone("eigvalsh"), tolerance=8.0, samples=_definite_samples,
)  # fmt: skip
def eigvalsh(x: Value) -> None:
    """The eigenvalues of a Hermitian matrix, rising; x is read as (x + xᴴ)/2."""


def _infer_eig(a: None, x: HasAval) -> tuple[Aval, ...]:
    batch, n = square(x)
    dtype = x.dtype.complex
    return Aval((*batch, n), dtype), Aval(x.shape, dtype), Aval((*batch, n), dtypes.int64)


def _eig(a: None, x: Any) -> Any:
    with spectrum(x):
        w, v = np.linalg.eig(x)
    pivots = _pivots(v)
    return w, v * _phases(v, pivots), pivots


def _jvp_eig(a: None, r: Any, inputs: Any, tangents: Any) -> Any:
    (w, v, pivots), (dx,) = r, tangents
    inner = matrix_solve(v, matmul(cast(dx, v.dtype), v))
    dv = matmul(v, _apart(w) * inner)
    longer = sum_(real(conj(v) * dv), -2, keepdims=True)  # the vectors keep the length 1
    return diagonal_of(inner), dv - v * cast(longer, v.dtype) - v * _turning(v, dv, pivots), None


_general_samples = both(
    lambda kind: sample(_spread(3, 3, kind=kind)), lambda kind: sample(_spread(2, 2, 2, kind=kind)),
    lambda kind: sample(Draw((2, 2), kind=kind, make=lambda rng: 0.2 * noise(rng, 2, 2) + [[1, 2], [-2, 1]])),
)  # fmt: skip


@primitive(
    gives="tuple[Tensor, Tensor, Tensor]",
    at_once=True,
    group=GROUP, dtypes=KINDS, infer=_infer_eig, reference=_eig, lower=NATIVE, method=False, derivative=Jvp(_jvp_eig),
    batch=batch_alone("eig_with_pivots"), tolerance=8.0, samples=_general_samples,
)  # fmt: skip
def eig_with_pivots(x: Value) -> None:
    """`eig`, and for each eigenvalue the component of its vector that is real and positive."""


@composite(
    gives="tuple[Tensor, Tensor]",
    group=GROUP, reference=lambda x: _eig(None, x)[:2], dtypes=KINDS, tolerance=8.0, scheme=("tensor-eig",),
    samples=(*_general_samples, sample(Draw((0, 0)))),
)  # fmt: skip
def eig(x: Value) -> Any:
    """The eigenvalues of square matrices, in LAPACK's order, and eigenvectors of length 1 in columns; always complex.

    The first component of at least half the greatest modulus in each vector is real and positive.
    """
    return eig_with_pivots(x)[:2]


def _infer_general(a: None, x: HasAval) -> Aval:
    batch, n = square(x)
    return Aval((*batch, n), x.dtype.complex)


def _eigvals(a: None, x: Any) -> Any:
    with spectrum(x):
        return np.linalg.eigvals(x).astype(np.result_type(x, np.complex64))


def _jvp_general(a: None, r: Any, inputs: Any, tangents: Any) -> Any:
    _, v, _ = eig_with_pivots(inputs[0])
    return diagonal_of(matrix_solve(v, matmul(cast(tangents[0], v.dtype), v)))


@primitive(
    at_once=True,
    group=GROUP, dtypes=KINDS, infer=_infer_general, reference=_eigvals, lower=NATIVE,
    derivative=Jvp(_jvp_general), batch=batch_alone("eigvals"), tolerance=8.0, samples=_general_samples,
)  # fmt: skip
def eigvals(x: Value) -> None:
    """The eigenvalues of square matrices, in LAPACK's order; always complex."""


# --- norms and ranks ------------------------------------------------------------------------------

Order = int | float | str


def _matrix_norm(x: Any, ord: Any = "fro", axis: tuple[int, int] = (-2, -1), keepdims: bool = False) -> Any:
    return np.linalg.norm(x, ord, axis, keepdims)


@composite(
    group=GROUP, reference=_matrix_norm, dtypes=KINDS, tolerance=8.0,
    samples=(
        *(sample(_spread(3, 2), ord=ord) for ord in ("fro", "nuc", 1, -1, 2, -2, np.inf, -np.inf)),
        sample(_spread(2, 2, 2, kind="float")), sample(_spread(2, 3, kind="float"), ord="nuc", keepdims=True),
        sample(_spread(2, 2, 3), ord=2, axis=(0, 2), keepdims=True), sample(_spread(2, 2, 3), ord=1, axis=(2, 0)),
    ),
)  # fmt: skip
def matrix_norm(x: Value, ord: Order = "fro", axis: tuple[int, int] = (-2, -1), keepdims: bool = False) -> Any:
    """A norm of matrices: "fro", "nuc" (sum of singular values), ±1 (columns), ±2 (singular values), ±inf (rows)."""
    if len(axis) != 2 or x.ndim < 2:
        raise ShapeError(f"axes {axis} of shape {list(x.shape)} are not those of matrices")
    row, column = (shapes.axis(k, x.ndim) for k in axis)
    if row == column:
        raise ShapeError(f"axis {row} cannot be both rows and columns")
    lapack(x.dtype)
    x = permute(x, (*(k for k in range(x.ndim) if k not in (row, column)), row, column))
    found = _norms(x, ord)
    if not keepdims:
        return found
    shape = list(found.shape)
    for k in sorted((row, column)):
        shape.insert(k, 1)
    return reshape(found, shape)


def _norms(x: Any, ord: Order) -> Any:
    if ord == "fro":
        return norm(x, axis=(-2, -1))
    if ord == "nuc":
        return sum_(svdvals(x), -1)
    if ord not in (1, -1, 2, -2, np.inf, -np.inf):
        raise TensorError(f"there is no norm of order {ord!r}", hint='orders: "fro", "nuc", 1, -1, 2, -2, inf, -inf')
    sums = svdvals(x) if ord in (2, -2) else sum_(abs(x), -2 if ord in (1, -1) else -1)
    if float(ord) > 0 and not sums.shape[-1]:  # as NumPy has it
        return sum_(sums, -1)
    return (max_ if float(ord) > 0 else min_)(sums, -1)


@composite(
    group=GROUP, reference=lambda x: np.linalg.cond(x), dtypes=KINDS, tolerance=32.0, samples=_spread_samples,
)  # fmt: skip
def condition_number(x: Value) -> Any:
    """The condition number: the greatest singular value over the least."""
    s = svdvals(x)
    return max_(s, -1) / min_(s, -1)


@composite(
    group=GROUP, reference=lambda x, rtol=None: np.linalg.matrix_rank(x, rtol=rtol), dtypes=KINDS,
    samples=(
        sample(_spread(3, 2)), sample(_spread(2, 2, 2, kind="float")), sample(_spread(3, 2), rtol=0.6),
        sample(Draw((3, 3), make=lambda rng: np.ones((3, 3)))),
    ),
)  # fmt: skip
def matrix_rank(x: Value, rtol: float | None = None) -> Any:
    """How many singular values are above rtol times the greatest; rtol as in `pinv`."""
    s = svdvals(x)
    if not s.shape[-1]:
        return sum_(s > 0, -1)
    part = rtol if rtol is not None else max(x.shape[-2:]) * x.dtype.epsilon
    return sum_(s > max_(s, -1, keepdims=True) * part, -1)
