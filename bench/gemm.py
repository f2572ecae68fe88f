"""Matrix products beside NumPy, PyTorch and JAX: F32 by size, BF16, I8, a fused epilogue; compiling; share of the peak.

The peak is measured, not looked up: a kernel of nothing but multiply-adds in registers, sixteen of them independent so
that their latency is hidden, on all cores at once.
"""

from __future__ import annotations

import ctypes
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np

from bench import peers
from bench.harness import Result, race
from eshkol.atlas.builder import ProgramBuilder
from eshkol.atlas.operands import Activation
from eshkol.atlas.program import LaunchConfig, Program
from eshkol.atlas.types import Type
from eshkol.backends.cpu import CpuBackend, simd
from eshkol.backends.cpu.kernels.macro import Macro, Phase, module_text
from eshkol.backends.cpu.macros.kit import Kernel
from eshkol.llvm.loading import LoadedObject
from eshkol.llvm.objects import compile_object
from eshkol.runtime.scheduler import default_scheduler
from eshkol.support.store import ProgramCache

TITLE = "matrix products"
SIZES = (64, 128, 256, 512, 1024, 2048)
GROUPED_SIZES = (
    512,
    1024,
    2048,
)  # of BF16 and I8; without instructions for them PyTorch takes seconds beyond the first
OURS = "eshkol cpu"
LAUNCH = LaunchConfig()
Contestants = dict[str, Callable[[], object]]


def product(name: str, types: dict[str, Type], write: Callable[[ProgramBuilder, dict[str, Any]], None]) -> Program:
    """A program of one instruction on buffers of these types."""
    b = ProgramBuilder(name)
    write(b, {key: b.buffer(key, ty).address for key, ty in types.items()})
    return b.build()


def call(program: Program, arrays: dict[str, np.ndarray]) -> Callable[[], object]:
    backend = CpuBackend()
    params = {p.name: backend.array(arrays[p.name], p.ty) for p in program.params}
    return lambda: backend.execute(program, LAUNCH, params)


def gemm_program(ty: Type, n: int) -> Program:
    types = dict.fromkeys("cab", ty)
    return product("gemm", types, lambda b, at: b.gemm(ty, at["c"], at["a"], at["b"], m=n, n=n, k=n))


def run() -> list[Result]:
    rng, results = np.random.default_rng(1), []
    for n in SIZES:
        arrays = {key: rng.standard_normal((n, n)).astype(np.float32) for key in "cab"}
        results.append(_race(f"F32, {n}", n, gemm_program(Type.F32, n), arrays, np.matmul))
    for n in GROUPED_SIZES if simd.target().has("amx-bf16") else GROUPED_SIZES[:1]:
        results += [_bf16(rng, n), _int8(rng, n)]
    results.append(_fused(rng, 1024))
    _summary(results, peak())
    return [*results, _compiling()]


def _race(name: str, n: int, program: Program, arrays: dict[str, np.ndarray], numpy: Any = None) -> Result:
    """Ours first; NumPy's function where it has one, then whatever else is installed."""
    torch, jax = peers.torch(), peers.jax()
    a, b, contestants = arrays["a"], arrays["b"], {OURS: call(program, arrays)}
    if numpy is not None:
        out = np.empty_like(arrays["c"])
        contestants["NumPy"] = lambda: numpy(a, b, out=out)
    if torch:
        bf16 = a.dtype == ml_dtypes.bfloat16
        tensors = [torch.from_numpy(x.astype(np.float32)) for x in (a, b, a)]
        left, right, into = (t.bfloat16() for t in tensors) if bf16 else tensors
        contestants["PyTorch"] = lambda: torch.mm(left, right, out=into)
    if jax:
        contestants["JAX"] = peers.jitted(jax.numpy.matmul, a, b)
    return race(name, contestants, work=2.0 * n**3, unit="FLOP", budget=0.5)


def _bf16(rng: np.random.Generator, n: int) -> Result:
    arrays = {key: rng.standard_normal((n, n)).astype(ml_dtypes.bfloat16) for key in "cab"}
    return _race(f"BF16, {n}", n, gemm_program(Type.BF16, n), arrays)


def _int8(rng: np.random.Generator, n: int) -> Result:
    """JAX alone multiplies I8 here as we do: into I32; it does not scale the result back to I8."""
    arrays = {key: rng.integers(-128, 128, (n, n)).astype(np.int8) for key in "cab"}
    scales = {"a_scale": 0.01, "b_scale": 0.01, "c_scale": 1.0}
    program = product("int8", dict.fromkeys("cab", Type.I8), lambda b, at: b.quantized_gemm(
        at["c"], at["a"], at["b"], **scales, m=n, n=n, k=n))  # fmt: skip
    contestants: Contestants = {OURS: call(program, arrays)}
    torch, jax = peers.torch(), peers.jax()
    if torch:
        left, right = torch.from_numpy(arrays["a"]), torch.from_numpy(arrays["b"])
        contestants["PyTorch, to I32"] = lambda: torch._int_mm(left, right)
    if jax:
        wide = jax.numpy.int32
        multiply = lambda a, b: jax.numpy.matmul(a, b, preferred_element_type=wide)
        contestants["JAX, to I32"] = peers.jitted(multiply, arrays["a"], arrays["b"])
    return race(f"I8, {n}", contestants, work=2.0 * n**3, unit="OP", budget=0.5)


def _fused(rng: np.random.Generator, n: int) -> Result:
    """gelu(x·w + bias): one instruction, against two or three calls."""
    arrays = {key: rng.standard_normal((n, n)).astype(np.float32) / 32 for key in "cab"}
    arrays["bias"] = rng.standard_normal(n).astype(np.float32)
    types, f32 = dict.fromkeys(("c", "a", "b", "bias"), Type.F32), Type.F32
    program = product("fused", types, lambda b, at: b.fused_gemm(
        f32, f32, Activation.Gelu, at["c"], at["a"], at["b"], bias=at["bias"], m=n, n=n, k=n))  # fmt: skip
    contestants: Contestants = {OURS: call(program, arrays)}
    torch, jax = peers.torch(), peers.jax()
    if torch:
        x, bias = torch.from_numpy(arrays["a"]), torch.from_numpy(arrays["bias"])
        weight = torch.from_numpy(np.ascontiguousarray(arrays["b"].T))
        contestants["PyTorch"] = lambda: torch.nn.functional.gelu(torch.nn.functional.linear(x, weight, bias))
    if jax:
        layer = lambda a, b, bias: jax.nn.gelu(a @ b + bias, approximate=False)
        contestants["JAX"] = peers.jitted(layer, arrays["a"], arrays["b"], arrays["bias"])
    return race(f"F32 with bias and GELU, {n}", contestants, work=2.0 * n**3, unit="FLOP", budget=0.5)


def peak() -> float:
    """F32 operations per second that all cores together reach in registers."""
    target, rounds, sums = simd.target(), 200_000, 16
    lanes = max(128, target.vector_bits) // 32
    k = Kernel("peak", target, operands=1)
    memory, count = k.operand(0, Type.F32), k.word(0)
    x, y = memory.vector(0, lanes), memory.vector(lanes, lanes)
    totals = [k.variable(memory.vector(lanes * n, lanes)) for n in range(sums)]
    with k.tasks() as task:
        with k.loop(0, count, plain=True):
            for total in totals:
                total.value = k.muladd(x, y, total.value)
        for n, total in enumerate(totals):
            memory.put((task * sums + n) * lanes, total.value)
    macro = Macro((k.function(),), (Phase("peak", 1),), (), k.declarations)
    loaded, pool = LoadedObject(compile_object(module_text(macro), target), target), default_scheduler()
    tasks = pool.workers * 8
    values = np.zeros(tasks * sums * lanes, np.float32)
    record = (ctypes.c_uint64 * 4)(0, 0, values.ctypes.data, rounds)
    times = []
    for _ in range(7):
        start = time.perf_counter()
        pool.parallel_for_native(loaded.address("peak"), ctypes.addressof(record), tasks, 1)
        times.append(time.perf_counter() - start)
    return tasks * rounds * sums * lanes * 2 / min(times)


def _summary(results: list[Result], most: float) -> None:
    """What the table does not say: the ratio to the best peer, and the share of the peak."""
    print(f"peak of {len(os.sched_getaffinity(0))} cores in F32: {most / 1e9:.1f} GFLOP/s")
    for r in results:
        ours, others = r.seconds[OURS], [s for who, s in r.seconds.items() if who != OURS]
        best = f"{min(others) / ours:5.2f} × the best peer" if others else "no peer installed"
        print(f"  {r.name:28} {r.work / ours / 1e9:7.1f} G{r.unit}/s  {best}  {r.work / ours / most:6.1%} of that peak")


def _compiling() -> Result:
    program, folder = gemm_program(Type.F32, 512), Path(tempfile.mkdtemp())
    CpuBackend(cache=ProgramCache(folder / "warm")).compiled(program)
    number = iter(range(1_000_000))
    return race(
        "compiling F32 GEMM",
        {
            "cold": lambda: CpuBackend(cache=ProgramCache(folder / str(next(number)))).compiled(program),
            "from the disk cache": lambda: CpuBackend(cache=ProgramCache(folder / "warm")).compiled(program),
        },
        work=1, unit="calls",
    )  # fmt: skip
