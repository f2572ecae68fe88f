"""Attention of sequences of several lengths: padded to one length, or packed, one after another.

Comes in: how many keys each sample has, or where sequences begin. Goes out: truth values, of which keys a query sees.
They are ops of their own so that kernels that have attention as a whole know them by sight: these read a number for
each sample, or two for each row, and leave out tiles that nothing sees.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from eshkol.errors import DTypeError, ShapeError
from eshkol.ops.creation import iota
from eshkol.ops.dtypes import bool_, int32
from eshkol.ops.elementwise import cast, greater, where
from eshkol.ops.joining import stack
from eshkol.ops.reductions import max_, min_
from eshkol.ops.row import STRUCTURE, Aval, NoDerivative, Op, Pull, row

_WHOLE = NoDerivative("lengths do not vary smoothly")


class Keys(NamedTuple):
    """How many keys there are of each sample, or places of packed sequences."""

    places: int


def _pull_lengths(e: Any, a: Keys, i: Any, lengths: Any) -> Any:
    return e.compare("LT", e.convert(i[-1], int32), lengths([*i[:-3]]))


def _pull_packed(e: Any, a: Keys, i: Any, spans: Any) -> Any:
    t, u = i[-2], e.convert(i[-1], int32)
    begin, end = (spans([*i[:-2], n, t]) for n in range(2))
    return e.op("AND", e.compare("GE", u, begin), e.compare("LT", u, end))


KEY_LENGTHS: Op = row(Op(
    name="key_lengths", doc="Whether keys are within the length of their sample: … × 1 × 1 × keys.", function=None,
    names=("lengths",), group=STRUCTURE, method=False,
    infer=lambda a, lengths: Aval((*lengths.shape, 1, 1, a.places), bool_),
    reference=lambda a, lengths: np.arange(a.places) < np.asarray(lengths)[..., None, None, None],
    derivative=_WHOLE, batch=lambda a, inputs, batched: inputs[0].apply(KEY_LENGTHS, inputs, a),
    lower=Pull(_pull_lengths),
))  # fmt: skip
PACKED: Op = row(Op(
    name="packed_sequences", doc="Whether places are of one sequence, which has a span (begin, end) for each.",
    function=None, names=("spans",), group=STRUCTURE, method=False,
    infer=lambda a, spans: Aval((*spans.shape[:-2], a.places, a.places), bool_),
    reference=lambda a, spans: (
        (np.arange(a.places) >= spans[..., 0, :, None]) & (np.arange(a.places) < spans[..., 1, :, None])
    ),
    derivative=_WHOLE, batch=lambda a, inputs, batched: inputs[0].apply(PACKED, inputs, a), lower=Pull(_pull_packed),
))  # fmt: skip


def within(lengths: Any, scores: Any) -> Any:
    """Which keys there are, of samples (axes in front of heads) that have so many."""
    lead = scores.shape[:-3]
    if not lengths.dtype.is_integer:
        raise DTypeError(f"key_lengths are integers, not {lengths.dtype}", hint="how many keys each sample has")
    aligned = lead[len(lead) - len(lengths.shape) :]
    if len(lengths.shape) > len(lead) or any(n not in (1, m) for n, m in zip(lengths.shape, aligned, strict=True)):
        raise ShapeError(
            f"key_lengths of shape {list(lengths.shape)} do not fit scores {list(scores.shape)}",
            hint=f"one for each sample: they broadcast to the axes in front of heads, {list(lead)}",
        )
    given = cast(lengths, int32)
    return given.apply(KEY_LENGTHS, (given,), Keys(scores.shape[-1]))


def packed(offsets: Any, scores: Any) -> Any:
    """Which places are of one sequence, where sequences begin at offsets, the last of which is the end."""
    rows, columns = scores.shape[-2:]
    if not offsets.dtype.is_integer or len(offsets.shape) != 1:
        raise DTypeError(
            f"offsets are integers along one axis, not {offsets.dtype}{list(offsets.shape)}",
            hint="where each sequence begins, and where the last ends",
        )
    if rows != columns:
        raise ShapeError(f"packed sequences attend to themselves: {rows} queries and {columns} keys are not the same")
    given = cast(offsets, int32)
    place = iota.on(given, (rows, 1), 0, "int32")
    later = greater(given, place)
    begin, end = max_(where(later, -1, given), -1), min_(where(later, given, columns + 1), -1)
    outside = (begin < 0) | (end > columns)  # of what is before the first sequence, or after the last, nothing is seen
    spans = stack([where(outside, 0, x) for x in (begin, end)])
    return spans.apply(PACKED, (spans,), Keys(columns))
