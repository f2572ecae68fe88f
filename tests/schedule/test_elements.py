"""Elements of inputs that lie differently, computed in rows: against each op's NumPy, on both backends."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from fusing import leaf, run
from hypothesis import given
from hypothesis import strategies as st

from eshkol.atlas.machines import CORES
from eshkol.graph import interpret
from eshkol.graph.node import Node
from eshkol.ops import dtypes
from eshkol.ops.elementwise import exp
from eshkol.ops.joining import concatenate, roll
from eshkol.ops.movement import expand, flip, permute
from eshkol.ops.padding import UNBORDERED, Unbordering, pad
from eshkol.ops.slicing import slice_
from eshkol.schedule.kernels.emit import Emitter
from eshkol.schedule.kernels.kernel import Kernel
from eshkol.schedule.kernels.lower import lowered
from eshkol.schedule.kernels.scalars import FOLDED, Scalar, bounds, compared
from eshkol.tensors.devices import open_backend

PIECE, STRIP = 40, 16  # less than in use, so that little has to be computed
SMALL = replace(CORES, piece=PIECE, strip=STRIP, part_work=100)
CASES = {
    "a row to a matrix": lambda: leaf(5, 33) + leaf(33),
    "a column to a matrix": lambda: leaf(5, 33) * leaf(5, 1),
    "both": lambda: leaf(19, 1) + leaf(40),
    "channels": lambda: leaf(2, 3, 4, 5) * leaf(3, 1, 1),
    "the axis between": lambda: leaf(4, 1, 12) + leaf(4, 5, 12),
    "short rows": lambda: leaf(50, 3) + leaf(3),
    "halves": lambda: leaf(6, 17, dtype=dtypes.float16) + leaf(17, dtype=dtypes.float16),
    "few long rows, in whole parts": lambda: leaf(2, 2 * PIECE) + leaf(2, 1),
    "few long rows, with a rest": lambda: leaf(2, 2 * PIECE + 37) + leaf(2, 1),
    "one long row": lambda: slice_(leaf(PIECE * 2 + 11), start=(3,)),
    "expanded": lambda: exp(expand(leaf(9, 1, 8), (9, 3, 8))),
    "cut": lambda: slice_(leaf(9, 40), start=(2, 3), stop=(8, 39), step=(1, 2)),
    "flipped": lambda: flip(leaf(9, 21), 1),
    "joined behind": lambda: concatenate([leaf(3, 9), leaf(3, 2), leaf(3, 11)], 1),
    "joined below": lambda: concatenate([leaf(3, 9), leaf(2, 9)], 0),
    "padded": lambda: pad(leaf(5, 10), ((1, 2), (3, 0)), 7),
    "padded by less than nothing": lambda: pad(leaf(5, 30), ((0, 0), (-2, -3))),
    "padded between": lambda: pad(leaf(5, 10), ((0, 0), (2, 1)), 1, interior=1),
    "mirrored": lambda: pad(leaf(5, 30), ((2, 1), (3, 9)), mode="reflect"),
    "mirrored behind": lambda: pad(leaf(3, 2, 11), ((0, 0), (0, 0), (0, 10)), mode="reflect"),
    "repeated at the ends": lambda: pad(leaf(5, 30), ((2, 1), (12, 0)), mode="replicate"),
    "wrapped around": lambda: pad(leaf(5, 30), ((2, 5), (3, 9)), mode="circular"),
    "short rows, wrapped around": lambda: pad(leaf(9, 2), ((2, 5), (2, 1)), mode="circular"),
    "one long row, mirrored": lambda: pad(leaf(3 * PIECE + 5), (7, PIECE + 2), mode="reflect"),
    "one long row, wrapped around": lambda: pad(leaf(2 * PIECE), (2 * PIECE, PIECE), mode="circular"),
    "few long rows, repeated at the ends": lambda: pad(leaf(2, 3 * PIECE + 5), ((1, 0), (7, 2)), mode="replicate"),
    "few long rows, padded": lambda: pad(leaf(2, 3 * PIECE), ((1, 0), (7, PIECE)), 3),
    "without a border": lambda: unbordered(leaf(3, 7, 30), 1, 1, 2, "reflect"),
    "rows without a border": lambda: unbordered(leaf(5, 30), 1, 2, 9, "reflect"),
    "rows without borders as long as they": lambda: unbordered(leaf(5, 28), 1, 9, 9, "reflect"),
    "rows that were wrapped around": lambda: unbordered(leaf(5, 30), 1, 3, 9, "circular"),
    "one long row that was wrapped around": lambda: unbordered(leaf(6 * PIECE), 0, 2 * PIECE, PIECE, "circular"),
    "one long row, joined": lambda: concatenate([leaf(2 * PIECE), leaf(3), leaf(PIECE + 9)]),
    "one long row, rolled": lambda: roll(leaf(2 * PIECE + 3), PIECE + 1),
    "turned": lambda: permute(leaf(20, 37), (1, 0)),
    "turned, more than a strip": lambda: permute(leaf(10, STRIP + 9), (1, 0)),
    "turned, two strips": lambda: permute(leaf(17, 2 * STRIP), (1, 0)),
    "turned within": lambda: permute(leaf(2, 9, 3, 11), (0, 3, 2, 1)),
    "turned and added": lambda: exp(permute(leaf(33, 18), (1, 0))) + leaf(18, 33),
    "heads": lambda: permute(leaf(2, 7, 3, 16), (0, 2, 1, 3)),
    "turned, one strip in parts": lambda: permute(leaf(160, 9), (1, 0)),
    "turned, in parts with a rest": lambda: permute(leaf(7 * 16 + 5, 11), (1, 0)),
    "turned of little": lambda: permute(leaf(4, 1, 9), (2, 1, 0)),
}


def unbordered(x: Node, *how: Any) -> Node:
    return x.apply(UNBORDERED, (x,), Unbordering(*how))


@pytest.mark.parametrize("case", CASES)
def test_elements(case: str) -> None:
    node = CASES[case]()
    (wanted,) = interpret.evaluate([node])
    for machine in ("reference", "cpu"):
        (found,) = run([node], open_backend(machine), target=SMALL)
        np.testing.assert_allclose(found, wanted, rtol=2e-6)


def _kernel(node: Node) -> Kernel:
    found = lowered(node, CORES)
    assert isinstance(found, Kernel)
    return found


def test_another_number_of_rows_needs_no_other_program() -> None:
    """Also where digits of the lane's number are needed."""
    few, many = (_kernel(leaf(n, 24) + leaf(24)) for n in (5, 50))
    assert few.program == many.program
    assert (few.lanes, many.lanes) == (5, 50)
    few, many = (_kernel(leaf(n, 3, 16) * leaf(3, 1)) for n in (2, 7))
    assert few.program == many.program
    assert (few.lanes, many.lanes) == (6, 21)


def test_a_strip_is_shared_where_there_are_few() -> None:
    for rows, lanes in ((160, 10), (20 * 16, 10), (7 * 16 + 5, 7), (19 * 16, 10), (17, 1)):
        kernel = lowered(permute(leaf(rows, 9), (1, 0)), SMALL)
        assert isinstance(kernel, Kernel)
        assert kernel.lanes == lanes


def test_joined_rows_are_read_without_asking() -> None:
    """Each stretch of a row knows where it comes from."""
    borders = (pad(leaf(9, 20), ((0, 0), (3, 4)), mode=mode) for mode in ("reflect", "replicate", "circular"))
    for node in (concatenate([leaf(9, 20), leaf(9, 12)], 1), *borders):
        assert [i.op.name for i in _kernel(node).program.instructions].count("SEL") == 0


def test_a_long_row_is_shared_also_where_it_is_joined() -> None:
    for row, lanes in ((concatenate([leaf(PIECE * 2), leaf(3)]), 3), (pad(leaf(PIECE * 4), 2, mode="reflect"), 6)):
        kernel = lowered(row, SMALL)
        assert isinstance(kernel, Kernel)
        assert kernel.lanes == lanes


@given(st.sampled_from(sorted(FOLDED)), *(st.tuples(st.integers(0, 9), st.integers(0, 9)) for _ in range(2)))
def test_bounds_of_indices(name: str, one: tuple[int, int], other: tuple[int, int]) -> None:
    """All that an operation can give lies between its bounds, and comparisons are decided only if all agree."""
    e = Emitter(())
    x, y = (
        e.number(low) if not more else Scalar(e, dtypes.int64, e.lane.register, most=low + more, least=low)
        for low, more in (one, other)
    )
    pairs = list(itertools.product(*(range(low, low + more + 1) for low, more in (one, other))))
    for condition, function in {"LT": int.__lt__, "LE": int.__le__, "GT": int.__gt__, "GE": int.__ge__,
                                "EQ": int.__eq__, "NE": int.__ne__}.items():  # fmt: skip
        decided = compared(condition, x, y)
        assert decided is None or {function(a, b) for a, b in pairs} == {decided}
    if name in ("DIV", "REM") and other[0] == 0:
        return
    least, most = bounds(name, x, y)
    found = [FOLDED[name](a, b) for a, b in pairs]
    assert most is None or (least <= min(found) and max(found) <= most)
    assert most is not None or min(found) < 0 or name == "SUB"
