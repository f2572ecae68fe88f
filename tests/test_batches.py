"""Cases that share a test: all of them run, and each that fails is told."""

from __future__ import annotations

import inspect

import pytest

from batches import BATCH, checkered, in_batches, of_each


def test_every_case_runs_and_every_failure_is_told():
    seen = []

    @of_each("a, b", [(1, 2), (2, 2), (3, 4)])
    @of_each("c", "xy")
    def equal(a, b, c, fixture):
        seen.append((a, b, c, fixture))
        if c == "y":
            with pytest.raises(ValueError, match="never"):  # fails by an exception that is pytest's own
                pass
        assert a == b

    assert list(inspect.signature(equal).parameters) == ["fixture"]
    with pytest.raises(BaseExceptionGroup, match="3 of 3 cases of a, b fail") as found:
        equal(fixture=0)
    assert seen == [(a, b, c, 0) for a, b in ((1, 2), (2, 2), (3, 4)) for c in "xy"]
    first, second, _ = found.value.exceptions
    assert isinstance(first, BaseExceptionGroup)
    assert isinstance(second, BaseExceptionGroup)
    assert [len(first.exceptions), len(second.exceptions)] == [2, 1]
    assert (first.__notes__, second.exceptions[0].__notes__) == (["with a=1, b=2"], ["with c=y"])


def test_what_passes_says_nothing_and_a_test_of_nothing_is_refused():
    assert of_each("a", [1, 2])(lambda a: None)() is None
    with pytest.raises(AssertionError, match="no cases"):
        of_each("a", [])
    with pytest.raises(AssertionError, match="does not take b"):
        of_each("b", [1])(lambda a: None)


def test_batches_have_the_names_of_their_cases():
    seen = []

    @in_batches("a, b", [(k, k + 1) for k in range(BATCH + 2)], ids=lambda case: f"n{case[0]}")
    def less(a, b, fixture):
        if a == 1:
            pytest.skip("not this one")
        seen.append(a)
        assert a < b < BATCH + 1, fixture

    (mark,) = less.pytestmark
    assert mark.args == ("batch", range(2))
    assert mark.kwargs["ids"][1] == f"n{BATCH}+n{BATCH + 1}"
    assert list(inspect.signature(less).parameters) == ["fixture", "batch"]
    less(batch=0, fixture=0)
    with pytest.raises(BaseExceptionGroup, match="2 of 2 cases of a, b fail"):
        less(batch=1, fixture=0)
    assert seen == [0, *range(2, BATCH + 2)]


def test_a_test_whose_cases_are_all_skipped_is_skipped():
    with pytest.raises(pytest.skip.Exception, match="none"):
        of_each("a", [1, 2])(lambda a: pytest.skip("none"))()


def test_half_of_a_board_has_every_value_and_of_three_axes_every_pair():
    (mark,) = [checkered(a="xyz", b=[1, 2], c=[True, False]).mark]
    names, cases = mark.args
    assert names == ("a", "b", "c")
    assert len(cases) == 12
    taken = [case for case in cases if not case.marks]
    assert [case.id for case in taken][:3] == ["x-1-True", "x-2-False", "y-1-False"]
    for one, other, count in ((0, 1, 6), (0, 2, 6), (1, 2, 4)):
        assert len({(case.values[one], case.values[other]) for case in taken}) == count
    assert all(mark.name == "slow" for case in cases for mark in case.marks)
