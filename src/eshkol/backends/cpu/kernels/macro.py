"""A macro: an array instruction as native functions of its own, instead of its expansion.

Comes in: what a backend's lowering of the instruction says (`Macro`). The same functions serve two callers. A lane
whose addresses depend on registers calls them on its own thread; an instruction that all lanes carry out together is
run by the host, spread over all cores. Either way a function `name(record, begin, end)` carries out the tasks from
`begin` to `end` of one phase, and a phase begins when the one before has ended.

    word 0   which of `faults` was found (the first of them, if several); all ones where none was
    word 1   address of `scratch` bytes, aligned to 64
    2 …      address of each memory operand and of each register written, in field order
    then     `words`: sizes and whatever else the functions want to know at run time

Sizes are words rather than constants, so that one compiled object serves every shape; where a lane calls with constant
words, LLVM specializes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from eshkol.atlas.isa import MEMORY_KINDS, Field, Instruction, Kind
from eshkol.llvm.targets import Target

FAULT, SCRATCH, FIRST_OPERAND = 0, 1, 2
NO_FAULT = (1 << 64) - 1
INTERNAL, EXPORTED = "internal", "dso_local"
PLAIN_LOOP = "!llvm.loop !90"  # on a loop that LLVM should neither vectorize nor unroll
METADATA = """\
!90 = distinct !{!90, !91, !92}
!91 = !{!"llvm.loop.vectorize.width", i32 1}
!92 = !{!"llvm.loop.unroll.disable"}"""


@dataclass(frozen=True)
class Phase:
    """A function and how many tasks it is called for; `grain` tasks are not worth splitting further."""

    function: str
    tasks: int
    grain: int = 1


@dataclass(frozen=True)
class Macro:
    """An array instruction as native functions."""

    functions: tuple[str, ...]  # LLVM text; the linkage is left open as {linkage}
    phases: tuple[Phase, ...]
    words: tuple[int, ...] = ()
    declared: tuple[str, ...] = ()  # declarations the functions need
    scratch: int = 0  # bytes of memory for the time of the call
    faults: tuple[str, ...] = ()  # what the functions may find wrong with their data

    def text(self, linkage: str) -> list[str]:
        """The functions as LLVM text."""
        return [f.replace("{linkage}", linkage) for f in self.functions]


Lowering = Callable[[Instruction, Target], Macro | None]


def record_operands(instruction: Instruction) -> list[tuple[Field, Any]]:
    """The operands whose addresses stand in the record, in field order."""
    pairs = zip(instruction.op.fields, instruction.operands, strict=True)
    return [(f, v) for f, v in pairs if (f.kind in MEMORY_KINDS and v is not None) or f.kind is Kind.DEF]


def module_text(macro: Macro) -> str:
    """A module of a macro's functions alone, for the host to call."""
    return _module(macro.text(EXPORTED), macro.declared)


def phase_modules(macro: Macro) -> list[str]:
    """For each phase a module of its function, with those it calls: macros that share a function share its object."""
    texts = {function_name(text): text for text in macro.text(EXPORTED)}
    found = []
    for phase in macro.phases:
        own = texts[phase.function]
        called = [text for name, text in texts.items() if name != phase.function and f"@{name}(" in own]
        functions = [*called, own]
        found.append(_module(functions, [d for d in macro.declared if _is_used(d, functions)]))
    return found


def function_name(text: str) -> str:
    """The name of the function that a text defines."""
    start = text.index("@") + 1
    return text[start : text.index("(", start)]


def _module(functions: Sequence[str], declared: Sequence[str]) -> str:
    return "\n\n".join([*functions, *declared, METADATA]) + "\n"


def _is_used(declaration: str, functions: Sequence[str]) -> bool:
    """Whether functions call what is declared, or refer to what is defined (metadata)."""
    if declaration.startswith("declare"):
        name = declaration[declaration.index("@") : declaration.index("(", declaration.index("@")) + 1]
    else:
        name = declaration.split(" ", 1)[0]
    return any(name in text for text in functions)
