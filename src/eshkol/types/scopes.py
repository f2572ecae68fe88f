"""The ends of scopes, written into a program: owners end and borrows are given back where their variables do.

Comes in: the forms of a unit whose owners were looked at (`owning.py`), and its checker. Goes out: the same forms,
changed in place. A form that binds owners, shared references or borrows becomes a call of `%scope` with a procedure
of the scope; `%keep` has an owner end with it, `%alias` counts one more variable of a shared reference, and `%lent`
has a borrow given back. A call that is given borrows is a scope of its own, unless it calls a primitive, which is
over before anyone else could look. What moves or drops is told its place, so that an error later can say where that
was.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from eshkol.lang.core import (
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
    Variable,
)
from eshkol.lang.datum import Symbol
from eshkol.lang.source import Place
from eshkol.types.checking import Checker
from eshkol.types.owners import BORROWS, Key, ends, form_of, handle_of_key, key_of, loop_of

ENDING = {"move": "%move", "drop": "%end"}


class Scopes:
    """Changes one unit. `of_owners` gives the procedures of (eshkol owners)."""

    def __init__(self, checker: Checker, of_owners: Callable[[str], Cell]) -> None:
        self.checker, self._of_owners = checker, of_owners

    def place(self) -> None:
        forms = self.checker.unit.forms
        forms[:] = [self.changed(form) for form in forms]

    def _make(self, name: str, place: Place | None, *args: Node) -> Call:
        return Call(place, Global(place, self._of_owners(name)), list(args))

    def _scope(self, place: Place | None, scope: Variable, body: Node) -> Node:
        return self._make("%scope", place, Lambda(place, [Clause([scope], None, body)], "scope"))

    # ---- the walk ----------------------------------------------------------------------------------------------------

    def changed(self, node: Node) -> Node:
        """A form with its scopes."""
        match node:
            case Call():
                return self._call(node)
            case Lambda(clauses=clauses):
                for clause in clauses:
                    self._clause(clause)
            case Let() | Letrec():
                return self._binding(node)
            case If():
                if form_of(node.test) == "weak-upgrade" and type(node.test) is Call:  # no one would end what it gives
                    node.test.procedure = Global(node.test.place, self._of_owners("%weak-there?"))
                node.test, node.then = self.changed(node.test), self.changed(node.then)
                node.otherwise = self.changed(node.otherwise)
            case Seq(items=items):
                items[:] = [self.changed(item) for item in items]
            case DefineGlobal():
                node.value = self._bound(node.cell, node.value, None)
            case SetLocal() | SetGlobal():
                node.value = self.changed(node.value)
        return node

    def _clause(self, clause: Clause) -> None:
        """A procedure that owns what it is given ends it."""
        clause.body = self.changed(clause.body)
        owners = [param for param in clause.params if param.annotation is not None and ends(self.checker, param)]
        if not owners:
            return
        scope = Variable("scope")
        kept = [self._keep(scope, param, Local(param.place, param)) for param in owners]
        clause.body = self._scope(clause.body.place, scope, Seq(clause.body.place, [*kept, clause.body]))

    def _binding(self, node: Let | Letrec) -> Node:
        scope = Variable("scope")
        if type(node) is Letrec and loop_of(node) is not None:
            node.values[0], node.body = self.changed(node.values[0]), self.changed(node.body)
            return node
        count = self._lasting(node.variables, node.values)
        for index, (variable, value) in enumerate(zip(node.variables, node.values, strict=True)):
            node.values[index] = self._bound(variable, value, scope)
        node.body = self.changed(node.body)
        return self._scope(node.place, scope, node) if count else node

    def _lasting(self, variables: Sequence[Variable], values: Sequence[Node]) -> int:
        """How many of these bindings end with their scope."""
        return sum(
            ends(self.checker, variable) or _upgrades(value) or self._lends(value) is not None
            for variable, value in zip(variables, values, strict=True)
        )

    def _lends(self, value: Node) -> bool | None:
        """Whether a borrow that is written here may be changed; None where there is none."""
        name = form_of(value)
        return BORROWS[name] if name in BORROWS and type(value) is Call and len(value.args) == 1 else None

    def _bound(self, variable: Key, value: Node, scope: Variable | None) -> Node:
        """The value of a variable; `scope` is None at top level, where nothing ends."""
        mutable = self._lends(value)
        if mutable is not None:
            return self._lent(value, mutable, scope)  # type: ignore[arg-type]
        handle, key = handle_of_key(self.checker, variable), key_of(value)
        upgraded, made = _upgrades(value), self.changed(value)
        if not upgraded and (handle is None or handle.kind == "Weak"):
            return made
        if handle is not None and handle.kind == "Shared" and key is not None:
            return self._make("%alias", value.place, self._named(scope), made, self._name(variable))
        return made if scope is None else self._keep(scope, variable, made)

    def _keep(self, scope: Variable, variable: Key, value: Node) -> Node:
        handle = handle_of_key(self.checker, variable)
        linear = Const(None, handle is not None and handle.kind == "Linear")
        return self._make("%keep", value.place, Local(None, scope), value, self._name(variable), linear)

    def _name(self, variable: Key) -> Node:
        return Const(None, Symbol(variable.name))

    def _named(self, scope: Variable | None) -> Node:
        return Const(None, False) if scope is None else Local(None, scope)

    def _lent(self, node: Call, mutable: bool, scope: Variable | None) -> Node:
        """The same form, since a check of its value may be known by it."""
        node.args = [self._named(scope), self.changed(node.args[0]), Const(None, mutable)]
        node.procedure = Global(node.procedure.place, self._of_owners("%lent"))
        return node

    def _call(self, node: Call) -> Node:
        name = form_of(node)
        if name in ENDING and len(node.args) == 1:
            where = Const(None, False if node.place is None else _written(node.place))
            node.procedure = Global(node.procedure.place, self._of_owners(ENDING[name]))
            node.args = [self.changed(node.args[0]), where]
            return node
        callee = node.procedure
        node.procedure = self.changed(callee)
        at_once = name is not None or (type(callee) is Global and callee.cell.primitive)
        scope = Variable("scope")
        lent = 0
        for index, arg in enumerate(node.args):
            mutable = None if at_once else self._lends(arg)
            if mutable is None:
                node.args[index] = self.changed(arg)
            else:
                node.args[index] = self._lent(arg, mutable, scope)  # type: ignore[arg-type]
                lent += 1
        return self._scope(node.place, scope, node) if lent else node


def _upgrades(value: Node) -> bool:
    """Whether a form gives a shared reference, or nothing, although its type may not say so."""
    return form_of(value) == "weak-upgrade"


def _written(place: Place) -> str:
    line, column = place.source.position(place.start)
    return f"{place.source.name}:{line}:{column}"
