"""Initialisers: fans, distributions by their moments and bounds, seeds, and that they change parameters in place."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy import stats

import eshkol as ek
from eshkol import nn
from eshkol.errors import EshkolError
from eshkol.nn import init

SHAPE = (24, 16, 3)  # fan_in 48, fan_out 72


@pytest.mark.parametrize(
    ("layer", "fans"),
    [
        (lambda: nn.Linear(3, 5), (3, 5)),
        (lambda: nn.Conv2d(4, 6, 3), (36, 54)),
        (lambda: nn.Conv2d(4, 6, 3, groups=2), (18, 27)),
        (lambda: nn.ConvTranspose2d(4, 6, 3), (36, 54)),
        (lambda: nn.ConvTranspose1d(4, 6, 3, groups=2), (6, 9)),
    ],
)
def test_fans_per_layer(layer: Any, fans: tuple[int, int]) -> None:
    made = layer()
    found = init.fans(made.weight.shape, getattr(made, "groups", 1), getattr(made, "transposed", False))
    assert found == fans


# Maker, its arguments, and the distribution that SciPy knows.
DISTRIBUTIONS: list[tuple[str, dict[str, Any], Any]] = [
    ("uniform", {"low": -1.0, "high": 3.0}, stats.uniform(-1, 4)),
    ("normal", {"mean": 1.0, "std": 2.0}, stats.norm(1, 2)),
    ("trunc_normal", {"mean": 1.0, "std": 2.0, "a": 0.0, "b": 4.0}, stats.truncnorm(-0.5, 1.5, 1, 2)),
    ("xavier_uniform", {"gain": 2.0}, stats.uniform(-2 * math.sqrt(6 / 120), 4 * math.sqrt(6 / 120))),
    ("xavier_normal", {}, stats.norm(0, math.sqrt(2 / 120))),
    ("he_uniform", {"nonlinearity": "relu"}, stats.uniform(-math.sqrt(6 / 48), 2 * math.sqrt(6 / 48))),
    ("he_normal", {"mode": "fan_out"}, stats.norm(0, math.sqrt(2 / 72))),
    ("kaiming_normal", {"a": 1.0}, stats.norm(0, math.sqrt(1 / 48))),
    ("lecun_normal", {}, stats.norm(0, math.sqrt(1 / 48))),
]


@pytest.mark.parametrize(("name", "given", "law"), DISTRIBUTIONS, ids=lambda x: x if isinstance(x, str) else "")
def test_distributions(name: str, given: dict[str, Any], law: Any) -> None:
    drawn = getattr(init, name)(SHAPE, key=ek.key(7), **given).numpy()
    assert drawn.shape == SHAPE
    assert drawn.dtype == np.float32
    assert stats.kstest(drawn.ravel(), law.cdf).pvalue > 1e-3


@pytest.mark.parametrize("shape", [(3, 5), (5, 3), (4, 2, 3)])
def test_orthogonal(shape: tuple[int, ...]) -> None:
    drawn = init.orthogonal(shape, 2.0, key=ek.key(1), dtype="float64").numpy().reshape(shape[0], -1)
    square = drawn @ drawn.T if drawn.shape[0] <= drawn.shape[1] else drawn.T @ drawn
    np.testing.assert_allclose(square, 4 * np.eye(len(square)), atol=1e-12)


def test_sparse_has_so_many_zeros_in_each_column() -> None:
    drawn = init.sparse((10, 4), 0.25, key=ek.key(2)).numpy()
    np.testing.assert_array_equal((drawn == 0).sum(0), [3, 3, 3, 3])


def test_in_place_on_a_parameter_and_on_a_layer() -> None:
    layer = nn.Linear(4, 3)
    weight = layer.weight
    assert nn.init.constant_(weight, 2.5) is weight
    assert layer.weight is weight
    assert weight.requires_grad
    np.testing.assert_array_equal(weight.detach().numpy(), np.full((3, 4), 2.5, np.float32))
    assert nn.init.eye_(layer) is layer
    np.testing.assert_array_equal(weight.detach().numpy(), np.eye(3, 4, dtype=np.float32))
    half = nn.init.ones_(nn.Parameter(ek.zeros((2,), dtype="float16")))
    assert str(half.dtype) == "float16"


def test_on_a_layer_groups_and_transposition_count() -> None:
    grouped, turned = nn.Conv1d(8, 64, 4, groups=8), nn.ConvTranspose1d(64, 8, 4)
    for layer, mode, fan in ((grouped, "fan_out", 32), (turned, "fan_in", 256), (turned, "fan_out", 32)):
        nn.init.kaiming_normal_(layer, mode=mode, nonlinearity="linear", key=ek.key(4))
        assert layer.weight.detach().numpy().std() == pytest.approx(fan**-0.5, rel=0.1)


def test_dirac_passes_channels_on() -> None:
    layer = nn.Conv1d(3, 3, 3, padding=1, bias=False)
    nn.init.dirac_(layer)
    x = np.arange(12, dtype=np.float32).reshape(1, 3, 4)
    np.testing.assert_array_equal(layer(ek.tensor(x)).detach().numpy(), x)


def test_a_seed_makes_the_same_layers() -> None:
    def weights() -> list[Any]:
        return [p.detach().numpy() for p in nn.Linear(3, 2).parameters()]

    ek.seed(11)
    one = weights()
    other = weights()
    ek.seed(11)
    again = weights()
    assert all((a == b).all() for a, b in zip(one, again, strict=True))
    assert not any((a == b).all() for a, b in zip(one, other, strict=True))


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (lambda: init.xavier_uniform((3,)), "has no fans"),
        (lambda: init.he_normal((3, 3), nonlinearity="sine"), "no gain for 'sine'"),
        (lambda: init.he_normal((3, 3), mode="fan"), "'fan_in' or 'fan_out'"),
        (lambda: init.orthogonal((3,)), "two axes"),
        (lambda: init.normal((3,), std=-1.0), "negative"),
        (lambda: init.zeros_(nn.ReLU()), "a parameter or a layer with a weight"),
    ],
)
def test_what_is_refused(asked: Any, said: str) -> None:
    with pytest.raises(EshkolError, match=said):
        asked()
