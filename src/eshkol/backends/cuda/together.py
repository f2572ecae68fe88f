"""Launches that need nothing of each other, as one kernel over all their blocks.

Comes in: calls of a sequence that may run at the same time, as their records are when each is launched by itself. Goes
out: `Joint` launches, each of several calls: the update of all parameters of a model is one. Calls of one program share
its code, and a few programs share a kernel. What calls differ in stands in a table, which is the kernel's parameter:
the block at which each call begins, and a column for each word of records that code reads and in which they differ. A
block looks up whose it is, and its lanes are then those of that call.

Only code that can neither fail nor is seen by anyone else takes part: launches that must be told apart stay apart.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Any

import numpy as np

from eshkol.atlas.program import LANES, VECTORS, LaunchConfig
from eshkol.atlas.validate import validate
from eshkol.backends.cuda.lane import BUFFER_ALIGNMENT, TOLD_ALIGNMENT, CudaLane
from eshkol.backends.cuda.launching import LaunchRecord
from eshkol.backends.cuda.loaded import PLAIN_SHARED, Loaded, Prepared
from eshkol.backends.cuda.translate import CudaModule, kernel_function, memory_of_lanes, module_of, places_of_lanes
from eshkol.backends.lanes.layout import Layout
from eshkol.backends.lanes.module import INVARIANT
from eshkol.backends.lanes.threads import functions_of
from eshkol.llvm.targets import Target
from eshkol.llvm.text import FunctionText
from eshkol.runtime.launches import NativeLaunch

LEAST = 3  # calls that are worth a kernel of their own
MOST_CODE = 2048  # instructions of all programs of a kernel
FEW_BYTES, MANY_BYTES = 4096, 32764  # of a kernel's parameters: of any, and as newer drivers have room for
ROOM_FROM = 12010  # the version of the first such driver
ROOM_PTX = 81  # and of PTX that says so
WORD = 8  # bytes
STATUS_ADDRESS = 8  # bytes of the kernel's other parameter
MEETS = frozenset({"BarSync", "SubGroupXor", "MatrixLoad", "MatrixMultiply", "CopyAsync"})
Value = tuple[int, ...]  # of a word: a number; or the place and the offset that it is the address of


@dataclass(frozen=True, slots=True)
class Member:
    """A call as it would be launched by itself."""

    number: int  # among the calls
    launch: LaunchConfig
    prepared: Prepared
    record: LaunchRecord
    buffers: Sequence[tuple[int, int, int]]  # words that are addresses: word, place, offset

    def values(self) -> dict[int, Value]:
        """What each word of the record is."""
        found: dict[int, Value] = {k: (int(value),) for k, value in enumerate(self.record.words)}
        return found | {word: (place, offset) for word, place, offset in self.buffers}


@dataclass(frozen=True, slots=True)
class Joint:
    """Calls that are one launch, by their numbers, and the kernel."""

    numbers: tuple[int, ...]
    table: Table
    loaded: Loaded

    def launch(self, status: int) -> NativeLaunch:
        table, (record, buffers) = self.table, self.table.record()
        shared = table.members[0].launch.shared_memory
        return NativeLaunch(
            self.loaded.kernel, table.blocks, table.lanes, shared, record, buffers, status, can_fail=False
        )


def read_words(prepared: Prepared, target: Target) -> frozenset[int]:
    """The words of its record that the fast code of a program reads; none where it cannot be joined to others."""
    if prepared.read is None:
        lane = _Noted(*_of_lane(prepared), shifts_bf16=target.shifts_bf16)
        text = lane.write("lane")
        leaves = text.count("%args") > 1  # a fault, or a phase
        wide = any(p.ty is not None and p.ty.size_bytes > WORD for p in prepared.program.params)
        prepared.read = frozenset() if leaves or wide else frozenset(lane.noted)
    return prepared.read


class _Noted(CudaLane):
    """Notes what is read of the record."""

    def __init__(self, *given: Any, shifts_bf16: bool) -> None:
        super().__init__(*given, shifts_bf16=shifts_bf16)
        self.noted: set[int] = set()

    def place_of_word(self, number: int) -> str:
        self.noted.add(number)
        return super().place_of_word(number)


class _OfTable(CudaLane):
    """A lane whose record lies in a table: `columns` says where a word of it does, and whether it is a column."""

    parameters = CudaLane.parameters + ", i64 %member"
    columns: Mapping[int, tuple[int, bool]]

    def place_of_word(self, number: int) -> str:
        start, differs = self.columns[number]
        return self.e.offset("%record", self.e.op(f"add i64 %member, {start}") if differs else start, "i64")


def _of_lane(prepared: Prepared) -> tuple[Any, ...]:
    assert prepared.promises is not None
    return validate(prepared.program), Layout.of(prepared.program), prepared.promises.known


class Table:
    """What a kernel of several calls is given, and its code."""

    def __init__(self, members: Sequence[Member], target: Target) -> None:
        self.target = target
        parts: dict[str, list[Member]] = {}
        for member in sorted(members, key=lambda m: -m.launch.blocks):  # what is large begins first
            parts.setdefault(member.prepared.program.digest, []).append(member)
        self.parts = [*parts.values()]
        self.members = [member for part in self.parts for member in part]
        self.firsts = [0, *accumulate(member.launch.blocks for member in self.members)]
        self.columns: list[dict[int, tuple[int, bool]]] = []  # of each part
        self._cells: list[Value] = []
        self._start = -(-len(self.members) // 2)
        common: dict[Value, int] = {}
        for part in self.parts:
            self.columns.append(self._columns_of(part, common))

    def _columns_of(self, part: Sequence[Member], common: dict[Value, int]) -> dict[int, tuple[int, bool]]:
        """Where the words that a part's code reads lie; those that are always the same lie in one place."""
        found: dict[int, tuple[int, bool]] = {}
        known: dict[tuple[Value, ...], int] = {}
        values = [member.values() for member in part]
        for word in sorted(read_words(part[0].prepared, self.target)):
            column = tuple([of[word] for of in values])
            differs = len(set(column)) > 1
            key: Any = column if differs else column[0]
            seen: dict[Any, int] = known if differs else common
            if key not in seen:
                seen[key] = self._start + len(self._cells)
                self._cells += column if differs else column[:1]
            found[word] = seen[key], differs
        return found

    @property
    def size(self) -> int:
        """Bytes of the kernel's parameters."""
        return STATUS_ADDRESS + 8 * (self._start + len(self._cells))

    @property
    def blocks(self) -> int:
        return self.firsts[-1]

    @property
    def name(self) -> str:
        return "_".join(dict.fromkeys(part[0].prepared.program.name for part in self.parts))

    @property
    def numbers(self) -> tuple[int, ...]:
        """Which calls it is of."""
        return tuple(member.number for member in self.members)

    @property
    def lanes(self) -> int:
        """Lanes of a block."""
        return max(member.launch.block_size for member in self.members)

    def record(self) -> tuple[bytes, list[tuple[int, int, int]]]:
        """The table's words, and which of them are addresses."""
        firsts = np.zeros(2 * self._start, np.uint32)
        firsts[: len(self.members)] = self.firsts[:-1]
        cells = np.array([cell[0] if len(cell) == 1 else 0 for cell in self._cells], np.uint64)
        bound = [(self._start + k, cell[0], cell[1]) for k, cell in enumerate(self._cells) if len(cell) == 2]
        return firsts.tobytes() + cells.tobytes(), bound

    # --- code -------------------------------------------------------------------------------------

    def module(self) -> CudaModule:
        """The kernel as LLVM's text."""
        functions: list[str] = []
        declared: list[str] = []
        most: list[int | None] = []
        for number, (part, columns) in enumerate(zip(self.parts, self.columns, strict=True)):
            prepared = part[0].prepared
            lane = _OfTable(*_of_lane(prepared), shifts_bf16=self.target.shifts_bf16)
            lane.columns = columns
            vectors = VECTORS in prepared.program.metadata
            lane.buffer_alignment = BUFFER_ALIGNMENT if vectors else TOLD_ALIGNMENT
            own, needed = functions_of(lane, f"lane{number}")
            functions += own
            declared += needed
            told = prepared.program.metadata.get(LANES)
            most.append(None if told is None else int(told))
        told_all = [lanes for lanes in most if lanes is not None]
        kernel = self._kernel(max(told_all) if len(told_all) == len(most) else None)
        return CudaModule(module_of(functions, kernel, declared), self.members[0].prepared.layout)

    def _kernel(self, most: int | None) -> str:
        """The function that a thread begins with: it looks up whose its block is."""
        k = FunctionText()
        places = places_of_lanes(k)
        block = k.op(f"trunc i64 {places['block']} to i32")
        member = self._searched(k, block)
        local = k.op(f"sub i32 {block}, {self._first(k, member)}")
        local = k.op(f"zext i32 {local} to i64")
        before = k.op(f"mul nuw nsw i64 {local}, {places['size']}")
        gid = k.op(f"add nuw nsw i64 {before}, {places['lane']}")
        status, shared = memory_of_lanes(k)
        start = len(self.members)
        for number in reversed(range(len(self.parts))):
            start -= len(self.parts[number])
            if number:
                mine, other = k.new_block("part"), k.new_block("other")
                k.do(f"br i1 {k.op(f'icmp uge i32 {member}, {start}')}, label %{mine}, label %{other}")
                k.place(mine)
            row = k.op(f"zext i32 {k.op(f'sub i32 {member}, {start}')} to i64")
            given = f"ptr {status}, ptr %record, ptr {shared}, i64 {gid}, i64 {local}, i64 {places['lane']}, i64 {row}"
            k.op(f"call i32 @lane{number}({given})")
            if number:
                k.do("ret void")
                k.place(other)
        return kernel_function(k, (self.size - STATUS_ADDRESS) // 8, most)

    def _first(self, k: FunctionText, member: str) -> str:
        place = k.offset("%record", k.op(f"zext i32 {member} to i64"), "i32")
        return k.load("i32", place, INVARIANT)

    def _searched(self, k: FunctionText, block: str) -> str:
        """The last member that begins no later than a block."""
        last = len(self.members) - 1
        found, step = "0", 1 << last.bit_length()
        while step := step >> 1:
            beyond = k.op(f"add i32 {found}, {step}")
            probe = k.op(f"select i1 {k.op(f'icmp ult i32 {beyond}, {last}')}, i32 {beyond}, i32 {last}")
            before = k.op(f"icmp ule i32 {self._first(k, probe)}, {block}")
            found = k.op(f"select i1 {before}, i32 {probe}, i32 {found}")
        return found


# --- which calls ----------------------------------------------------------------------------------


def tables(members: Sequence[Member], target: Target, room: int) -> Iterator[Table]:
    """Which calls are one launch each, where a kernel has room for so many bytes of parameters."""
    for found in _alike([m for m in members if _is_joined(m, target)]):
        for few in _in_code(found):
            if len(few) >= LEAST:
                yield from _in_room(few, target, room)


def _is_joined(member: Member, target: Target) -> bool:
    prepared, launch = member.prepared, member.launch
    if prepared.whole is not None or prepared.has_classes:
        return False
    if launch.shared_memory > PLAIN_SHARED or launch.block[1:] != (1, 1):
        return False
    fast = prepared.is_fast(launch, member.record.sizes, member.record.scalars)
    return fast and bool(read_words(prepared, target))


def _alike(members: Sequence[Member]) -> list[list[Member]]:
    """Members whose lanes fit one kernel: blocks of one size; or one block, in which lanes beyond the end do nothing.

    Code whose lanes meet, or share memory, stands alone: it would be slower beside other code.
    """
    found: dict[tuple[Any, ...], list[Member]] = {}
    single: list[Member] = []
    for member in members:
        program, promises = member.prepared.program, member.prepared.promises
        meets = member.launch.shared_memory or any(i.op.name in MEETS for i in program.instructions)
        if not meets and member.launch.blocks == 1 and promises is not None and promises.guard is not None:
            single.append(member)
        else:
            key = member.launch.block_size, member.launch.shared_memory, program.digest if meets else None
            found.setdefault(key, []).append(member)
    widest = max((m.launch.block_size for m in single), default=0)
    plain = [key for key in found if key[2] is None and key[0] >= widest]
    if plain:
        found[max(plain, key=lambda key: len(found[key]))] += single
        return [*found.values()]
    return [*found.values(), single]


def _in_code(members: Sequence[Member]) -> list[list[Member]]:
    """Members whose programs are not too much code for one kernel."""
    made: list[list[Member]] = [[]]
    programs: dict[str, int] = {}
    ordered: dict[str, list[Member]] = {}
    for member in members:
        ordered.setdefault(member.prepared.program.digest, []).append(member)
    for digest, few in ordered.items():
        size = len(few[0].prepared.program)
        if programs and sum(programs.values()) + size > MOST_CODE:
            made.append([])
            programs = {}
        programs[digest] = size
        made[-1] += few
    return made


def _in_room(members: Sequence[Member], target: Target, room: int) -> Iterator[Table]:
    """Members in as few tables as there is room for."""
    table = Table(members, target)
    if table.size <= room:
        yield table
        return
    pieces = -(-table.size // room)
    cuts = [len(members) * k // pieces for k in range(pieces + 1)]
    for begin, end in pairwise(cuts):
        if end - begin >= LEAST:
            yield from _in_room(table.members[begin:end], target, room)


def least_ptx(size: int) -> int:
    """The version of PTX in which kernels have so many bytes of parameters, if it must be a newer one."""
    return ROOM_PTX if size > FEW_BYTES else 0


def room_for(version: int) -> int:
    """Bytes of parameters that kernels have room for, by the driver's version."""
    return MANY_BYTES if version >= ROOM_FROM else FEW_BYTES
