"""The Python functions that Scheme's library calls by name; each is found when it is first asked for.

`op:NAME` is a row of the op table. All others stand in `FUNCTIONS` as `module:attribute`; or their first part stands in
`FAMILIES`, as a function that makes the one wanted of the second part.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from eshkol.errors import EshkolError

OP = "op:"
FUNCTIONS: dict[str, str] = {
    "numbers:number": "eshkol.bindings.numbers:number",
    "numbers:inexact": "eshkol.bindings.numbers:inexact",
    "numbers:same": "eshkol.bindings.numbers:same",
    "numbers:hashed": "eshkol.bindings.numbers:hashed",
    "numbers:shown": "eshkol.bindings.shown:shown",
}
FAMILIES: dict[str, str] = {
    "compare": "eshkol.bindings.numbers:comparison",
    "rule": "eshkol.bindings.numbers:said",
}


def find(name: str) -> Any:
    """The function of that name."""
    if name.startswith(OP):
        from eshkol.tensors import NAMES

        return NAMES[name.removeprefix(OP)]
    if (place := FUNCTIONS.get(name)) is not None:
        return _at(place)
    family, _, member = name.partition(":")
    if (place := FAMILIES.get(family)) is not None:
        return _at(place)(member)
    raise EshkolError(f"no Python function is registered as '{name}'", hint="see bindings/registry.py")


def _at(place: str) -> Any:
    module, _, attribute = place.partition(":")
    return getattr(import_module(module), attribute)
