"""How hard the property tests look: `make test` takes a part of their examples, `make test-all` all of them.

A part is enough to find what a change breaks; what is rare is found by the whole. Tests that cost little take all of
their examples always, and do not ask here.
"""

from __future__ import annotations

import os
from typing import TypeVar

from hypothesis import settings

FULL = os.environ.get("ESHKOL_TEST_EFFORT") == "full"


T = TypeVar("T")


def amount(full: T, quick: T) -> T:
    """How many inputs to try, or which."""
    return full if FULL else quick


def examples(full: int, quick: int) -> settings:
    """The setting for a property test: so many examples in all, so many in `make test`."""
    return settings(max_examples=amount(full, quick))
