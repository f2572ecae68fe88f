"""Eshkol programs in Python: `ek.eval` gives the value of a text as Python has it.

    import eshkol as ek
    ek.eval("(gradient (lambda (v) (* (vector-ref v 0) (vector-ref v 1))) #(2.0 3.0))")   # [3.0, 2.0]

All texts are evaluated in one session, as at a prompt: what one defines, the next one knows. docs/bindings.md says what
becomes of values on their way.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from eshkol.bindings.guest import in_session, to_python
from eshkol.runtime.scheme import Root
from eshkol.session import Session

if TYPE_CHECKING:
    from eshkol.bindings.modules import SchemeModule


def evaluate(text: str, name: str = "<eval>", *, module: SchemeModule | None = None) -> Any:
    """The value of the last form of a text of Eshkol, as a Python value.

    It is evaluated at the session's prompt, or inside a module that `ek.load` gave: there it sees what stands in that
    file, and what it defines becomes part of the module. An error comes out as an EshkolError that shows the line,
    where the text is called `name`; an interrupt as the KeyboardInterrupt that Python knows.
    """
    __tracebackhide__ = True  # IPython and pytest show the caller's line, not this

    def work(session: Session) -> Any:
        inside = None if module is None else module.prompt(session)
        try:
            return to_python(session, Root(session.machine, session.evaluate(text, name, inside)))
        finally:
            if module is not None:
                module.has_changed()

    return in_session(work)
