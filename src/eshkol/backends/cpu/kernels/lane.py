"""One lane on the CPU: the code of any machine's lane, with what the CPU's threads and vectors need.

A thread runs the lanes of a block one after another. So a lane that comes to a barrier saves what it still needs in its
context and returns the barrier's number; called again with that number it goes on after it. Array instructions call
native functions (`macro_call.py`), or are barriers too, where all lanes carry them out together and the host does.
Stretches that few lanes come to are functions that vectors of lanes call (`rare.py`), elementary functions that are not
expanded are functions, too (`called.py`), and loops carry what LLVM's vectorizer should know (`parallel.py`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from eshkol.atlas.expand import is_collective
from eshkol.atlas.isa import Instruction, Opcode
from eshkol.atlas.operands import Predicate
from eshkol.atlas.types import Type
from eshkol.atlas.validate import UNWRITTEN, Analysis
from eshkol.backends.cpu.kernels import called
from eshkol.backends.cpu.kernels.macro import Macro
from eshkol.backends.cpu.kernels.macro_call import write_call
from eshkol.backends.cpu.kernels.parallel import LoopMetadata
from eshkol.backends.cpu.kernels.rare import Rare, seldom
from eshkol.backends.cpu.kernels.rare import call as call_rare
from eshkol.backends.lanes.emitter import llvm_type
from eshkol.backends.lanes.layout import Layout
from eshkol.backends.lanes.ranges import Ranges
from eshkol.backends.lanes.writer import CALL_DEPTH, LaneWriter


class CpuLane(LaneWriter):
    """Writes the function of one lane.

    Instructions in `macros` call native functions. Stretches in `rare`, by the branches to them, are calls of
    functions.
    """

    parameters: ClassVar[str] = "ptr %args, ptr %context, ptr %shared, i64 %gid, i64 %block, i64 %lane, i32 %phase"

    def __init__(
        self, analysis: Analysis, layout: Layout, known: Ranges | None = None, never: frozenset[int] = frozenset(),
        macros: Mapping[int, Macro] | None = None, given: frozenset[int] = frozenset(),
        metadata: LoopMetadata | None = None, rare: Mapping[int, Rare] | None = None, *, shifts_bf16: bool,
    ) -> None:  # fmt: skip
        self.macros, self.rare = macros or {}, rare or {}
        elsewhere = frozenset(index for one in self.rare.values() for index in one.skipped)
        groups, loops = (metadata.accesses, metadata.loops) if metadata is not None else (None, None)
        super().__init__(analysis, layout, known, never, given, elsewhere, groups, loops, shifts_bf16=shifts_bf16)
        self.places: dict[str, tuple[int, str]] = {}  # slot → offset in the context, LLVM type
        self.resumes: list[tuple[int, str]] = []
        self.called: dict[tuple[Opcode, Type], None] = {}  # functions of the module that it calls

    def begins(self) -> str:
        if not self.resumes:
            return super().begins()
        cases = " ".join(f"i32 {number}, label %{block}" for number, block in self.resumes)
        return f"switch i32 %phase, label %i{self.program.start} [{cases}]"

    def one_typing(self, i: Instruction) -> None:
        if self.index not in self.macros:
            super().one_typing(i)
        elif is_collective(i):
            self._do_BarSync(i)
        else:
            write_call(self, i, self.macros[self.index])
            self.go(self.index + 1)

    def lowered(self, i: Instruction, ty: Type, values: list[str], exact: str) -> str:
        if not called.is_called(i):
            return super().lowered(i, ty, values, exact)
        self.called[i.op, ty] = None
        return called.call(self.e, i.op, ty, values)

    def _do_BRA(self, i: Instruction) -> None:
        if self.index in self.rare and self.index not in self.never:
            self._call_rare(self.rare[self.index], self.read_predicate(i.pred))
        else:
            super()._do_BRA(i)

    def _call_rare(self, rare: Rare, wanted: str) -> None:
        values = [self.read(register) for register in (rare.result, *(r for r, _ in rare.reads))]
        self.write_register(rare.result, rare.ty, call_rare(self.e, seldom(rare), wanted, values))
        self.go(rare.end)

    # --- barriers ----------------------------------------------------------------------------------

    def _do_BarSync(self, i: Instruction) -> None:
        """Save what is needed later, return; resume after the barrier when called again."""
        number = len(self.layout.barriers) + 1
        if self.index in self.layout.barriers:  # a second version of the lane shares the numbers
            number = self.layout.barriers.index(self.index) + 1
        else:
            self.layout.barriers.append(self.index)
        kept = self._needed_after(self.index)
        for slot, llvm, size in kept:
            self._copy(slot, llvm, size, into_context=True)
        self.e.do(f"ret i32 {number}")
        resume = self.e.new_block("resume")
        self.resumes.append((number, resume))
        self.e.place(resume)
        for slot, llvm, size in kept:
            self._copy(slot, llvm, size, into_context=False)
        self.go(self.index + 1)

    _do_GridSync = _do_PoolAlloc = _do_PoolFree = _do_BarSync

    def _needed_after(self, index: int) -> list[tuple[str, str, int]]:
        """The slots that hold anything a lane may read after a barrier: (slot, LLVM type, bytes)."""
        kept: list[tuple[str, str, int]] = []
        for slot in sorted(self.flow.live_after(index), key=str):
            if isinstance(slot, Predicate):
                kept.append((self.predicate_slot(slot), "i1", 1))
            elif not slot.is_special:
                for ty in sorted(self.analysis.possible(index, slot) - {UNWRITTEN}, key=str):
                    assert ty is not None
                    kept.append((self.slot(slot, ty), llvm_type(ty), ty.size_bytes))
                if slot in self.tags:
                    kept.append((self.tags[slot], "i8", 1))
            if slot in self.written:
                kept.append((self.written[slot], "i1", 1))
        entries = CALL_DEPTH + 1 if self.has_calls else 1
        for start in self.flow.loop_end:
            if self.analysis.reachable(start):
                self.loop_slots(start)
                kept += [(s, f"[{entries} x i64]" if self.has_calls else "i64", 8 * entries) for s in self.loops[start]]
        if self.has_calls:
            kept += [(self.depth, "i32", 4), (self.stack, f"[{CALL_DEPTH} x i32]", 4 * CALL_DEPTH)]
        return kept

    def _copy(self, slot: str, llvm: str, size: int, *, into_context: bool) -> None:
        if slot not in self.places:
            self.places[slot] = self.layout.keep(size), llvm
        place = self.e.offset("%context", self.places[slot][0])
        source, target = (slot, place) if into_context else (place, slot)
        if llvm.startswith("["):  # as a value it would be taken apart, element by element
            pieces = (("ptr", target), ("ptr", source), ("i64", str(size)), ("i1", "false"))
            self.e.call("void", "llvm.memcpy.p0.p0.i64", *pieces)
        else:
            self.e.store(llvm, self.e.load(llvm, source), target)
