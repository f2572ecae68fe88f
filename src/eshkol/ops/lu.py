"""Matrices as a lower triangle with ones on its diagonal times an upper one, after an exchange of rows.

One primitive gives both triangles in one matrix, the exchanges as LAPACK tells them (for k = 0, 1, …: row k with row
pivots[k] - 1) and the rows in the order that they end in; what is solved with it are triangles.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from eshkol.errors import DTypeError, ShapeError, TensorError
from eshkol.ops import dtypes, shapes
from eshkol.ops.contraction import matmul, tensor, turned
from eshkol.ops.creation import iota
from eshkol.ops.elementwise import cast, equal
from eshkol.ops.indexing import take
from eshkol.ops.joining import along
from eshkol.ops.linalg import triangular_matrix_solve
from eshkol.ops.matrices import (
    GROUP,
    KINDS,
    batch_alone,
    both,
    conditioned,
    identity,
    lapack,
    lower_of,
    matrices,
    noise,
    square,
    upper_of,
)
from eshkol.ops.matrices import adjoint as conjugate_transpose
from eshkol.ops.movement import expand, reshape
from eshkol.ops.padding import pad
from eshkol.ops.row import HOST, NATIVE, Aval, Draw, HasAval, Jvp, NoDerivative, Value, composite, primitive, sample
from eshkol.ops.sorting import argsort

# --- the primitive --------------------------------------------------------------------------------


def _infer_lu(a: None, x: HasAval) -> tuple[Aval, Aval, Aval]:
    batch, rows, columns = matrices(x)
    pivots = Aval((*batch, min(rows, columns)), dtypes.int32)
    return Aval(x.shape, lapack(x.dtype)), pivots, Aval((*batch, rows), dtypes.int64)


def _lu(a: None, x: Any) -> Any:
    from scipy.linalg import get_lapack_funcs

    (getrf,) = get_lapack_funcs(("getrf",), (x,))
    batch, (rows, columns) = x.shape[:-2], x.shape[-2:]
    factors, pivots = np.array(x), np.empty((*batch, min(rows, columns)), np.int32)
    for k in np.ndindex(batch):
        if rows and columns:
            factors[k], found, _ = getrf(x[k])
            pivots[k] = found + 1
    return factors, pivots, _rows_of(pivots, rows)


def _rows_of(pivots: Any, rows: int) -> Any:
    order = np.broadcast_to(np.arange(rows), (*pivots.shape[:-1], rows)).copy()
    for k in np.ndindex(pivots.shape[:-1]):
        for one, other in enumerate(pivots[k] - 1):
            order[k][[one, other]] = order[k][[other, one]]
    return order


def _jvp_lu(a: None, r: Any, inputs: Any, tangents: Any) -> Any:
    factors, _, order = r
    lower, upper = _lower(factors, whole=True), _upper(factors, whole=True)
    under = triangular_matrix_solve(lower, _in_order(tangents[0], order), unit_diagonal=True)
    inner = turned(triangular_matrix_solve(upper, turned(under), lower=False, transpose=True))
    return matmul(lower, lower_of(inner, strict=True)) + matmul(upper_of(inner), upper), None, None


def _in_order(x: Any, order: Any) -> Any:
    """The matrices with their rows in an order."""
    lead = len(order.shape) - 1
    return take(x, order, lead, lead)


def _lower(factors: Any, whole: bool = False) -> Any:
    """The lower triangle; as a whole square, with the identity where there is none of it."""
    rows, columns = factors.shape[-2:]
    found = lower_of(along(factors, factors.ndim - 1, 0, min(rows, columns)), strict=True)
    if whole and rows > columns:
        found = pad(found, [*[(0, 0)] * (factors.ndim - 1), (0, rows - columns)])
    return found + identity(found)


def _upper(factors: Any, whole: bool = False) -> Any:
    """The upper triangle; as a whole square, with the identity where there is none of it."""
    rows, columns = factors.shape[-2:]
    found = upper_of(along(factors, factors.ndim - 2, 0, min(rows, columns)))
    if not whole or columns <= rows:
        return found
    found = pad(found, [*[(0, 0)] * (factors.ndim - 2), (0, columns - rows), (0, 0)])
    return found + cast(iota.on(found, (columns, 1)) >= rows, found.dtype) * identity(found)


def _unequal(*shape: int, kind: str = "any") -> Draw:
    """Matrices whose pivots are far from any other number, so that a small change exchanges the same rows."""

    def make(rng: Any) -> Any:
        rows, columns = shape[-2:]
        return 0.5 * noise(rng, *shape) + 3 * np.eye(rows, columns)[np.roll(np.arange(rows), 1)]

    return Draw(shape, kind=kind, make=make)


_samples = both(
    lambda kind: sample(_unequal(3, 3, kind=kind)), lambda kind: sample(_unequal(2, 3, 2, kind=kind)),
    lambda kind: sample(_unequal(2, 4, kind=kind)), lambda kind: sample(Draw((0, 0), kind=kind)),
)  # fmt: skip


@primitive(
    gives="tuple[Tensor, Tensor, Tensor]",
    group=GROUP, dtypes=KINDS, infer=_infer_lu, reference=_lu, lower=NATIVE, method=False, derivative=Jvp(_jvp_lu),
    batch=batch_alone("lu_rows"), samples=_samples, tolerance=4.0,
)  # fmt: skip
def lu_rows(x: Value) -> None:
    """Both triangles of `lu` in one matrix, the exchanges of rows as in LAPACK, and which row of x stands where."""


class Rows(NamedTuple):
    rows: int


def _infer_rows(a: Rows, pivots: HasAval) -> Aval:
    if not pivots.dtype.is_integer:
        raise DTypeError(f"pivots are integers, not {pivots.dtype}", hint="take those that lu_factor gives")
    if not pivots.shape or pivots.shape[-1] > a.rows:
        raise ShapeError(f"pivots of shape {list(pivots.shape)} are not those of matrices of {a.rows} rows")
    return Aval((*pivots.shape[:-1], a.rows), dtypes.int64)


def strange_pivots(rows: int) -> tuple[str, str]:
    """What is said of exchanges with rows that are not there, and the hint."""
    return f"a pivot is not from 1 to {rows}", "take those that lu_factor gives"


def _exchanged(a: Rows, pivots: Any) -> Any:
    if pivots.size and not (pivots.min() >= 1 and pivots.max() <= a.rows):
        message, hint = strange_pivots(a.rows)
        raise TensorError(message, hint=hint)
    return _rows_of(pivots, a.rows)


@primitive(
    group=GROUP, dtypes=("int",), infer=_infer_rows, reference=_exchanged, lower=HOST, method=False,
    derivative=NoDerivative("rows are exchanged at once, not by and by"),
    batch=batch_alone("pivoted_rows"),
    samples=(
        sample(Draw((3,), kind="int", low=3, high=3), rows=3),
        sample(Draw((2, 2), kind="int", low=2, high=2), rows=4),
    ),
)  # fmt: skip
def pivoted_rows(pivots: Value, rows: int) -> Rows:
    """Which of so many rows stands where, after the exchanges that pivots tell."""
    return Rows(int(rows))


# --- what users call --------------------------------------------------------------------------------


def _numpy_factor(x: Any) -> Any:
    return _lu(None, x)[:2]


def _numpy_lu(x: Any) -> Any:
    factors, _, order = _lu(None, x)
    rows, columns = x.shape[-2:]
    k = min(rows, columns)
    exchange = (np.arange(rows)[:, None] == order[..., None, :]).astype(x.dtype)
    return exchange, np.tril(factors[..., :k], -1) + np.eye(rows, k, dtype=x.dtype), np.triu(factors[..., :k, :])


@composite(
    gives="tuple[Tensor, Tensor]",
    group=GROUP, reference=_numpy_factor, dtypes=KINDS, samples=_samples, tolerance=4.0, method=False,
)  # fmt: skip
def lu_factor(x: Value) -> Any:
    """(LU, pivots) for `lu_solve`: both triangles of `lu` in one matrix, and the exchanges of rows as in LAPACK."""
    return tuple(lu_rows(x))[:2]


@composite(
    gives="tuple[Tensor, Tensor, Tensor]",
    group=GROUP, reference=_numpy_lu, dtypes=KINDS, samples=_samples, tolerance=4.0, method=False,
)  # fmt: skip
def lu(x: Value) -> Any:
    """(P, L, U) with P · L · U = x: an exchange of rows, a lower triangle with ones on its diagonal, an upper one."""
    factors, _, order = lu_rows(x)
    rows = x.shape[-2]
    places = reshape(order, (*order.shape[:-1], 1, rows))
    exchange = cast(equal(iota.on(x, (rows, 1)), places), x.dtype)
    return exchange, _lower(factors), _upper(factors)


def _numpy_solve(factors: Any, pivots: Any, b: Any, left: bool = True, adjoint: bool = False) -> Any:
    n = factors.shape[-1]
    product = (np.tril(factors, -1) + np.eye(n, dtype=factors.dtype)) @ np.triu(factors)
    order = _rows_of(pivots, n)
    x = np.empty_like(product)
    for k in np.ndindex(product.shape[:-2]):
        x[k][order[k]] = product[k]
    x = np.conj(np.swapaxes(x, -1, -2)) if adjoint else x
    if left:
        return np.linalg.solve(x, b)
    return np.swapaxes(np.linalg.solve(np.swapaxes(x, -1, -2), np.swapaxes(b, -1, -2)), -1, -2)


@composite(
    group=GROUP, reference=_numpy_solve, dtypes=KINDS, tolerance=16.0, method=False,
    samples=both(
        lambda kind: sample(conditioned(3, 3, kind=kind), Draw((3,), kind="int", low=3, high=3),
                            Draw((3, 2), kind=kind)),
        lambda kind: sample(conditioned(2, 2, 2, kind=kind), Draw((2, 2), kind="int", low=2, high=2),
                            Draw((2, 2, 1), kind=kind), adjoint=True),
        lambda kind: sample(conditioned(2, 2, kind=kind), Draw((2,), kind="int", low=2, high=2),
                            Draw((3, 2), kind=kind), left=False),
    ),
)  # fmt: skip
def lu_solve(factors: Value, pivots: Value, b: Value, left: bool = True, adjoint: bool = False) -> Any:
    """What the matrix with these factors (of `lu_factor`) must be multiplied with to give b, from the left or right.

    With `adjoint` its conjugate transpose is meant.
    """
    batch, n = square(factors)
    b = tensor(b, factors)
    others, rows, columns = matrices(b)
    if (rows if left else columns) != n:
        raise ShapeError(
            f"the factors {list(factors.shape)} have {n} rows, the right side {list(b.shape)} does not fit"
        )
    if not left:
        return conjugate_transpose(lu_solve(factors, pivots, conjugate_transpose(b), True, not adjoint))
    common = shapes.broadcast(batch, others)
    order = expand(pivoted_rows(pivots, n), (*common, n))
    if adjoint:
        under = triangular_matrix_solve(conjugate_transpose(factors), b)
        found = triangular_matrix_solve(conjugate_transpose(factors), under, lower=False, unit_diagonal=True)
        return _in_order(found, argsort(order, -1))
    found = _in_order(expand(b, (*common, rows, columns)), order)
    return triangular_matrix_solve(factors, triangular_matrix_solve(factors, found, unit_diagonal=True), lower=False)
