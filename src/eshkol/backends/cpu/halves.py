"""Real Fourier transforms as native code of plans: what stands around those of half the length, by the names of ops.

Comes in: an op's attributes, and what its inputs and results are like. Goes out: the function of
`runtime/native/halves.c` that computes it, and its record.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from math import prod
from typing import Any

from eshkol.atlas.sequence import NativeCode
from eshkol.errors import EshkolError, TensorError

PIECE = 4096  # as in halves.h
NOTHING_WRONG = (1 << 64) - 1
ENOUGH = 1 << 13  # elements that are worth a turn of a loop


def _code(name: str, a: Any, inputs: Sequence[Any], outs: Sequence[Any]) -> NativeCode:
    *rows, given, _ = inputs[0].shape
    *_, length, _ = outs[0].shape
    wide = outs[0].dtype.name == "float64"
    record = struct.pack("9Qd", NOTHING_WRONG, 0, 0, 0, 0, wide, inputs[1].shape[0] - 1, given, a.inverse, a.factor)
    tasks = prod(rows) * -(-length // PIECE)
    grain = max(1, ENOUGH // min(length, PIECE))
    return NativeCode(f"eshkol_halves_{name}", tasks, grain, record, (2,), (3, 4), _fault)


def _fault(code: int) -> EshkolError:
    return TensorError(f"a real transform found something wrong ({code}), which it looks for nowhere")


CODES = {
    "halves_split": lambda a, inputs, outs: _code("split", a, inputs, outs),
    "halves_joined": lambda a, inputs, outs: _code("joined", a, inputs, outs),
}
