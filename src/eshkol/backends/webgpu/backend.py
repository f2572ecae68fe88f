"""`WebGpuBackend`: buffers in the memory of a device of WebGPU, programs as WGSL that its driver compiles.

Comes in: what `text/backend.py` asks a driver for. Goes out: wgpu's calls, with what they say as our errors. Launches
and copies on the device are collected and handed over in one go: before the host copies something in or reads, or when
there are `TOGETHER` of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from eshkol.atlas.operands import Immediate
from eshkol.atlas.program import LaunchConfig, ParamKind, Program
from eshkol.atlas.types import Array
from eshkol.backends import base
from eshkol.backends.base import Binding
from eshkol.backends.text.backend import Loaded, Refused, TextBackend
from eshkol.backends.text.writer import TextKernel
from eshkol.backends.webgpu import devices
from eshkol.backends.webgpu.alone import GROUPS, asked_words, words_of
from eshkol.backends.webgpu.dialect import KERNEL, LANES, SHARED_WORDS, Wgsl
from eshkol.backends.webgpu.writer import WgslWriter
from eshkol.errors import BackendError, BackendUnavailable

TOGETHER = 64  # launches that are handed over in one go
MOST_LANES = 1 << 31  # of a launch: their numbers have 32 bits
TOLD = 256  # bytes between what launches are told: a device begins only at these
MEMORY_WORDS = ("out of memory", "not enough memory", "outofmemory")
LOST_WORDS = ("device lost", "is lost", "devicelost", "parent device is lost")


class WebGpuEvent(base.Event):
    """A point in what a device was asked for: the host waits until it has come there."""

    def __init__(self, backend: WebGpuBackend) -> None:
        super().__init__()
        self._backend = backend

    def record(self, stream: base.Stream | None = None) -> None:
        self._backend.synchronize()
        super().record(stream)


@dataclass(slots=True, eq=False)
class Kernel:
    """A module of WGSL, and pipelines of it: one for each number of lanes and amount of shared memory."""

    name: str
    module: Any
    bindings: int
    layout: Any
    pipeline_layout: Any
    pipelines: dict[tuple[int, int], Any] = field(default_factory=dict)


class WebGpuBackend(TextBackend[devices.Device]):
    """One device of WebGPU."""

    name: ClassVar[str] = "webgpu"
    known = devices.KNOWN
    targets: ClassVar[tuple[str, ...]] = ("wgsl", "expanded")
    writer = WgslWriter

    def __init__(self, *, memory_limit: int | None = None, dialect: Wgsl | None = None) -> None:
        self.device = devices.device(self.ordinal)
        import wgpu

        self.wgpu: Any = wgpu
        self._encoder: Any = None
        self._pass: Any = None
        self._waiting = 0  # launches that are not handed over yet
        self._layouts: dict[int, tuple[Any, Any]] = {}
        with self._asked("a device"):
            self.gpu = self.device.opened()
            self.queue = self.gpu.queue
            rounding = devices.probed(wgpu, self.gpu)
            usage = wgpu.BufferUsage.UNIFORM | wgpu.BufferUsage.COPY_DST
            self._told_bytes = self.gpu.create_buffer(size=TOGETHER * 4 * TOLD, usage=usage)
        self._usage = wgpu.BufferUsage.STORAGE | wgpu.BufferUsage.COPY_SRC | wgpu.BufferUsage.COPY_DST
        self._next = 0  # bytes of what launches are told that are used since the last hand-over
        if dialect is None:
            dialect = Wgsl(doubles=self.device.doubles, fused=rounding.fused, exact_division=rounding.division)
        super().__init__(self.device, dialect, memory_limit)

    @contextmanager
    def _asked(self, what: str) -> Iterator[None]:
        try:
            yield
        except (self.wgpu.GPUError, RuntimeError) as error:
            said = " ".join(str(error).split())
            lowered = said.lower()
            if isinstance(error, self.wgpu.GPUOutOfMemoryError) or any(word in lowered for word in MEMORY_WORDS):
                raise self._no_memory(what, said) from None
            if any(word in lowered for word in LOST_WORDS):
                raise self._lost(f"{said}, asked for {what}") from None
            raise BackendError(f"WebGPU says to {what}: {said}") from None

    def synchronize(self) -> None:
        with self.lock, self._asked("the end of its queue"):
            self._hand_over()
            self.queue.read_buffer(self._status.buffer, 0, 4)  # what was asked for before is done then

    def event(self) -> WebGpuEvent:
        return WebGpuEvent(self)

    # --- what waits to be handed over ---------------------------------------------------------------

    def _encoding(self) -> Any:
        if self._encoder is None:
            self._encoder = self.gpu.create_command_encoder()
        return self._encoder

    def _end_pass(self) -> None:
        if self._pass is not None:
            self._pass.end()
            self._pass = None

    def _hand_over(self) -> None:
        """Give the device all that it was asked for."""
        if self._encoder is not None:
            encoder = self._encoder
            self._end_pass()
            self._encoder, self._waiting, self._next = None, 0, 0
            self.queue.submit([encoder.finish()])

    # --- memory -----------------------------------------------------------------------------------

    def _take(self, size: int) -> Any:
        return self.gpu.create_buffer(size=size, usage=self._usage)

    def _drop(self, buffer: Any) -> None:
        """Nothing: a buffer goes when nothing refers to it, neither here nor in what waits."""

    def _put(self, buffer: Any, offset: int, raw: Array) -> None:
        self._hand_over()
        first, last = offset & ~3, -(-(offset + raw.size) // 4) * 4
        if first != offset or last != offset + raw.size:  # only whole words are written
            whole = np.empty(last - first, np.uint8)
            whole[:4] = np.frombuffer(self.queue.read_buffer(buffer, first, 4), np.uint8)
            whole[-4:] = np.frombuffer(self.queue.read_buffer(buffer, last - 4, 4), np.uint8)
            whole[offset - first : offset - first + raw.size] = raw
            raw = whole
        self.queue.write_buffer(buffer, first, np.ascontiguousarray(raw))

    def _get(self, buffer: Any, offset: int, into: Array) -> None:
        self._hand_over()
        first, last = offset & ~3, -(-(offset + into.size) // 4) * 4
        found = np.frombuffer(self.queue.read_buffer(buffer, first, last - first), np.uint8)
        into[:] = found[offset - first : offset - first + into.size]

    def _move(self, target: Any, target_offset: int, source: Any, source_offset: int, size: int) -> None:
        if target is source or (target_offset | source_offset | size) & 3:
            through = np.empty(size, np.uint8)
            self._get(source, source_offset, through)
            self._put(target, target_offset, through)
            return
        self._end_pass()
        self._encoding().copy_buffer_to_buffer(source, source_offset, target, target_offset, size)

    # --- kernels ----------------------------------------------------------------------------------

    def compile_to_wgsl(self, program: Program) -> str:
        """What the driver is given, without checks where there is such a version."""
        return self.source(program)

    def _compile(self, written: TextKernel, name: str) -> Any:
        bindings = written.text.count("var<storage, read_write>")
        if bindings > self.device.buffers:
            raise BackendUnavailable(
                f"a kernel of {self.device.name} has {self.device.buffers} buffers at most, '{name}' has {bindings}"
            )
        try:
            return Kernel(name, self.gpu.create_shader_module(code=written.text), bindings, *self._layout(bindings))
        except self.wgpu.GPUError as error:
            raise Refused(str(error)) from None

    def _layout(self, bindings: int) -> tuple[Any, Any]:
        """The layout of what a kernel with so many buffers is given: one for all of them."""
        if bindings not in self._layouts:
            seen = self.wgpu.ShaderStage.COMPUTE
            entries = [{"binding": 0, "visibility": seen, "buffer": {"type": "uniform", "has_dynamic_offset": True}}]
            entries += [{"binding": 1 + k, "visibility": seen, "buffer": {"type": "storage"}} for k in range(bindings)]
            layout = self.gpu.create_bind_group_layout(entries=entries)
            self._layouts[bindings] = layout, self.gpu.create_pipeline_layout(bind_group_layouts=[layout])
        return self._layouts[bindings]

    def _pipeline(self, kernel: Kernel, launch: LaunchConfig, *, shares: bool) -> Any:
        words = -(-launch.shared_memory // 4) if shares else 0
        key = launch.block_size, words
        if key not in kernel.pipelines:
            constants = {LANES: launch.block_size}
            if shares:
                constants[SHARED_WORDS] = max(words, 1)
            stage = {"module": kernel.module, "entry_point": KERNEL, "constants": constants}
            try:
                kernel.pipelines[key] = self.gpu.create_compute_pipeline(layout=kernel.pipeline_layout, compute=stage)
            except self.wgpu.GPUError as error:
                raise self._refusal(kernel.name, error) from None
        return kernel.pipelines[key]

    def _start(
        self, loaded: Loaded, launch: LaunchConfig, given: Mapping[str, Binding], first: int, blocks: int
    ) -> None:
        if launch.total_threads > MOST_LANES:
            raise BackendUnavailable(f"the webgpu backend has {MOST_LANES} lanes, not {launch.total_threads}")
        asked = loaded.written.asked
        pipeline = self._pipeline(loaded.kernel, launch, shares="shared" in asked)
        words = [0, blocks, *asked_words(asked, launch, first)]
        memory = [one for name, one in (("status", self._status), ("classes", None)) if name in asked]
        buffers = [(self.classes() if one is None else one).buffer for one in memory]
        for binding in given.values():
            if binding.param.kind is ParamKind.SCALAR:
                assert isinstance(binding.value, Immediate)
                words += words_of(binding.value)
            else:
                block = self.memory_of(binding)
                buffers.append(block.buffer)
                words.append(block.size)
        self._dispatch(loaded.kernel, pipeline, words, buffers, blocks)

    def _dispatch(self, kernel: Kernel, pipeline: Any, words: list[int], buffers: list[Any], blocks: int) -> None:
        told = np.array(words, np.uint32)
        size = -(-told.nbytes // TOLD) * TOLD
        if self._waiting >= TOGETHER or self._next + size > self._told_bytes.size:
            self._hand_over()
        self.queue.write_buffer(self._told_bytes, self._next, told)
        resources = [{"buffer": self._told_bytes, "offset": 0, "size": size}]
        resources += [{"buffer": buffer, "offset": 0, "size": buffer.size} for buffer in buffers]
        entries = [{"binding": k, "resource": one} for k, one in enumerate(resources)]
        group = self.gpu.create_bind_group(layout=kernel.layout, entries=entries)
        if self._pass is None:
            self._pass = self._encoding().begin_compute_pass()
        across = min(blocks, GROUPS)
        self._pass.set_pipeline(pipeline)
        self._pass.set_bind_group(0, group, [self._next])
        self._pass.dispatch_workgroups(across, -(-blocks // across))
        self._waiting += 1
        self._next += size
