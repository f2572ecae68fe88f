"""Protocol buffers as bytes: as much of their wire format as event files need.

Comes in: numbers, texts and bytes with the numbers of their fields. Goes out: a message, which is a concatenation of
fields; and back: `parse` gives the fields of a message by number. `events` knows what the fields mean.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

import numpy as np

from eshkol.errors import EshkolError

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5  # the wire types
_U64 = (1 << 64) - 1

Fields = dict[int, list[int | bytes]]  # every occurrence of a field; fixed numbers as their bytes


def varint(number: int) -> bytes:
    """An integer in groups of 7 bits, the low ones first; a negative one as its 64-bit complement."""
    number &= _U64
    groups = bytearray()
    while number > 0x7F:
        groups.append(number & 0x7F | 0x80)
        number >>= 7
    groups.append(number)
    return bytes(groups)


def integer(field: int, number: int) -> bytes:
    """A field of type int32, int64 or enum; 0 is what a field is that is not there."""
    return varint(field << 3 | VARINT) + varint(number) if number else b""


def float64(field: int, number: float) -> bytes:
    """A field of type double."""
    return varint(field << 3 | FIXED64) + struct.pack("<d", number)


def float32(field: int, number: float) -> bytes:
    """A field of type float: the nearest one, infinity beyond the largest."""
    with np.errstate(over="ignore"):
        return varint(field << 3 | FIXED32) + np.array(number, "<f4").tobytes()


def data(field: int, content: bytes) -> bytes:
    """A field of type bytes, or a message within a message."""
    return varint(field << 3 | BYTES) + varint(len(content)) + content


def text(field: int, content: str) -> bytes:
    """A field of type string."""
    return data(field, content.encode("utf-8"))


def float64s(field: int, numbers: Sequence[float] | np.ndarray) -> bytes:
    """A packed field of many doubles."""
    return data(field, np.asarray(numbers, "<f8").tobytes())


def parse(message: bytes) -> Fields:
    """The fields of a message by their numbers."""
    fields: Fields = {}
    place = 0
    while place < len(message):
        key, place = _read_varint(message, place)
        kind = key & 7
        value: int | bytes
        if kind == VARINT:
            value, place = _read_varint(message, place)
        else:
            if kind == BYTES:
                size, place = _read_varint(message, place)
            elif kind in (FIXED32, FIXED64):
                size = 4 if kind == FIXED32 else 8
            else:
                raise EshkolError(f"byte {place} of a message: there is no wire type {kind}")
            value = message[place : place + size]
            place += size
            if place > len(message):
                raise EshkolError(f"a message ends within its field {key >> 3}")
        fields.setdefault(key >> 3, []).append(value)
    return fields


def _read_varint(message: bytes, place: int) -> tuple[int, int]:
    """The integer that begins at a place, and the place after it."""
    number = 0
    for shift in range(0, 70, 7):
        if place == len(message):
            raise EshkolError("a message ends within an integer")
        byte = message[place]
        place += 1
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            return number & _U64, place
    raise EshkolError(f"byte {place} of a message: an integer of more than 64 bits")


def read_integer(fields: Fields, field: int) -> int:
    """A field of type int64; 0 where it is not there."""
    value = fields.get(field, [0])[-1]
    if not isinstance(value, int):
        raise EshkolError(f"field {field} of a message is no integer")
    return value - (1 << 64) if value >> 63 else value


def read_data(fields: Fields, field: int) -> bytes:
    """A field of type bytes, string or message; empty where it is not there."""
    value = fields.get(field, [b""])[-1]
    if not isinstance(value, bytes):
        raise EshkolError(f"field {field} of a message is an integer, not bytes")
    return value


def read_text(fields: Fields, field: int) -> str:
    """A field of type string; empty where it is not there."""
    try:
        return read_data(fields, field).decode("utf-8")
    except UnicodeDecodeError:
        raise EshkolError(f"field {field} of a message is no text in UTF-8") from None


def read_float(fields: Fields, field: int) -> float:
    """A field of type float or double; 0 where it is not there."""
    value = read_data(fields, field)
    if len(value) not in (0, 4, 8):
        raise EshkolError(f"field {field} of a message is no floating-point number")
    return float(struct.unpack("<f" if len(value) == 4 else "<d", value)[0]) if value else 0.0


def read_float64s(fields: Fields, field: int) -> list[float]:
    """A packed field of many doubles."""
    value = b"".join(part for part in fields.get(field, []) if isinstance(part, bytes))
    if len(value) % 8:
        raise EshkolError(f"field {field} of a message is no row of doubles")
    return [float(number) for number in np.frombuffer(value, "<f8")]
