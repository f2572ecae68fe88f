"""Scopes: which binding an identifier refers to where it stands (sets of scopes, as in Racket).

Every place that binds names makes a `Scope`; an identifier carries the set of scopes that it stands in. A binding is
kept for a symbol and a set of scopes; an identifier refers to the binding whose set is the largest subset of its own.
The code that a macro writes gets a scope of its own, so that its names neither capture nor are captured.

A binding lives in the newest scope of its set: with the scope, its bindings go. There is one phase: what a library
imports and defines can be used by its transformers as well as by its procedures (a transformer can only call what is
compiled when it runs, that is what comes from other libraries, or at a prompt from forms before it).
"""

from __future__ import annotations

from itertools import count

from eshkol.errors import AmbiguousName
from eshkol.lang.datum import Symbol

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


class Binding:
    """What an identifier can mean; `meanings.py` has its kinds."""

    __slots__ = ()


# ---- the binding of an identifier ------------------------------------------------------------------------------------


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
