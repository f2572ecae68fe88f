"""Training steps of ResNet-50 on an NVIDIA GPU, beside PyTorch's with channels last, as it is and compiled.

`python -m bench resnet`. Mixed precision in bfloat16, SGD with momentum, pictures of 224 × 224 in 1,000 classes. A call
is a burst of steps with one wait at the end; the device's own time is shown beside it, as in `bench/gpu.py`. Needs a
GPU, and compares with PyTorch where that is installed: the same network in its modules.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

import eshkol as ek
from bench import peers
from bench.gpu import with_events
from bench.harness import Result, race
from eshkol import nn, optim, train
from eshkol.tensors.devices import open_backend

TITLE = "ResNet-50 on the GPU"
PICTURES = (32, 128)  # of a step
SIDE, CLASSES = 224, 1000
STAGES = ((3, 64), (4, 128), (6, 256), (3, 512))  # blocks, and channels between their convolutions
EXPANSION = 4
STEPS = 5  # of a burst
RATE, MOMENTUM = 0.01, 0.9


def run() -> list[Result]:
    machine: Any = open_backend("cuda")
    torch = peers.torch()
    with ek.device("cuda"):
        return [_raced(machine, torch, pictures) for pictures in PICTURES]


def _raced(machine: Any, torch: Any, pictures: int) -> Result:
    rng = np.random.default_rng(0)
    images = rng.standard_normal((pictures, 3, SIDE, SIDE), np.float32)
    classes = rng.integers(0, CLASSES, pictures)
    contestants = {"eshkol": ours(machine, images, classes)}
    if torch:
        for name, compiled in (("PyTorch", False), ("torch.compile", True)):
            contestants[name] = theirs(torch, images, classes, compiled)
    result = race(f"{pictures} pictures", contestants, work=STEPS * pictures, unit="pictures", budget=2.0)
    return with_events(machine, torch, result, contestants)


def ours(machine: Any, images: Any, classes: Any) -> Callable[[], object]:
    """A burst of our steps."""
    model = nn.resnet50().to("cuda")
    sgd = optim.SGD(model.parameters(), lr=RATE, momentum=MOMENTUM)
    step = train.Step(model, ek.cross_entropy, sgd, precision=ek.bfloat16)
    batch = ek.tensor(images), ek.tensor(classes)

    def burst() -> None:
        for _ in range(STEPS):
            step(*batch)
        machine.synchronize()

    return burst


def theirs(torch: Any, images: Any, classes: Any, compiled: bool) -> Callable[[], object]:
    """A burst of PyTorch's."""
    warnings.filterwarnings("ignore")  # its compiler's remarks on its own choices
    torch.backends.cudnn.benchmark = True
    last = torch.channels_last
    network = _network(torch).cuda().to(memory_format=last)
    sgd = torch.optim.SGD(network.parameters(), lr=RATE, momentum=MOMENTUM, fused=True)
    run = torch.compile(network) if compiled else network
    inputs, targets = torch.from_numpy(images).cuda().to(memory_format=last), torch.from_numpy(classes).cuda()

    def burst() -> None:
        for _ in range(STEPS):
            sgd.zero_grad()
            with torch.autocast("cuda", torch.bfloat16):
                torch.nn.functional.cross_entropy(run(inputs), targets).backward()
            sgd.step()
        torch.cuda.synchronize()

    return burst


def _network(torch: Any) -> Any:
    """The same network in PyTorch's modules."""
    tn = torch.nn
    module: Any = tn.Module

    def joined(inward: int, outward: int, size: int, stride: int = 1) -> Any:
        conv = tn.Conv2d(inward, outward, size, stride, size // 2, bias=False)
        return tn.Sequential(conv, tn.BatchNorm2d(outward))

    class Block(module):  # type: ignore[misc]
        def __init__(self, inward: int, width: int, stride: int) -> None:
            super().__init__()
            wide = width * EXPANSION
            self.first, self.second = joined(inward, width, 1), joined(width, width, 3, stride)
            self.third = joined(width, wide, 1)
            self.around = joined(inward, wide, 1, stride) if stride > 1 or inward != wide else tn.Identity()

        def forward(self, x: Any) -> Any:
            inner = self.second(self.first(x).relu()).relu()
            return (self.third(inner) + self.around(x)).relu()

    layers, channels = [joined(3, 64, 7, 2), tn.ReLU(), tn.MaxPool2d(3, 2, 1)], 64
    for stage, (blocks, width) in enumerate(STAGES):
        for number in range(blocks):
            layers.append(Block(channels, width, 2 if stage and not number else 1))
            channels = width * EXPANSION
    return tn.Sequential(*layers, tn.AdaptiveAvgPool2d(1), tn.Flatten(), tn.Linear(channels, CLASSES))
