"""A fresh process that trains one model in one library and says, as a line of JSON, how long it took and what it held.

`python -m bench.child '{"who": "eshkol", "model": "gpt", …}'`; the keys are the fields of `Order`.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from bench import libraries, peers
from bench.models import EXAMPLES, GPT, SIZES, TorchAdam, adam, first_state, mapped, mlp_batch, mlp_loss, mlp_params

DEEP, DEEP_EXAMPLES = (1024,) * 12 + (10,), 512  # a network of 12 layers
SETTLED = 3  # steps before memory is looked at: by then all that is kept is there


@dataclass(frozen=True)
class Order:
    """What a process is to do."""

    who: str  # eshkol, torch (as it is), compiled (torch.compile) or jax
    model: str  # mlp, deep, gpt, layers (a GPT of little work, whose layers are counted) or scan (over those layers)
    layers: int = 0
    steps: int = 1  # after the first
    started: float = 0.0  # when the process was asked for, by time.time()
    busy: bool = False  # all times are CPU times


@dataclass(frozen=True)
class Report:
    """What it came to: seconds and bytes."""

    imports: float  # until the library was there, from the start of the process
    first: float  # the first step
    start: float  # until the first step was done, from the start of the process
    step: float  # the median of the later ones
    before: int  # resident before the first step, with parameters and batch
    peak: int  # most that was resident during later steps
    settled: int  # resident after the first tenth of the steps
    after: int  # resident in the end


def resident(what: str = "VmRSS") -> int:
    """Bytes of this process in memory now; "VmHWM": at most, since `forget_peak`."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(what):
            return int(line.split()[1]) * 1024
    raise RuntimeError(f"/proc/self/status has no {what}")


def forget_peak() -> None:
    """Count the peak of resident memory from now on."""
    Path("/proc/self/clear_refs").write_text("5")


def model(order: Order) -> tuple[Any, Any, Any]:
    """Parameters, a batch, and the loss as a function (words, parameters, *batch)."""
    rng = np.random.default_rng(0)
    if order.model in ("mlp", "deep"):
        sizes, examples = (SIZES, EXAMPLES) if order.model == "mlp" else (DEEP, DEEP_EXAMPLES)
        return mlp_params(rng, sizes), mlp_batch(rng, sizes, examples), mlp_loss
    shape = GPT() if order.model == "gpt" else GPT(layers=order.layers, dim=32, heads=2, length=16, batch=2)
    return shape.params(rng), shape.tokens(rng), shape.scanned if order.model == "scan" else shape.loss


def steps_of(order: Order, words: Any) -> Callable[[], object]:
    """A training step, compiled at its first call, its state carried along."""
    params, batch, loss = model(order)
    function = partial(loss, words)
    if order.who in ("torch", "compiled"):
        torch = peers.torch()
        return TorchAdam(
            torch.compile(function, dynamic=False) if order.who == "compiled" else function, params, batch
        ).step
    if order.model == "scan":
        params = {**params, "blocks": _stacked(params["blocks"])}
    if order.who == "jax":
        jax = peers.jax()
        names, value_and_grad, tree_map, sqrt = jax, jax.value_and_grad, jax.tree.map, jax.numpy.sqrt
        put, jit, wait = jax.numpy.asarray, partial(jax.jit, donate_argnums=0), jax.block_until_ready
    else:
        names = words.names
        value_and_grad, tree_map, sqrt = names.value_and_grad, names.tree_map, names.sqrt
        put, jit, wait = names.tensor, names.jit, lambda results: results[0].realize() and results
    differentiated = value_and_grad(function)

    def advance(state: Any, *batch: Any) -> Any:
        value, gradient = differentiated(state[0], *batch)
        return value, adam(tree_map, sqrt, state, gradient)

    jitted, given, states = jit(advance), mapped(put, batch), [mapped(put, first_state(params))]

    def step() -> object:
        value, states[0] = wait(jitted(states[0], *given))
        return value

    return step


def _stacked(blocks: list[Any]) -> Any:
    """One structure of layers for all: their arrays with an axis of layers in front."""
    first = blocks[0]
    if isinstance(first, dict):
        return {key: _stacked([b[key] for b in blocks]) for key in first}
    return np.stack(blocks)


def main(order: Order) -> Report:
    """Do it."""
    words = libraries.named(order.who)
    imports = time.process_time() if order.busy else time.time() - order.started
    step = steps_of(order, words)
    before = resident()
    clock = time.process_time if order.busy else time.perf_counter
    begun = clock()
    step()
    first, start = clock() - begun, time.process_time() if order.busy else time.time() - order.started
    times, settled = [], 0
    for n in range(order.steps):
        if n == SETTLED:
            forget_peak()
        if n == order.steps // 10:
            settled = resident()
        begun = clock()
        step()
        times.append(clock() - begun)
    return Report(imports, first, start, float(np.median(times)), before, resident("VmHWM"), settled, resident())


if __name__ == "__main__":
    print(json.dumps(asdict(main(Order(**json.loads(sys.argv[1]))))))
