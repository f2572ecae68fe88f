"""How shapes lie to the rows of a kernel: patterns, and points at which elements are computed.

A *pattern* is a shape whose axes are merged into runs, each kept or reduced: (8, 4, 4) summed over its last two axes is
((8, kept), (16, reduced)), and NCHW over all but C is ((N, reduced), (C, kept), (H·W, reduced)). A row is what shares
its place in the kept runs. Two shapes of one pattern have the same rows, so whatever is computed for the elements of
one can be computed at the same point as that of the other; without reduced runs a row is one element.

A `Point` is an element under construction: a place (a scalar) along each run. It gives the index that a node of any
shape has there, and the position of what broadcasts to it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from eshkol.ops.row import Shape
from eshkol.ops.shapes import common, count
from eshkol.schedule.kernels.indices import LazyIndex
from eshkol.schedule.kernels.scalars import Scalar, ScalarCode

Pattern = tuple[tuple[int, bool], ...]  # extents, and whether they are kept


def pattern(shape: Shape, kept: Sequence[bool]) -> Pattern:
    """The runs of a shape of whose axes some are kept; axes of extent 1 belong to none."""
    found: list[tuple[int, bool]] = []
    for extent, keep in zip(shape, kept, strict=True):
        if extent == 1:
            continue
        if found and found[-1][1] is keep:
            found[-1] = found[-1][0] * extent, keep
        else:
            found.append((extent, keep))
    return tuple(found)


def reduced(shape: Shape, axes: Sequence[int]) -> Pattern:
    """The pattern of a reduction."""
    return pattern(shape, [k not in axes for k in range(len(shape))])


def spread(shape: Shape, whole: Shape) -> Pattern:
    """The pattern of what broadcasts to a shape: reduced runs are those along which it is repeated."""
    own = padded(shape, len(whole))
    return pattern(whole, [n == m for n, m in zip(own, whole, strict=True)])


def padded(shape: Shape, ndim: int) -> Shape:
    return (1,) * (ndim - len(shape)) + shape


def rows(runs: Pattern) -> int:
    """How many rows there are."""
    return count(tuple(n for n, keep in runs if keep))


def columns(runs: Pattern) -> int:
    """How many elements a row has."""
    return count(tuple(n for n, keep in runs if not keep))


def aligned(shape: Shape, extents: Sequence[int]) -> list[list[int]] | None:
    """The axes of a shape that make up each of some runs; None if a run would end within an axis."""
    found: list[list[int]] = []
    k = 0
    for extent in extents:
        mine: list[int] = []
        product = 1
        while product < extent and k < len(shape):
            if shape[k] != 1:
                mine.append(k)
            product *= shape[k]
            k += 1
        if product != extent:
            return None
        found.append(mine)
    return found if count(shape[k:]) == 1 else None


class Point:
    """A place along each run of a space; what is computed there is remembered in `known`."""

    def __init__(self, e: ScalarCode, extents: Sequence[int], places: Sequence[Scalar]) -> None:
        self.e, self.extents, self.places = e, tuple(extents), tuple(places)
        self.known: dict[Any, Scalar] = {}
        self.settled: dict[Any, Scalar] | None = None  # places at which nodes take rows, if the point has its own
        self._flat: Scalar | None = None
        self._indices: dict[Shape, Index] = {}

    @property
    def flat(self) -> Scalar:
        """The position among all elements of the space."""
        if self._flat is None:
            position, stride = self.e.number(0), 1
            for extent, place in zip(reversed(self.extents), reversed(self.places), strict=True):
                position = place * stride + position
                stride *= extent
            self._flat = position
        return self._flat

    def lies_at(self, flat: Scalar) -> None:
        """Say what the position is, where that is known better than from the extents."""
        self._flat = flat

    def index(self, shape: Shape) -> Index:
        """The index of this element in a shape of as many."""
        if shape not in self._indices:
            self._indices[shape] = Index(self, shape)
        return self._indices[shape]

    def runs(self, shape: Shape) -> list[tuple[Scalar, list[int]]]:
        """Places, and the axes of a shape that each is about."""
        found = aligned(shape, self.extents)
        if found is not None:
            return list(zip(self.places, found, strict=True))
        parts = common(shape, self.extents)
        if len(parts) == 1:
            return [(self.flat, [k for k, n in enumerate(shape) if n != 1])]
        return [(self._together(runs), axes) for runs, axes in parts]

    def _together(self, runs: Sequence[int]) -> Scalar:
        """The place along several runs that are made one."""
        place, stride = self.e.number(0), 1
        for k in reversed(runs):
            place = self.places[k] * stride + place
            stride *= self.extents[k]
        return place

    def _goes_on(self, extent: Any, distance: int) -> bool:
        """Whether what is so far beyond a multiple of a power of two lies in the same row, of so many elements."""
        return bool(extent == self.extents[-1] or (type(extent) is int and extent % (1 << distance.bit_length()) == 0))

    def position(self, shape: Shape, whole: Shape) -> Scalar:
        """Where the element lies that broadcasts from a shape to the one that `whole` has here."""
        if count(shape) == count(whole):
            return self.flat
        if count(shape) == 1:
            return self.e.number(0)
        self.e.note_shape()
        own = padded(shape, len(whole))
        past = self.places[-1].past if own[-1] == whole[-1] != 1 else None
        if past is not None and self._goes_on(whole[-1], past[1]) and aligned(whole, self.extents) is not None:
            start = Point(self.e, self.extents, (*self.places[:-1], past[0]))
            return self.e.beyond(start.position(shape, whole), past[1])
        position, own_stride = self.e.number(0), 1
        for place, axes in reversed(self.runs(whole)):
            stride = 1
            for extent, keep in reversed(pattern(tuple(whole[k] for k in axes), [own[k] != 1 for k in axes])):
                if keep:
                    position = position + self.e.digit(place, stride, extent) * own_stride
                    own_stride *= extent
                stride *= extent
        return position


class Index(LazyIndex):
    """The index that a point has in a shape."""

    def __init__(self, point: Point, shape: Shape) -> None:
        super().__init__(shape)
        self.point = point

    def _place(self, k: int) -> Scalar:
        e = self.point.e
        e.note_shape()
        for place, axes in self.point.runs(self.shape):
            if k in axes:
                behind = count(tuple(self.shape[a] for a in axes if a > k))
                return e.digit(place, behind, self.shape[k])
        return e.number(0)
