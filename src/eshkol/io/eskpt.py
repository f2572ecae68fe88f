"""Files of tensors, .eskpt: written in one go and durably, opened without reading the tensors, read in parts.

Comes in: arrays by name, and metadata of plain values. `write` is what everything that saves ends in; `TensorFile` is
an open file. What makes a checkpoint of training stands on them, in checkpoint.py. The bytes are in docs/eskpt.md.
"""

from __future__ import annotations

import difflib
import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from fnmatch import fnmatchcase
from typing import Any, BinaryIO, Self

import numpy as np

from eshkol.errors import CheckpointError
from eshkol.io import zstd
from eshkol.io.crc64 import crc64
from eshkol.io.files import Path, replacing, write_all
from eshkol.io.layout import (
    ALIGNMENT,
    COMPRESSED,
    DTYPES,
    HEADER,
    MOST_AXES,
    MOST_METADATA,
    MOST_TENSORS,
    Entry,
    FileBytes,
    aligned,
    directory_of,
    head_of,
    read_layout,
)
from eshkol.io.msgpack import pack, unpack
from eshkol.tensors import api as ek
from eshkol.tensors.make import adopted
from eshkol.tensors.value import Tensor
from eshkol.version import __version__

FORMAT = "eskpt"  # the key of the metadata that is the format's own: checksums, and who wrote it
LONGEST_NAME = (1 << 16) - 1  # bytes
DEFAULT_LEVEL = 3
PART = 1 << 22  # bytes that are written or looked at in one go
Compress = bool | int | None


# --- arrays -----------------------------------------------------------------------------------------------------------


def as_array(value: Any, name: str, who: str) -> Any:
    """The contiguous array of a tensor or array, computed if need be; later changes of the tensor are not seen."""
    found = value.detach().numpy() if isinstance(value, Tensor) else np.asarray(value)
    try:
        dtype = ek.asarray(np.empty(0, found.dtype)).dtype
    except (TypeError, ValueError):
        raise CheckpointError(
            f"{who}: {name!r} is an array of {found.dtype}, which is no dtype of tensors", span=ek.here()
        ) from None
    return np.ascontiguousarray(found, dtype.numpy).reshape(found.shape)


def as_bytes(array: Any) -> Any:
    """The memory of a contiguous array, as uint8."""
    return array.reshape(-1).view(np.uint8)


def dtype_of(array: Any) -> str:
    return str(ek.asarray(array[:0] if array.ndim else array).dtype.name)


# --- writing ----------------------------------------------------------------------------------------------------------


def write(path: Path, arrays: Mapping[str, Any], metadata: Mapping[str, Any], *, compress: Compress, who: str) -> None:
    """Write arrays (contiguous, of dtypes of tensors) and metadata to a file, which is whole or not there."""
    level = _level(compress, who)
    entries = [_entry(name, array, who) for name, array in arrays.items()]
    if len(entries) > MOST_TENSORS:
        raise CheckpointError(f"{who}: {len(entries)} tensors are more than a file holds ({MOST_TENSORS})")
    pack(metadata)  # refused here what cannot be saved, before a file is begun
    if sys.byteorder != "little":
        raise CheckpointError(f"{who}: checkpoints are little-endian, and this machine is not")
    start = aligned(HEADER.size + len(directory_of(entries)))
    with replacing(path, who) as file:
        write_all(file, bytes(start))
        entries = list(_written(file, entries, arrays.values(), start, level))
        sums = np.array([entry.checksum for entry in entries], "<u8").tobytes()
        end = aligned(entries[-1].offset + entries[-1].stored) if entries else start
        said = pack({**metadata, FORMAT: {"checksums": sums, "writer": f"eshkol {__version__}"}})
        if len(said) > MOST_METADATA:
            raise CheckpointError(
                f"{who}: the metadata have {len(said)} bytes, more than {MOST_METADATA}",
                hint="long data is saved as tensors or arrays",
            )
        write_all(file, said)
        flags = COMPRESSED if any(entry.compressed for entry in entries) else 0
        file.seek(0)
        write_all(file, head_of(entries, flags, end, said))


def _level(compress: Compress, who: str) -> int:
    """The level of zstd; 0 for none."""
    if compress is None or compress is False:
        return 0
    level = DEFAULT_LEVEL if compress is True else compress
    least, most = zstd.LEVELS
    if not isinstance(level, int) or not least <= level <= most:
        raise CheckpointError(f"{who}: compress is True or a level from {least} to {most}, not {compress!r}")
    return level


def _entry(name: str, array: Any, who: str) -> Entry:
    try:
        size = len(name.encode())
    except UnicodeEncodeError:
        size = 0
    if not 0 < size <= LONGEST_NAME or "\0" in name:
        shown = name if len(name) <= 60 else name[:57] + "..."
        raise CheckpointError(f"{who}: {shown!r} cannot be the name of a tensor")
    if array.ndim > MOST_AXES:
        raise CheckpointError(f"{who}: {name!r} has {array.ndim} axes, more than {MOST_AXES}")
    return Entry(name, dtype_of(array), array.shape, 0, array.nbytes)


def _written(
    file: BinaryIO, entries: Iterable[Entry], arrays: Iterable[Any], place: int, level: int
) -> Iterator[Entry]:
    """Write each tensor; its entry, now that it is known where it stands."""
    for entry, array in zip(entries, arrays, strict=True):
        data = as_bytes(array)
        frames = zstd.compressed(data, level) if level and data.size else []
        if aligned(sum(map(len, frames))) >= aligned(data.size):
            frames = []  # nothing would be won
        stored = sum(map(len, frames)) if frames else data.size
        padding = bytes(aligned(stored) - stored)
        checksum = 0
        for part in [*(frames or (data[k : k + PART] for k in range(0, data.size, PART))), padding]:
            checksum = crc64(part, checksum)
            write_all(file, part)
        yield Entry(entry.name, entry.dtype, entry.shape, place, stored, checksum)
        place += stored + len(padding)


# --- reading ----------------------------------------------------------------------------------------------------------


class TensorFile:
    """An open .eskpt file: what is in it is known, and nothing of a tensor is read before it is asked for.

    With `mmap` tensors lie in the file itself, mapped into memory and read-only; otherwise they are read into memory
    of their own. With `check` the checksum of a tensor is verified when it is read. An open file stays as it is when
    another is saved in its place.

    >>> with ek.io.TensorFile("model.eskpt") as file:
    ...     weights = file.load("encoder.*")
    """

    def __init__(self, path: Path, *, mmap: bool = False, check: bool = True) -> None:
        self.path, self.check = os.fspath(path), check
        self._source = FileBytes(path, mmap)
        try:
            layout = read_layout(self._source)
            said = self._unpacked(layout.metadata)
            sums = self._checksums(said, len(layout.entries))
        except BaseException:
            self.close()
            raise
        self.version = f"{layout.version >> 16}.{layout.version & 0xFFFF}"
        self.size = self._source.size
        self.writer = str(said[FORMAT].get("writer", ""))
        self.raw_metadata: dict[str, Any] = {key: value for key, value in said.items() if key != FORMAT}
        self.tensors: dict[str, Entry] = {
            e.name: Entry(e.name, e.dtype, e.shape, e.offset, e.stored, checksum)
            for e, checksum in zip(layout.entries, sums, strict=True)
        }
        """What is known of each tensor, by name."""

    def _unpacked(self, data: bytes) -> dict[str, Any]:
        try:
            said = unpack(data)
        except CheckpointError as error:
            raise self._source.refused(error.message) from None
        if not isinstance(said, dict) or not isinstance(said.get(FORMAT), dict):
            raise self._source.refused(f"its metadata have no '{FORMAT}'")
        return said

    def _checksums(self, said: Mapping[str, Any], count: int) -> list[int]:
        sums = said[FORMAT].get("checksums")
        if not isinstance(sums, bytes) or len(sums) != 8 * count:
            raise self._source.refused("its metadata have no checksum for each tensor")
        return [int(x) for x in np.frombuffer(sums, "<u8")]

    @classmethod
    def open(cls, path: Path, *, mmap: bool = True, check: bool = True) -> Self:
        """An open file, mapped into memory."""
        return cls(path, mmap=mmap, check=check)

    def close(self) -> None:
        """Close the file; tensors that were loaded stay."""
        self._source.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __len__(self) -> int:
        return len(self.tensors)

    def __contains__(self, name: object) -> bool:
        return name in self.tensors

    def __getitem__(self, name: str) -> Tensor:
        found: Tensor = adopted(self.array(name))
        return found

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.path!r}, {len(self.tensors)} tensors, {self.size} bytes>"

    def names(self, *patterns: str) -> list[str]:
        """The names of tensors that patterns such as "encoder.*" or names choose; without one, all."""
        return list(chosen(self.tensors, patterns, self.path))

    def load(self, *patterns: str) -> dict[str, Tensor]:
        """The tensors that names or patterns choose, by name; only they are read."""
        return {name: self[name] for name in self.names(*patterns)}

    def array(self, name: str) -> Any:
        """A tensor as a NumPy array; of a mapped file it is read-only."""
        if name not in self.tensors:
            raise unknown(name, self.tensors, self.path)
        entry = self.tensors[name]
        stored = self._stored(entry)
        if entry.compressed:
            data = np.empty(entry.size, np.uint8)
            zstd.decompressed(stored, data, self._named(entry))
        else:
            data = stored
        if entry.dtype == "bool_" and data.size and data.max() > 1:
            raise self._source.refused(f"tensor {name!r} has booleans that are neither 0 nor 1")
        return data.view(getattr(ek, entry.dtype).numpy).reshape(entry.shape)

    def _stored(self, entry: Entry) -> Any:
        whole = self._source.view(entry.offset, aligned(entry.stored))
        if self.check:
            self._check(entry, crc64(whole))
        return whole[: entry.stored]

    def _check(self, entry: Entry, checksum: int) -> None:
        if checksum != entry.checksum:
            raise self._source.refused(
                f"it is damaged: tensor {entry.name!r} does not have the checksum that is written"
            )

    def _named(self, entry: Entry) -> str:
        return f"tensor {entry.name!r} of {self.path!r}"

    def verify(self) -> None:
        """Read every tensor; the first that is damaged is an error."""
        for entry in self.tensors.values():
            checksum, end = 0, entry.offset + aligned(entry.stored)
            for place in range(entry.offset, end, PART):
                checksum = crc64(self._source.view(place, min(PART, end - place)), checksum)
            self._check(entry, checksum)
            if entry.compressed or entry.dtype == "bool_":
                self.array(entry.name)


def chosen(known: Iterable[str], patterns: Iterable[str], path: str) -> Iterator[str]:
    """The names, of those that a file has, that names or patterns choose, in order; each must choose something."""
    names = list(known)
    there = set(names)
    wanted: set[str] = set()
    asked = list(patterns)
    for pattern in asked:
        found = {pattern} if pattern in there else {name for name in names if fnmatchcase(name, pattern)}
        if not found:
            raise unknown(pattern, names, path)
        wanted |= found
    return (name for name in names if not asked or name in wanted)


def unknown(name: str, names: Iterable[str], path: str) -> CheckpointError:
    """An error for a name that chooses nothing."""
    known = list(names)
    near = difflib.get_close_matches(name, known[:10_000], 1)
    some = ", ".join(known[:5]) + (", ..." if len(known) > 5 else "")
    hint = f"did you mean {near[0]!r}?" if near else f"there are: {some or 'none'}"
    return CheckpointError(f"{path!r} has no tensor {name!r}", span=ek.here(), hint=hint)


__all__ = ["ALIGNMENT", "DTYPES", "Entry", "TensorFile", "write"]
