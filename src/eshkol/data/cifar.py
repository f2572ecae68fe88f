"""CIFAR-10 and CIFAR-100: the binary layout, and the pickles of the "python version", read without running them.

A binary file is a row of records: the class (two for CIFAR-100, coarse and fine), then 3072 bytes of an image, red,
green, blue, each 32 × 32. The pickles are read by an unpickler that makes nothing but numbers, text, lists, dicts, and
arrays of numbers of its own (`plain_unpickled`); whatever else a file asks for is refused.
"""

from __future__ import annotations

import io
import math
import pickle
from pathlib import Path
from typing import Any

import numpy as np

from eshkol.data import files
from eshkol.data.dataset import ArrayDataset, Dataset
from eshkol.data.transforms import Scale
from eshkol.errors import DataError

PIXELS = 3 * 32 * 32
CLASSES = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")
SOURCE = "www.cs.toronto.edu/~kriz/cifar.html"


class _DType:
    """What stands for numpy.dtype: a code, and a byte order that comes after."""

    def __init__(self, code: Any = None, *_: Any) -> None:
        text = code.decode("latin1") if isinstance(code, bytes) else code
        if not isinstance(text, str) or text.lstrip("<>|=")[:1] not in "biuf" or not text.lstrip("<>|=")[1:].isdigit():
            raise pickle.UnpicklingError(f"arrays of {code!r} are not read")
        self.code, self.order = text.lstrip("<>|="), "="

    def __setstate__(self, state: Any) -> None:
        order = state[1].decode("latin1") if isinstance(state[1], bytes) else state[1]
        if order not in ("<", ">", "|", "="):
            raise pickle.UnpicklingError(f"no byte order: {order!r}")
        self.order = order


class _Array:
    """What stands for numpy.ndarray: made of a shape and bytes, which must go together."""

    value: Any = None

    def __setstate__(self, state: Any) -> None:
        _, shape, dtype, fortran, data = state
        if not isinstance(dtype, _DType) or not all(isinstance(n, int) and 0 <= n < 1 << 40 for n in shape):
            raise pickle.UnpicklingError("an array whose shape or dtype is none")
        raw = data.encode("latin1") if isinstance(data, str) else data
        wanted = np.dtype(dtype.order.replace("|", "") + dtype.code)
        if not isinstance(raw, bytes) or math.prod(shape) * wanted.itemsize != len(raw):
            raise pickle.UnpicklingError(f"an array of {list(shape)} does not fit its data")
        self.value = np.frombuffer(raw, wanted).reshape(shape, order="F" if fortran else "C")


def _reconstructed(*_: Any) -> _Array:
    return _Array()


def _encoded(text: Any, encoding: Any = "latin1") -> bytes:
    if not isinstance(text, str) or encoding not in ("latin1", "latin-1"):
        raise pickle.UnpicklingError("text in an encoding that is not latin1")
    return text.encode("latin1")


_ALLOWED: dict[tuple[str, str], Any] = {
    **{(f"numpy.{core}.multiarray", "_reconstruct"): _reconstructed for core in ("core", "_core")},
    ("numpy", "ndarray"): _Array, ("numpy", "dtype"): _DType, ("_codecs", "encode"): _encoded,
}  # fmt: skip


class _Unpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        try:
            return _ALLOWED[module, name]
        except KeyError:
            raise pickle.UnpicklingError(f"it asks for {module}.{name}, which is not given") from None


def plain_unpickled(path: Any) -> Any:
    """What a pickle holds, if that is numbers, text, lists, dicts and arrays of numbers. No code of the file is run."""
    where = files.existing(path, "plain_unpickled")
    try:
        found = _Unpickler(io.BytesIO(bytes(files.read_all(where))), encoding="bytes").load()
        return _unwrapped(found, {})
    except DataError:
        raise
    except (RecursionError, MemoryError, Exception) as error:
        reason = str(error) or type(error).__name__
        raise DataError(f"{where}: no pickle of plain data: {reason}") from None


def _unwrapped(value: Any, seen: dict[int, Any], depth: int = 0) -> Any:
    """The data with NumPy's arrays; what stands at several places is made once."""
    if depth > 20:
        raise pickle.UnpicklingError("structures within structures without end")
    if id(value) in seen:
        return seen[id(value)]
    if isinstance(value, _Array):
        found = value.value
    elif isinstance(value, dict):
        found = {_text(k): _unwrapped(v, seen, depth + 1) for k, v in value.items()}
    elif isinstance(value, list | tuple):
        found = type(value)([_unwrapped(v, seen, depth + 1) for v in value])
    elif value is None or isinstance(value, bool | int | float | str | bytes):
        return value
    else:
        raise pickle.UnpicklingError(f"it holds a {type(value).__name__}")
    seen[id(value)] = found
    return found


def _text(key: Any) -> Any:
    return key.decode("latin1") if isinstance(key, bytes) else key


def read_cifar(path: Any, labels: int = 1, on_error: str = "raise") -> tuple[Any, Any]:
    """Images (N × 3 × 32 × 32 bytes) and classes of a binary file; `labels` bytes stand before each image.

    With `on_error="skip"` a file that ends early gives the records that are whole.
    """
    skips = files.Skips("read_cifar", on_error)
    found = _of_records(files.existing(path, "read_cifar"), labels, skips)
    skips.tell("files of CIFAR end early, and what is not whole in them was")
    return found


def _of_records(where: Path, labels: int, skips: files.Skips) -> tuple[Any, Any]:
    data = files.read_all(where, skips)
    record = labels + PIXELS
    whole, rest = divmod(len(data), record)
    if rest or not whole:
        reason = (
            f"{len(data):,} bytes are not whole records of {record}: record {whole} ends early, at byte {len(data):,}"
        )
        if not whole:
            raise DataError(f"{where}: {reason}")
        skips.met(str(where), reason)
    rows = np.frombuffer(data, np.uint8)[: whole * record].reshape(whole, record)
    return rows[:, labels:].reshape(-1, 3, 32, 32), rows[:, labels - 1].astype(np.int64)


def _of_pickle(path: Path, key: str) -> tuple[Any, Any]:
    found = plain_unpickled(path)
    pixels, classes = (found.get(k) for k in ("data", key)) if isinstance(found, dict) else (None, None)
    if (
        not isinstance(pixels, np.ndarray) or pixels.dtype != np.uint8 or pixels.shape[1:] != (PIXELS,)
        or not isinstance(classes, list | np.ndarray) or len(classes) != len(pixels)
    ):  # fmt: skip
        raise DataError(f"{path}: no batch of CIFAR: it needs 'data' (N × {PIXELS} bytes) and '{key}' (N classes)")
    return pixels.reshape(-1, 3, 32, 32), np.asarray(classes, np.int64)


# Data set → folders below the root, and for each split the names of files that make it.
_BINARY = {
    10: ("cifar-10-batches-bin", {"train": [f"data_batch_{k}.bin" for k in range(1, 6)], "test": ["test_batch.bin"]}),
    100: ("cifar-100-binary", {"train": ["train.bin"], "test": ["test.bin"]}),
}
_PICKLED = {
    10: ("cifar-10-batches-py", {"train": [f"data_batch_{k}" for k in range(1, 6)], "test": ["test_batch"]}),
    100: ("cifar-100-python", {"train": ["train"], "test": ["test"]}),
}


def _present(base: Path, below: str, names: list[str]) -> list[Path]:
    """All of these files, from the folder that has the first."""
    for place in (base, base / below, base / "cifar10", base / "cifar100"):
        with files.told(place):
            found = [p for name in names for p in (place / name, place / f"{name}.gz") if p.is_file()]
        if found and len(found) < len(names):
            have = {p.name.removesuffix(".gz") for p in found}
            raise files.missing(place, "load_cifar", next(n for n in names if n not in have), source=SOURCE)
        if found:
            return found
    return []


def _subset(base: Path, split: str) -> list[Path]:
    """Files of the binary layout by other names: train_2000.bin.gz."""
    with files.told(base):
        places = [p for p in (base, base / "cifar10") if p.is_dir()]
        return sorted(
            f for p in places for f in p.iterdir() if f.is_file() and f.name.startswith(split) and ".bin" in f.name
        )


def _loaded(kind: int, root: Any, split: str, scale: bool, on_error: str) -> Dataset:
    who = f"load_cifar{kind}"
    files.chosen(who, "split", split, ("train", "test"))
    base, skips = files.folder(root, who), files.Skips(who, on_error)
    below, names = _BINARY[kind]
    paths = _present(base, below, names[split]) or (_subset(base, split) if kind == 10 else [])
    other, pickles = _PICKLED[kind]
    pickled = [] if paths else _present(base, other, pickles[split])
    if not paths and not pickled:
        raise files.missing(base, who, names[split][0], (below,), SOURCE)
    parts = []
    for path in paths or pickled:
        try:
            images, classes = (
                _of_records(path, 1 if kind == 10 else 2, skips) if paths
                else _of_pickle(path, "labels" if kind == 10 else "fine_labels")
            )  # fmt: skip
        except DataError as error:
            skips.leave_out(error)
            continue
        right = (classes >= 0) & (classes < kind)
        for record in np.flatnonzero(~right):
            skips.met(f"{path}, record {record}", f"class {classes[record]}, and there are {kind}")
        parts.append((images[right], classes[right]))
    if not any(len(images) for images, _ in parts):
        raise DataError(f"{who}: all files of {base} are broken; the first: {': '.join(skips.found[0])}")
    skips.tell(f"places of files of {who.removeprefix('load_').upper()} are broken and were")
    data = ArrayDataset(*(np.concatenate(part) for part in zip(*parts, strict=True)))
    return data.map(Scale(1 / 255), on=0) if scale else data


def load_cifar10(root: Any = None, split: str = "train", *, scale: bool = True, on_error: str = "raise") -> Dataset:
    """CIFAR-10: samples (image 3 × 32 × 32, class); numbers from 0 to 1, unless `scale=False`.

    Looked for are the binary version (also other files of its layout whose names begin with train or test) and the
    python version, in `root` and in the folders that the archives unpack to.
    """
    return _loaded(10, root, split, scale, on_error)


def load_cifar100(root: Any = None, split: str = "train", *, scale: bool = True, on_error: str = "raise") -> Dataset:
    """CIFAR-100 with its fine classes, as `load_cifar10`."""
    return _loaded(100, root, split, scale, on_error)
