"""Workloads that train: steps of a network and of a small language model, and Adam alone.

The models are functions of parameters over the words of a library (`libraries.py`); `bench/latency.py` uses them too.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

from bench.workloads import libraries
from bench.workloads.contest import Contestant, Workload, training, updates
from bench.workloads.layers import attention_flops, self_attention

SIZES, EXAMPLES = (784, 256, 128, 10), 128
PARAMETERS = 10_000_000
TENSORS, EACH = 200, 2_500


def _weights(rng: np.random.Generator, inputs: int, outputs: int) -> dict[str, np.ndarray]:
    weight = rng.standard_normal((inputs, outputs)) / math.sqrt(inputs)
    return {"weight": weight.astype(np.float32), "bias": np.zeros(outputs, np.float32)}


def _norm(dim: int) -> dict[str, np.ndarray]:
    return {"weight": np.ones(dim, np.float32), "bias": np.zeros(dim, np.float32)}


# --- a network ------------------------------------------------------------------------------------


def mlp_params(rng: np.random.Generator, sizes: tuple[int, ...] = SIZES) -> Any:
    """Layers of a network with these widths."""
    return [_weights(rng, n, m) for n, m in pairwise(sizes)]


def mlp_batch(rng: np.random.Generator, sizes: tuple[int, ...] = SIZES, examples: int = EXAMPLES) -> tuple[Any, Any]:
    """Examples and their classes."""
    return rng.standard_normal((examples, sizes[0])).astype(np.float32), rng.integers(0, sizes[-1], examples)


def mlp_loss(words: Any, params: Any, x: Any, targets: Any) -> Any:
    """The cross entropy of a network with relu between its layers."""
    for layer in params[:-1]:
        x = words.relu(words.linear(x, layer["weight"], layer["bias"]))
    return words.cross_entropy(words.linear(x, params[-1]["weight"], params[-1]["bias"]), targets)


def mlp_flops(sizes: tuple[int, ...] = SIZES, examples: int = EXAMPLES) -> float:
    """Forward, and backward to weights and to inputs, of which the first layer's are not asked for."""
    products = [2.0 * examples * n * m for n, m in pairwise(sizes)]
    return 3 * sum(products) - products[0]


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

    return {who: bound(words) for who, words in libraries.named().items()}


def _mlp_step(rng: np.random.Generator) -> dict[str, Contestant]:
    return training(mlp_params(rng), mlp_batch(rng), **_each(mlp_loss), numpy=_numpy_mlp)


# --- a language model -----------------------------------------------------------------------------


@dataclass(frozen=True)
class GPT:
    """The shape of a small transformer."""

    layers: int = 4
    dim: int = 128
    heads: int = 4
    length: int = 64
    batch: int = 8
    vocabulary: int = 65

    def params(self, rng: np.random.Generator) -> Any:
        """Parameters to begin with."""
        dim = self.dim
        table = lambda rows: (0.02 * rng.standard_normal((rows, dim))).astype(np.float32)
        blocks = [
            {
                "norm": _norm(dim), "inward": _weights(rng, dim, 3 * dim), "outward": _weights(rng, dim, dim),
                "norm2": _norm(dim), "up": _weights(rng, dim, 4 * dim), "down": _weights(rng, 4 * dim, dim),
            }
            for _ in range(self.layers)
        ]  # fmt: skip
        return {"tokens": table(self.vocabulary), "positions": table(self.length), "blocks": blocks,
                "norm": _norm(dim), "head": _weights(rng, dim, self.vocabulary)}  # fmt: skip

    def tokens(self, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """Tokens, and those that follow."""
        found = rng.integers(0, self.vocabulary, (self.batch, self.length + 1))
        return np.ascontiguousarray(found[:, :-1]), np.ascontiguousarray(found[:, 1:])

    def block(self, words: Any, p: Any, x: Any) -> Any:
        """Attention and a network, each behind a norm and beside a path around it."""
        inner = words.layer_norm(x, **p["norm"])
        inward, outward = p["inward"], p["outward"]
        x = x + self_attention(
            words, self.heads, inner, inward["weight"], inward["bias"], outward["weight"], outward["bias"]
        )
        inner = words.gelu(words.linear(words.layer_norm(x, **p["norm2"]), **p["up"]))
        return x + words.linear(inner, **p["down"])

    def loss(self, words: Any, params: Any, tokens: Any, following: Any) -> Any:
        """The cross entropy of the tokens that follow."""
        x = words.embedding(params["tokens"], tokens) + params["positions"]
        for p in params["blocks"]:
            x = self.block(words, p, x)
        logits = words.linear(words.layer_norm(x, **params["norm"]), **params["head"])
        return words.cross_entropy(logits.reshape(-1, self.vocabulary), following.reshape(-1))

    @property
    def flops(self) -> float:
        """Of a training step."""
        tokens = self.batch * self.length
        projections, products = attention_flops(self.batch, self.length, self.dim)
        layer = projections + 2.0 * tokens * 8 * self.dim**2
        return 3 * (self.layers * layer + 2.0 * tokens * self.dim * self.vocabulary) + 3.5 * self.layers * products


def _gpt_step(rng: np.random.Generator) -> dict[str, Contestant]:
    model = GPT()
    return training(model.params(rng), model.tokens(rng), **_each(model.loss))


# --- Adam alone -----------------------------------------------------------------------------------


def _adam(tensors: int, each: int, rng: np.random.Generator) -> dict[str, Contestant]:
    made = lambda: [rng.standard_normal(each).astype(np.float32) for _ in range(tensors)]
    return updates(made(), made())


WORKLOADS = (
    Workload("MLP 784-256-128-10, Adam step, batch 128", _mlp_step, flops=mlp_flops()),
    Workload("tiny GPT, Adam step, 8×64", _gpt_step, flops=GPT().flops),
    Workload("Adam over 10⁷ parameters", partial(_adam, 1, PARAMETERS), bytes=28.0 * PARAMETERS),
    Workload("Adam over 200 tensors of 2,500", partial(_adam, TENSORS, EACH), bytes=28.0 * TENSORS * EACH),
)
