"""Linear algebra as native code of plans: `runtime/native/linear/`, by the names of ops.

Comes in: an op's attributes, and what its inputs and results are like. Goes out: the function that computes it, its
record, and how what it finds wrong is told. Small matrices of a batch are shared among the threads; the products that
large ones are made of are shared by themselves.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable, Sequence
from math import prod
from typing import Any

from eshkol.atlas.sequence import NativeCode
from eshkol.errors import AllocationFailed, EshkolError, TensorError
from eshkol.runtime.scheduler import default_scheduler

FINE = (1 << 64) - 1  # these stand in linear.h, and so do the order of the dtypes and that of the record's words
NO_MEMORY = FINE - 1
DTYPES = {"float32": 0, "float64": 1, "complex64": 2, "complex128": 3}
OUTS, INS = (2, 3, 4), (5, 6)
LOWER, TRANSPOSE, UNIT, UPPER = 1, 2, 4, 1
ENOUGH = 1 << 15  # multiplications that are worth a turn of a loop

Told = Callable[[int], tuple[str, str]]  # what a fault means, and what to do about it
Make = Callable[[Any, Sequence[Any], Sequence[Any]], NativeCode | None]


def _code(
    name: str, inputs: Sequence[Any], outs: int, batch: tuple[int, ...], size: tuple[int, int], work: int,
    told: Told | None = None, flags: int = 0,
) -> NativeCode | None:  # fmt: skip
    """The code of a function over the matrices of a batch, each of a size and so much work."""
    dtype = DTYPES.get(inputs[0].dtype.name)
    if dtype is None:
        return None
    pool = default_scheduler().cell
    words = [FINE, 0, 0, 0, 0, 0, 0, ctypes.addressof(pool), dtype, *size, flags, len(batch)]
    strides = [_strides(x.shape[:-2], len(batch)) for x in inputs]
    for axis, extent in enumerate(batch):
        words += [extent, *(s[axis] for s in strides), *(0 for _ in range(2 - len(strides)))]

    def fault(code: int) -> EshkolError:
        if code == NO_MEMORY or told is None:
            return AllocationFailed(f"no memory to work on matrices of {size[0]} by {size[1]}")
        message, hint = told(code)
        return TensorError(message, hint=hint)

    return NativeCode(
        f"eshkol_linear_{name}", prod(batch), max(1, ENOUGH // max(work, 1)), struct.pack(f"{len(words)}Q", *words),
        OUTS[:outs], INS[: len(inputs)], fault,
    )  # fmt: skip


def _strides(batch: Sequence[int], rank: int) -> list[int]:
    """How many matrices lie between the elements of each axis of a batch of so many axes: 0 where it broadcasts."""
    found, apart = [0] * rank, 1
    for k in range(1, len(batch) + 1):
        found[-k] = 0 if batch[-k] == 1 else apart
        apart *= batch[-k]
    return found


def _solve(a: Any, inputs: Sequence[Any], outs: Sequence[Any]) -> NativeCode | None:
    *batch, n, columns = outs[0].shape
    return _code(
        "solve", inputs, 1, tuple(batch), (n, columns), n * n * (n + 3 * columns) // 3,
        lambda _: ("a matrix is singular: its system has no one solution", "lstsq gives the nearest solution"),
    )  # fmt: skip


def _triangle(a: Any, inputs: Sequence[Any], outs: Sequence[Any]) -> NativeCode | None:
    *batch, n, columns = outs[0].shape
    return _code(
        "triangle", inputs, 1, tuple(batch), (n, columns), n * n * columns // 2,
        lambda code: (
            f"a triangular matrix is singular: element {code % n} of its diagonal is 0",
            "lstsq gives the nearest solution",
        ),
        LOWER * a.lower | TRANSPOSE * a.transpose | UNIT * a.unit_diagonal,
    )  # fmt: skip


def _cholesky(a: Any, inputs: Sequence[Any], outs: Sequence[Any]) -> NativeCode | None:
    *batch, n, _ = outs[0].shape
    return _code(
        "cholesky", inputs, 1, tuple(batch), (n, n), n**3 // 6,
        lambda _: ("a matrix is not positive definite", "add a small multiple of the identity, or use eigh"),
        UPPER * a.upper,
    )  # fmt: skip


def _factored(name: str, results: int) -> Make:
    """A function of the factors L and U of matrices."""

    def make(a: Any, inputs: Sequence[Any], outs: Sequence[Any]) -> NativeCode | None:
        *batch, rows, columns = inputs[0].shape
        return _code(
            name, inputs, results, tuple(batch), (rows, columns), rows * columns * min(rows, columns) // 3
        )  # fmt: skip

    return make


CODES: dict[str, Make] = {
    "matrix_solve": _solve, "triangular_matrix_solve": _triangle, "cholesky": _cholesky, "det": _factored("det", 1),
    "slogdet": _factored("slogdet", 2), "lu_rows": _factored("lu", 3),
}  # fmt: skip
