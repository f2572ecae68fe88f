"""Two-dimensional convolution and its gradients on the CPU backend beside PyTorch and JAX."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from bench import peers
from bench.harness import Result, race
from eshkol.atlas.builder import ProgramBuilder
from eshkol.atlas.program import LaunchConfig
from eshkol.atlas.table import ROWS
from eshkol.atlas.types import Type
from eshkol.backends.cpu import CpuBackend

TITLE = "convolution"
F32 = Type.F32
PASSES = {"Conv2D": "forward", "Conv2DGradInput": "to input", "Conv2DGradWeight": "to weight"}


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
    groups: int = 1

    @property
    def out_size(self) -> int:
        return (self.size + 2 * self.padding - self.kernel) // self.stride + 1

    @property
    def work(self) -> float:
        """Additions and multiplications."""
        places = self.batch * self.out_channels * self.out_size**2
        return 2.0 * places * self.channels // self.groups * self.kernel**2

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        return {
            "input": (self.batch, self.channels, self.size, self.size),
            "kernel": (self.out_channels, self.channels // self.groups, self.kernel, self.kernel),
            "gradient": (self.batch, self.out_channels, self.out_size, self.out_size),
        }

    def __str__(self) -> str:
        shape = f"{self.batch}×{self.channels}×{self.size}×{self.size} → {self.out_channels}"
        groups = f" in {self.groups} groups" if self.groups > 1 else ""
        return f"{shape}{groups}, {self.kernel}×{self.kernel} / {self.stride}"


CASES = (
    Case(16, 32, 32, 32, kernel=3, padding=1),
    Case(32, 3, 32, 64, kernel=3, padding=1),
    Case(8, 64, 56, 64, kernel=3, padding=1),
    Case(8, 64, 56, 64, kernel=1),
    Case(8, 64, 56, 64, kernel=3, padding=1, groups=64),
    Case(8, 64, 56, 128, kernel=3, stride=2, padding=1),
    Case(8, 256, 14, 256, kernel=3, padding=1),
    Case(1, 3, 224, 64, kernel=7, stride=2, padding=3),
)


def run() -> list[Result]:
    return [_race(case, name) for case in CASES for name in PASSES]


def _race(case: Case, name: str) -> Result:
    rng = np.random.default_rng(0)
    arrays = {key: rng.standard_normal(shape).astype(np.float32) for key, shape in case.shapes.items()}
    contestants = {"eshkol cpu": _ours(case, name, arrays), **_torch(case, name, arrays), **_jax(case, name, arrays)}
    return race(f"{case} {PASSES[name]} f32", contestants, work=case.work, unit="FLOP")


def _ours(case: Case, name: str, arrays: dict[str, np.ndarray]) -> Callable[[], object]:
    b, backend = ProgramBuilder("conv"), CpuBackend()
    memory: dict[str, Any] = {f.name: b.buffer(f.name, F32).address for f in ROWS[name].memory}
    i = ROWS[name](
        ty=F32, **memory, batch=case.batch, in_channels=case.channels, out_channels=case.out_channels,
        height=case.size, width=case.size, kernel_h=case.kernel, kernel_w=case.kernel, stride=(case.stride,) * 2,
        padding=(case.padding,) * 2, groups=case.groups,
    )  # fmt: skip
    b.emit(i)
    params = {key: backend.array(arrays[key].reshape(-1)) for key in memory if key != "output"}
    shape = ROWS[name].memory[0].shape
    assert shape is not None
    params["output"] = backend.array(np.zeros(math.prod(shape(i)), np.float32))
    return partial(backend.execute, b.build(), LaunchConfig(), params)


def _torch(case: Case, name: str, arrays: dict[str, np.ndarray]) -> dict[str, Callable[[], object]]:
    torch = peers.torch()
    if torch is None:
        return {}
    x, w, ct = (torch.from_numpy(arrays[key]) for key in ("input", "kernel", "gradient"))
    sizes = (case.stride,) * 2, (case.padding,) * 2, (1, 1)
    if name == "Conv2D":
        return {"PyTorch": lambda: torch.nn.functional.conv2d(x, w, None, *sizes, case.groups)}
    wanted = [name == "Conv2DGradInput", name == "Conv2DGradWeight", False]
    backward = torch.ops.aten.convolution_backward
    return {"PyTorch": lambda: backward(ct, x, w, None, *sizes, False, (0, 0), case.groups, wanted)}


def _jax(case: Case, name: str, arrays: dict[str, np.ndarray]) -> dict[str, Callable[[], object]]:
    jax = peers.jax()
    if jax is None:
        return {}
    x, w, ct = (arrays[key] for key in ("input", "kernel", "gradient"))

    def convolve(x: Any, w: Any) -> Any:
        edges = [(case.padding, case.padding)] * 2
        return jax.lax.conv_general_dilated(x, w, (case.stride,) * 2, edges, feature_group_count=case.groups)

    if name == "Conv2D":
        return {"JAX": peers.jitted(convolve, x, w)}
    place = 0 if name == "Conv2DGradInput" else 1
    return {"JAX": peers.jitted(lambda x, w, ct: jax.vjp(convolve, x, w)[1](ct)[place], x, w, ct)}
