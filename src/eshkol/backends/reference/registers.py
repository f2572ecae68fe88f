"""The register file of all lanes: 256 typed slots and 16 predicates each, as arrays over lanes.

A slot's type may differ from lane to lane where paths have met; `signatures` splits the lanes by the types
they hold, so that instructions are always executed on arrays of one type.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from eshkol.atlas.isa import LaneFault
from eshkol.atlas.operands import Predicate, Register
from eshkol.atlas.types import Array, Type

EVERY = slice(None)  # lane
_TYPES = list(Type)
_CODES = {ty: code for code, ty in enumerate(_TYPES, start=1)}  # 0: not written


class RegisterFile:
    """Registers and predicates of `count` lanes. `lanes` arguments are sorted arrays of lane numbers."""

    def __init__(self, count: int) -> None:
        self._count = count
        self.values: dict[tuple[int, Type], Array] = {}  # by register and type, over all lanes
        self._codes: dict[int, Array] = {}
        self.uniform: dict[int, Type] = {}  # registers that hold one type in every lane
        self._predicates: dict[int, Array] = {}
        self._predicate_written: dict[int, Array] = {}
        self._predicate_everywhere: set[int] = set()  # those that every lane has written

    def signatures(self, registers: Sequence[Register], lanes: Array) -> Iterator[tuple[tuple[Type, ...], Array]]:
        """The types these registers hold, with the lanes that hold them; unwritten ones are a fault."""
        if all(r.index in self.uniform for r in registers):
            yield tuple(self.uniform[r.index] for r in registers), lanes
            return
        columns = [self._lane_codes(r, lanes) for r in registers]
        if lanes.size and all((codes == codes[0]).all() for codes in columns):  # nearly always: nothing to sort
            yield tuple(_TYPES[codes[0] - 1] for codes in columns), lanes
            return
        rows, which = np.unique(np.stack(columns, axis=1), axis=0, return_inverse=True)
        for k, row in enumerate(rows):
            yield tuple(_TYPES[code - 1] for code in row), lanes[which.reshape(-1) == k]

    def _lane_codes(self, register: Register, lanes: Array) -> Array:
        codes = self._codes.get(register.index)
        unwritten = np.ones(lanes.size, bool) if codes is None else codes[lanes] == 0
        if codes is None or unwritten.any():
            raise LaneFault(unwritten, f"{register} is read before it is written")
        return np.asarray(codes[lanes])

    def read(self, register: Register, ty: Type, lanes: Array) -> Array:
        """The values of a register whose type is known to be `ty` in these lanes."""
        values = self.values[register.index, ty]
        return values if lanes.size == self._count else values[lanes]

    def write(self, register: Register, ty: Type, lanes: Array, values: Array) -> None:
        """Set a register and its type; one value serves all lanes."""
        index, select = register.index, EVERY if lanes.size == self._count else lanes
        slot = self.values.get((index, ty))
        if slot is None:
            slot = self.values[index, ty] = np.zeros(self._count, ty.dtype)
        slot[select] = values
        if self.uniform.get(index) is ty:
            return
        codes = self._codes.get(index)
        if codes is None:
            codes = self._codes[index] = np.zeros(self._count, np.uint8)
        codes[select] = _CODES[ty]
        if select is EVERY:
            self.uniform[index] = ty
        else:
            self.uniform.pop(index, None)

    def read_predicate(self, predicate: Predicate, lanes: Array) -> Array:
        index = predicate.index
        if index not in self._predicate_everywhere:
            written = self._predicate_written.get(index)
            missing = np.ones(lanes.size, bool) if written is None else ~written[lanes]
            if missing.any():
                raise LaneFault(missing, f"{predicate} is read before it is written")
        values = self._predicates[index]
        return values if lanes.size == self._count else values[lanes]

    def write_predicate(self, predicate: Predicate, lanes: Array, values: Array) -> None:
        index, select = predicate.index, EVERY if lanes.size == self._count else lanes
        if index not in self._predicates:
            self._predicates[index] = np.zeros(self._count, bool)
            self._predicate_written[index] = np.zeros(self._count, bool)
        self._predicates[index][select] = values
        if index not in self._predicate_everywhere:
            self._predicate_written[index][select] = True
            if select is EVERY:
                self._predicate_everywhere.add(index)
