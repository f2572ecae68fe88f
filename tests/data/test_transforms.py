"""Transforms: what they compute, alone and in batches, and what they refuse."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.ndimage

import eshkol as ek
from eshkol import data as ed
from eshkol.data.draws import Pass, fold, integers, uniform
from eshkol.data.transforms import rotated
from eshkol.errors import DataError, EshkolError, IndexOutOfRange, ShapeError

RNG = np.random.default_rng(0)
BATCH = RNG.random((5, 3, 8, 6)).astype(np.float32)
KEYS = Pass(3, 1).keys(np.arange(5), 0)


def test_normalize() -> None:
    mean, std = [0.1, 0.2, 0.3], [1.0, 2.0, 4.0]
    found = ed.Normalize(mean, std).apply(BATCH, None)
    for c in range(3):
        np.testing.assert_allclose(found[:, c], (BATCH[:, c] - mean[c]) / std[c], rtol=1e-6)
    assert found.dtype == np.float32
    assert ed.Normalize(0.5, 0.5)(np.array([0, 1])).tolist() == [-1, 1]
    assert ed.Normalize(0.5, 0.5)(np.float64([1.0])).dtype == np.float64
    with pytest.raises(ShapeError, match="2 numbers for channels"):
        ed.Normalize([1, 2], 1).apply(BATCH, None)
    with pytest.raises(DataError, match="greater than 0"):
        ed.Normalize(0, 0)


def test_standardize() -> None:
    alone = ed.Standardize().apply(BATCH, None)
    np.testing.assert_allclose(alone.mean(axis=(1, 2, 3)), 0, atol=1e-6)
    np.testing.assert_allclose(alone.std(axis=(1, 2, 3)), 1, rtol=1e-5)
    rows = np.concatenate([RNG.normal(3, 2, (100, 4)), np.full((100, 1), 7.0)], axis=1)
    found = ed.Standardize.of(ed.ArrayDataset(rows, np.zeros(100)), batch_size=7)
    assert found.mean is not None
    np.testing.assert_allclose(found.mean, rows.mean(0))
    np.testing.assert_allclose(found.std, rows.std(0), atol=1e-12)
    done = ed.Standardize.of(rows).apply(rows, None)
    np.testing.assert_allclose(done.std(0), [1, 1, 1, 1, 0])
    with pytest.raises(ShapeError, match="Standardize knows"):
        found.apply(BATCH, None)


def test_one_hot() -> None:
    assert ed.OneHot(3).apply(np.array([2, 0]), None).tolist() == [[0, 0, 1], [1, 0, 0]]
    assert ed.OneHot(3)(1).tolist() == [0, 1, 0]
    with pytest.raises(IndexOutOfRange, match="class 3 is out of range"):
        ed.OneHot(3)(3)
    with pytest.raises(DataError, match="integers"):
        ed.OneHot(3)(1.0)


def test_crops_are_parts_of_the_image() -> None:
    found = ed.RandomCrop((5, 4), padding=1, fill=9).apply(BATCH, KEYS)
    around = np.pad(BATCH, ((0, 0), (0, 0), (1, 1), (1, 1)), constant_values=9)
    tops, lefts = integers(KEYS, 6, 0), integers(KEYS, 5, 1)
    for k in range(5):
        expected = around[k, :, tops[k] : tops[k] + 5, lefts[k] : lefts[k] + 4]
        np.testing.assert_array_equal(found[k], expected)
    assert ed.CenterCrop(4).apply(BATCH, None).tolist() == BATCH[..., 2:6, 1:5].tolist()
    numbered = np.broadcast_to(np.arange(6.0).reshape(1, 1, 2, 3), (6000, 1, 2, 3))
    places = ed.RandomCrop(1).apply(numbered, Pass().keys(np.arange(6000), 0))
    counts = np.bincount(places.reshape(-1).astype(int), minlength=6)
    assert ((counts - 1000) ** 2 / 1000).sum() < 25  # every place as often as any other
    for crop in (ed.RandomCrop(9), ed.CenterCrop(9)):
        with pytest.raises(ShapeError, match="from images of"):
            crop.apply(BATCH, KEYS)


def test_flips() -> None:
    found = ed.RandomFlip().apply(BATCH, KEYS)
    for k, mirrored in enumerate(uniform(KEYS) < 0.5):
        np.testing.assert_array_equal(found[k], BATCH[k, :, :, ::-1] if mirrored else BATCH[k])
    np.testing.assert_array_equal(ed.RandomFlip(1.0, axis=-2).apply(BATCH, KEYS), BATCH[:, :, ::-1])
    np.testing.assert_array_equal(ed.RandomFlip(0.0).apply(BATCH, KEYS), BATCH)


def test_rotations_are_those_of_scipy() -> None:
    angles = np.array([0.0, 90.0, 180.0, 33.0, -71.5])
    square = RNG.random((5, 2, 7, 7))
    found = rotated(square, angles, 0.0, 7, 7)
    np.testing.assert_allclose(found[0], square[0], atol=1e-12)
    np.testing.assert_allclose(found[1], np.rot90(square[1], axes=(1, 2)), atol=1e-12)
    np.testing.assert_allclose(found[2], square[2, :, ::-1, ::-1], atol=1e-12)
    for k in (3, 4):
        expected = scipy.ndimage.rotate(square[k], angles[k], (2, 1), reshape=False, order=1, mode="grid-constant")
        np.testing.assert_allclose(found[k], expected, atol=1e-9)
    assert ed.RandomRotation(10).apply((BATCH * 255).astype(np.uint8), KEYS).dtype == np.uint8
    np.testing.assert_array_equal(ed.RandomRotation((0, 0)).apply(BATCH, KEYS), BATCH)


def test_transforms_of_single_samples() -> None:
    image = ek.tensor(BATCH[0])
    assert isinstance(ed.Normalize(0, 2)(image), ek.Tensor)
    chain = ed.Compose([ed.RandomCrop(4), ed.RandomFlip(), ed.Scale(2.0)])
    assert chain.draws
    ek.seed(5)
    first = chain(BATCH[0])
    second = chain(BATCH[0])
    ek.seed(5)
    np.testing.assert_array_equal(chain(BATCH[0]), first)
    assert (first != second).any()
    assert not ed.Compose(ed.Scale(1.0)).draws


class Louder(ed.RandomFlip):
    """Derives from one that only moves pixels, and does more."""

    def apply(self, batch, keys):
        return super().apply(batch, keys) + 1


@pytest.mark.parametrize("fill", [0, 7])
def test_the_order_of_work_changes_nothing(fill) -> None:
    """Bytes are moved before they become floats; the result is what it is one after another, bit for bit."""
    images = RNG.integers(0, 256, (5, 3, 8, 6), np.uint8)
    steps = [ed.Scale(1 / 255), ed.RandomCrop((5, 4), padding=2, fill=fill), ed.RandomFlip(), ed.CenterCrop(3)]
    for chain in (steps, [steps[0], Louder(), steps[2]], [ed.Scale(-2.0), *steps[1:]], [ed.Normalize(3, 2), *steps]):
        expected = images
        for number, step in enumerate(chain):
            expected = step.apply(expected, fold(KEYS, number) if step.draws else None)
        found = ed.Compose(chain).apply(images, KEYS)
        assert found.tobytes() == expected.tobytes()
        assert found.dtype == expected.dtype
        data = ed.ArrayDataset(images)
        for step in chain:
            data = data.map(step)
        alone = np.stack([data.sample(k, Pass(3, 1)) for k in range(5)])
        assert data.take(np.arange(5), Pass(3, 1)).tobytes() == alone.tobytes()


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: ed.Compose(abs), "takes transforms"),
        (lambda: ed.RandomFlip(2), "probability"),
        (lambda: ed.RandomFlip(axis=1), "counts from the end"),
        (lambda: ed.RandomCrop(0), "height and a width"),
        (lambda: ed.RandomCrop(2, padding=-1), "padding"),
        (lambda: ed.RandomRotation((3, 1)), "range of degrees"),
        (lambda: ed.OneHot(0), "number of classes"),
        (lambda: ed.Standardize(mean=1), "together"),
        (lambda: ed.RandomCrop(2)(np.ones(3)), "takes images"),
    ],
)
def test_misuse_of_transforms_is_told(make, words) -> None:
    with pytest.raises(EshkolError, match=words):
        make()
