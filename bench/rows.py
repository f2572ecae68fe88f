"""Rows beside NumPy, PyTorch and JAX, as tensors compute them: softmax, layer norm, reductions, Fourier transforms.

What is timed is what ops emit: a compiled function of the op, given a tensor that is there.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

import eshkol as ek
from bench import peers
from bench.harness import Result, race

TITLE = "rows, reductions and Fourier transforms"
TOTAL = 1 << 22  # elements of a matrix
REDUCED = 10_000_000


def _ours(function: Callable[..., Any], *arrays: np.ndarray) -> Callable[[], np.ndarray]:
    """A compiled function of tensors, whose result is computed and looked at."""
    compiled, tensors = ek.jit(function), [ek.tensor(a) for a in arrays]
    return lambda: np.asarray(compiled(*tensors).numpy())


def _normalized(x: np.ndarray, gamma: np.ndarray, beta: np.ndarray) -> np.ndarray:
    centred = x - x.mean(1, keepdims=True)
    return centred / np.sqrt(np.mean(centred * centred, 1, keepdims=True) + np.float32(1e-5)) * gamma + beta


def _softmax(x: np.ndarray) -> np.ndarray:
    weights = np.exp(x - x.max(1, keepdims=True))
    return weights / weights.sum(1, keepdims=True)


def _rows(name: str, n: int) -> Result:
    rng, rows = np.random.default_rng(n), TOTAL // n
    x = rng.standard_normal((rows, n)).astype(np.float32)
    gamma, beta = (rng.standard_normal(n).astype(np.float32) for _ in range(2))
    arrays = [x] if name == "softmax" else [x, gamma, beta]
    op = ek.softmax if name == "softmax" else lambda x, gamma, beta: ek.layer_norm(x, n, gamma, beta)
    plain = _softmax if name == "softmax" else _normalized
    contestants: dict[str, Callable[[], object]] = {"eshkol": _ours(op, *arrays), "NumPy": lambda: plain(*arrays)}
    torch, jax = peers.torch(), peers.jax()
    if torch:
        tensors = [torch.from_numpy(a) for a in arrays]
        theirs = torch.nn.functional.softmax if name == "softmax" else torch.nn.functional.layer_norm
        more = (1,) if name == "softmax" else ((n,), *tensors[1:])
        contestants["PyTorch"] = lambda: theirs(tensors[0], *more)
    if jax:
        function = partial(jax.nn.softmax, axis=1) if name == "softmax" else _jax_norm
        contestants["JAX"] = peers.jitted(function, *arrays)
    np.testing.assert_allclose(contestants["eshkol"](), plain(*arrays), rtol=1e-4, atol=1e-4)
    return race(f"{name}, {rows:,} rows of {n:,}", contestants, work=8.0 * TOTAL, unit="B", budget=0.6)


def _jax_norm(x: Any, gamma: Any, beta: Any) -> Any:
    numpy = peers.jax().numpy
    centred = x - x.mean(1, keepdims=True)
    return centred / numpy.sqrt(numpy.mean(centred * centred, 1, keepdims=True) + 1e-5) * gamma + beta


def _reduction(name: str) -> Result:
    x = np.random.default_rng(0).standard_normal(REDUCED).astype(np.float32)
    plain = getattr(np, name)
    contestants: dict[str, Callable[[], object]] = {"eshkol": _ours(getattr(ek, name), x), "NumPy": lambda: plain(x)}
    torch, jax = peers.torch(), peers.jax()
    if torch:
        tensor = torch.from_numpy(x.copy())  # an array of its own: NumPy leaves part of x in the cache
        contestants["PyTorch"] = lambda: getattr(torch, name)(tensor)
    if jax:
        contestants["JAX"] = peers.jitted(getattr(jax.numpy, name), x)
    np.testing.assert_allclose(contestants["eshkol"](), plain(x.astype(np.float64)), rtol=1e-3)
    return race(f"{name} of {REDUCED:,} f32", contestants, work=4.0 * REDUCED, unit="B")


def _transform(name: str, *shape: int) -> Result:
    rng = np.random.default_rng(shape[-1])
    x = (rng.standard_normal(shape) + 1j * rng.standard_normal(shape)).astype(np.complex64)
    plain = getattr(np.fft, name)
    contestants: dict[str, Callable[[], object]] = {
        "eshkol": _ours(getattr(ek.fft, name), x),
        "NumPy": lambda: plain(x),
    }
    torch, jax = peers.torch(), peers.jax()
    if torch:
        tensor = torch.from_numpy(x)
        contestants["PyTorch"] = lambda: getattr(torch.fft, name)(tensor)
    if jax:
        contestants["JAX"] = peers.jitted(getattr(jax.numpy.fft, name), x)
    wanted = plain(x.astype(np.complex128))
    np.testing.assert_allclose(contestants["eshkol"](), wanted, atol=1e-5 * np.abs(wanted).max())
    points = x.size if name == "fft2" else shape[-1]
    shown = " × ".join(f"{extent:,}" for extent in shape)
    return race(f"{name} of {shown} complex64", contestants, work=5.0 * x.size * np.log2(points), unit="flop")


def run() -> list[Result]:
    lengths = (16, 128, 1024, 8192, 65536)
    results = [_rows(name, n) for name in ("softmax", "layer norm") for n in lengths]
    results += [_reduction("sum"), _reduction("max")]
    transforms = [("fft", 4096), ("fft", 1 << 20), ("fft", 256, 1024), ("fft", 1009), ("fft2", 512, 512)]
    return [*results, *(_transform(name, *shape) for name, *shape in transforms)]
