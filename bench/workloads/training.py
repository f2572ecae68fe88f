"""Workloads that train: steps of a network and of a small language model, and Adam alone.

The models are in `bench/models.py`.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from bench import libraries
from bench.models import GPT, Code, mlp_batch, mlp_flops, mlp_loss, mlp_params
from bench.workloads.contest import Contestant, Workload, training, updates

PARAMETERS = 10_000_000
TENSORS, EACH = 50, 10_000


# --- a network ------------------------------------------------------------------------------------


def _numpy_mlp(params: Any, x: Any, targets: Any) -> Any:
    """The loss and its gradient by hand."""
    inputs = [x]
    for layer in params[:-1]:
        inputs.append(np.maximum(inputs[-1] @ layer["weight"] + layer["bias"], 0))
    logits = inputs[-1] @ params[-1]["weight"] + params[-1]["bias"]
    rows = np.arange(len(targets))
    shifted = logits - logits.max(1, keepdims=True)
    back = np.exp(shifted)
    sums = back.sum(1, keepdims=True)
    loss = (np.log(sums[:, 0]) - shifted[rows, targets]).mean()
    back /= sums
    back[rows, targets] -= 1
    back /= np.float32(len(targets))
    gradient: list[Any] = []
    for layer, given in zip(reversed(params), reversed(inputs), strict=True):
        gradient.insert(0, {"weight": given.T @ back, "bias": back.sum(0)})
        back = (back @ layer["weight"].T) * (given > 0)
    return loss, gradient


def _each(loss: Any, *more: Any) -> dict[str, Any]:
    def bound(words: Any) -> Any:
        return lambda params, *batch: loss(words, *more, params, *batch)

    return {who: bound(words) for who, words in libraries.installed().items()}


def _mlp_step(rng: np.random.Generator) -> dict[str, Contestant]:
    return training(mlp_params(rng), mlp_batch(rng), **_each(mlp_loss), numpy=_numpy_mlp)


# --- a language model -----------------------------------------------------------------------------


def _gpt_step(rng: np.random.Generator) -> dict[str, Contestant]:
    model = GPT()
    return training(model.params(rng), model.tokens(rng), **_each(model.loss))


# --- Adam alone -----------------------------------------------------------------------------------


def _adam(tensors: int, each: int, rng: np.random.Generator) -> dict[str, Contestant]:
    made: Code = lambda: [rng.standard_normal(each).astype(np.float32) for _ in range(tensors)]
    return updates(made(), made())


WORKLOADS = (
    Workload("MLP 784-256-128-10, Adam step, batch 128", _mlp_step, flops=mlp_flops()),
    Workload("tiny GPT, Adam step, 8×64", _gpt_step, flops=GPT().flops),
    Workload("Adam over 10⁷ parameters", partial(_adam, 1, PARAMETERS), bytes=28.0 * PARAMETERS),
    Workload("Adam over 50 tensors of 10⁴", partial(_adam, TENSORS, EACH), bytes=28.0 * TENSORS * EACH),
)
