"""The words of neural networks in each library, so that a model is written once.

Weights of linear layers are in × out; images are batch × channels × height × width; attention is causal.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from bench import peers


class Eshkol:
    """Eshkol's functions, as a user calls them."""

    def __init__(self) -> None:
        import eshkol  # here, so that a process of a peer stays the peer's alone
        from eshkol.tensors.devices import current_backend

        current_backend()  # imported with the library, not in the first step
        self.names: Any = eshkol

    def relu(self, x: Any) -> Any:
        return self.names.relu(x)

    def linear(self, x: Any, weight: Any, bias: Any) -> Any:
        return x @ weight + bias

    def softmax(self, x: Any) -> Any:
        return self.names.softmax(x)

    def layer_norm(self, x: Any, weight: Any, bias: Any) -> Any:
        return self.names.layer_norm(x, x.shape[-1:], weight, bias)

    def gelu(self, x: Any) -> Any:
        return self.names.gelu(x, approximate="tanh")

    def attention(self, q: Any, k: Any, v: Any) -> Any:
        return self.names.scaled_dot_product_attention(q, k, v, causal=True)

    def embedding(self, table: Any, ids: Any) -> Any:
        return self.names.embedding(table, ids)

    def cross_entropy(self, logits: Any, targets: Any) -> Any:
        return self.names.cross_entropy(logits, targets)

    def conv(self, x: Any, kernel: Any) -> Any:
        return self.names.conv2d(x, kernel, padding=1)

    def batch_norm(self, x: Any, weight: Any, bias: Any, mean: Any = None, var: Any = None) -> Any:
        return self.names.batch_norm(x, mean, var, weight, bias, training=mean is None)

    def over_layers(self, layer: Callable[[Any, Any], Any], x: Any, params: Any) -> Any:
        return self.names.scan(lambda x, p: (layer(x, p), None), x, params)[0]


class Torch:
    """PyTorch's functions."""

    def __init__(self) -> None:
        self.functional = peers.torch().nn.functional

    def relu(self, x: Any) -> Any:
        return self.functional.relu(x)

    def linear(self, x: Any, weight: Any, bias: Any) -> Any:
        return self.functional.linear(x, weight.T, bias)

    def softmax(self, x: Any) -> Any:
        return self.functional.softmax(x, -1)

    def layer_norm(self, x: Any, weight: Any, bias: Any) -> Any:
        return self.functional.layer_norm(x, x.shape[-1:], weight, bias)

    def gelu(self, x: Any) -> Any:
        return self.functional.gelu(x, approximate="tanh")

    def attention(self, q: Any, k: Any, v: Any) -> Any:
        return self.functional.scaled_dot_product_attention(q, k, v, is_causal=True)

    def embedding(self, table: Any, ids: Any) -> Any:
        return self.functional.embedding(ids, table)

    def cross_entropy(self, logits: Any, targets: Any) -> Any:
        return self.functional.cross_entropy(logits, targets)

    def conv(self, x: Any, kernel: Any) -> Any:
        return self.functional.conv2d(x, kernel, padding=1)

    def batch_norm(self, x: Any, weight: Any, bias: Any, mean: Any = None, var: Any = None) -> Any:
        return self.functional.batch_norm(x, mean, var, weight, bias, training=mean is None)


class _Arrays:
    """What NumPy and JAX say alike: functions over a module of names like NumPy's."""

    def __init__(self, names: Any) -> None:
        self.names = names

    def relu(self, x: Any) -> Any:
        return self.names.maximum(x, 0)

    def linear(self, x: Any, weight: Any, bias: Any) -> Any:
        return x @ weight + bias

    def softmax(self, x: Any) -> Any:
        weights = self.names.exp(x - x.max(-1, keepdims=True))
        return weights / weights.sum(-1, keepdims=True)

    def layer_norm(self, x: Any, weight: Any, bias: Any) -> Any:
        centred = x - x.mean(-1, keepdims=True)
        return centred / self.names.sqrt((centred * centred).mean(-1, keepdims=True) + 1e-5) * weight + bias

    def gelu(self, x: Any) -> Any:
        return 0.5 * x * (1 + self.names.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x * x * x)))

    def attention(self, q: Any, k: Any, v: Any) -> Any:
        scores = q @ k.swapaxes(-1, -2) * (1 / math.sqrt(q.shape[-1]))
        allowed = np.tril(np.ones(scores.shape[-2:], bool))
        return self.softmax(self.names.where(allowed, scores, -np.inf)) @ v

    def batch_norm(self, x: Any, weight: Any, bias: Any, mean: Any = None, var: Any = None) -> Any:
        turned: Callable[[Any], Any] = lambda a: a[:, None, None]
        mean = x.mean((0, 2, 3)) if mean is None else mean
        centred = x - turned(mean)
        var = (centred * centred).mean((0, 2, 3)) if var is None else var
        return centred * turned(weight / self.names.sqrt(var + 1e-5)) + turned(bias)


class Numpy(_Arrays):
    """NumPy's functions."""

    def __init__(self) -> None:
        super().__init__(np)

    def conv(self, x: Any, kernel: Any) -> Any:
        """Over all windows at once, as one matrix product."""
        out, _, high, wide = kernel.shape
        padded = np.pad(x, ((0, 0), (0, 0), (high // 2,) * 2, (wide // 2,) * 2))
        windows = np.lib.stride_tricks.sliding_window_view(padded, (high, wide), (2, 3))
        columns = np.ascontiguousarray(windows.transpose(0, 1, 4, 5, 2, 3)).reshape(len(x), -1, x.shape[2] * x.shape[3])
        return (kernel.reshape(out, -1) @ columns).reshape(len(x), out, *x.shape[2:])


class Jax(_Arrays):
    """JAX's functions, its own where it has them."""

    def __init__(self) -> None:
        super().__init__(peers.jax().numpy)

    def softmax(self, x: Any) -> Any:
        return peers.jax().nn.softmax(x)

    def gelu(self, x: Any) -> Any:
        return peers.jax().nn.gelu(x, approximate=True)

    def embedding(self, table: Any, ids: Any) -> Any:
        return table[ids]

    def cross_entropy(self, logits: Any, targets: Any) -> Any:
        chosen = self.names.take_along_axis(peers.jax().nn.log_softmax(logits), targets[:, None], 1)
        return -chosen.mean()

    def conv(self, x: Any, kernel: Any) -> Any:
        return peers.jax().lax.conv(x, kernel, (1, 1), "SAME")


KINDS: dict[str, type] = {"eshkol": Eshkol, "torch": Torch, "compiled": Torch, "jax": Jax, "numpy": Numpy}


def named(who: str) -> Any:
    """The words of a library; it is imported now."""
    return KINDS[who]()


def installed() -> dict[str, Any]:
    """The libraries with derivatives that are installed, under the names that contests call them by."""
    there = {"eshkol": True, "torch": peers.torch(), "jax": peers.jax()}
    return {who: named(who) for who, found in there.items() if found}
