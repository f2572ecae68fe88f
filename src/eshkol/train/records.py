"""TFRecord files: records of any bytes, each guarded by checksums.

A record is its length (u64), the masked CRC-32C of the length, the bytes, and their masked CRC-32C; all little-endian.
Comes in: bytes. Goes out: a framed record; and back. `events` writes its messages in such records.
"""

from __future__ import annotations

import functools
import struct
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from eshkol.errors import EshkolError
from eshkol.io.files import reason
from eshkol.support.warning import warn

_POLYNOMIAL = 0x82F63B78  # Castagnoli's, its bits reversed
_ALL = 0xFFFFFFFF
_MASK_DELTA = 0xA282EAD8  # a checksum of bytes that hold checksums is a weak one: stored ones are turned and moved
_HEAD, _SUM = struct.Struct("<QI"), struct.Struct("<I")
_LANE = 256  # bytes that one lane of a long text has


def _table() -> list[int]:
    table = []
    for byte in range(256):
        for _ in range(8):
            byte = byte >> 1 ^ (_POLYNOMIAL if byte & 1 else 0)
        table.append(byte)
    return table


_TABLE = _table()
_TABLE_ARRAY = np.array(_TABLE, np.uint32)


def crc32c(data: bytes) -> int:
    """The CRC-32C of bytes.

    A byte at a time, which is slow in Python; so of long texts many lanes of 256 bytes go abreast, each from 0, and are
    put together: the checksum is linear, and the state at the end of a lane adds what 256 bytes of zeros make of the
    state at its beginning.
    """
    state = _ALL
    whole = len(data) // _LANE
    start = 0
    if whole > 8:
        start = whole * _LANE
        lanes = _advance(np.zeros(whole, np.uint32), np.frombuffer(data, np.uint8, start).reshape(whole, _LANE).T)
        first, second, third, fourth = _behind_zeros()
        for lane in lanes.tolist():
            state = (
                first[state & 255] ^ second[state >> 8 & 255] ^ third[state >> 16 & 255] ^ fourth[state >> 24] ^ lane
            )
    for byte in data[start:]:
        state = _TABLE[(state ^ byte) & 255] ^ state >> 8
    return state ^ _ALL


def _advance(states: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """States after one more byte each, for every row of bytes."""
    for column in columns:
        states = _TABLE_ARRAY[(states ^ column) & 255] ^ states >> 8
    return states


@functools.cache
def _behind_zeros() -> list[list[int]]:
    """What a lane of zeros makes of a state: a table for each of its four bytes."""
    every = np.arange(256, dtype=np.uint32)
    zeros = np.zeros((_LANE, 256), np.uint8)
    return [_advance(every << np.uint32(shift), zeros).tolist() for shift in (0, 8, 16, 24)]


def masked(data: bytes) -> int:
    """The checksum of bytes as records store it."""
    crc = crc32c(data)
    return ((crc >> 15 | crc << 17) + _MASK_DELTA) & _ALL


def framed(data: bytes) -> bytes:
    """A record that holds the bytes."""
    length = struct.pack("<Q", len(data))
    return b"".join((length, _SUM.pack(masked(length)), data, _SUM.pack(masked(data))))


def read_records(path: Path, who: str) -> Iterator[bytes]:
    """What the records of a file hold; `who` is the caller, for errors.

    A last record that is cut off is left out, with a warning: its writer was stopped, or has not written it all yet.
    """
    try:
        content = path.read_bytes()
    except OSError as error:
        raise EshkolError(f"{who}: cannot read {path}: {reason(error)}") from None
    place = 0
    while place < len(content):
        behind = place + _HEAD.size
        if behind <= len(content):
            length, check = _HEAD.unpack_from(content, place)
            if check != masked(content[place : place + 8]):
                raise _corrupt(path, place, "the checksum of the length of its record is wrong", who)
            behind += length + _SUM.size
        if behind > len(content):
            warn(f"{who}: {path} is cut off within the record at byte {place}; what stands before it is read")
            return
        data = content[place + _HEAD.size : behind - _SUM.size]
        if _SUM.unpack_from(content, behind - _SUM.size)[0] != masked(data):
            raise _corrupt(path, place, "the checksum of its record is wrong", who)
        yield data
        place = behind


def _corrupt(path: Path, place: int, what: str, who: str) -> EshkolError:
    return EshkolError(
        f"{who}: {path} is corrupt at byte {place}: {what}",
        hint="is this a file of TensorBoard events? If it is, it was damaged: take a copy of it, or log anew",
    )
