"""What the C runtime says of itself: the numbers of its layout and the rows of its primitives, read once."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from functools import cache

from eshkol.runtime.library import native


class _Number(ctypes.Structure):
    _fields_ = (("name", ctypes.c_char_p), ("value", ctypes.c_int64))


class _Row(ctypes.Structure):
    _fields_ = (
        ("name", ctypes.c_char_p), ("signature", ctypes.c_char_p), ("min", ctypes.c_int32), ("max", ctypes.c_int32),
        ("convention", ctypes.c_int32), ("function", ctypes.c_void_p), ("doc", ctypes.c_char_p),
    )  # fmt: skip


CONVENTIONS = ("0", "1", "2", "N", "entry")  # in the order of value.h


@dataclass(frozen=True, slots=True)
class Row:
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


@cache
def rows() -> dict[str, Row]:
    """All primitives, by name."""
    library = native()
    library.esk_primitive_count.restype = ctypes.c_int64
    library.esk_primitive.restype = ctypes.POINTER(_Row)
    library.esk_primitive.argtypes = (ctypes.c_int64,)
    found = {}
    for index in range(library.esk_primitive_count()):
        row = library.esk_primitive(index).contents
        name, signature, doc = (text.decode() for text in (row.name, row.signature, row.doc))
        convention = CONVENTIONS[row.convention]
        found[name] = Row(name, signature, row.min, row.max, convention, row.function or 0, doc)
    return found
