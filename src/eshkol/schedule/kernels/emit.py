"""The emitter `e` with which rows write the scalar code of a kernel (see `Pull` and `Push` in `ops/row.py`).

Comes in: calls of a row's code. Goes out: an Atlas program in which each lane computes one element (or one row of
them) of the result; lanes beyond the count, a scalar parameter `n`, end at once. Code is straight lines and counted
loops. Whether anything in it depends on the shapes is noted: what does not serves every size.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from eshkol.atlas.builder import ProgramBuilder
from eshkol.atlas.operands import BufferOffset, Condition, Immediate
from eshkol.atlas.program import Program
from eshkol.atlas.types import Type
from eshkol.ops.dtypes import DType
from eshkol.ops.row import Shape
from eshkol.ops.shapes import count
from eshkol.schedule.cache import Cache
from eshkol.schedule.kernels.code import TRUTH, USABLE, Item, put
from eshkol.schedule.kernels.indices import IndexCode
from eshkol.schedule.kernels.reads import CARRIED, BlockMemory, Number, Read, Write, number_names
from eshkol.schedule.kernels.reduce import Reduction
from eshkol.schedule.kernels.scalars import LANE, STORED, TYPES, Pair, Scalar

_programs = Cache()  # by their code
NOTHING: Mapping[str, str] = MappingProxyType({})


class Emitter(IndexCode):
    """Writes one kernel. `shape` is what lanes are spread over: the result's, or that of its rows."""

    def __init__(self, shape: Shape, usable: int = USABLE) -> None:
        super().__init__(shape)
        self.usable = usable  # registers
        self.shared_memory = 0  # bytes that the lanes of a block share

    def finish(
        self,
        name: str,
        inputs: Sequence[Read | Number],
        outs: Sequence[Write],
        lanes: int | None = None,
        told: Mapping[str, str] = NOTHING,
    ) -> Program:
        """The program: a guard, the prologue, the body. Inputs that are not read are no parameters.

        A program for so many lanes and no others has no parameter `n`, and says how large its buffers are. Code that
        was finished before is the same program: it was checked, and is perhaps compiled. What is told is its metadata.
        """
        scalars = [("n", Type.U64)] if lanes is None else []
        scalars += [(extent, Type.U32) for extent in self.extents]
        buffers = [(w.name, w.ty, None if lanes is None else _units(w.shape, w.dtype)) for w in outs]
        for read in inputs:
            if read.name in self.used:
                ty, _ = STORED[read.dtype]
                if isinstance(read, Read):
                    buffers.append((read.name, ty, None if lanes is None else _units(read.shape, read.dtype)))
                else:
                    scalars += [(part, CARRIED.get(ty, ty)) for part in number_names(read.name, read.dtype)]
        key = (name, lanes, *told.items(), None, *scalars, *buffers, *self.prologue, None, *self.body)
        found: Program | None = _programs.get(key)
        if found is None:
            found = replace(self._program(name, scalars, buffers, lanes), metadata=told)
            _programs.keep(key, found)
        return found

    def _program(
        self, name: str, scalars: Sequence[tuple[str, Type]], buffers: Sequence[tuple[str, Type, int | None]],
        lanes: int | None,
    ) -> Program:  # fmt: skip
        b = ProgramBuilder(name)
        for scalar in scalars:
            b.scalar(*scalar)
        for buffer in buffers:
            b.buffer(*buffer)
        end, bound = b.label("end"), self.fresh(Type.U64)
        guard = [
            Item("LDG", (Type.U64, bound, BufferOffset("n"))) if lanes is None
            else Item("MOV_IMM", (bound, Immediate(Type.U64, lanes))),
            Item("SETcc", (Condition.GE, TRUTH, LANE, bound)),
            Item("BRA", (end, TRUTH)),
        ]  # fmt: skip
        put(b, [*guard, *self.prologue, *self.body], self.usable)
        b.place(end)
        return b.build()

    def shared(self, dtype: DType, size: int) -> BlockMemory:
        """Memory for so many elements that the lanes of a block share."""
        width = dtype.size
        offset = -(-self.shared_memory // width) * width
        self.shared_memory = offset + size * width
        return BlockMemory(self, offset, dtype)

    def barrier(self) -> None:
        """Wait for the other lanes of the block. All come here: it stands in no loop that some leave earlier."""
        self.record("BarSync", 0)

    def other_lane(self, value: Scalar, mask: int) -> Scalar:
        """What a lane of the same sub-group has: the one whose number differs in the bits of the mask."""
        if isinstance(value, Pair):
            return self.pair(self.other_lane(value.re, mask), self.other_lane(value.im, mask))
        ty = TYPES[value.dtype]
        return self.emit("SubGroupXor", value.dtype, [self.register(value), mask], [ty])

    def reduce(self, instruction: str, extents: Sequence[int], body: Callable[..., Any], first: Any) -> Scalar:
        """The scalars `body(j)` for all j in `extents`, combined by ADD, MUL, MAX or MIN, whose neutral is `first`."""
        return Reduction(self, instruction, list(extents), body, first).result()


def _units(shape: Shape, dtype: DType) -> int:
    """How many elements of the type in which it is stored a buffer has."""
    return count(shape) * STORED[dtype][1]
