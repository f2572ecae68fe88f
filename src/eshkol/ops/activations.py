"""Activation functions. Their conventions at kinks are PyTorch's; a row says which side its derivative is from."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from eshkol.errors import DTypeError, ShapeError, TensorError
from eshkol.ops import shapes
from eshkol.ops.dtypes import float32, float64
from eshkol.ops.elementwise import absolute, cast, exp, expm1, sigmoid, sign, tanh, where
from eshkol.ops.functions import floats, logaddexp
from eshkol.ops.joining import along
from eshkol.ops.movement import reshape
from eshkol.ops.reductions import TENSORS, narrow, sum_, wide
from eshkol.ops.row import (
    Aval,
    Draw,
    HasAval,
    Jvp,
    Op,
    Partials,
    Parts,
    Pull,
    Shape,
    Value,
    composite,
    elementwise,
    primitive,
    sample,
)
from eshkol.ops.shapes import of_reals
from eshkol.ops.special import ndtr
from eshkol.support import formulas
from eshkol.support.formulas import NUMPY

GROUP = "activations"


def _off(*kinks: float, shape: Shape = (2, 3)) -> Draw:
    """Numbers about -4 to 4 that are not near some."""

    def make(rng: Any) -> Any:
        values = rng.uniform(-4, 4, shape)
        for kink in kinks:
            values = np.where(abs(values - kink) < 0.1, kink + 0.15, values)
        return values

    return Draw(shape, make=make)


def _activation(doc: str, reference: Callable[..., Any], **rules: Any) -> Callable[[Callable[..., Any]], Op]:
    """A composite of one tensor and numbers, which NumPy computes in float64."""
    kinks = rules.pop("kinks", (0.0,))
    options = rules.pop("options", ())
    rules.setdefault(
        "samples",
        (
            sample(_off(*kinks)), sample(_off(*kinks, shape=())), sample((0, 2)),
            *(sample(_off(*kinks, *(v for v in o.values() if isinstance(v, float))), **o) for o in options),
        ),
    )  # fmt: skip

    def made(function: Callable[..., Any]) -> Op:
        function.__doc__ = doc
        return composite(
            group=GROUP, reference=lambda x, *rest, **given: reference(x.astype(np.float64), *rest, **given), **rules
        )(function)

    return made


# --- rectifiers -----------------------------------------------------------------------------------

relu = elementwise(
    "relu", "x", "x where it is positive, else 0; the derivative at 0 is 0. NaN stays.", group=GROUP, promote="number",
    dtypes=("int", "float"), infer=of_reals(), reference=lambda a, x: np.maximum(x, np.zeros((), x.dtype)),
    derivative=Partials((lambda r, x: 1 - cast(r <= 0, x.dtype),)), scheme=("relu", "nn-relu"),
    lower=Pull(lambda e, a, i, x: e.op("RELU", v) if (v := x(i)).dtype.signed else v), exact="all",
    samples=(sample(Draw((2, 3), 0.2, 2.0)), sample(Draw((3,), -2.0, -0.2)), sample(Draw((), 0.2, 2.0)), sample((0,))),
)  # fmt: skip


@_activation(
    "x where it is positive, else x times a small slope (as at 0).",
    lambda x, negative_slope=0.01: np.where(x > 0, x, negative_slope * x), options=({"negative_slope": 0.2},),
    scheme=("leaky-relu",),
)  # fmt: skip
def leaky_relu(x: Value, negative_slope: float = 0.01) -> Any:
    return where(x > 0, x, floats(x) * negative_slope)


def _weight_reference(x: Any, weight: Any) -> Any:
    x, weight = x.astype(np.float64), weight.astype(np.float64)
    if weight.ndim == 1 and x.ndim > 1:
        weight = weight.reshape(-1, *(1,) * (x.ndim - 2))
    return np.where(x > 0, x, weight * x)


@composite(
    group=GROUP, reference=_weight_reference,
    samples=(sample(_off(0.0), Draw((), 0.1, 0.5)), sample(_off(0.0, shape=(2, 3, 2)), Draw((3,), 0.1, 0.5))),
)  # fmt: skip
def prelu(x: Value, weight: Value) -> Any:
    """x where it is positive, else x times a learned weight: one, or one per channel (axis 1)."""
    if weight.ndim == 1 and weight.shape[0] != 1 and x.ndim > 1:
        if weight.shape[0] != x.shape[1]:
            raise ShapeError(
                f"prelu has {weight.shape[0]} weights for the {x.shape[1]} channels of shape {list(x.shape)}",
                hint="give one weight, or one for each extent of axis 1",
            )
        weight = reshape(weight, (-1, *(1,) * (x.ndim - 2)))
    return where(x > 0, x, weight * x)


def _below(x: Any, scale: float, stretch: float) -> Any:
    """scale·(e^(x/stretch) - 1) for the x that are not positive; 0 for the others."""
    return scale * expm1(where(x > 0, 0, x) * (1 / stretch))


@_activation(
    "x where it is positive, else alpha·(e^x - 1).", lambda x, alpha=1.0: np.where(x > 0, x, alpha * np.expm1(x)),
    options=({"alpha": 0.5},), scheme=("elu",),
)  # fmt: skip
def elu(x: Value, alpha: float = 1.0) -> Any:
    x = floats(x)
    return where(x > 0, x, _below(x, alpha, 1.0))


@_activation(
    "x where it is positive, else alpha·(e^(x/alpha) - 1).",
    lambda x, alpha=1.0: np.maximum(x, 0) + np.minimum(0, alpha * np.expm1(x / alpha)), options=({"alpha": 2.0},),
)  # fmt: skip
def celu(x: Value, alpha: float = 1.0) -> Any:
    x = floats(x)
    return where(x > 0, x, _below(x, alpha, alpha))


_SELU_ALPHA, _SELU_SCALE = 1.6732632423543772848170429916717, 1.0507009873554804934193349852946


@_activation(
    "elu scaled so that a normal distribution keeps mean 0 and variance 1.",
    lambda x: 1.0507009873554805 * np.where(x > 0, x, 1.6732632423543773 * np.expm1(x)),
)  # fmt: skip
def selu(x: Value) -> Any:
    x = floats(x)
    return _SELU_SCALE * where(x > 0, x, _below(x, _SELU_ALPHA, 1.0))


def _between(x: Any, low: float, high: float) -> Any:
    """x brought between bounds, at which its derivative is 0 already; NaN stays."""
    return where(x <= low, low, where(x >= high, high, x))


@_activation("relu that stops at 6; the derivative at 0 and 6 is 0.", lambda x: np.clip(x, 0, 6), kinks=(0.0, 6.0))
def relu6(x: Value) -> Any:
    return _between(floats(x), 0.0, 6.0)


@_activation(
    "x brought between min_val and max_val, where the derivative is 0.",
    lambda x, min_val=-1.0, max_val=1.0: np.clip(x, min_val, max_val), kinks=(-1.0, 1.0),
    options=({"min_val": -0.5, "max_val": 2.0},),
)  # fmt: skip
def hard_tanh(x: Value, min_val: float = -1.0, max_val: float = 1.0) -> Any:
    return _between(floats(x), min_val, max_val)


@_activation(
    "x/6 + 1/2 brought between 0 and 1, where the derivative is 0.", lambda x: np.clip(x / 6 + 0.5, 0, 1),
    kinks=(-3.0, 3.0), tolerance=2.0,
)  # fmt: skip
def hard_sigmoid(x: Value) -> Any:
    return _between(floats(x) + 3.0, 0.0, 6.0) / 6.0


@_activation(
    "x·hard_sigmoid(x): 0 up to -3, x from 3 on.", lambda x: x * np.clip(x + 3, 0, 6) / 6, kinks=(-3.0, 3.0)
)  # fmt: skip
def hard_swish(x: Value) -> Any:
    return x * hard_sigmoid(x)


@_activation(
    "x where it is above a threshold, else a value (as at the threshold).",
    lambda x, threshold, value: np.where(x > threshold, x, value),
    samples=(sample(_off(0.5), threshold=0.5, value=-1.0), sample((0,), threshold=0.0, value=0.0)),
)  # fmt: skip
def threshold(x: Value, threshold: float, value: float) -> Any:
    return where(x <= threshold, value, x)


@_activation(
    "x moved towards 0 by lambd, and 0 within lambd of it.",
    lambda x, lambd=0.5: np.sign(x) * np.maximum(np.abs(x) - lambd, 0), kinks=(-0.5, 0.5, -1.5, 1.5),
    options=({"lambd": 1.5},),
)  # fmt: skip
def soft_shrink(x: Value, lambd: float = 0.5) -> Any:
    x = floats(x)
    return where(absolute(x) <= lambd, 0, x - lambd * sign(x))


@_activation(
    "x, and 0 within lambd of 0.", lambda x, lambd=0.5: np.where(np.abs(x) > lambd, x, 0),
    kinks=(-0.5, 0.5, -1.5, 1.5), options=({"lambd": 1.5},),
)  # fmt: skip
def hard_shrink(x: Value, lambd: float = 0.5) -> Any:
    x = floats(x)
    return where(absolute(x) <= lambd, 0, x)


# --- smooth ones ----------------------------------------------------------------------------------


def _gelu(x: Any, approximate: str = "none") -> Any:
    from scipy import special

    if approximate == "tanh":
        return 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))
    return np.where(x < _VANISHES[float64], -0.0, x * special.ndtr(x))


_VANISHES = {float32: -13.15, float64: -37.62}  # below, x·Φ(x) is less than any normal number of the dtype


@_activation(
    'x·Φ(x), Φ the normal distribution, rounded once; approximate="tanh" takes a common approximation.', _gelu,
    kinks=(), options=({"approximate": "tanh"},), scheme=("gelu", "nn-gelu"), tolerance=4.0,
)  # fmt: skip
def gelu(x: Value, approximate: str = "none") -> Any:
    if approximate not in ("none", "tanh"):
        raise TensorError(f"gelu has no approximation '{approximate}'", hint='approximate="none" or "tanh"')
    x = floats(x)
    if approximate == "tanh":  # (1 + tanh(u))/2 = sigmoid(2u), which keeps its digits where it is small
        return x * sigmoid(2 * math.sqrt(2 / math.pi) * (x + 0.044715 * x * x * x))
    working = wide(x)  # 16-bit floats are rounded once, at the end
    # Where no normal number is left of it, it is 0: processors take many times as long to multiply by what is smaller.
    # So they do on the way to it; Φ is asked of 0 there.
    vanishes = working < _VANISHES.get(working.dtype, 0.0)  # complex numbers are refused by the comparison
    found = working * ndtr(where(vanishes, 0.0, working))
    return narrow(where(vanishes, -0.0, found), x.dtype)


@_activation(
    "x·sigmoid(x).", lambda x: x / (1 + np.exp(-x)), kinks=(), scheme=("silu",), aliases=("swish",),
)  # fmt: skip
def silu(x: Value) -> Any:
    return x * sigmoid(x)


def _softplus(x: Any, beta: float = 1.0, threshold: float | None = None) -> Any:
    found = np.logaddexp(0, beta * x) / beta
    return found if threshold is None else np.where(beta * x > threshold, x, found)


@_activation(
    "log(1 + e^(beta·x))/beta, without overflow; above a threshold of beta·x, if one is given, x itself.", _softplus,
    kinks=(), options=({"beta": 2.0}, {"threshold": 1.0}), tolerance=2.0,
)  # fmt: skip
def softplus(x: Value, beta: float = 1.0, threshold: float | None = None) -> Any:
    x = floats(x)
    scaled = x if beta == 1 else x * beta
    smooth = logaddexp(scaled, 0)
    smooth = smooth if beta == 1 else smooth / beta
    return smooth if threshold is None else where(scaled > threshold, x, smooth)


@_activation("log(sigmoid(x)), without overflow.", lambda x: -np.logaddexp(0, -x), kinks=())
def log_sigmoid(x: Value) -> Any:
    return -logaddexp(-floats(x), 0)


@_activation(
    "x·tanh(softplus(x)).", lambda x: x * np.tanh(np.logaddexp(0, x)), kinks=(), tolerance=2.0
)  # fmt: skip
def mish(x: Value) -> Any:
    return x * tanh(softplus(x))


@_activation("x / (1 + |x|).", lambda x: x / (1 + np.abs(x)))
def softsign(x: Value) -> Any:
    x = floats(x)
    return x / (absolute(x) + 1)


@_activation("x - tanh(x).", lambda x: x - np.tanh(x), kinks=(), tolerance=4.0)
def tanh_shrink(x: Value) -> Any:
    x = floats(x)
    return x - tanh(x)


@composite(
    group=GROUP, tolerance=2.0, samples=(sample((2, 4)), sample((4, 3), axis=0), sample((2, 0))),
    reference=lambda x, axis=-1: (
        (halves := np.split(x.astype(np.float64), 2, axis))[0] / (1 + np.exp(-halves[1]))
    ),
)  # fmt: skip
def glu(x: Value, axis: int = -1) -> Any:
    """The first half of an axis times the sigmoid of the second."""
    axis = shapes.axis(axis, x.ndim)
    extent = x.shape[axis]
    if extent % 2:
        raise ShapeError(f"axis {axis} of shape {list(x.shape)} is odd, so it has no halves")
    return along(x, axis, 0, extent // 2) * sigmoid(along(x, axis, extent // 2, extent))


# --- softmax --------------------------------------------------------------------------------------


class Axis(NamedTuple):
    axis: int


def _infer_softmax(a: Axis, x: HasAval) -> Aval:
    if x.dtype.is_complex:
        raise DTypeError(f"{x.dtype} numbers have no order", hint="take x.real or abs(x)")
    return Aval(x.shape, x.dtype)


def _along(formula: Callable[..., Any]) -> dict[str, Any]:
    """What a formula along an axis is computed as, and its reference."""

    def parts(a: Axis, x: Any) -> Any:
        return narrow(formula(TENSORS, wide(x), a.axis), x.dtype) if x.size else x

    def reference(a: Axis, x: Any) -> Any:
        return formula(NUMPY, x.astype(np.float64), a.axis)

    return {"lower": Parts(parts), "reference": reference}


def _jvp_softmax(a: Axis, r: Any, inputs: Any, tangents: Any) -> Any:
    (t,) = tangents
    return r * (t - sum_(r * t, a.axis, keepdims=True))


def _jvp_log_softmax(a: Axis, r: Any, inputs: Any, tangents: Any) -> Any:
    (t,) = tangents
    return t - sum_(exp(r) * t, a.axis, keepdims=True)


def _batch_softmax(a: Axis, inputs: Any, batched: Any) -> Any:
    return softmax(inputs[0], a.axis + 1)


def _batch_log_softmax(a: Axis, inputs: Any, batched: Any) -> Any:
    return log_softmax(inputs[0], a.axis + 1)


_rows = (
    sample((2, 3)), sample((3, 2, 2), axis=1), sample((4,), axis=0), sample((0, 3)), sample((3, 0)),
    sample((2, 3), axis=0),
)  # fmt: skip


def _softmax_work(node: Any, of_function: Any) -> int:
    size: int = node.size
    return 4 * size  # greatest, difference, e^x, share


@primitive(
    group=GROUP, promote="float", infer=_infer_softmax, derivative=Jvp(_jvp_softmax), batch=_batch_softmax,
    scheme=("softmax", "nn-softmax"), samples=_rows, work=_softmax_work, **_along(formulas.softmax),
)  # fmt: skip
def softmax(x: Value, axis: int = -1) -> Axis:
    """e^x divided by its sum along an axis, without overflow; where all is -inf, NaN."""
    return Axis(shapes.axis(axis, x.ndim))


@primitive(
    group=GROUP, promote="float", infer=_infer_softmax, derivative=Jvp(_jvp_log_softmax), batch=_batch_log_softmax,
    scheme=("log-softmax", "tensor-log-softmax"), samples=_rows, work=_softmax_work, **_along(formulas.log_softmax),
)  # fmt: skip
def log_softmax(x: Value, axis: int = -1) -> Axis:
    """The logarithm of softmax, without overflow and without losing small ones."""
    return Axis(shapes.axis(axis, x.ndim))


@composite(
    group=GROUP, samples=_rows[:3], reference=lambda x, axis=-1: softmax.reference(Axis(axis), -x),
)  # fmt: skip
def softmin(x: Value, axis: int = -1) -> Any:
    """softmax of -x."""
    return softmax(-floats(x), axis)
