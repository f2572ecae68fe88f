"""Whether something that was given is a whole number, Python's or NumPy's. Bools are not."""

from __future__ import annotations

from typing import Any

import numpy as np


def is_whole(value: Any, least: int | None = None) -> bool:
    """Whether a value is an integer, and not below the least that is allowed."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        return False
    return least is None or bool(value >= least)
