"""Dropout of attention: which weights a key drops, of scores that nobody needs to hold.

Comes in: a key, the shape of scores, and a probability. Goes out: truth values, from a byte of a block of random bits
for each weight (`support/threefry.py` says which). So it is one answer whoever asks: the kernels that have attention
as a whole draw the same bits, forward and backward, as the tensor that `dropped` is.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from eshkol.errors import TensorError
from eshkol.ops.dtypes import bool_, uint32, uint64
from eshkol.ops.random import random_bits
from eshkol.ops.row import STRUCTURE, Aval, HasAval, NoDerivative, Op, Pull, Shape, row
from eshkol.support import threefry


class Drops(NamedTuple):
    """Of how many queries and keys, and below which number a byte drops a weight."""

    queries: int
    keys: int
    below: int


def _infer(a: Drops, bits: HasAval) -> Aval:
    return Aval((*bits.shape[:-2], a.queries, a.keys), bool_)


def _reference(a: Drops, bits: Any) -> Any:
    words = [(bits >> np.uint64(n)).astype(np.uint32) for n in (32, 0)]
    return threefry.chosen(words, a.queries, a.keys, a.below)


def _pull(e: Any, a: Drops, i: Any, bits: Any) -> Any:
    t, u = i[-2:]
    row_, column = threefry.block_of(t, u)
    block = bits([*i[:-2], row_, column])
    shift = e.select(e.compare("EQ", u % 2, 0), e.convert(threefry.shift_of(t, u) + 32, uint64),
                     e.convert(threefry.shift_of(t, u), uint64))  # fmt: skip
    byte = e.op("AND", e.convert(e.op("SHR", block, shift), uint32), threefry.BYTES - 1)
    return e.compare("LT", byte, a.below)


ATTENTION_DROPS: Op = row(Op(
    name="attention_drops", doc="Which weights of attention are dropped, by a byte each of blocks of random bits.",
    function=None, names=("bits",), group=STRUCTURE, method=False, infer=_infer, reference=_reference,
    derivative=NoDerivative("bits do not vary smoothly"),
    batch=lambda a, inputs, batched: inputs[0].apply(ATTENTION_DROPS, inputs, a), lower=Pull(_pull),
))  # fmt: skip


def threshold(p: Any) -> int:
    """How many of a byte's values drop a weight with such a probability."""
    if isinstance(p, bool) or not isinstance(p, (int, float)) or not 0 <= p <= 1:
        raise TensorError(f"dropout is a probability from 0 to 1, not {p!r}")
    return threefry.threshold(p)


def dropped(key: Any, shape: Shape, below: int) -> Any:
    """Whether weights are dropped, of … × queries × keys."""
    *lead, queries, keys = shape
    bits = random_bits(key, (*lead, *threefry.blocks(queries, keys)), uint64)
    return bits.apply(ATTENTION_DROPS, (bits,), Drops(queries, keys, below))
