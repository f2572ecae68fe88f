"""Padding as users have it: with a value, or with what stands at the ends."""

from __future__ import annotations

from typing import Any

import numpy as np

from eshkol.errors import ShapeError
from eshkol.ops import dtypes
from eshkol.ops.joining import concatenate
from eshkol.ops.movement import GROUP, expand, flip
from eshkol.ops.row import Value, composite, sample
from eshkol.ops.slicing import listed, pad_constant, slice_
from eshkol.ops.structural import number

_ANY = ("bool", "int", "float", "complex")
_BORDERS = {"edge": "replicate", "wrap": "circular"}  # NumPy's names of PyTorch's modes
_NUMPY_BORDERS: dict[str, Any] = {"replicate": "edge", "circular": "wrap"}


def _widths(given: Any, ndim: int) -> list[tuple[int, int]]:
    """Widths per axis, from an integer for all, a pair for all, or a pair for each."""
    if isinstance(given, int):
        return [(given, given)] * ndim
    found = listed(given, "padding")
    if len(found) == 2 and all(isinstance(n, int) for n in found):
        return [(found[0], found[1])] * ndim
    if len(found) != ndim or any(not isinstance(pair, tuple | list) or len(pair) != 2 for pair in found):
        raise ShapeError(
            f"{given} does not give widths for {ndim} axes",
            hint="give ((before, after), ...) for each axis, or one pair",
        )
    return [(before, after) for before, after in found]


def _pad_reference(x: Any, widths: Any, value: Any = 0, mode: Any = "constant", interior: Any = 0) -> Any:
    pairs = _widths(widths, x.ndim)
    if mode != "constant":
        return np.pad(x, pairs, _NUMPY_BORDERS.get(mode, mode))
    if x.ndim == 0:
        return x
    gaps = [interior] * x.ndim if isinstance(interior, int) else interior
    for axis, gap in enumerate(gaps):
        places = np.repeat(np.arange(1, x.shape[axis]), gap)
        x = np.insert(x, places, np.asarray(value).astype(x.dtype), axis=axis)
    x = np.pad(x, [(max(b, 0), max(a, 0)) for b, a in pairs], constant_values=np.asarray(value).astype(x.dtype))
    return x[tuple(slice(max(-b, 0), n + min(a, 0)) for (b, a), n in zip(pairs, x.shape, strict=True))]


def _border(x: Any, axis: int, before: int, after: int, mode: str) -> Any:
    """x with what stands at its ends once more on both sides, mirrored, repeated or wrapped around."""
    n = x.shape[axis]
    most = {"reflect": n - 1, "circular": n, "replicate": before + after}[mode]
    if before < 0 or after < 0 or max(before, after) > most or n == 0:
        raise ShapeError(
            f"widths ({before}, {after}) do not suit mode '{mode}' and an extent of {n}",
            hint=f"in this mode they are between 0 and {most}" if n and mode != "replicate" else None,
        )

    def part(start: int, stop: int) -> Any:
        bounds = ((0,) * axis + (start,), (None,) * axis + (stop,))
        return slice_(x, *bounds)

    def repeated(place: int, times: int) -> Any:
        return expand(part(place, place + 1), (*x.shape[:axis], times, *x.shape[axis + 1 :]))

    parts = {
        "reflect": lambda: (flip(part(1, before + 1), axis), flip(part(n - 1 - after, n - 1), axis)),
        "circular": lambda: (part(n - before, n), part(0, after)),
        "replicate": lambda: (repeated(0, before), repeated(n - 1, after)),
    }[mode]()
    return concatenate([parts[0], x, parts[1]], axis) if before or after else x


@composite(
    group=GROUP, reference=_pad_reference, dtypes=_ANY,
    samples=(
        sample((2, 3), widths=((1, 0), (0, 2))), sample((2, 3), widths=1, value=1), sample((3,), widths=(-1, 2)),
        sample((2, 3), widths=((0, 1), (-1, 0)), interior=(1, 2)), sample((0, 2), widths=1), sample((), widths=()),
        sample((3, 4), widths=((2, 1), (0, 3)), mode="reflect"), sample((3, 2), widths=2, mode="replicate"),
        sample((3, 4), widths=((3, 1), (0, 2)), mode="circular"),
    ),
)  # fmt: skip
def pad(x: Value, widths: Any, value: Any = 0, mode: str = "constant", interior: Any = 0) -> Any:
    """x with elements before and after along each axis: `widths` is ((before, after), …), one pair, or one integer.

    Mode "constant" fills with a value, also between elements (interior), and negative widths cut off; "reflect",
    "replicate" ("edge") and "circular" ("wrap") fill with what stands at the ends.
    """
    pairs = _widths(widths, x.ndim)
    mode = _BORDERS.get(mode, mode)
    if mode not in ("constant", "reflect", "replicate", "circular"):
        raise ShapeError(f"there is no padding mode '{mode}'", hint="modes: constant, reflect, replicate, circular")
    if mode == "constant":
        gaps = (interior,) * x.ndim if isinstance(interior, int) else tuple(listed(interior, "interior padding"))
        filling = value if isinstance(value, Value) else number(x, dtypes.held(value, x.dtype))
        return pad_constant(x, filling, tuple(b for b, _ in pairs), tuple(a for _, a in pairs), gaps)
    if interior not in (0, None):
        raise ShapeError(f"mode '{mode}' has no interior padding")
    for axis, (before, after) in enumerate(pairs):
        x = _border(x, axis, before, after, mode)
    return x
