"""`ek.random`: random numbers, with keys or without.

A key in front is drawn with, as in JAX: `ek.random.normal(key, (2, 3))`. Without one the next key of everybody's
generator (or of `generator=`) is taken: `ek.random.normal((2, 3))`. Inside vmap and the bodies of loops a key of your
own is needed: a key taken there would be the same for every example and every step. The names are a table
(`drawing_rows.py`, `draws.py`); their types stand in random.pyi, which `make generate` writes.
"""

from __future__ import annotations

from typing import Any

from eshkol.tensors import drawing_rows, draws
from eshkol.tensors.keys import Generator, next_key, seed

_NAMES: dict[str, Any] = {
    **drawing_rows.ROWS,
    **{function.__name__: function for function in draws.OWN},
    "PRNGKey": draws.key,
    "t": drawing_rows.ROWS["student_t"],
    "Generator": Generator,
    "is_key": drawing_rows.is_key,
    "next_key": next_key,
    "seed": seed,
}
globals().update(_NAMES)

__all__ = sorted(_NAMES)


def __getattr__(name: str) -> Any:
    draws.refuse(name)


def __dir__() -> list[str]:
    return __all__
