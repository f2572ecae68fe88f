"""One lane as a thread of a GPU: the code of any machine's lane, with what NVIDIA's threads need.

The lanes of a block are threads side by side, so a barrier is the machine's own, and shared memory is its own too. What
a launch is given comes as the kernel's parameter (`%record`, words as in `lanes/layout.py`; a scalar lies in its two
words itself), and what lanes leave behind (`%args`: the fault, the phase) is memory of the device. Buffers are known to
be global memory, which LLVM follows through the code.
"""

from __future__ import annotations

from typing import ClassVar

from eshkol.atlas.isa import Instruction
from eshkol.atlas.operands import BufferOffset
from eshkol.atlas.program import ParamKind
from eshkol.backends.lanes.emitter import llvm_type
from eshkol.backends.lanes.module import INVARIANT
from eshkol.backends.lanes.writer import LaneWriter
from eshkol.errors import IsaError
from eshkol.llvm.text import pointer

GLOBAL_SPACE, SHARED_SPACE = 1, 3
SHARED_ALIGNMENT = 16  # the widest that a thread reads or writes at once
SCALAR_BYTES = 16  # of the two words that a parameter has in the record
BARRIER = "llvm.nvvm.barrier.cta.sync.aligned.all"
SHUFFLE = "llvm.nvvm.shfl.sync.bfly.i32"
WARP = 32  # threads that exchange registers, of every GPU that there is


class CudaLane(LaneWriter):
    """Writes the function of one lane."""

    shared_alignment: ClassVar[int] = SHARED_ALIGNMENT
    parameters: ClassVar[str] = "ptr %args, ptr %record, ptr %shared, i64 %gid, i64 %block, i64 %lane"

    def word(self, number: int, llvm: str = "i64") -> str:
        place = self.e.offset("%record", number, "i64")
        if llvm != "ptr":
            return self.e.load(llvm, place, INVARIANT)
        found = self.e.load(pointer(GLOBAL_SPACE), place, INVARIANT)
        return self.e.op(f"addrspacecast {pointer(GLOBAL_SPACE)} {found} to ptr")

    def _do_LDG(self, i: Instruction) -> None:
        param = self.program.param.get(getattr(i.src, "handle", ""))
        if not isinstance(i.src, BufferOffset) or param is None or param.kind is not ParamKind.SCALAR:
            super()._do_LDG(i)
            return
        place = self.e.offset("%record", self.layout.word(param.name), "i64")
        self.write_register(i.dst, i.ty, self.e.load(llvm_type(i.ty), place, ", align 8" + INVARIANT))

    def _do_SubGroupXor(self, i: Instruction) -> None:
        """In words of 32 bits, as threads of a warp exchange them."""
        if i.mask >= WARP:
            raise IsaError(f"SubGroupXor: mask {i.mask} leaves the sub-group, which has {WARP} lanes", span=i.span)
        kind, bits, e = llvm_type(i.ty), i.ty.bits, self.e
        value = e.op(f"bitcast {kind} {self.read(i.src)} to i{bits}")
        whole = e.op(f"zext i{bits} {value} to i32") if bits < 32 else value
        words = [whole] if bits <= 32 else [
            e.op(f"trunc i64 {part} to i32") for part in (whole, e.op(f"lshr i64 {whole}, 32"))
        ]  # fmt: skip
        got = [e.call("i32", SHUFFLE, ("i32", "-1"), ("i32", w), ("i32", str(i.mask)), ("i32", "31")) for w in words]
        if bits > 32:
            low, high = (e.op(f"zext i32 {word} to i64") for word in got)
            found = e.op(f"or i64 {low}, {e.op(f'shl i64 {high}, 32')}")
        else:
            found = e.op(f"trunc i32 {got[0]} to i{bits}") if bits < 32 else got[0]
        self.write_register(i.dst, i.ty, e.op(f"bitcast i{bits} {found} to {kind}"))

    def _do_BarSync(self, i: Instruction) -> None:
        self.e.call("void", BARRIER, ("i32", "0"))
        self.go(self.index + 1)

    # A launch of one block waits for all its lanes at the block's barrier; others are refused before they run.
    _do_GridSync = _do_BarSync
