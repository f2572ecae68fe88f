"""Tensor operations and training steps on an NVIDIA GPU, beside PyTorch on the same one.

A call is a burst: as many operations as take a few milliseconds, and one wait at the end, so that what the host does
overlaps what the device does, as in a program. Beside the time that passes, the device's own is shown, from the first
operation of a burst to the last. Bytes are those that must be read and written. Needs a GPU, and says so where there is
none.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

import eshkol as ek
from bench import peers
from bench.harness import Result, race
from eshkol import nn, optim, train
from eshkol.tensors.devices import open_backend

TITLE = "on the GPU"
WIDE = 1 << 26  # elements of a large array
SIDE = 8192
Work = tuple[str, float, str, int, Callable[..., Any], Callable[..., Any], list[Any]]


def run() -> list[Result]:
    machine: Any = open_backend("cuda")
    torch = peers.torch()
    with ek.device("cuda"):
        found = [_raced(machine, torch, *row) for row in operations(torch)]
        return [*found, *(_trained(machine, torch, name) for name in NETWORKS)]


def operations(torch: Any) -> Iterator[Work]:
    """Name, work, unit, operations of a burst, ours, PyTorch's, and the arrays they are given."""
    rng = np.random.default_rng(0)

    def normal(*shape: int) -> Any:
        return rng.standard_normal(shape, np.float32)

    f: Any = torch.nn.functional if torch else None
    wide, other = normal(WIDE), normal(WIDE)
    square = normal(SIDE, SIDE)
    byte = "B"
    yield "2x 64M", 8.0 * WIDE, byte, 10, lambda x: x * 2.0, lambda x: x * 2.0, [wide]
    yield "add 64M", 12.0 * WIDE, byte, 10, lambda x, y: x + y, lambda x, y: x + y, [wide, other]
    chain = partial(_chain, ek)
    yield (
        "x·y + sin x · e^-x² 64M",
        12.0 * WIDE,
        byte,
        10,
        chain,
        _compiled(torch, partial(_chain, torch)),
        [wide, other],
    )
    yield "sum 64M", 4.0 * WIDE, byte, 10, lambda x: x.sum(), lambda x: x.sum(), [wide]
    yield "sum of columns 8192²", 4.0 * SIDE**2, byte, 10, lambda x: x.sum(0), lambda x: x.sum(0), [square]
    yield "sum of rows 8192²", 4.0 * SIDE**2, byte, 10, lambda x: x.sum(1), lambda x: x.sum(1), [square]
    yield "softmax 8192²", 8.0 * SIDE**2, byte, 10, lambda x: ek.softmax(x, -1), lambda x: f.softmax(x, -1), [square]
    norm = [square, normal(SIDE), normal(SIDE)]
    ours: Any
    theirs: Any
    ours, theirs = lambda x, w, b: ek.layer_norm(x, SIDE, w, b), lambda x, w, b: f.layer_norm(x, (SIDE,), w, b)
    yield "layer norm 8192²", 8.0 * SIDE**2, byte, 10, ours, theirs, norm
    yield "transpose 8192²", 8.0 * SIDE**2, byte, 10, lambda x: x.T + 0.0, lambda x: (x.T + 0.0).contiguous(), [square]
    for n in (1024, 4096):
        pair = [normal(n, n), normal(n, n)]
        yield f"matmul {n}³ f32", 2.0 * n**3, "FLOP", 5, lambda x, y: x @ y, lambda x, y: x @ y, pair
        halves = [a.astype(ek.bfloat16.numpy) for a in pair]
        yield f"matmul {n}³ bf16", 2.0 * n**3, "FLOP", 20, lambda x, y: x @ y, lambda x, y: x @ y, halves
    heads = [normal(4, 16, 1024, 64) for _ in range(3)]
    yield (
        "attention 4×16×1024×64", 4.0 * 64 * 1024**2 * 64, "FLOP", 5, ek.scaled_dot_product_attention,
        getattr(f, "scaled_dot_product_attention", None), heads,
    )  # fmt: skip
    for length, width in ((4096, 64), (4096, 128)):
        heads = [normal(4, 16, length, width).astype(ek.bfloat16.numpy) for _ in range(3)]
        yield (
            f"attention 4×16×{length}×{width} bf16", 4.0 * 64 * length**2 * width, "FLOP", 5,
            ek.scaled_dot_product_attention, getattr(f, "scaled_dot_product_attention", None), heads,
        )  # fmt: skip
    images = [normal(32, 64, 56, 56), normal(64, 64, 3, 3)]
    work = 2.0 * 32 * 64 * 64 * 9 * 56 * 56
    ours, theirs = lambda x, w: ek.conv2d(x, w, padding=1), lambda x, w: f.conv2d(x, w, padding=1)
    yield "conv 32×64×56², 3×3", work, "FLOP", 5, ours, theirs, images
    halves = [a.astype(ek.bfloat16.numpy) for a in images]
    yield "conv 32×64×56², 3×3 bf16", work, "FLOP", 5, ours, theirs, halves
    systems = [normal(1000, 16, 16) + 4 * np.eye(16, dtype=np.float32), normal(1000, 16, 2)]
    yield (
        "1000 systems of 16",
        1000.0,
        "system",
        1,
        ek.solve,
        getattr(getattr(torch, "linalg", None), "solve", None),
        systems,
    )
    yield "one small add", 1.0, "op", 100, lambda x, y: x + y, lambda x, y: x + y, [normal(100), normal(100)]


def _chain(library: Any, x: Any, y: Any) -> Any:
    return x * y + library.sin(x) * library.exp(-x * x)


def _compiled(torch: Any, function: Callable[..., Any]) -> Any:
    return torch.compile(function) if torch else None


def _raced(
    machine: Any, torch: Any, name: str, work: float, unit: str, count: int, ours: Any, theirs: Any, arrays: list[Any]
) -> Result:
    given, compiled = [ek.tensor(a).realize() for a in arrays], ek.jit(ours)

    def burst() -> None:
        for _ in range(count):
            compiled(*given)
        machine.synchronize()

    contestants: dict[str, Callable[[], object]] = {"eshkol": burst}
    if torch:
        there = [_uploaded(torch, a) for a in arrays]

        def bursting() -> None:
            for _ in range(count):
                theirs(*there)
            torch.cuda.synchronize()

        contestants["PyTorch"] = bursting
    return with_events(machine, torch, race(name, contestants, work=work * count, unit=unit, budget=0.4), contestants)


EVENTS = 9  # bursts that the device's time is the median of


def with_events(machine: Any, torch: Any, result: Result, contestants: dict[str, Callable[[], object]]) -> Result:
    """The same with the devices' own times."""
    seconds = dict(result.seconds)
    for who, burst in contestants.items():
        ours = who.startswith("eshkol")
        times = []
        for _ in range(EVENTS):
            start, end = (machine.event() if ours else torch.cuda.Event(enable_timing=True) for _ in range(2))
            start.record()
            burst()
            end.record()
            machine.synchronize() if ours else torch.cuda.synchronize()
            times.append(start.seconds_until(end) if ours else start.elapsed_time(end) / 1000)
        seconds[f"{who}, on the device"] = statistics.median(times)
    return replace(result, seconds=seconds)


def _uploaded(torch: Any, array: Any) -> Any:
    """An array as PyTorch's tensor on the GPU; it does not know NumPy's bfloat16."""
    if array.dtype == ek.bfloat16.numpy:
        return torch.from_numpy(array.view(np.int16)).cuda().view(torch.bfloat16)
    return torch.from_numpy(array).cuda()


NETWORKS = ("MLP", "CNN", "transformer")
STEPS = 10


def _trained(machine: Any, torch: Any, name: str) -> Result:
    rng = np.random.default_rng(1)
    y = rng.integers(0, 10, 128)
    shape = {"MLP": (128, 784), "CNN": (128, 3, 32, 32), "transformer": (128, 32, 64)}[name]
    x = rng.standard_normal(shape, np.float32)
    model = _network(nn, name).to("cuda")
    step = train.Step(model, nn.CrossEntropyLoss(), optim.Adam(model.parameters(), lr=1e-3))
    inputs, targets = ek.tensor(x), ek.tensor(y)

    def burst() -> None:
        for _ in range(STEPS):
            step(inputs, targets)
        machine.synchronize()

    contestants: dict[str, Callable[[], object]] = {"eshkol jit": burst}
    if torch:
        other = _network(torch.nn, name).cuda()
        for who, net in (("PyTorch", other), ("torch.compile", torch.compile(other))):
            contestants[who] = _torch_burst(torch, net, torch.from_numpy(x).cuda(), torch.from_numpy(y).cuda())
    found = race(f"{name} step", contestants, work=STEPS, unit="steps", budget=0.6)
    return with_events(machine, torch, found, contestants)


def _torch_burst(torch: Any, net: Any, x: Any, y: Any) -> Callable[[], None]:
    adam, loss = torch.optim.Adam(net.parameters(), lr=1e-3), torch.nn.CrossEntropyLoss()

    def burst() -> None:
        for _ in range(STEPS):
            adam.zero_grad()
            loss(net(x), y).backward()
            adam.step()
        torch.cuda.synchronize()

    return burst


def _network(library: Any, name: str) -> Any:
    """The same network in either library's layers, which have the same names."""
    if name == "MLP":
        layers = [library.Linear(784, 512), library.ReLU(), library.Linear(512, 512), library.ReLU(),
                  library.Linear(512, 10)]  # fmt: skip
        return library.Sequential(*layers)
    if name == "CNN":
        layers = [library.Conv2d(3, 32, 3, padding=1), library.ReLU(), library.MaxPool2d(2),
                  library.Conv2d(32, 64, 3, padding=1), library.ReLU(), library.MaxPool2d(2), library.Flatten(),
                  library.Linear(64 * 64, 10)]  # fmt: skip
        return library.Sequential(*layers)
    layers = [library.LayerNorm(64), library.Linear(64, 256), library.GELU(), library.Linear(256, 64),
              library.LayerNorm(64), library.Flatten(), library.Linear(32 * 64, 10)]  # fmt: skip
    return library.Sequential(*layers)
