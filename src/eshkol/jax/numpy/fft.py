"""`jnp.fft`: Fourier transforms by NumPy's names; each is a row of the op table.

Comes in and goes out: tensors. Types stand in fft.pyi, which `make generate` writes.
"""

from __future__ import annotations

from eshkol.jax.tables import table

_NAMES = table("fft fft2 fftfreq fftn fftshift ifft ifft2 ifftn ifftshift irfft rfft rfftfreq")
globals().update(_NAMES)
__all__ = sorted(_NAMES)
