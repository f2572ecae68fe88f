"""How many references Python counts to what one thing alone holds, while someone asks.

Memory is overwritten in place only where nothing else can see it, and who asks holds the thing in a variable meanwhile.
Python counts that variable, and before 3.14 the question's argument, too; so the number is measured where this is
imported, by a question of the same kind. It stands beside everything.
"""

from __future__ import annotations

from sys import getrefcount


def _measured() -> int:
    for thing in [object()]:  # the list holds it, and the variable
        return getrefcount(thing)
    raise AssertionError


ALONE = _measured()
"""`getrefcount(variable)` of something that, beside the variable, one list, attribute or tuple refers to."""
