"""A plain prompt: read a form, evaluate it, print its value, and again.

Comes in: lines from the terminal, or from a pipe (then there is no prompt). Goes out: values as `write` shows them, on
stdout; errors on stderr, after which the session goes on; the exit code. Lines are read on the main thread, which alone
hears of Ctrl-C; evaluation runs on the session's thread.
"""

from __future__ import annotations

import io
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any

from eshkol.errors import EshkolError, Interrupted, ReadError
from eshkol.lang.pretty import pretty
from eshkol.lang.reader import read
from eshkol.lang.source import Source
from eshkol.lang.unexpand import unit_data
from eshkol.runtime.scheme import SchemeExit, Value
from eshkol.session import Session, SessionThread
from eshkol.session.describing import about_name, is_unfinished
from eshkol.support.interrupts import check, deferred
from eshkol.support.store import default_directory
from eshkol.version import __version__

PROMPT, CONTINUED = "> ", "  "
HISTORY_FILE, HISTORY_LINES = "repl-history", 10_000

HELP = """\
Type a form to see its value; a form may go over several lines. Ctrl-C interrupts, Ctrl-D leaves.
  ,doc NAME      what a procedure or form is for
  ,expand FORM   the form with its macros expanded
  ,time FORM     the value of the form, and how long it took
  ,help          this
  ,quit          leave"""


class Repl:
    """A session with a person, or with whatever writes to the other end of a pipe."""

    def __init__(self, heap_limit: int = 0) -> None:
        self.thread = SessionThread(heap_limit)
        self.interactive = sys.stdin is not None and sys.stdin.isatty()
        self._pressing = deferred()
        self._number = 0  # of the texts so far; each has a name of its own, for errors
        self._commands: dict[str, Callable[[Session, str], None]] = {
            "doc": self._doc,
            "expand": self._expand,
            "time": self._time,
            "help": lambda session, _: session.say(HELP),
            "quit": self._quit,
        }

    def run(self) -> int:
        """Until the input ends; the exit code."""
        history = _History() if self.interactive else None
        if isinstance(sys.stdin, io.TextIOWrapper) and not self.interactive:
            sys.stdin.reconfigure(errors="replace")
        with self._pressing:
            return self._run(history)

    def _run(self, history: _History | None) -> int:
        try:
            self._on_session(lambda session: session.machine.set_command_line(["repl"]))
            if self.interactive:
                print(f"Eshkol {__version__} – ,help lists the commands, Ctrl-D leaves")
            while (text := self._read()) is not None:
                self._on_session(partial(self._do, text))
        except SchemeExit as leaving:
            return leaving.code
        finally:
            self.thread.close()
            if history is not None:
                history.save()
            sys.stdout.flush()
        return 0

    def _read(self) -> str | None:
        """The text of whole forms, or a command; None at the end."""
        text = ""
        while True:
            try:
                text += self._line(CONTINUED if text else PROMPT) + "\n"
            except EOFError:
                if self.interactive:
                    print()
                return text if text and not self.interactive else None
            except KeyboardInterrupt:
                print("\n", end="")
                text = ""
                continue
            if not text.strip():
                text = ""
            elif not is_unfinished(_argument(text) if text.lstrip().startswith(",") else text):
                return text

    def _line(self, prompt: str) -> str:
        self._pressing.hearing = True  # nothing is lost while someone types
        try:
            check()
            return self._typed(prompt)
        finally:
            self._pressing.hearing = False

    def _typed(self, prompt: str) -> str:
        if self.interactive:
            return input(prompt)
        line = sys.stdin.readline() if sys.stdin is not None else ""
        if not line:
            raise EOFError
        return line.removesuffix("\n")

    def _on_session(self, work: Callable[[Session], None]) -> None:
        """Do something; what fails is told, and that is all."""

        def whole(session: Session) -> None:
            try:
                work(session)
            except Exception:
                session.machine.call("fresh-line")  # the message begins a line
                raise
            finally:
                session.flush()

        try:
            self.thread.call(whole, hard=False)
        except (SchemeExit, BrokenPipeError):
            raise
        except KeyboardInterrupt:
            _complain("interrupted")
        except Interrupted as error:
            _complain(str(error))
        except EshkolError as error:
            _complain(f"error: {error}")
        except MemoryError:
            _complain("error: not enough memory")
        except OSError as error:
            _complain(f"error: {error.strerror}")
        except Exception as error:
            _complain(f"internal error: {type(error).__name__}: {error}")

    # ---- what is typed ------------------------------------------------------------------------------------------

    def _do(self, text: str, session: Session) -> None:
        if not text.lstrip().startswith(","):
            for form in session.forms(text, self._name()):
                self._show(session, form())
            return
        word = text.split()[0][1:]
        command = self._commands.get(word)
        if command is None:
            raise ReadError(f"there is no command ,{word}", hint=",help lists the commands")
        command(session, _argument(text))

    def _name(self) -> str:
        self._number += 1
        return f"<input {self._number}>"

    def _show(self, session: Session, value: Value) -> None:
        session.say(*session.written(value))
        if self.interactive:
            session.machine.call("fresh-line")  # the prompt begins a line

    def _expand(self, session: Session, text: str) -> None:
        for form in read(Source(self._name(), text)):
            unit = session.world.prompt.unit(form)
            for datum in () if unit is None else unit_data(unit):
                session.say(pretty(datum))

    def _time(self, session: Session, text: str) -> None:
        start = time.perf_counter()
        running = 0.0
        for form in session.forms(text, self._name()):
            before = time.perf_counter()
            value = form()
            running += time.perf_counter() - before
            self._show(session, value)
        whole = time.perf_counter() - start
        session.say(f"; {_duration(running)}, and {_duration(whole - running)} to compile")

    def _quit(self, session: Session, text: str) -> None:
        raise SchemeExit(0)

    def _doc(self, session: Session, text: str) -> None:
        name = text.strip()
        lines = about_name(session, name)
        if lines is None:
            raise ReadError(f"{name or 'nothing'} has no definition here", hint=",doc NAME tells of a name")
        session.say(*lines)


def _argument(text: str) -> str:
    """What stands after a command's word."""
    return text.strip().partition(" ")[2]


def _duration(seconds: float) -> str:
    return f"{seconds:.3f} s" if seconds >= 1 else f"{seconds * 1e3:.3g} ms"


def _complain(text: str) -> None:
    sys.stdout.flush()
    print(text, file=sys.stderr, flush=True)


class _History:
    """The lines of earlier sessions, where Python has readline."""

    def __init__(self) -> None:
        self._readline: Any = None
        with suppress(ImportError, OSError, EshkolError):
            import readline

            self._readline = readline
            self._file = default_directory() / HISTORY_FILE
            readline.set_history_length(HISTORY_LINES)
            if self._file.exists():
                readline.read_history_file(self._file)

    def save(self) -> None:
        if self._readline is not None:
            with suppress(OSError, AttributeError):
                self._file.parent.mkdir(parents=True, exist_ok=True)
                self._readline.write_history_file(self._file)
