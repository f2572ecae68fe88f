"""What may be meant by a name that no one defines: one place for the expander and for errors at run time.

Comes in: the name, and the names that can be used where it stands. Goes out: a hint.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable

MOST, CLOSENESS = 2, 0.7


def near_names(name: str, visible: Iterable[str]) -> list[str]:
    """Those of the names that look like it."""
    return difflib.get_close_matches(name, sorted(other for other in visible if other != name), MOST, CLOSENESS)


def undefined(name: str, visible: Iterable[str]) -> str:
    """The hint for a name without a definition."""
    near = near_names(name, visible)
    if near:
        return f"did you mean {' or '.join(f'`{other}`' for other in near)}?"
    return f"(define {name} ...) makes a variable"
