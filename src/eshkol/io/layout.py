"""The bytes of an .eskpt file around the tensors: header and directory, written and read (docs/eskpt.md).

What is read is not trusted. Everything is checked against the length of the file before anything is made of it, and
every byte of the file belongs to one thing only: header, directory, a tensor with its padding, or the metadata.
"""

from __future__ import annotations

import math
import os
import stat
import struct
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from errno import ENOENT
from mmap import ACCESS_READ, mmap
from typing import Any, BinaryIO

import numpy as np

from eshkol.errors import CheckpointError
from eshkol.io.crc64 import crc64
from eshkol.io.files import Path, reason
from eshkol.io.zstd import EXPANSION
from eshkol.tensors import api as ek

MAGIC = b"ESKPT001"
MAJOR, MINOR = 1, 0
VERSION = MAJOR << 16 | MINOR
COMPRESSED = 1  # the flag: tensors whose stored size is not their own are zstd frames
KNOWN_FLAGS = COMPRESSED
HEADER = struct.Struct("<8sIIQQQQ16s")
CHECKSUM_AT = 40
ALIGNMENT = 64
MOST_AXES = 32
MOST_TENSORS = 1_000_000
MOST_METADATA = 1 << 26  # bytes
LEAST_ROW = 2 + 1 + 2 + 16  # bytes of a directory row: a name of one letter, no axes
DTYPES = (
    "bool_", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
    "float16", "bfloat16", "float32", "float64", "complex64", "complex128",
)  # fmt: skip
"""Names of dtypes; the place of a name is its code."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A tensor of a file: what it is, and where its bytes are."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    offset: int
    stored: int  # bytes in the file
    checksum: int = 0

    @property
    def size(self) -> int:
        """Its bytes in memory."""
        return math.prod(self.shape) * item_size(self.dtype)

    @property
    def compressed(self) -> bool:
        return self.stored != self.size


def item_size(dtype: str) -> int:
    return int(getattr(ek, dtype).size)


def is_shape(shape: Sequence[int], item: int) -> bool:
    """Whether an array may have this shape, of elements of so many bytes; an empty one can be too large as well."""
    return len(shape) <= MOST_AXES and math.prod(max(1, extent) for extent in shape) * item < 1 << 63


def aligned(place: int) -> int:
    """The next multiple of 64."""
    return -(-place // ALIGNMENT) * ALIGNMENT


# --- writing ----------------------------------------------------------------------------------------------------------


def directory_of(entries: Iterable[Entry]) -> bytes:
    """The bytes of a directory."""
    out = bytearray()
    for entry in entries:
        name = entry.name.encode()
        out += struct.pack("<H", len(name)) + name
        out += struct.pack("<BB", DTYPES.index(entry.dtype), len(entry.shape))
        out += struct.pack(f"<{len(entry.shape) + 2}Q", *entry.shape, entry.offset, entry.stored)
    return bytes(out)


def head_of(entries: Sequence[Entry], flags: int, metadata_offset: int, metadata: bytes) -> bytes:
    """Header and directory, padded: what stands before the tensors."""
    directory = directory_of(entries)
    directory += bytes(aligned(HEADER.size + len(directory)) - HEADER.size - len(directory))

    def header(checksum: int) -> bytes:
        total = metadata_offset + len(metadata)
        return HEADER.pack(MAGIC, VERSION, flags, len(entries), total, metadata_offset, checksum, bytes(16))

    return header(crc64(metadata, crc64(directory, crc64(header(0))))) + directory


# --- reading ----------------------------------------------------------------------------------------------------------


class FileBytes:
    """The bytes of a file: mapped into memory, so that those are read that are used, or read where they are asked for.

    A file that is open here stays the same when another takes its place.
    """

    def __init__(self, path: Path, mapped: bool) -> None:
        self.path = os.fspath(path)
        self._map: mmap | None = None
        self._descriptor = -1
        try:
            self._descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
            status = os.fstat(self._descriptor)
            if not stat.S_ISREG(status.st_mode):
                raise self.refused("it is a folder" if stat.S_ISDIR(status.st_mode) else "it is no file")
            self.size = status.st_size
            if mapped and self.size:
                self._map = mmap(self._descriptor, self.size, access=ACCESS_READ)
        except OSError as error:
            self.close()
            hint = "a path begins in the folder where the program was started" if error.errno == ENOENT else None
            raise CheckpointError(f"cannot read {self.path!r}: {reason(error)}", span=ek.here(), hint=hint) from None
        except CheckpointError:
            self.close()
            raise

    def refused(self, why: str, hint: str | None = None) -> CheckpointError:
        """An error that says why the file is not read."""
        return CheckpointError(f"{self.path!r} is refused: {why}", span=ek.here(), hint=hint)

    def view(self, place: int, size: int) -> Any:
        """Bytes of the file, an array of uint8; the caller has checked that they are within it."""
        if self._map is not None:
            return np.frombuffer(self._map, np.uint8, size, place)
        if self._descriptor < 0:
            raise CheckpointError(f"{self.path!r} was closed", span=ek.here())
        out = np.empty(size, np.uint8)
        self.read_into(place, out)
        return out

    def read_into(self, place: int, out: Any) -> None:
        """Fill an array of uint8 with bytes of the file."""
        done = 0
        try:
            while done < out.size:
                count = os.preadv(self._descriptor, [memoryview(out)[done : done + (1 << 30)]], place + done)
                if count == 0:
                    raise self.refused("it became shorter while it was read")
                done += count
        except OSError as error:
            raise CheckpointError(f"cannot read {self.path!r}: {reason(error)}", span=ek.here()) from None

    def file(self) -> BinaryIO:
        """The same file, for those who read files."""
        return os.fdopen(os.dup(self._descriptor), "rb")

    def close(self) -> None:
        """Close the file; what was taken of a mapped one stays."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
        self._descriptor, self._map = -1, None  # the map goes with the last array over it

    def __del__(self, ending: Any = sys.is_finalizing) -> None:
        if not ending():  # the names of this module may be gone by then, and the system closes files
            self.close()


@dataclass(frozen=True)
class Layout:
    """What stands where in a file."""

    version: int
    flags: int
    entries: tuple[Entry, ...]
    data_offset: int
    metadata_offset: int
    metadata: bytes


def read_layout(source: FileBytes) -> Layout:
    """Header, directory and the bytes of the metadata of a file; all of it checked, nothing of the tensors read."""
    size = source.size
    if size < HEADER.size:
        raise source.refused(f"it has {size} bytes, and the header of a checkpoint alone has {HEADER.size}")
    head = source.view(0, HEADER.size).tobytes()
    magic, version, flags, count, total, metadata_offset, checksum, _ = HEADER.unpack(head)
    if magic != MAGIC:
        raise source.refused(_what_it_may_be(magic), "an .eskpt file begins with the letters ESKPT001")
    if version >> 16 != MAJOR:
        newer = version >> 16 > MAJOR
        raise source.refused(
            f"it is of version {version >> 16}.{version & 0xFFFF} of the format, and this program reads {MAJOR}.x",
            "a newer version of Eshkol reads it" if newer else None,
        )
    if flags & ~KNOWN_FLAGS:
        raise source.refused(
            f"it needs what this version does not know (flags {flags & ~KNOWN_FLAGS:#x})",
            "a newer version of Eshkol reads it",
        )
    if total != size:
        short = "it is cut short" if size < total else "something was added to it"
        raise source.refused(f"its header speaks of {total} bytes, and it has {size}: {short}")
    if not HEADER.size <= metadata_offset <= size or metadata_offset % ALIGNMENT:
        raise source.refused(f"its metadata would be at byte {metadata_offset} of {size}")
    if size - metadata_offset > MOST_METADATA:
        raise source.refused(f"its metadata have {size - metadata_offset} bytes, more than {MOST_METADATA}")
    if count > min(MOST_TENSORS, (metadata_offset - HEADER.size) // LEAST_ROW):
        raise source.refused(f"it announces {count} tensors, more than there is room for")
    entries, data_offset = _Directory(source, flags, metadata_offset).rows(count)
    metadata = source.view(metadata_offset, size - metadata_offset).tobytes()
    directory = source.view(HEADER.size, data_offset - HEADER.size)
    plain = head[:CHECKSUM_AT] + bytes(8) + head[CHECKSUM_AT + 8 :]
    if crc64(metadata, crc64(directory, crc64(plain))) != checksum:
        raise source.refused("it is damaged: header, directory or metadata do not have the checksum that is written")
    return Layout(version, flags, tuple(entries), data_offset, metadata_offset, metadata)


def _what_it_may_be(magic: bytes) -> str:
    if magic[:5] == MAGIC[:5]:
        return f"it begins with {magic!r}, a format of another version than {MAGIC.decode()}"
    if magic[:2] == b"PK":
        return "it is a zip file, as of NumPy (load_npz) or PyTorch (load_pytorch), and no .eskpt"
    if magic[2:] == bytes(6) or (magic[4:] == bytes(4) and any(magic)):
        return "it is no .eskpt file; perhaps it is of safetensors (load_safetensors)"
    return "it is no .eskpt file"


class _Directory:
    """Walks the rows of a directory."""

    def __init__(self, source: FileBytes, flags: int, end: int) -> None:
        self.source, self.flags, self.end = source, flags, end
        self.place = self.start = HEADER.size
        self.window = b""

    def take(self, size: int) -> bytes:
        if self.place + size > self.end:
            raise self.source.refused("its directory goes beyond the place of the metadata")
        at = self.place - self.start
        if at + size > len(self.window):
            self.start, at = self.place, 0
            ahead = min(max(1 << 16, size), self.end - self.place)
            self.window = self.source.view(self.place, ahead).tobytes()
        self.place += size
        return self.window[at : at + size]

    def rows(self, count: int) -> tuple[list[Entry], int]:
        """The entries, and where the tensors begin."""
        entries = [self._row(number) for number in range(count)]
        data_offset = expected = aligned(self.place)
        names: set[str] = set()
        for entry in entries:
            if entry.name in names:
                raise self.source.refused(f"two tensors are named {entry.name!r}")
            names.add(entry.name)
            self._check_place(entry, expected)
            expected = aligned(entry.offset + entry.stored)
        if expected != self.end:
            raise self.source.refused(f"its tensors end at byte {expected}, and the metadata begin at {self.end}")
        return entries, data_offset

    def _row(self, number: int) -> Entry:
        refused = self.source.refused
        (length,) = struct.unpack("<H", self.take(2))
        try:
            name = self.take(length).decode("utf-8")
        except UnicodeDecodeError:
            raise refused(f"the name of tensor {number} is not UTF-8") from None
        if not name or "\0" in name:
            raise refused(f"tensor {number} has the name {name!r}")
        code, axes = struct.unpack("<BB", self.take(2))
        if code >= len(DTYPES):
            raise refused(f"tensor {name!r} has a dtype that is not known, number {code}")
        if axes > MOST_AXES:
            raise refused(f"tensor {name!r} has {axes} axes, more than {MOST_AXES}")
        *shape, offset, stored = struct.unpack(f"<{axes + 2}Q", self.take(8 * (axes + 2)))
        if not is_shape(shape, item_size(DTYPES[code])):
            raise refused(f"tensor {name!r} has the shape {shape}, which no memory holds")
        return Entry(name, DTYPES[code], tuple(shape), offset, stored)

    def _check_place(self, entry: Entry, expected: int) -> None:
        where = f"tensor {entry.name!r} at byte {entry.offset}"
        if entry.offset % ALIGNMENT:
            raise self.source.refused(f"{where} is not aligned to {ALIGNMENT} bytes")
        if entry.offset < expected:
            raise self.source.refused(f"{where} overlaps what stands before it")
        if entry.offset + entry.stored > self.end:
            raise self.source.refused(f"{where} with {entry.stored} bytes goes beyond the end of the tensors")
        if entry.offset > expected:
            raise self.source.refused(f"{where} leaves a gap of {entry.offset - expected} bytes before it")
        if entry.compressed:
            if not self.flags & COMPRESSED:
                raise self.source.refused(f"{where} has {entry.stored} bytes, and its shape and dtype {entry.size}")
            if entry.size > EXPANSION * entry.stored:
                raise self.source.refused(
                    f"{where} would grow from {entry.stored} bytes to {entry.size}, more than {EXPANSION} times as much"
                )
