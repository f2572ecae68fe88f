"""`ek.optim.lr_scheduler`: the schedules of learning rates under the name that PyTorch has for them."""

from __future__ import annotations

from typing import Any

from eshkol.optim import schedules
from eshkol.optim.schedules import LRScheduler
from eshkol.tensors.sizes import no_attribute

__all__ = sorted(
    name for name, kind in vars(schedules).items() if isinstance(kind, type) and issubclass(kind, LRScheduler)
)
globals().update({name: getattr(schedules, name) for name in __all__})


def __getattr__(name: str) -> Any:
    if hasattr(schedules, name) and name[0].isupper():
        return getattr(schedules, name)
    raise no_attribute(name, dict.fromkeys(__all__), "eshkol.optim.lr_scheduler")
