"""Fragments: matrices that the lanes of a sub-group hold together in registers, and what is done with them.

A fragment belongs to `LANES` neighbouring lanes of a block, lane 0 being one whose number in the block is a multiple of
`LANES`. A matrix of 8 rows of 8 numbers of 16 bits takes one U32 of each lane: lane l holds two neighbours of row
l / 4, in columns 2(l mod 4) and the next, the former in the lower half. Larger ones are made of such matrices:

    the left factor, 16 × 16    a0 rows 0-7, columns 0-7; a1 rows 8-15, columns 0-7; a2 and a3 the same, columns 8-15
    the right factor, 16 × 8    b0 and b1: terms 0-7 and 8-15, each turned: lane l has column l / 4, terms 2(l mod 4)
                                and the next
    sums, 16 × 8, in F32        c0 and c1: row l / 4, columns 2(l mod 4) and the next; c2 and c3: row l / 4 + 8

That is how NVIDIA's `mma.sync` and `ldmatrix` have them. The functions here are the meaning of `MatrixMultiply` and
`MatrixLoad`, over the lanes of many sub-groups at a time.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from eshkol.atlas.types import Array, Type

LANES = 32  # of a sub-group that holds fragments
ROWS, COLUMNS, TERMS = 16, 8, 16  # of the product of two fragments
SIDE = 8  # of the matrices that fragments are made of
LINE_BYTES = 16  # of a row of such a matrix
TYPES = frozenset({Type.F16, Type.BF16})  # of the factors

_LANE = np.arange(LANES)
LINE, PAIR = _LANE // 4, 2 * (_LANE % 4)  # the row of a matrix that a lane has a part of, and its first column


def halves(words: Array, ty: Type) -> Array:
    """The two numbers in each U32, as F64, along an axis of their own."""
    parts = np.stack([words & np.uint32(0xFFFF), words >> np.uint32(16)], axis=-1).astype(np.uint16)
    return parts.view(ty.dtype).astype(np.float64)


def multiply(ty: Type, a: Sequence[Array], b: Sequence[Array], c: Sequence[Array]) -> list[Array]:
    """The sums of a product of fragments: each operand is an array of as many values as there are lanes."""
    groups = c[0].size // LANES
    left = np.empty((groups, ROWS, TERMS))
    right = np.empty((groups, TERMS, COLUMNS))
    sums = np.empty((groups, ROWS, COLUMNS))
    places = [(LINE + SIDE * (k % 2), PAIR + SIDE * (k // 2)) for k in range(4)]  # of the four matrices of the left one
    for (line, pair), words in zip(places, a, strict=True):
        numbers = halves(words, ty).reshape(groups, LANES, 2)
        left[:, line, pair], left[:, line, pair + 1] = numbers[..., 0], numbers[..., 1]
    for half, words in enumerate(b):
        numbers = halves(words, ty).reshape(groups, LANES, 2)
        right[:, PAIR + SIDE * half, LINE] = numbers[..., 0]
        right[:, PAIR + SIDE * half + 1, LINE] = numbers[..., 1]
    for k, values in enumerate(c):
        sums[:, LINE + SIDE * (k // 2), PAIR + k % 2] = values.reshape(groups, LANES)
    # Products are exact in F64, and sums of infinities and NaN are what F32 would give.
    found = (sums + np.matmul(left, right)).astype(np.float32)
    return [found[:, LINE + SIDE * (k // 2), PAIR + k % 2].reshape(-1) for k in range(4)]


def loaded_from(number: int, *, transpose: bool) -> list[tuple[Array, Array]]:
    """Where the two numbers come from that each lane is given of a matrix, one of the four that `MatrixLoad` loads.

    Told by the lane, within the sub-group, whose address the row has, and the byte in that row.
    """
    if transpose:
        return [(SIDE * number + PAIR + k, 2 * LINE) for k in range(2)]
    return [(SIDE * number + LINE, 2 * (PAIR + k)) for k in range(2)]
