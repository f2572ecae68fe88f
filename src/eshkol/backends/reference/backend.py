"""`ReferenceBackend`: buffers and pools in host memory, programs on the lockstep machine."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

from eshkol.atlas.expand import expand
from eshkol.atlas.isa import Instruction, Kind
from eshkol.atlas.machines import CORES, MachineDescription
from eshkol.atlas.operands import Immediate
from eshkol.atlas.pool import Pool
from eshkol.atlas.program import LaunchConfig, ParamKind, Program, disassemble
from eshkol.atlas.table.arrays import fold
from eshkol.atlas.types import Array, encode
from eshkol.atlas.validate import validate
from eshkol.backends.base import (
    BufferHandle,
    HandleTable,
    HostPoolBackend,
    PoolHandle,
    as_bytes,
    bind_params,
    check_size,
)
from eshkol.backends.reference.addresses import DeviceState, Spaces
from eshkol.backends.reference.machine import Exchange, LockstepMachine
from eshkol.backends.reference.memory import Bytes, Memory, SharedMemory
from eshkol.errors import AllocationFailed, ExecutionFailed
from eshkol.support import installed

ALLOCATION_LIMIT = 1 << 34
LANE_LIMIT = 1 << 24
SHARED_LIMIT = 1 << 28  # bytes over all blocks of a launch
DESCRIPTION = replace(CORES, name="reference", largest=ALLOCATION_LIMIT, shared_memory=SHARED_LIMIT, subgroup=32)


class ReferenceBackend(HostPoolBackend):
    """The definition of Atlas, slow and strict. `expanded=True` runs extensions by their expansions."""

    name: ClassVar[str] = "reference"
    targets: ClassVar[tuple[str, ...]] = ("atlas", "expanded")

    def __init__(self, *, expanded: bool = False, step_limit: int = 5_000_000) -> None:
        super().__init__()
        self.expanded, self.step_limit = expanded, step_limit
        self.state = DeviceState()
        self._buffers: HandleTable[Memory] = HandleTable(self.number, "buffer")

    @classmethod
    def unavailable(cls) -> str | None:
        return None

    @property
    def description(self) -> MachineDescription:
        return DESCRIPTION

    @property
    def class_memory(self) -> Bytes:
        """The 96 classes' memory, which persists between launches."""
        return self.state.class_memory.data

    @property
    def phase(self) -> int:
        return self.state.phase

    # --- buffers ----------------------------------------------------------------------------------

    def allocate(self, size: int) -> BufferHandle:
        check_size(size, min(ALLOCATION_LIMIT, installed.memory()), "buffer")
        try:
            memory = Memory("the buffer", np.zeros(size, np.uint8), written=False, aligned=True)
        except MemoryError:
            raise AllocationFailed(f"no memory for a buffer of {size} bytes") from None
        return BufferHandle(self.number, self._buffers.add(memory))

    def free(self, handle: BufferHandle) -> None:
        self._buffers.remove(handle)

    def copy_to(self, handle: BufferHandle, data: Any, offset: int = 0) -> None:
        raw = as_bytes(data)
        self.checked_copy(handle, offset, raw.size)
        self._buffers.get(handle).copy_in(offset, raw)

    def copy_from(self, handle: BufferHandle, offset: int = 0, size: int | None = None) -> bytes:
        memory = self._buffers.get(handle)
        size = memory.data.size - offset if size is None else size
        self.checked_copy(handle, offset, size)
        return memory.data[offset : offset + size].tobytes()

    def size(self, handle: BufferHandle) -> int:
        return self._buffers.get(handle).data.size

    # --- execution --------------------------------------------------------------------------------

    def execute(self, program: Program, launch: LaunchConfig, params: Mapping[str, Any] | None = None) -> None:
        with _enough_memory(), np.errstate(all="ignore"):
            machine = self._machine(program, launch, params, self.state)
            for request in machine.run():
                devices = request.instruction.devices
                raise ExecutionFailed(
                    f"{request.instruction.op.name} over devices {devices} on a backend of one device",
                    span=request.instruction.span, hint="use execute_on_devices with one set of parameters per device",
                )  # fmt: skip

    def execute_on_devices(self, program: Program, launch: LaunchConfig, params: Sequence[Mapping[str, Any]]) -> None:
        """Run the program on several devices at once, one set of parameters each.

        Each device has its own class memory; AllReduce and AllGather bring their buffers together.
        """
        with _enough_memory(), np.errstate(all="ignore"):
            runs = [self._machine(program, launch, given, DeviceState()).run() for given in params]
            requests: list[Exchange | None] = [next(run, None) for run in runs]
            while any(request is not None for request in requests):
                result = _combine(requests)
                requests = [_advance(run, result) for run in runs]

    def _machine(
        self, program: Program, launch: LaunchConfig, params: Mapping[str, Any] | None, state: DeviceState
    ) -> LockstepMachine:
        analysis = validate(program, launch)
        bindings = bind_params(self, program, params)
        if self.expanded:
            program = expand(program)
            analysis = validate(program, launch)
        if launch.total_threads > LANE_LIMIT:
            raise AllocationFailed(f"{launch.total_threads} lanes are too many for the reference: {LANE_LIMIT}")
        if launch.shared_memory * launch.blocks > SHARED_LIMIT:
            raise AllocationFailed(f"the blocks' shared memory is over {SHARED_LIMIT} bytes in all")
        buffers: dict[str, Memory] = {}
        pools: dict[str, Pool] = {}
        for name, binding in bindings.items():
            if isinstance(binding.value, Immediate):
                raw = encode(binding.value.array(), binding.value.ty).reshape(-1)
                buffers[name] = Memory(f"scalar '{name}'", raw, written=True, aligned=True)
            elif binding.param.kind is ParamKind.POOL:
                assert isinstance(binding.value, PoolHandle)
                pools[name] = self._pools.get(binding.value)
            else:
                assert isinstance(binding.value, BufferHandle)
                buffers[name] = self._buffers.get(binding.value)
                buffers[name].name = f"buffer '{name}'"
        block_of_lane = np.arange(launch.total_threads) // launch.block_size
        shared = SharedMemory(launch.blocks, launch.shared_memory, block_of_lane)
        spaces = Spaces(buffers, pools, state, shared, block_of_lane, ALLOCATION_LIMIT)
        return LockstepMachine(program, analysis, launch, state, spaces, self.step_limit, self.description.subgroup)

    def compile_to_atlas(self, program: Program) -> str:
        """The program as it runs."""
        validate(program)
        return disassemble(program)

    def compile_to_expanded(self, program: Program) -> str:
        """The program in base instructions only."""
        return disassemble(expand(program))


@contextmanager
def _enough_memory() -> Iterator[None]:
    """Memory that a launch could not have (for lanes, or inside an instruction) is a failed allocation."""
    try:
        yield
    except MemoryError:
        raise AllocationFailed("the launch needs more memory than there is") from None


def _advance(run: Any, result: Array) -> Exchange | None:
    try:
        request = run.send(result)
    except StopIteration:
        return None
    assert isinstance(request, Exchange)
    return request


def _combine(requests: Sequence[Exchange | None]) -> Array:
    """What every device receives: the reduction of the arrays, or all of them one after another."""
    first = next(r for r in requests if r is not None)
    i = first.instruction
    if any(r is None or r.instruction != i for r in requests):
        raise ExecutionFailed(f"not every device reached {i.op.name}: they must all run it together", span=i.span)
    if sorted(i.devices) != list(range(len(requests))):
        raise ExecutionFailed(
            f"{i.op.name} names devices {i.devices}, but {len(requests)} run", span=i.span,
            hint=f"devices are numbered 0 to {len(requests) - 1}",
        )  # fmt: skip
    arrays = [requests[d].values for d in i.devices]
    return all_reduce(i, arrays) if i.of_kind(Kind.UPDATE) else np.concatenate(arrays)


def all_reduce(instruction: Instruction, arrays: Sequence[Array]) -> Array:
    """The element-wise reduction of one array per device; floats in F64, rounded once when stored."""
    stacked = np.stack(arrays)
    ty = instruction.ty
    return fold(instruction.operation, ty, stacked.astype(np.float64) if ty.is_float else stacked)
