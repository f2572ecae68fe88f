"""Random programs about owners, and an interpreter of them that tries every way: what the checker must say.

A program is a list of statements over owners of vectors. `faulty` runs it with all outcomes of its conditions, twice
through each loop, and tells whether ownership is violated on some way; the checker must refuse it then, and accept it
otherwise. `text` writes it in the language.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, field

TURNS = 2  # of each loop


@dataclass
class Statement:
    """`look drop swap` use owners; `own move borrow change` bind a name within a body; `if loop` have bodies."""

    kind: str
    names: tuple[str, ...] = ()
    bodies: tuple[list[Statement], ...] = ()


class Fault(Exception):
    """Ownership is violated."""


@dataclass
class Drawing:
    chance: random.Random
    count: int = 0
    conditions: int = 0

    def fresh(self) -> str:
        self.count += 1
        return f"x{self.count}"

    def body(self, owners: list[str], depth: int) -> list[Statement]:
        return [self.statement(owners, depth) for _ in range(self.chance.randrange(1, 4))]

    def statement(self, owners: list[str], depth: int) -> Statement:
        chance = self.chance
        kinds = ["look", "look", "drop", "swap"]
        if depth > 0:
            kinds += ["own", "move", "borrow", "change", "borrow", "change"]
            if self.conditions < 3:
                kinds += ["if", "loop"]
        kind = chance.choice(kinds if owners else ["own"])
        if kind in ("look", "drop"):
            return Statement(kind, (chance.choice(owners),))
        if kind == "swap":
            return Statement(kind, (chance.choice(owners), chance.choice(owners)))
        if kind == "own":
            name = self.fresh()
            return Statement(kind, (name,), (self.body([*owners, name], depth - 1),))
        if kind in ("move", "borrow", "change"):
            name = self.fresh()
            inner = [*owners, name] if kind == "move" else owners
            return Statement(kind, (chance.choice(owners), name), (self.body(inner, depth - 1),))
        self.conditions += 1
        bodies = 2 if kind == "if" else 1
        return Statement(kind, (), tuple(self.body(owners, depth - 1) for _ in range(bodies)))


def drawn(seed: int, depth: int = 4) -> list[Statement]:
    drawing = Drawing(random.Random(seed))
    return [Statement("own", ("x0",), (drawing.body(["x0"], depth),))]


# ---- the interpreter -------------------------------------------------------------------------------------------------


@dataclass
class Run:
    """One way through a program; `outcomes` are those of its conditions so far, then false."""

    outcomes: list[bool]
    at: int = 0
    gone: set[str] = field(default_factory=set)
    lent: list[tuple[str, bool]] = field(default_factory=list)

    def condition(self) -> bool:
        if self.at == len(self.outcomes):
            self.outcomes.append(False)
        self.at += 1
        return self.outcomes[self.at - 1]

    def lend(self, owner: str, mutable: bool) -> None:
        if owner in self.gone or any(o == owner and (mutable or m) for o, m in self.lent):
            raise Fault
        self.lent.append((owner, mutable))

    def end(self, owner: str) -> None:
        if owner in self.gone or any(o == owner for o, _ in self.lent):
            raise Fault
        self.gone.add(owner)

    def body(self, statements: list[Statement]) -> None:
        for statement in statements:
            self.one(statement)

    def one(self, s: Statement) -> None:
        before = len(self.lent)
        if s.kind == "look":
            self.lend(s.names[0], False)
        elif s.kind == "drop":
            self.end(s.names[0])
        elif s.kind == "swap":
            for name in s.names:
                self.lend(name, True)
        elif s.kind == "if":
            self.body(s.bodies[0] if self.condition() else s.bodies[1])
        elif s.kind == "loop":
            for _ in range(TURNS):
                self.body(s.bodies[0])
        else:
            if s.kind == "move":
                self.end(s.names[0])
            elif s.kind != "own":
                self.lend(s.names[0], s.kind == "change")
            self.gone.discard(s.names[-1])
            self.body(s.bodies[0])
        del self.lent[before:]


def ways(program: list[Statement]) -> Iterator[Run]:
    """All ways through a program, without what happens on them."""
    outcomes: list[bool] = []
    while True:
        run = Run(outcomes)
        yield run
        outcomes = run.outcomes[: max(run.at, 0)]
        while outcomes and outcomes[-1]:
            outcomes.pop()
        if not outcomes:
            return
        outcomes[-1] = True


def faulty(program: list[Statement]) -> bool:
    for run in ways(program):
        try:
            run.body(program)
        except Fault:
            return True
    return False


# ---- the text --------------------------------------------------------------------------------------------------------

BINDING = {"own": "(owned (vector 1))", "move": "(move {})", "borrow": "(borrow {})", "change": "(borrow-mut {})"}


def text(statements: list[Statement]) -> str:
    return " ".join(map(_written, statements))


def _written(s: Statement) -> str:
    if s.kind == "look":
        return f"(look (borrow {s.names[0]}))"
    if s.kind == "drop":
        return f"(drop {s.names[0]})"
    if s.kind == "swap":
        return f"(swap (borrow-mut {s.names[0]}) (borrow-mut {s.names[1]}))"
    if s.kind == "if":
        return f"(if (toss) (begin {text(s.bodies[0])}) (begin {text(s.bodies[1])}))"
    if s.kind == "loop":
        return f"(let again ((i 0)) (if (< i {TURNS}) (begin {text(s.bodies[0])} (again (+ i 1)))))"
    return f"(let (({s.names[-1]} {BINDING[s.kind].format(s.names[0])})) {text(s.bodies[0])} 'done)"


HEAD = """(define tosses '())
(define (toss) (let ((next (car tosses))) (set! tosses (append (cdr tosses) (list next))) next))
(define (look v) (vector-ref v 0))
(define (swap v w) (let ((x (vector-ref v 0))) (vector-set! v 0 (vector-ref w 0)) (vector-set! w 0 x)))
"""


def in_one(programs: list[list[Statement]]) -> str:
    """A file with a procedure for each program in a line of its own, behind the head."""
    lines = [f"(define (p{number}) {text(program)})" for number, program in enumerate(programs)]
    return HEAD + "\n".join(lines) + "\n"


def first_line() -> int:
    return HEAD.count("\n") + 1
