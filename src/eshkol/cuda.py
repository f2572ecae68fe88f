"""`ek.cuda`: whether there are graphics cards of NVIDIA's, for programs that ask before they choose a device."""

from __future__ import annotations

from typing import Any

from eshkol.tensors import devices
from eshkol.tensors.sizes import no_attribute
from eshkol.tensors.torch_random import manual_seed as manual_seed

DEVICE = "cuda"


def is_available() -> bool:
    """Whether there is such a device."""
    return any(name.partition(":")[0] == DEVICE for name in devices.names())


def device_count() -> int:
    """How many such devices there are."""
    return sum(name.partition(":")[0] == DEVICE for name in devices.names())


def manual_seed_all(seed: int) -> None:
    """Let everybody's generator begin again from a seed: it is the same for all devices."""
    manual_seed(seed)


def empty_cache() -> None:
    """Nothing to do: memory that no tensor needs is given back by itself."""


def __getattr__(name: str) -> Any:
    raise no_attribute(name, globals(), "eshkol.cuda")
