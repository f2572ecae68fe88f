"""What a typed program takes from the machine that runs: arguments, captured variables, global variables, constants.

Comes in: values of a machine. Goes out: abstract values, and for each that the program needs a `ProgramInput`: by which
path it is found when the program runs, and what it must be then. The types are those of the values that are there when
the program is made; a run that finds something else is refused, and another program is made.

Paths are words: "argument 0", "global ADDRESS", then "captured 2", "box", "car", "cdr", "item 1", "field 0".
Descriptors say what is expected there:

- f, i: a flonum, a fixnum, in a register;
- v(…), l(…): a vector, a list, copied into memory of the run: a variable of the derivative;
- V(…), L(…): a vector, a list, whose elements are looked at where they are: constant data;
- Q(…): such a list, which programs check themselves, pair by pair;
  where the program knows how many elements there are, `expected` says how many: one more than that;
- P: a procedure with that descriptor in C; R: a record of that type; N: a vector of that length; =: this very value;
- S: the very closure that an input before has found: the program was made for one closure in both places.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING

from eshkol.calculus import ir
from eshkol.calculus.abstract import (
    LIBRARY,
    NIL,
    OPERATORS,
    UNSPECIFIED,
    Abstract,
    Closure,
    Fields,
    Known,
    Leaf,
    NotFast,
    Primitive,
    Unit,
    UnitEnv,
)  # fmt: skip
from eshkol.calculus.ir import F64, I64, Type
from eshkol.calculus.specialize import World
from eshkol.calculus.writer import as_list
from eshkol.lang.core import Cell, Lambda, Variable
from eshkol.lang.datum import Symbol
from eshkol.runtime.scheme import Machine, Root, Value
from eshkol.runtime.scheme_table import layout

if TYPE_CHECKING:
    from eshkol.codegen.units import Engine

DEEPEST = 8  # pairs and records inside one another, by their parts
MANY = 1 << 10
MOST_ITEMS = 16  # of a vector that is known by its parts


@dataclass(frozen=True)
class ProgramInput:
    """One thing that a program takes."""

    path: tuple[str, ...]
    descriptor: str
    # of P and R: an address; of N: the length; of v, l: 0 or the length and one; of =: bits and tag; of S: a number
    expected: tuple[int, int] = (0, 0)
    varies: bool = False  # whether the derivative is taken by it


class MachineWorld(World):
    """The values of a machine, while one program is made."""

    def __init__(self, machine: Machine, engine: Engine, main: ir.TypedFunction, sized: bool = False) -> None:
        self.machine = machine
        self.sized = sized  # whether programs know how long short data are
        self.engine = engine
        self.main = main
        self.inputs: list[ProgramInput] = []  # those that are parameters of main, and those that are only looked at
        self.registers: list[ProgramInput] = []  # those that are
        self.roots: list[Root] = []  # of what programs know by its address
        self._known: dict[tuple[tuple[str, ...], bool], Abstract] = {}
        self._closures: dict[int, tuple[Closure, int]] = {}  # and the number of the input that they were found by
        self._units: dict[int, Unit] = {}
        self.names = {number: name for name, number in machine.tags.items()}

    @property
    def units(self) -> set[int]:
        """The units whose code is in the program, by where their constants are."""
        return set(self._units)

    def count(self, value: Value) -> int:
        """How many numbers a point has; more than can be told at once count as very many."""
        kind = self.names[value.tag]
        if kind == "VECTOR":
            length = self._length(value)
            items = self._items(value, 1)
            return length if not items or self.names[items[0].tag] == "FLONUM" else MANY
        if kind == "PAIR":
            count = 0
            while self.names[value.tag] == "PAIR" and count < MANY:
                if self.names[self._half(value, 0).tag] != "FLONUM":
                    return MANY
                count, value = count + 1, self._half(value, 1)
            return count
        return 1

    @cached_property
    def _operators(self) -> dict[int, str]:
        """The operators of the library that programs know by themselves, by their addresses."""
        found = {}
        for name in OPERATORS:
            value = Value.from_address(self.engine.cell(LIBRARY, name).address)
            if self.names[value.tag] == "PROCEDURE":
                found[value.bits] = name
        return found

    @cached_property
    def layout(self) -> dict[str, int]:
        return dict(layout())

    # ---- what the specializer asks ------------------------------------------------------------------------------

    def variable(self, cell: Cell) -> Abstract:
        address = self.engine.cell(cell.library, cell.name).address
        return self.at(address, (f"global {address}",))

    def constant(self, unit: Unit, number: int) -> Abstract:
        if number < 0:
            raise NotFast("a character, or a constant that nothing uses")
        address = unit.constants + 16 * number
        return self.at(address, (f"global {address}",))

    def at(self, address: int, path: tuple[str, ...]) -> Abstract:
        return self.value(Value.from_address(address), path, varies=False)

    def value(self, value: Value, path: tuple[str, ...], varies: bool) -> Abstract:
        """A value that is found by a path."""
        key = (path, varies)
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = self._abstract(value, path, varies)
        return found

    # ---- values -------------------------------------------------------------------------------------------------

    def _abstract(self, value: Value, path: tuple[str, ...], varies: bool) -> Abstract:
        kind = self.names[value.tag]
        match kind:
            case "FLONUM" | "FIXNUM" | "VECTOR" | "PAIR":
                return self._number_or_data(value, kind, path, varies)
            case "PROCEDURE":
                return self._procedure(value, path)
            case "RECORD":
                return self._record(value, path, varies)
            case "NULL":
                return self._fixed(value, path, NIL)
            case "BOOLEAN":
                return self._fixed(value, path, bool(value.bits))
            case "SYMBOL":
                return self._fixed(value, path, Symbol(self.machine.symbol_name(value)))
            case "SPECIAL" if value.bits == self.layout["SPECIAL_UNSPECIFIED"]:  # and not a variable without definition
                return self._fixed(value, path, UNSPECIFIED)
            case "STRING" | "CHAR" | "KEYWORD":  # of messages of errors, mostly
                return self._fixed(value, path, ("a constant", value.tag, value.bits))
            case "RATIONAL" | "BIGNUM" if not varies:
                self.roots.append(Root(self.machine, value))  # so that nothing else comes to be there
                number = Fraction(self.machine.written(value))
                return self._fixed(value, path, number if number.denominator > 1 else number.numerator)
            case "RECORD_TYPE":
                return self._fixed(value, path, ("record type", value.bits))
        raise NotFast(f"a {kind.lower().replace('_', ' ')}")

    def _fixed(self, value: Value, path: tuple[str, ...], datum: object) -> Known:
        self.inputs.append(ProgramInput(path, "=", (value.bits, value.tag)))
        return Known(datum)

    def _number_or_data(self, value: Value, kind: str, path: tuple[str, ...], varies: bool) -> Abstract:
        if kind == "FIXNUM" and varies:
            raise NotFast("an exact argument: the derivative is exact, too")
        described = self._described(value, varies, DEEPEST)
        if described is None:
            return self._parts(value, kind, path, varies)
        descriptor, machine_type = described
        register = ir.TypedValue(machine_type)
        self.main.params.append(register)
        length = self._known_length(value, descriptor)
        if length is not None and machine_type.kind == "pairs":
            register.type = ir.pairs(machine_type.element or F64, length)
        made = ProgramInput(path, descriptor, (0 if length is None else length + 1, 0), varies)
        self.inputs.append(made)
        self.registers.append(made)
        if length is not None and machine_type.kind == "cell":
            return self._spelled(register, length)
        return Leaf(register)

    def _spelled(self, first: ir.TypedValue, length: int) -> Abstract:
        """A list of numbers with all of them in registers, from where the program begins."""
        items: list[Abstract] = []
        body = self.main.blocks[0].body
        for left in reversed(range(length)):
            number, rest = ir.TypedValue(F64), ir.TypedValue(first.type)
            body.append(ir.Instruction("cell_value", [first], [number]))
            if left:
                body.append(ir.Instruction("cell_next", [first], [rest]))
            items.append(Leaf(number))
            first = rest
        return as_list(items)

    def _known_length(self, value: Value, descriptor: str) -> int | None:
        """How many elements there are, where programs are made for that."""
        if not self.sized:
            return None
        if descriptor in ("v(f)", "l(f)"):
            length = self.count(value)
            return length if length <= MOST_ITEMS else None
        return self._list_length(value) if descriptor[0] == "Q" else None

    def _list_length(self, value: Value) -> int | None:
        """Of a list that is not long."""
        length = 0
        while self.names[value.tag] == "PAIR" and length <= MOST_ITEMS:
            length, value = length + 1, self._half(value, 1)
        return length if length <= MOST_ITEMS and self.names[value.tag] == "NULL" else None

    def _row_length(self, value: Value) -> int | None:
        """The length of the lists in a list, if the first ones have the same."""
        found = set()
        for _ in range(MOST_ITEMS):
            found.add(self._list_length(self._half(value, 0)))
            value = self._half(value, 1)
            if self.names[value.tag] != "PAIR":
                break
        return found.pop() if len(found) == 1 else None

    def _described(self, value: Value, varies: bool, depth: int) -> tuple[str, Type] | None:
        """The descriptor and type of a number, or of data whose first elements say what all are."""
        kind = self.names[value.tag]
        if kind == "FLONUM":
            return "f", F64
        if kind == "FIXNUM" and not varies:
            return "i", I64
        if kind not in ("VECTOR", "PAIR") or depth == 0:
            return None
        items = self._items(value, MOST_ITEMS) if kind == "VECTOR" else [self._half(value, 0)]
        if any(item.tag != items[0].tag for item in items):
            return None
        inner = self._described(items[0], varies, depth - 1) if items else ("f", F64)
        if inner is None or (kind == "PAIR" and not self._is_list(value)):
            return None
        descriptor, element = inner
        if varies:
            return (
                (f"v({descriptor})", ir.array(element)) if kind == "VECTOR" else (f"l({descriptor})", ir.cell(element))
            )
        if kind == "VECTOR":
            return f"V({descriptor})", ir.vector(element.unsized)
        if "V" in descriptor:  # nothing in vectors is looked at later
            return f"L({descriptor})", ir.pairs(element.unsized)
        if self.sized and element.kind == "pairs":
            element = ir.pairs(element.element or F64, self._row_length(value))
        return f"Q({descriptor})", ir.pairs(element)

    def _is_list(self, value: Value) -> bool:
        """Whether the first few pairs are those of a list of one kind of thing."""
        first = self._half(value, 0).tag
        for _ in range(MOST_ITEMS):
            if self._half(value, 0).tag != first:
                return False
            value = self._half(value, 1)
            if self.names[value.tag] != "PAIR":
                return self.names[value.tag] == "NULL"
        return True

    def _parts(self, value: Value, kind: str, path: tuple[str, ...], varies: bool) -> Abstract:
        """Data by its parts, each of its own type."""
        if len(path) > DEEPEST:
            raise NotFast("data of different types, deeply nested")
        if kind == "PAIR":
            halves = [self._half(value, i) for i in (0, 1)]
            steps = ("car", "cdr")
            return Fields("pair", tuple(self.value(h, (*path, s), varies) for h, s in zip(halves, steps, strict=True)))
        items = self._items(value, MOST_ITEMS + 1)
        if kind != "VECTOR" or len(items) > MOST_ITEMS:
            raise NotFast("a vector of different types")
        self.inputs.append(ProgramInput(path, "N", (len(items), 0)))
        return Fields("vector", tuple(self.value(x, (*path, f"item {i}"), varies) for i, x in enumerate(items)))

    def _half(self, pair: Value, which: int) -> Value:
        head, car, cdr = (ctypes.c_uint64 * 3).from_address(pair.bits)
        return Value(head >> 16 & 255, cdr) if which else Value(head >> 8 & 255, car)

    def _length(self, vector: Value) -> int:
        return ctypes.c_int64.from_address(vector.bits + self.layout["Vector.length"]).value

    def _items(self, vector: Value, most: int) -> list[Value]:
        items = (Value * min(self._length(vector), most)).from_address(vector.bits + self.layout["Vector.items"])
        return [Value.from_buffer_copy(item) for item in items]

    def _record(self, value: Value, path: tuple[str, ...], varies: bool) -> Abstract:
        count = ctypes.c_uint32.from_address(value.bits + 4).value
        kind = ctypes.c_uint64.from_address(value.bits + self.layout["Record.type"]).value
        fields = (Value * count).from_address(value.bits + self.layout["Record.fields"])
        self.inputs.append(ProgramInput(path, "R", (kind, 0)))
        items = [self.value(Value.from_buffer_copy(f), (*path, f"field {i}"), varies) for i, f in enumerate(fields)]
        return Fields("record", tuple(items), Known(("record type", kind)))

    # ---- procedures ---------------------------------------------------------------------------------------------

    def _procedure(self, value: Value, path: tuple[str, ...]) -> Abstract:
        names = self.layout
        descriptor = ctypes.c_uint64.from_address(value.bits + names["Closure.procedure"]).value
        self.inputs.append(ProgramInput(path, "P", (descriptor, 0)))
        unit = ctypes.c_uint64.from_address(descriptor + names["Procedure.unit"]).value
        if not unit:
            name = ctypes.c_char_p.from_address(descriptor + names["Procedure.name"]).value
            return Primitive((name or b"").decode())
        operator = self._operators.get(value.bits)
        if operator is not None:
            return Primitive(operator)
        known = self._closures.get(value.bits)
        if known is None:
            where = self._units.setdefault(unit, Unit(self.engine.forms(unit), unit))
            number = ctypes.c_int32.from_address(descriptor + names["Procedure.number"]).value
            code = where.forms.lambdas.get(number)
            if code is None:
                raise NotFast("a procedure that nothing is kept of")
            made = Closure(code, CapturedEnv(self, value.bits, path, where, code), where)
            self._closures[value.bits] = (made, len(self.inputs) - 1)
            return made
        closure, first = known
        if closure.unit.forms.captured[closure.code]:  # what it has captured is looked for on the first way alone
            self.inputs[-1] = ProgramInput(path, "S", (first, 0))
        return closure


class CapturedEnv(UnitEnv):
    """The variables that a closure of the machine has captured, looked at when they are asked for."""

    def __init__(self, world: MachineWorld, closure: int, path: tuple[str, ...], unit: Unit, code: Lambda) -> None:
        super().__init__({}, None, unit)
        self.world = world
        self.captured = (Value * len(unit.forms.captured[code])).from_address(
            closure + world.layout["Closure.captured"]
        )
        self.path = path
        self.places = {name: i for i, name in enumerate(unit.forms.captured[code])}

    def own(self, variable: Variable) -> Abstract | None:
        place = self.places.get(variable)
        if place is None:
            return None
        value, path = Value.from_buffer_copy(self.captured[place]), (*self.path, f"captured {place}")
        if self.world.names[value.tag] == "BOX":
            content = Value.from_address(value.bits + self.world.layout["Box.value"])
            return self.world.value(Value.from_buffer_copy(content), (*path, "box"), varies=False)
        return self.world.value(value, path, varies=False)


def start(world: MachineWorld, procedure: Value, args: Sequence[Value]) -> tuple[Closure, list[Abstract]]:
    """The procedure and the arguments, by which the derivative is taken."""
    found = world.value(procedure, ("argument 0",), varies=False)
    if not isinstance(found, Closure):
        raise NotFast("a primitive")
    points = [world.value(arg, (f"argument {i}",), varies=True) for i, arg in enumerate(args, 1)]
    if sum(item.varies for item in world.registers) != len(points):
        raise NotFast("a point of parts of different types")  # derivatives come one for each variable, not as parts
    if not all(isinstance(point, Leaf) or (isinstance(point, Fields) and point.kind == "pair") for point in points):
        raise NotFast("a point that is no number, and no vector or list of them")
    return found, points
