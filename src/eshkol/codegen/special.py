"""Procedures that take procedures, written out for those that are given to them.

Comes in: the simplified definition of a procedure such as

    (define (fold f seed items) (if (null? items) seed (fold f (f (car items) seed) (cdr items))))

and a call of it with a lambda, a primitive or a procedure of the same unit for a parameter that is only called and
handed on (`f`). Goes out, in place of the call, a copy of the procedure without that parameter: a loop in which the
lambda stands where it is called, so that no closure is made and nothing unknown is called. Only what is short is
copied, and a lambda never is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Set
from dataclasses import dataclass, field

from eshkol.codegen.nodes import Escape, Fix, LetValues, Prim
from eshkol.lang import core
from eshkol.lang.core import Call, Cell, Clause, Global, If, Lambda, Let, Local, Node, Seq, SetLocal, Variable

LONGEST = 60  # core forms of a procedure that is copied
Primitive = Callable[[Call, Global, list[Node]], Node]  # a call of a primitive, simplified


@dataclass
class _Uses:
    """How a parameter is used: the numbers of arguments that it is called with, and whether in any other way."""

    counts: list[int] = field(default_factory=list)
    otherwise: bool = False


@dataclass(frozen=True)
class Template:
    """A procedure that may be copied, and which of its parameters are only called and handed on: with how many
    arguments each time."""

    cell: Cell
    clause: Clause
    called: dict[int, list[int]]

    @classmethod
    def of(cls, cell: Cell, code: Lambda, children: Callable[[Node], Iterable[Node]]) -> Template | None:
        """The template that a definition is, if it is one."""
        if len(code.clauses) != 1 or code.clauses[0].rest is not None or not cell.sealed or cell.assigned:
            return None
        clause = code.clauses[0]
        uses = {variable: _Uses() for variable in clause.params}
        stack: list[Node] = [clause.body]
        size = 0
        while stack:
            node = stack.pop()
            size += 1
            if size > LONGEST:
                return None
            match node:
                case Global(cell=other) if other is cell:
                    return None  # its value is needed
                case Call(procedure=Global(cell=other), args=args) if other is cell:
                    if len(args) != len(clause.params):
                        return None
                    for variable, arg in zip(clause.params, args, strict=True):
                        if not (isinstance(arg, Local) and arg.variable is variable):
                            uses[variable].otherwise = True
                            stack.append(arg)
                case Call(procedure=Local(variable=variable), args=args) if variable in uses:
                    uses[variable].counts.append(len(args))
                    stack += args
                case Local(variable=variable) if variable in uses:
                    uses[variable].otherwise = True
                case _:
                    stack += children(node)
        called = {
            i: uses[v].counts
            for i, v in enumerate(clause.params)
            if uses[v].counts and not uses[v].otherwise and not v.assigned
        }
        return cls(cell, clause, called) if called else None

    def given(self, args: list[Node], procedures: Set[Cell]) -> dict[int, Lambda | Global]:
        """The arguments of a call for which a copy is worth it, by their places."""
        if len(args) != len(self.clause.params):
            return {}
        found: dict[int, Lambda | Global] = {}
        for i, counts in self.called.items():
            match args[i]:
                case Lambda(clauses=[Clause(params=params, rest=None)]) as code if {*counts} == {len(params)}:
                    found[i] = code
                case Global(cell=cell) as procedure if cell.primitive or cell in procedures:
                    found[i] = procedure
        return found

    def written(self, node: Call, args: list[Node], procedures: Set[Cell], primitive: Primitive) -> Node | None:
        """What stands in place of a call with these arguments, if a copy is worth it.

        `procedures` are the cells that are known to hold one.
        """
        given = self.given(args, procedures)
        if not given:
            return None
        loop = Variable(self.cell.name, node.place)
        copy = _Copy(self, loop, given, primitive)
        params = [copy.fresh(v) for i, v in enumerate(self.clause.params) if i not in given]
        code = Lambda(node.place, [Clause(params, None, copy.of(self.clause.body))], self.cell.name)
        others = [arg for i, arg in enumerate(args) if i not in given]
        whole: Node = Fix(node.place, [loop], [code], Call(node.place, Local(node.place, loop), others))
        for variable, function in copy.shared:
            whole = Fix(node.place, [variable], [function], whole)
        return whole


class _Copy:
    """Copies expressions of a template: every variable that they bind is a new one."""

    def __init__(
        self,
        template: Template,
        loop: Variable,
        given: dict[int, Lambda | Global],
        primitive: Primitive,
    ) -> None:
        self.template, self.loop, self.primitive = template, loop, primitive
        self.places = {*given}
        self.given = {template.clause.params[i]: (function, len(template.called[i])) for i, function in given.items()}
        self.names = {  # of lambdas that are called in several places
            v: Variable(v.name, v.place) for v, (f, calls) in self.given.items() if isinstance(f, Lambda) and calls > 1
        }
        self.variables: dict[Variable, Variable] = {}

    @property
    def shared(self) -> list[tuple[Variable, Lambda]]:
        return [(name, f) for v, name in self.names.items() if isinstance(f := self.given[v][0], Lambda)]

    def fresh(self, variable: Variable) -> Variable:
        made = Variable(variable.name, variable.place, variable.assigned, variable.annotation, variable.early)
        self.variables[variable] = made
        return made

    def all(self, nodes: list[Node]) -> list[Node]:
        return [self.of(node) for node in nodes]

    def of(self, node: Node) -> Node:
        place, of = node.place, self.of
        match node:
            case Local(variable=variable):
                return Local(place, self.variables.get(variable, variable))
            case SetLocal(variable=variable, value=value):
                return SetLocal(place, self.variables.get(variable, variable), of(value))
            case core.SetGlobal(cell=cell, value=value):
                return core.SetGlobal(place, cell, of(value))
            case If(test=test, then=then, otherwise=otherwise):
                return If(place, of(test), of(then), of(otherwise))
            case Seq(items=items):
                return Seq(place, self.all(items))
            case Lambda():
                return self._lambda(node)
            case Let(variables=variables, values=values, body=body):
                made = self.all(values)
                return Let(place, [self.fresh(v) for v in variables], made, of(body))
            case LetValues(variables=variables, rest=rest, value=value, body=body):
                several = of(value)
                names = [self.fresh(v) for v in variables]
                return LetValues(place, names, None if rest is None else self.fresh(rest), several, of(body))
            case Fix(variables=variables, lambdas=lambdas, body=body):
                names = [self.fresh(v) for v in variables]
                return Fix(place, names, [self._lambda(code) for code in lambdas], of(body))
            case Escape(variable=variable, body=body, procedure=procedure):
                return Escape(place, self.fresh(variable), of(body), procedure)
            case Prim(name=name, args=args):
                return Prim(place, name, self.all(args))
            case Call():
                return self._call(node)
        return node

    def _lambda(self, code: Lambda) -> Lambda:
        clauses = []
        for clause in code.clauses:
            params = [self.fresh(v) for v in clause.params]
            rest = None if clause.rest is None else self.fresh(clause.rest)
            clauses.append(Clause(params, rest, self.of(clause.body), clause.returns))
        return Lambda(code.place, clauses, code.name, code.source, code.doc)

    def _call(self, node: Call) -> Node:
        procedure, args = node.procedure, node.args
        if isinstance(procedure, Global) and procedure.cell is self.template.cell:
            others = [arg for i, arg in enumerate(args) if i not in self.places]
            return Call(node.place, Local(procedure.place, self.loop), self.all(others))
        if isinstance(procedure, Local) and procedure.variable in self.given:
            function, calls = self.given[procedure.variable]
            if isinstance(function, Global):
                known = Global(procedure.place, function.cell)
                if not function.cell.primitive:
                    return Call(node.place, known, self.all(args))
                return self.primitive(Call(node.place, known, []), known, self.all(args))
            if calls > 1:
                return Call(node.place, Local(procedure.place, self.names[procedure.variable]), self.all(args))
            clause = function.clauses[0]
            values = self.all(args)
            return Let(node.place, clause.params, values, clause.body) if values else clause.body
        return Call(node.place, self.of(procedure), self.all(args))
