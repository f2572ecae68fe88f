"""Torus configurations, orbits, unit groups, the three-phase operation, and the character table's file.

The arithmetic structures that the Atlas seed names beside its classes. Pure functions on integers.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from eshkol.atlas.types import Array, Type
from eshkol.errors import IsaError

ORBITS = 32
CHARACTERS = 194


@dataclass(frozen=True, slots=True)
class Torus:
    """A page modulus and a residue modulus; places on it are (page, residue) pairs."""

    page: int
    residue: int

    @property
    def size(self) -> int:
        return self.page * self.residue

    @classmethod
    def of_width(cls, bits: int) -> Torus:
        """The configuration for integers of this width: 8, 16, … 4096."""
        if bits < 8 or bits > 4096 or bits & (bits - 1):
            raise ValueError(f"no torus for a width of {bits} bits: widths are 8, 16, 32 … 4096")
        doublings = bits.bit_length() - 4  # 8 → 0
        return cls(24 << doublings, 96 if bits == 8 else 48 << doublings)

    @classmethod
    def of_type(cls, ty: Type) -> Torus:
        return cls.of_width(ty.bits)

    def embed(self, x: int) -> tuple[int, int]:
        """π: a linear offset to its place on the torus."""
        return x // self.residue % self.page, x % self.residue

    def lift(self, place: tuple[int, int]) -> int:
        """λ: a place on the torus back to the linear offset."""
        page, residue = place
        return page * self.residue + residue

    def operate(self, operation: Callable[[int, int], int], x: int, y: int) -> int:
        """The three-phase operation λ ∘ F ∘ π: embed both, operate modulo the torus, lift back."""
        a, b = self.lift(self.embed(x)), self.lift(self.embed(y))
        return self.lift(self.embed(operation(a, b) % self.size))


def orbit(x: int) -> int:
    """The orbit of x, one of 32."""
    return x % ORBITS


@dataclass(frozen=True, slots=True)
class UnitGroup:
    """U(n): the integers modulo n that have an inverse, under multiplication."""

    modulus: int

    def __post_init__(self) -> None:
        if self.modulus < 1:
            raise ValueError(f"a unit group needs a modulus of at least 1, not {self.modulus}")

    def __contains__(self, x: int) -> bool:
        return math.gcd(x, self.modulus) == 1

    def elements(self) -> list[int]:
        return [x for x in range(self.modulus) if x in self]

    def multiply(self, x: int, y: int) -> int:
        return self._unit(x) * self._unit(y) % self.modulus

    def inverse(self, x: int) -> int:
        """The modular inverse of a unit."""
        return pow(self._unit(x), -1, self.modulus)

    def _unit(self, x: int) -> int:
        if x not in self:
            raise ValueError(f"{x} has no inverse modulo {self.modulus}: they share {math.gcd(x, self.modulus)}")
        return x % self.modulus


def load_character_table(path: str | Path | None = None) -> Array:
    """The 194×194 character table from a .npy file; none is shipped."""
    if path is None:
        raise IsaError(
            "no character table is shipped with Eshkol",
            hint="give the path of a .npy file that holds the 194×194 table",
        )
    try:  # mapped, so that a header which promises more than the file holds allocates nothing
        table: Array = np.lib.format.open_memmap(path, mode="r")
    except Exception as error:  # besides OSError and ValueError, a bad header raises TokenError and more
        raise IsaError(f"cannot read the character table '{path}': {error}") from None
    if table.shape != (CHARACTERS, CHARACTERS) or table.dtype.kind not in "iufc":
        raise IsaError(
            f"'{path}' holds a {table.dtype} array of shape {table.shape}, "
            f"not numbers of shape ({CHARACTERS}, {CHARACTERS})"
        )
    return np.array(table)
