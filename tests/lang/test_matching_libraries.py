"""Regular expressions and patterns: (srfi 115) against Python's, (eshkol match) against a plain matcher."""

from __future__ import annotations

import functools
import random
import re
from collections.abc import Callable, Iterable
from typing import Any

from compiled import outcome, written
from in_cases import Raw, check, data

from effort import amount
from eshkol.session import Session, on_session

COUNT = amount(400, 60)


# ---- regular expressions ---------------------------------------------------------------------------------------------


class Expression:
    """A random regular expression in both ways of writing, and whether it may match nothing."""

    def __init__(self, scheme: str, python: str, empty: bool, loops: bool = False) -> None:
        self.scheme, self.python, self.empty = scheme, python, empty
        self.loops = loops  # whether something that may match nothing is repeated: then Python prefers other ways


def expression(draw: random.Random, depth: int) -> Expression:
    kind = draw.randrange(12 if depth else 4)
    if kind <= 1:
        char = draw.choice("abc")
        return Expression(f'"{char}"', char, False)
    if kind == 2:
        return draw.choice([Expression("any", "(?s:.)", False), Expression("nonl", "[^\\n\\r]", False)])
    if kind == 3:
        return draw.choice([
            Expression('("ab")', "[ab]", False), Expression('(~ ("ab"))', "[^ab]", False),
            Expression('(/ "ac")', "[a-c]", False), Expression('(- any "b")', "[^b]", False),
            Expression("bos", "\\A", True), Expression("eos", "\\Z", True), Expression("bow", "\\b(?=\\w)", True),
            Expression("bol", "(?m:^)", True), Expression("eol", "(?m:$)", True),
        ])  # fmt: skip
    parts = [expression(draw, depth - 1) for _ in range(draw.randint(1, 3))]
    scheme, python = " ".join(part.scheme for part in parts), "".join(part.python for part in parts)
    empty, loops = all(part.empty for part in parts), any(part.loops for part in parts)
    if kind <= 5:
        return Expression(f"(: {scheme})", f"(?:{python})", empty, loops)
    if kind == 6:
        either = "|".join(part.python for part in parts)
        return Expression(f"(or {scheme})", f"(?:{either})", any(part.empty for part in parts), loops)
    if kind == 7:
        return Expression(f"($ {scheme})", f"({python})", empty, loops)
    if kind == 8:
        return Expression(f"(? {scheme})", f"(?:{python})?", True, loops)
    if kind == 9:
        least, most = draw.randrange(2), draw.randint(2, 3)
        return Expression(
            f"(** {least} {most} {scheme})", f"(?:{python}){{{least},{most}}}", empty or not least, loops or empty
        )
    if kind == 10:
        return Expression(f"(*? {scheme})", f"(?:{python})*?", True, loops or empty)
    sign = draw.choice("*+")
    return Expression(f"({sign} {scheme})", f"(?:{python}){sign}", empty or sign == "*", loops or empty)


def test_regular_expressions_agree_with_those_of_python() -> None:
    draw = random.Random(10)

    def groups(match: re.Match[str] | None) -> Any:
        return None if match is None else [[*match.span()], [match[0], *match.groups()]]

    cases: list[tuple[list[Any], Any]] = []
    for _ in range(COUNT * 4):
        made = expression(draw, 3)
        compiled = re.compile(made.python)
        texts = ["".join(draw.choice("aabbc \n") for _ in range(draw.randrange(7))) for _ in range(4)]
        for text in texts:
            whole = compiled.fullmatch(text)
            if made.loops:
                expected = [whole is not None, compiled.search(text) is not None]
            else:
                # behind an empty match Python looks for another one at the same place
                replaced = text if made.empty else compiled.sub("-", text)
                expected = [whole is not None, groups(whole), groups(compiled.search(text)), replaced]
            cases.append(([Raw(made.scheme), text, made.loops, made.empty], expected))
    check(
        "(srfi 115)",
        "sre text loops empty",
        """(let ((re (regexp sre)) (groups (lambda (match)
               (and match (list (list (regexp-match-submatch-start match) (regexp-match-submatch-end match))
                                (regexp-match->list match))))))
             (if loops
                 (list (regexp-matches? re text) (if (regexp-search re text) #t #f))
                 (list (regexp-matches? re text) (groups (regexp-matches re text)) (groups (regexp-search re text))
                       (if empty text (regexp-replace-all re text "-")))))""",
        cases,
    )


# ---- patterns --------------------------------------------------------------------------------------------------------


def pattern(draw: random.Random, depth: int, names: list[str]) -> tuple[str, Callable[[Any], dict[str, Any] | None]]:
    """A random pattern, and a function from a value to what its names are bound to, or None where it does not match."""
    kind = draw.randrange(8 if depth else 4)
    if kind == 0:
        number = draw.randrange(3)
        return str(number), lambda value: {} if value == number and isinstance(value, int) else None
    if kind == 1:
        return "_", lambda value: {}
    if kind == 2:
        return "(? number?)", lambda value: {} if isinstance(value, int) else None
    if kind == 3:
        name = f"v{len(names)}"
        names.append(name)
        return name, lambda value: {name: value}
    inner = [pattern(draw, depth - 1, names) for _ in range(draw.randrange(3))]
    texts, tests = " ".join(text for text, _ in inner), [test for _, test in inner]

    def all_of(values: Iterable[Any], tests: list[Callable[[Any], dict[str, Any] | None]]) -> dict[str, Any] | None:
        found: dict[str, Any] = {}
        for value, test in zip(values, tests, strict=True):
            part = test(value)
            if part is None:
                return None
            found |= part
        return found

    def sequence(value: Any, kind: type) -> dict[str, Any] | None:
        return all_of(value, tests) if type(value) is kind and len(value) == len(tests) else None

    if kind == 4:
        return f"({texts})", lambda value: sequence(value, list)
    if kind == 5:
        return f"#({texts})", lambda value: sequence(value, tuple)
    before = len(names)
    repeated, one = pattern(draw, depth - 1, names)
    own = names[before:]
    open_, kind_ = ("(", list) if kind == 6 else ("#(", tuple)
    least = draw.randrange(2)

    def several(value: Any) -> dict[str, Any] | None:
        if type(value) is not kind_ or len(value) < len(tests) + least:
            return None
        count = len(value) - len(tests)
        parts = [one(item) for item in value[:count]]
        rest = all_of(value[count:], tests)
        if rest is None or any(part is None for part in parts):
            return None
        return {**{name: [part[name] for part in parts if part is not None] for name in own}, **rest}

    return f"{open_}{repeated} {'..1' if least else '___'} {texts})", several


def test_patterns_match_what_a_plain_matcher_matches() -> None:
    draw = random.Random(11)

    def value(depth: int) -> Any:
        kind = draw.randrange(5 if depth else 2)
        if kind < 2:
            return draw.randrange(3)
        items = [value(depth - 1) for _ in range(draw.randrange(4))]
        return items if kind < 4 else tuple(items)

    values = [value(3) for _ in range(60)] + [[], (), [1], [[0, 1], [2, 0]], [(1, 2), (0, 0)]]
    clauses, tests = [], []
    for _ in range(amount(120, 16)):
        names: list[str] = []
        text, test = pattern(draw, 3, names)
        clauses.append(f"(lambda (v) (match v ({text} (list {' '.join(names)})) (_ 'no)))")
        tests.append((names, test))
    program = (
        "(import (scheme base) (scheme write) (eshkol match))\n(for-each (lambda (f) (for-each (lambda (v) "
        f"(write (f v)) (newline)) '({' '.join(map(data, values))}))) (list {' '.join(clauses)}))"
    )
    expected = []
    for names, test in tests:
        for item in values:
            found = test(item)
            expected.append("no" if found is None else data([found[name] for name in names]))
    assert sum(line != "no" for line in expected) > 50
    lines: list[str] = []
    assert on_session(lambda session: lines.extend(written(session, program).splitlines()), []) == 0
    assert lines == expected


# ---- what goes wrong -------------------------------------------------------------------------------------------------


def test_a_match_that_fails_is_told_with_its_line() -> None:
    found: list[str] = []

    def work(session: Session) -> None:
        program = "(import (scheme base) (eshkol match))\n(define (f x)\n  (match x\n    ((a b) a)))\n(f '(1 2 3))\n"
        found.append(outcome(session, program, "<lines>").error or "")

    assert on_session(work, []) == 0
    assert "no pattern matches (1 2 3)" in found[0]
    assert "<lines>:3:3" in found[0]


def test_a_long_text_is_matched_in_time_in_proportion_to_it() -> None:
    """An expression on which backtracking would take longer than the universe is old."""
    stars = functools.reduce(lambda inner, _: f"(* {inner})", range(6), '"a"')
    body = f'(regexp-matches? \'(: {stars} (= 30 (? "a")) (= 30 "a") "b") (make-string 3000 #\\a))'
    check("(srfi 115)", "", body, [([], False)])
