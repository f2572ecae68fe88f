"""What a step of training is told besides its batch, where that stands in the memory of another machine than the host.

Rates and other numbers of the optimizer are copied there when they are new; the count of steps and that of keys are
computed there by the step before. So a step transfers its batch in and its loss out, and beside that only a rate that
is another than before.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from eshkol.tensors import api as ek
from eshkol.tensors import keys
from eshkol.tensors.draws import fold_in
from eshkol.tensors.make import adopted
from eshkol.tensors.scalars import Scalar
from eshkol.tensors.value import Tensor


class Standing:
    """Numbers in a machine's memory, each under the value that it is known to have: those of the last two steps."""

    def __init__(self) -> None:
        self._device: str | None = None
        self._now: dict[Any, Tensor] = {}
        self._before: dict[Any, Tensor] = {}
        self._keys = 0  # the number of the key that was asked for last

    def begin(self, device: str) -> None:
        """What no step has asked for since the one before the last is let go."""
        if device != self._device:
            self._device, self._now = device, {}
        self._before, self._now = self._now, {}

    def _held(self, key: Any, array: Any) -> Tensor:
        found = self._now.get(key)
        if found is None:
            found = self._now[key] = self._before[key] if key in self._before else adopted(array, self._device)
        return found

    def numbers(self, given: Any) -> Any:
        """A structure with its floats as numbers that stand there; counts of parameters and switches stay."""
        return ek.tree_map(lambda x: self._number(x) if type(x) is float else x, given)

    def _number(self, value: float) -> Scalar:
        return Scalar(self._held((float, np.float64(value).tobytes()), np.array(value))._node)

    def key(self) -> tuple[Tensor, Tensor]:
        """What the next key of everybody's generator is made of: its root, and which it is; see `made_key`."""
        root, number = keys.default.next_place()
        self._keys = number
        return self._held(("root", root.tobytes()), root), self._held((int, number), np.array(number, np.int64))

    def counted(self, counts: Any, following: Any, number: Tensor) -> None:
        """Note what a step has computed of its counts and of the number of its key (`one_more`)."""
        for value, computed in zip(ek.tree_leaves(counts), ek.tree_leaves(following), strict=True):
            self._now[float, np.float64(value + 1).tobytes()] = computed
        self._now[int, self._keys + 1] = number


def made_key(given: Any) -> Tensor:
    """The key of a step: as it is, or of a root and a number."""
    return given if isinstance(given, Tensor) else fold_in(*given)


def one_more(given: Any) -> Any:
    """Counts and the number of a key, each and one more, in the dtype that they have."""
    return ek.tree_map(lambda x: Tensor(x._node) + 1, given)
