"""How arguments travel from compiled code to compiled code: in registers as far as they go, then in the context.

The words of a call are the context, the closure if there is one, the number of arguments where that is not known, and
two words for each argument. Those that find no register are stored in context->spill just before the call, and loaded
from there before anything else happens. Nothing is ever passed on the stack: LLVM's tailcc loses track of it (arguments
that a callee takes off the stack on some paths only, and bytes between them that both sides take for theirs).
"""

from __future__ import annotations

import platform
from collections.abc import Sequence

_X86 = platform.machine().lower() in ("x86_64", "amd64")
# The context stays in one register that every procedure leaves as it is (r13, which LLVM has for "self"), so that
# nobody stores it or passes it on. AArch64 has registers enough.
CONTEXT = "ptr swiftself %ctx" if _X86 else "ptr %ctx"
REGISTERS = 7 if _X86 else 8  # for the words of a call: those of the C convention, and that of the context
PRESERVES = _X86  # whether LLVM's preserve_mostcc leaves the registers of arguments as they are
DIRECT = tuple(f"i64 %{word}{i}" for i in range(4) for word in "tp")
ENTRY = (CONTEXT, "ptr %self", "i64 %count", *DIRECT)


def parameters(words: Sequence[str]) -> str:
    """The parameters of a function that takes these words, as LLVM writes them."""
    return ", ".join(words[:REGISTERS])


def received(words: Sequence[str], spill: int) -> list[str]:
    """The instructions at the beginning of a function that fetch the other words, from an offset in the context."""
    lines = []
    for i, word in enumerate(words[REGISTERS:]):
        kind, name = word.split()
        lines.append(f"%spilt{i} = getelementptr i8, ptr %ctx, i64 {spill + 8 * i}")
        lines.append(f"{name} = load {kind}, ptr %spilt{i}")
    return lines


def stored(words: Sequence[str], spill: int, unique: str) -> list[str]:
    """The instructions before a call that store the other words; undefined ones need not be."""
    lines = []
    for i, word in enumerate(words[REGISTERS:]):
        if not word.endswith(" undef"):
            lines.append(f"%spill{unique}.{i} = getelementptr i8, ptr %ctx, i64 {spill + 8 * i}")
            lines.append(f"store {word}, ptr %spill{unique}.{i}")
    return lines
