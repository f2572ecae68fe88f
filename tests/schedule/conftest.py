"""Every graph that these tests compute is verified before it is lowered."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def _verified(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ESHKOL_CHECK", "1")
