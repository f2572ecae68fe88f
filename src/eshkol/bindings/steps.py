"""Optimizers as procedures of Scheme: steps that change parameters in place, and pure updates.

In: parameters and gradients as tensors, numbers, or lists and vectors of them, all alike. `*-step` changes parameters
and what is remembered of them in place, and gives the parameters; `*-update`, `adagrad` and `adadelta` change nothing,
and give the new values and what the next call is to be given. Both compute by the rows of `optim/rules.py`, all
parameters in one compiled call.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from eshkol.bindings.forms import number
from eshkol.bindings.layers import in_words
from eshkol.bindings.leaves import as_leaf, as_number
from eshkol.bindings.optimizers import optimizer
from eshkol.bindings.rows import replaced, shown
from eshkol.bindings.values import Values
from eshkol.errors import DTypeError, EshkolError, ShapeError, TensorError, TraceError
from eshkol.graph.node import Scope
from eshkol.optim.rules import RULES
from eshkol.tensors import pytree
from eshkol.tensors.computing import realize
from eshkol.tensors.holding import bare, is_marked, put
from eshkol.tensors.jit import jit
from eshkol.tensors.make import tensor
from eshkol.tensors.scalars import Scalar
from eshkol.tensors.value import Tensor

Leaves = list[Any]
Numbers = dict[str, Any]
Slots = dict[str, Leaves]


@dataclass(frozen=True)
class Recipe:
    """How a procedure uses a row of the rules: the numbers and slots that it is given, in their order."""

    rule: str
    numbers: dict[str, str]  # the language's names of numbers → those of the row
    slots: tuple[str, ...]
    scaled: bool = False  # the learning rate goes into what is remembered, as the language's momentum has it
    decayed: bool = False  # weights decay after the update, and not through it


_ADAM = {"lr": "lr", "beta1": "beta1", "beta2": "beta2", "epsilon": "eps"}
_DECAY = {**_ADAM, "weight-decay": "weight_decay"}
_MOMENTS = ("exp_avg", "exp_avg_sq")
SGD = Recipe("SGD", {"lr": "lr", "momentum": "momentum"}, ("momentum_buffer",), scaled=True)
ADAM = Recipe("Adam", _ADAM, _MOMENTS)
ADAMW = Recipe("AdamW", _DECAY, _MOMENTS)
LAMB = Recipe("LAMB", _DECAY, _MOMENTS, decayed=True)
RMSPROP = Recipe("RMSprop", {"lr": "lr", "decay": "alpha", "epsilon": "eps"}, ("square_avg",))
ADAGRAD = Recipe("Adagrad", {"lr": "lr", "epsilon": "eps"}, ("sum",))
ADADELTA = Recipe("Adadelta", {"lr": "lr", "rho": "rho", "epsilon": "eps"}, ("square_avg", "acc_delta"))


# ---- computing -------------------------------------------------------------------------------------------------------


def _updated(
    recipe: Recipe, params: Leaves, grads: Leaves, slots: Slots, h: Numbers, step: Any
) -> tuple[Leaves, Slots]:
    """All parameters after a step, and what is remembered of them: pure, of tensors."""
    rule, decay = RULES[recipe.rule], None
    if recipe.decayed:
        h = dict(h)
        decay = 1 - h["lr"] * h.pop("weight_decay")
    values: Leaves = []
    after: Slots = {name: [] for name in recipe.slots}
    for k, (p, g) in enumerate(zip(params, grads, strict=True)):
        if recipe.scaled:
            g, numbers = g * h["lr"], {**h, "lr": 1.0}
        else:
            numbers = h
        value, held = rule.applied(p, g, {name: slots[name][k] for name in recipe.slots}, numbers, step)
        values.append(value if decay is None else value * decay)
        for name in recipe.slots:
            after[name].append(held[name])
    return values, after


@cache
def _compiled(name: str) -> Any:
    recipe = {r.rule: r for r in (SGD, ADAM, ADAMW, LAMB, RMSPROP, ADAGRAD, ADADELTA)}[name]

    def update(params: Leaves, grads: Leaves, slots: Slots, h: Numbers, step: Any) -> tuple[Leaves, Slots]:
        return _updated(recipe, params, grads, slots, h, step)

    return jit(update, floats=True)


def _tracing() -> Scope | None:
    return next((s for s in Scope.at_work if s.kind == "trace"), None)


def _run(recipe: Recipe, params: Leaves, grads: Leaves, slots: Slots, h: Numbers, step: Any) -> tuple[Leaves, Slots]:
    within = Scope.at_work or any(isinstance(x, Scalar) for x in (*h.values(), step))
    try:
        if within:  # of another trace or derivative, which sees through it
            return _updated(recipe, params, grads, slots, h, step)
        values, after = _compiled(recipe.rule)(params, grads, slots, h, step)
        return values, after
    except EshkolError as error:
        raise in_words(error) from None


# ---- arguments -------------------------------------------------------------------------------------------------------


def _alike(what: str, given: Any, tree: pytree.Tree, params: Leaves) -> Leaves:
    """The leaves of a structure that is to be like that of the parameters, each of the same shape."""
    leaves, own = pytree.flatten(given)
    if len(leaves) != len(params) or (own != tree and not _both_lists(own, tree)):
        raise ShapeError(f"{what} have the structure {own}, and the parameters {tree}")
    found = [as_leaf(x, what) for x in leaves]
    for k, (leaf, p) in enumerate(zip(found, params, strict=True)):
        if leaf.shape != p.shape:
            raise ShapeError(
                f"of {what}, number {k + 1} has shape {list(leaf.shape)}, and the parameter {list(p.shape)}"
            )
    return found


def _both_lists(own: pytree.Tree, tree: pytree.Tree) -> bool:
    """Whether two structures are lists or vectors of leaves: which of them does not matter."""
    return all(t.kind is not None and issubclass(t.kind, list) for t in (own, tree)) and own.leaves == len(own.children)


def _numbers(recipe: Recipe, given: Sequence[Any]) -> Numbers:
    return {row: as_number(name, x) for (name, row), x in zip(recipe.numbers.items(), given, strict=True)}


# ---- steps in place --------------------------------------------------------------------------------------------------


def _stepped(recipe: Recipe, params: Any, grads: Any, numbers: Sequence[Any], held: Sequence[Any], t: Any) -> Any:
    inside = _tracing()
    if inside is not None:
        raise TraceError(
            f"it changes parameters in place, and inside {inside.name} that would happen only once",
            hint="adam-update, sgd-momentum-update and their kin give new values instead",
        )
    targets, tree = pytree.flatten(params)
    for target in targets:
        if not isinstance(target, Tensor):
            raise DTypeError(
                f"parameters are tensors, which are changed in place, and not {shown(target)}",
                hint="adam-update, sgd-momentum-update and their kin take numbers, and give new ones",
            )
    kept = [pytree.flatten(slot)[0] for slot in held]
    for slot, leaves in zip(recipe.slots, kept, strict=True):
        if any(not isinstance(x, Tensor) for x in leaves):
            raise DTypeError(f"what is remembered ({slot}) are tensors, which are changed in place")
    plain = [bare(x) for x in targets]
    slopes = [bare(x) for x in _alike("the gradients", grads, tree, targets)]
    slots = {
        name: [bare(x) for x in _alike("what is remembered", given, tree, targets)]
        for name, given in zip(recipe.slots, held, strict=True)
    }
    values, after = _run(recipe, plain, slopes, slots, _numbers(recipe, numbers), as_number("t", t))
    _put_all(
        [*targets, *(x for leaves in kept for x in leaves)], [*values, *(x for n in recipe.slots for x in after[n])]
    )
    return params


def _put_all(targets: Leaves, values: Leaves) -> None:
    """Give tensors their new values, computed together."""
    realize(*values)
    for target, value in zip(targets, values, strict=True):
        if is_marked(target):
            put(target, value, "a parameter")
        else:
            replaced(target, value, "a step")


def sgd_step(params: Any, grads: Any, lr: Any, momentum: Any, velocity: Any) -> Any:
    """Move parameters against their gradients, with momentum; they and the velocity are changed in place."""
    return _stepped(SGD, params, grads, (lr, momentum), (velocity,), 1.0)


def adam_step(
    params: Any, grads: Any, lr: Any, beta1: Any, beta2: Any, epsilon: Any, m: Any, v: Any, t: Any
) -> Any:  # fmt: skip
    """Move parameters by Adam; they and the moments m and v are changed in place, and t counts from 1."""
    return _stepped(ADAM, params, grads, (lr, beta1, beta2, epsilon), (m, v), t)


def adamw_step(
    params: Any, grads: Any, lr: Any, beta1: Any, beta2: Any, epsilon: Any, weight_decay: Any, m: Any, v: Any, t: Any
) -> Any:  # fmt: skip
    """Move parameters by Adam, with a weight decay of its own."""
    return _stepped(ADAMW, params, grads, (lr, beta1, beta2, epsilon, weight_decay), (m, v), t)


def lamb_step(
    params: Any, grads: Any, lr: Any, beta1: Any, beta2: Any, epsilon: Any, weight_decay: Any, m: Any, v: Any, t: Any
) -> Any:  # fmt: skip
    """Move parameters by LAMB: Adam's direction, as long as the parameter; weights decay after it."""
    return _stepped(LAMB, params, grads, (lr, beta1, beta2, epsilon, weight_decay), (m, v), t)


# ---- pure updates ----------------------------------------------------------------------------------------------------


def _pure(
    recipe: Recipe, w: Any, grad: Any, held: Sequence[Any], numbers: Sequence[Any], t: Any
) -> tuple[Any, list[Any]]:
    """New values, and what is remembered, in the structure of the parameters; numbers come back as numbers."""
    leaves, tree = pytree.flatten(w)
    params = [as_leaf(x, "parameters") for x in leaves]
    grads = _alike("the gradients", grad, tree, params)
    slots = {}
    for name, given in zip(recipe.slots, held, strict=True):
        if given is False or given is None or given == []:
            slots[name] = [tensor(0.0, p.dtype) * p.detach() if not p.shape else _zeros(p) for p in params]
        else:
            slots[name] = _alike("what is remembered", given, tree, params)
    values, after = _run(recipe, params, grads, slots, _numbers(recipe, numbers), t)
    if not Scope.at_work:
        realize(*values, *(x for name in recipe.slots for x in after[name]))

    def built(found: Leaves) -> Any:
        return tree.build(
            [x if isinstance(old, Tensor) else number(x) for old, x in zip(leaves, found, strict=True)]
        )  # fmt: skip

    return built(values), [built(after[name]) for name in recipe.slots]


def _zeros(p: Tensor) -> Tensor:
    from eshkol.tensors import api as ek

    made: Tensor = ek.zeros(p.shape, dtype=p.dtype)
    return made


def _is_none(state: Any) -> bool:
    return state is False or state is None or state == []


def _moments_update(recipe: Recipe, w: Any, grad: Any, state: Any, numbers: Sequence[Any]) -> Values:
    if _is_none(state):
        m, v, t = None, None, 0
    elif isinstance(state, list) and len(state) == 3:
        m, v, t = state
    else:
        raise TensorError(
            f"the state is #f at first, and then what the update before gave, a list (m v t), not {shown(state)}"
        )
    count = as_number("t", t) + 1
    value, moments = _pure(recipe, w, grad, (m, v), numbers, count)
    return Values((value, [*moments, t + 1 if type(t) is int else count]))


def sgd_momentum_update(w: Any, grad: Any, velocity: Any, lr: Any, momentum: Any = 0.9) -> Values:
    """New parameters and the new velocity, two values; the velocity is #f at first."""
    value, (after,) = _pure(SGD, w, grad, (velocity,), (lr, momentum), 1.0)
    return Values((value, after))


def rmsprop_update(w: Any, grad: Any, cache: Any, lr: Any, decay: Any = 0.9, epsilon: Any = 1e-8) -> Values:
    """New parameters and the new cache, two values; the cache is #f at first."""
    value, (after,) = _pure(RMSPROP, w, grad, (cache,), (lr, decay, epsilon), 1.0)
    return Values((value, after))


def adam_update(
    w: Any, grad: Any, state: Any, lr: Any, beta1: Any = 0.9, beta2: Any = 0.999, epsilon: Any = 1e-8
) -> Values:  # fmt: skip
    """New parameters and the new state, a list of m, v and t, two values; the state is #f at first."""
    return _moments_update(ADAM, w, grad, state, (lr, beta1, beta2, epsilon))


def adamw_update(
    w: Any, grad: Any, state: Any, lr: Any, beta1: Any = 0.9, beta2: Any = 0.999, epsilon: Any = 1e-8,
    weight_decay: Any = 0.01,
) -> Values:  # fmt: skip
    """New parameters and the new state, as adam-update, with a weight decay of its own."""
    return _moments_update(ADAMW, w, grad, state, (lr, beta1, beta2, epsilon, weight_decay))


def lamb_update(
    w: Any, grad: Any, state: Any, lr: Any, beta1: Any = 0.9, beta2: Any = 0.999, epsilon: Any = 1e-6,
    weight_decay: Any = 0.0,
) -> Values:  # fmt: skip
    """New parameters and the new state, as lamb-step."""
    return _moments_update(LAMB, w, grad, state, (lr, beta1, beta2, epsilon, weight_decay))


def _object(name: str, params: Any, given: dict[str, Any]) -> Any:
    return optimizer(name)(params, **given)


def adagrad(w: Any, *rest: Any, **given: Any) -> Any:
    """New parameters and the new cache, two values; of parameters alone, an optimizer."""
    if not rest or "params" in given:
        return _object("Adagrad", w, given)
    return _adagrad(w, *rest, **given)


def _adagrad(w: Any, grad: Any, cache: Any = None, lr: Any = 0.01, epsilon: Any = 1e-10) -> Values:
    value, (after,) = _pure(ADAGRAD, w, grad, (cache,), (lr, epsilon), 1.0)
    return Values((value, after))


def adadelta(w: Any, *rest: Any, **given: Any) -> Any:
    """New parameters and the new state, two values; of parameters alone, an optimizer."""
    if not rest:
        return _object("Adadelta", w, given)
    return _adadelta(w, *rest, **given)


def _adadelta(w: Any, grad: Any, state: Any = None, lr: Any = 1.0, rho: Any = 0.9, epsilon: Any = 1e-6) -> Values:
    held = (None, None) if _is_none(state) else state
    if not isinstance(held, list | tuple) or len(held) != 2:
        raise TensorError(f"the state is #f at first, and then what the update before gave, not {shown(state)}")
    return Values(_pure(ADADELTA, w, grad, tuple(held), (lr, rho, epsilon), 1.0))
