"""Rows that compiled graphs have for scans: along an axis that is not the last, and of extremes without their places.

Scans along other axes than the last are done many side by side, row after row.

A lane that goes down one column alone reads a cache line for each element. Here a lane has a stretch of columns: each
of its rows is the row before it, as it was written, combined with the input's. 16-bit floats keep their totals
elsewhere.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from eshkol.graph.node import Node, make
from eshkol.ops import dtypes
from eshkol.ops.row import Aval, HasAval, KernelOp, Op, Push, Shape, row
from eshkol.ops.scans import Scan, cumargmax, cumargmin, cumprod, cumsum
from eshkol.ops.shapes import count

WIDEST = 256  # columns of a lane: narrower ones take longer, as rows lie far apart
NARROWEST = 64  # columns that are worth it


def _columns(a: Scan, x: HasAval) -> int:
    return count(x.shape[a.axis + 1 :])


def _lanes(a: Scan, x: HasAval) -> Shape:
    return count(x.shape[: a.axis]), -(-_columns(a, x) // WIDEST)


def _beside(op: Op, instruction: str) -> Op:
    def code(e: Any, a: Scan, lane: Any, write: Any, x: Any) -> None:
        extent, columns, (_, lanes) = x.shape[a.axis], _columns(a, x), _lanes(a, x)
        dtype, width, left = dtypes.summed(x.dtype), columns // lanes, columns % lanes

        def down(start: Any, width: int) -> None:
            """All rows of so many columns. Loops of a length that is known need no checks, and become vectors."""

            def position(j: Any, k: Any) -> Any:
                place = extent - 1 - j if a.reverse else j
                return (lane[0] * extent + place) * columns + start + k

            with e.counted(width) as k:
                here = position(e.number(0), k)
                write.store(here, e.convert(x.load(here), dtype))
            with e.counted(extent - 1) as j, e.counted(width) as k:
                here = position(j + 1, k)
                write.store(here, e.op(instruction, write.load(position(j, k)), e.convert(x.load(here), dtype)))

        down(lane[1] * width, width)
        if left:  # for the last lane
            times = e.select(e.compare("EQ", lane[1], lanes - 1), e.number(1), e.number(0))
            with e.counted(e.at_most(times, 1)):
                down(columns - left, left)

    return row(KernelOp(
        name=f"{op.name}_beside", doc=f"{op.name} along an axis that is not the last.", names=("x",), infer=op.infer,
        reference=op.reference, lower=Push(_lanes, code), work=op.work,
    ))  # fmt: skip


BESIDE = {cumsum: _beside(cumsum, "ADD"), cumprod: _beside(cumprod, "MUL")}


def beside(node: Node) -> Node | None:
    """A scan along an axis that is not the last, as one of many side by side."""
    (x,) = node.inputs
    wide = not x.dtype.is_complex and dtypes.summed(x.dtype).bits > 16
    if not wide or not count(x.shape) or _columns(node.attrs, x) < NARROWEST or x.shape[node.attrs.axis] < 2:
        return None
    return make(BESIDE[node.op], (x,), node.attrs)


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
