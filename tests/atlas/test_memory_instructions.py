"""Loads, stores, atomics, pools, neighbours and accumulation, on every type they accept."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import oracle
import pytest

from batches import of_each
from eshkol.atlas import classes
from eshkol.atlas.builder import ProgramBuilder
from eshkol.atlas.isa import Values
from eshkol.atlas.operands import AtomicOperation, ClassOffset, PoolOffset, Register, RegisterIndirect, Shared
from eshkol.atlas.program import LaunchConfig
from eshkol.atlas.rounding import to_array
from eshkol.atlas.table import ROWS
from eshkol.atlas.types import Type, decode, encode
from eshkol.backends.reference import ReferenceBackend
from eshkol.errors import ExecutionFailed

GLOBAL, LANE = Register(255), Register(252)
TYPES = pytest.mark.parametrize("ty", Type, ids=str)


class Bench:
    """A program under construction with an input buffer `x` and an output buffer `out` of one type."""

    def __init__(self, ty: Type, values: list[Any]) -> None:
        self.ty, self.backend, self.b = ty, ReferenceBackend(), ProgramBuilder()
        self.values, self.count = values, len(values)
        self.x, self.out = self.b.buffer("x", ty), self.b.buffer("out", ty)
        self.value = self.b.reg()
        self.b.ldg(ty, self.value, self.x.at(GLOBAL))

    def run(self, result: Register, launch: LaunchConfig | None = None, **params: Any) -> list[int]:
        """Bit patterns of `result` in every lane."""
        self.b.stg(self.ty, self.out.at(GLOBAL), result)
        out = self.backend.allocate_typed(self.ty, self.count)
        given = {"x": self.backend.array(to_array(self.values, self.ty), self.ty), "out": out, **params}
        self.backend.execute(self.b.build(), launch or LaunchConfig((1, 1, 1), (self.count, 1, 1)), given)
        return oracle.bits(list(out.read()), self.ty)


@TYPES
def test_buffers_keep_every_bit(ty: Type) -> None:
    values = oracle.samples(ty)
    bench = Bench(ty, values)
    assert bench.run(bench.value) == oracle.bits(values, ty)


@TYPES
def test_shared_memory(ty: Type) -> None:
    """Each lane stores, all wait, each reads its right neighbour's value; in two blocks apart."""
    values = oracle.samples(ty)[:16]
    bench = Bench(ty, values)
    b, other = bench.b, bench.b.reg()
    b.sts(ty, Shared(16).at(LANE, ty.size_bytes), bench.value)
    b.bar_sync()
    b.add(other, LANE, b.constant(Type.U32, 1))
    b.rem(other, other, b.constant(Type.U32, 8))
    result = b.reg()
    b.lds(ty, result, Shared(16).at(other, ty.size_bytes))
    launch = LaunchConfig((2, 1, 1), (8, 1, 1), 16 + 8 * ty.size_bytes)
    wanted = [values[k // 8 * 8 + (k + 1) % 8] for k in range(16)]
    assert bench.run(result, launch) == oracle.bits(wanted, ty)


@TYPES
def test_class_memory_by_offset_index_and_register(ty: Type) -> None:
    """Little-endian bytes; unaligned and across pages, by all three ways of addressing."""
    values = oracle.samples(ty)[:5]
    bench = Bench(ty, values)
    b, size = bench.b, ty.size_bytes
    start = 255  # the first element crosses a page
    b.stg(ty, ClassOffset(7, start).at(LANE, size), bench.value)
    linear, step, first, result = b.reg(), b.reg(), b.reg(), b.reg()
    b.cvt(Type.U32, Type.U64, step, LANE)
    b.mul(step, step, b.constant(Type.U64, size))
    b.add(linear, step, b.constant(Type.U64, classes.boundary_map(7, 0, start)))
    b.ldg(ty, result, RegisterIndirect(linear))
    b.ldg(ty, first, ClassOffset(7, start))
    assert bench.run(result) == oracle.bits(values, ty)
    stored = bench.backend.class_memory[7 * classes.CLASS_BYTES + start :][: 5 * size]
    np.testing.assert_array_equal(stored, encode(to_array(values, ty), ty).reshape(-1))


@TYPES
def test_pools(ty: Type) -> None:
    """A pool parameter by LDG, PoolLoad and PoolStore, and a pool of the program's own."""
    value = oracle.samples(ty)[5]
    bench = Bench(ty, [value])
    b, size = bench.b, ty.size_bytes
    b.pool("given")
    first, second, third = b.reg(), b.reg(), b.reg()
    b.pool_store(ty, "given", size + 3, bench.value)
    b.ldg(ty, first, PoolOffset("given", size + 3))
    b.pool_alloc("own", 3 * size)
    b.stg(ty, PoolOffset("own").at(b.constant(Type.U32, 2), size), first)
    b.pool_load(ty, second, "own", 2 * size)
    b.pool_free("own")
    b.mov(third, second)
    handle = bench.backend.allocate_pool(2 * size + 3)
    assert bench.run(third, given=handle) == oracle.bits([value], ty)
    raw = np.frombuffer(bench.backend.copy_from_pool(handle, size + 3, size), np.uint8)
    assert oracle.bits(list(decode(raw.reshape(1, size), ty)), ty) == oracle.bits([value], ty)


ATOMICS = [(op, ty) for op in AtomicOperation for ty in Type if not ty.is_wide]
ATOMICS = [(op, ty) for op, ty in ATOMICS if ty.is_integer or op.name not in ("And", "Or", "Xor")]


@pytest.mark.parametrize("shared", [False, True])
@of_each("operation, ty", ATOMICS)
def test_atomics(operation: AtomicOperation, ty: Type, shared: bool) -> None:
    """All lanes on one element; each sees the value before it, in lane order on the reference."""
    values = [v for v in oracle.samples(ty)[2:] if v == v][:9]
    bench = Bench(ty, values)
    b, old = bench.b, bench.b.reg()
    cell = Shared(0) if shared else b.buffer("cell", ty).address
    if shared:
        b.sts(ty, Shared(0).at(LANE, ty.size_bytes), b.constant(ty, 3))
        b.bar_sync()
    b.atom(ty, operation, old, cell, bench.value)
    params = {} if shared else {"cell": bench.backend.array([3] if ty.is_integer else [3.0], ty)}
    found = bench.run(old, LaunchConfig((1, 1, 1), (9, 1, 1), 9 * ty.size_bytes), **params)
    current: Any = 3 if ty.is_integer else 3.0
    wanted = []
    for value in values:
        wanted.append(current)
        scalar = operation.value
        current = value if scalar == "MOV" else oracle.expected(scalar, ty, (current, value))
    assert found == oracle.bits(wanted, ty)
    if not shared:
        assert oracle.bits(list(params["cell"].read()), ty) == oracle.bits([current], ty)


@TYPES
def test_neighbours(ty: Type) -> None:
    """Store through the k-th neighbour of a class, load it back, and find it in class memory."""
    value = oracle.samples(ty)[4]
    for k in range(5):
        bench = Bench(ty, [value])
        b, result = bench.b, bench.b.reg()
        cls = b.constant(Type.U8, 42)
        b.nbr_store(ty, cls, bench.value, k)
        b.nbr_load(ty, result, cls, k)
        assert bench.run(result) == oracle.bits([value], ty)
        start = [18, 30, 36, 43, 90][k] * classes.CLASS_BYTES
        raw = bench.backend.class_memory[start : start + ty.size_bytes]
        np.testing.assert_array_equal(raw, encode(to_array([value], ty), ty)[0])


@pytest.mark.parametrize(("cls", "k", "message"), [(42, 5, "has 5 neighbours"), (96, 0, "class 96 does not exist")])
def test_bad_neighbours(cls: int, k: int, message: str) -> None:
    bench = Bench(Type.I32, [1])
    register, result = bench.b.constant(Type.U8, cls), bench.b.reg()
    bench.b.nbr_load(Type.I32, result, register, k)
    with pytest.raises(ExecutionFailed, match=message):
        bench.run(result)


@TYPES
def test_accumulation_is_exact(ty: Type) -> None:
    """Sums that no float could hold on the way; a second launch starts from zero."""
    values = [v for v in oracle.samples(ty) if v == v and abs(v) != float("inf")][:12]
    backend, b = ReferenceBackend(), ProgramBuilder()
    x, total = b.reg(), b.reg()
    b.ldg(ty, x, b.buffer("x", ty).at(GLOBAL))
    b.res_accum(total, x, 5)
    b.stg(Type.F64, b.buffer("out", Type.F64).at(GLOBAL), total)
    program, out = b.build(), backend.allocate_typed(Type.F64, len(values))
    launch = LaunchConfig((1, 1, 1), (len(values), 1, 1))
    for _ in range(2):
        backend.execute(program, launch, {"x": backend.array(to_array(values, ty), ty), "out": out})
        exact = [sum((Fraction(v) for v in values[: k + 1]), Fraction(0)) for k in range(len(values))]
        wanted = [oracle.round_exact(e, Type.F64) for e in exact]
        assert list(out.read()) == wanted


def test_phase_is_seen_from_each_class_and_persists() -> None:
    backend, b = ReferenceBackend(), ProgramBuilder()
    seen = b.reg()
    b.phase_write(b.constant(Type.U32, 750), 0)
    b.phase_read(seen, 0)
    b.add(seen, seen, b.constant(Type.U32, 30))
    b.phase_write(seen, 0)
    b.phase_read(seen, 2)
    b.stg(Type.U32, b.buffer("out", Type.U32).address, seen)
    out = backend.allocate_typed(Type.U32, 1)
    backend.execute(b.build(), LaunchConfig(), {"out": out})
    assert backend.phase == 12  # 750 + 30 modulo 768
    assert out.read()[0] == (12 - 16) % 768


def test_every_machine_instruction_is_named_in_a_test_of_this_folder() -> None:
    """Rows that are not values must be exercised somewhere; this finds a row added without a test."""
    from pathlib import Path

    text = "\n".join(path.read_text() for path in Path(__file__).parent.glob("test_*.py"))
    rows = [op for op in ROWS.values() if not isinstance(op.meaning, Values)]
    untested = [op.name for op in rows if f"{op.name}" not in text and f"b.{op.method}(" not in text]
    assert not untested
