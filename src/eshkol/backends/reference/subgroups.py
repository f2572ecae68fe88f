"""What lanes do besides their own step: fragments of whole sub-groups, and copies that arrive when they are waited for.

Comes in: instructions with the lanes that execute them now. Goes out: their registers and memory changed. Sub-groups
that are not all there, and places of copies that are used too early, are faults.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from eshkol.atlas import fragments
from eshkol.atlas.fragments import LANES, LINE_BYTES
from eshkol.atlas.isa import Instruction, LaneFault
from eshkol.atlas.operands import Address, address_register
from eshkol.atlas.types import Array, Type
from eshkol.backends.reference.addresses import MemoryPlace, Spaces
from eshkol.backends.reference.registers import RegisterFile


class FragmentUnit:
    """Executes instructions on fragments for all sub-groups that have come."""

    def __init__(self, registers: RegisterFile, spaces: Spaces, block_size: int) -> None:
        self.registers, self.spaces, self.block_size = registers, spaces, block_size

    def multiply(self, i: Instruction, lanes: Array) -> None:
        self._complete(i, lanes)
        a, b, c = (
            [self.registers.read(getattr(i, f"{name}{k}"), ty, lanes) for k in range(count)]
            for name, ty, count in (("a", Type.U32, 4), ("b", Type.U32, 2), ("c", Type.F32, 4))
        )
        for k, sums in enumerate(fragments.multiply(i.ty, a, b, c)):
            self.registers.write(getattr(i, f"d{k}"), Type.F32, lanes, sums)

    def load(self, i: Instruction, lanes: Array, types: tuple[Type, ...]) -> None:
        self._complete(i, lanes)
        place = self.spaces.resolve(i.src, self.registers, lanes, types[0] if types else None)
        _check_lines(place, place.offsets, LINE_BYTES)
        first = np.arange(lanes.size) // LANES * LANES  # where the sub-group of each lane begins
        within = np.arange(lanes.size) % LANES
        loaded = []
        for number in range(4):
            found = np.zeros(lanes.size, np.uint32)
            for half, (lane, byte) in enumerate(fragments.loaded_from(number, transpose=i.transpose)):
                offsets = place.offsets[first + lane[within]] + byte[within]
                at = MemoryPlace(place.memory, place.base, offsets, place.limit)
                found |= at.load(Type.U16, lanes).astype(np.uint32) << np.uint32(16 * half)
            loaded.append(found)
        for k, words in enumerate(loaded):
            self.registers.write(getattr(i, f"d{k}"), Type.U32, lanes, words)

    def _complete(self, i: Instruction, lanes: Array) -> None:
        """Refuse lanes whose sub-group is not all here."""
        within = lanes % self.block_size
        group = (lanes - within) * LANES + within // LANES  # a number of its own for each
        _, which, counts = np.unique(group, return_inverse=True, return_counts=True)
        missing = counts[which.reshape(-1)] != LANES
        if missing.any():
            here = int(counts[which.reshape(-1)][missing][0])
            raise LaneFault(
                missing,
                f"{here} of the {LANES} lanes of the sub-group are here",
                f"all lanes of a sub-group execute {i.op.name} together: move it out of the branch, and launch blocks "
                f"of a multiple of {LANES} lanes",
            )


@dataclass(frozen=True, slots=True)
class _Copy:
    """What some lanes have begun to copy by one instruction."""

    lanes: Array
    place: MemoryPlace
    data: Array  # 16 bytes for each lane
    group: Array  # the number of each lane's group


class Copies:
    """Copies under way, of all lanes of a launch."""

    def __init__(self, registers: RegisterFile, spaces: Spaces, count: int) -> None:
        self.registers, self.spaces = registers, spaces
        self.committed = np.zeros(count, np.int64)  # groups of each lane
        self.under_way: list[_Copy] = []

    def begin(self, i: Instruction, lanes: Array, types: tuple[Type, ...]) -> None:
        """Read now, and keep everybody from the target until it arrives."""
        indices = iter(types)
        target, source = (self._place(address, lanes, indices) for address in (i.dst, i.src))
        size = self.registers.read(i.bytes, Type.U32, lanes).astype(np.int64)
        if (size > LINE_BYTES).any():
            raise LaneFault(size > LINE_BYTES, f"{int(size.max())} bytes are more than the {LINE_BYTES} of a copy")
        _check_lines(target, target.offsets, LINE_BYTES)
        _check_lines(source, source.offsets, size)
        data = np.zeros((lanes.size, LINE_BYTES), np.uint8)
        for byte in range(LINE_BYTES):
            wanted = size > byte
            if wanted.any():
                at = MemoryPlace(source.memory, source.base, source.offsets[wanted] + byte, source.limit)
                data[wanted, byte] = at.load(Type.U8, lanes[wanted])
        self.spaces.shared.begin_arrival(target.offsets + target.base, LINE_BYTES, lanes)
        self.under_way.append(_Copy(lanes, target, data, self.committed[lanes]))

    def _place(self, address: Address, lanes: Array, indices: Iterator[Type]) -> MemoryPlace:
        ty = next(indices) if address_register(address) is not None else None
        return self.spaces.resolve(address, self.registers, lanes, ty)

    def commit(self, lanes: Array) -> None:
        self.committed[lanes] += 1

    def wait(self, lanes: Array, pending: int) -> None:
        """Let all groups of these lanes arrive but the last ones."""
        waiting = np.zeros(self.committed.size, bool)
        waiting[lanes] = True
        remaining = []
        for copy in self.under_way:
            done = waiting[copy.lanes] & (copy.group < self.committed[copy.lanes] - pending)
            if done.any():
                self._arrive(copy, done)
            if not done.all():
                rest = ~done
                remaining.append(_Copy(copy.lanes[rest], _chosen(copy.place, rest), copy.data[rest], copy.group[rest]))
        self.under_way = remaining

    def _arrive(self, copy: _Copy, done: Array) -> None:
        place, lanes = _chosen(copy.place, done), copy.lanes[done]
        self.spaces.shared.end_arrival(place.offsets + place.base, LINE_BYTES)
        for word in range(0, LINE_BYTES, 8):
            at = MemoryPlace(place.memory, place.base, place.offsets + word, place.limit)
            at.store(Type.U64, copy.data[done][:, word : word + 8].copy().view(np.uint64)[:, 0], lanes)


def _chosen(place: MemoryPlace, mask: Array) -> MemoryPlace:
    base = place.base[mask] if isinstance(place.base, np.ndarray) else place.base
    return MemoryPlace(place.memory, base, place.offsets[mask], place.limit)


def _check_lines(place: MemoryPlace, offsets: Array, size: int | Array) -> None:
    """Refuse lines of 16 bytes that are not aligned to so many, or of which what is used leaves the memory."""
    crooked = offsets % LINE_BYTES != 0
    if crooked.any():
        first = int(offsets[crooked][0])
        raise LaneFault(crooked, f"byte {first} of {place.memory.name} is not aligned to {LINE_BYTES} bytes")
    outside = (offsets < 0) | (offsets + size > place.limit)
    if outside.any():
        first = int(offsets[outside][0])
        raise LaneFault(
            outside,
            f"address out of range: {LINE_BYTES} bytes from {first} on of {place.memory.name}, which has {place.limit}",
        )
