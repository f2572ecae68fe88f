"""Array instructions on the reference: memory operands gathered into arrays, the meaning, results stored."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from eshkol.atlas import numerics as nx
from eshkol.atlas.isa import Arrays, Field, Instruction, Kind, LaneFault, element_type
from eshkol.atlas.operands import Address, address_register
from eshkol.atlas.types import Array, Type, wrap
from eshkol.atlas.validate import extent, memory_operands
from eshkol.backends.reference.registers import RegisterFile

if TYPE_CHECKING:
    from eshkol.backends.reference.addresses import Place, Spaces


class ArrayUnit:
    """Executes array instructions for one lane at a time, or once for all."""

    def __init__(self, registers: RegisterFile, spaces: Spaces) -> None:
        self.registers, self.spaces = registers, spaces

    def execute_per_lane(self, instruction: Instruction, lanes: Array, types: tuple[Type, ...]) -> None:
        """Each lane on its own memory; the lanes of a block that mean the same memory share the work."""
        if not instruction.is_uniform:
            for k in range(lanes.size):
                self.execute(instruction, int(lanes[k]), types)
            return
        blocks = self.spaces.block_of_lane[lanes]
        for block in np.unique(blocks):
            together = lanes[blocks == block]
            self.execute(instruction, int(together[0]), types, write_to=together)

    def execute(
        self, instruction: Instruction, lane: int, types: tuple[Type, ...] = (), write_to: Array | None = None
    ) -> None:
        """Run the instruction with the addresses of one lane; registers are written in `write_to`."""
        meaning = instruction.op.meaning
        assert isinstance(meaning, Arrays)
        targets = np.array([lane]) if write_to is None else write_to
        places = self._places(instruction, lane, types)
        self._check_apart(instruction, places)
        inputs = []
        for f, place in places:
            reads = f.kind is Kind.READ or (f.kind is Kind.UPDATE and (f.read_if is None or f.read_if(instruction)))
            if reads:
                inputs.append(self._gather(instruction, f, place, lane))
        with np.errstate(all="ignore"):
            outputs = list(meaning.fn(instruction, *inputs))
        by_name = {f.name: place for f, place in places}
        for f, operand in zip(instruction.op.fields, instruction.operands, strict=True):
            if f.kind is Kind.DEF:
                ty = element_type(instruction, f)
                self.registers.write(operand, ty, targets, _rounded(outputs.pop(0), ty))
            elif f.kind in (Kind.WRITE, Kind.UPDATE):
                self._scatter(instruction, f, by_name[f.name], outputs.pop(0), lane)

    def _places(self, instruction: Instruction, lane: int, types: tuple[Type, ...]) -> list[tuple[Field, Place]]:
        remaining = list(types)
        one = np.array([lane])
        places = []
        for f, address in memory_operands(instruction):
            ty = remaining.pop(0) if address_register(address) is not None else None
            places.append((f, self.resolve_checked(instruction, f, address, one, ty)))
        return places

    def resolve_checked(self, i: Instruction, f: Field, address: Address, lane: Array, index: Type | None) -> Place:
        """The start of an operand's array, once the whole array is known to lie in memory."""
        place = self.spaces.resolve(address, self.registers, lane, index)
        start, size = extent(i, f)
        if size:
            begin = place.offsets + start
            place.memory.check(begin, size, place.limit, element_type(i, f).alignment)
        return place

    def _check_apart(self, instruction: Instruction, places: list[tuple[Field, Place]]) -> None:
        """Outputs may not overlap inputs, except in the very same place where the row allows it."""
        spans = []
        for f, place in places:
            start, size = extent(instruction, f)
            low = int(np.ravel(place.base)[0] + place.offsets[0]) + start
            spans.append((f, place.memory.data, low, low + size))
        for out, data, low, high in spans:
            if out.kind is Kind.READ:
                continue
            for f, other, begin, end in spans:
                if f is out or other is not data or low >= end or begin >= high:
                    continue
                if not (instruction.op.in_place and (low, high) == (begin, end)):
                    raise LaneFault(np.ones(1, bool), f"{out.name} overlaps {f.name} in memory")

    def _offsets(self, instruction: Instruction, f: Field) -> Array:
        start, size = extent(instruction, f)
        return np.arange(start, start + size, element_type(instruction, f).size_bytes, dtype=np.int64)

    def _gather(self, instruction: Instruction, f: Field, place: Place, lane: int) -> Array:
        ty, offsets = element_type(instruction, f), self._offsets(instruction, f)
        values = place.shifted(offsets).load(ty, np.full(offsets.size, lane))
        assert f.shape is not None
        shaped = values.reshape(f.shape(instruction))
        return shaped.astype(np.float64) if ty.is_float else shaped

    def _scatter(self, instruction: Instruction, f: Field, place: Place, values: Array, lane: int) -> None:
        ty, offsets = element_type(instruction, f), self._offsets(instruction, f)
        flat = _rounded(np.asarray(values).reshape(-1), ty)
        assert flat.size == offsets.size, f"{instruction.op.name} made {flat.size} of {offsets.size} elements"
        place.shifted(offsets).store(ty, flat, np.full(offsets.size, lane))

    def exchange(self, instruction: Instruction) -> tuple[Array, Callable[[Array], None]]:
        """This device's contribution to a collective over devices, and how to store what comes back."""
        places = self._places(instruction, 0, ())
        source, own = next((f, p) for f, p in places if f.kind in (Kind.READ, Kind.UPDATE))
        target, into = next((f, p) for f, p in places if f.kind in (Kind.WRITE, Kind.UPDATE))
        ty = element_type(instruction, source)
        offsets = self._offsets(instruction, source)
        values = own.shifted(offsets).load(ty, np.zeros(offsets.size, np.int64))
        return values, lambda result: self._scatter(instruction, target, into, result, 0)


def _rounded(values: Array, ty: Type) -> Array:
    """Results of a meaning in their type: floats rounded once from F64, integers wrapped."""
    values = np.atleast_1d(values)  # arithmetic would turn a zero-dimensional object array into a plain int
    if ty.is_integer:
        return wrap(values, ty)
    return nx.convert(values.astype(np.float64), Type.F64, ty) if values.dtype != ty.dtype else values
