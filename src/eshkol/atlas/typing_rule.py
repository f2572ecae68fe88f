"""The typing rule of every row: which types an instruction writes, by those that it reads.

Comes in: an instruction, and the types of the registers that it reads. Goes out: the types of those that it writes;
operands of the wrong type are an IsaError that names the operand, both types and the conversion.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from eshkol.atlas.isa import MEMORY_KINDS, NAMED_TYPE_SETS, Field, Instruction, Kind, described_types
from eshkol.atlas.operands import Immediate, Register, address_register
from eshkol.atlas.types import INDEX_TYPES, Type
from eshkol.errors import IsaError


def resolve_types(instruction: Instruction, inputs: Sequence[Type]) -> tuple[Type, ...]:
    """The types of the registers written, from those of the registers read (in `reads()` order).

    This is the typing rule of every row. Operands of the wrong type are an IsaError.
    """
    op = instruction.op
    given = [v.ty if isinstance(v := instruction.operands[k], Immediate) else v for k in op.deciding]
    if op.memory:  # which operand an input is the index of depends on the addresses
        given += [address_register(instruction.operands[k]) is not None for k in op.addressed]
    key = (*given, *inputs)
    found = op.typings.get(key)
    if found is None:
        found = op.typings[key] = _resolved(instruction, inputs)
    return found


def _resolved(instruction: Instruction, inputs: Sequence[Type]) -> tuple[Type, ...]:
    """The typing rule itself."""
    op = instruction.op
    remaining = list(inputs)
    variable: Type | None = None
    named_by: tuple[Field, Any] | None = None
    for f, v in zip(op.fields, instruction.operands, strict=True):
        if f.kind in MEMORY_KINDS:
            if address_register(v) is not None:
                _require(instruction, "the index", address_register(v), remaining.pop(0), INDEX_TYPES)
            continue
        if f.kind is not Kind.USE and not (f.kind is Kind.TRIPS and isinstance(v, Register)):
            continue
        ty = remaining.pop(0)
        if f.ty == "T":
            if variable is None:
                _require(instruction, f.name, v, ty, op.types)
                variable, named_by = ty, (f, v)
            elif ty is not variable and named_by is not None:
                raise IsaError(
                    f"{op.name} needs operands of one type: {named_by[0].name} {named_by[1]} is {variable}, "
                    f"{f.name} {v} is {ty}",
                    span=instruction.span,
                    hint=f"convert one with CVT, for instance CVT.{ty}.{variable} {v}, {v}",
                )
        else:
            _require(instruction, f.name, v, ty, _type_set(instruction, f.ty))
    variable = variable or op.default_type
    outputs = []
    for f in op.fields:
        if f.kind is Kind.DEF:
            ty_out = variable if f.ty == "T" else next(iter(_type_set(instruction, f.ty)))
            assert ty_out is not None, f"row {op.name} does not say the type of {f.name}"
            outputs.append(ty_out)
    return tuple(outputs)


def _type_set(instruction: Instruction, spec: Type | str | None) -> frozenset[Type]:
    if isinstance(spec, Type):
        return frozenset({spec})
    assert spec is not None
    if spec in NAMED_TYPE_SETS:
        return NAMED_TYPE_SETS[spec]
    named = getattr(instruction, spec)
    return frozenset({named.ty if isinstance(named, Immediate) else named})


def _require(i: Instruction, name: str, register: Any, ty: Type, allowed: frozenset[Type]) -> None:
    if ty in allowed:
        return
    wanted = " ".join(t.name for t in Type if t in allowed) if len(allowed) <= 6 else described_types(allowed)
    first = next(t for t in Type if t in allowed)
    raise IsaError(
        f"{i.op.name}: {name} {register} is {ty}, but must be {wanted}",
        span=i.span,
        hint=f"convert it with CVT, for instance CVT.{ty}.{first} {register}, {register}",
    )
