"""The ladder of kernels, stage by stage: what a GPU has to be able to do before it is made fast.

Each stage ends in something that trains. It runs on the GPU where there is one, at full size, and otherwise, smaller,
on the CPU behind a memory of its own (the device `discrete`). Kernels are compared with their readable twin in NumPy
and by differences; what is trained comes to the same losses as on the CPU from the same seed, within `LOSSES`. MNIST is
taken where ESHKOL_DATA names it, and the small digits that come with the package otherwise.
"""

from __future__ import annotations

import os

import numpy as np
import pytest

import eshkol as ek
from effort import FULL
from eshkol import nn
from eshkol.backends.cuda import CudaBackend
from eshkol.errors import IndexOutOfRange, MissingData, ShapeError

GPU = CudaBackend.unavailable() is None
DEVICE = "cuda" if GPU else "discrete"
LOSSES = 0.02  # by which losses may differ, relatively: sums in another order, over many steps
RNG = np.random.default_rng(4)


@pytest.fixture(autouse=True)
def _there(monkeypatch):
    if not (GPU or FULL or "ESHKOL_OPTIMIZE" in os.environ):
        monkeypatch.setenv("ESHKOL_OPTIMIZE", "0")  # on the CPU the stages are tried, which need not be fast
    with ek.device(DEVICE):
        yield


def full(on_a_gpu: int, otherwise: int) -> int:
    return on_a_gpu if GPU else otherwise


def floats(*shape: int, dtype: type = np.float32) -> np.ndarray:
    return RNG.standard_normal(shape).astype(dtype)


def slopes_agree(function, *given: np.ndarray) -> None:
    """Gradients on the device against differences, in float64: relative error below 1e-4."""
    weights = floats(*np.shape(function(*map(ek.tensor, given)).numpy()), dtype=np.float64)

    def weighted(*args):
        return (function(*args) * ek.tensor(weights)).sum()

    found = ek.grad(weighted, argnums=tuple(range(len(given))))(*map(ek.tensor, given))
    for k, (x, slope) in enumerate(zip(given, found, strict=True)):
        direction = floats(*x.shape, dtype=np.float64)
        ends = [
            weighted(*map(ek.tensor, (*given[:k], x + h * direction, *given[k + 1 :]))).item() for h in (1e-6, -1e-6)
        ]
        wanted, got = (ends[0] - ends[1]) / 2e-6, float((slope.numpy() * direction).sum())
        assert abs(got - wanted) <= 1e-4 * max(1.0, abs(wanted)), k


def losses_of(device: str, make, batches, rate: float = 1e-2, loss=ek.cross_entropy) -> tuple[list[float], nn.Module]:
    ek.manual_seed(0)
    with ek.device(device):
        model = make()
        step = ek.train.Step(model, loss, ek.optim.Adam(model.parameters(), lr=rate))
        return [float(step(x, y).loss) for x, y in batches], model


def trains(make, batches, below: float, **how) -> nn.Module:
    """A model that learns on the device, to the losses that it comes to on the CPU."""
    batches = list(batches)
    found, model = losses_of(DEVICE, make, batches, **how)
    wanted, _ = losses_of("cpu", make, batches, **how)
    assert {p.device for p in model.parameters()} == {ek.ones(1).device}
    np.testing.assert_allclose(found, wanted, rtol=LOSSES, atol=0.02 * wanted[0])
    assert np.mean(found[-5:]) < below, found[-5:]
    return model


def pictures(count: int) -> tuple[np.ndarray, np.ndarray]:
    """Images (count × 1 × height × width) of digits, and which digits they are."""
    try:
        data = ek.data.load_mnist()
    except MissingData:
        data = ek.data.digits("train")
    taken = [data[k] for k in range(min(count, len(data)))]
    return np.stack([np.asarray(x, np.float32) for x, _ in taken]), np.array([int(y) for _, y in taken])


def batched(x: np.ndarray, y: np.ndarray, size: int, steps: int):
    rng = np.random.default_rng(0)
    for _ in range(steps):
        at = rng.integers(len(x), size=size)
        yield x[at], y[at]


def test_stage_0_two_tensors_are_added():
    a, b = floats(1000, 37), floats(37)
    found = ek.tensor(a) + ek.tensor(b)
    assert found.device == ek.ones(1).device != "cpu"
    np.testing.assert_array_equal(found.numpy(), a + b)


def test_stage_1_a_tiny_network_learns_exclusive_or():
    x = np.array([[0, 0], [0, 1], [1, 0], [1, 1]], np.float32)
    y = np.array([[0], [1], [1], [0]], np.float32)
    model = trains(
        lambda: nn.Sequential(nn.Linear(2, 8), nn.ReLU(), nn.Linear(8, 1)), [(x, y)] * full(300, 150),
        0.05, rate=0.05, loss=ek.mse_loss,
    )  # fmt: skip
    assert (np.round(model(ek.tensor(x)).detach().numpy()) == y).all()


def test_stage_2_softmax_and_cross_entropy():
    large = np.array([[1000.0, 1001.0, -1000.0], [1000.0, 1000.0, 1000.0]], np.float32)
    found = ek.softmax(ek.tensor(large), -1).numpy()
    np.testing.assert_allclose(found, [[1 / (1 + np.e), np.e / (1 + np.e), 0], [1 / 3] * 3], rtol=1e-6)
    labels = np.array([2, 0, 1])
    slopes_agree(lambda x: ek.softmax(x, -1), floats(3, 70, dtype=np.float64))
    slopes_agree(lambda x: ek.log_softmax(x, 0), floats(5, 4, dtype=np.float64))
    slopes_agree(lambda x: ek.cross_entropy(x, ek.tensor(labels)), floats(3, 7, dtype=np.float64))
    x, y = pictures(full(1000, 300))
    size = x[0].size
    trains(
        lambda: nn.Sequential(nn.Flatten(), nn.Linear(size, 128), nn.ReLU(), nn.Linear(128, 10)),
        batched(x, y, 64, full(200, 40)), 0.6,
    )  # fmt: skip


def test_stage_3_products_of_any_size():
    for m, k, n in [(1, 1, 1), (33, 17, 65), (100, 129, 31)]:
        a, b = floats(m, k), floats(k, n)
        np.testing.assert_allclose(
            (ek.tensor(a) @ ek.tensor(b)).numpy(), a.astype(np.float64) @ b, rtol=1e-4, atol=1e-4
        )
    slopes_agree(lambda a, b: a @ b, floats(9, 34, dtype=np.float64), floats(34, 5, dtype=np.float64))
    with pytest.raises(ShapeError, match=r"(?s)\[2, 3\].*\[4, 5\]"):
        ek.ones((2, 3)) @ ek.ones((4, 5))
    x, y = pictures(full(20_000, 300))
    size = x[0].size
    trains(
        lambda: nn.Sequential(nn.Flatten(), nn.Linear(size, 256), nn.ReLU(), nn.Linear(256, 128), nn.ReLU(),
                              nn.Linear(128, 10)),
        batched(x, y, 64, full(300, 30)), 0.8, rate=3e-3,
    )  # fmt: skip


class Block(nn.Module):
    """A block of a transformer without its attention."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm, self.up, self.down = nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        return x + self.down(ek.gelu(self.up(self.norm(x))))


def test_stage_4_layer_norm_and_gelu():
    x, scale, bias = (floats(*shape, dtype=np.float64) for shape in ((5, 70), (70,), (70,)))
    slopes_agree(lambda x, s, b: ek.layer_norm(x, 70, s, b), x, scale, bias)
    slopes_agree(ek.gelu, x)
    a = floats(256, 16)
    targets = np.tanh(a[:, ::-1] * 2)
    trains(lambda: nn.Sequential(Block(16), Block(16)), [(a, targets)] * full(150, 40), 0.2, loss=ek.mse_loss)


class Following(nn.Module):
    """The token that follows, of the tokens and their positions."""

    def __init__(self, tokens: int, length: int, width: int) -> None:
        super().__init__()
        self.tokens, self.positions = nn.Embedding(tokens, width), nn.Embedding(length, width)
        self.hidden, self.out = nn.Linear(width, 4 * width), nn.Linear(4 * width, tokens)

    def forward(self, ids):
        x = self.tokens(ids) + self.positions(ek.arange(ids.shape[-1]))
        return self.out(ek.relu(self.hidden(x))).reshape(-1, self.tokens.num_embeddings)


def test_stage_5_embeddings():
    table, at = floats(6, 4, dtype=np.float64), np.array([1, 1, 5, 1])
    slopes_agree(lambda t: ek.take(t, ek.tensor(at), axis=0), table)
    total = ek.grad(lambda t: ek.take(t, ek.tensor(at), axis=0).sum())(ek.tensor(table)).numpy()
    np.testing.assert_array_equal(total[:, 0], [0, 3, 0, 0, 0, 1])
    with pytest.raises(IndexOutOfRange):
        ek.take(ek.tensor(table), ek.tensor(np.array([0, 6])), axis=0).numpy()
    ids = (np.arange(12) * 5 + np.arange(32)[:, None]) % 12
    trains(lambda: Following(12, 11, 16), [(ids[:, :-1], ids[:, 1:].reshape(-1))] * full(150, 50), 0.1)


def test_stage_6_attention_and_a_tiny_gpt():
    q, k, v = (floats(2, 2, 6, 4, dtype=np.float64) for _ in range(3))
    slopes_agree(lambda q, k, v: ek.scaled_dot_product_attention(q, k, v, is_causal=True), q, k, v)
    hidden = np.array([[True] * 6, [True] * 4 + [False] * 2])[:, None, None]
    padded = ek.scaled_dot_product_attention(*map(ek.tensor, (q, k, v)), ek.tensor(hidden)).numpy()
    scores = np.where(hidden, q @ np.swapaxes(k, -1, -2) / 2.0, -np.inf)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    np.testing.assert_allclose(padded, weights / weights.sum(-1, keepdims=True) @ v, rtol=1e-9)
    text = "the quick brown fox jumps over the lazy dog; " if GPU else "the quick fox; "
    letters = sorted(set(text))
    ids = np.array([letters.index(c) for c in text * 3])
    length = full(24, 12)
    x = np.stack([ids[k : k + length] for k in range(len(text))])
    y = np.stack([ids[k + 1 : k + 1 + length] for k in range(len(text))])
    config = nn.GPTConfig(len(letters), length, full(4, 1), 4, full(128, 32))
    model = trains(
        lambda: nn.GPT(config), [(x, y)] * full(120, 40), 0.3, rate=full(3, 10) * 1e-3,
        loss=lambda logits, wanted: ek.cross_entropy(logits.reshape(-1, len(letters)), wanted.reshape(-1)),
    )  # fmt: skip
    model.eval()
    made = model.generate(ek.tensor(ids[:8]), 4, temperature=0.0).numpy().reshape(-1)
    assert "".join(letters[k] for k in made[-4:]) == text[8:12]


def test_stage_7_convolutions_and_pooling():
    x, w = floats(2, 3, 7, 6, dtype=np.float64), floats(4, 3, 3, 2, dtype=np.float64)
    slopes_agree(lambda x, w: ek.conv2d(x, w, stride=2, padding=1), x, w)
    slopes_agree(lambda x: ek.max_pool2d(x, 3, stride=2), x)
    slopes_agree(lambda x: ek.avg_pool2d(x, 3, stride=1), x)
    images, labels = pictures(full(5000, 300))
    side = images.shape[-1] // 2
    trains(
        lambda: nn.Sequential(nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
                              nn.Linear(16 * side * side, 10)),
        batched(images, labels, full(64, 32), full(150, 30)), 0.9,
    )  # fmt: skip
