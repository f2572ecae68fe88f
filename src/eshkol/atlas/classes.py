"""The 96 resonance classes: class of a byte, mirror, unity, neighbours, class memory, phase.

Pure functions on integers; the Atlas-specific instructions (`table/resonance.py`) are their lane-wise form.
A class is 48·b0 + 24·b1 + 12·b2 + 6·b3 + 3·b4 + t with bits b and a ternary digit t.
"""

from __future__ import annotations

from functools import cache

CLASSES = 96
PAGES = 48
PAGE_BYTES = 256
CLASS_BYTES = PAGES * PAGE_BYTES
CLASS_MEMORY_BYTES = CLASSES * CLASS_BYTES
PHASES = 768
PHASE_STEP = 8
UNITY = frozenset({1, 4})
BIT_WEIGHTS = (48, 24, 12, 6, 3)  # of bits 0 to 4
NEIGHBOUR_WEIGHTS = (48, 24, 12, 6)  # the mirror digit (3) is not a neighbour
MAX_NEIGHBOURS = 6


def resonance_class(byte: int) -> int:
    """The class of a byte; bit 7 is ignored."""
    bits = sum(weight * (byte >> k & 1) for k, weight in enumerate(BIT_WEIGHTS))
    return bits + (byte >> 5 & 3) % 3


def check_class(cls: int) -> int:
    if not 0 <= cls < CLASSES:
        raise ValueError(f"class {cls} does not exist: classes are 0 to {CLASSES - 1}")
    return cls


def mirror(cls: int) -> int:
    """The class across the mirror: 48 pairs without a fixed point."""
    return cls + 3 if check_class(cls) % 6 < 3 else cls - 3


def is_unity(cls: int) -> bool:
    """Whether this is a unity class; a number that is no class is not one."""
    return cls in UNITY


@cache
def neighbours(cls: int) -> tuple[int, ...]:
    """The five or six neighbours of a class, ascending."""
    check_class(cls)
    found = [cls - w if cls // w % 2 else cls + w for w in NEIGHBOUR_WEIGHTS]
    ternary = cls % 3
    found += [cls + 1] * (ternary < 2) + [cls - 1] * (ternary > 0)
    return tuple(sorted(found))


def boundary_map(cls: int, page: int, byte: int) -> int:
    """The linear class-memory address of a byte on a page of a class."""
    check_class(cls)
    if not 0 <= page < PAGES:
        raise ValueError(f"page {page} does not exist: pages are 0 to {PAGES - 1}")
    if not 0 <= byte < PAGE_BYTES:
        raise ValueError(f"byte {byte} is not on a page of {PAGE_BYTES}")
    return cls * CLASS_BYTES + page * PAGE_BYTES + byte


def read_phase(phase: int, cls: int) -> int:
    """The phase as class `cls` sees it."""
    return (phase - PHASE_STEP * check_class(cls)) % PHASES


def write_phase(value: int, cls: int) -> int:
    """The phase after class `cls` writes `value`."""
    return (value + PHASE_STEP * check_class(cls)) % PHASES
