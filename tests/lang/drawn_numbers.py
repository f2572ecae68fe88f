"""Random programs of numbers that procedures hand to one another, with what they give, computed by Python.

Comes in: a seed. Goes out: text, and the values that it writes. Integers grow beyond fixnums and are cut down again,
some parameters only ever get flonums or counters, some get both: what `codegen/inference.py` finds out differs from
procedure to procedure.
"""

from __future__ import annotations

import math
import random
from dataclasses import dataclass, field
from typing import Any

INTEGERS = (0, 1, -1, 2, 3, 7, -5, 100, 2**31, 2**53 + 1, 2**62 - 1, 2**62, 2**63 - 1, -(2**63), 2**63, -(2**64))
DOUBLES = (0.0, -0.0, 1.0, 0.5, -1.25, 3.75, 1e10, 9007199254740993.0, 9.3e18, -1e-7, 1e300)
LIMIT = 2**66 + 3
TABLE = (5, -7, 2**40, 2**63 - 1)
RELATIONS = ("<", "<=", "=", ">", ">=")

Tree = Any  # a number, a variable's name, or a tuple of an operator and its operands


@dataclass
class Procedure:
    name: str
    kinds: list[str]  # of its parameters behind the counter: integer, double, either
    result: str
    body: Tree = None


@dataclass
class Program:
    """Procedures, and calls of them."""

    chance: random.Random
    procedures: list[Procedure] = field(default_factory=list)
    calls: list[Tree] = field(default_factory=list)
    count: int = 0

    def name(self) -> str:
        self.count += 1
        return f"v{self.count}"

    # ---- drawing ------------------------------------------------------------------------------------------------

    def tree(self, kind: str, known: dict[str, str], depth: int) -> Tree:
        """An expression of a kind, over variables of known kinds."""
        chance = self.chance
        if kind == "either":
            kind = chance.choice(["integer", "double"])
        names = [name for name, its in known.items() if its == kind]
        if depth <= 0 or chance.random() < 0.15:
            if names and chance.random() < 0.75:
                return chance.choice(names)
            return chance.choice(INTEGERS if kind == "integer" else DOUBLES)
        pick = chance.randrange(10)
        if pick < 2:
            return ("if", self.test(known, depth - 1), *(self.tree(kind, known, depth - 1) for _ in range(2)))
        if pick == 2:
            name, inner = self.name(), chance.choice(["integer", "double"])
            value = self.tree(inner, known, depth - 1)
            return ("let", name, value, self.tree(kind, {**known, name: inner}, depth - 1))
        if kind == "double":
            kinds = chance.choice(
                [("double", "double"), ("double", "double"), ("double", "integer"), ("integer", "double")]
            )
            return (chance.choice("+-*"), *(self.tree(k, known, depth - 1) for k in kinds))
        if pick == 3:
            index, total = self.name(), self.name()
            step = self.tree("integer", {**known, index: "integer", total: "integer"}, depth - 2)
            return ("loop", index, chance.randrange(5), total, self.tree("integer", known, depth - 1), self.cut(step))
        if pick == 4:
            divide = chance.choice(["quotient", "remainder", "modulo"])
            return (divide, self.tree("integer", known, depth - 1), chance.choice([1, 2, 3, 8, 10, -3, 2**40, 2**64]))
        if pick == 5:
            return ("vector-ref", ("modulo", self.tree("integer", known, depth - 1), len(TABLE)))
        if pick == 6:
            return ("-", self.tree("integer", known, depth - 1))
        return (chance.choice("++-*"), *(self.tree("integer", known, depth - 1) for _ in range(2)))

    def test(self, known: dict[str, str], depth: int) -> Tree:
        chance = self.chance
        if depth > 0 and chance.random() < 0.3:
            word = chance.choice(["and", "or", "not"])
            return (word, *(self.test(known, depth - 1) for _ in range(1 if word == "not" else 2)))
        return (chance.choice(RELATIONS), *(self.tree("either", known, depth - 1) for _ in range(2)))

    def cut(self, tree: Tree) -> Tree:
        return ("remainder", tree, self.chance.choice([1000, 2**31, LIMIT]))

    def call(self, procedure: Procedure, counter: Tree, known: dict[str, str], depth: int) -> Tree:
        args = [self.tree(kind, known, depth) for kind in procedure.kinds]
        kept = [self.cut(arg) if kind == "integer" else arg for arg, kind in zip(args, procedure.kinds, strict=True)]
        return (procedure.name, counter, *kept)

    def draw(self) -> Program:
        chance = self.chance
        for number in range(chance.randrange(2, 5)):
            kinds = [chance.choice(["integer", "double", "either"]) for _ in range(chance.randrange(1, 5))]
            self.procedures.append(Procedure(f"p{number}", kinds, chance.choice(["integer", "double"])))
        for procedure in self.procedures:
            known = {"n": "integer", **{f"a{i}": kind for i, kind in enumerate(procedure.kinds)}}
            base = self.tree(procedure.result, known, 3)
            same = [p for p in self.procedures if p.result == procedure.result]
            again = self.call(chance.choice(same), ("-", "n", 1), known, 2)
            if procedure.result == "integer":
                base = self.cut(base)
                again = chance.choice([again, self.cut(("+", again, self.tree("integer", known, 2)))])
            elif chance.random() < 0.5:
                again = ("+", ("*", again, 0.5), self.tree("double", known, 2))
            procedure.body = ("if", ("<=", "n", 0), base, again)
        for procedure in self.procedures:
            self.calls += [self.call(procedure, chance.randrange(4), {}, 1) for _ in range(2)]
        return self

    # ---- text ---------------------------------------------------------------------------------------------------

    def text(self, *, known: bool = True) -> str:
        """The program; unless procedures are to be known, they are all assigned to."""
        lines = ["(define table (vector 5 -7 1099511627776 9223372036854775807))"]
        for p in self.procedures:
            params = " ".join(f"a{i}" for i in range(len(p.kinds)))
            lines.append(f"(define ({p.name} n {params}) {written(p.body)})")
            lines += [] if known else [f"(set! {p.name} {p.name})"]
        lines += [f"(write {written(call)}) (newline)" for call in self.calls]
        return "\n".join(lines)

    # ---- values -------------------------------------------------------------------------------------------------

    def values(self) -> list[int | float]:
        return [self.value(call, {}) for call in self.calls]

    def value(self, tree: Tree, env: dict[str, Any]) -> Any:
        if not isinstance(tree, tuple):
            return env[tree] if isinstance(tree, str) else tree
        word = tree[0]
        match tree:
            case ("if", test, then, otherwise):
                return self.value(then if self.value(test, env) else otherwise, env)
            case ("let", name, value, body):
                return self.value(body, {**env, name: self.value(value, env)})
            case ("loop", index, count, total, start, step):
                found = self.value(start, env)
                for i in range(count):
                    found = self.value(step, {**env, index: i, total: found})
                return found
            case ("and", one, other):
                return self.value(one, env) and self.value(other, env)
            case ("or", one, other):
                return self.value(one, env) or self.value(other, env)
        args = [self.value(arg, env) for arg in tree[1:]]
        for procedure in self.procedures:
            if procedure.name == word:
                return self.value(procedure.body, {"n": args[0], **{f"a{i}": a for i, a in enumerate(args[1:])}})
        return _OPERATORS[word](*args)


def _quotient(a: int, b: int) -> int:
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


_OPERATORS: dict[str, Any] = {
    "+": lambda a, b: a + b, "-": lambda a, b=None: -a if b is None else a - b, "*": lambda a, b: a * b,
    "<": lambda a, b: a < b, "<=": lambda a, b: a <= b, "=": lambda a, b: a == b, ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b, "not": lambda a: not a, "quotient": _quotient,
    "remainder": lambda a, b: a - b * _quotient(a, b), "modulo": lambda a, b: a % b,
    "vector-ref": lambda i: TABLE[i],
}  # fmt: skip


def written(tree: Tree) -> str:
    match tree:
        case ("vector-ref", index):
            return f"(vector-ref table {written(index)})"
        case ("let", name, value, body):
            return f"(let (({name} {written(value)})) {written(body)})"
        case ("loop", index, count, total, start, step):
            again = f"(again (+ {index} 1) {written(step)})"
            return f"(let again (({index} 0) ({total} {written(start)})) (if (= {index} {count}) {total} {again}))"
        case tuple():
            return f"({' '.join(map(written, tree))})"
    return str(tree)


def number(text: str) -> int | float:
    """A number as the program writes it."""
    if text in ("+inf.0", "-inf.0", "+nan.0", "-nan.0"):
        return float(text[:4])
    return float(text) if any(mark in text for mark in ".e") else int(text)


def same(one: float, other: float) -> bool:
    if type(one) is not type(other):
        return False
    if isinstance(one, float) and (math.isnan(one) or one == 0):
        return repr(abs(one)) == repr(abs(other)) and (
            math.isnan(one) or math.copysign(1, one) == math.copysign(1, other)
        )
    return one == other
