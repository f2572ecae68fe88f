"""What the tests of compiled derivatives share."""

from __future__ import annotations

import pytest
from fast_runs import Runner


@pytest.fixture(scope="module")
def runner() -> Runner:
    return Runner()
