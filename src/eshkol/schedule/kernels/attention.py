"""The row of attention in fragments of matrices: 16-bit floats, read where they lie, with sums in float32.

No user calls it: `rewrite/attention.py` makes it of what `ops/attention.py` is composed of, for machines with
instructions for fragments; `block_attention.py` has the kernel.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from eshkol.ops import shapes
from eshkol.ops.contraction import wide
from eshkol.ops.row import STRUCTURE, Aval, NoDerivative, Op, Shape, row
from eshkol.schedule.kernels.products import View

_AFTER = NoDerivative("derivatives are taken before graphs are compiled", zero=False)


class SeenAttention(NamedTuple):
    """softmax(scale · q · kᵀ) · v of views of … × length × dim, whose axes in front broadcast.

    Causal: query t attends to keys 0 … t.
    """

    q: View
    k: View
    v: View
    scale: float
    causal: bool

    @property
    def batch(self) -> Shape:
        return shapes.broadcast(self.q.shape[:-2], self.k.shape[:-2], self.v.shape[:-2])

    @property
    def shape(self) -> Shape:
        """Of the result."""
        return (*self.batch, self.q.shape[-2], self.v.shape[-1])

    def steps(self, view: View) -> list[int]:
        """How far apart the matrices of a view lie along each axis of the batch."""
        batch = self.batch
        lead = len(batch) - len(view.shape) + 2
        return [
            view.strides[axis - lead] if axis >= lead and view.shape[axis - lead] > 1 else 0
            for axis in range(len(batch))
        ]


def _weights(a: SeenAttention, q: Any, k: Any) -> Any:
    scores = np.matmul(wide(a.q.array(q)), np.swapaxes(wide(a.k.array(k)), -1, -2)) * np.float32(a.scale)
    if a.causal:
        rows, columns = scores.shape[-2:]
        scores = np.where(np.arange(rows)[:, None] >= np.arange(columns), scores, -np.inf)
    with np.errstate(invalid="ignore"):
        found = np.exp(scores - scores.max(-1, keepdims=True))
    return found / found.sum(-1, keepdims=True)


SEEN_ATTENTION: Op = row(Op(
    name="seen_attention", doc="softmax(scale·q·kᵀ)·v of 16-bit floats that are read where they lie.", function=None,
    names=("q", "k", "v"), group=STRUCTURE, method=False, infer=lambda a, q, k, v: Aval(a.shape, q.dtype),
    reference=lambda a, q, k, v: np.matmul(_weights(a, q, k), wide(a.v.array(v))), derivative=_AFTER,
))  # fmt: skip
