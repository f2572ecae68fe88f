"""Helpers with which array extensions write their expansions: loops over elements of memory operands.

Indices are U32, which every machine has; `expand.py` refuses arrays for which that is too small. 16-bit floats are
computed in F32, everything else in its own type.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from eshkol.atlas.isa import COUNT_LIMIT, CodeBuilder, Instruction, Kind, element_type
from eshkol.atlas.operands import Address, Predicate, Register, RegisterIndirect, Shared, address_base
from eshkol.atlas.types import Type

Index = Register | int
COUNTABLE = 1 << 32  # elements; what U32 can count


def compute_type(ty: Type) -> Type:
    """The type an expansion computes in."""
    return Type.F32 if ty.is_half else ty


def offset(b: CodeBuilder, terms: Sequence[tuple[Index, int]]) -> Register:
    """The U32 sum of index × stride over the terms; an index may be a constant."""
    fixed = sum(i * stride for i, stride in terms if isinstance(i, int))
    total = b.constant(Type.U32, fixed)
    for index, stride in terms:
        if isinstance(index, Register):
            b.fma(total, index, b.constant(Type.U32, stride), total)
    return total


def flat(b: CodeBuilder, shape: Sequence[int], indices: Sequence[Index]) -> Register:
    """The row-major position of an element in an array of this shape."""
    terms, stride = [], 1
    for extent, index in zip(reversed(shape), reversed(indices), strict=True):
        terms.append((index, stride))
        stride *= extent
    return offset(b, terms)


def load(b: CodeBuilder, ty: Type, dst: Register, address: Address) -> None:
    """LDG, or LDS from shared memory."""
    (b.lds if isinstance(address_base(address), Shared) else b.ldg)(ty, dst, address)


def fetch(b: CodeBuilder, address: Address, index: Register, ty: Type, compute: Type | None = None) -> Register:
    """Element `index` of an array, converted to the compute type."""
    compute = compute or compute_type(ty)
    value = b.reg(compute)
    load(b, ty, value, b.element(address, index, ty))
    if compute is not ty:
        b.cvt(ty, compute, value, value)
    return value


def put(
    b: CodeBuilder,
    address: Address,
    index: Register,
    ty: Type,
    value: Register,
    compute: Type | None = None,
) -> None:
    """Store a value of the compute type in element `index` of an array."""
    compute = compute or compute_type(ty)
    if compute is not ty:
        converted = b.reg()
        b.cvt(compute, ty, converted, value)
        value = converted
    store = b.sts if isinstance(address_base(address), Shared) else b.stg
    store(ty, b.element(address, index, ty), value)


def scalar(b: CodeBuilder, ty: Type, value: Any) -> Register:
    """A constant of the compute type of `ty`."""
    return b.constant(compute_type(ty), value)


def accumulate_product(
    b: CodeBuilder, total: Register,
    left: tuple[Address, Register, Type], right: tuple[Address, Register, Type], compute: Type,
) -> None:  # fmt: skip
    """total += left element × right element."""
    b.fma(total, fetch(b, *left, compute), fetch(b, *right, compute), total)


def touch_ends(b: CodeBuilder, i: Instruction) -> None:
    """Read the last element of every input, for expansions that may leave it out: all of it must lie in memory."""
    for f in i.op.memory:
        assert f.shape is not None
        if f.kind is Kind.READ and getattr(i, f.name) is not None and (elements := math.prod(f.shape(i))):
            ty = element_type(i, f)
            fetch(b, getattr(i, f.name), b.constant(Type.U32, elements - 1), ty, ty)


def fault_where(b: CodeBuilder, bad: Predicate, memory: Address, ty: Type) -> None:
    """Stop the lanes where `bad` holds: with an address out of range, since no instruction does only that."""
    base = address_base(memory)
    with b.when(bad):
        far = b.constant(Type.I64, COUNT_LIMIT)
        load(b, ty, b.reg(ty), RegisterIndirect(far) if base is None else base.at(far, 1))
