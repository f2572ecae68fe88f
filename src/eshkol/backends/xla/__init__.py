"""XLA: whole graphs as StableHLO (`schedule/whole`), which jaxlib's compiler makes programs of.

`client.py` is all that is asked of jaxlib, `backend.py` the machine. Nothing here imports jaxlib before the machine is
asked for.
"""

from eshkol.backends.xla.backend import XlaBackend

__all__ = ["XlaBackend"]
