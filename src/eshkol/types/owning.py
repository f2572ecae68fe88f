"""Who owns what: owners followed through a program, branch by branch and turn by turn.

Comes in: a unit that was checked, and its checker. Goes out: errors with both places: what is used after it was moved
or dropped, lent to two of whom one may change it, moved while it is lent, or lent for longer than its owner lasts; and
linear owners that nobody takes over. An owner is the value of a variable that nothing assigns. What happens to owners
inside of procedures that are values is left to run time, as is what goes through lists, vectors and untyped code.

A borrow lasts as long as the variable that it is bound to, or the call that it is given to. A variable of an owner that
is given away whole, to another variable or to a procedure that declares to own it, is moved.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from eshkol.errors import BadOwnership, LanguageError
from eshkol.lang.core import (
    Call,
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
    Variable,
)
from eshkol.lang.report import bad
from eshkol.lang.source import Place
from eshkol.types.checking import Checker
from eshkol.types.kinds import NEVER, Function
from eshkol.types.owners import (
    CHANGING,
    ENDS,
    Key,
    borrowed,
    ends,
    form_of,
    handle_in,
    handle_of_key,
    key_of,
    loop_of,
    owns,
    region_of,
    tails,
)
from eshkol.types.standard import is_standard

MOST_NESTED = 4  # loops that are looked at twice each


class Gone(NamedTuple):
    """What became of an owner."""

    verb: str  # "moved", "dropped", "given to f"
    place: Place | None
    sure: bool = True
    earlier: bool = False  # in an earlier turn of a loop


class Loan(NamedTuple):
    owner: Key
    mutable: bool
    holder: Key | None  # None: the call that is being made
    place: Place | None


@dataclass
class State:
    """What is known at one point of a program."""

    gone: dict[Key, Gone] = field(default_factory=dict)
    loans: list[Loan] = field(default_factory=list)
    alive: bool = True  # whether this point can be reached

    def copy(self) -> State:
        return State(dict(self.gone), list(self.loans), self.alive)

    def become(self, other: State) -> None:
        self.gone, self.loans, self.alive = other.gone, other.loans, other.alive


def joined(a: State, b: State) -> State:
    """Where two ways meet."""
    if not a.alive or not b.alive:
        return (b if not a.alive else a).copy()
    gone = {}
    for key in {**a.gone, **b.gone}:
        one, other = a.gone.get(key), b.gone.get(key)
        found = one or other
        assert found is not None
        gone[key] = found._replace(sure=one is not None and other is not None and one.sure and other.sure)
    return State(gone, [*a.loans, *(loan for loan in b.loans if loan not in a.loans)])


Lent = frozenset[Key]  # owners of whose content a value may be
_NOTHING: Lent = frozenset()


class Owning:
    """Looks at one unit."""

    def __init__(self, checker: Checker) -> None:
        self.checker = checker
        self.errors: list[LanguageError] = []
        self._said: set[tuple[str, int, int]] = set()
        self._loops: dict[Variable, list[State]] = {}  # that are being looked at: the states in which they go on
        self._visit: dict[type, Callable[[Any, State], Lent]] = {
            Local: self._variable, Global: self._variable, If: self._if, Seq: self._seq, Let: self._let,
            Letrec: self._letrec, Lambda: self._lambda, Call: self._call, SetLocal: self._set, SetGlobal: self._set,
            DefineGlobal: self._define,
        }  # fmt: skip

    def check(self) -> None:
        state = State()
        for form in self.checker.unit.forms:
            state.alive = True
            self.value(form, state)

    def value(self, node: Node, state: State) -> Lent:
        """A form is evaluated; whose content it may give."""
        visit = self._visit.get(type(node))
        return _NOTHING if visit is None else visit(node, state)

    # ---- errors ------------------------------------------------------------------------------------------------------

    def refuse(
        self, message: str, place: Place | None, hint: str | None, notes: Iterable[tuple[str, Place | None]] = ()
    ) -> None:
        """An error, once for each place."""
        where = (message, place.start, place.end) if place is not None else (message, 0, 0)
        if where not in self._said:
            self._said.add(where)
            told = tuple(note for note in notes if note[1] is not None)
            self.errors.append(bad(message, place, hint, kind=BadOwnership, notes=told))

    def look(self, key: Key, place: Place | None, state: State, doing: str) -> bool:
        """Something is done with an owner: it must be there."""
        gone = state.gone.get(key)
        if gone is None or not state.alive:
            return True
        handle = handle_of_key(self.checker, key)
        was = "was" if gone.sure else "may have been"
        turn = " in an earlier turn of the loop" if gone.earlier else ""
        linear = handle is not None and handle.kind == "Linear" and gone.place is not place
        before = turn or " before"
        message = f"{key.name} is {doing} here, but {was} {gone.verb}{before}"
        if gone.earlier and gone.place is place:
            message = f"{key.name} is {doing} in every turn of the loop, but is there for one alone"
        if linear and doing in (*ENDS.values(), "given away"):
            message = f"{key.name} is linear, and is used up twice: {doing} here, {gone.verb} before"
        hint = "(owner-alive? owner) asks" if not gone.sure and not gone.earlier else None
        if gone.verb == "moved":
            hint = hint or f"(borrow {key.name}) lends it; what (move {key.name}) gave has it now"
        elif gone.earlier:
            hint = "(borrow owner) lends it, and it is still there in the next turn"
        notes = [] if gone.place is place else [(f"it {was} {gone.verb} here:", gone.place)]
        self.refuse(message, place, hint, notes)
        return False

    def _unlent(self, key: Key, place: Place | None, state: State, doing: str) -> None:
        """An owner is given up or changed: nobody may have borrowed it."""
        if not state.alive:
            return
        for loan in state.loans:
            if loan.owner is key:
                by = "this call" if loan.holder is None else loan.holder.name
                self.refuse(
                    f"{key.name} is {doing} here while {by} borrows it", place,
                    "a borrow lasts as long as the variable that it is bound to, or the call that it is given to: let "
                    "it end first", [("it is borrowed here:", loan.place)],
                )  # fmt: skip
                return

    # ---- single forms ------------------------------------------------------------------------------------------------

    def _variable(self, node: Local | Global, state: State) -> Lent:
        key = key_of(node)
        if key is None:
            return _NOTHING
        self.look(key, node.place, state, "used")
        return frozenset(loan.owner for loan in state.loans if loan.holder is key)

    def _borrow(self, node: Call, key: Key, mutable: bool, holder: Key | None, state: State) -> Lent:
        """A borrow begins."""
        if not self.look(key, node.place, state, "borrowed"):
            state.loans.append(Loan(key, mutable, holder, node.place))
            return _NOTHING
        if state.alive:
            for loan in state.loans:
                if loan.owner is key and (mutable or loan.mutable):
                    self._two(node, key, mutable, loan)
                    break
        state.loans.append(Loan(key, mutable, holder, node.place))
        return frozenset((key,))

    def _two(self, node: Call, key: Key, mutable: bool, loan: Loan) -> None:
        by = "in the same call" if loan.holder is None else f"by {loan.holder.name}"
        if mutable and loan.mutable:
            message = f"{key.name} is lent twice to be changed: here, and {by}"
        elif mutable:
            message = f"{key.name} is lent to be changed here, while it is being read {by}"
        else:
            message = f"{key.name} is lent to be read here, while it may be changed {by}"
        self.refuse(
            message, node.place, "who may change it must be the only one: let the other borrow end first",
            [("the other borrow is here:", loan.place)],
        )  # fmt: skip

    def _end(self, node: Call, key: Key, verb: str, state: State) -> None:
        """An owner is given up."""
        if self.look(key, node.place, state, verb):
            self._unlent(key, node.place, state, verb)
        state.gone[key] = Gone(verb, node.place)

    def _given(self, node: Node, key: Key, to: str, state: State) -> None:
        """A whole owner goes to another variable, or to a procedure that owns what it is given."""
        if self.look(key, node.place, state, "given away"):
            self._unlent(key, node.place, state, "given away")
        state.gone[key] = Gone(f"given to {to}", node.place)

    # ---- calls -------------------------------------------------------------------------------------------------------

    def _call(self, node: Call, state: State) -> Lent:
        name, args = form_of(node), node.args
        lending = borrowed(node)
        if lending is not None:
            lent = self._borrow(node, *lending, None, state)
            state.loans.pop()  # of the moment, unless who takes it says otherwise
            return lent
        if name is not None and len(args) == 1 and (key := key_of(args[0])) is not None:
            if name in ENDS:
                self._end(node, key, ENDS[name], state)
                return _NOTHING
            if name == "shared" and owns(self.checker, key):
                self._end(node, key, "shared", state)
                return _NOTHING
            if name in ("owned?", "owner-alive?", "shared?"):
                return _NOTHING
        region = region_of(node)
        if region is not None:
            self.value(args[1], state)
            return self.value(region.clauses[0].body, state)
        if type(node.procedure) is Lambda and len(node.procedure.clauses) == 1:
            clause = node.procedure.clauses[0]
            if clause.rest is None and len(clause.params) == len(args):
                return self._bound(clause.params, args, clause.body, state)
        if type(node.procedure) is Global and self._at_once(node, node.procedure.cell.name, state):
            return _NOTHING
        if type(node.procedure) is Local and node.procedure.variable in self._loops:
            return self._again(node, node.procedure.variable, state)
        self.value(node.procedure, state)
        self._arguments(node, state)
        if self._never_returns(node):
            state.alive = False
        return _NOTHING

    def _arguments(self, node: Call, state: State) -> None:
        """Arguments, with the borrows that last for the call."""
        taking = self._taking(node)
        before = len(state.loans)
        for index, arg in enumerate(node.args):
            lending, key = borrowed(arg), key_of(arg)
            if lending is not None and type(arg) is Call:
                self._borrow(arg, *lending, None, state)
            elif key is not None and index in taking and owns(self.checker, key):
                self._given(arg, key, taking[index], state)
            else:
                self.value(arg, state)
        self._changed(node, state)
        del state.loans[before:]

    def _taking(self, node: Call) -> dict[int, str]:
        """Which parameters of a procedure own what they are given."""
        callee = node.procedure
        if type(callee) is Global:
            if callee.cell.primitive or callee.cell not in self.checker.values:
                return {}
            kind, name = self.checker.cell_type(callee.cell), callee.cell.name
        elif type(callee) is Local and callee.variable in self.checker.kinds:
            kind, name = self.checker.kinds[callee.variable], callee.variable.name
        else:
            return {}
        part = kind.parts[0] if len(kind.parts) == 1 else None
        if type(part) is not Function or len(part.arrows) != 1:
            return {}
        found = {}
        for index, param in enumerate(part.arrows[0].params):
            handle = handle_in(param)
            if handle is not None and handle.kind in ("Owned", "Linear"):
                found[index] = name
        return found

    def _changed(self, node: Call, state: State) -> None:
        """What a primitive changes must not have been borrowed to be read."""
        callee = node.procedure
        if type(callee) is not Global or callee.cell.name not in CHANGING or not is_standard(callee.cell):
            return
        if not state.alive or not node.args:
            return
        arg = node.args[0]
        lending, key = borrowed(arg), key_of(arg)
        loan = next((x for x in state.loans if key is not None and x.holder is key), None)
        owner = lending[0] if lending is not None else None if loan is None else loan.owner
        if owner is None or (lending[1] if lending is not None else loan is not None and loan.mutable):
            return
        notes = [] if loan is None else [(f"it is borrowed to be read here, from {owner.name}:", loan.place)]
        self.refuse(
            f"{callee.cell.name} changes what is borrowed to be read", node.place,
            f"(borrow-mut {owner.name}) lends it to be changed", notes,
        )  # fmt: skip

    def _never_returns(self, node: Call) -> bool:
        if type(node.procedure) is not Global:
            return False
        kind = self.checker.cell_type(node.procedure.cell)
        arrows = [a for p in kind.parts if type(p) is Function for a in p.arrows]
        return bool(arrows) and all(a.result == NEVER for a in arrows)

    def _at_once(self, node: Call, name: str, state: State) -> bool:
        """Procedures of the library that call those that they are given once, where they stand."""
        bodies = [arg.clauses[0].body for arg in node.args if type(arg) is Lambda and len(arg.clauses) == 1]
        if len(bodies) != len(node.args):
            return False
        if name == "dynamic-wind":
            for body in bodies:
                self.value(body, state)
            return True
        if name in ("%guard", "%guard-with-else") and len(bodies) == 2:
            before, after = state.copy(), state.copy()
            self.value(bodies[0], after)
            failed = joined(before, after) if after.alive else before
            self.value(bodies[1], failed)
            state.become(joined(after, failed))
            return True
        return False

    # ---- branches ----------------------------------------------------------------------------------------------------

    def _if(self, node: If, state: State) -> Lent:
        self.value(node.test, state)
        then, otherwise = state.copy(), state.copy()
        asked = form_of(node.test) == "owner-alive?" and type(node.test) is Call and key_of(node.test.args[0])
        if asked:
            then.gone.pop(asked, None)
            otherwise.gone.setdefault(asked, Gone("ended", node.test.place))
            otherwise.gone[asked] = otherwise.gone[asked]._replace(sure=True)
        lent = self.value(node.then, then) | self.value(node.otherwise, otherwise)
        state.become(joined(then, otherwise))
        return lent

    def _seq(self, node: Seq, state: State) -> Lent:
        for item in node.items[:-1]:
            self.value(item, state)
            self._left(item, state)
        return self.value(node.items[-1], state)

    def _left(self, node: Node, state: State) -> None:
        """The value of a form that no one takes: an owner would never end."""
        if form_of(node) in ("owned", "move") and state.alive:
            self.refuse(
                "this owner is given to no one", node.place,
                "(define name ...) or let keeps it, and (drop owner) ends it",
            )  # fmt: skip

    # ---- binding -----------------------------------------------------------------------------------------------------

    def _bind(self, variable: Key, value: Node, state: State) -> None:
        state.gone.pop(variable, None)  # in another turn of a loop
        lending, key = borrowed(value), key_of(value)
        if lending is not None and type(value) is Call:
            self._borrow(value, *lending, variable, state)
        elif key is not None and owns(self.checker, key) and owns(self.checker, variable):
            self._given(value, key, variable.name, state)
        else:
            for owner in self.value(value, state):
                loans = [loan for loan in state.loans if loan.owner is owner and loan.holder is key]
                mutable = bool(loans) and loans[0].mutable
                state.loans.append(Loan(owner, mutable, variable, value.place))

    def _bound(self, variables: Sequence[Variable], values: Sequence[Node], body: Node, state: State) -> Lent:
        for variable, value in zip(variables, values, strict=True):
            self._bind(variable, value, state)
        return self._close(variables, body, self.value(body, state), state)

    def _let(self, node: Let, state: State) -> Lent:
        return self._bound(node.variables, node.values, node.body, state)

    def _letrec(self, node: Letrec, state: State) -> Lent:
        loop = loop_of(node)
        if loop is not None:
            return self._loop(node, loop, state)
        late = []
        for variable, value in zip(node.variables, node.values, strict=True):
            if type(value) is Lambda:
                late.append(value)
            else:
                self._bind(variable, value, state)
        for procedure in late:
            self.value(procedure, state)
        return self._close(node.variables, node.body, self.value(node.body, state), state)

    def _close(self, variables: Sequence[Variable], body: Node, lent: Lent, state: State) -> Lent:
        """A scope ends, and with it its owners and borrows."""
        own = set(variables)
        if state.alive:
            for variable in variables:
                self._used_up(variable, state)
                if variable in lent and ends(self.checker, variable):
                    self._outlives(variable, body)
            for tail in tails(body):
                key = key_of(tail)
                if key in own and ends(self.checker, key):
                    assert key is not None
                    self.refuse(
                        f"{key.name} ends here with its scope, so what is given has nothing any more", tail.place,
                        f"(move {key.name}) hands it on", [(f"{key.name} is bound here:", key.place)],
                    )  # fmt: skip
        state.loans = [loan for loan in state.loans if loan.holder not in own]
        return lent - own

    def _used_up(self, variable: Variable, state: State) -> None:
        handle = handle_of_key(self.checker, variable)
        gone = state.gone.get(variable)
        if handle is None or handle.kind != "Linear" or (gone is not None and gone.sure):
            return
        if gone is None:
            message, notes = f"{variable.name} is linear, but no one takes it over before its scope ends", []
        else:
            message = f"{variable.name} is linear, but only on some ways does anyone take it over"
            notes = [(f"here it is {gone.verb}:", gone.place)]
        self.refuse(
            message, variable.place, f"(drop {variable.name}) ends it, (move {variable.name}) hands it on", notes
        )

    def _outlives(self, owner: Variable, body: Node) -> None:
        place = next((tail.place for tail in tails(body)), body.place)
        self.refuse(
            f"what is borrowed from {owner.name} outlives it", place,
            f"give (move {owner.name}), the owner itself, or a copy of what it has",
            [(f"{owner.name} is bound here, and ends with this scope:", owner.place)],
        )  # fmt: skip

    def _set(self, node: SetLocal | SetGlobal, state: State) -> Lent:
        """A variable that is assigned may be there for longer than an owner that it borrows from."""
        target: Key = node.variable if type(node) is SetLocal else node.cell  # type: ignore[union-attr]
        for owner in self.value(node.value, state):
            if type(owner) is Variable and ends(self.checker, owner) and state.alive:
                self.refuse(
                    f"{target.name} gets what is borrowed from {owner.name}, and may be there for longer", node.place,
                    f"give it (move {owner.name}), the owner itself, or a copy of what it has",
                    [(f"{owner.name} is bound here, and ends with this scope:", owner.place)],
                )  # fmt: skip
        return _NOTHING

    def _define(self, node: DefineGlobal, state: State) -> Lent:
        self._bind(node.cell, node.value, state)
        return _NOTHING

    # ---- procedures --------------------------------------------------------------------------------------------------

    def _lambda(self, node: Lambda, state: State) -> Lent:
        """A procedure that is called who knows when: what it does to owners outside is left to run time."""
        for clause in node.clauses:
            inner = State({key: gone for key, gone in state.gone.items() if gone.sure})
            loops, self._loops = self._loops, {}
            try:
                self._clause(clause, inner)
            finally:
                self._loops = loops
        return _NOTHING

    def _clause(self, clause: Clause, state: State) -> None:
        lent = self.value(clause.body, state)
        self._close(clause.params, clause.body, lent, state)

    def _loop(self, node: Letrec, first: Call, state: State) -> Lent:
        """A named loop: once as it is entered, and once as it goes on."""
        loop, value = node.variables[0], node.values[0]
        assert isinstance(value, Lambda)
        clause = value.clauses[0]
        self._arguments(first, state)
        if len(self._loops) >= MOST_NESTED:
            self._lambda(value, state)
            return _NOTHING
        turns: list[State] = []
        self._loops[loop] = turns
        try:
            after = state.copy()
            lent = self.value(clause.body, after)
            self._close(clause.params, clause.body, lent, after)
            more = {
                key: gone._replace(sure=False, earlier=True)
                for turn in turns
                for key, gone in turn.gone.items()
                if key not in state.gone and key not in clause.params
            }
            if more:
                again = State({**state.gone, **more}, list(state.loans))
                self.value(clause.body, again)
            state.become(after)
        finally:
            del self._loops[loop]
        return lent

    def _again(self, node: Call, loop: Variable, state: State) -> Lent:
        self._arguments(node, state)
        if state.alive:
            self._loops[loop].append(state.copy())
        return _NOTHING
