"""Workloads of arrays: elementwise chains, option prices, reductions, k-means, and what small tensors cost.

Where the libraries agree on names a function is written once, over the module that holds the names.
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np
from scipy.special import erf

import eshkol as ek
from bench import peers
from bench.models import Code
from bench.workloads.contest import JAX, Contestant, Workload, functions, jax_function, pullbacks

LARGE, MEDIUM, OPTIONS = 10_000_000, 100_000, 1_000_000
POINTS, FEATURES, CENTRES = 20_000, 32, 64
SIDE = 4096  # of the matrix that is reduced
SMALL = 16  # elements of a small tensor


def _floats(rng: np.random.Generator, *shape: int) -> np.ndarray:
    return rng.standard_normal(shape).astype(np.float32)


def _everywhere(inputs: Any, function: Any, jit: bool = True) -> dict[str, Contestant]:
    """A function written over a module, in every library."""
    found = {"numpy": np, "torch": peers.torch(), "jax": peers.jax() and peers.jax().numpy}
    others = {name: partial(function, module) for name, module in found.items() if module}
    return functions(inputs, partial(function, ek), **others, jit=jit)


# --- chains ---------------------------------------------------------------------------------------


def _chain(lib: Any, x: Any, y: Any) -> Any:
    t = x * y + x
    u = (t - y) * 0.5
    return (lib.abs(u) + t * t) / (1 + u * u) - y


def _transcendental(lib: Any, x: Any, y: Any) -> Any:
    return lib.tanh(x) * lib.exp(-y * y) + lib.sin(x * y) - lib.log1p(lib.abs(y))


def _pair(n: int, function: Any, rng: np.random.Generator) -> dict[str, Contestant]:
    return _everywhere((_floats(rng, n), _floats(rng, n)), function)


# --- Black-Scholes --------------------------------------------------------------------------------

INTEREST = 0.03


def _price(words: Any, spot: Any, years: Any, volatility: Any, strike: Any) -> Any:
    """Of a call; the words are four functions of a library."""
    log, sqrt, exp, erf = words
    spread = volatility * sqrt(years)
    d1 = (log(spot / strike) + (INTEREST + 0.5 * volatility * volatility) * years) / spread
    normal: Code = lambda x: 0.5 * (1 + erf(x * math.sqrt(0.5)))
    return spot * normal(d1) - strike * exp(-INTEREST * years) * normal(d1 - spread)


def _numpy_greeks(primals: Any, cotangent: Any, constants: Any) -> Any:
    """The closed forms of delta, theta (by the years that are left) and vega."""
    (spot, years, volatility), (strike,) = primals, constants
    root = np.sqrt(years)
    spread = volatility * root
    d1 = (np.log(spot / strike) + (INTEREST + 0.5 * volatility * volatility) * years) / spread
    first, second = (0.5 * (1 + erf(d * np.float32(math.sqrt(0.5)))) for d in (d1, d1 - spread))
    density = np.exp(-0.5 * d1 * d1) * np.float32(1 / math.sqrt(2 * math.pi))
    discounted = strike * np.exp(-INTEREST * years) * second
    theta = spot * density * volatility / (2 * root) + INTEREST * discounted
    greeks = (first, theta, spot * density * root)
    return spot * first - discounted, tuple(g * cotangent for g in greeks)


def _black_scholes(rng: np.random.Generator) -> dict[str, Contestant]:
    uniform: Code = lambda low, high: rng.uniform(low, high, OPTIONS).astype(np.float32)
    spot, strike, years, volatility = uniform(80, 120), uniform(80, 120), uniform(0.2, 2), uniform(0.1, 0.5)
    names: dict[str, Any] = {"eshkol": (ek.log, ek.sqrt, ek.exp, ek.erf)}
    if torch := peers.torch():
        names["torch"] = (torch.log, torch.sqrt, torch.exp, torch.erf)
    if jax := peers.jax():
        names["jax"] = (jax.numpy.log, jax.numpy.sqrt, jax.numpy.exp, jax.scipy.special.erf)
    prices = {who: partial(_price, words) for who, words in names.items()}
    ones = np.ones(OPTIONS, np.float32)
    return pullbacks((spot, years, volatility), ones, (strike,), numpy=_numpy_greeks, **prices)


# --- reductions -----------------------------------------------------------------------------------


def _reduction(axis: int | None, rng: np.random.Generator) -> dict[str, Contestant]:
    def reduced(lib: Any, x: Any) -> Any:
        values = x * x - 0.5 * x
        return lib.sum(values) if axis is None else lib.sum(values, axis)

    return _everywhere((_floats(rng, SIDE, SIDE),), reduced)


# --- k-means --------------------------------------------------------------------------------------


def _eshkol_centres(points: Any, centres: Any) -> Any:
    nearest = ek.argmin((centres * centres).sum(1) - 2 * points @ centres.T, 1)
    sums = ek.index_add(ek.zeros(centres.shape), 0, nearest, points)
    counts = ek.bincount(nearest, length=CENTRES)
    return sums / ek.maximum(counts, 1)[:, None]


def _numpy_centres(points: Any, centres: Any) -> Any:
    nearest = np.argmin((centres * centres).sum(1) - 2 * points @ centres.T, 1)
    one_hot = (nearest == np.arange(CENTRES)[:, None]).astype(np.float32)
    return one_hot @ points / np.maximum(one_hot.sum(1), 1)[:, None]


def _torch_centres(torch: Any, points: Any, centres: Any) -> Any:
    nearest = torch.argmin((centres * centres).sum(1) - 2 * points @ centres.T, 1)
    sums = torch.zeros_like(centres).index_add(0, nearest, points)
    counts = torch.zeros(CENTRES).index_add(0, nearest, torch.ones(POINTS))
    return sums / counts.clamp(min=1)[:, None]


def _jax_centres(sums_of: Any, points: Any, centres: Any) -> Any:
    jnp = peers.jax().numpy
    nearest = jnp.argmin((centres * centres).sum(1) - 2 * points @ centres.T, 1)
    sums, counts = sums_of(nearest, points)
    return sums / jnp.maximum(counts, 1)[:, None]


def _jax_segments(nearest: Any, points: Any) -> Any:
    jax = peers.jax()
    ones = jax.numpy.ones(POINTS, jax.numpy.float32)
    return tuple(jax.ops.segment_sum(x, nearest, CENTRES) for x in (points, ones))


def _jax_one_hot(nearest: Any, points: Any) -> Any:
    one_hot = peers.jax().nn.one_hot(nearest, CENTRES)
    return one_hot.T @ points, one_hot.sum(0)


def _k_means(rng: np.random.Generator) -> dict[str, Contestant]:
    points = _floats(rng, POINTS, FEATURES)
    inputs = points, points[:CENTRES].copy()
    torch, jax = partial(_torch_centres, peers.torch()), partial(_jax_centres, _jax_segments)
    found = functions(inputs, _eshkol_centres, _numpy_centres, torch, jax)
    if peers.jax():
        found[f"{JAX}, one-hot"] = jax_function(partial(_jax_centres, _jax_one_hot), inputs)
    return found


# --- small tensors --------------------------------------------------------------------------------


def _small(lib: Any, x: Any, y: Any) -> Any:
    """Twenty operations that do next to nothing."""
    for _ in range(4):
        x = lib.tanh(x * y + 0.5)
        y = lib.maximum(y - x * 0.1, x)
    return x + y


def _overhead(jit: bool, rng: np.random.Generator) -> dict[str, Contestant]:
    return _everywhere((_floats(rng, SMALL), _floats(rng, SMALL)), _small, jit)


WORKLOADS = (
    Workload("elementwise chain, 10⁷", partial(_pair, LARGE, _chain), bytes=12 * LARGE),
    Workload("elementwise chain, 10⁵", partial(_pair, MEDIUM, _chain), bytes=12 * MEDIUM),
    Workload("tanh, exp, sin, log1p of 10⁶", partial(_pair, OPTIONS, _transcendental), bytes=12 * OPTIONS),
    Workload("Black-Scholes and greeks, 10⁶", _black_scholes, bytes=36 * OPTIONS, tolerance=1e-3),
    Workload("sum over axis 0, 4096×4096", partial(_reduction, 0), bytes=4 * SIDE * SIDE),
    Workload("sum over axis 1, 4096×4096", partial(_reduction, 1), bytes=4 * SIDE * SIDE),
    Workload("sum over all, 4096×4096", partial(_reduction, None), bytes=4 * SIDE * SIDE),
    Workload("k-means step, 20,000×32, 64 centres", _k_means, flops=2.0 * POINTS * CENTRES * FEATURES, tolerance=1e-3),
    Workload("small tensors, 20 ops, jit", partial(_overhead, True)),
    Workload("small tensors, 20 ops, eager", partial(_overhead, False)),
)
