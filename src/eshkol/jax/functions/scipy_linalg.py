"""What `jax.scipy.linalg` has beside rows of the op table: SciPy's arguments.

Comes in and goes out: tensors.
"""

from __future__ import annotations

from typing import Any

from eshkol.tensors import api as ek
from eshkol.tensors.value import Tensor


def cholesky(a: Any, lower: bool = False) -> Tensor:
    """The triangular factor; the upper one unless said, as in SciPy."""
    return ek.cholesky(a, not lower)


def cho_factor(a: Any, lower: bool = False) -> tuple[Any, bool]:
    """The triangular factor, and which it is, for `cho_solve`."""
    return cholesky(a, lower), lower


def cho_solve(c_and_lower: tuple[Any, bool], b: Any) -> Tensor:
    """The solution of a system by its Cholesky factor."""
    factor, lower = c_and_lower
    return ek.cholesky_solve(b, factor, not lower)


def solve_triangular(
    a: Any, b: Any, trans: int | str = 0, lower: bool = False, unit_diagonal: bool = False
) -> Tensor:  # fmt: skip
    """The solution of a system with one triangle of a matrix."""
    return ek.triangular_solve(a, b, lower, trans in (1, "T"), unit_diagonal)


def block_diag(*arrs: Any) -> Tensor:
    """A matrix with others along its diagonal."""
    parts = [ek.asarray(a).reshape((1,) * (2 - ek.asarray(a).ndim) + tuple(ek.asarray(a).shape)) for a in arrs]
    columns = sum(p.shape[1] for p in parts)
    rows, before = [], 0
    for p in parts:
        rows.append(ek.pad(p, ((0, 0), (before, columns - before - p.shape[1]))))
        before += p.shape[1]
    return ek.concatenate(rows)
