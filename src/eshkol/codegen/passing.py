"""How arguments travel from compiled code to compiled code: in registers as far as they go, then in the context.

The words of a call are the context, the closure if there is one, the number of arguments where that is not known, and
two words for each argument; one where its tag is known (inference.py), which of a flonum is a double. Those that find
no register are stored in context->spill just before the call, and loaded from there before anything else happens.
Nothing is ever passed on the stack: LLVM's tailcc loses track of it (arguments that a callee takes off the stack on
some paths only, and bytes between them that both sides take for theirs).
"""

from __future__ import annotations

import platform
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple


class Registers(NamedTuple):
    """How a kind of processor passes the words of a call."""

    context: str  # the context, as parameter and as argument
    number: int  # of registers for the words
    preserves: bool  # whether LLVM's preserve_mostcc leaves the registers of arguments as they are
    forgets: bool  # whether returns to many calls that lie in one another are better jumps (inline.ll)


# The context stays in one register that every procedure leaves as it is (r13, which LLVM has for "self"), so that
# nobody stores it or passes it on; the others are those of the C convention. AArch64 has registers enough.
X86_64 = Registers("ptr swiftself %ctx", 7, True, True)
AARCH64 = Registers("ptr %ctx", 8, False, False)
DOUBLES = 8  # registers for doubles, on both kinds
DIRECT = tuple(f"i64 %{word}{i}" for i in range(4) for word in "tp")


def registers_of(processor: str) -> Registers:
    return X86_64 if processor.lower() in ("x86_64", "amd64") else AARCH64


_HERE = registers_of(platform.machine())
_written_for = _HERE


def registers() -> Registers:
    """Those of the kind of processor that code is written for."""
    return _written_for


@contextmanager
def written_for(processor: str) -> Iterator[bool]:
    """Code that is written meanwhile is for this kind of processor; whether that is another than this one."""
    global _written_for
    before, _written_for = _written_for, registers_of(processor)
    try:
        yield _written_for != before
    finally:
        _written_for = before


def entry() -> tuple[str, ...]:
    """The words of a call through a closure."""
    return (registers().context, "ptr %self", "i64 %count", *DIRECT)


def _placed(words: Sequence[str]) -> tuple[list[str], list[str]]:
    """The words that have registers, and those that have none. Doubles have registers of their own."""
    direct: list[str] = []
    others: list[str] = []
    left = {True: DOUBLES, False: registers().number}
    for word in words:
        is_double = word.startswith("double ")
        if left[is_double]:
            left[is_double] -= 1
            direct.append(word)
        else:
            others.append(word)
    return direct, others


def parameters(words: Sequence[str]) -> str:
    """The parameters of a function that takes these words, as LLVM writes them."""
    return ", ".join(_placed(words)[0])


def received(words: Sequence[str], spill: int) -> list[str]:
    """The instructions at the beginning of a function that fetch the other words, from an offset in the context."""
    lines = []
    for i, word in enumerate(_placed(words)[1]):
        kind, name = word.split()
        lines.append(f"%spilt{i} = getelementptr i8, ptr %ctx, i64 {spill + 8 * i}")
        lines.append(f"{name} = load {kind}, ptr %spilt{i}")
    return lines


def stored(words: Sequence[str], spill: int, unique: str) -> list[str]:
    """The instructions before a call that store the other words; undefined ones need not be."""
    lines = []
    for i, word in enumerate(_placed(words)[1]):
        if not word.endswith(" undef"):
            lines.append(f"%spill{unique}.{i} = getelementptr i8, ptr %ctx, i64 {spill + 8 * i}")
            lines.append(f"store {word}, ptr %spill{unique}.{i}")
    return lines
