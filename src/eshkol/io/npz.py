"""NumPy's .npz archives, read and written, without pickled objects and without bombs.

NumPy has no name for bfloat16: such a tensor is written as two bytes without a meaning, as NumPy itself does, and read
as bfloat16 again.
"""

from __future__ import annotations

import io
import math
import zipfile
import zlib
from collections.abc import Mapping
from typing import Any, cast

import numpy as np
from numpy.lib import format as npy

from eshkol.errors import CheckpointError
from eshkol.io.eskpt import as_array, chosen
from eshkol.io.files import Path, replacing
from eshkol.io.layout import FileBytes, is_shape
from eshkol.tensors import api as ek
from eshkol.tensors.make import adopted
from eshkol.tensors.value import Tensor

DEFLATE = 1032  # bytes that one byte can become at most, by deflate
ROOM = 1 << 28  # bytes that any archive may become
EXPANSION = 200  # times its own size that it may become
LONGEST_HEADER = 10_000
EPOCH = (1980, 1, 1, 0, 0, 0)  # the date of each member: the same tensors are the same bytes


def save_npz(path: Path, tensors: Mapping[str, Any], *, compress: bool = False) -> None:
    """Save tensors by name to a .npz archive, for `numpy.load`."""
    who = "save_npz"
    if not isinstance(tensors, Mapping):
        raise CheckpointError(f"{who} takes a dict of tensors, not a {type(tensors).__name__}", span=ek.here())
    arrays = {}
    for name, value in tensors.items():
        if not isinstance(name, str) or not name or "\0" in name or len(name.encode("utf-8", "replace")) > 65_000:
            raise CheckpointError(f"{who}: {name!r} cannot be the name of a tensor", span=ek.here())
        arrays[name] = as_array(value, name, who)
    how = zipfile.ZIP_DEFLATED if compress else zipfile.ZIP_STORED
    with (
        replacing(path, who) as file,
        io.BufferedWriter(_StaysOpen(file), 1 << 20) as out,
        zipfile.ZipFile(out, "w", how) as archive,
    ):
        for name, array in arrays.items():
            about = zipfile.ZipInfo(f"{name}.npy", EPOCH)
            about.compress_type = how
            with archive.open(about, "w", force_zip64=True) as member:
                npy.write_array(cast(Any, member), array, version=(1, 0), allow_pickle=False)


class _StaysOpen(io.RawIOBase):
    """A file that stays open when what writes to it is closed."""

    def __init__(self, file: Any) -> None:
        self._file = file

    def writable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        return int(self._file.write(data))

    def seek(self, place: int, whence: int = 0) -> int:
        return int(self._file.seek(place, whence))

    def tell(self) -> int:
        return int(self._file.tell())


def load_npz(path: Path, *patterns: str, limit: int | None = None) -> dict[str, Tensor]:
    """The tensors of a .npz archive by name: all, or those that names or patterns choose; only they are read.

    An archive that would become more than 200 times as large as it is is refused, unless `limit` allows so many bytes.
    """
    source = FileBytes(path, False)
    try:
        with source.file() as file, zipfile.ZipFile(file) as archive:
            members = _members(source, archive)
            names = list(chosen(members, patterns, source.path))
            total = sum(members[name].file_size for name in names)
            most = max(ROOM, EXPANSION * source.size) if limit is None else limit
            if total > most:
                raise source.refused(
                    f"it would become {total} bytes, more than {most}", "give limit=, the bytes that it may become"
                )
            return {name: adopted(_read(source, archive, name, members[name])) for name in names}
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, ValueError) as error:
        raise source.refused(f"it is damaged, or no .npz archive: {error}") from None
    except OSError as error:
        raise source.refused(f"it cannot be read: {error}") from None
    finally:
        source.close()


def _members(source: FileBytes, archive: zipfile.ZipFile) -> dict[str, zipfile.ZipInfo]:
    """The arrays in an archive, by name."""
    found: dict[str, zipfile.ZipInfo] = {}
    for about in archive.infolist():
        name = about.filename.removesuffix(".npy")
        if name in found:
            raise source.refused(f"it has the array {name!r} twice")
        if about.flag_bits & 1:
            raise source.refused(f"array {name!r} is encrypted")
        if about.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise source.refused(f"array {name!r} is compressed in a way that is not read ({about.compress_type})")
        if about.compress_size > source.size or about.file_size > DEFLATE * about.compress_size + 64:
            raise source.refused(f"array {name!r} says that {about.compress_size} bytes become {about.file_size}")
        found[name] = about
    return found


def _read(source: FileBytes, archive: zipfile.ZipFile, name: str, about: zipfile.ZipInfo) -> Any:
    with archive.open(about) as member:
        try:
            version = npy.read_magic(cast(Any, member))
            reader = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}.get(version)
            if reader is None:
                raise source.refused(f"array {name!r} is of version {version} of NumPy's format")
            shape, fortran, dtype = reader(cast(Any, member), max_header_size=LONGEST_HEADER)
        except ValueError as error:
            raise source.refused(f"array {name!r} is none of NumPy's: {str(error).splitlines()[0]}") from None
        if dtype.hasobject:
            raise source.refused(f"array {name!r} holds pickled objects, which are not executed")
        if not is_shape(shape, dtype.itemsize):
            raise source.refused(f"array {name!r} has the shape {shape}, which no memory holds")
        size = math.prod(shape) * dtype.itemsize
        if any(extent < 0 for extent in shape) or size + member.tell() != about.file_size:
            raise source.refused(f"array {name!r} takes {size} bytes, and there are {about.file_size - member.tell()}")
        data = np.empty(size, np.uint8)
        done = 0
        while done < size:
            count = cast(Any, member).readinto(data[done : done + (1 << 24)])
            if not count:
                raise source.refused(f"array {name!r} is cut short")
            done += count
        if member.read(1):
            raise source.refused(f"array {name!r} is longer than it says")
    array = data.view(dtype).reshape(shape[::-1]).T if fortran else data.view(dtype).reshape(shape)
    if array.dtype == np.dtype("V2"):
        array = array.view(ek.bfloat16.numpy)
    return as_array(
        array.astype(array.dtype.newbyteorder("=")) if not array.dtype.isnative else array, name, "load_npz"
    )
