"""The reference backend: a lockstep interpreter in NumPy that defines what Atlas programs mean."""

from eshkol.backends.reference.backend import ReferenceBackend

__all__ = ["ReferenceBackend"]
