"""MessagePack: plain values as bytes and back, for the metadata of checkpoints.

None, bools, integers, floats, strings, bytes, lists and maps are as in the specification; an integer beyond 64 bits, a
tuple and a complex number are extensions of ours, as is a reference to a tensor of the same file (docs/eskpt.md).
Bytes that are read are not trusted: every count is checked against what is left before anything is made.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from eshkol.errors import CheckpointError

DEPTH = 64  # of lists in lists
MOST_ITEMS = 1 << 22
EXT_TENSOR, EXT_TUPLE, EXT_INTEGER, EXT_COMPLEX, EXT_ARRAY = 1, 2, 3, 4, 5


@dataclass(frozen=True, slots=True)
class Reference:
    """A tensor of the file, by its name; `array` where it is a NumPy array for the program."""

    name: str
    array: bool = False


# --- values to bytes --------------------------------------------------------------------------------------------------


def pack(value: Any) -> bytes:
    """The bytes of a value."""
    out = bytearray()
    _pack(value, out, "", 0)
    return bytes(out)


def _pack(value: Any, out: bytearray, where: str, depth: int) -> None:
    if depth > DEPTH:
        raise CheckpointError(f"metadata{where} is nested more than {DEPTH} deep", hint="is it part of itself?")
    if value is None:
        out.append(0xC0)
    elif isinstance(value, bool):
        out.append(0xC3 if value else 0xC2)
    elif isinstance(value, int):
        _pack_integer(int(value), out)
    elif isinstance(value, float):
        out += struct.pack(">Bd", 0xCB, value)
    elif isinstance(value, str):
        try:
            _pack_text(value.encode(), out)
        except UnicodeEncodeError:
            raise CheckpointError(f"metadata{where} has a string that is no Unicode text: {value!r}") from None
    elif isinstance(value, bytes | bytearray | memoryview):
        _pack_sized(bytes(value), out, (0xC4, 0xC5, 0xC6))
    elif isinstance(value, Reference):
        _pack_extension(EXT_ARRAY if value.array else EXT_TENSOR, value.name.encode(), out)
    elif isinstance(value, complex):
        _pack_extension(EXT_COMPLEX, struct.pack("<dd", value.real, value.imag), out)
    elif isinstance(value, tuple | list):
        inner = bytearray() if isinstance(value, tuple) else out
        _pack_count(len(value), inner, 0x90, 15, (0xDC, 0xDD))
        for k, item in enumerate(value):
            _pack(item, inner, f"{where}[{k}]", depth + 1)
        if isinstance(value, tuple):
            _pack_extension(EXT_TUPLE, bytes(inner), out)
    elif isinstance(value, Mapping):
        _pack_count(len(value), out, 0x80, 15, (0xDE, 0xDF))
        for key, item in value.items():
            if not isinstance(key, str | int | bool | float | bytes):
                raise CheckpointError(f"metadata{where} has the key {key!r}", hint="keys are strings or numbers")
            _pack(key, out, f"{where}[{key!r}]", depth + 1)
            _pack(item, out, f"{where}[{key!r}]", depth + 1)
    else:
        raise CheckpointError(
            f"metadata{where} is a {type(value).__name__}, which a checkpoint does not hold",
            hint="numbers, strings, bytes, tensors, and lists, tuples and dicts of them can be saved",
        )


def _pack_integer(value: int, out: bytearray) -> None:
    if 0 <= value < 128:
        out.append(value)
    elif -32 <= value < 0:
        out.append(value + 256)
    elif 0 <= value < 1 << 64:
        kind = next(k for k in range(4) if value < 1 << (8 << k))
        out.append(0xCC + kind)
        out += value.to_bytes(1 << kind, "big")
    elif -(1 << 63) <= value < 0:
        kind = next(k for k in range(4) if value >= -(1 << ((8 << k) - 1)))
        out.append(0xD0 + kind)
        out += value.to_bytes(1 << kind, "big", signed=True)
    else:
        _pack_extension(EXT_INTEGER, value.to_bytes(value.bit_length() // 8 + 1, "little", signed=True), out)


def _pack_text(text: bytes, out: bytearray) -> None:
    if len(text) < 32:
        out.append(0xA0 | len(text))
        out += text
    else:
        _pack_sized(text, out, (0xD9, 0xDA, 0xDB))


def _pack_sized(data: bytes, out: bytearray, codes: tuple[int, int, int]) -> None:
    kind = next((k for k in range(3) if len(data) < 1 << (8 << k)), None)
    if kind is None:
        raise CheckpointError(f"metadata has {len(data)} bytes in one piece", hint="save it as a tensor of uint8")
    out.append(codes[kind])
    out += len(data).to_bytes(1 << kind, "big")
    out += data


def _pack_extension(kind: int, data: bytes, out: bytearray) -> None:
    if len(data) in (1, 2, 4, 8, 16):
        out.append(0xD4 + (1, 2, 4, 8, 16).index(len(data)))
        out.append(kind)
        out += data
    else:
        start = len(out)
        _pack_sized(data, out, (0xC7, 0xC8, 0xC9))
        out.insert(start + 1 + (1, 2, 4)[out[start] - 0xC7], kind)


def _pack_count(count: int, out: bytearray, small: int, most: int, codes: tuple[int, int]) -> None:
    if count <= most:
        out.append(small | count)
    elif count < 1 << 32:
        out.append(codes[count >= 1 << 16])
        out += count.to_bytes(4 if count >= 1 << 16 else 2, "big")
    else:
        raise CheckpointError(f"metadata has a list or map of {count} items")


# --- bytes to values --------------------------------------------------------------------------------------------------


def unpack(data: Any) -> Any:
    """The value that bytes are of; anything wrong with them is an error."""
    reader = _MsgpackReader(memoryview(data).cast("B"))
    value = reader.value(0)
    if reader.place != len(reader.data):
        raise CheckpointError(f"metadata ends after {reader.place} bytes, and there are {len(reader.data)}")
    return value


class _MsgpackReader:
    """Where reading stands in the bytes."""

    def __init__(self, data: memoryview) -> None:
        self.data, self.place, self.items = data, 0, 0

    def take(self, count: int) -> memoryview:
        end = self.place + count
        if end > len(self.data):
            raise CheckpointError(
                f"metadata at byte {self.place} asks for {count} bytes, and {len(self.data) - self.place} are left"
            )
        found = self.data[self.place : end]
        self.place = end
        return found

    def number(self, size: int, signed: bool = False) -> int:
        return int.from_bytes(self.take(size), "big", signed=signed)

    def value(self, depth: int) -> Any:
        if depth > DEPTH:
            raise CheckpointError(f"metadata is nested more than {DEPTH} deep")
        start = self.place
        code = self.number(1)
        if code < 0x80:
            return code
        if code >= 0xE0:
            return code - 256
        if code < 0x90:
            return self.map(code & 15, depth)
        if code < 0xA0:
            return self.list(code & 15, depth)
        if code < 0xC0:
            return self.text(code & 31)
        found = _READERS.get(code)
        if found is None:
            raise CheckpointError(f"metadata at byte {start} has the code {code:#x}, which means nothing")
        return found(self, depth)

    def text(self, size: int) -> str:
        start = self.place
        try:
            return str(self.take(size), "utf-8")
        except UnicodeDecodeError:
            raise CheckpointError(f"metadata at byte {start} has a string that is not UTF-8") from None

    def counted(self, count: int, each: int) -> None:
        if count * each > len(self.data) - self.place:
            raise CheckpointError(
                f"metadata at byte {self.place} announces {count} items in {len(self.data) - self.place} bytes"
            )
        self.items += count
        if self.items > MOST_ITEMS:
            raise CheckpointError(f"metadata have more than {MOST_ITEMS} items")

    def list(self, count: int, depth: int) -> Any:
        self.counted(count, 1)
        return [self.value(depth + 1) for _ in range(count)]

    def map(self, count: int, depth: int) -> Any:
        self.counted(count, 2)
        found: dict[Any, Any] = {}
        for _ in range(count):
            start = self.place
            key = self.value(depth + 1)
            if not isinstance(key, str | int | float | bytes):
                raise CheckpointError(f"metadata at byte {start} has a key that is a {type(key).__name__}")
            if key in found:
                raise CheckpointError(f"metadata at byte {start} has the key {key!r} twice")
            found[key] = self.value(depth + 1)
        return found

    def extension(self, size: int, depth: int) -> Any:
        kind = self.number(1, signed=True)
        start = self.place
        data = self.take(size)
        if kind in (EXT_TENSOR, EXT_ARRAY):
            self.place = start
            return Reference(self.text(size), kind == EXT_ARRAY)
        if kind == EXT_TUPLE:
            inner = _MsgpackReader(data)
            inner.items = self.items
            found = inner.value(depth + 1)
            self.items = inner.items
            if isinstance(found, list) and inner.place == size:
                return tuple(found)
        if kind == EXT_INTEGER:
            return int.from_bytes(data, "little", signed=True)
        if kind == EXT_COMPLEX and size == 16:
            return complex(*struct.unpack("<dd", data))
        raise CheckpointError(f"metadata at byte {start} has an extension of type {kind} that this version cannot read")


def _single(reader: _MsgpackReader) -> float:
    return float(struct.unpack(">f", reader.take(4))[0])


def _double(reader: _MsgpackReader) -> float:
    return float(struct.unpack(">d", reader.take(8))[0])


_Read = Callable[[_MsgpackReader, int], Any]


def _sized(make: Callable[[_MsgpackReader, int, int], Any], *sizes: int) -> list[_Read]:
    """Readers of what has a size, itself a number of so many bytes."""

    def reader(width: int) -> _Read:
        return lambda r, depth: make(r, r.number(width), depth)

    return [reader(width) for width in sizes]


def _fixed(make: Callable[[_MsgpackReader, int, int], Any], *sizes: int) -> list[_Read]:
    """Readers of what has one of some sizes."""

    def reader(size: int) -> _Read:
        return lambda r, depth: make(r, size, depth)

    return [reader(size) for size in sizes]


# By the codes of the specification, in order.
_READERS: dict[int, _Read] = {
    code: read
    for first, readers in (
        (0xC0, [lambda r, d: None]),
        (0xC2, [lambda r, d: False, lambda r, d: True]),
        (0xC4, _sized(lambda r, n, d: bytes(r.take(n)), 1, 2, 4)),
        (0xC7, _sized(_MsgpackReader.extension, 1, 2, 4)),
        (0xCA, [lambda r, d: _single(r), lambda r, d: _double(r)]),
        (0xCC, _fixed(lambda r, n, d: r.number(n), 1, 2, 4, 8)),
        (0xD0, _fixed(lambda r, n, d: r.number(n, signed=True), 1, 2, 4, 8)),
        (0xD4, _fixed(_MsgpackReader.extension, 1, 2, 4, 8, 16)),
        (0xD9, _sized(lambda r, n, d: r.text(n), 1, 2, 4)),
        (0xDC, _sized(_MsgpackReader.list, 2, 4)),
        (0xDE, _sized(_MsgpackReader.map, 2, 4)),
    )
    for code, read in enumerate(readers, first)
}
