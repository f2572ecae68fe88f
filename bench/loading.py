"""Loading batches of images as MNIST has them, beside PyTorch, and how long a training step waits for them.

An epoch of 12,800 images of 28 × 28 bytes, in shuffled batches of 128, made numbers from 0 to 1; and the same with
random crops and flips. The data set of PyTorch's does the same for each sample with its own functions, as its users
write it. `waiting` gives what share of its time a training loop of a small network spends in waiting for batches, of
Eshkol's loaders and of PyTorch's in the same loop.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from statistics import median
from typing import Any

import numpy as np

import eshkol as ek
from bench import peers
from bench.harness import PAUSE, Result, race

TITLE = "Loading of batches"
COUNT, BATCH, CLASSES = 12_800, 128, 10
EPOCHS = 3
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


def _our_step() -> Callable[[Any, Any], object]:
    from eshkol.train.step import Step

    model = Network()
    step = Step(model, ek.nn.CrossEntropyLoss(), ek.optim.Adam(model.parameters(), lr=1e-3))
    return lambda x, y: step(x, y).loss.item()


def _their_step() -> Callable[[Any, Any], object]:
    torch = peers.torch()
    parts = torch.nn.Linear(784, 128), torch.nn.ReLU(), torch.nn.Linear(128, CLASSES)
    model = torch.nn.Sequential(torch.nn.Flatten(), *parts)
    optimizer, loss = torch.optim.Adam(model.parameters(), lr=1e-3), torch.nn.CrossEntropyLoss()

    def step(x: Any, y: Any) -> object:
        optimizer.zero_grad()
        found = loss(model(x), y)
        found.backward()
        optimizer.step()
        return found.item()

    return step


def _epoch(loader: Any, step: Callable[[Any, Any], object]) -> tuple[float, float]:
    """What share of an epoch of training goes into asking for batches, and the seconds of a step with its batch."""
    waited, count, began = 0.0, 0, time.perf_counter()
    walk = iter(loader)
    while True:
        asked = time.perf_counter()
        batch = next(walk, None)
        waited += time.perf_counter() - asked
        if batch is None:
            break
        step(*batch)
        count += 1
    total = time.perf_counter() - began
    return waited / total, total / count


def waiting(augmented: bool) -> dict[str, tuple[float, float]]:
    """Share of waiting and seconds of a step for each kind of loader: medians of epochs taken in turns."""
    step = _our_step()
    runs = {
        "Eshkol": (ours(augmented), step),
        "Eshkol, workers=0": (ours(augmented, workers=0), step),
        "Eshkol, workers=1": (ours(augmented, workers=1), step),
        "Eshkol, batches at hand": (list(ours(augmented, workers=0)), step),
    }
    if peers.torch() is not None:
        runs["PyTorch"] = (theirs(augmented, 0), _their_step())
        runs["PyTorch, 2 workers"] = (theirs(augmented, 2), _their_step())
    found: dict[str, list[tuple[float, float]]] = {who: [] for who in runs}
    for turn in range(EPOCHS + 1):  # the first compiles the step and starts workers
        for who, (loader, its_step) in runs.items():
            if peers.torch() is not None:
                time.sleep(PAUSE)  # until the other's threads have fallen asleep
            measured = _epoch(loader, its_step)
            if turn:
                found[who].append(measured)
    return {who: (median(a for a, _ in each), median(b for _, b in each)) for who, each in found.items()}


def run() -> list[Result]:
    results = []
    for name, augmented in (("images from 0 to 1", False), ("cropped and flipped", True)):
        contestants = {"Eshkol": _walked(ours(augmented)), "Eshkol, workers=0": _walked(ours(augmented, workers=0))}
        if peers.torch() is not None:
            contestants["PyTorch"] = _walked(theirs(augmented, 0))
            contestants["PyTorch, 2 workers"] = _walked(theirs(augmented, 2))
        results.append(race(name, contestants, work=COUNT, unit="images"))
        for who, (share, seconds) in waiting(augmented).items():
            verdict = "" if share <= MOST_WAITING else f"  (more than {MOST_WAITING:.0%})"
            print(f"{name}, {who}: {share:.1%} of {seconds * 1e3:.2f} ms a step are waiting{verdict}")
    return results
