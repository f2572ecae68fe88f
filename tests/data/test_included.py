"""The data that comes with the package."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from eshkol import data as ed
from eshkol.errors import DataError

FOLDER = Path(ed.__file__).parent / "bundled"


def test_digits() -> None:
    data = ed.digits()
    assert len(data) == 1797
    images, labels = data.take(np.arange(1797), ed.Pass())
    assert images.shape == (1797, 1, 8, 8)
    assert images.dtype == np.float32
    assert labels.dtype == np.int64
    assert np.bincount(labels).tolist() == [178, 182, 177, 183, 181, 182, 181, 179, 174, 180]  # as is published
    assert (images * 16).sum() == 561718  # 64 · 1797 numbers with a mean of 4.884…
    assert (images[0, 0, 0] * 16).tolist() == [0, 0, 5, 13, 9, 1, 0, 0]
    train, test = ed.digits("train", flat=True), ed.digits("test", flat=True)
    assert (len(train), len(test)) == (1437, 360)
    assert train[0][0].shape == (64,)
    rows = np.concatenate([d.take(np.arange(len(d)), ed.Pass())[0] for d in (train, test)])
    np.testing.assert_array_equal(np.sort(rows.sum(1)), np.sort(images.sum((1, 2, 3))))
    with pytest.raises(DataError, match="did you mean 'train'"):
        ed.digits("trian")


def test_tables() -> None:
    iris, wine, cancer = ed.iris(), ed.wine(), ed.breast_cancer()
    assert (iris.x.shape, wine.x.shape, cancer.x.shape) == ((150, 4), (178, 13), (569, 30))
    assert iris.classes == ["setosa", "versicolor", "virginica"]
    np.testing.assert_allclose(iris.x.mean(0), [5.843333, 3.057333, 3.758, 1.199333], rtol=1e-6)  # as is published
    assert np.bincount(iris.y).tolist() == [50, 50, 50]
    assert np.bincount(wine.y).tolist() == [59, 71, 48]
    assert dict(zip(cancer.classes, np.bincount(cancer.y), strict=True)) == {"benign": 357, "malignant": 212}


def test_text() -> None:
    text = ed.text("shakespeare")
    assert text.startswith("First Citizen:\nBefore we proceed any further, hear me speak.")
    assert len(text) == 100020
    with pytest.raises(DataError, match="'shakespeare'"):
        ed.text("dante")


def test_it_is_small() -> None:
    assert sum(p.stat().st_size for p in FOLDER.iterdir()) < 1.5e6
