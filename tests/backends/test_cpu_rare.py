"""Code that few lanes come to: computed where a lane wants it, also in vectors of which only some lanes do."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from eshkol.atlas.builder import ProgramBuilder
from eshkol.atlas.expand import expand
from eshkol.atlas.operands import Condition, Register
from eshkol.atlas.program import LaunchConfig, Program
from eshkol.atlas.types import Type
from eshkol.atlas.validate import validate
from eshkol.backends.cpu.kernels.rare import LEAST, rare_stretches

pytest.importorskip("llvmlite")
from eshkol.backends.cpu import CpuBackend
from eshkol.backends.reference import ReferenceBackend

LANE = Register(255)
F32, F64, I32 = Type.F32, Type.F64, Type.I32
LANES = 43  # vectors of any width, and some lanes left over
STEPS = {
    F32: ("add", "sub", "mul", "max", "min", "div"),
    F64: ("add", "sub", "mul", "max", "min", "div"),
    I32: ("add", "sub", "mul", "max", "min", "xor", "div"),
}


@pytest.fixture(scope="module")
def cpu() -> CpuBackend:
    return CpuBackend()


def angles(name: str, ty: Type) -> Program:
    b = ProgramBuilder(name)
    out, x = b.buffer("out", ty), b.buffer("x", ty)
    value = b.reg(ty)
    b.ldg(ty, value, x.at(LANE))
    getattr(b, name)(value, value)
    b.stg(ty, out.at(LANE), value)
    return b.build()


@pytest.mark.parametrize("name", ["sin", "cos", "tan"])
@pytest.mark.parametrize("ty", [F32, F64], ids=str)
def test_huge_angles_among_others(cpu: CpuBackend, name: str, ty: Type) -> None:
    """One huge angle at each place of a vector, none, all, and what is no angle."""
    rng = np.random.default_rng(3)
    rows = [rng.uniform(-50, 50, LANES) for _ in range(4)]
    for k, row in enumerate(rows[1:3]):
        row[[k, 5 + k, 10 + k, 19, 42]] = [1e7, -3e10, 1e30, np.inf, np.nan]
    rows[3] = rng.uniform(1e7, 1e12, LANES)
    x = np.concatenate(rows).astype(ty.dtype)
    params = {"out": cpu.array(np.zeros_like(x), ty), "x": cpu.array(x, ty)}
    cpu.execute(angles(name, ty), LaunchConfig.linear(len(x)), params)
    with np.errstate(invalid="ignore"):
        wanted = getattr(np, name)(x.astype(np.float64))
    np.testing.assert_allclose(params["out"].read(), wanted, rtol=2.0 ** (-22 if ty is F32 else -51))


def test_vectors_ask_before_they_compute_it(cpu: CpuBackend) -> None:
    program = angles("sin", F32)
    found = rare_stretches(validate(expand(program)), cpu.target.vector_bits)
    assert len(found) == 1
    text = cpu.compile_to_optimized(program)
    kernel = text[text.index("define void @kernel") :]
    kernel = kernel[: kernel.index("\n}")]
    assert re.search(r"llvm\.fma\.v\d+f32", kernel)
    assert re.search(r"@rare\d+\.slow\.", kernel)
    assert not re.search(r"mul <\d+ x i32>", kernel)  # by words of 2/π


@st.composite
def drawn(draw: st.DrawFn) -> tuple[Program, Type]:
    """A register that some lanes compute anew, by steps that are drawn, and what is made of it."""
    ty = draw(st.sampled_from(list(STEPS)))
    b = ProgramBuilder("drawn")
    out, x = b.buffer("out", ty), b.buffer("x", ty)
    held, other, p = b.reg(ty), b.reg(ty), b.pred()
    b.ldg(ty, other, x.at(LANE))
    b.add(held, other, b.constant(ty, 3))
    b.setcc(draw(st.sampled_from([Condition.LT, Condition.GT])), p, other, b.constant(ty, draw(st.integers(-9, 9))))
    more = b.reg(ty)
    b.mov(more, other)
    with b.when(p):
        total, q = b.reg(ty), b.pred()
        b.mov(total, held)
        for _ in range(draw(st.integers(LEAST // 3, LEAST))):
            step, right = draw(st.sampled_from(STEPS[ty])), draw(st.sampled_from([other, held, total]))
            if step == "div":
                right = b.constant(ty, 7)
            getattr(b, step)(total, total, right)
            b.setcc(Condition.LT, q, total, b.constant(ty, 100))
            b.sel(total, q, total, other)
        b.mov(held, total)
        if draw(st.booleans()):
            b.mov(more, total)  # then it gives two registers
    b.add(held, held, more)
    b.stg(ty, out.at(LANE), held)
    return b.build(), ty


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True)
@given(drawn(), st.integers(0, 99))
def test_programs_agree_with_the_reference(cpu: CpuBackend, program: tuple[Program, Type], seed: int) -> None:
    code, ty = program
    x = np.random.default_rng(seed).integers(-9, 9, LANES).astype(ty.dtype)
    found = []
    for backend in (ReferenceBackend(), cpu):
        params = {"out": backend.array(np.zeros_like(x), ty), "x": backend.array(x, ty)}
        backend.execute(code, LaunchConfig.linear(LANES), params)
        found.append(params["out"].read())
    np.testing.assert_array_equal(found[0], found[1])
