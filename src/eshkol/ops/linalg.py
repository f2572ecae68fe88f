"""Linear algebra: systems of equations, inverses, determinants and functions of matrices.

Matrices stand in the last two axes, and everything in front is a batch. Inputs are float32, float64 or complex.
Decompositions are in `decompositions.py` and `lu.py`, what follows from them in `inverses.py`, exponentials in
`exponentials.py`. The CPU has code of its own for most of these (`runtime/native/linear/`); LAPACK on
the host is the reference of all.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from eshkol.errors import ShapeError, TensorError
from eshkol.ops import shapes
from eshkol.ops.contraction import matmul, tensor, turned
from eshkol.ops.elementwise import cast, conj, equal, imag, real, where
from eshkol.ops.matrices import (
    GROUP,
    KINDS,
    adjoint,
    batch_alone,
    batch_pair,
    both,
    conditioned,
    identity,
    lower_of,
    matrices,
    places,
    refusing,
    same_square,
    spectrum,
    square,
    triangle,
    upper_of,
)
from eshkol.ops.movement import expand, reshape
from eshkol.ops.products import prod
from eshkol.ops.reductions import sum_
from eshkol.ops.row import NATIVE, TABLE, Aval, Draw, HasAval, Jvp, Parts, Value, composite, primitive, sample

# --- systems of equations -------------------------------------------------------------------------


def _infer_solve(a: Any, x: HasAval, b: HasAval) -> Aval:
    batch, n = square(x)
    others, rows, columns = matrices(b)
    if rows != n:
        raise ShapeError(f"the system {list(x.shape)} has {n} equations, the right side {list(b.shape)} has {rows}")
    return Aval((*shapes.broadcast(batch, others), n, columns), x.dtype)


def _solve(a: None, x: Any, b: Any) -> Any:
    with refusing("a matrix is singular: its system has no one solution", "lstsq gives the nearest solution"):
        return np.linalg.solve(x, b)


def _jvp_solve(a: None, r: Any, inputs: Any, tangents: Any) -> Any:
    (x, _), (dx, db) = inputs, tangents
    return matrix_solve(x, _difference(db, None if dx is None else matmul(dx, r)))


def _difference(one: Any, other: Any) -> Any:
    return one if other is None else -other if one is None else one - other


def _transpose_solve(a: None, ct: Any, linear: Any, inputs: Any) -> Any:
    return None, matrix_solve(turned(inputs[0]), ct)


@primitive(
    at_once=True,
    group=GROUP, promote="common", dtypes=KINDS, infer=_infer_solve, reference=_solve, lower=NATIVE, method=False,
    derivative=Jvp(_jvp_solve, _transpose_solve), batch=batch_pair("matrix_solve"),
    samples=both(
        lambda kind: sample(conditioned(3, 3, kind=kind), Draw((3, 2), kind=kind)),
        lambda kind: sample(conditioned(2, 1, 2, 2, kind=kind), Draw((3, 2, 1), kind=kind)),
    ),
)  # fmt: skip
def matrix_solve(x: Value, b: Value) -> None:
    """The matrix that x must be multiplied with to give the matrix b; `solve` takes vectors too."""


def with_columns(x: Any, b: Any, solver: Callable[[Any], Any]) -> Any:
    """What a solver of matrices gives for the user's right side: a vector is a matrix of one column."""
    b = tensor(b, x)
    if b.ndim == 1:
        columns = solver(reshape(b, (b.shape[0], 1)))
        return reshape(columns, columns.shape[:-1])
    return solver(b)


@composite(
    group=GROUP, reference=np.linalg.solve, dtypes=KINDS, scheme=("solve", "tensor-solve"), tolerance=4.0,
    samples=both(
        lambda kind: sample(conditioned(3, 3, kind=kind), Draw((3, 2), kind=kind)),
        lambda kind: sample(conditioned(3, 3, kind=kind), Draw((3,), kind=kind)),
        lambda kind: sample(conditioned(2, 2, 2, kind=kind), Draw((2, 2, 1), kind=kind)),
        lambda kind: sample(conditioned(0, 0, kind=kind), Draw((0, 2), kind=kind)),
    ),
)  # fmt: skip
def solve(x: Value, b: Value) -> Any:
    """What x must be multiplied with to give b: a vector if b has one axis, else matrices; batches broadcast."""
    return with_columns(x, b, lambda columns: matrix_solve(x, columns))


class Triangle(NamedTuple):
    lower: bool
    transpose: bool
    unit_diagonal: bool


def _solve_triangle(a: Triangle, x: Any, b: Any) -> Any:
    from scipy.linalg import get_lapack_funcs

    (trtrs,) = get_lapack_funcs(("trtrs",), (x, b))
    batch = np.broadcast_shapes(x.shape[:-2], b.shape[:-2])
    x, b = np.broadcast_to(x, batch + x.shape[-2:]), np.broadcast_to(b, batch + b.shape[-2:])
    result = np.empty_like(b)
    if b.size:
        for k in np.ndindex(batch):
            result[k], info = trtrs(x[k], b[k], lower=a.lower, trans=int(a.transpose), unitdiag=a.unit_diagonal)
            if info > 0:
                raise TensorError(
                    f"a triangular matrix is singular: element {info - 1} of its diagonal is 0",
                    hint="lstsq gives the nearest solution",
                )
    return result


def _jvp_triangle(a: Triangle, r: Any, inputs: Any, tangents: Any) -> Any:
    (x, _), (dx, db) = inputs, tangents
    if dx is None:
        return x.apply(triangular_matrix_solve, (x, db), a)
    moved = (lower_of if a.lower else upper_of)(dx, strict=a.unit_diagonal)
    return x.apply(triangular_matrix_solve, (x, _difference(db, matmul(turned(moved) if a.transpose else moved, r))), a)


def _transpose_triangle(a: Triangle, ct: Any, linear: Any, inputs: Any) -> Any:
    return None, ct.apply(triangular_matrix_solve, (inputs[0], ct), a._replace(transpose=not a.transpose))


@primitive(
    group=GROUP, promote="common", dtypes=KINDS, infer=_infer_solve,
    at_once=True,
    reference=_solve_triangle, lower=NATIVE, method=False, derivative=Jvp(_jvp_triangle, _transpose_triangle),
    batch=batch_pair("triangular_matrix_solve"),
    samples=both(
        lambda kind: sample(conditioned(3, 3, kind=kind), Draw((3, 2), kind=kind)),
        lambda kind: sample(conditioned(2, 2, 2, kind=kind), Draw((2, 2), kind=kind), lower=False, transpose=True),
    ),
)  # fmt: skip
def triangular_matrix_solve(
    x: Value, b: Value, lower: bool = True, transpose: bool = False, unit_diagonal: bool = False
) -> Triangle:
    """The matrix that a triangle of x must be multiplied with to give b; `triangular_solve` takes vectors too."""
    return Triangle(bool(lower), bool(transpose), bool(unit_diagonal))


def _triangular_solve(x: Any, b: Any, lower: bool = True, transpose: bool = False, unit_diagonal: bool = False) -> Any:
    triangle = np.tril(x) if lower else np.triu(x)
    if unit_diagonal:
        triangle = triangle * (1 - np.eye(x.shape[-1], dtype=x.dtype)) + np.eye(x.shape[-1], dtype=x.dtype)
    return np.linalg.solve(np.swapaxes(triangle, -1, -2) if transpose else triangle, b)


@composite(
    group=GROUP, reference=_triangular_solve, dtypes=KINDS, scheme=("triangular-solve",), aliases=("solve_triangular",),
    tolerance=4.0,
    samples=both(
        lambda kind: sample(conditioned(3, 3, kind=kind), Draw((3, 2), kind=kind)),
        lambda kind: sample(conditioned(3, 3, kind=kind), Draw((3,), kind=kind), lower=False),
        lambda kind: sample(conditioned(2, 2, 2, kind=kind), Draw((2, 1), kind=kind), transpose=True),
        lambda kind: sample(conditioned(2, 2, kind=kind), Draw((2, 1), kind=kind), unit_diagonal=True),
        lambda kind: sample(conditioned(0, 0, kind=kind), Draw((0, 1), kind=kind)),
    ),
)  # fmt: skip
def triangular_solve(
    x: Value, b: Value, lower: bool = True, transpose: bool = False, unit_diagonal: bool = False
) -> Any:
    """`solve` with one triangle of x, transposed (not conjugated) if asked; its diagonal may be taken for ones."""
    return with_columns(x, b, lambda columns: triangular_matrix_solve(x, columns, lower, transpose, unit_diagonal))


@composite(
    group=GROUP, dtypes=KINDS, tolerance=16.0, method=False,
    reference=lambda b, factor, upper=False: np.linalg.solve(
        np.conj(np.swapaxes(factor, -1, -2)) @ factor if upper else factor @ np.conj(np.swapaxes(factor, -1, -2)), b
    ),
    samples=both(
        lambda kind: sample(Draw((2, 1), kind=kind), triangle(np.tril, 2, kind)),
        lambda kind: sample(Draw((2,), kind=kind), triangle(np.triu, 2, kind), upper=True),
    ),
)  # fmt: skip
def cholesky_solve(b: Value, factor: Value, upper: bool = False) -> Any:
    """The solution of the system whose matrix has this Cholesky factor (lower by default), for the right side b."""

    def solver(columns: Any) -> Any:
        lower = adjoint(factor) if upper else factor
        return triangular_matrix_solve(adjoint(lower), triangular_matrix_solve(lower, columns), lower=False)

    return with_columns(factor, b, solver)


@composite(
    group=GROUP, reference=np.linalg.inv, dtypes=KINDS, scheme=("inv",), tolerance=4.0,
    samples=both(
        lambda kind: sample(conditioned(3, 3, kind=kind)), lambda kind: sample(conditioned(2, 2, 2, kind=kind)),
        lambda kind: sample(conditioned(0, 0, kind=kind)),
    ),
)  # fmt: skip
def inv(x: Value) -> Any:
    """The inverse of square matrices; a singular one is an error."""
    square(x)
    return matrix_solve(x, identity(x))


# --- determinants ---------------------------------------------------------------------------------


def _infer_det(a: None, x: HasAval) -> Aval:
    return Aval(square(x)[0], x.dtype)


def _jvp_det(a: None, r: Any, inputs: Any, tangents: Any) -> Any:
    return sum_(cofactor(inputs[0]) * tangents[0], (-2, -1))


_square_samples = both(
    lambda kind: sample(conditioned(3, 3, kind=kind)), lambda kind: sample(conditioned(2, 2, 2, kind=kind)),
    lambda kind: sample(conditioned(1, 1, kind=kind)),
)  # fmt: skip


@primitive(
    group=GROUP, dtypes=KINDS, infer=_infer_det, reference=lambda a, x: np.linalg.det(x), lower=NATIVE,
    derivative=Jvp(_jvp_det), batch=batch_alone("det"), scheme=("det",), samples=_square_samples,
)  # fmt: skip
def det(x: Value) -> None:
    """The determinant of square matrices; its derivative is there for singular ones too."""


def _cofactor(a: None, x: Any) -> Any:
    """By singular values, which serve singular matrices as well as others."""
    n = x.shape[-1]
    with spectrum(x):
        u, s, vh = np.linalg.svd(x)
    others = np.where(np.eye(n, dtype=bool), 1, s[..., None, :]).prod(-1)  # for each, the product of all others
    scale = np.linalg.det(u) * np.linalg.det(vh)
    return (np.conj(u) * others[..., None, :]) @ np.conj(vh) * scale[..., None, None]


def _by_values(a: None, x: Any) -> Any:
    """The same of what is computed."""
    u, s, vh, _ = TABLE["svd_with_pivots"](x)
    n = x.shape[-1]
    others = prod(where(equal(*places(x)), 1, reshape(s, (*s.shape[:-1], 1, n))), -1)
    scale = reshape(det(u) * det(vh), (*s.shape[:-1], 1, 1))
    return matmul(conj(u) * cast(reshape(others, (*s.shape[:-1], 1, n)), x.dtype), conj(vh)) * scale


def _jvp_cofactor(a: None, r: Any, inputs: Any, tangents: Any) -> Any:
    (x,), (dx,) = inputs, tangents
    change = sum_(r * dx, (-2, -1), keepdims=True)
    return matrix_solve(turned(x), change * identity(x) - matmul(turned(dx), r))


@primitive(
    group=GROUP, dtypes=KINDS, infer=same_square, reference=_cofactor, lower=Parts(_by_values),
    derivative=Jvp(_jvp_cofactor),
    batch=batch_alone("cofactor"), samples=_square_samples, tolerance=4.0,
)  # fmt: skip
def cofactor(x: Value) -> None:
    """The matrix of cofactors, det(x) · x⁻ᵀ: the derivative of det. It has a derivative where x is not singular."""


def _infer_slogdet(a: None, x: HasAval) -> tuple[Aval, Aval]:
    batch, _ = square(x)
    return Aval(batch, x.dtype), Aval(batch, x.dtype.real)


def _jvp_slogdet(a: None, r: Any, inputs: Any, tangents: Any) -> Any:
    (x,), (dx,) = inputs, tangents
    change = sum_(turned(inv(x)) * dx, (-2, -1))
    if not x.dtype.is_complex:
        return None, change
    return r[0] * cast(imag(change), x.dtype) * 1j, real(change)


@primitive(
    gives="tuple[Tensor, Tensor]",
    group=GROUP, dtypes=KINDS, infer=_infer_slogdet, reference=lambda a, x: np.linalg.slogdet(x), lower=NATIVE,
    derivative=Jvp(_jvp_slogdet), batch=batch_alone("slogdet"), samples=_square_samples,
)  # fmt: skip
def slogdet(x: Value) -> None:
    """The sign (of complex numbers, the phase) of the determinant and the logarithm of its modulus: 0 and -∞ for 0."""


# --- functions of matrices ------------------------------------------------------------------------


@composite(
    group=GROUP, reference=lambda x, n: np.linalg.matrix_power(x, n), dtypes=KINDS, tolerance=16.0,
    samples=both(
        lambda kind: sample(conditioned(2, 2, kind=kind), n=3), lambda kind: sample(conditioned(2, 2, kind=kind), n=-2),
        lambda kind: sample(conditioned(2, 2, 2, kind=kind), n=0),
        lambda kind: sample(conditioned(2, 2, kind=kind), n=1),
    ),
)  # fmt: skip
def matrix_power(x: Value, n: int) -> Any:
    """The product of n equal square matrices; negative powers are those of the inverse."""
    if isinstance(n, bool) or not isinstance(n, int):
        raise TensorError(f"a power of a matrix must be an integer, not {n!r}")
    if len(x.shape) < 2 or x.shape[-1] != x.shape[-2]:
        raise ShapeError(f"shape {list(x.shape)} is not one of square matrices")
    base, left = (inv(x), -n) if n < 0 else (x, n)
    result = None
    while left:
        if left & 1:
            result = base if result is None else matmul(result, base)
        left >>= 1
        if left:
            base = matmul(base, base)
    return expand(identity(x), x.shape) if result is None else result
