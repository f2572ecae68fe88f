"""What is known of integers at one point of a program, and what follows from it.

Comes in: tests, variables and calls as core forms, of a checker. Goes out: whether what procedures ask of sizes and
indices holds for certain; errors where it certainly does not. Variables that nothing assigns and that hold integers
are unknowns, and so are sizes in types; `inequalities.py` decides. What is neither certain nor excluded is looked at
when the program runs (`borders.py`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

from eshkol.errors import BadType, LanguageError
from eshkol.lang.core import Call, Clause, Const, Global, Local, Node, Variable
from eshkol.lang.report import bad
from eshkol.lang.source import Place
from eshkol.types import certain
from eshkol.types.certain import Certain
from eshkol.types.inequalities import Constraint, Linear, at_most, entails, excludes, less, satisfiable
from eshkol.types.kinds import ANY, INTEGERS, NATURALS, Arrow, ProofOf, TensorOf, Type, VectorOf, shown
from eshkol.types.propositions import (
    Proposition,
    Where,
    braces_in,
    is_braces,
    is_proof,
    linear,
    read_proposition,
)
from eshkol.types.sizes import UNKNOWN
from eshkol.types.terms import ZERO, Terms, name_of, put, replaced

MOST_FACTS = 40
PROOF, CAST = "%proof", "%cast-shape"  # the primitives that the forms of proofs are calls of


class Asking(Protocol):
    """A checker, as far as facts about integers are concerned."""

    known: dict[Variable, Type]
    kinds: dict[Variable, Type]

    def synth(self, node: Node) -> Type: ...
    def refuse(self, error: LanguageError, declared: bool) -> None: ...


class Mark(NamedTuple):
    """What is known at one point."""

    facts: list[Constraint]
    proofs: dict[Variable, Proposition]
    certain: certain.Mark


class Proving(Terms):
    """Facts about integers, and questions. `certain` is there where checks are to be left out of the code."""

    def __init__(self, checker: Asking, certain: Certain | None) -> None:
        super().__init__()
        self.checker, self.certain = checker, certain
        self.facts: list[Constraint] = []
        self.proofs: dict[Variable, Proposition] = {}  # what variables are proofs of, where its names mean the same
        self.wheres: dict[int, list[Where]] = {}  # of clauses, by identity
        self._variables: dict[str, Variable] = {}  # by the names of unknowns

    # ---- where something is known ------------------------------------------------------------------------------------

    def mark(self) -> Mark:
        return Mark(self.facts, self.proofs, certain.NOWHERE if self.certain is None else self.certain.mark())

    def back(self, mark: Mark) -> None:
        """Know what was known at another point."""
        self.facts, self.proofs = mark.facts, mark.proofs
        if self.certain is not None:
            self.certain.back(mark.certain)

    def forget(self) -> None:
        """Begin to look at something that has no part in what is known here."""
        self.back(Mark([], {}, certain.NOWHERE))

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
                    proof = index if is_proof(param.annotation) else None
                    found.append(Where(proposition, tuple(known.items()), about, param.place, proof))
        return tuple(found)

    def enter(self, clause: Clause, looked_at: Sequence[Type]) -> Mark:
        """Within a procedure, what it asks for holds; it looks at arguments of these types. Gives what was known."""
        before = self.mark()
        if self.certain is not None:
            self.certain.enter(clause, looked_at, self.where(clause) if looked_at else ())
        if any(param.annotation is not None for param in clause.params):  # sizes have names of their own here
            self.facts = [c for c in self.facts if all("@" in name for name, _ in c.sum.factors)]
            self.proofs = {}
        for where in self.where(clause):
            sums = {name: Linear(((self.name_of(clause.params[index]), 1),)) for name, index in where.params}
            self.facts = [*self.facts, *(put(c, sums) for c in where.proposition.constraints)]
            if where.proof is not None and not clause.params[where.proof].assigned:
                self.proofs = {**self.proofs, clause.params[where.proof]: with_sums(where.proposition, sums)}
        return before

    def name_of(self, variable: Variable) -> str:
        name = name_of(variable)
        self._variables[name] = variable
        return name

    # ---- sums --------------------------------------------------------------------------------------------------------

    def bind(self, variable: Variable, value: Node, kind: Type) -> None:
        """A variable gets its value, of some type."""
        if variable.assigned:
            return
        if self.certain is not None:
            self.certain.bind(variable, value)
        if type(value) in (Call, Local, Const):
            term = self.term(value)
            if term is not None:
                self.bound[variable] = term
        self._bind_proof(variable, value, kind)

    def _bind_proof(self, variable: Variable, value: Node, kind: Type) -> None:
        """A variable may get a proof: one that is written there, or another variable's."""
        proven: Proposition | None = None
        if type(value) is Local:
            proven = self.proofs.get(value.variable)
        elif type(value) is Call and len(kind.parts) == 1 and is_proof_form(value):
            part = kind.parts[0]
            proven = part.proposition if type(part) is ProofOf else None
        if proven is not None:
            self.proofs = {**self.proofs, variable: proven}

    def unknown(self, variable: Variable) -> Linear | None:
        kind = self._kind(variable)
        if kind.parts or not kind.mask or kind.mask & ~INTEGERS:
            return None
        return Linear(((self.name_of(variable), 1),))

    def other(self, name: str, args: Sequence[Node]) -> Linear | None:
        """(tensor-shape t axis), where the type of t says it."""
        if name != "tensor-shape" or len(args) != 2 or type(args[0]) is not Local or type(args[1]) is not Const:
            return None
        kind, axis = self._kind(args[0].variable), args[1].datum
        part = kind.parts[0] if len(kind.parts) == 1 and not kind.mask else None
        dims = part.dims if type(part) is TensorOf and part.dims is not None else ()
        if type(axis) is not int or not -len(dims) <= axis < len(dims) or dims[axis] == UNKNOWN:
            return None
        return linear(dims[axis])

    def _kind(self, variable: Variable) -> Type:
        known = self.checker.known.get(variable)
        return known if known is not None else self.checker.kinds.get(variable, ANY)

    def length(self, node: Node) -> Linear | None:
        """How long a vector is, by its type; of a variable that nothing assigns it is some number."""
        if type(node) is not Local or node.variable.assigned:
            return None
        kind = self._kind(node.variable)
        size = length_in(kind)
        if size is not None and size != UNKNOWN:
            return linear(size)
        return Linear(((f"length {self.name_of(node.variable)}", 1),))

    def learn(self, constraints: list[Constraint], test: Node, holds: bool) -> None:
        """Take in what a test says (`learnt`) where it holds, or where it does not."""
        if constraints and len(self.facts) < MOST_FACTS:
            self.facts = self.facts + constraints
        if self.certain is not None:
            self.certain.learn(test, holds)

    # ---- questions ---------------------------------------------------------------------------------------------------

    def known_of(self, goals: Sequence[Constraint]) -> list[Constraint]:
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
        sure = True
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
                sure = False
                if where.proof is not None:
                    self._unproven(node.args[where.proof], where, name)
                continue
            goals = [put(c, terms) for c in where.proposition.constraints]
            known = self.known_of(goals)
            if all(entails(known, goal) for goal in goals):
                continue
            sure = False
            if any(excludes(known, goal) for goal in goals) and satisfiable(known) is not False:
                self._refuse(node, arrow, where, terms, name)
            elif where.proof is not None:
                self._unproven(node.args[where.proof], where, name)
        return sure

    def _unproven(self, proof: Node, where: Where, name: str) -> None:
        """A proof was given, but not of what is asked for."""
        kind = self.checker.synth(proof)
        if any(type(part) is ProofOf for part in kind.parts):
            self.checker.refuse(
                bad(
                    f"{name} asks for a proof of {where.proposition.text}, but this is {_a(kind)}", proof.place,
                    f"the names in {where.proposition.text} are sizes and parameters of {name}", kind=BadType,
                    notes=((f"{where.proposition.text} is asked for here:", where.place),),
                ),
                True,
            )  # fmt: skip

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
        known = self.known_of(goals)
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


def is_proof_form(node: Node) -> bool:
    """Whether a form is (proof {...})."""
    return type(node) is Call and type(node.procedure) is Global and node.procedure.cell.name == PROOF


def is_cast(node: Node) -> bool:
    """Whether a form is (cast-shape ...)."""
    return type(node) is Call and type(node.procedure) is Global and node.procedure.cell.name == CAST


def with_sums(proposition: Proposition, sums: dict[str, Linear]) -> Proposition:
    """A proposition whose names are those of unknowns."""
    equations = tuple((replaced(a, sums), replaced(b, sums)) for a, b in proposition.equations)
    constraints = tuple(put(c, sums) for c in proposition.constraints)
    return Proposition(proposition.text, proposition.subject, constraints, equations)


def length_in(kind: Type) -> int | str | None:
    """The length of vectors of a type, where it says one."""
    part = kind.parts[0] if len(kind.parts) == 1 and not kind.mask else None
    return part.length if type(part) is VectorOf else None


def _a(kind: Type) -> str:
    return f"a {shown(kind)}"


def _may_say(annotation: object) -> bool:
    return next(braces_in(annotation), None) is not None
