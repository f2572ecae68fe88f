"""`RocmBackend`: buffers in the memory of an AMD GPU, programs as code objects that HIP loads.

Comes in: Atlas programs, launches and host data. Goes out: HIP's calls, in order. The host waits after launches whose
lanes may fail, and where it reads something. A failing lane stops; the launch then raises with the instruction and the
lowest lane that failed, as on the CPU. What there is no code for is refused by name.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from eshkol.atlas.operands import Immediate
from eshkol.atlas.program import LaunchConfig, Program
from eshkol.atlas.types import Array
from eshkol.atlas.validate import validate
from eshkol.backends.base import bind_params, refuse_launch
from eshkol.backends.driven import NumberedBackend
from eshkol.backends.lanes import layout as words
from eshkol.backends.lanes.layout import Layout
from eshkol.backends.lanes.memory import touches_classes
from eshkol.backends.lanes.promises import Promises, promises
from eshkol.backends.lanes.threads import KERNEL, Record
from eshkol.backends.rocm import driver as drivers
from eshkol.backends.rocm import translate as code
from eshkol.backends.rocm.driver import Device
from eshkol.errors import BackendUnavailable
from eshkol.llvm import objects
from eshkol.llvm import targets as llvm_targets
from eshkol.support.store import ProgramCache

REMEMBERED = 1024  # programs kept loaded
GRID_LIMIT = (1 << 31) - 1  # blocks of a launch
STATUS_BYTES = 16  # the first fault, and the phase
EMITTED = code.ARCHITECTURES[1]  # where no device says for which architecture code is emitted


@dataclass(frozen=True)
class Loaded:
    """A module on the device."""

    layout: Layout
    handle: int
    kernel: int


@dataclass
class Prepared:
    """What is kept of a program."""

    program: Program  # in instructions that are translated
    promises: Promises | None
    has_classes: bool
    modules: dict[bool, Loaded] = field(default_factory=dict)  # by whether it is the fast one
    launches: set[LaunchConfig] = field(default_factory=set)  # that were found to suit it


class RocmBackend(NumberedBackend[Device]):
    """One GPU."""

    name: ClassVar[str] = "rocm"
    known = drivers.KNOWN
    targets: ClassVar[tuple[str, ...]] = ("llvm", "optimized", "assembly", "expanded")

    def __init__(self, *, cache: ProgramCache | None = None, memory_limit: int | None = None) -> None:
        self.driver, device = drivers.device(self.ordinal)
        super().__init__(device, memory_limit)
        self.target = code.target(device.architecture)
        self.cache = cache or ProgramCache(durable=False)
        self._prepared: OrderedDict[str, Prepared] = OrderedDict()
        self._status = self._block(STATUS_BYTES, "status")
        self._write(self._status, 0, np.array([words.NO_FAULT, 0], np.uint64).view(np.uint8))

    @classmethod
    def unavailable(cls) -> str | None:
        return llvm_targets.unavailable() or drivers.unavailable()

    def synchronize(self) -> None:
        with self.lock:
            self._ask("hipDeviceSynchronize")

    def _ask(self, name: str, *given: Any) -> None:
        self.driver.call("hipSetDevice", self.device.number)  # the thread's own, which others may have changed
        self.driver.call(name, *given)

    # --- memory -----------------------------------------------------------------------------------

    def _take(self, size: int) -> int:
        self.driver.call("hipSetDevice", self.device.number)
        return self.driver.handle("hipMalloc", size)

    def _drop(self, buffer: int) -> None:
        self._ask("hipFree", buffer)

    def _put(self, buffer: int, offset: int, raw: Array) -> None:
        held = np.ascontiguousarray(raw)
        self._ask("hipMemcpyHtoD", buffer + offset, held.ctypes.data, held.size)

    def _get(self, buffer: int, offset: int, into: Array) -> None:
        self._ask("hipMemcpyDtoH", into.ctypes.data, buffer + offset, into.size)

    def _move(self, target: int, target_offset: int, source: int, source_offset: int, size: int) -> None:
        self._ask("hipMemcpyDtoD", target + target_offset, source + source_offset, size)

    # --- compilation ------------------------------------------------------------------------------

    def prepared(self, program: Program) -> Prepared:
        """What is kept of a program."""
        found = self._prepared.get(program.digest)
        if found is None:
            base = code.in_base_instructions(program)
            has_classes = any(map(touches_classes, base.instructions))
            found = self._prepared[program.digest] = Prepared(base, promises(base), has_classes)
            if len(self._prepared) > REMEMBERED:
                _, oldest = self._prepared.popitem(last=False)
                self._ask("hipDeviceSynchronize")  # it may still run
                for module in oldest.modules.values():
                    self._ask("hipModuleUnload", module.handle)
        else:
            self._prepared.move_to_end(program.digest)
        return found

    def _loaded(self, prepared: Prepared, *, fast: bool) -> Loaded:
        """A program on the device: already there, from the disk cache, or compiled now."""
        found = prepared.modules.get(fast)
        if found is None:
            module = code.translate(prepared.program, self.target, prepared.promises if fast else None)
            image = code.code_object(self.cache, module, self.target, prepared.program.name)
            self.driver.call("hipSetDevice", self.device.number)
            handle = self.driver.handle("hipModuleLoadData", image)
            kernel = self.driver.handle("hipModuleGetFunction", handle, KERNEL.encode())
            found = prepared.modules[fast] = Loaded(module.layout, handle, kernel)
        return found

    def compile_to_expanded(self, program: Program) -> str:
        """The program in the instructions that are translated."""
        return str(code.in_base_instructions(program))

    def compile_to_llvm(self, program: Program) -> str:
        """LLVM IR as it is translated."""
        return code.translate(code.in_base_instructions(program), self.target).text

    def compile_to_optimized(self, program: Program) -> str:
        """LLVM IR after LLVM's optimizer."""
        return objects.optimized_ir(self.compile_to_llvm(program), self.target)

    def compile_to_assembly(self, program: Program) -> str:
        """The GPU's assembler, fast where there is such a version."""
        base = code.in_base_instructions(program)
        return code.assembly(code.translate(base, self.target, promises(base)), self.target)

    # --- execution --------------------------------------------------------------------------------

    def execute(self, program: Program, launch: LaunchConfig, params: Mapping[str, Any] | None = None) -> None:
        with self.lock:
            prepared = self.prepared(program)
            if launch not in prepared.launches:
                validate(prepared.program, launch)
                self._check_launch(prepared.program, launch)
                prepared.launches.add(launch)
            class_memory = self.classes().buffer if prepared.has_classes else 0
            record = Record(Layout.of(prepared.program), launch, class_memory, self.name)
            for name, binding in bind_params(self, prepared.program, params).items():
                if isinstance(binding.value, Immediate):
                    record.scalar(name, binding.value)
                else:
                    memory = self.memory_of(binding)
                    record.buffer(name, memory.size, memory.buffer)
            relied_on = prepared.promises
            fast = relied_on is not None and relied_on.hold(launch.total_threads, record.sizes, record.scalars)
            loaded = self._loaded(prepared, fast=fast)
            if not launch.blocks or not launch.block_size:
                return
            arguments = int(self._status.buffer).to_bytes(8, "little") + bytes(record.bytes)
            self.driver.call("hipSetDevice", self.device.number)
            self.driver.launch(loaded.kernel, launch.blocks, launch.block_size, launch.shared_memory, arguments)
            if loaded.layout.sites:
                self._raise_fault(prepared.program, loaded.layout)

    def _check_launch(self, program: Program, launch: LaunchConfig) -> None:
        if launch.blocks > GRID_LIMIT:
            raise BackendUnavailable(f"a GPU runs {GRID_LIMIT} blocks at most, not {launch.blocks}")
        if launch.block_size > self.device.lanes:
            raise BackendUnavailable(
                f"a block of {self.device.name} has {self.device.lanes} lanes at most, not {launch.block_size}"
            )
        refuse_launch(self.name, self.device.name, self.device.shared_bytes, program, launch)

    def _raise_fault(self, program: Program, layout: Layout) -> None:
        """Wait for a launch; where a lane has failed, say so."""
        found = int(np.frombuffer(self._read(self._status, 0, 8), np.uint64)[0])
        if found == words.NO_FAULT:
            return
        self._write(self._status, 0, np.array([words.NO_FAULT], np.uint64).view(np.uint8))
        raise layout.error(program, found)

    @property
    def phase(self) -> int:
        """The phase, which persists between launches."""
        return int(np.frombuffer(self._read(self._status, 8, 8), np.uint64)[0])
