"""What a lane has in C-like text: registers as typed variables, tags and flags of uncertain ones, and how it fails.

A register is a variable for each type that it holds. Where its type depends on the path it carries a tag, and an
instruction that reads it is written once for each type; what may be read before it is written has a flag. A lane that
fails notes its number and the place, and ends; where lanes meet at barriers it goes on with nothing, since the others
would wait for it for ever.
"""

from __future__ import annotations

from typing import ClassVar

from eshkol.atlas.flow import Slot
from eshkol.atlas.isa import Kind
from eshkol.atlas.operands import BLOCK, BLOCK_SIZE, GLOBAL, LANE, Predicate, Register
from eshkol.atlas.types import Type
from eshkol.atlas.validate import UNWRITTEN, Analysis
from eshkol.backends.lanes.layout import Layout
from eshkol.backends.text.dialect import Dialect
from eshkol.backends.text.scalars import Scalars
from eshkol.errors import EshkolError, ExecutionFailed

TAGS = {ty: number for number, ty in enumerate(Type)}
LANE_NUMBER = "gid"  # the variable of the lane's number in the launch


class TextLane:
    """The body of a lane under construction, as far as its state goes."""

    register_instructions: ClassVar[type[Scalars]] = Scalars

    def __init__(self, analysis: Analysis, layout: Layout, dialect: Dialect) -> None:
        self.analysis, self.flow, self.program = analysis, analysis.flow, analysis.flow.program
        self.layout, self.d, self.scalars = layout, dialect, self.register_instructions(dialect)
        self.lines: list[str] = []
        self.depth = 1  # of braces
        self.variables: dict[str, str] = {}  # name → how it is declared
        self.asked: dict[str, None] = {}  # sizes of the launch, and other things that it must be told
        self.written: dict[Slot, str] = {}
        self.tags: dict[Register, str] = {}
        self.assumed: dict[Register, Type] = {}
        self.constants: dict[Register, int | float] = {}  # what registers are known to hold here
        self.index = 0  # of the instruction now written
        self.open = 0  # braces that a check has opened, and the end of the instruction closes
        self.waits = any(i.op.name in ("BarSync", "GridSync") for i in self.program.instructions)
        self._find_uncertain()

    def _find_uncertain(self) -> None:
        for index, i in enumerate(self.program.instructions):
            if index in self.analysis.certain_types or not self.analysis.reachable(index):
                continue
            for slot in (*i.reads(), *i.of_kind(Kind.PUSE)):
                possible = self.analysis.possible(index, slot)
                if UNWRITTEN in possible and slot not in self.written:
                    self.written[slot] = self.variable(self.d.truth, f"{slot}_written")
                if isinstance(slot, Register) and len(possible - {UNWRITTEN}) > 1 and slot not in self.tags:
                    self.tags[slot] = self.variable(self.d.types[Type.U32], f"{slot}_tag")

    # --- text ---------------------------------------------------------------------------------------

    def do(self, line: str) -> None:
        self.lines.append("  " * self.depth + line)

    def begin(self, line: str) -> None:
        self.do(f"{line} {{".strip())
        self.depth += 1

    def end(self, more: str = "") -> None:
        self.depth -= 1
        self.do("}" + more)

    def variable(self, kind: str, name: str, start: str = "0") -> str:
        self.variables[name] = self.d.variable(kind, name, start)
        return name

    # --- faults -------------------------------------------------------------------------------------

    def fail_if(
        self, condition: str, message: str, hint: str | None = None, kind: type[EshkolError] = ExecutionFailed, *,
        ends: bool = False,
    ) -> None:  # fmt: skip
        """Note a fault where the condition holds; what is written up to the instruction's end is done elsewhere."""
        site = self.layout.site(self.index, message, hint, kind)
        self.begin(f"if ({condition})")
        self.do(self.d.failing(LANE_NUMBER, site))
        if ends or not self.waits:
            self.do("return;")
        self.end(" else {")
        self.depth += 1
        self.open += 1

    def close(self) -> None:
        """The end of an instruction."""
        while self.open:
            self.end()
            self.open -= 1

    # --- registers ----------------------------------------------------------------------------------

    def types_of(self, index: int, register: Register) -> list[Type]:
        """The types that a register may hold before an instruction, in the order of `Type`."""
        return sorted(
            (ty for ty in self.analysis.possible(index, register) if ty is not UNWRITTEN), key=TAGS.__getitem__
        )

    def type_of(self, register: Register) -> Type:
        """The type that a register holds here."""
        if register in self.assumed:
            return self.assumed[register]
        (ty,) = self.types_of(self.index, register)
        return ty

    def name(self, register: Register, ty: Type) -> str:
        """The variable of a register that holds a type."""
        name = f"{register}_{ty.name.lower()}"
        if name not in self.variables:
            if ty.is_wide:
                self.scalars.wide_types[ty.bits] = None
            self.variable(self.d.type(ty), name, "{{0}}" if ty.is_wide else "0")
        return name

    def read(self, register: Register) -> str:
        if register.index == GLOBAL:
            return LANE_NUMBER
        if register.is_special:
            return self.special({LANE: "Lane", BLOCK: "Block", BLOCK_SIZE: "BlockSize"}[register.index], 0)
        ty = self.type_of(register)
        self.check_written(register)
        return self.name(register, ty)

    def put(self, register: Register, ty: Type, value: str) -> None:
        """Give a register a value."""
        self.constants.pop(register, None)
        self.do(f"{self.name(register, ty)} = {value};")
        if register in self.tags:
            self.do(f"{self.tags[register]} = {TAGS[ty]};")
        self.mark_written(register)

    def predicate(self, predicate: Predicate) -> str:
        name = str(predicate)
        return name if name in self.variables else self.variable(self.d.truth, name)

    def read_predicate(self, predicate: Predicate) -> str:
        self.check_written(predicate)
        return self.predicate(predicate)

    def mark_written(self, slot: Slot) -> None:
        if slot in self.written:
            self.do(f"{self.written[slot]} = {self.d.true};")

    def check_written(self, slot: Slot) -> None:
        if UNWRITTEN in self.analysis.possible(self.index, slot):
            self.fail_if(f"!{self.written[slot]}", f"{slot} is read before it is written")

    # --- the launch ---------------------------------------------------------------------------------

    def ask(self, what: str) -> str:
        """Something that the launch tells, as a parameter of the kernel."""
        self.asked[what] = None
        return what

    def special(self, which: str, axis: int) -> str:
        """An index or size of the launch in 32 bits."""
        letter = "xyz"[axis]
        if which in ("BlockSize", "GridSize"):
            return self.ask(f"{'block' if which == 'BlockSize' else 'grid'}_{letter}")
        linear, sizes = ("lane", "block") if which == "Lane" else ("block", "grid")
        value = linear
        for step in range(axis):
            value = f"({value} / {self.ask(sizes + '_' + 'xyz'[step])})"
        return f"({value} % {self.ask(sizes + '_' + letter)})" if axis < 2 else value
