"""An epoch of training, and inference, on every machine that is here: losses and answers as the CPU's.

The digits that come with the package, enlarged to the 28 × 28 of MNIST; a network of layers and one of convolutions, of
the sizes that one takes for those. Devices that only stand in for a GPU here (Mesa's driver for CPUs) take some steps
of the epoch: each of theirs takes seconds.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np
import pytest

import eshkol as ek
from eshkol import nn, optim, train
from eshkol.backends import backend_class

BATCH = 64
ON_PROCESSORS = 4  # steps where WebGPU and Vulkan have no GPU


def layers() -> nn.Sequential:
    return nn.Sequential(nn.Flatten(), nn.Linear(784, 128), nn.ReLU(), nn.Linear(128, 10))


def convolutions() -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(8, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(784, 10),
    )  # fmt: skip


@cache
def pictures(split: str) -> tuple[np.ndarray, np.ndarray]:
    """Digits of 28 × 28 elements, and which they are."""
    data = ek.data.digits(split)
    images = np.kron(data.arrays[0], np.ones((3, 3), np.float32))  # type: ignore[attr-defined]
    return np.pad(images, ((0, 0), (0, 0), (2, 2), (2, 2))), data.arrays[1]  # type: ignore[attr-defined]


def epoch(device: str, model: Callable[[], nn.Sequential], steps: int | None) -> tuple[np.ndarray, np.ndarray]:
    """The losses of an epoch of SGD there, and what the network then says of pictures that it has not seen."""
    images, labels = pictures("train")
    with ek.device(device):
        ek.seed(0)
        net = model()
        step = train.Step(net, nn.CrossEntropyLoss(), optim.SGD(net.parameters(), lr=0.05, momentum=0.9))
        starts = range(0, len(labels) - BATCH + 1, BATCH)[:steps]
        losses = [step(images[at : at + BATCH], labels[at : at + BATCH]).loss.item() for at in starts]
        return np.array(losses), net(ek.tensor(pictures("test")[0][:BATCH])).detach().numpy()


@cache
def on_the_cpu(model: Callable[[], nn.Sequential], steps: int | None) -> tuple[np.ndarray, np.ndarray]:
    return epoch("cpu", model, steps)


@pytest.mark.slow
@pytest.mark.parametrize("model", [layers, convolutions])
@pytest.mark.parametrize("device", ["opencl", "wasm", "xla", "webgpu", "vulkan", "cuda"])
def test_an_epoch_has_the_losses_of_the_cpu(device, model):
    kind = backend_class(device)
    if (reason := kind.unavailable()) is not None:
        pytest.skip(reason)
    on_a_processor = device in ("webgpu", "vulkan") and "llvmpipe" in str(kind.machines()[0])
    steps = ON_PROCESSORS if on_a_processor else None
    (wanted, said), (losses, found) = on_the_cpu(model, steps), epoch(device, model, steps)
    assert wanted[-1] < (wanted[0] if on_a_processor else 0.5 * wanted[0])
    np.testing.assert_allclose(losses, wanted, rtol=1e-4)  # the first steps: within 1e-6; differences grow with each
    np.testing.assert_allclose(losses[:4], wanted[:4], rtol=1e-6)
    np.testing.assert_allclose(found, said, rtol=1e-3, atol=1e-3)
    assert (found.argmax(1) == said.argmax(1)).all()
    print(f"{device}: {len(losses)} steps, {np.abs(losses / wanted - 1).max():.1g} of the CPU's losses apart at most")
