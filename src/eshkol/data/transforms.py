"""Transforms of samples: normalizing, one-hot codes, random crops, flips and rotations, and chains of them.

What a transform is, transform.py says. Images are channels × height × width, or anything whose last two axes are height
and width.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided

from eshkol.data.draws import fold, integers, uniform
from eshkol.data.loader import DataLoader
from eshkol.data.structure import array_of
from eshkol.data.torch_transforms import Lambda as Lambda
from eshkol.data.torch_transforms import Resize as Resize
from eshkol.data.torch_transforms import ToTensor as ToTensor
from eshkol.data.transform import Transform, in_order
from eshkol.errors import DataError, IndexOutOfRange, ShapeError

_MARGIN = 2  # rows and columns around an image that is turned


def _floats(batch: Any) -> Any:
    """The dtype to compute in: that of floats, float32 for the rest."""
    return batch if batch.dtype.kind in "fc" else batch.astype(np.float32)


class Compose(Transform):
    """Transforms one after the other: `Compose(RandomCrop(28, padding=2), RandomFlip())`."""

    def __init__(self, *transforms: Any) -> None:
        given = transforms[0] if len(transforms) == 1 and isinstance(transforms[0], list | tuple) else transforms
        for t in given:
            if not isinstance(t, Transform):
                raise DataError(
                    f"Compose takes transforms, not a {type(t).__name__}", hint="map functions one by one: data.map(f)"
                )
        self.transforms: list[Transform] = list(given)
        self.draws = any(t.draws for t in self.transforms)
        self.moves = all(t.moves for t in self.transforms)
        self._order = in_order(self.transforms)

    @property
    def ours(self) -> bool:
        return super().ours and all(t.ours for t in self.transforms)

    def apply(self, batch: Any, keys: Any) -> Any:
        own = fold(keys, np.arange(len(self.transforms))[:, None]) if self.draws else None
        for number in self._order:
            t = self.transforms[number]
            batch = t.apply(batch, own[number] if own is not None and t.draws else None)
        return batch


class Scale(Transform):
    """Numbers times a factor, as float32: `Scale(1 / 255)` makes bytes of images numbers from 0 to 1."""

    def __init__(self, factor: float) -> None:
        self.factor = np.float32(factor)
        self.by_number = bool(0 < self.factor < np.inf)

    def apply(self, batch: Any, keys: Any) -> Any:
        found = batch.astype(np.float32)  # quicker than to convert while multiplying
        found *= self.factor
        return found


class Normalize(Transform):
    """(x - mean) / std: one number for all, or one for each channel (the first axis of a sample)."""

    def __init__(self, mean: Any, std: Any) -> None:
        self.mean, self.std = np.asarray(array_of(mean), np.float64), np.asarray(array_of(std), np.float64)
        if max(self.mean.ndim, self.std.ndim) > 1:
            raise ShapeError("Normalize takes numbers, or a list with one for each channel")
        if not (self.std > 0).all():
            raise DataError(f"Normalize: std must be greater than 0, not {self.std.min()}")

    def apply(self, batch: Any, keys: Any) -> Any:
        x = _floats(batch)
        return (x - self._along(self.mean, x)) * self._along(1 / self.std, x)

    def _along(self, values: Any, x: Any) -> Any:
        if values.ndim and (x.ndim < 2 or x.shape[1] != values.size):
            raise ShapeError(
                f"Normalize has {values.size} numbers for channels, and a sample has shape {list(x.shape[1:])}"
            )
        return values.astype(x.dtype).reshape(-1, *(1,) * (x.ndim - 2)) if values.ndim else values.astype(x.dtype)


class Standardize(Transform):
    """Mean 0 and deviation 1: of each sample by itself, or with `Standardize.of(data)` of every feature over the data.

    What does not vary becomes 0.
    """

    def __init__(self, mean: Any = None, std: Any = None) -> None:
        if (mean is None) != (std is None):
            raise DataError("Standardize takes mean and std together, or neither")
        self.mean = None if mean is None else np.asarray(array_of(mean), np.float64)
        self.std = None if std is None else np.asarray(array_of(std), np.float64)

    @classmethod
    def of(cls, data: Any, on: Any = 0, batch_size: int = 1024) -> Standardize:
        """The means and deviations of every feature over a data set, or over the rows of an array."""
        rows = array_of(data)
        if isinstance(rows, np.ndarray):
            batches: Any = (rows[k : k + batch_size] for k in range(0, len(rows), batch_size))
        else:
            batches = DataLoader(data, batch_size, numpy=True)
        count, mean, squares = 0, np.float64(0), np.float64(0)  # sums of squares around the mean (Chan et al.)
        for batch in batches:
            x = np.asarray(batch[on] if isinstance(batch, tuple | dict) else batch, np.float64)
            here = x.mean(axis=0)
            apart, total = here - mean, count + len(x)
            squares = squares + ((x - here) ** 2).sum(axis=0) + apart**2 * (count * len(x) / total)
            mean, count = mean + apart * (len(x) / total), total
        if not count:
            raise DataError("Standardize.of: the data set is empty")
        return cls(mean, np.sqrt(squares / count))

    def apply(self, batch: Any, keys: Any) -> Any:
        x = _floats(batch)
        if self.mean is None or self.std is None:
            axes = tuple(range(1, x.ndim))
            wide = x.astype(np.float64)
            mean, std = wide.mean(axis=axes, keepdims=True), wide.std(axis=axes, keepdims=True)
        else:
            mean, std = self.mean, self.std
            if mean.ndim and mean.shape != x.shape[1:]:
                raise ShapeError(f"Standardize knows features {list(mean.shape)}, a sample has {list(x.shape[1:])}")
        return ((x - mean) / np.where(std > 0, std, 1)).astype(x.dtype)


class OneHot(Transform):
    """A class number as a row of zeros with a one in its place."""

    def __init__(self, classes: int) -> None:
        if classes < 1:
            raise DataError(f"OneHot: a number of classes, not {classes}")
        self.classes = classes

    def apply(self, batch: Any, keys: Any) -> Any:
        if batch.dtype.kind not in "iub":
            raise DataError(f"OneHot takes class numbers, which are integers, not {batch.dtype}")
        if batch.size and not 0 <= batch.min() <= batch.max() < self.classes:
            wrong = batch[(batch < 0) | (batch >= self.classes)].flat[0]
            raise IndexOutOfRange(f"OneHot: class {wrong} is out of range: there are {self.classes}")
        return (batch[..., None] == np.arange(self.classes)).astype(np.float32)


class CenterCrop(Transform):
    """The middle of an image: `CenterCrop(24)`, `CenterCrop((24, 32))`."""

    moves = True

    def __init__(self, size: int | Sequence[int]) -> None:
        self.size = _pair(size, "CenterCrop")

    def apply(self, batch: Any, keys: Any) -> Any:
        height, width = self._images(batch)
        top, left = ((have - want) // 2 for have, want in zip((height, width), self.size, strict=True))
        if min(top, left) < 0:
            raise ShapeError(f"CenterCrop of {list(self.size)} from images of {[height, width]}")
        return batch[..., top : top + self.size[0], left : left + self.size[1]]


class RandomCrop(Transform):
    """A part of an image from a random place; `padding` adds so many rows and columns of `fill` around it before."""

    draws = True

    def __init__(self, size: int | Sequence[int], padding: int = 0, fill: float = 0) -> None:
        self.size, self.padding, self.fill = _pair(size, "RandomCrop"), padding, fill
        self.moves = padding == 0 or fill == 0
        if padding < 0:
            raise DataError(f"RandomCrop: padding is a number of rows, not {padding}")

    def apply(self, batch: Any, keys: Any) -> Any:
        height, width = self._images(batch)
        if self.padding:
            wider = [n + 2 * self.padding for n in (height, width)]
            around = np.full((*batch.shape[:-2], *wider), self.fill, batch.dtype)
            around[..., self.padding : -self.padding, self.padding : -self.padding] = batch
            batch = around
        rooms = [have + 2 * self.padding - want + 1 for have, want in zip((height, width), self.size, strict=True)]
        if min(rooms) < 1:
            raise ShapeError(
                f"RandomCrop of {list(self.size)} from images of {[height, width]} with padding {self.padding}"
            )
        tops, lefts = integers(keys, np.array(rooms)[:, None], np.arange(2)[:, None])
        strides = batch.strides
        windows = as_strided(batch, (*batch.shape[:-2], *rooms, *self.size), (*strides, *strides[-2:]), writeable=False)
        return windows[np.arange(len(batch)), ..., tops, lefts, :, :]  # of the parts at every place, one for each image


class RandomFlip(Transform):
    """An image, or with probability `p` its mirror image: left and right exchanged, or along another axis."""

    draws = moves = True

    def __init__(self, p: float = 0.5, axis: int = -1) -> None:
        if not 0 <= p <= 1:
            raise DataError(f"RandomFlip: p is a probability, not {p}")
        if axis >= 0:
            raise DataError(f"RandomFlip: axis counts from the end, -1 for the width and -2 for the height, not {axis}")
        self.p, self.axis = p, axis

    def apply(self, batch: Any, keys: Any) -> Any:
        if batch.ndim <= -self.axis:
            raise ShapeError(f"RandomFlip(axis={self.axis}): a sample has shape {list(batch.shape[1:])}")
        flipped = np.flatnonzero(uniform(keys) < self.p)
        found = batch.copy()
        found[flipped] = np.flip(batch[flipped], self.axis)
        return found


class RandomRotation(Transform):
    """An image turned about its middle by an angle from -degrees to degrees (or from a range), interpolated.

    What comes from outside the image is `fill`. Integers are rounded.
    """

    draws = True

    def __init__(self, degrees: float | Sequence[float], fill: float = 0) -> None:
        low, high = (-degrees, degrees) if isinstance(degrees, int | float) else degrees
        if not low <= high:
            raise DataError(f"RandomRotation: a range of degrees, not {degrees}")
        self.range, self.fill = (float(low), float(high)), float(fill)

    def apply(self, batch: Any, keys: Any) -> Any:
        height, width = self._images(batch)
        low, high = self.range
        return rotated(batch, low + (high - low) * uniform(keys), self.fill, height, width)


def rotated(batch: Any, degrees: Any, fill: float, height: int, width: int) -> Any:
    """Images turned counter-clockwise by an angle each, with bilinear interpolation."""
    angle = np.deg2rad(degrees)[:, None]
    cos, sin = np.cos(angle), np.sin(angle)
    y, x = np.arange(height) - (height - 1) / 2, np.arange(width) - (width - 1) / 2
    # where each pixel comes from; y points down
    from_x = (cos * x + (width - 1) / 2)[:, None, :] - (sin * y)[:, :, None]
    from_y = (cos * y + (height - 1) / 2)[:, :, None] + (sin * x)[:, None, :]
    left, top = np.floor(from_x), np.floor(from_y)
    flat = _floats(batch).reshape(len(batch), -1, height, width)
    right_share, lower_share = ((a - b).astype(flat.dtype)[:, None] for a, b in ((from_x, left), (from_y, top)))
    # Two rows and columns of fill on every side: whatever lies outside finds its four neighbours there.
    wide = width + 2 * _MARGIN
    around = np.full((*flat.shape[:2], height + 2 * _MARGIN, wide), fill, flat.dtype)
    around[..., _MARGIN:-_MARGIN, _MARGIN:-_MARGIN] = flat
    row = np.clip(top, -_MARGIN, height, out=top) + _MARGIN
    place = (row * wide + np.clip(left, -_MARGIN, width, out=left) + _MARGIN).astype(np.intp)
    images = np.arange(around.shape[0] * around.shape[1]).reshape(*around.shape[:2], 1, 1) * around[0, 0].size
    first, pixels = place[:, None] + images, around.reshape(-1)

    def across(start: Any) -> Any:
        here = pixels.take(start)
        return here + right_share * (pixels.take(start + 1) - here)

    upper = across(first)
    found = (upper + lower_share * (across(first + wide) - upper)).reshape(batch.shape)
    return found if batch.dtype.kind in "fc" else np.rint(found).astype(batch.dtype)


def _pair(size: int | Sequence[int], who: str) -> tuple[int, int]:
    height, width = (size, size) if isinstance(size, int) else size
    if height < 1 or width < 1:
        raise DataError(f"{who}: a height and a width, not {size}")
    return int(height), int(width)


class RandomHorizontalFlip(RandomFlip):
    """Left and right exchanged, with a probability."""

    def __init__(self, p: float = 0.5) -> None:
        super().__init__(p, -1)


class RandomVerticalFlip(RandomFlip):
    """Top and bottom exchanged, with a probability."""

    def __init__(self, p: float = 0.5) -> None:
        super().__init__(p, -2)


def __getattr__(name: str) -> Any:
    raise AttributeError(
        f"eshkol.data.transforms has no '{name}': write it as a subclass of Transform, or as a function for Lambda"
    )
