"""Where a number that is none began: the first layer, parameter or gradient that is not finite.

Comes in: a model, its loss and the batch of a step that failed; the batch is computed again, operation by operation.
Goes out: a sentence for a person.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from eshkol.errors import EshkolError, IndexOutOfRange
from eshkol.nn.functional import functional_call, parameters_of
from eshkol.nn.module import Module
from eshkol.tensors import api as ek
from eshkol.tensors.autograd import no_grad
from eshkol.tensors.holding import bare
from eshkol.tensors.value import Tensor
from eshkol.train.applying import apply_model, evaluated, loss_of

IGNORED = -100  # the target that cross entropy leaves out where no one says which


def wrong(value: Any) -> str | None:
    """What is not finite in a structure of tensors: "nan" or "infinity"."""
    for x in ek.tree_leaves(value):
        if isinstance(x, Tensor) and x.dtype.differentiable:
            plain = bare(x)
            if bool(ek.any(ek.isnan(plain))):
                return "nan"
            if not bool(ek.all(ek.isfinite(plain))):
                return "infinity"
    return None


def blame(model: Any, loss: Callable[[Any, Any], Any], inputs: Any, targets: Any) -> str:
    """What the first thing was that is not finite."""
    for what, value in (("the inputs of the batch hold", inputs), ("the targets of the batch hold", targets)):
        if (found := wrong(value)) is not None:
            return f"{what} {found}"
    named = list(model.named_modules()) if isinstance(model, Module) else []
    for name, parameter in model.named_parameters() if isinstance(model, Module) else ():
        if (found := wrong(parameter)) is not None:
            return f"parameter '{name}' holds {found} before the step"
    first: list[str] = []

    def look(name: str) -> Callable[..., None]:
        def hook(module: Module, args: Any, result: Any) -> None:
            if not first and (found := wrong(result)) is not None:
                place = f"layer '{name}' ({type(module).__name__})" if name else f"the model {type(module).__name__}"
                given = wrong(args)  # computed between layers: this one is merely the first to see it
                first.append(f"{place} is given {given}" if given is not None else f"{place} gives {found}")

        return hook

    handles = [module.register_forward_hook(look(name)) for name, module in named]
    buffers = [(b, b._node) for _, b in model.named_buffers()] if isinstance(model, Module) else []
    try:
        with no_grad():
            outputs = apply_model(model, inputs)
            if first:
                return first[0]
            if (found := wrong(outputs)) is not None:
                return f"the model gives {found}"
            try:
                value = loss_of(loss, outputs, targets)
            except EshkolError as error:  # numbers that it looks at only where they are known, as here
                return f"{error.message}; {error.hint}" if error.hint else error.message
            if (found := wrong(value)) is not None:
                return f"the loss gives {found} from outputs that are finite"
    finally:
        for handle in handles:
            handle.remove()
        for buffer, node in buffers:
            buffer._become(node)
    return _gradients(model, loss, inputs, targets)


def _gradients(model: Any, loss: Callable[[Any, Any], Any], inputs: Any, targets: Any) -> str:
    """The last parameter, in the order of the model, whose gradient is not finite: the way back meets it first."""
    if isinstance(model, Module):

        def objective(params: Any) -> Tensor:
            class Standing:
                def __call__(self, *args: Any, **given: Any) -> Any:
                    return functional_call(model, params, *args, **given)

            return loss_of(loss, apply_model(Standing(), inputs), targets)

        params = parameters_of(model)
        gradients = ek.grad(objective)(params)
        for name in reversed(params):
            if (found := wrong(gradients[name])) is not None:
                return f"the gradient of '{name}' holds {found}"
    return "a gradient is not finite"


def refuse_targets(model: Any, loss: Any, inputs: Any, targets: Any) -> None:
    """Raise an error that says which target is no class of the model, where that is what is wrong with a batch."""
    if not isinstance(targets, Tensor) or not targets.dtype.is_integer:
        return
    try:
        outputs = evaluated(model, inputs)
    except EshkolError:  # an input is out of range: the model's own error says so
        return
    if not isinstance(outputs, Tensor) or outputs.ndim != targets.ndim + 1:
        return
    classes = outputs.shape[min(1, outputs.ndim - 1)]
    values = targets.numpy()
    ignored = getattr(loss, "given", {}).get("ignore_index", IGNORED)
    bad = np.argwhere(((values < 0) | (values >= classes)) & (values != ignored))
    if not len(bad):
        return
    place = bad[0].tolist()
    raise IndexOutOfRange(
        f"target {place[0] if len(place) == 1 else place} is class {int(values[tuple(place)])}, "
        f"and the model has {classes} classes: 0 to {classes - 1}",
        span=ek.here(), hint="give the model as many outputs as there are classes; classes count from 0",
    ) from None  # fmt: skip
