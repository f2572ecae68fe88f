"""Fourier transforms for machines of blocks: signals that a block has in the memory that its lanes share.

Comes in: a `block_fourier`, which `rewrite/signals.py` makes of `dft`. Goes out: its kernel. A block has some signals;
its lanes take them through passes of Stockham's way, each a few elements at a time in registers: what a pass leaves in
shared memory the next one reads after a barrier. The first pass reads the tensor itself, and the last one writes the
result. Which signals and elements neighbouring lanes have is chosen for each, so that they read and write neighbours.
What stands in both halves of the memory is so far apart that lanes do not wait for each other's banks.

A transform that is a part of a longer one may have its results turned by e^(-2πi·jk/whole), where j is the signal's
number among those of the longer one, and may put signals side by side that stood one after another.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import nullcontext
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from eshkol.atlas.machines import MachineDescription
from eshkol.atlas.program import LaunchConfig
from eshkol.graph.node import Node, buffer
from eshkol.ops.dtypes import DType
from eshkol.ops.row import HOST, Aval, KernelOp, Op, Shape, row
from eshkol.schedule.kernels.block_factors import at_most
from eshkol.schedule.kernels.emit import Emitter
from eshkol.schedule.kernels.kernel import Kernel, shown
from eshkol.schedule.kernels.reads import BlockMemory, Read, Write
from eshkol.schedule.kernels.scalars import Pair, Scalar
from eshkol.schedule.kernels.transforms import unit

TABLES_KEPT = 32
GREATEST_RADIX = 13
GAP = 8  # elements in shared memory after which one is left out
ELEMENTS, SIDE_BY_SIDE = 2048, 4  # of a block, about; and its signals where those lie next to each other
LEAST_LANES, MOST_LANES, EACH = 32, 256, 8  # lanes of a block, which has so many elements for each, or a few more
LONGEST = 4096  # of which a lane has no more at a time than its registers hold


class BlockFourier(NamedTuple):
    """factor · the transforms of signals of `length`: of a tensor seen as [before, beside, length, after].

    The result is [before, length, beside, after]. Where `whole` is not 0, element k of a signal is turned by
    e^(-2πi·jk/whole), j being its place among the signals after one another, divided by `per`.
    """

    inverse: bool
    factor: float
    before: int
    beside: int
    length: int
    after: int
    whole: int
    per: int
    radices: tuple[int, ...]
    shape: Shape

    @property
    def signals(self) -> int:
        return self.before * self.beside * self.after


def radices(n: int) -> tuple[int, ...] | None:
    """The radices of the passes of a transform of n elements; None if one would be too great."""
    found, rest = [], n
    for r in (8, 4, 2, 3, 5, 7, 11, GREATEST_RADIX):
        while rest % r == 0:
            found.append(r)
            rest //= r
    if found.count(8) and found.count(2) == 1:  # 8·2 as 4·4: fewer steps of few elements
        found.remove(8)
        found.remove(2)
        found += [4, 4]
    return tuple(sorted(found, reverse=True)) if rest == 1 else None


def longest(dtype: DType, target: MachineDescription) -> int:
    """How many complex elements a block has room for."""
    return min(LONGEST, target.shared_memory * GAP // ((GAP + 1) * dtype.size) - 2 * GAP)


def _root(whole: int) -> int:
    """How many elements the table of small turns of a whole has: those of large turns are so many of them apart."""
    return 1 << -(-whole.bit_length() // 2)


@lru_cache(TABLES_KEPT)
def fourier_table(a: tuple[int, ...], whole: int, dtype: DType) -> Node:
    """What the passes of these radices multiply by, and the turns of a whole; computed in float64."""
    parts, done, n = [np.ones(1)], 1, math.prod(a)
    for r in a:
        done *= r
        m = n // done
        if m > 1:
            parts += [unit(np.arange(m) * k, m * r) for k in range(1, r)]
    if whole:
        small = _root(whole)
        parts += [unit(np.arange(small), whole), unit(np.arange(-(-whole // small)) * small, whole)]
    return buffer(np.concatenate(parts).astype(dtype.numpy), dtype)


def _reference(a: BlockFourier, x: Any, table: Any) -> Any:
    given = np.asarray(x).reshape(a.before, a.beside, a.length, a.after)
    found = np.fft.ifft(given, axis=2, norm="forward") if a.inverse else np.fft.fft(given, axis=2)
    if a.whole:
        turns = np.outer(np.arange(a.length), np.arange(a.after) // a.per)
        found = found * (np.conj if a.inverse else np.asarray)(unit(turns, a.whole))
    return (np.swapaxes(found, 1, 2) * a.factor).reshape(a.shape).astype(table.dtype)


BLOCK_FOURIER: Op = row(KernelOp(
    name="block_fourier", doc="factor · the Fourier transforms of signals, by tables.", names=("x", "table"),
    infer=lambda a, x, table: Aval(a.shape, table.dtype), reference=_reference, lower=HOST, tolerance=2.0,
))  # fmt: skip


def block_fourier_kernel(node: Node, target: MachineDescription) -> Kernel:
    """The kernel of transforms."""
    return _Writer(node, target).kernel()


class _Writer:
    """The kernel under construction."""

    def __init__(self, node: Node, target: MachineDescription) -> None:
        self.node = node
        self.a: BlockFourier = node.attrs
        a, dtype = self.a, node.dtype
        fits = max(1, longest(dtype, target) // a.length)
        wanted = max(ELEMENTS // a.length, SIDE_BY_SIDE if a.after * a.beside > 1 else 1)
        self.each = max(1, min(fits, wanted, a.signals))  # signals of a block
        lanes = -(-self.each * a.length // EACH)
        self.width = min(MOST_LANES, max(LEAST_LANES, 1 << (lanes - 1).bit_length()))
        self.blocks = -(-a.signals // self.each)
        self.e = e = Emitter((self.blocks * self.width,))
        self.reads = [Read(e, f"x{k}", x.shape, x.dtype) for k, x in enumerate(node.inputs)]
        self.write = Write(e, "out", node.shape, dtype)
        self.lane, self.block = e.lane % self.width, e.digit(e.lane, self.width, self.blocks)
        self.memory: tuple[BlockMemory, ...] = ()
        if len(a.radices) > 1:
            size = self._spread(e.number(self.each * a.length - 1)).known + 1
            self.memory = tuple(e.shared(dtype.real, size) for _ in range(2))

    def kernel(self) -> Kernel:
        a, e = self.a, self.e
        done, places = 1, 1
        for number, r in enumerate(a.radices):
            if number:
                e.barrier()  # what the last pass has left is there
            done *= r
            m = a.length // done
            self._pass(r, done // r, m, places, first=number == 0, last=number == len(a.radices) - 1)
            places += (r - 1) * m if m > 1 else 0
        program = shown(e.finish(self.node.op.name, self.reads, [self.write], self.blocks * self.width))
        buffers = tuple((f"x{k}", k) for k in range(2) if f"x{k}" in program.param)
        launch = LaunchConfig.linear(self.blocks * self.width, self.width, e.shared_memory)
        return Kernel(program, launch, None, ("out",), buffers, ())

    # --- where elements lie -----------------------------------------------------------------------

    def _spread(self, place: Scalar) -> Scalar:
        return place + place // GAP

    def _signal(self, which: Scalar) -> Scalar:
        """The number of a signal of the block; the last one for those that there are not."""
        return at_most(self.e, self.block * self.each + which, self.a.signals - 1)

    def _source(self, signal: Scalar) -> Scalar:
        """Where the first element of a signal lies in the tensor."""
        a = self.a
        return signal // a.after * (a.length * a.after) + signal % a.after

    def _target(self, signal: Scalar) -> Scalar:
        a = self.a
        near = a.beside * a.after
        return signal // near * (a.length * near) + signal % near

    def _load(self, position: Scalar) -> Scalar:
        """An element of the tensor; of an inverse transform with its parts exchanged, which makes it another's."""
        found = self.reads[0].load(position)
        if not isinstance(found, Pair):
            found = Pair(self.e, found, self.e.constant(0.0, found.dtype))
        return Pair(self.e, found.im, found.re) if self.a.inverse else found

    # --- one pass ---------------------------------------------------------------------------------

    def _pass(self, r: int, s: int, m: int, places: int, *, first: bool, last: bool) -> None:
        """All of a pass: elements j + t·(n/r) of each signal, for all t at once.

        Lanes have signals side by side where those are neighbours in memory, else elements of one. Everything is read
        before a barrier, and written after it.
        """
        e, a = self.e, self.a
        steps = a.length // r
        total = self.each * steps
        by_signal = (first and a.after > 1) or (last and a.beside * a.after > 1)
        pending = []
        for turn in range(-(-total // self.width)):
            number = self.lane + turn * self.width
            inside = None if (turn + 1) * self.width <= total else e.compare("LT", number, total)
            number = at_most(e, number, total - 1)
            if by_signal:
                which, j = e.digit(number, 1, self.each), e.digit(number, self.each, steps)
            else:
                which, j = e.digit(number, steps, self.each), e.digit(number, 1, steps)
            values = self._read(which, j, r, steps, first=first)
            found = self._turned(transformed(e, values), j // s, m, places)
            pending.append((inside, which, j, found))
        if not first and not last:
            e.barrier()  # all have read what is overwritten now
        for inside, which, j, found in pending:
            with nullcontext() if inside is None else e.only_if(inside):
                self._put(which, j, s, found, last=last)

    def _read(self, which: Scalar, j: Scalar, r: int, steps: int, *, first: bool) -> list[Scalar]:
        a = self.a
        if first:
            start = self._source(self._signal(which)) + j * a.after
            return [self._load(start + t * (steps * a.after)) for t in range(r)]
        start = which * a.length + j
        places = [self._spread(start + t * steps) for t in range(r)]
        return [Pair(self.e, *(half.load(place) for half in self.memory)) for place in places]

    def _turned(self, found: list[Scalar], p: Scalar, m: int, places: int) -> list[Scalar]:
        if m == 1:
            return found
        table = self.reads[1]
        return [found[0], *(x * table.load(p + (places + k * m)) for k, x in enumerate(found[1:]))]

    def _put(self, which: Scalar, j: Scalar, s: int, found: Sequence[Scalar], *, last: bool) -> None:
        e, a, r = self.e, self.a, len(found)
        start = j // s * (s * r) + j % s
        if not last:
            for k, value in enumerate(found):
                place = self._spread(which * a.length + start + k * s)
                for half, part in zip(self.memory, e.parts(value), strict=True):
                    half.store(place, part)
            return
        signal = self.block * self.each + which
        there = None if self.blocks * self.each == a.signals else e.compare("LT", signal, a.signals)
        signal = self._signal(which)
        with nullcontext() if there is None else e.only_if(there):
            to = self._target(signal)
            for k, value in enumerate(found):
                place = start + k * s
                self.write.store(to + place * (a.beside * a.after), self._finished(value, signal, place))

    def _finished(self, value: Scalar, signal: Scalar, place: Scalar) -> Scalar:
        e, a = self.e, self.a
        if a.whole:
            table, small = self.reads[1], _root(a.whole)
            start = table.size - small - -(-a.whole // small)
            turn = signal % a.after // a.per * place
            turn = e.at_most(turn, a.whole - 1)
            value = value * (table.load(turn % small + start) * table.load(turn // small + (start + small)))
        re, im = e.parts(value)
        if a.factor != 1:
            re, im = re * a.factor, im * a.factor
        return Pair(e, im, re) if a.inverse else Pair(e, re, im)


# --- few elements ---------------------------------------------------------------------------------


def transformed(e: Emitter, x: Sequence[Scalar]) -> list[Scalar]:
    """The transform of a few elements in registers."""
    n = len(x)
    if n % 2 == 0:
        even, odd = transformed(e, x[::2]), transformed(e, x[1::2])
        turned = [_by_eighths(e, value, 8 * k // n) for k, value in enumerate(odd)]
        return [a + b for a, b in zip(even, turned, strict=True)] + [a - b for a, b in zip(even, turned, strict=True)]
    return _of_odd(e, x)


def _by_eighths(e: Emitter, x: Any, eighths: int) -> Any:
    """A number turned by so many eighths of a turn, at most three, clockwise."""
    if eighths == 0:
        return x
    quarter = Pair(e, x.im, e.op("NEG", x.re))
    if eighths == 2:
        return quarter
    half = math.sqrt(0.5)
    if eighths == 1:
        return Pair(e, (x.re + x.im) * half, (x.im - x.re) * half)
    return Pair(e, (x.im - x.re) * half, (x.re + x.im) * -half)


def _of_odd(e: Emitter, x: Sequence[Any]) -> list[Scalar]:
    """Of an odd number of elements: those that stand opposite to each other are added and subtracted first."""
    n = len(x)
    sums = [x[t] + x[n - t] for t in range(1, n // 2 + 1)]
    differences: list[Any] = [x[t] - x[n - t] for t in range(1, n // 2 + 1)]
    total = x[0]
    for value in sums:
        total = total + value
    near: list[Scalar] = []
    far: list[Scalar] = []
    for k in range(1, n // 2 + 1):
        whole: Any = x[0]
        turned: Any = None
        for t, (one, other) in enumerate(zip(sums, differences, strict=True), 1):
            w = complex(unit(t * k, n))
            whole = whole + Pair(e, one.re * w.real, one.im * w.real)
            term = Pair(e, other.im * -w.imag, other.re * w.imag)
            turned = term if turned is None else turned + term
        near.append(whole + turned)
        far.append(whole - turned)
    return [total, *near, *reversed(far)]
