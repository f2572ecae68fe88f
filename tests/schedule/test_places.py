"""Where masks hold and whether positions are in range, by native code; what indexing by masks makes of it."""

from __future__ import annotations

import numpy as np
import pytest

import eshkol as ek
from eshkol.errors import IndexOutOfRange
from eshkol.schedule.run.places import PIECE, SMALL, held, within

RNG = np.random.default_rng(5)


@pytest.mark.parametrize("share", [0.0, 0.003, 0.5, 1.0])
def test_a_mask_holds_where_numpy_says(share):
    for size in (SMALL, SMALL + 1, PIECE, PIECE + 7, 2 * PIECE + 39):
        mask = RNG.random(size) < share
        found = held(mask)
        assert found.dtype == np.int64
        np.testing.assert_array_equal(found, np.flatnonzero(mask))
    ends = np.zeros(3 * PIECE, bool)
    ends[[0, PIECE - 1, PIECE, 2 * PIECE, -1]] = True
    assert held(ends).tolist() == [0, PIECE - 1, PIECE, 2 * PIECE, 3 * PIECE - 1]


def test_a_mask_may_lie_as_it_likes_and_its_bytes_may_be_others_than_1():
    mask = RNG.random((2 * SMALL, 2)) < 0.5
    np.testing.assert_array_equal(held(mask[:, 1]), np.flatnonzero(mask[:, 1]))
    np.testing.assert_array_equal(held(mask.T), np.flatnonzero(mask.T))
    odd = RNG.integers(0, 3, PIECE + 5).astype(np.uint8) * 127
    np.testing.assert_array_equal(held(odd.view(bool)), np.flatnonzero(odd))


@pytest.mark.parametrize("dtype", [np.int32, np.int64, np.uint8, np.uint64])
def test_positions_are_within(dtype):
    positions = np.full(PIECE + 3, 7, dtype)
    for place in (0, PIECE, -1):
        for number, inside in ((4, True), (9, True), (10, False), (3, False), (np.iinfo(dtype).max, False)):
            positions[place] = number
            assert within(positions, 4, 10) is inside
        positions[place] = 7
    if np.dtype(dtype).kind == "i":
        for number, inside in ((-10, True), (-11, False), (np.iinfo(dtype).min, False)):
            positions[5] = number
            assert within(positions, -10, 10) is inside
    assert not within(positions, 0, 0)


def test_masks_of_some_axes_select():
    x = RNG.normal(size=(90, 60, 3)).astype(np.float32)
    two = RNG.random((90, 60)) < 0.4
    ours, mask = ek.tensor(x), ek.tensor(two)
    np.testing.assert_array_equal(ours[mask].numpy(), x[two])
    np.testing.assert_array_equal(ours[mask, 1].numpy(), x[two, 1])
    np.testing.assert_array_equal(ours[:, two[0]].numpy(), x[:, two[0]])
    np.testing.assert_array_equal(ek.masked_select(ours, mask[..., None]).numpy(), x[two].ravel())
    put = x.copy()
    put[two] = 5
    np.testing.assert_array_equal(ours.at[mask].set(5).numpy(), put)
    gradient = ek.grad(lambda x: (x[mask] ** 2).sum())(ours)
    np.testing.assert_array_equal(gradient.numpy(), np.where(two[..., None], 2 * x, 0))
    second = ek.grad(lambda x: ek.grad(lambda x: (x[mask] ** 3).sum())(x).sum())(ours)
    np.testing.assert_allclose(second.numpy(), np.where(two[..., None], 6 * x, 0), rtol=1e-6)


def test_what_is_not_zero_is_found():
    x = RNG.integers(-1, 2, (20, 30, 9)).astype(np.float32)
    x[3, 4] = np.nan
    for given in (x, x > 0, x.astype(np.complex64), x[:0]):
        for ours, theirs in zip(ek.nonzero(ek.tensor(given)), np.nonzero(given), strict=True):
            np.testing.assert_array_equal(ours.numpy(), theirs)
        np.testing.assert_array_equal(ek.argwhere(ek.tensor(given)).numpy(), np.argwhere(given))
    halves = ek.tensor(x).astype(ek.bfloat16)
    np.testing.assert_array_equal(ek.nonzero(halves)[1].numpy(), np.nonzero(x)[1])


def test_a_position_out_of_range_is_named():
    x, positions = ek.tensor(np.arange(10.0, dtype=np.float32)), RNG.integers(-10, 10, 2 * SMALL)
    np.testing.assert_array_equal(x[ek.tensor(positions)].numpy(), np.arange(10.0)[positions])
    for wrong in (10, -11):
        positions[SMALL + 3] = wrong
        with pytest.raises(IndexOutOfRange, match=f"index {wrong} is out of range for an extent of 10"):
            x[ek.tensor(positions)]
