"""Loops in native code: what is trusted to be in range is, rounds that depend on each other stay in order, and the
inner loops that matter are vectorized."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from batches import checkered
from eshkol.atlas.builder import ProgramBuilder
from eshkol.atlas.operands import BufferOffset, Condition, ReduceOperation, Register
from eshkol.atlas.program import LaunchConfig, Program
from eshkol.atlas.text import assemble
from eshkol.atlas.types import Type
from eshkol.atlas.validate import validate
from eshkol.backends.cpu.kernels.parallel import LANES, parallel_loops
from eshkol.backends.cpu.kernels.translate import translate
from eshkol.backends.lanes.ranges import ranges
from eshkol.errors import ExecutionFailed

pytest.importorskip("llvmlite")
from eshkol.backends.cpu import CpuBackend
from eshkol.backends.reference import ReferenceBackend

LANE = Register(255)
I32, U32, I64, U64, F32, F64 = Type.I32, Type.U32, Type.I64, Type.U64, Type.F32, Type.F64


@pytest.fixture(scope="module")
def cpu() -> CpuBackend:
    return CpuBackend()


# --- programs with random loops and indices ---------------------------------------------------------

INDEX_OPS = ("ADD", "SUB", "MUL", "DIV", "REM", "SHL", "SHR", "AND", "OR", "XOR", "MIN", "MAX", "SEL", "CVT", "FMA")
TYPES = (U32, I64, U64, I32, Type.U8, Type.I8)
EXTENTS = ("s", "t")  # scalar parameters


class Draws:
    """A program that is drawn: values of several integer types, loops, loads and stores by what was computed."""

    def __init__(self, draw: st.DrawFn) -> None:
        self.draw, self.b = draw, ProgramBuilder("drawn")
        count = st.one_of(st.none(), st.integers(0, 40))
        self.counts = {name: draw(count) for name in ("a", "b")}
        for name, declared in self.counts.items():
            self.b.buffer(name, I32, declared)
        self.b.buffer("out", I32)
        self.lanes: int | None = draw(st.one_of(st.none(), st.integers(1, 6)))
        if self.lanes is not None:
            self.end, p, bound = self.b.label("end"), self.b.pred(), self.b.constant(U64, self.lanes)
            self.b.setcc(Condition.GE, p, LANE, bound)
            self.b.bra(self.end, p)
        self.values: list[tuple[Register, Type]] = []
        self.total = self.b.constant(I32, 0)
        self.own = draw(st.integers(1, 4))  # elements of the output that a lane has
        lane = self.b.reg(U32)
        self.b.cvt(U64, U32, lane, LANE)
        self.values.append((lane, U32))
        self.extents = []
        for name in EXTENTS:
            self.b.scalar(name, U32)
            self.extents.append(self.b.reg(U32))
            self.b.ldg(U32, self.extents[-1], BufferOffset(name))
            self.values.append((self.extents[-1], U32))
        self._block(depth=0)
        self.b.stg(I32, BufferOffset("out").at(LANE, 4 * self.own), self.total)
        if self.lanes is not None:
            self.b.place(self.end)

    def _block(self, depth: int) -> None:
        visible = len(self.values)
        for _ in range(self.draw(st.integers(1, 5 - depth))):
            what = self.draw(st.sampled_from(["value", "value", "load", "loop", "change", "store"]))
            if what == "loop" and depth < 2:
                self._loop(depth)
            elif what == "load":
                self._load()
            elif what == "change":
                register, ty = self.draw(st.sampled_from([v for v in self.values if v[0] not in self.extents]))
                self.b.add(register, register, self.b.constant(ty, self.draw(st.integers(0, 3))))
            elif what == "store":
                self._store()
            else:
                self._value()
        del self.values[visible:]

    def _loop(self, depth: int) -> None:
        rounds = self.draw(st.integers(0, 6))
        how = self.draw(st.sampled_from(["number", "constant", "extent", "extent"]))
        if how == "extent":
            counter = self.b.reg(U32)
            self.b.begin_loop(counter, self.draw(st.sampled_from(self.extents)))
            self.values.append((counter, U32))
        elif how == "number":
            counter = self.b.reg(U32)
            self.b.begin_loop(counter, rounds)
            self.values.append((counter, U32))
        else:
            ty = self.draw(st.sampled_from((U32, I64, U64, I32)))
            counter, times = self.b.reg(ty), self.b.constant(ty, rounds)
            self.b.begin_loop(counter, times)
            self.values.append((counter, ty))
        self._block(depth + 1)
        self.values.pop()
        self.b.end_loop()

    def _operand(self, ty: Type) -> Register:
        same = [r for r, t in self.values if t is ty]
        if same and self.draw(st.integers(0, 2)):
            return self.draw(st.sampled_from(same))
        small = st.integers(0, 7) if ty.is_unsigned else st.integers(-2, 7)
        edge = st.sampled_from([ty.min_value, ty.max_value, ty.max_value // 3])
        return self.b.constant(ty, self.draw(st.one_of(small, small, small, edge)))

    def _value(self) -> None:
        name = self.draw(st.sampled_from(INDEX_OPS))
        if name == "CVT":
            register, ty = self.draw(st.sampled_from(self.values))
            target = self.draw(st.sampled_from([t for t in TYPES if t is not ty]))
            found = self.b.reg(target)
            self.b.cvt(ty, target, found, register)
            self.values.append((found, target))
            return
        ty = self.draw(st.sampled_from([t for _, t in self.values]))
        x, y, found = self._operand(ty), self._operand(ty), self.b.reg(ty)
        if name in ("DIV", "REM"):
            y = self.b.constant(ty, self.draw(st.integers(1, 9)))
        if name == "SEL":
            p = self.b.pred()
            self.b.setcc(self.draw(st.sampled_from(list(Condition))), p, x, y)
            self.b.sel(found, p, x, y)
        elif name == "FMA":
            self.b.fma(found, x, y, self._operand(ty))
        else:
            getattr(self.b, {"AND": "and_", "OR": "or_"}.get(name, name.lower()))(found, x, y)
        self.values.append((found, ty))

    def _load(self) -> None:
        indices = [(r, t) for r, t in self.values if t in (U32, I32, U64, I64)]
        register, _ = self.draw(st.sampled_from([*indices, (LANE, U64)]))
        offset, scale = 4 * self.draw(st.integers(0, 3)), self.draw(st.sampled_from([4, 4, 8, 12]))
        name, loaded = self.draw(st.sampled_from(["a", "b"])), self.b.reg(I32)
        if (self.counts[name] or 0) * 4 < offset:
            offset = 0
        self.b.ldg(I32, loaded, BufferOffset(name, offset).at(register, scale))
        self.b.acc(self.draw(st.sampled_from(list(ReduceOperation))), self.total, self.total, loaded)
        self.values.append((loaded, I32))

    def _store(self) -> None:
        """Into the lane's own elements, or at a distance that may leave the buffer."""
        ahead = self.draw(st.sampled_from([0, 0, 0, 200])) * 4
        self.b.stg(I32, BufferOffset("out", 4 * self.draw(st.integers(0, self.own - 1)) + ahead).at(LANE, 4 * self.own),
                   self.total)  # fmt: skip


@st.composite
def cases(draw: st.DrawFn) -> tuple[Program, int, dict[str, int], dict[str, int]]:
    drawn = Draws(draw)
    lanes = draw(st.integers(1, 6))
    sizes = {n: draw(st.integers(c or 0, max(c or 0, 40))) for n, c in drawn.counts.items()}
    extents = {name: draw(st.integers(0, 6)) for name in EXTENTS}
    return drawn.b.build(), lanes, sizes | {"out": 6 * drawn.own}, extents


@given(cases())
@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
def test_no_access_is_trusted_that_can_leave_its_buffer(cpu: CpuBackend, case: tuple[Program, int, dict, dict]) -> None:
    """Programs with random loops and indices do the same, or fail, on the reference and in native code."""
    program, lanes, sizes, extents = case
    results: list[np.ndarray | None] = []
    for backend in (ReferenceBackend(), cpu):
        params = {name: backend.array(np.arange(size, dtype=np.int32) * 7 - 20) for name, size in sizes.items()}
        try:
            backend.execute(program, LaunchConfig.linear(lanes), params | extents)
        except ExecutionFailed:
            results.append(None)
        else:
            results.append(params["out"].read())
    assert (results[0] is None) is (results[1] is None)
    if results[0] is not None:
        np.testing.assert_array_equal(results[0], results[1])


def _known(text: str, lanes: int | None = None):
    analysis = validate(assemble(text))
    return analysis, ranges(analysis, lanes)


def test_what_is_proven_of_indices() -> None:
    """A digit of the lane's number, a bounded index, a wrapping one, and one that a loop changes."""
    _, found = _known("""
        .buffer x F32 12
            MOV_IMM.U64 r0, 12
            REM r1, r255, r0
            LDG.F32 r2, [x+r1*4]
            MOV_IMM.U32 r3, 5
            LOOP r4, 8
            ADD r5, r4, r3
            LDG.F32 r2, [x+r5*4]
            LDG.F32 r2, [x+4+r5*4]
            SUB r6, r4, r3
            LDG.F32 r2, [x+r6*4]
            LDG.F32 r2, [x+r3*4]
            ADD r3, r3, r4
            ENDLOOP
    """)
    assert found.proven == {2}  # the count of r3 is what the loop has made of it
    assert not found.limits
    _, found = _known(".buffer x F32 12\n MOV_IMM.U32 r3, 5\n LOOP r4, 7\n ADD r5, r4, r3\n LDG.F32 r2, [x+r5*4]\n"
                      "LDG.F32 r2, [x+4+r5*4]\n SUB r6, r4, r3\n LDG.F32 r2, [x+r6*4]\n ENDLOOP")  # fmt: skip
    assert found.proven == {3}


def test_places_counted_from_the_end_are_trusted_up_to_their_number() -> None:
    text = ".buffer x U8\n CVT.U64.U32 r0, r255\n MOV_IMM.U32 r1, 99\n SUB r2, r1, r0\n LDG.U8 r3, [x+r2*1]\n"
    text += "STG.U8 [x+r2*1], r3"
    _, found = _known(text)
    assert found.trusted == {3, 4}
    assert found.exact[2].startswith("nuw")
    backend = CpuBackend()
    x = backend.array(np.arange(100, dtype=np.uint8))
    backend.execute(assemble(text), LaunchConfig.linear(100), {"x": x})
    with pytest.raises(ExecutionFailed, match=r"LDG.*out of range in buffer 'x' \(lane 100\)"):
        backend.execute(assemble(text), LaunchConfig.linear(101), {"x": x})


def test_lanes_whose_index_would_wrap_are_checked() -> None:
    """Arithmetic is trusted not to wrap only in lanes in which it does not."""
    text = ".buffer x U8\n CVT.U64.U32 r0, r255\n MOV_IMM.U32 r1, 4194304\n MUL r2, r0, r1\n LDG.U8 r3, [x+r2*1]\n"
    _, found = _known(text + "STG.U8 [x+r255*1], r3")
    assert found.lanes_below == 1024
    backend = CpuBackend()
    x = backend.array(np.arange(1, 2049, dtype=np.uint8))
    with pytest.raises(ExecutionFailed, match=r"LDG.*out of range in buffer 'x' \(lane 1\)"):
        backend.execute(assemble(text), LaunchConfig.linear(1025), {"x": x})
    # Lane 1024 wraps to 0, which is in range: it must find that.
    text = text.replace("LDG.U8 r3", "SHR r2, r2, r4\n LDG.U8 r3").replace(
        "MOV_IMM.U32 r1", "MOV_IMM.U32 r4, 22\n MOV_IMM.U32 r1"
    )
    out = backend.array(np.zeros(2048, np.uint8))
    text = ".buffer out U8\n" + text + "STG.U8 [out+r255*1], r3"
    backend.execute(assemble(text), LaunchConfig.linear(2048), {"x": x, "out": out})
    np.testing.assert_array_equal(out.read(), x.read()[np.arange(2048) % 1024])


@given(
    st.integers(1, 60), st.lists(st.tuples(st.sampled_from(["DIV", "MUL", "ADD", "REM", "SUB"]), st.integers(1, 7)),
                                 min_size=1, max_size=6), st.integers(0, 40))  # fmt: skip
@settings(max_examples=150, deadline=None)
def test_bounds_that_rise_with_the_lane_are_bounds(lanes: int, steps: list[tuple[str, int]], more: int) -> None:
    """Digits of lane numbers, added to others: no lane below the limit has a greater value."""
    b = ProgramBuilder()
    x = b.buffer("x", Type.U8)
    value, total = b.reg(U64), b.constant(U64, more)
    b.mov(value, LANE)
    wanted, sums = np.arange(lanes), np.full(lanes, more)
    for name, number in steps:
        if name == "SUB" and (wanted < number).any():
            name = "ADD"
        getattr(b, name.lower())(value, value, b.constant(U64, number))
        b.add(total, total, value)
        function = {"DIV": np.floor_divide, "MUL": np.multiply, "ADD": np.add, "REM": np.remainder}.get(name)
        wanted = wanted - number if function is None else function(wanted, number)
        sums = sums + wanted
    b.ldg(Type.U8, b.reg(), x.at(total))
    found = ranges(validate(b.build()), None)
    for limit in found.limits:
        for size in range(1, int(sums.max()) + 2):
            steps_in = (size - limit.end.offset) // limit.end.slope + 1 if limit.end.slope else 10**9
            safe = 0 if size < limit.end.offset else steps_in * limit.end.over
            assert (sums[: min(safe, lanes)] < size).all()


def test_the_leading_digit_of_lanes_limits_exactly() -> None:
    """x of (n, 3, 4), read by lanes over (n, 4), whatever n is: no lane needs the checked version."""
    _, found = _known("""
        .buffer x F32
            MOV_IMM.U64 r0, 4
            DIV r1, r255, r0
            REM r2, r255, r0
            MOV_IMM.U64 r3, 12
            MUL r4, r1, r3
            ADD r4, r4, r2
            LOOP r5, 3
            CVT.U32.U64 r6, r5
            MUL r6, r6, r0
            ADD r6, r4, r6
            LDG.F32 r7, [x+r6*4]
            ENDLOOP
    """)
    (limit,) = found.limits
    assert (limit.end.slope, limit.end.offset, limit.end.over) == (48, 48, 4)


# --- order ------------------------------------------------------------------------------------------

ROW = """
.buffer out F32
.buffer x F32
    MOV_IMM.U64 r0, 40
    MUL r1, r255, r0
    CVT.U64.U32 r2, r1
    LOOP r3, 40
    ADD r4, r2, r3
    LDG.F32 r5, [x+r4*4]
    ADD r5, r5, r5
    STG.F32 [out+{ahead}+r4*4], r5
    ENDLOOP
"""


@pytest.mark.parametrize("ahead", [0, 4, 8])
@pytest.mark.parametrize("shift", [None, 0, 1, 2, -1])
def test_loops_over_memory_that_overlaps_keep_their_order(cpu: CpuBackend, ahead: int, shift: int | None) -> None:
    """Buffers that are apart, the same, or views of one array, some elements apart."""
    memory = np.arange(1, 131, dtype=np.float32)
    x = memory[4:84] if shift is not None else memory[4:84].copy()
    out = memory[4 + (shift or 0) : 4 + (shift or 0) + 83]
    wanted = memory.copy()
    given_x = wanted[4:84] if shift is not None else x.copy()
    given_out = wanted[4 + (shift or 0) : 4 + (shift or 0) + 83]
    for k in range(80):
        given_out[k + ahead // 4] = given_x[k] * 2
    params = {"x": cpu.adopt(x, F32), "out": cpu.adopt(out, F32)}
    cpu.execute(assemble(ROW.format(ahead=ahead)), LaunchConfig.linear(2), params)
    np.testing.assert_array_equal(memory, wanted)


def test_which_loops_are_parallel() -> None:
    analysis, found = _known(ROW.format(ahead=0))
    loops = parallel_loops(analysis, found)
    assert loops.parallel == {3, LANES}
    assert loops.apart == {("out", "x"): True}
    shifted = parallel_loops(*_known(ROW.format(ahead=4)))
    assert shifted.apart == {("out", "x"): False}
    same = ROW.format(ahead=4).replace("[x+", "[out+").replace(".buffer x F32", "")
    assert parallel_loops(*_known(same)).parallel == set()
    twice = ROW.format(ahead=0).replace("ENDLOOP", "STG.F32 [out+{}+r4*4], r5\n    ENDLOOP")
    assert 3 in parallel_loops(*_known(twice.format(160))).parallel  # another row, behind the last round's place
    assert 3 not in parallel_loops(*_known(twice.format(156))).parallel


def test_which_loops_only_copy() -> None:
    """Those are not written out round by round, whatever LLVM thinks of that."""
    copy = ROW.format(ahead=0).replace("ADD r5, r5, r5", "")
    assert parallel_loops(*_known(copy)).copies == {3}
    assert parallel_loops(*_known(ROW.format(ahead=0))).copies == set()
    assert parallel_loops(*_known(copy.replace("40", "8"))).copies == set()
    assert parallel_loops(*_known(copy.replace("[out+0+r4*4]", "[out+0+r4*8]"))).copies == set()


# --- accumulators -----------------------------------------------------------------------------------


def accumulation(operation: ReduceOperation, ty: Type, count: int) -> Program:
    """Each lane accumulates `count` elements of its own."""
    b = ProgramBuilder("accumulate")
    out, x = b.buffer("out", ty), b.buffer("x", ty)
    start, row, total, counter, place, term = b.reg(U64), b.reg(U32), b.reg(ty), b.reg(U32), b.reg(U32), b.reg(ty)
    b.mul(start, LANE, b.constant(U64, count))
    b.cvt(U64, U32, row, start)
    b.ldg(ty, total, x.at(row))
    b.begin_loop(counter, count)
    b.add(place, row, counter)
    b.ldg(ty, term, x.at(place))
    b.acc(operation, total, total, term)
    b.end_loop()
    b.stg(ty, out.at(LANE), total)
    return b.build()


NUMBERS = [t for t in Type if not t.is_wide]


@checkered(operation=ReduceOperation, ty=NUMBERS)
def test_accumulators_agree_with_the_reference(cpu: CpuBackend, operation: ReduceOperation, ty: Type) -> None:
    lanes, count = 3, 77
    rng = np.random.default_rng(7)
    if ty.is_integer:
        low, high = max(ty.min_value, -(2**31)), min(ty.max_value, 2**31)
        x = rng.integers(low, high, lanes * count).astype(ty.dtype)
    else:
        x = (1 + rng.standard_normal(lanes * count) * 2.0**-6).astype(ty.dtype)
        x[count + 5] = np.nan
    found = []
    for backend in (ReferenceBackend(), cpu):
        params = {"out": backend.array(np.zeros(lanes, ty.dtype), ty), "x": backend.array(x, ty)}
        backend.execute(accumulation(operation, ty, count), LaunchConfig.linear(lanes), params)
        found.append(np.asarray(params["out"].read()))
    if ty.is_integer or operation in (ReduceOperation.Min, ReduceOperation.Max):
        np.testing.assert_array_equal(*(f.astype(np.float64) if ty.is_float else f for f in found))
    else:
        eps = {Type.F64: 2.0**-53, F32: 2.0**-24, Type.F16: 2.0**-11, Type.BF16: 2.0**-8}[ty]
        np.testing.assert_allclose(*(f.astype(np.float64) for f in found), rtol=2 * count * eps)
    if ty.is_float:
        assert [bool(np.isnan(v)) for v in found[1].astype(np.float64)] == [False, True, False]


def test_sums_of_many_terms_are_accurate(cpu: CpuBackend) -> None:
    count = 1 << 15
    x = np.random.default_rng(1).random(count, np.float32)
    params = {"out": cpu.array(np.zeros(1, np.float32)), "x": cpu.array(x)}
    cpu.execute(accumulation(ReduceOperation.Sum, F32, count), LaunchConfig.linear(1), params)
    exact = float(x.astype(np.float64).sum() + x[0])
    assert abs(float(params["out"].read()[0]) - exact) <= exact * 2.0**-24 * 200


# --- vectors ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("operation", list(ReduceOperation), ids=lambda o: o.name)
@pytest.mark.parametrize("ty", [F32, F64], ids=str)
def test_accumulations_are_vectorized(cpu: CpuBackend, operation: ReduceOperation, ty: Type) -> None:
    text = cpu.compile_to_optimized(accumulation(operation, ty, 512))
    word = {"Sum": "fadd reassoc", "Product": "fmul reassoc"}.get(operation.name)
    word = word or f"nsz [^\n]*{'minimum' if operation.name == 'Min' else 'maximum'}"
    assert re.search(rf"{word}[^\n]*<\d+ x {'float' if ty is F32 else 'double'}>", text)


def test_a_row_of_exponentials_is_vectorized(cpu: CpuBackend) -> None:
    program = assemble(ROW.format(ahead=0).replace("ADD r5, r5, r5", "EXP r5, r5"))
    assert re.search(r"llvm\.fma\.v\d+f32", cpu.compile_to_optimized(program))


def test_short_rows_are_neither_copied_nor_vectors_of_lanes(cpu: CpuBackend, capfd: pytest.CaptureFixture[str]) -> None:
    """Ten copies of a round, of which LLVM then made vectors of sixteen lanes, took it seconds."""
    text = """
        .buffer out F32
        .buffer other F32
        .buffer x F32
        .buffer scale F64
            CVT.U64.U32 r1, r255
            LOOP r2, 10
            MOV_IMM.U32 r3, 10
            MUL r4, r1, r3
            ADD r3, r4, r2
            LDG.F32 r5, [x+r3*4]
            LDG.F64 r6, [scale]
            CVT.F64.F32 r7, r6
            MUL r8, r5, r7
            ADD r9, r8, r5
            STG.F32 [out+r3*4], r8
            STG.F32 [other+r3*4], r9
            ENDLOOP
    """
    assert parallel_loops(*_known(text)).short_rows == {1: True}
    assert not parallel_loops(*_known(text.replace("r2, 10", "r2, 100"))).short_rows
    assert len(cpu.compile_to_optimized(assemble(text)).splitlines()) < 400
    carried = text.replace("ADD r9, r8, r5", "ADD r9, r9, r5").replace(
        "CVT.U64", "MOV_IMM.F32 r9, 0\n            CVT.U64"
    )
    carried = carried.rstrip() + "\n            STG.F32 [out], r9\n"
    assert list(parallel_loops(*_known(carried)).short_rows.values()) == [False]
    cpu.compile_to_optimized(assemble(carried))
    assert not capfd.readouterr().err  # LLVM would tell of a vector that it was told to make and could not
    short = ROW.format(ahead=0).replace("40", "10")
    assert re.search(r"fadd <\d+ x float>", cpu.compile_to_optimized(assemble(short)))


def test_what_llvm_remarks_is_not_shown_to_users(tmp_path: Path) -> None:
    """Rows of two are no vectors: LLVM counts them by a truth value, and would say that it could not follow."""
    code = (
        "import eshkol as ek\n"
        "for size in (2, 3):\n"
        "    x = ek.tensor([[float(k) for k in range(size)]] * 40)\n"
        "    print(*(x - ek.sum(x, 1, keepdims=True)).numpy()[39])\n"
    )
    empty = {**os.environ, "ESHKOL_CACHE_DIR": str(tmp_path)}
    ran = subprocess.run([sys.executable, "-c", code], env=empty, capture_output=True, text=True, check=False)
    assert ran.stdout == "-1.0 0.0\n-3.0 -2.0 -1.0\n"
    assert ran.stderr == ""
    assert any(tmp_path.rglob("*"))  # it was compiled now


def test_what_is_declared_needs_no_second_version(cpu: CpuBackend) -> None:
    text = """
        .buffer out F32 4096
        .buffer x F32 64
            MOV_IMM.U64 r0, 4096
            SETcc.GE p0, r255, r0
            BRA end, p0
            MOV_IMM.U64 r1, 64
            REM r2, r255, r1
            LDG.F32 r3, [x+r2*4]
            STG.F32 [out+r255*4], r3
        end:
    """
    module = translate(assemble(text), cpu.target).text
    assert "@lane_fast" in module
    assert "@lane(" not in module
    assert "@lane(" in translate(assemble(text.replace("x F32 64", "x F32 63")), cpu.target).text


def test_truths_that_no_comparison_gives(cpu: CpuBackend) -> None:
    program = assemble("""
    .buffer x U8
    .buffer out U32
        LDG.U8 r0, [x+r255*1]
        UnityTest p0, r0
        MOV_IMM.U32 r1, 7
        MOV_IMM.U32 r2, 5
        SEL r3, p0, r1, r2
        STG.U32 [out+r255*4], r3
    """)
    values, out = np.arange(96, dtype=np.uint8), np.zeros(96, np.uint32)
    cpu.execute(program, LaunchConfig.linear(96), {"x": cpu.adopt(values, Type.U8), "out": cpu.adopt(out, U32)})
    np.testing.assert_array_equal(out, np.where(np.isin(values, (1, 4)), 7, 5))
