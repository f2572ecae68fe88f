"""Rows that compiled graphs have for scans: along an axis that is not the last, and of extremes without their places.

Scans along other axes than the last are done many side by side, row after row; along the last, a few rows in turns.

A lane that goes down one column alone reads a cache line for each element. Here a lane has a stretch of columns: each
of its rows is the row before it, as it was written, combined with the input's. 16-bit floats keep their totals
elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from eshkol.graph.node import Node, make
from eshkol.ops import dtypes
from eshkol.ops.dtypes import DType
from eshkol.ops.row import Aval, HasAval, KernelOp, Op, Push, Shape, row
from eshkol.ops.scans import Scan, cumargmax, cumargmin, cumprod, cumsum, recurrence
from eshkol.ops.shapes import count

WIDEST = 256  # columns of a lane: narrower ones take longer, as rows lie far apart
NARROWEST = 64  # columns that are worth it
ABREAST = 4  # rows of the last axis that a lane goes along in turns
MANY_ROWS = 64  # of which there is then enough for all cores


def _columns(a: Scan, x: HasAval) -> int:
    return count(x.shape[a.axis + 1 :])


def _lanes(a: Scan, x: HasAval) -> Shape:
    return count(x.shape[: a.axis]), -(-_columns(a, x) // WIDEST)


def _working(dtype: DType) -> DType:
    """The dtype in which totals of a dtype grow."""
    return dtypes.float32 if dtype.is_float and dtype.bits == 16 else dtype


Step = Callable[[Any, Any, Any, Any], Any]  # what follows in a column: (e, a row before, a position, the inputs)


def _beside(op: Op, names: tuple[str, ...], first: Callable[..., Any], then: Step) -> Op:
    def code(e: Any, a: Scan, lane: Any, write: Any, *given: Any) -> None:
        x = given[0]
        extent, columns, (_, lanes) = x.shape[a.axis], _columns(a, x), _lanes(a, x)
        width, left = columns // lanes, columns % lanes

        def down(start: Any, width: int) -> None:
            """All rows of so many columns. Loops of a length that is known need no checks, and become vectors."""

            def position(j: Any, k: Any) -> Any:
                place = extent - 1 - j if a.reverse else j
                return (lane[0] * extent + place) * columns + start + k

            with e.counted(width) as k:
                here = position(e.number(0), k)
                write.store(here, first(e, here, given))
            with e.counted(extent - 1) as j, e.counted(width) as k:
                here = position(j + 1, k)
                write.store(here, then(e, write.load(position(j, k)), here, given))

        down(lane[1] * width, width)
        if left:  # for the last lane
            times = e.select(e.compare("EQ", lane[1], lanes - 1), e.number(1), e.number(0))
            with e.counted(e.at_most(times, 1)):
                down(columns - left, left)

    return row(KernelOp(
        name=f"{op.name}_beside", doc=f"{op.name} along an axis that is not the last.", names=names, infer=op.infer,
        reference=op.reference, lower=Push(lambda a, x, *others: _lanes(a, x), code), work=op.work,
    ))  # fmt: skip


def _abreast(op: Op, names: tuple[str, ...], first: Callable[..., Any], then: Step) -> Op:
    """Rows of the last axis, several of them in turns: a sum waits for the one before it, but not for other rows'."""

    def code(e: Any, a: Scan, lane: Any, write: Any, *given: Any) -> None:
        extent = given[0].shape[-1]
        starts = [(lane[0] * ABREAST + k) * extent for k in range(ABREAST)]

        def place(j: Any) -> Any:
            return extent - 1 - j if a.reverse else j

        totals = []
        for start in starts:
            here = start + place(e.number(0))
            totals.append(e.variable(first(e, here, given)))
            write.store(here, e.convert(totals[-1], write.dtype))
        with e.counted(extent - 1) as j:
            places = [start + place(j + 1) for start in starts]
            for total, here in zip(totals, places, strict=True):
                e.assign(total, then(e, total, here, given))
            for total, here in zip(totals, places, strict=True):
                write.store(here, e.convert(total, write.dtype))

    return row(KernelOp(
        name=f"{op.name}_abreast", doc=f"{op.name} along the last axis, several rows at a time.", names=names,
        infer=op.infer, reference=op.reference, work=op.work,
        lower=Push(lambda a, x, *others: (count(x.shape[:-1]) // ABREAST,), code),
    ))  # fmt: skip


def _both(op: Op, names: tuple[str, ...], first: Callable[..., Any], then: Step) -> tuple[Op, Op]:
    return _beside(op, names, first, then), _abreast(op, names, first, then)


def _total(op: Op, instruction: str) -> tuple[Op, Op]:
    def read(e: Any, here: Any, given: Any) -> Any:
        return e.convert(given[0].load(here), _working(dtypes.summed(given[0].dtype)))

    return _both(op, ("x",), read, lambda e, before, here, given: e.op(instruction, before, read(e, here, given)))


def _added(e: Any, here: Any, given: Any) -> Any:
    return e.convert(given[1].load(here), _working(given[1].dtype))


def _recurs(e: Any, before: Any, here: Any, given: Any) -> Any:
    gains, x = (e.convert(y.load(here), _working(y.dtype)) for y in given)
    return e.op("ADD", e.op("MUL", gains, before), x)


BESIDE = {
    cumsum: _total(cumsum, "ADD"), cumprod: _total(cumprod, "MUL"),
    recurrence: _both(recurrence, ("gains", "x"), _added, _recurs),
}  # fmt: skip


def beside(node: Node) -> Node | None:
    """A scan along an axis that is not the last, as one of many side by side; along the last, of several in turns."""
    x = node.inputs[-1]
    if x.dtype.is_complex or not count(x.shape) or x.shape[node.attrs.axis] < 2:
        return None
    columns, (down, abreast) = _columns(node.attrs, x), BESIDE[node.op]
    if columns >= NARROWEST and dtypes.summed(x.dtype).bits > 16:
        return make(down, node.inputs, node.attrs)
    rows = count(x.shape[:-1])
    if node.attrs.axis == len(x.shape) - 1 and rows >= MANY_ROWS and rows % ABREAST == 0:
        return make(abreast, node.inputs, node.attrs)
    return None


def _extreme(name: str, condition: str, reference: Any) -> Op:
    """The extremes of all elements up to each along the last axis; NaN stays."""

    def code(e: Any, a: None, lane: Any, write: Any, x: Any) -> None:
        places = list(lane)

        def step(j: Any, state: Any) -> Any:
            value = x([*places, j])
            better = e.compare(condition, value, state[0])
            if value.dtype.is_float:
                better = e.op("OR", better, e.compare("NE", value, value))
            best = e.select(better, value, state[0])
            write([*places, j], best)
            return [best]

        e.loop(x.shape[-1], [x([*places, 0])], step)

    return row(KernelOp(
        name=name, doc="Extremes of all elements up to each along the last axis.", names=("x",),
        infer=lambda a, x: Aval(x.shape, x.dtype), reference=lambda a, x: reference.accumulate(x, axis=-1),
        lower=Push(lambda a, x: x.shape[:-1], code), work=cumsum.work,
    ))  # fmt: skip


EXTREMES = {
    cumargmax: _extreme("cummax_value", "GE", np.maximum), cumargmin: _extreme("cummin_value", "LE", np.minimum),
}  # fmt: skip
