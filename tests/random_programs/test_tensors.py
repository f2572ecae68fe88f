"""Random tensor programs, computed in every way on both backends, are what the oracle says.

Hypothesis draws some and shrinks what fails; many more follow from seeds, in processes that live long
(`python -m random_programs`): programs meet what others have left in the caches.
"""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from effort import FULL, amount
from random_programs.choosing import Drawn
from random_programs.drawing import draw_program
from random_programs.program import KINDS
from random_programs.shrinking import smallest
from random_programs.table_steps import DECIDING, ROWS, SMOOTH
from random_programs.trying import BACKENDS, Tally, attempt
from random_programs.ways import WAYS, WEIGHTED, Run, computed_in

PARTS = 4  # for the processes that share the work
STEPS = amount(10, 2)  # tried at most; longer programs are for the whole effort


def test_there_is_much_to_draw_from():
    assert len(KINDS) > 35
    assert len(ROWS) > 250
    assert len(SMOOTH) > 30
    assert len(DECIDING) > 15


@settings(max_examples=amount(2000, 40), suppress_health_check=list(HealthCheck))
@given(st.data())
def test_drawn_by_hypothesis(data):
    c = Drawn(data.draw)
    program, values = draw_program(c, most=6)
    if program.steps:
        computed_in(c.pick(WEIGHTED), Run(program, values, c), c.pick(BACKENDS) if FULL else "reference")


@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize(("backend", "count"), [("reference", amount(80_000, 1_980)), ("cpu", amount(20_000, 24))])
def test_drawn_from_seeds(backend, count, part):
    tally = Tally()
    for seed in range(part * 100_000, part * 100_000 + count // PARTS):
        failure = attempt(seed, backend, 1, tally, STEPS)
        assert failure is None, str(smallest(failure))
    few = count < 100  # of which shares say little
    assert tally.programs > (0.5 if few else 0.8) * count / PARTS
    assert sum(tally.ways.values()) > (0 if few else 0.6) * tally.programs
    assert tally.programs < 100 or len(tally.ways) == len(WAYS)
