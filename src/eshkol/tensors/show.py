"""How a tensor looks: its values as NumPy would print them, summarised when large, or what it is if not computed."""

from __future__ import annotations

import numpy as np

from eshkol.errors import TraceError
from eshkol.ops import dtypes
from eshkol.tensors.handle import Handle

USUAL = (dtypes.float32, dtypes.int64, dtypes.bool_)  # dtypes that the values themselves tell


def shown(tensor: Handle) -> str:
    """The text of a tensor."""
    node = tensor._node
    unknown = next((s for s in node.scopes if s.open and s.kind == "trace"), None)
    if unknown is not None:
        return f"tensor(<{node.dtype}{list(node.shape)}, not known inside {unknown.name}>)"
    try:
        array = tensor._array()
    except TraceError:  # it was carried out of the transformation that it belongs to
        return f"tensor(<{node.dtype}{list(node.shape)}, not known any more>)"
    if tensor.dtype is dtypes.bfloat16:
        array = array.astype(np.float32)
    body = np.array2string(
        array, separator=", ", prefix="tensor(", precision=4, threshold=200, edgeitems=3, max_line_width=100
    )
    notes = [] if tensor.dtype in USUAL and tensor.size else [f"dtype={tensor.dtype.name.rstrip('_')}"]
    if not tensor.size:
        notes.insert(0, f"shape={tensor.shape}")
    if tensor.requires_grad:
        notes.append("requires_grad=True")
    return f"tensor({', '.join([body, *notes])})"
