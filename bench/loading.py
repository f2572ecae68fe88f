"""Loading batches of images as MNIST has them, beside PyTorch, and how long a training step waits for them.

An epoch of 12,800 images of 28 × 28 bytes, in shuffled batches of 128, made numbers from 0 to 1; and the same with
random crops and flips. The data set of PyTorch's does the same for each sample with its own functions, as its users
write it. `waiting` gives what share of its time a training loop of a small network spends in waiting for batches.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

import eshkol as ek
from bench import peers
from bench.harness import Result, race

TITLE = "Loading of batches"
COUNT, BATCH, CLASSES = 12_800, 128, 10
MOST_WAITING = 0.05


def _images() -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    return rng.integers(0, 256, (COUNT, 1, 28, 28), np.uint8), rng.integers(0, CLASSES, COUNT)


def ours(augmented: bool, **options: Any) -> ek.data.DataLoader:
    """Eshkol's loader of the images."""
    images, labels = _images()
    data: ek.data.Dataset = ek.data.ArrayDataset(images, labels)
    if augmented:
        data = data.map(ek.data.Compose(ek.data.RandomCrop(28, padding=2), ek.data.RandomFlip()), on=0)
    return ek.data.DataLoader(data.map(ek.data.Scale(1 / 255), on=0), BATCH, shuffle=True, seed=0, **options)


def theirs(augmented: bool, workers: int) -> Any:
    """PyTorch's, with a data set as its users write one."""
    torch = peers.torch()
    images, labels = (torch.from_numpy(a) for a in _images())

    class Images:
        def __len__(self) -> int:
            return COUNT

        def __getitem__(self, index: int) -> Any:
            image = images[index]
            if augmented:
                image = torch.nn.functional.pad(image, (2, 2, 2, 2))
                top, left = torch.randint(0, 5, (2,)).tolist()
                image = image[:, top : top + 28, left : left + 28]
                if torch.rand(()) < 0.5:
                    image = image.flip(-1)
            return image.float() / 255, labels[index]

    return torch.utils.data.DataLoader(
        Images(), BATCH, shuffle=True, num_workers=workers, persistent_workers=workers > 0
    )


def _walked(loader: Any) -> Callable[[], object]:
    return lambda: sum(len(y) for _, y in loader)


class Network(ek.nn.Module):
    """784 – 128 – 10."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = ek.nn.Linear(784, 128), ek.nn.Linear(128, CLASSES)

    def forward(self, x: Any) -> Any:
        return self.second(ek.relu(self.first(ek.flatten(x, 1))))


def waiting(augmented: bool, **options: Any) -> tuple[float, float]:
    """What share of an epoch of training goes into waiting for batches, and the seconds of a step."""
    from eshkol.train.step import Step

    model = Network()
    step = Step(model, ek.nn.CrossEntropyLoss(), ek.optim.Adam(model.parameters(), lr=1e-3))
    with ours(augmented, **options) as loader:
        for x, y in loader:  # compiles the step, starts workers
            step(x, y).loss.numpy()
        loader.waited, began = 0.0, time.perf_counter()
        for x, y in loader:
            step(x, y).loss.numpy()
        total = time.perf_counter() - began
        return loader.waited / total, total / len(loader)


def run() -> list[Result]:
    results = []
    for name, augmented in (("images from 0 to 1", False), ("cropped and flipped", True)):
        loaders = {"Eshkol": ours(augmented), "Eshkol, one thread ahead": ours(augmented, workers=1)}
        contestants = {who: _walked(loader) for who, loader in loaders.items()}
        if peers.torch() is not None:
            contestants["PyTorch"] = _walked(theirs(augmented, 0))
            contestants["PyTorch, 2 workers"] = _walked(theirs(augmented, 2))
        results.append(race(name, contestants, work=COUNT, unit="images"))
        for who, options in (("no worker", {}), ("one thread ahead", {"workers": 1})):
            share, seconds = waiting(augmented, **options)
            verdict = "" if share <= MOST_WAITING else f"  (more than {MOST_WAITING:.0%})"
            print(f"{name}, {who}: {share:.1%} of {seconds * 1e3:.2f} ms a step are waiting{verdict}")
    return results
