"""Plans are made of as many launches, bytes and instructions as they were, and consist of the same."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterable, Iterator
from itertools import zip_longest

import pytest
from plan_sizes import KEPT, WRITE, plans, shown
from plan_texts import said
from planned_functions import FUNCTIONS

from eshkol.schedule.cache import nothing_kept

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
    changed = {}
    for name in NAMES[first : first + BATCH]:
        for before, each in zip_longest(kept[name].split(" | "), plans(name)):
            if each is None or each.kept != before:
                told = f"  {each and each.way}\n    was {before}\n    is  {each and each.kept}"
                changed.setdefault(name, []).append(told)
    if changed and "mutation.trial" not in sys.modules:  # where it is the sources of this process that count
        alone = planned_alone(changed)
        changed = {name: told for name, told in changed.items() if alone[name] != kept[name]}
    assert not changed, f"{HINT}:\n" + "\n".join([line for told in changed.values() for line in told][:10])


def planned_alone(names: Iterable[str]) -> dict[str, str]:
    """The same by a process of its own: constants that tests before have computed are not planned again in this one."""
    command = [sys.executable, str(KEPT.with_name("plan_sizes.py")), "--lines", *names]
    tests = KEPT.parents[1]
    path = os.pathsep.join([str(tests.parent / "src"), str(tests)])
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=os.environ | {"PYTHONPATH": path})
    return dict(text.split(": ") for text in done.stdout.splitlines())


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
