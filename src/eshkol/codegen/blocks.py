"""An LLVM function while it is written: basic blocks, fresh names, joins of control with the values that meet there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from eshkol.codegen import passing
from eshkol.codegen.module import FUNCTION_ATTRIBUTES, UnitModule, quoted
from eshkol.lang.source import Place


class Val(NamedTuple):
    """A value in registers: LLVM's names, or literals, of its tag and its bits."""

    tag: str
    bits: str


@dataclass
class Block:
    label: str
    phis: list[tuple[str, list[tuple[str, str]]]] = field(default_factory=list)  # a name; its values, by block
    lines: list[str] = field(default_factory=list)
    closed: bool = False
    reached: bool = False  # whether anything goes to it

    def text(self) -> str:
        phis = [
            f"  {name} = phi i64 {', '.join(f'[ {value}, %{label} ]' for value, label in incoming)}"
            for name, incoming in self.phis
            if incoming
        ]
        return "\n".join([f"{self.label}:", *phis, *self.lines])


class BlockWriter:
    """Writes the blocks of one function."""

    def __init__(self, module: UnitModule, name: str, place: Place | None) -> None:
        self.module = module
        self.symbol = module.unique(name)
        self.subprogram = module.subprogram(name, place)
        self.place = place
        self.blocks: list[Block] = []
        self._count = 0
        self._parameters = ""
        self._room = 0  # values that calls of C functions need room for at once
        self.start(self.block("start"))

    def fresh(self) -> str:
        self._count += 1
        return f"%v{self._count}"

    def block(self, hint: str = "b") -> Block:
        self._count += 1
        return Block(f"{hint}{self._count}")

    def start(self, block: Block) -> None:
        """What is written from now on stands in this block."""
        self.blocks.append(block)
        self.current = block

    def line(self, text: str) -> None:
        if not self.current.closed:
            self.current.lines.append(f"  {text}")

    def close(self, text: str) -> None:
        """The last instruction of the block; what follows it is never reached."""
        self.line(text)
        self.current.closed = True

    def let(self, text: str) -> str:
        """An instruction with a result."""
        name = self.fresh()
        self.line(f"{name} = {text}")
        return name

    def debug(self, place: Place | None) -> str:
        return f", !dbg !{self.module.location(place or self.place, self.subprogram)}"

    def call(self, function: str, result: str, args: str, place: Place | None, convention: str = "") -> str:
        """A call of a function with a result; its name without @."""
        self.module.called.add(function)
        return self.let(f'call {convention}{result} @"{function}"({args}){self.debug(place)}')

    def run(self, function: str, args: str, place: Place | None) -> None:
        self.module.called.add(function)
        self.line(f'call void @"{function}"({args}){self.debug(place)}')

    def words(self, pair: str) -> Val:
        """The two words of an LLVM value of type %value."""
        return Val(self.let(f"extractvalue %value {pair}, 0"), self.let(f"extractvalue %value {pair}, 1"))

    def pair(self, value: Val) -> str:
        first = self.let(f"insertvalue %value undef, i64 {value.tag}, 0")
        return self.let(f"insertvalue %value {first}, i64 {value.bits}, 1")

    def load(self, pointer: str) -> Val:
        tag = self.let(f"load i64, ptr {pointer}")
        return Val(tag, self.let(f"load i64, ptr {self.offset(pointer, 8)}"))

    def store(self, value: Val, pointer: str) -> None:
        self.line(f"store i64 {value.tag}, ptr {pointer}")
        self.line(f"store i64 {value.bits}, ptr {self.offset(pointer, 8)}")

    def offset(self, pointer: str, bytes_: int) -> str:
        return self.let(f"getelementptr i8, ptr {pointer}, i64 {bytes_}")

    def pointer(self, value: Val) -> str:
        return self.let(f"inttoptr i64 {value.bits} to ptr")

    def jump(self, block: Block) -> None:
        block.reached = block.reached or not self.current.closed
        self.close(f"br label %{block.label}")

    def branch(self, condition: str, yes: Block, no: Block, likely: int | None = None) -> None:
        for block in () if self.current.closed else (yes, no):
            block.reached = True
        weights = "" if likely is None else f", !prof !{likely}"
        self.close(f"br i1 {condition}, label %{yes.label}, label %{no.label}{weights}")

    def meet(self, block: Block, values: list[Val]) -> None:
        """Go to a block with values for its phis."""
        if self.current.closed:
            return
        here = self.current.label
        words = [word for value in values for word in value]
        for (_, incoming), word in zip(block.phis, words, strict=True):
            incoming.append((word, here))
        self.jump(block)

    def awaited(self, block: Block, count: int) -> list[Val]:
        """Names in a block for values that those who come to it bring along."""
        names = [self.fresh() for _ in range(2 * count)]
        block.phis = [(name, []) for name in names]
        return [Val(names[2 * i], names[2 * i + 1]) for i in range(count)]

    def room(self, values: list[Val]) -> str:
        """Values in memory, one after the other, for a C function; until the next use of the room."""
        self._room = max(self._room, len(values))
        for i, value in enumerate(values):
            self.store(value, self.offset("%room", 16 * i) if i else "%room")
        return "%room"

    def receive(self, words: Sequence[str]) -> None:
        """The words that a function takes: where it begins, before anything else."""
        self._parameters = passing.parameters(words)
        for line in passing.received(words, self.module.table.layout["Context.spill"]):
            self.line(line)

    def passed(self, function: str, words: Sequence[str]) -> str:
        """A call of a function, as LLVM writes it, behind the instructions that pass what has no register."""
        self._count += 1
        for line in passing.stored(words, self.module.table.layout["Context.spill"], str(self._count)):
            self.line(line)
        return f"{function}({passing.parameters(words)})"

    def jump_to(self, function: str, words: Sequence[str], place: Place | None) -> None:
        """A call as the last thing that is done."""
        call = self.passed(function, words)
        self.close(f"ret %value {self.let(f'musttail call tailcc %value {call}{self.debug(place)}')}")

    def finish(self, attributes: str = "", linkage: str = "internal") -> str:
        """The whole function as text, now also in the module."""
        if self._room:
            self.blocks[0].lines.insert(0, f"  %room = alloca [{self._room} x %value]")
        for block in self.blocks:
            if not block.closed:
                block.lines.append("  unreachable")
        body = "\n".join(block.text() for block in self.blocks)
        symbol = f'@"{quoted(self.symbol)}"'
        head = f"define {linkage} tailcc %value {symbol}({self._parameters}) {attributes} {FUNCTION_ATTRIBUTES}"
        self.module.functions.append(f"{head} !dbg !{self.subprogram} {{\n{body}\n}}")
        return symbol
