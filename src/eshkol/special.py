"""`ek.special`: special functions under PyTorch's names; the table is in `tensors/torch_names.py`."""

from __future__ import annotations

from typing import Any

from eshkol.tensors.sizes import no_attribute
from eshkol.tensors.torch_names import NAMESPACES

__all__ = sorted(NAMESPACES["special"])
globals().update(NAMESPACES["special"])


def __getattr__(name: str) -> Any:
    raise no_attribute(name, NAMESPACES["special"], "eshkol.special")
