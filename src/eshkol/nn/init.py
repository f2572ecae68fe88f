"""Initialisers: what weights begin with.

Each is one maker, `he_normal(shape, key=None)`, which gives a new tensor, and the same in place under PyTorch's name,
`he_normal_(parameter)`. In place they take a layer too, whose weight they mean: then its groups and whether it is
transposed count for the fans, as they say how many inputs an output really has. Without a key they draw with
everybody's generator (`ek.seed`).
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any, NamedTuple

import numpy as np

from eshkol.errors import ShapeError, TensorError
from eshkol.nn.making import drawn
from eshkol.nn.module import Module
from eshkol.tensors import api as ek
from eshkol.tensors.drawing import next_key
from eshkol.tensors.holding import put
from eshkol.tensors.value import Tensor

Shape = Sequence[int]


class Fans(NamedTuple):
    """How many inputs an output of a layer has, and how many outputs an input goes to."""

    fan_in: int
    fan_out: int


class Wired(tuple[int, ...]):
    """A weight's shape together with how its layer uses it: in groups, or transposed."""

    groups: int = 1
    transposed: bool = False


def fans(shape: Shape, groups: int = 1, transposed: bool = False) -> Fans:
    """The fans of a weight: out × in for a linear layer, out × in/groups × kernel for a convolution.

    A transposed convolution's weight is in × out/groups × kernel.
    """
    if len(shape) < 2:
        raise ShapeError(
            f"a weight of shape {list(shape)} has no fans: it needs two axes", span=ek.here(),
            hint="begin biases and scales with zeros_, ones_, constant_, uniform_ or normal_",
        )  # fmt: skip
    taps = math.prod(shape[2:])
    if transposed:
        return Fans(shape[0] // groups * taps, shape[1] * taps)
    return Fans(shape[1] * taps, shape[0] // groups * taps)


GAINS: dict[str, Callable[[float | None], float]] = {
    "linear": lambda _: 1.0,
    "sigmoid": lambda _: 1.0,
    "tanh": lambda _: 5.0 / 3,
    "relu": lambda _: math.sqrt(2.0),
    "leaky_relu": lambda slope: math.sqrt(2.0 / (1 + (0.01 if slope is None else slope) ** 2)),
    "selu": lambda _: 0.75,
    **{f"conv{kind}{n}d": lambda _: 1.0 for kind in ("", "_transpose") for n in (1, 2, 3)},
}


def calculate_gain(nonlinearity: str, param: float | None = None) -> float:
    """By how much weights are scaled for the activation that follows; `param` is the slope of a leaky ReLU."""
    if nonlinearity not in GAINS:
        raise TensorError(
            f"there is no gain for '{nonlinearity}'", span=ek.here(), hint=f"known: {', '.join(sorted(GAINS))}"
        )
    return GAINS[nonlinearity](param)


def _fans_of(shape: Shape) -> Fans:
    return fans(shape, shape.groups, shape.transposed) if isinstance(shape, Wired) else fans(shape)


def _fan(shape: Shape, mode: str) -> int:
    if mode not in Fans._fields:
        raise TensorError(f"the mode is 'fan_in' or 'fan_out', not {mode!r}", span=ek.here())
    return int(getattr(_fans_of(shape), mode))


def _key(key: Any, who: str) -> Any:
    return next_key(who) if key is None else ek.asarray(key)


def _even(shape: Shape, key: Any, bound: float, dtype: Any, who: str) -> Any:
    return ek.uniform(_key(key, who), tuple(shape), -1.0, 1.0, dtype=dtype) * _scale(bound, dtype)


def _bell(shape: Shape, key: Any, std: float, dtype: Any, who: str) -> Any:
    return ek.normal(_key(key, who), tuple(shape), dtype=dtype) * _scale(std, dtype)


def _scale(factor: float, dtype: Any) -> Any:
    """A factor as a tensor: a number would be part of the program, and compiled anew for each width of a layer."""
    return ek.tensor(factor, dtype=dtype)


def _spread(gain: float, fan: float) -> float:
    """The standard deviation that keeps the variance of what goes through; of nothing, 0."""
    return gain / math.sqrt(fan) if fan else 0.0


# --- makers -----------------------------------------------------------------------------------------------------------


def uniform(shape: Shape, low: float = 0.0, high: float = 1.0, *, key: Any = None, dtype: Any = None) -> Any:
    """Even draws from low to high."""
    return ek.uniform(_key(key, "uniform"), tuple(shape), low, high, dtype=dtype)


def normal(shape: Shape, mean: float = 0.0, std: float = 1.0, *, key: Any = None, dtype: Any = None) -> Any:
    """Normal draws."""
    if std < 0:
        raise TensorError(f"normal: std cannot be negative: {std}", span=ek.here())
    return ek.normal(_key(key, "normal"), tuple(shape), mean, std, dtype=dtype)


def trunc_normal(
    shape: Shape, mean: float = 0.0, std: float = 1.0, a: float = -2.0, b: float = 2.0, *, key: Any = None,
    dtype: Any = None,
) -> Any:  # fmt: skip
    """Normal draws, given that they lie from a to b."""
    if std <= 0 or not a < b:
        raise TensorError(f"trunc_normal needs std > 0 and a < b, not std={std}, a={a}, b={b}", span=ek.here())
    low, high = (a - mean) / std, (b - mean) / std
    return ek.truncated_normal(_key(key, "trunc_normal"), tuple(shape), low, high, mean, std, dtype=dtype)


def constant(shape: Shape, val: float, *, dtype: Any = None) -> Any:
    """One number everywhere."""
    return ek.full(tuple(shape), val, dtype=dtype)


def zeros(shape: Shape, *, dtype: Any = None) -> Any:
    """Zeros."""
    return ek.zeros(tuple(shape), dtype=dtype)


def ones(shape: Shape, *, dtype: Any = None) -> Any:
    """Ones."""
    return ek.ones(tuple(shape), dtype=dtype)


def xavier_uniform(shape: Shape, gain: float = 1.0, *, key: Any = None, dtype: Any = None) -> Any:
    """Even draws of variance 2·gain²/(fan_in + fan_out) (Glorot)."""
    return _even(shape, key, math.sqrt(3.0) * _spread(gain, sum(_fans_of(shape)) / 2), dtype, "xavier_uniform")


def xavier_normal(shape: Shape, gain: float = 1.0, *, key: Any = None, dtype: Any = None) -> Any:
    """Normal draws of variance 2·gain²/(fan_in + fan_out) (Glorot)."""
    return _bell(shape, key, _spread(gain, sum(_fans_of(shape)) / 2), dtype, "xavier_normal")


def kaiming_uniform(
    shape: Shape, a: float = 0.0, mode: str = "fan_in", nonlinearity: str = "leaky_relu", *, key: Any = None,
    dtype: Any = None,
) -> Any:  # fmt: skip
    """Even draws of variance gain²/fan for layers before ReLUs (He); `a` is the slope of leaky ones."""
    std = _spread(calculate_gain(nonlinearity, a), _fan(shape, mode))
    return _even(shape, key, math.sqrt(3.0) * std, dtype, "kaiming_uniform")


def kaiming_normal(
    shape: Shape, a: float = 0.0, mode: str = "fan_in", nonlinearity: str = "leaky_relu", *, key: Any = None,
    dtype: Any = None,
) -> Any:  # fmt: skip
    """Normal draws of variance gain²/fan for layers before ReLUs (He); `a` is the slope of leaky ones."""
    return _bell(shape, key, _spread(calculate_gain(nonlinearity, a), _fan(shape, mode)), dtype, "kaiming_normal")


def lecun_normal(shape: Shape, *, key: Any = None, dtype: Any = None) -> Any:
    """Normal draws of variance 1/fan_in, for SELU."""
    return _bell(shape, key, _spread(1.0, _fan(shape, "fan_in")), dtype, "lecun_normal")


def orthogonal(shape: Shape, gain: float = 1.0, *, key: Any = None, dtype: Any = None) -> Any:
    """A matrix with orthonormal rows or columns, whichever are fewer, times gain; axes from 1 on count as columns."""
    if len(shape) < 2:
        raise ShapeError(f"orthogonal needs two axes, and the shape is {list(shape)}", span=ek.here())
    rows, columns = shape[0], math.prod(shape[1:])
    if not rows or not columns:
        return ek.zeros(tuple(shape), dtype=dtype)
    wide = "float64" if str(ek.empty((0,), dtype=dtype).dtype) == "float64" else "float32"
    drawn = ek.normal(_key(key, "orthogonal"), (max(rows, columns), min(rows, columns)), dtype=wide)
    q, r = ek.qr(drawn)
    q = q * ek.where(ek.diagonal(r) < 0, -1.0, 1.0)  # a factor R with a positive diagonal makes Q evenly distributed
    return ek.cast(ek.reshape((q.T if rows < columns else q) * gain, tuple(shape)), dtype)


def eye(shape: Shape, *, dtype: Any = None) -> Any:
    """Ones on the diagonal of a matrix: a linear layer that passes on what it gets."""
    if len(shape) != 2:
        raise ShapeError(f"eye needs a matrix, and the shape is {list(shape)}", span=ek.here())
    return ek.eye(shape[0], shape[1], dtype=dtype)


def dirac(shape: Shape, groups: int = 1, *, dtype: Any = None) -> Any:
    """A convolution's weight that passes on as many channels as it can: ones in the middle of kernels."""
    if not 3 <= len(shape) <= 5 or shape[0] % groups:
        raise ShapeError(
            f"dirac needs the weight of a convolution whose out channels make {groups} groups, not {list(shape)}",
            span=ek.here(),
        )
    outs = shape[0] // groups
    made = np.zeros(tuple(shape), np.float32)
    for group in range(groups):
        for k in range(min(outs, shape[1])):
            made[(group * outs + k, k, *(n // 2 for n in shape[2:]))] = 1
    return ek.cast(ek.tensor(made), dtype)


def sparse(shape: Shape, sparsity: float = 0.1, std: float = 0.01, *, key: Any = None, dtype: Any = None) -> Any:
    """Normal draws with a part of each column set to 0."""
    if len(shape) != 2 or not 0 <= sparsity <= 1:
        raise TensorError(
            f"sparse needs a matrix and a part of 0 to 1, not {list(shape)} and {sparsity}", span=ek.here()
        )
    one, other = ek.split_key(_key(key, "sparse"), 2)
    order = ek.argsort(ek.uniform(other, tuple(shape)), axis=0)
    away = math.ceil(sparsity * shape[0])
    return ek.where(order < away, 0.0, ek.normal(one, tuple(shape), 0.0, std, dtype=dtype))


MAKERS: dict[str, Callable[..., Any]] = {
    maker.__name__: maker
    for maker in (
        uniform, normal, trunc_normal, constant, zeros, ones, xavier_uniform, xavier_normal, kaiming_uniform,
        kaiming_normal, lecun_normal, orthogonal, eye, dirac, sparse,
    )
}  # fmt: skip
ALIASES = {
    "he_uniform": "kaiming_uniform", "he_normal": "kaiming_normal", "truncated_normal": "trunc_normal",
    "glorot_uniform": "xavier_uniform", "glorot_normal": "xavier_normal",
}  # fmt: skip


# --- in place ---------------------------------------------------------------------------------------------------------


def _in_place(maker: Callable[..., Any], name: str) -> Callable[..., Any]:
    """The maker, giving a parameter (or a layer's weight) a new value; gives what it was given."""

    @wraps(maker)
    def initialise(target: Tensor | Module, *args: Any, **given: Any) -> Any:
        tensor, shape = _target(target, name)
        if drawn():
            put(tensor, ek.cast(maker(shape, *args, dtype=tensor.dtype, **given), tensor.dtype).realize(), name)
        return target

    initialise.__name__ = initialise.__qualname__ = name
    first = inspect.Parameter("target", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    others = [p for p in list(inspect.signature(maker).parameters.values())[1:] if p.name != "dtype"]
    vars(initialise)["__signature__"] = inspect.Signature([first, *others])
    return initialise


def _target(target: Any, name: str) -> tuple[Tensor, Shape]:
    if isinstance(target, Tensor):
        return target, target.shape
    weight = getattr(target, "weight", None) if isinstance(target, Module) else None
    if weight is None:
        raise TensorError(
            f"{name} takes a parameter or a layer with a weight, not a {type(target).__name__}", span=ek.here(),
            hint=f"model.apply(lambda m: nn.init.{name}(m.weight) if isinstance(m, nn.Linear) else None)",
        )  # fmt: skip
    shape = Wired(weight.shape)
    shape.groups, shape.transposed = getattr(target, "groups", 1), getattr(target, "transposed", False)
    return weight, shape


he_uniform, he_normal, truncated_normal = kaiming_uniform, kaiming_normal, trunc_normal
glorot_uniform, glorot_normal = xavier_uniform, xavier_normal

uniform_, normal_, trunc_normal_ = (_in_place(f, f"{f.__name__}_") for f in (uniform, normal, trunc_normal))
constant_, zeros_, ones_ = (_in_place(f, f"{f.__name__}_") for f in (constant, zeros, ones))
xavier_uniform_, xavier_normal_ = (_in_place(f, f"{f.__name__}_") for f in (xavier_uniform, xavier_normal))
kaiming_uniform_, kaiming_normal_ = (_in_place(f, f"{f.__name__}_") for f in (kaiming_uniform, kaiming_normal))
lecun_normal_, orthogonal_, eye_ = (_in_place(f, f"{f.__name__}_") for f in (lecun_normal, orthogonal, eye))
dirac_, sparse_ = (_in_place(f, f"{f.__name__}_") for f in (dirac, sparse))
he_uniform_, he_normal_, truncated_normal_ = kaiming_uniform_, kaiming_normal_, trunc_normal_
glorot_uniform_, glorot_normal_ = xavier_uniform_, xavier_normal_


# --- what layers begin with -------------------------------------------------------------------------------------------


def default_weight(shape: Shape, dtype: Any = None) -> Any:
    """What the weights of PyTorch's linear layers and convolutions begin with: even draws of variance 1/(3·fan_in)."""
    return kaiming_uniform(tuple(shape), math.sqrt(5.0), dtype=dtype)


def default_bias(weight: Shape, count: int, dtype: Any = None) -> Any:
    """What their biases begin with: even draws within 1/√fan_in."""
    bound = _spread(1.0, fans(tuple(weight)).fan_in)
    return _even((count,), None, bound, dtype, "default_bias")
