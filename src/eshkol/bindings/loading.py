"""`ek.load`: a file of Scheme as a module, or a file of tensors as what was saved, by the kind of file that it is.

Comes in: a path. Goes out: a module (`bindings/modules.py`) of `.esk` and other source, else tensors (`io/kinds.py`).
"""

from __future__ import annotations

import os
from typing import Any

from eshkol.bindings import modules
from eshkol.io.kinds import LOADING, load_file


def load(path: Any, *args: Any, **given: Any) -> Any:
    """A file: one of Scheme (.esk) runs and is a module; .pt, .safetensors, .npz, .npy and .eskpt hold tensors.

    >>> m = ek.load("model.esk")
    >>> model.load_state_dict(ek.load("weights.pt", map_location="cpu"))
    """
    is_open = hasattr(path, "read")
    if is_open or os.path.splitext(os.fspath(path))[1].lower() in LOADING:
        return load_file(path, *args, **given)
    return modules.load(path, *args, **given)
