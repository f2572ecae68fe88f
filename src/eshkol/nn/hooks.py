"""Functions that are called when a module is: before, after, and with the gradient of what it gave."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import count
from typing import Any, ClassVar

from eshkol.errors import ShapeError
from eshkol.tensors import api as ek
from eshkol.tensors.value import Tensor

Hook = Callable[..., Any]


class HookHandle:
    """A hook that was registered; `remove()` takes it away."""

    _numbers: ClassVar[Iterator[int]] = count()

    def __init__(self, hooks: dict[int, Hook], hook: Hook, changed: Callable[[], None]) -> None:
        self._hooks, self._number, self._changed = hooks, next(self._numbers), changed
        hooks[self._number] = hook
        changed()

    def remove(self) -> None:
        """Take the hook away."""
        if self._hooks.pop(self._number, None) is not None:
            self._changed()


def watched(module: Any, result: Any, hooks: Sequence[Hook]) -> Any:
    """What a module gave, such that hooks are called with its gradient on the way back."""
    leaves, tree = ek.tree_flatten(result)
    places = [k for k, x in enumerate(leaves) if isinstance(x, Tensor) and x.dtype.differentiable]

    def back(_: Any, cotangents: tuple[Any, ...]) -> tuple[Any, ...]:
        given = list(leaves)  # what has no gradient stands there as it is
        for place, cotangent in zip(places, cotangents, strict=True):
            given[place] = _known(cotangent)
        gradient = tree.build(iter(given))
        for hook in hooks:
            changed = hook(module, gradient)
            gradient = gradient if changed is None else changed
        found, _ = ek.tree_flatten(gradient)
        for place in places:
            if getattr(found[place], "shape", None) != leaves[place].shape:
                raise ShapeError(
                    f"a backward hook of {type(module).__name__} gave shape "
                    f"{list(getattr(found[place], 'shape', ()))} for the gradient of {list(leaves[place].shape)}",
                    span=ek.here(),
                )
        return tuple(found[place] for place in places)

    passed = ek.custom_vjp(lambda *values: values)
    passed.defvjp(lambda *values: (values, ()), back)
    through = iter(passed(*(leaves[place] for place in places)))
    return tree.build(next(through) if k in places else x for k, x in enumerate(leaves))


def _known(gradient: Tensor) -> Tensor:
    """A gradient of `backward`, which forgets how it came about, so that hooks may look at its numbers."""
    others = [s for s in gradient._node.scopes if s.open and s.kind == "grad"]
    return gradient if others or not gradient.requires_grad else gradient.detach()
