"""WebAssembly: modules as they are linked, and instructions, tensors, networks and faults, where there is wasmtime.

Without wasmtime the latter are skipped, with the reason. A module is also loaded by node, where that is installed.
Results are those of the CPU within a few units of the last place.
"""

from __future__ import annotations

import json
import math
import shutil
import subprocess
import sys
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from on_machines import NETWORKS, learns_as_the_cpu

import eshkol as ek
from effort import FULL
from eshkol.atlas.program import LaunchConfig
from eshkol.atlas.text import assemble
from eshkol.atlas.types import Type
from eshkol.backends.wasm import engine
from eshkol.backends.wasm.backend import WasmBackend, complete
from eshkol.backends.wasm.blocks import ALIGNMENT, Blocks
from eshkol.conformance.checks import cases_of, forward, gradient, gradient_case
from eshkol.conformance.instructions import instruction, instruction_cases
from eshkol.conformance.outcomes import FAIL, PASS, REFUSED
from eshkol.conformance.samples import rows
from eshkol.errors import AllocationFailed, BackendError, BackendUnavailable, ExecutionFailed
from eshkol.llvm import wasm_objects, webassembly
from eshkol.llvm.wasm_objects import GLOBAL, MEMORY, Reader, imports, linked

REASON = WasmBackend.unavailable()
needs_engine = pytest.mark.skipif(REASON is not None, reason=str(REASON))
NODE = shutil.which("node")
INSTRUCTIONS = ["ADD F16", "DIV I64", "REM F32", "FMA F32", "FMA F64", "MIN BF16", "MAX F64", "SHR I8", "MUL I128",
                "DIV U128", "CVT F64 to BF16", "CVT F64 to F16", "CVT F32 to I8", "SETcc LT U64", "LDS STS U16",
                "ATOM Add F16", "ATOM Max I64", "EXP F16", "EXP F32"]  # fmt: skip
ROWS = ["add", "softmax", "sin"]
DOUBLED = """
define dso_local void @kernel(ptr %record, i64 %begin, i64 %end) {
  %first = load i64, ptr %record
  %place = getelementptr i64, ptr @numbers, i64 %begin
  %added = load i64, ptr %place
  %product = mul i64 %first, 2
  %sum = add i64 %product, %added
  store i64 %sum, ptr %record
  ret void
}
@numbers = internal constant [3 x i64] [i64 5, i64 7, i64 9]
"""


@pytest.fixture(scope="module")
def machine():
    return WasmBackend()


# --- modules ----------------------------------------------------------------------------------------


def test_a_module_exports_its_function_and_needs_nothing_but_memory():
    code = linked(webassembly.compile_code(DOUBLED, webassembly.target()), ("kernel",))
    assert dict(imports(code.module)) == {"__linear_memory": MEMORY, "__memory_base": GLOBAL}
    assert np.frombuffer(code.data, np.int64).tolist() == [5, 7, 9]
    kinds = [kind for kind, _ in wasm_objects.sections(code.module)]
    assert kinds == sorted(kinds)
    assert wasm_objects.DATA not in kinds
    with pytest.raises(BackendError, match="no function other"):
        linked(webassembly.compile_code(DOUBLED, webassembly.target()), ("other",))


def test_numbers_of_the_format():
    for value in (0, 1, 127, 128, 300, 1 << 31):
        assert Reader(wasm_objects.number(value)).number() == value
    for raw, value in ((b"\x7f", -1), (b"\xff\x00", 127), (b"\x80\x7f", -128), (b"\x05", 5)):
        assert Reader(raw).signed() == value


def test_what_no_engine_has_comes_along_or_is_named():
    wide = (
        "define void @f(ptr %p) {\n  %a = load i128, ptr %p\n  %b = mul i128 %a, %a\n  store i128 %b, ptr %p\n"
        "  ret void\n}"
    )
    assert wasm_objects.lacking(webassembly.compile_code(wide, webassembly.target())) == []
    foreign = "declare void @strange()\ndefine void @f() {\n call void @strange()\n ret void\n}"
    with pytest.raises(BackendError, match="strange"):
        webassembly.compile_code(foreign, webassembly.target())


def test_exact_products_are_relaxed_only_where_these_are_exact():
    text = assemble(".buffer x F32 64\nLDG.F32 r0, [x+r255*4]\nFMA r1, r0, r0, r0\nSTG.F32 [x+r255*4], r1\n")
    from eshkol.backends.cpu.kernels.translate import translate

    written = {fused: webassembly.assembly(translate(text, webassembly.target(fused=fused)).text,
                                           webassembly.target(fused=fused)) for fused in (False, True)}  # fmt: skip
    assert "relaxed_madd" in written[True]
    assert "relaxed_madd" not in written[False]
    assert "f64x2.mul" in written[False]  # of two lanes at a time, exactly
    assert not any("fmaf" in text for text in written.values())


# --- memory -----------------------------------------------------------------------------------------


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 5000), st.integers(0, 50)), max_size=60))
@settings(deadline=None)
def test_blocks_never_overlap_and_all_come_back(steps):
    blocks, held = Blocks(1024, 1 << 16), {}
    for takes, size, which in steps:
        if takes:
            offset = blocks.take(size)
            if offset is None:
                continue
            assert offset % ALIGNMENT == 0
            assert offset >= 1024
            assert offset + size <= 1 << 16
            assert all(offset + size <= o or o + s <= offset for o, s in held.items())
            held[offset] = max(size, 1)
        elif held:
            offset = list(held)[which % len(held)]
            del held[offset]
            blocks.drop(offset)
    for offset in held:
        blocks.drop(offset)
    assert blocks.take((1 << 16) - 1024) == 1024


def test_without_wasmtime_the_reason_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "wasmtime", None)
    engine._wasmtime.cache_clear()
    engine.device.cache_clear()
    try:
        assert "pip install eshkol[wasm]" in str(WasmBackend.unavailable())
        assert WasmBackend.machines() == []
        with pytest.raises(BackendUnavailable, match="wasmtime"):
            engine.device()
    finally:
        engine._wasmtime.cache_clear()
        engine.device.cache_clear()


@needs_engine
def test_memory_that_there_is_not():
    small = WasmBackend(memory_limit=16 << 20)
    held = small.allocate(8 << 20)
    with pytest.raises(AllocationFailed, match="are used"):
        small.allocate(9 << 20)
    with pytest.raises(AllocationFailed, match="addresses have 32 bits") as failure:
        small.machine.take(9 << 20)  # what programs work in counts, too
    assert "bytes" in failure.value.message
    small.free(held)
    small.free(small.allocate(8 << 20))
    with pytest.raises(AllocationFailed, match="over the limit"):
        small.allocate(1 << 31)


# --- instructions and rows --------------------------------------------------------------------------


@needs_engine
def test_instructions(machine):
    cases = {c.name: c for c in instruction_cases()}
    outcomes = [instruction(cases[name], machine) for name in (cases if FULL else INSTRUCTIONS)]
    assert [str(o) for o in outcomes if o.result != PASS and o.row != "SubGroupXor"] == []
    assert instruction(cases["SubGroupXor F32 by 1"], machine).result in (PASS, REFUSED)


@needs_engine
@pytest.mark.optimized
def test_rows():
    chosen = [op for op in rows() if FULL or op.name in ROWS]
    outcomes = [forward(cases_of(op)[0], "wasm") for op in chosen]
    outcomes += [gradient(case, "wasm") for op in chosen if (case := gradient_case(op)) is not None]
    assert [str(o) for o in outcomes if o.result == FAIL] == []


def _exactly(a: float, b: float, c: float) -> float:
    try:
        return float(Fraction(a) * Fraction(b) + Fraction(c))
    except OverflowError:
        return math.inf if Fraction(a) * Fraction(b) + Fraction(c) > 0 else -math.inf


@needs_engine
def test_products_with_sums_are_rounded_once_also_without_relaxed_ones():
    rng = np.random.default_rng(3)
    plain = WasmBackend(fused=False)
    for ty, bits, dtype in ((Type.F64, 64, np.float64), (Type.F32, 32, np.float32)):
        raw = rng.integers(0, 1 << 63, (3, 400), dtype=np.uint64) * 2 + rng.integers(0, 2, (3, 400), dtype=np.uint64)
        values = (raw >> np.uint64(64 - bits)).astype(f"u{bits // 8}").view(dtype)
        a, b, c = np.where(np.isfinite(values), values, dtype(1.5))
        near = rng.standard_normal((3, 400)).astype(dtype) * dtype(2) ** rng.integers(-20, 20, (3, 400))
        a, b, c = (np.concatenate([one, other.astype(dtype)]) for one, other in zip((a, b, c), near, strict=True))
        with np.errstate(all="ignore"):
            c[::3] = np.where(np.isfinite(a * b), -(a * b), c)[::3]
        places = [plain.array(x) for x in (a, b, c)]
        size = bits // 8
        program = assemble(
            "".join(f".buffer {n} {ty}\nLDG.{ty} r{k}, [{n}+r255*{size}]\n" for k, n in enumerate("abc"))
            + f"FMA r3, r0, r1, r2\nSTG.{ty} [c+r255*{size}], r3\n"
        )
        plain.execute(program, LaunchConfig.linear(a.size, 8), dict(zip("abc", places, strict=True)))
        found = places[2].read()
        for x, y, z, got in zip(a, b, c, found, strict=True):
            if ty is Type.F64:
                assert got == _exactly(float(x), float(y), float(z)), (x, y, z)
            else:
                exact = Fraction(float(x)) * Fraction(float(y)) + Fraction(float(z))
                assert got == _rounded(exact), (x, y, z, got)


def _rounded(exact: Fraction) -> np.float32:
    """The nearest float32, ties to even."""
    if exact == 0:
        return np.float32(0)
    size = abs(exact)
    power = max(size.numerator.bit_length() - size.denominator.bit_length() - 1, -126)
    if size >= Fraction(2) ** (power + 1):
        power += 1
    unit = Fraction(2) ** (power - 23)
    whole = round(size / unit)  # ties to even, as Fraction rounds
    if whole * unit >= Fraction(2) ** 128:
        return np.float32(math.copysign(math.inf, exact))
    return np.float32(math.copysign(float(whole * unit), exact))


# --- faults -----------------------------------------------------------------------------------------


@needs_engine
def test_a_lane_that_leaves_a_buffer_is_named(machine):
    x = machine.array(np.arange(8, dtype=np.float32))
    program = assemble(".buffer x F32\nLDG.F32 r0, [x+r255*4]\nSTG.F32 [x+r255*4], r0\n")
    with pytest.raises(ExecutionFailed, match=r"out of range in buffer 'x' \(lane 8\)"):
        machine.execute(program, LaunchConfig.linear(32, 16), {"x": x})
    machine.execute(program, LaunchConfig.linear(8, 8), {"x": x})  # it goes on
    assert (x.read() == np.arange(8)).all()


@needs_engine
def test_code_that_leaves_the_memory_is_stopped_and_the_process_goes_on(machine):
    store = "store i64 1, ptr inttoptr (i32 -8 to ptr)"
    text = complete(f"define dso_local void @kernel(ptr %p, i64 %a, i64 %b) {{\n  {store}\n  ret void\n}}\n")
    loaded = machine._load("kernel", text, "astray")
    used = machine.machine.blocks.used_end
    with (
        pytest.raises(BackendError, match="out of bounds"),
        machine.machine.asked("a function"),
        machine.machine.meanwhile(64) as place,
    ):
        machine.machine.call(loaded.address("kernel"), place, 0, 1)
    assert machine.machine.blocks.used_end == used
    x = machine.array(np.arange(4, dtype=np.int32))
    assert x.read().tolist() == [0, 1, 2, 3]


@needs_engine
def test_divergent_barriers_are_told(machine):
    program = assemble(
        ".buffer x I32\nMOV_IMM.U64 r0, 3\nSETcc.LT p0, r255, r0\nBRA around, p0\nBarSync\naround:\nEXIT\n"
    )
    with pytest.raises(ExecutionFailed, match="divergent barrier"):
        machine.execute(program, LaunchConfig.linear(8, 8), {"x": machine.array(np.zeros(4, np.int32))})


@needs_engine
def test_lanes_of_a_whole_launch_wait_and_pools_come_and_go(machine):
    program = assemble(
        ".buffer x U32\nPoolAlloc q, size=64\nSREG.BlockX r1\nSREG.LaneX r2\nADD r3, r1, r2\nSTG.U32 [x+r255*4], r3\n"
        "GridSync\nMOV_IMM.U64 r4, 7\nXOR r5, r255, r4\nLDG.U32 r6, [x+r5*4]\nPoolFree q\nSTG.U32 [x+r255*4], r6\n"
    )
    x = machine.array(np.zeros(8, np.uint32))
    used = machine.machine.blocks.used_end
    machine.execute(program, LaunchConfig.linear(8, 4), {"x": x})
    wanted = [k // 4 + k % 4 for k in range(8)][::-1]
    assert x.read().tolist() == wanted
    assert machine.machine.blocks.used_end == used


@needs_engine
def test_pools_and_copies(machine):
    pool = machine.allocate_pool(16)
    machine.copy_to_pool(pool, 3, b"abc")
    assert machine.copy_from_pool(pool, 2, 5) == b"\0abc\0"
    one, other = machine.array(np.arange(6, dtype=np.uint8)), machine.array(np.zeros(6, np.uint8))
    machine.copy_within(other.handle, 1, one.handle, 2, 3)
    assert other.read().tolist() == [0, 2, 3, 4, 0, 0]
    machine.copy_within(one.handle, 1, one.handle, 0, 4)
    assert one.read().tolist() == [0, 0, 1, 2, 3, 5]


# --- tensors ----------------------------------------------------------------------------------------


def test_there_is_one_engine():
    with pytest.raises(BackendUnavailable, match="only one wasm"):
        WasmBackend.numbered(1)


@needs_engine
def test_values_are_carried_between_machines():
    data = np.arange(6, dtype=np.int16)
    there = ek.tensor(data).to("wasm")
    assert there.device == "wasm"
    assert there.to("discrete").to("wasm").to("cpu").numpy().tolist() == data.tolist()


@needs_engine
@pytest.mark.optimized
@pytest.mark.parametrize(("m", "k", "n", "turned", "dtype"), [
    (2, 3, 4, "", "float32"), (70, 33, 20, "", "float32"), (1, 50, 40, "", "float32"), (40, 50, 1, "", "float32"),
    (7, 515, 9, "a", "float32"), (5, 6, 30, "ab", "float64"), (9, 3, 3, "b", "int32"),
])  # fmt: skip
def test_products(m, k, n, turned, dtype):
    rng = np.random.default_rng(m)
    x, y = ((rng.standard_normal(shape) * 9).astype(dtype) for shape in ((m, k), (k, n)))
    with ek.device("wasm"):
        a, b = (ek.tensor(v.T.copy()).T if w in turned else ek.tensor(v) for v, w in ((x, "a"), (y, "b")))
        np.testing.assert_allclose((a @ b).numpy(), x @ y, rtol=1e-4, atol=1e-3)


@needs_engine
@pytest.mark.skipif(not FULL, reason="make test-all has networks: their kernels take long to compile")
@pytest.mark.parametrize(("model", "shape"), NETWORKS)
def test_networks_learn_as_on_the_cpu(model, shape):
    learns_as_the_cpu("wasm", model, shape)


@needs_engine
def test_doctor_shows_the_engine(capsys):
    from eshkol.cli.main import main

    main(["doctor", "--json"])
    (first,) = json.loads(capsys.readouterr().out)["backends"]["wasm"]["machines"]
    assert first["name"] == engine.device().name
    main(["doctor"])
    assert "vectors of 128" in " ".join(capsys.readouterr().out.split())


# --- other engines ----------------------------------------------------------------------------------

SCRIPT = """
const fs = require("fs");
const [base, record] = [65536, 1024];
const memory = new WebAssembly.Memory({initial: 4});
const env = {
  __linear_memory: memory,
  __memory_base: new WebAssembly.Global({value: "i32", mutable: false}, base),
  __stack_pointer: new WebAssembly.Global({value: "i32", mutable: true}, 65536),
};
new Uint8Array(memory.buffer).set(fs.readFileSync(process.argv[3]), base);
new BigInt64Array(memory.buffer)[record / 8] = 20n;
WebAssembly.instantiate(fs.readFileSync(process.argv[2]), {env}).then(({instance}) => {
  instance.exports.kernel(record, 1n, 2n);
  console.log(String(new BigInt64Array(memory.buffer)[record / 8]));
});
"""


@pytest.mark.skipif(NODE is None, reason="node is not installed (apt install nodejs)")
def test_node_loads_modules(tmp_path):
    assert NODE is not None
    code = linked(webassembly.compile_code(DOUBLED, webassembly.target()), ("kernel",))
    for name, content in (("m.wasm", code.module), ("m.bin", code.data), ("run.js", SCRIPT.encode())):
        (tmp_path / name).write_bytes(content)
    ran = subprocess.run([NODE, "run.js", "m.wasm", "m.bin"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert ran.stdout.strip() == "47", ran.stderr
