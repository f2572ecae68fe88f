"""The emitter `e` with which rows' scalar code is run on whole arrays (see `Pull` and `Push` in `ops/row.py`).

Comes in: calls of a row's code, as every kernel makes them. Goes out: lines of StableHLO. What the code takes for a
scalar of one lane is here the array of that scalar for all lanes: its axes are the first of the *frame*, those over
which lanes are spread, and have its extents or 1. So an index is an array of places, a read of an index that goes
straight along axes a slice, any other a gather; a reduction adds axes to the frame and takes them away again; loops
are loops, whose state has an element for each lane; and what only some lanes do is done by all, and forgotten by the
others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from eshkol.errors import TensorError
from eshkol.ops import dtypes
from eshkol.ops.dtypes import DType
from eshkol.ops.row import Shape
from eshkol.ops.shapes import count
from eshkol.schedule.kernels.indices import IndexCode, LazyIndex
from eshkol.schedule.kernels.reduce import ACCUMULATED
from eshkol.schedule.kernels.scalars import FOLDED, INDEX, Pair, Scalar, bounds, compared
from eshkol.schedule.whole.arrays import Arrays
from eshkol.schedule.whole.instructions import CODE, bitcast
from eshkol.schedule.whole.text import Cell, Value

UNROLLED = 16  # rounds of a loop that are written one after another


class Form(NamedTuple):
    """An index that goes straight along an axis of the frame: place · step + start."""

    axis: int
    step: int
    start: int


class Place(Scalar):
    """An index of a known form; the array of it is made when it is asked for."""

    __slots__ = ("form",)

    def __init__(self, e: Replay, form: Form) -> None:
        last = form.start + form.step * max(e.axes[form.axis] - 1, 0)
        least, most = min(form.start, last), max(form.start, last)
        super().__init__(e, INDEX, None, most=most if least >= 0 else None, least=max(least, 0))
        self.form = form


class Variable(Scalar):
    """A scalar that code assigns to; it stands in a cell."""

    __slots__ = ("cell",)

    def __init__(self, e: Replay, dtype: DType, value: Value) -> None:
        self.cell = e.t.cell(value)
        super().__init__(e, dtype, None)

    @property
    def register(self) -> Any:
        return self.cell.value

    @register.setter
    def register(self, value: Any) -> None:
        pass


class Here(LazyIndex):
    """The index of every lane's element."""

    def __init__(self, e: Replay, shape: Shape) -> None:
        super().__init__(shape)
        self.e = e

    def _place(self, k: int) -> Scalar:
        return self.e.number(0) if self.shape[k] == 1 else Place(self.e, Form(k, 1, 0))


class Replay(IndexCode):
    """Runs one row's code for all lanes of a shape."""

    def __init__(self, t: Arrays, shape: Shape, asked: Any = None) -> None:
        super().__init__(shape)
        self.t, self.asked = t, asked
        self.axes: list[int] = list(shape)
        self.here = Here(self, shape)  # type: ignore[assignment]
        self._lane.register = None
        self._depth = len(t.buffers)
        self.masks: list[Value] = []

    def scalar(self, dtype: DType, value: Value, most: int | None = None, least: int = 0) -> Scalar:
        """The scalar of each lane that an array holds."""
        register: Any = value
        return Scalar(self, dtype, register, most=most, least=least)

    # --- arrays ---------------------------------------------------------------------------------------

    @contextmanager
    def in_prologue(self) -> Iterator[None]:
        with self.t.at_depth(self._depth):
            yield

    def met(self, values: Sequence[Value]) -> list[Value]:
        """Arrays of one shape."""
        rank = max(len(x.shape) for x in values)
        shape = tuple(max((x.shape[k] for x in values if k < len(x.shape)), default=1) for k in range(rank))
        return [self.t.spread(x, shape, range(len(x.shape))) for x in values]

    def full(self, value: Value) -> Value:
        """An array with an element for each lane."""
        return self.t.spread(value, tuple(self.axes), range(len(value.shape)))

    def register(self, scalar: Scalar, ty: Any = None) -> Any:
        if isinstance(scalar, Pair):
            raise TensorError(f"code for real numbers meets {scalar.dtype}")
        if scalar.known is not None:
            return self.t.constant(scalar.known, (), scalar.dtype)
        if isinstance(scalar, Place):
            axis, step, start = scalar.form
            found = self.t.iota(axis, (*[1] * axis, self.axes[axis]))
            if step != 1:
                found = self.t.same("multiply", found, self.t.filled(step, found))
            return found if not start else self.t.same("add", found, self.t.filled(start, found))
        if scalar is self._lane and scalar.register is None:
            with self.in_prologue():
                flat = self.t.iota(0, (count(self.here.shape),))
                scalar.register = self.t.reshape(flat, self.here.shape)  # type: ignore[assignment]
        return scalar.register

    def emit(self, name: str, dtype: DType, operands: Sequence[Any], suffixes: Sequence[Any] = ()) -> Scalar:
        if name == "CVT":
            found = self.t.converted(operands[0], dtype)
        elif name == "BITCAST":
            found = bitcast(self.t, operands[0], dtype)
        elif name in CODE:
            found = CODE[name](self.t, *self.met(operands))
        else:
            raise TensorError(f"StableHLO has no {name}")
        return self.scalar(dtype, found)

    def record(self, name: str, *operands: Any, span: Any = None) -> None:
        raise TensorError(f"{name} is no instruction on whole arrays")

    # --- scalars --------------------------------------------------------------------------------------

    def op(self, name: str, *scalars: Any) -> Scalar:
        found = self._alike(scalars)
        if name in ("DIV", "REM") and found[0].dtype.is_integer and not found[1].known:
            divisor = self.register(found[1])
            self._refuse(self.t.compare("EQ", divisor, self.t.filled(0, divisor)), "an integer / 0: division by zero")
        return super().op(name, *found)

    def extent(self, value: int) -> Scalar:
        return self.number(int(value))

    def arithmetic(self, name: str, x: Any, y: Any) -> Scalar:
        one, other = self._alike((x, y))
        if one.dtype is not INDEX:
            return self.op(name, one, other)
        if one.known is not None and other.known is not None:
            return self.number(FOLDED[name](one.known, other.known))
        if (name in ("ADD", "SUB") and other.known == 0) or (name in ("MUL", "DIV") and other.known == 1):
            return one
        if (name == "REM" and other.known == 1) or (name == "MUL" and 0 in (one.known, other.known)):
            return self.number(0)
        if one.known == 0 and name == "ADD":
            return other
        straight = self._straight(name, one, other)
        if straight is not None:
            return Place(self, straight)
        least, most = bounds(name, one, other)
        found = CODE[name](self.t, *self.met([self.register(one), self.register(other)]))
        return self.scalar(INDEX, found, most=most, least=least)

    def _straight(self, name: str, one: Scalar, other: Scalar) -> Form | None:
        """The form of a result that goes straight along an axis, as one operand does, of which the other is known."""
        known, place = (one, other) if one.known is not None else (other, one)
        if known.known is None or not isinstance(place, Place):
            return None
        axis, step, start = place.form
        if name == "ADD":
            return Form(axis, step, start + known.known)
        if name == "SUB":
            return Form(axis, step, start - known.known) if known is other else Form(axis, -step, known.known - start)
        if name == "MUL":
            return Form(axis, step * known.known, start * known.known)
        return None

    def compare(self, condition: str, x: Any, y: Any) -> Scalar:
        one, other = self._alike((x, y))
        if isinstance(one, Pair):
            return self._compare_parts(condition, one, other)
        decided = compared(condition, one, other) if one.dtype is INDEX else None
        if decided is not None:
            return self.constant(decided, dtypes.bool_)
        found = self.t.compare(condition, *self.met([self.register(one), self.register(other)]))
        return self.scalar(dtypes.bool_, found)

    def select(self, condition: Scalar, x: Any, y: Any) -> Scalar:
        one, other = self._alike((x, y))
        if condition.known is not None:
            return one if condition.known else other
        if isinstance(one, Pair):
            return self._partwise(lambda *parts: self.select(condition, *parts), one, other)
        most = max(one.most, other.most) if one.most is not None and other.most is not None else None
        found = self.t.select(*self.met([self.register(s) for s in (condition, one, other)]))
        return self.scalar(one.dtype, found, most=most)

    # --- indices --------------------------------------------------------------------------------------

    def _clamped(self, x: Value, least: int, most: int) -> Value:
        return self.t.same("minimum", self.t.same("maximum", x, self.t.filled(least, x)), self.t.filled(most, x))

    def within(self, place: Scalar, extent: int) -> Scalar:
        if place.most is not None and place.most < extent:
            return place
        found = self._clamped(self.register(place), 0, extent - 1)
        return self.scalar(INDEX, found, most=extent - 1)

    def at_most(self, place: Scalar, most: int) -> Scalar:
        if isinstance(place, Place) or place.known is not None or (place.most is not None and place.most <= most):
            return place
        return Scalar(self, INDEX, self.register(place), most=most)

    def located(self, scalar: Scalar, extent: int, wrap: bool = True) -> tuple[Scalar, Scalar]:
        given = self.register(scalar)
        if scalar.dtype is dtypes.uint64:  # what is beyond an index is out of range all the same
            given = self.t.same("minimum", given, self.t.filled(dtypes.int64.limits()[1], given))
        place = self.t.converted(given, INDEX)
        if wrap and scalar.dtype.signed:
            around = self.t.same("add", place, self.t.filled(extent, place))
            place = self.t.select(self.t.compare("LT", place, self.t.filled(0, place)), around, place)
        fine = self.t.same(
            "and", self.t.compare("GE", place, self.t.filled(0, place)),
            self.t.compare("LT", place, self.t.filled(extent, place)),
        )  # fmt: skip
        inside = self.scalar(dtypes.uint32, self.t.converted(fine, dtypes.uint32))
        return self._in_range(place, extent), inside

    def _in_range(self, place: Value, extent: int) -> Scalar:
        last = max(extent - 1, 0)
        return self.scalar(INDEX, self._clamped(place, 0, last), most=last)

    def stop_unless(self, inside: Scalar, extent: int) -> None:
        found = self.register(inside)
        self._refuse(self.t.compare("EQ", found, self.t.filled(0, found)), extent)

    def sure_index(self, scalar: Scalar, extent: int) -> Scalar:
        if scalar.most is not None and scalar.most < extent:
            return scalar
        return self._in_range(self.t.converted(self.register(scalar), INDEX), extent)

    def _refuse(self, wrong: Value, said: Any) -> None:
        for mask in self.masks:
            wrong = self.t.same("and", *self.met([wrong, mask]))
        self.t.refuse(wrong, (self.asked, said))

    # --- what reads and writes ask --------------------------------------------------------------------

    def read_if(self, valid: Scalar, read: Any, index: Sequence[Any], otherwise: Any) -> Scalar:
        other = self._scalar(otherwise, read.dtype)
        if read.size == 0 or valid.known is False:
            return other
        straight = None if valid.known else read.straight([self._scalar(p, INDEX) for p in index], beyond=True)
        return self.select(valid, straight, other) if straight is not None else super().read_if(
            valid, read, index, otherwise
        )  # fmt: skip

    # --- loops ----------------------------------------------------------------------------------------

    def variable(self, scalar: Scalar) -> Scalar:
        if isinstance(scalar, Pair):
            return self._partwise(self.variable, scalar)
        return Variable(self, scalar.dtype, self.full(self.register(scalar)))

    def assign(self, variable: Scalar, value: Scalar) -> None:
        for one, part in zip(self.parts(variable), self.parts(value), strict=True):
            assert isinstance(one, Variable)
            one.cell.value = self.changed(one.cell, self.full(self.register(part)))

    def changed(self, cell: Cell, value: Value) -> Value:
        """What is in a cell after lanes have put something there: those at work."""
        for mask in self.masks:
            value = self.t.select(self.t.spread(mask, value.shape, range(len(mask.shape))), value, cell.value)
        return value

    def accumulate(self, variable: Scalar, operation: str, term: Scalar) -> None:
        _, given = self._alike((variable, term))
        if isinstance(given, Pair) and operation == "Product":
            self.assign(variable, self.op("MUL", variable, given))
            return
        for one, part in zip(self.parts(variable), self.parts(given), strict=True):
            total = self.t.combined(operation, self.register(one), self.full(self.register(part)))
            self.assign(one, Scalar(self, part.dtype, total))  # type: ignore[arg-type]

    @contextmanager
    def counted(self, extent: int | Scalar) -> Iterator[Scalar]:
        t = self.t
        if isinstance(extent, Scalar) and extent.known is not None:
            extent = int(extent.known)
        if isinstance(extent, int):
            rounds = t.constant(extent, (), INDEX)
            each: Any = None
            most: int | None = max(extent - 1, 0)
        else:
            each = self.register(extent)
            rounds = t.reduce(each, "Max", 0, range(len(each.shape)))
            most = None if extent.most is None else max(extent.most - 1, 0)
        counter = t.cell(t.constant(0, (), INDEX))
        one = t.constant(1, (), INDEX)
        with t.while_(lambda: t.compare("LT", counter.value, rounds)):
            j = counter.value
            if each is not None and each.shape:
                self.masks.append(t.compare("LT", *self.met([j, each])))
            yield self.scalar(INDEX, j, most=most)
            if each is not None and each.shape:
                self.masks.pop()
            counter.value = t.same("add", j, one)
        t.cells.remove(counter)

    @contextmanager
    def only_if(self, truth: Scalar) -> Iterator[Scalar]:
        if truth.known:
            yield self.number(0)
            return
        self.masks.append(self.register(truth))
        yield self.number(0)
        self.masks.pop()

    def loop(self, extent: int | Scalar, state: Sequence[Any], body: Callable[..., Any]) -> list[Scalar]:
        if isinstance(extent, Scalar) and extent.known is not None:
            extent = int(extent.known)
        if not isinstance(extent, int) or extent > UNROLLED:
            return super().loop(extent, state, body)
        found = [self._scalar(s, INDEX) for s in state]
        for j in range(extent):
            found = [self._scalar(s, f.dtype) for s, f in zip(body(self.number(j), list(found)), found, strict=True)]
        return found

    # --- reductions -----------------------------------------------------------------------------------

    def reduce(self, instruction: str, extents: Sequence[int], body: Callable[..., Any], first: Any) -> Scalar:
        """The scalars `body(j)` for all j in `extents`, combined by ADD, MUL, MAX or MIN, whose neutral is `first`."""
        base = len(self.axes)
        index: list[Scalar] = []
        for n in extents:
            if n == 1:
                index.append(self.number(0))
            else:
                self.axes.append(n)
                index.append(Place(self, Form(len(self.axes) - 1, 1, 0)))
        term = body(tuple(index))
        start = first(term.dtype) if callable(first) else first
        if isinstance(term, Pair) and instruction == "MUL":
            found = self._product_of_pairs(term, base)
        else:
            parts = [self._folded(part, ACCUMULATED[instruction], start, base) for part in self.parts(term)]
            found = self.pair(*parts) if isinstance(term, Pair) else parts[0]
        del self.axes[base:]
        return found

    def _folded(self, term: Scalar, operation: str, first: Any, base: int) -> Scalar:
        half = term.dtype.is_float and term.dtype.bits == 16
        value = self.full(self.t.converted(self.register(term), dtypes.float32) if half else self.register(term))
        found = self.t.reduce(value, operation, first, range(base, len(self.axes)))
        return self.scalar(term.dtype, self.t.converted(found, term.dtype))

    def _product_of_pairs(self, term: Pair, base: int) -> Scalar:
        """Products of complex numbers, one after another: their parts depend on each other."""
        t, whole, inner = self.t, tuple(self.axes[:base]), count(tuple(self.axes[base:]))
        terms = [t.reshape(self.full(self.register(part)), (*whole, inner)) for part in self.parts(term)]
        terms = [t.transpose(part, (base, *range(base))) for part in terms]
        axes, self.axes = self.axes, list(whole)
        total = self.variable(self.constant(1.0, term.dtype))
        with self.counted(inner) as j:
            factors = [
                Scalar(self, term.re.dtype, t.reshape(t.at_place(part, self.register(j)), whole))  # type: ignore[arg-type]
                for part in terms
            ]
            self.assign(total, self.op("MUL", total, self.pair(*factors)))
        self.axes = axes
        return total
