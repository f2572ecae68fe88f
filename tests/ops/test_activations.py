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
    "relu", "leaky_relu", "elu", "celu", "selu", "relu6", "hard_tanh", "hard_sigmoid", "hard_swish", "soft_shrink",
    "hard_shrink", "gelu", "silu", "softplus", "log_sigmoid", "mish", "softsign", "tanh_shrink", "sigmoid",
]  # fmt: skip


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


# --- normalizations -------------------------------------------------------------------------------

RNG = np.random.default_rng(2)
X, WEIGHT, BIAS = RNG.normal(size=(2, 4, 3)), RNG.normal(size=4), RNG.normal(size=4)


@pytest.mark.parametrize(
    ("name", "args", "attrs"),
    [
        ("layer_norm", (X, [4, 3], RNG.normal(size=(4, 3)), RNG.normal(size=(4, 3))), {}),
        ("rms_norm", (X, [3], RNG.normal(size=3)), {"eps": 1e-5}),
        ("batch_norm", (X, BIAS, WEIGHT**2, WEIGHT, BIAS), {}),
        ("batch_norm", (X, None, None, WEIGHT, BIAS), {"training": True}),
        ("group_norm", (X, 2, WEIGHT, BIAS), {}),
        ("normalize", (X,), {"p": 2.0}),
        ("local_response_norm", (X, 3), {"alpha": 0.5}),
    ],
)
def test_normalizations_are_pytorchs(name, args, attrs):
    torch = pytest.importorskip("torch")
    fixed = (1, 2) if name == "batch_norm" else ()  # running statistics have no derivative there
    tensors = [torch.tensor(a) if isinstance(a, np.ndarray) else a for a in args]
    varying = [t.requires_grad_() for k, t in enumerate(tensors) if torch.is_tensor(t) and k not in fixed]
    y = getattr(torch.nn.functional, name)(*tensors, **attrs)
    np.testing.assert_allclose(value(name, *args, **attrs), y.detach().numpy(), rtol=1e-10, atol=1e-12)
    torch.sum(y).backward()
    found = gradient(name, *args, **attrs)
    found = list(found) if isinstance(found, tuple) else [found]
    if len(found) > len(varying):
        del found[1:3]
    for g, t in zip(found, varying, strict=True):
        np.testing.assert_allclose(g, t.grad.numpy(), rtol=1e-7, atol=1e-9)


def test_running_statistics_are_renewed():
    x, mean, var = RNG.normal(size=(8, 2)), np.zeros(2), np.ones(2)
    _, new_mean, new_var = value("batch_norm", x, mean, var, training=True, momentum=0.25)
    np.testing.assert_allclose(new_mean, 0.25 * x.mean(0))
    np.testing.assert_allclose(new_var, 0.75 + 0.25 * x.var(0, ddof=1))


def test_normalizing_half_floats_does_not_overflow():
    x = np.array([[6e4, -6e4, 3e4, 0.0]], np.float16)
    wanted = (x.astype(float) - x.astype(float).mean()) / x.astype(float).std()
    np.testing.assert_allclose(value("layer_norm", x, 4), wanted, rtol=2e-3)


def test_normalizations_refuse_shapes_that_do_not_fit():
    x = np.zeros((2, 4, 3))
    with pytest.raises(ShapeError, match=r"does not end with the shape \[4\]"):
        value("layer_norm", x, 4)
    with pytest.raises(ShapeError, match="weight has shape"):
        value("rms_norm", x, 3, np.zeros(4))
    with pytest.raises(ShapeError, match="4 channels"):
        value("batch_norm", x, np.zeros(3), np.zeros(3))
    with pytest.raises(TensorError, match="needs running_mean"):
        value("batch_norm", x)
    with pytest.raises(ShapeError, match="3 groups"):
        value("group_norm", x, 3)
    with pytest.raises(ShapeError, match="nothing behind"):
        value("instance_norm", x[0])
    with pytest.raises(ShapeError, match="no channels"):
        value("group_norm", np.zeros(3), 1)
