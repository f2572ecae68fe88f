"""The devices that OpenCL's drivers know, and the description of each that schedules are made by.

Comes in: pyopencl, if it is installed, and the platforms that it finds. Goes out: `Device`s with what `eshkol doctor`
shows of them, and `MachineDescription`s from their own figures; or why there are none, with what would change that.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from eshkol.atlas.machines import BLOCKS, MachineDescription, ProductTile
from eshkol.backends.driven import Known

INSTALL = "pip install eshkol[opencl]"
DRIVERS = "install the device's driver, or one for CPUs: apt install pocl-opencl-icd"
ATOMICS = ("cl_khr_int64_base_atomics",)
DOUBLES = "cl_khr_fp64"
ROUNDED_DIVISION = 1 << 7  # of a device's figures for floats: division and square roots are rounded correctly
# A CPU takes the lanes of a block one after another, or in vectors where they have nothing to wait for: a lane does a
# row, whose elements lie side by side, and there are few kinds of tiles, since each is long code to compile.
CPU_ROW = 8192
CPU_TILES = (ProductTile(64, 64, 16, 4, 4), ProductTile(16, 64, 16, 2, 4), ProductTile(16, 16, 16, 1, 1))
BLOCKS_EACH = 8  # blocks that keep a compute unit at work


@dataclass(frozen=True, slots=True)
class Device:
    """A device of a platform."""

    number: int
    handle: Any
    name: str
    platform: str
    version: str
    memory: int
    largest: int  # bytes of a buffer
    shared_bytes: int
    lanes: int  # of a block, at most
    units: int
    is_cpu: bool
    doubles: bool
    long_atomics: bool
    rounds_division: bool  # of F32 correctly, if it is asked to

    @property
    def exact_division(self) -> bool:
        """Whether division is correct: CPUs divide as IEEE says, whatever their driver promises."""
        return self.is_cpu or self.rounds_division

    def facts(self) -> dict[str, Any]:
        """What it is like as JSON values."""
        return {
            "number": self.number, "name": self.name, "platform": self.platform, "version": self.version,
            "memory": self.memory, "shared_bytes": self.shared_bytes, "units": self.units, "float64": self.doubles,
            "int64_atomics": self.long_atomics,
        }  # fmt: skip

    def description(self) -> MachineDescription:
        """What schedules for it are made with."""
        found = replace(
            BLOCKS, name=f"opencl {self.name}", largest=self.largest, shared_memory=self.shared_bytes,
            block=min(self.lanes, BLOCKS.block), subgroup=1, busy=self.units * BLOCKS_EACH, processors=self.units,
            product_tiles=tuple(t for t in BLOCKS.product_tiles if t.lanes <= self.lanes),
        )  # fmt: skip
        return replace(found, short_row=CPU_ROW, several=1, product_tiles=CPU_TILES) if self.is_cpu else found


@cache
def _found() -> tuple[Device, ...] | str:
    """All devices, or why there are none."""
    try:
        import pyopencl as cl
    except ImportError as error:
        missing = error.name == "pyopencl"
        return f"pyopencl is not installed: {INSTALL}" if missing else f"pyopencl does not load ({error}): {INSTALL}"
    try:
        handles = [(p, d) for p in cl.get_platforms() for d in p.get_devices() if d.available and d.compiler_available]
    except cl.Error as error:
        return f"OpenCL finds no platform ({error}): {DRIVERS}"
    if not handles:
        return f"OpenCL finds no device: {DRIVERS}"
    return tuple(_device(cl, number, platform, handle) for number, (platform, handle) in enumerate(handles))


def _device(cl: Any, number: int, platform: Any, handle: Any) -> Device:
    extensions = handle.extensions.split()
    is_cpu = bool(handle.type & cl.device_type.CPU)
    return Device(
        number, handle, handle.name.strip(), platform.name.strip(), handle.version.strip(), handle.global_mem_size,
        handle.max_mem_alloc_size, handle.local_mem_size, handle.max_work_group_size, handle.max_compute_units, is_cpu,
        DOUBLES in extensions, all(one in extensions for one in ATOMICS),
        bool(handle.single_fp_config & ROUNDED_DIVISION),
    )  # fmt: skip


KNOWN = Known("opencl", _found)
unavailable, devices, device = KNOWN.unavailable, KNOWN.devices, KNOWN.device
