"""Types as code: whether a value is of a type, asked with the runtime's primitives.

Comes in: a type, and the core form of a variable that may be evaluated more than once. Goes out: a core form that is
true or false. Lists and vectors are walked, recursive types by procedures of their own; of procedures only that they
are procedures is asked (`borders.py` guards what they give).
"""

from __future__ import annotations

from collections.abc import Callable

from eshkol.lang.core import Call, Cell, Clause, Const, Global, If, Lambda, Letrec, Local, Node, Variable
from eshkol.types.kinds import (
    ANY,
    BIT,
    EVERYTHING,
    EXACTS,
    FALSE_BIT,
    GROUND,
    HANDLES,
    INTEGERS,
    NATURALS,
    NUMBERS,
    REALS,
    TENSOR,
    Function,
    HandleOf,
    ListOf,
    Named,
    PairOf,
    Part,
    RecordOf,
    TensorOf,
    Type,
    TypeVariable,
    VectorOf,
    cover,
)

# The largest set of kinds that a predicate holds for comes first.
_PREDICATES: tuple[tuple[int, str], ...] = (
    (NUMBERS, "number?"), (REALS, "real?"), (EXACTS, "exact-rational?"), (INTEGERS, "exact-integer?"),
    (NATURALS, "exact-nonnegative-integer?"), (GROUND["Boolean"], "boolean?"),
    *((BIT[k], f"{k}?") for k in (
        "char", "string", "symbol", "keyword", "null", "bytevector", "port", "box", "pair", "vector", "procedure",
        "tensor", "record",
    )),
    (BIT["table"], "hash-table?"), (BIT["eof"], "eof-object?"),
)  # fmt: skip
_UNTOLD = BIT["promise"] | BIT["other"]  # no predicate of the runtime's tells these
SMALLEST, LARGEST = -(1 << 63), (1 << 63) - 1


class Tests:
    """Writes tests. `primitive` gives the cells of primitives, `of_owners` those of (eshkol owners)."""

    def __init__(self, primitive: Callable[[str], Cell], of_owners: Callable[[str], Cell]) -> None:
        self.primitive = primitive
        self._of_owners = of_owners
        self._walks: dict[Named, Variable] = {}  # of recursive types, within the test at hand

    def call(self, name: str, *args: Node) -> Node:
        return Call(None, Global(None, self.primitive(name)), list(args))

    def test(self, kind: Type, value: Variable) -> Node:
        """Whether a variable's value is of a type."""
        if kind is ANY or kind.mask == EVERYTHING or kind.mask & _UNTOLD:
            return Const(None, True)
        left, found = kind.mask, []
        for bits, name in _PREDICATES:
            if left & bits == bits:
                found.append(self.call(name, Local(None, value)))
                left &= ~bits
        if left & BIT["float"]:
            found.append(self._float(value))
        if left & INTEGERS:
            found.append(self._fixnum(value, left))
        if left & (BIT["ratio"] | BIT["complex"]):
            found.append(self.call("number?", Local(None, value)))
        for bit, constant in ((FALSE_BIT, False), (BIT["true"], True)):
            if left & bit:
                found.append(self.call("eq?", Local(None, value), Const(None, constant)))
        if left & BIT["void"]:
            found.append(self.call("eq?", Local(None, value), self.call("void")))
        found += [self._part(part, value) for part in kind.parts]
        return self.any_of(found)

    def any_of(self, tests: list[Node]) -> Node:
        result = tests[-1] if tests else Const(None, False)
        for test in reversed(tests[:-1]):
            result = If(None, test, Const(None, True), result)
        return result

    def all_of(self, *tests: Node) -> Node:
        result = tests[-1]
        for test in reversed(tests[:-1]):
            result = If(None, test, result, Const(None, False))
        return result

    def _float(self, value: Variable) -> Node:
        """Doubles, and the numbers that stand for them while something is differentiated."""
        return self.all_of(self.call("real?", Local(None, value)), self.call("inexact?", Local(None, value)))

    def _fixnum(self, value: Variable, bits: int) -> Node:
        least = SMALLEST if bits & BIT["negative"] else 0
        within = self.call("<=", Const(None, least), Local(None, value), Const(None, LARGEST))
        return self.all_of(self.call("exact-integer?", Local(None, value)), within)

    def _of(self, kind: Type, value: Node) -> Node:
        """Whether what a form gives is of a type."""
        if kind is ANY:
            return Const(None, True)
        variable = Variable("part")
        return Call(None, Lambda(None, [Clause([variable], None, self.test(kind, variable))]), [value])

    def _part(self, part: Part, value: Variable) -> Node:
        here = Local(None, value)
        match part:
            case PairOf(first, rest):
                car, cdr = self.call("car", here), self.call("cdr", here)
                return self.all_of(self.call("pair?", here), self._of(first, car), self._of(rest, cdr))
            case ListOf(item):
                return self._list(item, value)
            case VectorOf(item, length):
                return self._vector(item, length, value)
            case RecordOf(_, key):
                return self.call("%record?", here, Global(None, key)) if isinstance(key, Cell) else Const(None, True)
            case TensorOf():
                return self.call("tensor?", here)
            case HandleOf(of_kind, _):
                return Call(None, Global(None, self._of_owners(HANDLES[of_kind])), [here])
            case Function():
                return self.call("procedure?", here)
            case Named():
                return self._named(part, value)
            case TypeVariable():
                return Const(None, True)
        return Const(None, True)

    def _list(self, item: Type, value: Variable) -> Node:
        if item is ANY:
            return self.call("list?", Local(None, value))
        walk, rest = Variable("all-of-list"), Variable("rest")
        more = Call(None, Local(None, walk), [self.call("cdr", Local(None, rest))])
        step = self.all_of(self._of(item, self.call("car", Local(None, rest))), more)
        body = If(None, self.call("pair?", Local(None, rest)), step, self.call("null?", Local(None, rest)))
        loop = Lambda(None, [Clause([rest], None, body)], walk.name)
        return Letrec(None, [walk], [loop], Call(None, Local(None, walk), [Local(None, value)]))

    def _vector(self, item: Type, length: int | str | None, value: Variable) -> Node:
        tests = [self.call("vector?", Local(None, value))]
        size = self.call("vector-length", Local(None, value))
        if isinstance(length, int):
            tests.append(self.call("=", size, Const(None, length)))
        if item is not ANY:
            walk, index = Variable("all-of-vector"), Variable("index")
            element = self.call("%vector-ref", Local(None, value), Local(None, index))
            more = Call(None, Local(None, walk), [self.call("+", Local(None, index), Const(None, 1))])
            ended = self.call("=", Local(None, index), size)
            body = If(None, ended, Const(None, True), self.all_of(self._of(item, element), more))
            loop = Lambda(None, [Clause([index], None, body)], walk.name)
            tests.append(Letrec(None, [walk], [loop], Call(None, Local(None, walk), [Const(None, 0)])))
        found = self.all_of(*tests)
        if is_numeric(item):  # a row of numbers may be a tensor
            return self.any_of([found, self.call("tensor?", Local(None, value))])
        return found

    def _named(self, part: Named, value: Variable) -> Node:
        """A recursive type: a procedure that calls itself where the name stands again."""
        walk = self._walks.get(part)
        if walk is not None:
            return Call(None, Local(None, walk), [Local(None, value)])
        walk = self._walks[part] = Variable(f"is-{part.name}")
        inner = Variable("value")
        procedure = Lambda(None, [Clause([inner], None, self.test(part.type, inner))], walk.name)
        del self._walks[part]
        return Letrec(None, [walk], [procedure], Call(None, Local(None, walk), [Local(None, value)]))


def is_numeric(kind: Type) -> bool:
    """Whether only numbers are of a type, so that a row of such values may be a tensor."""
    return kind is not ANY and bool(cover(kind)) and not cover(kind) & ~(NUMBERS | TENSOR)
