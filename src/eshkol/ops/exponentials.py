"""Exponentials of matrices and their derivatives.

Each matrix is halved until its norm is so small that a polynomial of Taylor's is its exponential (to a backward error
of half a unit in the last place, in the manner of Al-Mohy and Higham), and that is squared as often. A derivative along
a direction goes along as the other half of a pair, by the product rule. The polynomial is said once, for arrays and for
nodes: graphs are compiled with what `schedule/rewrite/exponentials.py` makes of these rows, the reference is NumPy's.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from eshkol.errors import ShapeError
from eshkol.ops import dtypes, shapes
from eshkol.ops.contraction import turned
from eshkol.ops.creation import full
from eshkol.ops.dtypes import DType
from eshkol.ops.joining import along, concatenate
from eshkol.ops.matrices import GROUP, KINDS, batch_alone, batch_pair, both, same_square, square
from eshkol.ops.movement import expand
from eshkol.ops.row import NATIVE, Aval, Draw, HasAval, Jvp, Value, primitive, sample


class Polynomial(NamedTuple):
    """Taylor's polynomial of the exponential up to a degree, by so many powers, for norms up to a bound."""

    degree: int
    powers: int
    norm: float


# The norm at which log(e^-x T(x)) is half a unit in the last place of x, by the absolute values of its series.
_POLYNOMIALS = {dtypes.float32: Polynomial(12, 4, 1.4616), dtypes.float64: Polynomial(20, 5, 1.4382)}


def polynomial_for(dtype: DType) -> Polynomial:
    """The polynomial that numbers of a dtype need."""
    return _POLYNOMIALS[dtype.real]


def times(x: Sequence[Any], y: Sequence[Any]) -> list[Any]:
    """The product of matrices, each alone or with its derivative."""
    return [x[0] @ y[0]] if len(x) == 1 else [x[0] @ y[0], x[0] @ y[1] + x[1] @ y[0]]


def small_exponential(x: Sequence[Any], one: Any, chosen: Polynomial) -> list[Any]:
    """e^x of small matrices, in the manner of Paterson and Stockmeyer: in one power, by coefficients of the others."""
    count, powers = chosen.powers, [list(x)]
    for k in range(2, count + 1):
        powers.append(times(powers[k // 2 - 1], powers[k - k // 2 - 1]))
    total = [y * (1 / math.factorial(chosen.degree)) for y in powers[-1]]
    for start in range(chosen.degree - count, -1, -count):
        if start < chosen.degree - count:
            total = times(powers[-1], total)
        for k in range(count - 1, 0, -1):  # the smallest first
            total = [z + y * (1 / math.factorial(start + k)) for z, y in zip(total, powers[k - 1], strict=True)]
        total[0] = total[0] + one * (1 / math.factorial(start))
    return total


def _exponential(*x: Any) -> list[Any]:
    """e^x of arrays, and its derivative along a second array."""
    value = x[0]
    if not value.size:
        return list(x)
    chosen = polynomial_for(dtypes.of(value.dtype))
    with np.errstate(all="ignore"):
        norm = np.abs(value).sum(-2).max(-1)
        needed = np.ceil(np.log2(np.maximum(norm / chosen.norm, 1)))
        halvings = np.where(np.isfinite(norm), needed, 0)[..., None, None]
        scale = (2.0**-halvings).astype(value.real.dtype)
        found = small_exponential([y * scale for y in x], np.eye(value.shape[-1], dtype=value.dtype), chosen)
        for k in range(int(halvings.max())):
            squares = zip(found, times(found, found), strict=True)
            found = [np.where(k < halvings, square, before) for before, square in squares]
    return found


def _expm(a: None, x: Any) -> Any:
    return _exponential(x)[0]


def _jvp_expm(a: None, r: Any, inputs: Any, tangents: Any) -> Any:
    return expm_frechet(inputs[0], tangents[0])


@primitive(
    group=GROUP, dtypes=KINDS, infer=same_square, reference=_expm, lower=NATIVE, derivative=Jvp(_jvp_expm),
    batch=batch_alone("expm"), aliases=("matrix_exp",), tolerance=8.0,
    samples=both(
        lambda kind: sample(Draw((2, 2), kind=kind)), lambda kind: sample(Draw((2, 3, 3), kind=kind)),
        lambda kind: sample(Draw((0, 0), kind=kind)),
    ),
)  # fmt: skip
def expm(x: Value) -> None:
    """The exponential of square matrices: the sum of their powers over factorials."""


def _infer_frechet(a: None, x: HasAval, direction: HasAval) -> Aval:
    square(x)
    if x.shape[-2:] != direction.shape[-2:]:
        raise ShapeError(f"the direction {list(direction.shape)} is not of the shape of {list(x.shape)}")
    return Aval(shapes.broadcast(x.shape, direction.shape), x.dtype)


def _frechet(a: None, x: Any, direction: Any) -> Any:
    return _exponential(*np.broadcast_arrays(x, direction))[1]


def _blocks(x: Any, direction: Any) -> Any:
    """The matrices whose functions have the derivative of the function of x along the direction in a corner."""
    return concatenate([concatenate([x, direction], -1), concatenate([full(x, x.shape, 0), x], -1)], -2)


def _jvp_frechet(a: None, r: Any, inputs: Any, tangents: Any) -> Any:
    """r is a corner of expm of blocks, so its derivative is that corner of the derivative."""
    (x, direction), (dx, ddirection) = inputs, tangents
    if dx is None:
        return expm_frechet(x, ddirection)
    x, direction = (expand(y, r.shape) for y in (x, direction))
    n = x.shape[-1]
    moved = _blocks(expand(dx, r.shape), full(x, r.shape, 0) if ddirection is None else expand(ddirection, r.shape))
    whole = expm_frechet(_blocks(x, direction), moved)
    return along(along(whole, r.ndim - 2, 0, n), r.ndim - 1, n, 2 * n)


def _transpose_frechet(a: None, ct: Any, linear: Any, inputs: Any) -> Any:
    return None, expm_frechet(turned(inputs[0]), ct)


@primitive(
    group=GROUP, promote="common", dtypes=KINDS, infer=_infer_frechet, reference=_frechet, lower=NATIVE, method=False,
    derivative=Jvp(_jvp_frechet, _transpose_frechet), batch=batch_pair("expm_frechet"), tolerance=8.0,
    samples=both(lambda kind: sample(Draw((2, 2), kind=kind), Draw((2, 2), kind=kind))),
)  # fmt: skip
def expm_frechet(x: Value, direction: Value) -> None:
    """The derivative of `expm` at x along a direction, in which it is linear."""
