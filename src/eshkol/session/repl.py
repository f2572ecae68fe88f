"""The prompt: read a form, evaluate it, show its value, and again.

Comes in: forms and commands, typed at a terminal (prompt/editor.py) or at a dumb one, or from a pipe (then there is no
prompt; prompt/plain.py). Goes out: values as `write` shows them, or cut short and laid out at a terminal, on stdout;
errors on stderr, after which the session goes on; the exit code. Typing happens on the main thread, which alone hears
of Ctrl-C; evaluation on the session's thread. Where a watched procedure stops, that thread has the main one run another
loop within the call, and what is typed there is evaluated inside of it.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from functools import partial

from eshkol.errors import EshkolError, Interrupted
from eshkol.lang.datum import symbol_text
from eshkol.lang.files import FileSource
from eshkol.runtime.scheme import Root, SchemeExit, SchemeRaised, Value
from eshkol.session import Session, SessionThread
from eshkol.session.colouring import coloured
from eshkol.session.describing import formals
from eshkol.session.prompt.commands import run_command
from eshkol.session.prompt.plain import PlainReader, Reader, is_command
from eshkol.session.prompt.talk import GiveUp, Portrait, Resume, Talk
from eshkol.support.interrupts import deferred
from eshkol.version import __version__

PROMPT = "> "
STOPPED = "; the program has stopped here: ,bt shows the calls, its definitions can be looked at, ,quit leaves"
FAILED = 1  # exit code of a program that stopped at an error


class Repl:
    """A session with a person, or with whatever writes to the other end of a pipe."""

    def __init__(self, heap_limit: int = 0, portrait: Portrait | None = None) -> None:
        """`portrait` draws small pictures of values that can be drawn; what they are is not the session's business."""
        self.thread = SessionThread(heap_limit)
        self.interactive = sys.stdin is not None and sys.stdin.isatty()
        fancy = self.interactive and _is_able_terminal()
        self.talk = Talk(fancy=fancy, interactive=self.interactive, portrait=portrait, stop=self._stop)
        self._stops = 0  # how many prompts wait for another one
        self._reader: Reader | None = None

    def run(self) -> int:
        """Until the input ends; the exit code."""
        return self._whole(["repl"], None)

    def debug(self, source: FileSource, command_line: list[str]) -> int:
        """Run a program; at an error that it does not handle, a prompt in which its definitions can be looked at."""
        return self._whole(command_line, source)

    def _whole(self, command_line: list[str], program: FileSource | None) -> int:
        with deferred():
            try:
                self._on_session(lambda session: session.machine.set_command_line(command_line))
                if program is not None:
                    if self._runs(program):
                        return 0
                    if self.talk.failure is None:  # it could not even begin
                        return FAILED
                    _complain(STOPPED)
                elif self.interactive:
                    print(f"Eshkol {__version__} – ,help lists the commands, Ctrl-D leaves")
                self._loop()
            except SchemeExit as leaving:
                return leaving.code
            finally:
                if self._reader is not None:
                    self._reader.close()
                self.thread.close()
                sys.stdout.flush()
        return 0 if program is None else FAILED

    # ---- the loop ---------------------------------------------------------------------------------------------------

    def _loop(self) -> None:
        while (text := self._typed().read(f"[{self._stops}]{PROMPT}" if self._stops else PROMPT)) is not None:
            self._on_session(partial(self._do, text))

    def _typed(self) -> Reader:
        if self._reader is None:
            self._reader = (self.talk.fancy and self._editor()) or PlainReader(self.interactive)
        return self._reader

    def _editor(self) -> Reader | None:
        try:
            from eshkol.session.prompt.editor import Editor
        except ImportError as error:
            _complain(f"; a plain prompt: {error} (pip install prompt_toolkit)")
            return None
        return Editor(self.thread.call)

    def _do(self, text: str, session: Session) -> None:
        if is_command(text):
            run_command(self.talk, session, text)
        else:
            self.talk.evaluate(session, text)

    def _on_session(self, work: Callable[[Session], None]) -> bool:
        """Do something; what fails is told, and that is all. Whether it did not fail."""

        def whole(session: Session) -> None:
            try:
                work(session)
            except SchemeRaised as raised:
                self.talk.failed(session, raised)
                session.machine.call("fresh-line")  # the message begins a line
                raise
            except (Resume, GiveUp):
                if not self._stops:
                    raise EshkolError("nothing waits here", hint=",break NAME stops before calls of NAME") from None
                raise
            except Exception:
                session.machine.call("fresh-line")
                raise
            finally:
                session.flush()

        try:
            self.thread.call(whole, hard=False)
        except (SchemeExit, BrokenPipeError, Resume):
            raise
        except GiveUp:
            if self._stops:
                raise
        except KeyboardInterrupt:
            self._complain_of(Interrupted("interrupted"))
        except EshkolError as error:
            self._complain_of(error)
        except MemoryError:
            _complain("error: not enough memory")
        except OSError as error:
            _complain(f"error: {error.strerror}")
        except Exception as error:
            _complain(f"internal error: {type(error).__name__}: {error}")
        else:
            return True
        return False

    def _complain_of(self, error: EshkolError) -> None:
        if self.talk.fancy and isinstance(error, Interrupted):
            print(file=sys.stderr)  # the terminal has written ^C
        if self.talk.fancy and not os.environ.get("NO_COLOR") and sys.stderr is not None and sys.stderr.isatty():
            _complain("\n".join(coloured(error)))
        else:
            _complain(str(error) if isinstance(error, Interrupted) else f"error: {error}")

    # ---- programs, and calls that stop -------------------------------------------------------------------------------

    def _runs(self, program: FileSource) -> bool:
        """Run a program; whether it came to its end. The prompt is where its definitions are."""

        def work(session: Session) -> None:
            module = session.opened(program, "program")
            session.world.prompt = session.inside(module, "<debug>")
            session.try_module(module)

        return self._on_session(work)

    def _stop(self, session: Session, name: str, values: list[Value]) -> None:
        """Before a call of a watched procedure goes on, on the session's thread: a prompt."""
        roots = [Root(session.machine, value) for value in values]
        shown = " ".join([symbol_text(name), *(self.talk.brief(session, root.get()) for root in roots)])
        arguments = self._arguments(session, name, roots)
        session.say(f"; before ({shown})")
        if arguments:
            told = (f"{key} = {self.talk.brief(session, root.get())}" for key, root in arguments.items())
            session.say(f"; here {', '.join(told)}")

        def loop() -> bool:
            try:
                self._loop()
            except Resume:
                return True
            except GiveUp:
                return False
            return True

        self._stops += 1
        try:
            with self.talk.watching.named(session, arguments):
                goes_on = self.thread.outside(loop)
        finally:
            self._stops -= 1
        if not goes_on:
            raise KeyboardInterrupt

    def _arguments(self, session: Session, name: str, values: list[Root]) -> dict[str, Root]:
        """The arguments of a call by the names that the procedure has for them, where it has one way to be called."""
        procedure = self.talk.watching.original(name)
        names = None if procedure is None else formals(session, procedure.get())
        return {} if names is None or len(names) != len(values) else dict(zip(names, values, strict=True))


def _is_able_terminal() -> bool:
    """Whether the cursor can be moved there."""
    able = os.name == "nt" or os.environ.get("TERM", "dumb") not in ("dumb", "")
    return able and sys.stdout is not None and sys.stdout.isatty()


def _complain(text: str) -> None:
    sys.stdout.flush()
    print(text, file=sys.stderr, flush=True)
