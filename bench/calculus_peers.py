"""The functions of bench/calculus in PyTorch and JAX, as their users write them; a fresh process measures one of them.

`python -m bench.calculus_peers jax rk4 FILE` prints lines of a key and seconds (median, least): first (the first
derivative, with its compilation) and derivative; the numbers of that derivative go to FILE. All is in float64. PyTorch
runs eagerly, and vectorised where nothing depends on the step before; JAX is compiled whole, with `scan` for the loop.
Before the first derivative there is one of another function, which wakes the library, as there is on our side.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from bench import peers

TURNS, BUDGET = 5, 0.25  # as in bench/calculus/prelude.esk
SLOW = 2.0  # seconds
SAMPLES, FEATURES = 1000, 10
BODIES, SOFT = 80, 1e-2
STEPS, H = 10000, 1e-3
PARTS, COUNT = 5, 1000

Derivative = Callable[[], Any]


def uniforms(start: int, count: int) -> np.ndarray:
    k = np.arange(start, start + count, dtype=np.int64)
    return np.asarray((48271 * k * k + 1103 * k + 12345) % 65537 / 65537.0)


class Arrays:
    """What the functions below need of a library, under one name for both."""

    def __init__(self, who: str) -> None:
        self.jax = who == "jax"
        if self.jax:
            library = peers.jax()
            library.config.update("jax_enable_x64", True)
            self.library, self.numpy, self.array = library, library.numpy, library.numpy.asarray
        else:
            self.library = self.numpy = peers.torch()
            self.array = lambda values: self.library.asarray(values, dtype=self.library.float64)

    def gradient(self, function: Callable[[Any], Any], point: np.ndarray) -> Derivative:
        x = self.array(point)
        if self.jax:
            compiled = self.library.jit(self.library.grad(function))
            return lambda: compiled(x).block_until_ready()
        x.requires_grad_()
        return lambda: self.library.autograd.grad(function(x), x)[0]


def rosenbrock(to: Arrays) -> Derivative:
    def term(a: Any, b: Any) -> Any:
        return (1.0 - a) ** 2 + 100.0 * (b - a**2) ** 2

    def with_scan(x: Any) -> Any:
        start = to.array(0.0)
        return to.library.lax.scan(lambda total, pair: (total + term(*pair), None), start, (x[:-1], x[1:]))[0]

    def with_loop(x: Any) -> Any:
        numbers = x.unbind()
        total = to.array(0.0)
        for a, b in pairwise(numbers):
            total = total + term(a, b)
        return total

    return to.gradient(with_scan if to.jax else with_loop, uniforms(0, 100000))


def vectors(to: Arrays) -> Derivative:
    """The same function by whole vectors."""

    def function(x: Any) -> Any:
        a, b = x[:-1], x[1:]
        return ((1.0 - a) ** 2 + 100.0 * (b - a**2) ** 2).sum()

    return to.gradient(function, uniforms(0, 100000))


def rk4(to: Arrays) -> Derivative:
    rates = np.array([0.55, 0.028, 0.024, 0.8])

    def with_scan(rates: Any) -> Any:
        alpha, beta, delta, gamma = rates

        def law(x: Any, y: Any) -> tuple[Any, Any]:
            return alpha * x - beta * x * y, delta * x * y - gamma * y

        def step(state: Any, _: None) -> tuple[Any, None]:
            x, y = state
            a, b = law(x, y)
            a2, b2 = law(x + 0.5 * H * a, y + 0.5 * H * b)
            a3, b3 = law(x + 0.5 * H * a2, y + 0.5 * H * b2)
            a4, b4 = law(x + H * a3, y + H * b3)
            return (x + H / 6 * (a + 2 * a2 + 2 * a3 + a4), y + H / 6 * (b + 2 * b2 + 2 * b3 + b4)), None

        (x, y), _ = to.library.lax.scan(step, (to.array(10.0), to.array(5.0)), None, length=STEPS)
        return (x - 20.0) ** 2 + (y - 10.0) ** 2

    def with_loop(rates: Any) -> Any:
        alpha, beta, delta, gamma = rates

        def law(state: Any) -> Any:
            x, y = state
            return to.library.stack((alpha * x - beta * x * y, delta * x * y - gamma * y))

        state = to.array([10.0, 5.0])
        for _ in range(STEPS):
            k1 = law(state)
            k2 = law(state + 0.5 * H * k1)
            k3 = law(state + 0.5 * H * k2)
            k4 = law(state + H * k3)
            state = state + H / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
        return ((state - to.array([20.0, 10.0])) ** 2).sum()

    return to.gradient(with_scan if to.jax else with_loop, rates)


def nbody(to: Arrays) -> Derivative:
    masses = 0.5 + uniforms(1000, BODIES)
    first, second = np.triu_indices(BODIES, 1)
    products = to.array(masses[first] * masses[second])
    if to.jax:
        pairs: tuple[Any, Any] = first, second
    else:
        pairs = to.library.from_numpy(first), to.library.from_numpy(second)

    def energy(positions: Any) -> Any:
        points = positions.reshape(BODIES, 3)
        between = points[pairs[1]] - points[pairs[0]]
        return -(products / to.numpy.sqrt((between**2).sum(1) + SOFT)).sum()

    return to.gradient(energy, 10.0 * uniforms(0, 3 * BODIES))


def logistic(to: Arrays) -> Derivative:
    rows = to.array(2.0 * uniforms(0, SAMPLES * FEATURES).reshape(SAMPLES, FEATURES) - 1.0)
    labels = to.array(np.where(uniforms(20000, SAMPLES) < 0.5, -1.0, 1.0))

    def loss(weights: Any) -> Any:
        return to.numpy.log(1.0 + to.numpy.exp(-labels * (rows @ weights))).mean()

    return to.gradient(loss, uniforms(30000, FEATURES) - 0.5)


def bundle(to: Arrays) -> Derivative:
    u = uniforms(0, 72).reshape(8, 9)
    cameras = u * [1, 1, 1, 1, 1, 1, 1, 1e-2, 1e-3] + [-0.5, -0.5, -0.5, 0, 0, -6, 500, 0, 0]
    points = uniforms(1000, 300).reshape(100, 3)
    which = np.arange(400)
    seen = 100.0 * np.stack((uniforms(2000, 400), uniforms(3000, 400)), 1)
    inputs = [to.array(values) for values in (cameras[which % 8], points[which // 4], seen)]
    xp = to.numpy

    def residual(camera: Any, point: Any, seen: Any) -> Any:
        rotation, translation, (focal, k1, k2) = camera[:3], camera[3:6], camera[6:]
        angle = xp.sqrt((rotation**2).sum())
        axis = rotation / angle
        cosine = xp.cos(angle)
        turned = (
            cosine * point + xp.sin(angle) * xp.linalg.cross(axis, point)
            + (1.0 - cosine) * (axis * point).sum() * axis
        )  # fmt: skip
        x, y, z = turned + translation
        image = xp.stack((-x / z, -y / z))
        r2 = (image**2).sum()
        return focal * (1.0 + r2 * (k1 + k2 * r2)) * image - seen

    def rows(found: tuple[Any, Any]) -> np.ndarray:
        """In the order in which the other side writes them: by the camera, then by the point, of each observation."""
        return np.concatenate([np.asarray(part).reshape(400, -1) for part in found], 1)

    if to.jax:
        compiled = to.library.jit(to.library.vmap(to.library.jacrev(residual, argnums=(0, 1))))
        return lambda: _Later(to.library.block_until_ready(compiled(*inputs)), rows)
    batched = to.library.func.vmap(to.library.func.jacrev(residual, argnums=(0, 1)))
    return lambda: _Later(batched(*inputs), rows)


class _Later:
    """A result whose numbers are put in order only when they are asked for."""

    def __init__(self, found: Any, order: Callable[[Any], np.ndarray]) -> None:
        self.found, self.order = found, order

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return self.order(self.found)


def mixture(to: Arrays) -> Derivative:
    points = to.array(4.0 * np.stack((uniforms(0, COUNT), uniforms(5000, COUNT)), 1))
    log_sum_exp = to.library.scipy.special.logsumexp if to.jax else to.library.logsumexp
    xp = to.numpy

    def likelihood(p: Any) -> Any:
        weights, means, widths = p[:PARTS], p[PARTS : 3 * PARTS].reshape(PARTS, 2), p[3 * PARTS :].reshape(PARTS, 2)
        scaled = (points[:, None, :] - means) * xp.exp(-widths)
        terms = weights - widths.sum(1) - 0.5 * (scaled**2).sum(2)
        return log_sum_exp(terms, 1).sum() - COUNT * log_sum_exp(weights, 0)

    return to.gradient(likelihood, 2.0 * uniforms(9000, 5 * PARTS))


FUNCTIONS = {f.__name__: f for f in (rosenbrock, vectors, rk4, nbody, logistic, bundle, mixture)}


def measure(call: Derivative, compiles: bool) -> tuple[float, list[float], Any]:
    """Seconds of the first call, those of later ones, and the derivative. What is slow is called seldom."""
    begin = time.perf_counter()
    found = call()
    first = time.perf_counter() - begin
    if first > SLOW and not compiles:
        return first, [first], found
    times: list[float] = []
    for _ in range(TURNS):
        call()  # wakes threads
        until = time.perf_counter() + BUDGET
        while True:
            begin = time.perf_counter()
            call()
            end = time.perf_counter()
            times.append(end - begin)
            if end > until:
                break
        if times[-1] > SLOW:
            break
    return first, times, found


def main(who: str, name: str, path: str) -> None:
    to = Arrays(who)
    to.gradient(lambda x: (x * x).sum(), np.ones(8))()
    first, times, found = measure(FUNCTIONS[name](to), compiles=who == "jax")
    print(f"first {first!r} {first!r}\nderivative {statistics.median(times)!r} {min(times)!r}")
    Path(path).write_text(" ".join(map(repr, np.asarray(found).ravel().tolist())) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
