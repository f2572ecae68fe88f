"""Straight-line code for expansions: written as Python expressions, emitted with few registers.

`ElementaryCode` records steps over `ElementaryValue`s, each written once; `plan` puts down in which order they stand
and what is needed how long. The plan of a function serves all its expansions: `ElementaryPlan.emit` frees every
register and predicate after its last use, so that a function of a hundred steps needs a dozen registers of the program
around it. Numbers become constants of the other operand's type, loaded where they are used.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

from eshkol.atlas.isa import CodeBuilder, Instruction, Opcode
from eshkol.atlas.operands import Condition, Immediate, Predicate, Register
from eshkol.atlas.table.rows import METHODS
from eshkol.atlas.types import Type

Number = int | float


@dataclass(frozen=True, slots=True, eq=False)
class Truth:
    """A predicate of the code: what a comparison gave."""

    code: ElementaryCode

    def select(self, yes: ElementaryValue | Number, no: ElementaryValue | Number) -> ElementaryValue:
        """`yes` where it holds, else `no`; one of them is a value."""
        like = yes if isinstance(yes, ElementaryValue) else no
        assert isinstance(like, ElementaryValue)
        return self.code.step("sel", like.ty, self, like.lift(yes), like.lift(no))


@dataclass(frozen=True, slots=True, eq=False)
class ElementaryValue:
    """One value per lane, written once."""

    code: ElementaryCode
    ty: Type

    def lift(self, other: ElementaryValue | Number) -> ElementaryValue:
        """The other operand, a number as a constant of this value's type."""
        return other if isinstance(other, ElementaryValue) else self.code.constant(self.ty, other)

    def _with(self, method: str, *others: ElementaryValue | Number) -> ElementaryValue:
        return self.code.step(method, self.ty, self, *(self.lift(other) for other in others))

    def __add__(self, other: ElementaryValue | Number) -> ElementaryValue:
        return self._with("add", other)

    def __sub__(self, other: ElementaryValue | Number) -> ElementaryValue:
        return self._with("sub", other)

    def __rsub__(self, other: Number) -> ElementaryValue:
        return self.lift(other) - self

    def __mul__(self, other: ElementaryValue | Number) -> ElementaryValue:
        return self._with("mul", other)

    def __truediv__(self, other: ElementaryValue | Number) -> ElementaryValue:
        return self._with("div", other)

    def __rtruediv__(self, other: Number) -> ElementaryValue:
        return self.lift(other) / self

    def __and__(self, other: ElementaryValue | Number) -> ElementaryValue:
        return self._with("and_", other)

    def __or__(self, other: ElementaryValue | Number) -> ElementaryValue:
        return self._with("or_", other)

    def __xor__(self, other: ElementaryValue | Number) -> ElementaryValue:
        return self._with("xor", other)

    def __lshift__(self, other: ElementaryValue | Number) -> ElementaryValue:
        return self._with("shl", other)

    def __rshift__(self, other: ElementaryValue | Number) -> ElementaryValue:
        return self._with("shr", other)

    def __neg__(self) -> ElementaryValue:
        return self._with("neg")

    def __abs__(self) -> ElementaryValue:
        return self._with("abs")

    def fma(self, factor: ElementaryValue | Number, term: ElementaryValue | Number) -> ElementaryValue:
        """self × factor + term, rounded once."""
        return self._with("fma", factor, term)

    def max(self, other: ElementaryValue | Number) -> ElementaryValue:
        return self._with("max", other)

    def min(self, other: ElementaryValue | Number) -> ElementaryValue:
        return self._with("min", other)

    def is_(self, condition: Condition, other: ElementaryValue | Number) -> Truth:
        return self.code.compare(condition, self, self.lift(other))

    def below(self, other: ElementaryValue | Number) -> Truth:
        return self.is_(Condition.LT, other)

    def above(self, other: ElementaryValue | Number) -> Truth:
        return self.is_(Condition.GT, other)

    def at_least(self, other: ElementaryValue | Number) -> Truth:
        return self.is_(Condition.GE, other)

    def equals(self, other: ElementaryValue | Number) -> Truth:
        return self.is_(Condition.EQ, other)

    def is_nan(self) -> Truth:
        return self.is_(Condition.NE, self)

    def bits(self, ty: Type) -> ElementaryValue:
        """The same bits as another type."""
        return self.code.step("bitcast", ty, self.ty, ty, self)

    def to(self, ty: Type) -> ElementaryValue:
        """The same number in another type, as CVT converts it."""
        return self.code.step("cvt", ty, self.ty, ty, self)

    def polynomial(self, coefficients: Sequence[float]) -> ElementaryValue:
        """c0 + c1·self + c2·self² + …, by Horner's rule."""
        total = self.lift(coefficients[-1])
        for coefficient in reversed(coefficients[:-1]):
            total = total.fma(self, coefficient)
        return total

    def halved_polynomial(self, square: ElementaryValue, coefficients: Sequence[float]) -> ElementaryValue:
        """The same, even and odd powers by themselves, given the square: one step more, and half as long to wait."""
        return square.polynomial(coefficients[1::2]).fma(self, square.polynomial(coefficients[::2]))


@dataclass(frozen=True, slots=True)
class _Step:
    method: str  # of the builder
    operands: tuple[Any, ...]
    out: ElementaryValue | Truth | None  # None: writes the first operand again, or opens or closes a condition


@dataclass(frozen=True)
class Format:
    """What the bits of F32 or F64 are made of, and the integers of the same width."""

    ty: Type
    signed: Type
    unsigned: Type
    bias: int

    @property
    def mantissa(self) -> int:
        return self.ty.mantissa_bits

    @property
    def sign(self) -> int:
        """The bit of the sign."""
        return 1 << (self.ty.bits - 1)

    @property
    def magic(self) -> float:
        """Adding it rounds a small number to an integer, which then stands in the low bits of the sum."""
        return 1.5 * 2.0**self.mantissa

    @property
    def magic_bits(self) -> int:
        return ((self.bias + self.mantissa) << self.mantissa) | (1 << (self.mantissa - 1))


FORMATS = {
    Type.F32: Format(Type.F32, Type.I32, Type.U32, 127),
    Type.F64: Format(Type.F64, Type.I64, Type.U64, 1023),
}


def format_of(x: ElementaryValue) -> Format:
    return FORMATS[x.ty]


def fast_two_sum(a: ElementaryValue, b: ElementaryValue) -> tuple[ElementaryValue, ElementaryValue]:
    """a + b rounded, and the exact rest; a is zero or not smaller than b."""
    total = a + b
    return total, b - (total - a)


def two_sum(a: ElementaryValue, b: ElementaryValue) -> tuple[ElementaryValue, ElementaryValue]:
    """a + b rounded, and the exact rest, in any order of size."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


def two_product(a: ElementaryValue, b: ElementaryValue) -> tuple[ElementaryValue, ElementaryValue]:
    """a × b rounded, and the exact rest."""
    product = a * b
    return product, a.fma(b, -product)


def with_sign(magnitude: ElementaryValue, like: ElementaryValue) -> ElementaryValue:
    """A value that is not negative, with the sign of another."""
    f = format_of(magnitude)
    return (magnitude.bits(f.unsigned) | (like.bits(f.unsigned) & f.sign)).bits(f.ty)


class ElementaryCode:
    """Steps recorded for one expansion."""

    def __init__(self) -> None:
        self._steps: list[_Step] = []
        self._given: dict[ElementaryValue | Truth, None] = {}

    def given(self, ty: Type) -> ElementaryValue:
        """A register of the program, which the code reads and never frees."""
        value = ElementaryValue(self, ty)
        self._given[value] = None
        return value

    def constant(self, ty: Type, number: Number) -> ElementaryValue:
        value = ElementaryValue(self, ty)
        self._steps.append(_Step("constant", (number,), value))
        return value

    def step(self, method: str, ty: Type, *operands: Any) -> ElementaryValue:
        value = ElementaryValue(self, ty)
        self._steps.append(_Step(method, operands, value))
        return value

    def compare(self, condition: Condition, a: ElementaryValue, b: ElementaryValue) -> Truth:
        truth = Truth(self)
        self._steps.append(_Step("setcc", (condition, a, b), truth))
        return truth

    def variable(self, value: ElementaryValue) -> ElementaryValue:
        """A copy that `assign` may write again inside a condition."""
        return self.step("mov", value.ty, value)

    def assign(self, variable: ElementaryValue, value: ElementaryValue) -> None:
        self._steps.append(_Step("assign", (variable, value), None))

    @contextmanager
    def when(self, truth: Truth) -> Iterator[None]:
        """Steps inside are taken only by the lanes where it holds; they give results through `assign`."""
        self._steps.append(_Step("when", (truth,), None))
        yield
        self._steps.append(_Step("end", (), None))

    def plan(self, result: ElementaryValue) -> ElementaryPlan:
        """The steps as a plan, of which `result` is the result."""
        # Branches only go forward, so the last use in order is the last use on every path.
        last: dict[ElementaryValue | Truth, int] = {}
        for position, step in enumerate(self._steps):
            for operand in (*step.operands, step.out):
                if isinstance(operand, ElementaryValue | Truth):
                    last[operand] = position
        last[result] = len(self._steps)
        places: dict[ElementaryValue | Truth, int] = {value: number for number, value in enumerate(self._given)}
        planned: list[_Planned] = []
        for position, step in enumerate(self._steps):
            if step.out is not None:
                places[step.out] = len(places)
            touched = dict.fromkeys(o for o in (*step.operands, step.out) if isinstance(o, ElementaryValue | Truth))
            done = tuple(places[o] for o in touched if last[o] == position and o not in self._given)
            if step.method in ("when", "end"):
                planned.append(_Planned(None, (), tuple((0, places[o]) for o in touched), None, False, done))
                continue
            operands, method = _in_order(step), "mov" if step.method == "assign" else step.method
            op = METHODS["mov_imm" if method == "constant" else method]
            gaps = tuple((k, places[o]) for k, o in enumerate(operands) if isinstance(o, ElementaryValue | Truth))
            checked = op(*(_example(o) for o in operands)).operands
            out = None if step.out is None else places[step.out]
            planned.append(_Planned(op, checked, gaps, out, isinstance(step.out, Truth), done))
        ends = bool(self._steps) and self._steps[-1].out is result
        return ElementaryPlan(len(self._given), len(places), places[result], ends, tuple(planned))


def _in_order(step: _Step) -> tuple[Any, ...]:
    """The operands of a step as its row has them, with what it gives among them."""
    out, operands = step.out, step.operands
    if isinstance(out, Truth):
        return operands[0], out, *operands[1:]
    if out is None:
        return operands
    if step.method == "constant":
        return out, Immediate(out.ty, operands[0])
    if step.method in ("bitcast", "cvt"):
        return *operands[:2], out, operands[2]
    return out, *operands


def _example(operand: Any) -> Any:
    """What may stand where an operand does, for the checks of its row."""
    if isinstance(operand, ElementaryValue):
        return Register(0)
    return Predicate(0) if isinstance(operand, Truth) else operand


@dataclass(frozen=True, slots=True)
class _Planned:
    """An instruction with gaps for what it touches; without a row, the beginning or the end of a condition."""

    op: Opcode | None
    operands: tuple[Any, ...]
    gaps: tuple[tuple[int, int], ...]  # (position among the operands, number of the place)
    out: int | None  # the place it is the first to write
    is_truth: bool  # whether that is a predicate
    done: tuple[int, ...]  # places that nothing needs after it


@dataclass(frozen=True, slots=True)
class ElementaryPlan:
    """Code that was checked once, and then only needs its registers: places are numbered, the given ones first."""

    given: int
    places: int
    result: int
    ends_with_result: bool
    steps: tuple[_Planned, ...]

    def emit(self, b: CodeBuilder, dst: Register, given: Sequence[Register]) -> None:
        """The code; the result ends in `dst`, which may be a register that the code reads."""
        assert len(given) == self.given
        b.take(*given, dst)
        places: list[Any] = [*given, *[None] * (self.places - self.given)]
        conditions: list[ExitStack] = []
        instructions, span = b.instructions, b.span
        final = self.steps[-1] if self.ends_with_result else None
        for step in self.steps:
            if step.op is None:
                if step.gaps:
                    conditions.append(ExitStack())
                    conditions[-1].enter_context(b.when(places[step.gaps[0][1]]))
                else:
                    conditions.pop().close()
            else:
                if step.out is not None:
                    places[step.out] = b.pred() if step.is_truth else dst if step is final else b.reg()
                operands = list(step.operands)
                for position, place in step.gaps:
                    operands[position] = places[place]
                instructions.append(Instruction(step.op, tuple(operands), span))
            if step.done:
                b.release(*(places[place] for place in step.done))
        if places[self.result] is not dst:
            b.mov(dst, places[self.result])
