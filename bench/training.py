"""The same training loops in Scheme and in Python: a small network, hand-written SGD and Adam, compiled or not."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

import eshkol as ek
from bench.harness import Result, race
from eshkol.tensors.computing import realize

TITLE = "Training loops in Scheme and in Python"
STEPS = 50


def forward(params: list[Any], x: Any) -> Any:
    for k in range(0, len(params) - 2, 2):
        x = ek.tanh(x @ params[k] + params[k + 1])
    return x @ params[-2] + params[-1]


def loss(params: list[Any], x: Any, y: Any) -> Any:
    return ek.mean(ek.square(forward(params, x) - y))


def sgd_step(params: list[Any], x: Any, y: Any, rate: Any) -> list[Any]:
    grads = ek.grad(loss)(params, x, y)
    return [p - rate * g for p, g in zip(params, grads, strict=True)]


def adam_step(state: list[Any], x: Any, y: Any, rate: Any, t: Any) -> list[Any]:
    params, means, squares = state
    grads = ek.grad(loss)(params, x, y)
    means = [0.9 * m + 0.1 * g for m, g in zip(means, grads, strict=True)]
    squares = [0.999 * v + 0.001 * (g * g) for v, g in zip(squares, grads, strict=True)]
    scale = (1 - 0.999**t) ** 0.5 / (1 - 0.9**t)
    rows = zip(params, means, squares, strict=True)
    return [[p - rate * (scale * m) / (ek.sqrt(v) + 1e-8) for p, m, v in rows], means, squares]


def train_sgd(step: Callable[..., Any], params: list[Any], x: Any, y: Any, steps: int) -> Any:
    for _ in range(steps):
        params = step(params, x, y, 0.05)
        realize(*params)
    return params


def train_adam(step: Callable[..., Any], state: list[Any], x: Any, y: Any, steps: int) -> Any:
    for i in range(1, steps + 1):
        state = step(state, x, y, 0.01, float(i))
        realize(*(t for part in state for t in part))
    return state[0]


def _training(loop: Callable[..., Any], step: Any, start: Any, x: Any, y: Any) -> Callable[[], object]:
    return lambda: loop(step, start, x, y, STEPS)


def run() -> list[Result]:
    scheme = ek.load(Path(__file__).with_suffix(".esk"))
    rng = np.random.default_rng(0)
    x, y = ek.tensor(rng.normal(size=(64, 8))), ek.tensor(rng.normal(size=(64, 1)))
    x, y = x.astype(ek.float32), y.astype(ek.float32)
    sizes = (8, 32, 32, 1)
    params = [
        ek.tensor(rng.normal(size=s) * 0.3).astype(ek.float32) for a, b in pairwise(sizes) for s in ((a, b), (b,))
    ]
    zeros = [p * 0 for p in params]
    realize(x, y, *params, *zeros)
    state = [params, zeros, zeros]
    compiled = ek.lang.jit_compile
    steps = {
        "SGD": (sgd_step, scheme.sgd_step, train_sgd, scheme.train_sgd, params),
        "Adam": (adam_step, scheme.adam_step, train_adam, scheme.train_adam, state),
    }
    results = []
    for name, (ours, theirs, loop, other, start) in steps.items():
        for how in ("as it is", "compiled"):
            mine = ours if how == "as it is" else ek.jit(ours, floats=True)
            yours = theirs if how == "as it is" else compiled(theirs)
            a, b = loop(mine, start, x, y, 5), other(yours, start, x, y, 5)
            for p, q in zip(a, b, strict=True):
                np.testing.assert_allclose(p.numpy(), q.numpy(), rtol=2e-4, atol=1e-6)
            contestants = {
                "Scheme": _training(other, yours, start, x, y),
                "Python": _training(loop, mine, start, x, y),
            }
            results.append(race(f"{name}, {how}", contestants, work=STEPS, unit="steps"))
    return results
