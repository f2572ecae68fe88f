"""NVIDIA GPUs: Atlas programs as PTX through LLVM, run by the driver alone.

Comes in: Atlas programs, as schedules for blocks of lanes write them (`schedule/kernels/blocks.py`). `lane.py` writes
what is NVIDIA's own of a lane, `translate.py` makes PTX, `driver.py` calls the driver, `memory.py` keeps the device's
memory, `devices.py` says what devices there are, and `backend.py` puts it together. Without a GPU all of it can be
imported, and PTX be made; `CudaBackend` then says what is missing. Neither the toolkit nor a package of NVIDIA's is
needed.
"""

from __future__ import annotations

from eshkol.backends.cuda.backend import CudaBackend

__all__ = ["CudaBackend"]
