"""A cell of a notebook: its text is evaluated in the session, and its value is what a notebook can show.

Comes in: the text, and what it is called in errors. Goes out: a bundle of MIME types; an empty one where there is no
value of interest.
"""

from __future__ import annotations

from eshkol.bindings.guest import in_session, to_python
from eshkol.bindings.notebook.rich import Bundle, bundle_of
from eshkol.runtime.scheme import Root
from eshkol.session import Session


def start(session: Session) -> None:
    """What a session in a notebook begins with: `(command-line)`."""
    session.machine.set_command_line(["notebook"])


def run_cell(text: str, name: str) -> Bundle:
    """Evaluate a cell; the value of its last form, as text and in whatever other ways it can be shown."""

    def work(session: Session) -> Bundle:
        machine = session.machine
        value = Root(machine, session.evaluate(text, name))
        tag = value.get().tag
        lines = session.written(value.get())
        rich = bundle_of(to_python(session, value)) if tag == machine.tags["FOREIGN"] else {}
        return {"text/plain": "\n".join(lines), **rich} if lines else {}

    return in_session(work)
