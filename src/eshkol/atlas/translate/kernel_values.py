"""Values of JSON kernels: types still open, registers and names in scope, and the division of Python.

This is the floor that `kernel_expressions.py` stands on: a builder whose registers are given back as soon as
nothing needs them, so that large expressions fit the 252 general registers.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from eshkol.atlas.builder import ProgramBuilder
from eshkol.atlas.operands import Condition, Immediate, Label, Predicate, Register
from eshkol.atlas.program import Param
from eshkol.atlas.table import ROWS
from eshkol.atlas.translate.kernel_source import KernelNode, describe, near
from eshkol.atlas.types import Type
from eshkol.errors import IsaError


class Flexible(Enum):
    """The type of an expression of untyped literals, before its surroundings settle it."""

    INTEGER = Type.I32
    FLOAT = Type.F32


Guess = Type | Flexible


def widest(left: Guess, right: Guess) -> Guess:
    """What two guesses at one type amount to: a settled type before an open one, FLOAT before INTEGER."""
    if isinstance(left, Type) or right is Flexible.INTEGER:
        return left
    return right


def settle(guess: Guess, want: Type | None) -> Type:
    return guess if isinstance(guess, Type) else want or guess.value


@dataclass(frozen=True, slots=True)
class KernelValue:
    """A register that holds the result of an expression; a temporary is free again after use."""

    register: Register
    ty: Type
    temporary: bool


@dataclass(frozen=True, slots=True)
class KernelVariable:
    """A scalar with a name. Loop variables cannot be assigned."""

    register: Register
    ty: Type
    assignable: bool = True


@dataclass(slots=True)
class KernelScope:
    """A block's own names, and the registers that are free again when it ends."""

    names: dict[str, KernelVariable | Param] = field(default_factory=dict)
    registers: list[KernelValue] = field(default_factory=list)


class RegisterTranslator:
    """Hands out registers and labels, knows the names in scope, and emits division that floors."""

    def __init__(self, builder: ProgramBuilder, root: KernelNode) -> None:
        self.b = builder
        self.here = root  # what is being translated, for errors that the builder raises
        self.scopes = [KernelScope()]  # innermost last
        self._labels = 0

    # --- registers, labels, names ----------------------------------------------------------------

    def fresh(self, ty: Type) -> KernelValue:
        """A temporary of this type."""
        try:
            return KernelValue(self.b.reg(ty), ty, temporary=True)
        except IsaError as error:
            hint = "let variables end sooner, or split the kernel"
            raise self.here.error(error.message, hint) from None

    def constant(self, ty: Type, value: int | float) -> KernelValue:
        result = self.fresh(ty)
        self.b.mov_imm(result.register, Immediate(ty, value))
        return result

    def free(self, *values: KernelValue | Predicate | None) -> None:
        """Give temporaries back; to be called after the last instruction that reads them."""
        for value in values:
            if isinstance(value, Predicate):
                self.b.release(value)
            elif value is not None and value.temporary:
                self.b.release(value.register)

    def label(self, hint: str) -> Label:
        self._labels += 1
        return Label(f"{hint}{self._labels}")

    def lookup(self, node: KernelNode) -> KernelVariable | Param:
        """What a name means here."""
        name = node.text()
        for scope in reversed(self.scopes):
            if name in scope.names:
                return scope.names[name]
        known = {known for scope in self.scopes for known in scope.names}
        raise node.error(f"{describe(name)} is not defined here", near(name, known))

    # --- division that floors --------------------------------------------------------------------

    def step(self, mnemonic: str, *operands: KernelValue) -> KernelValue:
        """A new temporary from one instruction; the operands stay taken."""
        result = self.fresh(operands[0].ty)
        self.b.emit(ROWS[mnemonic](result.register, *(v.register for v in operands)))
        return result

    def _select(
        self, cond: Condition, left: KernelValue, right: KernelValue, yes: KernelValue, no: KernelValue
    ) -> KernelValue:
        """yes where (left cond right) holds, else no; `yes` and `no` stay taken."""
        predicate, result = self.b.pred(), self.fresh(yes.ty)
        self.b.setcc(cond, predicate, left.register, right.register)
        self.b.sel(result.register, predicate, yes.register, no.register)
        self.free(predicate)
        return result

    def _where_signs_differ(
        self, rest: KernelValue, divisor: KernelValue, zero: KernelValue, yes: KernelValue, no: KernelValue
    ) -> KernelValue:
        """yes where the remainder is not zero and has not the divisor's sign, else no; NaN gives no."""
        if not rest.ty.is_signed:
            return self.step("MOV", no)
        below, above = (self._select(c, divisor, zero, yes, no) for c in (Condition.LT, Condition.GT))
        part = self._select(Condition.GT, rest, zero, below, no)
        result = self._select(Condition.LT, rest, zero, above, part)
        self.free(below, above, part)
        return result

    def modulo(self, left: KernelValue, right: KernelValue) -> KernelValue:
        """The remainder with the divisor's sign; a float remainder of zero has that sign too."""
        ty = left.ty
        zero, rest = self.constant(ty, 0), self.step("REM", left, right)
        shifted = self.step("ADD", rest, right)
        result = self._where_signs_differ(rest, right, zero, shifted, rest)
        if ty.is_float:
            minus_zero = self.constant(ty, -0.0)
            signed_zero = self._select(Condition.LT, right, zero, minus_zero, zero)
            unsigned, result = result, self._select(Condition.EQ, rest, zero, signed_zero, result)
            self.free(minus_zero, signed_zero, unsigned)
        self.free(zero, rest, shifted)
        return result

    def floor_div(self, left: KernelValue, right: KernelValue) -> KernelValue:
        """The floor of the exact quotient, as Python has it.

        The floor of a rounded float quotient may be one too high (1 // 0.1 is 9), so floats go by the
        remainder, which is exact: (left - remainder) / right is an integer but for rounding.
        """
        ty = left.ty
        rest = self.step("REM", left, right)
        whole = self.step("SUB", left, rest)
        quotient = self.step("DIV", whole if ty.is_float else left, right)
        one, zero = self.constant(ty, 1), self.constant(ty, 0)
        lower = self.step("SUB", quotient, one)
        result = self._where_signs_differ(rest, right, zero, lower, quotient)
        self.free(rest, whole, quotient, lower)
        if ty.is_float:
            result = self._nearest_integer(result, left, right, one, zero)
        self.free(one, zero)
        return result

    def _nearest_integer(
        self, value: KernelValue, left: KernelValue, right: KernelValue, one: KernelValue, zero: KernelValue
    ) -> KernelValue:
        """A float quotient made integral, with the sign of a zero and the results of division by zero."""
        floor, half = self.step("FLOOR", value), self.constant(value.ty, 0.5)
        excess, above = self.step("SUB", value, floor), self.step("ADD", floor, one)
        rounded = self._select(Condition.GT, excess, half, above, floor)
        ratio = self.step("DIV", left, right)
        signed_zero = self.step("MUL", ratio, zero)
        kept = self._select(Condition.EQ, value, zero, signed_zero, rounded)
        result = self._select(Condition.EQ, right, zero, ratio, kept)
        self.free(value, floor, half, excess, above, rounded, ratio, signed_zero, kept)
        return result
