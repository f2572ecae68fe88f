"""What benchmarks compare with: PyTorch and JAX on the CPU, where they are installed, and a triad in C."""

from __future__ import annotations

import atexit
import ctypes
import importlib.util
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

TRIAD = """
#include <stdint.h>
void triad(float *restrict z, const float *restrict x, const float *restrict y, float a, int64_t n) {
#pragma omp parallel for
  for (int64_t i = 0; i < n; i++) z[i] = a * x[i] + y[i];
}
"""


@cache
def torch() -> Any:
    """PyTorch with as many threads as there are usable CPUs; None where it is not installed."""
    if importlib.util.find_spec("torch") is None:
        return None
    import torch

    torch.set_num_threads(len(os.sched_getaffinity(0)))
    return torch


def functional() -> Any:
    """PyTorch's functions of layers."""
    return torch().nn.functional


@cache
def jax() -> Any:
    """JAX; None where it is not installed."""
    if importlib.util.find_spec("jax") is None:
        return None
    os.environ.setdefault("JAX_PLATFORMS", "cpu")
    import jax

    return jax


def jitted(function: Callable[..., Any], *arrays: np.ndarray) -> Callable[[], object]:
    """A call of a JAX function on arrays, compiled, that waits for its result."""
    module = jax()
    compiled, inputs = module.jit(function), [module.numpy.asarray(a) for a in arrays]
    return lambda: compiled(*inputs).block_until_ready()


def triad_in_c(x: np.ndarray, y: np.ndarray, z: np.ndarray) -> dict[str, Callable[[], object]]:
    """A plain C loop, compiled here: the bandwidth that one core and, with OpenMP, all cores reach."""
    found: dict[str, Callable[[], object]] = {}
    for who, cores in (("C triad, one core", False), ("C triad, all cores", True)):
        library = _compiled(TRIAD, cores)
        if library is not None:
            pointers = [ctypes.c_void_p(a.ctypes.data) for a in (z, x, y)]
            found[who] = lambda f=library.triad, p=pointers: f(*p, ctypes.c_float(0.5), ctypes.c_int64(x.size))
    return found


@cache
def bandwidth(size: int) -> float | None:
    """Bytes per second of the triad over about so many bytes: data that a cache holds moves faster than memory's."""
    n = 1 << max(10, round(np.log2(max(size, 1) / 12)))
    x, y, z = (np.full(n, k, np.float32) for k in range(3))
    times = [_best(call) for call in triad_in_c(x, y, z).values()]
    return 12.0 * n / min(times) if times else None


def _best(call: Callable[[], object]) -> float:
    """Seconds of a call, the best of many: what the machine can do, not what it does beside other work."""
    times = []
    until = time.perf_counter() + 0.3
    while time.perf_counter() < until:
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return min(times)


@cache
def _compiled(source: str, cores: bool) -> Any:
    """A C source as a library; None where it cannot be compiled. With `cores`, OpenMP is on."""
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        return None
    folder = Path(tempfile.mkdtemp())
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    (folder / "loop.c").write_text(source)
    flags = ["-O3", "-march=native", "-fopenmp" if cores else "-fno-openmp", "-shared", "-fPIC"]
    command = [compiler, *flags, "-o", str(folder / "loop.so"), str(folder / "loop.c")]
    if subprocess.run(command, capture_output=True, check=False).returncode:
        return None
    return ctypes.CDLL(str(folder / "loop.so"))
