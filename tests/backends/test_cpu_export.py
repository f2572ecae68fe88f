"""Libraries of Atlas sequences: what is exported below the tensors. `tests/tensors/test_export.py` has the rest."""

from __future__ import annotations

import ctypes
import shutil

import numpy as np
import pytest

from eshkol.atlas import sequence as atlas
from eshkol.atlas.program import LaunchConfig
from eshkol.atlas.text import assemble
from eshkol.backends.cpu.export import write_library
from eshkol.backends.cpu.export_text import ExportedModel, ExportedOperand
from eshkol.errors import BackendUnavailable

needs_compiler = pytest.mark.skipif(not any(map(shutil.which, ("cc", "gcc", "clang"))), reason="there is no C compiler")

DIVIDE = """
.program divide
.buffer a I32 6
.buffer b I32 6
.buffer c I32 6
    ParallelMapBinary.I32.Div [c], [a], [b], count=6
"""
A, B, C, PLACES = 1, 2, 3, 4


def model_of(text: str) -> ExportedModel:
    """A sequence of one launch that makes c of a and b, 24 bytes each."""
    call = atlas.Call(assemble(text), LaunchConfig((1, 1, 1), (1, 1, 1)), {n: (p, 0, 24) for n, p in zip(
        "abc", (A, B, C), strict=True)}, {})  # fmt: skip
    a, b, c = (ExportedOperand(n, (6,), "int32", 24, p) for n, p in zip("abc", (A, B, C), strict=True))
    return ExportedModel(
        [call], PLACES, 0, [], [], [a, b], [c], lambda step, error: f'step {step}: {error.message} "?\\'
    )


@needs_compiler
def test_what_an_array_instruction_finds_wrong_is_told(tmp_path):
    header = write_library(model_of(DIVIDE), tmp_path / "libdivide.so", "divide", None, ["A test."])
    assert "A test." in header.read_text("utf-8")
    library = ctypes.CDLL(str(tmp_path / "libdivide.so"))
    library.divide_new.restype, library.divide_error.restype = ctypes.c_void_p, ctypes.c_char_p
    model = ctypes.c_void_p(library.divide_new(2))
    a, b, c = np.arange(10, 16, dtype=np.int32), np.array([1, 2, 3, 0, 5, 6], np.int32), np.zeros(6, np.int32)

    def run() -> int:
        return library.divide_run(model, *(ctypes.c_void_p(x.ctypes.data) for x in (a, b, c)))

    code = run()
    assert code > 16
    told = library.divide_error(code).decode()
    assert told.startswith("step 0: ")
    assert "integer division by zero" in told
    assert told.endswith('"?\\')
    b[3] = 4
    assert run() == 0
    np.testing.assert_array_equal(c, a // b)
    library.divide_free(model)


def test_class_memory_is_refused(tmp_path):
    text = DIVIDE[: DIVIDE.index("    Parallel")] + "LDG.I32 r0, [class 3+8]\nSTG.I32 [c], r0\n"
    with pytest.raises(BackendUnavailable, match="class memory"):
        write_library(model_of(text), tmp_path / "libodd.so", "odd", None, [])
