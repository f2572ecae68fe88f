"""What `ek.` offers, for the packages that stand on tensors: `from eshkol.tensors import api as ek`.

The root of the package offers the same to users, and more; packages of ours do not import it. `here` is besides: the
user's line that is at work, for errors.
"""

from __future__ import annotations

from eshkol.errors import Span
from eshkol.graph import node


def here() -> Span | None:
    """The line of the user's program that is at work."""
    return node.here()


# Without types, for mypy: where modules import each other it may ask for `ek.x` before it has looked at this.
def __getattr__(name):  # type: ignore[no-untyped-def]
    from eshkol.tensors import NAMES

    try:
        return globals().setdefault(name, NAMES[name])  # found at once from now on
    except KeyError:
        raise AttributeError(f"there is no 'ek.{name}'") from None
