"""Data that comes with the package, so that examples run without a network. Where it is from: docs/data.md."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from eshkol.data import files
from eshkol.data.csv import load_csv
from eshkol.data.dataset import ArrayDataset, Dataset, Subset, random_split
from eshkol.data.idx import read_idx
from eshkol.data.tables import Examples

FOLDER = Path(__file__).parent / "bundled"
TABLES = {"iris": "species", "wine": "cultivar", "breast_cancer": "diagnosis"}  # table → what is to be learned
TEXTS = ("shakespeare",)
SPLITS = ("all", "train", "test")
HELD_OUT = 360  # of the 1797 digits


def digits(split: str = "all", *, flat: bool = False) -> Dataset:
    """1797 handwritten digits: samples (image 1 × 8 × 8 from 0 to 1, digit); `flat=True`: images are 64 numbers.

    `split="train"` gives 1437 of them, chosen at random once and for all, `split="test"` the other 360.
    """
    files.chosen("digits", "split", split, SPLITS)
    images = read_idx(FOLDER / "digits-images-idx3-ubyte.gz").astype(np.float32) / np.float32(16)
    labels = read_idx(FOLDER / "digits-labels-idx1-ubyte.gz").astype(np.int64)
    data = ArrayDataset(images.reshape(len(images), 64) if flat else images[:, None], labels)
    return _part(data, split, len(data) - HELD_OUT)


def _part(data: ArrayDataset, split: str, first: int) -> Dataset:
    """All of it, or one of two parts, as arrays."""
    if split == "all":
        return data
    parts: list[Subset] = random_split(data, [first, len(data) - first], seed=0)
    assert isinstance(data.arrays, tuple)
    chosen = parts[SPLITS.index(split) - 1].indices
    return ArrayDataset(*(array[chosen] for array in data.arrays))


def _table(name: str) -> Examples:
    found = load_csv(FOLDER / f"{name}.csv.gz", target=TABLES[name])
    assert isinstance(found, Examples)
    return found


def iris() -> Examples:
    """150 irises: samples (4 lengths and widths in cm, one of 3 species)."""
    return _table("iris")


def wine() -> Examples:
    """178 wines: samples (13 measurements, one of 3 cultivars)."""
    return _table("wine")


def breast_cancer() -> Examples:
    """569 cell samples: (30 measurements of nuclei, benign or malignant)."""
    return _table("breast_cancer")


def text(name: str = "shakespeare") -> str:
    """A text in the public domain: 100,000 characters of Shakespeare, the beginning of Coriolanus."""
    files.chosen("text", "name", name, TEXTS)
    return bytes(files.read_all(FOLDER / f"{name}.txt.gz")).decode("utf-8")
