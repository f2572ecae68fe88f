"""What goes on between two forms at a prompt: the last error, the last file, how values are shown, what is watched.

Comes in: forms and their values, conditions that nothing handled. Goes out: what commands (commands.py) and the loop
(../repl.py) ask for. All of it is used on the session's thread, but for what says so.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from eshkol.errors import SchemeError
from eshkol.runtime.scheme import Root, SchemeRaised, Value
from eshkol.session import Session
from eshkol.session.prompt.printing import Limits, printed
from eshkol.session.prompt.watching import Watching
from eshkol.session.report import Step, scheme_error, steps

BRIEF = Limits(items=12, whole=40, depth=4, letters=120)  # of arguments and results of calls
NARROWEST = 20

Portrait = Callable[[Session, Root, int], list[str]]  # small pictures of values: lines that are so wide at most


class Resume(Exception):
    """Leave this prompt, and go on with what waits for it."""


class GiveUp(Exception):
    """Leave this prompt and what waits for it, for the outermost prompt."""


@dataclass(frozen=True, slots=True)
class Failure:
    """A condition that nothing handled, and the calls that were under way."""

    error: SchemeError
    steps: list[Step]


class Talk:
    """A session with a person, or with whatever writes to the other end of a pipe."""

    def __init__(self, *, fancy: bool, interactive: bool, portrait: Portrait | None, stop: Stop) -> None:
        """`fancy`: values are cut short and drawn, for someone who looks at them; others get all."""
        self.fancy = fancy
        self.interactive = interactive
        self.failure: Failure | None = None
        self.file: Path | None = None  # that was loaded last
        self.watching = Watching(stop, self.brief)
        self._portrait = portrait
        self._number = 0  # of the texts so far; each has a name of its own, for errors

    def name(self) -> str:
        """What the next text is called."""
        self._number += 1
        return f"<input {self._number}>"

    def failed(self, session: Session, raised: SchemeRaised) -> None:
        """Note a condition, for `,bt`."""
        self.failure = Failure(scheme_error(session, raised), steps(session, raised))

    def evaluate(self, session: Session, text: str) -> None:
        """Evaluate the forms of a text, and show their values."""
        for form in session.forms(text, self.name()):
            self.show(session, form())

    def show(self, session: Session, value: Value) -> None:
        """Show a value."""
        if self.fancy:
            self._show_nicely(session, Root(session.machine, value))
        else:
            session.say(*session.written(value))
        if self.interactive:
            session.machine.call("fresh-line")  # the prompt begins a line

    def _show_nicely(self, session: Session, value: Root) -> None:
        width = shutil.get_terminal_size().columns
        lines, cut = printed(session, value.get(), max(NARROWEST, width - 1))
        session.say(*lines)
        if cut:
            session.say("; shortened: (write …) writes all of it")
        if self._portrait is not None:
            session.say(*self._portrait(session, value, width))

    def brief(self, session: Session, value: Value) -> str:
        """A value on one line, cut short."""
        lines, _ = printed(session, value, 1_000_000, BRIEF)
        return " ".join(lines) or session.machine.written(value)


Stop = Callable[[Session, str, list[Value]], None]
