"""Recipes of models: how to make one again, as plain data that a file can hold.

Comes in: a model made of this package's layers, in containers of any depth. Goes out: its recipe, which is names of
`LAYERS` with the arguments of their constructors; nothing in a recipe is code, or is imported by its name. A model with
a class of its owner's, a function in it, or parts that were changed by hand has no recipe, and `NoRecipe` says why.
remaking.py follows recipes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from eshkol.nn.module_like import ModuleLike
from eshkol.tensors.value import Tensor

LAYERS: dict[str, type[Any]] = {}
"""The classes that a recipe may name: layers, containers and models of this package, which fills it in."""

CLASS, CONFIG, MODULE = "class", "config", "module"  # keys of arguments that are no plain values
ARGUMENTS, PARTS, PARAMETERS = "arguments", "parts", "parameters"  # what a module of a class is described by
TABLES = 1 << 26  # bytes of buffers that a layer computes itself, such as the encoding of positions
DEEPEST = 16  # containers in containers


class NoRecipe(Exception):
    """Why nothing but its owner can make a model."""


@dataclass(frozen=True)
class Making:
    """What a module was made with, and the versions of itself and its parts when it was done."""

    args: list[Any]
    given: dict[str, Any]
    versions: tuple[int, ...]
    unsaid: str | None = None  # why the arguments are not known


def versions(module: ModuleLike) -> tuple[int, ...]:
    """The versions of a module and all its parts: others when something of it was changed."""
    return tuple(part._version for part in module.modules())


def recipe_of(model: ModuleLike) -> dict[str, Any]:
    """How to make a model again, but for the values of its state; `NoRecipe` where that cannot be said."""
    written = _RecipeWriter()
    made = written.node(model, "", 0)
    tables = dict(tables_of(model))
    if sum(tensor.nbytes for tensor in tables.values()) > TABLES:
        raise NoRecipe(f"it has buffers of more than {TABLES} bytes that the state does not hold")
    return {
        "made": made,
        "frozen": [name for name, tensor in model.named_parameters() if not tensor.requires_grad],
        "evaluating": [name for name, part in model.named_modules() if not part.training],
        "dtypes": {path: tensor.dtype.name for path, tensor in tables.items()},
    }


def tables_of(model: ModuleLike) -> Iterator[tuple[str, Tensor]]:
    """The buffers of floats that are not part of the state."""
    for path, part in model.named_modules():
        for name in sorted(part._temporary):
            tensor = part._buffers.get(name)
            if tensor is not None and tensor.dtype.is_float:
                yield joined(path, name), tensor


def joined(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


class _RecipeWriter:
    """Writes the nodes of a recipe; a module that has several places is written once."""

    def __init__(self) -> None:
        self.modules: dict[int, str] = {}
        self.tensors: dict[int, str] = {}

    def node(self, module: ModuleLike, path: str, depth: int) -> dict[str, Any]:
        what = f"'{path}'" if path else "it"
        kind = type(module)
        if id(module) in self.modules:
            return {"same": self.modules[id(module)]}
        if LAYERS.get(kind.__name__) is not kind:
            raise NoRecipe(f"{what} is of class {kind.__name__}, which a file does not know how to make")
        if depth > DEEPEST:
            raise NoRecipe(f"{what} is nested more than {DEEPEST} deep")
        self.modules[id(module)] = path
        if module._described_by == PARTS:
            self._alone(module, what, (module._parameters, module._buffers))
            parts = module._modules.items()
            return {
                "class": kind.__name__,
                "parts": {
                    name: None if part is None else self.node(part, joined(path, name), depth + 1)
                    for name, part in parts
                },
            }
        self._owned(module, what)
        if module._described_by == PARAMETERS:
            self._alone(module, what, (module._modules, module._buffers))
            return {"class": kind.__name__, "parameters": [n for n, p in module._parameters.items() if p is not None]}
        making: Making | None = module._making
        if making is None or making.unsaid is not None:
            raise NoRecipe(f"{what}, a {kind.__name__}, {'is not finished' if making is None else making.unsaid}")
        if versions(module) != making.versions:
            raise NoRecipe(f"{what}, a {kind.__name__}, was changed after it was made")
        if any(part._before or part._after or part._backward for part in module.modules()):
            raise NoRecipe(f"{what}, a {kind.__name__}, has hooks")
        return {"class": kind.__name__, "args": making.args, "given": making.given}

    def _alone(self, module: ModuleLike, what: str, others: tuple[Mapping[str, Any], ...]) -> None:
        """Refuse a container that was given what it does not hold by itself."""
        if any(others):
            raise NoRecipe(f"{what}, a {type(module).__name__}, was given tensors or parts of another kind")
        if module._before or module._after or module._backward:
            raise NoRecipe(f"{what}, a {type(module).__name__}, has hooks")

    def _owned(self, module: ModuleLike, what: str) -> None:
        """Refuse tensors that another module has too."""
        own = {id(tensor) for kind in ("_parameters", "_buffers") for _, tensor in module._named(kind)}
        for key in own:
            if key in self.tensors:
                raise NoRecipe(f"{what} and {self.tensors[key]} share a tensor")
            self.tensors[key] = what
