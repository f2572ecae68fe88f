"""The making of modules: what each was made with, and how much memory may go into it.

`Remembering` is the base of `Module`: a layer of this package keeps the arguments of its constructor as plain values,
so that a file can say how to make it again (recipes.py). `room` bounds what such a making may take, since the numbers
in a file are not trusted: whatever makes modules and tensors claims their memory before it takes it.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import asdict, is_dataclass
from functools import wraps
from typing import Any, ClassVar, TypeGuard

import numpy as np

from eshkol.errors import TensorError
from eshkol.nn.module_like import ModuleLike
from eshkol.nn.recipes import ARGUMENTS, CLASS, CONFIG, MODULE, Making, NoRecipe, recipe_of, versions
from eshkol.tensors import api as ek

BESIDE = (
    "device",
    "inplace",
)  # PyTorch's words for all layers: where it is made; that it may reuse memory, as plans do
OWN = __name__.rpartition(".")[0] + "."  # modules of this package


class Remembering:
    """What remembers the arguments of its constructor, if its class is of this package."""

    _described_by: ClassVar[str] = ARGUMENTS  # not so containers: they are described by what they hold

    def __init_subclass__(cls, **given: Any) -> None:
        super().__init_subclass__(**given)
        if cls.__module__.startswith(OWN) and "__init__" in cls.__dict__:
            type.__setattr__(cls, "__init__", _remembering(cls.__dict__["__init__"]))


def _remembering(init: Callable[..., None]) -> Callable[..., None]:
    """A constructor that leaves what it was called with; those that it calls itself leave nothing."""

    beside = [word for word in BESIDE if word not in inspect.signature(init).parameters]

    @wraps(init)
    def made(self: Any, *args: Any, **given: Any) -> None:
        device = given.pop("device", None) if given and "device" in beside else None
        if given and "inplace" in beside:
            given.pop("inplace", None)
        build(self, *args, **given)
        if device is not None:
            self.to(device)

    def build(self: Any, *args: Any, **given: Any) -> None:
        if (
            "_making" in self.__dict__
            or type(self)._described_by != ARGUMENTS
            or not type(self).__module__.startswith(OWN)
        ):
            init(self, *args, **given)
            return
        object.__setattr__(self, "_making", None)
        init(self, *args, **given)
        try:
            making = Making([plain(x) for x in args], {k: plain(x) for k, x in given.items()}, versions(self))
        except NoRecipe as reason:
            making = Making([], {}, (), str(reason))
        object.__setattr__(self, "_making", making)

    return made


def _is_module(value: Any) -> TypeGuard[ModuleLike]:
    return isinstance(value, Remembering)


def plain(value: Any) -> Any:
    """An argument as what a file holds."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, np.generic) and isinstance(value.item(), bool | int | float):
        return value.item()
    if isinstance(value, tuple | list):
        items = [plain(x) for x in value]
        return items if isinstance(value, list) else tuple(items)
    if _is_module(value):
        return {MODULE: recipe_of(value)}
    if isinstance(value, type) and issubclass(value, Remembering) and value.__module__.startswith(OWN):
        return {CLASS: value.__name__}
    if is_dataclass(value) and not isinstance(value, type) and type(value).__module__.startswith(OWN):
        return {CONFIG: asdict(value)}
    if isinstance(value, np.dtype) or (isinstance(value, type) and issubclass(value, np.generic)):
        return np.dtype(value).name
    if isinstance(value, type(ek.float32)):
        return value.name  # layers take dtypes by their names as well
    what = "a function" if callable(value) else f"a {type(value).__name__}"
    raise NoRecipe(f"was made with {what}")


# --- memory -----------------------------------------------------------------------------------------------------------


class _Room:
    def __init__(self, size: int, count: int) -> None:
        self.size, self.count = size, count


_room: ContextVar[_Room | None] = ContextVar("room", default=None)


@contextmanager
def room(size: int, count: int) -> Iterator[None]:
    """Within it so many modules and tensors may be made, which take so many bytes together; more is an error.

    Parameters begin with zeros there: their values are those of a state.
    """
    token = _room.set(_Room(size, count))
    try:
        yield
    finally:
        _room.reset(token)


def drawn() -> bool:
    """Whether parameters are to begin with what they are made with; not so where a state gives them their values."""
    return _room.get() is None


def claim(size: int, count: int = 1) -> None:
    """Say that a number of modules or tensors will be made, which take so many bytes together."""
    limit = _room.get()
    if limit is not None:
        limit.size, limit.count = limit.size - size, limit.count - count
        if limit.size < 0:
            raise TensorError("it would take much more memory than what belongs to it")
        if limit.count < 0:
            raise TensorError("it would have many more parts than belong to it")
