"""Optimizers with options, and schedules, whose course over 50 steps is compared: with PyTorch, with stored numbers.

The gradients are a function of the parameters and the step, computed by NumPy for both sides. Run under a Python that
has PyTorch, this file writes the stored numbers: `python tests/optim/trajectories.py`.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

STEPS = 50
KEPT = (1, 8, 50)  # steps whose parameters are stored
REFERENCES = Path(__file__).parent / "references" / "trajectories.json"

OPTIMIZERS: list[tuple[str, dict[str, Any]]] = [
    ("SGD", {"lr": 0.05}),
    ("SGD", {"lr": 0.05, "momentum": 0.9, "weight_decay": 0.01}),
    ("SGD", {"lr": 0.05, "momentum": 0.9, "dampening": 0.3}),
    ("SGD", {"lr": 0.05, "momentum": 0.8, "nesterov": True, "weight_decay": 0.02}),
    ("SGD", {"lr": 0.05, "momentum": 0.8, "maximize": True, "weight_decay": 0.02}),
    ("Adam", {"lr": 0.02}),
    ("Adam", {"lr": 0.02, "betas": (0.8, 0.95), "eps": 1e-4, "weight_decay": 0.05}),
    ("Adam", {"lr": 0.02, "amsgrad": True, "maximize": True}),
    ("AdamW", {"lr": 0.02}),
    ("AdamW", {"lr": 0.02, "weight_decay": 0.2, "amsgrad": True}),
    ("NAdam", {"lr": 0.02}),
    ("NAdam", {"lr": 0.02, "weight_decay": 0.1, "momentum_decay": 0.01}),
    ("NAdam", {"lr": 0.02, "weight_decay": 0.1, "decoupled_weight_decay": True}),
    ("RAdam", {"lr": 0.02}),
    ("RAdam", {"lr": 0.02, "weight_decay": 0.1, "betas": (0.8, 0.9)}),
    ("RAdam", {"lr": 0.02, "weight_decay": 0.1, "decoupled_weight_decay": True}),
    ("RMSprop", {"lr": 0.01}),
    ("RMSprop", {"lr": 0.01, "alpha": 0.9, "eps": 1e-3, "weight_decay": 0.05, "momentum": 0.7}),
    ("RMSprop", {"lr": 0.01, "centered": True, "momentum": 0.5, "maximize": True}),
    ("Adagrad", {"lr": 0.1}),
    ("Adagrad", {"lr": 0.1, "lr_decay": 0.02, "weight_decay": 0.05, "initial_accumulator_value": 0.5, "eps": 1e-6}),
    ("Adadelta", {}),
    ("Adadelta", {"lr": 0.5, "rho": 0.8, "eps": 1e-4, "weight_decay": 0.05}),
]

# Each makes a schedule with a module that has the classes: ours, or torch.optim.lr_scheduler.
SCHEDULES: dict[str, Any] = {
    "step": lambda s, o: s.StepLR(o, 7, gamma=0.5),
    "multi": lambda s, o: s.MultiStepLR(o, [5, 20, 20, 33], gamma=0.3),
    "exponential": lambda s, o: s.ExponentialLR(o, 0.93),
    "constant": lambda s, o: s.ConstantLR(o, 0.25, total_iters=9),
    "linear": lambda s, o: s.LinearLR(o, 0.1, 0.8, total_iters=12),
    "polynomial": lambda s, o: s.PolynomialLR(o, 30, power=1.7),
    "cosine": lambda s, o: s.CosineAnnealingLR(o, 15, eta_min=0.01),
    "restarts": lambda s, o: s.CosineAnnealingWarmRestarts(o, 8, eta_min=0.02),
    "restarts-longer": lambda s, o: s.CosineAnnealingWarmRestarts(o, 4, T_mult=2),
    "lambda": lambda s, o: s.LambdaLR(o, [lambda t: 0.9**t, lambda t: 1 / (1 + t)]),
    "one-cycle": lambda s, o: s.OneCycleLR(o, 0.4, total_steps=60),
    "one-cycle-linear": lambda s, o: s.OneCycleLR(
        o, [0.4, 0.8], epochs=6, steps_per_epoch=10, anneal_strategy="linear"
    ),
    "one-cycle-three": lambda s, o: s.OneCycleLR(o, 0.4, 51, three_phase=True, cycle_momentum=False),
    "sequential": lambda s, o: s.SequentialLR(
        o, [s.LinearLR(o, 0.1, total_iters=5), s.ExponentialLR(o, 0.9), s.CosineAnnealingLR(o, 10)], [5, 21]
    ),
    "chained": lambda s, o: s.ChainedScheduler(
        [s.LinearLR(o, 0.2, total_iters=6), s.ExponentialLR(o, 0.95), s.StepLR(o, 10, 0.5)]
    ),
}

PLATEAUS: list[dict[str, Any]] = [
    {"patience": 2, "factor": 0.5},
    {"mode": "max", "patience": 1, "cooldown": 3, "threshold": 0.05, "min_lr": 0.01},
    {"patience": 0, "threshold": 0.1, "threshold_mode": "abs", "factor": 0.7},
]


def title(name: str, options: dict[str, Any]) -> str:
    return name + "".join(f" {key}={value}" for key, value in options.items())


def starts(dtype: Any = np.float64) -> list[Any]:
    return [np.linspace(-1.0, 1.3, 6).reshape(3, 2).astype(dtype), np.linspace(0.4, 2.0, 4).astype(dtype)]


def gradient(p: Any, step: int) -> Any:
    return (np.sin(3 * p + 0.7 * step) + 0.3 * p).astype(p.dtype)


def measure(step: int) -> float:
    return float(1 / (1 + 0.2 * step) + 0.05 * np.sin(2.0 * step))


def _parameters(torch: Any) -> Any:
    return [torch.tensor(p, requires_grad=True) for p in starts()]


def torch_course(torch: Any, name: str, options: dict[str, Any], dtype: Any = np.float64) -> list[list[Any]]:
    """The parameters after every step of PyTorch's optimizer."""
    params = [torch.tensor(p, requires_grad=True) for p in starts(dtype)]
    earlier = torch.get_default_dtype()
    torch.set_default_dtype(params[0].dtype)  # which it keeps NAdam's product of momenta in
    optimizer = getattr(torch.optim, name)(params, **options)
    course = []
    for step in range(STEPS):
        for p in params:
            p.grad = torch.tensor(gradient(p.detach().numpy(), step))
        optimizer.step()
        course.append([p.detach().numpy().copy() for p in params])
    torch.set_default_dtype(earlier)
    return course


def scheduled(optimizer: Any, schedule: Any, measured: bool = False) -> list[list[float]]:
    """Rates (and momenta) of all groups before every step."""
    course = []
    for step in range(STEPS):
        course.append([float(x) for g in optimizer.param_groups for x in (g["lr"], g["momentum"])])
        optimizer.step()
        schedule.step(measure(step)) if measured else schedule.step()
    return course


def two_groups(sgd: Any, one: Any, two: Any) -> Any:
    return sgd([{"params": [one]}, {"params": [two], "lr": 0.05}], lr=0.2, momentum=0.9)


def _write() -> None:
    import torch

    made: dict[str, Any] = {}
    for name, options in OPTIMIZERS:
        course = torch_course(torch, name, options)
        made[title(name, options)] = [[p.ravel().tolist() for p in course[k - 1]] for k in KEPT]
    module = torch.optim.lr_scheduler
    for key, make in SCHEDULES.items():
        optimizer = two_groups(torch.optim.SGD, *_parameters(torch))
        made[key] = scheduled(optimizer, make(module, optimizer))
    for k, options in enumerate(PLATEAUS):
        optimizer = two_groups(torch.optim.SGD, *_parameters(torch))
        made[f"plateau {k}"] = scheduled(optimizer, module.ReduceLROnPlateau(optimizer, **options), measured=True)
    REFERENCES.parent.mkdir(exist_ok=True)
    REFERENCES.write_text("{\n" + ",\n".join(f"{json.dumps(k)}: {json.dumps(v)}" for k, v in made.items()) + "\n}\n")


if __name__ == "__main__":
    _write()
