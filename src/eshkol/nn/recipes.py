"""Recipes of models: how to make one again, as plain data that a file can hold.

Comes in: a model made of this package's layers, in containers of any depth. Goes out: its recipe, which is names of the
table below with the arguments of their constructors; nothing in a recipe is code, or is imported by its name. A model
with a class of its owner's, a function in it, or parts that were changed by hand has no recipe, and `NoRecipe` says
why. `model_of` follows a recipe: whatever it finds there is not trusted, and may take little more memory than the
values that belong to it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from eshkol import nn
from eshkol.errors import EshkolError
from eshkol.nn.making import CLASS, CONFIG, MODULE, NoRecipe, room, versions
from eshkol.nn.module import Module, Parameter
from eshkol.tensors import api as ek
from eshkol.tensors import keys
from eshkol.tensors.value import Tensor

MODULE_CONTAINERS = (nn.Sequential, nn.ModuleList, nn.ModuleDict)
PARAMETER_CONTAINERS = (nn.ParameterList, nn.ParameterDict)
WITHOUT = (Module, nn.Lambda, nn.WeightedLoss, nn.CombinedLoss)  # bases, and what holds functions
TABLE: Mapping[str, type[Module]] = {
    found.__name__: found
    for found in map(nn.__dict__.__getitem__, nn.__all__)
    if isinstance(found, type) and issubclass(found, Module) and not issubclass(found, nn.Loss) and found not in WITHOUT
}
"""The classes that a recipe may name: layers, containers and models of this package."""

TABLES = 1 << 26  # bytes of buffers that a layer computes itself, such as the encoding of positions
WIDENED = 4  # times as large as what was saved: a model that was converted to float16 is made with more
DEEPEST = 16  # containers in containers
MOST = 20_000  # modules that a recipe may name
PARTS = 8  # modules and tensors that are made for each tensor of the state, and for each module that is named, at most


class Strange(Exception):
    """What is wrong with a recipe."""


# --- models to recipes ------------------------------------------------------------------------------------------------


def recipe_of(model: Module) -> dict[str, Any]:
    """How to make a model again, but for the values of its state; `NoRecipe` where that cannot be said."""
    written = _Writer()
    made = written.node(model, "", 0)
    tables = dict(_tables(model))
    if sum(tensor.nbytes for tensor in tables.values()) > TABLES:
        raise NoRecipe(f"it has buffers of more than {TABLES} bytes that the state does not hold")
    return {
        "made": made,
        "frozen": [name for name, tensor in model.named_parameters() if not tensor.requires_grad],
        "evaluating": [name for name, part in model.named_modules() if not part.training],
        "dtypes": {path: tensor.dtype.name for path, tensor in tables.items()},
    }


def _tables(model: Module) -> Iterator[tuple[str, Tensor]]:
    """The buffers of floats that are not part of the state."""
    for path, part in model.named_modules():
        for name in sorted(part._temporary):
            tensor = part._buffers.get(name)
            if tensor is not None and tensor.dtype.is_float:
                yield _joined(path, name), tensor


def _joined(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


class _Writer:
    """Writes the nodes of a recipe; a module that has several places is written once."""

    def __init__(self) -> None:
        self.modules: dict[int, str] = {}
        self.tensors: dict[int, str] = {}

    def node(self, module: Module, path: str, depth: int) -> dict[str, Any]:
        what = f"'{path}'" if path else "it"
        kind = type(module)
        if id(module) in self.modules:
            return {"same": self.modules[id(module)]}
        if TABLE.get(kind.__name__) is not kind:
            raise NoRecipe(f"{what} is of class {kind.__name__}, which a file does not know how to make")
        if depth > DEEPEST:
            raise NoRecipe(f"{what} is nested more than {DEEPEST} deep")
        self.modules[id(module)] = path
        if isinstance(module, MODULE_CONTAINERS):
            self._alone(module, what, (module._parameters, module._buffers))
            parts = module._modules.items()
            return {
                "class": kind.__name__,
                "parts": {
                    name: None if part is None else self.node(part, _joined(path, name), depth + 1)
                    for name, part in parts
                },
            }
        self._owned(module, what)
        if isinstance(module, PARAMETER_CONTAINERS):
            self._alone(module, what, (module._modules, module._buffers))
            return {"class": kind.__name__, "parameters": [n for n, p in module._parameters.items() if p is not None]}
        making = module._making
        if making is None or making.unsaid is not None:
            raise NoRecipe(f"{what}, a {kind.__name__}, {'is not finished' if making is None else making.unsaid}")
        if versions(module) != making.versions:
            raise NoRecipe(f"{what}, a {kind.__name__}, was changed after it was made")
        if any(part._before or part._after or part._backward for part in module.modules()):
            raise NoRecipe(f"{what}, a {kind.__name__}, has hooks")
        return {"class": kind.__name__, "args": making.args, "given": making.given}

    def _alone(self, module: Module, what: str, others: tuple[Mapping[str, Any], ...]) -> None:
        """Refuse a container that was given what it does not hold by itself."""
        if any(others):
            raise NoRecipe(f"{what}, a {type(module).__name__}, was given tensors or parts of another kind")
        if module._before or module._after or module._backward:
            raise NoRecipe(f"{what}, a {type(module).__name__}, has hooks")

    def _owned(self, module: Module, what: str) -> None:
        """Refuse tensors that another module has too."""
        own = {id(tensor) for kind in ("_parameters", "_buffers") for _, tensor in module._named(kind)}
        for key in own:
            if key in self.tensors:
                raise NoRecipe(f"{what} and {self.tensors[key]} share a tensor")
            self.tensors[key] = what


# --- recipes to models ------------------------------------------------------------------------------------------------


def model_of(recipe: Any, state: Mapping[str, Tensor]) -> Module:
    """The model of a recipe with the values of its state; `Strange` where the recipe is none, or is not of that state.

    Everybody's random numbers stay where they are.
    """
    if not isinstance(recipe, Mapping) or not set(recipe) >= {"made", "frozen", "evaluating", "dtypes"}:
        raise Strange("it is no recipe")
    random = keys.default.state
    size = sum(tensor.nbytes for tensor in state.values())
    try:
        with room(WIDENED * size + TABLES, PARTS * (len(state) + _named(recipe["made"]) + 1)):
            model = _Reader(state).module(recipe["made"], "")
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
    for name, tensor in [*model._state(), *_tables(model)]:
        dtype = wanted[name] if name in wanted else getattr(ek, tables[name]) if name in tables else tensor.dtype
        if dtype is not tensor.dtype and tensor.dtype.is_float and dtype.is_float:
            trained = tensor.requires_grad
            tensor._become(ek.cast(tensor.detach(), dtype).realize()._node)
            tensor.requires_grad_(trained)


class _Reader:
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
        if issubclass(kind, MODULE_CONTAINERS):
            self.modules[path] = made = kind()
            for name, part in _items(node.get("parts"), where):
                made.add_module(name, None if part is None else self.module(part, _joined(path, name), depth + 1))
            return made
        found: Module
        if issubclass(kind, PARAMETER_CONTAINERS):
            found = kind()
            for name in _names(node.get("parameters"), where):
                found.register_parameter(name, Parameter(self.state[_joined(path, name)]))
        else:
            args, given = node.get("args"), node.get("given")
            if not isinstance(args, list) or not isinstance(given, Mapping):
                raise Strange(f"{where} is described without its arguments")
            found = kind(*(self._value(x, where) for x in args), **{k: self._value(x, where) for k, x in given.items()})
        self.modules[path] = found
        return found

    def _class(self, name: Any, where: str) -> type[Module]:
        found = TABLE.get(name) if isinstance(name, str) else None
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
            return nn.GPTConfig(**value[CONFIG])
        if set(value) == {MODULE} and isinstance(value[MODULE], Mapping):
            return _Reader({}).module(value[MODULE].get("made"), "")
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


__all__ = ["TABLE", "NoRecipe", "Strange", "model_of", "recipe_of"]
