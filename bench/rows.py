"""Row by row on the CPU backend beside NumPy, PyTorch and JAX: softmax, layer norm, reductions, Fourier transforms."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from bench import peers
from bench.harness import Result, race
from eshkol.atlas.builder import ProgramBuilder
from eshkol.atlas.operands import Condition, Register
from eshkol.atlas.program import LaunchConfig, Program
from eshkol.atlas.types import Type
from eshkol.backends.cpu import CpuBackend

TITLE = "rows, reductions and Fourier transforms"
LANE = Register(255)
F32 = Type.F32
TOTAL = 1 << 22  # elements of a matrix
BLOCKS = 4096  # of lanes, at most
REDUCED = 10_000_000
CHUNK = 250_000  # elements that a lane reduces


def _row_program(name: str, n: int) -> Program:
    """One lane for each row of n elements."""
    b = ProgramBuilder(name)
    y, x = (b.buffer(p, F32).address.at(LANE, 4 * n) for p in "yx")
    if name == "softmax":
        b.softmax(F32, y, x, n)
    else:
        b.layer_norm(F32, y, x, b.buffer("gamma", F32).address, b.buffer("beta", F32).address, n)
    return b.build()


def _reduction_program(method: str) -> Program:
    """Lanes reduce fixed chunks into partial results; when all have, the first reduces those."""
    b = ProgramBuilder(method)
    x, partials, out = (b.buffer(name, F32) for name in ("x", "partials", "out"))
    value, first, zero = b.reg(F32), b.pred(), b.constant(Type.U64, 0)
    getattr(b, method)(F32, value, x.address.at(LANE, 4 * CHUNK), CHUNK)
    b.stg(F32, partials.at(LANE), value)
    b.grid_sync()
    b.setcc(Condition.EQ, first, LANE, zero)
    with b.when(first):
        getattr(b, method)(F32, value, partials.address, REDUCED // CHUNK)
        b.stg(F32, out.at(0), value)
    return b.build()


def _normalized(x: np.ndarray, gamma: np.ndarray, beta: np.ndarray) -> np.ndarray:
    centred = x - x.mean(1, keepdims=True)
    return centred / np.sqrt(np.mean(centred * centred, 1, keepdims=True) + np.float32(1e-5)) * gamma + beta


def _softmax(x: np.ndarray) -> np.ndarray:
    weights = np.exp(x - x.max(1, keepdims=True))
    return weights / weights.sum(1, keepdims=True)


def _rows(name: str, n: int) -> Result:
    rng, backend, rows = np.random.default_rng(n), CpuBackend(), TOTAL // n
    x = rng.standard_normal((rows, n)).astype(np.float32)
    gamma, beta = (rng.standard_normal(n).astype(np.float32) for _ in range(2))
    arrays = {"x": x} if name == "softmax" else {"x": x, "gamma": gamma, "beta": beta}
    out = backend.allocate_typed(F32, TOTAL)
    params: dict[str, Any] = {"y": out, **{key: backend.array(value) for key, value in arrays.items()}}
    program, launch = _row_program(name, n), LaunchConfig.linear(rows, block=max(1, rows // BLOCKS))
    contestants: dict[str, Callable[[], object]] = {"eshkol cpu": lambda: backend.execute(program, launch, params)}
    plain = _softmax if name == "softmax" else _normalized
    contestants["NumPy"] = lambda: plain(*arrays.values())
    torch, jax = peers.torch(), peers.jax()
    if torch:
        tensors = [torch.from_numpy(a) for a in arrays.values()]
        ours = torch.nn.functional.softmax if name == "softmax" else torch.nn.functional.layer_norm
        more = (1,) if name == "softmax" else ((n,), *tensors[1:])
        contestants["PyTorch"] = lambda: ours(tensors[0], *more)
        if name == "softmax":
            place = torch.empty_like(tensors[0])
            contestants["PyTorch, in place"] = lambda: torch.softmax(tensors[0], 1, out=place)
    if jax:
        function = partial(jax.nn.softmax, axis=1) if name == "softmax" else _jax_norm
        contestants["JAX"] = peers.jitted(function, *arrays.values())
    contestants["eshkol cpu"]()
    np.testing.assert_allclose(out.read().reshape(rows, n), plain(*arrays.values()), rtol=1e-4, atol=1e-4)
    return race(f"{name}, {rows:,} rows of {n:,}", contestants, work=8.0 * TOTAL, unit="B", budget=0.6)


def _jax_norm(x: Any, gamma: Any, beta: Any) -> Any:
    numpy = peers.jax().numpy
    centred = x - x.mean(1, keepdims=True)
    return centred / numpy.sqrt(numpy.mean(centred * centred, 1, keepdims=True) + 1e-5) * gamma + beta


def _reduction(name: str, method: str) -> Result:
    backend, program = CpuBackend(), _reduction_program(method)
    x = np.random.default_rng(0).standard_normal(REDUCED).astype(np.float32)
    params = {"x": backend.array(x), "partials": backend.allocate_typed(F32, REDUCED // CHUNK),
              "out": backend.allocate_typed(F32, 1)}  # fmt: skip
    launch = LaunchConfig((REDUCED // CHUNK, 1, 1), (1, 1, 1))
    plain = getattr(np, name)
    contestants: dict[str, Callable[[], object]] = {
        "eshkol cpu": lambda: backend.execute(program, launch, params),
        "NumPy": lambda: plain(x),
    }
    torch, jax = peers.torch(), peers.jax()
    if torch:
        tensor = torch.from_numpy(x.copy())  # an array of its own: NumPy leaves part of x in the cache
        contestants["PyTorch"] = lambda: getattr(torch, name)(tensor)
    if jax:
        contestants["JAX"] = peers.jitted(getattr(jax.numpy, name), x)
    contestants["eshkol cpu"]()
    np.testing.assert_allclose(params["out"].read()[0], plain(x.astype(np.float64)), rtol=1e-3)
    return race(f"{name} of {REDUCED:,} f32", contestants, work=4.0 * REDUCED, unit="B")


def _transform(n: int) -> Result:
    backend, b = CpuBackend(), ProgramBuilder("fft")
    y, x = b.buffer("y", F32), b.buffer("x", F32)
    b.fft(F32, y.address, x.address, n)
    program, signal = b.build(), np.random.default_rng(n).standard_normal((n, 2)).astype(np.float32)
    complex_signal = signal.view(np.complex64).reshape(-1)
    params = {"x": backend.array(signal), "y": backend.allocate_typed(F32, 2 * n)}
    launch = LaunchConfig()
    contestants: dict[str, Callable[[], object]] = {
        "eshkol cpu": lambda: backend.execute(program, launch, params),
        "NumPy": lambda: np.fft.fft(complex_signal),
    }
    torch, jax = peers.torch(), peers.jax()
    if torch:
        tensor = torch.from_numpy(complex_signal)
        contestants["PyTorch"] = lambda: torch.fft.fft(tensor)
    if jax:
        contestants["JAX"] = peers.jitted(jax.numpy.fft.fft, complex_signal)
    contestants["eshkol cpu"]()
    found, wanted = params["y"].read().view(np.complex64), np.fft.fft(complex_signal.astype(np.complex128))
    np.testing.assert_allclose(found, wanted, atol=1e-5 * np.abs(wanted).max())
    return race(f"FFT of {n:,}", contestants, work=5.0 * n * np.log2(n), unit="flop")


def run() -> list[Result]:
    lengths = (16, 128, 1024, 8192, 65536)
    results = [_rows(name, n) for name in ("softmax", "layer norm") for n in lengths]
    results += [_reduction("sum", "reduce_add"), _reduction("max", "reduce_max")]
    return [*results, *(_transform(n) for n in (4096, 65536))]
