"""The networks whose training steps are timed: their sizes, arrays to begin with, and batches.

Parameters are arrays under the names that the modules give them (`networks.py`), so that all libraries begin alike.
Nothing here imports one of them: a process that measures one library holds no other.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

Arrays = dict[str, np.ndarray]
Batch = tuple[np.ndarray, np.ndarray]

SIZES, EXAMPLES = (784, 512, 256, 10), 128  # of the MLP
IMAGES, SIDE, CHANNELS, WIDE, CLASSES = 64, 28, (1, 32, 64), 128, 10  # of the CNN
VOCABULARY = 96
EMBEDDED, HIDDEN, LENGTH, SEQUENCES = 64, 128, 64, 32  # of the LSTM
LAYERS, HEADS, DIM, CONTEXT, TEXTS = 4, 4, 128, 64, 16  # of the GPT


@dataclass(frozen=True)
class Model:
    """A network: its arrays to begin with, and a batch for it: inputs and classes."""

    name: str
    title: str
    params: Callable[[np.random.Generator], Arrays]
    batch: Callable[[np.random.Generator], Batch]


def _linear(rng: np.random.Generator, name: str, inputs: int, outputs: int) -> Iterator[tuple[str, np.ndarray]]:
    yield f"{name}.weight", (rng.standard_normal((outputs, inputs)) / math.sqrt(inputs)).astype(np.float32)
    yield f"{name}.bias", (0.1 * rng.standard_normal(outputs)).astype(np.float32)


def _tokens(rng: np.random.Generator, count: int, length: int) -> Batch:
    """Tokens, and those that follow."""
    found = rng.integers(0, VOCABULARY, (count, length + 1))
    return np.ascontiguousarray(found[:, :-1]), np.ascontiguousarray(found[:, 1:]).reshape(-1)


# --- MLP ------------------------------------------------------------------------------------------


def _mlp_params(rng: np.random.Generator) -> Arrays:
    pairs = pairwise(SIZES)
    return {key: a for k, (n, m) in enumerate(pairs) for key, a in _linear(rng, f"layers.{k}", n, m)}


def _mlp_batch(rng: np.random.Generator) -> Batch:
    return rng.standard_normal((EXAMPLES, SIZES[0])).astype(np.float32), rng.integers(0, SIZES[-1], EXAMPLES)


# --- CNN ------------------------------------------------------------------------------------------


def _cnn_params(rng: np.random.Generator) -> Arrays:
    found: Arrays = {}
    for k, (n, m) in enumerate(pairwise(CHANNELS)):
        found[f"convs.{k}.weight"] = (rng.standard_normal((m, n, 3, 3)) / math.sqrt(9 * n)).astype(np.float32)
        found[f"convs.{k}.bias"] = (0.1 * rng.standard_normal(m)).astype(np.float32)
    found |= _linear(rng, "wide", CHANNELS[-1] * (SIDE // 4) ** 2, WIDE)
    found |= _linear(rng, "head", WIDE, CLASSES)
    return found


def _cnn_batch(rng: np.random.Generator) -> Batch:
    images = rng.standard_normal((IMAGES, CHANNELS[0], SIDE, SIDE)).astype(np.float32)
    return images, rng.integers(0, CLASSES, IMAGES)


# --- LSTM -----------------------------------------------------------------------------------------


def _lstm_params(rng: np.random.Generator) -> Arrays:
    found = {"table.weight": rng.standard_normal((VOCABULARY, EMBEDDED)).astype(np.float32)}
    for kind, inputs in (("ih", EMBEDDED), ("hh", HIDDEN)):
        for (_, array), what in zip(_linear(rng, "", inputs, 4 * HIDDEN), ("weight", "bias"), strict=True):
            found[f"lstm.{what}_{kind}_l0"] = array
    found |= _linear(rng, "head", HIDDEN, VOCABULARY)
    return found


# --- GPT ------------------------------------------------------------------------------------------


def _norm(name: str) -> Iterator[tuple[str, np.ndarray]]:
    yield f"{name}.weight", np.ones(DIM, np.float32)
    yield f"{name}.bias", np.zeros(DIM, np.float32)


def _gpt_params(rng: np.random.Generator) -> Arrays:
    tables = (("tokens", VOCABULARY), ("positions", CONTEXT))
    found = {f"{name}.weight": (0.02 * rng.standard_normal((rows, DIM))).astype(np.float32) for name, rows in tables}
    for k in range(LAYERS):
        block = f"blocks.{k}"
        found |= _norm(f"{block}.norm")
        found |= _linear(rng, f"{block}.inward", DIM, 3 * DIM)
        found |= _linear(rng, f"{block}.outward", DIM, DIM)
        found |= _norm(f"{block}.norm2")
        found |= _linear(rng, f"{block}.up", DIM, 4 * DIM)
        found |= _linear(rng, f"{block}.down", 4 * DIM, DIM)
    found |= _norm("norm")
    found |= _linear(rng, "head", DIM, VOCABULARY)
    return found


MODELS = (
    Model("mlp", "MLP 784-512-256-10, batch 128", _mlp_params, _mlp_batch),
    Model("cnn", "CNN 32-64-fc128, 1×28×28, batch 64", _cnn_params, _cnn_batch),
    Model("lstm", "LSTM 64→128, length 64, batch 32", _lstm_params,
          lambda rng: _tokens(rng, SEQUENCES, LENGTH)),
    Model("gpt", "tiny GPT 4×128, context 64, batch 16", _gpt_params,
          lambda rng: _tokens(rng, TEXTS, CONTEXT)),
)  # fmt: skip
