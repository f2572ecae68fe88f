"""The Atlas optimizer validates programs behind each of its passes here; graphs are checked as everywhere."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))  # for fusing.py


@pytest.fixture(autouse=True)
def _programs_validated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ESHKOL_CHECK", "1")
