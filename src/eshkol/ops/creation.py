"""Tensors from nothing but a shape: counters, constants, sequences and windows.

These ops have no inputs. A rule makes them with `op.on(like, ...)`, in the world of some value; so do those that are
composites (`like=True`), whose first parameter is that value and is not part of what the user gives.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from eshkol.errors import DTypeError, ShapeError, TensorError
from eshkol.ops import dtypes, shapes
from eshkol.ops.dtypes import DType, Number
from eshkol.ops.elementwise import cast, equal, greater_equal, less, where
from eshkol.ops.movement import expand
from eshkol.ops.row import Aval, NoDerivative, Op, Pull, Shape, Value, composite, primitive, sample
from eshkol.ops.structural import CONST, Constant
from eshkol.support.extents import Extent, index

GROUP = "creation"
MOST_ELEMENTS = 1 << 62  # flat positions are 64-bit integers
_NOTHING = NoDerivative("it depends on nothing")


class Counter(NamedTuple):
    shape: Shape
    axis: int
    dtype: DType


def _iota(a: Counter) -> Any:
    along = [1] * len(a.shape)
    along[a.axis] = a.shape[a.axis]
    return np.broadcast_to(np.arange(a.shape[a.axis]).reshape(along), a.shape)


def _never(a: Any, inputs: Any, batched: Any) -> Any:
    raise AssertionError("an op without inputs is never batched")


@primitive(
    group=GROUP, infer=lambda a: Aval(a.shape, a.dtype), reference=_iota, derivative=_NOTHING, batch=_never,
    method=False, moves=True, lower=Pull(lambda e, a, i: e.convert(i[a.axis], a.dtype)),
    samples=(sample(shape=(2, 3), axis=1), sample(shape=(4,)), sample(shape=(2, 0)), sample(shape=3, dtype="float32")),
)  # fmt: skip
def iota(shape: int | Shape, axis: int = 0, dtype: Any = "int64") -> Counter:
    """0, 1, 2 … along an axis, the same along the others."""
    found = shapes.extents(shape)
    return Counter(found, shapes.axis(axis, len(found)), dtypes.of(dtype))


# --- one number everywhere ------------------------------------------------------------------------


def full(like: Value, shape: Shape, number: Number, dtype: DType | None = None) -> Any:
    """One number everywhere; for rules (users have `ek.full`)."""
    value = like.apply(CONST, (), Constant.of(number, dtype or like.dtype))
    return expand(value, shape) if shape else value


def _number(given: Any, name: str) -> int | float:
    """A real number that the user gave."""
    plain = given.item() if isinstance(given, np.generic) else given
    if isinstance(plain, bool) or not isinstance(plain, int | float):
        raise TensorError(f"{name} must be a real number, not {given!r}")
    if isinstance(plain, int) and type(plain) is not Extent and plain.bit_length() > 1000:
        raise TensorError(f"{name} is beyond all dtypes: an integer of {plain.bit_length()} bits")
    return plain


def _filled(like: Value, shape: Shape, number: Any, dtype: Any) -> Any:
    plain = number.item() if isinstance(number, np.generic) else number
    if not isinstance(plain, bool | int | float | complex):
        raise TensorError(f"the number to fill with must be a number, not {type(number).__name__}")
    found = dtypes.of_number(plain) if dtype is None else dtypes.of(dtype)
    if not found.holds(plain):
        raise DTypeError(f"{found} does not hold {plain}", hint="give a dtype that does, or another number")
    return full(like, shape, plain, found)


@composite(
    name="full", group=GROUP, method=False, like=True, scheme=("make-tensor",),
    reference=lambda shape, fill_value, dtype=None: np.full(shape, fill_value, dtype),
    samples=(sample(shape=(2, 3), fill_value=7, dtype="int32"), sample(shape=(), fill_value=2.5, dtype="float64"),
             sample(shape=(0, 2), fill_value=True), sample(shape=2, fill_value=1j, dtype="complex64")),
)  # fmt: skip
def full_(like: Value, shape: int | Shape, fill_value: Number, dtype: Any = None) -> Any:
    """A tensor of one number everywhere, of the number's own dtype unless another is given; it must hold the number."""
    return _filled(like, shapes.extents(shape), fill_value, dtype)


@composite(
    group=GROUP, method=False, like=True, scheme=("zeros",), aliases=("empty",), reference=np.zeros,
    samples=(sample(shape=(2, 3), dtype="float32"), sample(shape=0, dtype="int8"), sample(shape=(), dtype="bool")),
)  # fmt: skip
def zeros(like: Value, shape: int | Shape, dtype: Any = None) -> Any:
    """Zeros; `empty` is the same, for nothing is ever left unset."""
    return full(like, shapes.extents(shape), 0, dtypes.of(dtype))


@composite(
    group=GROUP, method=False, like=True, scheme=("ones",), reference=np.ones,
    samples=(sample(shape=(2, 3), dtype="float32"), sample(shape=0, dtype="int8"), sample(shape=(), dtype="bool")),
)  # fmt: skip
def ones(like: Value, shape: int | Shape, dtype: Any = None) -> Any:
    """Ones."""
    return full(like, shapes.extents(shape), 1, dtypes.of(dtype))


_ANY = ("bool", "int", "float", "complex")
_LIKE = (sample((2, 3)), sample(()), sample((0, 2)), sample((2,), dtype="int32"))


@composite(
    group=GROUP, method=False, aliases=("empty_like",), reference=np.zeros_like, dtypes=_ANY, samples=_LIKE,
)  # fmt: skip
def zeros_like(x: Value, dtype: Any = None) -> Any:
    """Zeros of the shape of x, and of its dtype unless another is given."""
    return full(x, x.shape, 0, x.dtype if dtype is None else dtypes.of(dtype))


@composite(group=GROUP, method=False, reference=np.ones_like, dtypes=_ANY, samples=_LIKE)
def ones_like(x: Value, dtype: Any = None) -> Any:
    """Ones of the shape of x, and of its dtype unless another is given."""
    return full(x, x.shape, 1, x.dtype if dtype is None else dtypes.of(dtype))


@composite(
    group=GROUP, method=False, reference=np.full_like, dtypes=("int", "float", "complex"),
    samples=(sample((2, 3), fill_value=3), sample((0,), fill_value=1), sample((2,), fill_value=2.5, dtype="float32")),
)  # fmt: skip
def full_like(x: Value, fill_value: Number, dtype: Any = None) -> Any:
    """One number everywhere, of the shape of x, and of its dtype unless another is given; it must hold the number."""
    return _filled(x, x.shape, fill_value, x.dtype if dtype is None else dtype)


# --- matrices -------------------------------------------------------------------------------------


def _against_diagonal(compare: Op, like: Value, n: int, m: int | None, k: int, dtype: Any) -> Any:
    """1 where the row's number, moved by k, compares so with the column's."""
    rows, columns = shapes.extents((n, n if m is None else m))
    if isinstance(k, bool) or not isinstance(k, int):
        raise TensorError(f"a diagonal is numbered by an integer, not {k!r}")
    holds = compare(iota.on(like, (rows, 1), 0) + k, iota.on(like, (1, columns), 1))
    return cast(holds, dtypes.of(dtype))


@composite(
    group=GROUP, method=False, like=True, scheme=("eye",), aliases=("identity",),
    reference=lambda n, m=None, k=0, dtype="float32": np.eye(n, m, k, dtype),
    samples=(sample(n=3), sample(n=2, m=4, k=1, dtype="int64"), sample(n=3, m=2, k=-1), sample(n=0), sample(n=2, k=9)),
)  # fmt: skip
def eye(like: Value, n: int, m: int | None = None, k: int = 0, dtype: Any = None) -> Any:
    """Ones on the diagonal number k of an n × m matrix (square unless m is given), zeros elsewhere."""
    return _against_diagonal(equal, like, n, m, k, dtype)


@composite(
    group=GROUP, method=False, like=True,
    reference=lambda n, m=None, k=0, dtype="float32": np.tri(n, m, k, dtype),
    samples=(sample(n=3), sample(n=2, m=4, k=1, dtype="bool"), sample(n=3, m=2, k=-1), sample(n=0)),
)  # fmt: skip
def tri(like: Value, n: int, m: int | None = None, k: int = 0, dtype: Any = None) -> Any:
    """Ones on and below the diagonal number k of an n × m matrix, zeros above."""
    return _against_diagonal(greater_equal, like, n, m, k, dtype)


# --- sequences ------------------------------------------------------------------------------------


def _steps(start: float, stop: float, step: float) -> int:
    """How many numbers there are from start to before stop."""
    if step == 0:
        raise TensorError("a step of 0 never arrives")
    if all(isinstance(x, int) for x in (start, stop, step)):
        found = -((start - stop) // step)
    else:
        span = (stop - start) / step
        if not math.isfinite(span):
            raise TensorError(f"there is no sequence from {start} to {stop} in steps of {step}")
        found = math.ceil(span)
    if found > MOST_ELEMENTS:
        raise ShapeError(f"{found:.3g} elements from {start} to {stop} in steps of {step} are too many")
    return max(0, index(found))


def _work_dtype(dtype: DType) -> DType:
    """In which a sequence of numbers of a dtype is computed."""
    if dtype.is_integer:
        return dtypes.int64 if dtype.signed else dtypes.uint64
    return dtypes.float64 if dtype.real is dtypes.float64 else dtypes.float32


def _arange(start: Any, stop: Any = None, step: Any = 1, dtype: Any = None) -> Any:
    bounds: Any = (0, start) if stop is None else (start, stop)
    return np.arange(bounds[0], bounds[1], step, dtype=dtype)


@composite(
    group=GROUP, method=False, like=True, scheme=("arange",), reference=_arange,
    samples=(
        sample(start=5), sample(start=2, stop=11, step=3, dtype="int32"), sample(start=5, stop=-4, step=-2),
        sample(start=0.5, stop=3.0, step=0.25, dtype="float64"), sample(start=0, stop=-1, step=-0.1, dtype="float32"),
        sample(start=3, stop=3), sample(start=1, stop=0), sample(start=7, stop=0, step=-3, dtype="uint8"),
    ),
)  # fmt: skip
def arange(like: Value, start: float, stop: float | None = None, step: float = 1, dtype: Any = None) -> Any:
    """start + step · i, from start (0 if only stop is given) to before stop: int64 of integers, else floats."""
    bounds = (0, start) if stop is None else (start, stop)
    first, last, by = (_number(x, "a bound or step of arange") for x in (*bounds, step))
    whole = all(isinstance(x, int) for x in (first, last, by))
    found = dtypes.of(dtype) if dtype is not None else dtypes.int64 if whole else dtypes.default_float()
    length = _steps(first, last, by)
    if found.is_bool or (found.is_integer and not whole):
        raise DTypeError(f"numbers from {first} in steps of {by} are not {found}", hint="give a float dtype")
    if found.is_integer and length and not (found.holds(first) and found.holds(first + (length - 1) * by)):
        raise DTypeError(f"{found} does not hold all of {first} to {last}", hint="give a wider dtype")
    work = _work_dtype(found)
    count = iota.on(like, (length,), 0, work)
    # The step may be negative where the dtype is not, and may not fit it where it is not used.
    scaled = count if length < 2 or by == 1 else count * abs(by)
    return cast(first - scaled if by < 0 else scaled + first, found) if length else cast(count, found)


@composite(
    group=GROUP, method=False, like=True, scheme=("linspace",),
    reference=lambda start, stop, num=50, endpoint=True, dtype="float32":
        np.linspace(start, stop, num, endpoint).astype(dtypes.of(dtype).numpy),
    samples=(
        sample(start=0, stop=1, num=5), sample(start=-1.5, stop=2.5, num=7, dtype="float64"),
        sample(start=3.0, stop=0.1, num=4, endpoint=False), sample(start=2, stop=9, num=1),
        sample(start=0, stop=1, num=0), sample(start=0, stop=1, num=9, dtype="bfloat16"),
        sample(start=0, stop=1, num=3, dtype="complex64"),
    ),
)  # fmt: skip
def linspace(like: Value, start: float, stop: float, num: int = 50, endpoint: bool = True, dtype: Any = None) -> Any:
    """num numbers at equal distances from start to stop, both of them exact (without endpoint: to before stop)."""
    found, (length,) = dtypes.of(dtype), shapes.extents(num)
    if not found.differentiable:
        raise DTypeError(f"linspace of {found} would round its numbers", hint="give a float dtype and cast the result")
    first, last = _number(start, "start"), _number(stop, "stop")
    count = iota.on(like, (length,), 0, _work_dtype(found))
    gaps = length - 1 if endpoint else length
    if gaps < 1:
        return cast(count + first, found)
    step = (last - first) / gaps
    if not math.isfinite(step):  # where only the difference overflows
        step = last / gaps - first / gaps
    risen = count * step + first
    if endpoint:  # from the nearer end, so that both ends are exact and rounding is symmetric
        risen = where(less(count, length / 2), risen, (count - gaps) * step + last)
    return cast(risen, found)


@composite(
    group=GROUP, method=False, like=True,
    reference=lambda start, stop, num=50, endpoint=True, base=10.0, dtype="float32":
        np.logspace(start, stop, num, endpoint, base).astype(dtypes.of(dtype).numpy),
    samples=(
        sample(start=0, stop=3, num=4), sample(start=-2, stop=1, num=5, base=2.0, dtype="float64"),
        sample(start=0, stop=1, num=3, endpoint=False), sample(start=0, stop=1, num=0),
    ),
)  # fmt: skip
def logspace(
    like: Value, start: float, stop: float, num: int = 50, endpoint: bool = True, base: float = 10.0,
    dtype: Any = None,
) -> Any:  # fmt: skip
    """base to the powers linspace(start, stop, num): numbers at equal ratios."""
    found, (length,) = dtypes.of(dtype), shapes.extents(num)
    if not found.differentiable:
        raise DTypeError(f"logspace of {found} would round its numbers", hint="give a float dtype and cast the result")
    powers = np.linspace(_number(start, "start"), _number(stop, "stop"), length, bool(endpoint))
    with np.errstate(over="ignore"):
        return like.literal(np.power(float(base), powers).astype(found.numpy))


# --- windows --------------------------------------------------------------------------------------


def _window(name: str, weights: tuple[float, ...], reference: Any) -> Op:
    """A sum of cosines, computed once on the host: windows are short, and exact everywhere so."""

    def function(like: Value, n: int, periodic: bool = True, dtype: Any = None) -> Any:
        (length,), found = shapes.extents(n), dtypes.of(dtype)
        if not found.is_float:
            raise DTypeError(f"a window is made of floats, not of {found}")
        period = length if periodic else length - 1
        angles = 2 * np.pi * np.arange(length) / max(period, 1)
        terms = [(-1) ** k * weight * np.cos(k * angles) for k, weight in enumerate(weights)]
        return like.literal((np.sum(terms, axis=0) if length > 1 else np.ones(length)).astype(found.numpy))

    def expected(n: int, periodic: bool = True, dtype: Any = None) -> Any:
        whole = reference(n + 1)[:-1] if periodic and n > 1 else reference(n)
        return whole.astype(dtypes.of(dtype).numpy)

    function.__name__ = f"{name}_window"
    function.__doc__ = (
        f"The {name.capitalize()} window of n points; periodic ones are cut from n + 1 points, for spectra."
    )
    samples = (sample(n=8), sample(n=7, periodic=False, dtype="float64"), sample(n=1), sample(n=0))
    return composite(group=GROUP, method=False, like=True, reference=expected, samples=samples)(function)


hann_window = _window("hann", (0.5, 0.5), np.hanning)
hamming_window = _window("hamming", (0.54, 0.46), np.hamming)
blackman_window = _window("blackman", (0.42, 0.5, 0.08), np.blackman)
