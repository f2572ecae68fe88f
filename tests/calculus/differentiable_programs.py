"""Random differentiable programs of the language: a generator.

Comes in: a seed. Goes out: a `Program`: definitions and a function of a number, several numbers, a vector or a list,
with points to differentiate it at. `scheme_programs.py` asks what is to be asked of each.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

MIXED = "'(1.5 2 1/4)"  # exact and inexact numbers in one list
UNARY = (("sin", 1.0), ("cos", 1.0), ("atan", 1.6), ("tanh", 1.0))


@dataclass
class Scope:
    """What an expression may use."""

    reals: list[str] = field(default_factory=list)
    integers: list[str] = field(default_factory=list)
    vectors: list[str] = field(default_factory=list)  # of numbers, three at least
    lists: list[str] = field(default_factory=list)  # of numbers, one at least
    functions: list[str] = field(default_factory=list)  # of one number

    def plus(self, **more: list[str]) -> Scope:
        return Scope(**{kind: [*getattr(self, kind), *more.get(kind, [])] for kind in vars(self)})


class Generator:
    """Writes programs. Every real expression is about as large as 10 at most."""

    def __init__(self, chance: random.Random) -> None:
        self.chance = chance
        self.names = 0
        self.smooth = True  # no branch on a value, and nothing with a corner or a step
        self.forms: Counter[str] = Counter()

    def name(self, start: str) -> str:
        self.names += 1
        return f"{start}{self.names}"

    def constant(self) -> str:
        return self.chance.choice(
            [
                "1",
                "2",
                "-1",
                "0",
                "1/2",
                "-2/3",
                "0.5",
                "1.5",
                "-0.25",
                "2.0",
                "rate",
                "third",
                "(vector-ref weights 1)",
            ]
        )

    # ---- numbers --------------------------------------------------------------------------------------------------

    def real(self, scope: Scope, depth: int) -> str:
        """An expression of moderate size."""
        chance = self.chance
        if depth <= 0 or chance.random() < 0.12:
            return chance.choice(scope.reals) if scope.reals and chance.random() < 0.8 else self.constant()
        if chance.random() < 0.45:
            return self.arithmetic(scope, depth)
        form = chance.choice(FORMS)
        self.forms[form.__name__] += 1
        return form(self, scope, depth)

    def small(self, scope: Scope, depth: int) -> str:
        """An expression of size at most 2 or so."""
        function, _ = self.chance.choice(UNARY)
        return f"({function} {self.real(scope, depth - 1)})"

    def arithmetic(self, scope: Scope, depth: int) -> str:
        a, b = (self.real(scope, depth - 1) for _ in range(2))
        kind = self.chance.randrange(17)
        if kind in (9, 10, 11, 12):
            self.smooth = False
        match kind:
            case 0 | 1:
                return f"(+ {a} {b})"
            case 2:
                return f"(- {a} {b})"
            case 3 | 4:
                return f"(* (atan {a}) {b})"
            case 5:
                return f"(/ {a} (+ 1.5 (square {b})))"
            case 6:
                return f"(sqrt (+ 1/2 (square {a})))"
            case 7:
                return f"(log (+ 1.25 (* {a} {a})))"
            case 8:
                return f"(exp (- (abs (sin {a}))))" if self.rough() else f"(exp (sin {a}))"
            case 9:
                return f"(max {a} {b})"
            case 10:
                return f"(min {a} {self.constant()} {b})"
            case 11:
                return f"(abs {a})"
            case 12:
                return f"(* ({self.chance.choice(['floor', 'round', 'ceiling', 'truncate'])} {a}) (cos {b}))"
            case 13:
                return f"(expt (tanh {a}) {self.chance.choice([2, 3, 0, 1])})"
            case 14:
                return f"(expt (+ 0.5 (abs (cos {a}))) {self.chance.choice(['1.5', '-1/2', '-2'])})"
            case 15:
                return f"(- {a})"
        return self.small(scope, depth)

    def rough(self) -> bool:
        if self.chance.random() < 0.5:
            self.smooth = False
            return True
        return False

    def integer(self, scope: Scope, depth: int = 1) -> str:
        """A small exact integer from 0."""
        chance = self.chance
        if scope.integers and chance.random() < 0.6:
            name = chance.choice(scope.integers)
            return chance.choice([name, name, f"(modulo {name} 3)", f"(quotient {name} 2)", f"(* {name} 2)"])
        return chance.choice(["1", "2", "3", "4", "steps", "(vector-length weights)", "(vector-ref counts 2)"])

    def test(self, scope: Scope, depth: int) -> str:
        chance = self.chance
        if scope.integers and chance.random() < 0.4:
            name = chance.choice(scope.integers)
            return chance.choice([f"(even? {name})", f"(< {name} 2)", f"(= {name} 1)", f"(odd? (+ {name} 1))"])
        self.smooth = False
        a, b = self.real(scope, depth - 1), self.real(scope, min(1, depth - 1))
        simple = f"({chance.choice(['<', '>', '<=', '>='])} {a} {b})"
        return chance.choice(
            [simple, simple, f"(not {simple})", f"(and (> {a} 0) {simple})", f"(or {simple} (negative? {b}))"]
        )

    # ---- structures -----------------------------------------------------------------------------------------------

    def vector(self, scope: Scope, depth: int) -> str:
        """At least three numbers."""
        chance = self.chance
        if scope.vectors and (depth <= 0 or chance.random() < 0.5):
            return chance.choice(scope.vectors)
        u = self.name("u")
        parts = [self.real(scope, depth - 2) for _ in range(3)]
        inner = scope.plus(reals=[u])
        return chance.choice(
            [
                f"(vector {' '.join(parts)})",
                "weights",
                f"(make-vector {chance.choice(['4', 'steps'])} {parts[0]})",
                f"(vector-map (lambda ({u}) {self.small(inner, depth - 2)}) (vector {' '.join(parts)}))",
                f"(list->vector (list {' '.join(parts)}))",
            ]
        )

    def list(self, scope: Scope, depth: int) -> str:
        """At least one number."""
        chance = self.chance
        if scope.lists and (depth <= 0 or chance.random() < 0.5):
            return chance.choice(scope.lists)
        parts = [self.real(scope, depth - 2) for _ in range(chance.randrange(1, 4))]
        u = self.name("u")
        plain = f"(list {' '.join(parts)})"
        more = [plain, plain, "(car table)", "(cadr table)", f"(cons {parts[0]} {MIXED})", "(map car pairs)"]
        if depth > 0:
            other = self.list(scope, depth - 1)
            inner = scope.plus(reals=[u])
            more += [
                f"(map (lambda ({u}) {self.small(inner, depth - 1)}) {other})",
                f"(reverse {other})",
                f"(append {other} {plain})",
                f"(cons {parts[0]} {other})",
                f"(vector->list {self.vector(scope, depth - 1)})",
            ]
        return chance.choice(more)

    def function(self, scope: Scope, depth: int) -> str:
        """A procedure of one number, whose values are small."""
        chance = self.chance
        if scope.functions and chance.random() < 0.4:
            return chance.choice(scope.functions)
        if chance.random() < 0.25:
            return chance.choice(["sin", "half-of", "squeeze", "(compose sin cos)", "(twice squeeze)", "(twice atan)"])
        u = self.name("u")
        body = self.small(scope.plus(reals=[u]), depth - 1)
        return f"(lambda ({u}) {body})"


# ---- forms: each makes a real expression -----------------------------------------------------------------------------

Form = Callable[[Generator, Scope, int], str]
FORMS: list[Form] = []


def form(make: Form) -> Form:
    FORMS.append(make)
    return make


@form
def named_let(g: Generator, scope: Scope, depth: int) -> str:
    loop, i, s, t = g.name("loop"), g.name("i"), g.name("s"), g.name("t")
    inner = scope.plus(reals=[s, t], integers=[i])
    n = g.integer(scope)
    step, other = g.small(inner, depth - 1), g.small(inner, depth - 2)
    start = g.chance.choice(["0", "0.0", g.real(scope, depth - 2)])
    after = g.chance.choice([s, f"(+ {s} {t})", g.real(scope.plus(reals=[s, t]), 1)])
    again = f"({loop} (+ {i} 1) (+ (* 1/2 {s}) {step}) {other})"
    if g.chance.random() < 0.3:
        return (
            f"(let {loop} (({i} {n}) ({s} {start}) ({t} 1)) (if (zero? {i}) {after} ({loop} (- {i} 1) {step} {other})))"
        )
    if g.chance.random() < 0.4:
        again = f"(if {g.test(inner, depth - 1)} {again} ({loop} (+ {i} 1) {t} (* 0.5 {s})))"
    return f"(let {loop} (({i} 0) ({s} {start}) ({t} 1)) (if (= {i} {n}) {after} {again}))"


@form
def do_loop(g: Generator, scope: Scope, depth: int) -> str:
    i, s = g.name("i"), g.name("s")
    inner = scope.plus(reals=[s], integers=[i])
    return (
        f"(do (({i} 0 (+ {i} 1)) ({s} {g.real(scope, depth - 2)} (+ (half-of {s}) {g.small(inner, depth - 1)})))"
        f" ((>= {i} {g.integer(scope)}) {s}))"
    )


@form
def recursion(g: Generator, scope: Scope, depth: int) -> str:
    r, k, a = g.name("r"), g.name("k"), g.name("a")
    inner = scope.plus(reals=[a], integers=[k])
    base, rest = g.real(inner, 1), f"({r} (- {k} 1) {g.small(inner, depth - 2)})"
    body = g.chance.choice(
        [f"(+ {g.small(inner, depth - 2)} (* 1/2 {rest}))", f"(sin (+ {a} {rest}))", f"(* (cos {a}) {rest})", rest]
    )
    return (
        f"(let () (define ({r} {k} {a}) (if (<= {k} 0) {base} {body}))"
        f" ({r} {g.integer(scope)} {g.real(scope, depth - 2)}))"
    )


@form
def tree_recursion(g: Generator, scope: Scope, depth: int) -> str:
    r, k, a = g.name("r"), g.name("k"), g.name("a")
    inner = scope.plus(reals=[a], integers=[k])
    left, right = (f"({r} (- {k} {d}) {g.small(inner, depth - 2)})" for d in (1, 2))
    return (
        f"(letrec (({r} (lambda ({k} {a}) (if (< {k} 1) {a} (/ (+ {left} {right}) 2)))))"
        f" ({r} {g.chance.choice('1234')} {g.real(scope, depth - 2)}))"
    )


@form
def mutual(g: Generator, scope: Scope, depth: int) -> str:
    p, q, k, a = g.name("p"), g.name("q"), g.name("k"), g.name("a")
    inner = scope.plus(reals=[a], integers=[k])
    first, second = g.small(inner, depth - 2), g.small(inner, depth - 2)
    wrap = g.chance.choice(["", "(* 0.5 ", "(- 1 "])
    close = ")" if wrap else ""
    return (
        f"(letrec (({p} (lambda ({k} {a}) (if (= {k} 0) {a} {wrap}({q} (- {k} 1) {first}){close})))"
        f" ({q} (lambda ({k} {a}) (if (= {k} 0) (- {a}) ({p} (- {k} 1) {second})))))"
        f" ({p} {g.integer(scope)} {g.real(scope, depth - 2)}))"
    )


@form
def bindings(g: Generator, scope: Scope, depth: int) -> str:
    a, b = g.name("a"), g.name("b")
    first = g.real(scope, depth - 1)
    second = g.real(scope.plus(reals=[a]), depth - 1)
    return f"(let* (({a} {first}) ({b} {second})) {g.real(scope.plus(reals=[a, b]), depth - 1)})"


@form
def closure(g: Generator, scope: Scope, depth: int) -> str:
    h = g.name("h")
    inner = scope.plus(functions=[h])
    return (
        f"(let (({h} {g.function(scope, depth - 1)}))"
        f" (+ ({h} {g.real(inner, depth - 2)}) ({h} ({h} {g.real(scope, 1)}))))"
    )


@form
def made_closure(g: Generator, scope: Scope, depth: int) -> str:
    make, c, u = g.name("make"), g.name("c"), g.name("u")
    body = g.small(scope.plus(reals=[c, u]), depth - 1)
    return (
        f"(let (({make} (lambda ({c}) (lambda ({u}) {body}))))"
        f" (* (({make} {g.real(scope, 1)}) {g.real(scope, depth - 2)}) (({make} 2) {g.real(scope, 1)})))"
    )


@form
def summed_map(g: Generator, scope: Scope, depth: int) -> str:
    u, v = g.name("u"), g.name("v")
    if g.chance.random() < 0.4:
        body = g.small(scope.plus(reals=[u, v]), depth - 1)
        one, two = g.list(scope, depth - 1), g.list(scope, depth - 1)
        return f"(apply + (map (lambda ({u} {v}) {body}) {one} {two}))"
    one = g.list(scope, depth - 1)
    return g.chance.choice(
        [
            f"(apply + (map (lambda ({u}) {g.small(scope.plus(reals=[u]), depth - 1)}) {one}))",
            f"(dot {one} {one})",
            f"(sum-of (map {g.function(scope, depth - 1)} {one}))",
            f"(apply max {one})",
        ]
    )


@form
def folded(g: Generator, scope: Scope, depth: int) -> str:
    u, s = g.name("u"), g.name("s")
    body = f"(+ (* 0.5 {s}) {g.small(scope.plus(reals=[u, s]), depth - 1)})"
    name, params = g.chance.choice([("fold", f"{u} {s}"), ("fold-left", f"{s} {u}"), ("fold-right", f"{u} {s}")])
    start = g.chance.choice(["0", "0.5", g.real(scope, 1)])
    return f"({name} (lambda ({params}) {body}) {start} {g.list(scope, depth - 1)})"


@form
def accumulator(g: Generator, scope: Scope, depth: int) -> str:
    acc, u = g.name("acc"), g.name("u")
    inner = scope.plus(reals=[u, acc])
    change = f"(set! {acc} (+ (* 0.5 {acc}) {g.small(inner, depth - 1)}))"
    if g.chance.random() < 0.3:
        change = f"(when {g.test(inner, depth - 1)} {change})"
    over = f"(for-each (lambda ({u}) {change}) {g.list(scope, depth - 1)})"
    if g.chance.random() < 0.3:
        over = f"(vector-for-each (lambda ({u}) {change}) {g.vector(scope, depth - 1)})"
    return f"(let (({acc} {g.chance.choice(['0', '0.0', g.real(scope, 1)])})) {over} {acc})"


@form
def counter(g: Generator, scope: Scope, depth: int) -> str:
    n, bump = g.name("n"), g.name("bump")
    inner = scope.plus(integers=[n])
    return (
        f"(let* (({n} 0) ({bump} (lambda (u) (set! {n} (+ {n} 1)) (* u {n}))))"
        f" (let* ((a ({bump} {g.small(inner, depth - 1)})) (b ({bump} (sin a)))) (- a (* b {n}))))"
    )


@form
def changed_vector(g: Generator, scope: Scope, depth: int) -> str:
    v, i = g.name("v"), g.name("i")
    inner = scope.plus(vectors=[v], integers=[i])
    start = g.chance.choice(
        [f"(make-vector 4 {g.chance.choice(['0', '0.0', g.real(scope, 1)])})",
         f"(vector {' '.join(g.real(scope, depth - 2) for _ in range(4))})"]
    )  # fmt: skip
    change = f"(vector-set! {v} {i} (+ (* 1/2 (vector-ref {v} (modulo (+ {i} 3) 4))) {g.small(inner, depth - 1)}))"
    return (
        f"(let (({v} {start})) (do (({i} 0 (+ {i} 1))) ((= {i} 4)) {change})"
        f" {g.chance.choice([f'(vector-ref {v} 3)', f'(mean-of {v})', g.real(scope.plus(vectors=[v]), depth - 1)])})"
    )


@form
def shared_vector(g: Generator, scope: Scope, depth: int) -> str:
    """Two names of one vector."""
    a, b, c = g.name("a"), g.name("b"), g.name("c")
    one, two = (f"(vector {' '.join(g.real(scope, depth - 2) for _ in range(3))})" for _ in range(2))
    return (
        f"(let* (({a} {one}) ({b} {two}) ({c} (if {g.test(scope, 1)} {a} {b})))"
        f" (vector-set! {c} 1 {g.real(scope, depth - 2)})"
        f" (+ (vector-ref {a} 1) (* 2 (vector-ref {b} 1)) (vector-ref {c} 0)))"
    )


@form
def element(g: Generator, scope: Scope, depth: int) -> str:
    v, s, i = g.vector(scope, depth - 1), g.name("s"), g.name("i")
    return g.chance.choice(
        [
            f"(vector-ref {v} {g.chance.choice('012')})",
            f"(let (({s} {v})) (vector-ref {s} (modulo {g.integer(scope)} (vector-length {s}))))",
            f"(car {g.list(scope, depth - 1)})",
            f"(mean-of {v})",
            f"(let (({s} {g.list(scope, depth - 1)})) (/ (sum-of {s}) (length {s})))",
            f"(let loop (({i} 0) ({s} 0)) (if (= {i} 3) {s} (loop (+ {i} 1) (+ {s} (vector-ref {v} {i})))))",
        ]
    )


@form
def mapped_vector(g: Generator, scope: Scope, depth: int) -> str:
    u, w = g.name("u"), g.name("w")
    if g.chance.random() < 0.4:
        body = g.small(scope.plus(reals=[u, w]), depth - 1)
        return f"(mean-of (vector-map (lambda ({u} {w}) {body}) {g.vector(scope, depth - 1)} {g.vector(scope, 1)}))"
    body = g.small(scope.plus(reals=[u]), depth - 1)
    return f"(mean-of (vector-map (lambda ({u}) {body}) {g.vector(scope, depth - 1)}))"


@form
def branch(g: Generator, scope: Scope, depth: int) -> str:
    parts = [g.real(scope, depth - 1) for _ in range(3)]
    tests = [g.test(scope, depth - 1) for _ in range(2)]
    if g.chance.random() < 0.5:
        return f"(if {tests[0]} {parts[0]} {parts[1]})"
    return f"(cond ({tests[0]} {parts[0]}) ({tests[1]} {parts[1]}) (else {parts[2]}))"


@form
def chosen(g: Generator, scope: Scope, depth: int) -> str:
    parts = [g.real(scope, depth - 1) for _ in range(3)]
    return f"(case (modulo {g.integer(scope)} 3) ((0) {parts[0]}) ((1) {parts[1]}) (else {parts[2]}))"


@form
def several(g: Generator, scope: Scope, depth: int) -> str:
    a, b = g.name("a"), g.name("b")
    given = f"(values {g.real(scope, depth - 1)} {g.small(scope, depth - 1)})"
    if g.chance.random() < 0.4:
        given = f"(if {g.test(scope, 1)} {given} (values 1 {g.real(scope, 1)}))"
    body = g.real(scope.plus(reals=[a, b]), depth - 1)
    return g.chance.choice(
        [
            f"(call-with-values (lambda () {given}) (lambda ({a} {b}) {body}))",
            f"(let-values ((({a} {b}) {given})) {body})",
            f"(receive ({a} {b}) {given} {body})",
        ]
    )


@form
def record(g: Generator, scope: Scope, depth: int) -> str:
    c, i = g.name("c"), g.name("i")
    made = f"(couple {g.real(scope, depth - 1)} {g.real(scope, depth - 2)})"
    inner = scope.plus(reals=[f"(couple-one {c})", f"(couple-two {c})"])
    if g.chance.random() < 0.4:
        return (
            f"(let loop (({i} 0) ({c} {made})) (if (= {i} 3) (* (couple-one {c}) (couple-two {c}))"
            f" (loop (+ {i} 1) (couple {g.small(inner, depth - 1)} (couple-one {c})))))"
        )
    return f"(let (({c} {made})) {g.real(inner, depth - 1)})"


@form
def scaled(g: Generator, scope: Scope, depth: int) -> str:
    """Exact numbers among the others."""
    a = g.small(scope, depth - 1)
    n = g.integer(scope)
    return g.chance.choice(
        [f"(* (/ {n} 4) {a})", f"(+ {n} {a})", f"(- {a} {n} 1/2)", f"(/ {a} (+ {n} 1))", f"(* {a} {n} third)"]
    )


@form
def built_list(g: Generator, scope: Scope, depth: int) -> str:
    build, k, u = g.name("build"), g.name("k"), g.name("u")
    inner = scope.plus(integers=[k], reals=[u])
    rest = f"({build} (- {k} 1) {g.small(inner, depth - 2)})"
    total = g.chance.choice(["sum-of", "car", "apply max"])
    made = f"({build} {g.chance.choice('123')} {g.real(scope, 1)})"
    return f"(let () (define ({build} {k} {u}) (if (= {k} 0) '() (cons {u} {rest}))) ({total} {made}))"


@form
def gathered(g: Generator, scope: Scope, depth: int) -> str:
    """A list made in a loop, and then used."""
    i, out, u = g.name("i"), g.name("out"), g.name("u")
    item = g.small(scope.plus(integers=[i]), depth - 1)
    use = g.small(scope.plus(reals=[u]), depth - 1)
    return (
        f"(let loop (({i} 0) ({out} '())) (if (< {i} {g.chance.choice('234')}) (loop (+ {i} 1) (cons {item} {out}))"
        f" (fold + 0 (map (lambda ({u}) {use}) {out}))))"
    )


@form
def optional(g: Generator, scope: Scope, depth: int) -> str:
    """A procedure with a rest, and one of several clauses."""
    h, a, rest = g.name("h"), g.name("a"), g.name("rest")
    body = g.small(scope.plus(reals=[a]), depth - 1)
    args = [g.real(scope, depth - 2) for _ in range(3)]
    if g.chance.random() < 0.5:
        return (
            f"(let (({h} (lambda ({a} . {rest}) (apply + {body} {rest})))) (- ({h} {args[0]}) ({h} {' '.join(args)})))"
        )
    return (
        f"(let (({h} (case-lambda (({a}) {body}) (({a} {rest}) (* {rest} {body})))))"
        f" (+ ({h} {args[0]}) ({h} {args[1]} {args[2]})))"
    )


@form
def called(g: Generator, scope: Scope, depth: int) -> str:
    a = g.real(scope, depth - 1)
    return g.chance.choice(
        [f"(power-of (sin {a}) {g.chance.choice('0123')})", f"((twice sin) {a})", f"(squeeze {a})", f"(half-of {a})"]
    )


# ---- programs --------------------------------------------------------------------------------------------------------


@dataclass
class Program:
    """A function, and points to differentiate it at."""

    number: int
    text: str  # of its definition
    points: list[str]  # each the arguments of a call
    smooth: bool
    forms: Counter[str]
    arguments: int = 1
    expression: str | None = None  # of a function of one number x: what diff takes


def program(seed: int) -> Program:
    """The program of a seed."""
    chance = random.Random(seed)
    g = Generator(chance)
    kind = chance.choice(["number", "number", "numbers", "vector", "vector", "list", "mixed", "nested", "plain"])
    depth = chance.choice([3, 3, 4])

    def numbers(count: int) -> list[str]:
        return [repr(round(chance.uniform(-2, 2), 4)) for _ in range(count)]

    name = f"f{seed}"
    if kind == "plain":
        body = plain(g, depth)
        text = (
            f"(define ({name}-of x) {body}) (define ({name} x) (let loop ((i 0)) (if (= i 1) ({name}-of x) (loop 1))))"
        )
        return Program(seed, text, [numbers(1)[0] for _ in range(2)], g.smooth, g.forms, 1, body)
    match kind:
        case "number":
            params, scope = "x", Scope(reals=["x"])
            points = [numbers(1)[0] for _ in range(2)]
        case "numbers":
            params, scope = "x y", Scope(reals=["x", "y"])
            points = [" ".join(numbers(2)) for _ in range(2)]
        case "mixed":
            params, scope = "x v l", Scope(reals=["x", "(vector-ref v 2)"], vectors=["v"], lists=["l"])
            points = [f"{numbers(1)[0]} (vector {' '.join(numbers(3))}) (list {' '.join(numbers(n))})" for n in (2, 5)]
        case "nested":
            some, rows = ["(vector-ref (vector-ref w 0) 0)", "(car (cadr m))"], ["(vector-ref w 0)", "(vector-ref w 1)"]
            params, scope = "w m", Scope(reals=some, vectors=rows, lists=["(car m)", "(cadr m)"])
            points = [
                f"(vector (vector {' '.join(numbers(3))}) (vector {' '.join(numbers(4))}))"
                f" (list (list {' '.join(numbers(2))}) (list {' '.join(numbers(3))}))"
                for _ in range(2)
            ]
        case "vector":
            params, scope = "v", Scope(reals=["(vector-ref v 0)", "(vector-ref v 1)"], vectors=["v"])
            points = [f"(vector {' '.join(numbers(chance.choice([3, 5, 8, 12])))})" for _ in range(2)]
        case _:
            params, scope = "l", Scope(reals=["(car l)"], lists=["l"])
            points = [f"(list {' '.join(numbers(chance.choice([1, 3, 8])))})" for _ in range(2)]
    helper = ""
    if chance.random() < 0.3:
        body = g.real(Scope(reals=["u"], functions=scope.functions), depth - 1)
        helper = f"(define ({name}-helper u) (squeeze {body})) "
        scope = scope.plus(functions=[f"{name}-helper"])
    text = f"{helper}(define ({name} {params}) (squeeze-loop {g.real(scope, depth)}))"
    text = text.replace("(squeeze-loop ", "(half-of ")
    return Program(seed, text, points, g.smooth, g.forms, len(params.split()))


def plain(g: Generator, depth: int) -> str:
    """An expression of x alone without loops, with what `diff` knows."""
    chance = g.chance
    if depth <= 0:
        return chance.choice(["x", "x", "x", "1/2", "2", "-0.75", "1.5"])
    a, b = (plain(g, depth - 1) for _ in range(2))
    return chance.choice(
        [f"(+ {a} {b})", f"(- {a} {b})", f"(* {a} {b})", f"(/ {a} (+ 2 (* {b} {b})))", f"(sin {a})", f"(cos {a})",
         f"(exp (- (* {a} {a})))", f"(sqrt (+ 1 (* {a} {a})))", f"(log (+ 2 (cos {a})))", f"(atan {a})",
         f"(expt (sin {a}) 3)", f"(tanh {a})"]
    )  # fmt: skip
