"""What the table of the library and the rules of arithmetic say, compared with what procedures give."""

from __future__ import annotations

import itertools
import re
from typing import Any

from eshkol.bindings import install
from eshkol.lang.datum import Symbol
from eshkol.lang.reader import read
from eshkol.lang.source import Source
from eshkol.lang.syntax import to_datum
from eshkol.types.constants import constant_type
from eshkol.types.fitting import fits, proven, substituted
from eshkol.types.kinds import ANY, Function, Type, shown
from eshkol.types.numbers import RULES, result_of
from eshkol.types.standard import PREDICATES, _table

install()

NUMBERS = ("0", "1", "5", "-3", "9223372036854775807", "100000000000000000000", "-100000000000000000000", "1/2", "-7/3",
           "0.0", "1.5", "-2.5", "1e300", "+inf.0")  # fmt: skip
VALUES = {
    "String": ('"abc"', '""'), "Nat": ("0", "2"), "Char": ("#\\a", "#\\5"), "Symbol": ("a",), "Integer": ("-1", "3"),
    "Real": ("2.5",), "Number": ("1/2",), "Boolean": ("#t",), "Bytevector": ("#u8(1 2 3)",), "(List Any)": ("(1 2 3)",),
    "(Vector Any)": ("#(1 2 3)",), "Any": ("5", "(a)"), "(List String)": ('("a")',), "(List Char)": ("(#\\a)",),
    "(Vector Char)": ("#(#\\a)",),
}  # fmt: skip
LEFT_OUT = """
    apply emergency-exit command-line delete-file error raise newline fresh-line display write write-shared
    write-simple write-char write-string read-line read-char peek-char read-u8 peek-u8 read-string
    open-input-file open-output-file open-binary-input-file open-binary-output-file void make-string make-list
    make-vector eof-object void?
"""  # they read, write, end, or make strings and lists of nothing
FAILS = Symbol("fails")


def evaluated(form: str) -> Any:
    """What a form gives, as data."""
    from eshkol.session import Session, on_session

    found: list[Any] = []

    def work(session: Session) -> None:
        (text,) = session.written(session.evaluate(form))
        found.append(
            to_datum(
                read(Source("values", re.sub("#<[^>]*>", "opaque", text.replace("#<unspecified>", "#!unspecific"))))[0]
            )
        )

    on_session(work, ["values"])
    return found[0]


def called(calls: list[tuple[str, str]]) -> list[Any]:
    """What calls give: names, and the arguments as a list; `fails` for those that raise."""
    names = list(dict.fromkeys(name for name, _ in calls))
    data = " ".join(f"({names.index(name)} . ({args}))" for name, args in calls)
    found = evaluated(
        f"(let ((names (vector {' '.join(names)}))) (map (lambda (call) (guard (c (#t 'fails)) "
        f"(apply (vector-ref names (car call)) (cdr call)))) '({data})))"
    )
    return list(found.items)


def test_arithmetic_gives_what_its_rules_say() -> None:
    calls, masks = [], []
    for name in RULES:
        for count in (1, 2):
            for given in itertools.product(NUMBERS, repeat=count):
                if name == "expt" and (count == 1 or any(len(g) > 5 for g in given)):
                    continue
                kinds = [constant_type(to_datum(read(Source("n", text))[0])).mask for text in given]
                if name != "expt" or count == 2:
                    calls.append((name, " ".join(given)))
                    masks.append(result_of(name, kinds))
    compared, wrong = 0, []
    for call, mask, value in zip(calls, masks, called(calls), strict=True):
        if value is not FAILS and mask is not None:
            compared += 1
            if constant_type(value).mask & ~mask:
                wrong.append(f"{call} is {value}, which is no {shown(Type(mask))}")
    assert compared > 2000
    assert not wrong, wrong[:10]


def test_procedures_give_what_the_table_says() -> None:
    calls, kinds = [], []
    for name, kind in _table().items():
        arrows = (
            [] if name in LEFT_OUT.split() else [a for p in kind.parts if isinstance(p, Function) for a in p.arrows]
        )
        for arrow in arrows:
            anything = dict.fromkeys(arrow.variables, ANY)
            params = [substituted(p, anything) for p in (*arrow.params, *([arrow.rest] if arrow.rest else []))]
            choices = [VALUES.get(shown(p), ()) for p in params]
            for given in itertools.product(*choices):
                calls.append((name, " ".join(given)))
                kinds.append(substituted(arrow.result, anything))
    compared, wrong = 0, []
    for call, kind, value in zip(calls, kinds, called(calls), strict=True):
        if value is not FAILS and value is not Symbol("opaque"):  # as ports are written
            compared += 1
            if kind is not ANY and not fits(constant_type(value), kind):
                wrong.append(f"{call} is {value}, which is no {shown(kind)}")
    assert compared > 150
    assert not wrong, wrong[:10]


def test_predicates_hold_for_what_the_table_says() -> None:
    values = ("5", "-5", "1/2", "2.0", "2.5", '"a"', "#\\a", "a", ":k", "()", "(1)", "#(1)", "#t", "#f", "#u8(1)",
              "100000000000000000000", "(1 . 2)")  # fmt: skip
    calls = [(name, value) for name in PREDICATES for value in values]
    for (name, text), answer in zip(calls, called(calls), strict=True):
        kind, (then, gone) = constant_type(to_datum(read(Source("v", text))[0])), PREDICATES[name]
        if answer is True:
            assert fits(kind, then), (name, text)
        else:
            assert not proven(kind, gone), (name, text)


def test_names_of_the_table_are_those_of_the_library() -> None:
    names = [name for name in _table() if name != "void?"]
    answers = evaluated(f"(map procedure? (list {' '.join(names)}))")
    assert all(answer is True for answer in answers.items)
