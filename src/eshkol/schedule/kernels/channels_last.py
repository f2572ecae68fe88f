"""Copies with channels last, for machines of blocks: tiles of channels × places, turned in shared memory.

Comes in: an input of a convolution, and how its copy is to lie, a `Last`. Goes out: the kernel that copies it, for
another kernel of the same node or as a node of its own, a `CHANNELS_LAST` that several convolutions may read. Lanes
that stand side by side read places of one channel, and write channels of one place: bits in words, whatever number
they are. Where there are few places, as taps of a kernel are, a tile has all of several outer ones; where none of these
and no channels are such that what is read lies side by side, a lane reads what it writes, one chunk.
"""

from __future__ import annotations

from math import gcd
from typing import Any, NamedTuple

import numpy as np

from eshkol.atlas.machines import MachineDescription
from eshkol.atlas.program import LaunchConfig
from eshkol.graph.node import Node
from eshkol.ops import dtypes
from eshkol.ops.row import HOST, Aval, KernelOp, Op, row
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

    @property
    def is_there(self) -> bool:
        """Whether the copy would be what it is made of."""
        dense = self.steps[1:] == (self.channels, 1) and self.channels % CHUNK == 0
        return self.groups * self.places == 1 and dense

    def sources(self) -> Any:
        """Where each element that is copied comes from: groups × outer × places × channels."""
        extents = self.groups, self.outer, self.places, self.channels
        group, outer, place, channel = np.ogrid[tuple(slice(n) for n in extents)]
        place = self.places - 1 - place if self.around else place
        return group * self.steps[0] + outer * self.steps[1] + place + channel * self.steps[2]

    def copy(self, x: Any) -> Any:
        """The copy of an array, with zeros behind its channels."""
        found = np.zeros((self.size // (self.chunks * CHUNK), self.chunks * CHUNK), x.dtype)
        found[:, : self.channels] = x.reshape(-1)[self.sources()].reshape(-1, self.channels)
        return found

    def back(self, copied: Any, shape: tuple[int, ...]) -> Any:
        """The array that was copied."""
        found = np.empty(count(shape), copied.dtype)
        found[self.sources().reshape(-1)] = copied[:, : self.channels].reshape(-1)
        return found.reshape(shape)


CHANNELS_LAST: Op = row(KernelOp(
    name="channels_last", doc="A copy of a convolution's input, with so many channels last as fill chunks.",
    names=("x",), infer=lambda a, x: Aval((a.size // (a.chunks * CHUNK), a.chunks * CHUNK), x.dtype),
    reference=lambda a, x: a.copy(x), lower=HOST,
))  # fmt: skip


def copying_kernel(node: Node, k: int, name: str, last: Last, target: MachineDescription) -> Kernel:
    """The kernel that copies an input to the memory of a name."""
    if last.places == 1 and last.steps[1] == 1:  # outer ones lie side by side, as places do
        last = last._replace(outer=1, places=last.outer, steps=(last.steps[0], 0, last.steps[2]), around=False)
    if last.places >= FEWEST and not last.around:
        return _tile_by_tile(node, k, name, last)
    if last.channels >= HIGHEST and last.places in last.steps[1:] and last.channels % WORD == 0:
        return _outer_by_outer(node, k, name, last)
    return _chunk_by_chunk(node, k, name, last, target)


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


def _outer_by_outer(node: Node, k: int, name: str, last: Last) -> Kernel:
    """A block for each tile of some channels of several outer ones, with all their places."""
    x, copied = node.inputs[k], last.chunks * CHUNK
    deep = max(1, min(TILE // (HIGHEST * last.places), last.outer))  # outer ones of a tile
    down, across = -(-last.outer // deep), -(-copied // HIGHEST)
    blocks = last.groups * down * across
    e = Emitter((blocks * LANES,))
    read = Read(e, f"x{k}", x.shape, dtypes.uint16)
    write = Write(e, name, (last.size // WORD,), dtypes.uint32)
    pitch = HIGHEST + WORD  # in shared memory, from one place to the next
    memory, lane = e.shared(dtypes.uint16, deep * last.places * pitch), e.lane % LANES
    group, row, column = digits(e, e.lane // LANES, (last.groups, down, across))
    inner = last.steps[2] == last.places  # whether channels, not outer ones, lie side by side
    size, found = deep * HIGHEST * last.places, []
    for number in range(-(-size // LANES)):
        flat = lane + number * LANES
        there = e.compare("LT", flat, size)
        flat = at_most(e, flat, size - 1)
        if inner:
            outer, channel, place = digits(e, flat, (deep, HIGHEST, last.places))
        else:
            channel, outer, place = digits(e, flat, (HIGHEST, deep, last.places))
        at = (outer * last.places + (last.places - 1 - place if last.around else place)) * pitch + channel
        channel, outer = column * HIGHEST + channel, at_most(e, row * deep + outer, last.outer - 1)
        position = outer * last.steps[1] + at_most(e, channel, last.channels - 1) * last.steps[2] + place
        value = read.load(group * last.steps[0] + position)
        found.append((there, at, e.select(e.compare("LT", channel, last.channels), value, 0)))
    for there, at, value in found:
        with e.only_if(there):
            memory.store(at, value)
    e.barrier()
    for number in range(-(-size // WORD // LANES)):
        flat = lane + number * LANES
        there = e.compare("LT", flat, size // WORD)
        flat = at_most(e, flat, size // WORD - 1)
        outer, place, pair = digits(e, flat, (deep, last.places, HIGHEST // WORD))
        line = (outer * last.places + place) * pitch + pair * WORD
        low, up = (e.convert(memory.load(line, n), dtypes.uint32) for n in range(WORD))
        outer, pair = row * deep + outer, column * (HIGHEST // WORD) + pair
        inside = e.both(e.compare("LT", outer, last.outer), e.compare("LT", pair, copied // WORD))
        outer, pair = at_most(e, outer, last.outer - 1), at_most(e, pair, copied // WORD - 1)
        with e.only_if(e.both(there, inside)):
            write.store(((group * last.outer + outer) * last.places + place) * (copied // WORD) + pair, low + up * HALF)
    lanes = blocks * LANES
    return _kernel(node, k, e, (read, write), last, lanes, LaunchConfig.linear(lanes, LANES, e.shared_memory))


def _kernel(
    node: Node, k: int, e: Emitter, ends: tuple[Read, Write], last: Last, lanes: int, launch: LaunchConfig
) -> Kernel:
    read, write = ends
    program = shown(e.finish(f"{node.op.name}_copied", [read], [write], lanes))
    scratch = () if write.name == "out" else ((write.name, node.inputs[k].dtype, last.size),)
    return Kernel(program, launch, None, ("out",), ((f"x{k}", k),), (), scratch)
