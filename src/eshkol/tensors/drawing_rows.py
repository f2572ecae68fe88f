"""The rows that draw, as `ek.random` has them: with a key in front, or with one that is found for them.

Comes in: rows that are `random`. Goes out: `ROWS`, a function each. `normal((2, 3))` draws with the next key of
everybody's generator (or of `generator=`), `normal(key, (2, 3))` with the key. After a key the arguments may stand in
the order of the row or in JAX's: shapes, dtypes and numbers tell which it is, and what fits neither is refused.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import NoneType
from typing import Any

import numpy as np

from eshkol.errors import TensorError, TraceError
from eshkol.graph.node import Scope, here
from eshkol.ops import TABLE, calls, dtypes
from eshkol.ops.dtypes import DType
from eshkol.ops.row import Op
from eshkol.tensors import keys
from eshkol.tensors.keys import Generator
from eshkol.tensors.make import adopted
from eshkol.tensors.value import Tensor, operate

JAX_ORDER = {  # what follows the key in JAX, by our names; rows that are not here have the same order
    "uniform": "shape dtype low high",
    "normal": "shape dtype",
    "randint": "shape low high dtype",
    "gumbel": "shape dtype",
    "laplace": "shape dtype",
    "exponential": "shape dtype",
    "truncated_normal": "low high shape dtype",
    "gamma": "alpha shape dtype",
    "student_t": "df shape dtype",
}
JAX_NAMES = {  # JAX's keywords, where they are other words for ours
    "uniform": {"minval": "low", "maxval": "high"},
    "randint": {"minval": "low", "maxval": "high"},
    "truncated_normal": {"lower": "low", "upper": "high"},
    "gamma": {"a": "alpha"},
    "poisson": {"lam": "rate"},
}


def is_key(given: Any) -> bool:
    """Whether it is a key: nothing else that a draw takes is a tensor or an array of two uint32."""
    if isinstance(given, Tensor):
        return given.shape == (2,) and given.dtype is dtypes.uint32
    return isinstance(given, np.ndarray) and given.shape == (2,) and given.dtype == np.uint32


def found_key(name: str, generator: Generator | None = None) -> Tensor:
    """The next key of a generator, or of everybody's; refused where every example or step would get the same one."""
    inside = next((s for s in Scope.at_work if s.kind == "trace"), None)
    if inside is not None:
        raise TraceError(
            f"{name} without a key inside {inside.name} would draw the same numbers every time", span=here(),
            hint=f"pass keys in (ek.random.split) and use ek.random.{name}(key, ...)",
        )  # fmt: skip
    return adopted((generator or keys.default).next_key())


def _brief(given: Any) -> str:
    return f"{given.dtype}{list(given.shape)}" if isinstance(given, Tensor) else repr(given)


def _fits(name: str, value: Any) -> bool:
    """Whether a value can be what a parameter of this name takes."""
    is_dtype = isinstance(value, DType | str | np.dtype | type)
    if name == "dtype":
        return is_dtype or value is None
    if name == "shape":
        return isinstance(value, tuple | list | NoneType)
    return not is_dtype and not isinstance(value, tuple)


def _ordered(op: Op, names: Sequence[str], args: Sequence[Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """What follows a key, by the names of the row: in JAX's order if that fits, else in the row's."""
    renamed = {JAX_NAMES.get(op.name, {}).get(name, name): value for name, value in given.items()}
    for order in (JAX_ORDER.get(op.name, "").split(), names):
        if len(args) <= len(order) and all(map(_fits, order, args)):
            return dict(zip(order, args, strict=False)) | renamed
    shown = ", ".join(["key", *map(_brief, args)])
    raise TensorError(
        f"ek.random.{op.name}({shown}): after the key come {', '.join(names)}", span=here(),
        hint=f"write the shape as a tuple, what follows by name: ek.random.{op.name}(key, shape=(2, 3))",
    )  # fmt: skip


def _check_keyless(op: Op, names: Sequence[str], args: Sequence[Any], bound: Mapping[str, Any]) -> None:
    """Refuse numbers where the shape should be, and a shape where a number should be."""
    if len(args) > 1 and names[:1] == ["shape"] and not isinstance(args[0], tuple | list | NoneType):
        raise TensorError(
            f"{op.name}({', '.join(map(_brief, args))}): the shape comes first here, and then {names[1]}, so that "
            f"this would be a draw of shape {_brief(args[0])}", span=here(),
            hint=f"write the shape as a tuple, what follows by name: ek.random.{op.name}((2, 3), {names[1]}=...)",
        )  # fmt: skip
    for name in {i.name for i in op.inputs} & bound.keys():
        if isinstance(bound[name], tuple):
            raise TensorError(
                f"{name} of {op.name} is a number or a tensor, not {bound[name]}", span=here(),
                hint=f"a shape is given by name, shape={bound[name]}; numbers as a list",
            )  # fmt: skip


def _ways(op: Op, keyless: inspect.Signature) -> tuple[inspect.Signature, ...]:
    """All ways in which a draw may be called, for type checkers."""
    keyed = calls.signature(op)
    found = [keyless, keyed]
    if op.name in JAX_ORDER:
        theirs = {ours: name for name, ours in JAX_NAMES.get(op.name, {}).items()}
        taken = [keyed.parameters[name] for name in ("key", *JAX_ORDER[op.name].split())]
        found.append(
            keyed.replace(parameters=_optional_last(p.replace(name=theirs.get(p.name, p.name)) for p in taken))
        )
    return tuple(found)


def _optional_last(parameters: Iterable[inspect.Parameter]) -> list[inspect.Parameter]:
    """The parameters in their order, each required that stands before a required one."""
    listed = list(parameters)
    last = max(k for k, p in enumerate(listed) if p.default is p.empty)
    return [p.replace(default=p.empty) if k < last else p for k, p in enumerate(listed)]


def drawing(op: Op) -> Callable[..., Any]:
    """The row as a function that takes a key in front, or finds one by itself."""
    shown = [p for p in calls.signature(op).parameters.values() if p.name != "key"]
    names = [p.name for p in shown]
    first = next(iter(op.signature.parameters))
    choice = inspect.Parameter(
        "generator", inspect.Parameter.KEYWORD_ONLY, default=None, annotation=calls.Type("Generator | None")
    )
    signature = inspect.Signature([*shown, choice], return_annotation=calls.signature(op).return_annotation)

    def draw(*args: Any, generator: Generator | None = None, **given: Any) -> Any:
        if args and first == "key" and is_key(args[0]):
            if generator is not None:
                raise TensorError(f"{op.name} draws with a key or with a generator, not with both", span=here())
            return operate(op, (args[0],), _ordered(op, names, args[1:], given))
        renamed = {JAX_NAMES.get(op.name, {}).get(name, name): value for name, value in given.items()}
        if "key" in renamed:
            return operate(op, args, renamed)
        bound = signature.bind(*args, **renamed).arguments
        _check_keyless(op, names, args, bound)
        return operate(op, (), {**bound, "key": found_key(op.name, generator)})

    about = calls.help_text(op, without="key")
    vars(draw).update(__signature__=signature, row=op, ways=_ways(op, signature))
    draw.__name__ = draw.__qualname__ = op.name
    draw.__doc__ = f"{about}\n    generator: whose next key is taken; everybody's unless given\n\n" + (
        "A key in front is drawn with instead, as in JAX." if first == "key" else "A key is given as key=."
    )
    return draw


ROWS: dict[str, Callable[..., Any]] = {op.name: drawing(op) for op in TABLE.values() if op.random}
