"""A generator of random programs, and what turns a program into an equal one.

Comes in: a seed. Goes out: text. Programs end, have no errors but those that are raised on purpose (and now and then
one of a wrong type), and do not depend on the order in which arguments are evaluated; so each has one meaning.
"""

from __future__ import annotations

import random
import re
from typing import Any

from fuzz_forms import FORMS, KINDS, PRELUDES

__all__ = ["PRELUDES", "Generator", "programs", "render"]

MARK = "\1"  # before an expression that may be wrapped in what keeps its value
PLACES = re.compile(rf"(<(?:{'|'.join(KINDS)})(?: it| many)?>)")


class Scope:
    """Variables by type, procedures with the numbers of arguments that they take, and what may be assigned to."""

    def __init__(self, names: dict[str, list[str]], procedures: list[tuple[str, int, int]], mutable: list[str]) -> None:
        self.names, self.procedures, self.mutable = names, procedures, mutable

    def of(self, kind: str) -> list[str]:
        found = self.names.get(kind, [])
        return found + self.names.get("integer", []) if kind == "number" else found

    def with_names(self, names: list[str], kind: str = "integer") -> Scope:
        grown = {known: [n for n in some if n not in names] for known, some in self.names.items()}
        grown[kind] = grown.get(kind, []) + names
        return Scope(grown, self.procedures, self.mutable)

    def with_procedures(self, procedures: list[tuple[str, int, int]]) -> Scope:
        return Scope(self.names, self.procedures + procedures, self.mutable)


class Generator:
    """Makes programs out of a seed. `wrong` is the share of expressions that have a wrong type.

    With `own`, they have forms in them that only Eshkol knows.
    """

    def __init__(self, seed: int, wrong: float = 0.003, own: bool = False) -> None:
        self.random = random.Random(seed)
        self.topics = [*FORMS["topic"], *FORMS["own"]] if own else FORMS["topic"]
        self.wrong = wrong
        self.names = 0

    # ---- small things -------------------------------------------------------------------------------------------

    def name(self, stem: str = "x") -> str:
        self.names += 1
        return f"{stem}{self.names}"

    def fresh(self, stem: str, count: int) -> list[str]:
        return [self.name(stem) for _ in range(count)]

    def pick(self, items: Any) -> Any:
        return self.random.choice(items)

    def chance(self, p: float) -> bool:
        return self.random.random() < p

    def integer(self) -> str:
        kind = self.random.randrange(10)
        if kind < 6:
            return str(self.random.randrange(-9, 30))
        if kind < 8:
            return str(self.random.randrange(-(10**6), 10**6))
        if kind < 9:
            power = 2 ** self.pick([29, 30, 31, 32, 52, 53, 60, 61, 62, 63, 64, 96, 127, 128])
            return str(power * self.pick([1, -1]) + self.pick([-1, 0, 1]))
        return str(self.random.randrange(-(10**30), 10**30))

    def number(self) -> str:
        match self.random.randrange(3):
            case 0:
                return self.integer()
            case 1:
                return f"{self.random.randrange(-50, 50)}/{self.random.randrange(1, 12)}"
        return str(self.pick([0.5, -1.25, 3.0, 1e10, 0.1, -0.0, 123.456, 2.5e-3, 9007199254740993.0, 1e-7, 4.5, 1e22]))

    # ---- expressions --------------------------------------------------------------------------------------------

    def expression(self, kind: str, scope: Scope, depth: int) -> str:
        """An expression without effects."""
        if self.chance(self.wrong):
            kind = self.pick(KINDS)
        known = scope.of(kind)
        if known and self.chance(0.35 if depth > 0 else 0.75):
            return f"{MARK}(same {self.pick(known)})" if self.chance(0.05) else self.pick(known)
        if depth <= 0:
            return self.leaf(kind)
        if self.chance(0.12):
            return self.conditional(kind, scope, depth - 1)
        if self.chance(0.10):
            return self.binding(kind, scope, depth - 1)
        if kind in ("integer", "number") and scope.procedures and self.chance(0.14):
            return self.call(scope, min(1, depth - 1))
        found = self.pick(FORMS[kind])
        return self.filled(found, scope, depth - 1)

    def filled(self, form: str, scope: Scope, depth: int) -> str:
        """A form with expressions in place of the words for their types; those in a body know its variable `it`."""
        if form == "loop":
            return self.loop(scope, depth)
        out = []
        for part in PLACES.split(form):
            if not PLACES.fullmatch(part):
                out.append(part)
                continue
            kind, _, how = part[1:-1].partition(" ")
            inner = scope.with_names(["it"]) if how == "it" else scope
            count = self.random.choice([0, 1, 2, 3, 4, 5, 7, 9, 12]) if how == "many" else 1
            out.append(" ".join(self.expression(kind, inner, depth) for _ in range(count)))
        return MARK + "".join(out)

    def leaf(self, kind: str) -> str:
        some = " ".join(self.integer() for _ in range(self.random.randrange(4)))
        strings = ['""', '"a"', '"hello"', '"αβγ"', '"x y"']
        match kind:
            case "integer":
                return self.integer()
            case "number":
                return self.number()
            case "boolean":
                return str(self.pick(["#t", "#f"]))
            case "list":
                return f"'({some})"
            case "vector":
                return f"{MARK}(vector {some})"
            case "char":
                return str(self.pick(["#\\a", "#\\Z", "#\\0", "#\\space", "#\\λ", "#\\)"]))
            case "bytevector":
                return f"{MARK}(bytevector {' '.join(str(self.random.randrange(256)) for _ in range(3))})"
        return str(self.pick(strings))

    def conditional(self, kind: str, scope: Scope, depth: int) -> str:
        form = self.pick(
            [
                "(if <boolean> <K> <K>)",
                "(cond (<boolean> <K>) (<boolean> <K>) (else <K>))",
                "(case (modulo <integer> 6) ((0 1) <K>) ((2 3) <K>) (else <K>))",
                "(if (and <boolean> <boolean>) <K> <K>)",
            ]
        )
        return self.filled(form.replace("<K>", f"<{kind}>"), scope, depth)

    def binding(self, kind: str, scope: Scope, depth: int) -> str:
        inner, bindings = scope, []
        for name in self.fresh("x", self.random.randrange(1, 4)):
            its = self.pick(KINDS)
            bindings.append(f"({name} {self.expression(its, scope, depth)})")
            inner = inner.with_names([name], its)
        word = self.pick(["let", "let*", "letrec*"])
        return f"{MARK}({word} ({' '.join(bindings)}) {self.expression(kind, inner, depth)})"

    def call(self, scope: Scope, depth: int) -> str:
        """A call of a procedure that takes and gives integers."""
        name, low, high = self.pick(scope.procedures)
        count = self.random.randrange(13) if self.chance(self.wrong) else self.random.randint(low, high)
        args = [self.expression("integer", scope, depth) for _ in range(count)]
        if args and self.chance(0.15):
            cut = self.random.randrange(count)
            return f"{MARK}(apply {name} {' '.join(args[:cut])} (list {' '.join(args[cut:])}))"
        return f"{MARK}({name} {' '.join(args)})"

    def loop(self, scope: Scope, depth: int) -> str:
        """A loop that gathers a list; values from outside stay alive across its calls."""
        index, gathered, total, again = (self.name(stem) for stem in ("i", "g", "t", "loop"))
        inner = scope.with_names([index, total])
        step, more = self.expression("integer", inner, depth), self.expression("integer", inner, min(depth, 1))
        count = self.random.randrange(1, 6)
        next_index, next_list = f"(+ {index} 1)", f"(cons (clip {step}) {gathered})"
        end, result = f"(= {index} {count})", f"(cons {total} {gathered})"
        if self.chance(0.5):
            start = f"(({index} 0) ({gathered} '()) ({total} 1))"
            return f"{MARK}(let {again} {start} (if {end} {result} ({again} {next_index} {next_list} (clip {more}))))"
        steps = f"(({index} 0 {next_index}) ({gathered} '() {next_list}) ({total} 1 (clip {more})))"
        return f"{MARK}(do {steps} ({end} {result}))"

    # ---- procedures ---------------------------------------------------------------------------------------------

    def procedure(self, scope: Scope, depth: int) -> tuple[str, int, int]:
        """A lambda expression of integers, and how many arguments it takes; each argument counts differently."""
        count = self.random.choice([0, 1, 2, 3, 4, 5, 6, 7, 8, 10, 12])
        params = self.fresh("p", count)
        inner = scope.with_names(params)
        total = " ".join(f"(* {3 * i + 1} {name})" for i, name in enumerate(params))
        style = self.random.randrange(8)
        if style == 0:
            rest = self.name("rest")
            body = self.expression("integer", inner.with_names([rest], "list"), depth)
            parameters = f"({' '.join(params)} . {rest})" if params else rest
            return f"(lambda {parameters} (clip (+ {total} (apply + {rest}) {body})))", count, count + 6
        if style == 1:
            clauses, sizes = [], sorted({self.random.randrange(9) for _ in range(3)})
            for size in sizes:
                some = self.fresh("c", size)
                body = self.expression("integer", scope.with_names(some), depth)
                clauses.append(f"(({' '.join(some)}) (clip (+ {' '.join(some)} {body})))")
            most = sizes[-1] + 1
            clauses.append(f"(({' '.join(self.fresh('d', most))} . more) (length more))")
            return f"(case-lambda {' '.join(clauses)})", most, most + 3
        last = f"(clip (+ {total} {self.expression('integer', inner, depth)}))"
        if self.chance(0.3):  # definitions inside, one of a variable that is assigned to
            inside, changed = self.name("inner"), self.name("m")
            value, argument = (self.expression("integer", inner, depth) for _ in range(2))
            last = (
                f"(define {changed} {value}) (define ({inside} z) (set! {changed} (clip (+ z {changed}))) (+ z 1)) "
                f"({inside} {argument}) (let ((u ({inside} 5))) (clip (+ u {changed} {last})))"
            )
        return f"(lambda ({' '.join(params)}) {last})", count, count

    def recursions(self, scope: Scope, depth: int) -> tuple[list[str], Scope]:
        """Procedures that call one another, with a count that goes down; in tail position and not."""
        width = self.random.choice([1, 2, 3, 4, 5, 7, 9, 11])
        names, out, callers = self.fresh("rec", self.random.randrange(1, 4)), [], []
        for own in names:
            params = self.fresh("q", width)
            inner = scope.with_names(params)

            def again(inner: Scope = inner) -> str:
                args = " ".join(f"(clip {self.expression('integer', inner, 1)})" for _ in range(width))
                return f"({self.pick(names)} (- n 1) {args})"

            form = self.pick(["{}", "(clip (+ 1 {}))", "(clip (- {} {}))", "(if (odd? n) {} (+ 1 {}))"])
            calls = form.format(again(), again())
            base = self.expression("integer", inner, depth)
            out.append(f"(define ({own} n {' '.join(params)}) (if (<= n 0) (clip {base}) {calls}))")
        for own in names:
            caller, given = self.name("f"), " ".join(self.fresh("w", width))
            out.append(f"(define ({caller} {given}) ({own} {self.pick('0145')} {given}))")
            callers.append((caller, width, width))
        return out, scope.with_procedures(callers)

    # ---- effects, in a fixed order ------------------------------------------------------------------------------

    def statements(self, scope: Scope, depth: int, most: int = 5) -> str:
        out = []
        for _ in range(self.random.randrange(1, most)):
            form = self.pick(FORMS["statement"])
            form = self.pick(self.topics) if form == "TOPIC" else form
            parts = form.replace("TARGET", self.pick(scope.mutable)).split("WORK")
            filled = [self.filled(part, scope, depth)[1:] for part in parts]
            work = [self.statements(scope, depth - 1, most) if depth > 0 else "" for _ in parts[1:]]
            out.append(filled[0] + "".join(w + rest for w, rest in zip(work, filled[1:], strict=True)))
        return " ".join(out)

    def unknown_calls(self, scope: Scope) -> str:
        """Calls of procedures out of a vector in a loop, with other values alive across them."""
        count = self.pick(scope.procedures)[1]
        fitting = [name for name, low, high in scope.procedures if low <= count <= high]
        live = self.fresh("live", self.random.randrange(1, 9))
        args = [f"(+ i {self.pick(live)})" if self.chance(0.6) else self.integer() for _ in range(count)]
        call = f"((vector-ref fs (modulo i {len(fitting)})) {' '.join(args)})"
        use = f"(clip (+ {call} {' '.join(live)}))" if self.chance(0.7) else call
        values = " ".join(f"({name} {self.expression('integer', scope, 1)})" for name in live)
        return (
            f"(let ((fs (vector {' '.join(fitting)})) {values}) (let loop ((i 0) (s 0)) (if (= i 7)"
            f" (note! (list s {' '.join(live)})) (loop (+ i 1) (clip (+ (* 3 s) {use}))))))"
        )

    def program(self, small: bool = False) -> str:
        """A procedure without arguments; what it gives is what is compared."""
        scope, forms = Scope({}, [], []), []
        variables = self.fresh("v", 1 if small else 3)
        forms += [f"(define {name} (clip {self.expression('integer', scope, 2)}))" for name in variables]
        scope = Scope({"integer": variables}, [], variables)
        for kind in self.random.sample(KINDS, self.random.randrange(2)) if small else KINDS:
            name = self.name("g")
            forms.append(f"(define {name} {self.expression(kind, scope, 2)})")
            scope = scope.with_names([name], kind)
        for _ in range(self.random.randrange(2) if small else self.random.randrange(1, 4)):
            made, low, high = self.procedure(scope, 1 if small else 2)
            name = self.name("f")
            forms.append(f"(define {name} {made})")
            scope = scope.with_procedures([(name, low, high)])
        if self.chance(0.1 if small else 0.7):
            more, scope = self.recursions(scope, 1)
            forms += more
        if small:
            forms += [self.statements(scope, 1, 3)] if self.chance(0.65) else []
        else:
            forms += [self.statements(scope, 2), self.unknown_calls(scope), self.statements(scope, 1)]
        if not small and self.chance(0.3):
            made = f"(make-thing {self.expression('integer', scope, 2)} {self.expression('list', scope, 1)})"
            parts = "(list (thing? t) (thing? 5) (thing-a t) (thing-b t))"
            forms.append(f"(let ((t {made})) (set-thing-a! t {self.expression('integer', scope, 1)}) (note! {parts}))")
        shown = [self.expression(self.pick(KINDS), scope, self.random.randrange(1, 4))]
        if not small:
            shown.append(self.expression("integer", scope, 2))
        text = f"{' '.join(forms)} (list {' '.join(shown + variables)} notes)"
        needed = [form for word, form in OWN if word in text]
        return (
            f"(lambda () (define notes '()) (define (note! x) (set! notes (cons x notes))) {' '.join(needed)} {text})"
        )


OWN = [  # what a program defines where it uses it
    ("table", "(define table (make-hash-table))"),
    (
        "thing",
        "(define-record-type thing (make-thing a b) thing? (a thing-a set-thing-a!) (b thing-b set-thing-b!))",
    ),
]


# ---- text, and equal programs -----------------------------------------------------------------------------------

WRAPPERS = [
    "((lambda (x) x) {})",
    "(car (list {}))",
    "(call/cc (lambda (wrapping-k) {}))",
    "(call/cc (lambda (wrapping-k) (wrapping-k {})))",
    "(dynamic-wind (lambda () 1) (lambda () {}) (lambda () 2))",
    "(apply (lambda args (car args)) {} '())",
    "(let ((wrapped {})) wrapped)",
    "(call-with-values (lambda () {}) (lambda (a) a))",
    "((lambda (a b c d e . f) e) 1 2 3 4 {} 6 7)",
    "(vector-ref (vector 1 {} 2) 1)",
    "(guard (wrapping-e (#f #f)) {})",
    "(let wrapping ((n 2)) (if (= n 0) {} (wrapping (- n 1))))",
    "(force (delay {}))",
    "(let ((wrapped #f)) (set! wrapped {}) wrapped)",
    "((lambda (p1 p2 p3 p4 p5 p6 p7 p8 p9) p9) 1 2 3 4 5 6 7 8 {})",
    "((same (lambda (p1 p2 p3 p4 p5 p6) p6)) 1 2 3 4 5 {})",
]


def render(text: str, chance: random.Random | None = None, share: float = 0.15) -> str:
    """A program without marks; with `chance`, some of the expressions that have one are wrapped."""
    if chance is None:
        return text.replace(MARK, "")
    out: list[str] = []
    ends: list[str | None] = []  # of the lists that are open: what comes behind them, besides a parenthesis
    wrapping = None
    for part in re.split(r'("[^"]*"|#\\.|[()]|\x01)', text):
        if part == MARK:
            if chance.random() < share:
                before, wrapping = chance.choice(WRAPPERS).split("{}")
                out.append(before)
            continue
        if part == "(":
            ends.append(wrapping)
            wrapping = None
        out.append(part)
        if part == ")":
            out.append(ends.pop() or "")
    return "".join(out)


def programs(
    seed: int, count: int, twin: int | None = None, wrong: float = 0.003, small: bool = False, own: bool = False
) -> str:
    """So many programs as one text, each of which writes a line with its number and its value."""
    lines = []
    for number in range(seed, seed + count):
        chance = None if twin is None else random.Random(number * 1000 + twin)
        lines.append(f"(test {number} {render(Generator(number, wrong, own).program(small), chance)})")
    return "\n".join(lines)
