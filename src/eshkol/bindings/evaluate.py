"""Eshkol programs in Python: `ek.eval` gives the value of a text as Python has it.

    import eshkol as ek
    ek.eval("(gradient (lambda (v) (* (vector-ref v 0) (vector-ref v 1))) #(2.0 3.0))")   # [3.0, 2.0]

All texts are evaluated in one session, as at a prompt: what one defines, the next one knows.

| Eshkol | Python |
|---|---|
| exact integer, other exact number, inexact number, complex number | `int`, `Fraction`, `float`, `complex` |
| boolean, string, character, bytevector | `bool`, `str`, `str`, `bytes` |
| symbol, keyword | `str`: its name, with the colon of a keyword |
| list, vector | `list` |
| several values | `tuple` |
| nothing of interest | `None` |
"""

from __future__ import annotations

import re
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from eshkol.bindings.guest import in_session
from eshkol.errors import EshkolError
from eshkol.lang import datum
from eshkol.lang.transformers import Opaque
from eshkol.runtime.scheme import Root
from eshkol.session import Session

if TYPE_CHECKING:
    from eshkol.bindings.modules import SchemeModule

_COMPLEX = re.compile(r"(?P<real>.*?)(?P<imaginary>[+-](?:inf\.0|nan\.0|[0-9./]*(?:e[+-]?[0-9]+)?))i")
DIGITS_AT_ONCE = 4000


def evaluate(text: str, name: str = "<eval>", *, module: SchemeModule | None = None) -> Any:
    """The value of the last form of a text of Eshkol, as a Python value.

    It is evaluated at the session's prompt, or inside a module that `ek.load` gave: there it sees what stands in that
    file, and what it defines becomes part of the module. An error comes out as an EshkolError that shows the line,
    where the text is called `name`; an interrupt as the KeyboardInterrupt that Python knows.
    """

    def work(session: Session) -> Any:
        inside = None if module is None else module.prompt(session)
        try:
            return to_python(session, Root(session.machine, session.evaluate(text, name, inside)))
        finally:
            if module is not None:
                module.has_changed()

    return in_session(work)


def to_python(session: Session, value: Root) -> Any:
    """A value of Scheme as Python has it; on Scheme's thread."""
    machine = session.machine
    if value.get().tag == machine.tags["VALUES"]:
        several = [Root(machine, item) for item in machine.several(value.get())]
        return tuple(_python(session.native.take(item), session) for item in several)
    return _python(session.native.take(value), session)


def _python(tree: Any, session: Session) -> Any:
    """What Python has in the place of a datum."""
    match tree:
        case datum.Vector():
            return [_python(item, session) for item in tree.items]
        case datum.List(tail=None):
            return [_python(item, session) for item in tree.items]
        case datum.List():
            raise EshkolError("a list that ends in a dot has no value in Python", hint="use a list or a vector")
        case datum.Number():
            return _number(tree.text)
        case datum.Symbol():
            return tree.name
        case datum.Keyword():
            return f":{tree.name}"
        case datum.Char():
            return chr(tree.code)
        case datum.UNSPECIFIED | datum.EOF | datum.DEFAULT | datum.UNDEFINED:
            return None
        case Opaque():
            written = session.machine.written(tree.value.get())
            raise EshkolError(
                f"a {tree.kind} has no value in Python: {written}",
                hint="let the text give numbers, strings, lists or vectors; definitions are kept for the next text",
            )
    return tree


def _number(text: str) -> Any:
    """A number that Scheme wrote and Python has no literal for: a fraction, a complex or a very long one."""
    if found := _COMPLEX.fullmatch(text):
        return complex(*(_real(found[part]) for part in ("real", "imaginary")))
    numerator, _, denominator = text.partition("/")
    return Fraction(_integer(numerator), _integer(denominator)) if denominator else _integer(numerator)


def _integer(text: str) -> int:
    """Python refuses to read very long ones at once."""
    sign, digits, found = -1 if text.startswith("-") else 1, text.lstrip("-"), 0
    for start in range(0, len(digits), DIGITS_AT_ONCE):
        part = digits[start : start + DIGITS_AT_ONCE]
        found = found * 10 ** len(part) + int(part)
    return sign * found


def _real(text: str) -> float:
    if text in ("+", "-"):
        return float(f"{text}1")
    return float(Fraction(text)) if "/" in text else float(text.removesuffix(".0") or 0)
