"""Writing typed programs: instructions and blocks, numbers of the type that is wanted, branches that meet.

The part of specializing that needs no core forms; `specialize.py` builds on it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, NoReturn

from eshkol.calculus import ir
from eshkol.calculus.abstract import (
    COPIED,
    NIL,
    Abstract,
    AbstractShape,
    Box,
    Closure,
    Fields,
    Known,
    Leaf,
    NotFast,
    Primitive,
    Unit,
    leaf_types,
    rebuilt,
    shape_of,
    variable,
    widened,
)  # fmt: skip
from eshkol.calculus.exactness import ROUNDED, SAME
from eshkol.calculus.ir import F64, I1, I64, Block, Branch, Fail, Instruction, Jump, Type, TypedValue
from eshkol.codegen.nodes import LetValues, children
from eshkol.lang import core
from eshkol.lang.core import Lambda, Let, Local, Node, Variable
from eshkol.lang.datum import Symbol

MOST_INSTRUCTIONS = 20_000
NEW = object()  # the origin of a vector that nothing else has


class Again(Exception):
    """Something that was assumed is wrong; the right thing is noted."""


class Unreachable(Exception):
    """What is being written can never run."""


@dataclass(eq=False)
class WriterJoin:
    """Where values are awaited; they are put together when all who deliver are known."""

    count: int = 1
    delivered: list[tuple[Block, list[Abstract]]] = field(default_factory=list)


@dataclass(eq=False)
class Test:
    yes: Block
    no: Block


Destination = WriterJoin | Test


class ProgramWriter:
    """Writes a program; `function` and `block` are where it is."""

    def __init__(self, main: ir.TypedFunction) -> None:
        self.functions = [main]
        self.function = main
        self.block = main.blocks[0]
        self.needs: dict[Lambda, tuple[Variable, ...]] = {}
        self.changed: set[Any] = set()  # where vectors are made that must be memory
        self.exact: dict[TypedValue, int] = {}  # doubles that are exact numbers of Scheme, and how near (exactness.py)
        self.size = self.blocks = 0
        self.converted: set[Type] = set()  # what data from outside became in copies
        self.mutated: set[Type] = set()  # what was changed without its being known where it was made

    # ---- writing instructions -----------------------------------------------------------------------------------

    def op(self, operation: str, operands: Sequence[TypedValue], kind: Type, name: str = "") -> TypedValue:
        self.size += 1
        if self.size > MOST_INSTRUCTIONS:
            raise NotFast("it becomes too large")
        result = TypedValue(kind)
        self.block.body.append(Instruction(operation, list(operands), [result], name))
        return result

    def effect(self, operation: str, operands: Sequence[TypedValue]) -> None:
        self.block.body.append(Instruction(operation, list(operands), []))

    def literal(self, datum: Any, kind: Type) -> TypedValue:
        result = TypedValue(kind)
        self.block.body.append(Instruction("constant", [], [result], literal=datum))
        return result

    def math(self, name: str, *operands: TypedValue) -> Leaf:
        return Leaf(self.op("math", operands, F64, name))

    def new_block(self, name: str) -> Block:
        self.blocks += 1
        return Block(f"{name}{self.blocks}")

    def begin(self, block: Block) -> None:
        self.function.blocks.append(block)
        self.block = block

    def jump(self, target: Block, args: Sequence[TypedValue] = ()) -> None:
        self.block.end = Jump(target, list(args))

    def fail(self) -> NoReturn:
        self.block.end = Fail()
        raise Unreachable

    def need(self, condition: TypedValue) -> None:
        """Fail unless the condition holds."""
        good, bad = self.new_block("good"), self.new_block("bad")
        self.block.end = Branch(condition, Jump(good, []), Jump(bad, []))
        bad.end = Fail()
        self.function.blocks.append(bad)
        self.begin(good)

    # ---- loops and choices -----------------------------------------------------------------------------------------

    def repeat(
        self, times: TypedValue, state: list[TypedValue], step: Callable[..., list[TypedValue]]
    ) -> list[TypedValue]:
        """A loop over the integers below a number; each changes the state."""
        header, body, after = (self.new_block(name) for name in ("each", "turn", "done"))
        header.params = [TypedValue(I64), *(TypedValue(v.type) for v in state)]
        self.jump(header, [self.literal(0, I64), *state])
        self.begin(header)
        at, *now = header.params
        test = self.op("icompare", [at, times], I1, "lt")
        self.block.end = Branch(test, Jump(body, []), Jump(after, []))
        self.begin(body)
        following = step(at, *now)
        self.jump(header, [self.op("iadd", [at, self.literal(1, I64)], I64), *following])
        self.begin(after)
        return now

    def mapped(self, first: TypedValue, made: Type, step: Callable[[TypedValue], TypedValue]) -> TypedValue:
        """A list of what a step makes of each item, the last one first."""
        header, body, after = (self.new_block(name) for name in ("walk", "item", "walked"))
        header.params = [TypedValue(first.type.unsized), TypedValue(made)]
        self.jump(header, [first, self.literal(None, ir.NULL)])
        self.begin(header)
        at, done = header.params
        self.block.end = Branch(self.op("is_null", [at], I1), Jump(after, []), Jump(body, []))
        self.begin(body)
        assert at.type.element is not None
        value, following = ("pairs_car", "pairs_cdr") if at.type.kind == "pairs" else ("cell_value", "cell_next")
        item = step(self.op(value, [at], at.type.element))
        rest = self.op(following, [at], at.type)
        self.jump(header, [rest, self.op("cell_new", [item, done], made)])
        self.begin(after)
        return done

    def one_of(
        self, test: TypedValue, yes: Callable[[], TypedValue], no: Callable[[], TypedValue], kind: Type
    ) -> TypedValue:
        """One of two values; only that one is computed."""
        blocks, join = (self.new_block("yes"), self.new_block("no")), self.new_block("one")
        self.block.end = Branch(test, Jump(blocks[0], []), Jump(blocks[1], []))
        join.params = [TypedValue(kind)]
        for block, compute in zip(blocks, (yes, no), strict=True):
            self.begin(block)
            self.jump(join, [compute()])
        self.begin(join)
        return join.params[0]

    # ---- numbers ------------------------------------------------------------------------------------------------

    def f64(self, a: Abstract) -> TypedValue:
        """A number as a double."""
        match a:
            case Known() if a.is_number:
                double = as_double(a.datum)
                made = self.literal(double, F64)
                if a.is_exact:
                    self.exact[made] = SAME if Fraction(double) == a.datum else ROUNDED
                return made
            case Leaf(value=value) if value.type == F64:
                return value
            case Leaf(value=value) if value.type == I64:
                return self.op("itof", [value], F64)
        raise NotFast(f"{said(a)} where a number must be")

    def i64(self, a: Abstract) -> TypedValue:
        """An exact integer."""
        match a:
            case Known(datum=int() as datum) if type(datum) is int and -(1 << 63) <= datum < 1 << 63:
                return self.literal(datum, I64)
            case Leaf(value=value) if value.type == I64:
                return value
        raise NotFast(f"{said(a)} where an integer must be")

    def i1(self, a: Abstract) -> TypedValue:
        match a:
            case Known(datum=bool() as datum):
                return self.literal(datum, I1)
            case Leaf(value=value) if value.type == I1:
                return value
        raise NotFast(f"{said(a)} where a truth value must be")

    # ---- shapes -------------------------------------------------------------------------------------------------

    def free(self, closure: Closure) -> tuple[tuple[Variable, ...], list[Abstract]]:
        """The variables that a closure's code needs from its environment, and their values."""
        names = self.free_variables(closure.code, closure.unit)
        found = [(name, closure.env.find(name)) for name in names]
        kept = [(name, value) for name, value in found if value is not None]
        return tuple(name for name, _ in kept), [value for _, value in kept]

    def free_variables(self, code: Lambda, unit: Unit) -> tuple[Variable, ...]:
        """Of the code and of the procedures around it that it calls."""
        known = self.needs.get(code)
        if known is None:
            bound_code = unit.forms.bound
            used: dict[Variable, None] = {}
            bound: set[Variable] = set()
            stack: list[Node] = [code]
            seen = {code}
            while stack:
                node = stack.pop()
                match node:
                    case Local(variable=name) | core.SetLocal(variable=name):
                        other = bound_code.get(name)
                        if other is None:
                            used[name] = None
                        elif other not in seen:
                            seen.add(other)
                            stack.append(other)
                    case Let(variables=names) | LetValues(variables=names):
                        bound.update(names)
                    case Lambda(clauses=clauses):
                        bound.update(v for c in clauses for v in (*c.params, *([c.rest] if c.rest else [])))
                stack.extend(children(node))
            known = self.needs[code] = tuple(name for name in used if name not in bound)
        return known

    def shape(self, a: Abstract) -> AbstractShape:
        return shape_of(a, self.free)

    def fit(self, a: Abstract, shape: AbstractShape) -> list[TypedValue]:
        """The registers of a value that takes on a shape."""
        match shape.kind:
            case "leaf":
                return [self.fit_leaf(a, shape.what)]
            case "known" | "primitive":
                return []
            case "box":
                assert isinstance(a, Box)
                return [a.memory]
            case "fields":
                assert isinstance(a, Fields)
                return [v for item, part in zip(a.items, shape.parts, strict=True) for v in self.fit(item, part)]
        assert isinstance(a, Closure)
        return [v for item, part in zip(self.free(a)[1], shape.parts, strict=True) for v in self.fit(item, part)]

    def must_be_memory(self, vector: Fields) -> NoReturn:
        """A vector that was thought to have known parts is made as memory the next time."""
        if vector.origin is None:
            raise NotFast("a vector of different types from outside, as one of known type")
        self.changed.add(vector.origin)
        raise Again

    def fit_leaf(self, a: Abstract, kind: Type) -> TypedValue:
        if kind == F64:
            return self.f64(a)
        if kind == I64:
            return self.i64(a)
        if kind == I1:
            return self.i1(a)
        assert kind.element is not None
        match a:
            case Leaf(value=value) if kind in (value.type, value.type.unsized):
                return value
            case Leaf(value=value) if value.type.element == kind.element and (value.type.kind, kind.kind) in COPIED:
                return self._copied(value, kind)
            case Known(datum=datum) if datum is NIL and kind.kind in ("cell", "pairs"):
                return self.literal(None, ir.NULL)
            case Fields(kind="pair", items=(first, rest)) if kind.kind == "cell":
                after = self.fit_leaf(rest, kind)
                return self.op("cell_new", [self.fit_leaf(first, kind.element), after], kind)
            case Fields(kind="vector", items=items, origin=origin) if kind.kind == "array" and items:
                if origin is not NEW:  # a copy would not see changes
                    self.must_be_memory(a)
                made = [self.fit_leaf(item, kind.element) for item in items]
                memory = self.op("array_new", [self.literal(len(items), I64), made[0]], kind)
                for index, value in enumerate(made[1:], 1):
                    self.effect("array_set", [memory, self.literal(index, I64), value])
                return memory
        raise NotFast(f"{said(a)} where {kind} must be")

    def _copied(self, data: TypedValue, kind: Type) -> TypedValue:
        """Numbers from outside as memory of the run."""
        self.converted.add(kind)
        element = kind.element or F64
        if kind.kind == "cell":
            return self.mapped(self.mapped(data, kind, lambda item: item), kind, lambda item: item)
        size = self.op("vector_length", [data], I64)
        zero = self.literal(0.0, F64) if element == F64 else self.literal(0, I64)
        made = self.op("array_new", [size, zero], kind)

        def step(i: TypedValue) -> list[TypedValue]:
            self.effect("array_set", [made, i, self.op("vector_get", [data, i], element)])
            return []

        self.repeat(size, [], step)
        return made

    # ---- destinations -------------------------------------------------------------------------------------------

    def deliver(self, found: list[Abstract], to: Destination) -> None:
        if isinstance(to, WriterJoin):
            if len(found) != to.count:
                if len(found) == 1 and isinstance(found[0], Fields) and found[0].kind == "values":
                    found = list(found[0].items)
                elif to.count == 1:
                    found = [Fields("values", tuple(found))]
            if len(found) != to.count:
                raise NotFast("another number of values than is awaited")
            to.delivered.append((self.block, found))
            return
        (value,) = found
        match value:
            case Leaf(value=condition) if condition.type == I1:
                self.block.end = Branch(condition, Jump(to.yes, []), Jump(to.no, []))
            case Known(datum=datum):
                self.jump(to.no if datum is False else to.yes)
            case _:
                self.jump(to.yes)

    def values(self, write: Callable[[Destination], None], count: int) -> list[Abstract]:
        """What is delivered by code that is written now; it goes on behind."""
        join = WriterJoin(count)
        try:
            write(join)
        except Unreachable:
            if not join.delivered:
                raise
        return self.met(join)

    def met(self, join: WriterJoin) -> list[Abstract]:
        """Go on where all meet who deliver."""
        if not join.delivered:
            raise Unreachable
        if len(join.delivered) == 1:
            self.block, found = join.delivered[0]
            return found
        shapes = [variable(self.shape(a)) if _is_number(a) else self.shape(a) for a in join.delivered[0][1]]
        for _, found in join.delivered[1:]:
            shapes = [widened(shape, self.shape(a)) for shape, a in zip(shapes, found, strict=True)]
        target = self.new_block("join")
        target.params = [TypedValue(kind) for shape in shapes for kind in leaf_types(shape)]
        for block, found in join.delivered:
            self.block = block
            self.jump(target, [v for a, shape in zip(found, shapes, strict=True) for v in self.fit(a, shape)])
        self.begin(target)
        values = iter(target.params)
        return [rebuilt(shape, values) for shape in shapes]


# ---- small things ----------------------------------------------------------------------------------------------------


def as_double(number: int | Fraction | float) -> float:
    try:
        return float(number)
    except OverflowError:
        raise NotFast("a very large number") from None


def _is_number(a: Abstract) -> bool:
    return isinstance(a, Known) and a.is_number


def as_list(items: Sequence[Abstract]) -> Abstract:
    found: Abstract = Known(NIL)
    for item in reversed(items):
        found = Fields("pair", (item, found))
    return found


def list_size(a: Abstract) -> int | None:
    """How long a list is, where that is known."""
    size = 0
    while isinstance(a, Fields) and a.kind == "pair":
        size, a = size + 1, a.items[1]
    if isinstance(a, Known) and a.datum is NIL:
        return size
    if isinstance(a, Leaf) and a.value.type.length is not None:
        return size + a.value.type.length
    return None


def fixed_list(a: Abstract) -> bool:
    """Whether it is a list whose length is known."""
    while isinstance(a, Fields) and a.kind == "pair":
        a = a.items[1]
    return isinstance(a, Known) and a.datum is NIL


def listed(a: Abstract) -> Iterator[Abstract]:
    """The items of a list whose length is known."""
    while isinstance(a, Fields) and a.kind == "pair":
        yield a.items[0]
        a = a.items[1]
    if not (isinstance(a, Known) and a.datum is NIL):
        raise NotFast("a list whose length is not known")


def said(a: Abstract) -> str:
    """A value, in a few words."""
    match a:
        case Known(datum=tuple() as datum):  # what it is, and an address
            return str(datum[0])
        case Known(datum=datum):
            return datum.name if isinstance(datum, Symbol) else str(datum)
        case Leaf(value=value):
            return str(value.type)
        case Fields(kind=kind):
            return f"a {kind}"
        case Primitive(name=name):
            return name
        case Closure(code=code):
            return code.name or "a lambda expression"
    return "a variable"
