"""The command `eshkol test`: files of tests are run, each in a session of its own, and it is said what failed.

Comes in: files and folders, words that choose tests. Goes out: each failure with its file, line, expression, what was
expected and what came out; a summary; with --junit a file that services read; and 1 if something failed, 130 after
Ctrl-C, when the summary tells of what had run. With several files, processes share them: a file that ends its process,
or the machine's memory, is a failure of that file alone.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from queue import Empty, Queue
from typing import TYPE_CHECKING, Any

from eshkol.cli.fmt import programs_in
from eshkol.cli.projects import enter, project_here
from eshkol.cli.scheme import add_folders
from eshkol.cli.usage import UsageError
from eshkol.errors import Interrupted
from eshkol.lang.files import ASKED_FOR

if TYPE_CHECKING:
    from eshkol.session import Session
    from eshkol.session.testing import FileReport

PROG = "eshkol test"
FAILED, INTERRUPTED = 1, 130
EPILOG = """\
A file is a transcript, whose comments say what each form does ((+ 1 2) ;=> 3), or a program, whose tests are those of
(eshkol testing) in it: (test-case "numbers are added" (check-equal (+ 1 2) 3)).

examples:
  eshkol test                             the tests of the project that this folder belongs to
  eshkol test tests/orbits.esk more       a file, and all files in a folder
  eshkol test -k energy                   tests with this in their name, and files with it in theirs
  eshkol test -j 4 --durations 5          four files at a time; the five tests that took longest
  eshkol test --junit build/tests.xml     for services that run tests
  eshkol test --update tests              write what transcripts do into them"""

Told = Callable[["FileReport"], None]
Done = tuple[int, "FileReport | Exception"]  # the number of a file, and what came of it


def add_commands(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "places", nargs="*", metavar="PLACE", help="a file, or a folder to be searched for programs (default: project)"
    )
    parser.add_argument(
        "-k", dest="words", action="append", metavar="WORD",
        help="only tests with WORD in their name, or in that of their file; may be given again",
    )  # fmt: skip
    parser.add_argument(
        "-j", dest="processes", type=int, default=0, metavar="N", help="so many files at a time (default: one a core)"
    )
    parser.add_argument(
        "--timeout",
        dest="seconds",
        type=float,
        metavar="S",
        help="end tests that take more than S seconds",
    )
    parser.add_argument("--durations", type=int, default=0, metavar="N", help="show the N tests that took longest")
    parser.add_argument("--junit", metavar="FILE", help="write what came of the tests to FILE, as XML")
    parser.add_argument("--update", action="store_true", help="write what transcripts do into the files")
    parser.add_argument("-v", "--verbose", action="store_true", help="name every test, not only those that fail")
    add_folders(parser)
    parser.add_argument("--serve", type=int, metavar="FD", help=argparse.SUPPRESS)  # a process that shares the files
    parser.set_defaults(run=run_test)


def run_test(options: argparse.Namespace) -> int:
    """Run what is named."""
    if options.serve is not None:
        return _serve(options.serve, options)
    if options.processes < 0 or options.durations < 0:
        raise UsageError("-j and --durations take numbers from 1", PROG)
    if options.seconds is not None and not options.seconds > 0:
        raise UsageError("--timeout takes a number of seconds", PROG)
    files = _files(options)
    began = time.monotonic()
    reports: list[FileReport] = []

    def tell(report: FileReport) -> None:
        reports.append(report)
        _show(report, options.verbose)

    processes = min(options.processes or os.cpu_count() or 1, len(files))
    try:
        whole = _run_here(files, options, tell) if processes < 2 else _share(files, processes, options, tell)
    except KeyboardInterrupt:
        whole = False
    seconds = time.monotonic() - began
    if options.update:
        _update(reports)
    if options.durations:
        _show_durations(reports, options.durations)
    if not whole:
        print(f"interrupted: {len(reports)} of {len(files)} files have run")
    _show_summary(reports, seconds)
    if options.junit:
        _write_junit(Path(options.junit), reports, seconds)
    failed = any(report.count("failed", "error") for report in reports)
    updated = options.update and not any(report.count("error") or not report.diff for report in reports if _bad(report))
    return INTERRUPTED if not whole else FAILED if failed and not updated else 0


def _files(options: argparse.Namespace) -> list[Path]:
    """The files that are named, or found in folders; of a project, those in its folder `tests`."""
    places = [Path(place) for place in options.places]
    if not places:
        project = project_here(PROG)
        if not project.tests.is_dir():
            raise UsageError(f"the project {project.name} has no folder '{project.tests}'", PROG)
        places = [project.tests]
    return list(dict.fromkeys(programs_in(places)))


# ---- one after the other ---------------------------------------------------------------------------------------------


def _run_here(files: Sequence[Path], options: argparse.Namespace, tell: Told) -> bool:
    """Run the files in this process; whether all of them ran."""
    from eshkol.session import on_session

    interrupted = False

    def work(session: Session) -> None:
        nonlocal interrupted
        try:
            for path in files:
                tell(_run(session, path, options))
        except Interrupted:
            interrupted = True

    on_session(work, [])
    return not interrupted


def _run(session: Session, path: Path, options: argparse.Namespace) -> FileReport:
    """Run a file in a session that shares its cache with this one alone."""
    from eshkol.session import Session
    from eshkol.session.testing import run_tests

    session.machine.flush()
    words = wanted = options.words
    if words and any(word.casefold() in str(path).casefold() for word in words):
        wanted = None  # all tests of the file
    before = list(ASKED_FOR)
    enter(path.absolute().parent)
    fresh = Session(cache=session.cache)
    fresh.machine.set_command_line([str(path)])
    try:
        return run_tests(fresh, path, wanted, options.seconds)
    finally:
        ASKED_FOR[:] = before
        fresh.close()


# ---- side by side ----------------------------------------------------------------------------------------------------


def _share(files: Sequence[Path], processes: int, options: argparse.Namespace, tell: Told) -> bool:
    """Run the files in several processes; what came of them is told in their order. Whether all of them ran."""
    waiting: Queue[int] = Queue()
    for number in range(len(files)):
        waiting.put(number)
    done: Queue[Done] = Queue()
    helpers = [_Helper(options) for _ in range(processes)]
    threads = [threading.Thread(target=h.work, args=(files, waiting, done), daemon=True) for h in helpers]
    for thread in threads:
        thread.start()
    found: dict[int, FileReport] = {}
    told = 0
    try:
        while told < len(files):
            with suppress(Empty):
                number, report = done.get(timeout=0.1)
                if isinstance(report, Exception):
                    raise report
                found[number] = report
            while told in found:
                tell(found[told])
                told += 1
    except KeyboardInterrupt:
        for number in sorted(found):
            if number >= told:
                tell(found[number])
        return False
    finally:
        for helper in helpers:
            helper.stop()
    return True


class _Helper:
    """A process that runs files, one after the other, and another one where that has ended."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.process: subprocess.Popen[bytes] | None = None
        self.stopped = False
        self._lock = threading.Lock()
        self._answers: Any = None

    def work(self, files: Sequence[Path], waiting: Queue[int], done: Queue[Done]) -> None:
        with suppress(Empty):
            while not self.stopped:
                number = waiting.get_nowait()
                try:
                    done.put((number, self._ask(files[number])))
                except Exception as error:  # whoever waits is to know
                    done.put((number, error))

    def _ask(self, path: Path) -> FileReport:
        began = time.monotonic()
        self._begin()
        process = self.process
        if process is None or process.stdin is None:  # it was stopped meanwhile
            return _ended(path, None, 0.0)
        answer = b""
        with suppress(OSError):
            process.stdin.write(json.dumps(str(path)).encode() + b"\n")
            process.stdin.flush()
            answer = self._answers.readline()
        if answer.endswith(b"\n"):
            return _from_json(json.loads(answer))
        code = process.wait()
        self.process = None
        return _ended(path, code, time.monotonic() - began)

    def _begin(self) -> None:
        with self._lock:
            if self.process is not None or self.stopped:
                return
            ours, theirs = os.pipe()
            words = [argument for word in self.options.words or () for argument in ("-k", word)]
            limit = [] if self.options.seconds is None else ["--timeout", str(self.options.seconds)]
            folders = [argument for folder in ASKED_FOR for argument in ("-L", str(folder))]
            self.process = subprocess.Popen(
                [sys.executable, "-m", "eshkol", "test", "--serve", str(theirs), *words, *limit, *folders],
                stdin=subprocess.PIPE, pass_fds=(theirs,), start_new_session=True,  # Ctrl-C is this process's alone
            )  # fmt: skip
            os.close(theirs)
            self._answers = os.fdopen(ours, "rb")

    def stop(self) -> None:
        with self._lock:
            self.stopped = True
            if self.process is not None:
                self.process.kill()
                self.process.wait()


def _serve(descriptor: int, options: argparse.Namespace) -> int:
    """Run the files whose names come, a line each; what came of each goes back as a line."""
    from eshkol.session import on_session

    names, nothing = os.fdopen(os.dup(0), encoding="ascii"), os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)  # for programs that read

    def work(session: Session) -> None:
        for line in names:
            report = _run(session, Path(json.loads(line)), options)
            answers.write(json.dumps(asdict(report)) + "\n")
            answers.flush()

    with os.fdopen(descriptor, "w", encoding="utf-8", errors="surrogatepass") as answers:
        return on_session(work, [])


def _from_json(data: dict[str, Any]) -> FileReport:
    from eshkol.session.testing import Failure, FileReport, Test

    tests = [
        Test(**{**test, "failures": tuple(Failure(**failure) for failure in test["failures"])})
        for test in data.pop("tests")
    ]
    return FileReport(**data, tests=tests)


def _ended(path: Path, code: int | None, seconds: float) -> FileReport:
    """What is said of a file that ended its process."""
    from eshkol.lang.files import shown
    from eshkol.session.testing import ERROR, WHOLE, Failure, FileReport, Test

    how = f"exit code {code}"
    if code is not None and code < 0:
        with suppress(ValueError):
            how = f"signal {signal.Signals(-code).name}"
    failure = Failure(shown(path), "", "the process goes on", f"it ended with {how}")
    return FileReport(shown(path), [Test(WHOLE, ERROR, seconds, (failure,))], seconds=seconds)


# ---- what is told ----------------------------------------------------------------------------------------------------


def _bad(report: FileReport) -> bool:
    return report.count("failed", "error") > 0


def _show(report: FileReport, verbose: bool) -> None:
    from eshkol.cli.junit import told

    if verbose:
        for test in report.tests:
            print(f"{test.outcome:<7} {test.seconds:8.3f} s  {report.name}: {test.name}")
    if report.diff:
        print(report.diff.rstrip("\n"))
    for test in report.tests:
        if test.failures and not report.diff:
            print(f"{test.outcome.upper()} {report.name}: {test.name}")
            for failure in test.failures:
                print(told(failure))
    if report.output and _bad(report) and not report.diff:
        print(f"--- what {report.name} wrote:\n{report.output.rstrip()}\n---")
    sys.stdout.flush()


def _show_durations(reports: Sequence[FileReport], count: int) -> None:
    tests = sorted(
        ((test.seconds, report.name, test.name) for report in reports for test in report.tests), reverse=True
    )
    print("the tests that took longest:")
    for seconds, file, name in tests[:count]:
        print(f"  {seconds:8.3f} s  {file}: {name}")


def _show_summary(reports: Sequence[FileReport], seconds: float) -> None:
    from eshkol.session.testing import ERROR, FAILED, PASSED, SKIPPED

    words = {PASSED: "passed", FAILED: "failed", ERROR: "ended with errors", SKIPPED: "skipped"}
    counts = {outcome: sum(report.count(outcome) for report in reports) for outcome in words}
    total = sum(counts.values())
    parts = [f"{count} {words[outcome]}" for outcome, count in counts.items() if count or outcome == PASSED]
    files = f"{len(reports)} file{'s' * (len(reports) != 1)}, {total} test{'s' * (total != 1)}"
    print(f"{files}: {', '.join(parts)}, in {seconds:.2f} s")


def _update(reports: Sequence[FileReport]) -> None:
    from eshkol.cli.fmt import replace

    for report in reports:
        if report.updated is not None:
            replace(Path(report.name), report.updated, PROG)
            print(f"updated: {report.name}")


def _write_junit(path: Path, reports: Sequence[FileReport], seconds: float) -> None:
    from eshkol.cli.junit import document
    from eshkol.io.files import replacing, write_all

    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path, PROG) as file:
        write_all(file, document(reports, seconds))
