"""Programs as compiled code, for tests: what a text writes, or what stops it, in a session that serves many."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count

from eshkol.lang.transcripts import Outcome
from eshkol.runtime.scheme import Root, SchemeExit, SchemeRaised
from eshkol.session import Session, on_session
from eshkol.session.report import scheme_error

_numbers = count()


def outcome(session: Session, program: str, name: str | None = None) -> Outcome:
    """What a text writes when it runs as a program, and what stops it."""
    machine = session.machine
    port, one = Root(machine, machine.call("open-output-string")), machine.fixnum(1)
    before = Root(machine, machine.call("%current-port", one))
    machine.call("%set-current-port!", one, port.get())
    error = None
    try:
        session.run_text(program, name or f"<test {next(_numbers)}>")
    except SchemeRaised as raised:
        error = str(scheme_error(session, raised))
    except SchemeExit as leaving:
        error = f"exit {leaving.code}"
    finally:
        machine.call("%set-current-port!", one, before.get())
    return Outcome("", machine.text(machine.call("get-output-string", port.get())), error)


def written(session: Session, program: str) -> str:
    """What a program that ends well writes."""
    found = outcome(session, program)
    assert found.error is None, found.error
    return found.output


def in_session(work: Callable[[Session], None]) -> None:
    """Do some work, checks included, in a session."""
    assert on_session(work, []) == 0
