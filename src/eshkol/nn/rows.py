"""Layers that are a row of the op table with its arguments fixed: activations, pooling, losses.

`layer_of("ReLU6", "relu6")` makes the class. It takes the arguments of the row after those that `forward` is given,
under PyTorch's names where they differ (`dim` for `axis`); tensors among them are buffers. What the row says of itself
is the layer's documentation.
"""

from __future__ import annotations

import inspect
from typing import Any, ClassVar

from eshkol.errors import TensorError
from eshkol.nn.module import Module
from eshkol.nn.precision import raised
from eshkol.tensors import api as ek
from eshkol.tensors.value import Tensor


class RowLayer(Module):
    """A row of the op table with its arguments fixed."""

    row: ClassVar[str]
    inputs: ClassVar[int] = 1  # arguments of the row that forward is given
    tensors: ClassVar[tuple[str, ...]] = ()  # arguments that are tensors: buffers
    arguments: ClassVar[inspect.Signature]  # of the layer
    names: ClassVar[dict[str, str]]  # the layer's name of an argument → the row's
    wide: ClassVar[bool] = False  # whether it is computed in 32 bits within autocast

    def __init__(self, *args: Any, **given: Any) -> None:
        super().__init__()
        try:
            bound = self.arguments.bind(*args, **given)
        except TypeError as error:
            name = type(self).__name__
            raise TensorError(
                f"{name}: {error}", span=ek.here(), hint=f"it is called as {name}{self.arguments}"
            ) from None
        bound.apply_defaults()
        for name in self.tensors:
            value = bound.arguments.pop(name)
            self.register_buffer(name, None if value is None else ek.asarray(value))
        self.given: dict[str, Any] = dict(bound.arguments)

    def _computed(self, *values: Any, **other: Any) -> Any:
        """What the row gives, with arguments other than the layer's where they are given."""
        named = self.given | {name: getattr(self, name) for name in self.tensors} | other
        values = raised(*values) if self.wide else values
        return getattr(ek, self.row)(*values, **{self.names.get(name, name): value for name, value in named.items()})

    def forward(self, x: Any) -> Any:
        if not isinstance(x, Tensor):
            raise TensorError(f"{type(self).__name__} takes a tensor, not a {type(x).__name__}", span=ek.here())
        return self._computed(x)

    def extra_repr(self) -> str:
        return ", ".join(f"{name}={value!r}" for name, value in self.given.items())


def layer_of(
    name: str, row: str, base: type[RowLayer] = RowLayer, *, rename: dict[str, str] | None = None,
    defaults: dict[str, Any] | None = None, **attributes: Any,
) -> Any:  # fmt: skip
    """The class of a row: its arguments are the row's after the inputs, with some other names and defaults."""
    renamed = {"axis": "dim"} | (rename or {})
    function = getattr(ek, row)
    count = attributes.get("inputs", base.inputs)
    parameters = list(inspect.signature(function).parameters.values())[count:]
    arguments = [
        p.replace(name=renamed.get(p.name, p.name), default=(defaults or {}).get(p.name, p.default)) for p in parameters
    ]
    names = {renamed[p.name]: p.name for p in parameters if p.name in renamed}
    frame = inspect.currentframe()
    asked = frame.f_back.f_globals["__name__"] if frame and frame.f_back else __name__  # where pickle finds the class
    signature = inspect.Signature(arguments)
    own = {"row": row, "arguments": signature, "__signature__": signature, "names": names, "__module__": asked}
    return type(name, (base,), own | {"__doc__": inspect.getdoc(function)} | attributes)
