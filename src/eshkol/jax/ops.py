"""`jax.ops`: sums and extremes of rows that belong to the same segment.

Comes in: data, and for each of its first axis the number of a segment. Goes out: one row for each segment. Without
`num_segments` the numbers must be known, and the greatest says how many there are.
"""

from __future__ import annotations

import math
from typing import Any

from eshkol.errors import ShapeError
from eshkol.jax.missing import refusing
from eshkol.tensors import api as ek
from eshkol.tensors.value import Tensor


def _segments(
    data: Any, segment_ids: Any, num_segments: int | None, mode: str, start: float, how: dict[str, Any]
) -> Tensor:
    data, ids = ek.asarray(data), ek.asarray(segment_ids)
    if how.pop("mode", None) not in (None, "promise_in_bounds"):
        raise TypeError("segments take no mode: a number out of range is an error here")
    unknown = set(how) - {"indices_are_sorted", "unique_indices", "bucket_size"}
    if unknown:
        raise TypeError(f"segments take no {', '.join(sorted(unknown))}")
    if ids.ndim != 1 or data.shape[:1] != ids.shape:
        raise ShapeError(
            f"segments of {list(data.shape)} are numbered by a vector, not {list(ids.shape)}", span=ek.here()
        )
    count = num_segments if num_segments is not None else int(ids.max().item()) + 1 if ids.size else 0
    least, greatest = data.dtype.limits() if not data.dtype.is_bool else (False, True)
    bounds = {math.inf: greatest, -math.inf: least}
    empty = ek.full((count, *data.shape[1:]), bounds.get(start, start), data.dtype)
    return ek.scatter(empty, ids, data, mode=mode)


def segment_sum(data: Any, segment_ids: Any, num_segments: int | None = None, **how: Any) -> Tensor:
    """The sum of the rows of each segment; 0 where there is none."""
    return _segments(data, segment_ids, num_segments, "add", 0, how)


def segment_prod(data: Any, segment_ids: Any, num_segments: int | None = None, **how: Any) -> Tensor:
    """The product of the rows of each segment; 1 where there is none."""
    return _segments(data, segment_ids, num_segments, "mul", 1, how)


def segment_max(data: Any, segment_ids: Any, num_segments: int | None = None, **how: Any) -> Tensor:
    """The greatest of each segment; the least number of the dtype where there is none."""
    return _segments(data, segment_ids, num_segments, "max", -math.inf, how)


def segment_min(data: Any, segment_ids: Any, num_segments: int | None = None, **how: Any) -> Tensor:
    """The least of each segment; the greatest number of the dtype where there is none."""
    return _segments(data, segment_ids, num_segments, "min", math.inf, how)


__all__ = ["segment_max", "segment_min", "segment_prod", "segment_sum"]
__getattr__ = refusing("ops", __all__)
