"""The CPU backend beside NumPy, PyTorch (where installed) and a triad in C: bandwidth, latency, call overhead."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np

from bench import peers
from bench.harness import Result, race
from eshkol.atlas.builder import ProgramBuilder
from eshkol.atlas.cache import ProgramCache
from eshkol.atlas.operands import Register
from eshkol.atlas.program import LaunchConfig, Program
from eshkol.atlas.types import Type
from eshkol.backends.cpu import CpuBackend

TITLE = "CPU backend"
LANE = Register(255)


def elementwise(name: str, body: Callable[[ProgramBuilder, Register, Register, Register], None]) -> Program:
    """z = body(x, y), one lane per element."""
    b = ProgramBuilder(name)
    x, y, z = (b.buffer(n, Type.F32) for n in "xyz")
    left, right, result = (b.reg(Type.F32) for _ in range(3))
    b.ldg(Type.F32, left, x.at(LANE))
    b.ldg(Type.F32, right, y.at(LANE))
    body(b, result, left, right)
    b.stg(Type.F32, z.at(LANE), result)
    return b.build()


def _tanh_program() -> Program:
    def body(b: ProgramBuilder, result: Register, x: Register, y: Register) -> None:
        b.fma(result, x, y, x)
        b.tanh(result, result)

    return elementwise("tanh", body)


def run() -> list[Result]:
    torch = peers.torch()
    results = []
    add, tanh = elementwise("add", lambda b, r, p, q: b.add(r, p, q)), _tanh_program()
    for count in (1_000_000, 10_000_000):
        backend = CpuBackend()
        x, y = (np.random.default_rng(k).standard_normal(count).astype(np.float32) for k in (1, 2))
        z = np.zeros_like(x)
        params = {"x": backend.array(x), "y": backend.array(y), "z": backend.array(z)}
        launch = LaunchConfig.linear(count, block=250)
        tensors = [torch.from_numpy(a) for a in (x, y, z)] if torch else None
        contestants: dict[str, Callable[[], object]] = {}
        triad = peers.triad_in_c(x, y, z)
        if triad is not None:
            contestants["C triad, one core"] = triad
        contestants["NumPy"] = lambda x=x, y=y, z=z: np.add(x, y, out=z)
        if tensors:
            contestants["PyTorch"] = lambda t=tensors: torch.add(t[0], t[1], out=t[2])
        contestants["eshkol cpu"] = lambda p=params, g=launch, b=backend: b.execute(add, g, p)
        results.append(race(f"x + y, {count:,} f32", contestants, work=12.0 * count, unit="B"))
        others: dict[str, Callable[[], object]] = {"NumPy": lambda x=x, y=y: np.tanh(x * y + x)}
        if tensors:
            others["PyTorch"] = lambda t=tensors: torch.tanh(t[0] * t[1] + t[0])
        others["eshkol cpu"] = lambda p=params, g=launch, b=backend: b.execute(tanh, g, p)
        results.append(race(f"tanh(x·y + x), {count:,} f32", others, work=float(count), unit="elem"))
    return [*results, _latency()]


def _latency() -> Result:
    program = elementwise("latency", lambda b, r, p, q: b.add(r, p, q))
    folder = Path(tempfile.mkdtemp())
    warm = CpuBackend(cache=ProgramCache(folder / "warm"))
    params = {name: warm.array(np.ones(4, np.float32)) for name in "xyz"}
    launch = LaunchConfig.linear(4)
    warm.execute(program, launch, params)
    number = iter(range(1_000_000))

    def cold() -> None:
        CpuBackend(cache=ProgramCache(folder / str(next(number)))).compiled(program)

    return race(
        "latency",
        {
            "compile an elementwise kernel": cold,
            "load it from the disk cache": lambda: CpuBackend(cache=ProgramCache(folder / "warm")).compiled(program),
            "launch it": lambda: warm.execute(program, launch, params),
        },
        work=1, unit="calls",
    )  # fmt: skip
