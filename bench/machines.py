"""The same programs on every machine that is here, beside our own compiler's on the processor.

`python -m bench machines wasm opencl` chooses machines. Each program is a function under jit, on values that are where
it runs. What is counted is the processor's time of the whole process, all threads together: the host's part of a call,
and what devices compute that are the processor themselves. Machines are measured in turns, some calls of one and then
of the next, and the least time of a call counts; so other work on the machine disturbs little. `ESHKOL_SIMD=avx2` or
`sse4.2` gives the processor's own code narrower vectors, `--wall` counts time as it passes.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

import eshkol as ek
from bench import harness
from eshkol.backends import backend_class
from eshkol.nn import functional as F

TITLE = "machines beside the processor"
MACHINES = ("wasm", "opencl", "xla", "webgpu", "vulkan", "cuda")
TURNS, CALLS = 6, 4
SLOW = 0.5  # seconds of a call from which on two turns are enough


class Workload(NamedTuple):
    name: str
    function: Callable[..., Any]
    shapes: tuple[tuple[int, ...], ...]  # of arrays of float32


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


SQUARE = ((1024, 1024),)
WORKLOADS = (
    Workload("x · x + x, 1024²", lambda x: x * x + x, SQUARE),
    Workload("exp, 1024²", ek.exp, SQUARE),
    Workload("tanh, 1024²", ek.tanh, SQUARE),
    Workload("chain of elements, 1024²", chain, SQUARE),
    Workload("sums of rows, 1024²", lambda x: x.sum(axis=1), SQUARE),
    Workload("sums of columns, 1024²", lambda x: x.sum(axis=0), SQUARE),
    Workload("softmax of rows, 1024²", lambda x: ek.softmax(x, axis=1), SQUARE),
    Workload("product, 256²", lambda x, y: x @ y, ((256, 256), (256, 256))),
    Workload("product, 512²", lambda x, y: x @ y, ((512, 512), (512, 512))),
    Workload("convolution, 8 × 16 × 28², 3²", F.conv2d, ((8, 16, 28, 28), (32, 16, 3, 3))),
    Workload("step of an MLP, 128 × 256 × 10", learned, ((256, 256), (256,), (256, 10), (128, 256), (128, 10))),
    Workload("scan, 200 × 32 × 64", stepped, ((32, 64), (200, 32, 64), (64, 64))),
)


class Run:
    """A workload on a device; `first` is what its first call took, tracing and compiling included."""

    def __init__(self, workload: Workload, device: str) -> None:
        rng = np.random.default_rng(0)
        with ek.device(device):
            self.inputs = [ek.tensor(rng.standard_normal(shape).astype(np.float32)) for shape in workload.shapes]
            self.function = ek.jit(workload.function)
            began = harness.clock()
            self.call()
            self.first = self.best = harness.clock() - began

    def call(self) -> None:
        """Compute it, to the end."""
        result = self.function(*self.inputs)
        for value in result if isinstance(result, tuple) else (result,):
            data = value._node.data
            if hasattr(data, "buffer"):
                found = data.buffer()
                wait = found.wait if hasattr(found, "wait") else found.backend.synchronize
                wait()

    def turn(self) -> None:
        for _ in range(CALLS if self.best < SLOW else 1):
            began = harness.clock()
            self.call()
            self.best = min(self.best, harness.clock() - began)


def compared(workload: Workload, machines: Sequence[str]) -> dict[str, Run]:
    """The workload on each machine, measured in turns."""
    runs = {machine: Run(workload, machine) for machine in machines}
    for turn in range(TURNS):
        for run in runs.values():
            if turn < 2 or run.best < SLOW:
                run.turn()
    return runs


def main(words: list[str]) -> int:
    wall = "--wall" in words
    harness.clock = time.perf_counter if wall else time.process_time
    asked = [word for word in words if word != "--wall"]
    if unknown := [word for word in asked if word not in MACHINES]:
        print(f"no machine '{unknown[0]}'; there are {', '.join(MACHINES)}, and --wall", file=sys.stderr)
        return 2
    machines = ["cpu"]
    for name in asked or MACHINES:
        reason = backend_class(name).unavailable()
        if reason is None:
            machines.append(name)
        else:
            print(f"{name}: {reason}")
    for name in machines:  # what opens a machine is not a program's
        with ek.device(name):
            (ek.ones(3) + 1).numpy()
    print(f"milliseconds {'as they pass' if wall else 'of the processor'}, and how many times the CPU backend's")
    print(f"{'':34}" + "".join(f"{name:>{10 if k == 0 else 18}}" for k, name in enumerate(machines)))
    results = []
    for workload in WORKLOADS:
        cpu, *others = found = compared(workload, machines).values()
        row = f"{1e3 * cpu.best:10.2f}" + "".join(f"{1e3 * r.best:10.2f}{r.best / cpu.best:7.1f}×" for r in others)
        print(f"{workload.name:34}{row}", flush=True)
        seconds = {name: run.best for name, run in zip(machines, found, strict=True)}
        results.append(harness.Result(workload.name, 1, "call", seconds))
    harness.record("machines", TITLE, results)
    return 0
