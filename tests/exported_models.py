"""Functions that are exported for pages, with arguments: tests of WebAssembly and of kernels for GPUs have the same."""

from __future__ import annotations

from typing import Any

import numpy as np

import eshkol as ek
from eshkol import nn

rng = np.random.default_rng(7)


def weights(*shape: int) -> ek.Tensor:
    return ek.tensor((0.4 * rng.normal(size=shape)).astype(np.float32))


def perceptron() -> tuple[Any, tuple[Any, ...]]:
    model = nn.Sequential(nn.Linear(20, 32), nn.ReLU(), nn.Linear(32, 10)).eval()
    return (lambda image: ek.softmax(model(image), axis=-1)), (weights(3, 20),)


def convolutions() -> tuple[Any, tuple[Any, ...]]:
    model = nn.Sequential(
        nn.Conv2d(1, 4, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(4, 8, 3, padding=1), nn.BatchNorm2d(8),
        nn.GELU(), nn.AvgPool2d(2), nn.Flatten(), nn.Linear(32, 10), nn.LogSoftmax(-1),
    ).eval()  # fmt: skip
    return (lambda image: model(image)), (weights(1, 1, 8, 8),)


def small_gpt() -> tuple[Any, tuple[Any, ...]]:
    model = nn.GPT(vocabulary=30, context=16, layers=2, heads=2, width=16).eval()
    return (lambda ids: model(ids)), (ek.tensor(rng.integers(0, 30, (2, 16))),)


def gpt_step() -> tuple[Any, tuple[Any, ...]]:
    model = nn.GPT(vocabulary=30, context=16, layers=1, heads=2, width=16).eval()

    def step(token: Any, position: Any, memory: Any) -> Any:
        return model.extend(token, memory, position)

    return step, (ek.tensor([[3]]), ek.tensor(2), model.empty_caches(1))


def loops() -> tuple[Any, tuple[Any, ...]]:
    matrix = weights(5, 5)

    def grown(x: Any) -> Any:
        last, all_of_them = ek.scan(lambda c, k: (ek.tanh(c @ matrix) + k, c), x, ek.arange(6, dtype="float32"))
        return last, all_of_them, ek.while_loop(lambda c: ek.sum(c) < 100, lambda c: c * 2 + 1, ek.abs(x))

    return grown, (weights(5),)


def many_functions() -> tuple[Any, tuple[Any, ...]]:
    def all_of_them(x: Any) -> Any:
        y = ek.abs(x) + 0.1
        found = [f(x) for f in (ek.exp, ek.exp2, ek.tanh, ek.erf, ek.cumsum)]
        return [*found, ek.log(y), ek.sqrt(y), ek.sin(50 * x), y**2.3]

    return all_of_them, (weights(101),)


def doubles() -> tuple[Any, tuple[Any, ...]]:
    return (lambda x, n: (ek.exp(x) @ x.T, n * 3 - 1, x > 0)), (
        ek.tensor(rng.normal(size=(4, 9))), ek.tensor(np.arange(-3, 4)),
    )  # fmt: skip


def assert_near(found: Any, wanted: Any, name: str, places: int = 4) -> None:
    """Floats differ by at most some last places of the largest of them, others not at all."""
    if wanted.dtype.kind != "f":
        np.testing.assert_array_equal(found, wanted, name)
        return
    place = np.spacing(np.abs(wanted).max(initial=0).astype(wanted.dtype))
    apart = np.abs(found.astype(np.float64) - wanted).max(initial=0)
    assert apart <= places * place, f"{name}: {apart / place} last places"
