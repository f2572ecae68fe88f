"""Devices of WebGPU: kernels as WGSL, run by wgpu on Vulkan, Metal or Direct3D; what browsers take, too.

`dialect.py` is the language, `scalars.py` its register instructions with functions from `longs.py`, `wides.py` and
`floats.py`, `writer.py` memory and the kernel, `devices.py` the devices, `backend.py` buffers and launches. Nothing
here imports wgpu before a device is asked for.
"""

from eshkol.backends.webgpu.backend import WebGpuBackend

__all__ = ["WebGpuBackend"]
