"""Sorts and the first few of an order, on the host.

Comes in: an array, an axis, which way and how many. Goes out: the elements in order along the axis, and the places that
they come from, or None for arrays that are left to the op's reference. NumPy sorts integers in vectors, which it does
for no other stable sort: numbers become such integers, with their places in the lower half, and come back from them
(`runtime/native/sorting.c`). The first few of a long row are found without sorting it. Rows are shared among the
threads of the pool; of a single long row they sort a part each, and merge.
"""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

from eshkol.atlas.types import Array
from eshkol.errors import AllocationFailed
from eshkol.runtime.library import native
from eshkol.runtime.scheduler import Scheduler, default_scheduler

UNSIGNED, SIGNED, FLOAT = range(3)  # as in sorting.h
_KINDS = {"b": UNSIGNED, "u": UNSIGNED, "i": SIGNED, "f": FLOAT}
_INFINITY = {"bfloat16": 0x7F80, "float16": 0x7C00, "float32": 0x7F800000, "float64": 0x7FF0000000000000}
LONGEST = (1 << 32) - 1  # elements of a row: places are kept in 32 bits
SHARED = 1 << 16  # elements of a row that are worth being sorted by several threads
PIECE = 1 << 14  # of such a row, what a turn of a loop merges
ENOUGH = 1 << 13  # elements that are worth a turn of a loop


class _Sort(ctypes.Structure):
    """`EshkolSort` of sorting.h."""

    _fields_ = (
        ("rows", ctypes.c_void_p), ("values", ctypes.c_void_p), ("places", ctypes.c_void_p),
        ("length", ctypes.c_int64), ("kept", ctypes.c_int64), ("items", ctypes.c_void_p), ("merged", ctypes.c_void_p),
        ("run", ctypes.c_int64), ("piece", ctypes.c_int64), ("infinity", ctypes.c_uint64), ("kind", ctypes.c_int32),
        ("size", ctypes.c_int32), ("descending", ctypes.c_int32), ("failed", ctypes.c_int32),
    )  # fmt: skip


def sort(a: Any, x: Array) -> tuple[Array, Array] | None:
    """What a `sort` asks for: a.axis, a.descending."""
    return in_order(x, a.axis, a.descending)


def sorted_first(a: Any, x: Array) -> tuple[Array, Array] | None:
    """What a `sorted_first` asks for: the first a.kept of it."""
    return in_order(x, a.axis, a.descending, a.kept)


def in_order(x: Array, axis: int, descending: bool, kept: int | None = None) -> tuple[Array, Array] | None:
    """The elements along an axis in order, or the first `kept` of them, and where they come from."""
    kind = FLOAT if x.dtype.name in _INFINITY else _KINDS.get(x.dtype.kind)
    length = x.shape[axis]
    if kind is None or length > LONGEST:
        return None
    rows = np.ascontiguousarray(np.moveaxis(x, axis, -1))
    shape = (*rows.shape[:-1], length if kept is None else kept)
    values, places = np.empty(shape, x.dtype), np.empty(shape, np.int64)
    if values.size:
        sort = _Sort(
            rows=rows.ctypes.data, values=values.ctypes.data, places=places.ctypes.data, length=length, kept=shape[-1],
            infinity=_INFINITY.get(x.dtype.name, 0), kind=kind, size=x.itemsize, descending=descending,
        )  # fmt: skip
        _run(sort, rows.size // length, places)
        if sort.failed:
            raise AllocationFailed(f"sorting rows of {length} elements needs more memory than there is")
    return np.moveaxis(values, -1, axis), np.moveaxis(places, -1, axis)


def _run(sort: _Sort, rows: int, places: Array) -> None:
    pool, library, length = default_scheduler(), native(), sort.length
    grain = max(1, ENOUGH // length)

    def loop(body: Any, count: int, grain: int) -> None:
        pool.parallel_for_native(_address(body), ctypes.addressof(sort), count, grain)

    if sort.kept < length:
        loop(library.eshkol_sort_first, rows, grain)
        return
    items = np.empty((rows, length), np.uint64)
    sort.items = items.ctypes.data
    loop(library.eshkol_sort_items, rows, grain)
    if sort.size == 8:

        def arrange(begin: int, end: int) -> None:
            places.reshape(rows, length)[begin:end] = np.argsort(items[begin:end], axis=-1)

        pool.parallel_for(arrange, rows, grain)
        loop(library.eshkol_sort_settled, rows, grain)
        return
    if rows > 1 or length < SHARED or pool.workers == 1:
        pool.parallel_for(lambda begin, end: items[begin:end].sort(axis=-1), rows, grain)
    else:
        items = _merged(sort, items[0], pool)
    loop(library.eshkol_sort_results, rows, grain)


def _merged(sort: _Sort, items: Array, pool: Scheduler) -> Array:
    """The items of a long row, sorted by several threads."""
    length, spare = sort.length, np.empty_like(items)
    run = -(-length // pool.workers)

    def sort_runs(begin: int, end: int) -> None:
        for k in range(begin, end):
            items[k * run : (k + 1) * run].sort()

    pool.parallel_for(sort_runs, -(-length // run), 1)
    sort.piece = PIECE
    while run < length:
        sort.items, sort.merged, sort.run = items.ctypes.data, spare.ctypes.data, run
        pool.parallel_for_native(_address(native().eshkol_sort_merged), ctypes.addressof(sort), -(-length // PIECE), 1)
        items, spare, run = spare, items, 2 * run
    sort.items = items.ctypes.data
    return items


def _address(function: Any) -> int:
    found = ctypes.cast(function, ctypes.c_void_p).value
    assert found is not None
    return found
