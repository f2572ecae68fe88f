"""What a checkpoint says of how its model and its optimizer are made, so that both can be had from the file alone.

Comes in: a model and an optimizer. Goes out: plain data for the metadata, under the key "architecture": the recipe of
the model (nn/recipes.py), and the optimizer's class with the names of the parameters in its groups; or, for a model
that only its owner can make, why that is so. Nothing of it is code, and what is read is not trusted.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from eshkol import optim
from eshkol.errors import CheckpointError
from eshkol.io.msgpack import pack
from eshkol.nn.module import Module
from eshkol.nn.recipes import NoRecipe, recipe_of
from eshkol.nn.remaking import Strange, model_of
from eshkol.optim.base import Optimizer
from eshkol.tensors.value import Tensor

ARCHITECTURE = "architecture"
OPTIMIZERS: Mapping[str, type[Optimizer]] = {
    found.__name__: found
    for found in map(vars(optim).__getitem__, optim.__all__)
    if isinstance(found, type) and issubclass(found, Optimizer) and found is not Optimizer
}
"""The classes of optimizers that a file may name."""


def architecture_of(model: Any, optimizer: Any = None) -> dict[str, Any]:
    """How a model and its optimizer are made, or why that is not known, as the metadata of a file has it."""
    if not isinstance(model, Module):
        return {}
    try:
        found: dict[str, Any] = {"model": recipe_of(model)}
        pack({ARCHITECTURE: found})
    except NoRecipe as reason:
        return {"unknown": {"model": str(reason)}}
    except CheckpointError as error:  # a model is saved even if nothing can say how it is made
        return {"unknown": {"model": error.message}}
    if isinstance(optimizer, Optimizer):
        try:
            found["optimizer"] = _optimizer_recipe(optimizer, model)
        except NoRecipe as reason:
            found["unknown"] = {"optimizer": str(reason)}
    return found


def _optimizer_recipe(optimizer: Optimizer, model: Module) -> dict[str, Any]:
    kind = type(optimizer)
    if OPTIMIZERS.get(kind.__name__) is not kind:
        raise NoRecipe(f"it is of class {kind.__name__}, which a file does not know how to make")
    names = {id(tensor): name for name, tensor in model.named_parameters()}
    if not all(id(tensor) in names for tensor in optimizer.tensors):
        raise NoRecipe("it has parameters that are not of the model")
    return {
        "class": kind.__name__,
        "defaults": dict(optimizer.defaults),
        "groups": [
            {"names": list(group["names"]), "parameters": [names[id(tensor)] for tensor in group["params"]]}
            for group in optimizer.param_groups
        ],
    }


def made_model(architecture: Any, state: Mapping[str, Tensor]) -> Module:
    """The model of a file, with its state; `NoRecipe` where the file does not say how it is made."""
    return model_of(_said(architecture, "model"), state)


def made_optimizer(architecture: Any, state: Mapping[str, Any], model: Module) -> Optimizer:
    """The optimizer of a file, with its state and the parameters of a model."""
    recipe = _said(architecture, "optimizer")
    tensors = dict(model.named_parameters())
    try:
        groups = [
            {"params": [(str(n), tensors[p]) for n, p in zip(group["names"], group["parameters"], strict=True)]}
            for group in recipe["groups"]
        ]
        made = OPTIMIZERS[recipe["class"]](groups, **recipe["defaults"])
        made.load_state_dict(state)
    except Exception as error:  # whatever a file may say that is not so
        raise Strange(getattr(error, "message", f"{type(error).__name__}: {error}")) from None
    return made


def _said(architecture: Any, part: str) -> Any:
    if not isinstance(architecture, Mapping):
        raise NoRecipe("nothing was written of that")
    if architecture.get(part) is not None:
        return architecture[part]
    unknown = architecture.get("unknown")
    reasons = unknown if isinstance(unknown, Mapping) else {}
    raise NoRecipe(str(reasons.get(part, reasons.get("model", "nothing was written of that"))))
