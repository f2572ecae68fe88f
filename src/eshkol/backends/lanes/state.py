"""What a lane has: its registers and predicates, the launch record, and how it fails.

Registers are stack slots (one per register and type), which LLVM turns into values. A register that may hold one type
or another, depending on the path, carries a tag that says which; an instruction that reads it is then written once per
type (see `writer.py`).
"""

from __future__ import annotations

from typing import ClassVar

from eshkol.atlas.flow import Slot
from eshkol.atlas.isa import Kind
from eshkol.atlas.operands import BLOCK, BLOCK_SIZE, GLOBAL, LANE, Predicate, Register
from eshkol.atlas.types import Type
from eshkol.atlas.validate import UNWRITTEN, Analysis
from eshkol.backends.lanes import layout as words
from eshkol.backends.lanes.emitter import Emitter, llvm_type
from eshkol.backends.lanes.layout import Layout
from eshkol.backends.lanes.module import INVARIANT, SELDOM
from eshkol.errors import EshkolError, ExecutionFailed

TAGS = {ty: number for number, ty in enumerate(Type)}


class LaneState:
    """The function of a lane under construction, as far as its state goes."""

    emitter: ClassVar[type[Emitter]] = Emitter

    def __init__(self, analysis: Analysis, layout: Layout, *, shifts_bf16: bool) -> None:
        self.analysis, self.flow, self.program = analysis, analysis.flow, analysis.flow.program
        self.layout = layout
        self.e = self.emitter(shifts_bf16=shifts_bf16)
        self.slots: dict[tuple[Register, Type], str] = {}
        self.predicates: dict[Predicate, str] = {}
        self.written: dict[Slot, str] = {}  # flags of slots that may be read before they are written
        self.tags: dict[Register, str] = {}  # which type a register holds, where that depends on the path
        self.assumed: dict[Register, Type] = {}  # what such registers hold in the code now written
        self.index = 0  # of the instruction now written
        self._find_uncertain()

    def _find_uncertain(self) -> None:
        """Give flags to what may be read before it is written, and tags to registers that may hold several types."""
        certain = self.analysis.certain_types
        for index, i in enumerate(self.program.instructions):
            if index in certain or not self.analysis.reachable(index):
                continue
            for slot in (*i.reads(), *i.of_kind(Kind.PUSE)):
                possible = self.analysis.possible(index, slot)
                if UNWRITTEN in possible and slot not in self.written:
                    self.written[slot] = self.e.slot("i1", "w")
                if isinstance(slot, Register) and len(possible - {UNWRITTEN}) > 1 and slot not in self.tags:
                    self.tags[slot] = self.e.cell("i8", "tag")

    def types_of(self, index: int, register: Register) -> list[Type]:
        """The types that a register may hold before an instruction, in the order of `Type`."""
        found = [ty for ty in self.analysis.possible(index, register) if ty is not UNWRITTEN]
        return sorted(found, key=TAGS.__getitem__) if len(found) > 1 else found

    def fail_if(
        self, condition: str, message: str, hint: str | None = None, kind: type[EshkolError] = ExecutionFailed
    ) -> None:
        """End the lane with a fault where the condition holds."""
        site = self.layout.site(self.index, message, hint, kind)
        bad, good = self.e.new_block("bad"), self.e.new_block("ok")
        self.e.br_if(condition, bad, good, SELDOM)
        self.e.place_behind(bad)
        self.e.do(f"call void @fault(ptr %args, i64 %gid, i64 {site})")
        self.e.do("ret i32 0")
        self.e.place_behind(good)

    # --- registers ---------------------------------------------------------------------------------

    def type_of(self, register: Register) -> Type:
        """The type that a register holds here."""
        if register in self.assumed:
            return self.assumed[register]
        (ty,) = self.types_of(self.index, register)
        return ty

    def slot(self, register: Register, ty: Type) -> str:
        if (register, ty) not in self.slots:
            self.slots[register, ty] = self.e.cell(llvm_type(ty), f"r{register.index}_")
        return self.slots[register, ty]

    def read(self, register: Register) -> str:
        special = {GLOBAL: "%gid", LANE: "lane", BLOCK: "block", BLOCK_SIZE: "size"}.get(register.index)
        if special == "%gid":
            return "%gid"
        if special is not None:
            return self.special(special.capitalize() if special != "size" else "BlockSize", 0)
        ty = self.type_of(register)
        self.check_written(register)
        return self.e.load(llvm_type(ty), self.slot(register, ty))

    def write_register(self, register: Register, ty: Type, value: str) -> None:
        self.e.store(llvm_type(ty), value, self.slot(register, ty))
        if register in self.tags:
            self.e.store("i8", TAGS[ty], self.tags[register])
        self.mark_written(register)

    def predicate_slot(self, predicate: Predicate) -> str:
        if predicate not in self.predicates:
            self.predicates[predicate] = self.e.cell("i1", f"p{predicate.index}_")
        return self.predicates[predicate]

    def read_predicate(self, predicate: Predicate) -> str:
        self.check_written(predicate)
        return self.e.load("i1", self.predicate_slot(predicate))

    def mark_written(self, slot: Slot) -> None:
        if slot in self.written:
            self.e.store("i1", "true", self.written[slot])

    def check_written(self, slot: Slot) -> None:
        if UNWRITTEN in self.analysis.possible(self.index, slot):
            flag = self.e.load("i1", self.written[slot])
            self.fail_if(self.e.op(f"xor i1 {flag}, true"), f"{slot} is read before it is written")

    # --- launch record -----------------------------------------------------------------------------

    def word(self, number: int, llvm: str = "i64") -> str:
        """A word of the launch record that no kernel writes."""
        found = self.e.known.get(name := f"{llvm} {number}")
        if found is None:
            found = self.e.known[name] = self.e.load(llvm, self.e.offset("%args", number, "i64"), INVARIANT)
        return found

    def special(self, which: str, axis: int) -> str:
        """An index or size of the launch as i32."""
        if which in ("BlockSize", "GridSize"):
            value = self.word((words.BLOCK if which == "BlockSize" else words.GRID) + axis)
        else:
            linear, first = ("%lane", words.BLOCK) if which == "Lane" else ("%block", words.GRID)
            value = linear
            for step in range(axis):
                value = self.e.op(f"udiv i64 {value}, {self.word(first + step)}")
            if axis < 2:
                value = self.e.op(f"urem i64 {value}, {self.word(first + axis)}")
        return self.e.op(f"trunc i64 {value} to i32")
