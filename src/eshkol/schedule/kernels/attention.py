"""The rows of attention in fragments of matrices: 16-bit floats, read where they lie, with sums in float32.

No user calls them: `rewrite/attention.py` makes them of what `ops/attention.py` is composed of and of its derivatives,
for machines with instructions for fragments; `block_attention.py` and `block_attention_gradients.py` have the kernels.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from eshkol.ops import dtypes, shapes
from eshkol.ops.contraction import wide
from eshkol.ops.row import HOST, Aval, HasAval, KernelOp, Op, Shape, row
from eshkol.schedule.kernels.products import View
from eshkol.support import threefry

LAST = ("mask", "lengths", "spans", "dropout_key")


class SeenAttention(NamedTuple):
    """softmax(scale · q · kᵀ) · v of views of … × length × dim, whose axes in front broadcast.

    Causal: query t attends to keys 0 … t. Window: to keys that are fewer than so many places away, unless it is 0.
    There may be a mask, of the batch × queries × keys, which is read after these: truth values, or float32 to be added
    to scores. A query that sees nothing has a result of 0, and +∞ for the logarithm of its sum. With dropout, weights
    are left out whose byte of random bits is less. Samples may have fewer keys, of which the lengths are so far apart
    along the axes of the batch, and places may be those of packed sequences, each with a span. Read last are whichever
    there are of a mask, lengths, spans, and a key of dropout.
    """

    q: View
    k: View
    v: View
    scale: float
    causal: bool
    window: int = 0
    mask: View | None = None
    dropout: int = 0
    lengths: tuple[int, ...] | None = None
    packed: bool = False

    @property
    def last(self) -> list[str]:
        """What is read last."""
        there = self.mask is not None, self.lengths is not None, self.packed, self.dropout > 0
        return [name for name, is_there in zip(LAST, there, strict=True) if is_there]

    @property
    def in_part(self) -> bool:
        """Whether there may be queries that see nothing."""
        return self.window > 0 or self.mask is not None or self.lengths is not None or self.packed

    @property
    def batch(self) -> Shape:
        return shapes.broadcast(self.q.shape[:-2], self.k.shape[:-2], self.v.shape[:-2])

    @property
    def grouped(self) -> bool:
        """Whether heads along the last axis of the batch share keys and values."""
        shared = all(len(view.shape) > 2 and view.shape[-3] == 1 for view in (self.k, self.v))
        return shared and self.batch[-1] > 1

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


def _scores(a: SeenAttention, q: Any, k: Any, *masks: Any) -> Any:
    scores = np.matmul(wide(a.q.array(q)), np.swapaxes(wide(a.k.array(k)), -1, -2)) * np.float32(a.scale)
    apart = np.arange(scores.shape[-2])[:, None] - np.arange(scores.shape[-1])
    if a.causal:
        scores = np.where(apart >= 0, scores, -np.inf)
    if a.window:
        scores = np.where(abs(apart) < a.window, scores, -np.inf)
    given, places = dict(zip(a.last, masks, strict=True)), np.arange(scores.shape[-1])
    if a.mask is not None:
        seen = a.mask.array(given["mask"])
        scores = np.where(seen, scores, -np.inf) if seen.dtype == np.bool_ else scores + seen
    if a.lengths is not None:
        lengths = View(0, a.batch, a.lengths).array(given["lengths"])
        scores = np.where(places < lengths[..., None, None], scores, -np.inf)
    if a.packed:
        begin, end = given["spans"][..., None]
        scores = np.where((places >= begin) & (places < end), scores, -np.inf)
    return scores


def _shared(a: SeenAttention, x: Any, given: Sequence[Any]) -> Any:
    """Weights, or what is multiplied with them, with dropout."""
    if not a.dropout:
        return x
    queries, keys = x.shape[-2:]
    left_out = threefry.dropped(given[-1], math.prod(a.batch), queries, keys, a.dropout).reshape(x.shape)
    return np.where(left_out, np.float32(0), x * np.float32(threefry.kept(a.dropout)))


def _with_sums(a: SeenAttention, q: Any, k: Any, v: Any, *masks: Any) -> tuple[Any, Any]:
    scores = _scores(a, q, k, *masks)
    greatest = scores.max(-1, keepdims=True)
    with np.errstate(invalid="ignore", divide="ignore"):
        powers = np.exp(scores - greatest)
        total = powers.sum(-1, keepdims=True)
        weights, sums = powers / total, (greatest + np.log(total)) / np.log(2)
    if a.in_part:
        weights, sums = (np.where(np.isneginf(greatest), x, y) for x, y in ((0, weights), (np.inf, sums)))
    return np.matmul(_shared(a, weights, masks), wide(a.v.array(v))), sums.astype(np.float32)[..., 0]


SEEN_ATTENTION: Op = row(KernelOp(
    name="seen_attention", doc="softmax(scale·q·kᵀ)·v of 16-bit floats that are read where they lie.",
    names=("q", "k", "v"), infer=lambda a, q, *rest: Aval(a.shape, q.dtype),
    reference=lambda a, *given: _with_sums(a, *given)[0], lower=HOST,
))  # fmt: skip
SUMMED_ATTENTION: Op = row(KernelOp(
    name="summed_attention", doc="The same, and the logarithm to base 2 of each row's sum of e^(scale·q·kᵀ).",
    names=("q", "k", "v"), infer=lambda a, q, *rest: (Aval(a.shape, q.dtype), Aval(a.shape[:-1], dtypes.float32)),
    reference=_with_sums, lower=HOST,
))  # fmt: skip


class PagedAttention(NamedTuple):
    """Attention of dense queries, batch × heads × members × queries × dim, to keys in pages.

    Pages are dense, pages × places × heads × dim; the members of a head are those that share its keys.
    """

    queries: Shape
    scale: float


def _paged(a: PagedAttention, q: Any, keys: Any, values: Any, table: Any, lengths: Any) -> Any:
    found = np.zeros(a.queries, np.float32)
    queries, places = wide(q).reshape(a.queries), keys.shape[1]
    for n, length in enumerate(lengths):
        entries = table[n, : -(-int(length) // places)]
        k, v = (wide(x[entries]).reshape(-1, *x.shape[2:])[:length].swapaxes(0, 1)[:, None] for x in (keys, values))
        if length > 0:
            scores = queries[n] @ k.swapaxes(-1, -2) * np.float32(a.scale)
            powers = np.exp(scores - scores.max(-1, keepdims=True))
            found[n] = powers / powers.sum(-1, keepdims=True) @ v
    return found


PAGED_ATTENTION: Op = row(KernelOp(
    name="paged_kernel", doc="Attention of 16-bit floats to keys and values in pages, which a table names.",
    names=("q", "keys", "values", "table", "lengths"), infer=lambda a, q, *rest: Aval(a.queries, q.dtype),
    reference=_paged, lower=HOST,
))  # fmt: skip


class AttentionGradients(NamedTuple):
    """Attention, and how the cotangent of its result is seen."""

    attention: SeenAttention
    cotangent: View


def _infer_gradients(a: AttentionGradients, q: HasAval, *rest: HasAval) -> tuple[Aval, ...]:
    return tuple(Aval(view.shape, q.dtype) for view in a.attention[:3])


def _gradients(
    a: AttentionGradients, q: Any, k: Any, v: Any, ct: Any, sums: Any, inner: Any, *masks: Any
) -> tuple[Any, ...]:
    """Those of q, k and v, of the sums that attention gives, and of ct · result for each query."""
    seen = a.attention
    weights = np.exp2(_scores(seen, q, k, *masks) / np.float32(np.log(2)) - sums[..., None])
    (q, k, v), ct = (wide(view.array(x)) for view, x in zip(seen[:3], (q, k, v), strict=True)), a.cotangent.array(ct)
    ct = wide(ct)
    slopes = _shared(seen, np.matmul(ct, np.swapaxes(v, -1, -2)), masks) - inner[..., None]
    of_scores, weights = weights * slopes * np.float32(seen.scale), _shared(seen, weights, masks)
    turned = np.swapaxes(of_scores, -1, -2)
    found = np.matmul(of_scores, k), np.matmul(turned, q), np.matmul(np.swapaxes(weights, -1, -2), ct)
    if not seen.grouped:
        return found
    return found[0], *(x.sum(-3, keepdims=True) for x in found[1:])


ATTENTION_GRADIENTS: Op = row(KernelOp(
    name="attention_gradients", doc="The gradients of q, k and v, for a cotangent of what attention gives.",
    names=("q", "k", "v", "ct", "sums", "inner"), infer=_infer_gradients, reference=_gradients, lower=HOST,
))  # fmt: skip
