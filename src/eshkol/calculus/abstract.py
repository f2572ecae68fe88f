"""What is known of a Scheme value before a typed program runs: constants, values in registers, data whose parts are.

Comes in: what the specializer finds. Goes out: abstract values, their shapes, and how two shapes become one. A pair, a
vector or a record whose parts are known is no memory at all: its parts are passed along as they are (`Fields`). Where
two branches meet or a loop comes round, the shapes that meet are widened until one fits both: an integer and a real
number become a real number, the empty list and a pair become a list of cells.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from eshkol.calculus import ir
from eshkol.calculus.ir import F64, I1, I64, NULL, Type
from eshkol.codegen.keeping import Forms
from eshkol.lang.core import Lambda, Variable

COPIED = {("vector", "array"), ("pairs", "cell")}  # data from outside, and what it is as memory of the run
LIBRARY = "(eshkol calculus)"
OPERATORS = frozenset({"derivative", "gradient", "value-and-gradient"})  # of it, that are primitives (typed_calculus)


class NotFast(Exception):
    """A typed program cannot be made: why. The dynamic path serves."""


class Empty:
    """The empty list, and what has no value of interest."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return self.name


NIL, UNSPECIFIED = Empty("()"), Empty("unspecified")


@dataclass(frozen=True)
class Known:
    """A constant: int, Fraction, float, bool, Symbol, NIL, UNSPECIFIED, or something opaque."""

    datum: Any

    @property
    def is_exact(self) -> bool:
        return type(self.datum) in (int, Fraction)

    @property
    def is_number(self) -> bool:
        return type(self.datum) in (int, Fraction, float)


@dataclass(frozen=True)
class Leaf:
    """What is in a register."""

    value: ir.TypedValue


@dataclass(frozen=True)
class Fields:
    """A pair, vector or record that nothing changes, by its parts."""

    kind: str  # "pair", "vector", "values", "record"
    items: tuple[Abstract, ...]
    origin: Any = None  # where it was made, in case it must be memory after all; of a record, its type


@dataclass(frozen=True)
class Primitive:
    name: str


@dataclass(frozen=True)
class Box:
    """A variable that is assigned: memory for one value."""

    memory: ir.TypedValue


@dataclass(eq=False)
class Env:
    """Variables and their values."""

    bindings: dict[Variable, Abstract] = field(default_factory=dict)
    outer: Env | None = None

    def find(self, variable: Variable) -> Abstract | None:
        env: Env | None = self
        while env is not None:
            found = env.own(variable)
            if found is not None:
                return found
            env = env.outer
        return None

    def own(self, variable: Variable) -> Abstract | None:
        return self.bindings.get(variable)


@dataclass(frozen=True)
class Closure:
    code: Lambda
    env: Env
    unit: Unit


@dataclass(frozen=True)
class Unit:
    """Where lambda expressions come from: their forms, and the address of the unit's constants."""

    forms: Forms = field(compare=False)
    constants: int


class UnitEnv(Env):
    """Variables of code of a unit."""

    def __init__(self, bindings: dict[Variable, Abstract], outer: Env | None, unit: Unit) -> None:
        super().__init__(bindings, outer)
        self.unit = unit


Abstract = Known | Leaf | Fields | Primitive | Box | Closure


# ---- shapes ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class AbstractShape:
    """What can be said of a value without the value: everything but what is in registers."""

    kind: str  # "known", "leaf", "fields", "primitive", "box", "closure"
    what: Any
    parts: tuple[AbstractShape, ...] = ()
    names: tuple[Variable, ...] = ()
    origin: Any = field(default=None, compare=False)


def shape_of(a: Abstract, free: Any) -> AbstractShape:
    """The shape of a value; `free(closure)` gives the variables that a closure needs."""
    match a:
        case Known(datum=datum):
            return AbstractShape("known", (type(datum), datum))
        case Leaf(value=value):
            return AbstractShape("leaf", value.type)
        case Fields(kind=kind, items=items, origin=origin):
            record = origin if kind == "record" else None
            return AbstractShape("fields", (kind, record), tuple(shape_of(item, free) for item in items), (), origin)
        case Primitive(name=name):
            return AbstractShape("primitive", name)
        case Box(memory=memory):
            return AbstractShape("box", memory.type)
        case Closure(code=code, unit=unit):
            names, values = free(a)
            return AbstractShape("closure", (code, unit), tuple(shape_of(v, free) for v in values), names)


def leaves(a: Abstract, free: Any) -> Iterator[ir.TypedValue]:
    """What is in registers of a value, in order."""
    match a:
        case Leaf(value=value) | Box(memory=value):
            yield value
        case Fields(items=items):
            for item in items:
                yield from leaves(item, free)
        case Closure():
            for value in free(a)[1]:
                yield from leaves(value, free)


def leaf_types(shape: AbstractShape) -> list[Type]:
    if shape.kind in ("leaf", "box"):
        return [shape.what]
    return [kind for part in shape.parts for kind in leaf_types(part)]


def rebuilt(shape: AbstractShape, values: Iterator[ir.TypedValue]) -> Abstract:
    """A value of a shape, from registers."""
    match shape.kind:
        case "known":
            return Known(shape.what[1])
        case "leaf":
            return Leaf(next(values))
        case "box":
            return Box(next(values))
        case "primitive":
            return Primitive(shape.what)
        case "fields":
            kind, record = shape.what
            return Fields(kind, tuple(rebuilt(part, values) for part in shape.parts), record or shape.origin)
    code, unit = shape.what
    env = Env({name: rebuilt(part, values) for name, part in zip(shape.names, shape.parts, strict=True)})
    return Closure(code, env, unit)


def variable(shape: AbstractShape) -> AbstractShape:
    """The shape for a value that may be another number each time."""
    if shape.kind == "known":
        kind = shape.what[0]
        if kind is int:
            return AbstractShape("leaf", I64)
        return AbstractShape("leaf", F64) if kind in (Fraction, float) else shape
    return AbstractShape(shape.kind, shape.what, tuple(map(variable, shape.parts)), shape.names, shape.origin)


def widened(a: AbstractShape, b: AbstractShape) -> AbstractShape:
    """The least shape that both fit."""
    if a == b:
        return a
    if UNSPECIFIED in (_datum(a), _datum(b)):
        return AbstractShape("known", (Empty, UNSPECIFIED))
    if a.kind == b.kind == "known" and bool in (a.what[0], b.what[0]):
        if a.what[0] is b.what[0]:
            return AbstractShape("leaf", I1)
        raise NotFast("a truth value meets something else")
    a, b = variable(a), variable(b)
    if a == b:
        return a
    if a.kind == b.kind == "leaf":
        return AbstractShape("leaf", _wider(a.what, b.what))
    if {_type(a), _type(b)} == {I1, bool}:
        return AbstractShape("leaf", I1)
    if a.kind == b.kind and a.what == b.what and len(a.parts) == len(b.parts) and a.names == b.names:
        if a.kind == "fields" and a.what[0] == "pair" and _is_list(a) and _is_list(b) and _length(a) != _length(b):
            return AbstractShape("leaf", ir.cell(_element([*_items(a), *_items(b)])))
        parts = tuple(widened(x, y) for x, y in zip(a.parts, b.parts, strict=True))
        return AbstractShape(a.kind, a.what, parts, a.names, a.origin)
    for x, y in ((a, b), (b, a)):
        if _is_list(x) and (_is_list(y) or _datum(y) is NIL):
            return AbstractShape("leaf", ir.cell(_element([*_items(x), *_items(y)])))
        if y.kind == "leaf" and y.what.kind in ("cell", "pairs") and _datum(x) is NIL:
            return AbstractShape("leaf", y.what.unsized)
        if y.kind == "leaf" and y.what.kind == "cell" and _is_list(x):
            return AbstractShape("leaf", ir.cell(_element([*_items(x), AbstractShape("leaf", y.what.element)])))
        if y.kind == "leaf" and y.what.kind == "array" and x.kind == "fields" and x.what[0] == "vector":
            return AbstractShape("leaf", ir.array(_element([*x.parts, AbstractShape("leaf", y.what.element)])))
    if a.kind == b.kind == "fields" and a.what[0] == b.what[0] == "vector":
        return AbstractShape("leaf", ir.array(_element([*a.parts, *b.parts])))
    raise NotFast(f"{_said(a)} meets {_said(b)}")


def _datum(shape: AbstractShape) -> Any:
    return shape.what[1] if shape.kind == "known" else None


def _type(shape: AbstractShape) -> Any:
    return shape.what if shape.kind == "leaf" else shape.what[0] if shape.kind == "known" else None


def _wider(a: Type, b: Type) -> Type:
    if {a, b} == {I64, F64}:
        return F64
    if NULL in (a, b):
        return (a if b == NULL else b).unsized
    if a.unsized == b.unsized:
        return a.unsized
    for one, other in ((a, b), (b, a)):  # data from outside is copied where it meets memory
        if (one.kind, other.kind) in COPIED and one.element == other.element and one.element in (F64, I64):
            return other
    raise NotFast(f"{a} meets {b}")


def _is_list(shape: AbstractShape) -> bool:
    """Whether it is a list of pairs whose parts are known, at least one."""
    while shape.kind == "fields" and shape.what[0] == "pair":
        shape = shape.parts[1]
        if _datum(shape) is NIL or (shape.kind == "leaf" and shape.what.kind == "cell"):
            return True
    return False


def _items(shape: AbstractShape) -> list[AbstractShape]:
    found = []
    while shape.kind == "fields" and shape.what[0] == "pair":
        found.append(shape.parts[0])
        shape = shape.parts[1]
    if shape.kind == "leaf" and shape.what.element is not None:
        found.append(AbstractShape("leaf", shape.what.element))
    return found


def _length(shape: AbstractShape) -> int:
    return len(_items(shape))


def _element(shapes: Sequence[AbstractShape]) -> Type:
    """The type of the elements of memory that holds all of these."""
    if not shapes:
        raise NotFast("memory for an empty vector")
    found = variable(shapes[0])
    for shape in shapes[1:]:
        found = widened(found, variable(shape))
    if found.kind == "fields" and found.what[0] == "vector":
        return ir.array(_element(found.parts))
    if _is_list(found):
        return ir.cell(_element(_items(found)))
    if found.kind != "leaf" or found.what == I1:
        raise NotFast(f"memory for {_said(found)}")
    kind: Type = found.what
    return kind


def element_type(a: Abstract, free: Any) -> Type:
    """The type of memory for such values."""
    return _element([shape_of(a, free)])


def _said(shape: AbstractShape) -> str:
    match shape.kind:
        case "leaf":
            return str(shape.what)
        case "known" if shape.what[0] is tuple:  # what it is, and an address
            return str(shape.what[1][0])
        case "known":
            return str(shape.what[1])
        case "fields":
            return f"a {shape.what[0]} of {len(shape.parts)}"
    return f"a {shape.kind}"
