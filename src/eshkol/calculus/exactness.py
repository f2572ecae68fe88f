"""Doubles that stand for exact numbers: where a program would decide something by their last bits, it is refused.

Comes in: the functions of a typed program, and which of its constants are exact numbers of Scheme. Goes out: nothing,
or `NotFast`. In typed programs, (/ i 3) and a 1/10 that a loop adds up are doubles, where Scheme computes with ratios:
good enough for a sum or a sine, but floor, = and < of them may come out otherwise, and with them the whole derivative.

A double is *near* a number of Scheme, in this order:

- SAME: it is that number, or would be it if the number were made inexact where it meets an inexact one;
- ROUNDED: it is the double closest to a ratio;
- ADRIFT: it was computed from rounded ones, so its last bits may be others than Scheme's.

Whether it may be exact in Scheme is asked beside that, since arithmetic on exact numbers alone is what goes adrift.
Memory is told apart by type alone, as in `activity.py`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from eshkol.calculus.abstract import NotFast
from eshkol.calculus.activity import WRITES, memory_of
from eshkol.calculus.ir import F64, GRADIENT, Instruction, Return, Type, TypedFunction, TypedValue

SAME, ROUNDED, ADRIFT = range(3)
ARITHMETIC = frozenset({"+", "-", "*", "/", "square", "expt"})
CHOOSING = frozenset({"abs", "max", "min"})  # what gives one of its operands, but for the sign
DECIDING = frozenset({"floor", "ceiling", "truncate", "round", "max", "min"})


class Near(NamedTuple):
    """What is known of a double."""

    drift: int = SAME
    exact: bool = False  # whether it may be an exact number in Scheme

    def or_else(self, other: Near) -> Near:
        return Near(max(self.drift, other.drift), self.exact or other.exact)


INEXACT, INTEGER = Near(), Near(SAME, True)


def check(functions: Sequence[TypedFunction], constants: Mapping[TypedValue, int]) -> None:
    """Refuse a program that compares or rounds such doubles; `constants` has how near those are that are exact.

    Whoever writes a comparison with a constant ratio knows what it is, and sees to it.
    """
    found = _Flow(functions, constants)
    for function in functions:
        for item in function.instructions():
            decides = item.operation in ("compare", "ftoi") or (item.operation == "math" and item.name in DECIDING)
            if decides and any(found.of(value).drift and value not in constants for value in item.operands):
                raise NotFast("it decides by a ratio that is known only later")


class _Flow:
    """How near every double is, found by going round until nothing changes."""

    def __init__(self, functions: Sequence[TypedFunction], constants: Mapping[TypedValue, int]) -> None:
        self.constants = constants
        self.values: dict[TypedValue, Near] = {}
        self.memory: dict[Type, Near] = {}
        self.literals = {
            item.result: item.literal for f in functions for item in f.instructions() if item.operation == "constant"
        }
        self.changed = True
        while self.changed:
            self.changed = False
            for function in functions:
                for block in function.blocks:
                    for item in block.body:
                        self._step(item)
                    for jump in block.jumps():
                        self._pass(jump.args, jump.target.params)

    def of(self, value: TypedValue) -> Near:
        return self.values.get(value, INEXACT)

    def _note(self, value: TypedValue, near: Near) -> None:
        known = self.of(value)
        joined = known.or_else(near)
        if joined != known:
            self.values[value] = joined
            self.changed = True

    def _pass(self, given: Sequence[TypedValue], taken: Sequence[TypedValue]) -> None:
        for value, param in zip(given, taken, strict=True):
            if param.type == F64:
                self._note(param, self.of(value))

    def _step(self, item: Instruction) -> None:
        memory = memory_of(item)
        if memory is not None and item.operation in WRITES:
            near = self.of(item.operands[WRITES[item.operation]])
            known = self.memory.get(memory, INEXACT)
            if known.or_else(near) != known:
                self.memory[memory] = known.or_else(near)
                self.changed = True
        elif memory is not None:
            self._note(item.result, self.memory.get(memory, INEXACT))
        elif item.operation == "itof":
            self._note(item.result, INTEGER)
        elif item.operation == "constant" and item.result in self.constants:
            self._note(item.result, Near(self.constants[item.result], True))
        elif item.operation == "math":
            self._note(item.result, self._computed(item))
        elif item.function is not None:
            self._pass(item.operands, item.function.params)
            for block in item.function.blocks:
                if isinstance(block.end, Return):  # derivatives at inexact points are inexact
                    self._pass(block.end.values, item.results[:1] if item.operation == GRADIENT else item.results)

    def _computed(self, item: Instruction) -> Near:
        operands = [self.of(value) for value in item.operands]
        drift, exact = max(x.drift for x in operands), all(x.exact for x in operands)
        if drift == ADRIFT or item.name in CHOOSING or (item.name == "-" and len(operands) == 1):
            return Near(drift, exact or item.name in CHOOSING)
        if not exact or item.name not in ARITHMETIC:
            return INEXACT  # Scheme makes doubles of ratios here, too
        if drift:
            return Near(ADRIFT, True)
        return Near(ROUNDED if item.name == "/" and not self._halves(item.operands[1]) else SAME, True)

    def _halves(self, divisor: TypedValue) -> bool:
        """Whether to divide by this gives another double, and no ratio between two."""
        number = self.literals.get(divisor)
        return type(number) is float and math.frexp(abs(number))[0] == 0.5
