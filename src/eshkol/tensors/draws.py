"""Draws that are made of others, and what is done to keys: the rest of `ek.random`.

Comes in: a key in front, or none (as in `drawing_rows.py`), a shape, parameters. Goes out: tensors. Names and orders
are those of JAX. What no row draws yet is refused by name (`MISSING`).
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from functools import wraps
from typing import Any, NoReturn

import numpy as np

from eshkol.errors import ShapeError, TensorError
from eshkol.graph.node import here, noted
from eshkol.ops import TABLE, dtypes
from eshkol.tensors import keys
from eshkol.tensors.drawing_rows import ROWS, found_key, is_key
from eshkol.tensors.keys import Generator
from eshkol.tensors.make import adopted, asarray
from eshkol.tensors.value import Tensor, operate

Shape = Any


def key(seed: int) -> Tensor:
    """The key that a seed stands for, to split and to draw with."""
    return adopted(keys.key_of(seed))


def _op(name: str, *args: Any, **given: Any) -> Any:
    return operate(TABLE[name], args, given)


def _row(name: str, *args: Any, **given: Any) -> Any:
    return ROWS[name](*args, **given)


@noted
def split(key: Any, num: int = 2) -> Tensor:
    """As many new keys, one in each row, whose numbers are independent of each other's and of those of the key."""
    if not is_key(key):
        raise TensorError(
            f"ek.random.split takes a key, not {key!r:.60}", span=here(),
            hint="a key is made by ek.random.key(seed); parts of a tensor are ek.split(x, sizes)",
        )  # fmt: skip
    made: Tensor = _op("split_key", key, num)
    return made


def fold_in(key: Any, data: Any) -> Tensor:
    """The key that belongs to a key and a number: another one for each number."""
    made: Tensor = _op("fold_in", key, data)
    return made


def key_data(keys: Any) -> Tensor:
    """The two 32-bit numbers that a key is: keys are tensors of them already."""
    return asarray(keys)


def wrap_key_data(key_bits_array: Any) -> Tensor:
    """A key of two 32-bit numbers."""
    made = asarray(key_bits_array)
    if made.shape[-1:] != (2,) or made.dtype is not dtypes.uint32:
        raise TensorError(f"a key is uint32[2], not {made.dtype}{list(made.shape)}", span=here())
    return made


def drawn(function: Callable[..., Any]) -> Callable[..., Any]:
    """A draw whose first parameter is a key, which is found for it where none is given."""
    signature = inspect.signature(function)
    without = signature.replace(parameters=list(signature.parameters.values())[1:])

    @wraps(function)
    def draw(*args: Any, generator: Generator | None = None, **given: Any) -> Any:
        if (args and is_key(args[0])) or "key" in given:
            signature.bind(*args, **given)
            return function(*args, **given)
        without.bind(*args, **given)
        return function(found_key(function.__name__, generator), *args, **given)

    vars(draw)["ways"] = signature, without
    draw.__doc__ = f"{inspect.getdoc(function)}\n\nWithout a key, the next one of everybody's generator is taken."
    return noted(draw)


@drawn
def bits(key: Any, shape: Shape = (), dtype: Any = "uint32") -> Tensor:
    """Random bits: unsigned integers, every one equally likely."""
    made: Tensor = _op("random_bits", key, shape, dtype)
    return made


@drawn
def permutation(key: Any, x: Any, axis: int = 0, independent: bool = False) -> Tensor:
    """The slices of x along an axis in random order; of a number, the integers below it.

    With `independent` each vector along the axis gets an order of its own.
    """
    if isinstance(x, int | np.integer):
        made: Tensor = _op("randperm", key, int(x))
        return made
    whole = asarray(x)
    if independent:
        order = _op("argsort", _op("uniform", key, whole.shape), axis)
        return _op("take_along", whole, order, axis)
    return _op("take", whole, _op("randperm", key, whole.shape[axis]), axis)


@drawn
def choice(key: Any, a: Any, shape: Shape = (), replace: bool = True, p: Any = None, axis: int = 0) -> Tensor:
    """Slices of `a` along an axis (of a number: integers below it), drawn with probabilities p, all alike by default.

    Without `replace` none is drawn twice.
    """
    whole = None if isinstance(a, int | np.integer) else asarray(a)
    extent = int(a) if whole is None else whole.shape[axis]
    extents = (shape,) if isinstance(shape, int) else tuple(shape)
    count = math.prod(extents)
    if not replace and count > extent:
        raise ShapeError(f"choice: {count} cannot be drawn from {extent} without replacement", span=here())
    if p is not None:
        places = _op("multinomial", key, asarray(p), count, replace)
    elif replace:
        places = _op("randint", key, 0, extent, (count,))
    else:
        places = _op("slice", _op("randperm", key, extent), (0,), (count,))
    places = _op("reshape", places, extents)
    return places if whole is None else _op("take", whole, places, axis)


@drawn
def cauchy(key: Any, shape: Shape = (), dtype: Any = None) -> Tensor:
    """Draws from the Cauchy distribution."""
    turned = _op("uniform", key, shape, -0.5, 0.5, dtype=dtype)
    return _op("tan", turned * math.pi)


@drawn
def logistic(key: Any, shape: Shape = (), dtype: Any = None) -> Tensor:
    """Draws from the logistic distribution."""
    one, other = split(key)
    # The difference of two Gumbel draws, whose tails are as fine as theirs.
    return _op("gumbel", one, shape, dtype=dtype) - _op("gumbel", other, shape, dtype=dtype)


@drawn
def lognormal(key: Any, sigma: Any = 1.0, shape: Shape = (), dtype: Any = None) -> Tensor:
    """e to the power of normal draws with standard deviation sigma."""
    return _op("exp", _op("normal", key, shape, 0.0, sigma, dtype))


@drawn
def rademacher(key: Any, shape: Shape = (), dtype: Any = "int64") -> Tensor:
    """-1 or 1, equally likely."""
    return _op("bernoulli", key, 0.5, shape, dtype) * 2 - 1


@drawn
def chisquare(key: Any, df: Any, shape: Shape = None, dtype: Any = None) -> Tensor:
    """Draws from the chi-square distribution with df degrees of freedom."""
    return _op("gamma", key, _half(df), shape, 2.0, dtype)


def _half(df: Any) -> Any:
    return df / 2 if isinstance(df, int | float | Tensor) else asarray(df) / 2


@drawn
def loggamma(key: Any, a: Any, shape: Shape = None, dtype: Any = None) -> Tensor:
    """Logarithms of draws from the gamma distribution."""
    return _op("log", _op("gamma", key, a, shape, 1.0, dtype))


@drawn
def pareto(key: Any, b: Any, shape: Shape = (), dtype: Any = None) -> Tensor:
    """Draws from the Pareto distribution: from 1 on, in proportion to x^(-b - 1)."""
    return _op("exp", _op("exponential", key, shape, dtype=dtype) / b)


@drawn
def rayleigh(key: Any, scale: Any, shape: Shape = (), dtype: Any = None) -> Tensor:
    """Draws from the Rayleigh distribution."""
    return _op("sqrt", _op("exponential", key, shape, dtype=dtype) * 2.0) * scale


@drawn
def weibull_min(key: Any, scale: Any, concentration: Any, shape: Shape = (), dtype: Any = None) -> Tensor:
    """Draws from the Weibull distribution."""
    waited = _op("exponential", key, shape, dtype=dtype)
    return _op("pow", waited, 1.0 / concentration) * scale


@drawn
def geometric(key: Any, p: Any, shape: Shape = (), dtype: Any = "int64") -> Tensor:
    """How many trials of probability p it takes until the first succeeds: 1 or more."""
    waited = _op("exponential", key, shape)
    failed = math.log1p(-p) if isinstance(p, int | float) else _op("log1p", -asarray(p))
    return _op("cast", _op("floor", waited / -failed) + 1.0, dtype)


@drawn
def maxwell(key: Any, shape: Shape = (), dtype: Any = None) -> Tensor:
    """The length of a vector of three normal draws."""
    extents = (shape,) if isinstance(shape, int) else tuple(shape)
    return _op("norm", _op("normal", key, (*extents, 3), dtype=dtype), 2, -1)


@drawn
def multivariate_normal(
    key: Any, mean: Any, cov: Any, shape: Shape = None, dtype: Any = None, method: str = "cholesky"
) -> Tensor:
    """Normal vectors with a mean and a covariance, of a shape in front."""
    if method != "cholesky":
        raise TensorError(f"multivariate_normal knows the method 'cholesky', not {method!r}", span=here())
    middle, spread = asarray(mean), asarray(cov)
    extents = () if shape is None else (shape,) if isinstance(shape, int) else tuple(shape)
    z = _op("normal", key, (*extents, middle.shape[-1]), dtype=dtype or middle.dtype)
    return middle + _op("matvec", _op("cholesky", spread), z)


@drawn
def orthogonal(key: Any, n: int, shape: Shape = (), dtype: Any = None) -> Tensor:
    """Orthogonal n × n matrices, every one equally likely."""
    extents = (shape,) if isinstance(shape, int) else tuple(shape)
    q, r = _op("qr", _op("normal", key, (*extents, n, n), dtype=dtype))
    return q * _op("unsqueeze", _op("sign", _op("diagonal", r, 0, -2, -1)), -2)


MISSING = {
    "ball": "normal vectors divided by their norms (ek.normalize) lie on a sphere",
    "binomial": "add up ek.random.bernoulli(key, p, (n, ...)) along its first axis",
    "double_sided_maxwell": "multiply ek.random.maxwell by ek.random.rademacher",
    "f": "divide two draws of ek.random.chisquare by their degrees of freedom, and the one by the other",
    "generalized_normal": "ek.random.gamma, to a power, times ek.random.rademacher",
    "triangular": "take the quantile of ek.random.uniform",
    "wald": "no row draws it yet; numpy.random.Generator.wald does",
}


def refuse(name: str) -> NoReturn:
    """An error for a name of JAX's that is not here."""
    if name in MISSING:
        raise AttributeError(f"eshkol.random has no '{name}': {MISSING[name]}")
    raise AttributeError(f"eshkol.random has no '{name}'")


def _together(shape: tuple[Any, ...]) -> Any:
    return shape[0] if len(shape) == 1 and isinstance(shape[0], tuple | list) else shape


def rand(*shape: Any, dtype: Any = None) -> Tensor:
    """Uniform numbers from 0 to below 1; the shape as integers, or as one tuple."""
    made: Tensor = _row("uniform", _together(shape), dtype=dtype)
    return made


def randn(*shape: Any, dtype: Any = None) -> Tensor:
    """Normal numbers of mean 0 and variance 1; the shape as integers, or as one tuple."""
    made: Tensor = _row("normal", _together(shape), dtype=dtype)
    return made


OWN = (
    bits, cauchy, chisquare, choice, fold_in, geometric, key, key_data, loggamma, logistic, lognormal, maxwell,
    multivariate_normal, orthogonal, pareto, permutation, rademacher, rand, randn, rayleigh, split, weibull_min,
    wrap_key_data,
)  # fmt: skip
