"""What `jnp.linalg` has beside rows of the op table.

Comes in and goes out: tensors.
"""

from __future__ import annotations

from typing import Any

from eshkol.tensors import api as ek
from eshkol.tensors.value import Tensor


def norm(x: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Tensor:
    """A norm of vectors along an axis, or of matrices along two."""
    x = ek.asarray(x)
    both = (isinstance(axis, tuple | list) and len(axis) == 2) or (axis is None and x.ndim == 2)
    if ord is not None and both:
        return ek.matrix_norm(x, ord, (-2, -1) if axis is None else tuple(axis), keepdims)
    return ek.norm(x, 2 if ord is None else ord, axis, keepdims)


def cond(x: Any, p: Any = None) -> Any:
    """The condition number."""
    return ek.condition_number(x) if p in (None, 2) else norm(x, p) * norm(ek.inv(x), p)


def multi_dot(arrays: Any) -> Tensor:
    """The product of several matrices, in a cheap order."""
    letters = "abcdefghijklmnopqrstuvwxyz"
    terms = ",".join(letters[k : k + 2] for k in range(len(arrays)))
    return ek.einsum(f"{terms}->a{letters[len(arrays)]}", *arrays)


def matrix_transpose(x: Any) -> Tensor:
    """The last two axes exchanged."""
    return ek.asarray(x).mT


def svd(a: Any, full_matrices: bool = True, compute_uv: bool = True) -> Any:
    """(U, s, Vᴴ); full matrices are the default, as in NumPy, and have no derivative."""
    return ek.svd(a, full_matrices, compute_uv)
