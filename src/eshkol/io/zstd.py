"""Zstandard: tensors of checkpoints made smaller, by the library that the system or the package `zstandard` has.

What is read is not trusted. The frames are walked here, before a library sees them: each must say how large its
content is, and all contents together are exactly what the tensor needs, so that nothing larger is ever made.
"""

from __future__ import annotations

import ctypes
import ctypes.util
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import Any

import numpy as np

from eshkol.errors import CheckpointError

MAGIC = 0xFD2FB528
SKIPPED = 0x184D2A50  # the first of sixteen magic numbers of frames without content
CHUNK = 1 << 24  # bytes of a tensor that become one frame
EXPANSION = 1024  # a tensor is at most so many times as large as what is stored of it: no bombs
LEVELS = (1, 19)


@dataclass(frozen=True)
class _Library:
    compress: Callable[[Any, int], bytes]
    decompress: Callable[[Any, Any], int]  # a frame, and the array for its content; how much it was, -1 for an error


# --- the library ------------------------------------------------------------------------------------------------------


@cache
def _library() -> _Library:
    name = ctypes.util.find_library("zstd")
    if name is not None:
        try:
            return _of_system(ctypes.CDLL(name))
        except (OSError, AttributeError):  # it does not load, or is another library of that name
            pass
    try:
        return _of_package(import_module("zstandard"))
    except ImportError:
        raise CheckpointError(
            "compressed checkpoints need Zstandard, which is not on this machine",
            hint="pip install zstandard, or install the system's libzstd",
        ) from None


def _of_system(library: ctypes.CDLL) -> _Library:
    size, pointer = ctypes.c_size_t, ctypes.c_void_p
    for name, result, arguments in (
        ("ZSTD_compress", size, [pointer, size, pointer, size, ctypes.c_int]),
        ("ZSTD_decompress", size, [pointer, size, pointer, size]),
        ("ZSTD_compressBound", size, [size]),
        ("ZSTD_isError", ctypes.c_uint, [size]),
    ):
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments

    def compress(data: Any, level: int) -> bytes:
        out = np.empty(library.ZSTD_compressBound(data.size), np.uint8)
        count = library.ZSTD_compress(out.ctypes.data, out.size, data.ctypes.data, data.size, level)
        if library.ZSTD_isError(count):
            raise CheckpointError("Zstandard cannot compress this tensor")
        return out[:count].tobytes()

    def decompress(frame: Any, out: Any) -> int:
        count = library.ZSTD_decompress(out.ctypes.data, out.size, frame.ctypes.data, frame.size)
        return -1 if library.ZSTD_isError(count) else int(count)

    return _Library(compress, decompress)


def _of_package(package: Any) -> _Library:
    def compress(data: Any, level: int) -> bytes:
        return bytes(package.ZstdCompressor(level=level, write_content_size=True).compress(data))

    def decompress(frame: Any, out: Any) -> int:
        try:
            found = package.ZstdDecompressor().decompress(frame, max_output_size=out.size)
        except package.ZstdError:
            return -1
        if len(found) == out.size:
            out[:] = np.frombuffer(found, np.uint8)
        return len(found)

    return _Library(compress, decompress)


# --- tensors ----------------------------------------------------------------------------------------------------------


def compressed(data: Any, level: int) -> list[bytes]:
    """The frames of bytes (an array of uint8); none where they would not be smaller."""
    library = _library()
    frames = [library.compress(data[k : k + CHUNK], level) for k in range(0, data.size, CHUNK)]
    stored = sum(map(len, frames))
    if (missing := -(-data.size // EXPANSION) - stored) > 0:  # what is all zeros: a frame without content, as ballast
        frames.append(SKIPPED.to_bytes(4, "little") + missing.to_bytes(4, "little") + bytes(missing))
        stored += len(frames[-1])
    return frames if stored < data.size else []


def decompressed(data: Any, out: Any, what: str) -> None:
    """Fill an array of uint8 with the contents of frames, which must be just as many; `what` is for errors."""
    place = 0
    library = _library()
    for start, end, content in frames_of(data, out.size, what):
        if library.decompress(data[start:end], out[place : place + content]) != content:
            raise CheckpointError(f"{what} is damaged: its zstd frame at byte {start} does not decompress")
        place += content


def frames_of(data: Any, wanted: int, what: str) -> list[tuple[int, int, int]]:
    """(begin, end, size of content) of each frame in bytes, whose contents are together as large as is wanted."""
    if wanted > EXPANSION * data.size:
        raise CheckpointError(
            f"{what} would grow from {data.size} bytes to {wanted}, more than {EXPANSION} times as much: refused"
        )
    found = []
    place, total = 0, 0
    while place < data.size:
        start = place
        place, content = _frame(data, place, what)
        if content is not None:
            total += content
            found.append((start, place, content))
    if total != wanted:
        raise CheckpointError(f"{what} takes {wanted} bytes, and its zstd frames say that they hold {total}")
    return found


def _frame(data: Any, place: int, what: str) -> tuple[int, int | None]:
    """Where a frame ends, and the size of its content, None where it is to be skipped (RFC 8878)."""

    def number(at: int, size: int) -> int:
        if at + size > data.size:
            raise CheckpointError(f"{what} is damaged: a zstd frame goes beyond its end")
        return int.from_bytes(data[at : at + size].tobytes(), "little")

    magic = number(place, 4)
    if magic & ~15 == SKIPPED:
        end = place + 8 + number(place + 4, 4)
        number(end, 0)
        return end, None
    if magic != MAGIC:
        raise CheckpointError(f"{what} is damaged: there is no zstd frame at its byte {place}")
    descriptor = number(place + 4, 1)
    single, checksum = bool(descriptor & 0x20), bool(descriptor & 4)
    size_code, dictionary = descriptor >> 6, descriptor & 3
    if descriptor & 8 or dictionary or (size_code == 0 and not single):
        raise CheckpointError(f"{what} is compressed in a way that is not read: a zstd frame must say its size")
    place += 5 + (not single)  # the window
    field = 1 << size_code
    content = number(place, field) + (256 if size_code == 1 else 0)
    place += field
    last = False
    while not last:
        block = number(place, 3)
        last, kind, size = bool(block & 1), block >> 1 & 3, block >> 3
        place += 3 + (1 if kind == 1 else size)
        if kind == 3:
            raise CheckpointError(f"{what} is damaged: a zstd block of an unknown kind")
    place += 4 * checksum
    number(place, 0)
    return place, content
