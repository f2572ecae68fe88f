"""PTX as modules on a device, by way of the machine code that the driver makes of it, which is kept on disk.

Comes in: PTX. Goes out: the handle of a module. To compile PTX takes the driver longer than all else does that happens
when a program is first run, so what it gives is kept under a key with its version and the device's; machine code that
is not taken any more is compiled again.
"""

from __future__ import annotations

from eshkol.backends.cuda.devices import Device
from eshkol.backends.cuda.driver import Driver
from eshkol.errors import BackendError
from eshkol.support.store import ProgramCache


def load(driver: Driver, cache: ProgramCache, device: Device, ptx: bytes, label: str) -> int:
    """The module of PTX on the device that is the thread's own."""
    parts: dict[str, str | bytes] = {
        "backend": "cuda", "form": "machine code", "driver": str(driver.number("cuDriverGetVersion")),
        "device": f"{device.name} {device.capability}", "module": ptx,
    }  # fmt: skip
    try:
        return driver.loaded(cache.get_or_build(parts, lambda: driver.machine_code(ptx), label))
    except BackendError:
        return driver.loaded(ptx)  # which says what is wrong, if it is the PTX or the device
