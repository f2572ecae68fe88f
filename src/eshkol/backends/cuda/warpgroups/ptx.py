"""PTX as Python writes it: a kernel under construction, with registers, loops, and what blocks of Hopper have.

Comes in: calls, one for each instruction or a few that belong together. Goes out: the text of a module with one kernel.
Registers are PTX's own: there are as many as one likes, they may be written again, and the driver's compiler finds
places for them. Kernels in this package are written so, not as Atlas code of one lane, because four warps work as
one on instructions that LLVM has no words for.
"""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

KERNEL = "kernel"
VERSION, TARGET = "8.0", "sm_90a"
WARP, GROUP = 32, 128  # threads of a warp, and of the four warps that multiply together
_PREFIX = {"b16": "h", "b32": "r", "b64": "d", "f32": "f", "pred": "p"}


class Kernel:
    """The body of one kernel, whose parameters are the address of a status and a record of so many bytes."""

    def __init__(self, threads: int, cluster: int, record: int) -> None:
        self.threads, self.cluster, self.record = threads, cluster, record
        self.lines: list[str] = []
        self._counts: Counter[str] = Counter()
        self._labels = 0

    # --- registers and instructions -----------------------------------------------------------------

    def register(self, kind: str = "b32") -> str:
        number = self._counts[kind]
        self._counts[kind] += 1
        return f"%{_PREFIX[kind]}{number}"

    def registers(self, count: int, kind: str = "f32") -> list[str]:
        return [self.register(kind) for _ in range(count)]

    def do(self, instruction: str, *operands: str | int, when: str | None = None) -> None:
        """An instruction without a result of its own, for threads for which a predicate holds."""
        guard = "" if when is None else f"@{when} "
        self.lines.append(f"    {guard}{instruction} {', '.join(map(str, operands))};")

    def op(self, instruction: str, *operands: str | int, kind: str = "b32") -> str:
        """The result of an instruction, in a register of its own."""
        found = self.register(kind)
        self.do(instruction, found, *operands)
        return found

    def number(self, value: int, kind: str = "b32") -> str:
        return self.op(f"mov.{kind}", value, kind=kind)

    def special(self, name: str) -> str:
        """A register that the machine has filled, such as `tid.x`."""
        return self.op("mov.u32", f"%{name}")

    def add(self, a: str, b: str | int) -> str:
        return a if b == 0 else self.op("add.u32", a, b)

    def mul(self, a: str, b: str | int) -> str:
        return a if b == 1 else self.op("mul.lo.u32", a, b)

    def less(self, a: str, b: str | int) -> str:
        return self.op("setp.lt.u32", a, b, kind="pred")

    def equal(self, a: str, b: str | int) -> str:
        return self.op("setp.eq.u32", a, b, kind="pred")

    def divided(self, a: str, by: int) -> tuple[str, str]:
        """The quotient and what is left, by a number that is known."""
        if by & (by - 1) == 0:
            return (self.op("shr.u32", a, by.bit_length() - 1) if by > 1 else a), self.op("and.b32", a, by - 1)
        quotient = self.op("div.u32", a, by)
        return quotient, self.op("sub.u32", a, self.mul(quotient, by))

    # --- control flow -------------------------------------------------------------------------------

    def label(self) -> str:
        self._labels += 1
        return f"L{self._labels}"

    def place(self, label: str) -> None:
        self.lines.append(f"{label}:")

    @contextmanager
    def unless(self, predicate: str) -> Iterator[None]:
        """Code that threads pass by for which a predicate holds."""
        end = self.label()
        self.do("bra", end, when=predicate)
        yield
        self.place(end)

    @contextmanager
    def only(self, predicate: str) -> Iterator[None]:
        """Code for threads for which a predicate holds."""
        end = self.label()
        self.do("bra", end, when=f"!{predicate}")
        yield
        self.place(end)

    @contextmanager
    def counted(self, start: str | int, limit: str | int, step: str | int = 1) -> Iterator[str]:
        """A loop from a number to below another, both of 32 bits."""
        counter = self.op("mov.u32", start)
        again, end = self.label(), self.label()
        self.place(again)
        done = self.op("setp.ge.u32", counter, limit, kind="pred")
        self.do("bra", end, when=done)
        yield counter
        self.do("add.u32", counter, counter, step)
        self.do("bra", again)
        self.place(end)

    # --- parameters and shared memory ---------------------------------------------------------------

    def address(self, offset: int) -> str:
        """The address of a byte of the record, as the machine's copies are told it."""
        start = self.op("mov.b64", "record", kind="b64")
        return self.op("cvta.param.u64", self.op("add.u64", start, offset, kind="b64"), kind="b64")

    def word(self, offset: int) -> str:
        """A word of 64 bits of the record."""
        return self.op("ld.param.b64", f"[record+{offset}]", kind="b64")

    def shared(self) -> str:
        """Where the block's shared memory begins."""
        return self.op("mov.u32", "shared")

    # --- waiting ------------------------------------------------------------------------------------

    def barrier(self, number: int, threads: int) -> None:
        """Wait for so many threads of the block at one of its barriers."""
        self.do("bar.sync", number, threads)

    def together(self) -> None:
        """Wait for all threads of the cluster, or of the block where it is alone."""
        if self.cluster > 1:
            self.lines += ["    barrier.cluster.arrive.release;", "    barrier.cluster.wait.acquire;"]
        else:
            self.do("bar.sync", 0)

    # --- text -----------------------------------------------------------------------------------------

    def text(self, registers: int | None = None) -> str:
        cluster = [f".reqnctapercluster {self.cluster}"] if self.cluster > 1 else []
        budget = [f".maxnreg {registers}"] if registers is not None else [".minnctapersm 1"]
        declared = [f"    .reg .{kind} %{_PREFIX[kind]}<{count}>;" for kind, count in sorted(self._counts.items())]
        return "\n".join([
            f".version {VERSION}", f".target {TARGET}", ".address_size 64", "",
            ".extern .shared .align 1024 .b8 shared[];", "",
            f".visible .entry {KERNEL}(.param .u64 status, .param .align 64 .b8 record[{self.record}])",
            f".reqntid {self.threads}", *cluster, *budget, "{", *declared, "", *self.lines, "    ret;", "}", "",
        ])  # fmt: skip


def real(value: float) -> str:
    """A constant of 32 bits."""
    return "0f" + struct.pack(">f", value).hex().upper()


def listed(registers: Sequence[str]) -> str:
    return "{" + ", ".join(registers) + "}"
