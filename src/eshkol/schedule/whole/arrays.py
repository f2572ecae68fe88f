"""Operations on whole arrays, as lines of StableHLO; what it lacks, or leaves open, is said with others.

Comes in: values of the text. Goes out: others. Numbers that a check finds wrong are noted as the first fault.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from eshkol.ops import dtypes
from eshkol.ops.dtypes import DType
from eshkol.ops.row import Shape
from eshkol.ops.shapes import count
from eshkol.schedule.whole.text import Cell, Value, Writer, literal, numbers, type_of

PLACE = dtypes.int64
COMBINED = {"Sum": "add", "Product": "multiply", "Min": "minimum", "Max": "maximum"}
OF_TRUTHS = {"Sum": "or", "Product": "and", "Min": "and", "Max": "or"}


class Arrays(Writer):
    """Text of operations on arrays."""

    def __init__(self) -> None:
        super().__init__()
        self.fault: Cell = self.cell(self.constant(0, (), dtypes.int32))
        self.checks: list[Any] = []  # what each check says that fails; their numbers count from 1

    # --- numbers -------------------------------------------------------------------------------------

    def constant(self, number: Any, shape: Shape, dtype: DType) -> Value:
        """An array of one number."""
        target = self.fresh()
        self.line(f"{target} = stablehlo.constant dense<{literal(number, dtype)}> : {type_of(shape, dtype)}")
        return Value(target, shape, dtype)

    def table(self, array: Any, dtype: DType) -> Value:
        """An array that is known."""
        flat = np.ascontiguousarray(array, dtype.numpy)
        if flat.size == 0 or (flat == flat.flat[0]).all():
            return self.constant(flat.flat[0] if flat.size else 0, array.shape, dtype)
        target = self.fresh()
        if dtype.is_bool:
            shown = str(flat.tolist()).replace("T", "t").replace("F", "f")
        else:
            shown = f'"0x{flat.tobytes().hex().upper()}"'
        self.line(f"{target} = stablehlo.constant dense<{shown}> : {type_of(array.shape, dtype)}")
        return Value(target, tuple(array.shape), dtype)

    def iota(self, axis: int, shape: Shape, dtype: DType = PLACE) -> Value:
        """The places along an axis."""
        return self.op("iota", (), shape, dtype, f"iota_dimension = {axis} : i64")

    # --- element by element --------------------------------------------------------------------------

    def same(self, name: str, *operands: Value) -> Value:
        """An operation on arrays of one shape, which gives such an array."""
        return self.op(name, operands, operands[-1].shape, operands[-1].dtype)

    def compare(self, condition: str, x: Value, y: Value) -> Value:
        """Whether x EQ, NE, LT, LE, GT or GE y."""
        how = f"comparison_direction = #stablehlo<comparison_direction {condition}>"
        return self.op("compare", (x, y), x.shape, dtypes.bool_, how)

    def select(self, truth: Value, x: Value, y: Value) -> Value:
        return self.op("select", (truth, x, y), x.shape, x.dtype)

    def filled(self, number: Any, like: Value) -> Value:
        """A number in the shape and dtype of another value."""
        return self.constant(number, like.shape, like.dtype)

    def converted(self, x: Value, dtype: DType) -> Value:
        """As Atlas converts: floats to integers truncate and saturate, NaN becomes 0; to bool is `!= 0`."""
        if x.dtype is dtype:
            return x
        if dtype.is_bool:
            return self.compare("NE", x, self.filled(0, x))
        if dtype.is_complex and not x.dtype.is_complex:
            part = self.converted(x, dtype.real)
            return self.op("complex", (part, self.filled(0, part)), x.shape, dtype)
        if not (x.dtype.is_float and dtype.is_integer):
            return self.op("convert", (x,), x.shape, dtype)
        if x.dtype.bits == 16:
            x = self.op("convert", (x,), x.shape, dtypes.float32)
        least, most = dtype.limits()
        over = self.compare("GE", x, self.filled(float(most), x))
        under = self.compare("LE", x, self.filled(float(least), x))
        outside = self.same("or", self.same("or", over, under), self.compare("NE", x, x))
        found = self.op("convert", (self.select(outside, self.filled(0, x), x),), x.shape, dtype)
        found = self.select(under, self.filled(least, found), found)
        return self.select(over, self.filled(most, found), found)

    def combined(self, operation: str, x: Value, y: Value) -> Value:
        """Sum, Product, Min or Max of two; NaN if one is."""
        return self.same((OF_TRUTHS if x.dtype.is_bool else COMBINED)[operation], x, y)

    # --- where elements lie --------------------------------------------------------------------------

    def reshape(self, x: Value, shape: Shape) -> Value:
        return x if x.shape == shape else self.op("reshape", (x,), shape, x.dtype)

    def transpose(self, x: Value, axes: Sequence[int]) -> Value:
        if list(axes) == list(range(len(axes))):
            return x
        shape = tuple(x.shape[k] for k in axes)
        return self.op("transpose", (x,), shape, x.dtype, f"permutation = {numbers(axes)}")

    def reverse(self, x: Value, axes: Sequence[int]) -> Value:
        return self.op("reverse", (x,), x.shape, x.dtype, f"dimensions = {numbers(axes)}") if axes else x

    def spread(self, x: Value, shape: Shape, axes: Sequence[int] | None = None) -> Value:
        """An array repeated: its axes are those of the result that are named, by default its last ones."""
        if x.shape == shape:
            return x
        axes = range(len(shape) - len(x.shape), len(shape)) if axes is None else axes
        return self.op("broadcast_in_dim", (x,), shape, x.dtype, f"broadcast_dimensions = {numbers(axes)}")

    def slice(self, x: Value, start: Sequence[int], stop: Sequence[int], step: Sequence[int]) -> Value:
        """Part of an array; stop is exact or beyond the last element that is taken."""
        shape = tuple(max(0, -(-(b - a) // s)) for a, b, s in zip(start, stop, step, strict=True))
        if shape == x.shape:
            return x
        how = f"start_indices = {numbers(start)}, limit_indices = {numbers(stop)}, strides = {numbers(step)}"
        return self.op("slice", (x,), shape, x.dtype, how)

    def pad(
        self, x: Value, number: Value, low: Sequence[int], high: Sequence[int], between: Sequence[int] | None = None
    ) -> Value:
        """An array with a number around it, and between its elements."""
        gaps = [0] * len(x.shape) if between is None else list(between)
        shape = tuple(n + max(n - 1, 0) * g + a + b for n, g, a, b in zip(x.shape, gaps, low, high, strict=True))
        if not any((*low, *high, *gaps)):
            return x
        how = f"edge_padding_low = {numbers(low)}, edge_padding_high = {numbers(high)}"
        return self.op("pad", (x, number), shape, x.dtype, f"{how}, interior_padding = {numbers(gaps)}")

    def joined(self, values: Sequence[Value], axis: int) -> Value:
        """Arrays after one another along an axis."""
        shape = list(values[0].shape)
        shape[axis] = sum(x.shape[axis] for x in values)
        return self.op("concatenate", values, tuple(shape), values[0].dtype, f"dimension = {axis} : i64")

    def gathered(self, x: Value, positions: Value) -> Value:
        """The elements at flat positions, which are taken into range."""
        flat = self.reshape(x, (count(x.shape),))
        rank = len(positions.shape)
        how = "#stablehlo.gather<collapsed_slice_dims = [0], start_index_map = [0], "
        how = f"dimension_numbers = {how}index_vector_dim = {rank}>, slice_sizes = array<i64: 1>"
        return self.op("gather", (flat, positions), positions.shape, x.dtype, how + ", indices_are_sorted = false")

    def put(self, x: Value, positions: Value, new: Value, operation: str | None = None) -> Value:
        """A flat array with other elements at positions, or with them combined; those out of range are left out.

        Which of several elements for one position stays is not said: see `put_in_order`.
        """
        how = "#stablehlo.scatter<inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], "
        how = f"scatter_dimension_numbers = {how}index_vector_dim = {len(positions.shape)}>"
        how += ", indices_are_sorted = false, unique_indices = false"
        region = self._folding(x.dtype, lambda old, given: given if operation is None else
                               self.combined(operation, old, given))  # fmt: skip
        return self.several("scatter", (x, positions, new), [(x.shape, x.dtype)], how, [region])[0]

    def put_in_order(self, x: Value, positions: Value, new: Value) -> Value:
        """A flat array with other elements at positions, of several for one position the last.

        XLA promises nothing of the order, and on GPUs keeps none: so the numbers of the elements are put there first,
        of which the greatest stays.
        """
        number = self.reshape(self.iota(0, (count(new.shape),)), new.shape)
        last = self.put(self.constant(-1, x.shape, number.dtype), positions, number, "Max")
        none = self.filled(0, last)
        return self.select(self.compare("GE", last, none), self.gathered(new, self.same("maximum", last, none)), x)

    def at_place(self, x: Value, place: Value, extent: int = 1) -> Value:
        """So many elements along the first axis, from a place on."""
        zero = self.constant(0, (), place.dtype)
        shape = (extent, *x.shape[1:])
        starts = [place, *[zero] * (len(x.shape) - 1)]
        return self.op("dynamic_slice", (x, *starts), shape, x.dtype, f"slice_sizes = {numbers(shape)}")

    def put_at(self, x: Value, new: Value, place: Value) -> Value:
        """An array with others from a place along its first axis on."""
        zero = self.constant(0, (), place.dtype)
        starts = [place, *[zero] * (len(x.shape) - 1)]
        return self.op("dynamic_update_slice", (x, new, *starts), x.shape, x.dtype)

    # --- reductions ----------------------------------------------------------------------------------

    def _folding(self, dtype: DType, code: Callable[[Value, Value], Value]) -> list[str]:
        with self.region() as lines:
            old, new = (Value(self.fresh(), (), dtype) for _ in range(2))
            self.line(f"^bb0({old.name}: {old.type}, {new.name}: {new.type}):")
            self.give([code(old, new)])
        return lines

    def reduce(self, x: Value, operation: str, first: Any, axes: Sequence[int]) -> Value:
        """The elements along axes combined."""
        if not axes:
            return x
        shape = tuple(n for k, n in enumerate(x.shape) if k not in axes)
        region = self._folding(x.dtype, lambda old, new: self.combined(operation, old, new))
        start = self.constant(first, (), x.dtype)
        return self.several("reduce", (x, start), [(shape, x.dtype)], f"dimensions = {numbers(axes)}", [region])[0]

    def any(self, truth: Value) -> Value:
        """Whether one holds."""
        return self.reduce(truth, "Max", False, range(len(truth.shape)))

    # --- checks --------------------------------------------------------------------------------------

    def refuse(self, wrong: Value, said: Any) -> None:
        """Note that something is wrong, if one of these holds and nothing was wrong before."""
        if said not in self.checks:
            self.checks.append(said)
        none = self.compare("EQ", self.fault.value, self.constant(0, (), dtypes.int32))
        here = self.same("and", none, self.any(wrong))
        number = self.constant(self.checks.index(said) + 1, (), dtypes.int32)
        self.fault.value = self.select(here, number, self.fault.value)
