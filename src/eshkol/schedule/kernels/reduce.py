"""Reductions inside a kernel: the loops over what one element of the result is combined from.

Comes in: an instruction and the code of one term. Goes out: the scalar. The terms of a loop are accumulated, so that
machines may take many at once. Long sums and products of floats are taken in blocks, and blocks of blocks, so that
rounding errors grow with the logarithm of the length and not with it; blocks depend on the shape alone. Where the terms
are elements that lie one after another in an input, they are array instructions, which backends have fast kernels for.
16-bit floats are combined in F32 and rounded once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from eshkol.atlas.operands import ReduceOperation
from eshkol.atlas.types import Type
from eshkol.ops import dtypes
from eshkol.ops.dtypes import DType
from eshkol.ops.shapes import count
from eshkol.schedule.kernels.indices import Here, IndexCode
from eshkol.schedule.kernels.reads import Read
from eshkol.schedule.kernels.scalars import INDEX, TYPES, Scalar

BLOCK = 1024  # terms that are accumulated in one loop
STRETCH = 8192  # elements that one array instruction combines (it has many partial sums)
ACCUMULATED = {operation.value: operation.name for operation in ReduceOperation}
ARRAY_INSTRUCTIONS = {"ADD": "ReduceAdd", "MUL": "ReduceMul", "MAX": "ReduceMax", "MIN": "ReduceMin"}


class Reduction:
    """One reduction under construction."""

    def __init__(
        self, e: IndexCode, instruction: str, extents: list[int], body: Callable[..., Any], first: Any
    ) -> None:
        self.e, self.instruction, self.extents, self.body = e, instruction, extents, body
        with e.trial():
            term = body(tuple(e.number(0) for _ in extents))
        self.dtype: DType = term.dtype
        half = self.dtype.is_float and self.dtype.bits == 16
        self.compute = dtypes.float32 if half else self.dtype
        self.first = first(self.dtype) if callable(first) else first
        self.blocked = self.dtype.differentiable and instruction in ("ADD", "MUL")

    def result(self) -> Scalar:
        e = self.e
        if 0 in self.extents:
            return e.constant(self.first, self.dtype)
        return e.convert(self._over(0, ()), self.dtype)

    def _over(self, axis: int, index: tuple[Scalar, ...]) -> Scalar:
        """All terms whose index begins as given."""
        if axis == len(self.extents):
            return self.e.convert(self.body(index), self.compute)
        run = self._run(axis, index)
        if run is not None:
            return run
        return self._along(self.extents[axis], lambda j: self._over(axis + 1, (*index, j)))

    def _along(self, extent: int, term: Callable[[Scalar], Scalar]) -> Scalar:
        """The terms along one axis."""
        if extent == 1:
            return term(self.e.number(0))
        if not self.blocked or extent <= 2 * BLOCK:
            return self._loop(extent, term)
        blocks, rest = divmod(extent, BLOCK)
        total = self._along(blocks, lambda q: self._loop(BLOCK, lambda j: term(q * BLOCK + j)))
        if rest:
            total = self.e.op(self.instruction, total, self._loop(rest, lambda j: term(j + blocks * BLOCK)))
        return total

    def _loop(self, extent: int, term: Callable[[Scalar], Scalar]) -> Scalar:
        total = self.e.variable(self.e.constant(self.first, self.compute))
        with self.e.counted(extent) as j:
            self.e.accumulate(total, ACCUMULATED[self.instruction], term(j))
        return total

    # --- elements one after another ----------------------------------------------------------------

    def _run(self, axis: int, index: tuple[Scalar, ...]) -> Scalar | None:
        """The rest of the axes as array instructions, if their terms lie one after another in an input."""
        if self.dtype.is_complex or (self.dtype.is_float and self.instruction in ("MAX", "MIN")):
            return None  # these pass over NaN
        if self.compute is not self.dtype and axis > 0:  # would round in between
            return None
        e, extents = self.e, self.extents[axis:]
        total = count(tuple(extents))
        with e.trial():
            since = e.next_serial()
            inner = tuple(Scalar(e, INDEX, e.fresh(Type.U32), most=n - 1) for n in extents)
            term = self.body((*index, *inner))
        if term.origin is None:
            return None
        read, places = term.origin
        outer = places[: len(places) - len(inner)]
        if not self._trailing(read, places, inner, extents) or any(_since(p, since) for p in outer):
            return None
        base = e.ravel(list(outer), read.shape[: len(outer)]) * total
        return self._stretches(ARRAY_INSTRUCTIONS[self.instruction], read, base, total)

    def _trailing(self, read: Read, places: Sequence[Any], inner: Sequence[Scalar], extents: Sequence[int]) -> bool:
        if isinstance(places, Here) or len(places) < len(inner):
            return False
        last = places[len(places) - len(inner) :]
        return all(p is j for p, j in zip(last, inner, strict=True)) and read.shape[-len(inner) :] == tuple(extents)

    def _stretches(self, name: str, read: Read, base: Scalar, total: int) -> Scalar:
        e, ty = self.e, TYPES[self.dtype]

        def stretch(start: Scalar, length: int) -> Scalar:
            register = e.fresh(ty)
            e.record(name, ty, register, read.address(start), length)
            return Scalar(e, self.dtype, register)

        if total <= 2 * STRETCH or self.compute is not self.dtype:
            return stretch(base, total)
        whole, rest = divmod(total, STRETCH)
        found = self._along(whole, lambda q: stretch(base + q * STRETCH, STRETCH))
        return e.op(self.instruction, found, stretch(base + whole * STRETCH, rest)) if rest else found


def _since(place: Any, serial: int) -> bool:
    return isinstance(place, Scalar) and place.known is None and place.serial > serial
