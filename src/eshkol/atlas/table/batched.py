"""The matrix product of many pairs, which may lie in memory in many ways.

A batch has one axis or several (`batches`). Where strides are given, an operand lies with so many elements from one to
the next along each axis of the batch, and from one row to the next (of the transpose, if that is what lies there);
the elements of a row are neighbours. So heads of attention are multiplied where a projection has left them, and a
stride of 0 multiplies one matrix with many. C must fill its memory without gaps.

`SummedGEMM` adds the products of all pairs up, as gradients towards what many examples share do: parts of the terms of
all pairs each for themselves, which others can compute at the same time.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from eshkol.atlas.isa import Arrays, CodeBuilder, Field, Group, Instruction, Kind
from eshkol.atlas.operands import Condition, Register
from eshkol.atlas.table import emit
from eshkol.atlas.table.linear import TRANSPOSED, factors, is_transposed, stored
from eshkol.atlas.table.rows import TY, count, read, real, row, write
from eshkol.atlas.types import FLOATS, Array, Type
from eshkol.errors import IsaError


def batch_axes(i: Instruction) -> tuple[int, ...]:
    """The extents of the batch."""
    return tuple(i.batches) or (i.batch,)


def matrix(i: Instruction, name: str) -> tuple[int, int]:
    """Rows and columns of A, B or C as they lie in memory."""
    return (i.m, i.n) if name == "c" else stored(i, name)


def strides(i: Instruction, name: str) -> tuple[int, ...]:
    """How many elements lie from one to the next along each axis of the batch, the rows and the columns."""
    if given := getattr(i, f"{name}_strides"):
        return (*given, 1)
    extents = (*batch_axes(i), *matrix(i, name))
    return tuple(math.prod(extents[axis + 1 :]) for axis in range(len(extents)))


def _shape(i: Instruction, name: str) -> tuple[int, ...]:
    """All elements as an array; where strides are given, everything from the first to the last."""
    extents = (*batch_axes(i), *matrix(i, name))
    if not getattr(i, f"{name}_strides"):
        return (i.batch, *extents[-2:])
    if 0 in extents:
        return (0,)
    return (1 + sum((extent - 1) * stride for extent, stride in zip(extents, strides(i, name), strict=True)),)


def _places(i: Instruction, name: str) -> Array:
    """Where every element lies, as an array of the batch's axes, rows and columns."""
    extents = (*batch_axes(i), *matrix(i, name))
    if 0 in extents:
        return np.empty(extents, np.int64)
    places: Array = np.zeros((), np.int64)
    for extent, stride in zip(extents, strides(i, name), strict=True):
        places = places[..., None] + np.arange(extent, dtype=np.int64) * stride
    return places


def _batched(i: Instruction, a: Array, b: Array) -> tuple[Array]:
    def laid_out(x: Array, name: str) -> Array:
        dense = not getattr(i, f"{name}_strides")
        return x.reshape(*batch_axes(i), *matrix(i, name)) if dense else x[_places(i, name)]

    one, other = factors(i, laid_out(a, "a"), laid_out(b, "b"))
    found = i.alpha * (one @ other)
    if i.c_strides:
        result = np.empty(_shape(i, "c"))
        result[_places(i, "c")] = found
        return (result,)
    return (found.reshape(_shape(i, "c")),)


def _expand(b: CodeBuilder, i: Instruction) -> None:
    at: list[emit.Index] = []

    def place(name: str, row: emit.Index, column: emit.Index) -> Register:
        ends = (column, row) if name != "c" and is_transposed(i, name) else (row, column)
        return emit.offset(b, list(zip((*at, *ends), strides(i, name), strict=True)))

    def over(axes: Sequence[int]) -> None:
        if axes:
            with b.loop(axes[0]) as s:
                at.append(s)
                over(axes[1:])
                at.pop()
            return
        compute = emit.compute_type(i.ty)
        with b.loop(i.m) as r, b.loop(i.n) as c:
            total = b.constant(compute, 0)
            with b.loop(i.k) as p:
                left, right = (i.a, place("a", r, p), i.ty), (i.b, place("b", p, c), i.ty)
                emit.accumulate_product(b, total, left, right, compute)
            b.mul(total, total, emit.scalar(b, i.ty, i.alpha))
            emit.put(b, i.c, place("c", r, c), i.ty, total)

    over(batch_axes(i))


def _check(i: Instruction) -> None:
    axes = batch_axes(i)
    if math.prod(axes) != i.batch:
        raise IsaError(f"BatchedGEMM: batches of {axes} are not {i.batch} pairs", span=i.span)
    for name in ("a", "b", "c"):
        given = getattr(i, f"{name}_strides")
        if given and len(given) != len(axes) + 1:
            raise IsaError(
                f"BatchedGEMM: {name}_strides {given} are not one for each axis of the batch {axes} and one for rows",
                span=i.span,
            )
    extents = (*axes, i.m, i.n)
    if i.c_strides and 0 not in extents:
        step = 1
        for stride, extent in sorted(zip(strides(i, "c"), extents, strict=True)):
            if extent > 1 and stride != step:
                raise IsaError(f"BatchedGEMM: c_strides {i.c_strides} leave gaps in C, or overlap", span=i.span)
            step *= extent


row("BatchedGEMM", Group.COMPLEX,
    "C = alpha·A·B for each of batch pairs, along the axes batches (one, unless given); strides: of each axis of the "
    "batch and of the rows that lie in memory, in elements; dense unless given",
    (TY, write("c", lambda i: _shape(i, "c")), read("a", lambda i: _shape(i, "a")), read("b", lambda i: _shape(i, "b")),
     count("batch"), count("m"), count("n"), count("k"), real("alpha", 1.0), *TRANSPOSED,
     *(Field(name, Kind.COUNTS, default=()) for name in ("batches", "a_strides", "b_strides", "c_strides"))),
    Arrays(_batched), FLOATS, expand=_expand, check=_check, traps=True)  # fmt: skip


# --- sums over a batch ------------------------------------------------------------------------------


def pieces(i: Instruction) -> int:
    """Into how many pieces the terms of one product are cut."""
    found: int = -(-i.k // i.depth)
    return found


def _parts(i: Instruction) -> tuple[int, int, int]:
    return -(-i.batch * pieces(i) // i.each), i.m, i.n


def _summed(i: Instruction, a: Array, b: Array) -> tuple[Array]:
    cuts, parts = pieces(i), _parts(i)[0]

    def terms(x: Array, lines: int) -> Array:
        """parts × lines × terms, with zeros behind the last of each product, and behind the last piece."""
        cut = np.zeros((i.batch, lines, cuts * i.depth))
        cut[..., : i.k] = x
        apart = np.zeros((parts * i.each, lines, i.depth))
        apart[: i.batch * cuts] = cut.reshape(i.batch, lines, cuts, i.depth).swapaxes(1, 2).reshape(-1, lines, i.depth)
        return apart.reshape(parts, i.each, lines, i.depth).swapaxes(1, 2).reshape(parts, lines, i.each * i.depth)

    return (terms(a, i.m) @ terms(b, i.n).swapaxes(1, 2),)


def _expand_summed(b: CodeBuilder, i: Instruction) -> None:
    compute, shape, cuts = emit.compute_type(i.ty), _parts(i), pieces(i)
    emit.touch_ends(b, i)
    with b.loop(shape[0]) as p, b.loop(i.m) as r, b.loop(i.n) as c:
        total = b.constant(compute, 0)
        with b.loop(i.each) as e:
            piece, there = emit.offset(b, [(p, i.each), (e, 1)]), b.pred()
            b.setcc(Condition.LT, there, piece, b.constant(Type.U32, i.batch * cuts))
            with b.when(there):
                s, first = b.reg(Type.U32), b.reg(Type.U32)
                b.div(s, piece, b.constant(Type.U32, cuts))
                b.rem(first, piece, b.constant(Type.U32, cuts))
                with b.loop(i.depth) as d:
                    term, inside = emit.offset(b, [(first, i.depth), (d, 1)]), b.pred()
                    b.setcc(Condition.LT, inside, term, b.constant(Type.U32, i.k))
                    with b.when(inside):
                        left = (i.a, emit.flat(b, (i.batch, i.m, i.k), (s, r, term)), i.ty)
                        right = (i.b, emit.flat(b, (i.batch, i.n, i.k), (s, c, term)), i.ty)
                        emit.accumulate_product(b, total, left, right, compute)
        emit.put(b, i.c, emit.flat(b, shape, (p, r, c)), Type.F32, total, compute)


row("SummedGEMM", Group.COMPLEX,
    "C = the sum of A·Bᵀ over a batch in F32, in parts: the terms of each product are cut into pieces of so many "
    "(depth), and each part has so many of the pieces of all",
    (TY, write("c", _parts, Type.F32), read("a", lambda i: (i.batch, i.m, i.k)),
     read("b", lambda i: (i.batch, i.n, i.k)), count("batch"), count("m"), count("n"), count("k"), count("depth", 1),
     count("each", 1)),
    Arrays(_summed), FLOATS, expand=_expand_summed, traps=True)  # fmt: skip
