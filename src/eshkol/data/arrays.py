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
    except Exception as error:  # whatever a broken header makes of its parser, and of Python's
        raise DataError(f"{place}: no .npy: {error}") from None
    if dtype.hasobject:
        raise DataError(f"{place}: it holds pickled objects, which are not read")
    if any(n < 0 for n in shape):
        raise DataError(f"{place}: an axis of length {min(shape)}")
    return shape, fortran, dtype, file.tell()


def load_npy(path: Any, mmap: bool = True, on_error: str = "raise") -> Any:
    """The array of a .npy file; it stays on disk, and parts are read as they are used, unless `mmap=False`.

    With `on_error="skip"` a file that ends early gives the rows that are whole.
    """
    where, skips = files.existing(path, "load_npy"), files.Skips("load_npy", on_error)
    with files.told(where), where.open("rb") as file:
        shape, fortran, dtype, start = _header(file, str(where))
        rows, left = _rows(shape, dtype), where.stat().st_size - start
        if 0 < rows <= left < math.prod(shape) * dtype.itemsize and not fortran and not skips.raises:
            skips.met(str(where), f"it ends early: of {shape[0]:,} rows {left // rows:,} are whole")
            shape = (left // rows, *shape[1:])
        else:
            _whole(str(where), left, shape, dtype)
    skips.tell(".npy files end early, and rows that are not whole were")
    order: Any = "F" if fortran else "C"
    if math.prod(shape) == 0:
        return np.zeros(shape, dtype)
    found = np.memmap(where, dtype, "r", start, shape, order)
    return found if mmap else np.array(found)


def _rows(shape: tuple[int, ...], dtype: Any) -> int:
    """How many bytes a row has."""
    return math.prod(shape[1:]) * int(dtype.itemsize) if shape else 0


def _whole(place: str, found: int, shape: tuple[int, ...], dtype: Any) -> None:
    wanted = math.prod(shape) * dtype.itemsize
    if found != wanted:
        how = "ends early" if found < wanted else "is too long"
        raise DataError(f"{place}: it {how}: {list(shape)} of {dtype} are {wanted:,} bytes, and there are {found:,}")


# What zipfile says of damaged archives; the last two of one that claims an unknown method, or to be encrypted.
_OF_ARCHIVES = (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError)


def load_npz(path: Any, on_error: str = "raise") -> dict[str, Any]:
    """The arrays of a .npz file by their names; with `on_error="skip"` those that are whole."""
    where, skips = files.existing(path, "load_npz"), files.Skips("load_npz", on_error)
    found = {}
    try:
        with files.told(where), zipfile.ZipFile(where) as archive:
            for entry in archive.infolist():
                name = entry.filename.removesuffix(".npy")
                try:
                    found[name] = _entry(archive, entry, f"{where}, {name}")
                except DataError as error:
                    skips.leave_out(error)
    except _OF_ARCHIVES as error:
        raise DataError(f"{where}: no .npz, or a damaged one: {error}") from None
    if skips.found and not found:
        raise DataError(f"{where}: no array is whole; the first: {': '.join(skips.found[0])}")
    skips.tell(f"arrays of {where} are broken and were")
    return found


def _entry(archive: zipfile.ZipFile, entry: zipfile.ZipInfo, place: str) -> Any:
    """An array of a .npz file."""
    if entry.file_size > entry.compress_size * files.MOST_DEFLATED + 1024:
        raise DataError(f"{place}: {entry.file_size:,} bytes cannot come of {entry.compress_size:,}")
    try:
        with archive.open(entry) as file:
            shape, fortran, dtype, start = _header(file, place)
            _whole(place, entry.file_size - start, shape, dtype)
            data = files.read_up_to(file, entry.file_size - start)
    except _OF_ARCHIVES as error:
        raise DataError(f"{place}: the array is damaged: {error}") from None
    _whole(place, len(data), shape, dtype)
    return np.frombuffer(data, dtype).reshape(shape, order="F" if fortran else "C")


def load_numpy(path: Any, *names: str, mmap: bool = True, on_error: str = "raise") -> ArrayDataset:
    """A .npy or .npz file as a data set: rows of the array; of .npz, samples of the named arrays, or dicts of all."""
    where = Path(path)
    if where.suffix != ".npz":
        return ArrayDataset(load_npy(where, mmap, on_error))
    arrays = load_npz(where, on_error)
    for name in names:
        if name not in arrays:
            raise DataError(f"{where}: there is no array {name!r}; there are {', '.join(arrays)}")
    return ArrayDataset(*(arrays[name] for name in names)) if names else ArrayDataset(**arrays)
