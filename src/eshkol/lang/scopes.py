"""Scopes and bindings: what an identifier means where it stands (sets of scopes, as in Racket).

Every place that binds names makes a `Scope`; an identifier carries the set of scopes that it stands in. A binding is
kept for a symbol and a set of scopes; an identifier refers to the binding whose set is the largest subset of its own.
The code that a macro writes gets a scope of its own, so that its names neither capture nor are captured.

A binding lives in the newest scope of its set: with the scope, its bindings go. There is one phase: what a library
imports and defines can be used by its transformers as well as by its procedures (a transformer can only call what is
compiled when it runs, that is what comes from other libraries, or at a prompt from forms before it).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count
from typing import TYPE_CHECKING, Any, Protocol

from eshkol.errors import AmbiguousName
from eshkol.lang.core import Cell, Node, Variable
from eshkol.lang.datum import Symbol

if TYPE_CHECKING:
    from eshkol.lang.expander import Body, Expander, Frame
    from eshkol.lang.syntax import Syntax

_numbers = count(1)


class Scope:
    """A part of the program in which names are bound. `bindings` holds those whose newest scope it is."""

    __slots__ = ("bindings", "kind", "number")

    def __init__(self, kind: str) -> None:
        self.number = next(_numbers)
        self.kind = kind  # for people: "library", "lambda", "macro", "use"
        self.bindings: dict[Symbol, list[tuple[frozenset[Scope], Binding]]] = {}

    def __repr__(self) -> str:
        return f"{self.kind}{self.number}"


Scopes = frozenset[Scope]
NO_SCOPES: Scopes = frozenset()


# ---- bindings --------------------------------------------------------------------------------------------------------


class Binding:
    """What an identifier can mean."""

    __slots__ = ()


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
    expression: Callable[[Expander, Syntax, Frame], Node] | None = None
    definition: Callable[[Expander, Syntax, Body], None] | None = None
    doc: str | None = None


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

    def transform(self, use: Syntax, expander: Expander) -> Syntax:
        """The syntax that stands for the use; raises BadSyntax."""


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


class Ambiguous(AmbiguousName):
    """Two bindings fit an identifier, and neither more closely than the other; where that is, the caller knows."""

    def __init__(self, symbol: Symbol) -> None:
        super().__init__(
            f"`{symbol.name}` is ambiguous: two bindings fit it equally well",
            hint="a macro mixes names of its own with names of its use",
        )


def add_binding(symbol: Symbol, scopes: Scopes, binding: Binding) -> Binding | None:
    """From now on `symbol` in these scopes means this; what it meant before for just this set, if anything."""
    newest = max(scopes, key=_number)
    entries = newest.bindings.setdefault(symbol, [])
    for index, (known, before) in enumerate(entries):
        if known == scopes:
            entries[index] = (scopes, binding)
            return before
    entries.append((scopes, binding))
    return None


def remove_binding(symbol: Symbol, scopes: Scopes) -> None:
    """From now on `symbol` in these scopes has no meaning of its own."""
    entries = max(scopes, key=_number).bindings.get(symbol, [])
    entries[:] = [entry for entry in entries if entry[0] != scopes]


def _number(scope: Scope) -> int:
    return scope.number


def find_binding(symbol: Symbol, scopes: Scopes) -> tuple[Scopes, Binding] | None:
    """The binding with the largest subset of `scopes`, and that subset; raises Ambiguous."""
    best: tuple[Scopes, Binding] | None = None
    others: list[tuple[Scopes, Binding]] | None = None
    for scope in scopes:
        entries = scope.bindings.get(symbol)
        if entries is None:
            continue
        for entry in entries:
            if entry[0] <= scopes:
                if best is None or entry[0] > best[0]:
                    best = entry
                elif not entry[0] <= best[0]:
                    others = [*(others or ()), entry]
    if others is not None and best is not None:
        for entry in others:
            if entry[0] > best[0]:
                best = entry
        if any(not entry[0] <= best[0] for entry in others):
            raise Ambiguous(symbol)
    return best


def resolve(identifier: Syntax) -> Binding | None:
    """What the identifier means; None where nobody binds it."""
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
    """free-identifier=?: both mean the same, or nobody binds either and they are the same symbol."""
    first, second = resolve(a), resolve(b)
    if first is None and second is None:
        return a.content is b.content
    return first is not None and second is not None and same_binding(first, second)


def bound_identifier(a: Syntax, b: Syntax) -> bool:
    """bound-identifier=?: if one were bound, that would bind the other."""
    return a.content is b.content and a.scopes == b.scopes
