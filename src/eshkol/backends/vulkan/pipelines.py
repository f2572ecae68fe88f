"""Kernels that a device has loaded: modules, and a pipeline of each for the sizes of blocks that launches have."""

from __future__ import annotations

import ctypes
import weakref
from ctypes import byref, c_uint32, c_uint64
from typing import Any

from eshkol.backends.spirv.compiler import BLOCK_SIZE, ENTRY
from eshkol.backends.spirv.memory import SHARED_WORDS
from eshkol.backends.vulkan import api as vk

KERNEL_STAGE, PUSHED = 0x20, 8  # bytes that a launch pushes: the address of its arguments


class Pipelines:
    """What makes pipelines of a device."""

    def __init__(self, api: vk.Api, device: Any) -> None:
        self.api, self.device = api, device
        pushed = vk.PushConstantRange(stageFlags=KERNEL_STAGE, offset=0, size=PUSHED)
        info = vk.PipelineLayoutCreateInfo(pushConstantRangeCount=1, pPushConstantRanges=vk.pointer(pushed))
        self.layout = api.made("vkCreatePipelineLayout", device, info)
        self._dropped: list[tuple[int, dict[tuple[int, int], int]]] = []

    def module(self, code: bytes) -> Module:
        """A module of SPIR-V, loaded."""
        info = vk.ShaderModuleCreateInfo(codeSize=len(code), pCode=code)
        return Module(self, self.api.made("vkCreateShaderModule", self.device, info))

    def drop(self, handle: int, pipelines: dict[tuple[int, int], int]) -> None:
        """A module that nothing will run again, but that the device may be running."""
        self._dropped.append((handle, pipelines))

    def clean(self) -> None:
        """Give back what was dropped: the device has done all that it was asked for."""
        while self._dropped:
            handle, pipelines = self._dropped.pop()
            for pipeline in pipelines.values():
                self.api.call("vkDestroyPipeline", self.device, pipeline, None)
            self.api.call("vkDestroyShaderModule", self.device, handle, None)


class Module:
    """A loaded module with its pipelines; it is dropped with the last reference."""

    def __init__(self, owner: Pipelines, handle: int) -> None:
        self._owner, self.handle = owner, handle
        self._pipelines: dict[tuple[int, int], int] = {}
        weakref.finalize(self, owner.drop, handle, self._pipelines)

    def pipeline(self, block_size: int, shared_words: int) -> int:
        """The pipeline for blocks of a size."""
        key = (block_size, shared_words)
        if key not in self._pipelines:
            self._pipelines[key] = self._made(*key)
        return self._pipelines[key]

    def _made(self, block_size: int, shared_words: int) -> int:
        numbers = (c_uint32 * 2)(block_size, shared_words)
        entries = (vk.SpecializationMapEntry * 2)(
            vk.SpecializationMapEntry(BLOCK_SIZE, 0, 4), vk.SpecializationMapEntry(SHARED_WORDS, 4, 4)
        )
        constants = vk.SpecializationInfo(2, ctypes.addressof(entries), 8, ctypes.addressof(numbers))
        stage = vk.PipelineShaderStageCreateInfo(
            stage=KERNEL_STAGE, module=self.handle, pName=ENTRY.encode(), pSpecializationInfo=vk.pointer(constants)
        )
        info = vk.ComputePipelineCreateInfo(stage=stage, layout=self._owner.layout, basePipelineIndex=-1)
        found = c_uint64()
        self._owner.api.call(
            "vkCreateComputePipelines", self._owner.device, 0, 1, byref(info), None, byref(found)
        )  # fmt: skip
        return found.value
