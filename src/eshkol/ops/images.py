"""Images: resizing, sampling at given points, moving pixels between channels and space, and patches as columns.

Resizing works axis by axis: each new element is a few old ones with weights, both known from the sizes alone.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from fractions import Fraction
from functools import reduce
from typing import Any

import numpy as np

from eshkol.errors import DTypeError, ShapeError
from eshkol.ops import dtypes, shapes
from eshkol.ops.adaptive_pooling import adaptive_mean
from eshkol.ops.correlation import Geometry, Numbers, each
from eshkol.ops.creation import full
from eshkol.ops.elementwise import cast, floor, logical_and, round_, where
from eshkol.ops.indexing import scatter_into, take
from eshkol.ops.joining import unstack
from eshkol.ops.movement import permute, reshape
from eshkol.ops.pooling import Windows
from eshkol.ops.reductions import narrow, wide, wide_array
from eshkol.ops.row import Draw, HasAval, Shape, Value, composite, sample

GROUP = "images"
_CUBIC = -0.75  # the slope that PyTorch's kernel has
_MODES = {
    "nearest": 0,
    "nearest-exact": 0,
    "linear": 1,
    "bilinear": 2,
    "trilinear": 3,
    "bicubic": 2,
    "area": 0,
}  # how many axes

# --- resizing -------------------------------------------------------------------------------------


def _new_space(x: HasAval, size: Any, scale_factor: Any, mode: str) -> tuple[Shape, list[float | Fraction]]:
    """The extents wanted, and by how much each axis grows: exactly, where it is a ratio of extents."""
    count = len(x.shape) - 2
    if mode not in _MODES:
        raise ShapeError(f"there is no mode '{mode}'", hint=f"modes: {', '.join(_MODES)}")
    if count < 1 or _MODES[mode] not in (0, count):
        wanted = _MODES[mode] or "one or more"
        raise ShapeError(
            f"mode '{mode}' is for {wanted} axes behind batch and channels, not for shape {list(x.shape)}",
            hint="linear, bilinear and trilinear are for one, two and three axes",
        )
    if 0 in x.shape[2:]:
        raise ShapeError(f"the axes to resize are empty in shape {list(x.shape)}")
    if (size is None) == (scale_factor is None):
        raise ShapeError("give the size or the scale factor, one of them")
    if size is not None:
        found = each(size, count, "size")
        return found, [Fraction(n, m) for n, m in zip(found, x.shape[2:], strict=True)]
    factors = [scale_factor] * count if isinstance(scale_factor, int | float) else list(scale_factor)
    if len(factors) != count or not all(isinstance(f, int | float) and 0 < f < math.inf for f in factors):
        raise ShapeError(f"the scale factor {scale_factor!r} is not a positive number, nor {count} of them")
    scaled = [math.floor(n * f) for n, f in zip(x.shape[2:], factors, strict=True)]
    return each(scaled, count, "size"), [float(f) for f in factors]


def _nearest(extent: int, new: int, scale: float | Fraction, mode: str) -> list[int]:
    """The old element that each new one is; a place between two is exact, or a rounding would take the one before."""
    halves = (2 * i + (mode == "nearest-exact") for i in range(new))
    return [min(math.floor(Fraction(half, 2) / scale), extent - 1) for half in halves]


def _sources(extent: int, new: int, scale: float | Fraction, mode: str, align_corners: bool) -> tuple[Any, Any]:
    """Which old elements each new one is made of, and with which weights; both are new × how many."""
    if _MODES[mode] == 0:
        return np.array(_nearest(extent, new, scale, mode), np.int64)[:, None], None
    at = np.arange(new)
    place = at * ((extent - 1) / max(new - 1, 1)) if align_corners else (at + 0.5) / float(scale) - 0.5
    if mode != "bicubic":
        place = np.maximum(place, 0)
        first = np.minimum(np.floor(place), extent - 1)
        part = place - first
        places = first[:, None] + np.arange(2)
        return np.clip(places, 0, extent - 1).astype(np.int64), np.stack([1 - part, part], 1)
    first = np.floor(place)
    distance = np.abs((place - first)[:, None] - np.arange(-1, 3))
    near = ((_CUBIC + 2) * distance - (_CUBIC + 3)) * distance**2 + 1
    far = _CUBIC * (((distance - 5) * distance + 8) * distance - 4)
    places = first[:, None] + np.arange(-1, 3)
    return np.clip(places, 0, extent - 1).astype(np.int64), np.where(distance <= 1, near, far)


def _by_matrices(
    x: Any, size: Any = None, scale_factor: Any = None, mode: str = "nearest", align_corners: bool = False
) -> Any:
    """Each axis by a matrix of weights."""
    found = wide_array(x)
    wanted, scales = _new_space(x, size, scale_factor, mode)
    for n, (new, scale) in enumerate(zip(wanted, scales, strict=True)):
        extent = x.shape[2 + n]
        matrix = np.zeros((new, extent))
        for i in range(new):
            if mode == "area":
                first, last = i * extent // new, -(-(i + 1) * extent // new)
                matrix[i, first:last] = 1 / (last - first)
                continue
            if _MODES[mode] == 0:
                matrix[i, _nearest(extent, new, scale, mode)[i]] = 1
                continue
            at = i * (extent - 1) / max(new - 1, 1) if align_corners else (i + 0.5) / float(scale) - 0.5
            if mode == "bicubic":
                for k in range(math.floor(at) - 1, math.floor(at) + 3):
                    matrix[i, min(max(k, 0), extent - 1)] += _cubic(abs(at - k))
            else:
                at = max(at, 0)
                for k in range(extent):
                    matrix[i, k] = max(0, 1 - abs(min(at, extent - 1) - k))
        found = np.moveaxis(np.tensordot(matrix, found, (1, 2 + n)), 0, 2 + n)
    return found.astype(wide_array(x).dtype)


def _cubic(d: float) -> float:
    if d <= 1:
        return (_CUBIC + 2) * d**3 - (_CUBIC + 3) * d**2 + 1
    return _CUBIC * (d**3 - 5 * d**2 + 8 * d - 4)


@composite(
    group=GROUP, reference=_by_matrices, method=False,
    samples=(
        sample((1, 2, 3), size=5), sample((1, 1, 4, 3), size=(2, 5), mode="bilinear"),
        sample((1, 1, 3, 2), scale_factor=2, mode="bilinear", align_corners=True),
        sample((2, 1, 3, 4), scale_factor=(1.5, 2.0), mode="nearest-exact"),
        sample((1, 1, 3, 4), size=(5, 3), mode="bicubic"), sample((1, 2, 4), size=3, mode="linear"),
        sample((0, 1, 2), size=3), sample((1, 2, 4, 5), size=(2, 3), mode="area"),
    ),
)  # fmt: skip
def interpolate(
    x: Value, size: Numbers | None = None, scale_factor: float | Sequence[float] | None = None, mode: str = "nearest",
    align_corners: bool = False,
) -> Any:  # fmt: skip
    """x (batch × channels × space) in another size, or scaled; mode nearest, nearest-exact, bilinear, bicubic, area ….

    Elements are areas, whose outer edges are kept; with `align_corners` they are points, of which the outermost are.
    """
    wanted, scales = _new_space(x, size, scale_factor, mode)
    if mode == "area" and x.dtype.differentiable:
        return adaptive_mean(len(wanted), x, wanted)
    if (_MODES[mode] or mode == "area") and not x.dtype.differentiable:
        raise DTypeError(f"mode '{mode}' would round numbers of {x.dtype}", hint="cast to a float, or use nearest")
    found = wide(x) if _MODES[mode] else x
    for axis, (new, scale) in enumerate(zip(wanted, scales, strict=True), 2):
        places, weights = _sources(x.shape[axis], new, scale, mode, align_corners)
        if weights is None:
            found = take(found, x.literal(places[:, 0]), axis)
            continue
        shape = (-1, *(1,) * (x.ndim - axis - 1))
        factors = weights.astype(found.dtype.numpy)
        # The few elements that one is made of are taken each by itself: in a row of two, nothing is done side by side.
        parts = [
            take(found, x.literal(places[:, k]), axis) * found.literal(factors[:, k].reshape(shape))
            for k in range(places.shape[1])
        ]
        found = reduce(operator.add, parts)
    return narrow(found, x.dtype) if _MODES[mode] else found


# --- sampling at points ---------------------------------------------------------------------------


def _sampled(
    x: Any, grid: Any, mode: str = "bilinear", padding_mode: str = "zeros", align_corners: bool = False
) -> Any:
    x, grid = wide_array(x), wide_array(grid)
    height, width = x.shape[2:]
    result = np.zeros((*x.shape[:2], *grid.shape[1:3]), x.dtype)
    for n, i, j in np.ndindex(*grid.shape[:3]):
        at = []
        for extent, g in ((height, grid[n, i, j, 1]), (width, grid[n, i, j, 0])):
            place = (g + 1) / 2 * (extent - 1) if align_corners else ((g + 1) * extent - 1) / 2
            at.append(np.clip(place, 0, extent - 1) if padding_mode == "border" else place)
        for p, q in np.ndindex(height, width):
            if mode == "nearest":
                share = float(np.round(at[0]) == p and np.round(at[1]) == q)
            else:
                share = max(0, 1 - abs(at[0] - p)) * max(0, 1 - abs(at[1] - q))
            result[n, :, i, j] += share * x[n, :, p, q]
    return result


def _point(coordinate: Any, extent: int, align_corners: bool, padding_mode: str) -> Any:
    """From -1 … 1 to a place along an axis, kept near enough to it to be an integer."""
    place = (coordinate + 1) * ((extent - 1) / 2) if align_corners else ((coordinate + 1) * extent - 1) / 2
    low, high = (0, extent - 1) if padding_mode == "border" else (-2, extent + 1)
    return where(place > low, where(place < high, place, high), low)


_grid = Draw((1, 2, 3, 2), -1.1, 1.1, kind="float")


@composite(
    group=GROUP, reference=_sampled, method=False,
    samples=(
        sample((1, 2, 3, 4), _grid), sample((1, 1, 4, 3), _grid, align_corners=True, padding_mode="border"),
        sample((1, 1, 3, 3), _grid, mode="nearest"),
    ),
)  # fmt: skip
def grid_sample(
    x: Value, grid: Value, mode: str = "bilinear", padding_mode: str = "zeros", align_corners: bool = False
) -> Any:
    """x (batch × channels × height × width) at points (x, y) from -1 to 1, given as batch × height × width × 2.

    Outside of x are zeros, or with padding_mode "border" the nearest element of it; mode is bilinear or nearest.
    """
    if x.ndim != 4 or grid.ndim != 4 or grid.shape[0] != x.shape[0] or grid.shape[-1] != 2 or 0 in x.shape[2:]:
        raise ShapeError(
            f"shapes {list(x.shape)} and {list(grid.shape)} are no images and points in them",
            hint="x is batch × channels × height × width, grid batch × height × width × 2",
        )
    if mode not in ("bilinear", "nearest") or padding_mode not in ("zeros", "border"):
        raise ShapeError(
            f"there is no mode '{mode}' with padding '{padding_mode}'",
            hint="mode: bilinear, nearest; padding_mode: zeros, border",
        )
    height, width = x.shape[2:]
    points = zip(unstack(wide(grid), -1), (width, height), strict=True)
    column, row = (_point(c, n, align_corners, padding_mode) for c, n in points)
    planes = reshape(wide(x), (*x.shape[:2], height * width))

    def at(p: Any, q: Any) -> Any:
        """The elements at whole places, zero outside."""
        inside = logical_and(logical_and(p >= 0, p < height), logical_and(q >= 0, q < width))
        down, across = (cast(where(inside, n, 0), dtypes.int64) for n in (p, q))
        flat = down * width + across
        return where(reshape(inside, (p.shape[0], 1, *p.shape[1:])), take(planes, flat, 2, 1), 0)

    if mode == "nearest":
        return narrow(at(round_(row), round_(column)), x.dtype)
    top, left = floor(row), floor(column)
    total: Any = None
    for p, vertical in ((top, top + 1 - row), (top + 1, row - top)):
        for q, horizontal in ((left, left + 1 - column), (left + 1, column - left)):
            share = vertical * horizontal
            term = at(p, q) * reshape(share, (share.shape[0], 1, *share.shape[1:]))
            total = term if total is None else total + term
    return narrow(total, x.dtype)


# --- pixels between channels and space ------------------------------------------------------------


def _factor(given: Any) -> int:
    if isinstance(given, bool) or not isinstance(given, int) or given < 1:
        raise ShapeError(f"the factor must be a positive integer, not {given!r}")
    return given


def _shuffled(x: Any, upscale_factor: int) -> Any:
    r = upscale_factor
    *lead, channels, height, width = x.shape
    result = np.zeros((*lead, channels // r**2, height * r, width * r), x.dtype)
    for c, i, j in np.ndindex(channels, r, r):
        if c // r**2 * r**2 + i * r + j == c:
            result[..., c // r**2, i::r, j::r] = x[..., c, :, :]
    return result


@composite(
    group=GROUP, reference=_shuffled, method=False, dtypes=("int", "float"),
    samples=(sample((1, 4, 2, 3), upscale_factor=2), sample((9, 1, 2), upscale_factor=3)),
)  # fmt: skip
def pixel_shuffle(x: Value, upscale_factor: int) -> Any:
    """Channels as finer pixels: … × C·r² × H × W becomes … × C × H·r × W·r."""
    r = _factor(upscale_factor)
    if x.ndim < 3 or x.shape[-3] % (r * r):
        raise ShapeError(f"the channels of shape {list(x.shape)} are not a multiple of {r * r}")
    *lead, channels, height, width = x.shape
    parted = reshape(x, (*lead, channels // (r * r), r, r, height, width))
    n = len(lead)
    order = (*range(n + 1), n + 3, n + 1, n + 4, n + 2)
    return reshape(permute(parted, order), (*lead, channels // (r * r), height * r, width * r))


def _unshuffled(x: Any, downscale_factor: int) -> Any:
    r = downscale_factor
    parts = [x[..., i::r, j::r] for i in range(r) for j in range(r)]
    *lead, channels, height, width = x.shape
    return np.stack(parts, -3).reshape(*lead, channels * r**2, height // r, width // r)


@composite(
    group=GROUP, reference=_unshuffled, method=False, dtypes=("int", "float"),
    samples=(sample((1, 1, 4, 6), downscale_factor=2), sample((2, 3, 3), downscale_factor=3)),
)  # fmt: skip
def pixel_unshuffle(x: Value, downscale_factor: int) -> Any:
    """Pixels as channels, the inverse of pixel_shuffle: … × C × H·r × W·r becomes … × C·r² × H × W."""
    r = _factor(downscale_factor)
    if x.ndim < 3 or x.shape[-2] % r or x.shape[-1] % r:
        raise ShapeError(f"height and width of shape {list(x.shape)} are not multiples of {r}")
    *lead, channels, height, width = x.shape
    parted = reshape(x, (*lead, channels, height // r, r, width // r, r))
    n = len(lead)
    order = (*range(n + 1), n + 2, n + 4, n + 1, n + 3)
    return reshape(permute(parted, order), (*lead, channels * r * r, height // r, width // r))


# --- patches as columns ---------------------------------------------------------------------------


def _patches(space: Shape, kernel: Any, dilation: Any, padding: Any, stride: Any) -> tuple[Any, Any, Shape]:
    """The flat place of each element of each patch (kernel × patches), whether it is inside, and the kernel."""
    sizes, gaps, steps = each(kernel, 2, "kernel"), each(dilation, 2, "dilation"), each(stride, 2, "stride")
    before = each(padding, 2, "padding", 0)
    counts = Geometry(steps, tuple((n, n) for n in before), gaps, (1, 1)).outputs(space, sizes)
    if 0 in (*counts, *space):
        raise ShapeError(f"a patch of {list(sizes)} does not fit {list(space)} elements with padding {list(before)}")
    a = Windows(sizes, steps, before, gaps, counts)
    down, across = a.places(0).T[:, None, :, None], a.places(1).T[None, :, None, :]
    inside = (down >= 0) & (down < space[0]) & (across >= 0) & (across < space[1])
    flat = np.where(inside, down * space[1] + across, 0)
    return flat.reshape(shapes.count(sizes), -1), inside.reshape(shapes.count(sizes), -1), sizes


def _columns(x: Any, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1) -> Any:
    (kh, kw), (dh, dw), (ph, pw), (sh, sw) = (each(n, 2, "", 0) for n in (kernel_size, dilation, padding, stride))
    image = np.pad(x, (*((0, 0),) * (x.ndim - 2), (ph, ph), (pw, pw)))
    rows = range(0, image.shape[-2] - dh * (kh - 1), sh)
    columns = range(0, image.shape[-1] - dw * (kw - 1), sw)
    parts = [image[..., i : i + dh * (kh - 1) + 1 : dh, j : j + dw * (kw - 1) + 1 : dw] for i in rows for j in columns]
    return np.stack([p.reshape(*x.shape[:-3], -1) for p in parts], -1)


@composite(
    group=GROUP, reference=_columns, method=False, aliases=("im2col",), dtypes=("int", "float"),
    scheme=("tensor-im2col",),
    samples=(
        sample((1, 2, 3, 4), kernel_size=2),
        sample((2, 5, 4), kernel_size=(2, 3), dilation=(2, 1), padding=1, stride=2),
    ),
)  # fmt: skip
def unfold(x: Value, kernel_size: Numbers, dilation: Numbers = 1, padding: Numbers = 0, stride: Numbers = 1) -> Any:
    """The patches of (batch ×) channels × height × width as columns: (batch ×) channels·kernel × patches."""
    if x.ndim not in (3, 4):
        raise ShapeError(f"shape {list(x.shape)} is not (batch ×) channels × height × width")
    flat, inside, _ = _patches(x.shape[-2:], kernel_size, dilation, padding, stride)
    planes = reshape(x, (*x.shape[:-2], x.shape[-2] * x.shape[-1]))
    found = where(x.literal(inside), take(planes, x.literal(flat), -1), 0)
    return reshape(found, (*x.shape[:-3], x.shape[-3] * flat.shape[0], flat.shape[1]))


def _folded(x: Any, output_size: Any, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1) -> Any:
    """Each column added where unfold would have read it."""
    kernel = shapes.count(each(kernel_size, 2, "kernel"))
    numbers = np.arange(1, shapes.count(tuple(output_size)) + 1).reshape(1, *output_size)
    read = _columns(numbers, kernel_size, dilation, padding, stride)  # 0: the padding
    channels = x.shape[-2] // kernel
    result = np.zeros((*x.shape[:-2], channels, numbers.size + 1), wide_array(x).dtype)
    parted = wide_array(x).reshape(*x.shape[:-2], channels, kernel, -1)
    for k, patch in np.ndindex(*read.shape):
        result[..., read[k, patch]] += parted[..., k, patch]
    return result[..., 1:].reshape(*x.shape[:-2], channels, *output_size)


@composite(
    group=GROUP, reference=_folded, method=False, aliases=("col2im",), scheme=("tensor-col2im",),
    samples=(
        sample((1, 8, 6), output_size=(3, 4), kernel_size=2),
        sample((12, 6), output_size=(5, 4), kernel_size=(2, 3), dilation=(2, 1), padding=1, stride=2),
    ),
)  # fmt: skip
def fold(
    x: Value, output_size: Sequence[int], kernel_size: Numbers, dilation: Numbers = 1, padding: Numbers = 0,
    stride: Numbers = 1,
) -> Any:  # fmt: skip
    """Columns added together where unfold takes them from: its transpose, not its inverse, where patches overlap."""
    height, width = each(output_size, 2, "output size")
    flat, inside, kernel = _patches((height, width), kernel_size, dilation, padding, stride)
    size = shapes.count(kernel)
    if x.ndim not in (2, 3) or x.shape[-2] % size or x.shape[-1] != flat.shape[1]:
        raise ShapeError(
            f"shape {list(x.shape)} is not (batch ×) channels·{size} × {flat.shape[1]}, "
            f"the columns of an image of {[height, width]}"
        )
    lead = (*x.shape[:-2], x.shape[-2] // size)
    parted = where(x.literal(inside), reshape(x, (*lead, *flat.shape)), 0)
    result = scatter_into(full(x, (*lead, height * width), 0), x.literal(flat), parted, len(lead), True)
    return reshape(result, (*lead, height, width))
