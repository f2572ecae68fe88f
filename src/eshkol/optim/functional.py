"""Optimizers as pure functions over structures of parameters, from the same table as the classes.

params, state = optim.functional.adam(params, grads, state, step, lr=0.1)

Parameters and gradients are tensors, or lists, dicts, ... of them; a state is a dict of such structures, one for each
slot; None is the state before the first step. `step` counts from 1. All of it may be traced.
"""

from __future__ import annotations

from typing import Any

from eshkol.errors import ShapeError, TensorError
from eshkol.optim.rules import RULES, UpdateRule, as_number
from eshkol.tensors import api as ek
from eshkol.tensors.pytree import flatten


class Pure:
    """A row of the table as a function: (params, grads, state, step, options) → (params, state)."""

    def __init__(self, rule: UpdateRule) -> None:
        self.rule, self.__name__ = rule, rule.name.lower()
        self.__doc__ = f"The step of {rule.name}; options: {', '.join(f'{k}={v}' for k, v in rule.defaults.items())}."

    def __repr__(self) -> str:
        return f"<optim.functional.{self.__name__}>"

    def init(self, params: Any, **options: Any) -> dict[str, Any]:
        """The state before the first step."""
        known = self.rule.options(options)
        leaves, tree = flatten(params)
        started = [self.rule.started(ek.asarray(leaf), known) for leaf in leaves]
        return {name: tree.build(slots[name] for slots in started) for name in self.rule.slots(known)}

    def __call__(self, params: Any, grads: Any, state: Any = None, step: Any = 1, **options: Any) -> tuple[Any, Any]:
        """The parameters and the state after a step."""
        known = self.rule.options(options)
        h = self.rule.hyper(known)
        leaves, tree = flatten(params)
        gradients, other = flatten(grads)
        if other != tree:
            raise TensorError(f"{self.__name__}: parameters are {tree}, and gradients {other}", span=ek.here())
        if state is None:
            state = self.init(params, **options)
        names = tuple(self.rule.slots(known))
        missing = [name for name in names if name not in state]
        if missing:
            raise TensorError(
                f"{self.__name__}: the state has no '{missing[0]}'", span=ek.here(),
                hint=f"begin with {self.__name__}.init(params) and the same options, or with None",
            )  # fmt: skip
        columns = {name: flatten(state[name])[0] for name in names}
        values, slots = [], []
        count = as_number(step)
        for k, (given, found) in enumerate(zip(leaves, gradients, strict=True)):
            p, g = ek.asarray(given), ek.asarray(found)
            if p.shape != g.shape:
                raise ShapeError(
                    f"{self.__name__}: a parameter has shape {list(p.shape)}, its gradient {list(g.shape)}",
                    span=ek.here(),
                )
            value, after = self.rule.applied(p, g, {name: columns[name][k] for name in names}, h, count)
            values.append(value)
            slots.append(after)
        return tree.build(values), {name: tree.build(s[name] for s in slots) for name in names}


sgd, adam, adamw = Pure(RULES["SGD"]), Pure(RULES["Adam"]), Pure(RULES["AdamW"])
nadam, radam, lamb, lion = Pure(RULES["NAdam"]), Pure(RULES["RAdam"]), Pure(RULES["LAMB"]), Pure(RULES["Lion"])
rmsprop, adagrad, adadelta = Pure(RULES["RMSprop"]), Pure(RULES["Adagrad"]), Pure(RULES["Adadelta"])
