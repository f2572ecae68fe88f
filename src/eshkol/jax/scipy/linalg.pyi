"""The names of eshkol.jax.scipy.linalg. Written by `make generate` from the tables of the package (`cli/stubs.py`)."""

import builtins
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Literal, TypeAlias, overload

from eshkol.ops.dtypes import DType
from eshkol.tensors.value import Tensor

from eshkol.jax.functions.scipy_linalg import block_diag as block_diag
from eshkol.jax.functions.scipy_linalg import cho_factor as cho_factor
from eshkol.jax.functions.scipy_linalg import cho_solve as cho_solve
from eshkol.jax.functions.scipy_linalg import cholesky as cholesky
from eshkol.jax.functions.scipy_linalg import solve_triangular as solve_triangular
from eshkol.tensors.methods import TensorLike

__all__ = ["block_diag", "cho_factor", "cho_solve", "cholesky", "det", "expm", "inv", "qr", "solve", "solve_triangular", "svd"]

def det(x: TensorLike) -> Tensor:
    """The determinant of square matrices; its derivative is there for singular ones too.

    Arguments:
        x: a tensor
    """
    ...
def expm(x: TensorLike) -> Tensor:
    """The exponential of square matrices: the sum of their powers over factorials.

    Arguments:
        x: a tensor
    """
    ...
def inv(x: TensorLike) -> Tensor:
    """The inverse of square matrices; a singular one is an error.

    Arguments:
        x: a tensor
    """
    ...
@overload
def qr(x: TensorLike, mode: Literal['r']) -> Tensor:  # type: ignore[overload-overlap]
    ...
@overload
def qr(x: TensorLike, mode: builtins.str = 'reduced') -> builtins.tuple[Tensor, Tensor]:
    """(Q, R) with orthonormal columns in Q and an upper triangular R, with LAPACK's signs; only R in the mode "r".

    Arguments:
        x: a tensor
        mode: which way it is done; see above
    """
    ...
def solve(x: TensorLike, b: TensorLike) -> Tensor:
    """What x must be multiplied with to give b: a vector if b has one axis, else matrices; batches broadcast.

    Arguments:
        x: a tensor
        b: the right side
    """
    ...
@overload
def svd(x: TensorLike, full_matrices: builtins.bool = False, *, compute_uv: Literal[False]) -> Tensor:
    ...
@overload
def svd(
    x: TensorLike,
    full_matrices: builtins.bool = False,
    compute_uv: Literal[True] = True,
) -> builtins.tuple[Tensor, Tensor, Tensor]:
    """(U, s, Vᴴ) with x = U · diag(s) · Vᴴ, s falling; only s if compute_uv is False. Full matrices have no derivative.

    The first component of at least half the greatest modulus in each vector of U is real and positive.

    Arguments:
        x: a tensor
        full_matrices: whether U and V are square
        compute_uv: whether U and V are computed too
    """
    ...
@overload
def svd(
    x: TensorLike,
    full_matrices: builtins.bool = False,
    compute_uv: builtins.bool = True,
) -> builtins.tuple[Tensor, Tensor, Tensor] | Tensor:
    ...
