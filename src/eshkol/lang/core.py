"""The core forms: what the expander makes of a program and the code generator takes.

A program of this size is small enough to hold in the head: twelve kinds of expression. Every variable is an object of
its own (two variables of one name are two objects), so nothing after this stage needs to know what scopes are. Each
node has the place in the source that it came from; for code that a macro wrote that is a place in the macro, whose
`via` is the use.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from eshkol.lang.source import Place

Datum = Any  # what `lang/datum.py` describes: the Python form of Scheme data


@dataclass(slots=True, eq=False)
class Variable:
    """A local variable."""

    name: str
    place: Place | None = None
    assigned: bool = False  # whether some set! changes it
    annotation: Datum = None  # its type, as data, where the program gives one: (x : T) or (: x T)
    early: bool = False  # whether it may be used before it has its value (found by the code generator)


@dataclass(slots=True, eq=False)
class Cell:
    """A variable of a library or program, known to others by its library's name and its own."""

    library: str  # "(scheme base)", "program", ...
    name: str
    place: Place | None = None
    assigned: bool = False  # whether anything but its definition changes it, or may later (in a REPL)
    sealed: bool = True  # whether its unit is compiled as a whole, so that `assigned` is the last word
    primitive: bool = False  # one of the runtime's primitives: constant, and known to the code generator by name
    annotation: Datum = None  # its type, as data, where the program gives one: (: x T)


@dataclass(slots=True, eq=False)
class Node:
    """An expression."""

    place: Place | None


@dataclass(slots=True, eq=False)
class Const(Node):
    """A constant: quoted data, or what evaluates to itself."""

    datum: Datum


@dataclass(slots=True, eq=False)
class SyntaxConst(Node):
    """Something that belongs to the expander (a syntax object, a pattern, a template), given to a transformer."""

    content: Any


@dataclass(slots=True, eq=False)
class Local(Node):
    variable: Variable


@dataclass(slots=True, eq=False)
class Global(Node):
    cell: Cell


@dataclass(slots=True, eq=False)
class SetLocal(Node):
    variable: Variable
    value: Node


@dataclass(slots=True, eq=False)
class SetGlobal(Node):
    cell: Cell
    value: Node


@dataclass(slots=True, eq=False)
class DefineGlobal(Node):
    """A definition at top level; its own value is unspecified."""

    cell: Cell
    value: Node


@dataclass(slots=True, eq=False)
class If(Node):
    test: Node
    then: Node
    otherwise: Node


@dataclass(slots=True, eq=False)
class Seq(Node):
    items: list[Node]  # at least one


@dataclass(slots=True, eq=False)
class Clause:
    """One way to call a procedure."""

    params: list[Variable]
    rest: Variable | None
    body: Node
    returns: Datum = None  # the type of its result, as data, where the program gives one
    returns_at: Place | None = None  # where that is written


@dataclass(slots=True, eq=False)
class Lambda(Node):
    """A procedure; with several clauses, the first that takes the number of arguments is called (case-lambda)."""

    clauses: list[Clause]
    name: str | None = None  # what it is bound to, for errors and `procedure-name`
    source: Datum = None  # the lambda expression as data, for `procedure-source`; may hold syntax: use datum.text
    doc: str | None = None


@dataclass(slots=True, eq=False)
class Let(Node):
    """All values are computed before any variable is bound."""

    variables: list[Variable]
    values: list[Node]
    body: Node


@dataclass(slots=True, eq=False)
class Letrec(Node):
    """letrec*: values are computed in order, each may refer to all variables; use before definition is an error."""

    variables: list[Variable]
    values: list[Node]
    body: Node


@dataclass(slots=True, eq=False)
class Call(Node):
    procedure: Node
    args: list[Node]


@dataclass(slots=True)
class Unit:
    """What is compiled at once: the body of a library or a program, or one form typed at a prompt."""

    name: str  # for people: a file, a library's name, "<repl>"
    forms: list[Node]
    cells: list[Cell] = field(default_factory=list)  # that it defines
    changes: list[Any] = field(default_factory=list)  # of what names mean, at a prompt (lang/bodies.py)
    typed: bool = False  # whether it says of what type anything is
    types: dict[str, tuple[Datum, Place | None]] = field(default_factory=dict)  # that define-type names, as data
    records: dict[str, Cell] = field(default_factory=dict)  # the types of records that it knows, by name
    private: set[Cell] = field(default_factory=set)  # those of its cells that no other unit refers to
