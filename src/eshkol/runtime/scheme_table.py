"""What the C runtime says of itself: the numbers of its layout and the rows of its primitives, read once."""

from __future__ import annotations

import ctypes
import re
from bisect import bisect_right
from functools import cache
from pathlib import Path
from typing import NamedTuple

from eshkol.runtime.library import native


class _Number(ctypes.Structure):
    _fields_ = (("name", ctypes.c_char_p), ("value", ctypes.c_int64))


class _Row(ctypes.Structure):
    _fields_ = (
        ("name", ctypes.c_char_p), ("signature", ctypes.c_char_p), ("min", ctypes.c_int32), ("max", ctypes.c_int32),
        ("convention", ctypes.c_int32), ("function", ctypes.c_void_p), ("doc", ctypes.c_char_p),
    )  # fmt: skip


LIBRARY = ("eshkol", "primitives")  # the name of the library that has the primitives
CONVENTIONS = ("0", "1", "2", "N", "entry")  # in the order of value.h


class PrimitiveRow(NamedTuple):
    """A primitive, as its row in the C table says."""

    name: str
    signature: str
    min: int
    max: int  # -1: any number of arguments
    convention: str  # one of CONVENTIONS
    address: int
    doc: str

    def takes(self, count: int) -> bool:
        return self.min <= count and (self.max < 0 or count <= self.max)

    @property
    def is_entry(self) -> bool:
        """Whether it is compiled code rather than a C function."""
        return self.convention == "entry"


@cache
def layout() -> dict[str, int]:
    """Tags, offsets, sizes and other numbers, by name."""
    library = native()
    numbers = (_Number * (1 << 16)).in_dll(library, "esk_layout")
    found: dict[str, int] = {}
    for number in numbers:
        if number.name is None:
            return found
        found[number.name.decode()] = number.value
    raise AssertionError("the table of the layout has no end")


class RowPlace(NamedTuple):
    """Where the row of a primitive lies in memory, and what has to be known of it at every start."""

    address: int
    function: int  # 0 where it is compiled code
    is_entry: bool


@cache
def row_places() -> dict[str, RowPlace]:
    """All primitives, by name."""
    library = native()
    library.esk_primitive_count.restype = ctypes.c_int64
    at = library.esk_primitive
    at.restype, at.argtypes = ctypes.c_void_p, (ctypes.c_int64,)
    found = {}
    for index in range(library.esk_primitive_count()):
        address = at(index)
        row = _Row.from_address(address)
        found[row.name.decode()] = RowPlace(address, row.function or 0, CONVENTIONS[row.convention] == "entry")
    return found


@cache
def rows() -> dict[str, PrimitiveRow]:
    """All primitives, by name, with all that their rows say."""
    found = {}
    for name, place in row_places().items():
        row = _Row.from_address(place.address)
        signature, doc = row.signature.decode(), row.doc.decode()
        found[name] = PrimitiveRow(name, signature, row.min, row.max, CONVENTIONS[row.convention], place.function, doc)
    return found


@cache
def primitive_symbols() -> dict[str, str]:
    """Of each primitive, by name, in which table of C it stands and at which place: "errors_0"."""
    library, size = native(), ctypes.sizeof(_Row)
    tables = []
    for file in primitive_files():
        first = ctypes.addressof(_Row.in_dll(library, f"esk_{file}_primitives"))
        tables.append((first, file))
    tables.sort()
    found = {}
    for name, place in row_places().items():
        first, file = tables[bisect_right(tables, (place.address, "~")) - 1]
        found[name] = f"{file}_{(place.address - first) // size}"
    return found


def primitive_files() -> list[str]:
    """The C files of the language's runtime that have primitives, as value.h lists them."""
    text = (Path(__file__).parent / "native" / "scheme" / "value.h").read_text()
    listed = text.partition("#define ESK_PRIMITIVE_FILES(X)")[2].partition("\n\n")[0]
    return re.findall(r"X\((\w+)\)", listed)
