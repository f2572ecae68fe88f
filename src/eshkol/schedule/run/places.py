"""Where masks hold and whether positions are in range, by all threads: `runtime/native/order/places.h`.

Comes in: arrays of the host. Goes out: what `ops/masks.py` promises. Arrays that are small, or whose elements do not
lie one after another as native code reads them, are NumPy's.
"""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

from eshkol.ops.masks import plainly_within
from eshkol.runtime.library import address_of
from eshkol.runtime.scheduler import default_scheduler
from eshkol.schedule.run.memory import Array, empty
from eshkol.schedule.run.memory import address_of as memory_of

PIECE = 1 << 14  # elements that are looked at together; the same number stands in places.h
SMALL = 1 << 12  # elements below which NumPy has answered before a native call has begun
GREATEST = 1 << 62  # extent that native code counts with
_LONG = np.dtype(np.int64)
_READ = (np.dtype(np.int32), _LONG)  # the types of positions that native code reads


class _Places(ctypes.Structure):
    _fields_ = [(name, ctypes.c_int64) for name in ("mask", "count", "before", "places")]


class _Range(ctypes.Structure):
    _fields_ = [(name, ctypes.c_int64) for name in ("numbers", "count", "size", "least", "extent", "outside")]


def held(mask: Array) -> Any:
    """The flat positions at which an array of bools holds."""
    if mask.size < SMALL:
        return np.flatnonzero(mask)
    mask = np.ascontiguousarray(mask)
    pieces = -(-mask.size // PIECE)
    before = np.zeros(pieces + 1, _LONG)
    record = _Places(memory_of(mask), mask.size, memory_of(before))
    _each("eshkol_places_count", record, pieces)
    np.cumsum(before, out=before)
    found = empty((int(before[-1]),), _LONG)
    record.places = memory_of(found)
    _each("eshkol_places_find", record, pieces)
    return found


def within(positions: Array, least: int, end: int) -> bool:
    """Whether integers are all from one on and below another."""
    flags = positions.flags
    lies = flags.c_contiguous and flags.aligned and positions.dtype in _READ
    if positions.size < SMALL or not lies or end - least > GREATEST:
        return plainly_within(positions, least, end)
    if end <= least:
        return False
    record = _Range(memory_of(positions), positions.size, positions.itemsize, least, end - least, 0)
    _each("eshkol_places_look", record, -(-positions.size // PIECE))
    return not record.outside


def _each(name: str, record: ctypes.Structure, pieces: int) -> None:
    default_scheduler().parallel_for_native(address_of(name), ctypes.addressof(record), pieces, 1)
