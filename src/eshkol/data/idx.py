"""IDX files, the format of MNIST: two zero bytes, a type, a number of axes, their lengths, and big-endian numbers."""

from __future__ import annotations

import math
import struct
from pathlib import Path
from typing import Any

import numpy as np

from eshkol.data import files
from eshkol.data.dataset import ArrayDataset, Dataset
from eshkol.data.transforms import Scale
from eshkol.errors import DataError

TYPES = {0x08: "u1", 0x09: "i1", 0x0B: ">i2", 0x0C: ">i4", 0x0D: ">f4", 0x0E: ">f8"}
MOST_AXES = 8
SPLITS = {"train": "train", "test": "t10k"}
SOURCE = "yann.lecun.com/exdb/mnist (or a mirror of it)"


def read_idx(path: Any, mmap: bool = False) -> Any:
    """The array of an IDX file, gzip or not; with `mmap=True` it stays on disk, and parts are read as they are used."""
    where = files.existing(path, "read_idx")
    with files.opened(where) as file:
        start = file.read(4)
        if len(start) < 4 or start[:2] != b"\0\0" or start[2] not in TYPES or not 1 <= start[3] <= MOST_AXES:
            raise DataError(
                f"{where}: no IDX file: it begins with {start.hex(' ')}",
                hint="an IDX file begins with 00 00, a type from 08 to 0e and the number of axes",
            )
        dtype, axes = np.dtype(TYPES[start[2]]), start[3]
        lengths = file.read(4 * axes)
        if len(lengths) < 4 * axes:
            raise DataError(
                f"{where}: the file ends within the lengths of its {axes} axes, after byte {4 + len(lengths)}"
            )
        shape = struct.unpack(f">{axes}I", lengths)
        wanted, header = math.prod(shape) * dtype.itemsize, 4 + 4 * axes
        if wanted > files.most_bytes(where):
            raise DataError(
                f"{where}: {list(shape)} numbers need {wanted:,} bytes, and the file cannot hold so many: it is cut "
                f"short, or its header (bytes 0 to {header - 1}) is wrong"
            )
        if mmap and not files.is_gzip(where):
            _same_length(where, where.stat().st_size - header, wanted, header, shape)
            return np.memmap(where, dtype, "r", header, shape)
        data = files.read_up_to(file, wanted + 1)
        _same_length(where, len(data), wanted, header, shape)
    array = np.frombuffer(data, dtype).reshape(shape)
    return array.astype(dtype.newbyteorder("="), copy=False)


def _same_length(path: Path, found: int, wanted: int, header: int, shape: Any) -> None:
    if found < wanted:
        raise DataError(
            f"{path}: the file ends early: {list(shape)} numbers need {wanted:,} bytes behind the header, there are "
            f"{found:,} (up to byte {header + found})"
        )
    if found > wanted:
        raise DataError(f"{path}: there is more in the file than {list(shape)} numbers, from byte {header + wanted} on")


def labelled(images: Any, labels: Any, scale: bool, flat: bool, where: tuple[Path, Path]) -> Dataset:
    """Images of bytes with their labels as a data set: numbers from 0 to 1, unless `scale=False`."""
    if images.ndim != 3 or labels.ndim != 1 or len(images) != len(labels):
        raise DataError(
            f"{where[0]} and {where[1]} do not go together: arrays of {list(images.shape)} and {list(labels.shape)}",
            hint="images have three axes, labels one, and both have as many entries",
        )
    rows = images.reshape(len(images), -1) if flat else images[:, None]
    data = ArrayDataset(rows, labels.astype(np.int64))
    return data.map(Scale(1 / 255), on=0) if scale else data


def load_mnist(root: Any = None, split: str = "train", *, scale: bool = True, flat: bool = False) -> Dataset:
    """MNIST, or whatever lies in files of the same names: samples (image 1 × 28 × 28, class).

    Files (`train-images-idx3-ubyte.gz` and so on) are looked for in `root`, and in `mnist` and `MNIST/raw` below it.
    """
    files.chosen("load_mnist", "split", split, SPLITS)
    below = ("", "mnist", "MNIST/raw", "FashionMNIST/raw")
    image_path, label_path = (
        files.find(root, "load_mnist", [f"{SPLITS[split]}-{kind}{n}-ubyte" for kind in (f"{what}-idx", f"{what}.idx")],
                   below, SOURCE)
        for what, n in (("images", 3), ("labels", 1))
    )  # fmt: skip
    return labelled(read_idx(image_path), read_idx(label_path), scale, flat, (image_path, label_path))
