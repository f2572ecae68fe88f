"""A step that was compiled for one batch runs for another without native code being compiled: programs are told how
many examples there are."""

from __future__ import annotations

import numpy as np
import pytest

import eshkol as ek
from eshkol.graph import interpret

pytest.importorskip("llvmlite")
from eshkol.llvm import objects

RATE = 0.1


# Functions of array instructions: on some machines small products have others than large ones, each compiled once.
PRODUCTS = ("pack_", "gemm", "fused_gemm", "batched")


@pytest.fixture
def modules(monkeypatch):
    """The modules of native code that are asked for, compiled or from the disk."""
    asked: list[str] = []
    ask = objects.cached_object

    def noted(cache, parts, text, target, label, *how):
        asked.append(label)
        return ask(cache, parts, text, target, label, *how)

    monkeypatch.setattr(objects, "cached_object", noted)
    return asked


def trained(loss):
    """A step of gradient descent, which gives the loss and the parameters after it."""

    def step(params, *batch):
        value, gradient = ek.value_and_grad(loss)(params, *batch)
        return value, ek.tree_map(lambda p, g: p - RATE * g, params, gradient)

    return step


def _weights(rng, *shape):
    return (rng.standard_normal(shape) / np.sqrt(shape[0])).astype(np.float32)


def text(rng):
    """Tokens through an embedding, a norm and a network."""
    params = {
        "tokens": _weights(rng, 11, 16), "places": _weights(rng, 8, 16),
        "scale": np.ones(16, np.float32), "shift": np.zeros(16, np.float32), "up": _weights(rng, 16, 32),
        "bias": np.zeros(32, np.float32), "down": _weights(rng, 32, 11),
    }  # fmt: skip

    def loss(p, tokens, following):
        x = ek.embedding(p["tokens"], tokens) + p["places"]
        x = ek.layer_norm(x, (16,), p["scale"], p["shift"])
        x = ek.gelu(x @ p["up"] + p["bias"]) @ p["down"]
        return ek.cross_entropy(x.reshape(-1, 11), following.reshape(-1))

    return params, loss, lambda n: tuple(rng.integers(0, 11, (2, n, 8)))


def images(rng):
    """Images through a convolution, a norm over the batch and a pool."""
    params = {
        "kernel": _weights(rng, 4, 3, 3, 3), "scale": np.ones(4, np.float32), "shift": np.zeros(4, np.float32),
        "out": _weights(rng, 64, 10), "bias": np.zeros(10, np.float32),
    }  # fmt: skip

    def loss(p, x, classes):
        x = ek.conv2d(x, p["kernel"], padding=1)
        x = ek.relu(ek.batch_norm(x, None, None, p["scale"], p["shift"], training=True))
        x = ek.max_pool2d(x, 2).reshape(x.shape[0], -1)
        return ek.cross_entropy(x @ p["out"] + p["bias"], classes)

    return params, loss, lambda n: (_weights(rng, n, 3, 8, 8), rng.integers(0, 10, n))


@pytest.mark.parametrize("model", [text, images])
def test_another_batch_needs_no_other_code(model, modules):
    params, loss, batch = model(np.random.default_rng(0))
    step = ek.jit(trained(loss))
    for number, examples in enumerate((50, 24, 7, 33)):
        with ek.device("cpu"):
            given, data = ek.tree_map(ek.tensor, params), [ek.tensor(a) for a in batch(examples)]
            found = [t.numpy() for t in ek.tree_leaves(step(given, *data))]
        assert number or modules, "nothing was compiled"
        wanted = interpret.evaluate([t._node for t in ek.tree_leaves(trained(loss)(given, *data))])
        for one, other in zip(found, wanted, strict=True):
            np.testing.assert_allclose(one, other, rtol=2e-4, atol=2e-5)
        anew = [m for m in modules if not m.startswith(PRODUCTS)]
        assert number == 0 or not anew, f"{examples} examples"
        modules.clear()


@pytest.mark.parametrize(("name", "axes"), [("sum", 0), ("mean", (0, 1)), ("max", (0, 2)), ("sum", None)])
def test_reductions_over_the_batch_of_any_size(name, axes, modules):
    """Programs serve every number of examples, and compute the same as NumPy, to the last part of a part."""
    rng = np.random.default_rng(1)
    reduce = ek.jit(lambda x: getattr(ek, name)(x * 2, axis=axes), dynamic=False)  # traced for each
    for examples in (500, 2, 3, 5, 8, 13, 64, 257):
        x = rng.standard_normal((examples, 5, 12)).astype(np.float32)
        with ek.device("cpu"):
            found = reduce(ek.tensor(x)).numpy()
        np.testing.assert_allclose(found, getattr(np, name)(x.astype(np.float64) * 2, axes), rtol=1e-5, atol=1e-4)
        assert examples == 500 or not modules, f"{examples} examples"
        modules.clear()
