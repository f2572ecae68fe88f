"""Tests of tensors run on the reference backend, which compiles nothing; a few ask for the CPU themselves."""

from __future__ import annotations

import pytest

import eshkol as ek


@pytest.fixture(autouse=True)
def on_the_reference_backend():
    with ek.use_backend("reference"):
        yield
