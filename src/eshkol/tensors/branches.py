"""Branches on values that are not known: a function is run once for each way that it may take, and the ways are joined.

Comes in: a function of tensors inside a trace (vmap). Where it asks for the truth of a tensor without axes that depends
on the trace, `Tensor.__bool__` ends in `Branches.truth`: the first run takes the branch of truth everywhere, each
further run another way, and `where` chooses between what they give. So both sides of a branch are computed for all
elements, and a function that does more than compute does that more than once.

A way that an element does not take must not reach its derivative either: (if (> x 0) (sqrt x) 0) has none at 0, but
that of the square root is infinite there, and nothing times infinity is a NaN. So once the conditions of a way are
known, it is run again on arguments that vary only for the elements that take it (`only`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from eshkol.errors import TraceError
from eshkol.graph.node import AtWork, Node, Scope

MOST_WAYS = 64


class Branches:
    """A run of a function along one way."""

    at_work: ClassVar[AtWork] = AtWork.new()  # the innermost last

    def __init__(self, way: Sequence[bool]) -> None:
        self.way = list(way)
        self.scopes = frozenset(Scope.at_work)
        self.asked: list[Any] = []  # conditions, in the order of the questions
        self.known: dict[Any, bool] = {}  # what was said of a node: the same question has the same answer

    @classmethod
    def deciding(cls, node: Node) -> Branches | None:
        """The run that says what a condition is; none where it belongs to a trace inside of the function's."""
        if not cls.at_work:
            return None
        found: Branches = cls.at_work[-1]
        return found if all(s in found.scopes for s in node.scopes if s.open and s.kind == "trace") else None

    def truth(self, condition: Any) -> bool:
        """The answer of this run."""
        node = condition._node
        if node not in self.known:
            place = len(self.asked)
            if place == MOST_WAYS:
                raise too_many()
            if place == len(self.way):
                self.way.append(True)
            self.asked.append(condition)
            self.known[node] = self.way[place]
        return self.known[node]


def too_many() -> TraceError:
    return TraceError(
        f"the function branches on its elements in more than {MOST_WAYS} ways",
        hint="a loop whose end depends on an element cannot be computed for all of them at once: compute with tensor "
        "operations, and choose with where",
    )


def branched(
    function: Callable[..., Any],
    args: Sequence[Any],
    join: Callable[[Any, Any, Any], Any],
    only: Callable[[Sequence[Any], Sequence[bool], Sequence[Any]], Sequence[Any]] | None = None,
) -> Any:
    """What a function gives on all its ways, joined: `join(condition, then, otherwise)`.

    `only(conditions, way, args)` gives arguments of the same values that vary only where the conditions are as the way
    says; without it, a way is run once.
    """
    left = [MOST_WAYS]

    def along(way: Sequence[bool], given: Sequence[Any]) -> tuple[Branches, Any]:
        branches = Branches(way)
        Branches.at_work.append(branches)
        try:
            return branches, function(*given)
        finally:
            Branches.at_work.pop()

    def run(way: Sequence[bool]) -> Any:
        if left[0] == 0:
            raise too_many()
        left[0] -= 1
        branches, result = along(way, args)
        if branches.asked and only is not None:
            result = along(branches.way, only(branches.asked, branches.way, args))[1]
        for place in reversed(range(len(way), len(branches.asked))):
            otherwise = run([*branches.way[:place], False])
            result = join(branches.asked[place], result, otherwise)
        return result

    return run(())
