"""The op table: one row per tensor operation.

`TABLE` maps names to rows (`Op`). A row is entered by the module that defines it; importing this package imports every
module in it, so a new file of ops needs no mention anywhere. Nothing here knows graphs, backends or tensors.
"""

from importlib import import_module
from pkgutil import iter_modules
from typing import NoReturn

from eshkol.ops.row import TABLE, Op

for _module in iter_modules(__path__):
    if _module.name != "docs":  # which is run by itself
        import_module(f"{__name__}.{_module.name}")

__all__ = ["TABLE", "Op"]


def __getattr__(name: str) -> NoReturn:
    kin = f"; segments are summed by eshkol.jax.ops.{name}" if name.startswith("segment_") else ""
    raise AttributeError(f"eshkol.ops, the table of operations, has no '{name}'{kin}")
