"""IDX files, the format of MNIST: two zero bytes, a type, a number of axes, their lengths, and big-endian numbers."""

from __future__ import annotations

import math
import struct
from pathlib import Path
from typing import IO, Any

import numpy as np

from eshkol.data import files
from eshkol.data.dataset import ArrayDataset, Dataset
from eshkol.data.transforms import Scale
from eshkol.errors import DataError

TYPES = {0x08: "u1", 0x09: "i1", 0x0B: ">i2", 0x0C: ">i4", 0x0D: ">f4", 0x0E: ">f8"}
MOST_AXES = 8
SPLITS = {"train": "train", "test": "t10k"}
SOURCE = "yann.lecun.com/exdb/mnist (or a mirror of it)"


def read_idx(path: Any, mmap: bool = False, on_error: str = "raise") -> Any:
    """The array of an IDX file, gzip or not; with `mmap=True` it stays on disk, and parts are read as they are used.

    With `on_error="skip"` a file that ends early gives the entries that are whole.
    """
    skips = files.Skips("read_idx", on_error)
    found = _read(files.existing(path, "read_idx"), mmap, skips)
    skips.tell("IDX files end early, and what is not whole in them was")
    return found


def _read(where: Path, mmap: bool, skips: files.Skips) -> Any:
    data = bytearray()
    try:
        with files.opened(where) as file:
            dtype, shape = _header(file, where)
            wanted, header = math.prod(shape) * dtype.itemsize, 4 + 4 * len(shape)
            if wanted > files.most_bytes(where) and skips.raises:
                raise DataError(
                    f"{where}: {list(shape)} numbers need {wanted:,} bytes, and the file cannot hold so many: it is "
                    f"cut short, or its header (bytes 0 to {header - 1}) is wrong"
                )
            if mmap and not files.is_gzip(where) and where.stat().st_size - header == wanted:
                return np.memmap(where, dtype, "r", header, shape)
            files.read_up_to(file, wanted + 1, data)
    except files.Damaged as damage:
        if skips.raises or not data:
            raise
        skips.leave_out(damage)
    if len(data) > wanted:
        raise DataError(
            f"{where}: there is more in the file than {list(shape)} numbers, from byte {header + wanted} on"
        )
    if len(data) < wanted:
        entry = math.prod(shape[1:]) * dtype.itemsize
        reason = (
            f"the file ends early: {list(shape)} numbers need {wanted:,} bytes behind the header, there are "
            f"{len(data):,} (up to byte {header + len(data)})"
        )
        if not skips.found:
            skips.met(str(where), reason)
        whole = len(data) // entry
        if not whole:
            raise DataError(f"{where}: {reason}: no entry is whole")
        shape, data = (whole, *shape[1:]), data[: whole * entry]
    return np.frombuffer(data, dtype).reshape(shape).astype(dtype.newbyteorder("="), copy=False)


def _header(file: IO[bytes], where: Path) -> tuple[Any, tuple[int, ...]]:
    """The dtype and the shape that a file says it has."""
    start = file.read(4)
    if len(start) < 4 or start[:2] != b"\0\0" or start[2] not in TYPES or not 1 <= start[3] <= MOST_AXES:
        raise DataError(
            f"{where}: no IDX file: it begins with {start.hex(' ') or 'nothing'}",
            hint="an IDX file begins with 00 00, a type from 08 to 0e and the number of axes",
        )
    axes = start[3]
    lengths = file.read(4 * axes)
    if len(lengths) < 4 * axes:
        raise DataError(f"{where}: the file ends within the lengths of its {axes} axes, after byte {4 + len(lengths)}")
    return np.dtype(TYPES[start[2]]), struct.unpack(f">{axes}I", lengths)


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


def load_mnist(
    root: Any = None, split: str = "train", *, scale: bool = True, flat: bool = False, on_error: str = "raise"
) -> Dataset:
    """MNIST, or whatever lies in files of the same names: samples (image 1 × 28 × 28, class).

    Files (`train-images-idx3-ubyte.gz` and so on) are looked for in `root`, and in `mnist` and `MNIST/raw` below it. Of
    files that end early, `on_error="skip"` gives the samples that are whole.
    """
    files.chosen("load_mnist", "split", split, SPLITS)
    below = ("", "mnist", "MNIST/raw", "FashionMNIST/raw")
    image_path, label_path = (
        files.find(root, "load_mnist", [f"{SPLITS[split]}-{kind}{n}-ubyte" for kind in (f"{what}-idx", f"{what}.idx")],
                   below, SOURCE)
        for what, n in (("images", 3), ("labels", 1))
    )  # fmt: skip
    skips = files.Skips("load_mnist", on_error)
    images, labels = (_read(path, False, skips) for path in (image_path, label_path))
    if skips.found and images.ndim and labels.ndim:
        images, labels = (array[: min(len(images), len(labels))] for array in (images, labels))
    skips.tell("files of MNIST end early, and samples that are not whole were")
    return labelled(images, labels, scale, flat, (image_path, label_path))
