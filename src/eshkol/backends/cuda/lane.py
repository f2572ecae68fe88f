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
from eshkol.llvm.text import pointer

GLOBAL_SPACE, SHARED_SPACE = 1, 3
SHARED_ALIGNMENT = 16  # the widest that a thread reads or writes at once
SCALAR_BYTES = 16  # of the two words that a parameter has in the record
BARRIER = "llvm.nvvm.barrier.cta.sync.aligned.all"


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

    def _do_BarSync(self, i: Instruction) -> None:
        self.e.call("void", BARRIER, ("i32", "0"))
        self.go(self.index + 1)

    # A launch of one block waits for all its lanes at the block's barrier; others are refused before they run.
    _do_GridSync = _do_BarSync
