"""Discrete Fourier transforms, with NumPy's parameters; all are said with one primitive and its factor."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from eshkol.errors import DTypeError, ShapeError, TensorError
from eshkol.ops import dtypes, shapes
from eshkol.ops.contraction import wide
from eshkol.ops.creation import iota
from eshkol.ops.elementwise import cast, real, where
from eshkol.ops.joining import along, roll
from eshkol.ops.movement import reshape
from eshkol.ops.padding import pad
from eshkol.ops.row import HOST, Aval, Draw, HasAval, Linear, Value, composite, primitive, sample

GROUP = "Fourier transforms"
_NUMBERS = ("int", "float", "complex")
_REAL = ("int", "float")


# --- the one primitive ----------------------------------------------------------------------------


class Transform(NamedTuple):
    axis: int
    inverse: bool


def _infer_dft(a: Transform, x: HasAval) -> Aval:
    if not x.dtype.is_complex:
        raise DTypeError(f"{x.dtype} is not complex", hint="fft takes real numbers too")
    if not x.shape[a.axis]:
        raise ShapeError(f"axis {a.axis} of shape {list(x.shape)} is empty: there is nothing to transform")
    return Aval(x.shape, x.dtype)


def _dft(a: Transform, x: Any) -> Any:
    return np.fft.ifft(x, axis=a.axis, norm="forward") if a.inverse else np.fft.fft(x, axis=a.axis)


def _transpose_dft(a: Transform, ct: Any, k: int, x: HasAval) -> Any:
    return dft(ct, *a)  # the matrix of the transform is symmetric


def _batch_dft(a: Transform, inputs: Any, batched: Any) -> Any:
    return dft(inputs[0], a.axis + 1, a.inverse)


@primitive(
    group=GROUP, infer=_infer_dft, reference=_dft, derivative=Linear(_transpose_dft), batch=_batch_dft, lower=HOST,
    dtypes=("complex",), method=False, tolerance=2.0,
    samples=(sample((4,)), sample((3, 2), axis=0), sample((2, 5), inverse=True), sample((0, 2)), sample((1,))),
)  # fmt: skip
def dft(x: Value, axis: int = -1, inverse: bool = False) -> Transform:
    """The sum of x[j] · exp(-2πi·jk/n) over j along an axis (+2πi if inverse), without any factor; x is complex."""
    return Transform(shapes.axis(axis, x.ndim), bool(inverse))


# --- lengths and factors --------------------------------------------------------------------------


def _length(given: Any, otherwise: int) -> int:
    if given is None:
        found = otherwise
    elif isinstance(given, bool) or not isinstance(given, int):
        raise ShapeError(f"a length must be an integer, not {given!r}")
    else:
        found = given
    if found < 1:
        raise ShapeError(f"a transform of {found} points is not possible", hint="give a positive n")
    return found


def _fitted(x: Any, n: int, axis: int) -> Any:
    """x cut off, or filled up with zeros, to n elements along an axis."""
    if x.shape[axis] > n:
        return along(x, axis, 0, n)
    if x.shape[axis] < n:
        return pad(x, [(0, n - x.shape[axis] if k == axis else 0) for k in range(x.ndim)])
    return x


def _factor(n: int, norm: str | None, inverse: bool) -> float:
    factors: dict[str, tuple[float, float]] = {
        "backward": (1.0, 1 / n),
        "ortho": (n**-0.5, n**-0.5),
        "forward": (1 / n, 1.0),
    }
    found = factors.get("backward" if norm is None else norm)
    if found is None:
        raise TensorError(f"there is no norm '{norm}'", hint='norms: "backward", "ortho", "forward"')
    return found[inverse]


def _transform(x: Any, n: int | None, axis: int, norm: str | None, inverse: bool) -> Any:
    axis = shapes.axis(axis, x.ndim)
    length = _length(n, x.shape[axis])
    factor = _factor(length, norm, inverse)
    found = dft(_complex(_fitted(x, length, axis)), axis, inverse)
    return found if factor == 1 else found * factor


def _complex(x: Any) -> Any:
    return x if x.dtype.is_complex else cast(x, x.dtype.complex)


def _transforms(x: Any, s: Sequence[int] | None, axes: Sequence[int] | None, norm: str | None, inverse: bool) -> Any:
    if axes is None:
        axes = range(x.ndim) if s is None else range(x.ndim - len(s), x.ndim)
    axes = list(axes)
    lengths = [None] * len(axes) if s is None else list(s)
    if len(lengths) != len(axes):
        raise ShapeError(f"{len(lengths)} lengths for {len(axes)} axes")
    for axis, n in reversed(list(zip(axes, lengths, strict=True))):
        x = _transform(x, n, axis, norm, inverse)
    return _complex(x)


# --- complex transforms ---------------------------------------------------------------------------

_one_axis = (
    sample((4,)), sample((2, 3), axis=0), sample((5,), n=3), sample((3,), n=6, norm="ortho"), sample((1,)),
    sample((3, 2), norm="forward"), sample((0, 2)),
)  # fmt: skip
_two_axes = (
    sample((2, 3)), sample((2, 2, 3), norm="ortho"), sample((2, 3), s=(3, 2)), sample((2, 3, 2), axes=(0, 1)),
)  # fmt: skip
_many_axes = (*_two_axes, sample((2, 3), axes=(1,)), sample((2, 2, 3), s=(2, 4)))


@composite(
    group=GROUP, dtypes=_NUMBERS, scheme=("tensor-fft",), samples=_one_axis, tolerance=2.0,
    reference=lambda x, n=None, axis=-1, norm=None: np.fft.fft(wide(x), n, axis, norm),
)  # fmt: skip
def fft(x: Value, n: int | None = None, axis: int = -1, norm: str | None = None) -> Any:
    """The discrete Fourier transform along an axis, of n elements (cut off, or zeros added); the norm is as NumPy's."""
    return _transform(x, n, axis, norm, inverse=False)


@composite(
    group=GROUP, dtypes=_NUMBERS, scheme=("tensor-ifft",), samples=_one_axis, tolerance=2.0,
    reference=lambda x, n=None, axis=-1, norm=None: np.fft.ifft(wide(x), n, axis, norm),
)  # fmt: skip
def ifft(x: Value, n: int | None = None, axis: int = -1, norm: str | None = None) -> Any:
    """The inverse of `fft`."""
    return _transform(x, n, axis, norm, inverse=True)


@composite(
    group=GROUP, dtypes=_NUMBERS, scheme=("tensor-fft2",), samples=_two_axes, tolerance=4.0,
    reference=lambda x, s=None, axes=(-2, -1), norm=None: np.fft.fft2(wide(x), s, axes, norm),
)  # fmt: skip
def fft2(x: Value, s: Sequence[int] | None = None, axes: Sequence[int] = (-2, -1), norm: str | None = None) -> Any:
    """The discrete Fourier transform along two axes, with lengths s."""
    return _transforms(x, s, axes, norm, inverse=False)


@composite(
    group=GROUP, dtypes=_NUMBERS, scheme=("tensor-ifft2",), samples=_two_axes, tolerance=4.0,
    reference=lambda x, s=None, axes=(-2, -1), norm=None: np.fft.ifft2(wide(x), s, axes, norm),
)  # fmt: skip
def ifft2(x: Value, s: Sequence[int] | None = None, axes: Sequence[int] = (-2, -1), norm: str | None = None) -> Any:
    """The inverse of `fft2`."""
    return _transforms(x, s, axes, norm, inverse=True)


def _numpy_axes(x: Any, s: Any, axes: Any) -> Any:
    return range(x.ndim - len(s), x.ndim) if axes is None and s is not None else axes


@composite(
    group=GROUP, dtypes=_NUMBERS, samples=_many_axes, tolerance=4.0,
    reference=lambda x, s=None, axes=None, norm=None: np.fft.fftn(wide(x), s, _numpy_axes(x, s, axes), norm),
)  # fmt: skip
def fftn(x: Value, s: Sequence[int] | None = None, axes: Sequence[int] | None = None, norm: str | None = None) -> Any:
    """The discrete Fourier transform along axes: all, or as many of the last as s has lengths."""
    return _transforms(x, s, axes, norm, inverse=False)


@composite(
    group=GROUP, dtypes=_NUMBERS, samples=_many_axes, tolerance=4.0,
    reference=lambda x, s=None, axes=None, norm=None: np.fft.ifftn(wide(x), s, _numpy_axes(x, s, axes), norm),
)  # fmt: skip
def ifftn(x: Value, s: Sequence[int] | None = None, axes: Sequence[int] | None = None, norm: str | None = None) -> Any:
    """The inverse of `fftn`."""
    return _transforms(x, s, axes, norm, inverse=True)


# --- real transforms ------------------------------------------------------------------------------


@composite(
    group=GROUP, dtypes=_REAL, scheme=("tensor-rfft",), samples=_one_axis, tolerance=2.0,
    reference=lambda x, n=None, axis=-1, norm=None: np.fft.rfft(wide(x), n, axis, norm),
)  # fmt: skip
def rfft(x: Value, n: int | None = None, axis: int = -1, norm: str | None = None) -> Any:
    """The first n//2 + 1 elements of the `fft` of real numbers; the others are their conjugates."""
    if x.dtype.is_complex:
        raise DTypeError(f"rfft takes real numbers, not {x.dtype}", hint="use fft")
    axis = shapes.axis(axis, x.ndim)
    found = _transform(x, n, axis, norm, inverse=False)
    return along(found, axis, 0, found.shape[axis] // 2 + 1)


@composite(
    group=GROUP, dtypes=("complex",), tolerance=2.0,
    reference=lambda x, n=None, axis=-1, norm=None: np.fft.irfft(wide(x), n, axis, norm),
    samples=(
        sample((4,)), sample((3, 2), axis=0), sample((5,), n=5), sample((3,), n=8, norm="ortho"), sample((2,), n=1),
        sample((3, 3), n=5, norm="forward"), sample(Draw((3,), kind="float")), sample((0, 2)),
    ),
)  # fmt: skip
def irfft(x: Value, n: int | None = None, axis: int = -1, norm: str | None = None) -> Any:
    """The inverse of `rfft`: n real numbers, 2·(m - 1) unless given for m elements."""
    axis = shapes.axis(axis, x.ndim)
    length = _length(n, 2 * (x.shape[axis] - 1))
    half = _fitted(_complex(x), length // 2 + 1, axis)
    # The elements that are not there are conjugates of others: these count twice, and the real part is taken.
    place = reshape(iota.on(half, (half.shape[axis],)), (-1, *(1,) * (half.ndim - 1 - axis)))
    once = (place < 1) | (place * 2 >= length)
    spectrum = _fitted(where(once, half, half * 2), length, axis)
    return real(_transform(spectrum, None, axis, norm, inverse=True))


# --- the order of frequencies ---------------------------------------------------------------------


def _shifted(x: Any, axes: int | Sequence[int] | None, back: bool) -> Any:
    chosen = shapes.axes(axes, x.ndim)
    return roll(x, [-(x.shape[k] // 2) if back else x.shape[k] // 2 for k in chosen], chosen) if chosen else x


_shift_samples = (sample((5,)), sample((2, 3)), sample((2, 3), axes=1), sample((0,)), sample((2, 3, 2), axes=(0, -1)))


@composite(group=GROUP, dtypes=_NUMBERS, samples=_shift_samples, reference=np.fft.fftshift)
def fftshift(x: Value, axes: int | Sequence[int] | None = None) -> Any:
    """The frequency 0 moved to the middle along axes (all of them by default)."""
    return _shifted(x, axes, back=False)


@composite(group=GROUP, dtypes=_NUMBERS, samples=_shift_samples, reference=np.fft.ifftshift)
def ifftshift(x: Value, axes: int | Sequence[int] | None = None) -> Any:
    """The inverse of `fftshift`."""
    return _shifted(x, axes, back=True)


def _frequencies(places: Any, n: int, d: float, dtype: Any) -> Any:
    found = dtypes.of(dtype)
    if not found.is_float:
        raise DTypeError(f"frequencies are floats, not {found}", hint='give a float dtype, such as "float32"')
    if isinstance(d, bool) or not isinstance(d, int | float) or d == 0:
        raise TensorError(f"the distance of samples must be a number that is not 0, not {d!r}")
    return cast(cast(places, dtypes.promote(found, dtypes.float32)) / (n * d), found)


_counts = (sample(n=5), sample(n=4, d=0.5, dtype="float64"), sample(n=1), sample(n=2))


@composite(
    group=GROUP, method=False, like=True, samples=_counts,
    reference=lambda n, d=1.0, dtype="float32": np.fft.fftfreq(n, d).astype(dtype),
)  # fmt: skip
def fftfreq(like: Value, n: int, d: float = 1.0, dtype: Any = None) -> Any:
    """The frequencies of the n elements of `fft`, in cycles per unit, for samples at distance d."""
    length = _length(n, 0)
    place = iota.on(like, (length,))
    return _frequencies(where(place * 2 < length, place, place - length), length, d, dtype)


@composite(
    group=GROUP, method=False, like=True, samples=_counts,
    reference=lambda n, d=1.0, dtype="float32": np.fft.rfftfreq(n, d).astype(dtype),
)  # fmt: skip
def rfftfreq(like: Value, n: int, d: float = 1.0, dtype: Any = None) -> Any:
    """The frequencies of the elements of `rfft`, in cycles per unit, for n samples at distance d."""
    length = _length(n, 0)
    return _frequencies(iota.on(like, (length // 2 + 1,)), length, d, dtype)
