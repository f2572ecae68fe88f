"""Rules about shapes and axes that many rows share: broadcasting and normalized axes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import Any

from eshkol.errors import DTypeError, IndexOutOfRange, ShapeError
from eshkol.ops.row import Aval, HasAval, Shape
from eshkol.support.extents import index

Axes = int | Sequence[int] | None
MOST_ELEMENTS = 1 << 48


@lru_cache(maxsize=4096)
def broadcast(*shapes: Shape) -> Shape:
    """The shape in which shapes meet, as NumPy has it."""
    result: list[int] = []
    for places in range(1, max(map(len, shapes), default=0) + 1):
        extents: list[int] = []
        for extent in [s[-places] for s in shapes if len(s) >= places]:
            if extent != 1 and all(extent != other for other in extents):  # lengths may be equal and not be told alike
                extents.append(extent)
        if len(extents) > 1:
            shown = " and ".join(str(list(s)) for s in dict.fromkeys(shapes))
            raise ShapeError(
                f"shapes {shown} do not broadcast: axis -{places} is {' and '.join(map(str, extents))}",
                hint="from the last axis on, extents must be equal or one of them 1: reshape or unsqueeze one",
            )
        result.append(extents.pop() if extents else 1)
    return tuple(reversed(result))


def whole(given: Any, what: str) -> int:
    """A Python or NumPy integer as the former; bools and anything else are refused."""
    if isinstance(given, bool) or not hasattr(given, "__index__"):
        raise ShapeError(f"{what} must be an integer, not {given!r}")
    return index(given)


def axis(given: int, ndim: int) -> int:
    """An axis counted from the front; negative ones count from the end."""
    if type(given) is not int:
        given = whole(given, "an axis")
    if not -ndim <= given < ndim:
        raise IndexOutOfRange(f"axis {given} is out of range for {ndim} axes", hint=f"axes are {-ndim} to {ndim - 1}")
    return given % ndim


def axes(given: Axes, ndim: int) -> tuple[int, ...]:
    """Axes in order, none twice; None means all."""
    if given is None:
        return tuple(range(ndim))
    found = [axis(k, ndim) for k in (given if isinstance(given, Iterable) else [given])]
    if len(set(found)) < len(found):
        raise ShapeError(f"an axis stands twice in {tuple(found)}")
    return tuple(sorted(found))


def without(shape: Shape, removed: Sequence[int], keepdims: bool = False) -> Shape:
    """A shape after reduction along axes."""
    if keepdims:
        return tuple(1 if k in removed else n for k, n in enumerate(shape))
    return tuple(n for k, n in enumerate(shape) if k not in removed)


def extents(given: Any) -> Shape:
    """A shape as the user gives it: an integer or a sequence of them."""
    found = tuple(given) if isinstance(given, Iterable) else (given,)
    if any(type(n) is not int for n in found):
        found = tuple(whole(n, "an extent") for n in found)
    if any(n < 0 for n in found):
        raise ShapeError(f"a shape cannot have a negative extent: {list(found)}")
    if count(found) > MOST_ELEMENTS:
        raise ShapeError(f"a shape of {count(found)} elements is larger than any memory: {list(found)}")
    return found


def count(shape: Shape) -> int:
    """How many elements a shape has."""
    total = 1
    for n in shape:
        total *= n
    return total


def common(shape: Shape, extents: Sequence[int]) -> list[tuple[list[int], list[int]]]:
    """Runs and axes of as many elements, in parts as small as they can be: which of each belong together."""
    found: list[tuple[list[int], list[int]]] = []
    runs, axes = [k for k, n in enumerate(extents) if n != 1], [k for k, n in enumerate(shape) if n != 1]
    while runs and axes:
        of_runs, of_axes = [runs.pop(0)], [axes.pop(0)]
        one, other = extents[of_runs[0]], shape[of_axes[0]]
        while one != other:
            if one < other:
                of_runs.append(runs.pop(0))
                one *= extents[of_runs[-1]]
            else:
                of_axes.append(axes.pop(0))
                other *= shape[of_axes[-1]]
        found.append((of_runs, of_axes))
    return found


def same(dtype: Any = None) -> Callable[..., HasAval]:
    """An infer rule: the broadcast shape, of the inputs' dtype or of a given one."""

    def infer(a: Any, *inputs: HasAval) -> HasAval:
        first = inputs[0]
        shape = first.shape
        for x in inputs:
            if x.shape != shape:
                return Aval(broadcast(*(y.shape for y in inputs)), dtype or first.dtype)
        return first if dtype is None else Aval(shape, dtype)

    vars(infer)["broadcasts"] = (dtype,)  # so that whoever has a quicker way knows what it says
    return infer


def refuse_complex(*inputs: Any) -> None:
    """For what is defined for real numbers alone; numbers of Python may be among the inputs."""
    for x in inputs:
        dtype = getattr(x, "dtype", None)
        if isinstance(x, complex) or (dtype is not None and dtype.is_complex):
            raise DTypeError(
                f"it is defined for real numbers, not for {dtype or 'complex'} ones",
                hint="take x.real, x.imag or abs(x)",
            )


def of_reals() -> Callable[..., HasAval]:
    """An infer rule: that of `same`, for real numbers alone."""
    infer = same()

    def checked(a: Any, *inputs: HasAval) -> HasAval:
        refuse_complex(*inputs)
        return infer(a, *inputs)

    return checked
