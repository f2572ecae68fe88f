"""`ek.utils.checkpoint`: memory traded for time, as `ek.checkpoint` does it, called in PyTorch's way."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from eshkol.tensors.custom import checkpoint as computed_again


def checkpoint(function: Callable[..., Any], *args: Any, use_reentrant: bool = False, **given: Any) -> Any:
    """What a function gives, computed again for its derivative instead of keeping what is computed within."""
    return computed_again(lambda *values: function(*values, **given))(*args)
