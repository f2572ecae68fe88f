"""Eshkol: write a numerical program once, differentiate it, and run it fast anywhere.

    import eshkol as ek
    ek.grad(lambda x: (x * x).sum())(ek.tensor([1.0, 2.0]))

The package root stays light: tensors and their functions are imported when the first of them is asked for, so that
`import eshkol` costs next to nothing.
"""

from __future__ import annotations

from eshkol.version import __version__

TYPE_CHECKING = False  # as in typing, which the command need not wait for: until it runs, Ctrl-C shows a traceback
if TYPE_CHECKING:
    from typing import Any

__all__ = ["__version__"]


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    from importlib import import_module
    from importlib.util import find_spec

    if find_spec(f"{__name__}.{name}") is not None:  # a package of ours: `ek.atlas`
        return import_module(f"{__name__}.{name}")
    if name == "eval":  # the language comes without the tensors, and they without it
        from eshkol.bindings.evaluate import evaluate

        return globals().setdefault(name, evaluate)
    from eshkol.tensors import NAMES

    if name not in NAMES:
        import difflib

        near = difflib.get_close_matches(name, NAMES, 1)
        raise AttributeError(f"eshkol has no '{name}'" + (f"; did you mean '{near[0]}'?" if near else ""))
    return globals().setdefault(name, NAMES[name])  # found at once from now on


def __dir__() -> list[str]:
    from eshkol.tensors import NAMES

    return sorted({*globals(), *NAMES, "eval"})
