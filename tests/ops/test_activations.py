"""Activations at their kinks, at special values and where numbers are large; normalizations."""

from __future__ import annotations

import numpy as np
import pytest
from calls import gradient, value

from eshkol.errors import DTypeError, ShapeError, TensorError

inf, nan = np.inf, np.nan
POINTS = np.array([-1e4, -20, -3, -1.5, -1, -0.5, 0, 0.5, 1, 1.5, 3, 6, 20, 1e4])


@pytest.mark.parametrize(
    ("name", "kinks", "slopes"),
    [
        ("relu", [0], [0]),
        ("leaky_relu", [0], [0.01]),
        ("elu", [0], [1]),
        ("relu6", [0, 6], [0, 0]),
        ("hard_tanh", [-1, 1], [0, 0]),
        ("hard_sigmoid", [-3, 3], [0, 0]),
        ("soft_shrink", [-0.5, 0.5], [0, 0]),
        ("hard_shrink", [-0.5, 0.5], [0, 0]),
        ("softsign", [0], [1]),
    ],
)
def test_derivatives_at_kinks(name, kinks, slopes):
    np.testing.assert_allclose(gradient(name, np.array(kinks, np.float64)), slopes)


ALL = [
    "relu",
    "leaky_relu",
    "elu",
    "celu",
    "selu",
    "relu6",
    "hard_tanh",
    "hard_sigmoid",
    "hard_swish",
    "soft_shrink",
    "hard_shrink",
    "gelu",
    "silu",
    "softplus",
    "log_sigmoid",
    "mish",
    "softsign",
    "tanh_shrink",
    "sigmoid",
]


@pytest.mark.parametrize("name", ALL)
def test_large_numbers_and_nan(name):
    assert np.all(np.isfinite(value(name, POINTS)))
    assert np.all(np.isfinite(gradient(name, POINTS)))
    assert np.isnan(value(name, np.array([nan]))).all()


TORCH = {
    "hard_tanh": "hardtanh", "hard_sigmoid": "hardsigmoid", "hard_swish": "hardswish", "soft_shrink": "softshrink",
    "hard_shrink": "hardshrink", "log_sigmoid": "logsigmoid", "tanh_shrink": "tanhshrink",
}  # fmt: skip


@pytest.mark.parametrize("name", [n for n in ALL if n != "softplus"])
def test_values_and_derivatives_are_pytorchs(name):
    torch = pytest.importorskip("torch")
    x = torch.tensor(POINTS, requires_grad=True)
    y = getattr(torch.nn.functional, TORCH.get(name, name))(x)
    y.sum().backward()
    np.testing.assert_allclose(value(name, POINTS), y.detach().numpy(), rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose(gradient(name, POINTS), x.grad.numpy(), rtol=1e-6, atol=1e-15)


def test_gelu_keeps_its_digits_far_out():
    x = np.array([-10.0, -20.0])
    np.testing.assert_allclose(value("gelu", x), [-7.619853024160525e-23, -5.507248237212467e-88], rtol=1e-12)
    with pytest.raises(TensorError, match="approximation"):
        value("gelu", x, approximate="quick")


def test_softmax_of_extreme_rows():
    x = np.array([[1e4, -1e4, 0], [-inf, 2, 3], [1e4, 1e4, -inf]])
    half = np.exp(-1) / (1 + np.exp(-1))
    np.testing.assert_allclose(value("softmax", x), [[1, 0, 0], [0, half, 1 - half], [0.5, 0.5, 0]])
    wanted = [[0, -2e4, -1e4], [-inf, np.log(half), np.log(1 - half)], [-np.log(2), -np.log(2), -inf]]
    np.testing.assert_allclose(value("log_softmax", x), wanted)
    assert np.all(np.isfinite(gradient("log_softmax", x)))
    assert np.isnan(value("softmax", np.full((1, 2), -inf))).all()
    with pytest.raises(DTypeError, match="no order"):
        value("softmax", np.zeros(2, np.complex64))


def test_shapes_that_do_not_fit():
    with pytest.raises(ShapeError, match="no halves"):
        value("glu", np.zeros((2, 3)))
    with pytest.raises(ShapeError, match="2 weights for the 3 channels"):
        value("prelu", np.zeros((2, 3)), np.zeros(2))
