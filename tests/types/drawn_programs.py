"""Random programs that are well typed by construction, also without their types, and edits that make them ill typed.

    python tests/types/drawn_programs.py 10000      # so many programs: checked, run with and without types, and edited
    ESHKOL_TIER=quick python tests/types/drawn_programs.py 100000 0 2    # smaller ones, compiled quickly: 30 a second

A program is a tree: forms of known types, and texts. `written` gives it with its annotations or without them; a place
may hold a constant of another type instead of what belongs there, which the checker must refuse.
"""

from __future__ import annotations

import random
import re
import subprocess
import sys
from bisect import bisect_right
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from eshkol.lang.source import Source

INTEGER, FLOAT, STRING, BOOLEAN = "Integer", "Float64", "String", "Boolean"
GROUND = (INTEGER, FLOAT, STRING)


@dataclass
class Tree:
    """A form of a type. `strict`: whether something of another type must be refused in its place."""

    kind: str
    parts: list[Tree | str | Typed]
    strict: bool = False

    def places(self) -> Iterator[Tree]:
        if self.strict:
            yield self
        for part in self.parts:
            if isinstance(part, Tree):
                yield from part.places()


@dataclass
class Typed:
    """Text that stands in the version with types alone, and what stands there in the other."""

    text: str
    without: str = ""


def written(tree: Tree, typed: bool, wrong: Tree | None = None, instead: str = "") -> str:
    if tree is wrong:
        return instead
    texts = []
    for part in tree.parts:
        if isinstance(part, Tree):
            texts.append(written(part, typed, wrong, instead))
        elif isinstance(part, Typed):
            texts.append(part.text if typed else part.without)
        else:
            texts.append(part)
    return "".join(texts)


def another(kind: str) -> str:
    """A constant that is not of a type, and of no type that a check could turn into it."""
    if kind in (INTEGER, FLOAT):
        return '"wrong"'
    return "17" if kind == STRING else "#\\w"


@dataclass
class Writer:
    chance: random.Random
    variables: list[tuple[str, str]] = field(default_factory=list)  # names and types
    functions: list[tuple[str, tuple[str, ...], str]] = field(default_factory=list)
    count: int = 0

    def name(self) -> str:
        self.count += 1
        return f"v{self.count}"

    def form(self, kind: str, depth: int, strict: bool = True) -> Tree:
        made = self._form(kind, depth)
        made.strict = strict and kind != BOOLEAN
        return made

    def _form(self, kind: str, depth: int) -> Tree:
        known = [name for name, of in self.variables if of == kind]
        if depth <= 0:
            if known and self.chance.random() < 0.7:
                return Tree(kind, [self.chance.choice(known)])
            return Tree(kind, [self.constant(kind)])
        ways: list[Callable[[str, int], Tree]] = [self._if, self._let, self._cond_union]
        ways += {
            INTEGER: [self._integer] * 6,
            FLOAT: [self._float] * 5,
            STRING: [self._string] * 4,
            BOOLEAN: [self._boolean] * 9,
        }.get(kind, [self._list if kind.startswith("(List") else self._vector] * 6)
        if known:
            ways += [lambda k, d: Tree(k, [self.chance.choice(known)])] * 2
        callable_ = [f for f in self.functions if f[2] == kind]
        if callable_:
            ways += [lambda k, d: self._call(self.chance.choice(callable_), d)] * 2
        return self.chance.choice(ways)(kind, depth)

    def constant(self, kind: str) -> str:
        chance = self.chance
        if kind == INTEGER:
            return str(chance.choice((0, 1, 2, 3, 7, -4, 10**9, 3037000500, -(2**62))))
        if kind == FLOAT:
            return chance.choice(("0.5", "1.0", "-2.25", "1e10", "3.0"))
        if kind == STRING:
            return chance.choice(('""', '"a"', '"text"', '"λx"'))
        if kind == BOOLEAN:
            return chance.choice(("(< 1 2)", "(= 1 2)"))  # a constant would make a branch dead
        inside = self._inside(kind)
        items = " ".join(self.constant(inside) for _ in range(chance.randrange(1, 3)))
        return f"(list {items})" if kind.startswith("(List") else f"(vector {items})"

    def _inside(self, kind: str) -> str:
        return kind.split(" ", 1)[1][:-1]

    def _wrapped(self, kind: str, *parts: Tree | str) -> Tree:
        return Tree(kind, list(parts))

    def _bound(self, name: str, kind: str, make: Callable[[], Tree]) -> Tree:
        self.variables.append((name, kind))
        try:
            return make()
        finally:
            self.variables.pop()

    def _if(self, kind: str, depth: int) -> Tree:
        test, then, otherwise = self.form(BOOLEAN, depth - 1), self.form(kind, depth - 1), self.form(kind, depth - 1)
        return self._wrapped(kind, "(if ", test, " ", then, " ", otherwise, ")")

    def _let(self, kind: str, depth: int) -> Tree:
        name, of = self.name(), self.chance.choice((*GROUND, f"(List {self.chance.choice(GROUND)})"))
        value = self.form(of, depth - 1)
        body = self._bound(name, of, lambda: self.form(kind, depth - 1))
        return Tree(kind, ["(let ((", name, Typed(f" : {of}"), " ", value, ")) ", body, ")"])

    def _cond_union(self, kind: str, depth: int) -> Tree:
        """A value of either of two types, and a predicate that tells which."""
        name = self.name()
        whole = self.chance.random() < 0.5
        value = self._wrapped(
            INTEGER if whole else STRING, "(+ 0 " if whole else "(string-append ",
            self.form(INTEGER if whole else STRING, depth - 1), ")",
        )  # fmt: skip
        then = self._bound(name, STRING, lambda: self.form(kind, depth - 1))
        otherwise = self._bound(name, INTEGER, lambda: self.form(kind, depth - 1))
        head: list[Tree | str | Typed] = ["(let ((", name, Typed(" : (U Integer String)"), " ", value, ")) "]
        if self.chance.random() < 0.5:
            return Tree(kind, [*head, f"(if (string? {name}) ", then, " ", otherwise, "))"])
        return Tree(kind, [*head, f"(cond ((number? {name}) ", otherwise, ") (else ", then, ")))"])

    def _call(self, function: tuple[str, tuple[str, ...], str], depth: int) -> Tree:
        name, params, result = function
        parts: list[Tree | str | Typed] = [f"({name}"]
        for param in params:
            parts += [" ", self.form(param, depth - 1)]
        return Tree(result, [*parts, ")"])

    def _held(self, kind: str, depth: int) -> Tree:
        """A value whose type is written down, for those who take any list or vector."""
        name = self.name()
        return Tree(kind, ["(let ((", name, Typed(f" : {kind}"), " ", self.form(kind, depth), f")) {name})"])

    def _integer(self, kind: str, depth: int) -> Tree:
        chance, less = self.chance, depth - 1
        match chance.randrange(9):
            case 0 | 1:
                op = chance.choice(("+", "-", "*", "max"))
                return self._wrapped(kind, f"({op} ", self.form(kind, less), " ", self.form(kind, less), ")")
            case 2:
                return self._wrapped(kind, "(string-length ", self.form(STRING, less), ")")
            case 3:
                return self._wrapped(kind, "(length ", self._held(f"(List {chance.choice(GROUND)})", less), ")")
            case 4:
                return self._wrapped(
                    kind, "(vector-length ", self._held(f"(Vector {chance.choice(GROUND)})", less), ")"
                )
            case 5:
                op = chance.choice(("quotient", "modulo", "remainder"))
                return self._wrapped(kind, f"({op} ", self.form(kind, less), f" {chance.choice((3, -7, 10))})")
            case 6:
                return self._first("(List Integer)", kind, less)
            case 7:
                return self._loop(kind, less)
        return self._fold(kind, less)

    def _first(self, of: str, kind: str, depth: int) -> Tree:
        name = self.name()
        listed = self.form(of, depth)
        return Tree(
            kind,
            ["(let ((", name, Typed(f" : {of}"), " ", listed, f")) (if (pair? {name}) (car {name}) ",
             self.form(kind, 0), "))"],
        )  # fmt: skip

    def _loop(self, kind: str, depth: int) -> Tree:
        """A loop that counts, whose variables have no types of their own."""
        index, total = self.name(), self.name()
        self.variables.append((index, INTEGER))
        step = self._bound(total, kind, lambda: self.form(kind, min(depth, 1)))
        self.variables.pop()
        turns = self.chance.randrange(4)
        return Tree(
            kind,
            [
                f"(let loop (({index} 0) ({total} ", self.form(kind, 0),
                f")) (if (< {index} {turns}) (loop (+ {index} 1) ", step, f") {total}))"],
        )  # fmt: skip

    def _fold(self, kind: str, depth: int) -> Tree:
        item, total = self.name(), self.name()
        self.variables.append((item, STRING))
        body = self._bound(total, INTEGER, lambda: self.form(INTEGER, min(depth, 1)))
        self.variables.pop()
        params = Typed(f"(({item} : String) ({total} : Integer))", f"({item} {total})")
        return Tree(kind, ["(fold (lambda ", params, " ", body, ") 0 ", self.form("(List String)", depth), ")"])

    def _float(self, kind: str, depth: int) -> Tree:
        less = depth - 1
        match self.chance.randrange(5):
            case 0 | 1:
                op = self.chance.choice(("+", "-", "*", "max", "min"))
                return self._wrapped(kind, f"({op} ", self.form(kind, less), " ", self.form(kind, less), ")")
            case 2:
                return self._wrapped(kind, "(inexact ", self.form(INTEGER, less), ")")
            case 3:
                return self._wrapped(kind, "(abs ", self.form(kind, less), ")")
        return self._first("(List Float64)", kind, less)

    def _string(self, kind: str, depth: int) -> Tree:
        less = depth - 1
        match self.chance.randrange(4):
            case 0:
                return self._wrapped(kind, "(string-append ", self.form(kind, less), " ", self.form(kind, less), ")")
            case 1:
                return self._wrapped(kind, "(number->string ", self.form(INTEGER, less), ")")
            case 2:
                return self._wrapped(kind, "(string-upcase ", self.form(kind, less), ")")
        return self._first("(List String)", kind, less)

    def _boolean(self, kind: str, depth: int) -> Tree:
        less = depth - 1
        match self.chance.randrange(6):
            case 0 | 1:
                op, of = self.chance.choice(("<", "=", ">=")), self.chance.choice((INTEGER, FLOAT))
                return self._wrapped(kind, f"({op} ", self.form(of, less), " ", self.form(of, less), ")")
            case 2:
                return self._wrapped(kind, "(not ", self.form(kind, less), ")")
            case 3:
                op = self.chance.choice(("and", "or"))
                return self._wrapped(kind, f"({op} ", self.form(kind, less), " ", self.form(kind, less), ")")
            case 4:
                return self._wrapped(kind, "(string=? ", self.form(STRING, less), " ", self.form(STRING, less), ")")
        return self._wrapped(kind, "(null? ", self._held(f"(List {self.chance.choice(GROUND)})", less), ")")

    def _list(self, kind: str, depth: int) -> Tree:
        less, inside = depth - 1, self._inside(kind)
        match self.chance.randrange(6):
            case 0:
                return self._wrapped(kind, "(cons ", self.form(inside, less), " ", self.form(kind, less), ")")
            case 1:
                return self._wrapped(kind, "(list ", self.form(inside, less), " ", self.form(inside, less), ")")
            case 2:
                return self._wrapped(kind, "(reverse ", self.form(kind, less), ")")
            case 3:
                return self._wrapped(kind, "(append ", self.form(kind, less), " ", self._held(kind, less), ")")
            case 4:
                return self._mapped(kind, inside, less)
        return self._wrapped(kind, "(vector->list ", self.form(f"(Vector {inside})", less), ")")

    def _mapped(self, kind: str, inside: str, depth: int) -> Tree:
        name, of = self.name(), self.chance.choice(GROUND)
        body = self._bound(name, of, lambda: self.form(inside, depth))
        return Tree(
            kind,
            [
                "(map (lambda (",
                Typed(f"({name} : {of})", name),
                ") ",
                body,
                ") ",
                self.form(f"(List {of})", depth),
                ")",
            ],
        )

    def _vector(self, kind: str, depth: int) -> Tree:
        less, inside = depth - 1, self._inside(kind)
        if self.chance.random() < 0.5:
            return self._wrapped(kind, "(list->vector ", self.form(f"(List {inside})", less), ")")
        return self._wrapped(kind, "(vector ", self.form(inside, less), " ", self.form(inside, less), ")")

    def function(self, depth: int) -> Tree:
        """A definition; its type stands in its header, or before it."""
        chance = self.chance
        kinds = (*GROUND, "(List Integer)", "(List String)", "(Vector Float64)")
        params = [(self.name(), chance.choice(kinds)) for _ in range(chance.randrange(1, 4))]
        result, name = chance.choice(kinds), f"f{self.count}"
        self.variables += params
        body = self.form(result, depth)
        del self.variables[-len(params) :]
        bare = " ".join(param for param, _ in params)
        parts: list[Tree | str | Typed]
        if chance.random() < 0.3:
            arrow = " ".join([*(kind for _, kind in params), result])
            parts = [Typed(f"(: {name} (-> {arrow}))\n"), f"(define ({name} {bare}) ", body, ")\n"]
        else:
            header = " ".join(f"({param} : {kind})" for param, kind in params)
            parts = [f"(define ({name} ", Typed(header, bare), ")", Typed(f" : {result}"), " ", body, ")\n"]
        self.functions.append((name, tuple(kind for _, kind in params), result))
        return Tree("Void", parts)


def program(seed: int, depth: int = 3) -> Tree:
    """A program: some procedures, and what it writes."""
    writer = Writer(random.Random(seed))
    forms: list[Tree | str | Typed] = [writer.function(depth) for _ in range(2)]
    for _ in range(2):
        forms += ["(write ", writer._call(writer.chance.choice(writer.functions), 1), ")\n"]
    return Tree("Void", forms)


def ill_typed(tree: Tree, seed: int) -> str | None:
    """The program with a constant of another type in one place; None where it has no such place."""
    places = list(tree.places())
    if not places:
        return None
    wrong = random.Random(seed).choice(places)
    return written(tree, True, wrong, another(wrong.kind))


# ---- what they are for -----------------------------------------------------------------------------------------------


@dataclass
class Findings:
    """What came of so many programs: texts with what is wrong with them."""

    refused: list[str] = field(default_factory=list)  # well-typed programs that were refused
    accepted: list[str] = field(default_factory=list)  # ill-typed ones that were not
    edits: int = 0


def judged(seeds: range, depth: int = 3) -> Findings:
    """Have the checker look at programs, and at edits of them: all as one file, whose lines tell them apart."""
    found = Findings()
    trees = {seed: program(seed, depth) for seed in seeds}
    for seed, error in _errors({seed: written(tree, True) for seed, tree in trees.items()}).items():
        found.refused.append(f"{seed}: {written(trees[seed], True)}\n{error}")
    edits = {seed: wrong for seed, tree in trees.items() if (wrong := ill_typed(tree, seed)) is not None}
    found.edits = len(edits)
    errors = _errors(edits)
    found.accepted += [f"{seed}: {wrong}" for seed, wrong in edits.items() if seed not in errors]
    return found


def _errors(texts: dict[int, str]) -> dict[int, str]:
    """The first error of each program that has one."""
    from eshkol.session import Session, on_session
    from eshkol.session.typing import checked

    ends: list[tuple[int, int]] = []
    whole, line = [], 1
    for seed, text in texts.items():
        named = apart(seed, text)
        whole.append(named)
        line += named.count("\n")
        ends.append((line, seed))
    found: dict[int, str] = {}

    def work(session: Session) -> None:
        for error in checked(session, Source("<programs>", "".join(whole))).errors:
            assert error.span is not None
            at = bisect_right(ends, (error.span.line, max(texts)))
            found.setdefault(ends[at][1], str(error))

    on_session(work, ["typed programs"])
    return found


def apart(seed: int, text: str) -> str:
    """A program whose names are its own."""
    return re.sub(r"\b([vf]\d+)\b", rf"p{seed}-\1", text) + "(newline)\n"


def in_one(seeds: range, typed: bool, depth: int = 3) -> str:
    """Programs as one, whose names are kept apart; what each writes is a line."""
    return "".join(apart(seed, written(program(seed, depth), typed)) for seed in seeds)


def main(count: int, first: int = 0, depth: int = 3, size: int = 200) -> int:
    """So many programs, a file of some of them at a time; 0 if all is as it should be."""
    import tempfile

    wrong = 0
    for at in range(first, first + count, size):
        seeds = range(at, min(at + size, first + count))
        found = judged(seeds, depth)
        for text in [*found.refused, *found.accepted]:
            print(text, file=sys.stderr)
        wrong += len(found.refused) + len(found.accepted)
        outputs = []
        for typed in (True, False):
            with tempfile.TemporaryDirectory() as folder:
                file = Path(folder, "programs.esk")
                file.write_text(in_one(seeds, typed, depth), encoding="utf-8")
                ran = subprocess.run(
                    [sys.executable, "-m", "eshkol", "run", str(file)], capture_output=True, check=False
                )
            outputs.append(ran.stdout)
            if ran.returncode:
                print(f"{seeds}: {ran.stderr.decode()}", file=sys.stderr)
                wrong += 1
        if outputs[0] != outputs[1]:
            print(f"{seeds}: what they write differs with types and without", file=sys.stderr)
            wrong += 1
        print(f"{at + len(seeds) - first} programs, {wrong} findings", flush=True)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:])) if sys.argv[1:] else main(1000))
