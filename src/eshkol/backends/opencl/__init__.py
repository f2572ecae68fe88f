"""Devices of OpenCL: kernels as OpenCL C (`backends/text`), which the device's driver compiles.

`dialect.py` is the language, `devices.py` the devices with their descriptions, `backend.py` buffers, pools and
launches. Nothing here imports pyopencl before a device is asked for.
"""

from eshkol.backends.opencl.backend import OpenClBackend

__all__ = ["OpenClBackend"]
