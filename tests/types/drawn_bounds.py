"""Random programs that read and change vectors behind tests of their indices, with types and without.

    python tests/types/drawn_bounds.py 500      # so many programs; says how many accesses look at no bounds

Some indices are within for certain, some are not, and some are not within at all: then both versions of a program must
say so. The types of the one let the compiler leave looks at bounds out.
"""

from __future__ import annotations

import random
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from eshkol.lang.source import Source

HEAD = """\
(define (id x) x)
(define (show thunk) (display (guard (e (#t 'refused)) (thunk))) (newline))
"""


@dataclass
class Writer:
    """Writes procedures over the vectors `v` and `w`, the naturals `i` and `j` and whatever they bind."""

    chance: random.Random
    integers: list[str] = field(default_factory=list)
    count: int = 0

    def name(self) -> str:
        self.count += 1
        return f"k{self.count}"

    def index(self, depth: int = 2) -> str:
        """An integer that is often within."""
        chance = self.chance
        ways = [str(chance.randrange(-1, 4)), *[chance.choice(self.integers)] * 3, "(vector-length v)"]
        if depth:
            inside = self.index(depth - 1)
            ways += [
                f"(+ {inside} {chance.choice((1, -1, 2))})", f"(- {inside} {chance.choice((1, 2))})",
                f"(- (vector-length {chance.choice('vw')}) {inside})", f"(quotient {inside} {chance.choice((2, 3))})",
                f"(modulo {inside} {chance.choice((2, 3))})", f"(modulo {inside} (vector-length v))",
                f"(* 2 {inside})",
            ]  # fmt: skip
        return chance.choice(ways)

    def test(self, index: str) -> str:
        """What often says that an index is within."""
        chance = self.chance
        vector = chance.choice("vvw")
        ways = [
            f"(< -1 {index} (vector-length {vector}))", f"(and (>= {index} 0) (< {index} (vector-length {vector})))",
            f"(< {index} (vector-length {vector}))", f"(<= {index} {self.index(1)})", f"(not (< {index} 0))",
            f"(and (= (vector-length v) (vector-length w)) (<= 0 {index}) (< {index} (vector-length {vector})))",
            f"(>= (vector-length {vector}) {chance.randrange(1, 4)})",
        ]  # fmt: skip
        return chance.choice(ways)

    def bound(self, name: str, depth: int) -> str:
        self.integers.append(name)
        try:
            return self.form(depth)
        finally:
            self.integers.pop()

    def form(self, depth: int) -> str:
        """An expression that gives an integer."""
        chance = self.chance
        if depth <= 0:
            return self.access() if chance.random() < 0.8 else self.index(1)
        less = depth - 1
        match chance.randrange(7):
            case 0 | 1:
                index = self.index()
                name = self.name()
                return f"(let (({name} {index})) (if {self.test(name)} {self.bound(name, less)} {self.form(0)}))"
            case 2:
                return f"(if {self.test(chance.choice(self.integers))} {self.form(less)} {self.form(less)})"
            case 3:
                name, total = self.name(), self.name()
                end = chance.choice(("(vector-length v)", "(vector-length w)", "3", self.index(0)))
                body = self.bound(name, less)
                return (
                    f"(let loop (({name} {chance.choice((0, 0, 1))}) ({total} 0))"
                    f" (if (< {name} {end}) (loop (+ {name} {chance.choice((1, 1, 2))}) (+ {total} {body})) {total}))"
                )
            case 4:
                name, total = self.name(), self.name()
                begin = chance.choice(("(- (vector-length v) 1)", "(- (vector-length w) 1)", self.index(1)))
                body = self.bound(name, less)
                return (
                    f"(let loop (({name} (min 9 {begin})) ({total} 0))"
                    f" (if ({chance.choice(('>=', '>'))} {name} 0)"
                    f" (loop (- {name} 1) (+ {total} {body})) {total}))"
                    if chance.random() < 0.5
                    else f"(let loop (({name} {begin}) ({total} 0) (turns 0))"
                    f" (if (and (>= {name} 0) (< turns 9))"
                    f" (loop (- {name} 1) (+ {total} {body}) (+ turns 1)) {total}))"
                )
            case 5:
                return f"(begin (vector-set! {chance.choice('vw')} {self.index(1)} {self.index(1)}) {self.form(less)})"
        return f"(+ {self.form(less)} {self.form(0)})"

    def access(self) -> str:
        return f"(vector-ref {self.chance.choice('vvw')} {self.chance.choice([*self.integers, self.index(1)])})"


def program(seed: int, typed: bool) -> str:
    """A procedure, and calls of it; both versions are drawn alike."""
    chance = random.Random(seed)
    writer = Writer(chance, ["i", "j"])
    body = writer.form(3)
    asked, same = chance.random() < 0.6, chance.random() < 0.3
    item, other_item = "n" if asked else str(chance.choice((3, 4))), "n" if same else "m"
    params = f"(v : (Vector Integer {item})) (w : (Vector Integer {other_item}))"
    params += f" (i : {'{i < n}' if asked else 'Nat'}) (j : Integer)"
    name = f"p{seed}"
    texts = [f"(define ({name} {params}) : Integer {body})" if typed else f"(define ({name} v w i j) {body})"]
    for _ in range(3):
        length = chance.randrange(1, 6) if asked else int(item)
        other = length if same and asked else chance.randrange(0, 6)
        v, w = ("".join(f" {chance.randrange(-1, 6)}" for _ in range(n)) for n in (length, other))
        i, j = chance.randrange(length) if asked else chance.randrange(5), chance.randrange(-2, 5)
        if chance.random() < 0.3:  # through code that knows nothing
            texts.append(f"(show (lambda () ((id {name}) (vector{v}) (vector{w}) {i} {j})))")
        else:
            texts.append(f"(show (lambda () (let ((v (vector{v})) (w (vector{w}))) ({name} v w {i} {j}))))")
    return "\n".join(texts) + "\n"


def accepted(seeds: range) -> list[int]:
    """The programs in which the checker finds no index that is certainly wrong."""
    from eshkol.session import Session, on_session
    from eshkol.session.typing import checked

    found: list[int] = []

    def work(session: Session) -> None:
        for seed in seeds:
            if not checked(session, Source("<program>", HEAD + program(seed, True))).errors:
                found.append(seed)

    on_session(work, ["bounds"])
    return found


def in_one(seeds: Iterable[int], typed: bool) -> str:
    return HEAD + "".join(program(seed, typed) for seed in seeds)


def main(count: int, first: int = 0, size: int = 100) -> int:
    """So many programs, some of them at a time; 0 if both versions of all write the same."""
    wrong = without = refused = ran_so_far = 0
    for at in range(first, first + count, size):
        seeds = accepted(range(at, min(at + size, first + count)))
        outputs = []
        for typed in (True, False):
            with tempfile.TemporaryDirectory() as folder:
                file = Path(folder, "programs.esk")
                file.write_text(in_one(seeds, typed), encoding="utf-8")
                command = [sys.executable, "-m", "eshkol", "run", *(["--why"] if typed else []), str(file)]
                ran = subprocess.run(command, capture_output=True, check=False, text=True)
            outputs.append(ran.stdout)
            wrong += ran.returncode != 0
            if typed:
                without += ran.stderr.count("looks at no bounds")
        if outputs[0] != outputs[1]:
            wrong += 1
            print(f"{seeds}: what they write differs with types and without", file=sys.stderr)
        ran_so_far += len(seeds)
        refused += outputs[0].count("refused")
        print(
            f"{ran_so_far} programs, {wrong} findings; {without} procedures look at no bounds somewhere, "
            f"{refused} accesses were refused",
            flush=True,
        )
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:])) if sys.argv[1:] else main(100))
