"""Memory of the host: what is lent is counted as long as anything lies in it, and no one else's may be taken."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from eshkol.schedule.run import memory

LARGE = memory.LARGE


@dataclass
class Holder:
    data: Any
    op: Any = None


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.bool_, ml_dtypes.bfloat16, np.complex128])
@pytest.mark.parametrize("size", [memory.COUNTED - 64, memory.COUNTED, LARGE - 64, LARGE, LARGE + 64, 5 * LARGE])
def test_arrays_are_counted_until_their_last_view_is_gone(size: int, dtype: Any) -> None:
    before = memory.usage.current
    dtype = np.dtype(dtype)
    array = memory.empty((2, size // dtype.itemsize // 2), dtype)
    assert array.dtype == dtype
    assert array.flags.carray
    assert type(array) is np.ndarray
    counted = memory.usage.current - before
    assert counted == (size + memory.ALIGNMENT if size >= memory.COUNTED else 0)
    assert not counted or memory.address_of(array) % memory.ALIGNMENT == 0
    array[...] = 1
    part = array[1:, 3:].T
    del array
    assert memory.usage.current - before == counted
    assert (part == 1).all()
    del part
    assert memory.usage.current == before


def test_what_lies_between_lends_nothing_when_it_is_gone() -> None:
    before = memory.usage.current
    array = memory.empty((LARGE,), np.dtype(np.uint8))
    views = [array.base[5:], array.base.view(np.float32), array.base.copy()]
    del views
    assert memory.usage.current - before == LARGE + memory.ALIGNMENT
    del array
    assert memory.usage.current == before


def test_memory_is_used_again_and_by_one_array_at_a_time() -> None:
    arrays = [memory.empty((LARGE // 4,), np.dtype(np.float32)) for _ in range(4)]
    for number, array in enumerate(arrays):
        array[...] = number
    assert [int(a[0]) for a in arrays] == [int(a[-1]) for a in arrays] == [0, 1, 2, 3]
    places = {memory.address_of(a) for a in arrays}
    del array, arrays
    again = [memory.empty((LARGE // 4,), np.dtype(np.float32)) for _ in range(4)]
    assert {memory.address_of(a) for a in again} == places


def test_memory_is_exclusive_until_something_else_lies_in_it() -> None:
    holder = Holder(memory.empty((4, LARGE), np.dtype(np.uint8)))
    assert memory.exclusive(holder)
    kept = holder.data
    assert not memory.exclusive(holder)
    del kept
    holder.data = holder.data.reshape(LARGE, 4)  # what nothing else refers to, seen under another shape
    assert memory.exclusive(holder)
    kept = holder.data[:1]
    assert not memory.exclusive(holder)
    kept = holder.data.base
    assert not memory.exclusive(holder)
    kept = kept.base
    assert not memory.exclusive(holder)
    del kept
    assert memory.exclusive(holder)
    holder.data = holder.data[:5]
    assert memory.exclusive(holder)
    holder.data = holder.data[:, :2]  # not contiguous
    assert not memory.exclusive(holder)
