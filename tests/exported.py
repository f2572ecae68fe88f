"""Modules that `export_wasm` has written, run by wasmtime."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest

from eshkol.ops import dtypes


def in_wasmtime(exported: Any, inputs: Sequence[Any]) -> Mapping[str, Any]:
    """The outputs by name; the test is skipped where there is no wasmtime."""
    wasmtime = pytest.importorskip("wasmtime", reason="wasmtime is not installed: pip install eshkol[wasm]")
    store = wasmtime.Store()
    module = wasmtime.Module.from_file(store.engine, str(exported.module))
    exports = wasmtime.Instance(store, module, []).exports(store)
    memory, description, found = exports["memory"], exported.description, {}
    for operand, array in zip(description["inputs"], inputs, strict=True):
        memory.write(store, np.ascontiguousarray(array).tobytes(), operand["at"])
    code = exports["run"](store)
    assert code == 0, description["messages"][description["faults"][code - 1]]
    for o in description["outputs"]:
        dtype = dtypes.of(o["dtype"]).numpy
        raw = memory.read(store, o["at"], o["at"] + int(np.prod(o["shape"])) * dtype.itemsize)
        found[o["name"]] = np.frombuffer(raw, dtype).reshape(o["shape"])
    return found
