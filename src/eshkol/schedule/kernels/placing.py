"""The row that compiled graphs have for `x[2:5, ::2] = y`: x with the elements of y in the place of a slice of it.

As users write it, it is a choice between x and y put into zeros, by where those zeros are. In compiled code no array
of zeros is made, nor one that says where they are.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from eshkol.graph.node import Node, make
from eshkol.ops import dtypes
from eshkol.ops.elementwise import where
from eshkol.ops.movement import expand, expanded
from eshkol.ops.row import Aval, KernelOp, Op, Pull, row
from eshkol.ops.slicing import Pad, pad_constant
from eshkol.ops.structural import CONST


def _reference(a: Pad, x: Any, y: Any) -> Any:
    outside = pad_constant.reference(a, np.zeros(y.shape, np.bool_), np.asarray(True))
    return np.where(outside, x, pad_constant.reference(a, y, np.zeros((), y.dtype)))


def _pull(e: Any, a: Pad, i: Any, x: Any, y: Any) -> Any:
    how = pad_constant.lower
    assert isinstance(how, Pull)
    return how.code(e, a, i, y, lambda nowhere: x(i))


PLACED: Op = row(KernelOp(
    name="placed", doc="x with y in the place of a slice.", names=("x", "y"),
    infer=lambda a, x, y: Aval(x.shape, x.dtype), reference=_reference, lower=Pull(_pull),
))  # fmt: skip


def placed(node: Node) -> Node | None:
    """What a choice between a tensor and another one amid zeros is, where it says where those are."""
    assert node.op is where
    outside, x, amid = node.inputs
    pads = all(n.op is pad_constant and n.data is None for n in (outside, amid))
    if not pads or outside.attrs != amid.attrs or x.shape != node.shape or x.dtype is not node.dtype:
        return None
    inner, fill, y = outside.inputs[0], outside.inputs[1], amid.inputs[0]
    if not _is(inner, False) or not _is(fill, True) or inner.shape != y.shape or y.op is CONST or y.dtype.is_complex:
        return None
    front = len(x.shape) - len(amid.shape)  # axes in which all is placed alike, as vmap leaves them
    if amid.shape != x.shape[front:] or min((*outside.attrs.low, *outside.attrs.high), default=0) < 0 or 0 in y.shape:
        return None
    a = Pad(*((*(0,) * front, *along) for along in outside.attrs))
    return make(PLACED, (x, expanded(y, (*x.shape[:front], *y.shape))), a)


def _is(x: Node, truth: bool) -> bool:
    while x.op is expand and x.data is None:
        (x,) = x.inputs
    return x.op is CONST and x.dtype is dtypes.bool_ and bool(x.attrs.array.item()) is truth
