"""Attention to keys and values that were gathered from pages, as kernels that read pages where they lie have it.

Comes in: attention that was found (`attention.py`), with what its operands are read from. Goes out: what is read of the
pages and their table instead, where the gathered ones are all that `ops/attention_pages.py` says and nothing else.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from eshkol.graph.node import Node
from eshkol.ops import dtypes
from eshkol.ops.shapes import count
from eshkol.schedule.kernels.array_products import reads_pages
from eshkol.schedule.kernels.attention import PagedAttention, SeenAttention
from eshkol.schedule.kernels.products import View, dense
from eshkol.schedule.rewrite.patterns import Operand


class Paged(NamedTuple):
    """Attention to what a table names: what is read of it (queries, pages of keys and of values, table, lengths)."""

    read: tuple[Node, ...]
    attrs: PagedAttention


def paged(operands: Sequence[Operand], attrs: SeenAttention, shared: int, further: Sequence[Node]) -> Paged | None:
    """The same of pages, whose gathered keys and values the operands are, with lengths as all that is said further."""
    q, k, v = operands
    plain = attrs._replace(lengths=None) == SeenAttention(*attrs[:4], causal=False)
    batch = attrs.batch if shared > 1 else (*attrs.batch, 1)
    if not plain or len(further) != 1 or len(batch) != 3:
        return None
    (pages, table), lengths = k.base.inputs, further[0]
    (others, same), taken = v.base.inputs, k.base.attrs
    if same is not table or others.shape != pages.shape or table.dtype is not dtypes.int32 or v.base.attrs != taken:
        return None
    if (taken.axis, taken.batch, table.ndim, pages.ndim) != (0, 0, 2, 4):
        return None
    _, places, heads, width = pages.shape
    samples, most = table.shape
    line = heads * width
    shape, strides = [samples, heads, most * places, width], [most * places * line, width, line, 1]
    if shared > 1:
        shape.insert(2, 1)
        strides.insert(2, 0)
    if any(x.view != View(0, tuple(shape), tuple(strides)) for x in (k, v)) or lengths.shape != (samples,):
        return None
    queries = (*batch, q.view.shape[-2], width)
    steps = zip(q.view.shape, q.view.strides, dense(q.view.shape), strict=True)
    whole = q.view.offset == 0 and q.base.size == count(queries)
    if not whole or any(n > 1 and step != wanted for n, step, wanted in steps) or not reads_pages(queries, places):
        return None
    return Paged((q.base, pages, others, table, lengths), PagedAttention(queries, attrs.scale))
