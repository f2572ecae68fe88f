"""What is known of integers at one point of a program, and what follows from it.

Comes in: tests, variables and calls as core forms, of a checker. Goes out: whether what procedures ask of sizes and
indices holds for certain; errors where it certainly does not. Variables that nothing assigns and that hold integers
are unknowns, and so are sizes in types; `inequalities.py` decides. What is neither certain nor excluded is looked at
when the program runs (`borders.py`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Protocol

from eshkol.errors import BadType, LanguageError
from eshkol.lang.core import Call, Clause, Const, Global, If, Local, Node, Variable
from eshkol.lang.report import bad
from eshkol.lang.source import Place
from eshkol.types.inequalities import (
    Constraint,
    Linear,
    at_most,
    entails,
    equal,
    excludes,
    less,
    negations,
    satisfiable,
)
from eshkol.types.kinds import ANY, INTEGERS, NATURALS, Arrow, Type, VectorOf, shown
from eshkol.types.propositions import Where, braces_in, is_braces, linear, read_proposition
from eshkol.types.sizes import UNKNOWN
from eshkol.types.standard import is_standard

COMPARED = {"<": less, "<=": at_most, "=": equal}
ONE, ZERO = Linear((), 1), Linear((), 0)
MOST_FACTS = 40


class Asking(Protocol):
    """A checker, as far as facts about integers are concerned."""

    known: dict[Variable, Type]
    kinds: dict[Variable, Type]

    def synth(self, node: Node) -> Type: ...
    def refuse(self, error: LanguageError, declared: bool) -> None: ...


class Proving:
    """Facts about integers, and questions."""

    def __init__(self, checker: Asking) -> None:
        self.checker = checker
        self.facts: list[Constraint] = []
        self.wheres: dict[int, list[Where]] = {}  # of clauses, by identity
        self._variables: dict[str, Variable] = {}  # by the names of unknowns
        self._terms: dict[Variable, Linear] = {}  # of variables that are bound to sums

    # ---- procedures --------------------------------------------------------------------------------------------------

    def where(self, clause: Clause) -> tuple[Where, ...]:
        """What a procedure's annotations say about its arguments."""
        if all(param.annotation is None or not _may_say(param.annotation) for param in clause.params):
            return ()
        found = self.wheres.get(id(clause))
        if found is None:
            found = self.wheres[id(clause)] = []
            places = {param.name: index for index, param in enumerate(clause.params)}
            for index, param in enumerate(clause.params):
                for datum in braces_in(param.annotation):
                    try:
                        proposition = read_proposition(datum, param.place)
                    except LanguageError:
                        continue  # whoever reads the type says so
                    unnamed = is_braces(param.annotation) and param.name not in proposition.names
                    own = {proposition.subject: index} if unnamed else {}
                    known = {name: (places | own)[name] for name in proposition.names if name in (places | own)}
                    about = index if is_braces(param.annotation) else None
                    found.append(Where(proposition, tuple(known.items()), about, param.place))
        return tuple(found)

    def enter(self, clause: Clause) -> list[Constraint]:
        """Within a procedure, what it asks for holds. Gives what was known outside."""
        before = self.facts
        if before and any(
            param.annotation is not None for param in clause.params
        ):  # sizes have names of their own here
            self.facts = [c for c in before if all("@" in name for name, _ in c.sum.factors)]
        for where in self.where(clause):
            sums = {name: Linear(((self.name_of(clause.params[index]), 1),)) for name, index in where.params}
            self.facts = [*self.facts, *(_put(c, sums) for c in where.proposition.constraints)]
        return before

    def name_of(self, variable: Variable) -> str:
        name = f"{variable.name}@{id(variable)}"
        self._variables[name] = variable
        return name

    # ---- sums --------------------------------------------------------------------------------------------------------

    def bind(self, variable: Variable, value: Node) -> None:
        """A variable that nothing assigns gets its value."""
        if not variable.assigned and type(value) in (Call, Local, Const):
            term = self.term(value)
            if term is not None:
                self._terms[variable] = term

    def term(self, node: Node) -> Linear | None:
        """What an integer is, as a sum of unknowns; None where it is not known to be one."""
        if type(node) is Const:
            datum = node.datum
            return Linear((), datum) if isinstance(datum, int) and not isinstance(datum, bool) else None
        if type(node) is Local:
            variable = node.variable
            if variable.assigned:
                return None
            bound = self._terms.get(variable)
            if bound is not None:
                return bound
            kind = self._kind(variable)
            if kind.parts or not kind.mask or kind.mask & ~INTEGERS:
                return None
            return Linear(((self.name_of(variable), 1),))
        if type(node) is Call and type(node.procedure) is Global and is_standard(node.procedure.cell):
            return self._called(node.procedure.cell.name, node.args)
        return None

    def _kind(self, variable: Variable) -> Type:
        known = self.checker.known.get(variable)
        return known if known is not None else self.checker.kinds.get(variable, ANY)

    def _called(self, name: str, args: Sequence[Node]) -> Linear | None:
        if name == "vector-length" and len(args) == 1:
            return self.length(args[0])
        if name not in ("+", "-", "*", "1+", "-1+") or not args:
            return None
        terms = [self.term(arg) for arg in args]
        if any(term is None for term in terms):
            return None
        known = [term for term in terms if term is not None]
        if name in ("1+", "-1+"):
            return known[0].plus(ONE, 1 if name == "1+" else -1)
        total = known[0]
        if name == "-" and len(known) == 1:
            return total.times(-1)
        for term in known[1:]:
            if name == "*":
                if total.factors and term.factors:
                    return None
                total = term.times(total.constant) if not total.factors else total.times(term.constant)
            else:
                total = total.plus(term, 1 if name == "+" else -1)
        return total

    def length(self, node: Node) -> Linear | None:
        """How long a vector is, by its type; of a variable that nothing assigns it is some number."""
        if type(node) is not Local or node.variable.assigned:
            return None
        kind = self._kind(node.variable)
        size = length_in(kind)
        if size is not None and size != UNKNOWN:
            return linear(size)
        return Linear(((f"length {self.name_of(node.variable)}", 1),))

    # ---- tests -------------------------------------------------------------------------------------------------------

    def learnt(self, test: Node) -> tuple[list[Constraint], list[Constraint]]:
        """What a test says where it holds, and where it does not."""
        if type(test) is If:
            first, then = self.learnt(test.test), self.learnt(test.then)
            if type(test.otherwise) is Const and test.otherwise.datum is False:
                return first[0] + then[0], []
            if type(test.then) is Const and test.then.datum is True:
                return [], first[1] + self.learnt(test.otherwise)[1]
            return [], []
        if type(test) is not Call or type(test.procedure) is not Global or not is_standard(test.procedure.cell):
            return [], []
        name, args = test.procedure.cell.name, test.args
        if name == "not" and len(args) == 1:
            holds, fails = self.learnt(args[0])
            return fails, holds
        if name in ("zero?", "positive?", "negative?") and len(args) == 1:
            term = self.term(args[0])
            if term is None:
                return [], []
            found = {"zero?": equal(term, ZERO), "positive?": less(ZERO, term), "negative?": less(term, ZERO)}[name]
            return self._both([found])
        if name not in ("<", "<=", ">", ">=", "="):
            return [], []
        terms = [self.term(arg) for arg in args]
        if any(term is None for term in terms):
            return [], []
        known = [term for term in terms if term is not None]
        if name in (">", ">="):
            known.reverse()
        order = COMPARED[{">": "<", ">=": "<="}.get(name, name)]
        return self._both([order(a, b) for a, b in pairwise(known)])

    def _both(self, holds: list[Constraint]) -> tuple[list[Constraint], list[Constraint]]:
        ways = negations(holds[0]) if len(holds) == 1 else []
        return holds, ways[0] if len(ways) == 1 else []

    def learn(self, constraints: list[Constraint]) -> None:
        if constraints and len(self.facts) < MOST_FACTS:
            self.facts = self.facts + constraints

    # ---- questions ---------------------------------------------------------------------------------------------------

    def _known(self, goals: Sequence[Constraint]) -> list[Constraint]:
        """The facts, and that sizes, lengths and naturals among the unknowns are not negative."""
        names = dict.fromkeys(name for c in (*self.facts, *goals) for name, _ in c.sum.factors)
        positive = [name for name in names if "@" not in name or name.startswith("length ") or self._is_natural(name)]
        return [*self.facts, *(at_most(ZERO, Linear(((name, 1),))) for name in positive)]

    def _is_natural(self, name: str) -> bool:
        variable = self._variables.get(name)
        kind = ANY if variable is None else self._kind(variable)
        return not kind.parts and bool(kind.mask) and not kind.mask & ~NATURALS

    def asked(self, node: Call, arrow: Arrow, sizes: Mapping[str, int | str], name: str) -> bool:
        """Whether what a procedure asks for is certain in a call; an error where it is excluded."""
        certain = True
        for where in arrow.where:
            terms: dict[str, Linear] = {}
            params = dict(where.params)
            for other in where.proposition.names:
                if other in params:
                    term = self.term(node.args[params[other]]) if params[other] < len(node.args) else None
                else:
                    size = sizes.get(other, UNKNOWN)
                    term = None if size == UNKNOWN else linear(size)
                if term is not None:
                    terms[other] = term
            if len(terms) < len(where.proposition.names):
                certain = False
                continue
            goals = [_put(c, terms) for c in where.proposition.constraints]
            known = self._known(goals)
            if all(entails(known, goal) for goal in goals):
                continue
            certain = False
            if any(excludes(known, goal) for goal in goals) and satisfiable(known) is not False:
                self._refuse(node, arrow, where, terms, name)
        return certain

    def _refuse(self, node: Call, arrow: Arrow, where: Where, terms: Mapping[str, Linear], name: str) -> None:
        params = dict(where.params)
        values = [f"{other} is {self.shown(term)}" for other, term in terms.items()]
        notes: list[tuple[str, Place | None]] = [(f"{where.proposition.text} is asked for here:", where.place)]
        for other in terms:
            if other in params:
                continue
            for index, param in enumerate(arrow.params):
                if length_in(param) == other and index < len(node.args):
                    arg = node.args[index]
                    kind = self.checker.synth(arg)
                    notes.append((f"{other} comes from here, {_a(kind)}:", arg.place))
                    break
        at = node if where.subject is None else node.args[where.subject]
        self.checker.refuse(
            bad(
                f"{name} asks for {where.proposition.text}, but here {' and '.join(values)}", at.place or node.place,
                kind=BadType, notes=tuple(notes),
            ),
            True,
        )  # fmt: skip

    def index(self, node: Call, vector: Node, kind: Type, index: Node, who: str) -> None:
        """An index into a vector whose length is known."""
        term = self.term(index)
        size = length_in(kind)
        length = self.length(vector) if size is None else None if size == UNKNOWN else linear(size)
        if term is None or length is None or (term.factors and not self.facts):
            return
        said = {name for fact in self.facts for name, _ in fact.sum.factors}
        if any(total.factors and not any(n in said for n, _ in total.factors) for total in (term, length)):
            return  # nothing is known of it that could exclude anything
        goals = [at_most(ZERO, term), less(term, length)]
        known = self._known(goals)
        if not any(excludes(known, goal) for goal in goals) or satisfiable(known) is False:
            return
        place = vector.variable.place if type(vector) is Local else vector.place
        self.checker.refuse(
            bad(
                f"{who} is given the index {self.shown(term)}, but the vector has {self.shown(length)} elements",
                index.place or node.place, "indices count from 0, and the last is one less than the length",
                kind=BadType, notes=((f"the vector is {_a(kind)}:", place),),
            ),
            False,
        )  # fmt: skip

    def shown(self, term: Linear) -> str:
        """A sum as people write it."""
        words = ""
        for name, by in term.factors:
            part = name.partition("@")[0].replace("length ", "the length of ")
            size = "" if abs(by) == 1 else f"{abs(by)}*"
            words += ((" - " if by < 0 else " + ") if words else "-" if by < 0 else "") + size + part
        if not words:
            return str(term.constant)
        return words if not term.constant else f"{words} {'+' if term.constant > 0 else '-'} {abs(term.constant)}"


def length_in(kind: Type) -> int | str | None:
    """The length of vectors of a type, where it says one."""
    part = kind.parts[0] if len(kind.parts) == 1 and not kind.mask else None
    return part.length if type(part) is VectorOf else None


def _a(kind: Type) -> str:
    return f"a {shown(kind)}"


def _may_say(annotation: object) -> bool:
    return next(braces_in(annotation), None) is not None


def _put(constraint: Constraint, terms: Mapping[str, Linear]) -> Constraint:
    total = Linear((), constraint.sum.constant)
    for name, by in constraint.sum.factors:
        total = total.plus(terms.get(name, Linear(((name, 1),))), by)
    return Constraint(total, constraint.modulus)
