"""Models as Scheme makes and applies them: define-model, sequential, parameters, and models as pure functions.

Comes in: what `lib/eshkol/learning/models.esk` gives, converted. Goes out: modules of `eshkol.nn`, which are procedures
in Scheme, and their tensors. A model of Scheme is a module like all others, so Python trains, saves and prints it.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from eshkol import nn
from eshkol.bindings.layers import applied, called, in_words, is_module
from eshkol.bindings.rows import data, shown
from eshkol.bindings.spelling import python_name
from eshkol.bindings.values import Pair
from eshkol.errors import DTypeError, EshkolError, TensorError
from eshkol.tensors.value import Tensor


class Model(nn.Module):
    """A model that define-model has made: its parts are what the body defines, its forward the procedure at its end."""

    def __init__(self, names: list[str], parts: list[Any], forward: Any) -> None:
        super().__init__()
        object.__setattr__(self, "procedure", forward)
        for name, part in zip(names, parts, strict=True):
            self._take(name, part)
        if isinstance(forward, nn.Module) and not any(forward is m for m in self.children()):
            self.add_module("body", forward)

    def _take(self, name: str, part: Any) -> None:
        spelled = python_name(name)
        if spelled is None:
            spelled = name.replace(".", "_")
        if isinstance(part, nn.Module):
            self.add_module(spelled, part)
        elif isinstance(part, Tensor):
            if part.requires_grad and part.is_leaf:
                self.register_parameter(spelled, part)
            else:
                self.register_buffer(spelled, part)
        elif isinstance(part, list) and any(isinstance(x, nn.Module) for x in part):
            self.add_module(spelled, nn.ModuleList([x for x in part if isinstance(x, nn.Module)]))
        elif not hasattr(type(self), spelled):
            object.__setattr__(self, spelled, part)

    def __setattr__(self, name: str, value: Any) -> None:
        if name in self._modules or name in self._parameters:
            raise TensorError(
                f"'{name}' is defined in the body of {type(self).__name__}, whose procedures hold it",
                hint="give its parameters other values (load_state_dict), or make a model of Python around it",
            )
        super().__setattr__(name, value)

    def forward(self, *args: Any, **given: Any) -> Any:
        return self.procedure(*args, **given)

    def __reduce_ex__(self, protocol: Any) -> Any:
        name = type(self).__name__
        raise TensorError(
            f"{name} cannot be copied: its procedures are of Scheme, and would go on with the layers of the original",
            hint=f"make another with ({name} ...) and give it this one's state: load_state_dict",
        )


@lru_cache(256)
def _model_class(name: str, doc: str | None) -> type[Model]:
    return type(name, (Model,), {"__doc__": doc, "__module__": __name__})


def define(name: Any, doc: Any, names: list[Any], parts: list[Any], forward: Any) -> Model:
    """What the constructor that define-model defines gives."""
    if not callable(forward):
        raise DTypeError(
            f"the body of the model {name} ends in {shown(forward)}, and not in a procedure",
            hint="its last expression is what the model computes: (lambda (x) ...)",
        )
    return _model_class(str(name), str(doc) if doc else None)([str(n) for n in names], parts, forward)


def sequential(*layers: Any) -> Any:
    """Layers one after the other; a procedure may stand for a layer, and pairs of a name and a layer name them."""
    if len(layers) == 1 and isinstance(layers[0], list):
        layers = tuple(layers[0])
    made: dict[str, nn.Module] = {}
    for place, layer in enumerate(layers):
        name = str(place)
        if isinstance(layer, list) and len(layer) == 2 and isinstance(layer[0], str):
            name, layer = python_name(layer[0]) or layer[0], layer[1]
        elif isinstance(layer, Pair) and isinstance(layer.car, str):
            name, layer = python_name(layer.car) or layer.car, layer.cdr
        if not callable(layer):
            raise DTypeError(
                f"part {place + 1} is {shown(layer)}, and neither a layer nor a procedure",
                hint="(sequential (linear 784 256) (relu) (linear 256 10))",
            )
        made[name] = layer if isinstance(layer, nn.Module) else nn.Lambda(layer)
    try:
        return nn.Sequential(made)
    except EshkolError as error:
        raise in_words(error) from None


# ---- applying --------------------------------------------------------------------------------------------------------


def forward(model: Any, *args: Any, **given: Any) -> Any:
    """What a model, or a layer, gives for an input; it may stand first, or after the input."""
    return applied(*layer_first(model, *args), **given)


def layer_first(*args: Any) -> tuple[Any, ...]:
    """The arguments with the layer in front: `(-> x (linear-forward layer))` has it after the input."""
    if args and is_module(args[0]):
        return args
    for place, given in enumerate(args):
        if is_module(given):
            return (given, *args[:place], *args[place + 1 :])
    if args and callable(args[0]):
        return args
    raise DTypeError(
        f"a layer is wanted, and none of {' '.join(map(shown, args)) or 'no arguments'} is one",
        hint="(linear 784 256) makes one",
    )


# ---- parameters ------------------------------------------------------------------------------------------------------


def wanted(given: Any, position: int = 1) -> nn.Module:
    """The module that an argument must be."""
    if isinstance(given, nn.Module):
        return given
    hint = "a procedure has no parameters of its own; define-model and sequential make models"
    raise DTypeError(
        f"a model or a layer is wanted as argument {position}, not {shown(given)}",
        hint=hint if callable(given) else None,
    )


def parameters(model: Any) -> list[Tensor]:
    """The parameters of a model, a list of tensors; training changes them in place."""
    return list(wanted(model).parameters())


def named_parameters(model: Any) -> list[Pair]:
    """The parameters of a model, a list of pairs of a name and a tensor."""
    return [Pair(name, tensor) for name, tensor in wanted(model).named_parameters()]


def parameter(value: Any) -> Tensor:
    """A tensor that a model trains."""
    return nn.Parameter(data(value) if isinstance(value, list) else value)


def state(model: Any) -> dict[str, Tensor]:
    """The values of all parameters and buffers, a hash table."""
    return wanted(model).state_dict()


def load_state(model: Any, values: Any, *, strict: Any = True) -> None:
    """Give parameters and buffers the values of a hash table, or of a list of pairs."""
    called(wanted(model).load_state_dict, (_by_name(values),), {"strict": strict is not False})


def mode(model: Any, training: Any = True) -> Any:
    """Set a model to training, or with #f to evaluation; gives the model."""
    return wanted(model).train(training is not False)


def evaluation(model: Any) -> Any:
    """Set a model to evaluation; gives the model."""
    return wanted(model).eval()


def freeze(model: Any) -> Any:
    """Leave the parameters of a model as they are from now on; gives the model."""
    return wanted(model).freeze()


def unfreeze(model: Any) -> Any:
    """Train the parameters of a model again; gives the model."""
    return wanted(model).unfreeze()


def count(model: Any) -> int:
    """How many numbers a model trains."""
    return sum(tensor.size for tensor in wanted(model).parameters() if tensor.requires_grad)


class SummaryTable:
    """A summary in Scheme: display shows it, and called it gives its rows."""

    def __init__(self, found: Any) -> None:
        self.summary = found

    def scheme_text(self) -> str:
        return str(self.summary)

    __repr__ = scheme_text

    def __call__(self) -> list[list[Any]]:
        """A list (name kind output-shape parameters flops) for each layer."""
        return [
            [row.name, row.kind, list(row.output_shapes[-1]) if row.output_shapes else False, row.parameters, row.flops]
            for row in self.summary.rows
        ]


def summary(model: Any, *inputs: Any, dtype: Any = None) -> Any:
    """A table of a model's layers; an input is given by its shape, the batch included, or by an example."""
    module = wanted(model)
    shapes = [tuple(x) if isinstance(x, list) and all(type(n) is int for n in x) else x for x in inputs]
    if not shapes:
        raise TensorError("the shape of the input is missing", hint="(model-summary model '(1 3 32 32))")
    try:
        return SummaryTable(module.summary(*shapes, dtype=None if dtype is None or dtype is False else str(dtype)))
    except EshkolError as error:
        raise in_words(error) from None


def functional_call(model: Any, params: Any, *args: Any, rng: Any = None, key: Any = None) -> Any:
    """What a model gives with these parameters in place of its own."""
    module = wanted(model)
    values = _by_name(params) if not _is_plain_list(params) else _in_order(module, params)
    inputs = tuple(data(x) if isinstance(x, list) else x for x in args)
    try:
        return nn.functional_call(module, values, *inputs, rng=key if rng is None else rng)
    except EshkolError as error:
        raise in_words(error) from None


def _is_plain_list(given: Any) -> bool:
    return isinstance(given, list) and not any(isinstance(x, Pair) or _is_named(x) for x in given)


def _is_named(given: Any) -> bool:
    return isinstance(given, list) and len(given) == 2 and isinstance(given[0], str)


def _in_order(model: nn.Module, params: list[Any]) -> dict[str, Any]:
    names = [name for name, _ in model.named_parameters()]
    if len(names) != len(params):
        raise TensorError(
            f"{type(model).__name__} has {len(names)} parameters, and {len(params)} were given",
            hint="their order is that of (model-parameters model)",
        )
    return dict(zip(names, params, strict=True))


def _by_name(given: Any) -> dict[str, Any]:
    if isinstance(given, Mapping):
        return {str(name): value for name, value in given.items()}
    if isinstance(given, list) and all(isinstance(x, Pair) or _is_named(x) for x in given):
        return {str(pair.car): pair.cdr for pair in map(_as_pair, given)}
    raise DTypeError(
        f"parameters are a list of tensors, a list of pairs of a name and a tensor, or a hash table, not {shown(given)}"
    )


def _as_pair(given: Any) -> Pair:
    return given if isinstance(given, Pair) else Pair(given[0], given[1])
