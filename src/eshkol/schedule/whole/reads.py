"""How rows' code sees inputs and outputs that are whole arrays: reads that are slices or gathers, writes.

Comes in: values of the text under an emitter (`replay.py`). Goes out: the scalars of all lanes at once. Complex numbers
are taken apart where they are read, and put together where they are written.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from eshkol.errors import TensorError
from eshkol.ops.dtypes import DType
from eshkol.ops.row import Shape
from eshkol.ops.shapes import count
from eshkol.schedule.kernels.scalars import INDEX, Scalar
from eshkol.schedule.whole.replay import Form, Place, Replay
from eshkol.schedule.whole.text import Value


class Read:
    """Elements of an input."""

    def __init__(self, e: Replay, value: Value) -> None:
        self.e, self.value, self.shape, self.dtype = e, value, value.shape, value.dtype
        self.size = count(value.shape)

    def __call__(self, index: Any) -> Scalar:
        e = self.e
        if index is e.here:
            return self._each(self._broadcast)
        places = [e._scalar(place, INDEX) for place in index]
        if len(places) != len(self.shape):
            raise TensorError(f"an index of {len(places)} places into an input of shape {list(self.shape)}")
        places = [place if place.dtype is INDEX else e.convert(place, INDEX) for place in places]
        straight = self.straight(places)
        return self.load(e.ravel(places, self.shape)) if straight is None else straight

    def load(self, position: Scalar, beyond: int = 0) -> Scalar:
        """The element so far beyond a flat position."""
        e = self.e
        if position is e.lane and not beyond and self.size == count(e.here.shape):
            return self._each(lambda x: e.t.reshape(x, e.here.shape))
        if self.size == 1:
            return self._each(lambda x: e.t.reshape(x, ()))
        at = e.register(position + beyond if beyond else position)
        return self._each(lambda x: e.t.gathered(x, at))

    def _each(self, code: Callable[[Value], Value]) -> Scalar:
        """What becomes of the input, or of both parts of a complex one."""
        e, t = self.e, self.e.t
        if not self.dtype.is_complex:
            return e.scalar(self.dtype, code(self.value))
        real = self.dtype.real
        parts = [code(t.op(name, (self.value,), self.shape, real)) for name in ("real", "imag")]
        return e.pair(*(e.scalar(real, part) for part in parts))

    def _broadcast(self, x: Value) -> Value:
        """The elements that broadcasting takes for every lane's own index."""
        e, shape = self.e, self.e.here.shape
        if count(x.shape) == count(shape):
            return e.t.reshape(x, shape)
        if count(x.shape) == 1:
            return e.t.reshape(x, ())
        return e.t.reshape(x, (1,) * (len(shape) - len(x.shape)) + x.shape)

    def straight(self, places: Sequence[Scalar], beyond: bool = False) -> Scalar | None:
        """The elements at an index that goes straight along axes, as a slice; None where it does not.

        Beyond says that what lies outside of the input is asked for, too: any number will do there.
        """
        forms: list[Form | int] = []
        for place, extent in zip(places, self.shape, strict=True):
            if isinstance(place, Place) and place.form.step:
                forms.append(place.form)
            elif place.known is not None and (beyond or place.known < extent):
                forms.append(int(place.known))
            else:
                return None
        taken = [f.axis for f in forms if isinstance(f, Form)]
        spans = [self._span(f) for f in forms]
        outside = any(low < 0 or high >= n for (low, high), n in zip(spans, self.shape, strict=True))
        if len(set(taken)) != len(taken) or (outside and not beyond):
            return None
        return self._each(lambda x: self._sliced(x, forms, spans, outside))

    def _span(self, form: Form | int) -> tuple[int, int]:
        if isinstance(form, int):
            return form, form
        ends = form.start, form.start + form.step * (self.e.axes[form.axis] - 1)
        return min(ends), max(ends)

    def _sliced(self, x: Value, forms: Sequence[Form | int], spans: Sequence[tuple[int, int]], outside: bool) -> Value:
        e, t = self.e, self.e.t
        if outside:
            low = [max(0, -first) for first, _ in spans]
            high = [max(0, last + 1 - n) for (_, last), n in zip(spans, x.shape, strict=True)]
            x = t.pad(x, t.constant(0, (), x.dtype), low, high)
            spans = [(first + b, last + b) for (first, last), b in zip(spans, low, strict=True)]
        steps = [abs(f.step) if isinstance(f, Form) else 1 for f in forms]
        found = t.slice(x, [first for first, _ in spans], [last + 1 for _, last in spans], steps)
        found = t.reverse(found, [k for k, f in enumerate(forms) if isinstance(f, Form) and f.step < 0])
        axes = [(f.axis, k) for k, f in enumerate(forms) if isinstance(f, Form)]
        found = t.reshape(found, tuple(found.shape[k] for _, k in axes))
        order = sorted(range(len(axes)), key=lambda n: axes[n][0])
        found = t.transpose(found, order)
        rank = max((axis for axis, _ in axes), default=-1) + 1
        shape = [1] * rank
        for axis, _ in axes:
            shape[axis] = e.axes[axis]
        return t.reshape(found, tuple(shape))


class Write:
    """An output, flat in a cell for each part it has."""

    def __init__(self, e: Replay, shape: Shape, dtype: DType, first: Value | None = None) -> None:
        self.e, self.shape, self.dtype = e, shape, dtype
        t, size = e.t, (count(shape),)
        parts = [dtype.real, dtype.real] if dtype.is_complex else [dtype]
        if first is None:
            starts = [t.constant(0, size, part) for part in parts]
        else:
            flat = t.reshape(first, size)
            names = ("real", "imag") if dtype.is_complex else ()
            starts = [t.op(name, (flat,), size, dtype.real) for name in names] or [flat]
        self.cells = [t.cell(start) for start in starts]

    def __call__(self, index: Any, value: Any) -> None:
        if index is self.e.here and self.e.here.shape == self.shape:
            self.store(self.e.lane, value)
        else:
            self.store(self.e.ravel(index, self.shape), value)

    def load(self, position: Scalar) -> Scalar:
        """What lanes have written at a flat position."""
        e, at = self.e, self.e.register(position)
        parts = [e.scalar(c.value.dtype, e.t.gathered(c.value, at)) for c in self.cells]
        return e.pair(*parts) if len(parts) > 1 else parts[0]

    def store(self, position: Scalar, value: Any, beyond: int = 0) -> None:
        """Put a scalar, or a number, so far beyond a flat position."""
        e, t = self.e, self.e.t
        value = value if isinstance(value, Scalar) else e.constant(value, self.dtype)
        if value.dtype is not self.dtype:
            raise TensorError(f"the code of a row gives {value.dtype}, its rule says {self.dtype}")
        parts = [e.full(e.register(part)) for part in e.parts(value)]
        if position is e.lane and not beyond and not e.masks and e.here.shape == tuple(e.axes):
            for cell, part in zip(self.cells, parts, strict=True):
                cell.value = t.reshape(part, cell.value.shape)
            return
        at = e.full(e.register(position + beyond if beyond else position))
        for mask in e.masks:  # what lies beyond the end is not written
            at = t.select(t.spread(mask, at.shape, range(len(mask.shape))), at, t.filled(count(self.shape), at))
        for cell, part in zip(self.cells, parts, strict=True):
            cell.value = t.put(cell.value, at, part)

    def result(self) -> Value:
        """What was written, all of it."""
        t = self.e.t
        parts = [t.reshape(cell.value, self.shape) for cell in self.cells]
        return t.op("complex", parts, self.shape, self.dtype) if len(parts) > 1 else parts[0]


def number_of(e: Replay, value: Scalar, shape: Shape, dtype: DType) -> Value:
    """What a row's code gives for all lanes, as an array."""
    if value.dtype is not dtype:
        raise TensorError(f"the code of a row gives {value.dtype}, its rule says {dtype}")
    parts = [e.t.reshape(e.full(e.register(part)), shape) for part in e.parts(value)]
    return e.t.op("complex", parts, shape, dtype) if dtype.is_complex else parts[0]
