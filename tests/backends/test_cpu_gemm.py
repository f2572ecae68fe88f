"""Matrix products as native code: every row, type and edge against the meaning; instructions of machines not at hand.

Operands lie amid NaN (or other numbers), so that a value read or written beside an operand shows.
"""

from __future__ import annotations

import math
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from test_array_instructions import EPSILON, FLOAT_TYPES, make

from effort import examples
from eshkol.atlas.builder import ProgramBuilder
from eshkol.atlas.isa import Arrays, Instruction, Kind, element_type
from eshkol.atlas.operands import Activation, BufferOffset, Register
from eshkol.atlas.program import LaunchConfig
from eshkol.atlas.rounding import to_array
from eshkol.atlas.table import ROWS
from eshkol.atlas.types import Type, encode
from eshkol.atlas.validate import memory_operands
from eshkol.backends.cpu import CpuBackend, macros, simd
from eshkol.backends.cpu.kernels.macro import module_text, phase_modules
from eshkol.backends.cpu.macros import gemm, gemm_amx, gemm_few, gemm_int8, gemm_plan, gemm_small, gemv
from eshkol.errors import IsaError
from eshkol.llvm.objects import assembly
from eshkol.llvm.targets import Target
from eshkol.runtime.scheduler import Scheduler, default_scheduler

CPU = CpuBackend()
PAD = 8  # elements beside each operand
Data = dict[str, np.ndarray]

floats = pytest.mark.parametrize("ty", FLOAT_TYPES, ids=str)
# Sizes on both sides of micro-tiles (4, 6, 8, 32 rows; 8, 16, 32 columns), tiles (64, 256) and blocks along k (512).
SIZES = st.one_of(st.sampled_from([0, 1, 2, 3, 4, 5, 15, 16, 17, 31, 33, 64, 65]), st.integers(0, 80))
DEPTHS = st.one_of(SIZES, st.sampled_from([127, 511, 513, 600, 1030]))


def inputs_of(i: Instruction, seed: int) -> Data:
    rng, found = np.random.default_rng(seed), {}
    for f, _ in memory_operands(i):
        ty, count = element_type(i, f), math.prod(f.shape(i))
        values = rng.integers(-128, 128, count) if ty.is_integer else rng.standard_normal(count)
        found[f.name] = to_array(values, ty).reshape(f.shape(i))
    return found


def run(i: Instruction, inputs: Data, lanes: int = 0, backend: CpuBackend = CPU) -> np.ndarray:
    """The output, carried out by all together; with `lanes`, by each on memory of its own, which must agree."""
    b, params, places = ProgramBuilder(), {}, {}
    output = next(f for f, _ in memory_operands(i) if f.kind is not Kind.READ)
    copies = max(lanes, 1)
    for f, _ in memory_operands(i):
        ty, count = element_type(i, f), math.prod(f.shape(i))
        stride, place = (count + PAD) * ty.size_bytes, BufferOffset(f.name, PAD * ty.size_bytes)
        places[f.name] = place.at(Register(255), stride) if lanes else place
        filler = to_array([99 if ty.is_integer else math.nan] * PAD, ty)
        data = np.concatenate([filler, *[inputs[f.name].reshape(-1), filler] * copies])
        params[f.name] = backend.array(data, ty)
        b.buffer(f.name, ty)
    b.emit(i.with_operands(lambda f, v: places.get(f.name, v)))
    assert macros.lower(b.instructions[-1], backend.target) is not None
    backend.execute(b.build(), LaunchConfig.linear(copies), params)
    found = params[output.name].read()
    ty, shape = element_type(i, output), output.shape(i)
    rows = found[PAD:].reshape(copies, -1)
    beside = np.concatenate([found[:PAD], rows[:, rows.shape[1] - PAD :].reshape(-1)])
    assert ((beside == 99) if ty.is_integer else np.isnan(beside.astype(np.float64))).all(), "written beside C"
    assert len({encode(row, ty).tobytes() for row in rows[:, :-PAD]}) <= 1
    return rows[0, : rows.shape[1] - PAD].reshape(shape)


def meaning(i: Instruction, inputs: Data) -> np.ndarray:
    assert isinstance(i.op.meaning, Arrays)
    wide = []
    for f, _ in memory_operands(i):
        if f.kind is Kind.READ or (f.read_if is not None and f.read_if(i)):
            wide.append(inputs[f.name].astype(np.int64 if element_type(i, f).is_integer else np.float64))
    with np.errstate(all="ignore"):
        return np.asarray(i.op.meaning.fn(i, *wide)[0])


def agree(i: Instruction, inputs: Data, terms: int, lanes: int = 0) -> None:
    """Within the bound of the compute type and one rounding; NaN and infinities where the meaning has them."""
    found, wanted = run(i, inputs, lanes), meaning(i, inputs)
    out = element_type(i, next(f for f, _ in memory_operands(i) if f.kind is not Kind.READ))
    if out.is_integer:
        np.testing.assert_array_equal(found, wanted)
        return
    found = found.astype(np.float64)
    sure = np.isfinite(wanted)
    np.testing.assert_array_equal(found[~sure], wanted[~sure])
    found, wanted = found[sure], wanted[sure]
    ty = i.ty if EPSILON[i.ty] > EPSILON[out] else out
    compute = EPSILON[Type.F32 if ty.is_half else ty]
    scale = np.abs(wanted) + np.max(np.abs(wanted), initial=1.0)
    assert (np.abs(found - wanted) <= compute * 4 * (terms + 4) * scale + EPSILON[out] * np.abs(wanted)).all()


# --- every row ------------------------------------------------------------------------------------


@floats
@examples(25, 4)
@given(
    m=SIZES, n=SIZES, k=DEPTHS, scales=st.sampled_from([(1.0, 0.0), (-0.5, 2.0), (0.0, 1.0)]), seed=st.integers(0, 9)
)
@example(m=130, n=270, k=1100, scales=(0.5, 1.0), seed=0)  # several tiles and blocks
@example(m=2, n=1100, k=47, scales=(0.5, 1.0), seed=0)  # few rows, and a large B
@example(m=200, n=300, k=300, scales=(1.0, 0.0), seed=0)  # B too large to be read where it is
def test_gemm(ty: Type, m: int, n: int, k: int, scales: tuple[float, float], seed: int) -> None:
    i = make(ROWS["GEMM"], ty, m=m, n=n, k=k, alpha=scales[0], beta=scales[1])
    agree(i, inputs_of(i, seed), k)


FLAGS = pytest.mark.parametrize(
    ("transpose_a", "transpose_b"), [(False, True), (True, False), (True, True)], ids=["NT", "TN", "TT"]
)
# F64 and F16 go the way of F32 and BF16: `make test` looks at those
some_floats = pytest.mark.parametrize(
    "ty", [pytest.param(t, marks=[pytest.mark.slow] if t in (Type.F16, Type.F64) else []) for t in FLOAT_TYPES], ids=str
)


@some_floats
@FLAGS
@examples(8, 2)
@given(m=SIZES, n=SIZES, k=DEPTHS, beta=st.sampled_from([0.0, 0.5]))
@example(m=70, n=67, k=600, beta=0.5)  # more than one block, panels and rows that are not whole
@example(m=66, n=1, k=130, beta=0.0)
@example(m=1, n=66, k=130, beta=0.5)
@example(m=1, n=1, k=37, beta=0.0)
def test_transposed_gemm(ty: Type, transpose_a: bool, transpose_b: bool, m: int, n: int, k: int, beta: float) -> None:
    flags = {"transpose_a": transpose_a, "transpose_b": transpose_b}
    i = make(ROWS["GEMM"], ty, m=m, n=n, k=k, alpha=0.5, beta=beta, **flags)
    agree(i, inputs_of(i, 12), k)


@FLAGS
@pytest.mark.parametrize(("m", "n", "k"), [(40, 50, 300), (33, 130, 2100), (5, 19, 33)])
def test_transposed_products_of_bf16_pairs(transpose_a: bool, transpose_b: bool, m: int, n: int, k: int) -> None:
    """Units of two elements are packed rightly whichever way they lie, on machines that have them and others."""
    flags = {"transpose_a": transpose_a, "transpose_b": transpose_b}
    i = make(ROWS["FusedGEMM"], Type.BF16, out_ty=Type.F32, activation=Activation.Silu, m=m, n=n, k=k, **flags)
    agree(i, inputs_of(i, 13), k + 8)


LONG = st.one_of(SIZES, st.sampled_from([1000, 4095, 4096, 4097, 9000]))  # on both sides of a stretch of columns


@some_floats
@examples(15, 3)
@given(size=LONG, k=LONG, scales=st.sampled_from([(1.0, 0.0), (-0.5, 2.0)]), left=st.booleans(), lanes=st.just(0))
@example(size=70, k=33, scales=(1.0, 0.5), left=True, lanes=2)
@example(size=70, k=33, scales=(1.0, 0.5), left=False, lanes=2)
def test_vectors(ty: Type, size: int, k: int, scales: tuple[float, float], left: bool, lanes: int) -> None:
    """A vector times a matrix, or a matrix times a vector."""
    m, n = (1, size) if left else (size, 1)
    k = min(k, 1 << 20 if not size else (1 << 20) // size)
    i = make(ROWS["GEMM"], ty, m=m, n=n, k=k, alpha=scales[0], beta=scales[1])
    agree(i, inputs_of(i, 4), k, lanes)


@some_floats
@pytest.mark.parametrize("k", [96, 97, 143, 144, 500])
@pytest.mark.parametrize(("m", "n"), [(1, 1), (3, 1), (1, 3)])
def test_few_long_rows_times_a_vector_are_cut_into_parts(ty: Type, m: int, n: int, k: int, monkeypatch: Any) -> None:
    monkeypatch.setattr(gemv, "TASK_ELEMENTS", 48)
    i = make(ROWS["GEMM"], ty, m=m, n=n, k=k, alpha=-0.5, beta=2.0, transpose_b=n > 1)
    assert [p.tasks for p in gemm.gemm(i, CPU.target).phases] == [m * n * -(-k // 48), m * n]
    agree(i, inputs_of(i, 4), k)


@some_floats
@examples(30, 6)
@given(
    count=st.integers(2, gemm_few.MOST), size=st.sampled_from([16, 17, 63, 200]), data=st.data(),
    k=st.sampled_from([255, 256, 300, 511, 600]), flags=st.tuples(st.booleans(), st.booleans()),
)  # fmt: skip
def test_few_vectors(ty: Type, count: int, size: int, k: int, flags: tuple[bool, bool], data: Any) -> None:
    """A few rows times a transposed matrix, or a matrix times a few columns; alone, in batches, with what follows."""
    left, transposed = flags
    m, n = (count, size) if left else (size, count)
    turned = {"transpose_a": transposed and left, "transpose_b": transposed or left}
    i = data.draw(st.sampled_from([
        make(ROWS["GEMM"], ty, m=m, n=n, k=k, alpha=-0.5, beta=2.0, **turned),
        make(ROWS["BatchedGEMM"], ty, batch=6, batches=(2, 3), m=m, n=n, k=k, **turned),
        make(ROWS["FusedGEMM"], ty, out_ty=ty, activation=Activation.Tanh, m=m, n=n, k=k, **turned),
    ]))  # fmt: skip
    agree(i, inputs_of(i, 4), k, lanes=data.draw(st.sampled_from([0, 0, 2])))


def test_few_vectors_read_the_matrix_once() -> None:
    """What it reads lies as it is: only vectors whose elements lie apart are copied, of which there are few."""
    flags = {"transpose_b": True}
    names = {
        (3, 400, True): ["gemm_f32_few_3_rows"],
        (400, 3, False): ["gemm_f32_few_3_columns_copied_copies", "gemm_f32_few_3_columns_copied"],
        (400, 3, True): ["gemm_f32_few_3_columns"],
    }
    for (m, n, turned), wanted in names.items():
        i = make(ROWS["GEMM"], Type.F32, m=m, n=n, k=600, **(flags if turned else {}))
        assert [phase.function for phase in gemm.gemm(i, CPU.target).phases] == wanted
    short = gemm.gemm(make(ROWS["GEMM"], Type.F32, m=3, n=400, k=20, **flags), CPU.target)
    assert "few" not in short.phases[-1].function


@some_floats
@examples(12, 3)
@given(batch=st.integers(0, 4), m=SIZES, n=SIZES, k=SIZES)
def test_batched_gemm(ty: Type, batch: int, m: int, n: int, k: int) -> None:
    i = make(ROWS["BatchedGEMM"], ty, batch=batch, m=m, n=n, k=k)
    agree(i, inputs_of(i, 1), k)


def _steps(draw: st.DrawFn, extents: tuple[int, ...], *, filled: bool) -> tuple[int, ...]:
    """Strides of axes in any order, the last one innermost; filled: without gaps, else with some, or shared (0)."""
    order = [*draw(st.permutations(range(len(extents) - 1))), len(extents) - 1]
    steps, step = [0] * len(extents), 1
    for axis in reversed(order):
        shared = not filled and axis < len(extents) - 2 and draw(st.booleans())
        steps[axis] = 0 if shared else step
        step *= 1 if shared else max(extents[axis], 1)
        step += 0 if filled else draw(st.sampled_from([0, 0, 3]))
    return tuple(steps[:-1])


@st.composite
def strided(draw: st.DrawFn, *, small: bool = False) -> dict[str, Any]:
    """Batches that lie in many ways; small: enough matrices that code is written for their size."""
    batches = tuple(draw(st.lists(st.integers(1, 3), min_size=1, max_size=2)))
    m, n, k = (draw(st.sampled_from([1, 3, 4, 7, 17, 20, 33])) for _ in range(3))
    if small:
        batches = draw(st.sampled_from([(256,), (259,), (3, 101), (128, 2), (2, 1300)]))
        m, n, k = (draw(st.integers(1, gemm_small.MOST)) for _ in range(3))
        if draw(st.sampled_from([False, False, True])):
            batches, m = draw(st.sampled_from([(1,), (2,), (2, 3)])), draw(st.sampled_from([256, 300, 1025]))
    flags = {name: draw(st.booleans()) for name in ("transpose_a", "transpose_b")}
    a = (k, m) if flags["transpose_a"] else (m, k)
    b = (n, k) if flags["transpose_b"] else (k, n)
    laid = {"a": (a, False), "b": (b, False), "c": ((m, n), True)}
    steps = {
        f"{name}_strides": _steps(draw, (*batches, *shape), filled=filled)
        for name, (shape, filled) in laid.items() if draw(st.booleans())
    }  # fmt: skip
    return {"batch": math.prod(batches), "m": m, "n": n, "k": k, "batches": batches, **flags, **steps}


@some_floats
@examples(40, 7)
@given(given_=strided())
def test_batches_lie_in_memory_in_many_ways(ty: Type, given_: dict[str, Any]) -> None:
    i = make(ROWS["BatchedGEMM"], ty, alpha=0.5, **given_)
    assert i.op.check is not None
    i.op.check(i)
    agree(i, inputs_of(i, 14), given_["k"])


@some_floats
@examples(60, 10)
@given(given_=strided(small=True))
@example({"batch": 5000, "m": 3, "n": 3, "k": 3})  # several tasks
@example({"batch": 5001, "m": 4, "n": 1, "k": 4})
@example({"batch": 1, "m": 20_011, "n": 3, "k": 2})
@example({"batch": 300, "m": 3, "n": 3, "k": 0})
def test_many_small_matrices(ty: Type, given_: dict[str, Any]) -> None:
    i = make(ROWS["BatchedGEMM"], ty, alpha=0.5, **given_)
    agree(i, inputs_of(i, 15), given_["k"])


def test_small_matrices_have_code_of_their_size() -> None:
    """Each way that it is written, alone on a lane's memory too; what follows sums is done; few are not worth it."""
    i = make(ROWS["BatchedGEMM"], Type.F32, batch=300, m=3, n=5, k=2, transpose_b=True)
    (phase,) = macros.lower(i, CPU.target).phases
    assert "small_3x5x2_columns" in phase.function
    agree(i, inputs_of(i, 16), 2, lanes=2)
    (phase,) = macros.lower(make(ROWS["BatchedGEMM"], Type.F32, batch=300, m=4, n=1, k=4), CPU.target).phases
    assert "small_1x4x4_turned" in phase.function
    i = make(ROWS["GEMM"], Type.F32, m=515, n=3, k=4, alpha=0.5, beta=2.0, transpose_a=True)
    (phase,) = macros.lower(i, CPU.target).phases
    assert "small_rowsx3x4" in phase.function
    agree(i, inputs_of(i, 17), 4)
    for activation in (Activation.Relu, Activation.Tanh):
        i = make(ROWS["FusedGEMM"], Type.F32, out_ty=Type.F32, activation=activation, m=300, n=5, k=3)
        agree(i, inputs_of(i, 18), 3)
    few = macros.lower(make(ROWS["BatchedGEMM"], Type.F32, batch=10, m=3, n=5, k=2), CPU.target)
    assert "small" not in few.phases[-1].function


@some_floats
@pytest.mark.parametrize(
    ("m", "k", "batch"), [(96, 96, 1), (131, 100, 1), (200, 700, 1), (97, 600, 3), (400, 130, 1)]
)  # fmt: skip
@pytest.mark.parametrize("transposed", ["a", "b"])
def test_a_matrix_times_its_own_transpose_is_computed_once(
    ty: Type, m: int, k: int, batch: int, transposed: str
) -> None:
    """Both operands are one buffer: what lies above the diagonal is what lies below it, to the bit, and is right."""
    i = make(ROWS["BatchedGEMM"], ty, batch=batch, m=m, n=m, k=k, alpha=0.5, **{f"transpose_{transposed}": True})
    matrices = inputs_of(i, 3)["a"].reshape(batch, m, k)
    stored = (np.swapaxes(matrices, 1, 2) if transposed == "a" else matrices).copy()
    b, c, x = ProgramBuilder(), BufferOffset("c", PAD * ty.size_bytes), BufferOffset("x", 0)
    b.buffer("x", ty)
    b.buffer("c", ty)
    b.emit(i.with_operands(lambda f, v: {"a": x, "b": x, "c": c}.get(f.name, v)))
    filler = to_array([math.nan] * (batch * m * m + 2 * PAD), ty)
    params = {"x": CPU.array(stored.reshape(-1), ty), "c": CPU.array(filler, ty)}
    CPU.execute(b.build(), LaunchConfig.linear(1), params)
    found = params["c"].read().astype(np.float64)
    assert np.isnan(found[:PAD]).all()
    assert np.isnan(found[-PAD:]).all()
    found = found[PAD:-PAD].reshape(batch, m, m)
    np.testing.assert_array_equal(found, np.swapaxes(found, 1, 2))
    wide = matrices.astype(np.float64)
    wanted = 0.5 * wide @ np.swapaxes(wide, 1, 2)
    compute = EPSILON[Type.F32 if ty.is_half else ty]
    bound = (compute * 4 * (k + 4) + EPSILON[ty]) * (np.abs(wanted) + np.abs(wanted).max())
    assert (np.abs(found - wanted) <= bound).all()
    agree(i, inputs_of(i, 4), k)  # the same code, of two matrices


LAID_OUT: list[tuple[str, dict[str, Any]]] = [
    ("GEMM", {"transpose_a": True, "beta": 0.5}),
    ("GEMM", {"transpose_b": True}),
    ("FusedGEMM", {"out_ty": Type.F32, "activation": Activation.Tanh, "transpose_a": True, "transpose_b": True}),
    ("BatchedGEMM", {"batch": 6, "batches": (2, 3), "transpose_b": True, "a_strides": (24, 4, 12),
                     "b_strides": (0, 20, 4), "c_strides": (45, 5, 15), "alpha": 0.5}),
]  # fmt: skip


@pytest.mark.parametrize(("name", "more"), LAID_OUT, ids=lambda v: v if isinstance(v, str) else "")
def test_expansions_read_what_lies_otherwise(name: str, more: dict[str, Any]) -> None:
    i = make(ROWS[name], Type.F32, m=3, n=5, k=4, **more)
    inputs = inputs_of(i, 16)
    found, wanted = run(i, inputs, backend=CpuBackend(expanded=True)), meaning(i, inputs)
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    ("given_", "message"),
    [
        ({"batch": 5, "batches": (2, 3)}, "are not 5 pairs"),
        ({"batch": 6, "batches": (2, 3), "a_strides": (24, 12)}, "not one for each axis"),
        ({"batch": 2, "c_strides": (16, 5)}, "leave gaps"),
        ({"batch": 2, "c_strides": (0, 5)}, "leave gaps"),
    ],
)
def test_batches_that_make_no_sense_are_refused(given_: dict[str, Any], message: str) -> None:
    b = ProgramBuilder()
    for name in ("a", "b", "c"):
        b.buffer(name, Type.F32)
    b.emit(make(ROWS["BatchedGEMM"], Type.F32, m=3, n=5, k=4, **given_))
    with pytest.raises(IsaError, match=message):
        CPU.execute(b.build(), LaunchConfig(), {name: CPU.allocate_typed(Type.F32, 64) for name in "abc"})


def test_heads_are_multiplied_where_a_projection_has_left_them() -> None:
    """Queries and keys as batch × length × heads × dim, scores of every head; no copy is made for it."""
    batch, length, heads, dim = 2, 19, 3, 8
    lies = (length * heads * dim, dim, heads * dim)
    i = make(ROWS["BatchedGEMM"], Type.F32, batch=batch * heads, m=length, n=length, k=dim, transpose_b=True,
             batches=(batch, heads), a_strides=lies, b_strides=lies)  # fmt: skip
    inputs = inputs_of(i, 15)
    q, k = (inputs[x].reshape(batch, length, heads, dim).astype(np.float64) for x in "ab")
    found = run(i, inputs).reshape(batch, heads, length, length)
    np.testing.assert_allclose(found, np.einsum("bthd,buhd->bhtu", q, k), rtol=1e-4, atol=1e-5)


def test_one_matrix_for_all_is_one_product_and_is_packed_once() -> None:
    laid = {"batch": 50, "m": 4, "n": 64, "k": 200}
    shared = gemm.batched_gemm(make(ROWS["BatchedGEMM"], Type.F32, b_strides=(0, 64), **laid), CPU.target)
    single = gemm.gemm(make(ROWS["GEMM"], Type.F32, m=200, n=64, k=200), CPU.target)
    assert shared is not None
    assert shared.scratch == single.scratch
    assert shared.phases[-1].tasks == single.phases[-1].tasks


@pytest.mark.parametrize("ty", [Type.F16, Type.BF16], ids=str)
@examples(15, 3)
@given(m=SIZES, n=SIZES, k=DEPTHS)
def test_mixed_gemm(ty: Type, m: int, n: int, k: int) -> None:
    i = make(ROWS["MixedPrecisionGEMM"], ty, m=m, n=n, k=k)
    agree(i, inputs_of(i, 2), k)


@examples(60, 12)
@given(m=SIZES, n=SIZES, k=DEPTHS, scale=st.sampled_from([1.0, 0.5, 1e-3, 0.01, 1e-300]))
@example(m=3, n=130, k=5000, scale=1e-4)  # several blocks of groups of four
def test_quantized_gemm(m: int, n: int, k: int, scale: float) -> None:
    """To the bit: sums are exact, and halves are rounded to even."""
    i = make(ROWS["QuantizedGEMM"], m=m, n=n, k=k, a_scale=scale, b_scale=0.5, c_scale=0.25)
    agree(i, inputs_of(i, 3), k)


PAIRS = [
    (Type.F32, Type.F32),
    (Type.BF16, Type.F32),
    (Type.F32, Type.F16),
    (Type.BF16, Type.BF16),
    (Type.F16, Type.F64),
]


@pytest.mark.parametrize(("types", "activation"), list(zip([*PAIRS, PAIRS[0]], Activation, strict=True)), ids=str)
@examples(10, 3)
@given(m=SIZES, n=SIZES, k=st.sampled_from([0, 1, 7, 64, 600]), flags=st.tuples(st.booleans(), st.booleans()))
def test_fused_gemm(
    types: tuple[Type, Type], activation: Activation, m: int, n: int, k: int, flags: tuple[bool, bool]
) -> None:
    turned = {"transpose_a": flags[0], "transpose_b": flags[1]}
    i = make(ROWS["FusedGEMM"], types[0], out_ty=types[1], activation=activation, m=m, n=n, k=k, alpha=0.25, **turned)
    agree(i, inputs_of(i, 4), k + 8)


@pytest.mark.parametrize("left_out", [("bias",), ("residual",), ("bias", "residual")], ids=" ".join)
def test_fused_gemm_without_bias_or_residual(left_out: tuple[str, ...]) -> None:
    for m, n in ((8, 32), (5, 19)):
        i = make(ROWS["FusedGEMM"], Type.F32, out_ty=Type.F32, activation=Activation.Gelu, m=m, n=n, k=9,
                 **dict.fromkeys(left_out))  # fmt: skip
        agree(i, inputs_of(i, 5), 20)


CONTRACTIONS = [
    ((7, 3, 40), (40, 5), ((2, 0),)),  # as it lies
    ((6, 9), (9, 6), ((0, 1), (1, 0))),  # to a single number
    ((13,), (17,), ()),
    ((5, 6, 7), (7, 8, 5), ((0, 2), (2, 0))),  # both are arranged
    ((20, 30), (30, 40), ((1, 0),)),
    ((30, 20), (40, 30), ((0, 1),)),
    ((2, 3, 4, 5), (5, 3, 6), ((1, 1),)),
    ((4, 0, 3), (0, 5), ((1, 0),)),  # nothing is summed
]


@some_floats
def test_tensor_contract(ty: Type) -> None:
    for shape_a, shape_b, dims in CONTRACTIONS:
        i = make(ROWS["TensorContract"], ty, shape_a=shape_a, shape_b=shape_b, contract_dims=dims)
        agree(i, inputs_of(i, 6), 64)


# --- numbers that are none, callers and threads ---------------------------------------------------


@floats
def test_infinities_and_nan_stay_where_they_belong(ty: Type) -> None:
    """One in A spoils its row, one in B its column; padding adds none, and C is not read where beta is 0."""
    for m, n, k in ((5, 19, 3), (4, 16, 8), (3, 3, 3)):
        i = make(ROWS["GEMM"], ty, m=m, n=n, k=k)
        for name, place in (("a", 0), ("a", m * k - 1), ("b", 0), ("b", k * n - 1)):
            for special in (math.nan, math.inf, -math.inf):
                inputs = inputs_of(i, 7)
                inputs["c"][:] = to_array([math.nan], ty)[0]
                inputs[name].reshape(-1)[place] = special
                agree(i, inputs, k)


@pytest.mark.parametrize("name", ["GEMM", "QuantizedGEMM"])
def test_lanes_multiply_matrices_of_their_own(name: str) -> None:
    given: dict[str, Any] = {"m": 5, "n": 18, "k": 7}
    if name == "QuantizedGEMM":
        given |= {"a_scale": 0.5, "b_scale": 0.5, "c_scale": 2.0}
    i = make(ROWS[name], Type.F32, **given)
    agree(i, inputs_of(i, 8), 7, lanes=3)


def test_the_number_of_threads_does_not_change_a_bit(monkeypatch: pytest.MonkeyPatch) -> None:
    i = make(ROWS["GEMM"], Type.F32, m=150, n=300, k=700, beta=0.5)
    inputs, found = inputs_of(i, 9), []
    for workers in (1, 3):
        with Scheduler(workers) as pool:
            monkeypatch.setattr("eshkol.runtime.scheduler.default_scheduler", lambda pool=pool: pool)
            found.append(run(i, inputs, backend=CpuBackend()).tobytes())
    assert found[0] == found[1]


@pytest.mark.parametrize(("name", "ty"), [("GEMM", Type.BF16), ("BatchedGEMM", Type.BF16), ("QuantizedGEMM", None)])
@pytest.mark.parametrize(("m", "n", "k"), [(70, 100, 90), (33, 130, 5000), (600, 64, 4200)])
def test_who_packs_does_not_change_a_bit(
    name: str, ty: Type | None, m: int, n: int, k: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With few threads, tasks may pack what they need themselves; with many, others do it before."""
    default_scheduler()
    more: dict[str, Any] = {"batch": 2} if name == "BatchedGEMM" else {}
    more |= {} if ty else {"a_scale": 0.5, "b_scale": 0.01, "c_scale": 0.5}
    i = make(ROWS[name], ty, m=m, n=n, k=k, **more)
    inputs, found = inputs_of(i, 11), []
    for threads in ("1", "1000"):
        monkeypatch.setenv("ESHKOL_THREADS", threads)
        found.append(run(i, inputs, backend=CpuBackend()).tobytes())
    assert found[0] == found[1]


@pytest.mark.parametrize("level", simd.levels(), ids=str)
def test_every_level_of_this_machine(level: simd.Level) -> None:
    backend = CpuBackend(level=level)
    for name, ty in (("GEMM", Type.F32), ("GEMM", Type.F64), ("GEMM", Type.BF16), ("QuantizedGEMM", None)):
        scales = {} if ty else {"a_scale": 0.5, "b_scale": 0.01, "c_scale": 0.5}
        i = make(ROWS[name], ty, m=21, n=45, k=37, **scales)
        inputs = inputs_of(i, 10)
        found, wanted = run(i, inputs, backend=backend).astype(np.float64), meaning(i, inputs)
        bound = 1 if ty is None else 2.0**-6 if ty is Type.BF16 else 1e-4
        assert (np.abs(found - wanted) < bound * np.maximum(1, np.abs(wanted))).all()


def test_few_objects_serve_every_shape() -> None:
    """Apart from very few rows of A or columns of B there are four of tiles: the last panel has one to four vectors.

    There are as many of tiles whose sums are parts, one that adds parts up, and those that pack.
    """
    objects: set[str] = set()
    for n in range(100, 116):
        for m, k in ((4, 300), (64, 1), (700, 2000)):
            macro = gemm.gemm(make(ROWS["GEMM"], Type.F32, m=m, n=n, k=k), CPU.target)
            objects |= set(phase_modules(macro))
    assert len(objects) <= 2 * gemm.float_style(Type.F32, Type.F32, CPU.target, 64, 64).vectors + 3


def test_products_share_what_packs() -> None:
    modules = [
        phase_modules(gemm.fused_gemm(
            make(ROWS["FusedGEMM"], Type.F32, out_ty=Type.F32, activation=activation, residual=None,
                 transpose_b=True, m=160, n=64, k=64), CPU.target,
        ))
        for activation in (Activation.Relu, Activation.Gelu)
    ]  # fmt: skip
    (pack, tiles), (same, other) = modules
    assert pack == same
    assert tiles != other


# --- machines that are not at hand ----------------------------------------------------------------

LINUX = "x86_64-unknown-linux-gnu"
AVX2 = Target(LINUX, "x86-64-v3", "", 256)
AVX512 = Target(LINUX, "x86-64-v4", "", 512)
ICE_LAKE = Target(LINUX, "icelake-server", "+avx512vnni", 512)
ALDER_LAKE = Target(LINUX, "alderlake", "+avxvnni", 256)
COOPER_LAKE = Target(LINUX, "cooperlake", "+avx512vnni,+avx512bf16", 512)
SAPPHIRE = Target(
    LINUX, "sapphirerapids", "+avx512vnni,+avx512bf16,+amx-tile,+amx-bf16,+amx-int8", 512
)  # fmt: skip
NEOVERSE = Target("aarch64-unknown-linux-gnu", "neoverse-n1", "+dotprod", 128)
OLD_ARM = Target("aarch64-unknown-linux-gnu", "cortex-a72", "", 128)
SIZE = {"m": 64, "n": 64, "k": 64}
GEMM, BATCHED, MIXED, QUANTIZED, FUSED, CONTRACT = (
    ROWS[n] for n in ("GEMM", "BatchedGEMM", "MixedPrecisionGEMM", "QuantizedGEMM", "FusedGEMM", "TensorContract")
)
F32_GEMM, F64_GEMM, BF16_GEMM = (make(GEMM, ty, **SIZE) for ty in (Type.F32, Type.F64, Type.BF16))
BF16_MIXED = make(MIXED, Type.BF16, **SIZE)
INT8_GEMM = make(QUANTIZED, a_scale=1.0, b_scale=1.0, c_scale=1.0, **SIZE)
FUSED_GEMM = make(FUSED, Type.F32, out_ty=Type.F32, activation=Activation.Gelu, **SIZE)
CODE = [
    (F32_GEMM, AVX2, ("vfmadd231ps", "ymm15"), ("zmm",)),
    (F32_GEMM, AVX512, ("vfmadd231ps", "zmm17"), ()),
    (F64_GEMM, AVX512, ("vfmadd231pd", "zmm17"), ()),
    (F32_GEMM, NEOVERSE, ("fmla", ".s[3]"), ("fmaf",)),
    (F64_GEMM, NEOVERSE, ("fmla", ".d[1]"), ("fma@",)),
    (F32_GEMM, Target(LINUX, "x86-64", "", 64), ("mulps",), ("fmaf",)),
    (FUSED_GEMM, AVX2, ("vfmadd231ps",), ("erff", "expf")),
    (BF16_GEMM, COOPER_LAKE, ("vdpbf16ps",), ("tdpbf16ps",)),
    (BF16_GEMM, SAPPHIRE, ("tdpbf16ps", "ldtilecfg", "tilerelease"), ("vdpbf16ps",)),
    (BF16_MIXED, SAPPHIRE, ("tdpbf16ps", "tileloadd", "tilestored"), ()),
    (BF16_GEMM, AVX2, ("vfmadd231ps",), ()),
    (INT8_GEMM, ICE_LAKE, ("vpdpbusd", "zmm"), ()),
    (INT8_GEMM, ALDER_LAKE, ("vpdpbusd", "ymm"), ("zmm",)),
    (INT8_GEMM, SAPPHIRE, ("tdpbssd",), ()),
    (INT8_GEMM, AVX2, ("vpmaddwd",), ()),
    (INT8_GEMM, AVX512, ("vpmaddwd", "zmm"), ()),
    (INT8_GEMM, NEOVERSE, ("sdot", ".4b[3]"), ()),
    (INT8_GEMM, OLD_ARM, ("mla",), ("sdot",)),
]


@pytest.mark.parametrize(("i", "target", "has", "lacks"), CODE, ids=lambda v: getattr(v, "cpu", None) or "")
def test_code_of_machines_not_at_hand(
    i: Instruction, target: Target, has: tuple[str, ...], lacks: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The instructions that make the difference are there: the inner loop uses the registers it is meant to."""
    monkeypatch.setattr(gemm_amx, "permitted", lambda: True)
    macro = macros.LOWERINGS[i.op.name](i, target)
    assert macro is not None
    text = assembly(module_text(macro), target)
    assert [word for word in has if word not in text] == []
    assert [word for word in lacks if word in text] == []


@settings(max_examples=300)
@given(st.data())
def test_a_tile_of_sums_fits_the_stack(data: st.DataObject) -> None:
    """Whatever the shape and the machine, also those not at hand."""
    target = data.draw(st.sampled_from([AVX2, AVX512, COOPER_LAKE, ICE_LAKE, SAPPHIRE, NEOVERSE, OLD_ARM]))
    m, n, depth = (data.draw(st.one_of(st.integers(1, 40), st.integers(1, 5000))) for _ in range(3))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(gemm_amx, "permitted", lambda: True)
        styles = [gemm.float_style(ty, Type.F32, target, m, n) for ty in (Type.F32, Type.BF16)]
        styles += [gemm.float_style(Type.F64, Type.F64, target, m, n), gemm_int8.int8_style(target, m, n)]
    for style in styles:
        rows, columns = gemm_plan.tile_shape(style, m, n, depth, 1)
        assert rows * columns <= style.tile_sums
        assert rows % style.rows == columns % style.columns == 0
        assert rows > 0 < columns


def test_tiles_are_used_only_where_the_system_permits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gemm_amx, "permitted", lambda: False)
    assert gemm.float_style(Type.BF16, Type.F32, SAPPHIRE, 99, 99).name == "bf16_f32"
    assert gemm_int8.int8_style(SAPPHIRE, 99, 99).name == "vnni_i32"
    monkeypatch.setattr(gemm_amx, "permitted", lambda: True)
    assert gemm.float_style(Type.BF16, Type.F32, SAPPHIRE, 99, 99).name == "amx_bf16"
    assert gemm.float_style(Type.BF16, Type.F64, SAPPHIRE, 99, 99).name == "f64"
    assert gemm.float_style(Type.F16, Type.F32, SAPPHIRE, 99, 99).name == "f32"


@pytest.mark.skipif(not CPU.target.has("amx-tile"), reason="this machine has no tiles")
def test_tiles_are_asked_for_in_a_process_that_compiles_nothing(tmp_path: Path) -> None:
    """The system kills who uses tile registers without having asked: the second process takes all from the cache."""
    code = "import eshkol as ek; a = ek.ones(64, 64).to(ek.bfloat16).realize(); print(float((a @ a).sum()))"
    for _ in range(2):
        done = subprocess.run(
            [sys.executable, "-c", code], env=os.environ | {"ESHKOL_CACHE_DIR": str(tmp_path)}, text=True,
            capture_output=True, check=False,
        )  # fmt: skip
        assert (done.returncode, done.stdout.strip()) == (0, "262144.0"), done.stderr
