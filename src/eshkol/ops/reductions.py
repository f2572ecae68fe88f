"""Reductions along axes: sums, extremes, and what is said with them; `products.py` has the product.

A reduction goes along one axis, several, or all of them (the default), and keeps them with extent 1 if asked to.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from eshkol.errors import DTypeError, ShapeError
from eshkol.ops import dtypes, shapes
from eshkol.ops.dtypes import DType
from eshkol.ops.elementwise import absolute, cast, conj, equal, exp, log, not_equal, pow_, real, rsqrt, sqrt, where
from eshkol.ops.movement import expand, reshape
from eshkol.ops.row import (
    TABLE,
    Aval,
    Draw,
    HasAval,
    Jvp,
    Linear,
    NoDerivative,
    Parts,
    Pull,
    Reducing,
    Shape,
    Value,
    composite,
    each_read,
    primitive,
    sample,
)
from eshkol.ops.shapes import Axes
from eshkol.ops.structural import number
from eshkol.support.formulas import NUMPY, Arithmetic, log_sum_exp

GROUP = "reductions"
_NUMBERS = ("int", "float", "complex")
_ANY = ("bool", *_NUMBERS)
_REAL = ("bool", "int", "float")


class Along(NamedTuple):
    """Axes in order, and whether they stay with extent 1."""

    axes: tuple[int, ...]
    keepdims: bool


def kept(a: Along, x: HasAval) -> Shape:
    """The shape of a reduction with its axes kept."""
    return shapes.without(x.shape, a.axes, True)


def reduced(x: HasAval, axis: Axes) -> int:
    """How many elements go into each result."""
    return shapes.count(tuple(x.shape[k] for k in shapes.axes(axis, len(x.shape))))


def _working(dtype: DType) -> DType:
    """The dtype in which sums of a dtype are kept while they grow: 32 bits at least."""
    found = dtypes.floating(dtype)
    return dtypes.float32 if found.bits == 16 else found


def wide(x: Value) -> Any:
    """x as a float or complex number of 32 bits at least: what sums over 16-bit floats are computed in."""
    wanted = _working(x.dtype)
    return x if x.dtype is wanted else cast(x, wanted)


def narrow(x: Value, dtype: DType) -> Any:
    """A result of `wide` inputs, in the dtype that they had."""
    wanted = dtypes.floating(dtype)
    wanted = wanted if x.dtype.is_complex else wanted.real
    return x if x.dtype is wanted else cast(x, wanted)


def wide_array(x: Any) -> Any:
    """An array of 16-bit floats in 32 bits; NumPy's functions lack bfloat16."""
    dtype = dtypes.of(x.dtype)
    return x.astype(np.float32) if dtype.is_float and dtype.bits == 16 else x


def reference_of(function: Callable[..., Any]) -> Callable[..., Any]:
    """A NumPy reduction as a reference rule."""
    return lambda a, x: function(wide_array(x), axis=a.axes, keepdims=a.keepdims)


def batched_along(name: str) -> Any:
    """The batch rule of an op with axes: they move by one."""

    def batch(a: Along, inputs: Any, batched: Any) -> Any:
        return inputs[0].apply(TABLE[name], inputs, Along(tuple(k + 1 for k in a.axes), a.keepdims))

    return batch


def _place(a: Along, i: Any, ndim: int, j: Sequence[Any]) -> list[Any]:
    """The index of an element that goes into result i: j says where it is along the axes that go."""
    outer, places = iter(i), iter(j)
    index = []
    for k in range(ndim):
        if k in a.axes:
            index.append(next(places))
            if a.keepdims:
                next(outer)
        else:
            index.append(next(outer))
    return index


def pull_along(instruction: str, first: Any) -> Pull:
    """One element of a reduction: a loop over the axes that go, starting with the neutral element."""

    def code(e: Any, a: Along, i: Any, x: Any) -> Any:
        def body(j: Any) -> Any:
            element = x(_place(a, i, len(x.shape), j))
            return e.convert(element, dtypes.summed(x.dtype) if instruction in ("ADD", "MUL") else x.dtype)

        return e.reduce(instruction, [x.shape[k] for k in a.axes], body, first)  # passes on NaN

    return Pull(code)


# --- sums and what follows from them --------------------------------------------------------------


def infer_sum(a: Along, x: HasAval) -> Aval:
    """The infer rule of sums: integers are summed in 64 bits."""
    return Aval(shapes.without(x.shape, a.axes, a.keepdims), dtypes.summed(x.dtype))


def _sum(a: Along, x: Any) -> Any:
    return np.sum(wide_array(x), axis=a.axes, keepdims=a.keepdims, dtype=summed_in(x))


def summed_in(x: Any) -> Any:
    """The NumPy dtype in which an array is summed."""
    return dtypes.summed(dtypes.of(wide_array(x).dtype)).numpy


def _sum_transpose(a: Along, ct: Any, k: int, x: HasAval) -> Any:
    return expand(reshape(ct, kept(a, x)), x.shape)


SAMPLES = (
    sample((2, 3)), sample((2, 3, 4), axis=1), sample((2, 3), axis=(0, 1), keepdims=True), sample(()),
    sample((2, 3), axis=-1, keepdims=True),
)  # fmt: skip
OF_EMPTY = (sample((0, 3), axis=0), sample((0, 3)), sample((2, 0), axis=0))


@primitive(
    group=GROUP, infer=infer_sum, reference=_sum, derivative=Linear(_sum_transpose), batch=batched_along("sum"),
    dtypes=_ANY, lower=pull_along("ADD", 0), of_complex=True, scheme=("tensor-sum",), samples=(*SAMPLES, *OF_EMPTY),
    reduces=Reducing("Sum", lambda dtype: 0), work=each_read,
)  # fmt: skip
def sum_(x: Value, axis: Axes = None, keepdims: bool = False) -> Along:
    """The sum along axes (all of them by default); bools and integers are summed in 64 bits."""
    return Along(shapes.axes(axis, x.ndim), bool(keepdims))


@composite(
    group=GROUP, reference=lambda x, shape: _sum_to(x, shape), method=False,
    samples=(sample((2, 3), shape=(1, 3)), sample((4, 2, 3), shape=(3,)), sample((2, 3), shape=())),
)  # fmt: skip
def sum_to(x: Value, shape: Shape) -> Any:
    """The sum over what broadcasting from a shape would repeat."""
    extra = x.ndim - len(shape)
    if extra < 0 or any(n not in (1, m) for n, m in zip(shape, x.shape[extra:], strict=True)):
        raise ShapeError(
            f"shape {list(shape)} does not broadcast to {list(x.shape)}, so that no sum leads back to it",
            hint="from the last axis on, extents must be equal or 1; reshape changes the shape alone",
        )
    axes = [*range(extra), *(k + extra for k, n in enumerate(shape) if n == 1 and x.shape[k + extra] != 1)]
    total = sum_(x, axes) if axes else x
    return total if total.shape == tuple(shape) else reshape(total, shape)


def _sum_to(x: Any, shape: Shape) -> Any:
    extra = x.ndim - len(shape)
    axes = (*range(extra), *(k + extra for k, n in enumerate(shape) if n == 1))
    return x.sum(axis=axes).reshape(shape)


def _numpy(function: Callable[..., Any]) -> Callable[..., Any]:
    """A NumPy reduction as the reference of a composite."""
    return lambda x, axis=None, keepdims=False: function(wide_array(x), axis=axis, keepdims=keepdims)


@composite(
    group=GROUP, reference=_numpy(np.mean), dtypes=_ANY, scheme=("tensor-mean",),
    samples=(*SAMPLES, sample((2, 0), axis=0)),
)  # fmt: skip
def mean(x: Value, axis: Axes = None, keepdims: bool = False) -> Any:
    """The mean along axes; integers become floats first, and the mean of nothing is NaN."""
    return narrow(sum_(wide(x), axis, keepdims) / reduced(x, axis), x.dtype)


def _spread(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda x, axis=None, correction=0, keepdims=False: function(
        wide_array(x), axis=axis, ddof=correction, keepdims=keepdims
    )


_spread_samples = (*SAMPLES, sample((2, 3), axis=1, correction=1), sample((4,), correction=1.5))


@composite(group=GROUP, reference=_spread(np.var), dtypes=_ANY, scheme=("tensor-var",), samples=_spread_samples)
def var(x: Value, axis: Axes = None, correction: float = 0, keepdims: bool = False) -> Any:
    """The mean squared distance from the mean, divided by n - correction: 0 as in NumPy, 1 for an unbiased estimate."""
    x, dtype = wide(x), x.dtype
    away = x - mean(x, axis, keepdims=True)
    square = real(away * conj(away)) if x.dtype.is_complex else away * away
    return narrow(sum_(square, axis, keepdims) / max(reduced(x, axis) - correction, 0), dtype)


def root(x: Value) -> Any:
    """The square root, whose derivative at 0 is 0 and not infinite: the length of a vector that vanishes."""
    zero = equal(x, 0)
    return where(zero, 0, sqrt(where(zero, 1, x)))


@composite(
    group=GROUP, reference=_spread(np.std), dtypes=_ANY,
    samples=tuple(s for s in _spread_samples if s.args[0].shape),
)  # fmt: skip
def std(x: Value, axis: Axes = None, correction: float = 0, keepdims: bool = False) -> Any:
    """The square root of var, divided by n - correction (0 as in NumPy); where it is 0, so is the derivative."""
    return narrow(root(var(wide(x), axis, correction, keepdims)), x.dtype)


@composite(
    group=GROUP, dtypes=_ANY, samples=(*SAMPLES, *OF_EMPTY),
    reference=lambda x, axis=None, keepdims=False: np.sum(x != 0, axis=axis, keepdims=keepdims),
)  # fmt: skip
def count_nonzero(x: Value, axis: Axes = None, keepdims: bool = False) -> Any:
    """How many elements along axes are not 0; NaN counts."""
    return sum_(_truth(x), axis, keepdims)


def _truth(x: Value) -> Any:
    return x if x.dtype.is_bool else not_equal(x, 0)


def _numpy_any(x: Any, axis: Any = None, keepdims: bool = False) -> Any:
    return np.any(x != 0, axis=axis, keepdims=keepdims)


@composite(group=GROUP, reference=_numpy_any, dtypes=_ANY, samples=(*SAMPLES, *OF_EMPTY))
def any_(x: Value, axis: Axes = None, keepdims: bool = False) -> Any:
    """Whether an element along axes holds (is not 0); of none, it is false."""
    return count_nonzero(x, axis, keepdims) > 0


def _numpy_all(x: Any, axis: Any = None, keepdims: bool = False) -> Any:
    return np.all(x != 0, axis=axis, keepdims=keepdims)


@composite(group=GROUP, reference=_numpy_all, dtypes=_ANY, samples=(*SAMPLES, *OF_EMPTY))
def all_(x: Value, axis: Axes = None, keepdims: bool = False) -> Any:
    """Whether every element along axes holds (is not 0); of none, it is true."""
    return equal(count_nonzero(x, axis, keepdims), reduced(x, axis))


# --- powers --------------------------------------------------------------------------


def _infer_logsumexp(a: Along, x: HasAval) -> Aval:
    if x.dtype.is_complex:
        raise DTypeError(f"logsumexp is not defined for {x.dtype}", hint="write log(sum(exp(x)))")
    return Aval(shapes.without(x.shape, a.axes, a.keepdims), x.dtype)


def _logsumexp(a: Along, x: Any) -> Any:
    found = log_sum_exp(NUMPY, x.astype(np.float64), a.axes)
    return found.reshape(shapes.without(x.shape, a.axes, a.keepdims))


def _jvp_logsumexp(a: Along, r: Any, inputs: Any, tangents: Any) -> Any:
    level = reshape(where(equal(r, -math.inf), 0, r), kept(a, inputs[0]))
    return sum_(tangents[0] * exp(inputs[0] - level), a.axes, a.keepdims)


def _parts_logsumexp(a: Along, x: Any) -> Any:
    shape = shapes.without(x.shape, a.axes, a.keepdims)
    if not x.size:  # the sum of nothing
        nothing = number(x, -math.inf)
        return expand(nothing, shape) if shape else nothing
    found = log_sum_exp(TENSORS, wide(x), a.axes)
    return narrow(found if found.shape == shape else reshape(found, shape), x.dtype)


@primitive(
    group=GROUP, infer=_infer_logsumexp, reference=_logsumexp, derivative=Jvp(_jvp_logsumexp), promote="float",
    batch=batched_along("logsumexp"), dtypes=_REAL, lower=Parts(_parts_logsumexp),
    samples=(*SAMPLES, sample((2, 0), axis=0)), work=each_read,
)  # fmt: skip
def logsumexp(x: Value, axis: Axes = None, keepdims: bool = False) -> Along:
    """log of the sum of e^x along axes, without overflow; of none and of -inf alone it is -inf, with derivative 0."""
    return Along(shapes.axes(axis, x.ndim), bool(keepdims))


def _reference_norm(x: Any, p: Any = 2, axis: Any = None, keepdims: bool = False) -> Any:
    x = np.abs(wide_array(x).astype(np.complex128))
    axes = shapes.axes(axis, x.ndim)
    rest = [k for k in range(x.ndim) if k not in axes]
    rows = np.transpose(x, (*rest, *axes)).reshape(*(x.shape[k] for k in rest), math.prod(x.shape[k] for k in axes))
    found = np.linalg.norm(rows, 2 if p == "fro" else p, axis=-1)
    return found.reshape(shapes.without(x.shape, axes, keepdims)).astype(np.float64)


def _off_zero(shape: Shape) -> Draw:
    """Numbers that are not near 0, and whose sizes are not near each other."""
    size = shapes.count(shape)
    return Draw(shape, make=lambda rng: ((rng.permutation(size) + 2) * rng.choice([-0.25, 0.25], size)).reshape(shape))


@composite(
    group=GROUP, reference=_reference_norm, dtypes=("float", "complex"), scheme=("tensor-norm",),
    samples=(
        sample(_off_zero((2, 3))), sample(_off_zero((2, 3)), p=1, axis=1),
        sample(_off_zero((3, 2)), p=math.inf, axis=0, keepdims=True), sample(_off_zero((2, 3)), p=-math.inf, axis=-1),
        sample(_off_zero((2, 3)), p=0, axis=1), sample(_off_zero((2, 3)), p=3.5, axis=1),
        sample(_off_zero((2, 3)), p=-2, axis=1), sample(_off_zero((2, 2, 3)), p="fro", axis=(0, 2)),
        sample(_off_zero((4,)), p=0.5), sample((2, 0), axis=1), sample(_off_zero(())),
    ),
)  # fmt: skip
def norm(x: Value, p: float | str = 2, axis: Axes = None, keepdims: bool = False) -> Any:
    """The p-norm of the elements along axes (all of them by default; of a matrix, "fro" is 2).

    p is any number: 0 counts what is not 0, inf and -inf take the greatest and least modulus. Where the norm is 0, so
    is its derivative.
    """
    if p == "fro":
        p = 2
    if isinstance(p, str):
        raise ShapeError(f"there is no norm '{p}' of elements", hint='p is a number or "fro"')
    x, dtype = wide(x), x.dtype
    if p == 2:
        square = real(x * conj(x)) if x.dtype.is_complex else x * x
        return narrow(root(sum_(square, axis, keepdims)), dtype)
    size = absolute(x)
    if math.isinf(p):
        if p > 0 and not size.size:  # as NumPy has it: there is a greatest of no lengths, which is 0
            return narrow(sum_(size, axis, keepdims), dtype)
        return narrow((max_ if p > 0 else min_)(size, axis, keepdims), dtype)
    if p == 0:
        return narrow(cast(count_nonzero(x, axis, keepdims), size.dtype), dtype)
    if p == 1:
        return narrow(sum_(size, axis, keepdims), dtype)
    total = sum_(_powered(size, p, 0 if p > 0 else math.inf), axis, keepdims)
    # A sum of negative powers is 0 only where there are none, or all were of infinities.
    return narrow(_powered(total, 1 / p, 0 if p > 0 else math.inf), dtype)


def _powered(x: Value, p: float, at_zero: float) -> Any:
    """x to the power p, with a given value and derivative 0 where x is 0."""
    zero = equal(x, 0)
    return where(zero, at_zero, pow_(where(zero, 1, x), p))


# --- extremes -------------------------------------------------------------------------------------


def _infer_extreme(a: Along, x: HasAval) -> Aval:
    if x.dtype.is_complex:
        raise DTypeError(f"{x.dtype} numbers have no order", hint="compare abs(x), x.real or x.imag")
    if any(x.shape[k] == 0 for k in a.axes):
        raise ShapeError(f"there is no extreme of no elements: shape {list(x.shape)} along axes {list(a.axes)}")
    return Aval(shapes.without(x.shape, a.axes, a.keepdims), x.dtype)


def _jvp_extreme(a: Along, r: Any, inputs: Any, tangents: Any) -> Any:
    (x,), (t,) = inputs, tangents
    chosen = equal(x, reshape(r, kept(a, x)))
    weight = cast(chosen, t.dtype)
    return sum_(t * weight / sum_(weight, a.axes, keepdims=True), a.axes, a.keepdims)


def _extreme(name: str, first: Callable[[DType], Any], function: Callable[..., Any]) -> dict[str, Any]:
    return {
        "group": GROUP, "infer": _infer_extreme, "reference": reference_of(function), "dtypes": _REAL,
        "derivative": Jvp(_jvp_extreme), "batch": batched_along(name), "lower": pull_along(name.upper(), first),
        "samples": (*SAMPLES, sample((2, 0), axis=0)), "scheme": (f"tensor-{name}",), "aliases": (f"a{name}",),
        "reduces": Reducing(name.capitalize(), first), "work": each_read,
    }  # fmt: skip


@primitive(**_extreme("max", lambda dtype: dtype.limits()[0], np.max), pairs="argmax")
def max_(x: Value, axis: Axes = None, keepdims: bool = False) -> Along:
    """The greatest element along axes; NaN if one is; equal greatest ones share the tangent."""
    return Along(shapes.axes(axis, x.ndim), bool(keepdims))


@primitive(**_extreme("min", lambda dtype: dtype.limits()[1], np.min), pairs="argmin")
def min_(x: Value, axis: Axes = None, keepdims: bool = False) -> Along:
    """The least element along axes; NaN if one is; equal least ones share the tangent."""
    return Along(shapes.axes(axis, x.ndim), bool(keepdims))


def _infer_place(a: Along, x: HasAval) -> Aval:
    return Aval(_infer_extreme(a, x).shape, dtypes.int64)


def _reference_place(function: Callable[..., Any]) -> Callable[..., Any]:
    def reference(a: Along, x: Any) -> Any:
        rest = [k for k in range(x.ndim) if k not in a.axes]
        rows = np.transpose(wide_array(x), (*rest, *a.axes))
        rows = rows.reshape((*(x.shape[k] for k in rest), shapes.count(tuple(x.shape[k] for k in a.axes))))
        found = function(rows, axis=-1)
        return found.reshape(shapes.without(x.shape, a.axes, a.keepdims))

    return reference


def _better(e: Any, condition: str, value: Any, best: Any) -> Any:
    """Whether a value takes the place of the best one so far; NaN does, and stays."""
    better = e.compare(condition, value, best)
    if not value.dtype.is_float:
        return better
    return e.op("OR", better, e.op("AND", e.compare("NE", value, value), e.compare("EQ", best, best)))


def _pull_place(condition: str) -> Pull:
    def code(e: Any, a: Along, i: Any, x: Any) -> Any:
        extents = [x.shape[k] for k in a.axes]

        def body(j: Any, state: Any) -> Any:
            best, at = state
            value = x(_place(a, i, len(x.shape), e.unravel(j, extents)))
            better = _better(e, condition, value, best)
            return [e.select(better, value, best), e.select(better, e.convert(j, dtypes.int64), at)]

        first = x(_place(a, i, len(x.shape), [0] * len(extents)))
        return e.loop(math.prod(extents), [first, e.constant(0, dtypes.int64)], body)[1]

    return Pull(code)


def _extreme_place(name: str, condition: str, function: Callable[..., Any]) -> dict[str, Any]:
    return {
        "group": GROUP, "infer": _infer_place, "reference": _reference_place(function), "dtypes": _REAL,
        "derivative": NoDerivative("a place does not vary smoothly"), "batch": batched_along(name),
        "lower": _pull_place(condition), "scheme": (name,), "work": each_read,
        "samples": (sample((2, 3)), sample((2, 3), axis=1), sample((2, 3), axis=0, keepdims=True), sample(())),
    }  # fmt: skip


@primitive(**_extreme_place("argmax", "GT", np.argmax))
def argmax(x: Value, axis: int | None = None, keepdims: bool = False) -> Along:
    """Where the greatest element is: the first of equal ones, or of NaNs; without an axis, in the flattened tensor."""
    return Along(shapes.axes(axis, x.ndim), bool(keepdims))


@primitive(**_extreme_place("argmin", "LT", np.argmin))
def argmin(x: Value, axis: int | None = None, keepdims: bool = False) -> Along:
    """Where the least element is: the first of equal ones, or of NaNs; without an axis, in the flattened tensor."""
    return Along(shapes.axes(axis, x.ndim), bool(keepdims))


# --- what formulas are written with -----------------------------------------------------------------

TENSORS = Arithmetic(
    exp=exp,
    log=log,
    rsqrt=rsqrt,
    greatest=lambda x, axes: max_(x, axes, keepdims=True),
    total=lambda x, axes: sum_(x, axes, keepdims=True),
    average=lambda x, axes: mean(x, axes, keepdims=True),
    finite_or_zero=lambda x: where(equal(absolute(x), math.inf), 0, x),
)
