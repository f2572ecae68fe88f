"""Linear algebra as native code of plans: `runtime/native/linear/`, by the names of ops.

Comes in: an op's attributes, and what its inputs and results are like. Goes out: the function that computes it, its
record, and how what it finds wrong is told. Small matrices of a batch are shared among the threads; the products that
large ones are made of are shared by themselves.
"""

from __future__ import annotations

import ctypes
import struct
import sys
from collections.abc import Callable, Sequence
from functools import cache
from math import prod
from typing import Any

from eshkol.atlas.sequence import NativeCode
from eshkol.backends.cpu import lapack
from eshkol.errors import AllocationFailed, EshkolError, TensorError
from eshkol.runtime.library import native
from eshkol.runtime.scheduler import default_scheduler

FINE = (1 << 64) - 1  # as in linear.h
NO_MEMORY = FINE - 1
ENOUGH = 1 << 15  # multiplications that are worth a turn of a loop
SIDE_BY_SIDE = 16  # small matrices that native code works on together, at most; and the most rows of such a matrix
LARGE = 1 << 24  # rows × columns × the lesser of them of a matrix for which LAPACK's own threads are worth it
LARGEST = 1 << 14  # rows and columns of what LAPACK is given: it counts in 4 bytes what it needs to work in

SINGULAR = "a matrix is singular: its system has no one solution", "lstsq gives the nearest solution"
NOT_FINITE = "a matrix holds NaN or infinities", "find where they come from with check_nan"  # as the references say
NOT_FOUND = "singular values or eigenvalues were not found", "scale the matrix"

Told = Callable[[int], tuple[str, str]]  # what a fault means, and what to do about it
Make = Callable[[Any, Sequence[Any], Sequence[Any]], NativeCode | None]


class _Fact(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("value", ctypes.c_int64)]


@cache
def facts() -> dict[str, int]:
    """What linear.h says: at which word of a record something stands, which numbers dtypes and flags have."""
    first = _Fact.in_dll(native(), "eshkol_linear_facts")
    found, at = {}, ctypes.addressof(first)
    while (fact := _Fact.from_address(at)).name is not None:
        found[fact.name.decode()] = fact.value
        at += ctypes.sizeof(_Fact)
    return found


def _code(
    name: str, inputs: Sequence[Any], outs: int, batch: tuple[int, ...], size: tuple[int, int], work: int,
    told: Told | None = None, flags: int = 0, function: int = 0, threads: tuple[int, int] = (0, 0), sides: int = 0,
    cutoff: float = 0.0,
) -> NativeCode | None:  # fmt: skip
    """The code of a function over the matrices of a batch, each of a size and so much work."""
    known = facts()
    dtype = known.get(inputs[0].dtype.name)
    if dtype is None:
        return None
    words = [0] * known["batch"]
    words[0] = FINE
    values = {"lapack": function, "pool": ctypes.addressof(default_scheduler().cell), "dtype": dtype, "rows": size[0],
              "columns": size[1], "flags": flags, "sides": sides,
              "cutoff": int.from_bytes(struct.pack("=d", cutoff), sys.byteorder)}  # fmt: skip
    for word, value in values.items():
        words[known[word]] = value
    words[known["threads"] : known["threads"] + 2] = threads
    axes = _axes(batch, [x.shape[:-2] for x in inputs[:2]])  # a third is laid out as the first
    words[known["rank"]] = len(axes)
    for extent, strides in axes:
        words += [extent, *strides, *(0 for _ in range(2 - len(strides)))]
    # Numbers that are read and written count as well: matrices of 4 rows take as long for that as for all else.
    turn = max(1, ENOUGH // (work + 2 * size[0] * size[1] + 1))
    if max(size) <= SIDE_BY_SIDE:
        turn = -(-turn // SIDE_BY_SIDE) * SIDE_BY_SIDE

    def fault(code: int) -> EshkolError:
        if code == NO_MEMORY or told is None:
            return AllocationFailed(f"no memory to work on matrices of {size[0]} by {size[1]}")
        message, hint = told(code)
        return TensorError(message, hint=hint)

    return NativeCode(
        f"eshkol_linear_{name}", prod(batch), turn, struct.pack(f"{len(words)}Q", *words),
        tuple(range(known["out"], known["out"] + outs)), tuple(range(known["in"], known["in"] + len(inputs))), fault,
    )  # fmt: skip


def _axes(batch: Sequence[int], shapes: Sequence[Sequence[int]]) -> list[tuple[int, list[int]]]:
    """The axes of a batch: extents, and how many matrices of each operand lie between their elements.

    Axes that all operands go along without a gap are one: to find a matrix takes a division for each but the first.
    """
    found: list[tuple[int, list[int]]] = []
    for extent, *strides in zip(batch, *(_strides(shape, len(batch)) for shape in shapes), strict=True):
        if extent == 1 and prod(batch) > 0:
            continue
        if found and all(before == extent * own for before, own in zip(found[-1][1], strides, strict=True)):
            extent *= found.pop()[0]
        found.append((extent, strides))
    return found


def _strides(batch: Sequence[int], rank: int) -> list[int]:
    """How many matrices lie between the elements of each axis of a batch of so many axes: 0 where it broadcasts."""
    found, apart = [0] * rank, 1
    for k in range(1, len(batch) + 1):
        found[-k] = 0 if batch[-k] == 1 else apart
        apart *= batch[-k]
    return found


def _solve(a: Any, inputs: Sequence[Any], outs: Sequence[Any]) -> NativeCode | None:
    *batch, n, columns = outs[0].shape
    work = n * n * (n + 3 * columns) // 3
    return _code("solve", inputs, 1, tuple(batch), (n, columns), work, lambda _: SINGULAR)


def _factored_solve(a: Any, inputs: Sequence[Any], outs: Sequence[Any]) -> NativeCode | None:
    *batch, n, columns = outs[0].shape
    flags = facts()["turned"] * a.transpose
    return _code("factored", inputs, 1, tuple(batch), (n, columns), n * n * columns, lambda _: SINGULAR, flags)


def _triangle(a: Any, inputs: Sequence[Any], outs: Sequence[Any]) -> NativeCode | None:
    *batch, n, columns = outs[0].shape
    return _code(
        "triangle", inputs, 1, tuple(batch), (n, columns), n * n * columns // 2,
        lambda code: (
            f"a triangular matrix is singular: element {code % n} of its diagonal is 0",
            "lstsq gives the nearest solution",
        ),
        sum(facts()[flag] * bool(on) for flag, on in zip(("lower", "transpose", "unit"), a, strict=True)),
    )  # fmt: skip


def _cholesky(a: Any, inputs: Sequence[Any], outs: Sequence[Any]) -> NativeCode | None:
    *batch, n, _ = outs[0].shape
    return _code(
        "cholesky", inputs, 1, tuple(batch), (n, n), n**3 // 6,
        lambda _: ("a matrix is not positive definite", "add a small multiple of the identity, or use eigh"),
        facts()["upper"] * a.upper,
    )  # fmt: skip


def _factored(name: str, results: int, flag: str | None = None) -> Make:
    """Factors of matrices, or what is told by them."""

    def make(a: Any, inputs: Sequence[Any], outs: Sequence[Any]) -> NativeCode | None:
        *batch, rows, columns = inputs[0].shape
        work = rows * columns * min(rows, columns) // 3
        return _code(
            name, inputs, results, tuple(batch), (rows, columns), work, flags=facts()[flag] if flag is not None else 0
        )  # fmt: skip

    return make


def _spectrum(name: str, routine: str, alone: bool = False) -> Make:
    """Eigenvalues or singular values, by a function of LAPACK; with their vectors unless they are wanted alone."""

    def make(a: Any, inputs: Sequence[Any], outs: Sequence[Any]) -> NativeCode | None:
        *batch, rows, columns = inputs[0].shape
        whole = bool(getattr(a, "full_matrices", False)) and not alone
        if inputs[0].dtype.name not in lapack.LETTERS or not rows * columns > 0 or max(rows, columns) > LARGEST:
            return None
        found = lapack.address(routine, inputs[0].dtype.name)
        if found is None:
            return None
        flags = facts()["alone"] * alone | facts()["whole"] * whole
        work = rows * columns * min(rows, columns)
        return _code(
            name, inputs, len(outs), tuple(batch), (rows, columns), 10 * work, _no_spectrum, flags, found,
            lapack.threads() if work < LARGE else (0, 0),
        )  # fmt: skip

    return make


def _nearest(a: Any, inputs: Sequence[Any], outs: Sequence[Any]) -> NativeCode | None:
    """Least squares: LAPACK is for what may lack rank."""
    *batch, _, sides = outs[0].shape
    rows, columns = inputs[0].shape[-2:]
    if not rows * columns * sides > 0 or max(rows, columns, sides) > LARGEST:
        return None
    found = lapack.address("gesdd", inputs[0].dtype.name)
    if found is None:
        return None
    work = rows * columns * (min(rows, columns) + sides)
    cutoff = a.rtol if a.rtol is not None else max(rows, columns) * float(inputs[0].dtype.epsilon)
    return _code(
        "nearest", inputs, 1, tuple(batch), (rows, columns), 2 * work, _no_spectrum, 0, found,
        lapack.threads() if work < LARGE else (0, 0), sides, cutoff,
    )  # fmt: skip


def _no_spectrum(code: int) -> tuple[str, str]:
    return NOT_FOUND if code % 2 else NOT_FINITE


CODES: dict[str, Make] = {
    "matrix_solve": _solve, "triangular_matrix_solve": _triangle, "cholesky": _cholesky, "det": _factored("det", 1),
    "slogdet": _factored("slogdet", 2), "lu_rows": _factored("lu", 3),
    "factored_solve": _factored_solve, "tall_qr": _factored("qr", 2),
    "triangle_of_qr": _factored("qr", 1, "triangle alone"),
    "matrix_lstsq": _nearest,
    "eigh_with_pivots": _spectrum("eigh", "syevd"), "eigvalsh": _spectrum("eigh", "syevd", alone=True),
    "svd_with_pivots": _spectrum("svd", "gesdd"), "svdvals": _spectrum("svd", "gesdd", alone=True),
    "eig_with_pivots": _spectrum("eig", "geev"), "eigvals": _spectrum("eig", "geev", alone=True),
}  # fmt: skip
