"""Decoding: attention of few queries to keys and values that lie in pages, as servers of language models keep them.

Comes in: queries, pages, and a table of the pages that each sample has. Goes out: what attention to those gives. It is
made of ops that are there; machines that have attention as a whole read the pages where they lie.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from eshkol.errors import DTypeError, ShapeError
from eshkol.ops.attention import GROUP, scaled_dot_product_attention
from eshkol.ops.creation import iota
from eshkol.ops.dtypes import int32
from eshkol.ops.elementwise import cast, less, where
from eshkol.ops.indexing import position, take
from eshkol.ops.movement import permute, reshape
from eshkol.ops.row import Draw, Value, composite, sample


def _fitting(query: Any, key_pages: Any, value_pages: Any, table: Any, lengths: Any) -> None:
    shown = (
        f"query {list(query.shape)}, key pages {list(key_pages.shape)}, value pages {list(value_pages.shape)}, table "
        f"{list(table.shape)} and lengths {list(lengths.shape)}"
    )
    if [x.ndim for x in (query, key_pages, value_pages, table, lengths)] != [4, 4, 4, 2, 1]:
        raise ShapeError(
            f"{shown} are not what paged attention takes",
            hint="batch × heads × queries × dim, twice pages × places × heads × dim, batch × pages, and batch",
        )
    if key_pages.shape[:3] != value_pages.shape[:3] or {table.shape[0], *lengths.shape} != {query.shape[0]}:
        raise ShapeError(f"{shown} do not fit: keys and values have pages alike, and each sample a row and a length")
    for what, x in (("the table", table), ("lengths", lengths)):
        if not x.dtype.is_integer:
            raise DTypeError(f"{what} of paged attention are integers, not {x.dtype}", hint="cast to int32")


def _one_by_one(
    query: Any, key_pages: Any, value_pages: Any, table: Any, lengths: Any, scale: float | None = None
) -> Any:
    """Each sample by itself, with its keys side by side."""
    found = []
    for q, row, length in zip(query, table, lengths, strict=True):
        places = [
            (int(row[n // key_pages.shape[1]]), n % key_pages.shape[1])
            for n in range(min(int(length), len(row) * key_pages.shape[1]))
        ]
        given = [
            np.stack([pages[at] for at in places] or [pages[0, :0].sum(0)], 1)[:, : len(places)]
            for pages in (key_pages, value_pages)
        ]
        found.append(scaled_dot_product_attention.reference(q[None], *(x[None] for x in given), scale=scale)[0])
    shape = (*query.shape[:-1], value_pages.shape[-1])
    return np.stack(found) if found else np.zeros(shape)


_PAGES = Draw((2, 3), kind="int", make=lambda rng: [[3, 0, 1], [2, 2, 2]])


@composite(
    group=GROUP, reference=_one_by_one, method=False,
    samples=(
        sample((2, 4, 1, 2), (4, 2, 2, 2), (4, 2, 2, 2), _PAGES, Draw((2,), kind="int", make=lambda rng: [5, 2])),
        sample((2, 1, 2, 3), (4, 2, 1, 3), (4, 2, 1, 1), _PAGES, Draw((2,), kind="int", make=lambda rng: [6, 0]),
               scale=0.5),
    ),
)  # fmt: skip
def paged_attention(
    query: Value, key_pages: Value, value_pages: Value, table: Value, lengths: Value, scale: float | None = None
) -> Any:
    """Attention of batch × heads × queries × dim to the keys of each sample, which lie in pages.

    Pages are pages × places × heads × dim; a row of the table says which ones a sample has, and lengths of how many
    places there are keys: entries for what is beyond them are not looked at, the others are checked. A multiple of
    query heads shares keys.
    """
    _fitting(query, key_pages, value_pages, table, lengths)
    count, places = key_pages.shape[:2]
    samples, most = table.shape
    begins = iota.on(table, (1, most), 1) * places
    used = where(less(begins, reshape(lengths, (samples, 1))), table, 0)
    entries = used if 0 in (count, samples, most) else cast(position(used, count, False), int32)
    keys, values = (
        permute(reshape(take(x, entries), (samples, most * places, *x.shape[2:])), (0, 2, 1, 3))
        for x in (key_pages, value_pages)
    )
    return scaled_dot_product_attention(query, keys, values, scale=scale, key_lengths=cast(lengths, int32))
