"""Changes in place while a function is traced: those of tensors made outside of it are refused.

The function runs once, on values that are not known; a tensor outside would be left holding one of them.
"""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar

from eshkol.errors import TraceError
from eshkol.graph.node import AtWork, Node, here


class Changes:
    """The tensors that were changed in place while a function was traced, with what they were."""

    at_work: ClassVar[AtWork] = AtWork.new()

    def __init__(self) -> None:
        self._earlier: dict[int, tuple[weakref.ref[Any], Node, Any]] = {}

    def note(self, tensor: Any) -> None:
        self._earlier.setdefault(id(tensor), (weakref.ref(tensor), tensor._node, here()))

    def refuse_what_left(self, scope: Any, name: str) -> None:
        """Refuse, and undo, changes of tensors that were made outside of the trace: they outlive it.

        What depended on the trace before it was changed was made inside; so was what only a ring of references keeps.
        """
        left = [e for e in self._earlier.values() if scope not in e[1].scopes and _outliving(e[0], scope) is not None]
        if left:
            gc.collect()
        for reference, earlier, where in left:
            tensor = _outliving(reference, scope)
            if tensor is not None:
                tensor._become(earlier)
                raise TraceError(
                    f"{name} changes a tensor in place that was made outside of it; that would happen only once",
                    span=where, hint="return the new value instead, and assign it where the function is called",
                )  # fmt: skip

    def undo(self, tensors: Sequence[Any]) -> bool:
        """Give some tensors back what they were; says whether any of them had changed."""
        found = [(t, self._earlier[id(t)]) for t in tensors if id(t) in self._earlier]
        for tensor, (_, earlier, _) in found:
            tensor._become(earlier)
        return bool(found)


def _outliving(reference: weakref.ref[Any], scope: Any) -> Any:
    """A tensor that is still there, with a value that only the trace has; else None."""
    tensor = reference()
    return tensor if tensor is not None and scope in tensor._node.scopes else None


@contextmanager
def changed_while_tracing() -> Iterator[Changes]:
    """Notes the tensors that are changed in place within it."""
    changes = Changes()
    Changes.at_work.append(changes)
    try:
        yield changes
    finally:
        Changes.at_work.remove(changes)
