"""Core forms and the types of their arguments to typed programs.

Comes in: a procedure (its lambda expression and what it captures) and abstract arguments. Goes out: a `TypedProgram`,
or `NotFast`: why there is none. Every procedure that is known where it is called becomes part of its caller; a call of
a procedure by itself, where the call is the last thing done, is a jump back, and elsewhere makes it a function of its
own. What was assumed and proves wrong (a variable of a loop that begins as an integer and becomes a real number, a
vector that is changed) is noted, and the work begins again: it is little, and each time more is known.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

from eshkol.calculus import ir
from eshkol.calculus.abstract import (
    LIBRARY,
    NIL,
    OPERATORS,
    UNSPECIFIED,
    Abstract,
    AbstractShape,
    Box,
    Closure,
    Env,
    Fields,
    Known,
    Leaf,
    NotFast,
    Primitive,
    Unit,
    UnitEnv,
    element_type,
    leaf_types,
    leaves,
    rebuilt,
    variable,
    widened,
)  # fmt: skip
from eshkol.calculus.exactness import check
from eshkol.calculus.expand import GRADIENT, called, expand
from eshkol.calculus.ir import F64, I64, Block, Instruction, Return, Type, TypedValue
from eshkol.calculus.lift import lift
from eshkol.calculus.trim import trim
from eshkol.calculus.writer import (
    Again,
    Destination,
    ProgramWriter,
    Test,
    Unreachable,
    WriterJoin,
    as_list,
    list_size,
    listed,
    said,
)
from eshkol.codegen.keeping import KeptConst
from eshkol.codegen.nodes import Fix, LetValues, Prim
from eshkol.lang import core
from eshkol.lang.core import Call, Cell, Clause, Const, Global, If, Lambda, Let, Local, Node, Seq, Variable
from eshkol.lang.datum import List, Special
from eshkol.support import interrupts

MOST_ATTEMPTS = 60
MOST_TURNS = 160  # of loops through lists of known lengths, in all of a program
MOST_UNROLLED = 1500  # instructions of a program with such turns
DEEPEST = 120  # calls inside calls

CONTROL = "(eshkol control)"
RAISING = frozenset({"error", "raise", "%wrong-type", "raise-continuable"})  # procedures that end a run

NOWHERE = Node(None)  # where a procedure is called to be differentiated
DERIVED = {f"derivative by {name}": name for name in OPERATORS}  # kinds of Fields: derivatives without their points

Key = Any  # a place in the program, with the calls that lead to it


@dataclass(eq=False)
class Frame:
    """A procedure that is being written into its caller."""

    clause: Clause
    env: Env
    to: Destination
    key: Key
    given: tuple[Any, ...]  # the procedures among its arguments
    sizes: tuple[int | None, ...] = ()  # of lists among its arguments, where turns are written one after the other
    root: Key = None  # the key of the first of these turns
    args: Sequence[Abstract] = ()
    header: Block | None = None
    shapes: list[AbstractShape] = field(default_factory=list)


@dataclass
class Notes:
    """What earlier attempts have found out."""

    loops: set[Clause] = field(default_factory=set)
    functions: set[Clause] = field(default_factory=set)  # that call themselves other than as the last thing
    rolled: set[Key] = field(default_factory=set)  # calls with lists of known lengths that are loops nevertheless
    headers: dict[Key, list[AbstractShape]] = field(default_factory=dict)
    results: dict[Key, list[AbstractShape]] = field(default_factory=dict)
    memory: dict[Key, Type] = field(default_factory=dict)  # of what elements
    changed: set[Key] = field(default_factory=set)  # vectors that must be memory
    unfilled: set[Type] = field(default_factory=set)  # kinds of vectors that may have elements where nothing was stored


class World(Protocol):
    """What the specializer asks of the machine that runs: global variables and constants."""

    def variable(self, cell: Cell) -> Abstract: ...
    def constant(self, unit: Unit, number: int) -> Abstract: ...


W = TypeVar("W", bound=World)
Rule = Callable[["Specializer", list[Abstract], Key], Abstract]  # how a primitive is written
Start = Callable[[W], tuple[Closure | Primitive, list[Abstract]]]


def specialized(
    make_world: Callable[[ir.TypedFunction], W], primitives: Mapping[str, Rule], start: Start[W], unroll: bool = True
) -> tuple[ir.TypedProgram, Abstract, W]:
    """The program of a procedure, its abstract result, and the world that knows its inputs.

    `start` gives the procedure and its arguments; what they have in registers are parameters of main. With `unroll`,
    loops through lists of known lengths are written turn by turn.
    """
    notes = Notes()
    for _ in range(MOST_ATTEMPTS):
        main = ir.TypedFunction("main", [Block("start")])
        world = make_world(main)
        writer = Specializer(world, primitives, main, notes, unroll)
        try:
            result = writer.main(*start(world))
        except Again:
            continue
        except Unreachable:
            raise NotFast("it never returns") from None
        except RecursionError:
            raise NotFast("it is nested too deeply") from None
        if writer.turns and writer.size > MOST_UNROLLED:
            raise NotFast("it is long when loops are written turn by turn")
        if writer.converted & writer.mutated:
            raise NotFast("what is changed may be a vector from outside")
        functions = called(main)
        check(functions, writer.exact)
        lift(functions)
        for function in functions:
            trim(function)
        if any(item.operation == GRADIENT for function in functions for item in function.instructions()):
            expand(main)
            functions = called(main)
        return ir.TypedProgram(functions, []), result, world
    raise NotFast("its types do not settle")


class Specializer(ProgramWriter):
    """One attempt to write the program."""

    def __init__(
        self, world: World, primitives: Mapping[str, Rule], main: ir.TypedFunction, notes: Notes, unroll: bool
    ) -> None:
        super().__init__(main)
        self.world = world
        self.primitives = primitives
        self.notes = notes
        self.unroll = unroll
        self.turns = 0
        self.changed = notes.changed
        self.frames: list[Frame] = []
        self.made: dict[Any, tuple[ir.TypedFunction, list[AbstractShape] | None]] = {}
        self.origins: dict[TypedValue, Key] = {}  # where memory was made
        self.assumed: set[Key] = set()  # memory whose type is a guess until something is stored

    def main(self, closure: Closure | Primitive, args: list[Abstract]) -> Abstract:
        """Write main, which returns the leaves of its result."""
        node = closure.code if isinstance(closure, Closure) else NOWHERE
        (result,) = self.values(lambda to: self.call(closure, args, to, node), 1)
        found = list(leaves(result, self.free))
        unfilled = {kind for kind in self.notes.unfilled if kind.element is not None and not kind.element.is_pointer}
        if any(part in unfilled for value in found for part in parts_of(value.type)):  # of pointers, fast.c sees it
            raise NotFast("a vector that may not be filled is its value")
        self.block.end = Return(found)
        self.functions[0].results = [value.type for value in found]
        return result

    def value(self, node: Node, env: Env) -> Abstract:
        simple = self._simple(node, env)
        if simple is not None:
            return simple
        return self.values(lambda to: self.emit(node, env, to), 1)[0]

    # ---- expressions --------------------------------------------------------------------------------------------

    def _simple(self, node: Node, env: Env) -> Abstract | None:
        match node:
            case KeptConst(number=number, datum=datum):
                return Known(datum) if datum is not None else self.world.constant(self.unit(env), number)
            case Const(datum=datum):
                return Known(NIL if type(datum) is List else UNSPECIFIED if type(datum) is Special else datum)
            case Local(variable=name):
                return self.local(name, env)
            case Global(cell=cell):
                if cell.primitive or (cell.library == CONTROL and cell.name in RAISING):
                    return Primitive(cell.name)
                if cell.library == LIBRARY and cell.name in OPERATORS:
                    return Primitive(cell.name)
                return self.world.variable(cell)
            case Lambda():
                return Closure(node, env, self.unit(env))
            case core.SetLocal(variable=name, value=value):
                return self.assign(name, self.value(value, env), env)
            case core.SetGlobal() | core.DefineGlobal():
                raise NotFast("it changes a global variable")
            case Prim(name="%results", args=[arg]):
                return self.value(arg, env)
            case Prim(name="values", args=args):
                return Fields("values", tuple(self.value(arg, env) for arg in args))
            case Prim(name=name, args=args):
                return self.primitive(name, [self.value(arg, env) for arg in args], node)
        return None

    def unit(self, env: Env) -> Unit:
        found: Env | None = env
        while found is not None:
            if isinstance(found, UnitEnv):
                return found.unit
            found = found.outer
        raise AssertionError("an environment of no unit")

    def local(self, name: Variable, env: Env) -> Abstract:
        found = env.find(name)
        if found is None:
            unit = self.unit(env)
            code = unit.forms.bound.get(name)
            if code is None:
                raise NotFast(f"nothing is known of the variable {name.name}")
            return Closure(code, env, unit)
        if isinstance(found, Box):
            element = found.memory.type.element
            assert element is not None
            return Leaf(self.op("array_get", [found.memory, self.literal(0, I64)], element))
        return found

    def assign(self, name: Variable, value: Abstract, env: Env) -> Abstract:
        box = env.find(name)
        if not isinstance(box, Box):
            raise NotFast("it changes a variable from outside")
        kind = box.memory.type.element
        assert kind is not None
        self.store(box.memory, self.literal(0, I64), value, kind, ("box", name))
        return Known(UNSPECIFIED)

    def store(self, memory: TypedValue, index: TypedValue, value: Abstract, kind: Type, key: Key) -> None:
        """Change memory; if it is of another type than what comes in, it was made wrongly."""
        given = element_type(value, self.free)
        if key in self.assumed and key not in self.notes.memory and given != I64:
            wanted = given.unsized
        else:
            wanted = widened(AbstractShape("leaf", kind), AbstractShape("leaf", given)).what
        if wanted != kind:
            self.notes.memory[key] = wanted
            raise Again
        self.effect("array_set", [memory, index, self.fit_leaf(value, kind)])

    def bind(self, env: Env, name: Variable, value: Abstract) -> None:
        if name.assigned and not isinstance(value, Box):
            key = ("box", name)
            kind = self.notes.memory.get(key) or element_type(value, self.free)
            one = self.literal(1, I64)
            value = Box(self.op("array_new", [one, self.fit_leaf(value, kind)], ir.array(kind)))
        env.bindings[name] = value

    def emit(self, node: Node, env: Env, to: Destination) -> None:
        """Write an expression whose value goes somewhere."""
        match node:
            case If(test=test, then=then, otherwise=otherwise):
                yes, no = self.new_block("yes"), self.new_block("no")
                with contextlib.suppress(Unreachable):
                    self.emit(test, env, Test(yes, no))
                reached = _targets(self.function)
                for target, part in ((yes, then), (no, otherwise)):
                    if target in reached:
                        self.begin(target)
                        with contextlib.suppress(Unreachable):
                            self.emit(part, env, to)
            case Seq(items=items):
                for part in items[:-1]:
                    self.value(part, env)
                self.emit(items[-1], env, to)
            case Let(variables=names, values=values, body=body):
                inner = Env({}, env)
                for name, item in zip(names, [self.value(value, env) for value in values], strict=True):
                    if isinstance(item, Fields) and item.kind == "values":
                        raise NotFast("several values for one variable")  # an error, which the program itself tells
                    self.bind(inner, name, item)
                self.emit(body, inner, to)
            case LetValues(variables=names, rest=rest, value=value, body=body):
                if rest is not None:
                    raise NotFast("a rest of several values")
                inner = Env({}, env)
                found = self.values(lambda waiting: self.emit(value, env, waiting), len(names))
                for name, item in zip(names, found, strict=True):
                    self.bind(inner, name, item)
                self.emit(body, inner, to)
            case Fix(variables=names, lambdas=lambdas, body=body):
                inner = Env({}, env)
                unit = self.unit(env)
                for name, code in zip(names, lambdas, strict=True):
                    inner.bindings[name] = Closure(code, inner, unit)
                self.emit(body, inner, to)
            case Call(procedure=procedure, args=args):
                found = [self.value(arg, env) for arg in args]
                self.call(self.value(procedure, env), found, to, node)
            case _:
                simple = self._simple(node, env)
                assert simple is not None
                self.deliver([simple], to)

    def primitive(self, name: str, args: list[Abstract], node: Node) -> Abstract:
        rule = self.primitives.get(name)
        if rule is None:
            raise NotFast(f"the procedure {name}")
        return rule(self, args, (self.frames[-1].key if self.frames else None, id(node)))

    # ---- calls --------------------------------------------------------------------------------------------------

    def call(self, procedure: Abstract, args: list[Abstract], to: Destination, node: Node) -> None:
        """Call something; its value goes somewhere."""
        if isinstance(procedure, Primitive):
            if procedure.name == "apply" and args:
                *given, last = args[1:]
                if list_size(last) is not None:
                    items = self.primitive("%spelled", [last], node)
                    self.call(args[0], [*given, *listed(items)], to, node)
                else:
                    self.apply(args[0], given, last, to, node)
            elif procedure.name == "values":
                self.deliver(list(args), to)
            else:
                self.deliver([self.primitive(procedure.name, args, node)], to)
            return
        if isinstance(procedure, Fields) and procedure.kind in DERIVED:
            self.deliver([self.primitive(DERIVED[procedure.kind], [*procedure.items, *args], node)], to)
            return
        if not isinstance(procedure, Closure):
            raise NotFast(f"a call of {said(procedure)}")
        clause = next((c for c in procedure.code.clauses if _takes(c, len(args))), None)
        if clause is None:
            self.fail()
        if clause.rest is not None:
            count = len(clause.params)
            args = [*args[:count], as_list(args[count:])]
        self.enter(procedure, clause, args, to, node)

    def enter(self, procedure: Closure, clause: Clause, args: list[Abstract], to: Destination, node: Node) -> None:
        """Go into a procedure; there is an argument for each of its variables."""
        sizes = tuple(map(list_size, args))
        given = _procedures(args)
        frame = next(
            (f for f in reversed(self.frames) if f.clause is clause and f.env is procedure.env and f.given == given),
            None,
        )
        if frame is not None and _is_shorter(sizes, frame.sizes):
            self.turns += 1
            if self.turns > MOST_TURNS:
                raise NotFast("loops through lists of known lengths are long")
            self.inline(procedure, clause, args, to, node, sizes, frame.root)
            return
        root = self._key(node)
        unrolls = self.unroll and frame is None and any(sizes) and root not in self.notes.rolled
        if clause in self.notes.functions and not unrolls:
            self.deliver(self.call_function(procedure, clause, args), to)
        elif frame is not None:
            self.again(frame, args, to)
        else:
            self.inline(procedure, clause, args, to, node, sizes if unrolls else (), root)

    def _key(self, node: Node) -> Key:
        return hash((self.frames[-1].key if self.frames else None, id(node)))

    def apply(self, procedure: Abstract, given: list[Abstract], last: Abstract, to: Destination, node: Node) -> None:
        """Call something with the items of a list whose length is known only later."""
        if isinstance(procedure, Primitive):
            self.deliver([self.primitive(f"apply {procedure.name}", [*given, last], node)], to)
            return
        if not isinstance(procedure, Closure) or len(procedure.code.clauses) != 1:
            raise NotFast("a list whose length is not known")
        (clause,) = procedure.code.clauses
        while len(given) < len(clause.params):
            given.append(self.primitive("car", [last], node))
            last = self.primitive("cdr", [last], node)
        if clause.rest is None:
            end = self.primitive("null?", [last], node)
            if len(given) > len(clause.params) or not isinstance(end, Leaf):
                raise NotFast("a list whose length is not known")
            self.need(end.value)
            self.call(procedure, given, to, node)
            return
        count = len(clause.params)
        rest = self.primitive("cons*", [*given[count:], last], node)
        self.enter(procedure, clause, [*given[:count], rest], to, node)

    def again(self, frame: Frame, args: list[Abstract], to: Destination) -> None:
        """A call of a procedure inside itself."""
        if frame.sizes:
            self.notes.rolled.add(frame.root)
            raise Again
        if frame.to is not to:
            self.notes.functions.add(frame.clause)
            raise Again
        if frame.header is None:
            self.notes.loops.add(frame.clause)
            first = [variable(self.shape(a)) for a in frame.args]
            self.notes.headers[frame.key] = [widened(a, self.shape(b)) for a, b in zip(first, args, strict=True)]
            raise Again
        shapes = [widened(shape, self.shape(a)) for shape, a in zip(frame.shapes, args, strict=True)]
        if shapes != frame.shapes:
            self.notes.headers[frame.key] = shapes
            raise Again
        self.jump(frame.header, [v for a, shape in zip(args, shapes, strict=True) for v in self.fit(a, shape)])

    def inline(
        self,
        procedure: Closure,
        clause: Clause,
        args: list[Abstract],
        to: Destination,
        node: Node,
        sizes: tuple[int | None, ...],
        root: Key,
    ) -> None:
        """The body of a procedure in place of its call."""
        interrupts.check()
        if len(self.frames) > DEEPEST:
            raise NotFast("calls are nested too deeply")
        frame = Frame(clause, procedure.env, to, self._key(node), _procedures(args), sizes, root, args)
        if clause in self.notes.loops and not sizes:
            shapes = [variable(self.shape(a)) for a in args]
            noted = self.notes.headers.get(frame.key, shapes)
            shapes = [widened(a, b) for a, b in zip(shapes, noted, strict=True)]
            header = self.new_block("loop")
            header.params = [TypedValue(kind) for shape in shapes for kind in leaf_types(shape)]
            self.jump(header, [v for a, shape in zip(args, shapes, strict=True) for v in self.fit(a, shape)])
            self.begin(header)
            values = iter(header.params)
            args = [rebuilt(shape, values) for shape in shapes]
            frame.header, frame.shapes = header, shapes
        inner = UnitEnv({}, procedure.env, procedure.unit)
        for name, value in zip(_params(clause), args, strict=True):
            self.bind(inner, name, value)
        self.frames.append(frame)
        try:
            self.emit(clause.body, inner, to)
        finally:
            self.frames.pop()

    def call_function(self, procedure: Closure, clause: Clause, args: list[Abstract]) -> list[Abstract]:
        """A call of a procedure that is a function of its own, for arguments of these shapes."""
        everything: list[Abstract] = [*args, procedure]
        shapes = [variable(self.shape(a)) for a in everything]
        key = (clause, tuple(shapes))
        if key not in self.made:
            self._write_function(key, clause, shapes)
        function, results = self.made[key]
        if results is None:  # it is being written: its result is what it was the last time
            if key not in self.notes.results:  # what comes without this call is looked at first
                self.fail()
            results = self.notes.results[key]
        types = [kind for shape in results for kind in leaf_types(shape)]
        passed = [v for a, shape in zip(everything, shapes, strict=True) for v in self.fit(a, shape)]
        made = [TypedValue(kind) for kind in types]
        self.block.body.append(Instruction("call", passed, made, function=function))
        values = iter(made)
        return [rebuilt(shape, values) for shape in results]

    def _write_function(self, key: Key, clause: Clause, shapes: list[AbstractShape]) -> None:
        if len(self.made) > 40:
            raise NotFast("too many kinds of arguments")
        start = Block("start", [TypedValue(kind) for shape in shapes for kind in leaf_types(shape)])
        function = ir.TypedFunction(f"f{len(self.functions)}", [start])
        self.functions.append(function)
        self.made[key] = (function, None)
        outside = self.function, self.block, self.frames
        join = WriterJoin(1)
        self.function, self.block = function, start
        self.frames = [Frame(clause, Env(), join, hash(key), ())]
        try:
            wanted = self._write_body(key, clause, shapes, join)
        finally:
            self.function, self.block, self.frames = outside
        function.results = [kind for shape in wanted for kind in leaf_types(shape)]
        self.made[key] = (function, wanted)

    def differentiated(self, procedure: Abstract, points: list[Abstract]) -> tuple[Leaf, list[Abstract]]:
        """The value of a procedure and its gradient, in the structures of the points."""
        everything = [*points, procedure]
        shapes = [variable(self.shape(a)) for a in everything]
        types = [kind for shape in shapes[:-1] for kind in leaf_types(shape)]
        if any(kind not in (F64, ir.array(F64), ir.cell(F64)) for kind in types):
            raise NotFast("a derivative inside of another by exact numbers or nested data")
        key = ("differentiated", *shapes)
        if key not in self.made:
            self._write_differentiated(key, shapes)
        function, results = self.made[key]
        if results is None:
            raise NotFast("a procedure that differentiates itself")
        passed = [v for a, shape in zip(everything, shapes, strict=True) for v in self.fit(a, shape)]
        value, *partials = made = [TypedValue(F64), *map(TypedValue, types)]
        self.block.body.append(Instruction(GRADIENT, passed, made, literal=len(types), function=function))
        left = iter(partials)
        return Leaf(value), [rebuilt(shape, left) for shape in shapes[:-1]]

    def _write_differentiated(self, key: Key, shapes: list[AbstractShape]) -> None:
        if len(self.made) > 40:
            raise NotFast("too many kinds of arguments")
        start = Block("start", [TypedValue(kind) for shape in shapes for kind in leaf_types(shape)])
        function = ir.TypedFunction(f"f{len(self.functions)}", [start], [F64])
        self.functions.append(function)
        self.made[key] = (function, None)
        outside = self.function, self.block, self.frames
        self.function, self.block = function, start
        self.frames = [Frame(Clause([], None, NOWHERE), Env(), WriterJoin(1), hash(key), ())]
        try:
            values = iter(start.params)
            *args, procedure = [rebuilt(shape, values) for shape in shapes]
            with contextlib.suppress(Unreachable):
                (found,) = self.values(lambda to: self.call(procedure, args, to, NOWHERE), 1)
                self.block.end = Return([self.f64(found)])
        finally:
            self.function, self.block, self.frames = outside
        self.made[key] = (function, [AbstractShape("leaf", F64)])

    def _write_body(
        self, key: Key, clause: Clause, shapes: list[AbstractShape], join: WriterJoin
    ) -> list[AbstractShape]:
        """The shapes of what a function returns."""
        values = iter(self.block.params)
        *args, closure = [rebuilt(shape, values) for shape in shapes]
        assert isinstance(closure, Closure)
        inner = UnitEnv({}, closure.env, closure.unit)
        for name, value in zip(_params(clause), args, strict=True):
            self.bind(inner, name, value)
        with contextlib.suppress(Unreachable):
            self.emit(clause.body, inner, join)
        found = self.met(join)
        results = [variable(self.shape(a)) for a in found]
        expected = self.notes.results.get(key)
        wanted = [widened(a, b) for a, b in zip(expected, results, strict=True)] if expected else results
        if wanted != expected:
            self.notes.results[key] = wanted
            raise Again
        self.block.end = Return([v for a, shape in zip(found, wanted, strict=True) for v in self.fit(a, shape)])
        return wanted


# ---- small things ----------------------------------------------------------------------------------------------------


def _targets(function: ir.TypedFunction) -> set[Block]:
    return {jump.target for block in function.blocks for jump in block.jumps()}


def _procedures(args: Sequence[Abstract]) -> tuple[Any, ...]:
    """Which procedures there are among arguments: a call with others is no recursion."""
    return tuple(a.code if isinstance(a, Closure) else a.name if isinstance(a, Primitive) else None for a in args)


def _is_shorter(sizes: Sequence[int | None], before: Sequence[int | None]) -> bool:
    """Whether a turn comes nearer to the end of a list whose length is known."""
    return bool(before) and any(a is not None and b is not None and b < a for a, b in zip(before, sizes, strict=True))


def parts_of(kind: Type) -> list[Type]:
    """A type, that of its elements, and so on."""
    return [kind, *(parts_of(kind.element) if kind.element is not None else [])]


def _takes(clause: Clause, count: int) -> bool:
    return count == len(clause.params) or (clause.rest is not None and count > len(clause.params))


def _params(clause: Clause) -> list[Variable]:
    return [*clause.params, *([clause.rest] if clause.rest is not None else [])]
