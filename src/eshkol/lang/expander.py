"""The expander: syntax objects come in, core forms go out; macros are used up on the way.

    namespace = Namespace("program", kind="program")         # the names of one library, program or prompt
    namespace.bind("car", CellBinding(cell))                 # an import
    expander = Expander(primitive, compile_transformer)
    unit = expander.expand_unit(forms, namespace)            # forms: what the reader gives

A body (of a procedure, or the top level) is expanded in two passes. The first expands the macros at its surface, takes
in what is defined, and leaves expressions alone; the second expands those, when every name of the body has its meaning.
So procedures and macros may refer to what is defined further down.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from eshkol.lang.core import Cell, Node, Unit
from eshkol.lang.datum import Symbol
from eshkol.lang.scopes import Binding, MacroBinding, Scope, Transformer
from eshkol.lang.source import Place
from eshkol.lang.syntax import Syntax


class Frame:
    """A body that is being expanded, as seen by the expressions in it.

    `use_sites` are the scopes of macro uses in this body, which its definitions leave out (see Flatt 2016, 3.5);
    `level` counts the transformers around.
    """

    __slots__ = ("level", "namespace", "use_sites", "used")


class Namespace:
    """The top level of a library ("library"), a program ("program") or a prompt or `eval` ("repl").

    At a prompt a name that nobody defines yet becomes a cell that the program checks when it runs, definitions may be
    repeated, and cells are not sealed.
    """

    name: str
    kind: str
    scope: Scope
    cells: dict[str, Cell]  # that are defined here, by name; of macros' own variables, the name has a #

    def __init__(self, name: str, kind: str = "program") -> None: ...

    def wrap(self, syntax: Syntax) -> Syntax:
        """What the reader gave, as a part of this namespace."""

    def bind(self, name: str, binding: Binding) -> None:
        """An import, or another name that comes from outside."""

    def lookup(self, name: str) -> Binding | None:
        """What a name means at top level: for exports, and for `eval`."""

    def names(self) -> set[str]:
        """All names that are bound at top level."""


class Body:
    """What a form of definition tells of its contents (`FormBinding.definition`); the body of a procedure or a unit."""

    frame: Frame

    def define(self, identifier: Syntax, value: Callable[[], Node], form: Syntax) -> None:
        """A variable; its value is expanded in the second pass."""

    def define_syntax(self, identifier: Syntax, binding: Binding, form: Syntax) -> None:
        """A macro, at once."""

    def effect(self, value: Callable[[], Node]) -> None:
        """An expression, expanded in the second pass."""

    def splice(self, forms: Iterable[Syntax]) -> None:
        """These forms come next, in place of the one that is at hand (begin, include)."""


class Expander:
    """`primitive(name)` gives the cell of a primitive of the runtime (of the library (eshkol primitives)).

    `compile_transformer(node, name, place)` makes a transformer of a core form whose value is a procedure of one
    argument, the use; or the object that make-variable-transformer gives.
    """

    use: Place | None  # the place of the macro use that is being transformed, for what the transformer writes

    def __init__(
        self,
        primitive: Callable[[str], Cell],
        compile_transformer: Callable[[Node, str, Place | None], Transformer] | None = None,
    ) -> None: ...

    def expand_unit(self, forms: Iterable[Syntax], namespace: Namespace) -> Unit:
        """The forms of a library, of a program, or of one entry at a prompt. They get the namespace's scope here."""

    def expand(self, syntax: Syntax, frame: Frame) -> Node:
        """An expression."""

    def expand_body(self, forms: Iterable[Syntax], frame: Frame, form: Syntax) -> Node:
        """A body in which definitions may stand; the scope of the names around it is on the forms already."""

    def use_macro(self, binding: MacroBinding, use: Syntax, frame: Frame) -> Syntax:
        """What a macro makes of one use of it."""


def core_forms() -> dict[str, Binding]:
    """All forms that the expander knows by itself, by name; for the library that exports them."""
    return {}


__all__ = ["Body", "Expander", "Frame", "Namespace", "Symbol", "core_forms"]
