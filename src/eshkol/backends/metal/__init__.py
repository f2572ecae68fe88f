"""Devices of Metal: kernels as its shading language (`backends/text`), which the system's compiler takes.

`dialect.py` is the language, `devices.py` the devices with their descriptions, `backend.py` buffers, pools and
launches through pyobjc. No Mac was at hand when this was written: the language is tested by running it elsewhere, the
rest was never run. Nothing here imports pyobjc before a device is asked for.
"""

from eshkol.backends.metal.backend import MetalBackend

__all__ = ["MetalBackend"]
