"""Compiled steps and evaluations that are kept with the objects they are about, so that each is traced once."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from eshkol.optim.base import Optimizer
from eshkol.train.applying import Loss
from eshkol.train.step import Evaluation, Step

MOST = 8  # of one object: a loss that is made anew for each step must not fill the memory
_PLACE = "_compiled_for_training"


class KeptWithObject(OrderedDict[Any, Any]):
    """What is kept with an object; a copy of the object begins without it."""

    def __deepcopy__(self, memo: Any) -> KeptWithObject:
        return KeptWithObject()

    def __copy__(self) -> KeptWithObject:
        return KeptWithObject()

    def __reduce__(self) -> Any:
        return KeptWithObject, ()


def _kept(owner: Any, key: Any, make: Callable[[], Any]) -> Any:
    place = getattr(owner, "__dict__", None)
    if not isinstance(place, dict):
        return make()
    held: KeptWithObject = place.setdefault(_PLACE, KeptWithObject())
    if key not in held:
        held[key] = make()
        if len(held) > MOST:
            held.popitem(last=False)
    held.move_to_end(key)
    return held[key]


def _identity(x: Any) -> Any:
    """What stands for an object in a key: itself (what is kept holds it anyhow), or its address."""
    try:
        hash(x)
    except TypeError:
        return id(x)
    return x


def step_for(model: Any, loss: Loss, optimizer: Optimizer, **how: Any) -> Step:
    """The step of a model, a loss and an optimizer: the same object each time."""
    key = (_identity(model), _identity(loss), *((name, _identity(how[name])) for name in sorted(how)))
    found: Step = _kept(optimizer, key, lambda: Step(model, loss, optimizer, **how))
    return found


def evaluation_for(model: Any, loss: Loss | None, **how: Any) -> Evaluation:
    """The evaluation of a model with a loss: the same object each time."""
    key = (_identity(loss), *sorted(how.items()))
    found: Evaluation = _kept(model, key, lambda: Evaluation(model, loss, **how))
    return found
