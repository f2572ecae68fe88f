"""Code under construction: Atlas instructions over as many registers as one likes, given real ones at the end.

Comes in: instructions as `emit.py` writes them, over `Virtual` registers, in a prologue and a body. Goes out: the
instructions of a program. A register is given again once its last reader has passed; what is read in a loop but
written before it lives until the loop ends. Registers are reused for one type as far as possible, so that no
register's type depends on a path.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from eshkol.atlas.builder import ProgramBuilder
from eshkol.atlas.operands import Address, BufferOffset, Predicate, Register, Shared
from eshkol.atlas.table import ROWS
from eshkol.atlas.types import Type
from eshkol.errors import IsaError, Span

USABLE = 200  # of the 252 registers; backends expand instructions into code that needs some of its own
TRUTH = Predicate(0)  # every comparison is used at once, so one predicate is enough


class OutOfRegisters(IsaError):
    """A kernel holds more values at once than there are registers: it must be cut (see `fuse.smaller`)."""


@dataclass(frozen=True, slots=True, eq=False)
class Virtual:
    """A register to be, of which there is one object: whoever looks for it looks for that."""

    number: int
    ty: Type


@dataclass(frozen=True, slots=True)
class IndexedPlace:
    """An address whose index is in a register to be."""

    base: BufferOffset | Shared
    index: Virtual
    scale: int


@dataclass(frozen=True, slots=True)
class Item:
    """An instruction to be. The first item in which a register stands is the one that writes it."""

    name: str
    operands: tuple[Any, ...]
    span: Span | None = None

    def registers(self) -> list[Virtual]:
        found = []
        for operand in self.operands:
            if isinstance(operand, Virtual):
                found.append(operand)
            elif isinstance(operand, IndexedPlace):
                found.append(operand.index)
        return found


def assign(items: list[Item], usable: int = USABLE) -> dict[Virtual, Register]:
    """Real registers, of the first so many, for those that stand in the code."""
    standing = [item.registers() for item in items]
    first, last = _lifetimes(items, standing)
    ending: dict[int, list[Virtual]] = {}
    for register, end in last.items():
        ending.setdefault(end, []).append(register)
    found: dict[Virtual, Register] = {}
    free: dict[Type, list[int]] = {}
    fresh = iter(range(usable))
    for place, registers in enumerate(standing):
        for register in registers:
            if first[register] == place and register not in found:
                found[register] = Register(_take(register.ty, free, fresh))
        for register in ending.get(place, ()):  # only now: an instruction may write before it has read everything
            free.setdefault(register.ty, []).append(found[register].index)
    return found


def _take(ty: Type, free: dict[Type, list[int]], fresh: Iterator[int]) -> int:
    if free.get(ty):
        return free[ty].pop()
    index = next(fresh, None)
    if index is not None:
        return index
    for others in free.values():
        if others:
            return others.pop()
    raise OutOfRegisters("a kernel needs more registers at once than there are")


def _lifetimes(items: list[Item], standing: list[list[Virtual]]) -> tuple[dict[Virtual, int], dict[Virtual, int]]:
    """The places of the first and the last item in which each register must hold its value."""
    ends = _loop_ends(items)
    first: dict[Virtual, int] = {}
    last: dict[Virtual, int] = {}
    around: list[int] = []  # the loops under way, outermost first
    for place, item in enumerate(items):
        if item.name == "ENDLOOP":
            around.pop()
        for register in standing[place]:
            began = first.setdefault(register, place)
            outermost = next((ends[loop] for loop in around if loop > began), place) if around else place
            if outermost > last.get(register, -1):
                last[register] = outermost
        if item.name == "LOOP":
            around.append(place)
    return first, last


def _loop_ends(items: list[Item]) -> dict[int, int]:
    ends: dict[int, int] = {}
    around: list[int] = []
    for place, item in enumerate(items):
        if item.name == "LOOP":
            around.append(place)
        elif item.name == "ENDLOOP":
            ends[around.pop()] = place
    return ends


def put(b: ProgramBuilder, items: list[Item], usable: int = USABLE) -> None:
    """Append the instructions to a program, in the first so many registers."""
    registers = assign(items, usable)

    def real(operand: Any) -> Any:
        if isinstance(operand, Virtual):
            return registers[operand]
        return address(operand, registers) if isinstance(operand, IndexedPlace) else operand

    for item in items:
        b.emit(ROWS[item.name](*map(real, item.operands), span=item.span))


def address(place: IndexedPlace, registers: dict[Virtual, Register]) -> Address:
    """An address over real registers."""
    return place.base.at(registers[place.index], place.scale)
