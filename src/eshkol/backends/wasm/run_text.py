"""A sequence of launches as one function of LLVM text: `run`, which works at addresses that are known beforehand.

Comes in: steps and calls as `cpu/sequence.py` writes them, and where places and records lie. Goes out: text, and what
the records hold before a run. What a step says is said in `runtime/native/sequence.h`. A place whose address changes
while the sequence runs has a variable, and calls that use it write their records anew; all others are constants. The
function returns 0, or 1 and more where a call has found something wrong with its data: what each of these numbers
means is in `Program.faults`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from eshkol.backends.lanes import layout as words
from eshkol.runtime import sequence as native

RUN = "run"
Record = list[int]


@dataclass(frozen=True)
class CallFacts:
    """A call of the sequence: loops by the names of their functions, where its record lies, and what may go wrong."""

    phases: Sequence[tuple[str, int]]  # functions and how many tasks or blocks there are
    record: int  # its address
    bindings: Sequence[tuple[int, int, int]]  # word, place, offset
    faults: int  # how many
    mask: int  # of the record's first word: which of them


@dataclass(frozen=True)
class Copy:
    """Bytes to be copied when everything is done, from a place to an address."""

    place: int
    address: int
    size: int


def moving_places(steps: Sequence[native.StepWords]) -> frozenset[int]:
    """Places whose addresses change."""
    found: set[int] = set()
    for kind, a, b, *_ in steps:
        if kind in (native.SWAP, native.POINT, native.VIEW):
            found.add(a)
        if kind == native.SWAP:
            found.add(b)
    return frozenset(found)


def run_text(
    steps: Sequence[native.StepWords], calls: Sequence[CallFacts], places: Sequence[int], counters: int,
    copies: Sequence[Copy],
) -> str:  # fmt: skip
    """The function, with declarations of what it calls."""
    moving = sorted(moving_places(steps))
    writer = _Writer(calls, places, frozenset(moving))
    lines = [f"define i32 @{RUN}() nounwind {{", "begin:"]
    lines += [f"  %counter{k} = alloca i64" for k in range(counters)]
    lines += [f"  %place{p} = alloca i64" for p in moving]
    lines += [f"  store i64 {places[p]}, ptr %place{p}" for p in moving]
    lines.append("  br label %s0")
    for number, step in enumerate(steps):
        lines += [f"s{number}:", *writer.step(number, step)]
    lines.append(f"s{len(steps)}:")
    for copy in copies:
        lines += writer.moved(copy.address, writer.address(copy.place, 0), copy.size)
    functions = dict.fromkeys(name for call in calls for name, _ in call.phases)
    declared = [*(f"declare void @{name}(ptr, i64, i64)" for name in functions), _MOVE]
    return "\n".join([*lines, "  ret i32 0", "}", "", *declared]) + "\n"


_MOVE = "declare void @llvm.memmove.p0.p0.i32(ptr, ptr, i32, i1)"


def first_faults(calls: Sequence[CallFacts]) -> Iterator[int]:
    """The number that the first fault of each call has."""
    number = 1
    for call in calls:
        yield number
        number += call.faults


class _Writer:
    """The lines of steps."""

    def __init__(self, calls: Sequence[CallFacts], places: Sequence[int], moving: frozenset[int]) -> None:
        self._calls, self._places, self._moving = calls, places, moving
        self._first = [*first_faults(calls)]
        self._names = 0
        self._lines: list[str] = []
        self._steps: dict[int, Callable[[int, native.StepWords], str]] = {
            native.CALL: self._call, native.COPY: self._copy, native.SWAP: self._swap, native.POINT: self._point,
            native.VIEW: self._view, native.SET: self._set, native.NEXT: self._next, native.UNLESS: self._unless,
            native.JUMP: lambda number, step: f"s{step[1]}",
        }  # fmt: skip

    def step(self, number: int, step: native.StepWords) -> list[str]:
        """A step, up to the jump to what comes next."""
        self._lines = []
        following = self._steps[step[0]](number, step)
        if following:
            self._lines.append(f"  br label %{following}")
        return self._lines

    def address(self, place: int, offset: int) -> int | str:
        """Where a place lies, plus an offset: a number, or the name of one."""
        if place not in self._moving:
            return self._places[place] + offset
        return self._made(f"add i64 {self._made(f'load i64, ptr %place{place}')}, {offset}")

    def moved(self, target: int | str, source: int | str, size: int) -> list[str]:
        """Bytes moved from one address to another."""
        before, self._lines = self._lines, []
        if target != source and size:
            to, origin = self._pointer(target), self._pointer(source)
            self._lines.append(f"  call void @llvm.memmove.p0.p0.i32(ptr {to}, ptr {origin}, i32 {size}, i1 false)")
        made, self._lines = self._lines, before
        return made

    def _made(self, what: str) -> str:
        self._names += 1
        self._lines.append(f"  %v{self._names} = {what}")
        return f"%v{self._names}"

    def _pointer(self, address: int | str) -> str:
        if isinstance(address, int):
            return f"inttoptr (i32 {address} to ptr)"
        return self._made(f"inttoptr i64 {address} to ptr")

    def _call(self, number: int, step: native.StepWords) -> str:
        call = self._calls[step[1]]
        for word, place, offset in call.bindings:
            if place in self._moving:
                value = self.address(place, offset)
                self._lines.append(f"  store i64 {value}, ptr {self._pointer(call.record + 8 * word)}")
        record = self._pointer(call.record)
        for function, count in call.phases:
            self._lines.append(f"  call void @{function}(ptr {record}, i64 0, i64 {count})")
        if not call.faults:
            return f"s{number + 1}"
        found = self._made(f"load i64, ptr {record}")
        fine = self._made(f"icmp eq i64 {found}, {words.NO_FAULT}")
        self._lines.append(f"  br i1 {fine}, label %s{number + 1}, label %fault{number}")
        self._lines.append(f"fault{number}:")
        self._lines.append(f"  store i64 {words.NO_FAULT}, ptr {record}")
        site = self._made(f"and i64 {found}, {call.mask}")
        known = self._made(f"icmp ult i64 {site}, {call.faults}")
        which = self._made(f"select i1 {known}, i64 {site}, i64 0")
        code = self._made(f"add i64 {which}, {self._first[step[1]]}")
        self._lines.append(f"  ret i32 {self._made(f'trunc i64 {code} to i32')}")
        return ""

    def _copy(self, number: int, step: native.StepWords) -> str:
        _, a, b, size, to, origin = step
        target, source = self.address(a, to), self.address(b, origin)
        self._lines += self.moved(target, source, size)
        return f"s{number + 1}"

    def _swap(self, number: int, step: native.StepWords) -> str:
        _, a, b, *_ = step
        one, other = self.address(a, 0), self.address(b, 0)
        self._lines += [f"  store i64 {other}, ptr %place{a}", f"  store i64 {one}, ptr %place{b}"]
        return f"s{number + 1}"

    def _point(self, number: int, step: native.StepWords) -> str:
        _, a, b, offset, *_ = step
        self._lines.append(f"  store i64 {self.address(b, offset)}, ptr %place{a}")
        return f"s{number + 1}"

    def _view(self, number: int, step: native.StepWords) -> str:
        _, a, b, offset, counter, stride = step
        at = self._made(f"load i64, ptr %counter{counter}")
        far = self._made(f"mul i64 {at}, {stride}")
        self._lines.append(f"  store i64 {self._made(f'add i64 {self.address(b, offset)}, {far}')}, ptr %place{a}")
        return f"s{number + 1}"

    def _set(self, number: int, step: native.StepWords) -> str:
        self._lines.append(f"  store i64 {step[2]}, ptr %counter{step[1]}")
        return f"s{number + 1}"

    def _next(self, number: int, step: native.StepWords) -> str:
        _, counter, by, end, target, _ = step
        value = self._made(f"add i64 {self._made(f'load i64, ptr %counter{counter}')}, {by}")
        self._lines.append(f"  store i64 {value}, ptr %counter{counter}")
        done = self._made(f"icmp eq i64 {value}, {end}")
        self._lines.append(f"  br i1 {done}, label %s{number + 1}, label %s{target}")
        return ""

    def _unless(self, number: int, step: native.StepWords) -> str:
        _, place, offset, target, *_ = step
        byte = self._made(f"load i8, ptr {self._pointer(self.address(place, offset))}")
        nothing = self._made(f"icmp eq i8 {byte}, 0")
        self._lines.append(f"  br i1 {nothing}, label %s{target}, label %s{number + 1}")
        return ""
