"""Generalized inverses of matrices, and solutions in the sense of least squares: by singular values."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from eshkol.errors import TensorError
from eshkol.ops.contraction import matmul, tensor
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
    both,
    conditioned,
    lapack,
    matrices,
    spectrum,
)
from eshkol.ops.movement import reshape
from eshkol.ops.reductions import max_
from eshkol.ops.row import Aval, Draw, HasAval, Jvp, Parts, Value, composite, primitive, sample


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
    if rtol is not None and not 0 <= rtol < 1:
        raise TensorError(f"rtol={rtol} is not between 0 and 1")
    return Cutoff(None if rtol is None else float(rtol))


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
    return with_columns(x, b, lambda columns: matmul(pinv(x, rtol), columns))
