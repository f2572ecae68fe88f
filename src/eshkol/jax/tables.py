"""Namespaces as tables: names of rows, names of rows under other names, and functions that were written.

Comes in: names, and modules of functions. Goes out: what a namespace offers, by name; a module updates its globals
with it.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import ModuleType
from typing import Any

from eshkol.tensors import api as ek


def written(module: ModuleType) -> dict[str, Any]:
    """The public functions and classes that a module defines itself."""
    found = vars(module).items()
    return {k: v for k, v in found if k[0] != "_" and callable(v) and getattr(v, "__module__", "") == module.__name__}


def table(rows: str, renamed: Mapping[str, str] | None = None, *modules: ModuleType, **more: Any) -> dict[str, Any]:
    """Everything that a namespace offers; later entries come before earlier ones."""
    found = {name: getattr(ek, name) for name in rows.split()}
    found |= {name: getattr(ek, row) for name, row in (renamed or {}).items()}
    for module in modules:
        found |= written(module)
    return found | more
