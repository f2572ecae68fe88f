"""A model and its loss applied to a batch: what training, evaluating and the search for a wrong number have in common.

Comes in: a model (a module, or any function), a loss, and a batch. Goes out: what the model gives, and the loss as one
number. `HeldTensors` lists the tensors that belong to them; `evaluating` sets a model to evaluation mode for a while.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from eshkol.errors import ShapeError, TensorError
from eshkol.nn.module import Module
from eshkol.tensors import api as ek
from eshkol.tensors.autograd import no_grad
from eshkol.tensors.computing import realize
from eshkol.tensors.holding import bare, standing_for
from eshkol.tensors.value import Tensor

Loss = Callable[[Any, Any], Any]


class HeldTensors:
    """The tensors of a model and its loss, listed once for as long as no module changes."""

    def __init__(self, model: Any, loss: Any) -> None:
        self._roots = [x for x in (model, loss) if isinstance(x, Module)]
        self._seen = -1

    def _list(self) -> None:
        if self._seen == Module.changes:
            return
        self._seen = Module.changes
        self._modules = [m for root in self._roots for m in root.modules()]
        self._parameters = list({id(p): p for root in self._roots for p in root.parameters()}.values())
        self._buffers = list({id(b): b for root in self._roots for b in root.buffers()}.values())
        self._versions = tuple([m._traced_as() for m in self._modules])

    @property
    def parameters(self) -> list[Tensor]:
        self._list()
        return self._parameters

    @property
    def buffers(self) -> list[Tensor]:
        self._list()
        return self._buffers

    @property
    def kinds(self) -> tuple[Any, ...]:
        """What a trace belongs to: which modules are in training mode, their versions and hooks."""
        self._list()
        return (self._versions, *[m.training for m in self._modules])


def apply_model(model: Any, inputs: Any) -> Any:
    """What a model gives: several inputs are a tuple, inputs by name a dict."""
    if isinstance(inputs, tuple):
        return model(*inputs)
    return model(**inputs) if isinstance(inputs, dict) else model(inputs)


def loss_of(loss: Loss, outputs: Any, targets: Any) -> Tensor:
    """The loss of a batch, which must be one number; without targets, of the outputs alone."""
    found = loss(outputs, targets) if targets is not None else loss(outputs, None)
    if not isinstance(found, Tensor):
        raise TensorError(f"the loss gives a {type(found).__name__} instead of a tensor", span=ek.here())
    if found.shape != ():
        raise ShapeError(
            f"a step needs one number as its loss, and it has shape {list(found.shape)}", span=ek.here(),
            hint="use reduction='mean' or 'sum'",
        )  # fmt: skip
    return found


@contextmanager
def evaluating(model: Any) -> Iterator[None]:
    """Within it all of a model is in evaluation mode; afterwards each part as it was."""
    modules = list(model.modules()) if isinstance(model, Module) else []
    modes = [m.training for m in modules]
    try:
        if modules:
            model.eval()
        yield
    finally:
        for module, mode in zip(modules, modes, strict=True):
            module.training = mode


def evaluated(model: Any, inputs: Any) -> Any:
    """What a model gives in evaluation mode, operation by operation; its buffers stay as they are."""
    held = HeldTensors(model, None)
    tensors = [*held.parameters, *held.buffers]
    with no_grad(), evaluating(model):
        with standing_for(tensors, [bare(t) for t in tensors]):
            outputs = apply_model(model, inputs)
        realize(*(x for x in ek.tree_leaves(outputs) if isinstance(x, Tensor)))
    return outputs
