"""`fit` with a data loader: it knows where it stands, so a run goes on in the middle of an epoch, bit for bit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import eshkol as ek
from eshkol.data import ArrayDataset, DataLoader

RNG = np.random.default_rng(0)
X = RNG.normal(size=(22, 3)).astype(np.float32)
Y = (X @ np.array([[1.0], [-2.0], [0.5]], np.float32)).astype(np.float32)


def shifted(sample: Any, generator: np.random.Generator) -> Any:
    return sample[0] + generator.normal(size=3).astype(np.float32) * np.float32(0.1), sample[1]


class Keep(ek.train.Callback):
    """Keeps the state of the run after one of its steps."""

    def __init__(self, at: int) -> None:
        self.at, self.state = at, None

    def on_step_end(self, run: Any) -> None:
        if run.step == self.at:
            self.state = run.state_dict()


def trained(at: int, resume: Any = None, workers: int = 0, seed: int = 5) -> tuple[Any, Any]:
    with (
        ek.use_backend("reference"),
        DataLoader(ArrayDataset(X, Y).map(shifted, random=True), 5, shuffle=True, seed=seed, workers=workers) as loader,
    ):
        ek.seed(1)
        model, keep = ek.nn.Linear(3, 1), Keep(at)
        ek.train.fit(
            model, loader, loss=ek.mse_loss, optimizer=ek.optim.SGD(model.parameters(), lr=0.05), epochs=3,
            callbacks=[keep], resume=resume, quiet=True,
        )  # fmt: skip
        return [p.detach().numpy().copy() for p in model.parameters()], keep.state


@pytest.mark.parametrize("at", [1, 5, 8, 10, 12])  # an epoch has 5 batches; after the last one, too
def test_a_run_goes_on_in_the_middle_of_an_epoch(at) -> None:
    whole, state = trained(at)
    found, _ = trained(0, resume=state, workers=at % 2, seed=77)  # the seed is that of the state
    for a, b in zip(found, whole, strict=True):
        np.testing.assert_array_equal(a, b)
