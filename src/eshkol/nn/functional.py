"""Models as pure functions: of their parameters and buffers, without hidden state.

The module is also PyTorch's F: `F.relu(x)` finds the rows of the op table, and what torch_functional.py has besides.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import nullcontext
from typing import Any

from eshkol.errors import TensorError
from eshkol.nn.module_like import ModuleLike, State
from eshkol.nn.precision import current
from eshkol.nn.torch_functional import OWN, RENAMED
from eshkol.tensors import api as ek
from eshkol.tensors.drawing import drawing_with
from eshkol.tensors.holding import bare, fits, put, standing_for
from eshkol.tensors.jit import Traced, jit
from eshkol.tensors.sizes import no_attribute
from eshkol.tensors.tape import GradMode
from eshkol.tensors.value import Tensor


def parameters_of(model: ModuleLike) -> State:
    """The parameters that are trained, by name, as plain values: what `ek.grad` may differentiate with respect to."""
    return {name: bare(tensor) for name, tensor in model.named_parameters() if tensor.requires_grad}


def functional_call(
    model: ModuleLike, state: Mapping[str, Any], *args: Any, rng: Any = None, with_buffers: bool = False, **given: Any
) -> Any:
    """What the model gives with these parameters and buffers in place of its own, which stay as they are.

    Names that `state` lacks keep the model's own values. Layers that draw (dropout) draw with keys made of `rng`. With
    `with_buffers` the result is a pair: what the model gives, and all buffers as the call leaves them.

    >>> ek.grad(lambda p: ek.mse_loss(ek.functional_call(model, p, x), y))(nn.parameters_of(model))
    """
    if not isinstance(state, Mapping):
        raise TensorError(
            f"functional_call takes values by name, a dict, and was given {type(state).__name__}", span=ek.here(),
            hint="nn.parameters_of(model) and model.state_dict() give such a dict",
        )  # fmt: skip
    own = dict(model._named("_parameters")) | dict(model._named("_buffers"))
    shared = dict(model._state())  # names that tensors have besides
    tensors: list[Tensor] = []
    values: list[Tensor] = []
    for name, given_value in state.items():
        tensor = own.get(name, shared.get(name))
        if tensor is None:
            raise TensorError(f"{type(model).__name__} has no parameter or buffer '{name}'", span=ek.here())
        value = given_value if isinstance(given_value, Tensor) else ek.asarray(given_value)
        if value.shape != tensor.shape:
            fits(name, value, tensor)
        tensors.append(tensor)
        values.append(value)
    with standing_for(tensors, values), drawing_with(ek.asarray(rng)) if rng is not None else nullcontext():
        buffers = dict(model.named_buffers())
        with standing_for(list(buffers.values()), list(buffers.values())):
            result = model(*args, **given)
            after = {name: Tensor(tensor._node) for name, tensor in buffers.items()}
    return (result, after) if with_buffers else result


def __getattr__(name: str) -> Any:
    """PyTorch's functions of the same name: those of torch_functional.py, then the rows."""
    if name in OWN:
        return OWN[name]
    stem = name.removesuffix("_")
    row = RENAMED[stem] + name[len(stem) :] if stem in RENAMED else name  # hardtanh_ changes its argument
    if row.startswith("_") or not hasattr(ek, row):
        raise no_attribute(name, dict.fromkeys((*OWN, *RENAMED)), "eshkol.nn.functional")
    return getattr(ek, row)


def __dir__() -> list[str]:
    return sorted({*globals(), *OWN, *RENAMED})


class CompiledModel:
    """A model that is traced once for each kind of input and then run as a plan: what `ek.jit(model)` gives.

    Parameters and buffers are inputs of the plan, so training and loading are seen, and buffers that change in training
    mode are the model's. Where derivatives are remembered for `backward` the traced graph is used instead of the plan:
    evaluate under `ek.no_grad()`.
    """

    def __init__(self, model: ModuleLike, **how: Any) -> None:
        self.model = model
        self._run = jit(self._call, **{"name": type(model).__name__} | how)

    @property
    def function(self) -> ModuleLike:
        """What is compiled, as `jit` calls it."""
        return self.model

    def __repr__(self) -> str:
        return f"<jit of {type(self.model).__name__}>"

    def _call(
        self, kinds: tuple[Any, ...], precision: Any, state: State, args: tuple[Any, ...], given: dict[str, Any]
    ) -> Any:
        result, buffers = functional_call(self.model, state, *args, with_buffers=True, **given)
        return result, buffers if any(training for training, *_ in kinds) else {}

    def __call__(self, *args: Any, **given: Any) -> Any:
        buffers = dict(self.model.named_buffers())
        result, after = self._run(*self._given(buffers), args, given)
        for name, value in after.items():
            put(buffers[name], value, name)
        return result

    def traced(self, *args: Any, **given: Any) -> Traced:
        """The trace that a call with such arguments runs."""
        found: Traced = self._run.traced(*self._given(dict(self.model.named_buffers())), args, given)
        return found

    def _given(self, buffers: State) -> tuple[Any, ...]:
        """What a trace depends on beside the arguments."""
        state = dict(self.model.named_parameters())
        if not GradMode.enabled:
            state = {name: bare(tensor) for name, tensor in state.items()}
        kinds = tuple((module.training, *module._traced_as()) for module in self.model.modules())
        return kinds, current(), state | buffers
