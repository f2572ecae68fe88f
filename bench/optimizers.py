"""An optimizer's step alone, of fifty tensors of 10⁴ numbers, beside PyTorch's fused and foreach steps.

Gradients are there already: what is timed is one call of `step`, with what a library does for each tensor in Python.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import eshkol as ek
from bench import peers
from bench.harness import Result, race

TITLE = "An optimizer's step alone, 50 tensors of 10⁴ numbers"
COUNT, SHAPE, STEPS = 50, (100, 100), 20
KINDS: dict[str, tuple[str, dict[str, Any]]] = {
    "SGD": ("SGD", {"lr": 1e-3}),
    "SGD with momentum": ("SGD", {"lr": 1e-3, "momentum": 0.9}),
    "Adam": ("Adam", {"lr": 1e-3}),
    "AdamW": ("AdamW", {"lr": 1e-3}),
}


def _ours(kind: str, how: dict[str, Any], values: list[np.ndarray], grads: list[np.ndarray]) -> Callable[[], Any]:
    params = [ek.tensor(a).requires_grad_() for a in values]
    given = [ek.tensor(a) for a in grads]
    optimizer = getattr(ek.optim, kind)(params, **how)

    def step() -> Any:
        for p, g in zip(params, given, strict=True):
            p.grad = g  # those of the last step are spent
        optimizer.step()
        return params

    return step


def _theirs(
    kind: str, how: dict[str, Any], values: list[np.ndarray], grads: list[np.ndarray], **way: bool
) -> Callable[[], Any]:
    torch = peers.torch()
    params = [torch.from_numpy(a.copy()).requires_grad_() for a in values]
    for p, g in zip(params, grads, strict=True):
        p.grad = torch.from_numpy(g)
    optimizer = getattr(torch.optim, kind)(params, **how, **way)

    def step() -> Any:
        optimizer.step()
        return params

    return step


def run() -> list[Result]:
    rng = np.random.default_rng(0)
    values, grads = ([rng.standard_normal(SHAPE).astype(np.float32) for _ in range(COUNT)] for _ in range(2))
    results = []
    for name, (kind, how) in KINDS.items():
        contestants = {"eshkol": _ours(kind, how, values, grads)}
        if peers.torch():
            contestants["PyTorch, fused"] = _theirs(kind, how, values, grads, fused=True)
            contestants["PyTorch, foreach"] = _theirs(kind, how, values, grads, foreach=True)
        ours, *others = [[call() for _ in range(STEPS)][-1] for call in contestants.values()]
        for theirs in others:
            for p, q in zip(ours, theirs, strict=True):  # what computes something else is not timed
                np.testing.assert_allclose(p.detach().numpy(), q.detach().numpy(), rtol=1e-5, atol=1e-6)
        results.append(race(name, contestants, work=COUNT * SHAPE[0] * SHAPE[1], unit="numbers"))
    return results
