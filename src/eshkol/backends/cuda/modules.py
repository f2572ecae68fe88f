"""PTX as modules on a device, by way of the machine code that the driver makes of it, which is kept on disk.

Comes in: PTX. Goes out: the handle of a module. To compile PTX takes the driver longer than all else does that happens
when a program is first run, so what it gives is kept under a key with its version and the device's; machine code that
is not taken any more is compiled again.
"""

from __future__ import annotations

import re

from eshkol.backends.cuda.devices import Device
from eshkol.backends.cuda.driver import Driver
from eshkol.backends.lanes.threads import KERNEL
from eshkol.errors import BackendError
from eshkol.support.store import ProgramCache

_ENTRY = f".entry {KERNEL}(".encode()
LONGEST_NAME = 80


def entry(name: str) -> str:
    """What a profiler calls the kernel of a program of this name."""
    return "ek_" + re.sub(r"\W", "_", name, flags=re.ASCII)[:LONGEST_NAME]


def named(ptx: bytes, name: str) -> bytes:
    """A module whose kernel is called after the program that it is of."""
    return ptx.replace(_ENTRY, f".entry {entry(name)}(".encode())


def load(driver: Driver, cache: ProgramCache, device: Device, ptx: bytes, label: str) -> int:
    """The module of PTX on the device that is the thread's own; its kernel is called after the label."""
    ptx = named(ptx, label)
    parts: dict[str, str | bytes] = {
        "backend": "cuda", "form": "machine code", "driver": str(driver.number("cuDriverGetVersion")),
        "device": f"{device.name} {device.capability}", "module": ptx,
    }  # fmt: skip
    try:
        return driver.loaded(cache.get_or_build(parts, lambda: driver.machine_code(ptx), label))
    except BackendError:
        return driver.loaded(ptx)  # which says what is wrong, if it is the PTX or the device
