"""Where forms are expanded: the namespace of a library, program or prompt, and the frames of the bodies in it.

Comes in: names with their bindings. Goes out: the scope and the cells of a namespace, and what the expander keeps for
each body while it is at work.
"""

from __future__ import annotations

from itertools import count

from eshkol.lang.core import Cell
from eshkol.lang.datum import Datum, Symbol
from eshkol.lang.scopes import Binding, Scope, Scopes, add_binding, find_binding
from eshkol.lang.source import Place
from eshkol.lang.syntax import Syntax


class Frame:
    """A body that is being expanded, as seen by the expressions in it.

    `use_sites` are the scopes of macro uses in this body, which its definitions leave out (Flatt, "Binding as sets of
    scopes", 3.5). `heads` are the identifiers whose meaning the first pass went by: none of them may get another one
    further down. `level` counts the transformers around.
    """

    __slots__ = ("depth", "heads", "level", "namespace", "short", "use_sites")

    def __init__(self, namespace: Namespace, level: int = 0, short: bool = False, depth: int = 0) -> None:
        self.namespace = namespace
        self.level = level
        self.depth = depth  # bodies around it
        self.short = short  # whether this is inside a syntax-case without a subject
        self.use_sites: set[Scope] = set()
        self.heads: dict[Symbol, list[Syntax]] = {}

    def inner(self) -> Frame:
        return Frame(self.namespace, self.level, self.short, self.depth + 1)

    def transformer(self) -> Frame:
        """The frame of an expression that makes a transformer."""
        return Frame(self.namespace, self.level + 1, False, self.depth + 1)


class Namespace:
    """The top level of a library ("library"), a program ("program"), or of a prompt or `eval` ("repl").

    In a program a second definition of a variable changes it, in a library it is an error. At a prompt a name that
    no one defines yet becomes a cell that the program checks when it runs, and cells are not sealed.
    """

    def __init__(
        self, name: str, kind: str = "program", cell_library: str | None = None, is_alone: bool = False
    ) -> None:
        self.name = name
        self.kind = kind
        self.scope = Scope(kind)
        self.scopes: Scopes = frozenset((self.scope,))
        self.cells: dict[str, Cell] = {}  # of this namespace, by name; variables that macros made up have a # in it
        self.defined: set[str] = set()  # names of those cells that have a definition
        self.library = cell_library or name  # what its cells are called by
        self.is_alone = is_alone  # whether no other unit can refer to its variables
        self.typed = False  # whether anything in it has a type that is written down
        self.types: dict[str, tuple[Datum, Place | None]] = {}  # what define-type names, as data
        self.records: dict[str, Cell] = {}  # types of records, by name
        self.frame = Frame(self)
        self._numbers = count(1)

    def wrap(self, syntax: Syntax) -> Syntax:
        """What the reader gave, as a part of this namespace."""
        return syntax.add(self.scope)

    def bind(self, name: str, binding: Binding) -> None:
        """An import, or another name that comes from outside."""
        add_binding(Symbol(name), self.scopes, binding)

    def lookup(self, name: str) -> Binding | None:
        """What a name means at top level: for exports, and for `eval`."""
        found = find_binding(Symbol(name), self.scopes)
        return None if found is None else found[1]

    def names(self) -> set[str]:
        """All names that are bound at top level."""
        return {
            symbol.name
            for symbol, entries in self.scope.bindings.items()
            if any(scopes == self.scopes for scopes, _ in entries)
        }

    def cell(self, name: str, place: Place | None) -> Cell:
        """The cell of that name, made when there is none."""
        known = self.cells.get(name)
        if known is None:
            open_ended = self.kind == "repl"
            known = self.cells[name] = Cell(self.library, name, place, assigned=open_ended, sealed=not open_ended)
        return known

    def fresh_name(self, name: str) -> str:
        """A name for a variable that a macro made up: no other cell has it."""
        while True:
            made = f"{name}#{next(self._numbers)}"
            if made not in self.cells:
                return made
