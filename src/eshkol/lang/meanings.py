"""What an identifier can mean: variables, forms, macros and pattern variables; and what it does mean.

Comes in: syntax with its scopes. Goes out: the kinds of `Binding`, and `resolve`. Forms and macros work on the expander
(`expander.py`) and on the bodies that they stand in (`bodies.py`), both of which stand above: here is what they see of
them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Protocol

from eshkol.errors import LanguageError
from eshkol.lang.core import Cell, Node, Unit, Variable
from eshkol.lang.datum import Datum
from eshkol.lang.namespaces import Frame, Namespace
from eshkol.lang.scopes import Ambiguous, Binding, find_binding
from eshkol.lang.source import Place
from eshkol.lang.syntax import Syntax

# ---- what forms and macros see ---------------------------------------------------------------------------------------


class FormExpander(Protocol):
    """The expander as forms and macros see it."""

    use: Place | None  # the macro use that is being transformed

    @property
    def primitive(self) -> Callable[[str], Cell]: ...
    @property
    def compile_transformer(self) -> Callable[[Node, str, Place | None], Transformer] | None: ...
    def expand_unit(self, forms: Iterable[Syntax], namespace: Namespace, name: str | None = None) -> Unit: ...
    def expand(self, syntax: Syntax, frame: Frame) -> Node: ...
    def expand_named(self, syntax: Syntax, frame: Frame, name: str) -> Node: ...
    def expand_body(self, forms: Iterable[Syntax], frame: Frame, form: Syntax) -> Node: ...
    def meaning(self, identifier: Syntax) -> Binding | None: ...
    def is_form(self, syntax: Syntax, name: str) -> bool: ...
    def unbound(self, identifier: Syntax, frame: Frame) -> Cell: ...
    def visible(self, identifier: Syntax) -> set[str]: ...
    def use_macro(self, binding: MacroBinding, use: Syntax, frame: Frame) -> Syntax: ...
    def transformer(self, expression: Syntax, name: str, frame: Frame) -> Binding: ...
    def endless(self, syntax: Syntax) -> LanguageError: ...


class DefiningBody(Protocol):
    """A body as forms of definition see it."""

    @property
    def frame(self) -> Frame: ...
    def define(self, identifier: Syntax, value: Callable[[], Node], form: Syntax) -> Variable | Cell: ...
    def define_syntax(self, identifier: Syntax, make: Callable[[Syntax], Binding], form: Syntax) -> None: ...
    def effect(self, value: Callable[[], Node]) -> None: ...
    def splice(self, forms: Iterable[Syntax]) -> None: ...
    def declare(self, identifier: Syntax, annotation: Datum) -> None: ...


class Transformer(Protocol):
    """What turns a use of a macro into other syntax."""

    @property
    def name(self) -> str: ...
    @property
    def hygienic(self) -> bool:
        """Whether `transform` marks what it introduces by itself; otherwise the expander does, by flipping a scope."""

    @property
    def identifiers(self) -> bool:
        """Whether the bare name is a use, too."""

    @property
    def assignments(self) -> bool:
        """Whether `(set! name value)` is a use, too."""

    def transform(self, use: Syntax, expander: FormExpander) -> Syntax:
        """The syntax that stands for the use; raises BadSyntax."""


# ---- the kinds of bindings -------------------------------------------------------------------------------------------


@dataclass(slots=True, eq=False)
class LocalBinding(Binding):
    """A local variable. `level` counts the transformers around it: one of another level has no value here."""

    variable: Variable
    level: int = 0


@dataclass(slots=True, eq=False)
class CellBinding(Binding):
    """A variable of a library or program."""

    cell: Cell
    imported: Any = None  # where a namespace imports it, for errors; bindings themselves are shared by importers


@dataclass(slots=True, eq=False)
class FormBinding(Binding):
    """A form that the expander knows itself.

    `expression` makes a core form of a use in an expression; `definition` takes a use in a body or at top level, and
    tells the body what it defines. A form with `definition` alone may not stand where an expression must; one with
    neither is auxiliary syntax (`else`, `=>`, `...`).
    """

    name: str
    expression: Callable[[FormExpander, Syntax, Frame], Node] | None = None
    definition: Callable[[FormExpander, Syntax, DefiningBody], None] | None = None
    doc: str | None = None


@dataclass(slots=True, eq=False)
class MacroBinding(Binding):
    """A macro. `frame` is the body that defines it: uses in the same body get a scope of their own."""

    transformer: Transformer
    frame: Any = None


@dataclass(slots=True, eq=False)
class PatternBinding(Binding):
    """A pattern variable of syntax-case: `variable` holds what it matched, under `depth` ellipses.

    `ellipses` are the numbers of those ellipses, the outermost first; see lang/templates.
    """

    variable: Variable
    depth: int = 0
    ellipses: tuple[int, ...] = field(default=())
    level: int = 0


# ---- the meaning of an identifier ------------------------------------------------------------------------------------


def resolve(identifier: Syntax) -> Binding | None:
    """What the identifier means; None where nothing binds it."""
    try:
        found = find_binding(identifier.content, identifier.scopes)
    except Ambiguous as error:
        error.span = None if identifier.place is None else identifier.place.span
        raise
    return None if found is None else found[1]


def same_binding(a: Binding | None, b: Binding | None) -> bool:
    """Whether two bindings are one and the same thing."""
    if a is b:
        return True
    if isinstance(a, CellBinding) and isinstance(b, CellBinding):
        return a.cell is b.cell
    if isinstance(a, LocalBinding) and isinstance(b, LocalBinding):
        return a.variable is b.variable
    return (
        isinstance(a, MacroBinding)
        and isinstance(b, MacroBinding)
        and a.transformer is b.transformer
    )  # fmt: skip


def free_identifier(a: Syntax, b: Syntax) -> bool:
    """free-identifier=?: both mean the same, or nothing binds either and they are the same symbol."""
    first, second = resolve(a), resolve(b)
    if first is None and second is None:
        return a.content is b.content
    return first is not None and second is not None and same_binding(first, second)


def bound_identifier(a: Syntax, b: Syntax) -> bool:
    """bound-identifier=?: if one were bound, that would bind the other."""
    return a.content is b.content and a.scopes == b.scopes
