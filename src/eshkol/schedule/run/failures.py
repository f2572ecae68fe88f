"""Errors of graphs that are computed, as the user is told them: with the op, its operands and the line of the user."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import numpy as np

from eshkol.errors import AllocationFailed, DeviceLost, EshkolError, ExecutionFailed, IndexOutOfRange, Span, TensorError
from eshkol.graph.node import Node, span_of
from eshkol.schedule.kernels.indices import INDEX_TRAP
from eshkol.schedule.kernels.kernel import described

_asking: ContextVar[Sequence[Node] | None] = ContextVar("asking", default=None)


class asked_by:
    """Within it, a compiled graph serves these nodes: its sites are places among them."""

    __slots__ = ("_order", "_token")

    def __init__(self, order: Sequence[Node]) -> None:
        self._order = order

    def __enter__(self) -> None:
        self._token = _asking.set(self._order)

    def __exit__(self, *error: object) -> None:
        _asking.reset(self._token)


def where_asked(node: Node) -> Span | None:
    """The line of the user that asked for a node."""
    site: Any = node.site
    if isinstance(site, int):  # a place in the order of those who ask; a node of numbers alone may have another's
        order = _asking.get()
        site = order[site].site if order is not None and site < len(order) else None
    return None if isinstance(site, int) else span_of(site)


@contextmanager
def explaining(node: Node) -> Iterator[None]:
    """Within it, errors are those of a node that is computed."""
    try:
        yield
    except EshkolError as error:
        raise failure(node, error) from error
    except (ArithmeticError, ValueError, IndexError, np.linalg.LinAlgError) as error:
        raise failure(node, TensorError(str(error))) from error


def failure(node: Node, error: EshkolError) -> EshkolError:
    """An error as the user is told it."""
    if isinstance(error, TensorError) and error.span is not None:
        return error
    where = where_asked(node)
    if isinstance(error, AllocationFailed | DeviceLost):  # no fault of the node's
        return type(error)(f"{described(node)}: {error.message}", span=where, hint=error.hint)
    if isinstance(error, ExecutionFailed):
        return _stopped(node, error)
    kind = type(error) if isinstance(error, TensorError) else TensorError
    return kind(f"{described(node)}: {error.message}", span=where, hint=error.hint)


def _stopped(node: Node, error: ExecutionFailed) -> TensorError:
    where = where_asked(node)
    if node.op.stops is not None:
        told = node.op.stops(node.attrs)
        return type(told)(told.message, span=where, hint=told.hint)
    if error.span is not None and error.span.file == INDEX_TRAP:
        extent = int(error.span.text)
        wraps = getattr(node.attrs, "wrap", True)  # class labels do not count from the end
        range_ = f"indices are {-extent} to" if wraps else "class labels and indices are 0 to"
        allowed = f"{range_} {extent - 1}" if extent else "there is nothing to index"
        message = f"{described(node)}: an index is out of range for an axis of extent {extent}"
        return IndexOutOfRange(message, span=where, hint=allowed)
    if "division by zero" in error.message:
        return TensorError(
            f"{described(node)}: an integer is divided by zero", span=where,
            hint="integers have no infinity: cast to a float, or replace zeros with where()",
        )  # fmt: skip
    return TensorError(f"{described(node)}: {error.message}", span=where, hint=error.hint)
