"""People who come from JAX write what they are used to, and it works here, or is refused by name.

The lines are in `jax_table.py`, in JAX's spelling, with what NumPy says they give; `tests/peers/test_jax.py` runs the
same lines with JAX itself where that is installed.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from jax_table import HABITS, REFUSED, SECTIONS, names, plain, same

import eshkol as ek
import eshkol.jax


@pytest.mark.parametrize("section", SECTIONS)
def test_habits(section):
    wrong = {}
    with ek.device("reference"):  # names and meanings are the point: nothing is compiled for the CPU
        known = names(eshkol.jax)
        for of, expression, expected in HABITS:
            if of == section:
                try:
                    same(plain(eval(expression, known)), plain(eval(expected, known)))
                except Exception as error:
                    wrong[expression] = f"{type(error).__name__}: {error}"[:300]
    assert not wrong, "\n".join(f"{line}\n    {why}" for line, why in wrong.items())


def test_what_is_not_here_is_refused_by_name():
    known = names(eshkol.jax)
    for expression, word in REFUSED:
        with pytest.raises((AttributeError, ek.EshkolError), match=word):
            eval(expression, known)


def test_there_are_enough_of_them():
    assert len(HABITS) >= 120
    assert len(HABITS) / (len(HABITS) + len(REFUSED)) >= 0.95


# --- the page for them ------------------------------------------------------------------------------

PAGE = Path(__file__).parents[2] / "docs" / "jax.md"


def rows_under(heading: str) -> list[tuple[str, str]]:
    """The rows of the table under a heading of the page."""
    part = PAGE.read_text(encoding="utf-8").split(f"## {heading}", 1)[1].split("\n## ", 1)[0]
    lines = [line for line in part.splitlines() if line.startswith("| ") and "---" not in line]
    return [(left.strip(), right.strip()) for left, right in (line.strip("| ").split(" | ", 1) for line in lines[1:])]


def test_every_line_of_the_page_runs():
    class Point:
        def __init__(self, x, y):
            self.x, self.y = x, y

    lines = rows_under("The same, by another path")
    assert len(lines) >= 30
    with ek.device("reference"):
        known = {"ek": ek, "x": ek.tensor([1.0, 2.0, 3.0]), "key": ek.random.key(0), "Point": Point,
                 "f": lambda a: (a * a).sum(), "g": lambda a, n: (a * n).sum()}  # fmt: skip
        for _, ours in lines:
            assert ours.startswith("`"), ours
            assert ours.endswith("`"), ours
            eval(ours.strip("`"), dict(known))


def test_what_the_page_says_is_refused_is_refused_by_its_name():
    for theirs, _ in rows_under("What is refused"):
        path = theirs.strip("`").split(".")
        place = eshkol.jax
        for part in path[1:-1]:
            place = getattr(place, part)
        with pytest.raises(AttributeError, match=f"has no '{path[-1]}': "):
            getattr(place, path[-1])


def test_the_page_counts_the_habits():
    assert f" {len(HABITS)} one-line habits" in PAGE.read_text(encoding="utf-8")
