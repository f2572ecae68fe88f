"""`ek.random`: random numbers for those who do not hand keys around.

Every function here is a row that takes a key, without the key: `ek.random.normal((2, 3))` draws with the next key of
everybody's generator (or of `generator=`), `ek.normal(key, (2, 3))` with yours; a key that is given here all the same,
in the first place, is drawn with. Inside vmap and the bodies of loops a
key of one's own is needed: a key taken there would be the same for every example and every step.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from types import NoneType
from typing import Any

import numpy as np

from eshkol.errors import TensorError, TraceError
from eshkol.graph.node import Scope, here
from eshkol.ops import TABLE, dtypes
from eshkol.ops.row import Op
from eshkol.tensors import keys
from eshkol.tensors.keys import Generator, next_key, seed
from eshkol.tensors.make import adopted
from eshkol.tensors.value import Tensor, operate


def key(number: int) -> Tensor:
    """The key that a seed stands for, to split and to draw with."""
    return adopted(keys.key_of(number))


def is_key(given: Any) -> bool:
    """Whether it is a key: nothing else that a draw takes is a tensor or an array of two uint32."""
    if isinstance(given, Tensor):
        return given.shape == (2,) and given.dtype is dtypes.uint32
    return isinstance(given, np.ndarray) and given.shape == (2,) and given.dtype == np.uint32


def _brief(given: Any) -> str:
    return f"{given.dtype}{list(given.shape)}" if isinstance(given, Tensor) else repr(given)


def _keyless(op: Op) -> Callable[..., Any]:
    """The row as a function that finds a key by itself."""
    parameters = [p for p in op.signature.parameters.values() if p.name != "key"]
    names = [p.name for p in parameters]
    tensors = {i.name for i in op.inputs}
    first = next(iter(op.signature.parameters))
    choice = inspect.Parameter("generator", inspect.Parameter.KEYWORD_ONLY, default=None)

    def draw(*args: Any, generator: Generator | None = None, **given: Any) -> Any:
        if args and first == "key" and is_key(args[0]):  # in the order that JAX has, and ek.normal too
            if generator is not None:
                raise TensorError(f"{op.name} draws with a key or with a generator, not with both", span=here())
            return operate(op, args, given)
        if len(args) > 1 and names[:1] == ["shape"] and not isinstance(args[0], tuple | list | NoneType):
            raise TensorError(
                f"{op.name}({', '.join(map(_brief, args))}): the shape comes first here, and then {names[1]}, so that "
                f"this would be a draw of shape {_brief(args[0])}", span=here(),
                hint=f"write the shape as a tuple, what follows by name: ek.random.{op.name}((2, 3), {names[1]}=...)",
            )  # fmt: skip
        inside = next((s for s in Scope.at_work if s.kind == "trace"), None)
        if inside is not None:
            raise TraceError(
                f"{op.name} without a key inside {inside.name} would draw the same numbers every time", span=here(),
                hint=f"pass keys in (ek.split_key) and use ek.{op.name}(key, ...)",
            )  # fmt: skip
        bound = signature.bind(*args, **given)
        for name in tensors & bound.arguments.keys():
            if isinstance(bound.arguments[name], tuple):
                raise TensorError(
                    f"{name} of {op.name} is a number or a tensor, not {bound.arguments[name]}", span=here(),
                    hint=f"a shape is given by name, shape={bound.arguments[name]}; numbers as a list",
                )  # fmt: skip
        found = (generator or keys.default).next_key()
        return operate(op, (), {**bound.arguments, "key": adopted(found)})

    signature = inspect.Signature([*parameters, choice])
    vars(draw)["__signature__"] = signature
    draw.__name__ = draw.__qualname__ = op.name
    draw.__doc__ = op.doc
    return draw


for _op in TABLE.values():
    if _op.random:
        globals()[_op.name] = _keyless(_op)


def _together(shape: tuple[Any, ...]) -> Any:
    return shape[0] if len(shape) == 1 and isinstance(shape[0], tuple | list) else shape


def rand(*shape: Any, dtype: Any = None) -> Tensor:
    """Uniform numbers from 0 to below 1; the shape as integers, or as one tuple."""
    result = globals()["uniform"](_together(shape), dtype=dtype)
    assert isinstance(result, Tensor)
    return result


def randn(*shape: Any, dtype: Any = None) -> Tensor:
    """Normal numbers of mean 0 and variance 1; the shape as integers, or as one tuple."""
    result = globals()["normal"](_together(shape), dtype=dtype)
    assert isinstance(result, Tensor)
    return result


__all__ = ["Generator", "key", "next_key", "rand", "randn", "seed", *(op.name for op in TABLE.values() if op.random)]
