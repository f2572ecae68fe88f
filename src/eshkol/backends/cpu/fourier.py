"""Fourier transforms as native code of plans, by the names of ops.

Comes in: an op's attributes, and what its inputs and results are like. Goes out: the function of
`runtime/native/fourier/` that computes it, and its record: for transforms of signals (`fourier.h`), and for what stands
around those of half the length that long real transforms are made by (`halves.h`).
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from math import prod
from typing import Any

from eshkol.atlas.sequence import NativeCode
from eshkol.errors import AllocationFailed, EshkolError, TensorError

PIECE = 2048  # as in halves.h
PASSES = 20  # these as in fourier.h
GROUP = 64
PLAIN, SPLIT, JOINED, JOINED_TWICE = range(4)
NOTHING_WRONG = (1 << 64) - 1
ENOUGH = 1 << 13  # elements that are worth a turn of a loop


def _signals(a: Any, inputs: Sequence[Any], outs: Sequence[Any]) -> NativeCode:
    shape = outs[0].shape
    return _transforms(PLAIN, a, a.factor, shape[a.axis], shape[a.axis], prod(shape[a.axis + 1 : -1]), outs[0])


def _split(a: Any, inputs: Sequence[Any], outs: Sequence[Any]) -> NativeCode:
    half = a.halves.half
    return _transforms(SPLIT, a.signals, a.halves.factor, half, half, 1, outs[0], turned=True)


def _joined(a: Any, inputs: Sequence[Any], outs: Sequence[Any]) -> NativeCode:
    kind = JOINED_TWICE if a.halves.twice else JOINED
    return _transforms(kind, a.signals, a.halves.factor, a.halves.half, inputs[0].shape[-2], 1, outs[0], turned=True)


def _transforms(
    kind: int, a: Any, factor: float, n: int, given: int, inner: int, out: Any, turned: bool = False
) -> NativeCode:
    """Transforms of n numbers each, of which so many are given."""
    wide, signals = out.dtype.name == "float64", prod(out.shape) // (2 * (n + (kind == SPLIT)))
    group = GROUP // out.dtype.numpy.itemsize if a.together else 1
    tasks = -(-signals // group) if inner == 1 else signals // inner * -(-inner // group)
    words = [NOTHING_WRONG, 0, 0, 0, 0, 0, wide, kind, n, a.length, given, inner, signals, a.together, a.inverse]
    radices = [*a.radices, *(0 for _ in range(PASSES - len(a.radices)))]
    record = struct.pack(f"15Qd{PASSES + 1}Q", *words, factor, len(a.radices), *radices)
    grain = max(1, ENOUGH // (a.length * group))
    return NativeCode("eshkol_fourier", tasks, grain, record, (2,), (3, 4, 5) if turned else (3, 4), _no_memory)


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
    "halves_split": lambda a, inputs, outs: _halves("split", a, inputs, outs),
    "halves_joined": lambda a, inputs, outs: _halves("joined", a, inputs, outs),
}
