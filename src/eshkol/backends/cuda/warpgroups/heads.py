"""What kernels of attention and of its gradients have in common: groups of four warps, each with 64 rows of a head.

Comes in: how matrices of rows lie, and calls of what writes a kernel. Goes out: parts of the kernel as PTX. A block has
rows of one head, and goes along tiles of others. Its groups multiply their rows by a tile's rows, and what they make of
that, which stays in their registers, by a tile as it lies; results go to where rows of the group were in shared
memory, and are copied from there.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from eshkol.atlas.types import Type
from eshkol.backends.cuda.warpgroups import ring as rings
from eshkol.backends.cuda.warpgroups.confines import Confines
from eshkol.backends.cuda.warpgroups.maps import LINE_ELEMENTS, MAP_BYTES, Axis, TensorMap
from eshkol.backends.cuda.warpgroups.ptx import GROUP, WARP, Kernel, listed
from eshkol.backends.cuda.warpgroups.ring import LINE, NAMES, REGISTERS, ROWS, TERMS
from eshkol.backends.cuda.warpgroups.sight import Sight, hide


@dataclass(frozen=True)
class HeadTile:
    """What a block computes at a time, of heads of at most so many elements: so many groups of 64 rows."""

    widest: int
    groups: int

    @property
    def rows(self) -> int:
        return self.groups * ROWS

    @property
    def threads(self) -> int:
        return (1 + self.groups) * GROUP

    @property
    def cluster(self) -> int:
        """Blocks that work together."""
        return 1

    @property
    def registers(self) -> tuple[int, int] | None:
        """Of threads that have tiles copied, and of those that multiply."""
        return REGISTERS[self.groups]


@dataclass(frozen=True)
class Rows:
    """How matrices of rows lie in a buffer, in elements: their distance, and that of matrices along each batch axis."""

    buffer: str
    offset: int  # bytes
    distance: int
    batch: tuple[int, ...]  # 0: the same for all

    def map(self, ty: Type, width: int, lines: int, batch: Sequence[int], high: int) -> TensorMap:
        """The tensor map of boxes of so many of their lines."""
        axes = [Axis(extent, step) for extent, step in zip(batch, self.batch, strict=True) if step]
        shape = (Axis(width, 1), Axis(lines, self.distance), *axes[::-1])
        return TensorMap(self.buffer, self.offset, ty, shape, (LINE_ELEMENTS, high, *(1 for _ in axes)))


class Result(NamedTuple):
    """Sums of a group's rows: a factor for each half of them, where they go in shared memory, and from there."""

    sums: Sequence[str]
    factors: Sequence[str] | None
    memory: str
    tensor: str
    rows: Rows


class HeadWriter(ABC):
    """A kernel under construction: so many groups, of heads of so many elements, and so many maps.

    Rows in shared memory are of the widest heads; what a head does not have is 0 there.
    """

    which: str  # head
    first: str  # row of the block
    group: str
    me: str  # number of a thread in its group
    lane: str
    row: str  # the first of those that a thread has sums of; the others lie 8 below

    def __init__(
        self, ty: Type, batch: tuple[int, ...], width: int, sight: Sight, tile: HeadTile, record: int, count: int
    ) -> None:
        self.ty, self.batch, self.width, self.sight, self.groups = ty, batch, width, sight, tile.groups
        self.k = k = Kernel(tile.threads, tile.cluster, record)
        self.registers = tile.registers
        self.thread, self.base = k.special("tid.x"), k.shared()
        self.maps = [k.address(record - (count - number) * MAP_BYTES) for number in range(count)]
        self.blocks = tile.widest // LINE_ELEMENTS  # of 64 elements of a row
        self.high = tile.rows
        self.confines: Confines | None = None
        self.inside: list[str] = []  # places along axes of the batch that a block itself goes along

    @abstractmethod
    def copy(self) -> None:
        """Code of the group of which threads have tiles copied."""

    @abstractmethod
    def work(self) -> None:
        """Code of the others."""

    def divide(self) -> None:
        """Give groups their registers and what they do."""
        k = self.k
        group = k.op("shr.u32", self.thread, GROUP.bit_length() - 1)
        budget, end = self.registers, k.label()
        with k.only(k.equal(group, 0)):
            if budget is not None:
                k.do("setmaxnreg.dec.sync.aligned.u32", budget[0])
            self.copy()
            k.do("bra", end)
        if budget is not None:
            k.do("setmaxnreg.inc.sync.aligned.u32", budget[1])
        self.group = k.op("sub.u32", group, 1)
        self.me = k.op("and.b32", self.thread, GROUP - 1)
        self.lane = k.op("and.b32", self.me, WARP - 1)
        line = k.op("mad.lo.u32", k.op("shr.u32", self.me, 5), 16, k.op("shr.u32", self.lane, 2))
        self.row = k.add(k.add(self.first, k.mul(self.group, ROWS)), line)
        self.work()
        k.place(end)

    def find(self, lines: int, *, backwards: bool, block: str | None = None) -> None:
        """Which of so many rows of which head a block has."""
        k = self.k
        down = -(-lines // self.high)
        which, number = k.divided(k.special("ctaid.x") if block is None else block, down)
        if backwards:
            number = k.op("sub.u32", k.number(down - 1), number)
        self.locate(which)
        self.first = k.mul(number, self.high)

    def locate(self, which: str) -> None:
        """Where a head is along the axes of the batch."""
        k = self.k
        self.which, self.places = which, list[str]()
        for extent in self.batch[:0:-1]:
            which, place = k.divided(which, extent)
            self.places.insert(0, place)
        if self.batch:
            self.places.insert(0, which)

    def seen(self, keys: int, high: int) -> tuple[str | int, str]:
        """The first of the tiles of keys that a block's queries see, and the one behind the last."""
        begin, end = self._near(keys, high)
        return self.confine(begin, end, keys, high)

    def confine(self, begin: str | int, end: str, lines: int, high: int) -> tuple[str | int, str]:
        """The same of fewer tiles, if it is said in memory which: of so many lines, so high."""
        if not self.sight.confined:
            return begin, end
        self.confines = Confines(self.k, self.sight, self.places, lines, self.thread)
        return self.confines.within(begin, self.confines.fewer(end, high), self.first, self.high, high)

    def _near(self, keys: int, high: int) -> tuple[str | int, str]:
        k, ahead, behind = self.k, self.sight.ahead, self.sight.behind
        begin: str | int = 0
        end = k.number(-(-keys // high))
        if ahead is not None:
            most = k.divided(k.add(self.first, self.high + ahead + high - 2), high)[0]
            end = k.op("min.u32", end, most)
        if behind is not None:
            least = k.op("max.s32", k.op("sub.s32", self.first, behind - 1), 0)
            begin = k.divided(least, high)[0]
        return begin, end

    def bring(self, x: Rows, tensor: str, into: str, high: int, start: str, barrier: str) -> None:
        """Begin to copy so many rows to shared memory."""
        for block in range(self.blocks):
            at = self._at(x, block * LINE_ELEMENTS, start)
            rings.bring(self.k, self.k.add(into, block * high * LINE), tensor, at, barrier)

    def _at(self, x: Rows, across: int, down: str) -> list[str]:
        places = (*self.places, *self.inside)  # what has no place inside is the same there, or has no such axis
        batch = [place for place, step in zip(places, x.batch, strict=False) if step]
        return [self.k.number(across), down, *batch[::-1]]

    # --- groups -----------------------------------------------------------------------------------------

    def constants(self) -> tuple[str, str]:
        """Predicates that hold always, and never."""
        k = self.k
        return k.op("setp.eq.u32", 0, 0, kind="pred"), k.op("setp.ne.u32", 0, 0, kind="pred")

    def multiply(self, sums: Sequence[str], left: str, right: str, high: int, always: str, never: str) -> None:
        """Begin to multiply a group's rows by a tile of so many."""
        k = self.k
        left, right = rings.described(k, left, LINE), rings.described(k, right, LINE)
        for step in range(-(-self.width // TERMS)):
            block, inner = divmod(step * TERMS, LINE_ELEMENTS)
            here, there = (
                k.op("add.u64", x, (block * lines * LINE + inner * 2) >> 4, kind="b64")
                for x, lines in ((left, self.high), (right, high))
            )
            begun = always if step else never
            rings.multiply(k, NAMES[self.ty], sums, here, there, begun, turned=(False, False))
        rings.commit(k)

    def add(self, sums: Sequence[str], left: Sequence[str], right: str, high: int, always: str, begun: str) -> None:
        """Begin to add a tile of so many rows times what lies in registers."""
        k = self.k
        right = rings.described(k, right, high * LINE)
        for step in range(high // TERMS):
            there = k.op("add.u64", right, step * TERMS * LINE >> 4, kind="b64")
            four = left[4 * step :][:4]
            rings.multiply(k, NAMES[self.ty], sums, four, there, always if step else begun, turned=(False, True))
        rings.commit(k)

    def mask(self, scores: Sequence[str], start: str, keys: int, high: int) -> None:
        """Let no query see keys beyond the last, or those that lie too far after it or before it."""
        k, ahead, behind = self.k, self.sight.ahead, self.sight.behind
        if ahead is not None or keys % high:
            end = k.add(start, high)
            least = k.number(keys) if ahead is None else k.op("min.u32", k.add(self.first, ahead), keys)
            with k.only(k.op("setp.gt.u32", end, least, kind="pred")):
                column = self.column(start)
                for half in range(2):
                    limit = k.number(keys)
                    if ahead is not None:
                        limit = k.op("min.u32", limit, k.add(self.row, 8 * half + ahead))
                    hide(k, scores, half, "le", k.op("sub.s32", limit, column))
        if behind is not None:
            with k.only(k.less(k.add(start, behind), k.add(self.first, self.high))):
                column = self.column(start)
                for half in range(2):
                    limit = k.op("sub.s32", k.add(self.row, 8 * half), behind - 1)
                    hide(k, scores, half, "gt", k.op("sub.s32", limit, column))
        if self.confines is not None:
            self.confines.hide(scores, start, self.column(start), high)
            self.confines.hide_columns(scores, start, self.column(start), high)

    def column(self, start: str) -> str:
        """The first of a thread's columns, in a tile from a place on."""
        return self.k.op("mad.lo.u32", self.k.op("and.b32", self.lane, 3), 2, start)

    def rows(self, lines: int) -> list[str]:
        """The two rows that a thread has scores of, or the last of so many."""
        return [self.k.op("min.u32", self.k.add(self.row, 8 * half), lines - 1) for half in range(2)]

    def pack(self, packed: Sequence[str], values: Sequence[str], *, least: bool = False) -> None:
        """Round, in pairs; to no less than 0 if that is the least."""
        rounding = "rn.relu" if least else "rn"
        for number, register in enumerate(packed):
            low, high = values[2 * number :][:2]
            self.k.do(f"cvt.{rounding}.{NAMES[self.ty]}x2.f32", register, high, low)

    def store(self, results: Sequence[Result], down: str | None = None) -> None:
        """Results, rounded, to where rows of the group were, from where the machine begins to copy them.

        They go to rows from a place on, or to those of the group.
        """
        k = self.k
        inner = k.op("and.b32", self.lane, 7)
        line = k.op("mad.lo.u32", k.op("shr.u32", self.me, 5), 16, k.add(k.op("and.b32", self.lane, 8), inner))
        chunk = k.op("shr.u32", self.lane, 4)
        first, barrier = k.equal(self.me, 0), k.add(self.group, 1)
        k.do("bar.sync", barrier, GROUP)  # all warps of the group have multiplied their rows
        for result in results:
            into = k.op("mad.lo.u32", line, LINE, result.memory)
            for block in range(self.blocks):
                for pair in range(LINE_ELEMENTS // 16):
                    eight = list(result.sums[block * 32 + pair * 8 :][:8])
                    if result.factors is not None:
                        eight = [
                            k.op("mul.f32", x, result.factors[n // 2 % 2], kind="f32") for n, x in enumerate(eight)
                        ]
                    packed = k.registers(4, "b32")
                    self.pack(packed, eight)
                    where = k.op("xor.b32", k.add(chunk, 2 * pair), inner)
                    target = k.add(k.op("mad.lo.u32", where, 16, into), block * self.high * LINE)
                    k.lines.append(f"    stmatrix.sync.aligned.m8n8.x4.shared.b16 [{target}], {listed(packed)};")
        k.lines.append("    fence.proxy.async.shared::cta;")
        k.do("bar.sync", barrier, GROUP)
        with k.only(first):
            if down is None:
                down = k.add(self.first, k.mul(self.group, ROWS))
            for result in results:
                for block in range(self.blocks):
                    at = self._at(result.rows, block * LINE_ELEMENTS, down)
                    rings.send(k, result.tensor, at, k.add(result.memory, block * self.high * LINE))
            k.lines.append("    cp.async.bulk.commit_group;")
