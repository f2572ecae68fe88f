"""Models that are trained until they can do what they are trained for, by compiled steps."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import eshkol as ek
from eshkol import nn, optim, train
from eshkol.graph import interpret
from eshkol.train.step import Step

pytestmark = pytest.mark.optimized  # they compute for longer than it takes to compile them

SYMBOLS, LENGTH, EXAMPLES = 4, 3, 32

PAGE = """\
A model is a function with parameters, made of others like it. What it computes is written down as a graph
before it is computed; the graph is differentiated, simplified, cut into kernels and run. A step of training
is such a graph too: the model, its loss, the derivatives of that with respect to every parameter, and what
the optimizer makes of them. It is traced once, compiled once, and then run as often as there are batches.
This page is learned by heart, letter by letter, by a small one of these models: four lines of it."""


class Copier(nn.Module):
    """Reads symbols, and then says them again in the same order."""

    def __init__(self) -> None:
        super().__init__()
        self.lstm = nn.LSTM(SYMBOLS + 1, 32)
        self.out = nn.Linear(32, SYMBOLS)

    def forward(self, x: Any) -> Any:
        return self.out(self.lstm(x)[0][LENGTH:])


def symbols(rng: np.random.Generator) -> tuple[Any, Any]:
    """Symbols followed by as many places to say them at, one-hot, and the symbols."""
    said = rng.integers(0, SYMBOLS, (LENGTH, EXAMPLES))
    given = np.concatenate([said, np.full_like(said, SYMBOLS)])
    return ek.tensor(np.eye(SYMBOLS + 1, dtype=np.float32)[given]), ek.tensor(said)


def classes(logits: Any, targets: Any) -> Any:
    """The cross entropy over the last axis."""
    return ek.cross_entropy(logits.reshape(-1, logits.shape[-1]), targets.reshape(-1))


def test_an_lstm_copies_what_it_has_read() -> None:
    ek.seed(0)
    rng = np.random.default_rng(0)
    model = Copier()
    step = Step(model, classes, optim.RMSprop(model.parameters(), lr=0.01))
    for _ in range(150):
        inputs, said = symbols(rng)
        result = step(inputs, said)
    assert result.loss.item() < 0.1
    np.testing.assert_array_equal(result.outputs.numpy().argmax(-1), said.numpy())  # which it had never seen before


@pytest.mark.slow  # a ladder of the backends trains one, too
def test_a_tiny_gpt_learns_a_page_by_heart() -> None:
    ek.seed(0)
    letters = sorted(set(PAGE))
    context = (len(PAGE) - 1) // 4
    ids = np.array([letters.index(letter) for letter in PAGE[: 4 * context + 1]])
    lines, following = (ek.tensor(part.reshape(4, context)) for part in (ids[:-1], ids[1:]))
    model = nn.GPT(vocabulary=len(letters), context=context, layers=2, heads=2, width=64, bias=False)
    step = Step(model, classes, optim.Adam(model.parameters(), lr=5e-3))
    for _ in range(80):
        result = step(lines, following)
    assert result.loss.item() < 0.1
    assert (result.outputs.numpy().argmax(-1) == following.numpy()).mean() > 0.99
    model.eval()
    text = PAGE[:20]
    for _ in range(20):  # it goes on as the page does
        logits = model(ek.tensor([[letters.index(letter) for letter in text]])).detach()
        text += letters[int(interpret.evaluate([logits._node])[0][0, -1].argmax())]
    assert text == PAGE[:40]


def test_xor() -> None:
    ek.seed(0)
    x = ek.tensor([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
    y = ek.tensor([[0.0], [1.0], [1.0], [0.0]])
    model = nn.Sequential(nn.Linear(2, 8), nn.Tanh(), nn.Linear(8, 1))
    optimizer = optim.Adam(model.parameters(), lr=0.05)
    history = train.fit(model, [(x, y)], loss=nn.BCEWithLogitsLoss(), optimizer=optimizer, epochs=150, quiet=True)
    assert history["loss"][-1] < 0.05
    np.testing.assert_array_equal(model(x).detach().numpy() > 0, y.numpy() > 0.5)


def spirals(count: int, seed: int) -> tuple[Any, Any]:
    """Points of two arms that wind around each other, with a little noise."""
    rng = np.random.default_rng(seed)
    turn, arm = rng.uniform(0.25, 1.0, count) * 3 * np.pi, rng.integers(0, 2, count)
    angle = turn + arm * np.pi
    points = np.stack([np.cos(angle), np.sin(angle)], 1) * (turn / 10)[:, None] + rng.normal(
        scale=0.01, size=(count, 2)
    )
    return points.astype(np.float32), arm


def test_spirals() -> None:
    ek.seed(0)
    model = nn.Sequential(nn.Linear(2, 32), nn.Tanh(), nn.Linear(32, 32), nn.Tanh(), nn.Linear(32, 2))
    optimizer = optim.AdamW(model.parameters(), lr=0.02)
    history = train.fit(
        model, spirals(512, 0), batch_size=128, loss=ek.cross_entropy, optimizer=optimizer, epochs=80,
        schedule=optim.OneCycleLR(optimizer, max_lr=0.03, total_steps=320), validation=spirals(256, 1),
        metrics=["accuracy"], quiet=True,
    )  # fmt: skip
    assert history["val_accuracy"][-1] > 0.98
