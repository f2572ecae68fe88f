"""The names that Scheme has for the rows of the op table.

Comes in: the op table, and the names that the hand-written part of `(eshkol tensors)` defines itself. Goes out: the
names, each with what Python finds its function by; `row_library.py` writes the library that binds them.

Every public row has the names that it lists (`Op.scheme`), and `tensor-` with its own name where that is free. A name
that ends in `!` is the row in place.
"""

from __future__ import annotations

from functools import cache

from eshkol.lang.docs import Definition, library
from eshkol.lang.files import STANDARD
from eshkol.ops import TABLE
from eshkol.ops.row import Op

FOLDER = STANDARD / "eshkol" / "tensors"
BY_HAND = ("values", "maps", "random", "images", "devices", "compilation", "gpu")  # whose names no row may take


@cache
def by_hand() -> dict[str, Definition | None]:
    """The names that are defined by hand, with what is said of them."""
    parts = [library(FOLDER / f"{name}.esk") for name in BY_HAND]
    return {name: part.definitions.get(name) for part in parts for name in part.exports}


def visible() -> list[Op]:
    """The rows that Scheme sees, by group."""
    found = [op for op in TABLE.values() if op.public]
    return sorted(found, key=lambda op: (op.group, op.name))


@cache
def names() -> dict[str, str]:
    """The Scheme names of rows, each with what Python finds its function by: `op:add`, `op:add!`."""
    found: dict[str, str] = {}
    for op in visible():
        for name in op.scheme:
            if name not in by_hand():
                assert name not in found, f"two rows are called {name}"
                found[name] = f"op:{op.name}{'!' if name.endswith('!') else ''}"
    for op in visible():
        name = f"tensor-{op.name.replace('_', '-')}"
        if name not in found and name not in by_hand():
            found[name] = f"op:{op.name}"
    return found


@cache
def _first_names() -> dict[str, str]:
    found: dict[str, str] = {}
    for name, function in names().items():
        found.setdefault(function.removeprefix("op:"), name)
    for op in visible():
        for alias in op.aliases:
            if op.name in found:
                found.setdefault(alias, found[op.name])
    return found


def scheme_name(python: str) -> str | None:
    """What Scheme calls a function of Python's, if it has a name for it."""
    return _first_names().get(python)


def names_of(op: Op) -> list[str]:
    """All Scheme names of a row, those that are defined by hand too."""
    bound = [name for name, function in names().items() if function.removeprefix("op:").rstrip("!") == op.name]
    return list(dict.fromkeys([*op.scheme, *bound]))
