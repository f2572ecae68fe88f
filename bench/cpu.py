"""The CPU backend beside NumPy, PyTorch, JAX (where installed) and a triad in C: bandwidth, latency, call overhead."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from bench import peers
from bench.harness import Result, race
from eshkol.atlas.builder import ProgramBuilder
from eshkol.atlas.operands import Register
from eshkol.atlas.program import LaunchConfig, Program
from eshkol.atlas.types import Type
from eshkol.backends.cpu import CpuBackend
from eshkol.support.store import ProgramCache

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


def _saxpy_program() -> Program:
    def body(b: ProgramBuilder, result: Register, x: Register, y: Register) -> None:
        b.fma(result, b.constant(Type.F32, 0.5), x, y)

    return elementwise("saxpy", body)


@dataclass(frozen=True)
class Case:
    """An elementwise function of x and y, as everyone would write it."""

    name: str
    program: Program
    numpy: Callable[[np.ndarray, np.ndarray, np.ndarray], object]
    torch: Callable[[Any, Any, Any, Any], object]  # the module, x, y, z
    jax: Callable[[Any, Any, Any], object]  # jax.numpy, x, y
    bound_by_memory: bool


def _saxpy(x: np.ndarray, y: np.ndarray, z: np.ndarray) -> object:
    np.multiply(x, np.float32(0.5), out=z)
    return np.add(z, y, out=z)


CASES = (
    Case("x + y", elementwise("add", lambda b, r, p, q: b.add(r, p, q)), lambda x, y, z: np.add(x, y, out=z),
         lambda t, x, y, z: t.add(x, y, out=z), lambda j, x, y: x + y, True),
    Case("0.5·x + y", _saxpy_program(), _saxpy,
         lambda t, x, y, z: t.add(y, x, alpha=0.5, out=z), lambda j, x, y: 0.5 * x + y, True),
    Case("tanh(x·y + x)", _tanh_program(), lambda x, y, z: np.tanh(x * y + x, out=z),
         lambda t, x, y, z: t.tanh(x * y + x), lambda j, x, y: j.tanh(x * y + x), False),
)  # fmt: skip


def run() -> list[Result]:
    results = []
    for count in (1_000_000, 10_000_000):
        x, y = (np.random.default_rng(k).standard_normal(count).astype(np.float32) for k in (1, 2))
        results += [_race(case, x, y) for case in CASES]
    return [*results, *_latency()]


def _race(case: Case, x: np.ndarray, y: np.ndarray) -> Result:
    backend, z = CpuBackend(), np.zeros_like(x)
    params = {"x": backend.array(x), "y": backend.array(y), "z": backend.array(z)}
    launch = LaunchConfig.linear(x.size, block=250)
    contestants: dict[str, Callable[[], object]] = {}
    if case.bound_by_memory:
        contestants.update(peers.triad_in_c(x, y, z))
    contestants["NumPy"] = lambda: case.numpy(x, y, z)
    if torch := peers.torch():
        tensors = [torch.from_numpy(a) for a in (x, y, z)]
        contestants["PyTorch"] = lambda: case.torch(torch, *tensors)
    if jax := peers.jax():
        contestants["JAX"] = peers.jitted(lambda x, y: case.jax(jax.numpy, x, y), x, y)
    contestants["eshkol cpu"] = lambda: backend.execute(case.program, launch, params)
    work, unit = (12.0 * x.size, "B") if case.bound_by_memory else (float(x.size), "elem")
    return race(f"{case.name}, {x.size:,} f32", contestants, work=work, unit=unit)


LAUNCHES = 1000


def _latency() -> list[Result]:
    program = elementwise("latency", lambda b, r, p, q: b.add(r, p, q))
    folder = Path(tempfile.mkdtemp())
    warm = CpuBackend(cache=ProgramCache(folder / "warm"))
    params = {name: warm.array(np.ones(4, np.float32)) for name in "xyz"}
    launch = LaunchConfig.linear(4)
    warm.execute(program, launch, params)
    number = iter(range(1_000_000))

    def cold() -> None:
        CpuBackend(cache=ProgramCache(folder / str(next(number)))).compiled(program)

    def launches() -> None:
        for _ in range(LAUNCHES):
            warm.execute(program, launch, params)

    kept: list[CpuBackend] = []  # letting go of code takes as long as loading it, and is not what is measured

    def load() -> None:
        kept.append(CpuBackend(cache=ProgramCache(folder / "warm")))
        kept[-1].compiled(program)

    return [
        race(
            "an elementwise kernel ready to run",
            {"compiled": cold, "from the disk cache": load},
            work=1,
            unit="kernels",
        ),
        race(f"{LAUNCHES} launches, 4 lanes", {"eshkol cpu": launches}, work=LAUNCHES, unit="launches"),
    ]
