"""Integers in core forms as sums of unknowns, and what tests say of them.

Comes in: core forms. Goes out: sums (`inequalities.Linear`), constraints that hold where a test does and where it does
not. Which variables are unknowns, and how long vectors are, is for two kinds of reader to say: `proving.py` believes
types, `certain.py` only what a program has looked at.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from itertools import pairwise

from eshkol.lang.core import Call, Const, Global, If, Local, Node, Variable
from eshkol.types.inequalities import Constraint, Linear, at_most, equal, less, negations
from eshkol.types.standard import is_standard

COMPARED = {"<": less, "<=": at_most, "=": equal}
ONE, ZERO = Linear((), 1), Linear((), 0)
SUMS = frozenset({"+", "-", "*", "1+", "-1+"})
ORDERS = frozenset({"<", "<=", ">", ">=", "="})
SIGNS = frozenset({"zero?", "positive?", "negative?"})

Told = tuple[list[Constraint], list[Constraint]]  # where a test holds, and where it does not


def name_of(variable: Variable) -> str:
    """What a variable is called among unknowns."""
    return f"{variable.name}@{id(variable)}"


class Terms(ABC):
    """Reads core forms as sums."""

    def __init__(self) -> None:
        self.bound: dict[Variable, Linear] = {}  # variables that are sums

    @abstractmethod
    def unknown(self, variable: Variable) -> Linear | None:
        """A variable that nothing assigns, and that is bound to no sum; None if it may be no integer."""

    @abstractmethod
    def length(self, node: Node) -> Linear | None:
        """How long a vector is."""

    def other(self, name: str, args: Sequence[Node]) -> Linear | None:
        """What another procedure of the library gives."""
        return None

    def term(self, node: Node) -> Linear | None:
        """What an integer is, as a sum of unknowns; None where it is not known to be one."""
        if type(node) is Const:
            datum = node.datum
            return Linear((), datum) if isinstance(datum, int) and not isinstance(datum, bool) else None
        if type(node) is Local:
            variable = node.variable
            if variable.assigned:
                return None
            bound = self.bound.get(variable)
            return bound if bound is not None else self.unknown(variable)
        if type(node) is Call and type(node.procedure) is Global and is_standard(node.procedure.cell):
            return self._called(node.procedure.cell.name, node.args)
        return None

    def terms(self, nodes: Sequence[Node]) -> list[Linear] | None:
        """What several integers are; None where one of them is not known."""
        found = []
        for node in nodes:
            term = self.term(node)
            if term is None:
                return None
            found.append(term)
        return found

    def _called(self, name: str, args: Sequence[Node]) -> Linear | None:
        if name == "vector-length" and len(args) == 1:
            return self.length(args[0])
        if name not in SUMS or not args:
            return self.other(name, args)
        known = self.terms(args)
        if known is None:
            return None
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

    # ---- tests -------------------------------------------------------------------------------------------------------

    def learnt(self, test: Node) -> Told:
        """What a test says where it holds, and where it does not."""
        if type(test) is If:
            first, then = self.learnt(test.test), self.learnt(test.then)
            if type(test.otherwise) is Const and test.otherwise.datum is False:
                return first[0] + then[0], []
            if type(test.then) is Const and test.then.datum is True:
                return [], first[1] + self.learnt(test.otherwise)[1]
            return [], []
        if type(test) is not Call or type(test.procedure) is not Global:
            return [], []
        name, args = test.procedure.cell.name, test.args
        if name == "not" and len(args) == 1 and is_standard(test.procedure.cell):
            holds, fails = self.learnt(args[0])
            return fails, holds
        if name not in ORDERS and name not in SIGNS:
            return [], []
        known = self.terms(args) if is_standard(test.procedure.cell) else None
        if not known:
            return [], []
        if name in SIGNS:
            if len(known) != 1:
                return [], []
            term = known[0]
            return _both(
                [
                    equal(term, ZERO)
                    if name == "zero?"
                    else less(ZERO, term)
                    if name == "positive?"
                    else less(term, ZERO)
                ]
            )
        if name in (">", ">="):
            known.reverse()
        order = COMPARED[{">": "<", ">=": "<="}.get(name, name)]
        return _both([order(a, b) for a, b in pairwise(known)])


def _both(holds: list[Constraint]) -> Told:
    ways = negations(holds[0]) if len(holds) == 1 else []
    return holds, ways[0] if len(ways) == 1 else []


def put(constraint: Constraint, terms: dict[str, Linear]) -> Constraint:
    """A constraint with sums in place of names."""
    return Constraint(replaced(constraint.sum, terms), constraint.modulus)


def replaced(total: Linear, terms: dict[str, Linear]) -> Linear:
    """A sum with sums in place of names."""
    found = Linear((), total.constant)
    for name, by in total.factors:
        found = found.plus(terms.get(name, Linear(((name, 1),))), by)
    return found
