"""Machines that tests split models over: those that are everywhere, and OpenCL's where there is one."""

from __future__ import annotations

import pytest

import eshkol as ek
from eshkol.tensors import devices

OPENCL = devices.missing("opencl")
NEEDS_OPENCL = pytest.mark.skipif(OPENCL is not None, reason=f"no device of OpenCL: {OPENCL}")


@pytest.fixture(autouse=True)
def _cpu():
    with ek.device("cpu"):
        yield
