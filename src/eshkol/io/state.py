"""States as what a file holds: structures of plain values with tensors in them, taken apart and put together.

A state is what `state_dict()` of a model, an optimizer, a schedule or a loader gives. Its tensors and arrays go to the
directory of the file, and references to them stand in their places in the metadata. Tensors under "model" keep their
names, so that they are found by name; others are named by where they stand: `optimizer/state/0/exp_avg`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from eshkol.errors import CheckpointError
from eshkol.io.eskpt import as_array
from eshkol.io.msgpack import DEPTH, Reference
from eshkol.tensors.holding import bare
from eshkol.tensors.value import Tensor

MODEL = "model"


class Taken:
    """A state taken apart: `arrays` by name, and `tree` with references in their places."""

    def __init__(self, state: Mapping[str, Any], who: str) -> None:
        self.arrays: dict[str, Any] = {}
        self._places: dict[
            tuple[Any, ...], str
        ] = {}  # where the bytes of an array stand, so that none is written twice
        self._who = who
        model = state.get(MODEL)
        self.tree: dict[str, Any] = {}
        if isinstance(model, Mapping):  # first, so that its tensors have the names they have there
            self.tree[MODEL] = {name: self._model(name, value) for name, value in model.items()}
        for key, value in state.items():
            if key not in self.tree:
                self.tree[key] = self._taken(value, (key,))

    def _model(self, name: Any, value: Any) -> Any:
        """A value in the state of a model: it has a tensor for every name, also where two are the same."""
        if not isinstance(name, str) or not isinstance(value, Tensor | np.ndarray):
            return self._taken(value, (MODEL, name))
        return self._kept(name, as_array(value, name, self._who), isinstance(value, np.ndarray))

    def _kept(self, name: str, array: Any, numpy: bool) -> Reference:
        free, count = name, 1
        while free in self.arrays:
            count += 1
            free = f"{name}~{count}"
        self.arrays[free] = array
        self._places.setdefault(_place(array), free)
        return Reference(free, numpy)

    def _taken(self, value: Any, path: tuple[Any, ...]) -> Any:
        if len(path) > DEPTH:
            raise CheckpointError(f"{self._who}: the state is nested more than {DEPTH} deep: {_named(path[:4])}/...")
        if isinstance(value, Tensor | np.ndarray):
            name = _named(path)
            array = as_array(value, name, self._who)
            there = self._places.get(_place(array)) if array.size else None
            if there is not None:
                return Reference(there, isinstance(value, np.ndarray))
            return self._kept(name, array, isinstance(value, np.ndarray))
        if isinstance(value, np.generic):
            return (
                value.item() if isinstance(value.item(), bool | int | float | complex | str | bytes) else float(value)
            )
        if isinstance(value, Mapping):
            return {key: self._taken(item, (*path, key)) for key, item in value.items()}
        if isinstance(value, tuple | list):
            items = [self._taken(item, (*path, k)) for k, item in enumerate(value)]
            return items if isinstance(value, list) else tuple(items)
        return value


def _place(array: Any) -> tuple[Any, ...]:
    return array.ctypes.data, array.shape, array.dtype


def _named(path: tuple[Any, ...]) -> str:
    return "/".join(str(key) for key in path)


class StatesTogether:
    """States put together again: references in a tree replaced by what they refer to, which is loaded once.

    `load` gives the tensor of a name. What a state had twice shares its memory again, however often it is referred to.
    """

    def __init__(self, load: Callable[[str], Tensor], refused: Callable[[str], CheckpointError]) -> None:
        self._load, self._refused = load, refused
        self._tensors: dict[str, Tensor] = {}
        self._arrays: dict[str, Any] = {}

    def put(self, tree: Any) -> Any:
        """A state as it was."""
        if isinstance(tree, Reference):
            return self._array(tree.name) if tree.array else bare(self._tensor(tree.name))
        if isinstance(tree, dict):
            return {key: self.put(item) for key, item in tree.items()}
        if isinstance(tree, tuple | list):
            items = [self.put(item) for item in tree]
            return items if isinstance(tree, list) else tuple(items)
        return tree

    def _tensor(self, name: str) -> Tensor:
        if name not in self._tensors:
            try:
                self._tensors[name] = self._load(name)
            except KeyError:
                raise self._refused(f"its metadata speak of a tensor {name!r} that it does not have") from None
        return self._tensors[name]

    def _array(self, name: str) -> Any:
        if name not in self._arrays:
            self._arrays[name] = np.array(self._tensor(name).numpy())
        return self._arrays[name]
