"""Models and how they are trained, in no library's words: those are given (`libraries.py`).

Parameters are NumPy arrays in structures of tuples, lists and dicts. Nothing here imports a library of tensors, so a
process that measures one of them holds no other.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from bench import peers

SIZES, EXAMPLES = (784, 256, 128, 10), 128  # of the network that is trained
RATE, DECAY, DECAY_SQUARES, EPSILON = 1e-3, 0.9, 0.999, 1e-8  # of Adam

Tree = Any  # arrays or tensors in tuples, lists and dicts
Code = Callable[..., Any]


# --- structures -----------------------------------------------------------------------------------


def leaves(tree: Tree) -> Iterator[Any]:
    """What is in a structure, dicts by key."""
    if isinstance(tree, Mapping):
        for key in sorted(tree):
            yield from leaves(tree[key])
    elif isinstance(tree, tuple | list):
        for item in tree:
            yield from leaves(item)
    elif tree is not None:
        yield tree


def mapped(function: Callable[[Any], Any], tree: Tree) -> Tree:
    """The structure with a function of every leaf."""
    if isinstance(tree, Mapping):
        return {key: mapped(function, item) for key, item in tree.items()}
    if isinstance(tree, tuple | list):
        return type(tree)(mapped(function, item) for item in tree)
    return None if tree is None else function(tree)


def zipped(function: Code, tree: Tree, *others: Tree) -> Tree:
    """The structure with a function of the leaves of several alike."""
    if isinstance(tree, Mapping):
        return {key: zipped(function, item, *(o[key] for o in others)) for key, item in tree.items()}
    if isinstance(tree, tuple | list):
        return type(tree)(zipped(function, *items) for items in zip(tree, *others, strict=True))
    return function(tree, *others)


# --- Adam -----------------------------------------------------------------------------------------


def adam(tree_map: Code, sqrt: Code, state: Tree, gradient: Tree) -> Tree:
    """The state (parameters, means, mean squares, number of steps) one step of Adam later."""
    params, means, squares, count = state
    count = count + 1
    means = tree_map(lambda m, g: DECAY * m + (1 - DECAY) * g, means, gradient)
    squares = tree_map(lambda v, g: DECAY_SQUARES * v + (1 - DECAY_SQUARES) * g * g, squares, gradient)
    rate, correction = RATE / (1 - DECAY**count), 1 / (1 - DECAY_SQUARES**count)
    params = tree_map(lambda p, m, v: p - rate * m / (sqrt(v * correction) + EPSILON), params, means, squares)
    return params, means, squares, count


def first_state(params: Tree) -> Tree:
    """The state of Adam before its first step."""
    zeros = mapped(np.zeros_like, params)
    return params, zeros, mapped(np.zeros_like, params), np.zeros((), np.float32)


class TorchAdam:
    """Steps of PyTorch's own Adam, which changes parameters in place, on a function (parameters, *batch) → loss.

    `fused` is the fastest that PyTorch has.
    """

    def __init__(self, function: Code, params: Tree, batch: Sequence[Tree]) -> None:
        torch = peers.torch()
        tensor: Code = lambda a: torch.from_numpy(np.array(a))
        self.function, self.first, self.batch = function, params, mapped(tensor, tuple(batch))
        self.params = mapped(lambda a: tensor(a).requires_grad_(), params)
        self.weights = list(leaves(self.params))
        self.optimizer = torch.optim.Adam(self.weights, RATE, (DECAY, DECAY_SQUARES), EPSILON, fused=True)

    def reset(self) -> None:
        """Back to the first parameters."""
        torch = peers.torch()
        with torch.no_grad():
            for weight, first in zip(self.weights, leaves(self.first), strict=True):
                weight.copy_(torch.from_numpy(first))
        self.optimizer.state.clear()

    def step(self) -> Any:
        """The loss before a step."""
        self.optimizer.zero_grad()
        loss = self.function(self.params, *self.batch)
        loss.backward()
        self.optimizer.step()
        return loss

    def means(self) -> list[Any]:
        """Of the gradients, as Adam keeps them."""
        return [self.optimizer.state[w]["exp_avg"] for w in self.weights]


# --- networks -------------------------------------------------------------------------------------


def _weights(rng: np.random.Generator, inputs: int, outputs: int) -> dict[str, np.ndarray]:
    weight = rng.standard_normal((inputs, outputs)) / math.sqrt(inputs)
    return {"weight": weight.astype(np.float32), "bias": np.zeros(outputs, np.float32)}


def _norm(dim: int) -> dict[str, np.ndarray]:
    return {"weight": np.ones(dim, np.float32), "bias": np.zeros(dim, np.float32)}


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


def self_attention(
    words: Any, heads: int, x: Any, inward: Any, inward_bias: Any, outward: Any, outward_bias: Any
) -> Any:
    """Causal self-attention with its projections."""
    batch, length, dim = x.shape
    together = words.linear(x, inward, inward_bias).reshape(batch, length, 3, heads, dim // heads)
    q, k, v = (together[:, :, n].swapaxes(1, 2) for n in range(3))
    mixed = words.attention(q, k, v).swapaxes(1, 2).reshape(batch, length, dim)
    return words.linear(mixed, outward, outward_bias)


def attention_flops(batch: int, length: int, dim: int) -> tuple[float, float]:
    """Of the projections and of the products within, forward; only pairs that the causal mask leaves count."""
    return 8.0 * batch * length * dim * dim, 4.0 * batch * length * (length + 1) / 2 * dim


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
        table: Code = lambda rows: (0.02 * rng.standard_normal((rows, dim))).astype(np.float32)
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
        return self._end(words, params, x, following)

    def _end(self, words: Any, params: Any, x: Any, following: Any) -> Any:
        logits = words.linear(words.layer_norm(x, **params["norm"]), **params["head"])
        return words.cross_entropy(logits.reshape(-1, self.vocabulary), following.reshape(-1))

    def scanned(self, words: Any, params: Any, tokens: Any, following: Any) -> Any:
        """The loss by one loop over the layers, whose arrays are stacked."""
        x = words.embedding(params["tokens"], tokens) + params["positions"]
        x = words.over_layers(lambda x, p: self.block(words, p, x), x, params["blocks"])
        return self._end(words, params, x, following)

    @property
    def flops(self) -> float:
        """Of a training step."""
        tokens = self.batch * self.length
        projections, products = attention_flops(self.batch, self.length, self.dim)
        layer = projections + 2.0 * tokens * 8 * self.dim**2
        return 3 * (self.layers * layer + 2.0 * tokens * self.dim * self.vocabulary) + 3.5 * self.layers * products
