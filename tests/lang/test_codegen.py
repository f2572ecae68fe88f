"""Random programs as compiled code, against the interpreter of core forms (evaluate.py).

Expressions are made so that they have values: a number where a number is wanted, a procedure of one argument where one
is called. Many of them make one program, since it is compiling that takes the time.
"""

from __future__ import annotations

import pytest
from compiled import in_session, written
from evaluate import Machine
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from effort import amount
from eshkol.codegen.compiling import llvm_text, simplify_unit
from eshkol.codegen.nodes import Prim
from eshkol.lang.datum import text
from eshkol.lang.libraries import nodes
from eshkol.lang.source import Source
from eshkol.runtime.scheme import SchemeRaised
from eshkol.session import Session

DRAWN = {  # to make a failing program smaller takes a compilation each time: too long, and each one is short anyway
    "deadline": None,
    "suppress_health_check": list(HealthCheck),
    "phases": (Phase.explicit, Phase.reuse, Phase.generate),
}
NAMES = ["a", "b", "c", "d", "e"]
LARGE = st.sampled_from([2**31, 2**62, 2**63 - 1, -(2**63), 2**64, 10**25])


class Maker:
    """Draws expressions. `names` holds the kind of each variable that can be seen: number, procedure or list."""

    def __init__(self, draw: st.DrawFn) -> None:
        self.draw = draw

    def pick(self, items: list) -> object:
        return self.draw(st.sampled_from(items))

    def some(self, names: dict[str, str], kind: str) -> list[str]:
        return [name for name, known in names.items() if known == kind]

    def number(self, names: dict[str, str], depth: int) -> str:
        known = self.some(names, "number")
        if depth <= 0 or self.draw(st.integers(0, 9)) == 0:
            if known and self.draw(st.booleans()):
                return str(self.pick(known))
            return str(self.draw(st.one_of(st.integers(-3, 9), LARGE)))
        return str(getattr(self, f"number_{self.pick(NUMBERS)}")(names, depth - 1))

    def several(self, names: dict[str, str], depth: int, most: int = 3) -> list[str]:
        return [self.number(names, depth - i) for i in range(self.draw(st.integers(1, most)))]

    def number_sum(self, names: dict[str, str], depth: int) -> str:
        return f"({self.pick(['+', '*', '-'])} {' '.join(self.several(names, depth))})"

    def number_if(self, names: dict[str, str], depth: int) -> str:
        return f"(if {self.test(names, depth)} {self.number(names, depth)} {self.number(names, depth - 1)})"

    def number_cond(self, names: dict[str, str], depth: int) -> str:
        kinds = [
            f"(cond ({self.test(names, depth)} {self.number(names, depth)}) (else {self.number(names, depth - 1)}))",
            f"(cond ({self.number(names, depth)} => {self.procedure(names, depth - 1)}) (else 0))",
            f"(case {self.number(names, depth)} ((0 1 2) {self.number(names, depth - 1)}) (else 7))",
            f"(and {self.test(names, depth)} {self.number(names, depth)})",
            f"(or {self.test(names, depth - 1)} {self.number(names, depth)})",
        ]
        shape = str(self.pick(kinds))
        return f"(let ((n {shape})) (if (boolean? n) 1 n))" if shape.startswith(("(and", "(or")) else shape

    def number_let(self, names: dict[str, str], depth: int) -> str:
        chosen = self.draw(st.lists(st.sampled_from(NAMES), min_size=1, max_size=3, unique=True))
        kinds = {name: str(self.pick(["number", "number", "procedure", "list"])) for name in chosen}
        inner = {**names, **kinds}
        star = self.draw(st.booleans())
        bound, seen = [], dict(names)
        for name, kind in kinds.items():
            bound.append(f"({name} {getattr(self, kind)(seen if star else names, depth - 1)})")
            seen[name] = kind
        return f"({'let*' if star else 'let'} ({' '.join(bound)}) {self.body(inner, depth)})"

    def body(self, names: dict[str, str], depth: int) -> str:
        known = self.some(names, "number")
        changes = ""
        if known and self.draw(st.integers(0, 2)) == 0:
            changes = f"(set! {self.pick(known)} {self.number(names, depth - 1)}) "
        return changes + self.number(names, depth)

    def number_call(self, names: dict[str, str], depth: int) -> str:
        return f"({self.procedure(names, depth)} {self.number(names, depth - 1)})"

    def number_apply(self, names: dict[str, str], depth: int) -> str:
        kinds = [
            f"(apply {self.procedure(names, depth)} {self.number(names, depth - 1)} '())",
            f"(apply + {self.number(names, depth - 1)} {self.list(names, depth)})",
            f"(apply (lambda (x . y) (apply + x y)) 1 {self.list(names, depth)})",
            f"(call-with-values (lambda () (values {' '.join(self.several(names, depth))})) list)",
        ]
        shape = str(self.pick(kinds))
        return f"(apply + {shape})" if shape.startswith("(call") else shape

    def number_values(self, names: dict[str, str], depth: int) -> str:
        given = self.several(names, depth)
        fixed = NAMES[: self.draw(st.integers(0, len(given)))]
        inner = {**names, **dict.fromkeys(fixed, "number")}
        if len(fixed) < len(given):
            inner["more"] = "list"
        formals = " ".join(fixed) + (" . more" if len(fixed) < len(given) else "")
        consumer = f"(lambda {'more' if not fixed else f'({formals})'} {self.number(inner, depth)})"
        return f"(call-with-values (lambda () (values {' '.join(given)})) {consumer})"

    def number_loop(self, names: dict[str, str], depth: int) -> str:
        """A loop that ends: its counter is its own."""
        inner = {**names, "a": "number", "i": "number"}
        again = f"(loop (+ i 1) {self.number(inner, depth - 1)})"
        if self.draw(st.booleans()):
            again = f"(+ 1 (loop (+ i 1) {self.number(inner, depth - 2)}))"
        start = self.number(names, depth - 1)
        stop = self.draw(st.integers(0, 4))
        return f"(let loop ((i 0) (a {start})) (if (= i {stop}) {self.number(inner, depth)} {again}))"

    def number_letrec(self, names: dict[str, str], depth: int) -> str:
        inner = {**names, "n": "number"}
        final = {**names, "f": "procedure", "g": "procedure"}
        one, two = self.number(inner, depth - 1), self.number(inner, depth - 1)
        body = self.number(final, depth)
        step = self.pick(["(f (- n 1))", "(+ 1 (f (- n 1)))"])
        return (
            f"(letrec ((f (lambda (n) (if (> 1 n) {one} (if (> n 20) n (g (- n 1))))))"
            f" (g (lambda (n) (if (> 1 n) {two} (if (> n 20) n {step}))))) {body})"
        )

    def number_list(self, names: dict[str, str], depth: int) -> str:
        return str(self.pick([f"(length {self.list(names, depth)})", f"(car (cons {self.number(names, depth)} '()))"]))

    def number_counter(self, names: dict[str, str], depth: int) -> str:
        """A procedure that changes what it captured, called twice."""
        inner = {**names, "s": "number"}
        return (
            f"(let ((k (let ((s {self.number(names, depth - 1)})) (lambda () (set! s {self.number(inner, depth)}) s))))"
            " (k) (k))"
        )

    def test(self, names: dict[str, str], depth: int) -> str:
        if depth <= 0:
            return str(self.pick(["#t", "#f"]))
        kinds = [
            f"({self.pick(['<', '>', '='])} {self.number(names, depth - 1)} {self.number(names, depth - 1)})",
            f"(not {self.test(names, depth - 1)})",
            f"(and {self.test(names, depth - 1)} {self.test(names, depth - 1)})",
            f"(or {self.test(names, depth - 1)} {self.test(names, depth - 1)})",
            f"(null? {self.list(names, depth - 1)})",
            f"(if {self.test(names, depth - 1)} #f {self.test(names, depth - 1)})",
        ]
        return str(self.pick(kinds))

    def procedure(self, names: dict[str, str], depth: int) -> str:
        known = self.some(names, "procedure")
        if known and self.draw(st.integers(0, 2)):
            return str(self.pick(known))
        name = str(self.pick(NAMES))
        inner = {**names, name: "number"}
        kinds = [
            f"(lambda ({name}) {self.body(inner, depth - 1)})",
            f"(case-lambda ((x y) 0) (({name}) {self.number(inner, depth - 1)}))",
            f"(lambda ({name} . q) {self.number(inner, depth - 1)})",
        ]
        if depth > 0:
            kinds.append(f"(if {self.test(names, depth - 1)} {self.procedure(names, depth - 1)} -)")
            kinds.append(f"(let (({name} {self.number(names, depth - 1)})) {self.procedure(inner, depth - 1)})")
        return str(self.pick(kinds))

    def list(self, names: dict[str, str], depth: int) -> str:
        known = self.some(names, "list")
        if known and self.draw(st.booleans()):
            return str(self.pick(known))
        if depth <= 0:
            return str(self.pick(["'()", "'(1 2)", "(list 3)"]))
        kinds = [
            f"(list {' '.join(self.several(names, depth))})",
            f"(cons {self.number(names, depth - 1)} {self.list(names, depth - 1)})",
            f"(map {self.procedure(names, depth - 1)} {self.list(names, depth - 1)})",
            f"`(,{self.number(names, depth - 1)} 5 ,@{self.list(names, depth - 1)})",
        ]
        return str(self.pick(kinds))


NUMBERS = [name.removeprefix("number_") for name in vars(Maker) if name.startswith("number_")]


@st.composite
def expressions(draw: st.DrawFn) -> str:
    """An expression whose value is a number."""
    return Maker(draw).number({}, draw(st.integers(1, 3)))


@st.composite
def programs(draw: st.DrawFn) -> list[str]:
    """Definitions that use those before them, and an expression for each to be shown."""
    maker, names, forms = Maker(draw), {}, []
    for index in range(draw(st.integers(8, 16))):
        kind = str(maker.pick(["number", "procedure"]))
        forms.append(f"(define v{index} {getattr(maker, kind)(names, 3)})")
        names[f"v{index}"] = kind
    numbers, procedures = maker.some(names, "number"), maker.some(names, "procedure")
    changed = [f"(set! {name} {maker.number(names, 1)})" for name in numbers if draw(st.integers(0, 4)) == 0]
    shown = [*numbers, *(f"({name} {maker.number(names, 1)})" for name in procedures)]
    return [*forms, *changed, f"(list {' '.join(shown)})"]


def oracle(forms: str) -> str:
    return text(Machine().run(forms))


def test_random_expressions() -> None:
    def work(session: Session) -> None:
        @settings(max_examples=amount(60, 3), **DRAWN)
        @given(st.lists(expressions(), min_size=20, max_size=30))
        def check(batch: list[str]) -> None:
            shown = written(session, "\n".join(f"(write (let () {one})) (newline)" for one in batch))
            for one, value in zip(batch, shown.splitlines(), strict=True):
                assert value == oracle(one), one

        check()

    in_session(work)


def test_random_programs() -> None:
    def work(session: Session) -> None:
        @settings(max_examples=amount(60, 4), **DRAWN)
        @given(programs())
        def check(forms: list[str]) -> None:
            assert written(session, "\n".join([*forms[:-1], f"(write {forms[-1]})"])) == oracle("\n".join(forms))

        check()

    in_session(work)


def test_operators_on_integers_that_stand_there_are_computed_by_the_compiler() -> None:
    """And nothing else is: not what has another type, is too large, or is not the operator of that name."""

    def operators(session: Session, form: str) -> int:
        (unit,) = session.world.prompt.units(Source("<folded>", form))
        simplify_unit(unit)
        return sum(isinstance(node, Prim) for node in nodes(unit.forms))

    def work(session: Session) -> None:
        for form, value in {"(+ 1 (* 2 3 (- 4)) (- 9 5 1))": "-20", "(let ((x 5)) (* x (+ x 1)))": "30"}.items():
            assert operators(session, form) == 0
            assert session.shown(session.evaluate(form)) == value
        for form, value in {
            "(+ 1 2.5)": "3.5", "(* 2 #t)": None, "(let ((+ -)) (+ 5 3))": "2", "(+)": "0",
            "(* 1152921504606846975 1152921504606846975)": str(1152921504606846975**2),
            "(- -1152921504606846975 1152921504606846975)": "-2305843009213693950",
        }.items():  # fmt: skip
            if value is None:
                with pytest.raises(SchemeRaised):
                    session.evaluate(form)
            else:
                assert session.shown(session.evaluate(form)) == value
        assert session.shown(session.evaluate("(define (- a b) (list a b)) (- 7 5)")) == "(7 5)"

    in_session(work)


def test_variables_of_loops_are_not_asked_whether_they_are_several_values() -> None:
    """The result of a loop ends as its body does; that of a call may be several, of a loop around it, too."""

    def asks(session: Session, form: str) -> bool:
        (unit,) = session.world.prompt.units(Source("<several>", form))
        simplify_unit(unit)
        return "esk_wrong_values" in llvm_text(unit, unit.forms)[0]

    def work(session: Session) -> None:
        loop = "(lambda (v f x) (let ((i (let up ((i 0)) (if (< (vector-ref v i) 5) (up (+ i 1)) {})))) (list i i)))"
        assert not asks(session, loop.format("i"))
        assert not asks(session, loop.format("(let down ((i i)) (if (< i x) i (if (odd? i) (up i) (down (- i 1)))))"))
        for several in (
            "(f i)",
            "(values i i)",
            "(floor/ i 2)",
            "(let go ((i i)) (if (< i x) (f i) (go (- i 1))))",
        ):
            assert asks(session, loop.format(several))

    in_session(work)


def test_functions_begin_where_processors_fetch() -> None:
    """Calls of small procedures took a twentieth longer or shorter, as other code in front of them was changed."""

    def work(session: Session) -> None:
        (unit,) = session.world.prompt.units(Source("<aligned>", "(define (f x) (if (< x 1) x (f (- x 1))))"))
        simplify_unit(unit)
        found = [line for line in llvm_text(unit, unit.forms)[0].splitlines() if line.startswith("define ")]
        assert found
        assert all(" align 32 " in line for line in found)

    in_session(work)


CODES = (0, 9, 32, 65, 97, 98, 0x7F, 0x80, 0xFF, 0xD7FF, 0xE000, 0xFFFF, 0x10000, 0x10FFFF)
ORDERS = {"=": int.__eq__, "<": int.__lt__, ">": int.__gt__, "<=": int.__le__, ">=": int.__ge__}


def test_characters_are_compared_in_place_as_by_their_code_points() -> None:
    """As values and in tests, of variables and of constants; what is no character is refused with its place."""
    codes = " ".join(map(str, CODES))
    values = " ".join(f"(char{order}? a b)" for order in ORDERS)
    tests = " ".join(f"(if (char{order}? a b) 1 0)" for order in ORDERS)
    constants = " ".join(f"(if (char{order}? a #\\a) 1 0)" for order in ORDERS)
    refused = " ".join(
        f"(guard (e (#t (error-object-message e))) (if (char{order}? {given}) 1 0))"
        for order in ORDERS
        for given in ("a 97", "'x a")
    )
    program = (
        "(import (scheme base) (scheme write))\n(define (all a b)"
        f" (write (list {values} {tests} {constants})))\n(define (wrong a) (write (list {refused})))\n"
        "(for-each (lambda (x) (for-each (lambda (y) (all (integer->char x) (integer->char y)))"
        f" '({codes}))) '({codes}))\n(newline)\n(wrong #\\a)"
    )

    def row(x: int, y: int) -> str:
        truths = ["#t" if holds(x, y) else "#f" for holds in ORDERS.values()]
        numbers = [str(int(holds(x, other))) for other in (y, 97) for holds in ORDERS.values()]
        return f"({' '.join([*truths, *numbers])})"

    wanted = "".join(row(x, y) for x in CODES for y in CODES)
    refusals = " ".join(f'"expected a character as argument {k}, but got"' for _ in ORDERS for k in (2, 1))

    def work(session: Session) -> None:
        assert written(session, program) == f"{wanted}\n({refusals})"

    in_session(work)
