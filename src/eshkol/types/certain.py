"""What is certain of integers when a program runs, whatever its types say: what code may leave a check out for.

Comes in: core forms, while a checker looks at them. Goes out: the calls of `vector-ref` and `vector-set!` whose index
lies within (`within`), and the calls of typed procedures that must go through their checks although types say that
their arguments fit (`unsure`).

Types are believed where a value was looked at, and no further: what is read from a vector of naturals may be anything
by then, since others may change it. So an integer counts here if it was computed from such, was looked at where it
came into a procedure, or is a length; of a vector only its length counts, which never changes. What a typed procedure
asks for counts within it (`enter`) as long as all its calls are certain of it, or go through its checks: `_relied` has
the procedures of which that matters, and `unsure` says of which calls it is not so.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from eshkol.lang.core import Call, Clause, Const, Global, If, Let, Local, Node, Variable
from eshkol.lang.datum import Vector
from eshkol.types.inequalities import Constraint, Linear, at_most, entails, equal, less
from eshkol.types.kinds import ANY, INTEGERS, NATURALS, Type, VectorOf
from eshkol.types.propositions import Where
from eshkol.types.standard import is_standard
from eshkol.types.terms import ZERO, Terms, name_of, put
from eshkol.types.tests import is_numeric

MOST_FACTS = 40
MOST_KNOWN = 12  # of those, what is asked for one proof

# Procedures of the library that give integers of integers, and those that give integers of whatever they take.
CLOSED = frozenset({"+", "-", "*", "1+", "-1+", "quotient", "remainder", "modulo", "max", "min", "abs", "square"})
LENGTHS = frozenset({"vector-length", "string-length", "bytevector-length", "length", "char->integer"})


Mark = tuple[list[Constraint], tuple[int, ...]]  # what is known at one point, and the procedures around it
NOWHERE: Mark = ([], ())


@dataclass
class _Loop:
    """What holds of the variables of a loop in every turn, as far as is known yet."""

    params: list[Variable]
    integers: list[Variable] = field(default_factory=list)
    bounds: list[tuple[Variable, Linear, int]] = field(default_factory=list)  # at most (1), or at least, its beginning
    broken: bool = False  # whether some of that did not hold in this turn


class Certain(Terms):
    """What is certain at one point of a program."""

    def __init__(self, kinds: Mapping[Variable, Type], checks: Mapping[int, object]) -> None:
        super().__init__()
        self.kinds, self.checks = kinds, checks
        self.facts: list[Constraint] = []
        self.within: dict[int, Call] = {}  # accesses whose index is one of the vector's, by identity
        self.integers: set[Variable] = set()
        self._naturals: dict[str, Variable] = {}  # unknowns of which types may say that they are not negative
        self._of_variables: dict[str, list[Constraint]] = {}  # what unknowns are by their definition
        self._same: dict[Variable, Variable] = {}  # other names for vectors
        self._if_vectors: dict[str, int] = {}  # lengths of rows of numbers, which may be tensors of any length
        self._around: tuple[int, ...] = ()  # the typed procedures that stand around
        self._relied: set[int] = set()
        self._loops: dict[Variable, _Loop] = {}
        self._calls: dict[int, tuple[int, bool, tuple[int, ...]]] = {}  # whom they call, whether certain, from where

    def mark(self) -> Mark:
        return self.facts, self._around

    def back(self, mark: Mark) -> None:
        """Know what was known at another point."""
        self.facts, self._around = mark

    # ---- integers ----------------------------------------------------------------------------------------------------

    def is_integer(self, node: Node) -> bool:
        """Whether a form gives an integer for certain."""
        if type(node) is Const:
            return isinstance(node.datum, int) and not isinstance(node.datum, bool)
        if id(node) in self.checks:
            return _integral(getattr(self.checks[id(node)], "kind", ANY))
        if type(node) is Local:
            return node.variable in self.integers
        if type(node) is Call and type(node.procedure) is Global and is_standard(node.procedure.cell):
            name = node.procedure.cell.name
            return name in LENGTHS or (name in CLOSED and bool(node.args) and all(map(self.is_integer, node.args)))
        if type(node) is If:
            return self.is_integer(node.then) and self.is_integer(node.otherwise)
        return type(node) is Let and self.is_integer(node.body)

    def unknown(self, variable: Variable) -> Linear | None:
        return self.unknown_of(variable) if variable in self.integers else None

    def unknown_of(self, variable: Variable) -> Linear:
        name = name_of(variable)
        self._naturals[name] = variable
        return Linear(((name, 1),))

    def length(self, node: Node) -> Linear | None:
        if type(node) is not Local:
            return self._made(node)
        return None if node.variable.assigned else self._length(node.variable)

    def _length(self, variable: Variable) -> Linear:
        return Linear(((f"length {name_of(self._same.get(variable, variable))}", 1),))

    # ---- binding -----------------------------------------------------------------------------------------------------

    def bind(self, variable: Variable, value: Node) -> None:
        """A variable that nothing assigns gets its value."""
        self.forget(variable)  # what was thought in another turn of a loop
        if type(value) is Local and not value.variable.assigned:
            self._same[variable] = self._same.get(value.variable, value.variable)
        if self.is_integer(value):
            self.integers.add(variable)
            term = self.term(value)
            if term is not None:
                self.bound[variable] = term
            else:
                self._defined(variable, value)
            return
        size = self._made(value)
        if size is not None:
            length = self._length(variable)
            self._of_variables[length.factors[0][0]] = [equal(length, size)]

    def _made(self, value: Node) -> Linear | None:
        """The length of a vector that is made here."""
        if type(value) is Const:
            return Linear((), len(value.datum.items)) if isinstance(value.datum, Vector) else None
        if type(value) is not Call or type(value.procedure) is not Global or not is_standard(value.procedure.cell):
            return None
        name, args = value.procedure.cell.name, value.args
        if name == "vector":
            return Linear((), len(args))
        return self.term(args[0]) if name == "make-vector" and 1 <= len(args) <= 2 else None

    def _defined(self, variable: Variable, value: Node) -> None:
        """What quotients and remainders are, by a number that is known; of what is not negative."""
        if type(value) is not Call or type(value.procedure) is not Global or len(value.args) != 2:
            return
        name = value.procedure.cell.name
        known = self.terms(value.args)
        if known is None or name not in ("quotient", "modulo", "remainder"):
            return
        of, by = known
        found = self.unknown(variable)
        assert found is not None
        if not self._follows([less(ZERO, by)]):
            return
        bounds = [at_most(ZERO, found), less(found, by)]
        if name == "quotient":
            if by.factors:
                return
            whole = found.times(by.constant)
            bounds = [at_most(whole, of), less(of, whole.plus(by))]
        if name == "modulo" or self._follows([at_most(ZERO, of)]):
            self._of_variables[name_of(variable)] = bounds

    # ---- tests and loops ---------------------------------------------------------------------------------------------

    def learn(self, test: Node, holds: bool) -> None:
        """Take in what a test says where it holds, or where it does not."""
        found = self.learnt(test)[0 if holds else 1]
        if found and len(self.facts) < MOST_FACTS:
            self.facts = self.facts + found

    def forget(self, variable: Variable) -> None:
        """A variable is bound anew, by something of which nothing is known."""
        self.integers.discard(variable)
        self.bound.pop(variable, None)
        self._same.pop(variable, None)
        self._of_variables.pop(name_of(variable), None)

    def open_loop(self, loop: Variable, params: Sequence[Variable], args: Sequence[Node]) -> None:
        """A loop begins with these: what may hold of its variables in every turn."""
        state = self._loops[loop] = _Loop(list(params))
        for param, arg in zip(params, args, strict=True):
            self.forget(param)
            if not param.assigned and self.is_integer(arg):
                state.integers.append(param)
                first = self.term(arg)
                if first is not None:
                    state.bounds += [(param, first, 1), (param, first, -1)]

    def loop_turns(self, loop: Variable, give_up: bool) -> None:
        """Look at the body of a loop, with what is left of that."""
        state = self._loops[loop]
        state.broken = False
        if give_up:
            state.integers, state.bounds = [], []
        self.integers.difference_update(state.params)
        self.integers.update(state.integers)
        self.facts = [*self.facts, *(_bounded(self.unknown_of(p), first, sign) for p, first, sign in state.bounds)]

    def loop_goes_on(self, loop: Variable, args: Sequence[Node]) -> None:
        """A loop is called with these: what of it holds no longer?"""
        state = self._loops[loop]
        given = dict(zip(state.params, args, strict=False))
        integers = [param for param in state.integers if param in given and self.is_integer(given[param])]
        bounds = []
        for param, first, sign in state.bounds:
            term = self.term(given[param]) if param in integers else None
            if term is not None and self._follows([_bounded(term, first, sign)]):
                bounds.append((param, first, sign))
        state.broken = state.broken or len(bounds) + len(integers) < len(state.bounds) + len(state.integers)
        state.integers, state.bounds = integers, bounds

    def loop_escapes(self, loop: Variable) -> None:
        """A loop is a value: anything may be given to it."""
        state = self._loops[loop]
        state.broken = state.broken or bool(state.integers)
        state.integers, state.bounds = [], []

    def loop_kept(self, loop: Variable) -> bool:
        """Whether everything that was taken for granted in a turn holds."""
        return not self._loops[loop].broken

    # ---- procedures --------------------------------------------------------------------------------------------------

    def enter(self, clause: Clause, kinds: Sequence[Type], wheres: Sequence[Where]) -> None:
        """Within a procedure that looks at what it is given, which is of these types then."""
        for param in clause.params:
            self.forget(param)
        if all(kind is ANY for kind in kinds) and not wheres:
            return
        self._around = (*self._around, id(clause))
        lengths: dict[str, Linear] = {}
        for param, kind in zip(clause.params, kinds, strict=False):
            if param.assigned:
                continue
            if _integral(kind):
                self.integers.add(param)
            size = _length_in(kind)
            length = self._length(param)
            if isinstance(size, str) and size.isidentifier():
                if size in lengths:
                    self.facts = [*self.facts, equal(length, lengths[size])]
                lengths.setdefault(size, length)
            elif isinstance(size, int) and is_numeric(_item(kind)):
                self._if_vectors[length.factors[0][0]] = size
            elif isinstance(size, int):
                self.facts = [*self.facts, equal(length, Linear((), size))]
        for where in wheres:
            sums = dict(lengths)
            for name, index in where.params:
                term = self.term(Local(None, clause.params[index]))
                if term is not None:
                    sums[name] = term
            if all(name in sums for name in where.proposition.names):
                self.facts = [*self.facts, *(put(c, sums) for c in where.proposition.constraints)]

    def called(self, node: Call, clause: Clause, kinds: Sequence[Type], wheres: Sequence[Where]) -> None:
        """A call that may go past the checks of a procedure: whether what these look at is certain."""
        self._calls[id(node)] = (id(clause), self._fits(node, clause, kinds, wheres), self._around)

    def _fits(self, node: Call, clause: Clause, kinds: Sequence[Type], wheres: Sequence[Where]) -> bool:
        goals: list[Constraint] = []
        lengths: dict[str, Linear] = {}
        for param, kind, arg in zip(clause.params, kinds, node.args, strict=False):
            if _integral(kind):
                term = self.term(arg)
                if not self.is_integer(arg) or (term is None and not _natural(kind)):
                    return False
                if term is not None and not kind.mask & ~NATURALS and id(arg) not in self.checks:
                    goals.append(at_most(ZERO, term))
                elif term is None and id(arg) not in self.checks:
                    return False
            size = _length_in(kind)
            if size is None or param.assigned:
                continue
            length = self.length(arg)
            if length is None:
                return False
            if isinstance(size, int):
                goals.append(equal(length, Linear((), size)))
            elif size in lengths:
                goals.append(equal(length, lengths[size]))
            else:
                lengths[size] = length
        for where in wheres:
            sums = dict(lengths)
            for name, index in where.params:
                term = self.term(node.args[index]) if index < len(node.args) else None
                if term is not None:
                    sums[name] = term
            if any(name not in sums for name in where.proposition.names):
                return False
            goals += [put(c, sums) for c in where.proposition.constraints]
        return self._follows(goals)

    def unsure(self) -> list[int]:
        """The calls that must go through the checks of the procedure that they call."""
        found: list[int] = []
        todo, seen = list(self._relied), set(self._relied)
        while todo:
            clause = todo.pop()
            for call, (callee, is_certain, around) in self._calls.items():
                if callee != clause:
                    continue
                if not is_certain:
                    found.append(call)
                    continue
                todo += [other for other in around if other not in seen]
                seen.update(around)
        return found

    # ---- questions ---------------------------------------------------------------------------------------------------

    def access(self, node: Call) -> None:
        """An element of a vector is read or changed: whether it is there for certain."""
        self.within.pop(id(node), None)
        if len(node.args) < 2:
            return
        length = self.length(node.args[0])
        if length is None:
            return
        term = self.term(node.args[1])
        if term is None:
            return
        size = (
            self._if_vectors.get(length.factors[0][0]) if length.factors else None
        )  # what is no vector is refused before the index matters
        lengths = [length, *([Linear((), size)] if size is not None else [])]
        if any(self._follows([at_most(ZERO, term), less(term, one)]) for one in lengths):
            self.within[id(node)] = node
            self._relied.update(self._around)

    def _follows(self, goals: Sequence[Constraint]) -> bool:
        for goal in goals:
            known = self._known(goal)
            if not entails(known, goal):
                return False
        return True

    def _known(self, goal: Constraint) -> list[Constraint]:
        """The facts that may bear on a goal, and what its unknowns are by their definition."""
        names = {name for name, _ in goal.sum.factors}
        left = list(self.facts)
        found: list[Constraint] = []
        seen: set[str] = set()
        while names - seen and len(found) < MOST_KNOWN:
            for name in sorted(names - seen):
                seen.add(name)
                if name.startswith("length ") or self._is_natural(name):
                    found.append(at_most(ZERO, Linear(((name, 1),))))
                found += self._of_variables.get(name, ())
            near = [fact for fact in left if any(name in seen for name, _ in fact.sum.factors)]
            left = [fact for fact in left if fact not in near]
            found += near
            names |= {name for fact in found for name, _ in fact.sum.factors}
        return found

    def _is_natural(self, name: str) -> bool:
        variable = self._naturals.get(name)
        return variable is not None and _natural(self.kinds.get(variable, ANY))


def _bounded(term: Linear, first: Linear, sign: int) -> Constraint:
    return at_most(term, first) if sign > 0 else at_most(first, term)


def _integral(kind: Type) -> bool:
    return not kind.parts and bool(kind.mask) and not kind.mask & ~INTEGERS


def _natural(kind: Type) -> bool:
    return _integral(kind) and not kind.mask & ~NATURALS


def _length_in(kind: Type) -> int | str | None:
    part = kind.parts[0] if len(kind.parts) == 1 and not kind.mask else None
    return part.length if type(part) is VectorOf else None


def _item(kind: Type) -> Type:
    part = kind.parts[0]
    return part.item if type(part) is VectorOf else ANY
