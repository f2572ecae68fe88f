"""A unit as native code that is not loaded yet, and the bytes that the cache keeps of it.

It says everything that the loader (units.py) needs: the object, the outside symbols that it refers to, and its
constants as text. compiling.py makes it. The object of a large unit has nothing but data; its code lies in parts.
"""

from __future__ import annotations

import json
from typing import Any, NamedTuple


def outside(number: int) -> str:
    """The symbol of an outside function in a unit whose text is like others'."""
    return f"outside.{number}"


def name_of(cell: str) -> str:
    """The symbol of the name of a cell there."""
    return f"name.{cell}"


class Part:
    """Some functions of a unit as native code (parts.py)."""

    def __init__(
        self, code: bytes, functions: list[str], cells: list[tuple[str, str]], count: int, anchor: str
    ) -> None:
        self.code = code
        self.functions = functions  # outside functions that it calls
        self.cells = cells  # global variables that it refers to: library and name
        self.count = count  # entries that it has
        self.anchor = anchor  # the symbol of one of them

    def head(self) -> dict[str, Any]:
        kept = ("functions", "cells", "count", "anchor")
        return {name: getattr(self, name) for name in kept} | {"size": len(self.code)}


class CompiledUnit(NamedTuple):
    """A unit as native code, not yet loaded."""

    name: str
    code: bytes
    functions: list[str]  # outside functions that it calls
    cells: list[tuple[str, str]]  # global variables that it refers to: library and name
    constants: list[str | None]  # as text; null for those that are the expander's
    foreign: list[Any]  # constants of the expander: syntax, patterns, templates; such a unit is not kept
    scopes: str  # which procedure stands where (scopes.py)
    forms: bytes  # what it was made from (keeping.py)
    parts: tuple[Part, ...] = ()
    places: list[tuple[str, int, int]] | None = None  # of a unit whose text was like others' (alike.py)

    def payload(self) -> bytes:
        kept = ("name", "functions", "cells", "constants", "scopes", "places")
        head = {name: getattr(self, name) for name in kept} | {"forms": len(self.forms), "code": len(self.code)}
        head["parts"] = [part.head() for part in self.parts]
        text = json.dumps(head).encode()
        codes = [part.code for part in self.parts]
        return b"".join([len(text).to_bytes(8, "little"), text, self.forms, self.code, *codes])

    @classmethod
    def read(cls, payload: bytes) -> CompiledUnit:
        size = int.from_bytes(payload[:8], "little")
        head = json.loads(payload[8 : 8 + size])
        at = 8 + size

        def taken(size: int) -> bytes:
            nonlocal at
            at += size
            return payload[at - size : at]

        forms, code = taken(head["forms"]), taken(head["code"])
        parts = tuple(
            Part(taken(part["size"]), part["functions"], _pairs(part["cells"]), part["count"], part["anchor"])
            for part in head["parts"]
        )
        cells, names = _pairs(head["cells"]), head["functions"]
        places = None if head["places"] is None else [(file, line, column) for file, line, column in head["places"]]
        return cls(head["name"], code, names, cells, head["constants"], [], head["scopes"], forms, parts, places)


class UnitData(NamedTuple):
    """What all parts of a unit share, in memory: the addresses of its constants, closures and pieces."""

    constants: int
    closures: int
    pieces: int


def _pairs(rows: list[list[str]]) -> list[tuple[str, str]]:
    return [(library, name) for library, name in rows]
