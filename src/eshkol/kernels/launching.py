"""Kernels of the ladder on tensors: what is checked, the launch, the device's time, and tiles that are measured.

Comes in: the name of a rung and two tensors. Goes out: a tensor on the same device. Programs are made once for each
rung, extents and machine; what `tune` finds is kept for as long as the process lives.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from statistics import median

import numpy as np

from eshkol.atlas.machines import ProductTile
from eshkol.atlas.program import LaunchConfig, Program
from eshkol.atlas.sequence import Call, Next, Set
from eshkol.backends.base import Backend
from eshkol.errors import ArgumentError, DeviceError, DTypeError, ShapeError, TensorError
from eshkol.graph.node import buffer, here
from eshkol.kernels.parts import F32, Extents
from eshkol.kernels.rungs import GEMM, autotuned, expected, tiles
from eshkol.schedule.run.resident import Resident
from eshkol.tensors import devices
from eshkol.tensors.lending import shown
from eshkol.tensors.value import Tensor

TRIALS = 12  # tiles that are measured, of those that promise most
BURST = 0.02  # seconds of the device that are measured at a time

Made = tuple[Program, LaunchConfig]
_tuned: dict[Extents, ProductTile] = {}


def gemm(name: str, a: Tensor, b: Tensor) -> Tensor:
    """The product of two float32 matrices, a (m × k) and b (k × n), by the kernel of the ladder with this name.

    They lie on one machine of blocks (a GPU, or the interpreter `blocks`), and so does the result. It knows no
    derivative: `a @ b` does. The first product by "autotuned" of some extents measures (`tune`).
    """
    p, machine = _extents(name, a, b)
    if 0 in (p.m, p.n, p.k):
        return Tensor(devices.made(np.zeros((p.m, p.n), np.float32), F32, machine.name))
    factors = shown(a, f"kernels.gemm({name!r})"), shown(b, f"kernels.gemm({name!r})")
    result = Resident.fresh((p.m, p.n), F32, machine)
    if name == autotuned.__name__ and p not in _tuned:
        _measure(p, machine, factors, result, TRIALS)
    program, launch = ready(name, p)
    buffers = {"a": factors[0].buffer(), "b": factors[1].buffer(), "c": result.buffer()}
    machine.execute(program, launch, buffers)
    return Tensor(buffer(result, F32))


def ready(name: str, p: Extents) -> Made:
    """The program of a rung for extents, and its launch; that of "autotuned" in the tile that was measured, if any."""
    return _tiled(p, _tuned[p]) if name == autotuned.__name__ and p in _tuned else _written(name, p)


@cache
def _written(name: str, p: Extents) -> Made:
    return GEMM[name].write(p)


@cache
def _tiled(p: Extents, tile: ProductTile) -> Made:
    return autotuned(p, tile)


def _extents(name: str, a: Tensor, b: Tensor) -> tuple[Extents, Backend]:
    """What a call asks for, once that is found to be right."""
    if name not in GEMM:
        raise ArgumentError(f"the ladder has no rung {name!r}", span=here(), hint=f"it has {', '.join(GEMM)}")
    for which, x in (("a", a), ("b", b)):
        if not isinstance(x, Tensor):
            raise ArgumentError(f"{which} is a {type(x).__name__}, and no tensor", span=here(), hint="ek.tensor(…)")
        if x.dtype is not F32:
            raise DTypeError(f"the ladder multiplies float32, and {which} is {x.dtype}", span=here())
        if x.ndim != 2:
            raise ShapeError(f"{which} is no matrix: its shape is {list(x.shape)}", span=here())
    (m, k), (inner, n) = a.shape, b.shape
    if k != inner:
        raise ShapeError(
            f"a is {m} × {k} and b is {inner} × {n}: a must have as many columns as b has rows", span=here()
        )
    if a.device != b.device:
        raise DeviceError(f"a is on {a.device} and b on {b.device}", span=here(), hint=f'b.to("{a.device}")')
    machine = devices.open_backend(str(a.device))
    if not machine.description.blocks:
        raise DeviceError(
            f"the ladder's kernels are for machines of blocks, and {a.device} has none", span=here(),
            hint='a.to("cuda") on a GPU, a.to("blocks") for the interpreter; a @ b runs anywhere',
        )  # fmt: skip
    return Extents(m, n, k, machine.description), machine


# --- measuring -------------------------------------------------------------------------------------


def device_seconds(machine: Backend, made: Made, factors: tuple[Resident, Resident], result: Resident) -> float:
    """How long a launch takes the device: the median of three bursts, between events, after one that wakes it."""
    program, launch = made
    values = {"a": factors[0], "b": factors[1], "c": result}

    def repeated(times: int) -> Callable[[], None]:
        if machine.has_addresses:
            places = {name: (k, 0, value.nbytes) for k, (name, value) in enumerate(values.items())}
            runner = machine.sequence([Set(0, 0), Call(program, launch, places, {}), Next(0, 1, times, 1)], len(places))
            return lambda: runner.run([value.address() for value in values.values()])
        buffers = {name: value.buffer() for name, value in values.items()}

        def run() -> None:
            for _ in range(times):
                machine.execute(program, launch, buffers)

        return run

    def took(run: Callable[[], None]) -> float:
        start, end = machine.event(), machine.event()
        start.record()
        run()
        end.record()
        end.wait()
        return start.seconds_until(end)

    once = repeated(1)
    took(once)
    times = max(1, min(1000, int(BURST / max(took(once), 1e-6))))
    if times == 1:
        return took(once)
    burst = repeated(times)
    return median(took(burst) for _ in range(3)) / times


def tune(a: Tensor, b: Tensor, trials: int | None = TRIALS) -> dict[ProductTile, float]:
    """Measure tiles of "autotuned" for tensors of these extents on their device, and keep the best for these.

    As many are measured as `trials` says, of those that promise most; None: all. Gives the seconds that each took.
    """
    p, machine = _extents(autotuned.__name__, a, b)
    if 0 in (p.m, p.n, p.k):
        raise TensorError(f"a product of {p.m} × {p.k} × {p.n} takes no time", span=here(), hint="tune larger ones")
    factors = shown(a, "kernels.tune"), shown(b, "kernels.tune")
    return _measure(p, machine, factors, Resident.fresh((p.m, p.n), F32, machine), trials)


def _measure(
    p: Extents, machine: Backend, factors: tuple[Resident, Resident], result: Resident, trials: int | None
) -> dict[ProductTile, float]:
    candidates = sorted(dict.fromkeys(tiles(p)), key=lambda tile: expected(p, tile))[:trials]
    seconds = {tile: device_seconds(machine, _tiled(p, tile), factors, result) for tile in candidates}
    _tuned[p] = min(seconds, key=seconds.__getitem__)
    return seconds
