"""The peers that benchmarks compare with, where they are installed: PyTorch and JAX on the CPU, and a triad in C."""

from __future__ import annotations

import ctypes
import importlib.util
import os
import shutil
import subprocess
import tempfile
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
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    found: dict[str, Callable[[], object]] = {}
    if compiler is None:
        return found
    folder = Path(tempfile.mkdtemp())
    source = folder / "triad.c"
    source.write_text(TRIAD)
    for who, flag in (("C triad, one core", "-fno-openmp"), ("C triad, all cores", "-fopenmp")):
        library = folder / f"triad{flag}.so"
        command = [compiler, "-O3", "-march=native", flag, "-shared", "-fPIC", "-o", str(library), str(source)]
        if subprocess.run(command, capture_output=True, check=False).returncode == 0:
            triad = ctypes.CDLL(str(library)).triad
            pointers = [ctypes.c_void_p(a.ctypes.data) for a in (z, x, y)]
            found[who] = lambda f=triad, p=pointers: f(*p, ctypes.c_float(0.5), ctypes.c_int64(x.size))
    return found
