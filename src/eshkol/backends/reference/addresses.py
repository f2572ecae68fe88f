"""Address resolution: from an address operand and registers to places in memory.

`DeviceState` outlives launches (class memory, phase); `Spaces` is what one launch can reach.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from eshkol.atlas.classes import CLASS_BYTES, CLASS_MEMORY_BYTES, CLASSES
from eshkol.atlas.isa import LaneFault
from eshkol.atlas.operands import (
    Address,
    BufferOffset,
    ClassOffset,
    Indexed,
    PoolOffset,
    RegisterIndirect,
    Shared,
    StaticAddress,
    far_index,
)
from eshkol.atlas.pool import Pool
from eshkol.atlas.types import Array, Type
from eshkol.backends.reference.memory import Memory, SharedMemory
from eshkol.backends.reference.registers import RegisterFile


@dataclass
class DeviceState:
    """What persists from launch to launch: the class memory and the phase counter."""

    class_memory: Memory = field(
        default_factory=lambda: Memory(
            "class memory", np.zeros(CLASS_MEMORY_BYTES, np.uint8), written=True, aligned=False
        )
    )
    phase: int = 0


@dataclass(slots=True)
class MemoryPlace:
    """Where lanes access memory: offsets into regions that start at base and are limit bytes long."""

    memory: Memory
    base: Any  # one region, or one per lane
    offsets: Array
    limit: int

    def load(self, ty: Type, lanes: Array) -> Array:
        return self.memory.load(self.base, self.offsets, ty, self.limit, lanes)

    def store(self, ty: Type, values: Array, lanes: Array) -> None:
        self.memory.store(self.base, self.offsets, ty, self.limit, values, lanes)

    def check_read(self, ty: Type) -> None:
        """Refuse places that cannot be read: out of range, not aligned, or not written yet."""
        self.memory.check_read(self.base, self.offsets, ty, self.limit)

    def pick(self, k: int) -> MemoryPlace:
        """The place of the k-th lane alone."""
        base = self.base[k : k + 1] if isinstance(self.base, np.ndarray) else self.base
        return MemoryPlace(self.memory, base, self.offsets[k : k + 1], self.limit)

    def shifted(self, amounts: Array) -> MemoryPlace:
        """One place per amount of bytes beyond this (single) one."""
        return MemoryPlace(self.memory, self.base, self.offsets[0] + amounts, self.limit)

    def load_quietly(self, ty: Type) -> Array:
        """A load that the race check does not see, as part of an atomic."""
        return Memory.load(_silent(self.memory), self.base, self.offsets, ty, self.limit, np.zeros(1, np.int64))

    def store_quietly(self, ty: Type, values: Array) -> None:
        Memory.store(_silent(self.memory), self.base, self.offsets, ty, self.limit, values, np.zeros(1, np.int64))


NOWHERE = MemoryPlace(
    Memory("nothing", np.zeros(0, np.uint8), written=True, aligned=False), 0, np.zeros(1, np.int64), 0
)
"""The place of an array of no elements."""


def _silent(memory: Memory) -> Memory:
    """The same bytes without a race record."""
    if not isinstance(memory, SharedMemory):
        return memory
    plain = Memory(memory.name, memory.data, written=True, aligned=memory.aligned)
    plain.written = memory.written
    return plain


class Spaces:
    """The memories one launch can reach, by name."""

    def __init__(
        self, buffers: Mapping[str, Memory], pools: Mapping[str, Pool], state: DeviceState, shared: SharedMemory,
        block_of_lane: Array, pool_limit: int,
    ) -> None:  # fmt: skip
        self.buffers, self.state, self.shared = buffers, state, shared
        self.pools = {name: _pool_memory(name, pool) for name, pool in pools.items()}
        self.block_of_lane, self.pool_limit = block_of_lane, pool_limit

    def make_pool(self, name: str, size: int) -> None:
        if name in self.pools:
            raise LaneFault(np.ones(1, bool), f"the pool '{name}' is already allocated")
        if size > self.pool_limit:
            raise LaneFault(np.ones(1, bool), f"a pool of {size} bytes is over the limit of {self.pool_limit}")
        self.pools[name] = _pool_memory(name, Pool(size))

    def drop_pool(self, name: str) -> None:
        if self.pools.pop(name, None) is None:
            raise LaneFault(np.ones(1, bool), f"the pool '{name}' is not allocated")

    def resolve(self, address: Address, registers: RegisterFile, lanes: Array, index_type: Type | None) -> MemoryPlace:
        """The place each lane means by an address; `index_type` is that of its register."""
        if isinstance(address, RegisterIndirect):
            assert index_type is not None
            linear = _clipped(registers.read(address.register, index_type, lanes), far_index(1))
            outside = (linear < 0) | (linear >= CLASS_MEMORY_BYTES)
            if outside.any():
                where = int(linear[outside][0])
                raise LaneFault(
                    outside, f"address out of range: byte {where} of the class memory of {CLASS_MEMORY_BYTES}"
                )
            return self.class_place(linear // CLASS_BYTES * CLASS_BYTES, linear % CLASS_BYTES)
        if isinstance(address, Indexed):
            assert index_type is not None
            far = far_index(address.scale)
            steps = _clipped(registers.read(address.index, index_type, lanes), far) * address.scale
            return self._static(address.base, lanes, steps)
        return self._static(address, lanes, np.zeros(lanes.size, np.int64))

    def _static(self, base: StaticAddress, lanes: Array, steps: Array) -> MemoryPlace:
        offsets = steps + base.offset
        if isinstance(base, BufferOffset):
            memory = self.buffers[base.handle]
            return MemoryPlace(memory, 0, offsets, memory.data.size)
        if isinstance(base, Shared):
            return MemoryPlace(self.shared, self.block_of_lane[lanes] * self.shared.size, offsets, self.shared.size)
        if isinstance(base, ClassOffset):
            return self.class_place(np.full(lanes.size, base.class_id * CLASS_BYTES), offsets)
        assert isinstance(base, PoolOffset)
        pool = self.pools.get(base.handle)
        if pool is None:
            raise LaneFault(np.ones(lanes.size, bool), f"the pool '{base.handle}' is not allocated here")
        return MemoryPlace(pool, 0, offsets, pool.data.size)

    def class_place(self, starts: Array, offsets: Array) -> MemoryPlace:
        """Places in the memories of classes; an access may cross pages but not classes."""
        assert self.state.class_memory.data.size == CLASSES * CLASS_BYTES
        return MemoryPlace(self.state.class_memory, starts, offsets, CLASS_BYTES)


def _clipped(indices: Array, far: int) -> Array:
    """Indices as signed 64-bit integers, far ones brought to where they are surely out of range."""
    if indices.dtype.itemsize < 8:
        return indices.astype(np.int64)
    near = np.minimum(indices, far)
    return np.maximum(near, -far) if indices.dtype.kind == "i" else near.astype(np.int64)


def _pool_memory(name: str, pool: Pool) -> Memory:
    return Memory(f"pool '{name}'", pool.memory, written=True, aligned=False)
