"""What a transform of samples is, and the order in which several are applied; those there are stand in transforms.py.

A transform is written for batches, `apply(batch, keys)`, in NumPy; one sample is a batch of one. Random ones draw with
a key for each sample, so that a sample comes out the same alone and in a batch, in any worker.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np

from eshkol.data.structure import array_of
from eshkol.errors import ShapeError

OWN = __name__.rpartition(".")[0] + "."  # modules of this package


class Transform(ABC):
    """A function of samples that can be applied to a whole batch."""

    draws: bool = False  # whether it draws random numbers
    moves: bool = False  # whether it only puts numbers to other places, and zeros where none come from
    by_number: bool = False  # whether it makes a number of each number by itself, and zero of zero

    @property
    def ours(self) -> bool:
        """Whether it is one of this package, and does nothing that another thread could notice."""
        return type(self).__module__.startswith(OWN)

    @abstractmethod
    def apply(self, batch: Any, keys: Any) -> Any:
        """The transformed batch, an array with samples along the first axis; keys are one for each sample, or None."""

    def __call__(self, x: Any, key: Any = None) -> Any:
        """The transformed sample: an array of an array, a tensor of a tensor. Without a key, `ek.seed` decides."""
        if self.draws and key is None:
            from eshkol.tensors import keys

            high, low = keys.next_key().tolist()
            key = np.uint64(high << 32 | low)
        plain = np.asarray(array_of(x))
        found = self.apply(plain[None], None if key is None else np.asarray(key, np.uint64).reshape(1))[0]
        if x is plain or not hasattr(x, "_node"):
            return found
        from eshkol.tensors.make import adopted

        return adopted(np.ascontiguousarray(found))

    def _images(self, batch: Any) -> tuple[int, int]:
        """Height and width of what must be a batch of images."""
        if batch.ndim < 3:
            raise ShapeError(
                f"{type(self).__name__} takes images, channels × height × width, and a sample has shape "
                f"{list(batch.shape[1:])}"
            )
        return int(batch.shape[-2]), int(batch.shape[-1])


def in_order(transforms: Sequence[Transform | None]) -> list[int]:
    """The order in which transforms are applied: what moves pixels comes before what makes floats of their bytes.

    The result is the same bit for bit, and bytes are moved in a quarter of the time. None stands for a function, of
    which nothing is known; nor is it of transforms that others wrote, whatever they derive from.
    """
    order: list[int] = []
    for k, t in enumerate(transforms):
        place = len(order)
        while place and t is not None and t.ours and t.moves and _by_number(transforms[order[place - 1]]):
            place -= 1
        order.insert(place, k)
    return order


def _by_number(t: Transform | None) -> bool:
    return t is not None and t.ours and t.by_number
