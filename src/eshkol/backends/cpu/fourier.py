"""Fourier transforms as native code of plans, by the names of ops.

Comes in: an op's attributes, and what its inputs and results are like. Goes out: the function of
`runtime/native/fourier/` that computes it, and its record: for transforms of signals one by one (`fourier.h`), and for
what stands around those of half the length that real transforms are made by (`halves.h`).
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from math import prod
from typing import Any

from eshkol.atlas.sequence import NativeCode
from eshkol.errors import AllocationFailed, EshkolError, TensorError

PIECE = 2048  # as in halves.h
PASSES = 20  # as in fourier.h
NOTHING_WRONG = (1 << 64) - 1
ENOUGH = 1 << 13  # elements that are worth a turn of a loop


def _signals(a: Any, inputs: Sequence[Any], outs: Sequence[Any]) -> NativeCode:
    shape = outs[0].shape
    n, inner = shape[a.axis], prod(shape[a.axis + 1 : -1])
    words = [NOTHING_WRONG, 0, 0, 0, 0, outs[0].dtype.name == "float64", n, a.length, inner, a.inverse]
    radices = [*a.radices, *(0 for _ in range(PASSES - len(a.radices)))]
    record = struct.pack(f"10Qd{PASSES + 1}Q", *words, a.factor, len(a.radices), *radices)
    grain = max(1, ENOUGH // a.length)
    return NativeCode("eshkol_fourier", prod(shape[:-1]) // n, grain, record, (2,), (3, 4), _no_memory)


def _no_memory(code: int) -> EshkolError:
    return AllocationFailed("no memory to transform signals in")


def _halves(name: str, a: Any, inputs: Sequence[Any], outs: Sequence[Any]) -> NativeCode:
    *rows, given, _ = inputs[0].shape
    half = inputs[1].shape[0] - 1
    wide = outs[0].dtype.name == "float64"
    record = struct.pack("9Qd", NOTHING_WRONG, 0, 0, 0, 0, wide, half, given, a.inverse, a.factor)
    tasks = prod(rows) * -(-(half // 2 + 1) // PIECE)
    grain = max(1, ENOUGH // min(half, 2 * PIECE))
    return NativeCode(f"eshkol_halves_{name}", tasks, grain, record, (2,), (3, 4), _fault)


def _fault(code: int) -> EshkolError:
    return TensorError(f"a real transform found something wrong ({code}), which it looks for nowhere")


CODES = {
    "signals": _signals,
    "halves_split": lambda a, inputs, outs: _halves("split", a, inputs, outs),
    "halves_joined": lambda a, inputs, outs: _halves("joined", a, inputs, outs),
}
