"""The PTX of Atlas programs, without a GPU: what stands in it, and that there is some for every kind of kernel.

`golden/*.ptx` is the PTX of a few small kernels as this LLVM writes it. `python tests/backends/test_cuda_ptx.py` writes
the files anew; read what has changed. Where there is a `ptxas`, it is asked whether it takes what is written.
"""

from __future__ import annotations

import ctypes
import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import eshkol as ek
from batches import checkered
from effort import FULL
from eshkol.atlas.builder import ProgramBuilder
from eshkol.atlas.machines import BLOCKS, MATRICES, AttentionTile, MatrixTile
from eshkol.atlas.operands import GLOBAL, AtomicOperation, Condition, Register, Shared, SpecialRegister
from eshkol.atlas.program import Program
from eshkol.atlas.table import ROWS
from eshkol.atlas.types import Type
from eshkol.backends.cuda.translate import PLAIN, in_base_instructions, ptx, target, translate
from eshkol.backends.lanes.promises import promises
from eshkol.backends.lanes.remainders import with_functions
from eshkol.backends.lanes.scalars import LOWERINGS
from eshkol.errors import IsaError
from eshkol.graph.node import buffer
from eshkol.graph.node import make as made_of
from eshkol.llvm.loading import LoadedObject
from eshkol.llvm.objects import compile_object
from eshkol.llvm.targets import host, versions
from eshkol.ops import dtypes
from eshkol.ops.contraction import matrix_product
from eshkol.ops.correlation import conv
from eshkol.schedule.kernels.attention import SEEN_ATTENTION, SeenAttention
from eshkol.schedule.kernels.lower import lowered
from eshkol.schedule.kernels.products import View
from eshkol.schedule.plan.steps import Launch, planned

GOLDEN = Path(__file__).parent / "golden"
LLVM = "22"  # whose PTX the files hold
PTXAS = shutil.which("ptxas")


def saxpy() -> Program:
    """y = a · x + y for n lanes, with a guard."""
    b = ProgramBuilder("saxpy")
    n, a = b.scalar("n", Type.U64), b.scalar("a", Type.F32)
    x, y = b.buffer("x", Type.F32), b.buffer("y", Type.F32)
    lane, most, end = Register(GLOBAL), b.reg(Type.U64), b.pred()
    b.ldg(Type.U64, most, n.address)
    b.setcc(Condition.GE, end, lane, most)
    done = b.label("done")
    b.bra(done, end)
    factor, value, sum_ = (b.reg(Type.F32) for _ in range(3))
    b.ldg(Type.F32, factor, a.address)
    b.ldg(Type.F32, value, x.at(lane))
    b.ldg(Type.F32, sum_, y.at(lane))
    b.fma(sum_, factor, value, sum_)
    b.stg(Type.F32, y.at(lane), sum_)
    b.place(done)
    return b.build()


def turned() -> Program:
    """The elements of each block in the other direction, through shared memory and a barrier."""
    b = ProgramBuilder("turned")
    x = b.buffer("x", Type.F64)
    lane, size, other, value = b.reg(Type.U32), b.reg(Type.U32), b.reg(Type.U32), b.reg(Type.F64)
    b.sreg(SpecialRegister.LaneX, lane)
    b.sreg(SpecialRegister.BlockSizeX, size)
    b.ldg(Type.F64, value, x.at(Register(GLOBAL)))
    b.sts(Type.F64, Shared(0).at(lane, 8), value)
    b.bar_sync()
    b.sub(other, size, lane)
    b.sub(other, other, b.constant(Type.U32, 1))
    b.lds(Type.F64, value, Shared(0).at(other, 8))
    b.stg(Type.F64, x.at(Register(GLOBAL)), value)
    return b.build()


def counted() -> Program:
    """A histogram: atomics in global memory."""
    b = ProgramBuilder("counted")
    x, bins = b.buffer("x", Type.U32), b.buffer("bins", Type.U32)
    which, old, one = b.reg(Type.U32), b.reg(Type.U32), b.constant(Type.U32, 1)
    b.ldg(Type.U32, which, x.at(Register(GLOBAL)))
    b.atom(Type.U32, AtomicOperation.Add, old, bins.at(which), one)
    return b.build()


def exchanged() -> Program:
    """The sum of four neighbouring lanes in each of them, of numbers of 32 and of 64 bits, without shared memory."""
    b = ProgramBuilder("exchanged")
    for name, ty in (("x", Type.F32), ("y", Type.I64), ("z", Type.F16)):
        x, value, other = b.buffer(name, ty), b.reg(ty), b.reg(ty)
        b.ldg(ty, value, x.at(Register(GLOBAL)))
        for mask in (2, 1):
            b.sub_group_xor(ty, other, value, mask)
            b.add(value, value, other)
        b.stg(ty, x.at(Register(GLOBAL)), value)
    return b.build()


def multiplied() -> Program:
    """A product in fragments, in small tiles: copies under way, matrices in shared memory, sums in registers."""
    target = replace(BLOCKS, matrices=replace(MATRICES, tiles=(MatrixTile(32, 32, 32, 16, 32, 3),)))
    x, y = (buffer(np.zeros(shape, dtypes.bfloat16.numpy), dtypes.bfloat16) for shape in ((64, 512), (512, 64)))
    kernels = lowered(matrix_product(x, y), target)
    assert isinstance(kernels, tuple)
    return kernels[0].program


def attended() -> Program:
    """Attention in fragments, in the smallest tiles: powers of scores, rounded in registers to be factors."""
    target = replace(BLOCKS, matrices=replace(MATRICES, attention=(AttentionTile(16, 1, 1, 16),)))
    q = buffer(np.zeros((1, 40, 16), dtypes.bfloat16.numpy), dtypes.bfloat16)
    found = lowered(made_of(SEEN_ATTENTION, (q, q, q), SeenAttention(*[View.of(q.shape)] * 3, 0.25, True)), target)
    assert isinstance(found, tuple)
    return found[0].program


def convolved() -> Program:
    """A convolution in fragments: copies of what windows see, zeros beyond edges."""
    target = replace(BLOCKS, matrices=replace(MATRICES, tiles=(MatrixTile(16, 32, 32, 16, 32, 2),)))
    shapes = (2, 1, 16, 8, 8), (1, 16, 16, 3, 3)
    x, weight = (buffer(np.zeros(shape, dtypes.float16.numpy), dtypes.float16) for shape in shapes)
    found = lowered(conv(x, weight, padding=1), target)
    assert isinstance(found, tuple)
    return found[2].program


KERNELS = {f.__name__: f for f in (saxpy, turned, counted, exchanged, multiplied, attended, convolved)}
LEAST = dict.fromkeys(
    ("multiplied", "attended", "convolved"), (8, 0)
)  # compute capability that a kernel needs, where the oldest has not all of it


def text_of(program: Program, capability: tuple[int, int] = PLAIN, *, fast: bool = True) -> str:
    base = in_base_instructions(program)
    made = target(capability)
    return ptx(translate(base, made, promises(base) if fast else None), made)


def assembled(text: str, capability: tuple[int, int]) -> None:
    """Have it assembled, where there is something to do that."""
    assert re.match(r"//.*\n(//.*\n)*\n*\.version \d\.\d\n\.target sm_\d+a?\n", text.lstrip()), text[:200]
    assert ".visible .entry kernel(" in text
    assert ".extern .func" not in text, "it calls what no one defines"
    if PTXAS is not None:
        done = subprocess.run(
            [PTXAS, f"-arch={target(capability).cpu}", "-o", "/dev/null", "-"], input=text, text=True, check=False,
            capture_output=True, timeout=120,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("name", KERNELS)
def test_golden(name):
    if versions()["llvm"].split(".")[0] != LLVM:
        pytest.skip(f"the files hold what LLVM {LLVM} writes")
    text = text_of(KERNELS[name](), LEAST.get(name, PLAIN))
    assert unnumbered(text) == unnumbered((GOLDEN / f"{name}.ptx").read_text(encoding="utf-8"))


def unnumbered(text: str) -> str:
    """Without the numbers of calls, which LLVM goes on counting from module to module."""
    return re.sub(r"callseq \d+", "callseq", text)


@checkered(capability=[PLAIN, (8, 0), (9, 0), (10, 0)], fast=[True, False])
def test_it_assembles(capability, fast):
    for name, make in KERNELS.items():
        if capability >= LEAST.get(name, PLAIN):
            assembled(text_of(make(), capability, fast=fast), capability)


def test_what_stands_in_it():
    plain, fast = text_of(saxpy(), fast=False), text_of(saxpy())
    assert "fault" in plain
    assert "fault" not in fast, "the host has checked what lanes would"
    for text in (plain, fast):
        assert "ld.global" in text
        assert "st.global" in text
        assert "fma.rn.f32" in text
    shared = text_of(turned())
    assert "bar.sync" in shared or "barrier.sync" in shared
    assert "st.shared" in shared
    assert "ld.shared" in shared
    assert "atom." in text_of(counted())
    product = text_of(multiplied(), (9, 0))
    assert product.count("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32") == 2 * 4, "two steps of a slab"
    assert product.count("ldmatrix.sync.aligned.m8n8.x4.shared.b16") == 1 + 2
    assert product.count("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16") == 2 + 4
    assert product.count("cp.async.cg.shared.global") == 3 * 4
    assert product.count("cp.async.wait_group") == 2
    assert product.count("st.global.b32") == 8, "pairs of results"
    assert "st.global.b16" not in product
    assert "fault" not in product
    attention = text_of(attended(), (9, 0))
    for word in ("mma.sync.aligned.m16n8k16", "ldmatrix", "cp.async.cg", "ex2.approx.ftz.f32", "cvt.rn.bf16x2.f32"):
        assert word in attention
    assert "cvt.rn.bf16.f32" not in attention.replace("cvt.rn.bf16x2.f32", ""), "pairs are rounded at once"
    assert "fault" not in attention
    assert "fault" not in text_of(convolved(), (9, 0))
    warp = text_of(exchanged())
    assert warp.count("shfl.sync.bfly.b32") == 2 + 4 + 2, "those of 64 bits in two words"
    assert "shared" not in warp


def test_a_subgroup_is_a_warp():
    b = ProgramBuilder("beyond")
    value = b.constant(Type.I32, 1)
    b.sub_group_xor(Type.I32, value, value, 32)
    with pytest.raises(IsaError, match="mask 32 leaves the sub-group, which has 32 lanes"):
        text_of(b.build())


def test_products_and_sums_are_rounded_each():
    """LLVM and ptxas may make one instruction of a product and a sum, which no other machine would."""
    b = ProgramBuilder("apart")
    x, one, two = b.buffer("x", Type.F32), b.reg(Type.F32), b.reg(Type.F32)
    b.ldg(Type.F32, one, x.at(Register(GLOBAL)))
    b.mul(two, one, one)
    b.add(two, two, one)
    b.stg(Type.F32, x.at(Register(GLOBAL)), two)
    text = text_of(b.build())
    assert "mul.rn.f32" in text
    assert "add.rn.f32" in text
    assert "fma" not in text


def test_targets():
    assert (target().cpu, target().features) == ("sm_75", "+ptx64")
    assert target((9, 0)).cpu == "sm_90a"
    assert target((8, 7)).cpu == "sm_86", "an older one serves, if its own is not known"


def test_promises_of_a_guard():
    found = promises(saxpy())
    sizes = {"x": 4 * 100, "y": 4 * 100}
    assert found.hold(128, sizes, {"n": 100, "a": 1.0})
    assert not found.hold(128, sizes, {"n": 101, "a": 1.0})
    assert found.hold(96, sizes, {"n": 1 << 40, "a": 1.0})
    assert not found.hold(128, {**sizes, "y": 396}, {"n": 100, "a": 1.0})


TYPES = (Type.F16, Type.BF16, Type.F32, Type.F64, Type.I8, Type.U16, Type.I32, Type.I64, Type.U128)


@pytest.mark.parametrize("ty", TYPES)
def test_every_register_instruction_has_code(ty):
    """Of one type all that the table has, in one program."""
    left_out = {"CVT", "BITCAST", "MOV_IMM", "SETcc", "SEL", "ClsGet", "MIRROR", "UnityTest", "BoundMap", "ACC", "PACK"}
    b = ProgramBuilder("all")
    x = b.buffer("x", ty)
    values = [b.reg(ty) for _ in range(3)]
    for k, value in enumerate(values):
        b.ldg(ty, value, x.at(k))
    written = b.reg(ty)
    for name in sorted(set(LOWERINGS) - left_out):
        if not _takes(name, ty):
            continue
        method = getattr(b, {"AND": "and_", "OR": "or_", "NOT": "not_"}.get(name, name.lower()))
        method(written, *values[: _inputs(name)])
        b.stg(ty, x.at(Register(GLOBAL)), written)
    assembled(text_of(b.build()), PLAIN)


def _takes(name: str, ty: Type) -> bool:
    if name in ("SQRT", "FLOOR", "CEIL", "TRUNC", "ROUND"):
        return ty.is_float
    return ty.is_integer or name not in ("AND", "OR", "XOR", "NOT", "SHL", "SHR")


def _inputs(name: str) -> int:
    return len(ROWS[name].inputs)


ELEMENTARY = ("EXP", "EXPM1", "LOG", "LOG1P", "SIN", "COS", "TAN", "TANH", "SIGMOID", "ERF", "POW", "ATAN2")


@pytest.mark.parametrize("ty", [Type.F32, Type.F64])
def test_elementary_functions_are_code_of_ours(ty):
    """The device has no library of functions; what it has itself is less exact, but for powers of two near 1."""
    b = ProgramBuilder("elementary")
    x, value = b.buffer("x", ty), b.reg(ty)
    for name in ELEMENTARY if FULL else ELEMENTARY[:1]:
        b.ldg(ty, value, x.at(Register(GLOBAL)))
        getattr(b, name.lower())(value, *[value] * len(ROWS[name].inputs))
        b.stg(ty, x.at(Register(GLOBAL)), value)
    text = text_of(b.build())
    assembled(text, PLAIN)
    assert re.findall(r"\w+\.approx[\w.]*", text) == ["ex2.approx.ftz.f32"] * (ty is Type.F32)


def test_a_branch_over_arithmetic_leaves_bounds_known():
    """Sines of huge angles branch; that accesses after them are in range is known all the same."""
    x = ek.zeros((BLOCKS.wide,)).realize()
    plan = ek.jit(lambda x: ek.sin(x) * ek.cos(x)).traced(x).compiled.plan(BLOCKS)
    (launch,) = plan.steps
    assert launch.kernel.lanes * BLOCKS.several == x.size
    text = text_of(launch.kernel.program)
    assert "fault" not in text
    assert text.count("ld.global.v4.b32") == text.count("st.global.v4.b32") == 1
    assert "fault" in text_of(launch.kernel.program, fast=False)


@pytest.mark.parametrize(
    ("function", "shape", "dtype", "whole"),
    [
        (lambda x: ek.softmax(x, -1), (600, 1024), "bfloat16", True),  # in registers
        (lambda x: ek.log_softmax(x, -1), (600, 1 << 15), "float32", True),  # in shared memory, in loops
        (lambda x: x.sum(axis=0), (8192, 256), "bfloat16", False),  # the kernel that combines reads numbers
        (lambda x: x.mean(axis=(0, 2)), (64, 16, 1 << 10), "float32", False),
        (lambda x: ek.permute(x, (1, 0, 2)) * 2, (64, 64, 128), "float32", True),
    ],
)
def test_neighbours_are_read_and_written_at_once(function, shape, dtype, whole):
    """Whole vectors, whatever lanes of a row share; none is checked."""
    x = ek.zeros(shape, dtype=dtype).realize()
    steps = ek.jit(function).traced(x).compiled.plan(replace(BLOCKS, shared_memory=200 << 10)).steps
    texts = [text_of(step.kernel.program) for step in (steps if whole else steps[:1])]
    for text in texts:
        assert "fault" not in text
        assert set(re.findall(r"ld\.global\.\S+", text)) == {"ld.global.v4.b32"}
        assert set(re.findall(r"st\.global\.\S+", text)) <= {"st.global.v4.b32"} or not whole
        assembled(text, PLAIN)


def test_remainders_are_exact():
    """The function is run on the host, whose own remainder is exact."""
    rng = np.random.default_rng(1)
    for kind, dtype, c in (("float", np.float32, ctypes.c_float), ("double", np.float64, ctypes.c_double)):
        head = (
            f"define void @kernel(ptr %x, ptr %y, ptr %z) {{\n  %a = load {kind}, ptr %x\n  %b = load {kind}, ptr %y\n"
        )
        body = f"{head}  %r = frem {kind} %a, %b\n  store {kind} %r, ptr %z\n  ret void\n}}"
        body, functions, declared = with_functions(body)
        assert "frem" not in body
        loaded = LoadedObject(compile_object("\n".join([body, *functions, *declared]), host()), host())
        call = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 3)(loaded.address("kernel"))
        info = np.finfo(dtype)
        special = [0.0, -0.0, 1.0, -3.0, np.inf, -np.inf, np.nan, info.tiny, info.max, info.smallest_subnormal]
        some = np.frombuffer(rng.bytes(60 * info.bits // 8), dtype)
        numbers = np.array([*special, *some, *(rng.standard_normal(40) * 1e3)], dtype)
        with np.errstate(all="ignore"):
            for a in numbers:
                for b in numbers:
                    x, y, z = c(a), c(b), c()
                    call(ctypes.addressof(x), ctypes.addressof(y), ctypes.addressof(z))
                    got, wanted = dtype(z.value), np.fmod(dtype(a), dtype(b))
                    assert got.tobytes() == wanted.tobytes() or (np.isnan(wanted) and np.isnan(got)), (a, b)


def test_array_instructions_are_expanded():
    b = ProgramBuilder("all together")
    x, y = b.buffer("x", Type.F32, 8), b.buffer("y", Type.F32, 8)
    b.softmax(Type.F32, y.address, x.address, 8)
    base = in_base_instructions(b.build())
    assert all(not i.op.is_extension or i.op.name in LOWERINGS for i in base.instructions)
    assembled(text_of(b.build()), PLAIN)


if __name__ == "__main__":
    GOLDEN.mkdir(exist_ok=True)
    for name, make in KERNELS.items():
        (GOLDEN / f"{name}.ptx").write_text(text_of(make(), LEAST.get(name, PLAIN)), encoding="utf-8")
        print(f"wrote {name}.ptx")


def test_rows_are_read_and_written_in_vectors():
    """Those of which each lane keeps elements: all are read before anything is written, some neighbours at once."""
    x = buffer(np.zeros((2048, 256), np.float32), dtypes.float32)
    half = buffer(np.zeros((2048, 256), np.uint16), dtypes.bfloat16)
    whole = ek.Tensor(x) + ek.Tensor(half).astype("float32")
    apart = whole - whole.mean(axis=1, keepdims=True)
    results = [whole._node, (apart * apart).mean(axis=1)._node, apart.astype("bfloat16")._node]
    (step,) = planned(results, [x, half], BLOCKS).steps
    assert isinstance(step, Launch)
    text = text_of(step.kernel.program, (9, 0))
    assert [len(re.findall(name, text)) for name in ("ld.global.v4.b32", "ld.global.v4.b16")] == [2, 2]
    assert [len(re.findall(name, text)) for name in ("st.global.v4.b32", "st.global.v2.b32")] == [2, 2]
    assert text.rindex("ld.global") < text.index("st.global")


@pytest.mark.parametrize(("ty", "own"), [(Type.BF16, True), (Type.F16, True), (Type.F32, False)])
def test_sigmoids_of_16_bit_floats_are_what_the_machine_has(ty, own):
    b = ProgramBuilder("p")
    x = b.buffer("x", ty)
    first, second = Register(1), Register(2)
    for i in (ROWS["LDG"](ty, first, x.address), ROWS["SIGMOID"](second, first), ROWS["STG"](ty, x.address, second)):
        b.emit(i)
    text = text_of(b.build())
    assert [name in text for name in ("ex2.approx.ftz.f32", "rcp.approx.ftz.f32")] == [own, own]
