"""Indices of elements: the lane's own, those of positions, and integers that are checked to be in range.

Comes in: scalars. Goes out: places along axes, computed when they are asked for, and flat positions. What depends on a
shape is noted: a program that asks for none serves every size.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any

from eshkol.atlas.operands import Condition, Register
from eshkol.atlas.types import Type
from eshkol.errors import Span
from eshkol.ops import dtypes
from eshkol.ops.row import Shape
from eshkol.ops.shapes import common, count
from eshkol.schedule.kernels.code import TRUTH, Virtual
from eshkol.schedule.kernels.scalars import INDEX, NARROW_LIMIT, TYPES, Scalar, ScalarCode

INDEX_TRAP = "<index>"  # the span of the instruction that stops a launch because of an index; its text is the extent


class LazyIndex(Sequence[Scalar]):
    """The index of an element of a shape; its places are computed when they are asked for, each once."""

    seen: tuple[Any, Shape] | None = None  # the index, and of which shape, that says the same element otherwise

    def __init__(self, shape: Shape) -> None:
        self.shape = shape
        self._places: dict[int, Scalar] = {}

    @abstractmethod
    def _place(self, k: int) -> Scalar:
        """The place along an axis, computed now."""

    def __len__(self) -> int:
        return len(self.shape)

    def __iter__(self) -> Iterator[Scalar]:
        return (self[k] for k in range(len(self.shape)))

    def __getitem__(self, k: Any) -> Any:
        if isinstance(k, slice):
            return [self[n] for n in range(*k.indices(len(self.shape)))]
        k = k + len(self.shape) if k < 0 else k
        if not 0 <= k < len(self.shape):
            raise IndexError(f"the element has no axis {k}")
        if k not in self._places:
            self._places[k] = self._place(k)
        return self._places[k]


class Here(LazyIndex):
    """The index of the element that the lane is about."""

    def __init__(self, e: ScalarCode, shape: Shape) -> None:
        super().__init__(shape)
        self.e = e

    def _place(self, k: int) -> Scalar:
        self.e.note_shape()
        with self.e.in_prologue():
            return self.e.digit(self.e.lane, count(self.shape[k + 1 :]), self.shape[k])


class Reshaped(LazyIndex):
    """The index of an element in another shape than that in which it was asked for: axes that agree keep their places.

    Where only its position is wanted, that is the position of the index that it was made of.
    """

    def __init__(self, e: IndexCode, index: Any, shape: Shape, wanted: Shape) -> None:
        super().__init__(wanted)
        self.e, self.source, self.given = e, index, shape
        self.seen = index, shape

    def _place(self, k: int) -> Scalar:
        e, index, shape = self.e, self.source, self.given
        if index is e.here or 0 in shape:
            found: Scalar = e.unravel(e.ravel(index, shape), self.shape)[k]
            return found
        e.note_shape()
        for mine, theirs in common(self.shape, shape):
            if k in theirs:
                given = [index[n] for n in mine]
                if len(mine) == len(theirs) == 1:
                    return e._scalar(given[0], INDEX)
                flat = e.ravel(given, tuple(shape[n] for n in mine))
                behind = count(tuple(self.shape[n] for n in theirs if n > k))
                return e.digit(flat, behind, self.shape[k])
        return e.number(0)  # of an axis of one element


class IndexCode(ScalarCode):
    """Code of lanes that are spread over a shape: the result's, or that of its rows."""

    def __init__(self, shape: Shape) -> None:
        super().__init__(count(shape))
        self.here = Here(self, shape)

    def ravel(self, index: Any, shape: Shape) -> Scalar:
        """The flat position of an index in a shape."""
        shape = tuple(shape)
        while isinstance(index, LazyIndex) and index.seen is not None and index.shape == shape:
            index, shape = index.seen
        if index is self.here and self.here.shape == shape:
            return self._lane
        if not shape:  # there is only one element
            return self.number(0)
        self.note_shape()
        places = list(index)
        if isinstance(places[-1], Scalar) and places[-1].past is not None:
            start, distance = places[-1].past
            return self.beyond(self.ravel([*places[:-1], start], shape), distance)
        position, stride = self.number(0), 1
        for extent, given in zip(reversed(shape), reversed(places), strict=True):
            position = self.convert(self._scalar(given, INDEX), INDEX) * stride + position
            stride *= extent
        return position

    def unravel(self, flat: Scalar, shape: Shape) -> Any:
        """The index that a flat position has in a shape."""
        shape = tuple(shape)
        if flat is self._lane and self.here.shape == shape:
            return self.here
        self.note_shape()
        return [self.digit(flat, count(shape[k + 1 :]), extent) for k, extent in enumerate(shape)]

    def reshaped(self, index: Any, shape: Shape, wanted: Shape) -> LazyIndex:
        """The index in another shape of the element that has an index in one."""
        return Reshaped(self, index, tuple(shape), tuple(wanted))

    def index(self, scalar: Any, extent: int) -> Scalar:
        """An integer as an index: negative ones count from the end, and one out of range stops the launch."""
        given = self._scalar(scalar, INDEX)
        if given.most is not None and given.most < extent:
            self.note_shape()
            return given
        found, inside = self.located(given, extent)
        self.stop_unless(inside, extent)
        return found

    def located(self, scalar: Scalar, extent: int, wrap: bool = True) -> tuple[Scalar, Scalar]:
        """An integer as an index, negative ones counted from the end, and 1 if it is in range (as uint32), else 0.

        Out of range, the index is any one that is not.
        """
        self.note_shape()
        if scalar.dtype is dtypes.uint64:
            position = self.register(scalar)
        else:
            signed = self.convert(scalar, INDEX)
            if wrap and scalar.dtype.signed:
                signed = self.select(self.compare("LT", signed, 0), signed + extent, signed)
            position = self._converted(self.register(signed), Type.I64, Type.U64)
        limit = self.register(self.constant(extent, dtypes.uint64))
        one, zero = (self.register(self.number(v), Type.U32) for v in (1, 0))
        inside = self.fresh(Type.U32)
        self.record("SETcc", Condition.LT, TRUTH, position, limit)
        self.record("SEL", inside, TRUTH, one, zero)
        return self._sure(position, Type.U64, extent), Scalar(self, dtypes.uint32, inside)

    def stop_unless(self, inside: Scalar, extent: int) -> None:
        """Stop the launch if an index was out of range: `inside` is 0 then, else 1."""
        one, nothing = self.register(self.constant(1, dtypes.uint32)), self.fresh(Type.U32)
        self.record("DIV", nothing, one, self.register(inside), span=Span(INDEX_TRAP, 1, 1, 1, str(extent)))

    def sure_index(self, scalar: Scalar, extent: int) -> Scalar:
        """An integer that is a position in range, as an index."""
        self.note_shape()
        if scalar.most is not None and scalar.most < extent:
            return scalar
        unsigned = scalar if scalar.dtype in (dtypes.uint32, dtypes.uint64) else self.convert(scalar, dtypes.uint64)
        return self._sure(self.register(unsigned), TYPES[unsigned.dtype], extent)

    def _sure(self, position: Virtual | Register, ty: Type, extent: int) -> Scalar:
        """A position in range, said so that a machine need not look further to see that it is."""
        found = self.fresh(ty)
        last = self.constant(max(extent - 1, 0), dtypes.uint64 if ty is Type.U64 else dtypes.uint32)
        self.record("MIN", found, position, self.register(last))
        wanted = Type.U32 if extent <= NARROW_LIMIT else Type.I64
        index = found if ty is wanted else self._converted(found, ty, wanted)
        return Scalar(self, INDEX, index, most=max(extent - 1, 0))

    def read_if(self, valid: Scalar, read: Any, index: Sequence[Any], otherwise: Any) -> Scalar:
        """An element of an input where `valid` holds, else another value; the index may be out of range then."""
        other = self._scalar(otherwise, read.dtype)
        if read.size == 0 or valid.known is False:
            return other
        if valid.known:
            found: Scalar = read(index)
            return found
        inside = [self.within(self._scalar(given, INDEX), n) for given, n in zip(index, read.shape, strict=True)]
        return self.select(valid, read(inside), other)
