"""Trained models, and how good they are: `make results` (and `make test-all`) writes docs/results.md.

    python -m bench.results [name ...]        trains all, or those named; results of others are kept

Each task trains a model with a fixed seed, measures it on data that it has not seen, and times its epochs; where
PyTorch is installed, the same network is timed there for a few steps on the same machine. Data that does not come with
the package is looked for in ../shared/data, or in the folder that ESHKOL_DATA names; a task whose data is missing says
so. Of CIFAR-10 there may be a few images or all of them, in the layout of its archive: with all, a larger network is
trained. What came out is kept in docs/results.json, of which the page is written. The exit status is 1 if a result
falls short of what is asked of it.
"""

from __future__ import annotations

import json
import os
import platform
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

import eshkol as ek
from bench.peer_models import seconds_per_step
from eshkol import nn, optim
from eshkol.errors import MissingData

ROOT = Path(__file__).parents[1]
DATA = Path(os.environ.get("ESHKOL_DATA", ROOT.parent / "shared" / "data"))
KEPT = ROOT / "docs" / "results.json"
PAGE = ROOT / "docs" / "results.md"


@dataclass
class Result:
    """What a task has come to."""

    name: str
    about: str
    measure: str
    value: float
    wanted: float
    seed: int
    epochs: int
    seconds: float  # of an epoch
    torch_seconds: float | None = None  # the same epoch in PyTorch
    sample: str = ""
    machine: str = field(default_factory=lambda: f"{platform.machine()}, {os.cpu_count()} cores")

    @property
    def good(self) -> bool:
        """Whether it is as good as is asked: a loss is to be small, an accuracy great."""
        return self.value <= self.wanted if "loss" in self.measure else self.value >= self.wanted

    @property
    def shown(self) -> str:
        return f"{self.value:.3f}" if "loss" in self.measure else f"{100 * self.value:.2f} %"


class Missing(Exception):
    """The data of a task is not there."""


# ---- models ----------------------------------------------------------------------------------------------------------


def digits_model() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(512, 64), nn.ReLU(), nn.Dropout(0.25), nn.Linear(64, 10),
    )  # fmt: skip


def mlp_model() -> nn.Module:
    return nn.Sequential(
        nn.Flatten(), nn.Linear(784, 256), nn.ReLU(), nn.Dropout(0.2), nn.Linear(256, 128), nn.ReLU(),
        nn.Linear(128, 10),
    )  # fmt: skip


def cnn_model(channels: int = 1, side: int = 28, dropout: float = 0.3) -> nn.Module:
    widths, layers = (channels, 24, 48, 64), list[Any]()
    for a, b in pairwise(widths):
        layers += [nn.Conv2d(a, b, 3, padding=1), nn.BatchNorm2d(b), nn.ReLU()]
        if b < widths[-1]:
            layers.append(nn.MaxPool2d(2))
    features = widths[-1] * (side // 4) ** 2
    return nn.Sequential(*layers, nn.Flatten(), nn.Dropout(dropout), nn.Linear(features, 10))


def cifar_model() -> nn.Module:
    """Six convolutions, for all of CIFAR-10."""
    layers = list[Any]()
    for a, b in ((3, 32), (32, 64), (64, 128)):
        for c in (a, b):
            layers += [nn.Conv2d(c, b, 3, padding=1), nn.BatchNorm2d(b), nn.ReLU()]
        layers.append(nn.MaxPool2d(2))
    return nn.Sequential(*layers, nn.Flatten(), nn.Dropout(0.3), nn.Linear(128 * 4 * 4, 10))


# ---- classifiers -----------------------------------------------------------------------------------------------------


def classifier(
    name: str, about: str, wanted: float, model: nn.Module, train: Any, test: Any, *, epochs: int, batch: int,
    rate: float, seed: int = 0,
) -> Result:  # fmt: skip
    """Train a classifier; its accuracy on the test data is the result."""
    batches = ek.data.DataLoader(train, batch, shuffle=True, seed=seed, drop_last=True, workers=1)
    optimizer = optim.AdamW(model.parameters(), lr=rate, weight_decay=0.01)
    schedule = optim.OneCycleLR(optimizer, max_lr=rate, total_steps=epochs * len(batches))
    times = Times()
    ek.train.fit(
        model, batches, loss=ek.cross_entropy, optimizer=optimizer, epochs=epochs, schedule=schedule,
        schedule_every="step", seed=seed, metrics=["accuracy"], callbacks=[times],
    )  # fmt: skip
    held = ek.train.validate(model, ek.cross_entropy, ek.data.DataLoader(test, 500), metrics=["accuracy"])
    torch = seconds_per_step(name, batch)
    whole = None if torch is None else torch * len(batches)
    return Result(name, about, "accuracy", float(held["accuracy"]), wanted, seed, epochs, times.epoch, whole)


class Times(ek.train.Callback):
    """Seconds of an epoch: the least, since the first one compiles."""

    def __init__(self) -> None:
        self.all: list[float] = []
        self.began = 0.0

    def on_epoch_begin(self, run: Any) -> None:
        self.began = time.perf_counter()

    def on_epoch_end(self, run: Any) -> None:
        self.all.append(time.perf_counter() - self.began)

    @property
    def epoch(self) -> float:
        return min(self.all)


def digits() -> Result:
    ek.seed(0)
    return classifier(
        "digits", "CNN, 38,282 parameters; digits of 8 × 8 that come with the package, 360 held out", 0.98,
        digits_model(), ek.data.digits("train"), ek.data.digits("test"), epochs=20, batch=32, rate=0.005,
    )  # fmt: skip


def mnist(split: str) -> Any:
    if not (DATA / "mnist").is_dir():
        raise Missing(f"put MNIST's four files into {DATA / 'mnist'}")
    return ek.data.load_mnist(DATA, split)


def mnist_mlp() -> Result:
    ek.seed(0)
    return classifier(
        "mnist-mlp", "MLP 784-256-128-10; MNIST", 0.98, mlp_model(), mnist("train"), mnist("test"),
        epochs=10, batch=128, rate=0.003,
    )  # fmt: skip


def mnist_cnn() -> Result:
    ek.seed(0)
    train = mnist("train").map(ek.data.RandomCrop(28, padding=2), on=0)
    return classifier(
        "mnist-cnn", "CNN of three convolutions with batch norm, random shifts; MNIST", 0.992,
        cnn_model(), train, mnist("test"), epochs=6, batch=128, rate=0.004,
    )  # fmt: skip


WHOLE = 50_000  # images of CIFAR-10 to learn from


def cifar() -> Result:
    """CIFAR-10: what is there of it, with a network that suits as many images."""
    try:
        train, test = (ek.data.load_cifar10(DATA, split) for split in ("train", "test"))
    except MissingData as error:
        raise Missing(f"{error.message}; {error.hint}") from None
    ek.seed(0)
    shifted = train.map(ek.data.Compose(ek.data.RandomCrop(32, padding=4), ek.data.RandomFlip()), on=0)
    if len(train) >= WHOLE:
        return classifier(
            "cifar10-whole", "CNN of six convolutions with batch norm, random shifts and flips; all of CIFAR-10", 0.8,
            cifar_model(), shifted, test, epochs=16, batch=128, rate=0.004,
        )  # fmt: skip
    about = f"the same CNN, random shifts and flips; CIFAR-10, {len(train):,} images to learn from"
    return classifier(
        "cifar10", about, 0.4, cnn_model(3, 32), shifted, test, epochs=40, batch=64, rate=0.003,
    )  # fmt: skip


# ---- text ------------------------------------------------------------------------------------------------------------

STEPS, BATCH, CONTEXT = 4000, 32, 64


def gpt() -> Result:
    """A GPT of four layers on tiny Shakespeare, letter by letter; the loss on the last tenth of it is the result."""
    file = DATA / "text" / "tinyshakespeare.txt"
    if not file.exists():
        raise Missing(f"put tiny Shakespeare into {file}")
    text = file.read_text("utf-8")
    letters = ek.data.CharTokenizer.train(text)
    train, held = ek.data.split_tokens(np.asarray(letters.encode(text)), 0.9)
    ek.seed(0)
    model = nn.GPT(vocabulary=letters.size, context=CONTEXT, layers=4, heads=4, width=128)
    optimizer = optim.AdamW(model.parameters(), lr=3e-3, betas=(0.9, 0.99), weight_decay=0.1)
    schedule = optim.OneCycleLR(optimizer, max_lr=3e-3, total_steps=STEPS, pct_start=0.05)
    step = ek.train.Step(model, text_loss, optimizer, clip_norm=1.0)
    times = []
    for number, (x, y) in zip(range(1, STEPS + 1), stretches(train), strict=False):
        began = time.perf_counter()
        loss = step(ek.tensor(x), ek.tensor(y)).loss.item()
        times.append(time.perf_counter() - began)
        schedule.step()
        if number % 100 == 0:
            print(f"step {number}/{STEPS}: loss {loss:.4f}, {np.median(times):.3f} s a step", flush=True)
    model.eval()
    blocks = ek.data.DataLoader(ek.data.BlockDataset(held, CONTEXT), 50)
    value = float(ek.train.validate(model, text_loss, blocks)["loss"])
    prompt = ek.tensor(np.asarray(letters.encode("ROMEO:")))
    said = letters.decode(model.generate(prompt, 400, temperature=0.8, rng=ek.random.key(0)).numpy())
    tokens = len(train) / (BATCH * CONTEXT)  # steps that see as many letters as there are
    torch = seconds_per_step("gpt", BATCH)
    return Result(
        "gpt", f"GPT, 4 layers, 4 heads, width 128, {CONTEXT} letters; tiny Shakespeare, {STEPS} steps of {BATCH}",
        "validation loss", value, 1.7, 0, round(STEPS / tokens), tokens * float(np.median(times)),
        None if torch is None else tokens * torch, said,
    )  # fmt: skip


def text_loss(logits: Any, following: Any) -> Any:
    return ek.cross_entropy(logits.reshape(-1, logits.shape[-1]), following.reshape(-1))


def stretches(tokens: Any) -> Iterator[tuple[Any, Any]]:
    """Random stretches of the text, and the same moved on by one."""
    draw = np.random.default_rng(0)
    places = np.arange(CONTEXT)
    while True:
        at = draw.integers(0, len(tokens) - CONTEXT - 1, BATCH)[:, None] + places
        yield tokens[at], tokens[at + 1]


# ---- the page --------------------------------------------------------------------------------------------------------

TASKS: dict[str, Callable[[], Result]] = {
    "digits": digits, "mnist-mlp": mnist_mlp, "mnist-cnn": mnist_cnn, "cifar10": cifar, "gpt": gpt,
}  # fmt: skip
ROWS = ("digits", "mnist-mlp", "mnist-cnn", "cifar10", "cifar10-whole", "gpt")  # of the page
UNSEEN = """
All 50,000 images of CIFAR-10 were not there. A network of six convolutions is ready for them, which is to come to 80 %
in 16 epochs; that has not been seen here. Who has the images unpacks the binary version of the archive and runs
`ESHKOL_DATA=FOLDER make results`, where FOLDER has `cifar-10-batches-bin` in it; the result becomes a row of this page.
"""


def page(results: list[Result]) -> str:
    """docs/results.md."""
    lines = [
        "# Trained models", "",
        "Written by `make results` (`make test-all` runs it, too): each model is trained from its seed, and measured",
        "on data that it has not seen. Times are seconds of an epoch once compiled, on the machine named; PyTorch's",
        "are those of the same network there (not compiled), where it is installed, from the time of a step.", "",
        "| | model and data | result | wanted | seed | epochs | s/epoch | PyTorch | machine |",
        "|---|---|---|---|---|---|---|---|---|",
    ]  # fmt: skip
    for r in results:
        wanted = f"≤ {r.wanted}" if "loss" in r.measure else f"≥ {100 * r.wanted:g} %"
        torch = "—" if r.torch_seconds is None else f"{r.torch_seconds:.2f}"
        lines.append(
            f"| {r.name} | {r.about} | {r.measure} **{r.shown}** | {wanted} | {r.seed} | {r.epochs} | {r.seconds:.2f} "
            f"| {torch} | {r.machine} |"
        )
    if not any(r.name == "cifar10-whole" for r in results):
        lines += UNSEEN.rstrip().split("\n")
    for r in results:
        if r.sample:
            lines += ["", f"What {r.name} says after its first word:", "", "```text", *r.sample.splitlines(), "```"]
    return "\n".join(lines) + "\n"


def kept() -> dict[str, Result]:
    """Results of earlier runs."""
    if not KEPT.exists():
        return {}
    return {name: Result(**row) for name, row in json.loads(KEPT.read_text("utf-8")).items()}


def main(words: list[str]) -> int:
    unknown = [word for word in words if word not in TASKS]
    if unknown:
        print(f"no task '{unknown[0]}'; there are {', '.join(TASKS)}", file=sys.stderr)
        return 2
    results = kept()
    for name in words or TASKS:
        print(f"--- {name}", flush=True)
        try:
            result = TASKS[name]()
        except Missing as missing:
            print(f"left out: {missing}")
            continue
        print(f"{result.name}: {result.measure} {result.shown}", flush=True)
        results[result.name] = result
        KEPT.write_text(json.dumps({key: asdict(r) for key, r in results.items()}, indent=1) + "\n", encoding="utf-8")
    found = [results[name] for name in ROWS if name in results]
    if found:
        PAGE.write_text(page(found), encoding="utf-8")
    short = [r.name for r in found if not r.good]
    if short:
        print(f"not as good as wanted: {', '.join(short)}", file=sys.stderr)
    return 1 if short else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
