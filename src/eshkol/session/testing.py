"""One file of tests, run in a session of its own: what came of each of its tests.

A file whose comments say what its forms do is a transcript (lang/transcripts.py): each of its forms is a test. Any
other is a program; its tests are those that a library with a procedure `test-results`, such as (eshkol testing), has
noted when the program has ended, and if there are none, that it ends well.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from eshkol.errors import EshkolError, Interrupted, ReadError
from eshkol.lang import transcripts
from eshkol.lang.datum import List, Symbol
from eshkol.lang.files import read_source, shown
from eshkol.lang.imports import Name, spell
from eshkol.lang.pretty import pretty
from eshkol.lang.reader import read
from eshkol.lang.source import Source
from eshkol.lang.syntax import to_datum
from eshkol.runtime.scheme import Root, SchemeExit, SchemeRaised, Value
from eshkol.session.limits import Limit
from eshkol.session.report import scheme_error
from eshkol.session.session import Session, TranscriptSession

PASSED, FAILED, ERROR, SKIPPED = "passed", "failed", "error", "skipped"
OUTCOMES = (PASSED, FAILED, ERROR, SKIPPED)
TESTING: Name = ("eshkol", "testing")
RESULTS = "test-results"
RUNNING = "running"  # its variable that counts beginnings and ends of tests
WHOLE = "the program ends well"  # the name of the test that a program without tests is
NAME_SHOWN = 60  # characters of a form, as the name of a test
ANY_WIDTH = 1_000_000  # of a line: expressions are told in one


@dataclass(frozen=True)
class Failure:
    """What did otherwise than expected; `place` is "file:line", or empty."""

    place: str
    expression: str
    expected: str
    actual: str


@dataclass(frozen=True)
class Test:
    """What came of a test."""

    name: str
    outcome: str
    seconds: float
    failures: tuple[Failure, ...] = ()


@dataclass
class FileReport:
    """What came of a file: its tests, what it wrote, and for a transcript how it differs from what it says."""

    name: str
    tests: list[Test] = field(default_factory=list)
    output: str = ""
    diff: str = ""
    updated: str | None = None  # the text of a transcript that says what came out
    seconds: float = 0.0

    def count(self, *outcomes: str) -> int:
        return sum(test.outcome in outcomes for test in self.tests)


def run_tests(
    session: Session, path: Path, words: Sequence[str] | None = None, seconds: float | None = None
) -> FileReport:
    """Run a file in a fresh session; of a program only the tests whose names have one of the words.

    A test that takes more than so many seconds is ended; so is a program that has none.
    Raises Interrupted after Ctrl-C.
    """
    began = time.monotonic()
    report = FileReport(shown(path))
    try:
        source = read_source(path)
        checks = transcripts.split(source.text)
        if any(check.expected.count for check in checks):
            _run_transcript(session, path, source.text, checks, words, report, seconds)
        else:
            _run_program(session, source, words, report, seconds)
    except Interrupted:
        raise
    except EshkolError as error:  # the file cannot be read
        report.tests.append(Test(WHOLE, ERROR, 0.0, (_failure(error, report.name),)))
    report.seconds = time.monotonic() - began
    return report


# ---- transcripts -----------------------------------------------------------------------------------------------------


def _run_transcript(
    session: Session,
    path: Path,
    text: str,
    checks: list[transcripts.Check],
    words: Sequence[str] | None,
    report: FileReport,
    seconds: float | None,
) -> None:
    """Evaluate all forms, since they build on each other; those with one of the words count as tests."""
    evaluator, results = TranscriptSession(session, path), []
    for check in checks:
        began = time.monotonic()
        with Limit(seconds) as limit:
            outcome = _outcome(evaluator, check.form, limit)
        result = transcripts.Result(check, outcome)
        if words is None or any(word.casefold() in check.form.casefold() for word in words):
            results.append(result)
            report.tests.append(_of_form(report.name, result, time.monotonic() - began))
    whole = transcripts.Report(report.name, text, tuple(results))
    report.diff, report.updated = whole.diff(), whole.updated() if whole.failures else None


def _outcome(evaluator: TranscriptSession, form: str, limit: Limit) -> transcripts.Outcome:
    try:
        return evaluator.evaluate(form)
    except (Interrupted, KeyboardInterrupt):
        if not limit.passed:
            raise
        return transcripts.Outcome("", "", ": ".join(limit.told()))


def _of_form(file: str, result: transcripts.Result, seconds: float) -> Test:
    check = result.check
    first = " ".join(check.form.split())
    name = f"line {check.line}: {first if len(first) <= NAME_SHOWN else f'{first[: NAME_SHOWN - 1]}…'}"
    if result.passed:
        return Test(name, PASSED, seconds)
    actual = check.expected.updated(result.outcome).lines()
    failure = Failure(
        f"{file}:{check.line}",
        check.form,
        "\n".join(check.expected.lines()) or "nothing",
        "\n".join(actual) or "nothing",
    )
    return Test(name, FAILED, seconds, (failure,))


# ---- programs --------------------------------------------------------------------------------------------------------


def _run_program(
    session: Session, source: Source, words: Sequence[str] | None, report: FileReport, seconds: float | None
) -> None:
    running = None
    if spell(TESTING) in source.text:
        _listen(session, words, seconds)
        running = session.engine.cell(spell(TESTING), RUNNING)
    problem: Failure | None = None
    code = 0
    with _captured(session, report):
        try:
            with Limit(seconds, running) as limit:
                code, problem = _ran(session, source, report.name, limit)
        except KeyboardInterrupt:
            if not limit.passed:
                raise
            problem = Failure(report.name, "", *limit.told())
        report.tests += _noted(session)
    if problem is None and code and not report.count(FAILED, ERROR):
        problem = Failure(report.name, "", "exit 0", f"exit {code}")
    if problem is not None or not (report.tests or words is not None):
        outcome, failures = (PASSED, ()) if problem is None else (ERROR, (problem,))
        report.tests.append(Test(WHOLE, outcome, 0.0, failures))


def _ran(session: Session, source: Source, file: str, limit: Limit) -> tuple[int, Failure | None]:
    """With which code a program ended, and what went wrong with it."""
    try:
        session.run_source(source)
    except SchemeExit as leaving:
        return leaving.code, None
    except (SchemeRaised, EshkolError) as failed:
        error = scheme_error(session, failed) if isinstance(failed, SchemeRaised) else failed
        if not isinstance(error, Interrupted):
            return 0, _failure(error, file)
        if not limit.passed:
            raise error from None
        return 0, Failure(file, "", *limit.told())
    return 0, None


def _failure(error: EshkolError, file: str) -> Failure:
    place = file if error.span is None else f"{error.span.file}:{error.span.line}"
    return Failure(place, "", "no error", str(error))


def _listen(session: Session, words: Sequence[str] | None, seconds: float | None) -> None:
    """Tell the library of tests that it is asked for what came of them, which are to run, and for how long."""
    machine, listen = session.machine, _procedure(session, TESTING, "%listen!")
    strings = [session.native.make(word) for word in words or ()]
    wanted = Root(machine, machine.call("list", *(string.get() for string in strings)))
    whole = seconds is not None and seconds.is_integer()  # 2 s, not 2.0 s
    no, longest = (session.native.make(x or False) for x in (None, int(seconds or 0) if whole else seconds))
    machine.enter(listen.get(), [no.get() if words is None else wanted.get(), longest.get()])


def _noted(session: Session) -> Iterator[Test]:
    """The tests that libraries have noted."""
    if session._world is None:
        return
    for name, module in list(session.world.libraries.items()):
        if RESULTS in module.exports:
            results = session.machine.enter(_procedure(session, name, RESULTS).get())
            yield from map(_test, _datum(session, results).items)


def _procedure(session: Session, library: Name, name: str) -> Root:
    """What a library exports under a name."""
    inside = session.world.interaction("<tests>", default=False)
    session.evaluate(f"(import (only {spell(library)} {name}))", "<tests>", inside)
    return Root(session.machine, session.evaluate(name, "<tests>", inside))


def _datum(session: Session, value: Value) -> Any:
    (syntax,) = read(Source("<tests>", session.machine.written(value)))
    return to_datum(syntax)


def _test(row: List) -> Test:
    """A row (name outcome seconds ((place expression expected actual) ...))."""
    name, outcome, seconds, failures = row.items
    assert type(outcome) is Symbol
    assert outcome.name in OUTCOMES
    found = tuple(_noted_failure(*(part or "" for part in failure.items)) for failure in failures.items)
    return Test(_as_typed(str(name)), outcome.name, float(seconds), found)


def _noted_failure(place: str, expression: str, expected: str, actual: str) -> Failure:
    return Failure(place, _as_typed(expression), expected, actual)


def _as_typed(text: str) -> str:
    """An expression that `write` wrote, as people type it: 'x for (quote x)."""
    if not text.startswith("("):
        return text
    try:
        data = read(Source("<tests>", text))
    except ReadError:  # a name that is none
        return text
    return pretty(to_datum(data[0]), ANY_WIDTH) if len(data) == 1 else text


@contextmanager
def _captured(session: Session, report: FileReport) -> Iterator[None]:
    """What the program writes to the standard output goes to the report."""
    machine = session.machine
    port, one = Root(machine, machine.call("open-output-string")), machine.fixnum(1)
    before = Root(machine, machine.call("%current-port", one))
    machine.call("%set-current-port!", one, port.get())
    try:
        yield
    finally:
        machine.call("%set-current-port!", one, before.get())
        report.output = machine.text(machine.call("get-output-string", port.get()))
