"""Generalized inverses of matrices, by singular values, and solutions in the sense of least squares.

A machine with code of its own solves by reflections where the rank is beyond doubt, which is several times as quick.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from eshkol.errors import ShapeError, TensorError
from eshkol.ops import shapes
from eshkol.ops.contraction import matmul, tensor, turned
from eshkol.ops.creation import full
from eshkol.ops.decompositions import svd_with_pivots
from eshkol.ops.dtypes import promote
from eshkol.ops.elementwise import cast, where
from eshkol.ops.linalg import with_columns
from eshkol.ops.matrices import (
    GROUP,
    KINDS,
    adjoint,
    batch_alone,
    batch_pair,
    both,
    conditioned,
    lapack,
    matrices,
    spectrum,
)
from eshkol.ops.movement import reshape
from eshkol.ops.reductions import max_
from eshkol.ops.row import NATIVE, Aval, Draw, HasAval, Jvp, Parts, Value, composite, primitive, sample


class Cutoff(NamedTuple):
    rtol: float | None


def _infer_pinv(a: Cutoff, x: HasAval) -> Aval:
    batch, rows, columns = matrices(x)
    return Aval((*batch, columns, rows), lapack(x.dtype))


def _pinv(a: Cutoff, x: Any) -> Any:
    with spectrum(x):
        return np.linalg.pinv(x, rcond=_cutoff(a, x, float(np.finfo(x.dtype).eps)))


def _cutoff(a: Cutoff, x: Any, epsilon: float) -> float:
    return a.rtol if a.rtol is not None else max(x.shape[-2:]) * epsilon


def _by_values(a: Cutoff, x: Any) -> Any:
    """By singular values and their vectors."""
    batch, rows, columns = matrices(x)
    if not rows or not columns:
        return full(x, (*batch, columns, rows), 0)
    u, s, vh, _ = svd_with_pivots(x)
    kept = s > max_(s, -1, keepdims=True) * _cutoff(a, x, x.dtype.epsilon)
    inverses = where(kept, 1 / where(kept, s, 1), 0)
    across = cast(reshape(inverses, (*batch, 1, inverses.shape[-1])), x.dtype)
    return matmul(adjoint(vh) * across, adjoint(u))


def _jvp_pinv(a: Cutoff, r: Any, inputs: Any, tangents: Any) -> Any:
    """Of Golub and Pereyra, for a rank that stays."""
    (x,), (dx,) = inputs, tangents
    dh, rh = adjoint(dx), adjoint(r)
    tangent = -matmul(matmul(r, dx), r)
    if x.shape[-2] > 0 and x.shape[-1] > 0:
        left = matmul(matmul(r, rh), dh)
        right = matmul(dh, matmul(rh, r))
        tangent = tangent + (left - matmul(matmul(left, x), r)) + (right - matmul(r, matmul(x, right)))
    return tangent


_any_samples = both(
    lambda kind: sample(conditioned(3, 2, kind=kind)), lambda kind: sample(conditioned(2, 3, kind=kind)),
    lambda kind: sample(conditioned(2, 2, 2, kind=kind)),
)  # fmt: skip


@primitive(
    group=GROUP, at_once=True, dtypes=KINDS, infer=_infer_pinv, reference=_pinv, lower=Parts(_by_values),
    derivative=Jvp(_jvp_pinv),
    batch=batch_alone("pinv"), tolerance=4.0, samples=(*_any_samples, sample(conditioned(3, 2), rtol=0.01)),
)  # fmt: skip
def pinv(x: Value, rtol: float | None = None) -> Cutoff:
    """The pseudo-inverse, where singular values up to rtol times the greatest count as 0; derivatives keep the rank.

    By default rtol is the greater extent of the matrix times the epsilon of its dtype.
    """
    return _cutoff_of(rtol)


def _cutoff_of(rtol: float | None) -> Cutoff:
    if rtol is not None and not 0 <= rtol < 1:
        raise TensorError(f"rtol={rtol} is not between 0 and 1")
    return Cutoff(None if rtol is None else float(rtol))


# --- least squares --------------------------------------------------------------------------------


def _infer_lstsq(a: Cutoff, x: HasAval, b: HasAval) -> Aval:
    batch, rows, columns = matrices(x)
    others, equations, sides = matrices(b)
    if equations != rows:
        raise ShapeError(
            f"the system {list(x.shape)} has {rows} equations, the right side {list(b.shape)} has {equations}"
        )
    return Aval((*shapes.broadcast(batch, others), columns, sides), lapack(x.dtype))


def _nearest(a: Cutoff, x: Any, b: Any) -> Any:
    return _pinv(a, x) @ b


def nearest_by_inverse(a: Cutoff, x: Any, b: Any) -> Any:
    """For machines that have nothing else."""
    return matmul(x.apply(pinv, (x,), a), b)


def _jvp_lstsq(a: Cutoff, r: Any, inputs: Any, tangents: Any) -> Any:
    """As of `pinv`, times the right sides."""
    (x, b), (dx, db) = inputs, tangents
    found = None if db is None else x.apply(matrix_lstsq, (x, db), a)
    if dx is None or not x.shape[-2] or not x.shape[-1]:
        return found
    inverse, dh = x.apply(pinv, (x,), a), adjoint(dx)
    ih = adjoint(inverse)
    wide = matmul(dh, matmul(ih, r))
    tangent = matmul(inverse, matmul(ih, matmul(dh, b - matmul(x, r)))) - matmul(inverse, matmul(dx, r))
    tangent = tangent + (wide - matmul(inverse, matmul(x, wide)))
    return tangent if found is None else found + tangent


def _transpose_lstsq(a: Cutoff, ct: Any, linear: Any, inputs: Any) -> Any:
    x = turned(inputs[0])
    return None, x.apply(matrix_lstsq, (x, ct), a)


@primitive(
    group=GROUP, at_once=True, promote="common", dtypes=KINDS, infer=_infer_lstsq, reference=_nearest, lower=NATIVE,
    method=False, derivative=Jvp(_jvp_lstsq, _transpose_lstsq), batch=batch_pair("matrix_lstsq"), tolerance=16.0,
    samples=both(
        lambda kind: sample(conditioned(4, 2, kind=kind), Draw((4, 2), kind=kind)),
        lambda kind: sample(conditioned(2, 1, 2, 3, kind=kind), Draw((3, 2, 1), kind=kind)),
    ),
)  # fmt: skip
def matrix_lstsq(x: Value, b: Value, rtol: float | None = None) -> Cutoff:
    """The shortest matrix that brings x · it nearest to the matrix b; `lstsq` takes vectors too."""
    return _cutoff_of(rtol)


def _lstsq(x: Any, b: Any, rtol: float | None = None) -> Any:
    if x.ndim == 2:
        return np.linalg.lstsq(x, b, rcond=rtol)[0]
    return np.stack([np.linalg.lstsq(one, other, rcond=rtol)[0] for one, other in zip(x, b, strict=True)])


@composite(
    group=GROUP, reference=_lstsq, dtypes=KINDS, scheme=("lstsq",), tolerance=16.0,
    samples=both(
        lambda kind: sample(conditioned(4, 2, kind=kind), Draw((4, 2), kind=kind)),
        lambda kind: sample(conditioned(2, 3, kind=kind), Draw((2,), kind=kind)),
        lambda kind: sample(conditioned(2, 3, 2, kind=kind), Draw((2, 3, 1), kind=kind)),
    ),
)  # fmt: skip
def lstsq(x: Value, b: Value, rtol: float | None = None) -> Any:
    """The shortest solution that brings x · solution nearest to b in the sense of least squares; rtol as in `pinv`."""
    b = tensor(b, x)
    common = promote(x.dtype, b.dtype)
    if common is not x.dtype:  # the digits of b count; what is 0 in x is known by the digits of x alone
        _, rows, columns = matrices(x)
        rtol = max(rows, columns) * lapack(x.dtype).epsilon if rtol is None else rtol
        x = cast(x, common)
    return with_columns(x, b, lambda columns: matrix_lstsq(x, columns, rtol))
