"""The derivative rules: derived from the op table, right on numbers, and as the C header has them."""

from __future__ import annotations

from pathlib import Path

from eshkol.calculus.header import header

HEADER = Path(__file__).parents[2] / "src/eshkol/runtime/native/scheme/derivative_rules.h"


def test_the_header_is_what_the_table_gives():
    assert HEADER.read_text("utf-8") == header(), "run `make rules`"
