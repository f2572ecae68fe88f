"""Array instructions on the reference: memory operands gathered into arrays, the meaning, results stored."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from eshkol.atlas import numerics as nx
from eshkol.atlas.isa import Arrays, Field, Instruction, Kind, LaneFault, element_type
from eshkol.atlas.operands import Address, address_register
from eshkol.atlas.types import Array, Type, wrap
from eshkol.atlas.validate import extent, memory_operands
from eshkol.backends.reference.addresses import NOWHERE, MemoryPlace, Spaces
from eshkol.backends.reference.registers import RegisterFile
from eshkol.errors import IsaError

_FAR = 1 << 60  # sizes beyond any memory; keeps sums inside 64 bits


class ArrayUnit:
    """Executes array instructions for one lane at a time, or once for all."""

    def __init__(self, registers: RegisterFile, spaces: Spaces) -> None:
        self.registers, self.spaces = registers, spaces

    def execute_per_lane(self, instruction: Instruction, lanes: Array, types: tuple[Type, ...]) -> None:
        """Each lane on its own memory; the lanes of a block that mean the same memory share the work."""
        if instruction.is_uniform:
            blocks = self.spaces.block_of_lane[lanes]
            groups = [lanes[blocks == block] for block in np.unique(blocks)]
        else:
            groups = [lanes[k : k + 1] for k in range(lanes.size)]
        for together in groups:
            try:
                self.execute(instruction, int(together[0]), types, write_to=together)
            except LaneFault as fault:  # its mask is over elements; what is wanted is the lane
                raise LaneFault(lanes == together[0], fault.message, fault.hint) from None

    def execute(
        self, instruction: Instruction, lane: int, types: tuple[Type, ...] = (), write_to: Array | None = None
    ) -> None:
        """Run the instruction with the addresses of one lane; registers are written in `write_to`."""
        meaning = instruction.op.meaning
        assert isinstance(meaning, Arrays)
        targets = np.array([lane]) if write_to is None else write_to
        places = self._places(instruction, lane, types)
        self._check_apart(instruction, places)
        sizes = [extent(instruction, f)[1] for f, _ in places if f.kind is not Kind.READ]
        if not instruction.writes() and not any(sizes):
            return  # every output is an array of no elements
        inputs = []
        for f, place in places:
            reads = f.kind is Kind.READ or (f.kind is Kind.UPDATE and (f.read_if is None or f.read_if(instruction)))
            if reads:
                inputs.append(self._gather(instruction, f, place, targets))
        try:
            with np.errstate(all="ignore"):
                outputs = list(meaning.fn(instruction, *inputs))
        except IsaError as error:  # the data in memory is not what the row needs (a sparse matrix, say)
            raise LaneFault(np.ones(1, bool), error.message, error.hint) from None
        by_name = {f.name: place for f, place in places}
        for f, operand in zip(instruction.op.fields, instruction.operands, strict=True):
            if f.kind is Kind.DEF:
                ty = element_type(instruction, f)
                self.registers.write(operand, ty, targets, _rounded(outputs.pop(0), ty))
            elif f.kind in (Kind.WRITE, Kind.UPDATE):
                self._scatter(instruction, f, by_name[f.name], outputs.pop(0), lane)

    def _places(self, instruction: Instruction, lane: int, types: tuple[Type, ...]) -> list[tuple[Field, MemoryPlace]]:
        remaining = list(types)
        one = np.array([lane])
        places = []
        for f, address in memory_operands(instruction):
            ty = remaining.pop(0) if address_register(address) is not None else None
            places.append((f, self.resolve_checked(instruction, f, address, one, ty)))
        return places

    def resolve_checked(
        self, i: Instruction, f: Field, address: Address, lane: Array, index: Type | None
    ) -> MemoryPlace:
        """The start of an operand's array, once the whole array is known to lie in memory."""
        start, size = extent(i, f)
        if not size:  # no elements lie anywhere, whatever the address says
            return NOWHERE
        place = self.spaces.resolve(address, self.registers, lane, index)
        begin = place.offsets + min(start, _FAR)
        place.memory.check(begin, min(size, _FAR), place.limit, element_type(i, f).alignment)
        return place

    def _check_apart(self, instruction: Instruction, places: list[tuple[Field, MemoryPlace]]) -> None:
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
                if f is out or other is not data or max(low, begin) >= min(high, end):
                    continue
                if not (instruction.op.in_place and (low, high) == (begin, end)):
                    raise LaneFault(np.ones(1, bool), f"{out.name} overlaps {f.name} in memory")

    def _offsets(self, instruction: Instruction, f: Field) -> Array:
        start, size = extent(instruction, f)
        return np.arange(start, start + size, element_type(instruction, f).size_bytes, dtype=np.int64)

    def _gather(self, instruction: Instruction, f: Field, place: MemoryPlace, lanes: Array) -> Array:
        """The operand's array, as read by these lanes together."""
        ty, offsets = element_type(instruction, f), self._offsets(instruction, f)
        assert f.shape is not None
        shape = f.shape(instruction)
        if math.prod(n for n in shape if n) >= _FAR:  # NumPy refuses such a shape even with no elements
            raise LaneFault(np.ones(1, bool), f"{f.name} of shape {shape} is too large")
        where = place.shifted(offsets)
        values = where.load(ty, np.full(offsets.size, lanes[0]))
        if lanes.size > 1:  # who reads matters to the race check: one more lane stands for all the others
            where.memory.note_read(where.offsets + where.base, ty.size_bytes, np.full(offsets.size, lanes[-1]))
        shaped = values.reshape(shape)
        return shaped.astype(np.float64) if ty.is_float else shaped

    def _scatter(self, instruction: Instruction, f: Field, place: MemoryPlace, values: Array, lane: int) -> None:
        ty, offsets = element_type(instruction, f), self._offsets(instruction, f)
        flat = _rounded(np.asarray(values).reshape(-1), ty)
        assert flat.size == offsets.size, f"{instruction.op.name} made {flat.size} of {offsets.size} elements"
        place.shifted(offsets).store(ty, flat, np.full(offsets.size, lane))

    def exchange(self, instruction: Instruction) -> tuple[Array, Callable[[Array], None]]:
        """This device's contribution to a collective over devices, and how to store what comes back."""
        places = self._places(instruction, 0, ())
        self._check_apart(instruction, places)
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
