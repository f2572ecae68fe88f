"""Plans are made of as many launches, bytes and instructions as they were, and consist of the same."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import zip_longest
from typing import Any

import numpy as np
import pytest
from plan_sizes import KEPT, MACHINES, WRITE, graph_of, plans, shown
from plan_texts import said, text
from planned_functions import FUNCTIONS

import eshkol as ek
from eshkol.schedule.cache import nothing_kept
from eshkol.schedule.pipeline import compiled

BATCH = 6  # functions of a test: it takes half a second, and what is judged test by test need not run all
NAMES = list(FUNCTIONS)
pytestmark = pytest.mark.unchecked  # nothing is run that could be compared
HINT = f"if that is meant, run `{WRITE}`; `{WRITE} --show NAME` has plans in full, to be compared with those before"


@pytest.fixture(scope="module", autouse=True)
def _nothing_kept() -> Iterator[None]:
    """All begin with empty caches, and meet what the others leave there: it must make no difference."""
    with nothing_kept():
        yield


@pytest.fixture(scope="module")
def kept() -> dict[str, str]:
    return dict(text.split(": ") for text in KEPT.read_text().splitlines())


def test_every_function_is_kept(kept: dict[str, str]) -> None:
    assert list(kept) == NAMES, HINT


@pytest.mark.parametrize("first", range(0, len(NAMES), BATCH))
def test_plans_are_what_they_were(first: int, kept: dict[str, str]) -> None:
    changed = []
    for name in NAMES[first : first + BATCH]:
        for before, each in zip_longest(kept[name].split(" | "), plans(name)):
            if each is None or each.kept != before:
                changed.append(f"  {each and each.way}\n    was {before}\n    is  {each and each.kept}")
    assert not changed, f"{HINT}:\n" + "\n".join(changed[:10])


def test_plans_depend_on_the_program_alone() -> None:
    """And not on constants that were computed elsewhere while something had the same ones in its graph."""

    def function(x: Any) -> Any:
        return [x @ x.T + 4 * ek.eye(3), ek.solve(x, ek.eye(3)), x + ek.arange(3)]

    def plan() -> str:
        results, params = graph_of(function, [(3, 3)])
        return text(compiled(results, params, MACHINES["cpu"]))

    before = plan()
    also = ek.jit(lambda x: x @ ek.eye(3) + ek.arange(3)), ek.eye(3) + ek.arange(3)  # which hold parts of them
    also[0](ek.ones((3, 3))).numpy()
    assert np.array_equal(ek.eye(3).numpy() + ek.arange(3).numpy(), also[1].numpy())
    assert plan() == before


def test_a_plan_in_full_says_what_is_kept_of_it(kept: dict[str, str]) -> None:
    text = shown("sum of rows")
    assert "=== sum of rows on cpu: " + kept["sum of rows"].split(" | ")[0] in text
    assert "=== sum of rows's derivative on blocks: " in text
    assert ".program" in text
    with pytest.raises(SystemExit, match="no function 'nonsense'"):
        shown("nonsense")


def test_what_has_no_text_that_is_always_the_same_is_refused() -> None:
    with pytest.raises(TypeError, match="always the same for object"):
        said(object())
