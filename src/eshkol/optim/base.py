"""`Optimizer`: parameters in groups, what is remembered of each, and steps; one class for each row of the table.

In: parameters (the handles that a model holds), whose `grad` `backward` has left. A step is one compiled call for all
of them: `updated`, a pure function of values, gradients, slots, numbers and the count of steps. Numbers that change
from step to step (the learning rate) are inputs of it, so that schedules do not compile again. Whole training steps
that are compiled (train/step.py) call `updated` themselves.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, ClassVar

from eshkol.errors import DeviceError, DTypeError, ShapeError, TensorError
from eshkol.optim.rules import RULES, Slots, UpdateRule, as_number
from eshkol.support.interrupts import uninterrupted
from eshkol.tensors import api as ek
from eshkol.tensors.computing import realize
from eshkol.tensors.holding import bare
from eshkol.tensors.updating import Update, spend, trained
from eshkol.tensors.value import Tensor

Group = dict[str, Any]
Layout = tuple[tuple[bool, ...], tuple[tuple[str, ...], ...]]  # which parameters are updated, and their slots
RESERVED = ("params", "names")  # what a group holds besides its options


class Spent(Tensor):
    """A gradient that a step has used: `backward` does not add to it (a forgotten `zero_grad`)."""

    __slots__ = ()

    _is_spent = True


class Optimizer:
    """Base of every optimizer: give it parameters, and options by name.

    Parameters are tensors, or pairs of a name and a tensor (`model.named_parameters()`), or groups: dicts with "params"
    and options of their own. `param_groups` may be changed between steps, as schedules do: `group["lr"] = 0.1`.

    An optimizer of one's own is a subclass with a `rule` (rules.py).
    """

    rule: ClassVar[UpdateRule]
    __signature__: ClassVar[inspect.Signature]

    def __init_subclass__(cls, **given: Any) -> None:
        super().__init_subclass__(**given)
        if "rule" in cls.__dict__:
            kind = inspect.Parameter
            options = [
                kind(name, kind.POSITIONAL_OR_KEYWORD, default=default) for name, default in cls.rule.defaults.items()
            ]
            cls.__signature__ = inspect.Signature([kind("params", kind.POSITIONAL_OR_KEYWORD), *options])

    def __init__(self, params: Iterable[Any], *options: Any, **given: Any) -> None:
        if not hasattr(type(self), "rule"):
            raise TensorError("Optimizer is the base of optimizers", span=ek.here(), hint="make ek.optim.Adam(params)")
        names = tuple(self.rule.defaults)
        if len(options) > len(names):
            raise TensorError(f"{self._name} takes {len(names)} options, not {len(options)}", span=ek.here())
        for name, value in zip(names, options, strict=False):
            if name in given:
                raise TensorError(f"{self._name} was given '{name}' twice", span=ek.here())
            given[name] = value
        self.defaults = self.rule.options(given)
        self.param_groups: list[Group] = []
        self.state: dict[Tensor, Slots] = {}
        self.steps: dict[Tensor, int] = {}  # how often each parameter was updated
        self._runs: dict[Layout, Update] = {}
        for group in _groups(params, self._name):
            self.add_param_group(group)
        if not self.tensors:
            raise TensorError(
                f"{self._name} was given no parameters", span=ek.here(),
                hint="pass model.parameters(); an iterator that was used before is empty",
            )  # fmt: skip

    @property
    def _name(self) -> str:
        return type(self).__name__

    def __repr__(self) -> str:
        lines = []
        for k, group in enumerate(self.param_groups):
            options = ", ".join(f"{name}={value}" for name, value in group.items() if name not in RESERVED)
            lines.append(f"  group {k}: {len(group['params'])} parameters, {options}")
        return "\n".join([f"{self._name} (", *lines, ")"])

    # --- parameters ---------------------------------------------------------------------------------------------------

    def add_param_group(self, group: Mapping[str, Any]) -> None:
        """Train further parameters, with options of their own where the group has them."""
        if not isinstance(group, Mapping) or "params" not in group:
            raise TensorError(
                f"a group of {self._name} is a dict with 'params', not {group!r:.80}", span=ek.here(),
                hint='write {"params": [...], "lr": 0.1}',
            )  # fmt: skip
        given = group["params"]
        names, tensors = _named([given] if isinstance(given, Tensor) else given, self._name)
        options = {name: value for name, value in group.items() if name not in RESERVED}
        extra = {n: v for n, v in options.items() if n == "initial_lr" or n.startswith("_")}  # of schedules
        checked = self.rule.options({n: v for n, v in options.items() if n not in extra}, self.defaults)
        seen = {id(tensor) for tensor in self.tensors}
        for name, tensor in zip(names, tensors, strict=True):
            _check_parameter(name, tensor, self._name)
            if id(tensor) in seen:
                raise TensorError(
                    f"{self._name} was given {name} twice, and would update it twice", span=ek.here(),
                    hint="each parameter belongs to one group, once; model.parameters() gives a shared one once",
                )  # fmt: skip
            seen.add(id(tensor))
        self.param_groups.append({"params": tensors, "names": names} | checked | extra)

    @property
    def tensors(self) -> list[Tensor]:
        """The parameters of all groups, in order."""
        return [tensor for group in self.param_groups for tensor in group["params"]]

    @property
    def names(self) -> list[str]:
        """Their names, in the same order."""
        return [name for group in self.param_groups for name in group["names"]]

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forget the gradients of all parameters; without `set_to_none` they become zeros."""
        for tensor in self.tensors:
            if tensor.grad is not None:
                tensor.grad = None if set_to_none else ek.zeros(tensor.shape, dtype=tensor.dtype)

    # --- the pure part ------------------------------------------------------------------------------------------------

    def slots(self) -> list[Slots]:
        """What is remembered of each parameter, in the order of `tensors`: what the next update needs, made if need be.

        The tensors are handles, as parameters are: give them other values in place.
        """
        found: list[Slots] = []
        fresh: list[Tensor] = []
        for group in self.param_groups:
            names = tuple(self.rule.slots(group))
            for tensor in group["params"]:
                held = self.state.setdefault(tensor, {})
                if tuple(held) == names:
                    found.append(held)
                    continue
                if any(name not in held for name in names):
                    made = self.rule.started(tensor, group)
                    held |= {name: made[name] for name in names if name not in held}
                    fresh += [held[name] for name in names]
                found.append({name: held[name] for name in names})
        if fresh:
            realize(*fresh)
        return found

    def hyper(self) -> list[dict[str, Any]]:
        """What updates of each group are told: numbers, and what is fixed (how many parameters it has, switches).

        Given to a jit with `floats=True`, the numbers are inputs, and everything else is part of the trace.
        """
        return [{"count": len(group["params"])} | self.rule.hyper(group) for group in self.param_groups]

    def updated(
        self,
        params: Sequence[Tensor | None],
        grads: Sequence[Tensor | None],
        state: Sequence[Slots | None],
        hyper: Sequence[Mapping[str, Any]],
        step: Any,
    ) -> tuple[list[Any], list[Any]]:
        """The values and slots of all parameters after a step: pure, of values alone; it may be traced.

        Everything stands in the order of `tensors`; a parameter without a gradient stays as it is, and where that is
        None its value and slots may be None too. `step` counts from 1: one number for all, or a number for each.
        """
        numbers = [h for h in hyper for _ in range(h["count"])]
        each = [as_number(s) for s in step] if isinstance(step, list | tuple) else [as_number(step)] * len(params)
        values, slots = list(params), list(state)
        for k, (p, g, held, h, count) in enumerate(zip(params, grads, state, numbers, each, strict=True)):
            if p is not None and g is not None and held is not None:
                values[k], slots[k] = self.rule.applied(p, g, held, h, count)
        return values, slots

    def next_steps(self, used: Sequence[bool]) -> Any:
        """The count of the step to come: one for all parameters that are used, or one for each if they differ."""
        counts = [float(self.steps.get(t, 0) + 1) for t in self.tensors]
        among = {count for count, use in zip(counts, used, strict=True) if use}
        return among.pop() if len(among) == 1 else counts

    def stepped(self, tensors: Iterable[Tensor] | None = None) -> None:
        """Count a step that was made with `updated`: of all parameters, or of some."""
        for tensor in self.tensors if tensors is None else tensors:
            self.steps[tensor] = self.steps.get(tensor, 0) + 1
        self.took_steps += 1

    def unstepped(self, tensors: Iterable[Tensor]) -> None:
        """Take back the count of a step that changed nothing, as was seen afterwards."""
        for tensor in tensors:
            self.steps[tensor] -= 1
        self.took_steps -= 1

    took_steps = 0  # how many were made with this object: schedules ask

    # --- steps --------------------------------------------------------------------------------------------------------

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Update every parameter that has a gradient, all in one compiled call.

        A closure is called first, and its value given: it computes the loss again and calls `backward`. The gradients
        are spent then: `backward` refuses to add to them until `zero_grad()`.
        """
        result = None
        if closure is not None:
            with ek.enable_grad():
                result = closure()
        tensors = self.tensors
        used = trained(tensors)
        chosen = tensors if all(used) else [t for t, use in zip(tensors, used, strict=True) if use]
        if chosen:
            try:
                self._step(tensors, used, chosen)
            except DeviceError:  # which is told before anything changes
                machines = list(dict.fromkeys([tensor.device for tensor in chosen]))
                if len(machines) < 2:  # it is gradients, or what is remembered, that are elsewhere
                    raise
                self._step_on_each(machines, tensors, used)
        elif closure is None:
            self.took_steps += 1
        return result

    def _step_on_each(self, machines: Sequence[str], tensors: list[Tensor], used: list[bool]) -> None:
        """A step of parameters on several machines: of those of one machine after those of another."""
        taken = self.took_steps
        for machine in machines:
            there = [use and t.device == machine for t, use in zip(tensors, used, strict=True)]
            self._step(tensors, there, [t for t, use in zip(tensors, there, strict=True) if use])
        self.took_steps = taken + 1

    def _step(self, tensors: list[Tensor], used: list[bool], chosen: list[Tensor]) -> None:
        slots = self.slots()
        if chosen is not tensors:
            slots = [s for s, use in zip(slots, used, strict=True) if use]
        counts = [self.steps.get(tensor, 0) + 1 for tensor in chosen]
        step: Any = float(counts[0]) if len(set(counts)) == 1 else list(map(float, counts))
        layout = (tuple(used), tuple(map(tuple, slots)))
        run = self._runs.get(layout)
        if run is None:
            run = self._runs[layout] = Update(partial(self._flat, layout), "an optimizer's step")
        grads = [bare(g) if g._node.scopes else g for t in chosen if (g := t._grad) is not None]
        held = [*chosen, *[slot for s in slots for slot in s.values()]]
        with uninterrupted():
            run(held, grads, self.hyper(), step)
            spend(chosen, grads, Spent)
            self.stepped(chosen)

    def _flat(self, layout: Layout, held: list[Tensor], grads: list[Tensor], hyper: Any, step: Any) -> list[Any]:
        """`updated` for some parameters, whose slots stand after them, in a plain list: it is gone through quickly."""
        used, names = layout
        value, slot, given = iter(held[: len(grads)]), iter(held[len(grads) :]), iter(grads)
        counts = iter(step if isinstance(step, list) else [step] * len(grads))
        inside = iter(names)
        every = [
            (next(value), next(given), {n: next(slot) for n in next(inside)}, next(counts)) if use else (None,) * 4
            for use in used
        ]
        values, gradients, state, steps = (list(column) for column in zip(*every, strict=True))
        after, changed = self.updated(values, gradients, state, hyper, steps)
        found = [s for s in changed if s is not None]
        return [*[p for p in after if p is not None], *[s[n] for s, ns in zip(found, names, strict=True) for n in ns]]

    # --- state --------------------------------------------------------------------------------------------------------

    def state_dict(self) -> dict[str, Any]:
        """Slots and counts by the places of parameters, and the groups' options; later steps do not change it."""
        places = {tensor: k for k, tensor in enumerate(self.tensors)}
        state = {
            k: {"step": self.steps.get(tensor, 0)} | {name: bare(slot) for name, slot in self.state[tensor].items()}
            for tensor, k in places.items()
            if tensor in self.state
        }
        groups = [
            {n: v for n, v in group.items() if n not in RESERVED}
            | {"params": [places[tensor] for tensor in group["params"]]}
            for group in self.param_groups
        ]
        return {"state": state, "param_groups": groups}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from a state: all of it or, on an error, none. Its groups must have as many parameters as these."""
        try:
            slots, groups = state["state"], state["param_groups"]
            sizes = [len(group["params"]) for group in groups]
        except (KeyError, TypeError) as error:
            raise TensorError(f"this is no state of an optimizer: {error!r}", span=ek.here()) from None
        own = [len(group["params"]) for group in self.param_groups]
        if sizes != own:
            raise TensorError(
                f"the state has groups of {sizes} parameters, and this {self._name} of {own}", span=ek.here(),
                hint="make the optimizer with the same groups as when the state was saved",
            )  # fmt: skip
        options = [self._loaded_options(k, group) for k, group in enumerate(groups)]
        numbers = [place for group in groups for place in group["params"]]
        found: list[tuple[Tensor, Slots, int]] = []
        for tensor, name, place, group in zip(
            self.tensors, self.names, numbers, _each(self.param_groups, options), strict=True
        ):
            held = slots.get(place, slots.get(str(place)))
            if held is not None:
                found.append((tensor, *self._loaded_slots(tensor, name, group, held)))
        for group, new in zip(self.param_groups, options, strict=True):
            group.update(new)
        self.state, self.steps = {}, {}
        for tensor, loaded, count in found:
            self.state[tensor], self.steps[tensor] = loaded, count

    def _loaded_options(self, place: int, group: Mapping[str, Any]) -> dict[str, Any]:
        known = self.rule.defaults
        options = {n: v for n, v in group.items() if n in known or n == "initial_lr" or n.startswith("_")}
        missing = [name for name in known if name not in options]
        if missing:
            raise TensorError(
                f"group {place} of the state has no '{missing[0]}': it is of another optimizer than {self._name}",
                span=ek.here(),
            )
        self.rule.hyper(options)
        return options

    def _loaded_slots(
        self, tensor: Tensor, name: str, group: Mapping[str, Any], held: Mapping[str, Any]
    ) -> tuple[Slots, int]:
        wanted = self.rule.started(tensor, group)
        loaded: Slots = {}
        for slot, start in wanted.items():
            if slot not in held or held[slot] is None:
                raise TensorError(
                    f"the state has no '{slot}' for {name}: it is of another optimizer than {self._name}, or of one "
                    "with other options", span=ek.here(),
                )  # fmt: skip
            value = held[slot] if isinstance(held[slot], Tensor) else ek.tensor(held[slot])  # an array of its own
            if value.shape != start.shape:
                raise ShapeError(
                    f"'{slot}' of {name} has shape {list(start.shape)}, and the state {list(value.shape)}",
                    span=ek.here(), hint="the parameters are others, or in another order, than when it was saved",
                )  # fmt: skip
            loaded[slot] = ek.cast(bare(value), start.dtype).to(tensor.device).realize()
        return loaded, int(float(held.get("step", 1 if loaded else 0)))


def _each(groups: Sequence[Group], options: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The options of each parameter's group."""
    return [new for group, new in zip(groups, options, strict=True) for _ in group["params"]]


def _groups(params: Any, who: str) -> list[Mapping[str, Any]]:
    """What an optimizer is given, as groups."""
    if isinstance(params, Tensor):
        raise TensorError(f"{who} takes parameters, and was given one tensor", span=ek.here(), hint=f"write {who}([x])")
    if isinstance(params, Mapping):
        raise TensorError(
            f"{who} takes a list of parameters, and was given a dict", span=ek.here(),
            hint=f"write {who}(model.parameters()), or a list of groups: [{{'params': ...}}]",
        )  # fmt: skip
    if not isinstance(params, Iterable):
        raise TensorError(
            f"{who} takes parameters, and was given {type(params).__name__}", span=ek.here(),
            hint=f"write {who}(model.parameters())",
        )  # fmt: skip
    given = list(params)
    if given and all(isinstance(x, Mapping) for x in given):
        return given
    return [{"params": given}]


def _named(given: Any, who: str) -> tuple[list[str], list[Tensor]]:
    """Parameters with their names; those without one are numbered."""
    names, tensors = [], []
    for k, x in enumerate(given):
        name, tensor = x if isinstance(x, tuple) and len(x) == 2 and isinstance(x[0], str) else (f"parameter {k}", x)
        if not isinstance(tensor, Tensor):
            raise TensorError(
                f"{who} takes tensors, and was given {type(tensor).__name__} as {name}", span=ek.here(),
                hint="pass model.parameters(), a list of tensors, or a list of groups",
            )  # fmt: skip
        names.append(name)
        tensors.append(tensor)
    return names, tensors


def _check_parameter(name: str, tensor: Tensor, who: str) -> None:
    if not tensor.dtype.differentiable:
        raise DTypeError(f"{who}: {name} is {tensor.dtype}: only floats are trained", span=ek.here())
    if not tensor.is_leaf:
        raise TensorError(
            f"{who}: {name} was computed from others, so it is no leaf and has no gradient of its own", span=ek.here(),
            hint="give the optimizer what it was computed from, or x.detach().requires_grad_()",
        )  # fmt: skip


# --- one class for each row -------------------------------------------------------------------------------------------


class SGD(Optimizer):
    """Gradient descent, with momentum (dampened, or Nesterov's), and an L2 penalty (`weight_decay`)."""

    rule = RULES["SGD"]


class Adam(Optimizer):
    """Adam: running means of gradients and of their squares; `amsgrad` keeps the greatest of the latter."""

    rule = RULES["Adam"]


class AdamW(Optimizer):
    """Adam with a decay of the weights that does not pass through the gradients."""

    rule = RULES["AdamW"]


class NAdam(Optimizer):
    """Adam with Nesterov's momentum."""

    rule = RULES["NAdam"]


class RAdam(Optimizer):
    """Adam whose first steps are rectified, in place of a warm-up."""

    rule = RULES["RAdam"]


class LAMB(Optimizer):
    """Adam whose step in each parameter is as long as the parameter: for large batches."""

    rule = RULES["LAMB"]


class RMSprop(Optimizer):
    """Steps divided by a running mean of the gradient's size; `centered`, by its deviation."""

    rule = RULES["RMSprop"]


class Adagrad(Optimizer):
    """Steps divided by the size of all gradients so far."""

    rule = RULES["Adagrad"]


class Adadelta(Optimizer):
    """Steps as large as earlier steps were, per size of gradients."""

    rule = RULES["Adadelta"]


class Lion(Optimizer):
    """Steps of one size: the sign of a running mean of gradients."""

    rule = RULES["Lion"]
