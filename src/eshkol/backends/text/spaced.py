"""C with OpenCL's names and spaces of memory: what OpenCL C and the C that becomes SPIR-V have in common.

Comes in: whether a device has double precision and atomics of 64 bits. Goes out: a `Dialect` but for what lies
unaligned, helpers, and how a kernel begins.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from eshkol.atlas.types import Type
from eshkol.backends.text.dialect import GLOBAL, PRIVATE, SHARED, Dialect
from eshkol.backends.text.helpers import TYPES
from eshkol.errors import BackendUnavailable

KERNEL = "kernel_main"


class SpacedC(Dialect):
    """The C of a device: with double precision or without, and so on."""

    types: ClassVar[Mapping[Type, str]] = TYPES
    spaces: ClassVar[Mapping[str, str]] = {GLOBAL: "__global", SHARED: "__local", PRIVATE: "__private"}

    def __init__(self, *, doubles: bool, long_atomics: bool, exact_division: bool) -> None:
        self.doubles, self.long_atomics = doubles, long_atomics
        if not exact_division and doubles:  # of two roundings the first, to twice as many bits, changes nothing
            self.own = {
                ("DIV", Type.F32): "(float)((double){0} / (double){1})",
                ("SQRT", Type.F32): "(float)sqrt((double){0})",
            }

    def type(self, ty: Type) -> str:
        if ty is Type.F64 and not self.doubles:
            raise BackendUnavailable("the device has no F64: numbers of double precision")
        return super().type(ty)

    def cast_bits(self, ty: Type, value: str) -> str:
        return f"as_{self.types[ty]}({value})"

    def pointer(self, space: str, ty: str, *, volatile: bool = False) -> str:
        return f"{'volatile ' * volatile}{self.spaces[space]} {ty} *"

    def exchange(self, bits: int, space: str, place: str, seen: str, new: str) -> str:
        if bits == 64 and not self.long_atomics:
            raise BackendUnavailable("the device has no ATOM of 64 bits")
        return f"{self.exchanging(bits)}({place}, {seen}, {new})"

    def exchanging(self, bits: int) -> str:
        """The function that compares and exchanges so many bits."""
        return "atomic_cmpxchg"

    def fault(self, sites: int) -> str:
        return (
            "void fault(__global uint *status, ulong lane, uint site) {\n"
            f"  atomic_min(status, (uint)(lane * {sites} + site));\n}}"
        )
