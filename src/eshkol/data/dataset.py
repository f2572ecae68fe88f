"""Data sets: something with a length, and a sample for each index. Streams, which have neither, are in streams.py.

Anything with `__len__` and `__getitem__` can be loaded from, a list of samples too. What derives from `Dataset` can do
more: `take` gives a whole batch at once where no Python need run for each sample, and samples may draw random numbers
that depend on the pass over the data (`sample(index, at)`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from mmap import mmap
from types import BuiltinFunctionType, FunctionType
from typing import Any

import numpy as np

from eshkol.data.draws import Pass, permutation, root, seed_of
from eshkol.data.structure import array_of, dtype_of, mapped, rebuilt, told_count, told_rows
from eshkol.data.transform import Transform, in_order
from eshkol.errors import DataError, IndexOutOfRange, ShapeError


def checked_index(index: Any, length: int) -> int:
    """An index as a number from 0 up to the length; negative ones count from the end."""
    try:
        plain = index.__index__()
    except AttributeError:
        raise DataError(f"an index of a data set is an integer, not {index!r}", hint="see Dataset.subset") from None
    if not -length <= plain < length:
        raise IndexOutOfRange(f"index {plain} is out of range: the data set has {length} samples")
    return int(plain) % length


class Dataset(ABC):
    """A data set: `len(data)`, `data[index]`."""

    counted = ("sample", "samples")  # the words for one and for many, in what is shown of it

    @abstractmethod
    def __len__(self) -> int:
        """How many samples there are."""

    @abstractmethod
    def __getitem__(self, index: int) -> Any:
        """The sample of an index: an array, or a tuple or dict of arrays, numbers, text."""

    def sample(self, index: int, at: Pass) -> Any:
        """The sample of an index in one pass over the data: where it draws, another one in each."""
        return self[index]

    def take(self, indices: Any, at: Pass) -> Any:
        """A batch of these samples, arrays along a first axis; None if samples must be put together one by one."""
        return None

    @property
    def draws(self) -> int:
        """How many times random numbers are drawn for a sample, one after another."""
        return 0

    @property
    def whole(self) -> bool:
        """Whether `take` gives batches, and all that runs for them is code of this library."""
        return False

    def told(self) -> str | None:
        """What a sample is, in words, as far as it is known without loading one."""
        return None

    def __repr__(self) -> str:
        """`<ArrayDataset of 1797 samples: float32[1, 8, 8], int64>`; nothing is loaded, and no code of users run."""
        count, what = known_length(self), told_of(self)
        many = f" of {told_count(count, *self.counted)}" if count is not None else ", a data set"
        return f"<{type(self).__name__}{many}{f': {what}' if what else ''}>"

    def __iter__(self) -> Iterator[Any]:
        return (self[k] for k in range(len(self)))

    def __add__(self, other: Any) -> ConcatDataset:
        return ConcatDataset([self, other])

    def map(self, function: Any, *, on: Any = None, random: bool = False, batched: bool = False) -> MappedDataset:
        """The data set with a transform or a function of each sample, or of the part of it that `on` names.

        >>> data.map(ek.data.RandomFlip(), on=0)
        """
        return MappedDataset(self, function, on=on, random=random, batched=batched)

    def subset(self, indices: Any) -> Subset:
        """Some of the samples: indices, a slice, or a mask."""
        return Subset(self, indices)


@cache
def _foremost(kind: type, *names: str) -> str:
    """Which of these methods the most derived class has written; the first of those that one class wrote."""
    return min(names, key=lambda name: next(k for k, base in enumerate(kind.__mro__) if name in vars(base)))


def _trusted(kind: type, name: str) -> bool:
    """Whether a method of a class is code of this library, of Python or of NumPy."""
    author = next((base for base in kind.__mro__ if name in vars(base)), None)
    return author is not None and author.__module__.partition(".")[0] in (
        __name__.partition(".")[0],
        "builtins",
        "numpy",
    )


def known_length(data: Any) -> int | None:
    """How many samples there are, or indices; None where only code of users can tell."""
    if not _trusted(type(data), "__len__"):
        return None
    return known_length(data.data) if isinstance(data, MappedDataset) else len(data)


def told_of(data: Any) -> str | None:
    """What a sample of whatever can be indexed is; None where samples are made by code of users."""
    ours = isinstance(data, Dataset) and _trusted(type(data), "__getitem__") and _trusted(type(data), "told")
    return data.told() if ours else None


def sample_of(data: Any, index: int, at: Pass) -> Any:
    """The sample of whatever can be indexed: of one that writes `__getitem__` anew, what that gives."""
    asked = isinstance(data, Dataset) and _foremost(type(data), "sample", "__getitem__") == "sample"
    return data.sample(index, at) if asked else data[index]


def taken(data: Any, indices: Any, at: Pass) -> Any:
    """The batch of whatever can be indexed; None where it has no batches, or where samples are written anew."""
    asked = isinstance(data, Dataset) and _foremost(type(data), "take", "sample", "__getitem__") == "take"
    return data.take(indices, at) if asked else None


def comes_whole(data: Any) -> bool:
    """Whether batches are taken at once by code of this library alone: then nothing notices which thread does it."""
    ours = type(data).__module__.partition(".")[0] == __name__.partition(".")[0]
    return ours and isinstance(data, Dataset) and data.whole


def draws_of(data: Any) -> int:
    """How many times random numbers are drawn for a sample."""
    return data.draws if isinstance(data, Dataset) else 0


class ArrayDataset(Dataset):
    """Arrays of equal length, a sample being a row of each: `ArrayDataset(x, y)`; with names, samples are dicts.

    One array alone gives rows, not tuples. Batches are taken by one indexing operation.
    """

    def __init__(self, *arrays: Any, **named: Any) -> None:
        if bool(arrays) == bool(named):
            raise DataError("ArrayDataset takes arrays, or arrays by name", hint="ArrayDataset(x, y)")
        self._single = len(arrays) == 1
        given = {key: _as_rows(a, key) for key, a in (named or {str(k): a for k, a in enumerate(arrays)}).items()}
        lengths = {key: len(a) for key, a in given.items()}
        if len(set(lengths.values())) > 1:
            shown = ", ".join(f"{key}: {n}" for key, n in lengths.items())
            raise ShapeError(f"ArrayDataset: arrays of different lengths ({shown})")
        self._length = next(iter(lengths.values()))
        self.arrays: dict[str, Any] | tuple[Any, ...] = given if named else tuple(given.values())

    def __len__(self) -> int:
        return self._length

    def __getitem__(self, index: int) -> Any:
        k = checked_index(index, self._length)
        row = mapped(lambda a: a[k], self.arrays)
        return row[0] if self._single else row

    def take(self, indices: Any, at: Pass) -> Any:
        rows = mapped(lambda a: np.take(a, indices, axis=0), self.arrays)
        return rows[0] if self._single else rows

    @property
    def whole(self) -> bool:
        return True

    def told(self) -> str:
        if isinstance(self.arrays, dict):
            return ", ".join(f"{key}: {told_rows(a)}" for key, a in self.arrays.items())
        return ", ".join(map(told_rows, self.arrays))

    def __getstate__(self) -> Any:
        return {**self.__dict__, "arrays": mapped(_mapping_of, self.arrays)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, arrays=mapped(_mapped_again, state["arrays"]))


class TensorDataset(ArrayDataset):
    """The same of tensors, by the name that PyTorch has for it."""


def _as_rows(value: Any, key: Any) -> Any:
    array = array_of(value)
    if not isinstance(array, np.ndarray):
        try:
            array = np.asarray(value)
        except ValueError:
            raise ShapeError(f"ArrayDataset: rows of array {key!r} have different lengths") from None
        if array.dtype == np.float64:
            array = array.astype(dtype_of(float))  # Python's floats, as ek.tensor takes them
    if array.ndim == 0:
        raise ShapeError(f"ArrayDataset: {key!r} is one number; it takes arrays with a row for each sample")
    return array


class _Mapping:
    """What a mapped file is for another process: the file, not what is in it."""

    def __init__(self, array: Any) -> None:
        self.file, self.type, self.shape, self.offset = str(array.filename), array.dtype, array.shape, array.offset
        self.order: Any = "C" if array.flags.c_contiguous else "F"

    def opened(self) -> Any:
        return np.memmap(self.file, self.type, "r", self.offset, self.shape, self.order)


def _mapping_of(array: Any) -> Any:
    """A whole mapping of a file as such; a part of one has the offset of the whole, and goes as data."""
    whole = isinstance(array, np.memmap) and array.filename is not None and isinstance(array.base, mmap)
    return _Mapping(array) if whole else array


def _mapped_again(array: Any) -> Any:
    return array.opened() if isinstance(array, _Mapping) else array


class Subset(Dataset):
    """Some samples of a data set, in the order of the indices."""

    def __init__(self, data: Any, indices: Any) -> None:
        self.data, length = data, len(data)
        if isinstance(indices, slice):
            found = np.arange(length)[indices]
        else:
            found = np.asarray(indices)
            if found.dtype == np.bool_:
                if found.shape != (length,):
                    raise ShapeError(f"a mask of {list(found.shape)} for a data set of {length} samples")
                found = np.flatnonzero(found)
            elif found.size == 0:
                found = found.astype(np.int64)
        if found.ndim != 1 or found.dtype.kind not in "iu":
            raise DataError("a subset is a slice, a mask or a list of indices")
        found = found.astype(np.int64)
        wrong = (found < -length) | (found >= length)
        if wrong.any():
            raise IndexOutOfRange(f"index {found[wrong][0]} is out of range: the data set has {length} samples")
        self.indices = np.where(found < 0, found + length, found)

    def __len__(self) -> int:
        return len(self.indices)

    def __getitem__(self, index: int) -> Any:
        return self.data[int(self.indices[checked_index(index, len(self))])]

    def sample(self, index: int, at: Pass) -> Any:
        return sample_of(self.data, int(self.indices[checked_index(index, len(self))]), at)

    def take(self, indices: Any, at: Pass) -> Any:
        return taken(self.data, self.indices[indices], at)

    @property
    def draws(self) -> int:
        return draws_of(self.data)

    @property
    def whole(self) -> bool:
        return comes_whole(self.data)

    def told(self) -> str | None:
        return told_of(self.data)


class ConcatDataset(Dataset):
    """Data sets one after the other."""

    def __init__(self, parts: Sequence[Any]) -> None:
        self.parts: list[Any] = [
            p for part in parts for p in (part.parts if isinstance(part, ConcatDataset) else [part])
        ]
        if not self.parts:
            raise DataError("ConcatDataset needs at least one data set")
        self._ends = np.cumsum([len(p) for p in self.parts])

    def __len__(self) -> int:
        return int(self._ends[-1])

    def _found(self, index: int) -> tuple[Any, int]:
        k = checked_index(index, len(self))
        part = int(np.searchsorted(self._ends, k, "right"))
        return self.parts[part], k - (int(self._ends[part - 1]) if part else 0)

    def __getitem__(self, index: int) -> Any:
        part, k = self._found(index)
        return part[k]

    def sample(self, index: int, at: Pass) -> Any:
        part, k = self._found(index)
        return sample_of(part, k, at)

    def take(self, indices: Any, at: Pass) -> Any:
        which = np.searchsorted(self._ends, indices, "right")
        batches, places = [], []
        for part in np.unique(which):
            here = np.flatnonzero(which == part)
            batch = taken(self.parts[part], indices[here] - (self._ends[part - 1] if part else 0), at)
            if batch is None:
                return None
            batches.append(batch)
            places.append(here)
        if len(batches) == 1:
            return batches[0]
        back = np.argsort(np.concatenate(places))
        try:
            return mapped(lambda *rows: np.concatenate(rows)[back], *batches)
        except (ValueError, KeyError, TypeError):
            return None  # the parts are unlike: what does not fit is said by `collate`

    @property
    def draws(self) -> int:
        return max(draws_of(p) for p in self.parts)

    @property
    def whole(self) -> bool:
        return all(map(comes_whole, self.parts))

    def told(self) -> str | None:
        first, *others = {told_of(part) for part in self.parts}
        return None if others else first


class Mapper:
    """What is done to each sample: a transform or a function, and the part of the sample it is applied to."""

    def __init__(self, function: Any, on: Any, random: bool, batched: bool = False) -> None:
        if not callable(function):
            raise DataError(f"data is mapped by a transform or a function, not by a {type(function).__name__}")
        self.transform = function if isinstance(function, Transform) else None
        if random and (batched or self.transform):
            raise DataError("random=True is for functions of one sample", hint="transforms draw by themselves")
        self.function, self.on, self.random, self.batched = function, on, random, batched
        self.draws = random or (self.transform is not None and self.transform.draws)
        self.at_once = batched or self.transform is not None  # whether whole batches can be mapped
        self.ours = self.transform is not None and self.transform.ours

    def told(self) -> str:
        """What it does, in words: `Normalize on 0`."""
        plain = isinstance(self.function, FunctionType | BuiltinFunctionType)
        name = self.function.__name__ if plain else type(self.function).__name__
        name = "a function" if name == "<lambda>" else name
        return f"{name}{'' if self.on is None else f' on {self.on!r}'}"

    def one(self, sample: Any, key: Any) -> Any:
        """What becomes of a sample; the key is what it draws with."""
        if self.batched:
            alone = mapped(lambda a: np.asarray(array_of(a))[None], sample)
            return mapped(lambda a: a[0], self._applied(alone, self.function))
        if self.transform is not None:
            transform = self.transform
            return self._applied(sample, lambda x: transform(x, key))
        if self.random:
            generator = np.random.Generator(np.random.Philox(key=int(key)))
            return self._applied(sample, lambda x: self.function(x, generator))
        return self._applied(sample, self.function)

    def many(self, batch: Any, keys: Any) -> Any:
        """What becomes of a batch."""
        transform = self.transform
        return self._applied(batch, self.function if transform is None else lambda x: transform.apply(x, keys))

    def _applied(self, sample: Any, function: Callable[[Any], Any]) -> Any:
        if self.on is None:
            if self.transform is not None and isinstance(sample, tuple | dict):
                raise DataError(
                    f"{type(self.transform).__name__} takes an array, and a sample is a {type(sample).__name__}",
                    hint="say which part: data.map(transform, on=0)",
                )
            return function(sample)
        if not _has(sample, self.on):
            raise DataError(f"a sample has no part {self.on!r} to be mapped")
        changed = function(sample[self.on])
        if isinstance(sample, dict):
            return {**sample, self.on: changed}
        parts = list(sample)
        parts[self.on] = changed
        return rebuilt(sample, parts)


def _has(sample: Any, part: Any) -> bool:
    return (
        part in sample
        if isinstance(sample, dict)
        else (isinstance(sample, tuple | list) and isinstance(part, int) and -len(sample) <= part < len(sample))
    )


class MappedDataset(Dataset):
    """A data set with a transform or a function applied to each sample when it is loaded.

    `on` names the part of the sample it is applied to: 0 in `(x, y)`, a key of a dict. With `random=True` a function
    gets a second argument, a `numpy.random.Generator` of the sample and the epoch; with `batched=True` it gets batches
    of arrays. Transforms bring their own randomness, and are applied to whole batches where that is possible.
    """

    def __init__(
        self, data: Any, function: Any, *, on: Any = None, random: bool = False, batched: bool = False
    ) -> None:
        self.data, self._mapper = data, Mapper(function, on, random, batched)
        inner = data if type(data) is MappedDataset and data._mapper.on == on else None
        self._base: Any = data if inner is None else inner._base  # what is mapped, here and below, on the same part
        self._chain: list[tuple[Mapper, int]] = [*(inner._chain if inner else ()), (self._mapper, draws_of(data))]
        self._order = in_order([mapper.transform for mapper, _ in self._chain])

    def __len__(self) -> int:
        return len(self.data)

    def __getitem__(self, index: int) -> Any:
        return self.sample(checked_index(index, len(self)), Pass())

    def sample(self, index: int, at: Pass) -> Any:
        return self._mapper.one(sample_of(self.data, index, at), self._keys(index, at))

    def take(self, indices: Any, at: Pass) -> Any:
        if not all(mapper.at_once for mapper, _ in self._chain):
            return None
        batch = taken(self._base, indices, at)
        for number in self._order if batch is not None else ():
            mapper, depth = self._chain[number]
            batch = mapper.many(batch, at.keys(indices, depth) if mapper.draws else None)
        return batch

    def _keys(self, indices: Any, at: Pass) -> Any:
        return at.keys(indices, draws_of(self.data)) if self._mapper.draws else None

    @property
    def draws(self) -> int:
        return draws_of(self.data) + int(self._mapper.draws)

    @property
    def whole(self) -> bool:
        return self._mapper.ours and comes_whole(self.data)

    def told(self) -> str:
        below = told_of(self.data)
        return f"{self._mapper.told()}{f' of {below}' if below else ''}"


def random_split(data: Any, sizes: Sequence[float], seed: int = 0) -> list[Subset]:
    """Parts of a data set, chosen at random: numbers of samples, or shares that make 1.

    >>> train, test = ek.data.random_split(data, [0.8, 0.2], seed=0)
    """
    length = len(data)
    counts = [int(s) for s in sizes]
    if any(isinstance(s, float) for s in sizes):
        if not sizes or min(sizes) < 0 or abs(sum(sizes) - 1) > 1e-6:
            raise DataError(f"random_split: the shares {list(sizes)} do not make 1")
        ends = [round(length * float(end)) for end in np.cumsum(sizes)]
        counts = [end - start for start, end in zip([0, *ends], ends, strict=False)]
        counts[-1] += length - sum(counts)
    if min(counts, default=-1) < 0 or sum(counts) != length:
        raise DataError(f"random_split: parts of {list(sizes)} do not make the {length} samples of the data set")
    order = permutation(length, root(seed_of(seed)))
    ends = np.cumsum(counts).tolist()
    return [Subset(data, order[end - count : end]) for count, end in zip(counts, ends, strict=True)]
