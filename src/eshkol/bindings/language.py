"""The language's own names in Python: `ek.lang.gradient(f, x)`, `ek.lang["string-append"]("a", "b")`.

Comes in: the name of something that a program without imports has. Goes out: its value, a procedure most of the time.
Also the classes of Python that Scheme values become: `ek.lang.Symbol`. The package `eshkol.lang` asks here (through the
root of the package, which alone may know both), since it is what `ek.lang` is; a module of that package comes before a
name of the language: `ek.lang["features"]`.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

from eshkol.bindings import values
from eshkol.bindings.guest import in_session, to_python
from eshkol.bindings.modules import value_of
from eshkol.bindings.spelling import Spelling
from eshkol.lang.meanings import CellBinding, MacroBinding
from eshkol.lang.scopes import Binding
from eshkol.runtime.scheme import Root
from eshkol.session import Session

HERE = "the language"


class Language:
    """What there is without an import."""

    @cached_property
    def _bindings(self) -> dict[str, Binding]:
        return in_session(lambda session: dict(session.world.default.exports))

    @cached_property
    def _spelling(self) -> Spelling:
        return in_session(
            lambda _: Spelling([n for n, b in self._bindings.items() if isinstance(b, CellBinding) or _is_value(b)])
        )

    def attribute(self, name: str) -> Any:
        """`ek.lang.NAME`."""
        if name in values.__all__:
            return getattr(values, name)
        return self._value(self._spelling.find(name, HERE))

    def item(self, name: str) -> Any:
        """`ek.lang["name"]`."""
        if name not in self._bindings:
            raise self._spelling.missing(name, HERE)
        return self._value(name)

    def attributes(self) -> list[str]:
        return [*values.__all__, *self._spelling.attributes()]

    def _value(self, name: str) -> Any:
        def found(session: Session) -> Any:
            if not _is_value(self._bindings[name]):
                return value_of(session, name, self._bindings[name])
            return to_python(
                session, Root(session.machine, session.evaluate(f"(eval '{name} (environment '(eshkol)))"))
            )

        return in_session(found)


def _is_value(binding: Binding) -> bool:
    """Whether a name is a macro's, and stands for a value where it stands alone, as `tensor` does."""
    return isinstance(binding, MacroBinding) and binding.transformer.identifiers


language = Language()
