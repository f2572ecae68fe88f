"""Symbols on which the rules of the op table run: scalars whose operations build expressions.

An expression is a constant, a variable, or a call of a Scheme procedure (`+`, `sin`, `=`) or form (`if and or not`).
It is a `Value`, so rules compute with it as they do with nodes of a graph: composites unfold by themselves, and what a
rule asks of its operands' dtype is answered for real or for complex numbers, as the variables say. Numbers are exact
where they were exactly meant (1/2 of a 0.5), so that derivatives of exact numbers are exact.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any, cast

from eshkol.errors import TensorError
from eshkol.ops import TABLE, dtypes
from eshkol.ops.dtypes import DType
from eshkol.ops.row import Op, Value

Number = Fraction | float | bool

# Logic and the choice between numbers, by the forms they are in Scheme.
FORMS: Mapping[str, str] = {
    "where": "if", "bitwise_and": "and", "bitwise_or": "or", "bitwise_not": "not",
}  # fmt: skip
ORDER: Mapping[str, Callable[[Any, Any], bool]] = {
    "=": lambda x, y: x == y, "<": lambda x, y: x < y, "<=": lambda x, y: x <= y, ">": lambda x, y: x > y,
    ">=": lambda x, y: x >= y,
}  # fmt: skip


class NoExpression(TensorError):
    """An op was met that is no procedure of Scheme's on numbers."""


class Expression(Value):
    """A scalar of one of the three kinds below. Compared by what it says."""

    __slots__ = ("dtype",)

    shape = ()
    dtype: DType

    def apply(self, op: Op, inputs: Sequence[Any], attrs: Any) -> Expression:
        """The expression of an op; `cast` only says what truth is worth."""
        args = [expression(value) for value in inputs]
        if op.name == "cast":
            return call("if", args[0], ONE, ZERO) if args[0].dtype.is_bool else args[0]
        if op.name == "not_equal":
            return call("not", call("=", *args))
        name = FORMS.get(op.name) or next(iter(op.procedures), None)
        if name is None:
            raise NoExpression(f"'{op.name}' is no procedure of numbers in Scheme")
        return call(name, *args)

    def literal(self, array: Any) -> Expression:
        return expression(array.item())

    def concrete(self) -> Any:
        raise NoExpression(f"the value of {self.text()} is not known")

    @abstractmethod
    def _key(self) -> tuple[Any, ...]:
        """What it says, to compare by."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Expression) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def __repr__(self) -> str:
        return self.text()

    @abstractmethod
    def text(self) -> str:
        """The expression as Scheme writes it."""

    @abstractmethod
    def substitute(self, meanings: Mapping[str, Expression]) -> Expression:
        """With expressions for variables."""


class Constant(Expression):
    """A number or a truth value."""

    __slots__ = ("number",)

    def __init__(self, number: Number) -> None:
        self.number = number
        self.dtype = dtypes.bool_ if isinstance(number, bool) else dtypes.float64

    def _key(self) -> tuple[Any, ...]:
        return (type(self.number), self.number)

    def text(self) -> str:
        if isinstance(self.number, bool):
            return "#t" if self.number else "#f"
        if isinstance(self.number, float):
            special = {"inf": "+inf.0", "-inf": "-inf.0", "nan": "+nan.0"}
            return special.get(repr(self.number), repr(self.number))
        return str(self.number)

    def substitute(self, meanings: Mapping[str, Expression]) -> Expression:
        return self


class VariableExpression(Expression):
    """A name: `r` for the result of a procedure, `x` and `y` for its arguments."""

    __slots__ = ("name",)

    def __init__(self, name: str, dtype: DType = dtypes.float64) -> None:
        self.name, self.dtype = name, dtype

    def _key(self) -> tuple[Any, ...]:
        return (self.name,)

    def text(self) -> str:
        return self.name

    def substitute(self, meanings: Mapping[str, Expression]) -> Expression:
        return meanings.get(self.name, self)


class CallExpression(Expression):
    """A Scheme procedure or form and its arguments, as many as the procedure's rule has."""

    __slots__ = ("args", "name")

    def __init__(self, name: str, args: tuple[Expression, ...]) -> None:
        self.name, self.args = name, args
        self.dtype = dtypes.bool_ if name in BOOLEAN else args[-1].dtype

    def _key(self) -> tuple[Any, ...]:
        return (self.name, *self.args)

    def text(self) -> str:
        return f"({' '.join([self.name, *(arg.text() for arg in self.args)])})"

    def substitute(self, meanings: Mapping[str, Expression]) -> Expression:
        return call(self.name, *(arg.substitute(meanings) for arg in self.args))


BOOLEAN = frozenset(FORMS.values()) - {"if"} | ORDER.keys()
ZERO, ONE, MINUS_ONE = (Constant(Fraction(n)) for n in (0, 1, -1))


def expression(value: Any) -> Expression:
    """A number, or what is an expression already. Floats that are plain fractions were meant exactly."""
    if isinstance(value, Expression):
        return value
    if isinstance(value, bool):
        return Constant(value)
    if isinstance(value, float):
        whole = value == value and abs(value) < 2**52 and Fraction(value).denominator <= 2**20
        return Constant(Fraction(value) if whole else value)
    if isinstance(value, int | Fraction):
        return Constant(Fraction(value))
    raise NoExpression(f"{value!r} is no real number")


def call(name: str, *args: Expression) -> Expression:
    """A call, or what it plainly is: sums with zero, products with one, choices that are made already."""
    numbers = [arg.number for arg in args if isinstance(arg, Constant)]
    if len(numbers) == len(args):
        known = _known(name, numbers)
        if known is not None:
            return expression(known)
    plain = _PLAIN.get((name, len(args)))
    found = plain(*args) if plain else None
    return CallExpression(name, args) if found is None else found


def _known(name: str, numbers: list[Any]) -> Number | None:
    if name in ORDER and len(numbers) == 2:
        return ORDER[name](*numbers)
    if not all(isinstance(n, Fraction) for n in numbers):
        return None
    match name, numbers:
        case "+", [x, y]:
            return cast(Fraction, x + y)
        case "-", [x]:
            return cast(Fraction, -x)
        case "-", [x, y]:
            return cast(Fraction, x - y)
        case "*", [x, y]:
            return cast(Fraction, x * y)
        case "/", [x, y] if y:
            return cast(Fraction, x / y)
    return None


def _sum(x: Expression, y: Expression) -> Expression | None:
    if x == y:
        return call("*", Constant(Fraction(2)), x)
    return y if x == ZERO else x if y == ZERO else None


def _difference(x: Expression, y: Expression) -> Expression | None:
    return x if y == ZERO else call("-", y) if x == ZERO else None


def _product(x: Expression, y: Expression) -> Expression | None:
    if ZERO in (x, y):
        return ZERO
    if MINUS_ONE in (x, y):
        return call("-", y if x == MINUS_ONE else x)
    return y if x == ONE else x if y == ONE else None


def _quotient(x: Expression, y: Expression) -> Expression | None:
    return x if y == ONE else call("-", x) if y == MINUS_ONE else ZERO if x == ZERO else None


def _negative(x: Expression) -> Expression | None:
    return x.args[0] if isinstance(x, CallExpression) and x.name == "-" and len(x.args) == 1 else None


def _choice(condition: Expression, x: Expression, y: Expression) -> Expression | None:
    if isinstance(condition, Constant):
        return x if condition.number else y
    known_x, known_y = _knowing(condition, True, x), _knowing(condition, False, y)
    if known_x == known_y:
        return known_x
    return CallExpression("if", (condition, known_x, known_y)) if (known_x, known_y) != (x, y) else None


def _knowing(condition: Expression, holds: bool, value: Expression) -> Expression:
    """A branch of a choice, where the same choice need not be made again."""
    if not isinstance(value, CallExpression):
        return value
    if value.name == "if" and value.args[0] == condition:
        return _knowing(condition, holds, value.args[1 if holds else 2])
    return call(value.name, *(_knowing(condition, holds, arg) for arg in value.args))


def _both(x: Expression, y: Expression) -> Expression | None:
    for one, other in ((x, y), (y, x)):
        if isinstance(one, Constant):
            return other if one.number else one
    return None


_PLAIN: Mapping[tuple[str, int], Callable[..., Expression | None]] = {
    ("+", 2): _sum, ("-", 2): _difference, ("*", 2): _product, ("/", 2): _quotient, ("-", 1): _negative,
    ("if", 3): _choice, ("and", 2): _both,
}  # fmt: skip

assert TABLE.keys() >= FORMS.keys()
