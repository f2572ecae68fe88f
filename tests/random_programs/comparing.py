"""When two answers are the same.

Integers and truth values are equal or wrong. Floats may differ by rounding: by some units of the narrowest dtype that
took part, of the largest number that took part, since a sum may cancel. What a rounding error could turn into another
answer altogether (comparisons, floors, sorting places) is drawn on exact values alone, see `drawing`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from eshkol.ops import dtypes

UNITS = {8: 1 << 19, 4: 2048, 2: 16}  # by size of the dtype in bytes


class Different(AssertionError):
    """Two answers that should be the same are not."""


def units(dtype: Any) -> float:
    """What may be lost to rounding, relative to the largest number that took part."""
    found = dtypes.of(np.dtype(dtype))
    real = found.real if found.is_complex else found
    return real.epsilon * UNITS[real.size]


def compare(got: Any, wanted: Any, scale: float, loss: float, what: str) -> None:
    """Refuse an answer that is not the one wanted."""
    got = np.asarray(got)
    if got.shape != wanted.shape:
        raise Different(f"{what}: shape {list(got.shape)} instead of {list(wanted.shape)}")
    if got.dtype != wanted.dtype:
        raise Different(f"{what}: dtype {got.dtype} instead of {wanted.dtype}")
    if wanted.dtype.kind in "biu":
        if not np.array_equal(got, wanted):
            raise Different(f"{what}: {got.tolist()} instead of {wanted.tolist()}")
        return
    wide = np.complex128 if wanted.dtype.kind == "c" else np.float64
    ours, theirs = got.astype(wide), wanted.astype(wide)
    finite = np.isfinite(theirs)
    same = np.isnan(ours) == np.isnan(theirs)
    with np.errstate(all="ignore"):
        same &= ~finite | (np.abs(ours - theirs) <= loss * scale)
        same &= finite | np.isnan(theirs) | (ours == theirs)
    if not same.all():
        raise Different(f"{what}: {ours.tolist()} instead of {theirs.tolist()} (allowed {loss * scale:.3g})")
