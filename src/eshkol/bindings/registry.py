"""The Python functions that Scheme's library calls by name; each is found when it is first asked for.

`op:NAME` is a row of the op table; all others stand in `FUNCTIONS` as `module:attribute`.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from eshkol.errors import EshkolError

OP = "op:"
FUNCTIONS: dict[str, str] = {
    "display-image": "eshkol.bindings.notebook.display:display_image",
    "display-html": "eshkol.bindings.notebook.display:display_html",
    "display-markdown": "eshkol.bindings.notebook.display:display_markdown",
}


def find(name: str) -> Any:
    """The function of that name."""
    if name.startswith(OP):
        from eshkol.tensors import NAMES

        return NAMES[name.removeprefix(OP)]
    place = FUNCTIONS.get(name)
    if place is None:
        raise EshkolError(f"no Python function is registered as '{name}'", hint="see bindings/registry.py")
    module, _, attribute = place.partition(":")
    return getattr(import_module(module), attribute)
