"""Core forms to simpler ones: calls of known lambdas become bindings, bindings of what is as cheap as a variable go,
recursive bindings are sorted into procedures and plain values, calls of primitives are named as such.

Comes in: core forms of a unit. Goes out: core forms without Letrec, with Fix, Prim and LetValues; every Lambda that is
bound to a variable stands in a Fix. A lambda is moved to its call only where that is its one use, so nothing is
written twice but short procedures that take procedures (special.py); variables are unique objects, so nothing is ever
captured. To simplify again what is simple changes nothing.
"""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Callable
from functools import reduce
from typing import ClassVar

from eshkol.codegen import PRIMITIVES
from eshkol.codegen.arithmetic import COMPARISONS
from eshkol.codegen.escapes import CONTROL, escape
from eshkol.codegen.known import known
from eshkol.codegen.nodes import Escape, Fix, LetValues, Prim, children
from eshkol.codegen.primitives import PrimitiveTable
from eshkol.codegen.special import Template
from eshkol.lang import core
from eshkol.lang.core import Call, Const, Global, If, Lambda, Let, Letrec, Local, Node, Seq, SetLocal, Variable
from eshkol.lang.datum import UNDEFINED

FOLDED = {"+": operator.add, "-": operator.sub, "*": operator.mul}  # of exact integers, exact
FOLDED_BELOW = 1 << 60  # what is a fixnum in any case
MANY_ARGUMENTS = 64  # a call with more of them makes a list: LLVM takes its time with many values at once


class Simplifier:
    """Simplifies the forms of one unit; what it knows of global variables grows from form to form."""

    def __init__(self, table: PrimitiveTable) -> None:
        self.table = table
        self.uses: Counter[Variable] = Counter()
        self.calls: Counter[Variable] = Counter()  # of those, where it is the procedure that is called
        self.known: dict[Variable, Node] = {}
        self.constants: dict[core.Cell, Const] = {}
        self.short: dict[core.Cell, core.Clause] = {}  # procedures that only call a primitive
        self.procedures: set[core.Cell] = set()  # cells that surely hold one: defined before, or being defined
        self.templates: dict[core.Cell, Template] = {}  # procedures that are copied for those that they are given

    def form(self, node: Node) -> Node:
        """A form at top level."""
        self._count(node)
        match node:
            case core.DefineGlobal(cell=cell, value=Lambda()) if cell.sealed and not cell.assigned:
                self.procedures.add(cell)
        simple = self.simplify(node)
        if isinstance(simple, core.DefineGlobal) and isinstance(simple.value, Const):
            cell = simple.cell
            if cell.sealed and not cell.assigned and isinstance(simple.value.datum, bool | int | float):
                self.constants[cell] = simple.value
        if isinstance(simple, core.DefineGlobal) and isinstance(simple.value, Lambda):
            clause = _short_clause(simple.value)
            if clause is not None and simple.cell.sealed and not simple.cell.assigned:
                self.short[simple.cell] = clause
            elif simple.cell.library == CONTROL:
                pass  # what changes handlers around a call must stay one
            elif (template := Template.of(simple.cell, simple.value, children)) is not None:
                self.templates[simple.cell] = template
        return simple

    def _count(self, root: Node) -> None:
        stack = [root]
        while stack:
            node = stack.pop()
            kind = type(node)
            if kind is Call:  # by far the most frequent, with what has no parts
                assert isinstance(node, Call)
                if isinstance(node.procedure, Local):
                    self.calls[node.procedure.variable] += 1
                stack.append(node.procedure)
                stack += node.args
            elif kind is Local:
                assert isinstance(node, Local)
                self.uses[node.variable] += 1
            elif kind is not Const and kind is not Global:
                stack.extend(children(node))

    def simplify(self, node: Node) -> Node:
        return self._RULES[type(node)](self, node)

    def _same(self, node: Node) -> Node:
        return node

    def _local(self, node: Local) -> Node:
        return self.known.get(node.variable, node)

    def _global(self, node: Global) -> Node:
        return self.constants.get(node.cell, node)

    def _set(self, node: core.SetLocal | core.SetGlobal | core.DefineGlobal) -> Node:
        node.value = self.simplify(node.value)
        return node

    def _if(self, node: If) -> Node:
        return self._chosen(node, self.simplify(node.test))

    def _chosen(self, node: If, test: Node) -> Node:
        """A choice by a test that is simple."""
        while isinstance(test, Prim) and test.name == "not":
            test = test.args[0]
            node.then, node.otherwise = node.otherwise, node.then
        if isinstance(test, Const):
            return self.simplify(node.then if test.datum is not False else node.otherwise)
        node.test, node.then, node.otherwise = test, self.simplify(node.then), self.simplify(node.otherwise)
        return node

    def _seq(self, node: Seq) -> Node:
        *effects, last = [self.simplify(item) for item in node.items]
        return sequence([*(e for e in effects if not self.pure(e)), last])

    def _lambda(self, node: Lambda) -> Node:
        for clause in node.clauses:
            clause.body = self.simplify(clause.body)
        return node

    def pure(self, node: Node) -> bool:
        """Whether an expression does nothing but give its value, and surely gives one."""
        match node:
            case Const() | Lambda() | core.SyntaxConst():
                return True
            case Local(variable=variable):
                return not variable.early
            case Global(cell=cell):
                return cell.primitive
        return False

    def _let(self, node: Let) -> Node:
        either, first = first_of_two(node), None
        if either is not None and self.uses[node.variables[0]] == 2:
            first = self.simplify(either[0])
            if self._is_truth(first):
                return self._chosen(If(node.place, first, Const(node.place, True), either[1]), first)
        variables, values, fixed, effects = [], [], [], []
        for variable, value in zip(node.variables, node.values, strict=True):
            if not variable.assigned and self._called_once(variable, value):
                self.known[variable] = value  # simplified where it is called
                continue
            simple = self.simplify(value) if first is None else first
            if variable.assigned:
                variables.append(variable)
                values.append(simple)
            elif not self.uses[variable]:
                if not self.pure(simple):
                    effects.append(simple)
            elif self._replaces(variable, simple):
                self.known[variable] = simple
            elif isinstance(simple, Lambda):
                fixed.append((variable, simple))
            else:
                variables.append(variable)
                values.append(simple)
        body = self.simplify(node.body)
        for variable, simple in fixed:
            body = Fix(node.place, [variable], [simple], body)
        if variables:
            body = Let(node.place, variables, values, body)
        return sequence([*effects, body])

    def _is_truth(self, node: Node) -> bool:
        """Whether an expression says whether something is so: its value is #t or #f, or a tensor, which is neither."""
        match node:
            case Const(datum=found):
                return isinstance(found, bool)
            case Prim(name=name, args=args):
                return name in COMPARISONS or self.table.test(name, len(args)) is not None
            case If(then=then, otherwise=otherwise):
                return self._is_truth(then) and self._is_truth(otherwise)
            case Seq(items=items):
                return self._is_truth(items[-1])
            case Let(body=body) | Fix(body=body) | LetValues(body=body):
                return self._is_truth(body)
        return False

    def _replaces(self, variable: Variable, value: Node) -> bool:
        """Whether a variable's uses may be its value itself."""
        match value:
            case Const():
                return True
            case Local(variable=other):
                return not other.assigned and not other.early
            case Global(cell=cell):
                return cell.primitive
        return False

    def _called_once(self, variable: Variable, value: Node) -> bool:
        once = self.uses[variable] == self.calls[variable] == 1
        return once and isinstance(value, Lambda) and len(value.clauses) == 1

    def _call(self, node: Call) -> Node:
        procedure = node.procedure if isinstance(node.procedure, Lambda) else self.simplify(node.procedure)
        if isinstance(procedure, Lambda):
            clause = next((c for c in procedure.clauses if _takes(c, len(node.args))), None)
            if clause is not None:
                return self._bound(node, clause)
            procedure = self.simplify(procedure)
        args = [self.simplify(arg) for arg in node.args]
        if len(args) > MANY_ARGUMENTS and not (isinstance(procedure, Global) and procedure.cell.name == "list"):
            apply = Global(node.place, core.Cell(PRIMITIVES, "apply", primitive=True))
            return Call(node.place, apply, [procedure, Prim(node.place, "list", args)])
        if isinstance(procedure, Global) and procedure.cell.primitive:
            return self._primitive(node, procedure, args)
        if isinstance(procedure, Global) and procedure.cell in self.short:
            clause = self.short[procedure.cell]
            if len(clause.params) == len(args):
                return _called_short(node, clause, args)
        if isinstance(procedure, Global):
            template = self.templates.get(procedure.cell) or known(procedure, len(args))
            if template is not None:
                written = template.written(node, args, self.procedures, self._primitive)
                if written is not None:
                    return written
        if (found := escape(node, procedure, args)) is not None:
            return found
        node.procedure, node.args = procedure, args
        return node

    def _bound(self, node: Call, clause: core.Clause) -> Node:
        """A call of a lambda as bindings of its parameters; the lambda is used nowhere else."""
        params, args = list(clause.params), list(node.args)
        if clause.rest is not None:
            rest = args[len(params) :]
            args = [*args[: len(params)], Prim(node.place, "list", [self.simplify(arg) for arg in rest])]
            params.append(clause.rest)
        return self._let(Let(node.place, params, args, clause.body)) if params else self.simplify(clause.body)

    def _primitive(self, node: Call, procedure: Global, args: list[Node]) -> Node:
        name = procedure.cell.name
        if name == "call-with-values" and len(args) == 2:
            found = self._values(node, args[0], args[1])
            if found is not None:
                return found
        row = self.table.rows.get(name)
        if row is None or row.is_entry or not row.takes(len(args)):
            node.procedure, node.args = procedure, args
            return node
        if name == "values" and len(args) == 1:
            return args[0]
        folded = _folded(name, args)
        return Prim(node.place, name, args) if folded is None else Const(node.place, folded)

    def _values(self, node: Call, producer: Node, consumer: Node) -> Node | None:
        if not isinstance(consumer, Lambda) or len(consumer.clauses) != 1:
            return None
        clause = consumer.clauses[0]
        if isinstance(producer, Lambda) and len(producer.clauses) == 1 and _takes(producer.clauses[0], 0):
            made = producer.clauses[0].body if producer.clauses[0].rest is None else Call(node.place, producer, [])
        else:
            made = Call(node.place, producer, [])
        return LetValues(node.place, clause.params, clause.rest, made, clause.body)

    def _let_values(self, node: LetValues) -> Node:
        node.value, node.body = self.simplify(node.value), self.simplify(node.body)
        return node

    def _escape(self, node: Escape) -> Node:
        node.body = self.simplify(node.body)
        return node

    def _again(self, node: Prim) -> Node:
        node.args = [self.simplify(arg) for arg in node.args]
        return node

    def _fix(self, node: Fix) -> Node:
        for code in node.lambdas:
            self._lambda(code)
        node.body = self.simplify(node.body)
        return node

    def _letrec(self, node: Letrec) -> Node:
        body: Callable[[], Node] = lambda: self.simplify(node.body)
        return self._groups(node, _sorted_groups(node), body)

    def _groups(self, node: Letrec, groups: list[list[int]], body: Callable[[], Node]) -> Node:
        """The groups of bindings around the body, the first outermost."""
        made: list[Callable[[Node], Node]] = []
        for group in groups:
            variables = [node.variables[i] for i in group]
            values = [node.values[i] for i in group]
            plain = [
                v for v, value in zip(variables, values, strict=True) if v.assigned or not isinstance(value, Lambda)
            ]
            if not plain:
                made.append(self._fixed(node, variables, [self.simplify(value) for value in values]))
            elif len(group) == 1 and not _refers(values[0], variables[0]):
                made.append(self._plain(node, variables[0], values[0]))
            else:
                made.append(self._tangled(node, variables, values))
        result = body()
        for wrap in reversed(made):
            result = wrap(result)
        return result

    def _fixed(self, node: Letrec, variables: list[Variable], lambdas: list[Node]) -> Callable[[Node], Node]:
        used = [(v, f) for v, f in zip(variables, lambdas, strict=True) if isinstance(f, Lambda)]
        return lambda body: Fix(node.place, [v for v, _ in used], [f for _, f in used], body)

    def _plain(self, node: Letrec, variable: Variable, value: Node) -> Callable[[Node], Node]:
        simple = self.simplify(value)
        if not variable.assigned and self._replaces(variable, simple):
            self.known[variable] = simple
            return lambda body: body
        return lambda body: Let(node.place, [variable], [simple], body)

    def _tangled(self, node: Letrec, variables: list[Variable], values: list[Node]) -> Callable[[Node], Node]:
        """Values that refer to one another and are not all procedures: set one after the other, checked when used."""
        late = [(v, f) for v, f in zip(variables, values, strict=True) if v.assigned or not isinstance(f, Lambda)]
        for variable, _ in late:
            variable.assigned = variable.early = True
        lambdas = [(v, self.simplify(f)) for v, f in zip(variables, values, strict=True) if not v.early]
        sets: list[Node] = [SetLocal(value.place, variable, self.simplify(value)) for variable, value in late]

        def wrap(body: Node) -> Node:
            inside: Node = sequence([*sets, body])
            if lambdas:
                fixed = [f for _, f in lambdas if isinstance(f, Lambda)]
                inside = Fix(node.place, [v for v, _ in lambdas], fixed, inside)
            return Let(node.place, [v for v, _ in late], [Const(node.place, UNDEFINED) for _ in late], inside)

        return wrap

    _RULES: ClassVar[dict[type, Callable[..., Node]]] = {
        Const: _same,
        core.SyntaxConst: _same,
        Local: _local,
        Global: _global,
        SetLocal: _set,
        core.SetGlobal: _set,
        core.DefineGlobal: _set,
        If: _if,
        Seq: _seq,
        Lambda: _lambda,
        Let: _let,
        Letrec: _letrec,
        Call: _call,
        Prim: _again,
        Fix: _fix,
        LetValues: _let_values,
        Escape: _escape,
    }


def _folded(name: str, args: list[Node]) -> int | None:
    """What an operator gives for exact integers that stand there: computed once, here, if it is no large one."""
    operation = FOLDED.get(name)
    if operation is None or not args:
        return None
    numbers = []
    for arg in args:
        if not isinstance(arg, Const) or type(arg.datum) is not int or abs(arg.datum) >= FOLDED_BELOW:
            return None
        numbers.append(arg.datum)
    found = reduce(operation, numbers) if len(numbers) > 1 or name != "-" else -numbers[0]
    return found if abs(found) < FOLDED_BELOW else None


def first_of_two(node: Let) -> tuple[Node, Node] | None:
    """The expressions of (let ((t first)) (if t t second)), which is what `or` is."""
    match node:
        case Let(variables=[value], values=[first], body=If(test=Local(variable=a), then=Local(variable=b)) as chosen):
            return (first, chosen.otherwise) if a is value and b is value and not value.assigned else None
    return None


def sequence(items: list[Node]) -> Node:
    """One expression after the other, without sequences inside sequences."""
    flat: list[Node] = []
    for item in items:
        flat.extend(item.items if isinstance(item, Seq) else [item])
    return flat[0] if len(flat) == 1 else Seq(flat[0].place, flat)


def _short_clause(code: Lambda) -> core.Clause | None:
    """The clause of a procedure whose body is a call of a primitive with parameters, constants and global variables."""
    if len(code.clauses) != 1 or code.clauses[0].rest is not None or any(v.assigned for v in code.clauses[0].params):
        return None
    body = code.clauses[0].body
    if isinstance(body, Prim) and all(isinstance(arg, Local | Const | Global) for arg in body.args):
        return code.clauses[0]
    return None


def _called_short(node: Call, clause: core.Clause, args: list[Node]) -> Node:
    """A call of such a procedure: the primitive itself.

    What goes wrong in it is put down to where it is written; or to the call, where no one wrote it: in accessors.
    """
    body = clause.body
    assert isinstance(body, Prim)
    fresh = {variable: Variable(variable.name, variable.place) for variable in clause.params}
    given: list[Node] = [Local(node.place, fresh[arg.variable]) if isinstance(arg, Local) else arg for arg in body.args]
    place = node.place if body.name.startswith("%") else body.place
    return Let(node.place, list(fresh.values()), args, Prim(place, body.name, given))


def _takes(clause: core.Clause, count: int) -> bool:
    return count == len(clause.params) or (clause.rest is not None and count > len(clause.params))


def _variables_in(node: Node, wanted: set[Variable]) -> set[Variable]:
    found: set[Variable] = set()
    stack = [node]
    while stack:
        inner = stack.pop()
        if isinstance(inner, Local | SetLocal) and inner.variable in wanted:
            found.add(inner.variable)
        stack.extend(children(inner))
    return found


def _refers(value: Node, variable: Variable) -> bool:
    return bool(_variables_in(value, {variable}))


def _sorted_groups(node: Letrec) -> list[list[int]]:
    """Bindings that need one another, in an order in which each group needs only those before it.

    What is not a procedure also waits for those before it that are not: letrec* computes values from left to right.
    """
    index = {variable: i for i, variable in enumerate(node.variables)}
    wanted = set(node.variables)
    needs: list[list[int]] = []
    before: int | None = None
    for i, (variable, value) in enumerate(zip(node.variables, node.values, strict=True)):
        found = sorted(index[v] for v in _variables_in(value, wanted))
        if variable.assigned or not isinstance(value, Lambda):
            found += [] if before is None else [before]
            before = i
        needs.append(found)
    return strong_components(needs)


def strong_components(needs: list[list[int]]) -> list[list[int]]:
    """Groups of things that need one another (Tarjan), each after all that it needs."""
    order: dict[int, int] = {}
    low: dict[int, int] = {}
    path: list[int] = []
    on_path: set[int] = set()
    groups: list[list[int]] = []
    for root in range(len(needs)):
        if root in order:
            continue
        work = [(root, iter(needs[root]))]
        order[root] = low[root] = len(order)
        path.append(root)
        on_path.add(root)
        while work:
            thing, rest = work[-1]
            for other in rest:
                if other not in order:
                    order[other] = low[other] = len(order)
                    path.append(other)
                    on_path.add(other)
                    work.append((other, iter(needs[other])))
                    break
                if other in on_path:
                    low[thing] = min(low[thing], order[other])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[thing])
                if low[thing] == order[thing]:
                    group = []
                    while True:
                        member = path.pop()
                        on_path.discard(member)
                        group.append(member)
                        if member == thing:
                            break
                    groups.append(sorted(group))
    return groups
