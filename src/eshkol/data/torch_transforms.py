"""Transforms of images under the names that torchvision has for them.

Comes in: an image, channels × height × width, or height × width × channels of bytes for `ToTensor`. Goes out: another
one. `transforms.py` has the rest, and finds these by name, so that `from eshkol.data import transforms as T` has all.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from eshkol.data.transform import Transform
from eshkol.errors import DataError, ShapeError


class ToTensor(Transform):
    """An image of bytes, height × width (× channels), as channels × height × width of floats from 0 to 1.

    Floats keep their values. A NumPy array gives an array: loaders make tensors of batches.
    """

    def apply(self, batch: Any, keys: Any) -> Any:
        if batch.ndim not in (3, 4):
            raise ShapeError(f"ToTensor takes height × width (× channels), not shape {list(batch.shape[1:])}")
        images = batch[..., None] if batch.ndim == 3 else batch
        turned = np.ascontiguousarray(np.moveaxis(images, -1, 1))
        return turned.astype(np.float32) / np.float32(255) if turned.dtype == np.uint8 else turned.astype(np.float32)


class Lambda(Transform):
    """A function of one sample, an array, as a transform."""

    def __init__(self, lambd: Callable[[Any], Any]) -> None:
        if not callable(lambd):
            raise DataError(f"Lambda takes a function, not a {type(lambd).__name__}")
        self.lambd = lambd

    @property
    def ours(self) -> bool:
        return False

    def apply(self, batch: Any, keys: Any) -> Any:
        return np.stack([np.asarray(self.lambd(sample)) for sample in batch])


class Resize(Transform):
    """Images of another height and width, by triangles over what each new pixel covers: linear, without aliasing.

    One number is the length of the shorter side; the other follows.
    """

    def __init__(self, size: int | Sequence[int]) -> None:
        self.size = size

    def _wanted(self, height: int, width: int) -> tuple[int, int]:
        if not isinstance(self.size, int):
            rows, columns = self.size
            return rows, columns
        if height <= width:
            return self.size, int(self.size * width / height)
        return int(self.size * height / width), self.size

    def apply(self, batch: Any, keys: Any) -> Any:
        height, width = self._images(batch)
        rows, columns = self._wanted(height, width)
        floats = batch.astype(np.float32)
        resized = _weights(height, rows) @ floats @ _weights(width, columns).T
        if batch.dtype.kind in "iu":
            resized = np.rint(resized)
        return resized.astype(batch.dtype if batch.dtype.kind in "iuf" else np.float32)


def _weights(length: int, wanted: int) -> Any:
    """How much each of `length` elements counts for each of `wanted`: rows of the result sum to 1."""
    scale = length / wanted
    centers = (np.arange(wanted) + 0.5) * scale - 0.5
    reach = max(scale, 1.0)
    found = np.maximum(0.0, 1 - np.abs(np.arange(length) - centers[:, None]) / reach)
    return (found / found.sum(1, keepdims=True)).astype(np.float32)
