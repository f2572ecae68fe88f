"""NumPy's files: .npy, mapped or read, and .npz. Nothing in them is unpickled, and sizes are checked before memory is
taken."""

from __future__ import annotations

import math
import zipfile
import zlib
from pathlib import Path
from typing import IO, Any

import numpy as np

from eshkol.data import files
from eshkol.data.dataset import ArrayDataset
from eshkol.errors import DataError

_LONGEST_HEADER = 10_000
_READERS: Any = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}


def _header(file: IO[bytes], place: str) -> tuple[tuple[int, ...], bool, Any, int]:
    """Shape, order, dtype and how many bytes the header has."""
    try:
        version = np.lib.format.read_magic(file)
        shape, fortran, dtype = _READERS[version](file, max_header_size=_LONGEST_HEADER)
    except KeyError:
        raise DataError(f"{place}: .npy of version {version} is not known") from None
    except (ValueError, SyntaxError, TypeError, RecursionError, MemoryError) as error:
        raise DataError(f"{place}: no .npy: {error}") from None
    if dtype.hasobject:
        raise DataError(f"{place}: it holds pickled objects, which are not read")
    if any(n < 0 for n in shape):
        raise DataError(f"{place}: an axis of length {min(shape)}")
    return shape, fortran, dtype, file.tell()


def load_npy(path: Any, mmap: bool = True) -> Any:
    """The array of a .npy file; it stays on disk, and parts are read as they are used, unless `mmap=False`."""
    where = files.existing(path, "load_npy")
    with where.open("rb") as file:
        shape, fortran, dtype, start = _header(file, str(where))
        _whole(str(where), where.stat().st_size - start, shape, dtype)
    order: Any = "F" if fortran else "C"
    if math.prod(shape) == 0:
        return np.zeros(shape, dtype)
    found = np.memmap(where, dtype, "r", start, shape, order)
    return found if mmap else np.array(found)


def _whole(place: str, found: int, shape: tuple[int, ...], dtype: Any) -> None:
    wanted = math.prod(shape) * dtype.itemsize
    if found != wanted:
        how = "ends early" if found < wanted else "is too long"
        raise DataError(f"{place}: it {how}: {list(shape)} of {dtype} are {wanted:,} bytes, and there are {found:,}")


def load_npz(path: Any) -> dict[str, Any]:
    """The arrays of a .npz file by their names."""
    where = files.existing(path, "load_npz")
    found = {}
    try:
        with zipfile.ZipFile(where) as archive:
            for entry in archive.infolist():
                name = entry.filename.removesuffix(".npy")
                place = f"{where}, {name}"
                if entry.file_size > entry.compress_size * files.MOST_DEFLATED + 1024:
                    raise DataError(f"{place}: {entry.file_size:,} bytes cannot come of {entry.compress_size:,}")
                with archive.open(entry) as file:
                    shape, fortran, dtype, start = _header(file, place)
                    _whole(place, entry.file_size - start, shape, dtype)
                    data = files.read_up_to(file, entry.file_size - start)
                    _whole(place, len(data), shape, dtype)
                found[name] = np.frombuffer(data, dtype).reshape(shape, order="F" if fortran else "C")
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError) as error:
        raise DataError(f"{where}: no .npz, or a damaged one: {error}") from None
    return found


def load_numpy(path: Any, *names: str, mmap: bool = True) -> ArrayDataset:
    """A .npy or .npz file as a data set: rows of the array; of .npz, samples of the named arrays, or dicts of all."""
    where = Path(path)
    if where.suffix != ".npz":
        return ArrayDataset(load_npy(where, mmap))
    arrays = load_npz(where)
    for name in names:
        if name not in arrays:
            raise DataError(f"{where}: there is no array {name!r}; there are {', '.join(arrays)}")
    return ArrayDataset(*(arrays[name] for name in names)) if names else ArrayDataset(**arrays)
