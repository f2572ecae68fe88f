"""Where typed and untyped code meet: checks, with blame, and typed procedures that need none.

Comes in: a unit that was checked, and its checker. Goes out: the same unit, changed in place. A value of which too
little is known is looked at where it comes into typed code: at the call, the definition or the end of a procedure that
a type is written for, and whoever gave the value is to blame. A procedure among such values is wrapped, so that what
it gives is looked at, too.

A typed procedure at top level becomes two: one that looks at its arguments, which everyone sees, and one that does
not, which calls go to whose arguments are known to fit; and three, where it takes numbers that a machine has registers
for (`_machine`): what the code generator then knows of them is worth it. Other typed procedures look at their
arguments, unless all their calls are known.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from eshkol.lang.copying import MACHINE, copied
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
    Unit,
    Variable,
)
from eshkol.lang.datum import UNSPECIFIED, Symbol
from eshkol.lang.source import Place
from eshkol.types.checking import Checker
from eshkol.types.exporting import export
from eshkol.types.inequalities import Constraint
from eshkol.types.kinds import ANY, BIT, INTEGERS, VOID, Arrow, Function, Type, TypeVariable, ValuesOf, cover
from eshkol.types.propositions import is_proof
from eshkol.types.proving import is_cast, is_proof_form, length_in
from eshkol.types.tests import Tests
from eshkol.types.walking import children
from eshkol.types.wording import kind_name

KIND = "contract"  # of the conditions that are raised
UNCHECKED = " (typed)"  # what the name of the procedure that looks at nothing ends with
LONGEST = 400  # core forms of a procedure that is written twice for them


class Borders:
    """Puts checks into one unit. `fail` is the library's procedure that raises a condition."""

    def __init__(
        self,
        unit: Unit,
        checker: Checker,
        primitive: Callable[[str], Cell],
        fail: Cell,
        of_owners: Callable[[str], Cell],
    ) -> None:
        self.unit, self.checker, self.fail = unit, checker, fail
        self.tests = Tests(primitive, of_owners)
        self._inner: dict[Cell, Cell] = {}  # procedures that look at nothing
        self._proofs: dict[Cell, list[bool]] = {}  # which of their parameters are proofs, and left out
        self._erased: set[Variable] = set()  # such parameters
        self._known_calls: dict[Variable, bool] = {}  # whether all uses of a local procedure are calls that fit

    def place(self) -> None:
        """Put the checks in."""
        unit, forms = self.unit, []
        certain = self.checker.proving.certain
        self._within = {} if certain is None else certain.within
        self.checker.called_so.difference_update(() if certain is None else certain.unsure())
        for form in unit.forms:
            if type(form) is DefineGlobal and self._can_part(form):
                cell = form.cell
                self._inner[cell] = Cell(cell.library, cell.name + UNCHECKED, cell.place)
                self._erase(cell, form.value)
        for form in unit.forms:
            self._look(form, None)
        for form in unit.forms:
            if type(form) is DefineGlobal and form.cell in self._inner:
                forms += self._parted(form)
            else:
                forms.append(self._changed(form))
        unit.forms[:] = forms
        unit.cells.extend(self._inner.values())
        unit.private.update(self._inner.values())
        export(self.checker)

    # ---- procedures --------------------------------------------------------------------------------------------------

    def _can_part(self, form: DefineGlobal) -> bool:
        cell, value = form.cell, form.value
        if type(value) is not Lambda or cell.assigned or not cell.sealed or len(value.clauses) != 1:
            return False
        clause = value.clauses[0]
        needed = any(self._needs(kind) for kind in self._entries(clause))
        return clause.rest is None and (needed or bool(self.checker.proving.where(clause)))

    def _erase(self, cell: Cell, value: Node) -> None:
        """The procedure that looks at nothing is not given proofs."""
        assert type(value) is Lambda
        params = value.clauses[0].params
        proofs = [
            param.annotation is not None and is_proof(param.annotation) and not param.assigned for param in params
        ]
        if any(proofs):
            self._proofs[cell] = proofs
            self._erased.update(param for param, is_one in zip(params, proofs, strict=True) if is_one)

    def _given(self, cell: Cell, args: Sequence[Any]) -> list[Any]:
        """What of arguments, or parameters, is left of those of a procedure."""
        proofs = self._proofs.get(cell)
        return list(args) if proofs is None else [a for a, is_one in zip(args, proofs, strict=True) if not is_one]

    def _entries(self, clause: Clause) -> list[Type]:
        """The types of arguments that a procedure must look at."""
        return self.checker.entries.get(id(clause), [])

    def _needs(self, kind: Type) -> bool:
        test = self.tests.test(kind, Variable("value"))
        return not (type(test) is Const and test.datum is True)

    def _parted(self, form: DefineGlobal) -> list[Node]:
        """A typed procedure as two."""
        value = form.value
        assert isinstance(value, Lambda)
        clause, cell = value.clauses[0], form.cell
        inner = self._inner[cell]
        kinds = self._entries(clause) or [ANY] * len(clause.params)
        looked = [Variable(p.name, p.place) for p in clause.params]
        asked = self._asked(cell.name, clause, looked, kinds)
        clause.body = self._changed(clause.body)
        params = [Variable(p.name, p.place) for p in clause.params]
        args = [
            self._guarded(kind, Local(None, new), self._takes(cell.name, kind, new, len(params)), None)
            for kind, new in zip(kinds, params, strict=True)
        ]
        body: Node = Call(None, Global(None, inner), self._given(cell, args))
        if asked:  # of values that are of their types already
            call = Call(None, Global(None, inner), self._given(cell, [Local(None, variable) for variable in looked]))
            body = Let(None, looked, args, Seq(None, [*asked, call]))
        kinds, clause.params = self._given(cell, kinds), self._given(cell, clause.params)
        outer = Lambda(
            value.place,
            [Clause(params, None, body)],
            value.name,
            value.source,
            value.doc,
        )
        fast = self._machine(form, value, kinds)
        return [*fast, DefineGlobal(form.place, inner, value), DefineGlobal(form.place, cell, outer)]

    def _machine(self, form: DefineGlobal, within: Lambda, kinds: list[Type]) -> list[Node]:
        """A typed procedure once more, for arguments that are machine numbers, where it is declared to take such.

        The other, which takes numbers that are differentiated and large integers too, hands on what it can.
        """
        clause = within.clauses[0]
        tests = [
            (question, p) for kind, p in zip(kinds, clause.params, strict=True) if (question := _question(kind))
        ]  # fmt: skip
        if not tests or any(p.assigned for p in clause.params) or not _is_short(within):
            return []
        cell = Cell(form.cell.library, form.cell.name + MACHINE, form.cell.place)
        self.unit.cells.append(cell)
        self.unit.private.add(cell)
        made = DefineGlobal(form.place, cell, copied(within))
        args: list[Node] = [Local(None, p) for p in clause.params]
        asked = self.tests.all_of(*(self.tests.call(question, Local(None, p)) for question, p in tests))
        clause.body = If(clause.body.place, asked, Call(clause.body.place, Global(None, cell), args), clause.body)
        return [made]

    def _takes(self, name: str | None, kind: Type, param: Variable, count: int) -> str:
        return f"{name or 'the procedure'} takes {kind_name(kind)} as {param.name}, but is given"

    def _look(self, node: Any, parent: Any) -> None:
        """Find the local procedures of which all uses are calls whose arguments are known to fit."""
        todo: list[tuple[Any, Any]] = [(node, parent)]
        while todo:
            node, parent = todo.pop()
            if type(node) is Local:
                fits = type(parent) is Call and parent.procedure is node and id(parent) in self.checker.called_so
                known = self._known_calls.get(node.variable, True)
                self._known_calls[node.variable] = known and fits and not node.variable.assigned
            todo += [(child, node) for child in children(node)]

    def _entry_checks(self, name: str | None, clause: Clause) -> Node:
        """The body of a procedure behind checks of its arguments."""
        checks: list[Node] = []
        for kind, param in zip(self._entries(clause), clause.params, strict=False):
            if not self._needs(kind):
                continue
            message = self._takes(name, kind, param, len(clause.params))
            if self._wraps(kind):
                param.assigned = True
                checks.append(SetLocal(None, param, self._guarded(kind, Local(None, param), message, None)))
            else:
                checks.append(
                    If(None, self.tests.test(kind, param), Const(None, UNSPECIFIED), self._raise(message, param, None))
                )
        checks += self._asked(name, clause, clause.params, self._entries(clause))
        return Seq(clause.body.place, [*checks, clause.body]) if checks else clause.body

    # ---- propositions ------------------------------------------------------------------------------------------------

    def _asked(self, name: str | None, clause: Clause, params: Sequence[Variable], kinds: Sequence[Type]) -> list[Node]:
        """Checks of what a procedure asks for of sizes, as far as they are those of vectors and integers."""
        lengths: dict[str, Node] = {}
        checks: list[Node] = []
        who = name or "the procedure"
        for kind, param in zip(kinds, params, strict=False):
            size = length_in(kind)
            if not isinstance(size, str) or not size.isidentifier():
                continue
            length = self.tests.call("vector-length", Local(None, param))
            if size in lengths:
                told = f"{who} takes vectors of one length {size}, but is given"
                same = self.tests.call("=", lengths[size], length)
                checks.append(If(None, same, Const(None, UNSPECIFIED), self._raise(told, param, None)))
            else:
                lengths[size] = length
        for where in self.checker.proving.where(clause):
            values = dict(lengths)
            values |= {other: Local(None, params[index]) for other, index in where.params}
            if any(other not in values for other in where.proposition.names):
                continue  # sizes of tensors: those are looked at by operations
            shown = params[where.subject or 0]
            for constraint in where.proposition.constraints:
                told = f"{who} asks for {where.proposition.text}, but is given"
                test = self._holds(constraint, values)
                checks.append(If(None, test, Const(None, UNSPECIFIED), self._raise(told, shown, None)))
        return checks

    def _holds(self, constraint: Constraint, values: dict[str, Node]) -> Node:
        call = self.tests.call
        terms = [call("*", Const(None, by), values[name]) for name, by in constraint.sum.factors]
        total = call("+", *terms, Const(None, constraint.sum.constant))
        if constraint.modulus is None:
            return call("<=", total, Const(None, 0))
        return call(
            "=", call("modulo", total, Const(None, constraint.modulus)) if constraint.modulus else total, Const(None, 0)
        )

    # ---- values ------------------------------------------------------------------------------------------------------

    def _raise(self, message: str, value: Variable, place: Place | None) -> Node:
        given = self.tests.call("list", Local(None, value))
        args: list[Node] = [
            Const(None, Symbol(KIND)), Const(None, False), Const(None, message), given,
        ]  # fmt: skip
        return Call(place, Global(place, self.fail), args)

    def _guarded(self, kind: Type, node: Node, message: str, place: Place | None) -> Node:
        """A value, looked at; a procedure wrapped, so that what it gives is looked at."""
        items = [part for part in kind.parts if type(part) is ValuesOf]
        if items or not self._needs(kind):
            return node
        variable = Variable("value", place)
        found: Node = Local(place, variable)
        if self._wraps(kind):
            found = If(None, self.tests.call("procedure?", found), self._wrapped(kind, variable, message, place), found)
        refused = Seq(place, [self._raise(message, variable, place), Local(None, variable)])
        return Let(place, [variable], [node], If(place, self.tests.test(kind, variable), found, refused))

    def _arrows(self, kind: Type) -> tuple[Arrow, ...]:
        found = [part for part in kind.parts if type(part) is Function]
        return found[0].arrows if len(found) == 1 else ()

    def _wraps(self, kind: Type) -> bool:
        """Whether a procedure of this type gives something that is to be looked at."""
        arrows = self._arrows(kind)
        return any(a.result is not ANY and a.result != VOID and not _is_free(a.result) for a in arrows)

    def _wrapped(self, kind: Type, given: Variable, message: str, place: Place | None) -> Node:
        clauses = []
        for arrow in self._arrows(kind):
            for count in range(len(arrow.params) - arrow.optional, len(arrow.params) + 1):
                params = [Variable(f"argument-{n + 1}", place) for n in range(count)]
                rest = Variable("others", place) if arrow.rest is not None and count == len(arrow.params) else None
                told = f"{message.rpartition(',')[0]}, which gives {kind_name(arrow.result)}, but one gave"
                args: list[Node] = [Local(None, p) for p in params]
                call: Node = Call(place, Local(None, given), args)
                if rest is not None:
                    call = self.tests.call("apply", Local(None, given), *args, Local(None, rest))
                clauses.append(Clause(params, rest, self._guarded(arrow.result, call, told, place)))
        return Lambda(place, clauses, "guarded")

    # ---- the walk ----------------------------------------------------------------------------------------------------

    def _changed(self, node: Node) -> Node:
        """A form with its checks."""
        check = self.checker.checks.get(id(node))
        kind = type(node)
        if kind is Call and is_proof_form(node):
            return Const(None, UNSPECIFIED)
        if isinstance(node, Local) and node.variable in self._erased:
            return Const(None, UNSPECIFIED)
        if isinstance(node, Call) and is_cast(node):
            node = self._changed(node.args[0])
        elif kind is Call:
            self._change_call(node)  # type: ignore[arg-type]
        elif kind is Lambda:
            self._change_lambda(node, None)  # type: ignore[arg-type]
        elif kind in (Let, Letrec):
            self._change_binding(node)  # type: ignore[arg-type]
        elif kind is If:
            node.test = self._changed(node.test)  # type: ignore[attr-defined]
            node.then = self._changed(node.then)  # type: ignore[attr-defined]
            node.otherwise = self._changed(node.otherwise)  # type: ignore[attr-defined]
        elif kind is Seq:
            node.items[:] = [self._changed(item) for item in node.items]  # type: ignore[attr-defined]
        elif kind in (SetLocal, SetGlobal, DefineGlobal):
            node.value = self._changed(node.value)  # type: ignore[attr-defined]
        if check is None:
            return node
        return self._guarded(check.kind, node, check.message, check.place)

    def _change_call(self, node: Call) -> None:
        callee = node.procedure
        if type(callee) is Global and id(node) in self.checker.called_so:
            inner = self._inner.get(callee.cell)
            if inner is not None:
                node.procedure = Global(callee.place, inner)
                node.args = self._given(callee.cell, node.args)
        elif type(callee) is Global and id(node) in self._within:
            node.procedure = Global(callee.place, self.tests.primitive(f"%{callee.cell.name}"))
        else:
            node.procedure = self._changed(callee)
        node.args[:] = [self._changed(arg) for arg in node.args]

    def _change_lambda(self, node: Lambda, variable: Variable | None) -> None:
        known = variable is not None and self._known_calls.get(variable, False)
        for clause in node.clauses:
            clause.body = self._changed(clause.body)
            if not known:
                clause.body = self._entry_checks(node.name, clause)

    def _change_binding(self, node: Let | Letrec) -> None:
        for index, value in enumerate(node.values):
            if type(value) is Lambda and id(value) not in self.checker.checks:
                self._change_lambda(value, node.variables[index])
            else:
                node.values[index] = self._changed(value)
        node.body = self._changed(node.body)


def _question(kind: Type) -> str | None:
    """What asks whether a number of a type is one of the machine's; None of what is no number."""
    if kind.parts or not kind.mask:
        return None
    return "%flonum?" if kind.mask == BIT["float"] else "%fixnum?" if not kind.mask & ~INTEGERS else None


def _is_short(code: Node) -> bool:
    count, todo = 0, [code]
    while todo and count <= LONGEST:
        count += 1
        todo += children(todo.pop())
    return count <= LONGEST


def _is_free(kind: Type) -> bool:
    """Whether nothing can be asked of a type."""
    return any(type(part) is TypeVariable for part in kind.parts) or not cover(kind)
