"""Models that were trained before, and drawings of models, as Scheme calls them; the work is that of `eshkol.train`.

Comes in: models, names of layers as strings or symbols, batches as `learning.py` takes them. Goes out: the model, or
the text of a drawing, which Scheme displays; with :file it is written to that file instead, and there is no text.
"""

from __future__ import annotations

from typing import Any

from eshkol.bindings.layers import called, in_words
from eshkol.bindings.learning import _criterion, walked
from eshkol.bindings.models import _by_name, wanted
from eshkol.bindings.rows import data, shown
from eshkol.bindings.values import Pair
from eshkol.errors import DTypeError, EshkolError
from eshkol.train import transfer, visualize

FITTING = ("callbacks", "metrics")


def _names(given: Any) -> list[str]:
    if isinstance(given, str):
        return [str(given)]
    if isinstance(given, list) and all(isinstance(name, str) for name in given):
        return [str(name) for name in given]
    raise DTypeError(f"names of layers are a list of strings or symbols, not {shown(given)}", hint='\'("conv1" "fc.*")')


def freeze_layers(model: Any, names: Any, frozen: Any = True) -> Any:
    """Leave some layers as they are from now on."""
    return called(transfer.freeze_layers, (wanted(model), _names(names), frozen is not False), {})


def load_pretrained(model: Any, weights: Any = True, *, strict: Any = True, **how: Any) -> Any:
    """A model with the weights of a file."""
    state = _by_name(weights) if isinstance(weights, dict | Pair | list) else weights
    which = str(model) if isinstance(model, str) else wanted(model)
    return called(transfer.load_pretrained, (which, state), {"strict": strict is not False, **how})


def fine_tune(model: Any, head: Any, batches: Any, **how: Any) -> Any:
    """Another head for a model, trained; gives the model."""
    module = wanted(model)
    if "criterion" in how:
        how["loss"] = _criterion(how.pop("criterion"))
    for name in FITTING:
        if name in how:
            how[name] = tuple(how[name] or ())
    if how.get("validation") is not None:
        how["validation"] = walked(how["validation"])
    new = None if head is False else wanted(head, 2)
    called(transfer.fine_tune, (module, new, walked(batches)), how)
    return module


# ---- drawings --------------------------------------------------------------------------------------------------------


def _input(given: Any) -> Any:
    """A shape, as a list of integers, or an example."""
    if isinstance(given, list):
        return tuple(given) if all(type(n) is int for n in given) else data(given)
    return given


def _drawn(drawing: Any, file: Any) -> str:
    try:
        made = drawing()
        if file is None or file is False:
            return f"{made}\n"
        made.save(str(file))
        return ""
    except EshkolError as error:
        raise in_words(error) from None


def architecture(model: Any, *inputs: Any, file: Any = None) -> str:
    """The layers of a model as a tree."""
    module = wanted(model)
    return _drawn(lambda: visualize.architecture(module, *map(_input, inputs)), file)


def gradients(model: Any, *, file: Any = None) -> str:
    """The gradients of a model as bars."""
    module = wanted(model)
    return _drawn(lambda: visualize.gradients(module), file)


def activations(model: Any, *inputs: Any, file: Any = None) -> str:
    """What the layers of a model give, as histograms."""
    module = wanted(model)
    given = [data(x) if isinstance(x, list) else x for x in inputs]
    return _drawn(lambda: visualize.activations(module, *given), file)
