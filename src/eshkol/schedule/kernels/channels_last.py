"""Copies with channels last, for machines of blocks: tiles of channels × places, turned in shared memory.

Comes in: an input of a convolution, and how its copy is to lie, a `Last`. Goes out: the kernel that copies it. Lanes
that stand side by side read places of one channel, and write channels of one place: bits in words, whatever number
they are. Where there are so few places that a tile would be mostly empty, a lane reads what it writes, one chunk.
"""

from __future__ import annotations

from math import gcd
from typing import NamedTuple

from eshkol.atlas.machines import MachineDescription
from eshkol.atlas.program import LaunchConfig
from eshkol.graph.node import Node
from eshkol.ops import dtypes
from eshkol.ops.shapes import count
from eshkol.schedule.kernels.block_factors import at_most, digits
from eshkol.schedule.kernels.emit import Emitter
from eshkol.schedule.kernels.kernel import Kernel, shown
from eshkol.schedule.kernels.matrix_operands import CHUNK
from eshkol.schedule.kernels.reads import Read, Write
from eshkol.schedule.kernels.scalars import Scalar

LANES = 256  # of a block
HIGHEST, TILE = 64, 4096  # channels that a tile has at most; and its elements
WORD = 2  # elements that a lane reads and writes at once: lanes side by side then have as much as the machine moves
HALF = 1 << 16  # what the upper one of a word is multiplied by
FEWEST = 32  # places, from which on there are tiles


class Last(NamedTuple):
    """An input with its channels last: groups × outer × places × channels."""

    groups: int
    outer: int
    places: int
    channels: int
    steps: tuple[int, int, int]  # of groups, outer ones and channels, where they come from
    around: bool  # whether the places are turned around

    @property
    def chunks(self) -> int:
        """Of the channels of one place."""
        return -(-self.channels // CHUNK)

    @property
    def size(self) -> int:
        """Elements of the copy."""
        return self.groups * self.outer * self.places * self.chunks * CHUNK


def copying_kernel(node: Node, k: int, name: str, last: Last, target: MachineDescription) -> Kernel:
    """The kernel that copies an input to the memory of a name."""
    if last.places < FEWEST or last.around:
        return _chunk_by_chunk(node, k, name, last, target)
    return _tile_by_tile(node, k, name, last)


def _chunk_by_chunk(node: Node, k: int, name: str, last: Last, target: MachineDescription) -> Kernel:
    """A lane for each chunk, those of neighbouring places side by side."""
    x, lanes = node.inputs[k], last.size // CHUNK
    e = Emitter((lanes,))
    read, write = Read(e, f"x{k}", x.shape, x.dtype), Write(e, name, (last.size,), x.dtype)
    group, outer, chunk, place = digits(e, e.lane, (last.groups, last.outer, last.chunks, last.places))
    source = last.places - 1 - place if last.around else place
    position = group * last.steps[0] + outer * last.steps[1] + source
    at = (((group * last.outer + outer) * last.places + place) * last.chunks + chunk) * CHUNK
    found = []
    for number in range(CHUNK):
        channel = chunk * CHUNK + number
        value = read.load(position + at_most(e, channel, last.channels - 1) * last.steps[2])
        found.append(e.select(e.compare("LT", channel, last.channels), value, 0))
    for number, value in enumerate(found):
        write.store(at, value, number)
    return _kernel(node, k, e, (read, write), last, lanes, LaunchConfig.linear(lanes, target.block))


def _tile_by_tile(node: Node, k: int, name: str, last: Last) -> Kernel:
    """A block for each tile: what its lanes have read side by side they write side by side."""
    x = node.inputs[k]
    high = min(HIGHEST, CHUNK << (last.chunks - 1).bit_length())  # channels of a tile
    wide = TILE // high  # and places
    pitch = wide + 1  # in shared memory, so that lanes do not wait for each other's banks
    copied = last.chunks * CHUNK  # channels of the copy
    down, across = -(-copied // high), -(-last.places // wide)
    blocks = last.groups * last.outer * down * across
    e = Emitter((blocks * LANES,))
    several = gcd(WORD, last.places, *last.steps)  # places that a lane reads at once
    read = Read(e, f"x{k}", (count(x.shape) // several,), dtypes.uint32 if several == WORD else dtypes.uint16)
    write = Write(e, name, (last.size // WORD,), dtypes.uint32)
    memory, lane = e.shared(dtypes.uint16, high * pitch), e.lane % LANES
    group, outer, row, column = digits(e, e.lane // LANES, (last.groups, last.outer, down, across))
    start = group * (last.steps[0] // several) + outer * (last.steps[1] // several)
    found: list[tuple[Scalar, Scalar]] = []
    for number in range(TILE // several // LANES):
        line, part = digits(e, lane + number * LANES, (high, wide // several))
        channel = row * high + line
        place = at_most(e, column * (wide // several) + part, last.places // several - 1)
        position = start + at_most(e, channel, last.channels - 1) * (last.steps[2] // several) + place
        inside = e.compare("LT", channel, last.channels)
        value = e.select(inside, read.load(position), 0)
        found.append((line * pitch + part * several, value))
    for at, value in found:
        memory.store(at, e.convert(value, dtypes.uint16))
        if several == WORD:
            memory.store(at, e.convert(value // HALF, dtypes.uint16), 1)
    e.barrier()
    for number in range(TILE // WORD // LANES):
        part, pair = digits(e, lane + number * LANES, (wide, high // WORD))
        place, channel = column * wide + part, row * (high // WORD) + pair
        inside = e.both(e.compare("LT", place, last.places), e.compare("LT", channel, copied // WORD))
        place, channel = at_most(e, place, last.places - 1), at_most(e, channel, copied // WORD - 1)
        at = ((group * last.outer + outer) * last.places + place) * (copied // WORD) + channel
        low, up = (e.convert(memory.load(pair * (WORD * pitch) + part, n * pitch), dtypes.uint32) for n in range(WORD))
        with e.only_if(inside):
            write.store(at, low + up * HALF)
    lanes = blocks * LANES
    return _kernel(node, k, e, (read, write), last, lanes, LaunchConfig.linear(lanes, LANES, e.shared_memory))


def _kernel(
    node: Node, k: int, e: Emitter, ends: tuple[Read, Write], last: Last, lanes: int, launch: LaunchConfig
) -> Kernel:
    read, write = ends
    program = shown(e.finish(f"{node.op.name}_copied", [read], [write], lanes))
    scratch = (write.name, node.inputs[k].dtype, last.size)
    return Kernel(program, launch, None, ("out",), ((f"x{k}", k),), (), (scratch,))
