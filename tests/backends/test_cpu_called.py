"""Elementary functions that lanes call, where code is compiled as it is written: the same bits as their expansions."""

from __future__ import annotations

import numpy as np
import pytest

from eshkol.atlas.builder import ProgramBuilder
from eshkol.atlas.isa import Instruction, Opcode
from eshkol.atlas.operands import Indexed, Register
from eshkol.atlas.program import LaunchConfig, Program
from eshkol.atlas.rounding import to_array
from eshkol.atlas.table import ROWS
from eshkol.atlas.types import Type
from eshkol.backends.cpu import CpuBackend, translations
from eshkol.backends.cpu.kernels.called import is_called

pytest.importorskip("llvmlite")
VALUES = [0.0, -0.0, 0.1, -0.7, 1.0, 2.5, -3.0, 30.0, -88.5, 710.0, 1e5, 3e9, -1e22, np.inf, -np.inf, np.nan]


def on_registers(op: Opcode) -> Instruction:
    return op(*(Register(k) for k in range(len(op.fields))))


SIMPLE = [op for op in ROWS.values() if op.is_extension and op.fields and all(f.ty == "T" for f in op.fields)]
CALLED = [op for op in SIMPLE if is_called(on_registers(op))]


@pytest.fixture(autouse=True)
def as_written(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ESHKOL_OPTIMIZE", "0")


def program(op: Opcode, ty: Type, times: int = 1) -> Program:
    """out[k] = op(x[k], x[2k mod n], …), so often."""
    b = ProgramBuilder()
    x, out = b.buffer("x", ty, len(VALUES)), b.buffer("out", ty, len(VALUES))
    lane = Register(255)
    count = len(op.fields) - 1
    for _ in range(times):
        given = [b.reg(ty) for _ in range(count)]
        for k, register in enumerate(given):
            place, few = b.reg(Type.U64), b.constant(Type.U64, len(VALUES))
            b.mul(place, lane, b.constant(Type.U64, k + 1))
            b.rem(place, place, few)
            b.ldg(ty, register, Indexed(x.address, place, ty.size_bytes))
        result = b.reg(ty)
        b.emit(op(result, *given))
        b.stg(ty, Indexed(out.address, lane, ty.size_bytes), result)
    return b.build()


def computed(backend: CpuBackend, code: Program, ty: Type) -> bytes:
    params = {"x": backend.array(to_array(np.array(VALUES), ty), ty), "out": backend.allocate_typed(ty, len(VALUES))}
    backend.execute(code, LaunchConfig(grid=(1, 1, 1), block=(len(VALUES), 1, 1)), params)
    found = params["out"].read()
    return np.where(
        np.isnan(found.astype(np.float64)), np.array(np.nan, found.dtype), found
    ).tobytes()  # NaN has no sign


def test_there_are_some() -> None:
    assert {"SIN", "COS", "TANH", "EXP", "LOG", "POW", "ATAN2"} <= {op.name for op in CALLED}


@pytest.mark.parametrize("op", CALLED, ids=lambda op: op.name)
def test_a_call_gives_the_bits_of_the_expansion(op: Opcode) -> None:
    for ty in (t for t in Type if t in op.types and t.is_float):
        code = program(op, ty)
        assert f"@called.{op.name}.{ty}(" in CpuBackend().compile_to_llvm(code)
        assert computed(CpuBackend(), code, ty) == computed(CpuBackend(expanded=True), code, ty), ty


def test_a_function_is_written_once() -> None:
    text = CpuBackend().compile_to_llvm(program(ROWS["SIN"], Type.F64, times=3))
    assert text.count("define internal double @called.SIN.F64(") == 1
    assert text.count("call double @called.SIN.F64(") % 3 == 0


def test_what_is_optimized_calls_none(monkeypatch: pytest.MonkeyPatch) -> None:
    code, backend = program(ROWS["SIN"], Type.F32), CpuBackend()
    backend.compiled(code)  # which leaves its translation in the program cache
    kept = translations.kept(backend.cache, code, backend.target)
    assert kept is not None
    assert "@called" in kept.module.text
    monkeypatch.setenv("ESHKOL_OPTIMIZE", "1")
    assert "@called" not in CpuBackend().compile_to_llvm(code)
    again = translations.kept(backend.cache, code, backend.target)
    assert again is None or "@called" not in again.module.text
