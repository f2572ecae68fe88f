"""Models made again of their recipes (recipes.py).

Comes in: a recipe, as a file held it, and the values of a state. Goes out: the model. Whatever stands in the recipe is
not trusted: it may name the classes of `LAYERS` and nothing else, and may take little more memory than the values that
belong to it; `Strange` says what is wrong with it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from eshkol.errors import EshkolError
from eshkol.nn.gpt import GPTConfig
from eshkol.nn.making import room
from eshkol.nn.module import Module, Parameter
from eshkol.nn.recipes import CLASS, CONFIG, DEEPEST, LAYERS, MODULE, PARAMETERS, PARTS, TABLES, joined, tables_of
from eshkol.tensors import api as ek
from eshkol.tensors import keys
from eshkol.tensors.value import Tensor

WIDENED = 4  # times as large as what was saved: a model that was converted to float16 is made with more
MOST = 20_000  # modules that a recipe may name
MADE = 8  # modules and tensors that are made for each tensor of the state, and for each module that is named, at most


class Strange(Exception):
    """What is wrong with a recipe."""


def model_of(recipe: Any, state: Mapping[str, Tensor]) -> Module:
    """The model of a recipe with the values of its state; `Strange` where the recipe is none, or is not of that state.

    Everybody's random numbers stay where they are.
    """
    if not isinstance(recipe, Mapping) or not set(recipe) >= {"made", "frozen", "evaluating", "dtypes"}:
        raise Strange("it is no recipe")
    random = keys.default.state
    size = sum(tensor.nbytes for tensor in state.values())
    try:
        with room(WIDENED * size + TABLES, MADE * (len(state) + _named(recipe["made"]) + 1)):
            model = _RecipeReader(state).module(recipe["made"], "")
            _convert(model, state, recipe["dtypes"])
        model.load_state_dict(state)
        parts = dict(model.named_modules())
        for name in recipe["evaluating"]:
            object.__setattr__(parts[name], "training", False)
        tensors = dict(model.named_parameters())
        for name in recipe["frozen"]:
            tensors[name].requires_grad_(False)
    except Strange:
        raise
    except EshkolError as error:
        raise Strange(error.message) from None
    except Exception as error:  # of a constructor that was given what it is never given
        raise Strange(f"{type(error).__name__}: {error}") from None
    finally:
        keys.default.state = random
    return model


def _convert(model: Module, state: Mapping[str, Tensor], tables: Any) -> None:
    """Give floats the dtypes that they had when they were saved."""
    wanted = {name: value.dtype for name, value in state.items()}
    for name, tensor in [*model._state(), *tables_of(model)]:
        dtype = wanted[name] if name in wanted else getattr(ek, tables[name]) if name in tables else tensor.dtype
        if dtype is not tensor.dtype and tensor.dtype.is_float and dtype.is_float:
            trained = tensor.requires_grad
            tensor._become(ek.cast(tensor.detach(), dtype).realize()._node)
            tensor.requires_grad_(trained)


class _RecipeReader:
    """Follows the nodes of a recipe."""

    def __init__(self, state: Mapping[str, Tensor]) -> None:
        self.state = state
        self.modules: dict[str, Module] = {}

    def module(self, node: Any, path: str, depth: int = 0) -> Module:
        where = f"'{path}'" if path else "the model"
        if not isinstance(node, Mapping) or depth > DEEPEST:
            raise Strange(f"{where} is described as nothing that can be made")
        if "same" in node:
            if node["same"] not in self.modules:
                raise Strange(f"{where} is described as the same as what is not there")
            return self.modules[node["same"]]
        kind = self._class(node.get("class"), where)
        if kind._described_by == PARTS:
            self.modules[path] = made = kind()
            for name, part in _items(node.get("parts"), where):
                made.add_module(name, None if part is None else self.module(part, joined(path, name), depth + 1))
            return made
        found: Module
        if kind._described_by == PARAMETERS:
            found = kind()
            for name in _names(node.get("parameters"), where):
                found.register_parameter(name, Parameter(self.state[joined(path, name)]))
        else:
            args, given = node.get("args"), node.get("given")
            if not isinstance(args, list) or not isinstance(given, Mapping):
                raise Strange(f"{where} is described without its arguments")
            found = kind(*(self._value(x, where) for x in args), **{k: self._value(x, where) for k, x in given.items()})
        self.modules[path] = found
        return found

    def _class(self, name: Any, where: str) -> type[Module]:
        found = LAYERS.get(name) if isinstance(name, str) else None
        if found is None:
            raise Strange(f"{where} is said to be a {name!r:.60}, which is no layer that a file may name")
        return found

    def _value(self, value: Any, where: str) -> Any:
        """An argument."""
        if isinstance(value, tuple | list):
            items = [self._value(x, where) for x in value]
            return items if isinstance(value, list) else tuple(items)
        if not isinstance(value, Mapping):
            return value
        if set(value) == {CLASS}:
            return self._class(value[CLASS], where)
        if set(value) == {CONFIG} and isinstance(value[CONFIG], Mapping):
            return GPTConfig(**value[CONFIG])
        if set(value) == {MODULE} and isinstance(value[MODULE], Mapping):
            return _RecipeReader({}).module(value[MODULE].get("made"), "")
        raise Strange(f"{where} has an argument that is none")


def _named(node: Any) -> int:
    """How many modules a recipe names."""
    waiting, count = [node], 0
    while waiting:
        found = waiting.pop()
        if isinstance(found, Mapping):
            count += "class" in found
            waiting += found.values()
        elif isinstance(found, list | tuple):
            waiting += found
    if count > MOST:
        raise Strange(f"it names {count} modules, more than {MOST}")
    return count


def _names(given: Any, where: str) -> list[str]:
    if not isinstance(given, list) or not all(isinstance(name, str) for name in given):
        raise Strange(f"{where} is described without its parameters")
    return given


def _items(given: Any, where: str) -> list[tuple[str, Any]]:
    if not isinstance(given, Mapping) or not all(isinstance(name, str) for name in given):
        raise Strange(f"{where} is described without its parts")
    return list(given.items())
