"""The networks of bench/results.py in PyTorch, where it is installed, to time a step of each on the same machine."""

from __future__ import annotations

import time
from importlib import import_module, util
from itertools import pairwise
from typing import Any

import numpy as np

STEPS, SECONDS = 12, 3.0  # at least as many, and as long; the fastest tenth counts: others may use the machine, too


def seconds_per_step(name: str, batch: int) -> float | None:
    """The seconds of a training step of a network in PyTorch; None where it is not installed."""
    if util.find_spec("torch") is None:
        return None
    torch: Any = import_module("torch")
    model, x, y = _made(torch, name, batch)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    times, start = list[float](), time.perf_counter()
    while len(times) < STEPS or time.perf_counter() - start < SECONDS:
        began = time.perf_counter()
        optimizer.zero_grad()
        out = model(x)
        loss = torch.nn.functional.cross_entropy(out.reshape(-1, out.shape[-1]), y.reshape(-1))
        loss.backward()
        optimizer.step()
        times.append(time.perf_counter() - began)
    return float(np.median(sorted(times)[: max(1, len(times) // 10)]))


def _made(torch: Any, name: str, batch: int) -> tuple[Any, Any, Any]:
    """A network, inputs and targets."""
    tn = torch.nn
    if name == "gpt":
        ids = torch.randint(0, 65, (batch, 65))
        return _gpt(torch, 65, 64), ids[:, :-1], ids[:, 1:]
    classes = torch.randint(0, 10, (batch,))
    if name == "digits":
        layers = [
            tn.Conv2d(1, 16, 3, padding=1), tn.ReLU(), tn.Conv2d(16, 32, 3, padding=1), tn.ReLU(), tn.MaxPool2d(2),
            tn.Flatten(), tn.Linear(512, 64), tn.ReLU(), tn.Dropout(0.25), tn.Linear(64, 10),
        ]  # fmt: skip
        return tn.Sequential(*layers), torch.rand(batch, 1, 8, 8), classes
    if name == "mnist-mlp":
        layers = [
            tn.Flatten(), tn.Linear(784, 256), tn.ReLU(), tn.Dropout(0.2), tn.Linear(256, 128), tn.ReLU(),
            tn.Linear(128, 10),
        ]  # fmt: skip
        return tn.Sequential(*layers), torch.rand(batch, 1, 28, 28), classes
    if name == "cifar10-whole":
        return _six(tn), torch.rand(batch, 3, 32, 32), classes
    channels, side = (3, 32) if name == "cifar10" else (1, 28)
    return _cnn(tn, channels, side), torch.rand(batch, channels, side, side), classes


def _cnn(tn: Any, channels: int, side: int) -> Any:
    widths, layers = (channels, 24, 48, 64), list[Any]()
    for a, b in pairwise(widths):
        layers += [tn.Conv2d(a, b, 3, padding=1), tn.BatchNorm2d(b), tn.ReLU()]
        if b < widths[-1]:
            layers.append(tn.MaxPool2d(2))
    return tn.Sequential(*layers, tn.Flatten(), tn.Dropout(0.3), tn.Linear(widths[-1] * (side // 4) ** 2, 10))


def _six(tn: Any) -> Any:
    layers = list[Any]()
    for a, b in ((3, 32), (32, 64), (64, 128)):
        for c in (a, b):
            layers += [tn.Conv2d(c, b, 3, padding=1), tn.BatchNorm2d(b), tn.ReLU()]
        layers.append(tn.MaxPool2d(2))
    return tn.Sequential(*layers, tn.Flatten(), tn.Dropout(0.3), tn.Linear(128 * 4 * 4, 10))


def _gpt(torch: Any, vocabulary: int, context: int) -> Any:
    tn, width = torch.nn, 128

    class GPT(tn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.tokens, self.places = tn.Embedding(vocabulary, width), tn.Embedding(context, width)
            layer = tn.TransformerEncoderLayer(
                width, 4, 4 * width, dropout=0.0, activation="gelu", batch_first=True, norm_first=True
            )
            self.layers = tn.TransformerEncoder(layer, 4, tn.LayerNorm(width), enable_nested_tensor=False)
            self.mask = tn.Transformer.generate_square_subsequent_mask(context)

        def forward(self, ids: Any) -> Any:
            x = self.tokens(ids) + self.places.weight
            return self.layers(x, mask=self.mask, is_causal=True) @ self.tokens.weight.T

    return GPT()
