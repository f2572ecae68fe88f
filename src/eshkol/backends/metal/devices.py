"""The devices that Metal has on a Mac, and the description of each that schedules are made by.

Comes in: pyobjc, if it is installed. Goes out: `Device`s with what `eshkol doctor` shows of them; or why there are
none, with what would change that.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from eshkol.atlas.machines import BLOCKS, MachineDescription
from eshkol.backends.driven import Known

INSTALL = "pip install eshkol[metal]"
UNSEEN = "it was written without a Mac at hand, and has never run on one"
BLOCKS_EACH, PROCESSORS = 4, 32  # what keeps a device at work, which does not say of how many parts it is


@dataclass(frozen=True, slots=True)
class Device:
    """A device of a Mac."""

    number: int
    handle: Any
    name: str
    memory: int
    largest: int  # bytes of a buffer
    shared_bytes: int
    lanes: int  # of a block, at most

    def facts(self) -> dict[str, Any]:
        """What it is like as JSON values."""
        return {"number": self.number, "name": self.name, "memory": self.memory, "shared_bytes": self.shared_bytes,
                "platform": f"Metal ({UNSEEN})", "float64": False, "int64_atomics": False}  # fmt: skip

    def description(self) -> MachineDescription:
        """What schedules for it are made with."""
        return replace(
            BLOCKS, name=f"metal {self.name}", largest=self.largest, shared_memory=self.shared_bytes,
            block=min(self.lanes, BLOCKS.block), subgroup=1, busy=PROCESSORS * BLOCKS_EACH, processors=PROCESSORS,
            product_tiles=tuple(t for t in BLOCKS.product_tiles if t.lanes <= self.lanes),
        )  # fmt: skip


@cache
def _found() -> tuple[Device, ...] | str:
    """All devices, or why there are none."""
    if sys.platform != "darwin":
        return f"Metal is the Mac's, and this is {sys.platform} ({UNSEEN})"
    try:
        import Metal
    except ImportError as error:
        missing = error.name == "Metal"
        return f"pyobjc has no Metal: {INSTALL}" if missing else f"pyobjc does not load ({error}): {INSTALL}"
    handles = list(Metal.MTLCopyAllDevices() or ())
    if not handles:
        return "Metal finds no device: this Mac has no GPU that this process may use"
    return tuple(_device(number, handle) for number, handle in enumerate(handles))


def _device(number: int, handle: Any) -> Device:
    return Device(
        number, handle, str(handle.name()), int(handle.recommendedMaxWorkingSetSize()), int(handle.maxBufferLength()),
        int(handle.maxThreadgroupMemoryLength()), int(handle.maxThreadsPerThreadgroup().width),
    )  # fmt: skip


KNOWN = Known("metal", _found)
unavailable, devices, device = KNOWN.unavailable, KNOWN.devices, KNOWN.device
