"""Lengths as the code of a user sees them while a function is traced for all sizes.

`Extent` is an integer, so much of Python takes its value without a question (`range(n)`, `0.5 * n`, `math.log(n)`).
What `x.shape` gives meanwhile is therefore no integer, although `isinstance` says so: whatever wants its number has to
ask, and is noted. Arithmetic and comparisons are the extent's. Where it is given to an operation on tensors it becomes
the extent again (`unwatched`).
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, ClassVar

from eshkol.support.extents import Conditions, Extent, plain


class Watching:
    """Whether any function is traced for all sizes now."""

    on = 0
    _at_work: ClassVar[list[Conditions]] = []

    @classmethod
    @contextmanager
    def watched(cls, conditions: Conditions) -> Iterator[None]:
        cls.on += 1
        cls._at_work.append(conditions)
        try:
            yield
        finally:
            cls.on -= 1
            cls._at_work.remove(conditions)

    @classmethod
    def fix(cls, why: str) -> None:
        """Something is run that does not see lengths as they are given here: what is traced is for one size."""
        for conditions in cls._at_work:
            conditions.fix(why)


def _operator(op: Callable[[Any, Any], Any]) -> tuple[Callable[..., Any], Callable[..., Any]]:
    def forward(self: Watched, other: Any) -> Any:
        return _given(self, op, True, other)

    def backward(self: Watched, other: Any) -> Any:
        return _given(self, op, False, other)

    return forward, backward


def _given(self: Watched, op: Callable[[Any, Any], Any], first: bool, other: Any) -> Any:
    mine: Any = self.extent
    if type(other) is Watched:
        other = other.extent
    elif isinstance(other, float):
        mine = mine.conditions.numbers(mine, None)  # a number that is computed with, and not known
    elif not isinstance(other, int):
        if not isinstance(other, list | tuple | str | bytes):
            return NotImplemented
        mine = self._plain("something is repeated so often")
    elif op is operator.truediv:
        mine = mine.conditions.numbers(mine, None)
    if op is operator.truediv and type(other) is Extent:
        mine, other = (x.conditions.numbers(x, None) if type(x) is Extent else x for x in (mine, other))
    return as_watched(op(mine, other) if first else op(other, mine))


def _comparison(op: Callable[[Any, Any], bool]) -> Callable[..., Any]:
    def compare(self: Watched, other: Any) -> Any:
        if type(other) is Watched:
            other = other.extent
        return op(self.extent, other) if isinstance(other, int | float) else NotImplemented

    return compare


def as_watched(given: Any) -> Any:
    """An extent as a user sees it; everything else as it is."""
    return Watched(given) if type(given) is Extent else given


def watched_shape(shape: tuple[int, ...]) -> tuple[int, ...]:
    """A shape as a user sees it."""
    return tuple([as_watched(n) for n in shape])


def unwatched(given: Any) -> Any:
    """What a user gives to an operation, with extents in it."""
    kind = type(given)
    if kind is Watched:
        return given.extent
    if kind is tuple or kind is list:
        return kind([unwatched(x) for x in given])
    if kind is slice:
        return slice(unwatched(given.start), unwatched(given.stop), unwatched(given.step))
    if kind is dict:
        return {name: unwatched(x) for name, x in given.items()}
    return given


class Watched:
    """A length that is not an integer, and behaves as one."""

    __slots__ = ("extent", "shape")
    __class__ = property(lambda self: int)

    def __init__(self, extent: Any, shape: tuple[int, ...] | None = None) -> None:
        self.extent, self.shape = extent, shape

    def _plain(self, why: str) -> Any:
        self.extent.conditions.fix(why)
        return plain(self.extent)

    def __call__(self, dim: int | None = None) -> Any:
        """As `x.size`: the shape, or the extent of one axis."""
        if self.shape is None:
            raise TypeError("a length cannot be called")
        shape = watched_shape(self.shape)
        return shape if dim is None else shape[dim]

    __add__, __radd__ = _operator(operator.add)
    __sub__, __rsub__ = _operator(operator.sub)
    __mul__, __rmul__ = _operator(operator.mul)
    __floordiv__, __rfloordiv__ = _operator(operator.floordiv)
    __mod__, __rmod__ = _operator(operator.mod)
    __truediv__, __rtruediv__ = _operator(operator.truediv)
    __pow__, __rpow__ = _operator(operator.pow)
    __lshift__, __rlshift__ = _operator(operator.lshift)
    __rshift__, __rrshift__ = _operator(operator.rshift)
    __and__, __rand__ = _operator(operator.and_)
    __or__, __ror__ = _operator(operator.or_)
    __xor__, __rxor__ = _operator(operator.xor)
    __eq__, __ne__ = _comparison(operator.eq), _comparison(operator.ne)
    __lt__, __le__ = _comparison(operator.lt), _comparison(operator.le)
    __gt__, __ge__ = _comparison(operator.gt), _comparison(operator.ge)

    def __divmod__(self, other: Any) -> Any:
        return self // other, self % other

    def __rdivmod__(self, other: Any) -> Any:
        return other // self, other % self

    def __neg__(self) -> Any:
        return as_watched(-self.extent)

    def __pos__(self) -> Any:
        return self

    def __abs__(self) -> Any:
        return as_watched(abs(self.extent))

    def __round__(self, digits: Any = None) -> Any:
        return self

    __ceil__ = __floor__ = __trunc__ = __pos__

    def __bool__(self) -> bool:
        return bool(self.extent)

    def __hash__(self) -> int:
        return hash(self._plain("it is looked up in a table"))

    def __index__(self) -> int:
        found: int = self._plain("its number is asked for")
        return found

    __int__ = __index__

    def __float__(self) -> float:
        return float(self._plain("it becomes a float"))

    def __repr__(self) -> str:
        return repr(self._plain("its digits are asked for"))

    def __format__(self, spec: str) -> str:
        return format(self._plain("its digits are asked for"), spec)

    def __array__(self, *given: Any, **how: Any) -> Any:
        import numpy as np

        return np.asarray(self._plain("NumPy computes with it"))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._plain(f"int.{name} of it is not followed"), name)
