"""Names at the session's prompt, from Python: what a notebook hands over and takes back.

Comes in: a name and a Python value. Goes out: the value under that name in Scheme; and the other way round. On any
thread.
"""

from __future__ import annotations

from typing import Any

from eshkol.bindings.guest import in_session, to_scheme
from eshkol.bindings.modules import value_of
from eshkol.bindings.spelling import Spelling
from eshkol.lang.datum import symbol_text
from eshkol.lang.meanings import CellBinding
from eshkol.session import Session

HERE = "the session"


def define(name: str, value: Any) -> None:
    """`(define name value)` at the prompt."""

    def work(session: Session) -> None:
        made = to_scheme(session, value)
        session.evaluate(f"(define {symbol_text(name)} #f)", "<define>")
        binding = session.world.prompt.namespace.lookup(name)
        assert isinstance(binding, CellBinding)
        session.engine.cell(binding.cell.library, binding.cell.name).set(made.get())

    in_session(work)


def value_at_prompt(attribute: str) -> Any:
    """What a name means there, which may be spelled as in Python; AttributeError where there is none."""

    def work(session: Session) -> Any:
        namespace = session.world.prompt.namespace
        names = namespace.names()
        name = attribute if attribute in names else Spelling(names).find(attribute, HERE)
        binding = namespace.lookup(name)
        assert binding is not None
        return value_of(session, name, binding)

    return in_session(work)
