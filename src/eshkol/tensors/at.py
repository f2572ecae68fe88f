"""`x.at[index].set(y)`: a tensor with some of its elements changed, as JAX writes it; x itself stays.

Comes in: a tensor, an index as of `x[index]`, values. Goes out: another tensor. Where an index of integers names a
place several times, `add` adds all, `min`, `max` and `multiply` combine all, and of `set` the last stays. Indices out
of range are errors, as everywhere; JAX's `mode`s, which drop or clip them, are refused.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from eshkol.errors import TensorError
from eshkol.graph.node import here
from eshkol.ops import TABLE
from eshkol.tensors.value import Tensor, as_node, indices, operate

MODES = (None, "promise_in_bounds")


def _op(name: str, *args: Any, **given: Any) -> Tensor:
    made: Tensor = operate(TABLE[name], args, given)
    return made


def _may_repeat(index: Any) -> bool:
    """Whether an index can name one element twice: only arrays of integers do."""
    if isinstance(index, tuple):
        return any(map(_may_repeat, index))
    if isinstance(index, list | np.ndarray | Tensor):
        return not as_node(index).dtype.is_bool
    return False


class Indexed:
    """A tensor and an index: what `x.at[index]` is."""

    def __init__(self, x: Tensor, index: Any) -> None:
        self._x, self._index = x, index

    def get(self, **how: Any) -> Tensor:
        """The elements: x[index]."""
        _check(how)
        return self._x[self._index]

    def set(self, values: Any, **how: Any) -> Tensor:
        """x with these values there."""
        _check(how)
        return _op("setitem", self._x, index=indices(self._index), value=values)

    def add(self, values: Any, **how: Any) -> Tensor:
        """x with these values added there."""
        return self._combined(values, how, "add", lambda old: old + values)

    def subtract(self, values: Any, **how: Any) -> Tensor:
        """x with these values subtracted there."""
        return self._combined(_op("neg", values), how, "add", lambda old: old - values)

    def multiply(self, values: Any, **how: Any) -> Tensor:
        """x with the elements there multiplied."""
        return self._combined(values, how, "mul", lambda old: old * values)

    def divide(self, values: Any, **how: Any) -> Tensor:
        """x with the elements there divided."""
        return self._combined(_op("reciprocal", values), how, "mul", lambda old: old / values)

    def min(self, values: Any, **how: Any) -> Tensor:
        """x with the lesser of its elements and these values there."""
        return self._combined(values, how, "min", lambda old: _op("minimum", old, values))

    def max(self, values: Any, **how: Any) -> Tensor:
        """x with the greater of its elements and these values there."""
        return self._combined(values, how, "max", lambda old: _op("maximum", old, values))

    def power(self, values: Any, **how: Any) -> Tensor:
        """x with the elements there raised to a power."""
        return self.apply(lambda old: old**values, **how)

    def apply(self, function: Callable[[Tensor], Any], **how: Any) -> Tensor:
        """x with a function applied to the elements there, once for each."""
        _check(how)
        return self.set(function(self._x[self._index]))

    mul = multiply

    def _combined(self, values: Any, how: dict[str, Any], mode: str, once: Callable[[Tensor], Any]) -> Tensor:
        """Elements combined with values; place by place in a row where a place may come several times."""
        _check(how)
        x, index = self._x, self._index
        if not _may_repeat(index):
            return self.set(once(x[index]))
        places = _op("reshape", _op("iota", (x.size,)), x.shape)[index]
        updates = _op("cast", _op("expand", _tensor(values), places.shape), x.dtype)
        flat = _op("scatter", _op("reshape", x, (-1,)), _op("reshape", places, (-1,)), _op("reshape", updates, (-1,)),
                   mode=mode)  # fmt: skip
        return _op("reshape", flat, x.shape)


def _tensor(values: Any) -> Any:
    return values if isinstance(values, Tensor) else Tensor(as_node(values))


def _check(how: dict[str, Any]) -> None:
    """Refuse what would change the meaning; that indices are sorted or unique are promises that need no help."""
    mode = how.pop("mode", None)
    for promise in ("indices_are_sorted", "unique_indices", "wrap_negative_indices"):
        how.pop(promise, None)
    if mode not in MODES or how:
        what = f"mode={mode!r}" if mode not in MODES else ", ".join(how)
        raise TensorError(
            f"x.at[...] takes no {what}: an index out of range is an error here", span=here(),
            hint="bring indices into range first, as with ek.clamp",
        )  # fmt: skip


class At:
    """`x.at`, which waits for an index."""

    def __init__(self, x: Tensor) -> None:
        self._x = x

    def __getitem__(self, index: Any) -> Indexed:
        return Indexed(self._x, index)


def _at(x: Tensor) -> At:
    """The tensor with other elements somewhere: `x.at[0].set(5)`, `x.at[i].add(y)`; x itself stays."""
    return At(x)


def block_until_ready(x: Tensor) -> Tensor:
    """Compute it now; gives itself."""
    return x.realize()


def copy(x: Tensor) -> Tensor:
    """The same value under another handle."""
    return x.clone()


for _name, _thing in {"at": property(_at), "block_until_ready": block_until_ready, "copy": copy}.items():
    if not hasattr(Tensor, _name):
        setattr(Tensor, _name, _thing)
