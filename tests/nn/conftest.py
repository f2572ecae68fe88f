"""Tests of layers run on the reference backend, which compiles nothing; a few ask for the CPU themselves."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import eshkol as ek

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture(autouse=True)
def on_the_reference_backend() -> Iterator[None]:
    with ek.use_backend("reference"):
        yield
