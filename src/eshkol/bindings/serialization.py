"""Values of Scheme as bytes: what `serialize` writes and `deserialize` reads.

Comes in, goes out: trees of plain values (lib/eshkol/serialization.esk makes them of values, and values of them). The
bytes: "ESKVAL01", the length of what follows as u64, one tree, and its CRC-64 as u64; numbers are little-endian. A tree
is a byte for its kind and then what `_write` says; counts and lengths are LEB128. Bytes that are read are not trusted:
the checksum, every count against what is left, and the shape of every node are looked at before anything is made.
Nothing is recursive, so deep nesting is no danger.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from fractions import Fraction
from typing import Any, NoReturn

import numpy as np

from eshkol.bindings.rows import shown
from eshkol.bindings.values import Char, Keyword, Procedure, Symbol, Vector
from eshkol.errors import CheckpointError, DTypeError
from eshkol.io.crc64 import crc64
from eshkol.ops import dtypes
from eshkol.tensors import api as ek
from eshkol.tensors.value import Tensor

MAGIC = b"ESKVAL01"
MOST_AXES = 32

NULL, TRUE, FALSE, INTEGER, RATIO, FLOAT, STRING, SYMBOL, KEYWORD, CHAR, BYTES, TENSOR, LIST, NODE = range(14)
KINDS = (
    "shared", "again", "void", "eof", "rectangular", "dotted", "vector", "box", "table", "record", "standard",
    "procedure",
)  # fmt: skip
"""What stands first in a vector of the tree; the byte of a kind is NODE and its place here."""
NODES = {name: NODE + place for place, name in enumerate(KINDS)}
TABLES = {"equal", "eq", "eqv", "string", "string-ci"}


# ---- trees to bytes --------------------------------------------------------------------------------------------------


def packed(alone: list[Any]) -> bytes:
    """The bytes of a tree, which stands alone in a vector."""
    out = bytearray()
    todo = list(alone)
    while todo:
        _write(todo.pop(), out, todo)
    return b"".join((MAGIC, struct.pack("<Q", len(out)), out, struct.pack("<Q", crc64(out))))


def _write(value: Any, out: bytearray, todo: list[Any]) -> None:
    """Write one value; the parts of a list or node are put on the list of what is to be done next."""
    kind = type(value)
    if kind is bool:
        out.append(TRUE if value else FALSE)
    elif kind is int:
        out.append(INTEGER)
        _write_integer(value, out)
    elif kind is float:
        out += struct.pack("<Bd", FLOAT, value)
    elif kind is Fraction:
        out.append(RATIO)
        _write_integer(value.numerator, out)
        _write_integer(value.denominator, out)
    elif kind in _TEXTS:
        _write_bytes(_TEXTS[kind], value.encode(), out)
    elif kind is bytes:
        _write_bytes(BYTES, value, out)
    elif kind is Vector:
        out.append(NODES[value[0]])
        _write_count(len(value) - 1, out)
        todo.extend(reversed(value[1:]))
    elif kind is list:
        if not value:
            out.append(NULL)
            return
        out.append(LIST)
        _write_count(len(value), out)
        todo.extend(reversed(value))
    elif isinstance(value, Tensor):
        _write_tensor(value, out)
    else:
        raise _refused(value)


_TEXTS: dict[type, int] = {str: STRING, Symbol: SYMBOL, Keyword: KEYWORD, Char: CHAR}


def _write_count(count: int, out: bytearray) -> None:
    while count > 0x7F:
        out.append(count & 0x7F | 0x80)
        count >>= 7
    out.append(count)


def _write_integer(value: int, out: bytearray) -> None:
    size = (value + (value < 0)).bit_length() // 8 + 1
    _write_count(size, out)
    out += value.to_bytes(size, "little", signed=True)


def _write_bytes(kind: int, data: bytes, out: bytearray) -> None:
    out.append(kind)
    _write_count(len(data), out)
    out += data


def _write_tensor(value: Tensor, out: bytearray) -> None:
    array = np.ascontiguousarray(value.detach().numpy()).reshape(value.shape)
    _write_bytes(TENSOR, value.dtype.name.encode(), out)
    out.append(int(value.requires_grad))
    _write_count(array.ndim, out)
    for n in array.shape:
        _write_count(n, out)
    out += array.reshape(-1).view(np.uint8).tobytes()


def _refused(value: Any) -> DTypeError:
    from eshkol.nn import Module

    if isinstance(value, Procedure):
        return DTypeError(
            f"the procedure {value.__name__} has no source to be written",
            hint="procedures that are written in Eshkol have one, unless they are continuations or parameters",
        )
    if isinstance(value, Module):
        return DTypeError(
            f"a model ({type(value).__name__}) is no plain value",
            hint="(save-checkpoint model file) writes it, or serialize (model-state model)",
        )
    return DTypeError(f"{shown(value)} cannot be written", hint="ports, promises and objects of Python stay here")


# ---- bytes to trees --------------------------------------------------------------------------------------------------


def unpacked(data: Any) -> Any:
    """The tree of bytes."""
    if not isinstance(data, bytes):
        raise DTypeError(f"a bytevector that serialize has made is wanted, not {shown(data)}")
    if data[:6] != MAGIC[:6]:
        raise _broken("they do not begin as serialize's do")
    if data[:8] != MAGIC:
        raise _broken(f"they are of version {data[6:8]!r}, and this program reads {MAGIC[6:].decode()}")
    if len(data) < 24:
        raise _broken("they are cut short")
    (size,) = struct.unpack_from("<Q", data, 8)
    if len(data) != size + 24:
        raise _broken(f"they are {len(data)}, and should be {size + 24}")
    if crc64(data[16:-8]) != struct.unpack_from("<Q", data, len(data) - 8)[0]:
        raise _broken("their checksum does not fit: something has changed them")
    reader = _ValueReader(data, 16, len(data) - 8)
    tree = reader.tree()
    if reader.at != reader.end:
        raise _broken("there is something behind the value")
    return tree


def _broken(why: str) -> CheckpointError:
    return CheckpointError(f"the bytes are no value of Eshkol's: {why}")


class _ValueReader:
    """Where one is in the bytes."""

    def __init__(self, data: bytes, at: int, end: int) -> None:
        self.data, self.at, self.end = data, at, end

    def tree(self) -> Any:
        """The next tree; what is open stands on a stack with the number of parts that are missing."""
        unfinished: list[tuple[list[Any], int]] = []
        while True:
            kind = self.byte()
            if kind in _READ:
                value = _READ[kind](self)
            else:
                begun, count = self._begun(kind)
                if count:
                    unfinished.append((begun, count + len(begun)))
                    continue
                value = _checked(begun)
            while unfinished:
                items, wanted = unfinished[-1]
                items.append(value)
                if len(items) < wanted:
                    break
                value = _checked(unfinished.pop()[0])
            else:
                return value

    def _begun(self, kind: int) -> tuple[list[Any], int]:
        """A list or node without its parts, and how many they are."""
        if kind == LIST:
            return [], self.count("items", 1) or self._fail("there is a list of nothing")
        if NODE <= kind < NODE + len(KINDS):
            return Vector([Symbol(KINDS[kind - NODE])]), self.count("parts", 1)
        return self._fail(f"there is no kind {kind}")

    def _fail(self, why: str) -> NoReturn:
        raise _broken(why)

    def byte(self) -> int:
        return self.take(1)[0]

    def take(self, count: int) -> bytes:
        if count > self.end - self.at:
            raise _broken("they are cut short")
        self.at += count
        return self.data[self.at - count : self.at]

    def count(self, what: str, size: int) -> int:
        """A count of things of so many bytes each, which must be there."""
        value = shift = 0
        while True:
            byte = self.byte()
            value |= (byte & 0x7F) << shift
            shift += 7
            if not byte & 0x80:
                break
            if shift > 56:
                raise _broken("there is a count that is too large")
        if value * size > self.end - self.at:
            raise _broken(f"there are {value} {what} in {self.end - self.at} bytes")
        return value

    def integer(self) -> int:
        return int.from_bytes(self.take(self.count("bytes", 1)), "little", signed=True)

    def ratio(self) -> Fraction:
        above, below = self.integer(), self.integer()
        if below < 2 or math.gcd(above, below) != 1:
            raise _broken("there is a ratio that is none")
        return Fraction(above, below)

    def float(self) -> float:
        value: float = struct.unpack("<d", self.take(8))[0]
        return value

    def bytes(self) -> bytes:
        return self.take(self.count("bytes", 1))

    def text(self) -> str:
        try:
            return self.bytes().decode()
        except UnicodeDecodeError:
            raise _broken("there is a string that is no UTF-8") from None

    def char(self) -> Char:
        text = self.text()
        if len(text) != 1:
            raise _broken("there is a character that is none")
        return Char(text)

    def tensor(self) -> Tensor:
        name = self.text()
        try:
            dtype = dtypes.of(name)
        except (DTypeError, TypeError, ValueError):
            raise _broken(f"there is no dtype {name!r}") from None
        trains = self.byte()
        axes = self.count("axes", 1)
        if trains > 1 or axes > MOST_AXES:
            raise _broken("there is a tensor that is none")
        shape = tuple(self.count("elements", 0) for _ in range(axes))
        size = math.prod(shape) * np.dtype(dtype.numpy).itemsize
        array = np.frombuffer(self.take(size), dtype.numpy).reshape(shape).copy()
        made: Tensor = ek.tensor(array)
        return made.requires_grad_() if trains else made


_READ: dict[int, Callable[[_ValueReader], Any]] = {
    NULL: lambda reader: [],
    TRUE: lambda reader: True,
    FALSE: lambda reader: False,
    INTEGER: _ValueReader.integer,
    RATIO: _ValueReader.ratio,
    FLOAT: _ValueReader.float,
    STRING: _ValueReader.text,
    SYMBOL: lambda reader: Symbol(reader.text()),
    KEYWORD: lambda reader: Keyword(reader.text()),
    CHAR: _ValueReader.char,
    BYTES: _ValueReader.bytes,
    TENSOR: _ValueReader.tensor,
}


def _checked(made: list[Any]) -> list[Any]:
    """A list, or a node, which must be as serialize makes them."""
    if isinstance(made, Vector) and not _SHAPES[made[0]](made[1:]):
        raise _broken(f"there is a {made[0]} that is none")
    return made


def _names(given: Any) -> bool:
    return isinstance(given, list) and not isinstance(given, Vector) and all(isinstance(x, Symbol) for x in given)


def _real(given: Any) -> bool:
    return type(given) in (int, float, Fraction)


def _is_procedure(parts: list[Any]) -> bool:
    if len(parts) != 3 or not (parts[0] is False or isinstance(parts[0], Symbol)):
        return False
    source, bindings = parts[1], parts[2]
    made = type(source) is list and len(source) > 1 and source[0] in ("lambda", "case-lambda", "named-lambda", "λ")
    return made and type(bindings) is list and all(_is_binding(b) for b in bindings)


def _is_binding(given: Any) -> bool:
    return type(given) is list and len(given) == 2 and isinstance(given[0], Symbol)


_SHAPES: dict[str, Callable[[list[Any]], bool]] = {
    "shared": lambda p: len(p) == 2 and type(p[0]) is int and not (isinstance(p[1], Vector) and p[1][0] == "again"),
    "again": lambda p: len(p) == 1 and type(p[0]) is int,
    "void": lambda p: not p,
    "eof": lambda p: not p,
    "rectangular": lambda p: len(p) == 2 and all(map(_real, p)),
    "dotted": lambda p: len(p) > 1,
    "vector": lambda p: True,
    "box": lambda p: len(p) == 1,
    "table": lambda p: len(p) % 2 == 1 and isinstance(p[0], Symbol) and p[0] in TABLES,
    "record": lambda p: len(p) > 1 and isinstance(p[0], Symbol) and _names(p[1]) and len(p) == 2 + len(p[1]),
    "standard": lambda p: len(p) == 1 and isinstance(p[0], Symbol),
    "procedure": _is_procedure,
}
