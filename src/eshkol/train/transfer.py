"""Models that were trained before: their weights loaded, some layers left as they are, another head trained.

Comes in: a model, or the name of one of the architectures that are here, and files of weights of any kind that
`ek.load` reads. Goes out: the model, changed in place. Nothing is downloaded.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from fnmatch import fnmatchcase
from importlib import import_module
from typing import Any

from eshkol import optim
from eshkol.errors import CheckpointError, TensorError
from eshkol.nn.module import Module
from eshkol.support import flags
from eshkol.support.warning import warn
from eshkol.tensors import api as ek
from eshkol.train.fitting import fit
from eshkol.train.history import History

ARCHITECTURES = {name: f"vision:{name}" for name in ("resnet18", "resnet20", "resnet34", "resnet50")}
ARCHITECTURES["alexnet"] = "vision:AlexNet"
"""The names of `load_pretrained`, and what makes such a model; parameters have the names that PyTorch's have."""

SUFFIXES = (".safetensors", ".eskpt", ".pt", ".pth", ".bin", ".npz")
PARTS = ("model", "state_dict", "model_state_dict")  # where files that hold more than a model have its state


# --- some layers ------------------------------------------------------------------------------------------------------


def layers_named(model: Module, names: Iterable[str]) -> list[Module]:
    """The layers of a model by their names, "encoder.0", or by patterns of them, "encoder.*"; each must be there."""
    known = {name: module for name, module in model.named_modules() if name}
    found: list[Module] = []
    for wanted in names:
        here = [module for name, module in known.items() if name == wanted or fnmatchcase(name, wanted)]
        if not here:
            raise TensorError(
                f"{type(model).__name__} has no layer '{wanted}'", span=ek.here(),
                hint=f"its layers are {', '.join(list(known)[:12])}{', …' if len(known) > 12 else ''}",
            )  # fmt: skip
        found += here
    return found


def freeze_layers(model: Module, names: str | Iterable[str], frozen: bool = True) -> Module:
    """Leave the parameters of some layers as they are from now on, or with frozen=False train them again.

    >>> ek.train.freeze_layers(model, ["conv1", "layer*"])
    """
    for layer in layers_named(model, [names] if isinstance(names, str) else names):
        layer.requires_grad_(not frozen)
    return model


# --- weights ----------------------------------------------------------------------------------------------------------


def load_pretrained(
    model: Module | str, weights: Any = True, *, strict: bool = True, root: Any = None, **sizes: Any
) -> Module:
    """A model with the weights of a file; of an architecture that is here, by its name.

    `weights` is a path or a state; True looks for NAME.safetensors and its like in the folder `root`, or in the one
    that ESHKOL_DATA names; False leaves the model as it is made. With strict=False, what one side lacks or has in
    another shape is told in a warning instead of an error.

    >>> model = ek.train.load_pretrained("resnet18", "resnet18.safetensors", num_classes=10, strict=False)
    """
    name = model if isinstance(model, str) else type(model).__name__
    make = _maker(model) if isinstance(model, str) else None  # it is not made before the file is found
    untrained = weights is False or weights is None
    state = {} if untrained else _state(_found(name, root) if weights is True else weights)
    made = make(**sizes) if make is not None else model
    assert isinstance(made, Module)
    if untrained:
        return made
    own = {key: value.shape for key, value in made.state_dict().items()}
    if not strict:  # a head of other sizes is among what does not fit
        misfits = {key for key, value in state.items() if key in own and tuple(value.shape) != tuple(own[key])}
        state = {key: value for key, value in state.items() if key not in misfits}
        report = made.load_state_dict(state, strict=False)
        lacking = [key for key in report.missing if key not in misfits]
        said = {"not in the file": lacking, "not in the model": report.unexpected, "of another shape": misfits}
        told = [f"{what}: {', '.join(sorted(names))}" for what, names in said.items() if names]
        if told:
            warn(f"load_pretrained: not all weights of {name} were loaded; {'; '.join(told)}")
        return made
    made.load_state_dict(state)
    return made


def _maker(name: str) -> Callable[..., Module]:
    if name not in ARCHITECTURES:
        raise TensorError(
            f"load_pretrained: there is no architecture '{name}' here", span=ek.here(),
            hint=f"there are {', '.join(ARCHITECTURES)}; a model that you make takes the weights of a file, too",
        )  # fmt: skip
    module, _, maker = ARCHITECTURES[name].partition(":")
    found: Callable[..., Module] = getattr(import_module(f"eshkol.nn.{module}"), maker)
    return found


def _found(name: str, root: Any) -> str:
    folder = os.fspath(root) if root is not None else flags.text("ESHKOL_DATA")
    there = [os.path.join(folder, f"{name}{suffix}") for suffix in SUFFIXES] if folder else []
    for path in there:
        if os.path.isfile(path):
            return path
    raise CheckpointError(
        f"load_pretrained: there is no file of weights for {name}{f' in {folder!r}' if folder else ''}", span=ek.here(),
        hint=f"nothing is downloaded: put {name}.safetensors there, or give its path" if folder
        else "give the path of a file, root=FOLDER, or set ESHKOL_DATA to the folder that it is in",
    )  # fmt: skip


def _state(given: Any) -> dict[str, Any]:
    """Tensors by name, of a state or of a file that holds one."""
    found = given if isinstance(given, Mapping) else _read(given)
    if isinstance(found, Mapping):
        found = next((found[part] for part in PARTS if isinstance(found.get(part), Mapping)), found)
    if not isinstance(found, Mapping) or not all(hasattr(value, "shape") for value in found.values()):
        raise CheckpointError(
            "load_pretrained: the weights are no tensors by name", span=ek.here(),
            hint="save them with ek.save(model.state_dict(), path)",
        )  # fmt: skip
    return dict(found)


def _read(path: Any) -> Any:
    from eshkol.io.checkpoint import load_checkpoint, load_tensors
    from eshkol.io.kinds import load_file

    if os.fspath(path).lower().endswith(".eskpt") and os.path.exists(path):
        return load_checkpoint(path).state("model") if "model" in load_checkpoint(path).parts else load_tensors(path)
    return load_file(path)


# --- another head -----------------------------------------------------------------------------------------------------


def fine_tune(
    model: Module,
    new_head: Module | None,
    batches: Any,
    *,
    head: str | None = None,
    epochs: int = 1,
    lr: float = 1e-3,
    backbone_lr: float = 0.0,
    loss: Callable[..., Any] | None = None,
    optimizer: Callable[..., Any] = optim.Adam,
    **how: Any,
) -> History:
    """Give a model another head, and train that; the rest stays as it is, or learns at the rate `backbone_lr`.

    The head is the last layer of the model unless `head` names another; with None for a new one, the one there is
    trained. The loss is cross entropy for targets that are integers, and the mean square error for others. `how` goes
    to `fit`. Statistics that norms of the model count go on.
    """
    last = [name for name, _ in model.named_children()][-1:]
    name = head if head is not None else last[0] if last else None
    if name is None:
        raise TensorError(f"{type(model).__name__} has no layers, and so no head", span=ek.here())
    (old,) = layers_named(model, [name])[:1]
    if new_head is not None and new_head is not old:
        path, _, attribute = name.rpartition(".")
        setattr(model.get_submodule(path) if path else model, attribute, new_head)
        old = new_head
    of_head = {id(p) for p in old.parameters()}
    rest = [p for p in model.parameters() if id(p) not in of_head]
    for p in rest:
        p.requires_grad_(backbone_lr > 0)
    old.requires_grad_(True)
    groups = [{"params": list(old.parameters()), "lr": lr}]
    if backbone_lr > 0 and rest:
        groups.append({"params": rest, "lr": backbone_lr})
    return fit(model, batches, loss=loss or _by_targets, optimizer=optimizer(groups, lr=lr), epochs=epochs, **how)


def _by_targets(predicted: Any, targets: Any) -> Any:
    return (ek.mse_loss if targets.dtype.is_float else ek.cross_entropy)(predicted, targets)
