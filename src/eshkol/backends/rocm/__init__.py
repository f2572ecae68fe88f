"""AMD's GPUs: programs as code objects by LLVM, loaded by HIP where it is installed.

`translate.py` writes code objects, on any machine; `driver.py` is HIP, called directly; `backend.py` buffers, pools and
launches. It was never run on such a GPU: what LLVM makes of programs is tested, and the calls by a driver that stands
in.
"""

from eshkol.backends.rocm.backend import RocmBackend

__all__ = ["RocmBackend"]
