"""The devices that Vulkan's drivers know, and the description of each that schedules are made by.

Comes in: the system's loader, if there is one, and the devices that it finds. Goes out: `Device`s with what `eshkol
doctor` shows of them, and `MachineDescription`s from their own figures; or why there are none that can be used, with
what would change that. Processors that stand in for a GPU come last.
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from ctypes import byref, c_void_p
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from eshkol.atlas.machines import BLOCKS, MachineDescription, ProductTile
from eshkol.backends.driven import Known
from eshkol.backends.spirv import Options
from eshkol.backends.spirv.module import Capability
from eshkol.backends.vulkan import api as vk
from eshkol.errors import BackendUnavailable

LIBRARY = "apt install libvulkan1 (a GPU's driver has it, too; on a Mac: brew install molten-vk vulkan-loader)"
DRIVERS = "install the device's driver, or one for CPUs: apt install mesa-vulkan-drivers"
TYPES = ("other", "integrated GPU", "discrete GPU", "virtual GPU", "CPU")
RANKS = (3, 1, 0, 2, 4)  # of types: which devices are numbered first
CPU = 4
BLOCKS_EACH, PROCESSORS = 4, 64  # what keeps a device at work, which does not say of how many parts it is
# A processor takes the lanes of a block in vectors: a lane does a row, and code is short: compiling takes long.
CPU_ROW = 8192
CPU_TILES = (ProductTile(16, 16, 16, 1, 1),)
PORTABILITY, PORTABILITY_FLAG, SUBSET = b"VK_KHR_portability_enumeration", 1, b"VK_KHR_portability_subset"
COMPUTE_QUEUE = 2
NONE_ALONE = 2  # what a device says that treats all kinds of floats alike
# The places of truths in structures of features.
FEATURES: Mapping[str, tuple[str, int]] = {
    "shaderFloat64": ("core", 39), "shaderInt64": ("core", 40), "shaderInt16": ("core", 41),
    "storageBuffer16BitAccess": ("1.1", 0), "storageBuffer8BitAccess": ("1.2", 2),
    "shaderBufferInt64Atomics": ("1.2", 5), "shaderSharedInt64Atomics": ("1.2", 6), "shaderInt8": ("1.2", 8),
    "bufferDeviceAddress": ("1.2", 38), "vulkanMemoryModel": ("1.2", 41),
}  # fmt: skip
NEEDED = ("shaderInt64", "bufferDeviceAddress", "vulkanMemoryModel")
OFFERED: Mapping[Capability, str] = {
    Capability.Float64: "shaderFloat64", Capability.Int64: "shaderInt64", Capability.Int16: "shaderInt16",
    Capability.Int8: "shaderInt8", Capability.Int64Atomics: "shaderBufferInt64Atomics",
    Capability.StorageBuffer8BitAccess: "storageBuffer8BitAccess",
    Capability.StorageBuffer16BitAccess: "storageBuffer16BitAccess",
}  # fmt: skip
"""What modules ask of a device → the feature that has it."""


@dataclass(frozen=True, slots=True)
class Device:
    """A device of a driver."""

    number: int
    handle: int
    name: str
    driver: str
    version: str
    kind: int
    memory: int
    largest: int  # bytes of a buffer
    shared_bytes: int
    lanes: int  # of a block, at most
    blocks: int  # of a dispatch, at most
    nanoseconds: float  # of a step of its clock
    features: frozenset[str]
    options: Options

    @property
    def ends_loops(self) -> bool:
        """Whether the driver ends loops after 65,535 rounds of a lane, so that no process is caught in one."""
        return self.driver == "llvmpipe"

    @property
    def is_cpu(self) -> bool:
        return self.kind == CPU

    def facts(self) -> dict[str, Any]:
        """What it is like as JSON values."""
        return {
            "number": self.number, "name": self.name, "kind": TYPES[self.kind], "driver": self.driver,
            "platform": f"Vulkan {self.version} of {self.driver} ({TYPES[self.kind]})", "memory": self.memory,
            "shared_bytes": self.shared_bytes,
            "float64": "shaderFloat64" in self.features, "int64_atomics": "shaderBufferInt64Atomics" in self.features,
        }  # fmt: skip

    def description(self) -> MachineDescription:
        """What schedules for it are made with."""
        found = replace(
            BLOCKS, name=f"vulkan {self.name}", largest=self.largest, shared_memory=self.shared_bytes,
            block=min(self.lanes, BLOCKS.block), subgroup=1, busy=PROCESSORS * BLOCKS_EACH, processors=PROCESSORS,
            product_tiles=tuple(t for t in BLOCKS.product_tiles if t.lanes <= self.lanes),
        )  # fmt: skip
        return replace(found, short_row=CPU_ROW, several=1, product_tiles=CPU_TILES) if self.is_cpu else found


@dataclass(frozen=True, slots=True)
class Found:
    """Devices that can be used, or why there are none."""

    devices: tuple[Device, ...]
    reason: str = ""


@cache
def _found() -> Found:
    api = vk.api()
    if api is None:
        return Found((), f"there is no {vk.LIBRARIES[0]}: {LIBRARY}")
    try:
        instance = _instance(api)
        handles = api.listed("vkEnumeratePhysicalDevices", c_void_p, instance)
    except vk.Failed as failure:
        return Found((), f"Vulkan has no driver ({failure}): {DRIVERS}")
    fit: list[Device] = []
    unfit = []
    for handle in handles:
        one = _device(api, handle)
        if isinstance(one, str):
            unfit.append(one)
        else:
            fit.append(one)
    if not fit:
        return Found((), f"{'; '.join(unfit) or 'Vulkan finds no device'}: {DRIVERS}")
    fit.sort(key=lambda one: RANKS[one.kind])
    return Found(tuple(replace(one, number=number) for number, one in enumerate(fit)))


def _instance(api: vk.Api) -> c_void_p:
    """What stands for this process at the loader; it lives as long as the process does."""
    known = {
        e.extensionName for e in api.listed("vkEnumerateInstanceExtensionProperties", vk.ExtensionProperties, None)
    }
    wanted = [PORTABILITY] if PORTABILITY in known else []
    about = vk.ApplicationInfo(pApplicationName=b"eshkol", pEngineName=b"eshkol", apiVersion=vk.VERSION)
    names = vk.strings(wanted)
    info = vk.InstanceCreateInfo(
        flags=PORTABILITY_FLAG * len(wanted), pApplicationInfo=vk.pointer(about), enabledExtensionCount=len(wanted),
        ppEnabledExtensionNames=vk.pointer(names),
    )  # fmt: skip
    found = c_void_p()
    api.call("vkCreateInstance", byref(info), None, byref(found))
    return found


def _device(api: vk.Api, handle: int) -> Device | str:
    """A device, or why it cannot be used."""
    old = vk.Properties()
    api.call("vkGetPhysicalDeviceProperties", handle, byref(old, type(old).bytes.offset))
    plain = bytes(old.bytes)
    name = plain[20:276].split(b"\0")[0].decode(errors="replace")
    version = _read(plain, 0)
    if version < vk.VERSION:
        return f"{name} has Vulkan {_shown(version)}, and 1.2 is needed"
    later, newest = vk.Properties11(), vk.Properties12()
    later.pNext, old.pNext = vk.pointer(newest), vk.pointer(later)
    api.call("vkGetPhysicalDeviceProperties2", handle, byref(old))
    plain, eleven, twelve = bytes(old.bytes), bytes(later.bytes), bytes(newest.bytes)
    features = features_of(api, handle)
    missing = [one for one in NEEDED if one not in features]
    if missing:
        return f"{name} lacks {', '.join(missing)}"
    memory = vk.MemoryProperties()
    api.call("vkGetPhysicalDeviceMemoryProperties", handle, byref(memory))
    heap = max((h.size for h in memory.memoryHeaps[: memory.memoryHeapCount] if h.flags & 1), default=0)
    limits = plain[296:]
    largest = int.from_bytes(eleven[88:96], "little")
    return Device(
        0, handle, name, twelve[4:260].split(b"\0")[0].decode(errors="replace"), _shown(version),
        min(_read(plain, 16), CPU),
        heap, min(largest, heap), _read(limits, 216), min(_read(limits, 232), _read(limits, 236)), _read(limits, 220),
        ctypes.c_float.from_buffer_copy(limits[424:428]).value, features,
        Options(_kept(twelve, 528), _kept(twelve, 540, 520), _kept(twelve, 564, 524)),
    )  # fmt: skip


def _kept(twelve: bytes, offset: int, independence: int | None = None) -> frozenset[int]:
    """The bits of floats of which a device says that it keeps something, and may be told to for some kinds alone."""
    if independence is not None and _read(twelve, independence) == NONE_ALONE:
        return frozenset()
    return frozenset(bits for k, bits in ((1, 32), (2, 64)) if _read(twelve, offset + 4 * k))


def features_of(api: vk.Api, handle: int) -> frozenset[str]:
    """The features of a device that kernels use, by name."""
    core, later, newest = vk.Features(), vk.Features11(), vk.Features12()
    later.pNext, core.pNext = vk.pointer(newest), vk.pointer(later)
    api.call("vkGetPhysicalDeviceFeatures2", handle, byref(core))
    parts = {"core": core, "1.1": later, "1.2": newest}
    return frozenset(name for name, (part, place) in FEATURES.items() if parts[part].values[place])


def _read(raw: bytes, offset: int) -> int:
    return int.from_bytes(raw[offset : offset + 4], "little")


def _shown(version: int) -> str:
    return f"{version >> 22 & 0x7F}.{version >> 12 & 0x3FF}.{version & 0xFFF}"


KNOWN = Known("vulkan", lambda: _found().reason or _found().devices)
unavailable, devices, device = KNOWN.unavailable, KNOWN.devices, KNOWN.device


def logical(device: Device) -> tuple[c_void_p, c_void_p, int, int]:
    """A device ready for work: its handle, its queue, the queue's family, and whether that has a clock."""
    api = vk.api()
    assert api is not None
    families = _families(api, device)
    index = next((k for k, f in enumerate(families) if f.queueFlags & COMPUTE_QUEUE), None)
    if index is None:
        raise BackendUnavailable(f"{device.name} has no queue for kernels")
    core, later, newest = vk.Features(), vk.Features11(), vk.Features12()
    later.pNext, core.pNext = vk.pointer(newest), vk.pointer(later)
    parts = {"core": core, "1.1": later, "1.2": newest}
    for name in device.features:
        part, place = FEATURES[name]
        parts[part].values[place] = 1
    queue_info = vk.DeviceQueueCreateInfo(
        queueFamilyIndex=index, queueCount=1, pQueuePriorities=vk.pointer(vk.PRIORITY)
    )
    known = {
        e.extensionName
        for e in api.listed("vkEnumerateDeviceExtensionProperties", vk.ExtensionProperties, device.handle, None)
    }
    wanted = [SUBSET] if SUBSET in known else []
    names = vk.strings(wanted)
    info = vk.DeviceCreateInfo(
        pNext=vk.pointer(core), queueCreateInfoCount=1, pQueueCreateInfos=vk.pointer(queue_info),
        enabledExtensionCount=len(wanted), ppEnabledExtensionNames=vk.pointer(names),
    )  # fmt: skip
    handle, queue = c_void_p(), c_void_p()
    api.call("vkCreateDevice", device.handle, byref(info), None, byref(handle))
    api.call("vkGetDeviceQueue", handle, index, 0, byref(queue))
    return handle, queue, index, families[index].timestampValidBits


def _families(api: vk.Api, device: Device) -> list[Any]:
    return api.listed("vkGetPhysicalDeviceQueueFamilyProperties", vk.QueueFamilyProperties, device.handle)


def memory_types(device: Device) -> list[int]:
    """The properties of each kind of memory."""
    api, found = vk.api(), vk.MemoryProperties()
    assert api is not None
    api.call("vkGetPhysicalDeviceMemoryProperties", device.handle, byref(found))
    return [t.propertyFlags for t in found.memoryTypes[: found.memoryTypeCount]]
