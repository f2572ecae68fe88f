"""The CPU backend: Atlas programs as native code, on all cores."""

from eshkol.backends.cpu.backend import CpuBackend

__all__ = ["CpuBackend"]
