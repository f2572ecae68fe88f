"""`x.size`, a number for those who know NumPy and a method for those who know PyTorch; and names that are not there.

`lacking` says what is to be used instead of a name that PyTorch has and Eshkol has not; its table is filled by
`torch_names.py`, which stands above `Tensor`.
"""

from __future__ import annotations

import difflib
from typing import Any, cast

from eshkol.errors import IndexOutOfRange
from eshkol.graph.node import Node, here
from eshkol.support.extents import Extent, asked
from eshkol.support.watched import Watched

REMEDIES: dict[str, str] = {}  # a name of PyTorch's that is not here → what to do instead


class Size(int):
    """The number of elements; called, it gives the shape, or the extent of one axis."""

    _shape: tuple[int, ...]

    @classmethod
    def of(cls, node: Node) -> Size:
        count = node.size
        if type(count) is Extent:
            return cast("Size", Watched(count, node.shape))
        made = cls(count)
        made._shape = node.shape
        return made

    def __call__(self, dim: int | None = None) -> Any:
        if dim is None:
            return self._shape
        if not -len(self._shape) <= dim < len(self._shape):
            raise IndexOutOfRange(f"axis {dim} is out of range for {len(self._shape)} axes", span=here())
        return self._shape[dim]

    def __reduce__(self) -> Any:
        return int, (int(self),)


def length(node: Node) -> int:
    """What `len(x)` gives, which is always a plain integer."""
    return asked(node.shape[0], "its length is asked for")


def lacking(name: str, where: Any, called: str = "a tensor") -> str:
    """What is said of a name that is not there."""
    if name in REMEDIES:
        return f"{called} has no '{name}': {REMEDIES[name]}"
    if name.startswith("_"):  # asked for by a program that looks for marks of its own, and often: no guess
        return f"{called} has no '{name}'"
    near = difflib.get_close_matches(name, dir(where) if not isinstance(where, dict) else where, 1)
    return f"{called} has no '{name}'" + (f"; did you mean '{near[0]}'?" if near else "")


def no_attribute(name: str, where: Any, called: str = "a tensor") -> AttributeError:
    """The error for a name that is not there. It bears no name itself, else Python would add a guess of its own."""
    return AttributeError(lacking(name, where, called), name=None, obj=None)
