"""The table of optimizers: what numbers each takes, what it remembers of a parameter, and how it updates one.

A row stands alone: `update(p, g, slots, h, step)` gives the parameter's next value and its slots, of tensors or of what
stands for them in a trace. `h` holds the numbers of a group; one that may be left out (`optional`: a weight decay of
zero) is not in it, so that nothing is computed for it. `step` counts from 1. Classes (base.py) and pure functions
(functional.py) are made of these rows. The formulas are PyTorch's, and LAMB's and Lion's those of their papers.
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from eshkol.errors import TensorError
from eshkol.tensors import api as ek
from eshkol.tensors.scalars import Scalar, scalar_node
from eshkol.tensors.value import Tensor

Slots = dict[str, Any]
Numbers = Mapping[str, Any]
Update = Callable[[Any, Any, Slots, Numbers, Any], tuple[Any, Slots]]


@dataclass(frozen=True)
class Hyper:
    """A hyperparameter: its default, and between which numbers it lies."""

    default: float | tuple[float, ...]
    below: float = math.inf  # it is less than that
    optional: bool = False  # zero means that it plays no part
    at_start: bool = False  # it is what a slot starts with, and no update asks for it


@dataclass(frozen=True)
class Slot:
    """What is remembered of a parameter: zeros, or another number, of its shape or of none."""

    start: float = 0.0
    alone: bool = False  # one number for the whole parameter


@dataclass(frozen=True)
class UpdateRule:
    """A row of the table."""

    name: str
    numbers: Mapping[str, Hyper]
    switches: Mapping[str, bool]
    slots: Callable[[Mapping[str, Any]], dict[str, Slot]]  # of the options of a group
    update: Update
    check: Callable[[Mapping[str, Any]], str | None] = lambda options: None  # what is wrong with options together

    @property
    def defaults(self) -> dict[str, Any]:
        """Every option with its default, numbers first."""
        return {name: number.default for name, number in self.numbers.items()} | dict(self.switches)

    def options(self, given: Mapping[str, Any], defaults: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """The options of a group: what was given, and the defaults; a name that is none is refused."""
        known = self.defaults
        for name in given:
            if name not in known:
                near = difflib.get_close_matches(name, known, 1)
                raise TensorError(
                    f"{self.name} has no option '{name}'" + (f"; did you mean '{near[0]}'?" if near else ""),
                    span=ek.here(), hint=f"its options are {', '.join(known)}",
                )  # fmt: skip
        options = known | dict(defaults or {}) | dict(given)
        self.hyper(options)
        return options

    def hyper(self, options: Mapping[str, Any]) -> dict[str, Any]:
        """What an update is told: floats, which may change from step to step, and switches, which are True.

        Of `betas` it is told `beta1` and `beta2`. Numbers that are zero and may be left out are not in it, nor are
        switches that are off: so a compiled update is compiled again only when the computation is another.
        """
        told: dict[str, Any] = {}
        for name, number in self.numbers.items():
            value = options[name]
            if isinstance(number.default, tuple):
                if not isinstance(value, tuple | list) or len(value) != len(number.default):
                    raise TensorError(
                        f"{self.name}: {name} are {len(number.default)} numbers, not {value!r}", span=ek.here(),
                        hint=f"write {name}={number.default}",
                    )  # fmt: skip
                for k, part in enumerate(value):
                    told[f"{name[:-1]}{k + 1}"] = self._checked(f"{name}[{k}]", part, number)
            else:
                value = self._checked(name, value, number)
                if not number.at_start and not (number.optional and is_off(value)):
                    told[name] = value
        for name in self.switches:
            if not isinstance(options[name], bool):
                raise TensorError(f"{self.name}: {name} is True or False, not {options[name]!r}", span=ek.here())
            if options[name]:
                told[name] = True
        wrong = self.check(options)
        if wrong is not None:
            raise TensorError(f"{self.name}: {wrong}", span=ek.here())
        return told

    def _checked(self, name: str, value: Any, number: Hyper) -> Any:
        if isinstance(value, Tensor):
            value = as_number(value)
            if isinstance(value, Tensor):
                return value  # not known yet: an input of a trace
        try:
            found = float(value)
        except (TypeError, ValueError):
            raise TensorError(f"{self.name}: {name} is a number, not {value!r}", span=ek.here()) from None
        if not 0 <= found < number.below:
            wanted = "not negative" if number.below == math.inf else f"at least 0 and less than {number.below:g}"
            raise TensorError(
                f"{self.name}: {name} must be {wanted}, and is {found:g}", span=ek.here(),
                hint=f"the usual one is {name}={number.default:g}" if isinstance(number.default, float) else None,
            )  # fmt: skip
        return found

    def started(self, parameter: Tensor, options: Mapping[str, Any]) -> Slots:
        """The slots of a parameter before the first step."""
        shape, dtype = as_real(parameter).shape, working(parameter)
        with ek.device(parameter.device):
            return {
                name: ek.full(() if slot.alone else shape, slot.start, dtype=dtype)
                for name, slot in self.slots(options).items()
            }

    def applied(self, p: Any, g: Any, slots: Slots, h: Numbers, step: Any) -> tuple[Any, Slots]:
        """One parameter's next value and slots.

        Parameters of 16 bits are updated in float32, and their slots are kept so: a tenth of a percent of a running
        mean is lost in them. Complex ones are updated as pairs of reals.
        """
        dtype, wide = p.dtype, working(p)
        if dtype.is_complex:
            p, g = as_real(p), as_real(g)
        elif wide is not dtype:
            p, g = ek.cast(p, wide), ek.cast(g, wide)
        p, slots = self.update(p, -g if "maximize" in h else g, slots, h, step)
        if dtype.is_complex:
            p = ek.complex(p[..., 0], p[..., 1])
        return (p if p.dtype is dtype else ek.cast(p, dtype)), slots


def as_number(value: Any) -> Any:
    """A tensor without axes as a number, which takes the dtype of the tensors that it meets."""
    if not isinstance(value, Tensor):
        return value
    found = value if isinstance(value, Scalar) else Scalar(scalar_node(value))
    return found.item() if found.known else found


def is_off(value: Any) -> bool:
    """Whether an option is known to be zero, and so plays no part."""
    return not isinstance(value, Tensor) and value == 0


def working(parameter: Tensor) -> Any:
    """The dtype that a parameter is updated in."""
    dtype = parameter.dtype
    if dtype.is_complex:
        return ek.float32 if dtype is ek.complex64 else ek.float64
    return ek.float32 if dtype.size < 4 else dtype


def as_real(value: Tensor) -> Any:
    """A complex tensor as pairs of reals, along a last axis; others as they are."""
    return ek.stack([value.real, value.imag], -1) if value.dtype.is_complex else value


# --- what rows share --------------------------------------------------------------------------------------------------


def _penalized(p: Any, g: Any, h: Numbers) -> Any:
    """The gradient with that of an L2 penalty."""
    return g + h["weight_decay"] * p if "weight_decay" in h else g


def _decayed(p: Any, h: Numbers) -> Any:
    """The parameter after a decay that does not pass through the gradient."""
    return p * (1 - h["lr"] * h["weight_decay"]) if "weight_decay" in h else p


def _mean(mean: Any, value: Any, keep: Any) -> Any:
    """A running mean, one step on."""
    return mean * keep + value * (1 - keep)


def _greater(one: Any, other: float) -> Any:
    return ek.maximum(one, other) if isinstance(one, Tensor) else max(one, other)


def _faded(exponent: Any) -> Any:
    """0.96 to a power: by way of logarithms, which keep all 64 bits of a number that is not known yet."""
    return ek.exp(exponent * math.log(0.96)) if isinstance(exponent, Tensor) else 0.96**exponent


# --- rows -------------------------------------------------------------------------------------------------------------


def _sgd(p: Any, g: Any, slots: Slots, h: Numbers, step: Any) -> tuple[Any, Slots]:
    g = _penalized(p, g, h)
    if "momentum" in h:
        momentum, earlier = h["momentum"], slots["momentum_buffer"]
        moved = earlier * momentum + g * (1 - h.get("dampening", 0))
        if "dampening" in h:
            moved = ek.where(step == 1, g, moved)  # the first gradient is not dampened
        slots = {"momentum_buffer": moved}
        g = g + moved * momentum if "nesterov" in h else moved
    return p - h["lr"] * g, slots


def _sgd_check(options: Mapping[str, Any]) -> str | None:
    if options["nesterov"] and (is_off(options["momentum"]) or not is_off(options["dampening"])):
        return "nesterov needs a momentum above 0, and dampening=0"
    return None


def _moments(g: Any, slots: Slots, h: Numbers, step: Any) -> tuple[Slots, Any, Any]:
    """Adam's two running means, and by what each is too small yet."""
    slots = dict(slots)
    slots["exp_avg"] = _mean(slots["exp_avg"], g, h["beta1"])
    slots["exp_avg_sq"] = _mean(slots["exp_avg_sq"], g * g, h["beta2"])
    return slots, 1 - h["beta1"] ** step, 1 - h["beta2"] ** step


def _adam_step(p: Any, g: Any, slots: Slots, h: Numbers, step: Any) -> tuple[Any, Slots]:
    slots, bias1, bias2 = _moments(g, slots, h, step)
    second = slots["exp_avg_sq"]
    if "amsgrad" in h:
        second = slots["max_exp_avg_sq"] = ek.maximum(slots["max_exp_avg_sq"], second)
    spread = ek.sqrt(second) * (1 / bias2**0.5) + h["eps"]
    return p - (h["lr"] / bias1) * (slots["exp_avg"] / spread), slots


def _adam(p: Any, g: Any, slots: Slots, h: Numbers, step: Any) -> tuple[Any, Slots]:
    return _adam_step(p, _penalized(p, g, h), slots, h, step)


def _adamw(p: Any, g: Any, slots: Slots, h: Numbers, step: Any) -> tuple[Any, Slots]:
    return _adam_step(_decayed(p, h), g, slots, h, step)


def _adam_slots(options: Mapping[str, Any]) -> dict[str, Slot]:
    names = ("exp_avg", "exp_avg_sq", *(("max_exp_avg_sq",) if options.get("amsgrad") else ()))
    return {name: Slot() for name in names}


def _nadam(p: Any, g: Any, slots: Slots, h: Numbers, step: Any) -> tuple[Any, Slots]:
    if "decoupled_weight_decay" in h:
        p = _decayed(p, h)
    else:
        g = _penalized(p, g, h)
    slots, _, bias2 = _moments(g, slots, h, step)
    now, later = (h["beta1"] * (1 - 0.5 * _faded(k * h.get("momentum_decay", 0))) for k in (step, step + 1))
    product = slots["mu_product"] = slots["mu_product"] * now
    spread = ek.sqrt(slots["exp_avg_sq"] / bias2) + h["eps"]
    p = p - (h["lr"] * (1 - now) / (1 - product)) * (g / spread)
    return p - (h["lr"] * later / (1 - product * later)) * (slots["exp_avg"] / spread), slots


def _radam(p: Any, g: Any, slots: Slots, h: Numbers, step: Any) -> tuple[Any, Slots]:
    if "decoupled_weight_decay" in h:
        p = _decayed(p, h)
    else:
        g = _penalized(p, g, h)
    slots, bias1, bias2 = _moments(g, slots, h, step)
    most = 2 / (1 - h["beta2"]) - 1
    length = most - 2 * step * h["beta2"] ** step / bias2
    # Where the variance of the second mean is not known yet it plays no part; the other branch stays a number.
    known, safe = length > 5, _greater(length, 5.0)
    rectified = ((safe - 4) * (safe - 2) * most / ((most - 4) * (most - 2) * safe)) ** 0.5
    first = slots["exp_avg"] / bias1
    scaled = first * bias2**0.5 / (ek.sqrt(slots["exp_avg_sq"]) + h["eps"])
    return p - h["lr"] * ek.where(known, scaled * rectified, first), slots


def _lamb(p: Any, g: Any, slots: Slots, h: Numbers, step: Any) -> tuple[Any, Slots]:
    slots, bias1, bias2 = _moments(g, slots, h, step)
    change = (slots["exp_avg"] / bias1) / (ek.sqrt(slots["exp_avg_sq"] / bias2) + h["eps"])
    if "weight_decay" in h:
        change = change + h["weight_decay"] * p
    weight, size = ek.sqrt((p * p).sum()), ek.sqrt((change * change).sum())
    trust = ek.where((weight > 0) & (size > 0), weight / ek.where(size > 0, size, 1.0), 1.0)
    return p - h["lr"] * trust * change, slots


def _rmsprop(p: Any, g: Any, slots: Slots, h: Numbers, step: Any) -> tuple[Any, Slots]:
    g = _penalized(p, g, h)
    slots = dict(slots)
    square = slots["square_avg"] = _mean(slots["square_avg"], g * g, h["alpha"])
    if "centered" in h:
        mean = slots["grad_avg"] = _mean(slots["grad_avg"], g, h["alpha"])
        square = ek.maximum(square - mean * mean, 0.0)  # a variance, which rounding must not make negative
    g = g / (ek.sqrt(square) + h["eps"])
    if "momentum" in h:
        g = slots["momentum_buffer"] = slots["momentum_buffer"] * h["momentum"] + g
    return p - h["lr"] * g, slots


def _rmsprop_slots(options: Mapping[str, Any]) -> dict[str, Slot]:
    names = {"square_avg": True, "momentum_buffer": not is_off(options["momentum"]), "grad_avg": options["centered"]}
    return {name: Slot() for name, used in names.items() if used}


def _adagrad(p: Any, g: Any, slots: Slots, h: Numbers, step: Any) -> tuple[Any, Slots]:
    g = _penalized(p, g, h)
    total = slots["sum"] + g * g
    rate = h["lr"] / (1 + (step - 1) * h["lr_decay"]) if "lr_decay" in h else h["lr"]
    return p - rate * (g / (ek.sqrt(total) + h["eps"])), {"sum": total}


def _adadelta(p: Any, g: Any, slots: Slots, h: Numbers, step: Any) -> tuple[Any, Slots]:
    g = _penalized(p, g, h)
    square = _mean(slots["square_avg"], g * g, h["rho"])
    change = ek.sqrt(slots["acc_delta"] + h["eps"]) / ek.sqrt(square + h["eps"]) * g
    return p - h["lr"] * change, {
        "square_avg": square,
        "acc_delta": _mean(slots["acc_delta"], change * change, h["rho"]),
    }


def _lion(p: Any, g: Any, slots: Slots, h: Numbers, step: Any) -> tuple[Any, Slots]:
    mean = slots["exp_avg"]
    way = ek.sign(_mean(mean, g, h["beta1"]))
    return _decayed(p, h) - h["lr"] * way, {"exp_avg": _mean(mean, g, h["beta2"])}


def _zeros(*names: str) -> Callable[[Mapping[str, Any]], dict[str, Slot]]:
    return lambda options: {name: Slot() for name in names}


_OFF = Hyper(0.0, optional=True)
_ADAM = {"betas": Hyper((0.9, 0.999), below=1), "eps": Hyper(1e-8)}

RULES: dict[str, UpdateRule] = {
    rule.name: rule
    for rule in (
        UpdateRule(
            "SGD",
            {"lr": Hyper(1e-3), "momentum": _OFF, "dampening": _OFF, "weight_decay": _OFF},
            {"nesterov": False, "maximize": False},
            lambda options: {} if is_off(options["momentum"]) else {"momentum_buffer": Slot()},
            _sgd, _sgd_check,
        ),
        UpdateRule(
            "Adam", {"lr": Hyper(1e-3), **_ADAM, "weight_decay": _OFF}, {"amsgrad": False, "maximize": False},
            _adam_slots, _adam,
        ),
        UpdateRule(
            "AdamW", {"lr": Hyper(1e-3), **_ADAM, "weight_decay": Hyper(1e-2, optional=True)},
            {"amsgrad": False, "maximize": False}, _adam_slots, _adamw,
        ),
        UpdateRule(
            "NAdam",
            {"lr": Hyper(2e-3), **_ADAM, "weight_decay": _OFF, "momentum_decay": Hyper(4e-3, optional=True)},
            {"decoupled_weight_decay": False, "maximize": False},
            lambda options: {**_adam_slots(options), "mu_product": Slot(1.0, alone=True)}, _nadam,
        ),
        UpdateRule(
            "RAdam", {"lr": Hyper(1e-3), **_ADAM, "weight_decay": _OFF},
            {"decoupled_weight_decay": False, "maximize": False}, _adam_slots, _radam,
        ),
        UpdateRule(
            "LAMB", {"lr": Hyper(1e-3), "betas": _ADAM["betas"], "eps": Hyper(1e-6), "weight_decay": _OFF},
            {"maximize": False}, _adam_slots, _lamb,
        ),
        UpdateRule(
            "RMSprop",
            {"lr": Hyper(1e-2), "alpha": Hyper(0.99), "eps": Hyper(1e-8), "weight_decay": _OFF, "momentum": _OFF},
            {"centered": False, "maximize": False}, _rmsprop_slots, _rmsprop,
        ),
        UpdateRule(
            "Adagrad",
            {"lr": Hyper(1e-2), "lr_decay": _OFF, "weight_decay": _OFF,
             "initial_accumulator_value": Hyper(0.0, at_start=True), "eps": Hyper(1e-10)},
            {"maximize": False},
            lambda options: {"sum": Slot(options["initial_accumulator_value"])}, _adagrad,
        ),
        UpdateRule(
            "Adadelta", {"lr": Hyper(1.0), "rho": Hyper(0.9, below=1), "eps": Hyper(1e-6), "weight_decay": _OFF},
            {"maximize": False}, _zeros("square_avg", "acc_delta"), _adadelta,
        ),
        UpdateRule(
            "Lion", {"lr": Hyper(1e-4), "betas": Hyper((0.9, 0.99), below=1), "weight_decay": _OFF},
            {"maximize": False}, _zeros("exp_avg"), _lion,
        ),
    )
}  # fmt: skip
