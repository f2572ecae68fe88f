"""Array instructions over one memory operand at a time: reductions, maps, higher-order reduce.

Sums and products of floats may be taken in any order: forms agree within n·ε of the sum of magnitudes.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from eshkol.atlas import numerics as nx
from eshkol.atlas.isa import Arrays, CodeBuilder, Field, Group, Instruction
from eshkol.atlas.operands import BinaryMapOperation, MapOperation, ReduceOperation, Register
from eshkol.atlas.table import emit
from eshkol.atlas.table.rows import ROWS, TY, choice, count, out, read, row, write
from eshkol.atlas.types import ALL_TYPES, Array, Type
from eshkol.errors import IsaError


def identity(operation: ReduceOperation, ty: Type) -> int | float:
    """What a reduction of no elements gives."""
    if operation is ReduceOperation.Sum:
        return 0
    if operation is ReduceOperation.Product:
        return 1
    if ty.is_float:
        return float("inf") if operation is ReduceOperation.Min else float("-inf")
    return ty.max_value if operation is ReduceOperation.Min else ty.min_value


def fold(operation: ReduceOperation, ty: Type, values: Array, axis: int = 0) -> Array:
    """A reduction along an axis; integer sums and products wrap, Min and Max pass over NaN."""
    start = identity(operation, ty)
    with np.errstate(all="ignore"):
        if operation is ReduceOperation.Sum:
            total: Any = np.add.reduce(values, axis, dtype=values.dtype, initial=start)
        elif operation is ReduceOperation.Product:
            total = np.multiply.reduce(values, axis, dtype=values.dtype, initial=start)
        elif operation is ReduceOperation.Min:
            total = (np.fmin if ty.is_float else np.minimum).reduce(values, axis, initial=start)
        else:
            total = (np.fmax if ty.is_float else np.maximum).reduce(values, axis, initial=start)
    if values.size and ty.is_float and operation in (ReduceOperation.Min, ReduceOperation.Max):
        total = np.where(np.isnan(values).all(axis), np.nan, total)
    result = np.empty(np.shape(total), values.dtype)
    result[...] = total
    return result


def _expand_reduce(b: CodeBuilder, i: Instruction, operation: ReduceOperation) -> None:
    step = ROWS[operation.value]
    ty, compute = i.ty, emit.compute_type(i.ty)
    total = emit.scalar(b, ty, float("nan") if _starts_empty(operation, i) else identity(operation, ty))
    with b.loop(i.count) as k:
        b.add(step(total, total, emit.fetch(b, i.src_array, k, ty)))
    if compute is ty:
        b.mov(i.dst, total)
    else:
        b.cvt(compute, ty, i.dst, total)


def _starts_empty(operation: ReduceOperation, i: Instruction) -> bool:
    """Whether NaN is the right start: Min and Max of floats then give NaN only if every element is NaN."""
    extreme = operation in (ReduceOperation.Min, ReduceOperation.Max)
    return bool(extreme and i.ty.is_float and i.count > 0)


SOURCE = read("src_array", lambda i: (i.count,))
FIELDS = (TY, out("dst", "ty"), SOURCE, count("count"))

for _name, _operation, _doc in (
    ("ReduceAdd", ReduceOperation.Sum, "dst = the sum of count elements; 0 of none"),
    ("ReduceMin", ReduceOperation.Min, "dst = the least of count elements; NaN only if all are"),
    ("ReduceMax", ReduceOperation.Max, "dst = the greatest of count elements; NaN only if all are"),
    ("ReduceMul", ReduceOperation.Product, "dst = the product of count elements; 1 of none"),
):
    row(_name, Group.REDUCTION, _doc, FIELDS,
        Arrays(lambda i, x, op=_operation: (fold(op, i.ty, x),)), ALL_TYPES,
        expand=lambda b, i, op=_operation: _expand_reduce(b, i, op), traps=True)  # fmt: skip


def _map_meaning(i: Instruction, *inputs: Array) -> tuple[Array, ...]:
    scalar = ROWS[i.operation.value](*(Register(k) for k in range(len(inputs) + 1)))
    return (nx.evaluate(scalar, [a.astype(i.ty.dtype) for a in inputs], i.ty),)


def _check_map(i: Instruction) -> None:
    if i.ty not in ROWS[i.operation.value].types:
        raise IsaError(f"{i.op.name}.{i.ty}.{i.operation}: {i.operation} is not defined on {i.ty}", span=i.span)


def _expand_map(b: CodeBuilder, i: Instruction) -> None:
    sources = [i.src_array] if hasattr(i, "src_array") else [i.src_a, i.src_b]
    with b.loop(i.count) as k:
        values = [emit.fetch(b, source, k, i.ty, i.ty) for source in sources]
        result = b.reg(i.ty)
        scalar = ROWS[i.operation.value](result, *values)
        if scalar.op.expand is not None:
            scalar.op.expand(b, scalar)
        else:
            b.add(scalar)
        emit.put(b, i.dst_array, k, i.ty, result, i.ty)


def _array(name: str) -> Field:
    return read(name, lambda i: (i.count,))


H = Group.HIGHER_ORDER
TARGET = write("dst_array", lambda i: (i.count,))
row("ParallelMap", H, "dst_array[k] = operation(src_array[k]) for count elements",
    (TY, choice("operation", MapOperation), TARGET, _array("src_array"), count("count")),
    Arrays(_map_meaning), ALL_TYPES, expand=_expand_map, check=_check_map, traps=True, in_place=True)  # fmt: skip
row("ParallelMapBinary", H, "dst_array[k] = operation(src_a[k], src_b[k]) for count elements",
    (TY, choice("operation", BinaryMapOperation), TARGET, _array("src_a"), _array("src_b"), count("count")),
    Arrays(_map_meaning), ALL_TYPES, expand=_expand_map, check=_check_map, traps=True, in_place=True)  # fmt: skip
row("ParallelReduce", H, "dst = the reduction of count elements",
    (TY, choice("operation", ReduceOperation), out("dst", "ty"), SOURCE, count("count")),
    Arrays(lambda i, x: (fold(i.operation, i.ty, x),)), ALL_TYPES,
    expand=lambda b, i: _expand_reduce(b, i, i.operation), traps=True)  # fmt: skip
