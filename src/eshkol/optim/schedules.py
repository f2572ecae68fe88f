"""Schedules: the learning rate (and momentum) of an optimizer's groups as a function of the count of steps.

A schedule is a formula: `rate(base, t, group)`, of a group's first learning rate and of how often `step()` was called.
It sets `group["lr"]`, which compiled updates are given as a number. Composed schedules are formulas of formulas, so
they hold no state besides the count; only ReduceLROnPlateau remembers what it has seen. Names, arguments and numbers
are PyTorch's.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

from eshkol.errors import TensorError
from eshkol.optim.base import Group, Optimizer
from eshkol.support.warning import warn
from eshkol.support.whole import is_whole
from eshkol.tensors import api as ek

_OWNER = "_schedule"  # the attribute of an optimizer that names the schedule it follows


def _refuse(message: str, hint: str | None = None) -> TensorError:
    return TensorError(message, span=ek.here(), hint=hint)


def _shown(schedule: Any) -> str:
    """What it was told and has counted, and the rates now."""
    told = [f"{n}={v!r}" for n, v in vars(schedule).items() if not n.startswith("_") and n != "optimizer"]
    return f"{type(schedule).__name__}({', '.join(told)}; lr={schedule.get_last_lr()})"


class LRScheduler(ABC):
    """Base of schedules: a subclass says what the rate is after `t` steps."""

    unsaved: tuple[str, ...] = ("optimizer",)  # attributes that are no part of the state
    per_step: ClassVar[bool] = False  # whether it counts updates, and not epochs, where `fit` steps it

    @property
    def every(self) -> str:
        """What is counted where `fit` steps it: "epoch", or "step"; composed schedules do as their parts do."""
        parts = [getattr(self, "after", None), *getattr(self, "schedulers", ())]
        return "step" if self.per_step or any(p is not None and p.every == "step" for p in parts) else "epoch"

    def __init__(self, optimizer: Optimizer, last_epoch: int = -1) -> None:
        if not isinstance(optimizer, Optimizer):
            raise _refuse(f"{type(self).__name__} takes an optimizer, and was given {type(optimizer).__name__}")
        self.optimizer = optimizer
        self.last_epoch: float = last_epoch + 1
        setattr(optimizer, _OWNER, None)
        self._began = optimizer.took_steps
        self._set()

    @abstractmethod
    def rate(self, base: float, t: float, group: int) -> float:
        """The learning rate after t steps of a group that began with `base`."""

    def momentum(self, t: float, group: int) -> float | None:
        """The momentum after t steps, or None where the schedule has nothing to do with it."""
        return None

    @property
    def base_lrs(self) -> list[float]:
        """The first learning rates of the groups."""
        for group in self.optimizer.param_groups:  # one may have been added since
            group.setdefault("initial_lr", group["lr"])
        return [float(group["initial_lr"]) for group in self.optimizer.param_groups]

    def step(self, epoch: float | None = None) -> None:
        """Go on by one step (or to a given one), and set the learning rates; call it after `optimizer.step()`."""
        claim(self.optimizer, self)
        if self.last_epoch == 0 and epoch is None and self.optimizer.took_steps == self._began:
            warn(
                "the schedule's step() was called before optimizer.step(): the first learning rate is skipped; "
                "call optimizer.step() first",
                UserWarning
            )  # fmt: skip
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        self._set()

    def _set(self) -> None:
        for k, (group, base) in enumerate(zip(self.optimizer.param_groups, self.base_lrs, strict=True)):
            group["lr"] = float(self.rate(base, self.last_epoch, k))
            momentum = self.momentum(self.last_epoch, k)
            if momentum is not None:
                _set_momentum(group, momentum)

    def get_last_lr(self) -> list[float]:
        """The learning rates of the groups now."""
        return [group["lr"] for group in self.optimizer.param_groups]

    def __repr__(self) -> str:
        return _shown(self)

    def state_dict(self) -> dict[str, Any]:
        """What it has counted and was told; functions and the optimizer are no part of it."""
        return {n: v for n, v in vars(self).items() if n not in self.unsaved and not callable(v)}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from a state; the learning rates are the optimizer's to load."""
        own = self.state_dict()
        strange = [name for name in state if name not in own] or [name for name in own if name not in state]
        if strange:
            raise _refuse(f"the state does not fit {type(self).__name__}: '{strange[0]}'")
        vars(self).update(state)
        self._began = min(self._began, self.optimizer.took_steps) - 1  # it does not begin anew


def claim(optimizer: Optimizer, schedule: Any) -> None:
    """Let one schedule set an optimizer's rates: what another sets would be overwritten."""
    owner = getattr(optimizer, _OWNER, None)
    if owner is not None and owner is not schedule:
        raise _refuse(
            f"{type(schedule).__name__}.step(): the optimizer follows another schedule, {type(owner).__name__}",
            hint="compose them: ChainedScheduler([one, two]), SequentialLR or WarmupLR, and step that alone",
        )
    setattr(optimizer, _OWNER, schedule)


def _set_momentum(group: Group, value: float) -> None:
    if "betas" in group:
        group["betas"] = (value, *group["betas"][1:])
    else:
        group["momentum"] = value


def _positive(who: str, name: str, value: Any) -> int:
    if not is_whole(value, 1):
        raise _refuse(f"{who}: {name} is a whole number above 0, not {value!r}")
    return int(value)


class StepLR(LRScheduler):
    """The rate times `gamma` after every `step_size` steps."""

    def __init__(self, optimizer: Optimizer, step_size: int, gamma: float = 0.1, last_epoch: int = -1) -> None:
        self.step_size, self.gamma = _positive("StepLR", "step_size", step_size), gamma
        super().__init__(optimizer, last_epoch)

    def rate(self, base: float, t: float, group: int) -> float:
        return float(base * self.gamma ** (t // self.step_size))


class MultiStepLR(LRScheduler):
    """The rate times `gamma` at each milestone."""

    def __init__(
        self, optimizer: Optimizer, milestones: Sequence[int], gamma: float = 0.1, last_epoch: int = -1
    ) -> None:
        self.milestones, self.gamma = sorted(milestones), gamma
        super().__init__(optimizer, last_epoch)

    def rate(self, base: float, t: float, group: int) -> float:
        return base * self.gamma ** bisect_right(self.milestones, t)


class ExponentialLR(LRScheduler):
    """The rate times `gamma` after every step."""

    def __init__(self, optimizer: Optimizer, gamma: float, last_epoch: int = -1) -> None:
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def rate(self, base: float, t: float, group: int) -> float:
        return float(base * self.gamma**t)


class ConstantLR(LRScheduler):
    """The rate times `factor` for the first `total_iters` steps."""

    def __init__(self, optimizer: Optimizer, factor: float = 1 / 3, total_iters: int = 5, last_epoch: int = -1) -> None:
        self.factor, self.total_iters = factor, total_iters
        super().__init__(optimizer, last_epoch)

    def rate(self, base: float, t: float, group: int) -> float:
        return base * self.factor if t < self.total_iters else base


class LinearLR(LRScheduler):
    """A warm-up (or down): from `start_factor` to `end_factor` of the rate, evenly in `total_iters` steps."""

    def __init__(
        self, optimizer: Optimizer, start_factor: float = 1 / 3, end_factor: float = 1.0, total_iters: int = 5,
        last_epoch: int = -1,
    ) -> None:  # fmt: skip
        if not (0 < start_factor <= 1 and 0 <= end_factor <= 1):
            raise _refuse(f"LinearLR: start_factor and end_factor lie in (0, 1], not {start_factor}, {end_factor}")
        self.start_factor, self.end_factor = start_factor, end_factor
        self.total_iters = _positive("LinearLR", "total_iters", total_iters)
        super().__init__(optimizer, last_epoch)

    def rate(self, base: float, t: float, group: int) -> float:
        done = min(t, self.total_iters) / self.total_iters
        return base * (self.start_factor + (self.end_factor - self.start_factor) * done)


class PolynomialLR(LRScheduler):
    """The rate falls to zero in `total_iters` steps, as a power of what is left."""

    def __init__(self, optimizer: Optimizer, total_iters: int = 5, power: float = 1.0, last_epoch: int = -1) -> None:
        self.total_iters, self.power = _positive("PolynomialLR", "total_iters", total_iters), power
        super().__init__(optimizer, last_epoch)

    def rate(self, base: float, t: float, group: int) -> float:
        return float(base * (1 - min(t, self.total_iters) / self.total_iters) ** self.power)


class CosineAnnealingLR(LRScheduler):
    """The rate falls to `eta_min` in `T_max` steps, along half a cosine, and rises again."""

    def __init__(self, optimizer: Optimizer, T_max: int, eta_min: float = 0.0, last_epoch: int = -1) -> None:
        self.T_max, self.eta_min = _positive("CosineAnnealingLR", "T_max", T_max), eta_min
        super().__init__(optimizer, last_epoch)

    def rate(self, base: float, t: float, group: int) -> float:
        return self.eta_min + (base - self.eta_min) * (1 + math.cos(math.pi * t / self.T_max)) / 2


class CosineAnnealingWarmRestarts(LRScheduler):
    """The rate falls along half a cosine in `T_0` steps and starts again, each time in `T_mult` times as many."""

    def __init__(
        self, optimizer: Optimizer, T_0: int, T_mult: int = 1, eta_min: float = 0.0, last_epoch: int = -1
    ) -> None:
        self.T_0 = _positive("CosineAnnealingWarmRestarts", "T_0", T_0)
        self.T_mult = _positive("CosineAnnealingWarmRestarts", "T_mult", T_mult)
        self.eta_min = eta_min
        super().__init__(optimizer, last_epoch)

    def rate(self, base: float, t: float, group: int) -> float:
        length: float = self.T_0
        if self.T_mult == 1:
            t %= length
        while t >= length:
            t, length = t - length, length * self.T_mult
        return self.eta_min + (base - self.eta_min) * (1 + math.cos(math.pi * t / length)) / 2


class LambdaLR(LRScheduler):
    """The rate times what a function gives for the count of steps; one function, or one for each group."""

    def __init__(
        self, optimizer: Optimizer, lr_lambda: Callable[[Any], float] | Sequence[Callable[[Any], float]],
        last_epoch: int = -1,
    ) -> None:  # fmt: skip
        groups = len(optimizer.param_groups)
        self.functions = [lr_lambda] * groups if callable(lr_lambda) else list(lr_lambda)
        if len(self.functions) != groups:
            raise _refuse(f"LambdaLR has {len(self.functions)} functions for {groups} groups")
        super().__init__(optimizer, last_epoch)

    unsaved = ("optimizer", "functions")

    def rate(self, base: float, t: float, group: int) -> float:
        return base * self.functions[group](t)


class OneCycleLR(LRScheduler):
    """One cycle: the rate rises to `max_lr` and falls far below where it began, while momentum does the contrary."""

    per_step: ClassVar[bool] = True

    def __init__(
        self, optimizer: Optimizer, max_lr: float | Sequence[float], total_steps: int | None = None,
        epochs: int | None = None, steps_per_epoch: int | None = None, pct_start: float = 0.3,
        anneal_strategy: str = "cos", cycle_momentum: bool = True, base_momentum: float = 0.85,
        max_momentum: float = 0.95, div_factor: float = 25.0, final_div_factor: float = 1e4,
        three_phase: bool = False, last_epoch: int = -1,
    ) -> None:  # fmt: skip
        if total_steps is None:
            if epochs is None or steps_per_epoch is None:
                raise _refuse("OneCycleLR needs total_steps, or epochs and steps_per_epoch")
            total_steps = _positive("OneCycleLR", "epochs", epochs) * _positive(
                "OneCycleLR", "steps_per_epoch", steps_per_epoch
            )
        if not 0 <= pct_start <= 1:
            raise _refuse(f"OneCycleLR: pct_start lies in [0, 1], not {pct_start}")
        if anneal_strategy not in ("cos", "linear"):
            raise _refuse(f"OneCycleLR: anneal_strategy is 'cos' or 'linear', not {anneal_strategy!r}")
        if cycle_momentum and not all("betas" in g or "momentum" in g for g in optimizer.param_groups):
            raise _refuse(
                f"OneCycleLR: {type(optimizer).__name__} has no momentum to cycle", hint="say cycle_momentum=False"
            )
        groups = len(optimizer.param_groups)
        rates = [float(max_lr)] * groups if isinstance(max_lr, int | float) else [float(x) for x in max_lr]
        if len(rates) != groups:
            raise _refuse(f"OneCycleLR has {len(rates)} rates for {groups} groups")
        self.total_steps = total = _positive("OneCycleLR", "total_steps", total_steps)
        self.max_lrs, self.div_factor, self.final_div_factor = rates, div_factor, final_div_factor
        self.anneal_strategy, self.cycle_momentum = anneal_strategy, cycle_momentum
        self.base_momentum, self.max_momentum = base_momentum, max_momentum
        first = pct_start * total - 1
        # Where each phase ends, and between which of (first, greatest, last) rates it goes.
        self.phases = [(first, 0, 1), (2 * pct_start * total - 2, 1, 0), (total - 1, 0, 2)]
        if not three_phase:
            self.phases = [(first, 0, 1), (total - 1, 1, 2)]
        if last_epoch == -1:
            for group, rate in zip(optimizer.param_groups, rates, strict=True):
                group["initial_lr"] = rate / div_factor
        super().__init__(optimizer, last_epoch)

    def _between(self, t: float, ends: Sequence[float]) -> float:
        start = 0.0
        for k, (end, one, other) in enumerate(self.phases):
            if t <= end or k == len(self.phases) - 1:
                done = (t - start) / (end - start) if end != start else 1.0
                if self.anneal_strategy == "linear":
                    return ends[one] + (ends[other] - ends[one]) * done
                return ends[other] + (ends[one] - ends[other]) / 2 * (1 + math.cos(math.pi * done))
            start = end
        return ends[2]

    def rate(self, base: float, t: float, group: int) -> float:
        if t > self.total_steps:
            raise _refuse(f"OneCycleLR was made for {self.total_steps} steps, and this is step {t:g}")
        first = self.max_lrs[group] / self.div_factor
        return self._between(t, (first, self.max_lrs[group], first / self.final_div_factor))

    def momentum(self, t: float, group: int) -> float | None:
        if not self.cycle_momentum:
            return None
        return self._between(t, (self.max_momentum, self.base_momentum, self.max_momentum))


class WarmupLR(LRScheduler):
    """A linear warm-up in `warmup_steps` steps, and then another schedule, or the rate as it is.

    Of n steps the first has 1/n of the rate, and the last all of it; with a `start_factor` the first has that part, and
    all of it comes with the step after the last.
    """

    per_step: ClassVar[bool] = True

    def __init__(
        self, optimizer: Optimizer, warmup_steps: int, after: LRScheduler | None = None,
        start_factor: float | None = None, last_epoch: int = -1,
    ) -> None:  # fmt: skip
        self.warmup_steps, self.start_factor = _positive("WarmupLR", "warmup_steps", warmup_steps), start_factor
        self.after = after
        if after is not None:
            _check_parts("WarmupLR", optimizer, [after])
        super().__init__(optimizer, last_epoch)

    unsaved = ("optimizer", "after")

    def rate(self, base: float, t: float, group: int) -> float:
        if t < self.warmup_steps:
            first, part = self.start_factor, t / self.warmup_steps
            return base * (part + 1 / self.warmup_steps if first is None else first + (1 - first) * part)
        return base if self.after is None else self.after.rate(base, t - self.warmup_steps, group)

    def momentum(self, t: float, group: int) -> float | None:
        return None if self.after is None else self.after.momentum(max(t - self.warmup_steps, 0), group)


class SequentialLR(LRScheduler):
    """Schedules one after another: each but the first begins, with its step 0, at a milestone."""

    def __init__(
        self, optimizer: Optimizer, schedulers: Sequence[LRScheduler], milestones: Sequence[int], last_epoch: int = -1
    ) -> None:
        _check_parts("SequentialLR", optimizer, schedulers)
        if len(milestones) != len(schedulers) - 1 or list(milestones) != sorted(milestones):
            raise _refuse(f"SequentialLR: {len(schedulers)} schedules need {len(schedulers) - 1} rising milestones")
        self.schedulers, self.milestones = list(schedulers), list(milestones)
        super().__init__(optimizer, last_epoch)

    unsaved = ("optimizer", "schedulers")

    def _at(self, t: float) -> tuple[LRScheduler, float]:
        k = bisect_right(self.milestones, t)
        return self.schedulers[k], t - (self.milestones[k - 1] if k else 0)

    def rate(self, base: float, t: float, group: int) -> float:
        schedule, since = self._at(t)
        return schedule.rate(base, since, group)

    def momentum(self, t: float, group: int) -> float | None:
        schedule, since = self._at(t)
        return schedule.momentum(since, group)


class ChainedScheduler(LRScheduler):
    """Several schedules at once: each takes what the one before it gives as the rate to begin with."""

    def __init__(
        self, schedulers: Sequence[LRScheduler], optimizer: Optimizer | None = None, last_epoch: int = -1
    ) -> None:
        if not schedulers:
            raise _refuse("ChainedScheduler was given no schedules")
        own = optimizer or schedulers[0].optimizer
        _check_parts("ChainedScheduler", own, schedulers)
        self.schedulers = list(schedulers)
        super().__init__(own, last_epoch)

    unsaved = ("optimizer", "schedulers")

    def rate(self, base: float, t: float, group: int) -> float:
        for schedule in self.schedulers:
            base = schedule.rate(base, t, group)
        return base

    def momentum(self, t: float, group: int) -> float | None:
        found = [m for schedule in self.schedulers if (m := schedule.momentum(t, group)) is not None]
        return found[-1] if found else None


def _check_parts(who: str, optimizer: Optimizer, parts: Sequence[Any]) -> None:
    for part in parts:
        if not isinstance(part, LRScheduler):
            raise _refuse(f"{who} takes schedules that are functions of the step, and was given {type(part).__name__}")
        if part.optimizer is not optimizer:
            raise _refuse(f"{who}: {type(part).__name__} is a schedule of another optimizer")


class ReduceLROnPlateau:
    """The rate times `factor` when a measure has not improved for `patience` steps."""

    def __init__(
        self, optimizer: Optimizer, mode: str = "min", factor: float = 0.1, patience: int = 10,
        threshold: float = 1e-4, threshold_mode: str = "rel", cooldown: int = 0,
        min_lr: float | Sequence[float] = 0.0, eps: float = 1e-8,
    ) -> None:  # fmt: skip
        if mode not in ("min", "max"):
            raise _refuse(f"ReduceLROnPlateau: mode is 'min' or 'max', not {mode!r}")
        if threshold_mode not in ("rel", "abs"):
            raise _refuse(f"ReduceLROnPlateau: threshold_mode is 'rel' or 'abs', not {threshold_mode!r}")
        if not 0 <= factor < 1:
            raise _refuse(f"ReduceLROnPlateau: factor is at least 0 and below 1, not {factor}")
        groups = len(optimizer.param_groups)
        self.optimizer, self.mode, self.factor, self.patience = optimizer, mode, factor, patience
        self.threshold, self.threshold_mode, self.cooldown, self.eps = threshold, threshold_mode, cooldown, eps
        self.min_lrs = [float(min_lr)] * groups if isinstance(min_lr, int | float) else list(min_lr)
        if len(self.min_lrs) != groups:
            raise _refuse(f"ReduceLROnPlateau has {len(self.min_lrs)} least rates for {groups} groups")
        setattr(optimizer, _OWNER, None)
        self.best = math.inf if mode == "min" else -math.inf
        self.num_bad_epochs = self.cooldown_counter = self.last_epoch = 0

    def is_better(self, value: float) -> bool:
        """Whether a measure is better than the best so far, by more than the threshold."""
        sign = 1.0 if self.mode == "min" else -1.0
        if not math.isfinite(self.best):
            return sign * value < sign * self.best
        margin = self.threshold * (self.best if self.threshold_mode == "rel" else 1.0)
        wanted = self.best - sign * margin
        return sign * value < sign * wanted

    def step(self, metrics: Any) -> None:
        """Take a measure (a number, or a tensor of one), and lower the rates if it is time to."""
        claim(self.optimizer, self)
        value = float(metrics)
        self.last_epoch += 1
        if self.is_better(value):
            self.best, self.num_bad_epochs = value, 0
        else:
            self.num_bad_epochs += 1
        if self.cooldown_counter > 0:
            self.cooldown_counter -= 1
            self.num_bad_epochs = 0
        if self.num_bad_epochs > self.patience:
            for group, least in zip(self.optimizer.param_groups, self.min_lrs, strict=False):
                lower = max(group["lr"] * self.factor, least)
                if group["lr"] - lower > self.eps:
                    group["lr"] = lower
            self.cooldown_counter, self.num_bad_epochs = self.cooldown, 0

    def get_last_lr(self) -> list[float]:
        """The learning rates of the groups now."""
        return [group["lr"] for group in self.optimizer.param_groups]

    def __repr__(self) -> str:
        return _shown(self)

    def state_dict(self) -> dict[str, Any]:
        """What it has seen and was told."""
        return {n: v for n, v in vars(self).items() if n != "optimizer"}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from a state."""
        strange = set(state) ^ set(self.state_dict())
        if strange:
            raise _refuse(f"the state does not fit ReduceLROnPlateau: '{min(strange)}'")
        vars(self).update(state)
