"""Memory to work in that is kept: it is used again, never by two at a time, and not without bounds."""

from __future__ import annotations

import ctypes
from concurrent.futures import ThreadPoolExecutor

import pytest

from eshkol.runtime.library import native

KEPT, MOST = 1 << 17, 1 << 26  # as in scratch.c


@pytest.fixture
def scratch():
    library = native()
    library.eshkol_scratch_take.restype = ctypes.c_void_p
    library.eshkol_scratch_take.argtypes = [ctypes.c_size_t]
    library.eshkol_scratch_give.argtypes = [ctypes.c_void_p]
    library.eshkol_scratch_clear()
    yield library.eshkol_scratch_take, library.eshkol_scratch_give
    library.eshkol_scratch_clear()


def test_what_is_given_back_is_taken_again(scratch):
    take, give = scratch
    one, other = take(KEPT), take(KEPT)
    assert one != other
    assert one % 64 == other % 64 == 0
    give(one)
    assert take(KEPT - 100) == one
    give(one)
    assert take(KEPT // 4) != one  # which would hold back much more than it needs
    assert take(2 * KEPT) != one  # nor is there room for more than it has
    give(None)
    give(other)


def test_pieces_that_are_too_large_are_not_kept_nor_too_many(scratch):
    take, give = scratch
    for size, count in ((MOST, 3), (MOST // 4, 9), (KEPT, 40), (1, 5), (0, 2)):
        for piece in [take(size) for _ in range(count)]:
            assert piece
            give(piece)
    assert take((1 << 64) - 1) is None


def test_no_two_threads_have_the_same_piece(scratch):
    take, give = scratch

    def work(number):
        for turn in range(300):
            size = KEPT + (number * 7 + turn) % 5 * 4096
            piece = take(size)
            mark = (number * 1000 + turn).to_bytes(8, "little")
            ctypes.memmove(piece + size - 8, mark, 8)
            ctypes.memmove(piece, mark, 8)
            assert ctypes.string_at(piece, 8) == ctypes.string_at(piece + size - 8, 8) == mark
            give(piece)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(8)))
