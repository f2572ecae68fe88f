"""Who may still have the memory of a region when it ends.

Comes in: a unit that was checked, and its checker. Goes out: errors about memory that certainly leaves its region,
and the calls of `region-alloc` of which it is certain that no one has what they gave when the region ends
(`Regions.contained`): those alone get memory of the region (`contain`); all others are left to the collector, which
`eshkol run --why` says.

Values flow along edges: from where memory is made to variables, parameters, results of procedures and, where it is
not known what becomes of them, outside. Only what is written within the body of a region is followed, and procedures
of the same unit that are called from there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from eshkol.errors import BadOwnership, LanguageError
from eshkol.lang.core import (
    Call,
    Cell,
    Clause,
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
from eshkol.lang.report import bad
from eshkol.types.checking import Checker
from eshkol.types.owners import form_of, region_of, tails
from eshkol.types.standard import is_standard
from eshkol.types.walking import children

Point = object  # a variable, a procedure's result, a call that makes memory, or:
OUTSIDE = "outside"

# What neither keeps its arguments nor gives them back; and what calls procedures that it is given, but keeps none.
HARMLESS = frozenset({
    "bytevector-u8-ref", "bytevector-u8-set!", "bytevector-s8-ref", "bytevector-s8-set!", "bytevector-length",
    "bytevector-copy", "bytevector-copy!", "bytevector-fill!", "bytevector-append", "bytevector=?", "bytevector?",
    "bytevector-ieee-double-native-ref", "bytevector-ieee-double-native-set!", "utf8->string", "read-bytevector!",
    "write-bytevector", "not", "eq?", "eqv?", "equal?", "display", "write", "+", "-", "*", "/", "=", "<", ">", "<=",
    ">=", "quotient", "remainder", "modulo", "abs", "min", "max", "zero?", "newline", "bitwise-and", "bitwise-ior",
    "bitwise-xor", "arithmetic-shift", "string-length", "char->integer", "integer->char", "exact", "inexact", "sqrt",
    "region-alloc", "region-used",
})  # fmt: skip
CALLING = frozenset(
    {"for-each", "map", "vector-for-each", "vector-map", "fold", "fold-left", "dynamic-wind", "string-for-each"}
)


class Regions:
    """The regions of one unit."""

    def __init__(self, checker: Checker) -> None:
        self.checker = checker
        self.errors: list[LanguageError] = []
        self.contained: dict[int, tuple[Call, Variable]] = {}  # calls, by identity, and the variables of their regions
        self._edges: dict[Point, set[Point]] = {}
        self._made: list[tuple[Call, Variable]] = []  # memory, and the innermost region that it is written in
        self._known: dict[Variable, Lambda] = {}  # local procedures of which all uses are calls
        self._looked: set[int] = set()  # procedures, by identity
        self._in: list[Variable] = []  # regions around
        self._within: set[Variable] = set()  # variables that are bound within a region

    def check(self) -> None:
        for form in self.checker.unit.forms:
            for lambda_ in regions_in(form):
                self._edges, self._made, self._known, self._looked = {}, [], {}, set()
                self._region(lambda_, OUTSIDE)
                self._judge()

    def _judge(self) -> None:
        for call, region in self._made:
            reached, todo = set(), [id(call)]
            while todo:
                point = todo.pop()
                for other in self._edges.get(point, ()):
                    if other not in reached:
                        reached.add(other)
                        todo.append(other)  # type: ignore[arg-type]
            if OUTSIDE not in reached and (len(call.args) == 1 or _is_local(call.args[1], region)):
                self.contained[id(call)] = call, region

    def _flow(self, start: Point, to: Point | None) -> None:
        if to is not None:
            self._edges.setdefault(start, set()).add(to)

    # ---- the walk ----------------------------------------------------------------------------------------------------

    def _region(self, body: Lambda, to: Point | None) -> None:
        clause = body.clauses[0]
        self._in.append(clause.params[0])
        self._within.add(clause.params[0])
        self._refuse_result(clause)
        # what the body gives leaves the region, wherever it goes then
        self._walk(clause.body, OUTSIDE)
        self._in.pop()

    def _refuse_result(self, clause: Clause) -> None:
        """Memory that is certainly the region's result."""
        made = dict(_bindings(clause.body))
        for tail in tails(clause.body):
            found = made.get(tail.variable) if type(tail) is Local and not tail.variable.assigned else tail
            if found is not None and form_of(found) == "region-alloc" and len(found.args) == 1:  # type: ignore[attr-defined]
                notes = () if found is tail else (("its memory is made here:", found.place),)
                self.errors.append(bad(
                    "what is given here is memory of the region, which ends here", tail.place,
                    "give (bytevector-copy bytes), or make it outside with make-bytevector", kind=BadOwnership,
                    notes=notes,
                ))  # fmt: skip

    def _walk(self, node: Node, to: Point | None) -> None:
        """A form whose value goes to a point; None: nowhere."""
        match node:
            case Local(variable=variable):
                if variable in self._known:
                    self._escaped(variable)
                self._flow(variable, to)
            case If():
                self._walk(node.test, None)
                self._walk(node.then, to)
                self._walk(node.otherwise, to)
            case Seq(items=items):
                for item in items[:-1]:
                    self._walk(item, None)
                self._walk(items[-1], to)
            case Let() | Letrec():
                self._bind(node, to)
            case Lambda():
                self._procedure(node, OUTSIDE if to is not None else None)
            case Call():
                self._call(node, to)
            case SetLocal() | SetGlobal() | DefineGlobal():
                self._walk(node.value, OUTSIDE)

    def _bind(self, node: Let | Letrec, to: Point | None) -> None:
        self._within.update(node.variables)
        for variable, value in zip(node.variables, node.values, strict=True):
            if type(value) is Lambda and not variable.assigned and _only_called(variable, node):
                self._known[variable] = value
        for variable, value in zip(node.variables, node.values, strict=True):
            if variable not in self._known:
                self._walk(value, variable)
        self._walk(node.body, to)

    def _procedure(self, node: Lambda, to: Point | None) -> None:
        """A procedure that goes who knows where: what it has captured goes there too, and may be used there."""
        if to is not None:
            for variable in _free(node):
                self._flow(variable, OUTSIDE)
        for clause in node.clauses:
            self._walk(clause.body, OUTSIDE)

    def _escaped(self, variable: Variable) -> None:
        self._procedure(self._known.pop(variable), OUTSIDE)

    def _enter(self, node: Lambda, args: list[Node], to: Point | None) -> None:
        """A call of a known procedure: arguments go to its parameters, its result to where the call's goes."""
        for clause in node.clauses:
            takes = len(clause.params) == len(args) and clause.rest is None
            for index, arg in enumerate(args):
                self._walk(arg, clause.params[index] if takes else OUTSIDE)
        self._flow(("result", id(node)), to)
        if id(node) not in self._looked:
            self._looked.add(id(node))
            for clause in node.clauses:
                self._walk(clause.body, ("result", id(node)))

    def _call(self, node: Call, to: Point | None) -> None:
        callee, args = node.procedure, node.args
        inner = region_of(node)
        if inner is not None:
            self._walk(args[1], None)
            self._region(inner, to)
            return
        if form_of(node) == "region-alloc":
            for arg in args[:1]:
                self._walk(arg, None)
            if self._in:
                self._made.append((node, self._in[-1]))
                self._flow(id(node), to)
            return
        if type(callee) is Lambda:
            self._enter(callee, args, to)
        elif type(callee) is Local and callee.variable in self._known:
            self._enter(self._known[callee.variable], args, to)
        elif type(callee) is Global and is_standard(callee.cell):
            self._standard(callee.cell.name, args)
        elif type(callee) is Global and type(value := self._own(callee.cell)) is Lambda:
            self._enter(value, args, to)
        else:
            self._walk(callee, OUTSIDE)
            for arg in args:
                self._walk(arg, OUTSIDE)

    def _own(self, cell: Cell) -> Node | None:
        return None if cell.assigned or not cell.sealed else self.checker.values.get(cell)

    def _standard(self, name: str, args: list[Node]) -> None:
        for arg in args:
            if name in HARMLESS:
                self._walk(arg, None)
            elif name in CALLING and type(arg) is Lambda:
                self._procedure(arg, None)
            else:
                self._walk(arg, OUTSIDE)

    # ---- what becomes of it ------------------------------------------------------------------------------------------

    def contain(self, primitive: Callable[[str], Cell]) -> None:
        """Have the calls that may use their region's memory."""
        for call, region in self.contained.values():
            call.procedure = Global(call.procedure.place, primitive("%region-bytes"))
            call.args = [Local(None, region), call.args[0]]


def regions_in(node: Node) -> Iterator[Lambda]:
    """The bodies of the outermost regions in a form."""
    todo: list[Any] = [node]
    while todo:
        node = todo.pop()
        found = region_of(node)
        if found is not None:
            yield found
        else:
            todo += children(node)


def _bindings(node: Node) -> Iterator[tuple[Variable, Node]]:
    """The variables that are bound on the way to what a form gives."""
    todo = [node]
    while todo:
        node = todo.pop()
        if type(node) is Let or type(node) is Letrec:
            yield from zip(node.variables, node.values, strict=True)
            todo.append(node.body)
        elif type(node) is Seq:
            todo.append(node.items[-1])
        elif type(node) is If:
            todo += [node.then, node.otherwise]


def _is_local(node: Node, variable: Variable) -> bool:
    return type(node) is Local and node.variable is variable


def _only_called(variable: Variable, scope: Let | Letrec) -> bool:
    """Whether a local procedure is called wherever it stands."""
    todo: list[Any] = [*scope.values, scope.body]
    while todo:
        node = todo.pop()
        if type(node) is Local and node.variable is variable:
            return False
        if type(node) is Call and type(node.procedure) is Local and node.procedure.variable is variable:
            todo += node.args
        else:
            todo += children(node)
    return True


def _free(node: Node) -> set[Variable]:
    """The variables that a procedure mentions, its own too."""
    found: set[Variable] = set()
    todo: list[Any] = [node]
    while todo:
        node = todo.pop()
        if type(node) is Local:
            found.add(node.variable)
        todo += children(node)
    return found


# ---- for people ------------------------------------------------------------------------------------------------------


def explained(unit: Unit) -> list[str]:
    """What became of the calls of region-alloc, for `eshkol run --why`."""
    found = []
    todo: list[Any] = list(reversed(unit.forms))
    while todo:
        node = todo.pop()
        callee = node.procedure if type(node) is Call else None
        name = callee.cell.name if type(callee) is Global and is_standard(callee.cell) else None
        if name in ("%region-bytes", "region-alloc") and node.place is not None:
            line, column = node.place.source.position(node.place.start)
            where = f"region-alloc at {node.place.source.name}:{line}:{column}"
            if name == "%region-bytes":
                found.append((node.place.start, f"{where}: memory of the region, given back at its end"))
            else:
                found.append((node.place.start, f"{where}: left to the collector, since it may leave the region"))
        todo += children(node)
    return [text for _, text in sorted(found)]
