"""One lane as a thread of a GPU: what is the same on those of NVIDIA and of AMD.

Comes in: a program in instructions that have a lowering. Goes out: the text of a module with one kernel. The lanes of a
block are threads side by side, so a barrier is the machine's own, and shared memory is its own too. What a launch is
given comes as the kernel's parameter (`%record`, words as in `lanes/layout.py`; a scalar lies in its two words itself),
and what lanes leave behind (`%args`: the fault, the phase) is memory of the device. Buffers are known to be global
memory, which LLVM follows through the code.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable
from typing import Any, ClassVar

from eshkol.atlas.isa import Instruction
from eshkol.atlas.operands import BufferOffset, Immediate
from eshkol.atlas.program import LaunchConfig, ParamKind
from eshkol.atlas.types import encode
from eshkol.backends.lanes import layout as words
from eshkol.backends.lanes.emitter import llvm_type
from eshkol.backends.lanes.layout import Layout
from eshkol.backends.lanes.module import INVARIANT, METADATA, helpers
from eshkol.backends.lanes.ranges import SHARED_MEMORY
from eshkol.backends.lanes.remainders import with_functions
from eshkol.backends.lanes.writer import LaneWriter
from eshkol.errors import BackendUnavailable, IsaError
from eshkol.llvm.text import pointer

GLOBAL_SPACE, SHARED_SPACE = 1, 3
SHARED_ALIGNMENT = 16  # the widest that a thread reads or writes at once
SCALAR_BYTES = 16  # of the two words that a parameter has in the record
KERNEL = "kernel"  # the name of the one function of a module that is launched
SHARED = f"@shared = external addrspace({SHARED_SPACE}) global [0 x i8], align {SHARED_ALIGNMENT}"


class ThreadLane(LaneWriter):
    """Writes the function of one lane."""

    shared_alignment: ClassVar[int] = SHARED_ALIGNMENT
    parameters: ClassVar[str] = "ptr %args, ptr %record, ptr %shared, i64 %gid, i64 %block, i64 %lane"
    exchanging: ClassVar[int]  # threads that exchange registers, on every such machine

    def place_of_word(self, number: int) -> str:
        """Where a word of what the launch is given lies."""
        return self.e.offset("%record", number, "i64")

    def word(self, number: int, llvm: str = "i64") -> str:
        place = self.place_of_word(number)
        if llvm != "ptr":
            return self.e.load(llvm, place, INVARIANT)
        found = self.e.load(pointer(GLOBAL_SPACE), place, INVARIANT)
        return self.e.op(f"addrspacecast {pointer(GLOBAL_SPACE)} {found} to ptr")

    def _do_LDG(self, i: Instruction) -> None:
        param = self.program.param.get(getattr(i.src, "handle", ""))
        if not isinstance(i.src, BufferOffset) or param is None or param.kind is not ParamKind.SCALAR:
            super()._do_LDG(i)
            return
        place = self.place_of_word(self.layout.word(param.name))
        self.write_register(i.dst, i.ty, self.e.load(llvm_type(i.ty), place, ", align 8" + INVARIANT))

    def _do_SubGroupXor(self, i: Instruction) -> None:
        """In words of 32 bits, as threads exchange them."""
        if i.mask >= self.exchanging:
            raise IsaError(
                f"SubGroupXor: mask {i.mask} leaves the sub-group, which has {self.exchanging} lanes", span=i.span
            )
        kind, bits, e = llvm_type(i.ty), i.ty.bits, self.e
        value = e.op(f"bitcast {kind} {self.read(i.src)} to i{bits}")
        whole = e.op(f"zext i{bits} {value} to i32") if bits < 32 else value
        parts = [whole] if bits <= 32 else [
            e.op(f"trunc i64 {part} to i32") for part in (whole, e.op(f"lshr i64 {whole}, 32"))
        ]  # fmt: skip
        got = [self.exchanged(part, i.mask) for part in parts]
        if bits > 32:
            low, high = (e.op(f"zext i32 {part} to i64") for part in got)
            found = e.op(f"or i64 {low}, {e.op(f'shl i64 {high}, 32')}")
        else:
            found = e.op(f"trunc i32 {got[0]} to i{bits}") if bits < 32 else got[0]
        self.write_register(i.dst, i.ty, e.op(f"bitcast i{bits} {found} to {kind}"))

    @abstractmethod
    def exchanged(self, value: str, mask: int) -> str:
        """The i32 of the lane whose number differs by the mask."""

    @abstractmethod
    def meet(self) -> None:
        """Wait for the other lanes of the block."""

    def _do_BarSync(self, i: Instruction) -> None:
        self.meet()
        self.go(self.index + 1)

    # A launch of one block waits for all its lanes at the block's barrier; others are refused before they run.
    _do_GridSync = _do_BarSync


def functions_of(lane: ThreadLane, name: str = "lane") -> tuple[list[str], list[str]]:
    """The function of a lane with those that it calls, and what they declare."""
    body, remainders, counts = with_functions(lane.write(name))
    return [*remainders, body], [*lane.e.declared.values(), *counts]


def module_text(functions: Iterable[str], kernel: str, declared: Iterable[str]) -> str:
    """A module: functions of lanes with what they need, and the function that a thread begins with."""
    body = "\n\n".join(dict.fromkeys(functions))
    return "\n\n".join([SHARED, *helpers(body), body, kernel, *dict.fromkeys(declared), METADATA]) + "\n"


class Record:
    """The words that a kernel is given (`lanes/layout.py`), with what is known of buffers and scalars."""

    def __init__(self, layout: Layout, launch: LaunchConfig, class_memory: int, backend: str) -> None:
        self.layout, self.backend = layout, backend
        self.bytes = bytearray(8 * layout.words)
        self.words = memoryview(self.bytes).cast("Q")
        self.words[words.CLASS_MEMORY] = class_memory
        self.words[words.SHARED_BYTES] = launch.shared_memory
        for k, (blocks, lanes) in enumerate(zip(launch.grid, launch.block, strict=True)):
            self.words[words.GRID + k], self.words[words.BLOCK + k] = blocks, lanes
        self.sizes: dict[str, int] = {SHARED_MEMORY: launch.shared_memory}  # bytes of buffers, and of what blocks share
        self.scalars: dict[str, Any] = {}

    def scalar(self, name: str, value: Immediate) -> None:
        raw = encode(value.array(), value.ty).tobytes()
        if len(raw) > SCALAR_BYTES:
            raise BackendUnavailable(
                f"the {self.backend} backend has no scalar parameters of type {value.ty}: '{name}'"
            )
        place = 8 * self.layout.word(name)
        self.bytes[place : place + len(raw)] = raw
        self.scalars[name] = value.value

    def buffer(self, name: str, size: int, address: int = 0) -> int:
        """Note a buffer; the word that has its address."""
        place = self.layout.word(name)
        self.words[place], self.words[place + 1] = address, size
        self.sizes[name] = size
        return place
