"""The Python functions that Scheme's library calls by name; each is found when it is first asked for.

`op:NAME` is a row of the op table, as Scheme calls it (bindings/procedures.py), and `op:NAME!` the row in place; a
prefix of `MODULES` stands for a function of that module, one of `FAMILIES` for a function that makes the one wanted of
the rest of the name; all others stand in `FUNCTIONS` as `module:attribute`.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from eshkol.errors import EshkolError

OP = "op:"
MODULES = {
    "tensor": "eshkol.bindings.tensors",
    "device": "eshkol.bindings.gpu",
    "draw": "eshkol.bindings.draws",
    "random": "eshkol.bindings.draw_tensors",
    "names": "eshkol.bindings.row_library",
    "derivative": "eshkol.bindings.derivatives",
    "custom": "eshkol.bindings.customs",
    "compile": "eshkol.bindings.compilation",
    "ahead": "eshkol.bindings.ahead",
    "pending": "eshkol.bindings.pending",
    "picture": "eshkol.bindings.pictures",
    "profile": "eshkol.bindings.profiles",
    "numbers": "eshkol.bindings.numbers",
    "shown": "eshkol.bindings.shown",
    "python": "eshkol.bindings.objects",
    "model": "eshkol.bindings.models",
    "layers": "eshkol.bindings.layer_forms",
    "losses": "eshkol.bindings.losses",
    "learn": "eshkol.bindings.learning",
    "steps": "eshkol.bindings.steps",
    "transfer": "eshkol.bindings.transfer",
    "data": "eshkol.bindings.data",
    "checkpoints": "eshkol.bindings.checkpoints",
    "serialization": "eshkol.bindings.serialization",
    "optimizers": "eshkol.bindings.optimizers",
}
FAMILIES = {
    "gpu": "eshkol.bindings.gpu:moved",
    "compare": "eshkol.bindings.numbers:comparison",
    "rule": "eshkol.bindings.numbers:said",
    "layer": "eshkol.bindings.layers:overloaded",
    "make": "eshkol.bindings.layers:made",
    "optimizer": "eshkol.bindings.optimizers:optimizer",
    "metric": "eshkol.bindings.learning:metric",
}
FUNCTIONS: dict[str, str] = {
    "display-image": "eshkol.bindings.notebook.display:display_image",
    "display-html": "eshkol.bindings.notebook.display:display_html",
    "display-markdown": "eshkol.bindings.notebook.display:display_markdown",
}


def find(name: str) -> Any:
    """The function of that name."""
    if name.startswith(OP):
        from eshkol.bindings.procedures import row

        return row(name.removeprefix(OP))
    prefix, _, rest = name.partition(":")
    if prefix in FAMILIES:
        return _at(FAMILIES[prefix])(rest)
    place = FUNCTIONS.get(name) or (f"{MODULES[prefix]}:{rest}" if prefix in MODULES else None)
    if place is None:
        raise EshkolError(f"no Python function is registered as '{name}'", hint="see bindings/registry.py")
    return _at(place)


def _at(place: str) -> Any:
    module, _, attribute = place.partition(":")
    return getattr(import_module(module), attribute)
