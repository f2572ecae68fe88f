"""Tests of several machines begin on the CPU, whichever device ESHKOL_DEVICE names."""

from __future__ import annotations

import pytest

import eshkol as ek


@pytest.fixture(autouse=True)
def _cpu():
    with ek.device("cpu"):
        yield
