"""Fourier transforms as native code of plans, by the names of ops.

Comes in: an op's attributes, and what its inputs and results are like. Goes out: the function of
`runtime/native/fourier/` that computes it, and its record: for transforms of signals (`fourier.h`), and for what stands
around those of half the length that long real transforms are made by (`halves.h`).
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from math import prod
from typing import Any, NamedTuple

from eshkol.atlas.sequence import NativeCode
from eshkol.errors import AllocationFailed, EshkolError, TensorError

PIECE = 2048  # as in halves.h
PASSES = 20  # these as in fourier.h
GROUP = 64
PLAIN, SPLIT, JOINED, JOINED_TWICE = range(4)
WORDS = 17 + PASSES  # of a record
NOTHING_WRONG = (1 << 64) - 1
ENOUGH = 1 << 13  # elements that are worth a turn of a loop


def _signals(a: Any, inputs: Sequence[Any], outs: Sequence[Any]) -> NativeCode:
    return _code(_plain(a, a.axis, outs[0].shape, outs[0].dtype), a.together, outs[0].dtype, (3, 4))


def _split(a: Any, inputs: Sequence[Any], outs: Sequence[Any]) -> NativeCode:
    return _code(_halved(a, prod(outs[0].shape[:-2]), outs[0].dtype), a.signals.together, outs[0].dtype, (3, 4, 5))


def _joined(a: Any, inputs: Sequence[Any], outs: Sequence[Any]) -> NativeCode:
    half, signals, dtype = a.halves.half, prod(outs[0].shape[:-2]), outs[0].dtype
    kind = JOINED_TWICE if a.halves.twice else JOINED
    record = _Transforms(kind, a.signals, a.halves.factor, half, inputs[0].shape[-2], 1, signals, dtype)
    return _code(record, a.signals.together, dtype, (3, 4, 5))


def _planes(a: Any, inputs: Sequence[Any], outs: Sequence[Any]) -> NativeCode:
    """Rows and columns of matrices, a matrix for each task; the records of both stand one behind the other."""
    *batch, height, width, two = outs[0].shape
    dtype, turned = outs[0].dtype, len(inputs) == 4
    rows = _halved(a.rows, height, dtype) if turned else _plain(a.rows, 1, (height, width, two), dtype)
    columns = _plain(a.columns, 0, (height, width, two), dtype)
    ins = (3, 4, 5, WORDS + 4) if turned else (3, 4, WORDS + 4)
    return NativeCode("eshkol_fourier_planes", prod(batch), 1, rows.packed() + columns.packed(), (2,), ins, _no_memory)


class _Transforms(NamedTuple):
    """What a record says: transforms of n numbers each, of which so many are given."""

    kind: int
    how: Any
    factor: float
    n: int
    given: int
    inner: int
    signals: int
    dtype: Any

    def packed(self) -> bytes:
        how, wide = self.how, self.dtype.name == "float64"
        words = [NOTHING_WRONG, 0, 0, 0, 0, 0, wide, self.kind, self.n, how.length, self.given, self.inner]
        words += [self.signals, how.together, how.inverse]
        radices = [*how.radices, *(0 for _ in range(PASSES - len(how.radices)))]
        return struct.pack(f"15Qd{PASSES + 1}Q", *words, self.factor, len(how.radices), *radices)


def _plain(a: Any, axis: int, shape: Sequence[int], dtype: Any) -> _Transforms:
    """Transforms of pairs of a shape along an axis."""
    n = shape[axis]
    return _Transforms(PLAIN, a, a.factor, n, n, prod(shape[axis + 1 : -1]), prod(shape[:-1]) // n, dtype)


def _halved(a: Any, signals: int, dtype: Any) -> _Transforms:
    return _Transforms(SPLIT, a.signals, a.halves.factor, a.halves.half, a.halves.half, 1, signals, dtype)


def _code(record: _Transforms, together: bool, dtype: Any, ins: tuple[int, ...]) -> NativeCode:
    group = GROUP // dtype.numpy.itemsize if together else 1
    signals, inner = record.signals, record.inner
    tasks = -(-signals // group) if inner == 1 else signals // inner * -(-inner // group)
    grain = max(1, ENOUGH // (record.how.length * group))
    return NativeCode("eshkol_fourier", tasks, grain, record.packed(), (2,), ins, _no_memory)


def _no_memory(code: int) -> EshkolError:
    return AllocationFailed("no memory to transform signals in")


def _halves(name: str, a: Any, inputs: Sequence[Any], outs: Sequence[Any]) -> NativeCode:
    *rows, given, _ = inputs[0].shape
    half = inputs[1].shape[0] - 1
    wide = outs[0].dtype.name == "float64"
    record = struct.pack("10Qd", NOTHING_WRONG, 0, 0, 0, 0, wide, half, given, a.inverse, a.twice, a.factor)
    tasks = prod(rows) * -(-(half // 2 + 1) // PIECE)
    grain = max(1, ENOUGH // min(half, 2 * PIECE))
    return NativeCode(f"eshkol_halves_{name}", tasks, grain, record, (2,), (3, 4), _fault)


def _fault(code: int) -> EshkolError:
    return TensorError(f"a real transform found something wrong ({code}), which it looks for nowhere")


CODES = {
    "signals": _signals,
    "split_signals": _split,
    "joined_signals": _joined,
    "signals_of_planes": _planes,
    "halves_split": lambda a, inputs, outs: _halves("split", a, inputs, outs),
    "halves_joined": lambda a, inputs, outs: _halves("joined", a, inputs, outs),
}
