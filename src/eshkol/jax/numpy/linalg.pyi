"""The names of eshkol.jax.numpy.linalg. Written by `make generate` from the tables of the package (`cli/stubs.py`)."""

import builtins
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Literal, TypeAlias, overload

from eshkol.ops.dtypes import DType
from eshkol.tensors.value import Tensor

from eshkol.jax.functions.linalg import cond as cond
from eshkol.jax.functions.linalg import matrix_transpose as matrix_transpose
from eshkol.jax.functions.linalg import multi_dot as multi_dot
from eshkol.jax.functions.linalg import norm as norm
from eshkol.jax.functions.linalg import svd as svd
from eshkol.tensors.methods import TensorLike

__all__ = ["cholesky", "cond", "cross", "det", "diagonal", "eig", "eigh", "eigvals", "eigvalsh", "inv", "lstsq", "matmul", "matrix_norm", "matrix_power", "matrix_rank", "matrix_transpose", "multi_dot", "norm", "outer", "pinv", "qr", "slogdet", "solve", "svd", "svdvals", "tensordot", "trace", "vecdot", "vector_norm"]

def cholesky(x: TensorLike, upper: builtins.bool = False) -> Tensor:
    """The lower triangular matrix (or the upper one) whose product with its adjoint is x, read as (x + xᴴ)/2.

    Arguments:
        x: a tensor
        upper: whether the upper triangle is meant
    """
    ...
def cross(x: TensorLike, y: TensorLike, axis: builtins.int = -1) -> Tensor:
    """The cross product of vectors of three along an axis, the others broadcasting.

    Arguments:
        x: a tensor
        y: a tensor of the same shape, or one that broadcasts with it
        axis: the axis; negative numbers count from the last one
    """
    ...
def det(x: TensorLike) -> Tensor:
    """The determinant of square matrices; its derivative is there for singular ones too.

    Arguments:
        x: a tensor
    """
    ...
def diagonal(x: TensorLike, offset: builtins.int = 0, axis1: builtins.int = 0, axis2: builtins.int = 1) -> Tensor:
    """The diagonal of the matrices in two axes, as the last axis of the result; offset > 0 is above the main one.

    Arguments:
        x: a tensor
        offset: which diagonal: 0 is the main one, positive numbers are above it
        axis1: the first axis
        axis2: the second axis
    """
    ...
def eig(x: TensorLike) -> builtins.tuple[Tensor, Tensor]:
    """The eigenvalues of square matrices, in LAPACK's order, and eigenvectors of length 1 in columns; always complex.

    The first component of at least half the greatest modulus in each vector is real and positive.

    Arguments:
        x: a tensor
    """
    ...
def eigh(x: TensorLike) -> builtins.tuple[Tensor, Tensor]:
    """The eigenvalues of a Hermitian matrix, rising, and its eigenvectors in columns; x is read as (x + xᴴ)/2.

    The first component of at least half the greatest modulus in each vector is real and positive.

    Arguments:
        x: a tensor
    """
    ...
def eigvals(x: TensorLike) -> Tensor:
    """The eigenvalues of square matrices, in LAPACK's order; always complex.

    Arguments:
        x: a tensor
    """
    ...
def eigvalsh(x: TensorLike) -> Tensor:
    """The eigenvalues of a Hermitian matrix, rising; x is read as (x + xᴴ)/2.

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
def lstsq(x: TensorLike, b: TensorLike, rtol: builtins.float | None = None) -> Tensor:
    """The shortest solution that brings x · solution nearest to b in the sense of least squares; rtol as in `pinv`.

    Arguments:
        x: a tensor
        b: the right side
        rtol: how large a difference is allowed, relative to the size of the numbers
    """
    ...
def matmul(x: TensorLike, y: TensorLike) -> Tensor:
    """The matrix product as NumPy's: vectors lose their axis, batches broadcast; integers wrap in their own dtype.

    Arguments:
        x: a tensor
        y: a tensor of the same shape, or one that broadcasts with it
    """
    ...
def matrix_norm(
    x: TensorLike,
    ord: builtins.int | builtins.float | builtins.str = 'fro',
    axis: builtins.tuple[builtins.int, builtins.int] = ...,
    keepdims: builtins.bool = False,
) -> Tensor:
    """A norm of matrices: "fro", "nuc" (sum of singular values), ±1 (columns), ±2 (singular values), ±inf (rows).

    Arguments:
        x: a tensor
        ord: which norm; see above
        axis: the axis or axes; negative numbers count from the last one
        keepdims: whether axes that are reduced stay, with extent 1
    """
    ...
def matrix_power(x: TensorLike, n: builtins.int) -> Tensor:
    """The product of n equal square matrices; negative powers are those of the inverse.

    Arguments:
        x: a tensor
        n: how many factors
    """
    ...
def matrix_rank(x: TensorLike, rtol: builtins.float | None = None) -> Tensor:
    """How many singular values are above rtol times the greatest; rtol as in `pinv`.

    Arguments:
        x: a tensor
        rtol: how large a difference is allowed, relative to the size of the numbers
    """
    ...
def outer(x: TensorLike, y: TensorLike) -> Tensor:
    """Every element of x times every element of y: a matrix.

    Arguments:
        x: a tensor
        y: a tensor of the same shape, or one that broadcasts with it
    """
    ...
def pinv(x: TensorLike, rtol: builtins.float | None = None) -> Tensor:
    """The pseudo-inverse, where singular values up to rtol times the greatest count as 0; derivatives keep the rank.

    By default rtol is the greater extent of the matrix times the epsilon of its dtype.

    Arguments:
        x: a tensor
        rtol: how large a difference is allowed, relative to the size of the numbers
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
def slogdet(x: TensorLike) -> builtins.tuple[Tensor, Tensor]:
    """The sign (of complex numbers, the phase) of the determinant and the logarithm of its modulus: 0 and -∞ for 0.

    Arguments:
        x: a tensor
    """
    ...
def solve(x: TensorLike, b: TensorLike) -> Tensor:
    """What x must be multiplied with to give b: a vector if b has one axis, else matrices; batches broadcast.

    Arguments:
        x: a tensor
        b: the right side
    """
    ...
def svdvals(x: TensorLike) -> Tensor:
    """The singular values, falling.

    Arguments:
        x: a tensor
    """
    ...
def tensordot(
    x: TensorLike,
    y: TensorLike,
    axes: builtins.int | builtins.tuple[builtins.int | Sequence[builtins.int], builtins.int | Sequence[builtins.int]] = 2,
) -> Tensor:
    """The sum of products over axes: the last `axes` of x with the first of y, or the axes paired by two lists.

    Arguments:
        x: a tensor
        y: a tensor of the same shape, or one that broadcasts with it
        axes: the axis or axes; negative numbers count from the last one
    """
    ...
def trace(x: TensorLike, offset: builtins.int = 0, axis1: builtins.int = 0, axis2: builtins.int = 1) -> Tensor:
    """The sum of a diagonal of the matrices in two axes.

    Arguments:
        x: a tensor
        offset: which diagonal: 0 is the main one, positive numbers are above it
        axis1: the first axis
        axis2: the second axis
    """
    ...
def vecdot(x: TensorLike, y: TensorLike) -> Tensor:
    """The sum of conj(x) · y along the last axis, batches in front broadcasting.

    Arguments:
        x: a tensor
        y: a tensor of the same shape, or one that broadcasts with it
    """
    ...
def vector_norm(
    x: TensorLike,
    p: builtins.float | builtins.str = 2,
    axis: builtins.int | Sequence[builtins.int] | None = None,
    keepdims: builtins.bool = False,
) -> Tensor:
    """The p-norm of the elements along axes (all of them by default; of a matrix, "fro" is 2).

    p is any number: 0 counts what is not 0, inf and -inf take the greatest and least modulus. Where the norm is 0, so
    is its derivative.

    Arguments:
        x: a tensor
        p: the order of the norm
        axis: the axis or axes; negative numbers count from the last one
        keepdims: whether axes that are reduced stay, with extent 1
    """
    ...
