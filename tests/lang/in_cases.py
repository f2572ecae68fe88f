"""Programs that go through many cases, which stand in them as data, so that little is compiled."""

from __future__ import annotations

import json
from collections.abc import Iterable
from fractions import Fraction
from typing import Any

from compiled import written

from eshkol.session import Session, on_session


class Raw:
    """Text that is written into a program as it is."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return self.text


def data(value: Any) -> str:
    """A Python value as the text of Scheme data: a list is a list, a tuple a vector."""
    match value:
        case bool():
            return "#t" if value else "#f"
        case None:
            return "#f"
        case str():
            return json.dumps(value, ensure_ascii=False)
        case list():
            return f"({' '.join(map(data, value))})"
        case tuple():
            return f"#({' '.join(map(data, value))})"
        case Fraction():
            return f"{value.numerator}/{value.denominator}"
    return str(value)


def check(imports: str, parameters: str, body: str, cases: Iterable[tuple[list[Any], Any]]) -> None:
    """The body, a procedure of each case's arguments, gives what is expected of it, as `write` writes that."""
    known = list(cases)
    program = (
        f"(import (scheme base) (scheme char) (scheme write) {imports})\n(for-each (lambda (arguments) (write (apply "
        f"(lambda ({parameters}) {body}) arguments)) (newline)) '({' '.join(data(given) for given, _ in known)}))"
    )
    lines: list[str] = []

    def work(session: Session) -> None:
        lines.extend(written(session, program).splitlines())

    assert on_session(work, []) == 0
    assert len(lines) == len(known)
    compared = [(given, line, data(expected)) for (given, expected), line in zip(known, lines, strict=True)]
    wrong = [case for case in compared if case[1] != case[2]]
    assert not wrong, f"{len(wrong)} of {len(known)}: arguments, what came out, what was expected: {wrong[:5]}"
