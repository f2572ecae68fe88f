"""An LLVM function of Scheme code while it is written: its blocks, values of two words, calls, joins of control.

Comes in: instructions that `values.py` and `body.py` ask for. Goes out: the function's text, into its `UnitModule`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar, NamedTuple

from eshkol.codegen import passing
from eshkol.codegen.module import FUNCTION_ATTRIBUTES, UnitModule
from eshkol.lang.source import Place
from eshkol.llvm.text import FunctionText, Phi, quoted


class Val(NamedTuple):
    """A value in registers: LLVM's names, or literals, of its tag and its bits."""

    tag: str
    bits: str


@dataclass
class Block:
    """A basic block, which may be written before it is known who comes to it."""

    label: str
    phis: list[Phi] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)
    closed: bool = False
    reached: bool = False  # whether anything goes to it

    def text(self) -> str:
        return "\n".join([f"{self.label}:", *(phi.text() for phi in self.phis if phi.incoming), *self.lines])


class FunctionWriter(FunctionText):
    """Writes the blocks of one function."""

    letter: ClassVar[str] = "v"
    first_number: ClassVar[int] = 1

    def __init__(self, module: UnitModule, name: str, place: Place | None) -> None:
        super().__init__()
        self.module = module
        self.symbol = module.unique(name)
        self.subprogram = module.subprogram(name, place)
        self.written_at = place
        self.once = False  # whether it runs once: LLVM takes it as it is written, and puts nothing in place of calls
        self.blocks: list[Block] = []
        self._parameters = ""
        self._pairs: dict[Val, str] = {}
        self._room = 0  # values that calls of C functions need room for at once
        self.begin(self.block("start"))

    def block(self, hint: str = "b") -> Block:
        return Block(self.new_block(hint))

    def begin(self, block: Block) -> None:
        """What is written from now on stands in this block."""
        self.blocks.append(block)
        self.current, self.lines = block, block.lines

    def close(self, text: str) -> None:
        """The last instruction of the block; what follows it is never reached, and is written nowhere."""
        self.do(text)
        self.shut()

    def shut(self) -> None:
        """Nothing more belongs to this block."""
        self.current.closed, self.lines = True, []

    def debug(self, place: Place | None) -> str:
        return f", !dbg !{self.module.location(place or self.written_at, self.subprogram)}"

    def call(self, function: str, result: str, args: str, place: Place | None, convention: str = "") -> str:
        """A call of a function with a result; its name without @."""
        self.module.called.add(function)
        plain = " noinline" if self.once and not self.module.is_quick else ""  # quick code is without their bodies
        symbol = self.module.symbol(function)
        return self.op(f'call {convention}{result} @"{symbol}"({args}){plain}{self.debug(place)}')

    def run(self, function: str, args: str, place: Place | None) -> None:
        self.module.called.add(function)
        self.do(f'call void @"{self.module.symbol(function)}"({args}){self.debug(place)}')

    def words(self, pair: str) -> Val:
        """The two words of an LLVM value of type %value."""
        found = Val(self.op(f"extractvalue %value {pair}, 0"), self.op(f"extractvalue %value {pair}, 1"))
        self._pairs[found] = pair
        return found

    def pair(self, value: Val) -> str:
        """Two words as such a value: the one that they were taken out of, where there is one."""
        if value in self._pairs:
            return self._pairs[value]
        first = self.op(f"insertvalue %value undef, i64 {value.tag}, 0")
        return self.op(f"insertvalue %value {first}, i64 {value.bits}, 1")

    def load_value(self, place: str) -> Val:
        tag = self.load("i64", place)
        return Val(tag, self.load("i64", self.offset(place, 8)))

    def store_value(self, value: Val, place: str) -> None:
        self.store("i64", value.tag, place)
        self.store("i64", value.bits, self.offset(place, 8))

    def pointer(self, value: Val) -> str:
        return self.op(f"inttoptr i64 {value.bits} to ptr")

    def jump(self, block: Block) -> None:
        block.reached = block.reached or not self.current.closed
        self.br(block.label)
        self.shut()

    def branch(self, condition: str, yes: Block, no: Block, likely: int | None = None) -> None:
        for block in () if self.current.closed else (yes, no):
            block.reached = True
        weights = "" if likely is None else f", !prof !{likely}"
        self.br_if(condition, yes.label, no.label, weights)
        self.shut()

    def meet(self, block: Block, values: list[Val]) -> None:
        """Go to a block with values for its phis."""
        if self.current.closed:
            return
        here = self.current.label
        words = [word for value in values for word in value]
        for phi, word in zip(block.phis, words, strict=True):
            phi.incoming.append((word, here))
        self.jump(block)

    def awaited(self, block: Block, count: int) -> list[Val]:
        """Names in a block for values that those who come to it bring along."""
        names = [self.name() for _ in range(2 * count)]
        block.phis = [Phi(name, "i64") for name in names]
        return [Val(names[2 * i], names[2 * i + 1]) for i in range(count)]

    def room(self, values: list[Val]) -> str:
        """Values in memory, one after the other, for a C function; until the next use of the room."""
        self._room = max(self._room, len(values))
        for i, value in enumerate(values):
            self.store_value(value, self.offset("%room", 16 * i) if i else "%room")
        return "%room"

    def receive(self, words: Sequence[str]) -> None:
        """The words that a function takes: where it begins, before anything else."""
        self._parameters = passing.parameters(words)
        for line in passing.received(words, self.module.table.layout["Context.spill"]):
            self.do(line)

    def passed(self, function: str, words: Sequence[str]) -> str:
        """A call of a function, as LLVM writes it, after the instructions that pass what has no register."""
        for line in passing.stored(words, self.module.table.layout["Context.spill"], self.number()):
            self.do(line)
        return f"{function}({passing.parameters(words)})"

    def jump_to(self, function: str, words: Sequence[str], place: Place | None, attributes: str = "") -> None:
        """A call as the last thing that is done."""
        call = self.passed(function, words) + attributes
        self.close(f"ret %value {self.op(f'musttail call tailcc %value {call}{self.debug(place)}')}")

    def finish(self, attributes: str = "", linkage: str = "internal") -> str:
        """The whole function as text, now also in the module."""
        if self._room:
            self.blocks[0].lines.insert(0, f"  %room = alloca [{self._room} x %value]")
        for block in self.blocks:
            if not block.closed:
                block.lines.append("  unreachable")
        body = "\n".join(block.text() for block in self.blocks)
        symbol = f'@"{quoted(self.symbol)}"'
        if self.once:
            attributes = f"{attributes} noinline optnone"
        head = f"define {linkage} tailcc %value {symbol}({self._parameters}) {attributes} {FUNCTION_ATTRIBUTES}"
        self.module.functions.append(f"{head} !dbg !{self.subprogram} {{\n{body}\n}}")
        return symbol
