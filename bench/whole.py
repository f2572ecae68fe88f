"""Our own compiler and XLA on the same programs: `python -m bench.whole`, where jaxlib is installed.

Each program is a function under jit, on values that are where it runs. The first call traces and compiles; what comes
after is measured in turns, a batch of calls on one machine and then on the other, and the least time of a call counts.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import eshkol as ek

DEVICES = ("cpu", "xla")
TURNS, SECONDS = 7, 0.15


class Workload(NamedTuple):
    name: str
    function: Callable[..., Any]
    arrays: Callable[[np.random.Generator], list[Any]]


def _normal(*shapes: tuple[int, ...]) -> Callable[[np.random.Generator], list[Any]]:
    return lambda rng: [rng.standard_normal(shape).astype(np.float32) for shape in shapes]


def chain(x: Any) -> Any:
    return ek.tanh(x * 1.5 + 0.5) * ek.exp(-x * x) + ek.sqrt(ek.abs(x))


def learned(w: Any, b: Any, v: Any, x: Any, y: Any) -> Any:
    """A step of gradient descent of two layers."""

    def loss(w: Any, b: Any, v: Any) -> Any:
        return ((ek.relu(x @ w + b) @ v - y) ** 2).mean()

    value, found = ek.value_and_grad(loss, argnums=(0, 1, 2))(w, b, v)
    return value, *(p - 0.01 * g for p, g in zip((w, b, v), found, strict=True))


def stepped(state: Any, inputs: Any, w: Any) -> Any:
    return ek.scan(lambda c, x: (ek.tanh(c @ w + x), c.sum()), state, inputs)


WORKLOADS = (
    Workload("chain of elements, 1024²", chain, _normal((1024, 1024))),
    Workload("softmax of rows, 1024²", lambda x: ek.softmax(x, axis=1), _normal((1024, 1024))),
    Workload("product, 512²", lambda x, y: x @ y, _normal((512, 512), (512, 512))),
    Workload("step of an MLP, 128 × 256 × 10", learned, _normal((256, 256), (256,), (256, 10), (128, 256), (128, 10))),
    Workload("scan, 200 × 32 × 64", stepped, _normal((32, 64), (200, 32, 64), (64, 64))),
)


def _finish(result: Any) -> None:
    """Wait until all of it is computed."""
    for value in result if isinstance(result, tuple) else (result,):
        data = value._node.data
        if hasattr(data, "buffer"):
            data.buffer().wait()


class Run:
    """A workload on a device."""

    def __init__(self, workload: Workload, device: str) -> None:
        with ek.device(device):
            self.inputs = [ek.tensor(a) for a in workload.arrays(np.random.default_rng(0))]
            self.function = ek.jit(workload.function)
            began = time.perf_counter()
            self.call()
            self.first = time.perf_counter() - began
        self.best = float("inf")

    def call(self) -> None:
        _finish(self.function(*self.inputs))

    def turn(self) -> None:
        end = time.perf_counter() + SECONDS
        while (began := time.perf_counter()) < end:
            self.call()
            self.best = min(self.best, time.perf_counter() - began)


def main() -> None:
    for device in DEVICES:  # what opens a machine is not a program's
        with ek.device(device):
            (ek.ones(3) + 1).numpy()
    print(f"{'':32}{'first call, s':>18}{'then, ms':>20}{'xla / cpu':>12}")
    print(f"{'':32}{'cpu':>9}{'xla':>9}{'cpu':>10}{'xla':>10}")
    for workload in WORKLOADS:
        runs = [Run(workload, device) for device in DEVICES]
        for _ in range(TURNS):
            for run in runs:
                run.turn()
        cpu, xla = runs
        times = f"{1e3 * cpu.best:10.3f}{1e3 * xla.best:10.3f}{xla.best / cpu.best:12.2f}"
        print(f"{workload.name:32}{cpu.first:9.3f}{xla.first:9.3f}{times}", flush=True)


if __name__ == "__main__":
    main()
