"""What is particular to the CPU backend: vector code, hoisted checks, faults, barriers, the object cache."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from test_array_instructions import MALFORMED, run_sparse, sparse_case

from eshkol.atlas.classes import CLASS_BYTES
from eshkol.atlas.program import LaunchConfig, Program
from eshkol.atlas.rounding import to_array
from eshkol.atlas.text import assemble
from eshkol.atlas.types import Type, encode
from eshkol.backends.cpu import CpuBackend, simd
from eshkol.backends.cpu import backend as cpu_backend
from eshkol.backends.cpu.kernels.translate import translate as translated
from eshkol.backends.reference import ReferenceBackend
from eshkol.errors import AllocationFailed, BackendUnavailable, ExecutionFailed, InvalidBuffer, IsaError
from eshkol.support.store import ProgramCache

pytest.importorskip("llvmlite")

SAXPY = """
.buffer x F32
.buffer y F32
.scalar a F32
.scalar n U64
    LDG.U64 r0, [n]
    SETcc.GE p0, r255, r0
    BRA done, p0
    LDG.F32 r1, [x+r255*4]
    LDG.F32 r2, [y+r255*4]
    LDG.F32 r3, [a]
    FMA r2, r3, r1, r2
    STG.F32 [y+r255*4], r2
done:
"""
VECTOR_FMA = {
    simd.Level.NEON: r"fmla\s+v\d+\.4s",
    simd.Level.AVX2: r"vfmadd\w+ps\s.*%ymm",
    simd.Level.AVX512: r"vfmadd\w+ps\s.*%zmm",
}
TANH = """
.program tanh
.buffer x F32
    LDG.F32 r1, [x+r255*4]
    TANH r1, r1
    STG.F32 [x+r255*4], r1
"""


@pytest.fixture
def backend(tmp_path: Path) -> CpuBackend:
    return CpuBackend(cache=ProgramCache(tmp_path))


def assembly(level: simd.Level, source: str, folder: Path) -> str:
    """Levels that this machine lacks are emitted all the same."""
    return CpuBackend(level=level, cache=ProgramCache(folder)).compile_to("assembly", assemble(source))


@pytest.mark.parametrize("source", [SAXPY, TANH], ids=["saxpy", "tanh"])
@pytest.mark.parametrize("level", VECTOR_FMA)
def test_lanes_become_vectors(level: simd.Level, source: str, tmp_path: Path) -> None:
    """The assembler holds packed multiply-adds, guard and all."""
    assert re.search(VECTOR_FMA[level], assembly(level, source, tmp_path)), "not vectorized"


@pytest.mark.parametrize(("ty", "vectors"), [("I64", False), ("U32", True)])
def test_long_integers_are_divided_lane_by_lane(ty: str, vectors: bool, tmp_path: Path) -> None:
    """Vectors of them would be taken apart for each division."""
    size = int(ty[1:]) // 8
    source = f".buffer x {ty}\nLDG.{ty} r1, [x+r255*{size}]\nMOV_IMM.{ty} r2, 7\nREM r1, r1, r2\n"
    text = assembly(simd.Level.AVX512, source + f"STG.{ty} [x+r255*{size}], r1", tmp_path)
    assert bool(re.search("%[yz]mm", text)) is vectors


@pytest.mark.parametrize("level", [simd.Level.SSE42, simd.Level.NONE])
def test_a_level_is_not_exceeded(level: simd.Level, tmp_path: Path) -> None:
    text = assembly(level, SAXPY, tmp_path)
    assert "%xmm" in text
    assert not re.search(r"%ymm|%zmm|vfmadd", text)


@pytest.mark.parametrize("level", [level for level in simd.Level if level is not simd.Level.NEON])
@pytest.mark.parametrize("name", ["FLOOR", "EXPM1"])
def test_bf16_needs_no_function_of_the_compiler(level: simd.Level, name: str, tmp_path: Path) -> None:
    """LLVM likes to compute these in BF16 itself, where x86 mostly calls a function that a process need not have."""
    source = f".buffer x BF16\nLDG.BF16 r1, [x+r255*2]\n{name} r1, r1\nSTG.BF16 [x+r255*2], r1"
    assert "__truncsfbf2" not in assembly(level, source, tmp_path)


@pytest.mark.skipif(simd.Level.NEON not in simd.levels(), reason="this machine has every level of x86")
def test_a_level_that_is_not_there_cannot_run(tmp_path: Path) -> None:
    backend = CpuBackend(level=simd.Level.AVX2, cache=ProgramCache(tmp_path))
    with pytest.raises(BackendUnavailable, match="no avx2"):
        backend.compiled(assemble(SAXPY))


@pytest.mark.parametrize("count", [1, 3, 255, 256, 257, 5000])
@pytest.mark.parametrize("block", [1, 7, 256])
def test_tails(backend: CpuBackend, count: int, block: int) -> None:
    rng = np.random.default_rng(count)
    x, y = (rng.standard_normal(count).astype(np.float32) for _ in range(2))
    buffer = backend.array(y)
    params = {"x": backend.array(x), "y": buffer, "a": 0.5, "n": count}
    backend.execute(assemble(SAXPY), LaunchConfig.linear(count, block=block), params)
    np.testing.assert_array_equal(buffer.read(), (x * np.float32(0.5) + y).astype(np.float32))


@pytest.mark.parametrize(
    "source",
    [
        ".buffer z F32\n.buffer x F32\nLDG.F32 r1, [x+r255*4]\nADD r1, r1, r1\nSTG.F32 [z+r255*4], r1",
        ".buffer z F32\n.buffer x F32\nGEMM.F32 [z], [x], [x], m=2, n=2, k=2",
    ],
    ids=["lanes", "together"],
)
def test_a_repeated_launch_uses_the_buffers_it_is_given(backend: CpuBackend, source: str) -> None:
    """What is kept of a launch for the next ends with other buffers, and when one is freed."""
    program, launch = assemble(source), LaunchConfig.linear(4, block=4)
    x, other = backend.array(np.ones(4, np.float32)), backend.array(np.full(4, 3, np.float32))
    z, results = backend.allocate_typed(Type.F32, 4), []
    for source_buffer in (x, x, x, other, x, x, x, other, other, other):
        z.write(np.zeros(4, np.float32))
        backend.execute(program, launch, {"z": z, "x": source_buffer})
        results.append((source_buffer is x, float(z.read()[0])))
    assert len(set(results)) == 2
    other.free()
    with pytest.raises(InvalidBuffer, match="freed"):
        backend.execute(program, launch, {"z": z, "x": other})


def test_one_buffer_for_two_parameters(backend: CpuBackend) -> None:
    """Overlapping buffers are right: y = a·y + y."""
    y = np.arange(1000, dtype=np.float32)
    buffer = backend.array(y)
    backend.execute(assemble(SAXPY), LaunchConfig.linear(1000), {"x": buffer, "y": buffer, "a": 2.0, "n": 1000})
    np.testing.assert_array_equal(buffer.read(), 3 * y)


def test_shifted_overlap_keeps_lane_order(backend: CpuBackend) -> None:
    """Each lane adds its left neighbour's element; the loop must not be vectorized blindly."""
    program = assemble("""
        .buffer x I32
            LDG.I32 r0, [x+r255*4]
            LDG.I32 r1, [x+4+r255*4]
            ADD r1, r0, r1
            STG.I32 [x+4+r255*4], r1
    """)
    buffer = backend.array(np.ones(101, np.int32))
    backend.execute(program, LaunchConfig((1, 1, 1), (100, 1, 1)), {"x": buffer})
    assert list(buffer.read()) == list(range(1, 102))


def test_out_of_range_names_instruction_and_lowest_lane(backend: CpuBackend) -> None:
    program = assemble(".buffer x F32\n LDG.F32 r0, [x+r255*4]\n NEG r0, r0\n STG.F32 [x+r255*4], r0")
    buffer = backend.array(np.ones(1000, np.float32))
    with pytest.raises(ExecutionFailed, match=r"LDG.*out of range in buffer 'x' \(lane 1000\)"):
        backend.execute(program, LaunchConfig.linear(1000), {"x": buffer})
    assert (buffer.read() == -1).all()  # the lanes in range have done their work; nothing else was touched


X = ".buffer x F32\n "
FAULTS = {
    "division by zero": ("MOV_IMM.I32 r0, 1\n MOV_IMM.I32 r1, 0\n DIV r2, r0, r1", r"division by zero \(lane 0\)"),
    "bad index": (".buffer x F32\n MOV_IMM.I32 r0, -1\n LDG.F32 r1, [x+r0*4]", "out of range in buffer 'x'"),
    "far index": (".buffer x F32\n MOV_IMM.U64 r0, 18446744073709551615\n LDG.F32 r1, [x+r0*4]", "out of range"),
    "index of 2^64 - 1": (f"{X}MOV_IMM.U64 r0, {2**64 - 1}\n LDG.F32 r1, [x+4+r0*4]", "out of range"),
    "far below": (f"{X}MOV_IMM.I64 r0, {-(2**50)}\n LDG.F32 r1, [x+{2**40}+r0*1]", "out of range"),
    "far array": (f"{X}MOV_IMM.U32 r0, {2**28}\n ReduceAdd.F32 r1, [x+r0*16], count=1", "out of range"),
    "array from 2^64 - 1": (f"{X}MOV_IMM.U64 r0, {2**64 - 1}\n ReduceAdd.F32 r1, [x+4+r0*4], count=1", "out of range"),
    "array across classes": ("MOV_IMM.U64 r0, 12284\n ReduceAdd.F32 r1, [r0], count=2", "out of range"),
    "misaligned": (".buffer x F32\n MOV_IMM.U32 r0, 1\n LDG.F32 r1, [x+r0*1]", "not aligned"),
    "class memory": ("MOV_IMM.U64 r0, 12287\n LDG.U16 r1, [r0]", "out of range in class memory"),
    "call depth": ("f: CALL f\n RET", "nested more than 256 deep"),
    "negative loop": ("MOV_IMM.I32 r0, -1\n LOOP r1, r0\n ENDLOOP", "negative number of times"),
    "divergent barrier": ("MOV_IMM.U32 r0, 1\n SETcc.LT p0, r252, r0\n BRA a, p0\n BarSync\na:\n", "divergent barrier"),
    "no neighbour": ("MOV_IMM.U8 r0, 42\n NBRLoad.F32 r1, r0, k=5", "no neighbour 5"),
}  # fmt: skip


@pytest.mark.parametrize("name", FAULTS)
def test_faults(backend: CpuBackend, name: str) -> None:
    source, message = FAULTS[name]
    program = assemble(source)
    params = {"x": backend.array(np.ones(4, np.float32))} if program.params else {}
    with pytest.raises(IsaError if name == "call depth" else ExecutionFailed, match=message):
        backend.execute(program, LaunchConfig.linear(4), params)
    test_tails(backend, 257, 256)  # the backend is as good as before


@pytest.mark.parametrize("offset", [8, 1 << 48])
def test_a_negative_index_reaches_back_from_any_offset(backend: CpuBackend, offset: int) -> None:
    program = assemble(f".buffer x F32\n MOV_IMM.I64 r0, {-offset}\n ReduceAdd.F32 r1, [x+{offset}+r0*1], count=4\n"
                       " STG.F32 [x], r1")  # fmt: skip
    x = backend.array(np.array([1, 2, 3, 4], np.float32))
    backend.execute(program, LaunchConfig(), {"x": x})
    assert x.read()[0] == 10


@pytest.mark.parametrize("name", MALFORMED)
def test_malformed_sparse_matrices_are_refused(backend: CpuBackend, name: str) -> None:
    key, bad = MALFORMED[name]
    with pytest.raises(ExecutionFailed):
        run_sparse(backend, *sparse_case(**{key: bad}))
    assert run_sparse(backend, *sparse_case()) == [2, 2, 0, 0, 2, 2]


BLOCK_SUM = """
.buffer x F32
.buffer out F32
    LDG.F32 r0, [x+r255*4]
    STS.F32 [shared+r252*4], r0
    MOV r1, r254
halve:
    MOV_IMM.U32 r9, 2
    DIV r1, r1, r9
    BarSync
    SETcc.GE p0, r252, r1
    BRA skip, p0
    ADD r2, r252, r1
    LDS.F32 r3, [shared+r252*4]
    LDS.F32 r4, [shared+r2*4]
    ADD r3, r3, r4
    STS.F32 [shared+r252*4], r3
skip:
    MOV_IMM.U32 r8, 1
    SETcc.GT p1, r1, r8
    BRA halve, p1
    BarSync
    MOV_IMM.U32 r7, 0
    SETcc.NE p2, r252, r7
    BRA done, p2
    LDS.F32 r5, [shared]
    STG.F32 [out+r253*4], r5
done:
"""


@pytest.mark.parametrize("block", [2, 64, 1024])
def test_barriers_and_shared_memory(backend: CpuBackend, block: int) -> None:
    x = np.random.default_rng(0).integers(-9, 9, 4 * block).astype(np.float32)
    out = backend.allocate_typed(Type.F32, 4)
    launch = LaunchConfig((4, 1, 1), (block, 1, 1), 4 * block)
    backend.execute(assemble(BLOCK_SUM), launch, {"x": backend.array(x), "out": out})
    np.testing.assert_array_equal(out.read(), x.reshape(4, block).sum(axis=1))


@pytest.mark.parametrize("grid", [1, 3])
def test_shared_memory_without_barriers(backend: CpuBackend, grid: int) -> None:
    """Lanes that keep to their own part of it need not wait for each other; the memory is there all the same."""
    program = assemble("""
        .buffer out F32
            CVT.U64.F32 r0, r255
            STS.F32 [shared+r252*8], r0
            STS.F32 [shared+4+r252*8], r0
            ReduceAdd.F32 r1, [shared+r252*8], count=2
            STG.F32 [out+r255*4], r1
    """)
    out = backend.allocate_typed(Type.F32, 4 * grid)
    backend.execute(program, LaunchConfig((grid, 1, 1), (4, 1, 1), 32), {"out": out})
    assert list(out.read()) == [2 * lane for lane in range(4 * grid)]
    with pytest.raises(ExecutionFailed, match=r"instruction 2.*shared memory \(lane 3\)"):
        backend.execute(program, LaunchConfig((grid, 1, 1), (4, 1, 1), 28), {"out": out})


TWO_BARRIERS = """
.buffer x F32
    MOV_IMM.U32 r1, 0
    SETcc.EQ p0, {index}, r1
    BRA other, p0
    {barrier}
    EXIT
other:
    {barrier}
"""


@pytest.mark.parametrize(("index", "grid", "block"), [("r252", 1, 3), ("r253", 3, 2)])
@pytest.mark.parametrize("barrier", ["GridSync", "Softmax.F32 [x], [x], n=4"])
def test_divergence_names_a_lane_that_waits(
    backend: CpuBackend, barrier: str, index: str, grid: int, block: int
) -> None:
    """Lanes wait at two barriers: as on the reference, the earlier one is named with the first lane there."""
    program, launch = (
        assemble(TWO_BARRIERS.format(index=index, barrier=barrier)),
        LaunchConfig((grid, 1, 1), (block, 1, 1)),
    )
    for b in (backend, ReferenceBackend()):
        with pytest.raises(
            ExecutionFailed, match=rf"instruction 3.*divergent barrier.* \(lane {1 if grid == 1 else 2}\)"
        ):
            b.execute(program, launch, {"x": b.array(np.zeros(4, np.float32))})


def test_a_fault_before_a_barrier_is_what_is_told(backend: CpuBackend) -> None:
    program = assemble(".buffer x F32\nLDG.F32 r0, [x+r255*4]\nBarSync")
    for lanes in (0, 2, 3):
        with pytest.raises(ExecutionFailed, match=rf"LDG.*\(lane {lanes}\)"):
            backend.execute(program, LaunchConfig((1, 1, 1), (4, 1, 1)), {"x": backend.allocate_typed(Type.F32, lanes)})


def test_grid_barrier_and_pools(backend: CpuBackend) -> None:
    """Every lane of every block writes, all wait, each reads what the last lane wrote."""
    program = assemble("""
        .buffer out U64
            PoolAlloc q, size=4096
            STG.U64 [pool q+r255*8], r255
            GridSync
            MOV_IMM.U64 r1, 299
            SUB r1, r1, r255
            LDG.U64 r2, [pool q+r1*8]
            PoolFree q
            STG.U64 [out+r255*8], r2
    """)
    out = backend.allocate_typed(Type.U64, 300)
    backend.execute(program, LaunchConfig((3, 1, 1), (100, 1, 1)), {"out": out})
    assert list(out.read()) == list(range(299, -1, -1))


@pytest.mark.parametrize("ty", [Type.BF16, Type.F16], ids=str)
@pytest.mark.parametrize("operation", ["Max", "Min", "Add"])
def test_reductions_in_class_memory(backend: CpuBackend, ty: Type, operation: str) -> None:
    """A loop without checks, which LLVM vectorizes; some ways to write it make its vectorizer fail an assertion."""
    values = to_array(np.random.default_rng(0).integers(-9, 9, 130).astype(np.float64), ty)
    raw = np.ascontiguousarray(encode(values, ty)).view(np.uint8).reshape(-1)
    program = assemble(f".buffer out {ty}\nReduce{operation}.{ty} r0, [class 3+1], count=130\nSTG.{ty} [out], r0")
    found = []
    for b in (backend, ReferenceBackend()):
        b.class_memory[3 * CLASS_BYTES + 1 :][: raw.size] = raw
        out = b.allocate_typed(ty, 1)
        b.execute(program, LaunchConfig(), {"out": out})
        found.append(float(out.read()[0]))
    assert found[0] == found[1]


def test_loops_that_llvm_counts_in_128_bits(backend: CpuBackend) -> None:
    """LLVM moves the checks of such loops out of them by divisions for which a process need not have a function."""
    program = assemble("""
        .buffer c F32
        .buffer b F16
            MOV_IMM.U64 r4, 3
            SETcc.GE p0, r255, r4
            BRA done, p0
            MixedPrecisionGEMM.F16 [c+r255*36], [class 19+r255*34], [b+2+r255*306], m=1, n=9, k=17
        done:
    """)
    b, c = backend.array(np.ones(1000), Type.F16), backend.array(np.ones(27, np.float32))
    backend.execute(program, LaunchConfig((1, 1, 1), (4, 1, 1)), {"b": b, "c": c})
    assert not c.read().any()


def test_extremes_in_loops(backend: CpuBackend) -> None:
    """Folded by MAX, converted integers once made LLVM's vectorizer fail an assertion."""
    program = assemble("""
        .buffer out F32
            MOV_IMM.F32 r1, 1
            LOOP r2, 130
            LDG.I8 r3, [class 8+r2*1]
            CVT.I8.F32 r4, r3
            ABS r4, r4
            MAX r1, r1, r4
            ENDLOOP
            STG.F32 [out], r1
    """)
    backend.class_memory[8 * CLASS_BYTES + 77] = 256 - 9
    out = backend.allocate_typed(Type.F32, 1)
    backend.execute(program, LaunchConfig(), {"out": out})
    assert out.read()[0] == 9


def test_atomics_count_every_lane(backend: CpuBackend) -> None:
    program = assemble("""
        .buffer bins U32
            MOV_IMM.U64 r0, 7
            REM r1, r255, r0
            MOV_IMM.U32 r2, 1
            ATOM.U32.Add r3, [bins+r1*4], r2
    """)
    bins = backend.array(np.zeros(7, np.uint32))
    backend.execute(program, LaunchConfig.linear(70_000, block=100), {"bins": bins})
    assert list(bins.read()) == [10_000] * 7


def test_objects_are_cached_on_disk(tmp_path: Path) -> None:
    program = assemble(SAXPY)
    for hits in (0, 2):  # the translation, and the object
        cache = ProgramCache(tmp_path)
        CpuBackend(cache=cache).compiled(program)
        assert cache.stats().hits == hits


@pytest.mark.parametrize(
    "code", ["LDG.F32 r0, [x+r255*4]", "LDG.F32 r0, [x+r255*4]\n EXP r1, r0\n LDG.F32 r1, [x+800]"]
)
def test_kept_translations_fail_as_fresh_ones_do(code: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where instructions were expanded; and nothing is translated again."""
    told = []
    for translate in (translated, None):
        monkeypatch.setattr(cpu_backend, "translate", translate)
        backend = CpuBackend(cache=ProgramCache(tmp_path))
        x = backend.array(np.ones(10, np.float32))
        with pytest.raises(ExecutionFailed) as failed:
            backend.execute(assemble(f".buffer x F32\n {code}"), LaunchConfig.linear(12), {"x": x})
        told.append(str(failed.value))
    assert "out of range in buffer 'x'" in told[0]
    assert told[0] == told[1]


def test_what_native_code_lacks_is_refused_by_name(backend: CpuBackend) -> None:
    program = assemble("MOV_IMM.F32 r1, 1\nResAccum r0, r1, class_id=1")
    with pytest.raises(BackendUnavailable, match="native code has no ResAccum"):
        backend.execute(program, LaunchConfig())


def test_buffers_refuse_misuse(backend: CpuBackend, tmp_path: Path) -> None:
    other = CpuBackend(cache=ProgramCache(tmp_path))
    buffer = backend.array(np.ones(3, np.float32))
    with pytest.raises(InvalidBuffer, match="another backend"):
        other.size(buffer.handle)
    buffer.free()
    with pytest.raises(InvalidBuffer, match="freed"):
        buffer.free()
    with pytest.raises(AllocationFailed, match="over the limit"):
        backend.allocate(1 << 50)


def test_simd_level_can_be_forced(monkeypatch: pytest.MonkeyPatch) -> None:
    for level in simd.levels():
        monkeypatch.setenv("ESHKOL_SIMD", level.value)
        assert CpuBackend().level is level
        assert simd.config().vector_bits >= 64
    monkeypatch.setenv("ESHKOL_SIMD", "mmx")
    with pytest.raises(BackendUnavailable, match="ESHKOL_SIMD=mmx"):
        CpuBackend()


@pytest.mark.parametrize("target", CpuBackend.targets)
def test_every_stage_can_be_read(backend: CpuBackend, target: str) -> None:
    text = backend.compile_to(target, assemble(SAXPY))
    assert ("FMA" if target == "expanded" else "kernel") in text


MIXED_TYPES = """
.buffer x F64
    MOV_IMM.U64 r1, 2
    SETcc.LT p0, r255, r1
    MOV_IMM.F32 r2, 1.5
    MOV_IMM.U32 r3, 3
    BRA meet, p0
    MOV_IMM.F64 r2, 0.1
    MOV_IMM.I64 r3, 5
meet:
    ADD r4, r2, r2
    BarSync
    MOV_IMM.F64 r5, 0.0
    MOV_IMM.F64 r6, 1.0
    LOOP r7, r3
    ADD r5, r5, r6
    ENDLOOP
    STG.F64 [x+r255*8], r5
"""


def test_registers_whose_type_depends_on_the_path(backend: CpuBackend) -> None:
    """Lanes 0 and 1 count 3 rounds in U32, lanes 2 and 3 count 5 in I64; a wrong type is refused by lane."""
    buffer, launch = backend.array(np.zeros(4)), LaunchConfig.linear(4)
    backend.execute(assemble(MIXED_TYPES), launch, {"x": buffer})
    assert list(buffer.read()) == [3, 3, 5, 5]
    with pytest.raises(IsaError, match=r"src r4 is F32, but must be F64 \(lane 0\)"):
        backend.execute(assemble(f"{MIXED_TYPES}\n STG.F64 [x+r255*8], r4"), launch, {"x": buffer})


def test_many_launches_leave_nothing_behind(backend: CpuBackend) -> None:
    program: Program = assemble(SAXPY)
    x, y = backend.array(np.ones(4, np.float32)), backend.array(np.ones(4, np.float32))
    for _ in range(2000):
        backend.execute(program, LaunchConfig.linear(4), {"x": x, "y": y, "a": 0.0, "n": 4})
    assert len(backend._prepared) == 1
    assert len(backend._buffers) == 2


def test_a_repeated_launch_sees_what_has_changed() -> None:
    """Records of launches are kept: other buffers, other numbers (also equal ones), and freed buffers must be seen."""
    cpu, program, launch = CpuBackend(), assemble(SAXPY), LaunchConfig.linear(8)
    x, y, z = (cpu.array(np.full(8, v, np.float32)) for v in (1, 0, 5))
    given: dict[str, object] = {"x": x, "y": y, "a": 2.0, "n": 8}
    for a, total in ((2.0, 2.0), (2.0, 4.0), (2, 6.0), (-0.5, 5.5)):
        given["a"] = a
        cpu.execute(program, launch, given)
        assert y.read()[0] == total
    given["y"] = z
    cpu.execute(program, launch, given)
    assert (y.read()[0], z.read()[0]) == (5.5, 4.5)
    with pytest.raises(IsaError, match="must be a number"):
        cpu.execute(program, launch, {**given, "a": x})
    with pytest.raises(IsaError, match="must be a buffer"):
        cpu.execute(program, launch, {**given, "x": np.ones(8, np.float32)})
    z.free()
    with pytest.raises(InvalidBuffer):
        cpu.execute(program, launch, given)


def test_a_launch_of_buffers_alone_may_be_given_anything_next() -> None:
    cpu, launch = CpuBackend(), LaunchConfig()
    program = assemble(".buffer x F32\n.buffer y F32\nSoftmax.F32 [y], [x], n=4")
    x, y = (cpu.array(np.zeros(4, np.float32)) for _ in range(2))
    for _ in range(3):
        cpu.execute(program, launch, {"y": y, "x": x})
    np.testing.assert_array_equal(y.read(), [0.25] * 4)
    for wrong in (np.zeros(4, np.float32), 1.0, None):
        with pytest.raises(IsaError, match="must be a buffer"):
            cpu.execute(program, launch, {"x": x, "y": wrong})
    small = cpu.array(np.zeros(3, np.float32))
    with pytest.raises(ExecutionFailed, match="out of range"):
        cpu.execute(program, launch, {"x": x, "y": small})
    cpu.execute(program, launch, {"x": x, "y": y})
    x.free()
    with pytest.raises(InvalidBuffer):
        cpu.execute(program, launch, {"x": x, "y": y})
