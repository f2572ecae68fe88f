"""What tells a network where in a sequence an element stands: sinusoidal encodings and rotary embeddings."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from eshkol.errors import DTypeError, ShapeError
from eshkol.ops import dtypes, shapes
from eshkol.ops.creation import iota
from eshkol.ops.elementwise import cast, cos, sin
from eshkol.ops.joining import stack, unstack
from eshkol.ops.movement import reshape
from eshkol.ops.reductions import wide_array
from eshkol.ops.row import Value, composite, sample

GROUP = "positions"


def _angles(like: Value, length: int, frequencies: Any, offset: float) -> Any:
    """Position · frequency, in float64: far positions make great angles, whose sine needs all their digits."""
    (found,) = shapes.extents(length)
    return (iota.on(like, (found, 1), 0, "float64") + float(offset)) * like.literal(frequencies)


def _float(dtype: Any) -> dtypes.DType:
    found = dtypes.of(dtype)
    if not found.is_float:
        raise DTypeError(f"angles and their sines are floats, not {found}")
    return found


def _base(base: float) -> float:
    if not (isinstance(base, int | float) and 0 < base < math.inf):
        raise ShapeError(f"the base of the wavelengths must be a positive number, not {base!r}")
    return float(base)


def _positional_encoding(length: int, dim: int, base: float = 10000.0, dtype: Any = None) -> Any:
    found = np.zeros((length, dim))
    for at in range(length):
        for k in range(dim):
            angle = at / base ** (2 * (k // 2) / dim)
            found[at, k] = math.cos(angle) if k % 2 else math.sin(angle)
    return found.astype(dtypes.of(dtype).numpy)


@composite(
    group=GROUP, reference=_positional_encoding, method=False, like=True, scheme=("positional-encoding",),
    samples=(
        sample(length=4, dim=6), sample(length=3, dim=5, dtype="float64"), sample(length=0, dim=2),
        sample(length=2, dim=4, base=100.0, dtype="float16"),
    ),
)  # fmt: skip
def positional_encoding(like: Value, length: int, dim: int, base: float = 10000.0, dtype: Any = None) -> Any:
    """length × dim sinusoids: sin(t / base^(2k/dim)) in column 2k, the cosine of the same in column 2k + 1."""
    wanted, (width,) = _float(dtype), shapes.extents(dim)
    columns = np.arange(width)
    frequencies = _base(base) ** (-2.0 * (columns // 2) / max(width, 1))
    turns = like.literal(columns % 2 * (math.pi / 2))  # a cosine is a sine a quarter turn ahead
    return cast(sin(_angles(like, length, frequencies, 0) + turns), wanted)


def _even(dim: int) -> int:
    (width,) = shapes.extents(dim)
    if width % 2:
        raise ShapeError(f"{width} elements are not pairs: rotary embeddings turn pairs")
    return width


def _rotary_angles(length: int, dim: int, base: float = 10000.0, offset: float = 0, dtype: Any = None) -> Any:
    found = [[(at + offset) / base ** (2 * k / dim) for k in range(dim // 2)] for at in range(length)]
    return np.array(found).reshape(length, dim // 2).astype(dtypes.of(dtype).numpy)


@composite(
    group=GROUP, reference=_rotary_angles, method=False, like=True,
    samples=(
        sample(length=4, dim=6), sample(length=3, dim=4, offset=7, base=500, dtype="float64"), sample(length=2, dim=0),
    ),
)  # fmt: skip
def rotary_angles(
    like: Value, length: int, dim: int, base: float = 10000.0, offset: float = 0, dtype: Any = None
) -> Any:
    """The angles by which rotary_embedding turns: (t + offset) / base^(2k/dim) for position t and pair k."""
    wanted, width = _float(dtype), _even(dim)
    frequencies = _base(base) ** (-np.arange(0, width, 2) / max(width, 1))
    return cast(_angles(like, length, frequencies, offset), wanted)


def _rotated(x: Any, angles: Any, interleaved: bool = True) -> Any:
    x = wide_array(x)
    half = x.shape[-1] // 2
    result = np.zeros(x.shape, x.dtype)
    for k in range(half):
        one, other = (2 * k, 2 * k + 1) if interleaved else (k, k + half)
        turned = (x[..., one] + 1j * x[..., other]) * np.exp(1j * wide_array(angles)[..., k])
        result[..., one], result[..., other] = turned.real, turned.imag
    return result


@composite(
    group=GROUP, reference=_rotated, aliases=("rope",), method=False,
    samples=(
        sample((3, 4), (3, 2)), sample((2, 2, 3, 4), (3, 2)), sample((2, 3, 2, 4), (3, 1, 2), interleaved=False),
        sample((0, 2), (0, 1)),
    ),
)  # fmt: skip
def rotary_embedding(x: Value, angles: Value, interleaved: bool = True) -> Any:
    """x with its last axis turned, pair by pair, by the angles (… × positions × pairs, broadcast over x).

    A pair is two neighbours (2k, 2k + 1), or without `interleaved` the same places of both halves (k, k + dim/2).
    """
    if x.ndim == 0 or angles.ndim == 0 or 2 * angles.shape[-1] != x.shape[-1]:
        raise ShapeError(
            f"shape {list(x.shape)} has not two elements for each angle of shape {list(angles.shape)}",
            hint="the last axis of angles is half as long as that of x",
        )
    half = angles.shape[-1]
    pairs, axis = ((half, 2), -1) if interleaved else ((2, half), -2)
    one, other = unstack(reshape(x, (*x.shape[:-1], *pairs)), axis)
    if shapes.broadcast(one.shape, angles.shape) != one.shape:
        raise ShapeError(f"angles of shape {list(angles.shape)} do not broadcast over shape {list(x.shape)}")
    across, along = cos(angles), sin(angles)
    turned = stack([one * across - other * along, one * along + other * across], axis)
    return cast(reshape(turned, x.shape), x.dtype)
