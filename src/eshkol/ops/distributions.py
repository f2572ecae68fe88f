"""Draws from distributions, each a function of a key and of its parameters.

Comes in: a key (see `random.py`), a shape, and parameters that are numbers or tensors; without a shape it is the one
in which the parameters broadcast. Goes out: one draw per element. The same key gives the same draw on every backend:
to the bit for integers, bools and uniforms, and to within a few units in the last place for what is computed with
logarithms and the like, which backends round differently.

Floats come from as many random bits as their dtype takes: 32 for float32 and the halves, which are computed in float32
and rounded once, 64 for float64. A draw follows a location and a scale smoothly; draws made by rejection (gamma and
what is said with it) have no derivative with respect to their other parameters, and say so.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from eshkol.errors import DTypeError, ShapeError, TensorError
from eshkol.ops import dtypes, shapes
from eshkol.ops.creation import full, iota
from eshkol.ops.dtypes import DType, float32, float64, uint32, uint64
from eshkol.ops.elementwise import (
    bitwise_not,
    cast,
    equal,
    exp,
    greater,
    greater_equal,
    less,
    log,
    log1p,
    logical_and,
    maximum,
    minimum,
    sigmoid,
    sqrt,
    where,
)
from eshkol.ops.movement import permute, reshape
from eshkol.ops.random import GROUP, KEY, fold_in, random_bits
from eshkol.ops.reductions import argmax, max_, sum_
from eshkol.ops.row import Aval, Draw, NoDerivative, Op, Pull, Sample, Shape, Value, composite, row, sample
from eshkol.ops.sorting import argsort, topk
from eshkol.ops.special import ndtri

GAMMA_ROUNDS = 8  # in each a candidate is refused with a probability below 5 %


def _by_distribution(*args: Any, **attrs: Any) -> Any:
    raise AssertionError("draws have no reference: their distribution is tested")


RULES: dict[str, Any] = {"group": GROUP, "method": False, "random": True, "reference": _by_distribution}


# --- what draws share -----------------------------------------------------------------------------


def _checked(key: Any) -> None:
    if not isinstance(key, Value) or key.shape != (2,) or key.dtype is not uint32:
        shown = f"{key.dtype}{list(key.shape)}" if isinstance(key, Value) else repr(key)
        raise TensorError(
            f"a draw takes one key, uint32[2], not {shown}", hint="make one from a seed; for many keys use vmap"
        )


def frame(key: Any, shape: Any, dtype: Any, *parameters: Any) -> tuple[Shape, DType, DType]:
    """(the shape of a draw, its dtype, the dtype it is computed in)."""
    _checked(key)
    tensors = [p for p in parameters if isinstance(p, Value)]
    together = shapes.broadcast(*(p.shape for p in tensors)) if tensors else ()
    found = together if shape is None else shapes.extents(shape)
    if shapes.broadcast(together, found) != found:
        raise ShapeError(
            f"parameters of shape {list(together)} do not broadcast to the shape {list(found)} of the draw"
        )
    if dtype is not None:
        kind = dtypes.of(dtype)
    else:
        kind = dtypes.floating(tensors[0].dtype) if tensors else dtypes.default_float()
        for p in tensors[1:]:
            kind = dtypes.promote(kind, dtypes.floating(p.dtype))
    if not kind.is_float:
        raise DTypeError(f"a draw of floats cannot be {kind}", hint="give a float dtype; randint draws integers")
    return found, kind, float64 if kind is float64 else float32


def _of_dtype(x: Any, dtype: DType) -> Any:
    return x if x.dtype is dtype else cast(x, dtype)


def within(parameter: Any, work: DType) -> Any:
    """A parameter in the dtype that is computed in."""
    return _of_dtype(parameter, work) if isinstance(parameter, Value) else float(parameter)


def _unit(key: Any, shape: Shape, work: DType) -> Any:
    """Multiples of 2^-24 (of 2^-53 in float64) from 0 to before 1, all equally likely."""
    kept = 53 if work is float64 else 24
    bits = random_bits(key, shape, uint64 if work is float64 else uint32)
    return cast(bits >> (bits.dtype.bits - kept), work) * 2.0**-kept


def sides(key: Any, shape: Shape, work: DType) -> tuple[Any, Any]:
    """A uniform number as (whether it is below 1/2, its distance from 0 or 1), the distance to full relative precision.

    So both tails of a distribution are as long and as fine as the random bits allow: distances go down to 2^-33 (to
    2^-65 in float64), and are never 0.
    """
    bits = random_bits(key, shape, uint64 if work is float64 else uint32)
    width = bits.dtype.bits
    distance = (cast(minimum(bits, bitwise_not(bits)), work) + 0.5) * 2.0**-width
    return less(bits, 1 << (width - 1)), distance


def _waiting(key: Any, shape: Shape, work: DType) -> Any:
    """-log of a uniform number: a draw from the exponential distribution, never 0."""
    below, distance = sides(key, shape, work)
    return where(below, -log(distance), -log1p(-distance))


def _bell(key: Any, shape: Shape, work: DType) -> Any:
    below, distance = sides(key, shape, work)
    found = ndtri(distance)
    return where(below, found, -found)


def _placed(draw: Any, loc: Any, scale: Any, dtype: DType, work: DType) -> Any:
    """loc + scale · draw, in the dtype asked for."""
    given = draw if isinstance(scale, int | float) and scale == 1 else draw * within(scale, work)
    return _of_dtype(given if isinstance(loc, int | float) and loc == 0 else given + within(loc, work), dtype)


def real(given: Any, name: str, low: float = -math.inf, high: float = math.inf) -> None:
    """Refuse a number that a parameter cannot be, in a tensor too where its values are known already."""
    if isinstance(given, Value):
        known = given.known()
        if known is not None and not given.dtype.is_complex:
            wide = np.asarray(known, np.float64)
            wrong = wide[~((wide >= low) & (wide <= high))]
            if wrong.size:
                raise TensorError(
                    f"{name} must be numbers from {low:g} to {high:g}, and one of {given.dtype}{list(given.shape)} is "
                    f"{wrong.flat[0]:g}",
                    hint="a shape is given by name: shape=(2, 3)",
                )
        return
    if isinstance(given, bool) or not isinstance(given, int | float) or not low <= given <= high:
        raise TensorError(f"{name} must be a number from {low:g} to {high:g} or a tensor, not {given!r}")


# --- uniform draws --------------------------------------------------------------------------------


def _before(top: Any, bottom: Any, epsilon: float) -> Any:
    """A number a unit or two in the last place below top; below 0, which has no last place, a small part of bottom."""
    below_zero = where(less(top, 0), top * (1 + epsilon), bottom * epsilon)
    return where(greater(top, 0), top * (1 - epsilon / 2), below_zero)


@composite(
    **RULES, scheme=("random-uniform",),
    samples=(
        sample(KEY, shape=(2, 3)), sample(KEY, shape=(3,), low=-1.0, high=2.0, dtype="bfloat16"),
        Sample((KEY, (2, 3), Draw((3,), -2, 0), Draw((2, 1), 1, 2))), sample(KEY, shape=0),
    ),
)  # fmt: skip
def uniform(
    key: Value, shape: Any = None, low: Value | float = 0.0, high: Value | float = 1.0, dtype: Any = None
) -> Any:
    """Uniform floats from low to before high, from 24 random bits (53 in float64): low + (high - low)·u.

    Where rounding would give high, the number below it is given.
    """
    found, kind, work = frame(key, shape, dtype, low, high)
    real(low, "low")
    real(high, "high")
    least, most = within(low, work), within(high, work)
    if isinstance(low, Value) or isinstance(high, Value):
        given = _of_dtype(_unit(key, found, work) * (most - least) + least, kind)
        bottom, top = (_of_dtype(x, kind) if isinstance(x, Value) else full(key, (), x, kind) for x in (least, most))
        return where(less(given, top), given, maximum(_before(top, bottom, kind.epsilon), bottom))
    with np.errstate(over="ignore"):
        top = np.asarray(most).astype(kind.numpy)
    if not (least <= most and math.isfinite(top) and math.isfinite(most - least)):
        raise TensorError(f"{kind} has no numbers from {low} to {high}, or too many")
    given = _unit(key, found, work)
    given = _of_dtype(given if least == 0 and most == 1 else given * (most - least) + least, kind)
    if least == 0 and kind is work:
        return given  # the greatest u times high rounds to the number before high
    return where(less(given, float(top)), given, max(float(np.nextafter(top, -top.dtype.type(np.inf))), least))


def _below(key: Any, p: Any, shape: Shape) -> Any:
    """Whether an event of probability p happens, to within 2^-32 (2^-24 if p is a tensor of float32)."""
    if isinstance(p, Value):
        work = float64 if p.dtype is float64 else float32
        return less(_unit(key, shape, work), within(p, work))
    count = round(p * 2**32)
    bits = random_bits(key, shape)
    return less(bits, count) if count < 2**32 else greater_equal(bits, 0)


@composite(
    **RULES, scheme=("bernoulli",),
    samples=(sample(KEY, p=0.3, shape=(2, 3)), sample(KEY, Draw((2, 3), 0, 1)), sample(KEY, p=0.5, shape=0)),
)  # fmt: skip
def bernoulli(key: Value, p: Value | float = 0.5, shape: Any = None, dtype: Any = "bool") -> Any:
    """Whether an event of probability p happens: never for 0, always for 1; in another dtype, 1 or 0."""
    real(p, "p", 0, 1)
    found = frame(key, shape, None, p)[0]
    return cast(_below(key, p, found), dtypes.of(dtype))


def _high_product(x: Any, number: int) -> Any:
    """The high 64 bits of x · number, of uint64."""
    mask = 2**32 - 1
    n0, n1 = number & mask, number >> 32
    x0, x1 = x & mask, x >> 32
    middle = x1 * n0 + ((x0 * n0) >> 32)
    if n1 == 0:
        return middle >> 32
    return x1 * n1 + (middle >> 32) + ((x0 * n1 + (middle & mask)) >> 32)


def _upto(key: Any, span: int, shape: Shape) -> Any:
    """uint64 from 0 to before span: the integer part of span times a random fraction.

    The fraction has 64 bits where span has 32, else 128, so no number is favoured by more than one part in 2^32.
    """
    if span <= 1 << 32:
        return _high_product(random_bits(key, shape, uint64), span)
    if span == 1 << 64:
        return random_bits(key, shape, uint64)
    first, rest = (random_bits(fold_in(key, k), shape, uint64) for k in (0, 1))
    low, carried = first * span, _high_product(rest, span)
    return _high_product(first, span) + cast(less(low + carried, low), uint64)


@composite(
    **RULES, scheme=("random-int",),
    samples=(
        sample(KEY, low=0, high=10, shape=(2, 3)), sample(KEY, low=-5, high=5, shape=(4,), dtype="int8"),
        sample(KEY, low=0, high=2**63, shape=(2,), dtype="uint64"), sample(KEY, low=0, high=1, shape=0),
    ),
)  # fmt: skip
def randint(key: Value, low: int, high: int, shape: Any = (), dtype: Any = "int64") -> Any:
    """Integers from low to before high; no number is more likely than another by more than one part in 2^32."""
    _checked(key)
    found, kind = shapes.extents(shape), dtypes.of(dtype)
    if not all(isinstance(x, int) and not isinstance(x, bool) for x in (low, high)) or low >= high:
        raise TensorError(f"there are no integers from {low!r} to before {high!r}")
    if not kind.is_integer or not (kind.holds(low) and kind.holds(high - 1)):
        raise DTypeError(f"{kind} does not hold the integers from {low} to {high - 1}", hint="give a wider dtype")
    offset = _upto(key, high - low, found)
    if kind.signed:
        offset = cast(offset, dtypes.int64)  # which wraps, and adding low wraps it back
    return cast(offset + low if low else offset, kind)


@composite(**RULES, scheme=("randperm",), samples=(sample(KEY, n=5), sample(KEY, n=0), sample(KEY, n=1)))
def randperm(key: Value, n: int, dtype: Any = "int64") -> Any:
    """The integers from 0 to n - 1 in random order, every order equally likely (but for equal 64-bit numbers)."""
    _checked(key)
    (length,), kind = shapes.extents(n), dtypes.of(dtype)
    if not kind.is_integer or (length and not kind.holds(length - 1)):
        raise DTypeError(f"{kind} does not hold the integers to {length - 1}", hint="give a wider dtype")
    return cast(argsort(random_bits(key, (length,), uint64)), kind)


@composite(
    **RULES, scheme=("dropout", "nn-dropout", "dropout-forward"),
    samples=(
        sample((2, 3), KEY), sample((2, 3), KEY, p=0.9), sample((2,), KEY, p=1.0), sample((2,), KEY, training=False),
    ),
)  # fmt: skip
def dropout(x: Value, key: Value | None, p: float = 0.5, training: bool = True) -> Any:
    """x with each element set to 0 with probability p, the others divided by 1 - p; x itself when not training."""
    if isinstance(p, Value):
        raise TensorError("the probability of dropout must be a number")
    real(p, "p", 0, 1)
    if not training or p == 0:
        return x
    _checked(key)
    if not x.dtype.differentiable:
        raise DTypeError(
            f"dropout scales what it keeps, which {x.dtype} does not hold", hint="cast it to a float first"
        )
    if p == 1:
        return full(x, x.shape, 0)
    assert key is not None
    return where(_below(key, p, x.shape), 0, x * (1 / (1 - p)))


# --- draws with a location and a scale --------------------------------------------------------------


def _located(name: str, draw: Any, doc: str, *scheme: str) -> Op:
    def function(
        key: Value, shape: Any = None, loc: Value | float = 0.0, scale: Value | float = 1.0, dtype: Any = None
    ) -> Any:
        found, kind, work = frame(key, shape, dtype, loc, scale)
        real(loc, "loc")
        real(scale, "scale", 0)
        return _placed(draw(key, found, work), loc, scale, kind, work)

    function.__name__, function.__doc__ = name, doc
    samples = (
        sample(KEY, shape=(2, 3)), sample(KEY, shape=(3,), loc=1.0, scale=2.0, dtype="float16"), sample(KEY, shape=0),
        Sample((KEY, (2, 3), Draw((3,)), Draw((2, 1), 0.5, 2))),
    )  # fmt: skip
    return composite(**RULES, scheme=scheme, samples=samples)(function)


def _double(key: Any, shape: Shape, work: DType) -> Any:
    below, distance = sides(key, shape, work)
    found = log(2 * distance)
    return where(below, found, -found)


normal = _located(
    "normal", _bell,
    "Normal draws loc + scale·z; z is the quantile of a uniform number and reaches 6.3 (9.2 in float64).",
    "random-normal",
)  # fmt: skip
gumbel = _located("gumbel", lambda *args: -log(_waiting(*args)), "Draws from the Gumbel distribution, loc + scale·g.")
laplace = _located("laplace", _double, "Draws from the Laplace distribution, loc + scale·l.")


@composite(
    **RULES, samples=(sample(KEY, shape=(2, 3)), Sample((KEY, None, Draw((3,), 0.5, 2))), sample(KEY, shape=0)),
)  # fmt: skip
def exponential(key: Value, shape: Any = None, scale: Value | float = 1.0, dtype: Any = None) -> Any:
    """Draws from the exponential distribution of mean scale, never 0 before rounding."""
    found, kind, work = frame(key, shape, dtype, scale)
    real(scale, "scale", 0)
    return _placed(_waiting(key, found, work), 0, scale, kind, work)


def _normal_mass(x: float) -> float:
    return 0.5 * math.erfc(-x / math.sqrt(2))


@composite(
    **RULES,
    samples=(
        sample(KEY, shape=(2, 3)), sample(KEY, shape=3, low=1.0, high=math.inf, loc=2.0), sample(KEY, shape=0),
    ),
)  # fmt: skip
def truncated_normal(
    key: Value, shape: Any = None, low: float = -2.0, high: float = 2.0, loc: Value | float = 0.0,
    scale: Value | float = 1.0, dtype: Any = None,
) -> Any:  # fmt: skip
    """loc + scale·z, for z normal given that it lies from low to high (in standard deviations, infinite ones too)."""
    found, kind, work = frame(key, shape, dtype, loc, scale)
    for bound in (low, high):
        if isinstance(bound, bool) or not isinstance(bound, int | float):
            raise TensorError(f"the bounds of truncated_normal are numbers, not {bound!r}")
    mirrored = low > -high  # so that the nearer bound is the upper one, and the tail below is exact
    least, most = (-high, -low) if mirrored else (low, high)
    mass = _normal_mass(most) - _normal_mass(least)
    if not mass > 1e-30:
        raise TensorError(f"next to nothing of a normal distribution lies from {low} to {high}")
    below, distance = sides(key, found, work)
    near = distance * mass  # what lies between the draw and the bound on its side
    from_low = where(below, near, mass - near) + _normal_mass(least)
    from_high = where(below, mass - near, near) + _normal_mass(-most)
    lower_half = less(from_low, 0.5)
    quantile = ndtri(minimum(where(lower_half, from_low, from_high), 0.5))
    z = minimum(maximum(where(lower_half, quantile, -quantile), least), most)
    return _placed(-z if mirrored else z, loc, scale, kind, work)


# --- choices --------------------------------------------------------------------------------------


def _perturbed(key: Any, logits: Any, shape: Shape) -> Any:
    """Logits plus Gumbel noise, the greatest of which is a draw in proportion to their exponentials."""
    work = float64 if logits.dtype is float64 else float32
    return within(logits, work) - log(_waiting(key, shape, work))


@composite(
    **RULES, scheme=("categorical",),
    samples=(
        sample(KEY, (2, 3)), sample(KEY, (3, 2), axis=0), sample(KEY, (3,), shape=(4,)), sample(KEY, (0, 3)),
    ),
)  # fmt: skip
def categorical(key: Value, logits: Value, axis: int = -1, shape: Any = None) -> Any:
    """Which place along an axis is drawn, in proportion to e^logits; a shape stands for as many draws, in front."""
    _checked(key)
    if not logits.dtype.is_float:
        raise DTypeError(f"logits are floats, not {logits.dtype}")
    many = () if shape is None else shapes.extents(shape)
    along = shapes.axis(axis, logits.ndim)
    if logits.shape[along] == 0:
        raise ShapeError(f"there is nothing to choose along axis {along} of shape {list(logits.shape)}")
    return argmax(_perturbed(key, logits, (*many, *logits.shape)), along + len(many))


def weights_wanted(x: Value, hint: str = "scores of any sign are logits: categorical(key, logits)") -> None:
    """Refuse numbers that no draw can be in proportion to, where they are known already."""
    values = x.known()
    if values is None or not values.size or not (x.dtype.is_float or x.dtype.is_integer):
        return
    wrong = np.argwhere(~(values >= 0))  # NaN is no weight either
    if len(wrong):
        place = tuple(map(int, wrong[0]))
        raise TensorError(
            f"probabilities are from 0 on, and the one at {list(place)} is {float(values[place]):g}",
            hint=hint,
        )


@composite(
    **RULES, scheme=("multinomial",),
    samples=(
        sample(KEY, Draw((2, 3), 0.1, 1), count=2), sample(KEY, Draw((3,), 0.1, 1), count=5, replacement=True),
        sample(KEY, Draw((3,), 0.1, 1), count=0),
    ),
)  # fmt: skip
def multinomial(key: Value, probabilities: Value, count: int, replacement: bool = False) -> Any:
    """count places of the last axis, drawn in proportion to probabilities (which need not sum to 1).

    Without replacement no place is drawn twice, and those of probability 0 come last. With it, a number is drawn for
    every place and draw. Negative probabilities are an error where they are known already; computed within a graph
    they count as 0.
    """
    _checked(key)
    if not probabilities.dtype.is_float or probabilities.ndim == 0:
        raise DTypeError(f"probabilities are a tensor of floats, not {probabilities.dtype}{list(probabilities.shape)}")
    (wanted,), places = shapes.extents(count), probabilities.shape[-1]
    if places == 0 or (wanted > places and not replacement):
        raise ShapeError(f"there are no {wanted} places to draw among {places}", hint="draw with replacement=True")
    weights_wanted(probabilities)
    positive = greater(probabilities, 0)
    logits = where(positive, log(where(positive, probabilities, 1)), -math.inf)
    if not replacement:
        return topk(_perturbed(key, logits, logits.shape), wanted)[1]
    drawn = argmax(_perturbed(key, logits, (wanted, *logits.shape)), -1)
    return permute(drawn, (*range(1, drawn.ndim), 0))


# --- draws by rejection -----------------------------------------------------------------------------

_REJECTED: Op = row(Op(
    name="rejection_parameter", doc="The value itself, of which draws are no smooth function.", function=None,
    group="structure", method=False, elementwise=True, names=("x",), infer=lambda a, x: Aval(x.shape, x.dtype),
    reference=lambda a, x: x, lower=Pull(lambda e, a, i, x: x(i)),
    derivative=NoDerivative(
        "gamma, beta, dirichlet and student_t draw by rejection, which varies in jumps with its parameters", zero=False
    ),
))  # fmt: skip


def _gamma_parts(key: Any, alpha: Any, shape: Shape, work: DType) -> tuple[Any, Any]:
    """A gamma draw as (d·v, -E): the draw is d·v·e^-E, after Marsaglia and Tsang (2000).

    All candidates are computed at once, and the first that is accepted counts. One draw in 10^10 has none (for alpha
    above 1, far fewer), and is d, the middle of the distribution.
    """
    small = less(alpha, 1)
    d = where(small, alpha + 1, alpha) - 1 / 3
    for_normal, for_uniform, for_boost = (fold_in(key, k) for k in range(3))
    many = (GAMMA_ROUNDS, *shape)
    x = _bell(for_normal, many, work)
    root = 1 + x / sqrt(9 * d)
    possible = greater(root, 0)
    root = where(possible, root, 1)
    v = root * root * root
    bound = 0.5 * x * x + d * (1 - v + log(v))
    accepted = logical_and(possible, less(-_waiting(for_uniform, many, work), bound))
    order = GAMMA_ROUNDS - iota.on(key, (GAMMA_ROUNDS, *(1,) * len(shape)), 0)
    rank = where(accepted, order, 0)
    best = max_(rank, 0, keepdims=True)
    kept = logical_and(accepted, equal(rank, best))
    found = sum_(where(kept, v, 0), 0)
    found = where(greater(reshape(best, shape), 0), found, 1)
    boost = where(small, -_waiting(for_boost, shape, work) / where(small, alpha, 1), 0)
    return d * found, boost


def _alpha(key: Any, given: Any, name: str, work: DType) -> Any:
    """The parameter of a gamma draw as a tensor that has no derivative."""
    real(given, name, 0)
    if not isinstance(given, Value):
        return full(key, (), float(given), work)
    return key.apply(_REJECTED, (within(given, work),), None)


_POSITIVE = Draw((2, 3), 0.3, 3)


@composite(
    **RULES,
    samples=(
        sample(KEY, _POSITIVE), sample(KEY, alpha=0.5, shape=(2, 3)), Sample((KEY, _POSITIVE, (4, 2, 3), _POSITIVE)),
        sample(KEY, alpha=2.0, shape=0),
    ),
)  # fmt: skip
def gamma(key: Value, alpha: Value | float, shape: Any = None, scale: Value | float = 1.0, dtype: Any = None) -> Any:
    """Draws from the gamma distribution of shape alpha; smooth in scale, without derivative in alpha."""
    found, kind, work = frame(key, shape, dtype, alpha, scale)
    real(scale, "scale", 0)
    product, boost = _gamma_parts(key, _alpha(key, alpha, "alpha", work), found, work)
    return _placed(product * exp(boost), 0, scale, kind, work)


def _log_gamma(key: Any, alpha: Any, shape: Shape, work: DType) -> Any:
    """The logarithm of a gamma draw, finite where the draw itself would be rounded to 0."""
    product, boost = _gamma_parts(key, alpha, shape, work)
    return log(product) + boost


@composite(
    **RULES, scheme=("beta",),
    samples=(
        sample(KEY, _POSITIVE, Draw((3,), 0.3, 3)), sample(KEY, a=0.1, b=0.1, shape=3), sample(KEY, a=1, b=2, shape=0),
    ),
)  # fmt: skip
def beta(key: Value, a: Value | float, b: Value | float, shape: Any = None, dtype: Any = None) -> Any:
    """Draws from the beta distribution of a and b, without derivatives in them."""
    found, kind, work = frame(key, shape, dtype, a, b)
    one = _log_gamma(fold_in(key, 0), _alpha(key, a, "a", work), found, work)
    other = _log_gamma(fold_in(key, 1), _alpha(key, b, "b", work), found, work)
    return _of_dtype(sigmoid(one - other), kind)


@composite(
    **RULES,
    samples=(
        sample(KEY, Draw((3,), 0.3, 3)), sample(KEY, _POSITIVE, shape=(4, 2)), sample(KEY, _POSITIVE, shape=(0, 2)),
    ),
)  # fmt: skip
def dirichlet(key: Value, alpha: Value, shape: Any = None, dtype: Any = None) -> Any:
    """Draws from the Dirichlet distribution: along the last axis of alpha, positive numbers whose sum is 1.

    A shape is that of the other axes. There is no derivative in alpha.
    """
    if not isinstance(alpha, Value) or alpha.ndim == 0 or alpha.shape[-1] == 0:
        raise ShapeError("the parameters of a Dirichlet distribution stand along the last axis of a tensor")
    wanted = None if shape is None else (*shapes.extents(shape), alpha.shape[-1])
    found, kind, work = frame(key, wanted, dtype, alpha)
    drawn = _log_gamma(key, _alpha(key, alpha, "alpha", work), found, work)
    parts = exp(drawn - max_(drawn, -1, keepdims=True))
    return _of_dtype(parts / sum_(parts, -1, keepdims=True), kind)


@composite(
    **RULES, samples=(sample(KEY, _POSITIVE), sample(KEY, df=3.0, shape=(2, 3)), sample(KEY, df=3.0, shape=0)),
)  # fmt: skip
def student_t(
    key: Value, df: Value | float, shape: Any = None, loc: Value | float = 0.0, scale: Value | float = 1.0,
    dtype: Any = None,
) -> Any:  # fmt: skip
    """Draws loc + scale·t from Student's distribution of df degrees of freedom, without derivative in df."""
    found, kind, work = frame(key, shape, dtype, df, loc, scale)
    real(loc, "loc")
    real(scale, "scale", 0)
    half = _alpha(key, df, "df", work) * 0.5
    spread = exp(0.5 * (log(half) - _log_gamma(fold_in(key, 0), half, found, work)))
    return _placed(_bell(fold_in(key, 1), found, work) * spread, loc, scale, kind, work)
