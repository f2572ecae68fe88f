"""Programs that hold their own expected output: take them apart, run them form by form, compare, bring up to date.

A transcript is a file of top-level forms. Comments after a form, at its end or on lines of their own, say what it does:

    (+ 1 2)                 ;=> 3
    (display "a\\nb")
    ;out> a
    ;out> b
    (vector-ref #(1 2) 2)
    ;error> vector-ref

`;=> TEXT` is the value as `write` shows it; several values stand with a space between them, and a value that is
unspecified has no text. `;out> TEXT` is one line of what the form wrote; whether the last line ended is not told apart.
`;error> TEXT` is a part of the message of the error that the form raised, and stands for any error where TEXT is empty.
White space at the end of a line does not count. A form without `;=>` may have any value, one without `;out>` must write
nothing and one without `;error>` must not fail. All other comments are for people.

The forms of a file share one session; files are independent. `Session` says what evaluates a form. The scanner
here knows no more of the language than is needed to see where a form ends: it serves to check the reader, too.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Protocol

SUFFIX = ".esk"
_VALUE, _OUTPUT, _ERROR = "=>", "out>", "error>"
_EXPECTATION = re.compile(r";(=>|out>|error>) ?(.*)")
_BLANK = re.compile(r"[ \t\r\n\f]+")
_STRING = re.compile(r'"(?:[^"\\]|\\.)*"', re.DOTALL)
_BARS = re.compile(r"\|(?:[^|\\]|\\.)*\|", re.DOTALL)
_CHARACTER = re.compile(r"#\\(?:[^\s()\[\]\";']+|.)", re.DOTALL)
_PREFIX = re.compile(r"#'|#`|#,@|#,|'|`|,@|,|#\d+=")
_OPENING = re.compile(r"#u8\(|#vu8\(|#\(|\(|\[")
_ATOM = re.compile(r"""(?:[^\s()\[\]";'`,|]|\|(?:[^|\\]|\\.)*\|)+""", re.DOTALL)
_BLOCK = re.compile(r"#\||\|#")


@dataclass(frozen=True)
class Outcome:
    """What evaluating a form did: its value as text (empty: unspecified), what it wrote, the error's message if any."""

    value_text: str = ""
    output: str = ""
    error: str | None = None


class Session(Protocol):
    """Something that evaluates top-level forms one after another, as a REPL does."""

    def evaluate(self, text: str) -> Outcome: ...


@dataclass(frozen=True)
class Expectations:
    """What the comments after a form say; None and empty tuples where they say nothing."""

    value: str | None = None
    output: tuple[str, ...] = ()
    errors: tuple[str, ...] = ()

    @property
    def count(self) -> int:
        return (self.value is not None) + len(self.output) + len(self.errors)

    def accept(self, outcome: Outcome) -> bool:
        if outcome.error is None:
            fits = not self.errors and self.value in (None, outcome.value_text.rstrip())
        else:
            fits = bool(self.errors) and all(part in outcome.error for part in self.errors)
        return fits and self.output == _lines(outcome.output)

    def lines(self) -> list[str]:
        """The comments that say this."""
        found = [(_OUTPUT, line) for line in self.output]
        found += [(_VALUE, self.value)] if self.value is not None else []
        found += [(_ERROR, part) for part in self.errors]
        return [f";{mark} {text}".rstrip() for mark, text in found]

    def updated(self, outcome: Outcome) -> Expectations:
        """What to expect instead, now that this came out; parts of an error's message that still fit are kept."""
        output = _lines(outcome.output)
        if outcome.error is None:
            value = self.value if self.value is None and not self.errors else outcome.value_text.rstrip()
            return Expectations(value or None, output)
        kept = tuple(part for part in self.errors if part in outcome.error)
        return Expectations(None, output, kept or (outcome.error.strip().partition("\n")[0].rstrip(),))


@dataclass(frozen=True)
class Check:
    """A form of a transcript, the line it begins on, what is expected of it, and where all of that stands."""

    form: str
    line: int
    expected: Expectations
    start: int = field(repr=False, default=0)
    end: int = field(repr=False, default=0)  # of the form
    after: int = field(repr=False, default=0)  # the end of its last expectation, or of the form


@dataclass(frozen=True)
class Result:
    """A check and what came of it."""

    check: Check
    outcome: Outcome

    @property
    def passed(self) -> bool:
        return self.check.expected.accept(self.outcome)


@dataclass(frozen=True)
class Report:
    """All results of one transcript, whose text is kept in order to show and to update it."""

    name: str
    text: str
    results: tuple[Result, ...]

    @property
    def failures(self) -> tuple[Result, ...]:
        return tuple(result for result in self.results if not result.passed)

    @property
    def count(self) -> int:
        """Of expectations; a form that has none is one check, too: it must not fail."""
        return sum(max(1, result.check.expected.count) for result in self.results)

    def diff(self) -> str:
        """What was expected (-) and what came out (+), form by form, as a unified diff; empty where all is well."""
        hunks = []
        for result in self.failures:
            form = result.check.form.split("\n")
            before = form + result.check.expected.lines()
            after = form + result.check.expected.updated(_spelt(result)).lines()
            lines = list(difflib.unified_diff(before, after, n=len(before), lineterm=""))[3:]
            hunks.append(f"@@ {self.name}:{result.check.line} @@\n" + "\n".join(lines))
        return "\n".join(hunks) + "\n" if hunks else ""

    def updated(self) -> str:
        """The text with the expectations that were not met replaced by what came out."""
        pieces, position = [], 0
        for result in self.failures:
            check = result.check
            wanted = check.expected.updated(result.outcome).lines()
            pieces.append(self.text[position : check.end])
            between = self.text[check.end : check.after]
            if len(wanted) == 1 and between and "\n" not in between:
                pieces.append(between[: between.index(";")] + wanted[0])  # it stays at the end of the form's line
            else:
                pieces.append("".join("\n" + line for line in wanted))
            position = check.after
        return "".join([*pieces, self.text[position:]])


def split(text: str) -> list[Check]:
    """The forms of a transcript with what is expected of each. A form that never ends goes on to the end of it."""
    checks: list[Check] = []
    line, counted = 1, 0
    for start, end in _top_level(text):
        if text[start] == ";":
            found = _EXPECTATION.fullmatch(text[start:end])
            if found and checks:
                checks[-1] = replace(checks[-1], expected=_extended(checks[-1].expected, *found.groups()), after=end)
            continue
        line += text.count("\n", counted, start)
        counted = start
        checks.append(Check(text[start:end], line, Expectations(), start, end, end))
    return checks


def run(path: Path, session: Session) -> Report:
    """Evaluate all forms of the file in the session, which should be a fresh one."""
    text = path.read_text(encoding="utf-8")
    return Report(str(path), text, tuple(Result(check, session.evaluate(check.form)) for check in split(text)))


def find(places: Sequence[Path]) -> list[Path]:
    """Transcripts among the places: files as they are, folders searched for them."""
    found: list[Path] = []
    for place in places:
        found += sorted(place.rglob(f"*{SUFFIX}")) if place.is_dir() else [place]
    return found


def _lines(output: str) -> tuple[str, ...]:
    lines = tuple(line.rstrip() for line in output.split("\n"))
    return lines[:-1] if lines[-1] == "" else lines


def _spelt(result: Result) -> Outcome:
    """The outcome with a word for a value that has no text, where one was expected."""
    expected, outcome = result.check.expected, result.outcome
    silent = outcome.error is None and not outcome.value_text and (expected.value is not None or expected.errors)
    return replace(outcome, value_text="(nothing)") if silent else outcome


def _extended(expected: Expectations, mark: str, text: str) -> Expectations:
    text = text.rstrip()
    if mark == _OUTPUT:
        return replace(expected, output=(*expected.output, text))
    if mark == _ERROR:
        return replace(expected, errors=(*expected.errors, text))
    return replace(expected, value=text)


def _top_level(text: str) -> Iterator[tuple[int, int]]:
    """Start and end of each form and of each line comment outside of forms."""
    position, form, depth, prefixed = 0, -1, 0, 0  # `form`: where the one at hand began
    while position < len(text):
        kind, end = _token(text, position)
        if kind == "comment" and form < 0:
            yield position, end
        elif kind == "skip":  # `#;` and the datum after it are part of the form they stand in, or of the next one
            prefixed += 2 if form < 0 else 0 if depth else 1
            form = position if form < 0 else form
        elif kind not in ("blank", "comment"):
            form = position if form < 0 else form
            if kind == "open":
                depth += 1
            elif kind == "close":
                depth = max(0, depth - 1)
            if kind == "prefix":
                prefixed += 1 if depth == 0 and not prefixed else 0
            elif depth == 0:
                prefixed = max(0, prefixed - 1)
                if not prefixed:
                    yield form, end
                    form = -1
        position = end
    if form >= 0:
        yield form, len(text.rstrip())


def _token(text: str, position: int) -> tuple[str, int]:
    """The kind of the token that begins here, and its end."""
    char, two = text[position], text[position : position + 2]
    if found := _BLANK.match(text, position):
        return "blank", found.end()
    if char == ";":
        end = text.find("\n", position)
        return "comment", len(text) if end < 0 else end
    if two == "#|":
        return "blank", _block_end(text, position)
    if two == "#;":
        return "skip", position + 2
    for kind, pattern in (("open", _OPENING), ("prefix", _PREFIX)):
        if found := pattern.match(text, position):
            return kind, found.end()
    if char in ")]":
        return "close", position + 1
    for pattern in (_STRING, _BARS, _CHARACTER) if char in '"|#' else ():
        if found := pattern.match(text, position):
            break
    else:
        found = _ATOM.match(text, position)
    if found and char == "|" and (more := _ATOM.match(text, position)):
        found = more  # |a|b is one symbol
    return "atom", found.end() if found else len(text)


def _block_end(text: str, position: int) -> int:
    """The end of the block comment that begins here; they nest."""
    depth = 0
    for mark in _BLOCK.finditer(text, position):
        depth += 1 if mark.group() == "#|" else -1
        if depth == 0:
            return mark.end()
    return len(text)
