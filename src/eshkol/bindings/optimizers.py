"""Optimizer objects as Scheme has them, their schedules, and what is done to gradients.

Comes in: what `lib/eshkol/learning/optimizers.esk` gives, converted. Goes out: objects of `eshkol.optim`, tensors, and
numbers.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

from eshkol import nn, optim
from eshkol.bindings.layers import called, in_words, is_module
from eshkol.bindings.leaves import as_leaf, as_number
from eshkol.bindings.rows import schemed, shown
from eshkol.bindings.values import Pair
from eshkol.errors import DTypeError, EshkolError, ShapeError, TensorError
from eshkol.tensors import api as ek
from eshkol.tensors import pytree
from eshkol.tensors.holding import bare
from eshkol.tensors.value import Tensor


def optimizer(name: str) -> Callable[..., Any]:
    """The procedure that makes optimizers of a class of `eshkol.optim`."""

    def make(params: Any, *numbers: Any, **given: Any) -> Any:
        if "beta1" in given or "beta2" in given:
            given["betas"] = (given.pop("beta1", 0.9), given.pop("beta2", 0.999))
        options = {key: _option(value) for key, value in given.items()}
        try:
            return getattr(optim, name)(_parameters(params), *map(_option, numbers), **options)
        except EshkolError as error:
            raise schemed(error) from None

    make.__name__ = make.__qualname__ = f"optimizer-{name.lower()}"
    return make


def _option(value: Any) -> Any:
    if isinstance(value, list):
        return tuple(map(_option, value))
    return float(value) if type(value) in (int, Fraction) else value


def _parameters(given: Any) -> list[Any]:
    """What an optimizer is given: a model, a tensor, or a list of tensors, of pairs of names and tensors, of groups."""
    if is_module(given):
        return list(given.named_parameters())
    if isinstance(given, Tensor):
        return [given]
    if not isinstance(given, list):
        raise DTypeError(
            f"an optimizer is made of a model or of a list of parameters, not of {shown(given)}",
            hint="(optimizer-adam (model-parameters model) :lr 0.001)",
        )
    return [_parameter(x) for x in given]


def _parameter(given: Any) -> Any:
    if isinstance(given, Pair):
        return str(given.car), given.cdr
    if isinstance(given, dict):  # a group: a hash table with params, and options of its own
        group = {str(key).replace("-", "_"): value for key, value in given.items()}
        return {key: _parameters(x) if key == "params" else _option(x) for key, x in group.items()}
    return given


def wanted(given: Any) -> optim.Optimizer:
    """The optimizer that an argument must be."""
    if isinstance(given, optim.Optimizer):
        return given
    raise DTypeError(f"an optimizer is wanted, not {shown(given)}", hint="(optimizer-adam model :lr 0.001) makes one")


def step(given: Any, grads: Any = None) -> None:
    """Update the parameters of an optimizer by the gradients that backward has left, or by these."""
    opt = wanted(given)
    if grads is not None:
        tensors = opt.tensors
        leaves = [
            as_leaf(x, "gradients")
            for x in pytree.flatten(list(grads.values()) if isinstance(grads, dict) else grads)[0]
        ]
        if len(leaves) != len(tensors):
            raise ShapeError(f"the optimizer has {len(tensors)} parameters, and {len(leaves)} gradients were given")
        for name, own, slope in zip(opt.names, tensors, leaves, strict=True):
            if own.shape != slope.shape:
                raise ShapeError(f"{name} has shape {list(own.shape)}, and its gradient {list(slope.shape)}")
            own.grad = bare(slope)
    try:
        opt.step()
    except EshkolError as error:
        raise in_words(error) from None
    if grads is not None:
        opt.zero_grad()


def zero_grad(given: Any) -> None:
    """Forget the gradients of an optimizer's parameters."""
    wanted(given).zero_grad()


def learning_rate(given: Any, *new: Any) -> Any:
    """The learning rate of an optimizer's first group; with a number, it is that of all groups from now on."""
    opt = wanted(given)
    if new:
        for group in opt.param_groups:
            group["lr"] = as_number("the learning rate", new[0])
    return opt.param_groups[0]["lr"]


def state(given: Any) -> Any:
    """What an optimizer remembers, to be saved: an object of Python."""
    from eshkol.runtime.values import KeptObject

    return KeptObject(wanted(given).state_dict())


def load_state(given: Any, values: Any) -> None:
    """Go on from what optimizer-state has given."""
    try:
        wanted(given).load_state_dict(values)
    except EshkolError as error:
        raise in_words(error) from None


# ---- schedules -------------------------------------------------------------------------------------------------------


def schedule(given: Any, *measure: Any) -> Any:
    """Go a step on in a schedule; gives the learning rate."""
    if not hasattr(given, "get_last_lr"):
        raise DTypeError(f"a schedule is wanted, not {shown(given)}", hint="(cosine-annealing-lr optimizer 100)")
    called(given.step, tuple(_option(x) if not isinstance(x, Tensor) else x.item() for x in measure), {})
    return given.get_last_lr()[0]


# ---- gradients -------------------------------------------------------------------------------------------------------


def _held(given: Any) -> list[Tensor] | None:
    """The parameters of an optimizer or a model, whose gradients are meant; None where gradients were given."""
    if isinstance(given, optim.Optimizer):
        return given.tensors
    return list(given.parameters()) if isinstance(given, nn.Module) else None


def _left(tensors: list[Tensor]) -> list[Tensor]:
    return [t.grad for t in tensors if t.grad is not None]


def _gradients(given: Any) -> tuple[list[Any], pytree.Tree]:
    leaves, tree = pytree.flatten(given)
    if not leaves:
        raise TensorError("there are no gradients")
    return [as_leaf(x, "gradients") for x in leaves], tree


def _like(leaves: Any, tree: pytree.Tree, given: Any) -> Any:
    """A structure as it was given: numbers come back as numbers."""
    before = pytree.flatten(given)[0]
    return tree.build([x if isinstance(old, Tensor) else x.item() for old, x in zip(before, leaves, strict=True)])


def clip_gradients(grads: Any, max_norm: Any) -> Any:
    """Gradients shortened together to a norm of at most max-norm."""
    most = as_number("max-norm", max_norm)
    try:
        held = _held(grads)
        if held is not None:
            return optim.clip_grad_norm_(held, most)
        leaves, tree = _gradients(grads)
        return _like(optim.clipped(leaves, most), tree, grads)
    except EshkolError as error:
        raise in_words(error) from None


def clip_by_value(grads: Any, least: Any, most: Any = None) -> Any:
    """Gradients with each element put between two numbers."""
    low = as_number("min", least)
    low, high = (-low, low) if most is None else (low, as_number("max", most))
    if low > high:
        raise TensorError(f"min is {low:g}, and max {high:g}")
    held = _held(grads)
    if held is None:
        leaves, tree = _gradients(grads)
        return _like([ek.clip(g, low, high) for g in leaves], tree, grads)
    for gradient in _left(held):
        gradient._replace(ek.clip(bare(gradient), low, high), "a gradient")
    return None


def gradient_norm(grads: Any) -> Any:
    """The norm of all gradients, as if they were one vector."""
    held = _held(grads)
    return optim.global_norm(_gradients(grads)[0] if held is None else _left(held))


def _penalty(penalty: Callable[[Any, Any], Any], params: Any, weight: Any) -> Any:
    held = _held(params)
    number = weight if isinstance(weight, Tensor) else as_number("lambda", weight)
    leaves, plain = (held, False) if held is not None else (_gradients(params)[0], _all_numbers(params))
    found = penalty(leaves, number)
    return found.item() if plain else found


def _all_numbers(given: Any) -> bool:
    return not any(isinstance(x, Tensor) for x in pytree.flatten(given)[0])


def l1_regularization(params: Any, weight: Any) -> Any:
    """A number times the sum of the sizes of all parameters."""
    return _penalty(optim.l1_penalty, params, weight)


def l2_regularization(params: Any, weight: Any) -> Any:
    """A number times the sum of the squares of all parameters."""
    return _penalty(optim.l2_penalty, params, weight)
