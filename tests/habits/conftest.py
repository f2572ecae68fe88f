"""Habits are about names, shapes and values: tensors are computed by the interpreter of graphs, not compiled.

What `jit` and optimizers compile is compiled all the same.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from eshkol.graph.interpret import evaluate
from eshkol.graph.node import Node
from eshkol.schedule.run import execute
from eshkol.tensors import autograd


def interpreted(nodes: Sequence[Node], machine: Any) -> None:
    """Give nodes their data, by the references of their rows."""
    missing = [node for node in nodes if node.data is None]
    for node, value in zip(missing, evaluate(missing), strict=True):
        execute.give(node, value)


@pytest.fixture
def interpreting(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(execute, "_compute", interpreted)
    monkeypatch.setattr(autograd, "gradients", lambda *_: None)  # derived each time, and computed as the rest
    yield
    gc.collect()  # lines leave rings behind, and nodes that are found again by who builds the same
