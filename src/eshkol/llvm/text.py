"""Writing LLVM as text: types, constants, quoted names, and functions while they are written.

Text rather than an object model: it is what a person reads with `eshkol atlas emit`, and LLVM parses it faster than
Python could build it. Comes in: instructions, as LLVM spells them. Goes out: the text of functions. `FunctionText` has
what every writer needs, fresh names, blocks, slots on the stack, memory, branches; the writers of kernels, of Scheme
code and of derivatives build on it. Stands below them, and knows of neither LLVM's library nor what they write.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import count
from typing import ClassVar

# ---- types and constants ---------------------------------------------------------------------------------------------


def pointer(space: int = 0) -> str:
    """The type of pointers into an address space: 0 is memory as a CPU has it, others are parts of a GPU's."""
    return f"ptr addrspace({space})" if space else "ptr"


def vector(kind: str, lanes: int) -> str:
    """The type of so many values of an LLVM type; of one, that type itself."""
    return kind if lanes == 1 else f"<{lanes} x {kind}>"


def splat(kind: str, value: int, lanes: int) -> str:
    """An integer constant in every lane."""
    return str(value) if lanes == 1 else f"splat ({kind} {value})"


def double(value: float) -> str:
    """A constant of type double, by its bits; one of type float is written the same way, if float holds it."""
    return f"0x{struct.unpack('<Q', struct.pack('<d', value))[0]:016X}"


def double_value(text: str) -> float:
    """The number that such a constant stands for."""
    found: float = struct.unpack("<d", struct.pack("<Q", int(text, 16)))[0]
    return found


_PLAIN = re.compile(r"[ !#-\[\]-~]*")  # what stands for itself there


def quoted(text: str) -> str:
    """Text as the inside of an LLVM string or quoted name."""
    if _PLAIN.fullmatch(text):
        return text
    return "".join(
        chr(b) if 32 <= b < 127 and b not in b'"\\' else f"\\{b:02x}" for b in text.encode("utf-8", "surrogatepass")
    )


# ---- functions -------------------------------------------------------------------------------------------------------


@dataclass
class Phi:
    """A value that depends on the block that control came from; what it is may be filled in later."""

    name: str
    kind: str
    incoming: list[tuple[str, str]] = field(default_factory=list)  # a value, and the label of the block it comes from

    def text(self) -> str:
        pairs = ", ".join(f"[ {value}, %{label} ]" for value, label in self.incoming)
        return f"  {self.name} = phi {self.kind} {pairs}"


class FunctionText:
    """A function while it is written: its lines so far, and names that no other line has."""

    letter: ClassVar[str] = "t"  # that names of values begin with
    joint: ClassVar[str] = ""  # between what a block is for and its number
    first_number: ClassVar[int] = 0  # that a name ends with
    entry: ClassVar[str] = "entry"  # label of the first block

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.slots: list[str] = []  # memory on the stack, which belongs where the function begins
        self.here = self.entry  # the label of the block that is written
        self._numbers = count(self.first_number)

    # names and lines

    def number(self) -> str:
        """A number that no other name ends with."""
        return str(next(self._numbers))

    def name(self, hint: str = "") -> str:
        """A name for a value."""
        return f"%{hint or self.letter}{next(self._numbers)}"

    def op(self, text: str) -> str:
        """An instruction that gives a value; its name."""
        name = f"%{self.letter}{next(self._numbers)}"
        self.lines.append(f"  {name} = {text}")
        return name

    def do(self, text: str) -> None:
        """An instruction that gives none, or whose name is given."""
        self.lines.append(f"  {text}")

    # blocks

    def new_block(self, hint: str = "b") -> str:
        """The label of a block to be placed later."""
        return f"{hint}{self.joint}{next(self._numbers)}"

    def place(self, label: str) -> None:
        """What is written from now on stands in the block of this label."""
        self.lines.append(f"{label}:")
        self.here = label

    def br(self, label: str, more: str = "") -> None:
        """Go on in a block; `more` is metadata."""
        self.lines.append(f"  br label %{label}{more}")

    def br_if(self, condition: str, yes: str, no: str, more: str = "") -> None:
        """Go on in one of two blocks."""
        self.lines.append(f"  br i1 {condition}, label %{yes}, label %{no}{more}")

    def phi(self, name: str, kind: str, *incoming: tuple[str, str]) -> None:
        """A value of this name that depends on where control came from."""
        self.lines.append(Phi(name, kind, list(incoming)).text())

    # memory

    def slot(self, kind: str, hint: str = "") -> str:
        """Memory on the stack for a value of a type, behind which an alignment may stand."""
        name = self.name(hint)
        self.slots.append(f"  {name} = alloca {kind}")
        return name

    def load(self, kind: str, place: str, more: str = "", space: int = 0) -> str:
        """What lies in memory; `more` is an alignment and metadata, `space` the address space of the place."""
        return self.op(f"load {kind}, {pointer(space)} {place}{more}")

    def store(self, kind: str, value: int | str, place: str, more: str = "", space: int = 0) -> None:
        self.lines.append(f"  store {kind} {value}, {pointer(space)} {place}{more}")

    def offset(self, place: str, distance: int | str, kind: str = "i8", space: int = 0) -> str:
        """The place so many bytes, or values of another type, behind another."""
        return self.op(f"getelementptr {kind}, {pointer(space)} {place}, i64 {distance}")

    # the whole

    def defined(self, head: str, end: Iterable[str] = (), begin: Iterable[str] = ()) -> str:
        """The whole function, whose head says what it is called and takes; more lines may go before and behind."""
        return "\n".join([f"define {head} {{", f"{self.entry}:", *self.slots, *begin, *self.lines, *end, "}"])
