"""Whose line a node that fails belongs to."""

from __future__ import annotations

import numpy as np

import eshkol as ek
from eshkol.graph.node import copied
from eshkol.schedule.run.failures import asked_by, where_asked


def test_a_node_has_the_line_of_who_asks_now():
    asked = (ek.tensor(np.arange(3.0)) + 1.0)._node
    compiled = copied(asked, asked.inputs, 0)
    with asked_by([asked]):
        found = where_asked(compiled)
    assert found is not None
    assert found.file == __file__


def test_a_node_that_was_numbered_by_others_has_none():
    """What is of numbers alone is one node for the whole process, and may have its place in another's order."""
    asked = (ek.tensor(np.arange(3.0)) + 1.0)._node
    elsewhere = copied(asked, asked.inputs, 7)
    assert where_asked(elsewhere) is None
    with asked_by([asked]):
        assert where_asked(elsewhere) is None
    with asked_by([copied(asked, asked.inputs, 3)]):
        assert where_asked(copied(asked, asked.inputs, 0)) is None
