"""Every layer and loss against PyTorch, where it is installed: forward and backward, float64 and float32.

Initialisers are compared by the distributions of what they draw.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
sys.path.insert(0, str(Path(__file__).parents[1] / "nn"))

import ours
import theirs
from cases import CASES, Case, compared
from scipy import stats

import eshkol as ek
from eshkol import nn

BOUNDS = {"float64": 1e-10, "float32": 1e-5}


@pytest.mark.parametrize("dtype", BOUNDS)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_forward_and_backward(case: Case, dtype: str) -> None:
    state, inputs, cotangent, expected = theirs.computed(case, dtype)
    with ek.use_backend("reference"):
        found = ours.computed(case, dtype, state, inputs, cotangent)
    compared(found, expected, max(case.bound, BOUNDS[dtype]))


WEIGHT = (300, 40, 3)
INITIALISERS: list[tuple[str, dict[str, Any], tuple[int, ...]]] = [
    ("uniform_", {"a": -1.0, "b": 2.0}, WEIGHT),
    ("normal_", {"mean": 1.0, "std": 2.0}, WEIGHT),
    ("trunc_normal_", {"std": 1.0, "a": -1.0, "b": 2.0}, WEIGHT),
    ("xavier_uniform_", {"gain": 2.0}, WEIGHT),
    ("xavier_normal_", {}, WEIGHT),
    ("kaiming_uniform_", {"a": 0.3}, WEIGHT),
    ("kaiming_uniform_", {"mode": "fan_out", "nonlinearity": "relu"}, WEIGHT),
    ("kaiming_normal_", {"nonlinearity": "tanh"}, WEIGHT),
    ("kaiming_normal_", {"mode": "fan_out"}, WEIGHT),
    ("orthogonal_", {"gain": 1.5}, (120, 150)),
    ("sparse_", {"sparsity": 0.25, "std": 0.5}, (100, 150)),
]


@pytest.mark.parametrize(("name", "given", "shape"), INITIALISERS)
def test_initialisers_draw_the_same_distribution(name: str, given: dict[str, Any], shape: tuple[int, ...]) -> None:
    ek.seed(3)
    torch.manual_seed(3)
    theirs_drawn = getattr(torch.nn.init, name)(torch.empty(shape), **given).numpy()
    renamed = {{"a": "low", "b": "high"}.get(k, k) if name == "uniform_" else k: v for k, v in given.items()}
    parameter = nn.Parameter(ek.zeros(shape))
    getattr(nn.init, name)(parameter, **renamed)
    drawn = parameter.detach().numpy()
    assert stats.ks_2samp(drawn.ravel(), theirs_drawn.ravel()).pvalue > 1e-3
    assert drawn.std() == pytest.approx(theirs_drawn.std(), rel=0.02)


@pytest.mark.parametrize("name", ["eye_", "dirac_", "zeros_", "ones_"])
def test_initialisers_that_draw_nothing(name: str) -> None:
    shape = (4, 3, 3, 5) if name == "dirac_" else (4, 3)
    expected = getattr(torch.nn.init, name)(torch.empty(shape)).numpy()
    np.testing.assert_array_equal(getattr(nn.init, name)(ek.empty(shape)).numpy(), expected)


DEFAULTS: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = [
    ("Linear", (100, 200), {}),
    ("Bilinear", (20, 30, 40), {}),
    ("Embedding", (100, 50), {}),
    ("Conv1d", (40, 80, 5), {"groups": 4}),
    ("Conv2d", (30, 60, 3), {}),
    ("Conv3d", (10, 40, 3), {}),
    ("ConvTranspose1d", (40, 80, 5), {"groups": 4}),
    ("ConvTranspose2d", (30, 60, 3), {}),
]


@pytest.mark.parametrize(("name", "args", "given"), DEFAULTS)
def test_layers_begin_with_the_same_distributions(name: str, args: tuple[Any, ...], given: dict[str, Any]) -> None:
    ek.seed(5)
    torch.manual_seed(5)
    expected = getattr(torch.nn, name)(*args, **given)
    layer = getattr(nn, name)(*args, **given)
    found = dict(layer.named_parameters())
    assert list(found) == [key for key, _ in expected.named_parameters()]
    for key, value in expected.named_parameters():
        drawn, theirs_drawn = found[key].detach().numpy(), value.detach().numpy()
        assert drawn.shape == theirs_drawn.shape
        assert stats.ks_2samp(drawn.ravel(), theirs_drawn.ravel()).pvalue > 1e-3
