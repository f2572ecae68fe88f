"""Devices of Vulkan: kernels as SPIR-V, made here (`backends/spirv`) of the C that `backends/text` writes.

`dialect.py` is that C, `api.py` what is called of the system's loader, `devices.py` the devices with their
descriptions, `memory.py` and `queue.py` what the driver is asked for, `backend.py` buffers, pools and launches. No
package is needed; the loader's library is looked for when a device is first asked for.
"""

from eshkol.backends.vulkan.backend import VulkanBackend

__all__ = ["VulkanBackend"]
