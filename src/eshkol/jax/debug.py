"""`jax.debug`: values looked at while a function runs.

Comes in: a format and tensors. Goes out: a line of text, where the values are known: outside of jit, vmap and loop
bodies.
"""

from __future__ import annotations

import builtins
from typing import Any

from eshkol.errors import TraceError
from eshkol.jax.missing import refusing
from eshkol.tensors import api as ek
from eshkol.tensors.pytree import leaves


def print(fmt: str, *args: Any, ordered: bool = False, **given: Any) -> None:
    """Print a format with values; the order is that of the program always."""
    for x in leaves((args, given)):
        if isinstance(x, ek.Tensor) and any(s.open and s.kind == "trace" for s in x._node.scopes):
            raise TraceError(
                "debug.print inside jit, vmap or a loop needs a value that is not known there", span=ek.here(),
                hint="return the value, or call the function without ek.jit",
            )  # fmt: skip
    builtins.print(fmt.format(*args, **given))


__all__ = ["print"]
__getattr__ = refusing("debug", __all__)
