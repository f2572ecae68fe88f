"""Workloads and who competes in them: a function in the words of each library becomes a contestant.

Comes in: NumPy arrays in structures (tuples, lists, dicts) and a function for each library, given by name: `eshkol`,
`numpy`, `torch`, `jax`. Goes out: contestants, `torch` twice, as it is and compiled; those whose library is not
installed are left out. There are three kinds: `functions` of their inputs, `pullbacks` (a result and the gradients
for a given cotangent) and `training` (a loss, its gradient and an Adam step, the state carried from call to call).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import eshkol as ek
from bench import peers
from bench.models import (
    DECAY,
    DECAY_SQUARES,
    EPSILON,
    RATE,
    Code,
    TorchAdam,
    Tree,
    adam,
    first_state,
    leaves,
    mapped,
    zipped,
)

OURS, NUMPY, TORCH, COMPILED, JAX = "eshkol", "NumPy", "PyTorch", "torch.compile", "JAX"


@dataclass(frozen=True)
class Contestant:
    """Who can be called, timed and checked."""

    call: Callable[[], Any]  # gives results that are computed
    check: Callable[[], list[np.ndarray]]  # a call whose results all contestants must agree on
    reset: Callable[[], object] | None = None  # back to the first state, where calls carry one


@dataclass(frozen=True)
class Workload:
    """One row: what is computed, and the least that any algorithm must move and compute."""

    name: str
    make: Callable[[np.random.Generator], dict[str, Contestant]]
    bytes: float = 0.0  # inputs read once and results written once
    flops: float = 0.0  # of matrix products and convolutions; the rest is free beside them
    tolerance: float = 1e-4  # between contestants, as a fraction of the largest element of a result


# --- structures -----------------------------------------------------------------------------------


def arrays(results: Tree) -> list[np.ndarray]:
    """Results of any library as NumPy arrays of their own."""
    return [np.array(x.detach() if hasattr(x, "detach") else x) for x in leaves(results)]


def _tensors(tree: Tree) -> Tree:
    return mapped(ek.tensor, tree)


def _torch_tensors(tree: Tree, wanted: bool = False) -> Tree:
    torch = peers.torch()
    return mapped(lambda a: torch.from_numpy(np.array(a)).requires_grad_(wanted), tree)


def _jax_arrays(tree: Tree) -> Tree:
    return mapped(peers.jax().numpy.asarray, tree)


def _computed(results: Tree) -> Tree:
    """Our results, which are there when this returns; what a function under jit gives is there already."""
    for tensor in leaves(results):
        tensor.realize()
    return results


def compiled(function: Code) -> Code:
    """torch.compile for these shapes alone; a benchmark's functions share no traces."""
    torch = peers.torch()
    torch._dynamo.reset()
    torch._logging.set_logs(dynamo=logging.ERROR)
    found: Code = torch.compile(function, dynamic=False)
    return found


def _plain(call: Callable[[], Any]) -> Contestant:
    return Contestant(call, lambda: arrays(call()))


# --- three kinds of contests ----------------------------------------------------------------------


def functions(
    inputs: Sequence[Tree],
    eshkol: Code,
    numpy: Code | None = None,
    torch: Code | None = None,
    jax: Code | None = None,
    jit: bool = True,
) -> dict[str, Contestant]:
    """Functions of inputs. Without `jit` every library runs operation by operation, and nothing is compiled."""
    found: dict[str, Contestant] = {}
    ours, step = _tensors(inputs), ek.jit(eshkol) if jit else eshkol
    found[OURS] = _plain(lambda: step(*ours) if jit else _computed(step(*ours)))
    if numpy is not None:
        found[NUMPY] = _plain(lambda: numpy(*inputs))
    if torch is not None and peers.torch():
        tensors = _torch_tensors(inputs)
        found[TORCH] = _plain(lambda: torch(*tensors))
        if jit:
            fast = compiled(torch)
            found[COMPILED] = _plain(lambda: fast(*tensors))
    if jax is not None and peers.jax():
        found[JAX] = jax_function(jax, inputs, jit)
    return found


def jax_function(function: Code, inputs: Sequence[Tree], jit: bool = True) -> Contestant:
    """A function of JAX's arrays."""
    module, values = peers.jax(), _jax_arrays(inputs)
    jitted = module.jit(function) if jit else function
    return _plain(lambda: module.block_until_ready(jitted(*values)))


def pullbacks(
    primals: Sequence[Tree],
    cotangent: np.ndarray,
    constants: Sequence[Tree] = (),
    *,
    eshkol: Code,
    numpy: Code | None = None,
    torch: Code | None = None,
    jax: Code | None = None,
) -> dict[str, Contestant]:
    """A function of primals and constants: its result, and the cotangents of the primals for that of the result.

    The function of NumPy takes (primals, cotangent, constants) and gives (result, cotangents) itself.
    """
    found: dict[str, Contestant] = {}

    def step(vjp: Code, function: Code) -> Code:
        def both(primals: Any, cotangent: Any, constants: Any) -> Any:
            value, pull = vjp(lambda *p: function(*p, *constants), *primals)
            return value, pull(cotangent)

        return both

    given = tuple(primals), cotangent, tuple(constants)
    ours, ours_step = _tensors(given), ek.jit(step(ek.vjp, eshkol))
    found[OURS] = _plain(lambda: ours_step(*ours))
    if numpy is not None:
        found[NUMPY] = _plain(lambda: numpy(*given))
    if torch is not None and peers.torch():
        found[TORCH] = torch_pullback(torch, *given)
        found[COMPILED] = torch_pullback(compiled(torch), *given)
    if jax is not None and peers.jax():
        found[JAX] = jax_function(step(peers.jax().vjp, jax), given)
    return found


def torch_pullback(function: Code, primals: Tree, cotangent: np.ndarray, constants: Tree) -> Contestant:
    """The result and gradients of a function of PyTorch tensors."""
    torch = peers.torch()
    inputs, (seed, others) = _torch_tensors(primals, True), _torch_tensors((cotangent, constants))
    wanted = list(leaves(inputs))

    def both() -> Any:
        value = function(*inputs, *others)
        return value, torch.autograd.grad(value, wanted, seed)

    return _plain(both)


def training(
    params: Tree, batch: Sequence[Tree], *, eshkol: Code, numpy: Code | None = None, torch: Code | None = None,
    jax: Code | None = None,
) -> dict[str, Contestant]:  # fmt: skip
    """Steps of Adam on functions (parameters, *batch) → loss; NumPy's gives (loss, gradient).

    Contestants agree on the loss and on the means of the gradients. (New parameters say less: where a gradient is
    nothing but rounding, Adam still makes a whole step of it.)
    """
    found: dict[str, Contestant] = {}

    def step(value_and_grad: Code, tree_map: Code, sqrt: Code) -> Code:
        def advance(state: Any, *batch: Any) -> Any:
            loss, gradient = value_and_grad(state[0], *batch)
            return loss, adam(tree_map, sqrt, state, gradient)

        return advance

    ours = ek.jit(step(ek.value_and_grad(eshkol), ek.tree_map, ek.sqrt), donate=0)
    found[OURS] = _carried(ours, params, batch, _tensors)
    if numpy is not None:
        found[NUMPY] = _carried(step(numpy, zipped, np.sqrt), params, batch, lambda t: mapped(np.array, t))
    if torch is not None and peers.torch():
        found[TORCH] = _torch_training(torch, params, batch)
        found[COMPILED] = _torch_training(compiled(torch), params, batch)
    if jax is not None and peers.jax():
        module = peers.jax()
        advance = step(module.value_and_grad(jax), module.tree.map, module.numpy.sqrt)
        jitted = module.jit(advance, donate_argnums=0)
        found[JAX] = _carried(jitted, params, batch, _jax_arrays, module.block_until_ready)
    return found


def updates(params: Tree, gradient: Tree) -> dict[str, Contestant]:
    """Steps of Adam for a gradient that is given. Contestants agree on the whole state."""

    def step(tree_map: Code, sqrt: Code) -> Code:
        def advance(state: Any, gradient: Any) -> Any:
            state = adam(tree_map, sqrt, state, gradient)
            return state[3], state

        return advance

    whole = lambda state: state[:3]
    copies = lambda tree: mapped(np.array, tree)
    found = {
        OURS: _carried(ek.jit(step(ek.tree_map, ek.sqrt), donate=0), params, (gradient,), _tensors, compared=whole),
        NUMPY: _carried(step(zipped, np.sqrt), params, (gradient,), copies, compared=whole),
    }
    if peers.torch():
        found[TORCH] = _torch_updates(params, gradient, False, fused=True)
        found[f"{TORCH}, foreach"] = _torch_updates(params, gradient, False, foreach=True)
        found[COMPILED] = _torch_updates(params, gradient, True, foreach=True)
    if peers.jax():
        module = peers.jax()
        jitted = module.jit(step(module.tree.map, module.numpy.sqrt), donate_argnums=0)
        found[JAX] = _carried(jitted, params, (gradient,), _jax_arrays, module.block_until_ready, whole)
    return found


def _torch_updates(params: Tree, gradient: Tree, compile: bool, **options: Any) -> Contestant:
    torch = peers.torch()
    weights, slopes = list(leaves(_torch_tensors(params, True))), list(leaves(_torch_tensors(gradient)))
    optimizer = torch.optim.Adam(weights, RATE, (DECAY, DECAY_SQUARES), EPSILON, **options)
    step = compiled(optimizer.step) if compile else optimizer.step

    def reset() -> None:
        with torch.no_grad():
            for weight, slope, first in zip(weights, slopes, leaves(params), strict=True):
                weight.copy_(torch.from_numpy(np.asarray(first)))
                weight.grad = slope
        for held in optimizer.state.values():
            for value in held.values():
                value.zero_()

    def call() -> Any:
        step()
        return optimizer.state[weights[0]]["step"]

    def check() -> list[np.ndarray]:
        reset()
        count = call()
        states = [optimizer.state[w] for w in weights]
        return arrays((count, weights, [s["exp_avg"] for s in states], [s["exp_avg_sq"] for s in states]))

    return Contestant(call, check, reset)


def _carried(
    step: Code,
    params: Tree,
    batch: Sequence[Tree],
    put: Callable[[Tree], Tree],
    wait: Code = lambda results: results,
    compared: Callable[[Tree], Tree] = lambda state: state[1],
) -> Contestant:
    """Steps (state, *batch) → (loss, state), each on the state of the last; the loss and `compared` must agree."""
    first, given = first_state(params), put(tuple(batch))
    states = [put(first)]

    def reset() -> None:
        states[0] = put(first)

    def call() -> Any:
        loss, states[0] = wait(step(states[0], *given))
        return loss

    def check() -> list[np.ndarray]:
        reset()
        loss = call()
        return arrays((loss, compared(states[0])))

    return Contestant(call, check, reset)


def _torch_training(function: Code, params: Tree, batch: Sequence[Tree]) -> Contestant:
    steps = TorchAdam(function, params, batch)

    def check() -> list[np.ndarray]:
        steps.reset()
        loss = steps.step()
        return arrays((loss, steps.means()))

    return Contestant(steps.step, check, steps.reset)
