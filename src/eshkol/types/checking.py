"""The checker: types of core forms, from the outside in where something is expected, else from the inside out.

Comes in: the unit of a program, as the expander leaves it. Goes out: errors (`Checker.errors`), the types of variables,
and where values must be looked at when the program runs (`Checker.checks`, for `borders.py`).

What has no annotation is `ANY`, or what inference makes of it, and is refused only where no value could fit. Within a
procedure that has annotations (`strict`), and wherever a type was written down, a value must fit. Procedures at top
level are looked at when someone asks for their type; named loops are looked at until the types of their variables stay
the same. Calls are the business of `calls.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from eshkol.errors import LanguageError
from eshkol.lang.core import (
    OWNERS,
    Call,
    Cell,
    Clause,
    Const,
    DefineGlobal,
    Global,
    If,
    Lambda,
    Let,
    Letrec,
    Local,
    Node,
    Seq,
    SetGlobal,
    SetLocal,
    Unit,
    Variable,
)
from eshkol.lang.source import Place
from eshkol.types.calls import AGAIN
from eshkol.types.certain import Certain
from eshkol.types.constants import constant_type
from eshkol.types.fitting import fits, function_in, proven, wanted_arrow
from eshkol.types.kinds import (
    ANY,
    FALSE,
    NEVER,
    NUMBERS,
    VOID,
    Arrow,
    Function,
    Named,
    RecordOf,
    Type,
    can_meet,
    cover,
    function,
    has_handles,
    join,
    list_of,
    narrowed,
    without,
)
from eshkol.types.loops import Loops
from eshkol.types.narrowing import Facts, facts_of
from eshkol.types.proving import Proving
from eshkol.types.reading import asked_for, read_parameter_type, read_type, records_in
from eshkol.types.standard import is_standard, standard_type
from eshkol.types.walking import children
from eshkol.types.wording import Expected, declared_as, gives, mismatch

RECORD_READER, RECORD_WRITER, RECORD_TEST = "%record-ref", "%record-set!", "%record?"


class Check(NamedTuple):
    """A value that must be looked at when the program runs."""

    kind: Type
    message: str  # who expects what, and who is to blame
    place: Place | None


class Checker(Loops):
    """The types of one unit. `shapes` gives who knows what rows of the op table make of tensors; `to_run` says whether
    it is to be found out, too, which checks the code can do without."""

    def __init__(self, unit: Unit, shapes: Callable[[], Any] | None = None, to_run: bool = False) -> None:
        self.unit = unit
        self.shapes = shapes
        self.errors: list[LanguageError] = []
        self._found = self.errors  # while the errors of one turn of a loop are collected apart
        self.declared_errors: set[int] = set()  # of those, by identity, what contradicts an annotation
        self.checks: dict[int, Check] = {}
        self.kinds: dict[Variable, Type] = {}
        self.known: dict[Variable, Type] = {}  # narrower, where tests said so
        self.cells: dict[Cell, Type] = {}
        self.entries: dict[int, list[Type]] = {}  # of clauses of procedures: what their arguments are declared to be
        self.called_so: set[int] = set()  # calls whose arguments are of the types that their procedure declares
        self.strict = False
        self.owning = False  # whether anything is owned, so that owners must be followed
        self.names: dict[str, Type] = {}
        self._elsewhere: dict[str, Type] | None = None  # names of records of libraries, once one was asked for
        self.values: dict[Cell, Node] = {}
        self.clauses: dict[Variable, Clause] = {}  # of local procedures
        self.records: dict[Cell, Type] = {}  # predicates and record types
        self._asking: set[Cell] = set()
        self._loops: dict[Variable, list[Type]] = {}  # loops that are being looked at: types of their arguments
        self._gives: dict[Variable, Type] = {}
        self._missing = False  # whether the result of such a loop was used before it was known
        self._visit: dict[type, Callable[[Any], Type]] = {
            Const: self._const, Local: self._local, Global: self._global, If: self._if, Seq: self._seq,
            Let: self._let, Letrec: self._letrec, Lambda: self._lambda, Call: self._call_node,
            SetLocal: self._set_local, SetGlobal: self._set_global, DefineGlobal: self._define,
        }  # fmt: skip
        self._arrows: dict[int, tuple[Type, list[Arrow]]] = {}
        self._bare: dict[int, tuple[Arrow, Type]] = {}
        self._counts: dict[tuple[Cell, int], bool] = {}
        self.proving = Proving(self, Certain(self.kinds, self.checks) if to_run else None)
        self._collect()

    # ---- a unit ------------------------------------------------------------------------------------------------------

    def _collect(self) -> None:
        """What the unit defines, its records first: annotations may name them."""
        for form in self.unit.forms:
            if type(form) is DefineGlobal:
                self.values[form.cell] = form.value
        for name, cell in self.unit.records.items():
            record = self.records[cell] = Type(0, (RecordOf(name, cell),))
            self.names[name] = self.names[name.strip("<>")] = record
        for name, (datum, place) in self.unit.types.items():
            self.names[name] = Type(0, (Named(name, lambda d=datum, p=place: read_type(d, self.names, p)),))  # type: ignore[misc]

    def check(self) -> None:
        """Look at the whole unit."""
        for datum, place in self.unit.types.values():
            self._read(datum, place)
        for form in self.unit.forms:
            self.synth(form)

    def refuse(self, error: LanguageError, declared: bool) -> None:
        self.errors.append(error)
        if declared or self.strict:
            self.declared_errors.add(id(error))

    def _read(self, datum: Any, place: Place | None, reader: Callable[..., Type] = read_type) -> Type:
        try:
            return self._noted(reader(datum, self.names, place))
        except LanguageError:
            try:
                return self._noted(reader(datum, self._names_elsewhere(), place))
            except LanguageError as error:
                self.refuse(error, True)
                return ANY

    def _names_elsewhere(self) -> dict[str, Type]:
        """The names of types of this unit, and of records of libraries of which it uses something."""
        if self._elsewhere is None:
            self._elsewhere = {}
            todo: list[Any] = list(self.unit.forms)
            while todo:
                node = todo.pop()
                if type(node) is Global and node.cell.annotation is not None and node.cell not in self.values:
                    self._elsewhere.update(records_in(node.cell.annotation))
                todo += children(node)
            for name, kind in self._elsewhere.items():
                self.names.setdefault(name, kind)
        return self.names

    def _noted(self, kind: Type) -> Type:
        self.owning = self.owning or has_handles(kind)
        return kind

    # ---- variables ---------------------------------------------------------------------------------------------------

    def declared(self, variable: Variable) -> Type | None:
        """The type that a program gives a local variable."""
        if variable.annotation is None:
            return None
        found = self.kinds.get(variable)
        if found is None:
            found = self.kinds[variable] = self._read(variable.annotation, variable.place, read_parameter_type)
        return found

    def cell_type(self, cell: Cell) -> Type:
        """The type of a variable of the unit, or of a library."""
        found = self.cells.get(cell)
        if found is None:
            if cell in self._asking:
                return self._outline(cell)
            found = self._find(cell)
            self.cells[cell] = found
        return found

    def _find(self, cell: Cell) -> Type:
        own = cell in self.values
        self.owning = self.owning or cell.library == OWNERS
        if cell.annotation is not None:
            if own:
                return self._read(cell.annotation, cell.place)
            try:
                return self._noted(read_type(cell.annotation, {}, cell.place))
            except LanguageError:
                return ANY  # it names types of its own library
        if not own:
            found = None if cell.assigned and not is_standard(cell) else standard_type(cell)
            return ANY if found is None else found
        value = self.values[cell]
        if cell.assigned or not cell.sealed:
            return ANY
        record = self._record_part(value)
        if record is not None:
            return record
        saved = self.errors, self.strict, self.known, self._missing, self._loops
        mark = self.proving.mark()
        self.proving.forget()
        self._asking.add(cell)
        self.errors, self.strict, self.known, self._loops = self._found, False, {}, {}  # whoever asks, and from where
        try:
            return self.synth(value)
        finally:
            self._asking.discard(cell)
            self.errors, self.strict, self.known, self._missing, self._loops = saved
            self.proving.back(mark)

    def _outline(self, cell: Cell) -> Type:
        """The type of a procedure that is being looked at: what it declares."""
        value = self.values.get(cell)
        if type(value) is not Lambda:
            return ANY
        return function(*(self._arrow(clause, ANY) for clause in value.clauses))

    def _arrow(self, clause: Clause, result: Type) -> Arrow:
        params = tuple(self.declared(v) or self.kinds.get(v, ANY) for v in clause.params)
        if clause.returns is not None:
            result = self._read_quietly(clause.returns)
        return Arrow(params, None if clause.rest is None else ANY, result, 0, (), self.proving.where(clause))

    def _read_quietly(self, datum: Any) -> Type:
        try:
            return read_type(datum, self.names, None)
        except LanguageError:
            return ANY

    # ---- records -----------------------------------------------------------------------------------------------------

    def _record_part(self, value: Node) -> Type | None:
        """The type of what `define-record-type` defines: predicates, readers and writers know their records."""
        if type(value) is not Lambda or value.place is not None or len(value.clauses) != 1:
            return None
        clause = value.clauses[0]
        body = clause.body
        name = primitive_of(body)
        if name not in (RECORD_READER, RECORD_WRITER) or not isinstance(body, Call):
            return None
        kind = body.args[1]
        record = self.records.get(kind.cell) if type(kind) is Global else None
        if record is None:
            return None
        if name == RECORD_READER:
            result = ANY if clause.returns is None else self._read(clause.returns, clause.params[0].place)
            return function(Arrow((record,), None, result))
        return function(Arrow((record, self.declared(clause.params[1]) or ANY), None, VOID))

    def record_of(self, cell: Cell) -> Type | None:
        """The record type that a predicate asks for."""
        value = self.values.get(cell)
        if value is None:
            return asked_for(cell.annotation)
        if type(value) is not Lambda or cell.assigned:
            return None
        body = value.clauses[0].body
        if primitive_of(body) != RECORD_TEST or not isinstance(body, Call):
            return None
        kind = body.args[1]
        return self.records.get(kind.cell) if type(kind) is Global else None

    # ---- expressions -------------------------------------------------------------------------------------------------

    def synth(self, node: Node) -> Type:
        """The type of a form of which nothing is expected."""
        visit = self._visit.get(type(node))
        return ANY if visit is None else visit(node)

    def check_node(self, node: Node, expected: Expected) -> Type:
        """A form where a type is expected; what it is known to be behind that."""
        kind = type(node)
        if kind is If:
            return self._if(node, expected)  # type: ignore[arg-type]
        if kind is Let:
            return self._let(node, expected)  # type: ignore[arg-type]
        if kind is Letrec:
            return self._letrec(node, expected)  # type: ignore[arg-type]
        if kind is Seq:
            return self._seq(node, expected)  # type: ignore[arg-type]
        if kind is Lambda:
            wanted = function_in(expected.kind)
            found = self._lambda(node, wanted, expected)  # type: ignore[arg-type]
        else:
            found = self.synth(node)
        return self.require(node, found, expected)

    def require(self, node: Node, found: Type, expected: Expected) -> Type:
        """Refuse what does not fit; note what must be looked at when the program runs."""
        wanted = expected.kind
        self.checks.pop(id(node), None)
        if wanted is ANY or found is wanted or proven(found, wanted):
            return found
        if expected.declared and wanted == VOID:
            return wanted
        if found is AGAIN or found == NEVER:
            return found
        strict = expected.declared or self.strict
        if not (fits(found, wanted) if strict else can_meet(found, wanted)) or _wrong_constant(node, found, wanted):
            self.refuse(mismatch(expected, found, node), expected.declared)
        elif expected.declared:
            self.checks[id(node)] = Check(wanted, expected.blamed, node.place)
            return narrowed(found, wanted) if can_meet(found, wanted) else wanted
        return found

    def _const(self, node: Const) -> Type:
        return constant_type(node.datum)

    def _local(self, node: Local) -> Type:
        variable = node.variable
        found = self.known.get(variable)
        if found is not None:
            return found
        if variable in self._loops:
            given = self._loops[variable]  # it goes elsewhere: anything may be given to it
            given[:] = [ANY] * len(given)
            if self.proving.certain is not None:
                self.proving.certain.loop_escapes(variable)
        return self.declared(variable) or self.kinds.get(variable, ANY)

    def _global(self, node: Global) -> Type:
        return self.cell_type(node.cell)

    def _set_local(self, node: SetLocal) -> Type:
        self._store(node.value, self.declared(node.variable), node.variable)
        return VOID

    def _set_global(self, node: SetGlobal) -> Type:
        cell = node.cell
        self._store(node.value, self.cell_type(cell) if cell.annotation is not None else None, cell)
        return VOID

    def _define(self, node: DefineGlobal) -> Type:
        cell = node.cell
        if cell.annotation is not None:
            self._store(node.value, self.cell_type(cell), cell)
        elif cell.assigned or not cell.sealed:
            self.synth(node.value)
        else:
            self.cell_type(cell)
        return VOID

    def _store(self, value: Node, kind: Type | None, target: Variable | Cell) -> None:
        if kind is None:
            self.synth(value)
        else:
            self.check_node(value, declared_as(kind, target))

    # ---- conditions and sequences ------------------------------------------------------------------------------------

    def _if(self, node: If, expected: Expected | None = None) -> Type:
        tested = self.synth(node.test)
        holds, fails = facts_of(node.test, self.record_of)
        mark = self.proving.mark()
        there, else_ = self.proving.learnt(node.test)
        self.proving.learn(there, node.test, True)
        then = self._branch(node.then, holds, expected)
        self.proving.back(mark)
        self.proving.learn(else_, node.test, False)
        otherwise = self._branch(node.otherwise, fails, expected)
        self.proving.back(mark)
        if tested is not ANY and tested != NEVER:
            if tested == FALSE:
                return otherwise
            if not cover(tested) & FALSE.mask:
                return then
        return join(then, otherwise)

    def _branch(self, node: Node, facts: Facts, expected: Expected | None) -> Type:
        if not facts:
            return self.synth(node) if expected is None else self.check_node(node, expected)
        saved = self.known
        if not self.learn(facts):
            self.known = saved  # it cannot come to this: nothing is wrong with what stands there
            return self._unreached(node)
        try:
            return self.synth(node) if expected is None else self.check_node(node, expected)
        finally:
            self.known = saved

    def _unreached(self, node: Node) -> Type:
        errors, self.errors = self.errors, []
        try:
            self.synth(node)
        finally:
            self.errors = errors
        return NEVER

    def learn(self, facts: Facts) -> bool:
        """Take in what a test says; False where no value is left of some variable."""
        known = dict(self.known)
        for variable, kind, holds in facts:
            before = known.get(variable)
            if before is None:
                before = self.declared(variable) or self.kinds.get(variable, ANY)
            after = narrowed(before, kind) if holds else without(before, kind)
            if after == NEVER and before != NEVER:
                return False
            known[variable] = after
        self.known = known
        return True

    def _seq(self, node: Seq, expected: Expected | None = None) -> Type:
        saved, mark = self.known, self.proving.mark()
        try:
            never = False
            for item in node.items[:-1]:
                found = self.synth(item)
                never = never or (found == NEVER and found is not AGAIN)
                if type(item) is If:
                    self._learn_from(item)
            last = node.items[-1]
            found = self.synth(last) if expected is None else self.check_node(last, expected)
            return NEVER if never else found
        finally:
            self.known = saved
            self.proving.back(mark)

    def _learn_from(self, node: If) -> None:
        """After (if test (error ...)) the test does not hold."""
        holds, fails = facts_of(node.test, self.record_of)
        there, else_ = self.proving.learnt(node.test)
        if (fails or else_) and self._gives_up(node.then):
            self.learn(fails)
            self.proving.learn(else_, node.test, False)
        elif (holds or there) and self._gives_up(node.otherwise):
            self.learn(holds)
            self.proving.learn(there, node.test, True)

    def _gives_up(self, node: Node) -> bool:
        if type(node) is Seq:
            node = node.items[-1]
        if type(node) is not Call or type(node.procedure) is not Global:
            return False
        kind = self.cell_type(node.procedure.cell)
        arrows = [a for p in kind.parts if type(p) is Function for a in p.arrows]
        return bool(arrows) and all(a.result == NEVER for a in arrows)

    # ---- binding -----------------------------------------------------------------------------------------------------

    def bind(self, variable: Variable, value: Node) -> None:
        """A variable gets its value."""
        if type(value) is Lambda and len(value.clauses) == 1 and not variable.assigned:
            self.clauses[variable] = value.clauses[0]
        kind = self.declared(variable)
        if kind is not None:
            found = self.check_node(value, declared_as(kind, variable))
            self.proving.bind(variable, value, found)
            return
        found = self.synth(value)
        self.proving.bind(variable, value, found)
        self.kinds[variable] = ANY if variable.assigned or variable.early else self.used(found)

    def used(self, found: Type) -> Type:
        """A type of a value that something is done with."""
        if found is AGAIN:
            self._missing = True
            return ANY
        return found

    def _let(self, node: Let, expected: Expected | None = None) -> Type:
        for variable, value in zip(node.variables, node.values, strict=True):
            self.bind(variable, value)
        return self.synth(node.body) if expected is None else self.check_node(node.body, expected)

    def _letrec(self, node: Letrec, expected: Expected | None = None) -> Type:
        if self.is_loop(node):
            return self.loop(node, expected)
        for variable, value in zip(node.variables, node.values, strict=True):
            if type(value) is Lambda and len(value.clauses) == 1 and not variable.assigned:
                self.clauses[variable] = value.clauses[0]
            if self.declared(variable) is None:
                outline = ANY
                if type(value) is Lambda and not variable.assigned:
                    outline = function(*(self._arrow(clause, ANY) for clause in value.clauses))
                self.kinds[variable] = outline
        for variable, value in zip(node.variables, node.values, strict=True):
            self.bind(variable, value)
        return self.synth(node.body) if expected is None else self.check_node(node.body, expected)

    # ---- procedures --------------------------------------------------------------------------------------------------

    def _lambda(self, node: Lambda, wanted: Function | None = None, by: Expected | None = None) -> Type:
        arrows = []
        for clause in node.clauses:
            arrow = wanted_arrow(wanted, len(clause.params), clause.rest is not None)
            arrows.append(self._clause(node, clause, arrow, by))
        return function(*arrows)

    def _clause(self, node: Lambda, clause: Clause, wanted: Arrow | None, by: Expected | None) -> Arrow:
        typed = clause.returns is not None or any(p.annotation is not None for p in clause.params)
        declared = by is not None and by.declared and wanted is not None
        params = []
        for index, param in enumerate(clause.params):
            kind = self.declared(param)
            if kind is None:
                kind = ANY if wanted is None else wanted.param(index)
                self.kinds[param] = kind if wanted is not None and not param.assigned else ANY
            params.append(kind)
        if clause.rest is not None:
            rest = ANY if wanted is None or wanted.rest is None else wanted.rest
            self.kinds[clause.rest] = ANY if clause.rest.assigned else list_of(rest)
        if by is not None and by.defining and wanted is not None:
            self.entries[id(clause)] = params
        elif any(p.annotation is not None for p in clause.params):
            self.entries[id(clause)] = [
                k if p.annotation is not None else ANY for p, k in zip(clause.params, params, strict=True)
            ]
        else:
            self.entries.pop(id(clause), None)
        saved, self.strict = self.strict, typed or declared
        mark = self.proving.enter(clause, self.entries.get(id(clause), []) if len(node.clauses) == 1 else [])
        name = node.name or "the procedure"
        try:
            if clause.returns is not None:
                result = self._read(clause.returns, clause.returns_at or node.place)
                self.check_node(clause.body, gives(name, result, clause.returns_at or node.place))
            elif declared and wanted is not None and by is not None and wanted.result is not ANY:
                result = wanted.result
                self.check_node(clause.body, gives(name, result, by.place))
            else:
                result = self.synth(clause.body)
        finally:
            self.strict = saved
            self.proving.back(mark)
        if result is AGAIN:
            result = NEVER
        rest_kind = None
        if clause.rest is not None:
            rest_kind = ANY if wanted is None or wanted.rest is None else wanted.rest
        return Arrow(
            tuple(params),
            rest_kind,
            result,
            0,
            wanted.variables if wanted is not None else (),
            self.proving.where(clause),
        )


def _wrong_constant(node: Node, found: Type, wanted: Type) -> bool:
    """Whether a number stands there that a check would refuse for certain."""
    return type(node) is Const and not found.parts and bool(found.mask & NUMBERS) and not proven(found, wanted)


def primitive_of(node: Node) -> str | None:
    """The name of the primitive that a form calls."""
    if type(node) is Call and type(node.procedure) is Global and node.procedure.cell.primitive:
        return node.procedure.cell.name
    return None
