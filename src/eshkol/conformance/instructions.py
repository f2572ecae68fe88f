"""Every instruction of Atlas on every type it takes, on a machine, against the reference machine.

Comes in: a backend. Goes out: an `Outcome` for each instruction and type. A case is a short program in Atlas's text
form over numbers at the edges of their type and others; results are equal bit for bit, NaNs as one, but for rows that
are expanded into others (`EXP`, `TANH`, …), which may differ in the last places. Which zero is the lesser is not
defined. Array instructions are what rows of the op table are lowered to, and are compared there (`checks.py`).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Set
from dataclasses import dataclass
from typing import Any

import numpy as np

from eshkol.atlas.isa import Kind, Opcode, Values
from eshkol.atlas.operands import AtomicOperation, Condition, SpecialRegister
from eshkol.atlas.program import LaunchConfig
from eshkol.atlas.rounding import to_array
from eshkol.atlas.table import ROWS
from eshkol.atlas.text import assemble
from eshkol.atlas.types import Type, encode
from eshkol.backends.base import Backend
from eshkol.backends.reference import ReferenceBackend
from eshkol.conformance.outcomes import Outcome, outcome_of

Array = Any

BLOCK = 64  # lanes
PLACES = 4  # in the last of which rows that are expanded may differ
CELLS = 4  # that lanes change one after another
NARROW = tuple(ty for ty in Type if not ty.is_wide)
ZEROS_ALIKE = ("MIN", "MAX", "CLAMP")


@dataclass(frozen=True)
class InstructionCase:
    """A program, and what its buffers hold before it runs."""

    name: str
    source: str
    buffers: Mapping[str, tuple[Type, Array]]
    places: int = 0
    zeros_alike: bool = False
    shared_memory: int = 0

    def run(self, backend: Backend) -> dict[str, Array]:
        """What the buffers hold afterwards."""
        count = max(len(values) for _, values in self.buffers.values())
        given = {name: backend.array(values, ty) for name, (ty, values) in self.buffers.items()}
        declared = "".join(f".buffer {name} {ty} {len(values)}\n" for name, (ty, values) in self.buffers.items())
        try:
            launch = LaunchConfig.linear(count, BLOCK, self.shared_memory)
            backend.execute(assemble(declared + self.source), launch, given)
            return {name: buffer.read() for name, buffer in given.items()}
        finally:
            for buffer in given.values():
                buffer.free()

    def compare(self, found: Mapping[str, Array], wanted: Mapping[str, Array]) -> None:
        for name, (ty, before) in self.buffers.items():
            wrong = np.flatnonzero(~self._alike(found[name], wanted[name], ty))
            if wrong.size:
                k = int(wrong[0])
                others = [
                    f"{n}={values[k]}" for n, (_, values) in self.buffers.items() if k < len(values) and n != name
                ]
                raise AssertionError(
                    f"{wrong.size} of {len(before)} differ; with {', '.join(others)} {name} is {found[name][k]}, "
                    f"and {wanted[name][k]} on the reference machine"
                )

    def _alike(self, one: Array, other: Array, ty: Type) -> Array:
        """Which elements are the same."""
        same = (encode(one, ty) == encode(other, ty)).all(axis=1)
        if not ty.is_float:
            return same
        a, b = (np.asarray(x, np.float64) for x in (one, other))
        same |= np.isnan(a) & np.isnan(b)
        if self.zeros_alike:
            same |= (a == 0) & (b == 0)
        if self.places:
            info = np.finfo(np.float32) if ty is Type.BF16 else np.finfo(ty.dtype)
            step = 2.0**-7 if ty is Type.BF16 else float(info.eps)
            with np.errstate(invalid="ignore", over="ignore"):
                near = np.abs(a - b) <= self.places * (step * np.abs(b) + float(info.smallest_subnormal))
            same |= near | ((a == b) & ~np.isfinite(b))
        return same


def numbers(ty: Type, count: int = 24) -> list[Any]:
    """Numbers at the edges of a type, and some others."""
    rng = np.random.default_rng(ty.bits + ty.is_signed)
    if ty.is_integer:
        edges = [0, 1, 2, 3, 7, ty.max_value, ty.max_value - 1, ty.min_value, ty.min_value + 1, ty.bits - 1]
        drawn = [int.from_bytes(rng.bytes(ty.size_bytes), "little") >> int(rng.integers(ty.bits)) for _ in range(count)]
        return [*edges, *([-1, -2, -7] if ty.is_signed else []), *(v for v in drawn if v <= ty.max_value)]
    info = np.finfo(np.float32) if ty is Type.BF16 else np.finfo(ty.dtype)
    largest = 2.0**127 * (2 - 2.0**-7) if ty is Type.BF16 else float(info.max)
    edges_f = [0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1.5, 2.5, -2.5, 3.0, 10.0, 0.1, largest, -largest, float(info.tiny),
               float(info.tiny) / 4, np.inf, -np.inf, np.nan]  # fmt: skip
    return [*edges_f, *(rng.standard_normal(count) * 10.0 ** rng.integers(-3, 3, count)).tolist()]


def _filled(values: list[Any], ty: Type) -> Array:
    """Values again and again, up to whole blocks."""
    whole = -(-len(values) // BLOCK) * BLOCK
    return to_array(list(itertools.islice(itertools.cycle(values), whole)), ty)


def _at(name: str, ty: Type) -> str:
    return f"[{name} + r255*{ty.size_bytes}]"


def _columns(op: Opcode, ty: Type, operands: int) -> list[Array]:
    """Operands that meet in many combinations."""
    values = numbers(ty)
    rng = np.random.default_rng(operands)
    every = list(itertools.product(values, repeat=min(operands, 2)))
    picked = [every[k] for k in rng.permutation(len(every))[:448]]
    rows = [(*row, *(values[int(rng.integers(len(values)))] for _ in range(operands - len(row)))) for row in picked]
    if op.zero_trap is not None and ty.is_integer:
        rows = [row for row in rows if row[1] != 0]
    return [_filled(list(column), ty) for column in zip(*rows, strict=True)]


def _registers(only: Set[str] = frozenset()) -> Iterator[InstructionCase]:
    """Rows that compute a register of registers of one type."""
    for op in ROWS.values():
        if only and op.name not in only:
            continue
        kinds = [f.kind for f in op.fields]
        plain = kinds == [Kind.DEF, *[Kind.USE] * (len(kinds) - 1)] and all(f.ty == "T" for f in op.fields)
        if not isinstance(op.meaning, Values) or not plain:
            continue
        for ty in (t for t in Type if t in op.types):
            columns = _columns(op, ty, len(kinds) - 1)
            loads = "".join(f"LDG.{ty} r{k}, {_at(f'x{k}', ty)}\n" for k in range(len(columns)))
            used = ", ".join(f"r{k}" for k in range(len(columns)))
            yield InstructionCase(
                f"{op.name} {ty}", f"{loads}{op.name} r9, {used}\nSTG.{ty} {_at('out', ty)}, r9",
                {**{f"x{k}": (ty, c) for k, c in enumerate(columns)}, "out": (ty, np.zeros_like(columns[0]))},
                PLACES if op.is_extension and ty.is_float else 0, op.name in ZEROS_ALIKE,
            )  # fmt: skip


def _conversions() -> Iterator[InstructionCase]:
    for source, target in itertools.product(Type, repeat=2):
        for name in ("CVT", *(["BITCAST"] if source.bits == target.bits and not source.is_wide else [])):
            given = _filled(numbers(source), source)
            out = to_array([0] * len(given), target)
            yield InstructionCase(
                f"{name} {source} to {target}",
                f"LDG.{source} r0, {_at('x', source)}\n{name}.{source}.{target} r1, r0\n"
                f"STG.{target} {_at('out', target)}, r1",
                {"x": (source, given), "out": (target, out)},
            )  # fmt: skip


def _packed() -> Iterator[InstructionCase]:
    """Two numbers in the halves of a word."""
    low, high = _columns(ROWS["ADD"], Type.F32, 2)
    numbers_ = ~np.isnan(low) & ~np.isnan(high)  # which bits a NaN has is open
    low, high = (np.where(numbers_, x, np.float32(0)) for x in (low, high))
    for ty in (Type.F16, Type.BF16):
        yield InstructionCase(
            f"PACK {ty}",
            f"LDG.F32 r0, {_at('x', Type.F32)}\nLDG.F32 r1, {_at('y', Type.F32)}\nPACK.{ty} r2, r0, r1\n"
            f"STG.U32 {_at('out', Type.U32)}, r2",
            {"x": (Type.F32, low), "y": (Type.F32, high), "out": (Type.U32, np.zeros(len(low), np.uint32))},
        )  # fmt: skip


def _comparisons() -> Iterator[InstructionCase]:
    """SETcc with each condition, and SEL by what it says."""
    for ty, condition in itertools.product(Type, Condition):
        x, y = _columns(ROWS["ADD"], ty, 2)
        yield InstructionCase(
            f"SETcc {condition.name} {ty}",
            f"LDG.{ty} r0, {_at('x', ty)}\nLDG.{ty} r1, {_at('y', ty)}\nSETcc.{condition.name} p0, r0, r1\n"
            f"SEL r2, p0, r0, r1\nSTG.{ty} {_at('out', ty)}, r2",
            {"x": (ty, x), "y": (ty, y), "out": (ty, np.zeros_like(x))},
        )  # fmt: skip


def _shared_memory() -> Iterator[InstructionCase]:
    """A lane's number in shared memory, read by the lane on the other side of its block."""
    for ty in Type:
        given = _filled(numbers(ty), ty)
        size = ty.size_bytes
        if size * BLOCK > 1 << 14:
            continue  # more shared memory than every machine has
        yield InstructionCase(
            f"LDS STS {ty}",
            f"LDG.{ty} r0, {_at('x', ty)}\nSREG.LaneX r1\nMOV_IMM.U32 r2, {BLOCK - 1}\nXOR r3, r1, r2\n"
            f"STS.{ty} [shared + r1*{size}], r0\nBarSync\nLDS.{ty} r4, [shared + r3*{size}]\n"
            f"STG.{ty} {_at('out', ty)}, r4",
            {"x": (ty, given), "out": (ty, to_array([0] * len(given), ty))}, shared_memory=size * BLOCK,
        )  # fmt: skip


def _lanes() -> Iterator[InstructionCase]:
    """What lanes know of themselves, and numbers that they exchange."""
    for which in SpecialRegister:
        out = to_array([0] * (4 * BLOCK), Type.U32)
        yield InstructionCase(
            f"SREG {which.name}", f"SREG.{which.name} r0\nSTG.U32 {_at('out', Type.U32)}, r0", {"out": (Type.U32, out)}
        )
    for ty, mask in itertools.product(NARROW, (1, 2, 16, 31)):
        yield InstructionCase(
            f"SubGroupXor {ty} by {mask}",
            f"LDG.{ty} r0, {_at('x', ty)}\nSubGroupXor.{ty} r1, r0, mask={mask}\nSTG.{ty} {_at('x', ty)}, r1",
            {"x": (ty, _filled(numbers(ty), ty))},
        )


def _atomics() -> Iterator[InstructionCase]:
    """All lanes on a few cells, with small whole numbers: the order in which they come does not matter."""
    for ty, operation in itertools.product(NARROW, AtomicOperation):
        bitwise = operation in (AtomicOperation.And, AtomicOperation.Or, AtomicOperation.Xor)
        if (bitwise and ty.is_float) or operation is AtomicOperation.Exchange:
            continue
        given = to_array([k % 3 for k in range(2 * BLOCK)], ty)
        yield InstructionCase(
            f"ATOM {operation.name} {ty}",
            f"LDG.{ty} r0, {_at('x', ty)}\nSREG.LaneX r1\nMOV_IMM.U32 r2, {CELLS - 1}\nAND r3, r1, r2\n"
            f"ATOM.{ty}.{operation.name} r4, [cells + r3*{ty.size_bytes}], r0",
            {"x": (ty, given), "cells": (ty, to_array([1] * CELLS, ty))},
        )  # fmt: skip


FAMILIES: Mapping[str, Callable[[], Iterator[InstructionCase]]] = {
    "CVT BITCAST": _conversions, "PACK": _packed, "SETcc": _comparisons, "LDS": _shared_memory,
    "SREG SubGroupXor": _lanes, "ATOM": _atomics,
}  # fmt: skip
"""What cases of other forms are named by, first of all."""


def instruction_cases(only: Set[str] = frozenset()) -> Iterator[InstructionCase]:
    """Every instruction on every type, but for those of memory pools, classes and control, which have no type.

    With names, those of cases that begin with one of them.
    """
    yield from _registers(only)
    for names, family in FAMILIES.items():
        if not only or only & set(names.split()):
            yield from (case for case in family() if not only or case.name.split()[0] in only)


def instruction(case: InstructionCase, backend: Backend) -> Outcome:
    """How a machine executes an instruction."""
    wanted = case.run(ReferenceBackend())
    return outcome_of(case.name, "instruction", lambda: case.compare(case.run(backend), wanted))
