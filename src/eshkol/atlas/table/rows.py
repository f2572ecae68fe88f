"""Shorthand for writing rows: field constructors and the registry they end in."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from eshkol.atlas.isa import (
    COUNT_LIMIT,
    REQUIRED,
    Arrays,
    Control,
    Effect,
    Field,
    Group,
    Instruction,
    Kind,
    Opcode,
    Values,
)
from eshkol.atlas.operands import Choice
from eshkol.atlas.types import Type

ROWS: dict[str, Opcode] = {}
"""Every row by mnemonic, in the order of the documentation."""
METHODS: dict[str, Opcode] = {}
"""Every row by the name of its builder method."""

ShapeRule = Callable[[Instruction], tuple[int, ...]]


def row(
    name: str,
    group: Group,
    doc: str,
    fields: tuple[Field, ...],
    meaning: Values | Arrays | Effect,
    types: frozenset[Type] = frozenset(),
    *,
    expand: Callable[..., None] | None = None,
    check: Callable[[Instruction], None] | None = None,
    control: Control = Control.NEXT,
    default_type: Type | None = None,
    traps: bool = False,
    zero_trap: str | None = None,
    in_place: bool = False,
    method: str | None = None,
) -> Opcode:
    """Add a row to the table."""
    assert name not in ROWS, f"two rows named {name}"
    opcode = Opcode(
        name, group, doc, fields, meaning, types, expand, check, control, default_type, traps, zero_trap, in_place,
        method or snake(name),
    )  # fmt: skip
    ROWS[name] = METHODS[opcode.method] = opcode
    return opcode


def snake(name: str) -> str:
    """A mnemonic as a Python method name: BatchedGEMM → batched_gemm, AND → and_."""
    spaced = re.sub(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower()
    return spaced + "_" if spaced in ("and", "or", "not") else spaced


def out(name: str, ty: Type | str = "T") -> Field:
    return Field(name, Kind.DEF, ty)


def use(name: str, ty: Type | str = "T") -> Field:
    return Field(name, Kind.USE, ty)


def read(name: str, shape: ShapeRule | None = None, ty: Type | str = "ty") -> Field:
    return Field(name, Kind.READ, ty, shape=shape)


def write(name: str, shape: ShapeRule | None = None, ty: Type | str = "ty") -> Field:
    return Field(name, Kind.WRITE, ty, shape=shape)


def count(name: str, low: int = 0, high: int = COUNT_LIMIT, default: Any = REQUIRED) -> Field:
    return Field(name, Kind.COUNT, low=low, high=high, default=default)


def real(name: str, default: Any = REQUIRED) -> Field:
    return Field(name, Kind.REAL, default=default)


def choice(name: str, choices: type[Choice]) -> Field:
    return Field(name, Kind.CHOICE, choices=choices)


DST, SRC, LHS, RHS = out("dst"), use("src"), use("lhs"), use("rhs")
UNARY, BINARY = (DST, SRC), (DST, LHS, RHS)
TY = Field("ty", Kind.TYPE)
PRED = Field("pred", Kind.PDEF)
