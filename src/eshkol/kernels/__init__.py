"""`eshkol.kernels`: the kernel ladder. Ten products of float32 matrices for GPUs, by name, from the plainest on.

    from eshkol import kernels
    kernels.gemm("warp_tiled", a, b)    # a @ b, by that kernel
    for rung in kernels.GEMM.values(): print(rung.name, rung.idea)

They are there to be read (`rungs.py`) and measured (`python -m bench kernels gemm`); `a @ b` chooses by itself. Comes
in: tensors on a machine of blocks. Goes out: their product there. See docs/kernels.md.
"""

from __future__ import annotations

from eshkol.kernels.launching import device_seconds, gemm, ready, tune
from eshkol.kernels.rungs import GEMM, Rung

__all__ = ["GEMM", "Rung", "device_seconds", "gemm", "ready", "tune"]
