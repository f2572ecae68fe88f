"""What masks of attention say: that it is causal, that there is a window, and what else there is to be read.

Comes in: the truth values by which scores are chosen, and what is added to them before. Goes out: a `Sight`. Whatever
`ops/attention.py` makes of `causal` and `window` is found again, also where it stands beside a mask; and a mask of
floats, whose -∞ it takes out of the sums, is one mask again.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

from eshkol.graph.node import Node, make
from eshkol.ops import TABLE, dtypes
from eshkol.ops.attention_spans import KEY_LENGTHS, PACKED
from eshkol.ops.elementwise import cast
from eshkol.ops.row import Op
from eshkol.ops.structural import CONST
from eshkol.schedule.rewrite.patterns import counts, is_causal, is_number

_AND, _LESS, _SUB, _WHERE, _NOT_EQUAL = (TABLE[name] for name in ("bitwise_and", "less", "sub", "where", "not_equal"))


class Sight(NamedTuple):
    """Which keys a query sees: up to its own, fewer than so many places away (0: all), and where a mask lets it."""

    causal: bool
    window: int
    mask: Node | None  # truth values, or float32 that is added to scores
    lengths: Node | None  # how many keys each sample has
    spans: Node | None  # those of packed sequences


def sight(allowed: Node | None, added: Node | None) -> Sight:
    """What is said of scores to which something is added, and which are chosen where something holds."""
    parts = [] if allowed is None else list(_parts(allowed))
    causal, window = any(map(is_causal, parts)), 0
    rest = [part for part in parts if not is_causal(part)]
    before, after = (min((n for along, n in map(_distance, rest) if along == axis), default=0) for axis in (-2, -1))
    if before and (causal or before == after):
        window, rest = before, [part for part in rest if _distance(part)[0] is None]
    known: dict[Op, Node] = {}
    for op in (KEY_LENGTHS, PACKED):
        found = next((part for part in rest if part.op is op and part.data is None), None)
        if found is not None:
            known[op], rest = found.inputs[0], [part for part in rest if part is not found]
    return Sight(causal, window, _combined(rest, added), known.get(KEY_LENGTHS), known.get(PACKED))


def _parts(allowed: Node) -> Iterator[Node]:
    """Truth values that must hold together."""
    if allowed.op is _AND and allowed.data is None and allowed.dtype.is_bool:
        for part in allowed.inputs:
            yield from _parts(part)
    else:
        yield allowed


def _distance(mask: Node) -> tuple[int | None, int]:
    """From which axis on a place of the other comes fewer than how many places before, if a mask says no more."""
    nothing = None, 0
    if mask.op is not _LESS or mask.data is not None or mask.ndim < 2 or mask.inputs[1].op is not CONST:
        return nothing
    apart, number = mask.inputs[0], int(mask.inputs[1].attrs.array)
    if apart.op is not _SUB or apart.data is not None or apart.shape != mask.shape or number < 1:
        return nothing
    for axes in ((-2, -1), (-1, -2)):
        if all(counts(x, axis, mask.shape) for x, axis in zip(apart.inputs, axes, strict=True)):
            return axes[0], number
    return nothing


def _combined(parts: list[Node], added: Node | None) -> Node | None:
    """One mask of all there are: of truth values, or where something is added of float32, -∞ where they do not hold."""
    if added is not None and len(parts) == 1 and (whole := _unparted(parts[0], added)) is not None:
        return whole
    holds = parts[0] if parts else None
    for part in parts[1:]:
        assert holds is not None
        holds = make(_AND, (holds, part), None)
    if added is None or holds is None:
        return holds if added is None else added
    found: Node = _WHERE(holds, added, -math.inf)
    return found


def _unparted(chosen: Node, added: Node) -> Node | None:
    """A mask of floats, given where it is not -∞, and what it is there, with 0 elsewhere."""
    if chosen.op is not _NOT_EQUAL or chosen.data is not None or added.op is not _WHERE or added.data is not None:
        return None
    mask = next((x for x in chosen.inputs if x.op is not CONST), None)
    limits = [x for x in chosen.inputs if is_number(x, lambda n: n == -math.inf)]
    holds, value, other = added.inputs
    if mask is None or not limits or holds is not chosen or not is_number(other, lambda n: n == 0):
        return None
    wide = value is mask or (value.op is cast and value.data is None and value.inputs[0] is mask)
    return value if wide and value.dtype is dtypes.float32 else None
