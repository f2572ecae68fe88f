"""`ek.random`: random numbers for those who do not hand keys around.

Every function here is a row that takes a key, without the key: `ek.random.normal((2, 3))` draws with the next key of
everybody's generator (or of `generator=`), `ek.normal(key, (2, 3))` with yours. Inside vmap and the bodies of loops a
key of one's own is needed: a key taken there would be the same for every example and every step.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from eshkol.errors import TraceError
from eshkol.graph.node import Scope, here
from eshkol.ops import TABLE, dtypes
from eshkol.ops.row import Op
from eshkol.tensors import keys
from eshkol.tensors.keys import Generator, next_key, seed
from eshkol.tensors.make import from_numpy
from eshkol.tensors.value import Tensor, operate


def key(number: int) -> Tensor:
    """The key that a seed stands for, to split and to draw with."""
    return from_numpy(keys.key_of(number))


def _keyless(op: Op) -> Callable[..., Any]:
    """The row as a function that finds a key by itself."""
    parameters = [p for p in op.signature.parameters.values() if p.name != "key"]
    choice = inspect.Parameter("generator", inspect.Parameter.KEYWORD_ONLY, default=None)

    def draw(*args: Any, generator: Generator | None = None, **given: Any) -> Any:
        inside = next((s for s in Scope.at_work if s.kind == "trace"), None)
        if inside is not None:
            raise TraceError(
                f"{op.name} without a key inside {inside.name} would draw the same numbers every time", span=here(),
                hint=f"pass keys in (ek.split_key) and use ek.{op.name}(key, ...)",
            )  # fmt: skip
        bound = signature.bind(*args, **given)
        found = (generator or keys.default).next_key()
        return operate(op, (), {**bound.arguments, "key": from_numpy(found)})

    signature = inspect.Signature([*parameters, choice])
    vars(draw)["__signature__"] = signature
    draw.__name__ = draw.__qualname__ = op.name
    draw.__doc__ = op.doc
    return draw


for _op in TABLE.values():
    if _op.random:
        globals()[_op.name] = _keyless(_op)


def rand(*shape: int, dtype: Any = dtypes.float32) -> Tensor:
    """Uniform numbers from 0 to below 1."""
    result = globals()["uniform"](shape, dtype=dtype)
    assert isinstance(result, Tensor)
    return result


def randn(*shape: int, dtype: Any = dtypes.float32) -> Tensor:
    """Normal numbers of mean 0 and variance 1."""
    result = globals()["normal"](shape, dtype=dtype)
    assert isinstance(result, Tensor)
    return result


__all__ = ["Generator", "key", "next_key", "rand", "randn", "seed", *(op.name for op in TABLE.values() if op.random)]
