"""Mismatches as errors for people: both types, where each came from, and what to do about it.

Comes in: what was expected (`Expected`), the type that is there, and the core form that gives it. Goes out: an error to
raise or to collect.
"""

from __future__ import annotations

from typing import NamedTuple

from eshkol.errors import BadType, LanguageError
from eshkol.lang.core import Call, Cell, Const, Global, Lambda, Local, Node, Variable
from eshkol.lang.datum import UNSPECIFIED
from eshkol.lang.report import bad
from eshkol.lang.source import Place
from eshkol.types.fitting import fits
from eshkol.types.kinds import (
    BIT,
    EXACTS,
    FALSE_BIT,
    FLOAT,
    HANDLES,
    NULL_BIT,
    NUMBERS,
    RECORD,
    STRING,
    TENSOR,
    VOID,
    HandleOf,
    ListOf,
    Type,
    TypeVariable,
    ValuesOf,
    VectorOf,
    can_meet,
    cover,
    narrowed,
    shown,
    without,
)


class Expected(NamedTuple):
    """A type that is expected somewhere: by whom, as what, and where that is said."""

    kind: Type
    who: str  # "f takes", "x is declared to be", ...
    what: str = ""  # "as argument 1 (x)"
    place: Place | None = None  # where the type is written
    declared: bool = False  # whether a program says it: then values are checked where they are not known to be of it
    defining: bool = False  # whether it is the type of a name that is defined by the value
    blamed: str = ""  # who is guilty where a value at run time is not of it


def kind_name(kind: Type) -> str:
    """A type in a sentence."""
    text = shown(kind)
    if text == "Any":
        return "anything"
    if text[0].islower() and any(isinstance(part, TypeVariable) for part in kind.parts):
        return f"a value of type {text}"
    return f"{'an' if text[0] in 'AEIO' else 'a'} {text}" if text[0] != "(" else f"a {text}"


def declared_as(kind: Type, target: Variable | Cell) -> Expected:
    return Expected(
        kind, f"{target.name} is declared to be", "", target.place, True, True,
        f"{target.name} is declared to be {kind_name(kind)}, but is",
    )  # fmt: skip


def gives(name: str, kind: Type, place: Place | None) -> Expected:
    return Expected(kind, f"{name} is declared to give", "", place, True, False,
                    f"{name} is declared to give {kind_name(kind)}, but gives")  # fmt: skip


def mismatch(expected: Expected, found: Type, node: Node) -> LanguageError:
    """An error about a value that cannot stand where it does."""
    notes: list[tuple[str, Place | None]] = []
    if expected.place is not None:
        notes.append((f"{shown(expected.kind)} is asked for here:", expected.place))
    origin = origin_of(node)
    if origin is not None and origin[1] is not None:
        notes.append((f"{origin[0]}{shown(found)}:", origin[1]))
    what = f" {expected.what}" if expected.what else ""
    message = f"{expected.who} {kind_name(expected.kind)}{what}, but this is {kind_name(found)}"
    return bad(message, node.place, remedy(expected.kind, found, node), kind=BadType, notes=tuple(notes))


def origin_of(node: Node) -> tuple[str, Place | None] | None:
    """Where the type of a form was settled, with the beginning of a sentence that says so."""
    if type(node) is Local:
        return f"{node.variable.name} is bound here, as ", node.variable.place
    if type(node) is Global:
        return f"{node.cell.name} is defined here, as ", _own(node.cell)
    if type(node) is Call and type(node.procedure) is Global:
        return f"{node.procedure.cell.name} is defined here, and gives ", _own(node.procedure.cell)
    if type(node) is Call and type(node.procedure) is Local:
        return f"{node.procedure.variable.name} is bound here, and gives ", node.procedure.variable.place
    return None


def _own(cell: Cell) -> Place | None:
    return None if cell.primitive or cell.library.startswith("(") else cell.place


def remedy(expected: Type, found: Type, node: Node) -> str | None:
    """What may be done about it."""
    if any(isinstance(part, TypeVariable | ValuesOf) for part in (*expected.parts, *found.parts)):
        return None
    wanted, given = cover(expected), cover(found)
    if wanted & FLOAT.mask and not wanted & EXACTS and not given & ~EXACTS:
        if type(node) is Const and isinstance(node.datum, int):
            return f"write {node.datum}.0, or (inexact {node.datum})"
        return "(inexact n) makes an exact number a Float64"
    if wanted & EXACTS and not wanted & FLOAT.mask and given == FLOAT.mask:
        if type(node) is Const and isinstance(node.datum, float) and node.datum.is_integer():
            return f"write {int(node.datum)}"
        return "(exact (round x)) makes the nearest integer of a float"
    if given == STRING.mask and wanted & NUMBERS and not wanted & ~NUMBERS:
        return "(string->number text) reads the number that a string shows; it gives #f where there is none"
    if wanted == STRING.mask and not given & ~NUMBERS:
        return "(number->string n) writes a number as a string"
    if wanted == STRING.mask and given == BIT["symbol"]:
        return "(symbol->string name) is the name of a symbol"
    if wanted == BIT["symbol"] and given == STRING.mask:
        return "(string->symbol text) is the symbol of that name"
    if found == VOID or (type(node) is Const and node.datum is UNSPECIFIED):
        return "an if without an else, and forms such as display and set!, give no value"
    if any(isinstance(p, HandleOf) and HANDLES[p.kind] != "weak-ref?" for p in found.parts) and not wanted & RECORD:
        return "(borrow owner) lends what an owner has, (borrow-mut owner) lends it to be changed"
    if any(isinstance(p, HandleOf) and p.kind == "Weak" for p in found.parts):
        return "(weak-upgrade reference) gives a shared reference, or #f where there is nothing any more"
    if given & FALSE_BIT and not wanted & FALSE_BIT and fits(without(found, Type(FALSE_BIT)), expected):
        return "it may be #f, where nothing was found: (if value ... ...) tells first"
    if any(isinstance(p, ListOf) for p in expected.parts) and given == BIT["vector"]:
        return "(vector->list v) makes a list of a vector"
    if any(isinstance(p, VectorOf) for p in expected.parts) and given & BIT["pair"]:
        return "(list->vector l) makes a vector of a list"
    if wanted & TENSOR and not wanted & ~TENSOR and given & (BIT["vector"] | BIT["pair"]):
        return "(tensor data) makes a tensor of lists and vectors"
    if given & NULL_BIT and not wanted & NULL_BIT and fits(without(found, Type(NULL_BIT)), expected):
        return "the list may be empty: ask (pair? list) first"
    if type(node) is Lambda:
        return None
    if can_meet(found, expected) and narrowed(found, expected) != found:
        return "a predicate in an if, such as (string? x), says which of these it is"
    return None


def arity(name: str, ways: str, count: int, call: Call, place: Place | None) -> LanguageError:
    """An error about a call with a wrong number of arguments."""
    notes = () if place is None else ((f"{name} is defined here:", place),)
    given = "1 argument" if count == 1 else f"{count} arguments"
    return bad(f"{name} takes {ways}, but is given {given}", call.place, kind=BadType, notes=notes)


def counted(least: int, most: int | None) -> str:
    """How many arguments a procedure takes, in words."""
    if most is None:
        return f"{least} or more arguments" if least else "any number of arguments"
    if least == most:
        return "no argument" if not least else "1 argument" if least == 1 else f"{least} arguments"
    return f"{least} to {most} arguments"
