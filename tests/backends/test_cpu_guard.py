"""Native kernels read and write nothing beyond their operands: their tests, with buffers beside forbidden pages."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("llvmlite")
KERNELS = ("gemm", "macros", "attention", "conv", "loops")


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith(("linux", "darwin")), reason="mprotect")
@pytest.mark.parametrize("side", ["start", "end"])
@pytest.mark.parametrize("kernels", KERNELS)
def test_nothing_beyond_an_operand_is_touched(kernels: str, side: str) -> None:
    tests = Path(__file__).with_name(f"test_cpu_{kernels}.py")
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:xdist", "-p", "no:cacheprovider", str(tests)]
    ran = subprocess.run(command, env={**os.environ, "ESHKOL_GUARD": side}, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout[-3000:] + ran.stderr[-2000:]


@pytest.mark.skipif(not sys.platform.startswith(("linux", "darwin")), reason="mprotect")
@pytest.mark.parametrize(("side", "beside"), [("start", -1), ("end", 24)])
def test_the_guard_guards(side: str, beside: int) -> None:
    """Reading the byte beside a buffer ends the process; reading the buffer does not."""
    program = (
        "import ctypes, sys; from guarded import GuardedBuffer; GuardedBuffer.side = sys.argv[1]\n"
        "b = GuardedBuffer(24); ctypes.string_at(b.address, 24); print('inside', flush=True)\n"
        "ctypes.string_at(b.address + int(sys.argv[2]), 1)"
    )
    command = [sys.executable, "-c", program, side, str(beside)]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parent.parent)}
    ran = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert ran.stdout == "inside\n"
    assert ran.returncode < 0
