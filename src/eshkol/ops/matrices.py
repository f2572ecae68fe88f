"""What the rows of linear algebra share: checks of shapes and dtypes, parts of matrices, batch rules, samples.

Matrices stand in the last two axes, and everything in front is a batch. LAPACK computes in float32, float64 and complex
numbers, so rows under test name the kind "complex", and samples draw real matrices beside complex ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from eshkol.errors import DTypeError, ShapeError, TensorError
from eshkol.ops.contraction import turned
from eshkol.ops.creation import iota
from eshkol.ops.dtypes import DType
from eshkol.ops.elementwise import cast, conj, equal, where
from eshkol.ops.movement import align
from eshkol.ops.reductions import sum_
from eshkol.ops.row import TABLE, Aval, Draw, HasAval, Sample, Shape

GROUP = "linear algebra"
KINDS = ("complex",)


# --- checks ---------------------------------------------------------------------------------------


def lapack(dtype: DType) -> DType:
    """The dtype itself, if LAPACK has it."""
    if not dtype.differentiable or dtype.bits < 32:
        raise DTypeError(
            f"linear algebra of {dtype} is not there: it is computed in float32, float64 or complex numbers",
            hint="cast first: x.astype(ek.float32)",
        )
    return dtype


def matrices(x: HasAval) -> tuple[Shape, int, int]:
    """The batch, and how many rows and columns the matrices have."""
    if len(x.shape) < 2:
        raise ShapeError(f"shape {list(x.shape)} is not a matrix", hint="matrices stand in the last two axes")
    return x.shape[:-2], x.shape[-2], x.shape[-1]


def square(x: HasAval) -> tuple[Shape, int]:
    """The batch, and how large the square matrices are."""
    batch, rows, columns = matrices(x)
    if rows != columns:
        raise ShapeError(f"the matrices are {rows} by {columns}, not square", hint="lstsq and pinv take any shape")
    lapack(x.dtype)
    return batch, rows


def same_square(a: Any, x: HasAval) -> Aval:
    """The infer rule of what makes a square matrix of a square matrix."""
    square(x)
    return Aval(x.shape, x.dtype)


@contextmanager
def refusing(problem: str, hint: str) -> Iterator[None]:
    """NumPy's complaint about a matrix as an error of ours."""
    try:
        yield
    except np.linalg.LinAlgError:
        raise TensorError(problem, hint=hint) from None


@contextmanager
def spectrum(x: Any) -> Iterator[None]:
    """Singular values and eigenvalues are computed in here; of NaN and infinities LAPACK may make anything."""
    if not np.isfinite(x).all():
        raise TensorError("a matrix holds NaN or infinities", hint="find where they come from with check_nan")
    with refusing("singular values or eigenvalues were not found", "scale the matrix"):
        yield


# --- parts of matrices ----------------------------------------------------------------------------


def adjoint(x: Any) -> Any:
    """The conjugate transpose of the matrices."""
    return conj(turned(x)) if x.dtype.is_complex else turned(x)


def hermitian(x: Any) -> Any:
    """The Hermitian part of the matrices."""
    return (x + adjoint(x)) * 0.5


def places(x: Any) -> tuple[Any, Any]:
    """The row and the column of each element of a matrix."""
    return iota.on(x, x.shape[-2:], 0), iota.on(x, x.shape[-2:], 1)


def identity(x: Any) -> Any:
    """The identity matrix of the shape and dtype of the last two axes of x."""
    return cast(equal(*places(x)), x.dtype)


def diagonal_of(x: Any) -> Any:
    """The main diagonals."""
    return sum_(where(equal(*places(x)), x, 0), -1)


def lower_of(x: Any, strict: bool = False) -> Any:
    """What is on and under the main diagonal (only under it, if strict)."""
    row, column = places(x)
    return where(row > column if strict else row >= column, x, 0)


def upper_of(x: Any, strict: bool = False) -> Any:
    """What is on and over the main diagonal (only over it, if strict)."""
    row, column = places(x)
    return where(row < column if strict else row <= column, x, 0)


# --- batches and samples --------------------------------------------------------------------------


def batch_alone(name: str) -> Callable[..., Any]:
    """The batch rule of an op with one input, whose leading axes are batches already."""
    return lambda a, inputs, batched: inputs[0].apply(TABLE[name], inputs, a)


def batch_pair(name: str) -> Callable[..., Any]:
    """The batch rule of an op of two matrices, whose leading axes broadcast."""
    return lambda a, inputs, batched: inputs[0].apply(TABLE[name], align(inputs, batched), a)


def noise(rng: Any, *shape: int) -> Any:
    """Random complex numbers, of which a real dtype takes the real part."""
    return rng.uniform(-1, 1, shape) + 1j * rng.uniform(-1, 1, shape)


def conditioned(*shape: int, kind: str = "any") -> Draw:
    """Matrices that are far from singular."""
    return Draw(shape, kind=kind, make=lambda rng: noise(rng, *shape) + 3 * np.eye(shape[-2], shape[-1]))


def definite(*shape: int, kind: str = "any") -> Draw:
    """Hermitian matrices with eigenvalues well above 0 and apart from each other."""

    def make(rng: Any) -> Any:
        x = noise(rng, *shape) * 0.5
        return x @ np.conj(np.swapaxes(x, -1, -2)) + np.diag(1.0 + 1.5 * np.arange(shape[-1]))

    return Draw(shape, kind=kind, make=make)


def triangle(part: Callable[..., Any], n: int, kind: str) -> Draw:
    """A triangular matrix that is far from singular."""
    return Draw((n, n), kind=kind, make=lambda rng: part(noise(rng, n, n) + 3 * np.eye(n)))


def both(*makes: Callable[[str], Sample]) -> tuple[Sample, ...]:
    """Each sample with real and with complex matrices."""
    return tuple(make(kind) for make in makes for kind in ("float", "any"))
