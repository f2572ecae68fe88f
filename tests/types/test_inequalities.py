"""Linear arithmetic against brute force on small boxes."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eshkol.types.inequalities import (
    Constraint,
    Linear,
    at_most,
    congruent,
    entails,
    equal,
    excludes,
    less,
    satisfiable,
)

NAMES = ("x", "y", "z")
SIZE = 3  # of the box: each variable is from -SIZE to SIZE

sums = st.builds(
    Linear.of, st.dictionaries(st.sampled_from(NAMES), st.integers(-7, 7), max_size=3), st.integers(-12, 12)
)
constraints = st.builds(Constraint, sums, st.sampled_from([None, None, None, 0, 2, 3, 5, 8]))


def name(text: str) -> Linear:
    return Linear(((text, 1),))


def number(value: int) -> Linear:
    return Linear((), value)


BOX = [at_most(number(-SIZE), name(n)) for n in NAMES] + [at_most(name(n), number(SIZE)) for n in NAMES]
POINTS = [dict(zip(NAMES, point, strict=True)) for point in product(range(-SIZE, SIZE + 1), repeat=len(NAMES))]


@settings(max_examples=300, deadline=None)
@given(st.lists(constraints, min_size=1, max_size=5))
def test_satisfiable_is_what_brute_force_says(given_: list[Constraint]) -> None:
    expected = any(all(one.holds(point) for one in given_) for point in POINTS)
    assert satisfiable([*BOX, *given_]) in (expected, None)


@settings(max_examples=100, deadline=None)
@given(st.lists(constraints, max_size=3), constraints)
def test_what_follows_is_what_brute_force_says(facts: list[Constraint], goal: Constraint) -> None:
    there = [point for point in POINTS if all(one.holds(point) for one in facts)]
    assert entails([*BOX, *facts], goal) == all(goal.holds(point) for point in there)
    assert excludes([*BOX, *facts], goal) == (not any(goal.holds(point) for point in there))


@pytest.mark.slow
@settings(max_examples=3000, deadline=None)
@given(st.lists(constraints, min_size=1, max_size=6))
def test_many(given_: list[Constraint]) -> None:
    expected = any(all(one.holds(point) for one in given_) for point in POINTS)
    assert satisfiable([*BOX, *given_]) in (expected, None)


def test_what_needs_integers() -> None:
    x, y = name("x"), name("y")
    two = lambda term, by: term.times(by)
    # 27 <= 11x + 13y <= 45, -10 <= 7x - 9y <= 4 has rational solutions, but none of integers (Pugh's example)
    first = [at_most(number(27), two(x, 11).plus(two(y, 13))), at_most(two(x, 11).plus(two(y, 13)), number(45))]
    second = [at_most(number(-10), two(x, 7).plus(two(y, -9))), at_most(two(x, 7).plus(two(y, -9)), number(4))]
    assert satisfiable([*first, *second]) is False
    assert satisfiable(first) is True
    assert satisfiable([equal(two(x, 6).plus(two(y, 9)), number(5))]) is False
    assert satisfiable([equal(two(x, 6).plus(two(y, 10)), number(4))]) is True


def test_what_is_said_of_sizes() -> None:
    i, n = name("i"), name("n")
    facts = [at_most(number(0), i), less(i, n)]
    assert entails(facts, less(number(0), n))
    assert entails([*facts, congruent(n, number(0), 8)], at_most(number(8), n))
    assert excludes([*facts, equal(n, number(0))], equal(i, number(0)))
    assert not entails(facts, less(i.plus(number(1)), n))
    assert entails([*facts, less(i, n.plus(number(-1)))], less(i.plus(number(1)), n))
