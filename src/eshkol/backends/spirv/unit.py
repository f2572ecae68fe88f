"""What the functions of a text have in common while it is compiled, and what is asked of the compiler."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from eshkol.backends.spirv.module import Module
from eshkol.backends.spirv.types import NAMED, CType, Place

_SHARED = re.compile(r"\((?:volatile )?__local (\w+) \*\)")


@dataclass(frozen=True, slots=True)
class Options:
    """What the device keeps of floats, by their bits, where it is asked to."""

    keeps_special: frozenset[int] = frozenset()  # zeros with a sign, infinities and NaNs
    keeps_denormals: frozenset[int] = frozenset()
    rounds_to_even: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class Function:
    """A function that can be called."""

    id: int
    result: CType
    parameters: tuple[CType, ...]


@dataclass(slots=True)
class Unit:
    """What the functions of a text have in common."""

    module: Module
    shared_bits: int
    functions: dict[str, Function] = field(default_factory=dict)
    structures: dict[str, CType] = field(default_factory=dict)
    tables: dict[str, Place] = field(default_factory=dict)
    kernel: int = 0


def shared_bits(text: str) -> int:
    """The width of the words that a block shares: that of its numbers there, if they have one."""
    names = set(_SHARED.findall(text))
    widths = {NAMED[name].bits if name in NAMED else 64 for name in names}
    return widths.pop() if len(widths) == 1 else 32
