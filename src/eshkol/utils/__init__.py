"""`ek.utils`: `ek.utils.data` and `ek.utils.checkpoint`, under the names that PyTorch has for them."""

from __future__ import annotations

from eshkol.utils import checkpoint, data

__all__ = ["checkpoint", "data"]
