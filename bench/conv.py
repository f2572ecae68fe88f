"""Two-dimensional convolution on the CPU backend beside PyTorch and JAX."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from bench import peers
from bench.harness import Result, race
from eshkol.atlas.builder import ProgramBuilder
from eshkol.atlas.program import LaunchConfig, Program
from eshkol.atlas.types import Type
from eshkol.backends.cpu import CpuBackend

TITLE = "convolution"
F32 = Type.F32


@dataclass(frozen=True)
class Case:
    """Square images and kernels."""

    batch: int
    channels: int
    size: int
    out_channels: int
    kernel: int
    stride: int = 1
    padding: int = 0

    @property
    def out_size(self) -> int:
        return (self.size + 2 * self.padding - self.kernel) // self.stride + 1

    @property
    def work(self) -> float:
        """Additions and multiplications."""
        places = self.batch * self.out_channels * self.out_size**2
        return 2.0 * places * self.channels * self.kernel**2

    def __str__(self) -> str:
        shape = f"{self.batch}×{self.channels}×{self.size}×{self.size} → {self.out_channels}"
        return f"{shape}, {self.kernel}×{self.kernel} / {self.stride}"


CASES = (
    Case(8, 64, 56, 64, kernel=3, padding=1),
    Case(8, 256, 14, 256, kernel=3, padding=1),
    Case(1, 3, 224, 64, kernel=7, stride=2, padding=3),
    Case(8, 256, 56, 64, kernel=1),
)


def _program(case: Case) -> Program:
    b = ProgramBuilder("conv")
    b.conv2d(F32, *(b.buffer(name, F32).address for name in ("output", "input", "kernel")), batch=case.batch,
             in_channels=case.channels, out_channels=case.out_channels, height=case.size, width=case.size,
             kernel_h=case.kernel, kernel_w=case.kernel, stride=(case.stride,) * 2,
             padding=(case.padding,) * 2)  # fmt: skip
    return b.build()


def run() -> list[Result]:
    return [_race(case) for case in CASES]


def _race(case: Case) -> Result:
    rng, backend = np.random.default_rng(0), CpuBackend()
    image = rng.standard_normal((case.batch, case.channels, case.size, case.size)).astype(np.float32)
    kernel = rng.standard_normal((case.out_channels, case.channels, case.kernel, case.kernel)).astype(np.float32)
    output = np.zeros((case.batch, case.out_channels, case.out_size, case.out_size), np.float32)
    params = {"input": backend.array(image), "kernel": backend.array(kernel), "output": backend.array(output)}
    contestants: dict[str, Callable[[], object]] = {
        "eshkol cpu": partial(backend.execute, _program(case), LaunchConfig(), params)
    }
    torch, jax = peers.torch(), peers.jax()
    if torch:
        tensors = torch.from_numpy(image), torch.from_numpy(kernel)
        convolve = partial(torch.nn.functional.conv2d, stride=case.stride, padding=case.padding)
        contestants["PyTorch"] = partial(convolve, *tensors)
    if jax:
        edges = [(case.padding, case.padding)] * 2
        convolve = partial(jax.lax.conv, window_strides=(case.stride,) * 2, padding=edges)
        contestants["JAX"] = peers.jitted(convolve, image, kernel)
    return race(f"{case} f32", contestants, work=case.work, unit="FLOP")
