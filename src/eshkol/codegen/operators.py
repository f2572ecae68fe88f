"""Arithmetic on operands of which is known what they are: instructions in place of inline functions.

Comes in: an operator, its operands in registers, and their kinds (inference.py). Goes out: what it gives, or None where
too little is known; the inline functions of arithmetic.py do the rest. Fixnums whose result is one, whatever they are,
take one instruction, and so do flonums.
"""

from __future__ import annotations

from eshkol.codegen.arithmetic import EXACT_FORM
from eshkol.codegen.blocks import FunctionWriter, Val
from eshkol.codegen.kinds import EXACT_IN_DOUBLE, Kind, Kinds

_WHOLE = {"+": "add nsw", "-": "sub nsw", "*": "mul nsw"}
_DOUBLE = {"+": "fadd", "-": "fsub", "*": "fmul", "/": "fdiv"}
_COMPARED = {"=": ("eq", "oeq"), "<": ("slt", "olt"), "<=": ("sle", "ole"), ">": ("sgt", "ogt"), ">=": ("sge", "oge")}


class Operators:
    """Writes operators into a function."""

    def __init__(self, writer: FunctionWriter, kinds: Kinds) -> None:
        self.writer, self.kinds = writer, kinds

    def double(self, value: Val, kind: Kind) -> str:
        """A flonum as a double, or a fixnum made one."""
        if kind.tags == self.kinds.flonum:
            return self.writer.op(f"bitcast i64 {value.bits} to double")
        return self.writer.op(f"sitofp i64 {value.bits} to double")

    def flonum(self, double: str) -> Val:
        tag = self.kinds.names[self.kinds.flonum]
        return Val(tag, self.writer.op(f"bitcast double {double} to i64"))

    def fixnum(self, word: str) -> Val:
        return Val(self.kinds.names[self.kinds.fixnum], word)

    def computed(self, name: str, one: tuple[Val, Kind], other: tuple[Val, Kind]) -> Val | None:
        """What an operator of two numbers gives."""
        kinds, (a, known_a), (b, known_b) = self.kinds, one, other
        result = kinds.arithmetic(name, known_a, known_b)
        if known_a.tags == known_b.tags == result.tags == kinds.fixnum:
            if name in _WHOLE:
                return self.fixnum(self.writer.op(f"{_WHOLE[name]} i64 {a.bits}, {b.bits}"))
            if name in ("quotient", "remainder", "modulo") and known_b.low > 0:
                return self.fixnum(self._divided(name, a, known_a, b))
        if name in _DOUBLE and result.tags == kinds.flonum and self._machine(known_a) and self._machine(known_b):
            doubles = f"{self.double(a, known_a)}, {self.double(b, known_b)}"
            return self.flonum(self.writer.op(f"{_DOUBLE[name]} double {doubles}"))
        return None

    def _divided(self, name: str, a: Val, known: Kind, b: Val) -> str:
        """Of a positive divisor."""
        op = self.writer.op
        if known.low >= 0:
            return op(f"{'udiv' if name == 'quotient' else 'urem'} i64 {a.bits}, {b.bits}")
        if name == "quotient":
            return op(f"sdiv i64 {a.bits}, {b.bits}")
        left = op(f"srem i64 {a.bits}, {b.bits}")
        if name == "remainder":
            return left
        below = op(f"icmp slt i64 {left}, 0")
        return op(f"select i1 {below}, i64 {op(f'add nsw i64 {left}, {b.bits}')}, i64 {left}")

    def holds(self, name: str, one: tuple[Val, Kind], other: tuple[Val, Kind]) -> str | None:
        """Whether a comparison of two numbers holds, as an i1."""
        kinds, (a, known_a), (b, known_b) = self.kinds, one, other
        whole, real = _COMPARED[name]
        if known_a.tags == known_b.tags == kinds.fixnum:
            return self.writer.op(f"icmp {whole} i64 {a.bits}, {b.bits}")
        if self._machine(known_a, EXACT_IN_DOUBLE) and self._machine(known_b, EXACT_IN_DOUBLE):
            doubles = f"{self.double(a, known_a)}, {self.double(b, known_b)}"
            return self.writer.op(f"fcmp {real} double {doubles}")
        return None

    def _machine(self, kind: Kind, most: int | None = None) -> bool:
        """Whether values of a kind are flonums, or fixnums up to a limit."""
        if kind.tags == self.kinds.flonum:
            return True
        return kind.tags == self.kinds.fixnum and (most is None or (-most <= kind.low and kind.high <= most))

    def form(self, one: Kind, other: Kind) -> str:
        """The form of the inline function for two numbers."""
        return EXACT_FORM if not (one.tags | other.tags) & ~self.kinds.exact else ""
