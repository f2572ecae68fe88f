"""Samples and batches as structures: tuples, lists, dicts and named tuples around arrays, numbers and text.

`collate` makes a batch of samples: what stands at the same place in all of them becomes one array, along a new first
axis; text becomes a list. It is the default of `DataLoader(collate=…)`; `Padded` is another, for rows of different
lengths. Tensors are taken as arrays; a loader gives batches as tensors in the end (`as_tensors`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from eshkol.errors import DataError
from eshkol.support import defaults

PLAIN = (bool, int, float, complex)


def dtype_of(kind: type) -> Any:
    """The dtype of plain numbers of a kind, as ek.tensor has it."""
    if kind in (bool, int):
        return np.bool_ if kind is bool else np.int64
    floats = defaults.floats()
    if kind is complex:
        return np.complex128 if floats == "float64" else np.complex64
    if floats == "bfloat16":  # which NumPy does not know by itself
        from ml_dtypes import bfloat16

        return bfloat16
    return np.dtype(floats)


def rebuilt(like: Any, parts: Sequence[Any]) -> Any:
    """A tuple, list or named tuple of the kind of `like`."""
    return type(like)(*parts) if hasattr(like, "_fields") else type(like)(parts)


def mapped(function: Callable[..., Any], first: Any, *others: Any) -> Any:
    """The structure with the function of what stands at each place, in all of the structures."""
    if type(first) is np.ndarray:  # as most are: to ask whether it is a mapping takes longer
        return function(first, *others)
    if isinstance(first, Mapping):
        return {key: mapped(function, first[key], *(other[key] for other in others)) for key in first}
    if isinstance(first, tuple):
        return rebuilt(first, [mapped(function, *parts) for parts in zip(first, *others, strict=True)])
    return function(first, *others)


def array_of(value: Any) -> Any:
    """A tensor or a number as an array; anything else as it is."""
    if isinstance(value, np.ndarray):
        return value
    if type(value) in PLAIN:
        return np.asarray(value, dtype_of(type(value)) if type(value) is not int or abs(value) < 1 << 63 else None)
    if isinstance(value, np.generic):
        return np.asarray(value)
    if hasattr(value, "_node") and hasattr(value, "numpy"):  # a tensor, whose module is heavy and need not be here
        return value.numpy()
    return value


def is_text(column: Any) -> bool:
    """Whether a column holds text."""
    return bool(column.dtype.kind in "OUS")


def told_rows(rows: Any) -> str:
    """What a row of an array is, in words: `float32[1, 8, 8]`, `int64`, `text`."""
    extents = f"[{', '.join(map(str, rows.shape[1:]))}]" if rows.ndim > 1 else ""
    return f"{'text' if is_text(rows) else rows.dtype}{extents}"


def told_count(number: int, word: str, many: str) -> str:
    """`1 batch`, `2 batches`."""
    return f"{number} {word if number == 1 else many}"


def collate(samples: Sequence[Any]) -> Any:
    """A batch of samples.

    >>> ek.data.collate([(1.0, "a"), (2.0, "b")])
    (array([1., 2.], dtype=float32), ['a', 'b'])
    """
    return _joined(samples, "", _stacked)


class Padded:
    """A way to collate in which arrays of different lengths are filled up with `value` behind: `collate=Padded(0)`."""

    def __init__(self, value: float = 0) -> None:
        self.value = value

    def __call__(self, samples: Sequence[Any]) -> Any:
        return _joined(samples, "", self._stacked)

    def _stacked(self, arrays: list[Any], place: str) -> Any:
        if len({a.ndim for a in arrays}) > 1:
            return _stacked(arrays, place)  # an error
        shape = tuple(max(sizes) for sizes in zip(*(a.shape for a in arrays), strict=True))
        made = np.full((len(arrays), *shape), self.value, np.result_type(*arrays))
        for k, a in enumerate(arrays):
            made[k, ...][tuple(slice(n) for n in a.shape)] = a
        return made


def _stacked(arrays: list[Any], place: str) -> Any:
    first = arrays[0]
    for number, other in enumerate(arrays):
        if other.shape != first.shape:
            raise DataError(
                f"samples of one batch have different shapes{place}: {list(first.shape)} (the first) and "
                f"{list(other.shape)} (number {number})",
                hint="bring them to one shape, give collate=ek.data.Padded(0), or take batch_size=1",
            )
    return np.stack(arrays)


def _joined(samples: Sequence[Any], place: str, stack: Callable[[list[Any], str], Any]) -> Any:
    first = samples[0]
    if isinstance(first, Mapping):
        for number, other in enumerate(samples):
            if not isinstance(other, Mapping) or other.keys() != first.keys():
                shown = sorted(map(str, other)) if isinstance(other, Mapping) else type(other).__name__
                raise DataError(
                    f"samples of one batch have different keys{place}: {sorted(map(str, first))} (the first) and "
                    f"{shown} (number {number})"
                )
        return {key: _joined([s[key] for s in samples], _below(place, key), stack) for key in first}
    if isinstance(first, tuple | list):
        for number, other in enumerate(samples):
            if not isinstance(other, tuple | list) or len(other) != len(first):
                shown = f"{len(other)}" if isinstance(other, tuple | list) else type(other).__name__
                raise DataError(
                    f"samples of one batch have different numbers of parts{place}: {len(first)} (the first) and {shown}"
                    f" (number {number})",
                    hint="lists are structures here; give numbers of different count as NumPy arrays with "
                    "collate=ek.data.Padded(0)" if isinstance(first, list) else None,
                )  # fmt: skip
        parts = [_joined([s[k] for s in samples], _below(place, k), stack) for k in range(len(first))]
        return tuple(parts) if isinstance(first, list) else rebuilt(first, parts)
    arrays = [array_of(s) for s in samples]
    if all(isinstance(a, np.ndarray) and a.dtype.kind != "O" for a in arrays):
        return stack(arrays, place)
    return list(samples)  # text, None, anything


def _below(place: str, key: Any) -> str:
    return f"{place}[{key!r}]" if place else f" at [{key!r}]"


def pinned(batch: Any) -> Any:
    """The structure with its arrays in memory that the GPU copies from by itself; as it is where there is no GPU."""
    from eshkol.tensors import devices

    machine = devices.copying_machine()

    def made(value: Any) -> Any:
        if not isinstance(value, np.ndarray) or value.dtype.hasobject:
            return value
        found = machine.pinned(value.shape, value.dtype) if machine is not None else None
        if found is None:
            return value
        np.copyto(found, value)
        return found

    return batch if machine is None else mapped(made, batch)


def as_tensors(batch: Any) -> Any:
    """The structure with tensors for arrays of numbers; text stays as it is. The arrays are not to be written to."""
    from eshkol.tensors.make import adopted

    def made(value: Any) -> Any:
        fits = isinstance(value, np.ndarray) and (value.dtype.kind in "biufc" or value.dtype.name == "bfloat16")
        return adopted(value) if fits else value

    return mapped(made, batch)
