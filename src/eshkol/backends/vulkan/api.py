"""Vulkan's loader, called directly: structures and functions, as far as kernels need them.

Comes in: nothing; the library is looked for when someone first asks. Goes out: `api()`, whose `call` raises `Failed`
with the driver's number. ctypes suffices: the package that has all of Vulkan reads its header for most of a second
whenever a process begins. Names are the standard's.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Mapping
from ctypes import POINTER, Structure, c_char_p, c_float, c_int32, c_uint32, c_uint64, c_void_p
from functools import cache
from typing import Any

VERSION = 1 << 22 | 2 << 12  # 1.2
LIBRARIES = {
    "win32": ("vulkan-1.dll",), "darwin": ("libvulkan.1.dylib", "libvulkan.dylib", "libMoltenVK.dylib"),
}.get(sys.platform, ("libvulkan.so.1", "libvulkan.so"))  # fmt: skip
WHOLE = (1 << 64) - 1
NOT_READY = 1
RESULTS: Mapping[int, str] = {
    NOT_READY: "NOT_READY", 2: "TIMEOUT", 5: "INCOMPLETE", -1: "ERROR_OUT_OF_HOST_MEMORY",
    -2: "ERROR_OUT_OF_DEVICE_MEMORY", -3: "ERROR_INITIALIZATION_FAILED", -4: "ERROR_DEVICE_LOST",
    -5: "ERROR_MEMORY_MAP_FAILED", -6: "ERROR_LAYER_NOT_PRESENT", -7: "ERROR_EXTENSION_NOT_PRESENT",
    -8: "ERROR_FEATURE_NOT_PRESENT", -9: "ERROR_INCOMPATIBLE_DRIVER", -10: "ERROR_TOO_MANY_OBJECTS",
    -12: "ERROR_FRAGMENTED_POOL", -13: "ERROR_UNKNOWN", -1000072003: "ERROR_INVALID_EXTERNAL_HANDLE",
    -1000257000: "ERROR_INVALID_OPAQUE_CAPTURE_ADDRESS", -1000012000: "ERROR_INVALID_SHADER_NV",
}  # fmt: skip
"""Numbers that calls give, and what the standard calls them."""


class Failed(Exception):
    """A call gave another number than that of success."""

    def __init__(self, code: int, function: str) -> None:
        self.code, self.name = code, RESULTS.get(code, f"error {code}")
        super().__init__(f"{function} gives VK_{self.name}")


class Tagged(Structure):
    """A structure that begins with its number, and a pointer to what extends it."""

    number = 0

    def __init__(self, **values: Any) -> None:
        super().__init__(sType=self.number, **values)


def _structure(name: str, number: int, *fields: tuple[str, Any]) -> Any:
    return type(name, (Tagged,), {
        "number": number, "_fields_": [("sType", c_uint32), ("pNext", c_void_p), *fields],
    })  # fmt: skip


_flags = ("flags", c_uint32)
ApplicationInfo = _structure(
    "VkApplicationInfo", 0, ("pApplicationName", c_char_p), ("applicationVersion", c_uint32),
    ("pEngineName", c_char_p), ("engineVersion", c_uint32), ("apiVersion", c_uint32),
)  # fmt: skip
_extensions = (
    ("enabledLayerCount", c_uint32), ("ppEnabledLayerNames", c_void_p), ("enabledExtensionCount", c_uint32),
    ("ppEnabledExtensionNames", c_void_p),
)  # fmt: skip
InstanceCreateInfo = _structure("VkInstanceCreateInfo", 1, _flags, ("pApplicationInfo", c_void_p), *_extensions)
DeviceQueueCreateInfo = _structure(
    "VkDeviceQueueCreateInfo", 2, _flags, ("queueFamilyIndex", c_uint32), ("queueCount", c_uint32),
    ("pQueuePriorities", c_void_p),
)  # fmt: skip
DeviceCreateInfo = _structure(
    "VkDeviceCreateInfo", 3, _flags, ("queueCreateInfoCount", c_uint32), ("pQueueCreateInfos", c_void_p), *_extensions,
    ("pEnabledFeatures", c_void_p),
)  # fmt: skip
SubmitInfo = _structure(
    "VkSubmitInfo", 4, ("waitSemaphoreCount", c_uint32), ("pWaitSemaphores", c_void_p), ("pWaitDstStageMask", c_void_p),
    ("commandBufferCount", c_uint32), ("pCommandBuffers", c_void_p), ("signalSemaphoreCount", c_uint32),
    ("pSignalSemaphores", c_void_p),
)  # fmt: skip
MemoryAllocateInfo = _structure("VkMemoryAllocateInfo", 5, ("allocationSize", c_uint64), ("memoryTypeIndex", c_uint32))
FenceCreateInfo = _structure("VkFenceCreateInfo", 8, _flags)
QueryPoolCreateInfo = _structure(
    "VkQueryPoolCreateInfo", 11, _flags, ("queryType", c_uint32), ("queryCount", c_uint32),
    ("pipelineStatistics", c_uint32),
)  # fmt: skip
BufferCreateInfo = _structure(
    "VkBufferCreateInfo", 12, _flags, ("size", c_uint64), ("usage", c_uint32), ("sharingMode", c_uint32),
    ("queueFamilyIndexCount", c_uint32), ("pQueueFamilyIndices", c_void_p),
)  # fmt: skip
ShaderModuleCreateInfo = _structure(
    "VkShaderModuleCreateInfo", 16, _flags, ("codeSize", ctypes.c_size_t), ("pCode", c_char_p)
)
PipelineShaderStageCreateInfo = _structure(
    "VkPipelineShaderStageCreateInfo", 18, _flags, ("stage", c_uint32), ("module", c_uint64), ("pName", c_char_p),
    ("pSpecializationInfo", c_void_p),
)  # fmt: skip
ComputePipelineCreateInfo = _structure(
    "VkComputePipelineCreateInfo", 29, _flags, ("stage", PipelineShaderStageCreateInfo), ("layout", c_uint64),
    ("basePipelineHandle", c_uint64), ("basePipelineIndex", c_int32),
)  # fmt: skip
PipelineLayoutCreateInfo = _structure(
    "VkPipelineLayoutCreateInfo", 30, _flags, ("setLayoutCount", c_uint32), ("pSetLayouts", c_void_p),
    ("pushConstantRangeCount", c_uint32), ("pPushConstantRanges", c_void_p),
)  # fmt: skip
CommandPoolCreateInfo = _structure("VkCommandPoolCreateInfo", 39, _flags, ("queueFamilyIndex", c_uint32))
CommandBufferAllocateInfo = _structure(
    "VkCommandBufferAllocateInfo", 40, ("commandPool", c_uint64), ("level", c_uint32), ("commandBufferCount", c_uint32)
)
CommandBufferBeginInfo = _structure("VkCommandBufferBeginInfo", 42, _flags, ("pInheritanceInfo", c_void_p))
MemoryBarrier = _structure("VkMemoryBarrier", 46, ("srcAccessMask", c_uint32), ("dstAccessMask", c_uint32))
MemoryAllocateFlagsInfo = _structure("VkMemoryAllocateFlagsInfo", 1000060000, _flags, ("deviceMask", c_uint32))
BufferDeviceAddressInfo = _structure("VkBufferDeviceAddressInfo", 1000244001, ("buffer", c_uint64))
# Of long structures of truths and figures the places that are read, and no names for the others.
Features = _structure("VkPhysicalDeviceFeatures2", 1000059000, ("values", c_uint32 * 55))
Features11 = _structure("VkPhysicalDeviceVulkan11Features", 49, ("values", c_uint32 * 12))
Features12 = _structure("VkPhysicalDeviceVulkan12Features", 51, ("values", c_uint32 * 47))
Properties = _structure("VkPhysicalDeviceProperties2", 1000059001, ("bytes", c_uint64 * 103))
Properties11 = _structure("VkPhysicalDeviceVulkan11Properties", 50, ("bytes", c_uint32 * 24))
Properties12 = _structure("VkPhysicalDeviceVulkan12Properties", 52, ("bytes", c_uint32 * 180))


class PushConstantRange(Structure):
    _fields_ = [("stageFlags", c_uint32), ("offset", c_uint32), ("size", c_uint32)]


class SpecializationMapEntry(Structure):
    _fields_ = [("constantID", c_uint32), ("offset", c_uint32), ("size", ctypes.c_size_t)]


class SpecializationInfo(Structure):
    _fields_ = [
        ("mapEntryCount", c_uint32), ("pMapEntries", c_void_p), ("dataSize", ctypes.c_size_t), ("pData", c_void_p)
    ]  # fmt: skip


class BufferCopy(Structure):
    _fields_ = [("srcOffset", c_uint64), ("dstOffset", c_uint64), ("size", c_uint64)]


class MemoryRequirements(Structure):
    _fields_ = [("size", c_uint64), ("alignment", c_uint64), ("memoryTypeBits", c_uint32)]


class QueueFamilyProperties(Structure):
    _fields_ = [
        ("queueFlags", c_uint32), ("queueCount", c_uint32), ("timestampValidBits", c_uint32),
        ("minImageTransferGranularity", c_uint32 * 3),
    ]  # fmt: skip


class MemoryType(Structure):
    _fields_ = [("propertyFlags", c_uint32), ("heapIndex", c_uint32)]


class MemoryHeap(Structure):
    _fields_ = [("size", c_uint64), ("flags", c_uint32)]


class MemoryProperties(Structure):
    _fields_ = [
        ("memoryTypeCount", c_uint32), ("memoryTypes", MemoryType * 32), ("memoryHeapCount", c_uint32),
        ("memoryHeaps", MemoryHeap * 16),
    ]  # fmt: skip


class ExtensionProperties(Structure):
    _fields_ = [("extensionName", ctypes.c_char * 256), ("specVersion", c_uint32)]


_p, _u32, _u64, _count = c_void_p, c_uint32, c_uint64, POINTER(c_uint32)
_FUNCTIONS: Mapping[str, tuple[Any, ...]] = {
    "vkEnumerateInstanceExtensionProperties": (_p, _count, _p),
    "vkCreateInstance": (_p, _p, _p),
    "vkEnumeratePhysicalDevices": (_p, _count, _p),
    "vkEnumerateDeviceExtensionProperties": (_p, _p, _count, _p),
    "vkGetPhysicalDeviceProperties": (_p, _p),
    "vkGetPhysicalDeviceProperties2": (_p, _p),
    "vkGetPhysicalDeviceFeatures2": (_p, _p),
    "vkGetPhysicalDeviceMemoryProperties": (_p, _p),
    "vkGetPhysicalDeviceQueueFamilyProperties": (_p, _count, _p),
    "vkCreateDevice": (_p, _p, _p, _p),
    "vkDestroyDevice": (_p, _p),
    "vkGetDeviceQueue": (_p, _u32, _u32, _p),
    "vkCreateBuffer": (_p, _p, _p, _p),
    "vkDestroyBuffer": (_p, _u64, _p),
    "vkGetBufferMemoryRequirements": (_p, _u64, _p),
    "vkGetBufferDeviceAddress": (_p, _p),
    "vkAllocateMemory": (_p, _p, _p, _p),
    "vkFreeMemory": (_p, _u64, _p),
    "vkBindBufferMemory": (_p, _u64, _u64, _u64),
    "vkMapMemory": (_p, _u64, _u64, _u64, _u32, _p),
    "vkCreateShaderModule": (_p, _p, _p, _p),
    "vkDestroyShaderModule": (_p, _u64, _p),
    "vkCreatePipelineLayout": (_p, _p, _p, _p),
    "vkCreateComputePipelines": (_p, _u64, _u32, _p, _p, _p),
    "vkDestroyPipeline": (_p, _u64, _p),
    "vkCreateCommandPool": (_p, _p, _p, _p),
    "vkAllocateCommandBuffers": (_p, _p, _p),
    "vkBeginCommandBuffer": (_p, _p),
    "vkEndCommandBuffer": (_p,),
    "vkCmdPipelineBarrier": (_p, *[_u32] * 4, _p, _u32, _p, _u32, _p),
    "vkCmdBindPipeline": (_p, _u32, _u64),
    "vkCmdPushConstants": (_p, _u64, _u32, _u32, _u32, _p),
    "vkCmdDispatch": (_p, _u32, _u32, _u32),
    "vkCmdCopyBuffer": (_p, _u64, _u64, _u32, _p),
    "vkCmdUpdateBuffer": (_p, _u64, _u64, _u64, _p),
    "vkCmdWriteTimestamp": (_p, _u32, _u64, _u32),
    "vkCmdResetQueryPool": (_p, _u64, _u32, _u32),
    "vkCreateQueryPool": (_p, _p, _p, _p),
    "vkGetQueryPoolResults": (_p, _u64, _u32, _u32, ctypes.c_size_t, _p, _u64, _u32),
    "vkCreateFence": (_p, _p, _p, _p),
    "vkResetFences": (_p, _u32, _p),
    "vkWaitForFences": (_p, _u32, _p, _u32, _u64),
    "vkGetFenceStatus": (_p, _u64),
    "vkQueueSubmit": (_p, _u32, _p, _u64),
}
"""What is called of the loader, with the types of its arguments."""
_ANSWERS = {"vkGetBufferDeviceAddress": c_uint64}
_SILENT = ("vkCmd", "vkGetPhysicalDevice", "vkDestroy", "vkFree", "vkGetDeviceQueue", "vkGetBufferMemory")


class Api:
    """The loader's functions."""

    def __init__(self, library: Any) -> None:
        self._functions: dict[str, Any] = {}
        for name, types in _FUNCTIONS.items():
            function = getattr(library, name)
            function.argtypes = types
            function.restype = _ANSWERS.get(name, None if name.startswith(_SILENT) else c_int32)
            self._functions[name] = function

    def ask(self, name: str, *given: Any) -> int:
        """What a function gives: a number of success or failure, or another."""
        found = self._functions[name](*given)
        return 0 if found is None else int(found)

    def call(self, name: str, *given: Any) -> None:
        """Call a function that must succeed."""
        code = self.ask(name, *given)
        if code:
            raise Failed(code, name)

    def made(self, name: str, owner: Any, info: Tagged, *more: Any) -> int:
        """The handle that a function of creation gives."""
        handle = c_uint64()
        self.call(name, owner, *more, ctypes.byref(info), None, ctypes.byref(handle))
        return handle.value

    def listed(self, name: str, of: Any, *given: Any) -> list[Any]:
        """What a function enumerates."""
        count = c_uint32()
        for _ in range(8):  # there may be more when it is asked again
            self.ask(name, *given, ctypes.byref(count), None)
            found = (of * count.value)()
            code = self.ask(name, *given, ctypes.byref(count), found)
            if code == 0:
                return list(found[: count.value])
            if RESULTS.get(code) != "INCOMPLETE":
                raise Failed(code, name)
        raise Failed(code, name)


@cache
def api() -> Api | None:
    """The loader's functions; None where the system has no such library, or one that is too old."""
    for name in LIBRARIES:
        try:
            return Api(ctypes.CDLL(name))
        except (OSError, AttributeError):
            continue
    return None


def pointer(thing: Any) -> int:
    """The address of a structure or an array, as fields hold it."""
    return ctypes.addressof(thing)


def strings(names: list[bytes]) -> Any:
    """An array of strings."""
    return (c_char_p * max(len(names), 1))(*names)


PRIORITY = c_float(1.0)
