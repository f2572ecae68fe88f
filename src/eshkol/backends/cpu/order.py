"""Numbers in order as native code of plans: `runtime/native/order/`, by the names of ops.

Comes in: an op's attributes, and what its inputs and results are like. Goes out: the function that computes it, and its
record. Rows are shared among the threads; those that are very long are by themselves.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Sequence
from math import prod
from typing import Any

from eshkol.atlas.sequence import NativeCode
from eshkol.errors import AllocationFailed, EshkolError, TensorError
from eshkol.runtime.scheduler import default_scheduler

FINE = (1 << 64) - 1  # these stand in order.h and search.h, and so does the order of the records' words
UNSIGNED, SIGNED, FLOAT = range(3)
VALUES, PLACES = 1, 2
LONGEST = (1 << 32) - 1  # elements of a row
ENOUGH = 1 << 12  # elements that are worth a turn of a loop
TYPES = {  # in the order of search.h
    name: number
    for number, name in enumerate((
        "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "bfloat16", "float32",
        "float64",
    ))
}  # fmt: skip
_INFINITY = {"bfloat16": 0x7F80, "float16": 0x7C00, "float32": 0x7F800000, "float64": 0x7FF0000000000000}


def _kind(dtype: Any) -> tuple[int, int, int] | None:
    """How an element is read: its bytes, its kind, and infinity as bits; None for what has no order."""
    name, kind = dtype.name, dtype.numpy.kind
    if name in _INFINITY:
        return dtype.numpy.itemsize, FLOAT, _INFINITY[name]
    return None if kind not in "biu" else (dtype.numpy.itemsize, SIGNED if kind == "i" else UNSIGNED, 0)


def _ordered(a: Any, inputs: Sequence[Any], outs: Sequence[Any]) -> NativeCode | None:
    """Rows put in order, as far as they are read: a.descending, a.ranges, a.values, a.places."""
    kind, (*rows, length) = _kind(inputs[0].dtype), inputs[0].shape
    if kind is None or not 0 < length <= LONGEST:
        return None
    words = [
        FINE, 0, 0, 0, 0, ctypes.addressof(default_scheduler().cell), length, outs[0].shape[-1], *kind, a.descending,
        VALUES * a.values | PLACES * a.places, len(a.ranges), *(n for ranks in a.ranges for n in ranks),
    ]  # fmt: skip

    def fault(code: int) -> EshkolError:
        return AllocationFailed(f"sorting rows of {length} elements needs more memory than there is")

    wanted = tuple(word for word, asked in ((2, a.values), (3, a.places)) if asked)
    record = struct.pack(f"{len(words)}Q", *words)
    return NativeCode("eshkol_order_rows", prod(rows), max(1, ENOUGH // length), record, wanted, (4,), fault)


def _no_fault(code: int) -> EshkolError:
    return TensorError(f"a search found something wrong ({code}), which it looks for nowhere")


def _searched(a: Any, inputs: Sequence[Any], outs: Sequence[Any]) -> NativeCode | None:
    """Where values belong among boundaries: a.right."""
    boundaries, values = inputs
    if boundaries.dtype.name not in TYPES:
        return None
    rows, extent = prod(boundaries.shape[:-1]), boundaries.shape[-1]
    count = prod(values.shape)
    words = [FINE, 0, 0, 0, 0, extent, max(1, count // max(rows, 1)), TYPES[boundaries.dtype.name], a.right]
    grain = max(1, ENOUGH // max(1, extent.bit_length()))
    return NativeCode("eshkol_order_search", count, grain, struct.pack("9Q", *words), (2,), (3, 4), _no_fault)


def _extreme(a: Any, inputs: Sequence[Any], outs: Sequence[Any]) -> NativeCode | None:
    """Where the extreme elements of rows stand: a.least."""
    *rows, length = inputs[0].shape
    kind = TYPES.get(inputs[0].dtype.name)
    if kind is None or not length:
        return None
    words = [FINE, 0, 0, 0, ctypes.addressof(default_scheduler().cell), length, kind, a.least]
    grain = max(1, ENOUGH // length)
    return NativeCode("eshkol_order_extreme", prod(rows), grain, struct.pack("8Q", *words), (2,), (3,), _no_fault)


CODES = {"ordered": _ordered, "searched": _searched, "extreme_place": _extreme}
