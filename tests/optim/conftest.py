"""Tests of optimizers run on the reference backend, which compiles nothing."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

import eshkol as ek

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture(autouse=True)
def on_the_reference_backend():
    with ek.use_backend("reference"):
        yield
