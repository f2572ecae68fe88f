"""Many small cases as one test: `of_each` is `pytest.mark.parametrize` for cases that take next to no time.

A test of its own costs some milliseconds, whatever it does. All cases run, also after one that fails, and each that
fails is told with what it was given. `in_batches` makes a test of every few cases, which has the names of all of them:
`-k` finds a case, and what is judged test by test (`tests/mutation`) need not run all.

`checkered` is for every case of several axes: `make test` takes every other one, as the fields of a chessboard of one
colour, `make test-all` takes all.
"""

from __future__ import annotations

import functools
import inspect
import itertools
from collections.abc import Callable, Iterable
from typing import Any

import pytest


def of_each(names: str, cases: Iterable[Any]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a test each of the cases: values of the argument of this name, or tuples of the arguments ("a, b")."""
    given, known = [name.strip() for name in names.split(",")], list(cases)
    assert known, f"no cases of {names}"

    def decorate(function: Callable[..., None]) -> Callable[..., None]:
        parameters = inspect.signature(function).parameters
        assert set(given) <= set(parameters), f"{function.__name__} does not take {names}"

        @functools.wraps(function)
        def test(**others: Any) -> None:
            failed: list[BaseException] = []
            skipped: list[BaseException] = []
            for case in known:
                values = dict(zip(given, case if len(given) > 1 else (case,), strict=True))
                try:
                    function(**values, **others)
                except (Exception, BaseExceptionGroup, pytest.fail.Exception) as error:
                    error.add_note(f"with {', '.join(f'{name}={value}' for name, value in values.items())}")
                    failed.append(error)
                except pytest.skip.Exception as reason:
                    skipped.append(reason)
            if failed:
                raise BaseExceptionGroup(f"{len(failed)} of {len(known)} cases of {names} fail", failed)
            if len(skipped) == len(known):
                raise skipped[0]

        rest = [parameter for name, parameter in parameters.items() if name not in given]
        test.__signature__ = inspect.Signature(rest)  # type: ignore[attr-defined]
        return test

    return decorate


BATCH = 16  # cases


def in_batches(
    names: str, cases: Iterable[Any], ids: Callable[[Any], str] = str
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a test each of the cases, some at a time; `ids` says what a case is called."""
    known = list(cases)
    batches = [known[k : k + BATCH] for k in range(0, len(known), BATCH)]

    def decorate(function: Callable[..., None]) -> Callable[..., None]:
        run = [of_each(names, batch)(function) for batch in batches]

        @functools.wraps(run[0])
        def test(batch: int, **others: Any) -> None:
            run[batch](**others)

        rest = inspect.signature(run[0]).parameters.values()
        added = inspect.Parameter("batch", inspect.Parameter.KEYWORD_ONLY)
        test.__signature__ = inspect.Signature([*rest, added])  # type: ignore[attr-defined]
        called = ["+".join(map(ids, batch)) for batch in batches]
        return pytest.mark.parametrize("batch", range(len(batches)), ids=called)(test)

    return decorate


def checkered(ids: Callable[[Any], str] = str, **axes: Iterable[Any]) -> pytest.MarkDecorator:
    """Parametrize a test with all combinations of some arguments' values, of which `make test` takes half.

    Those are taken whose places add up to an even number. So each value is met, with every other value of each other
    axis; and where there are three axes, of two values at least, any two values of different axes meet.
    """
    columns = [list(enumerate(values)) for values in axes.values()]
    cases = [
        pytest.param(
            *(value for _, value in case), id="-".join(ids(value) for _, value in case),
            marks=[pytest.mark.slow] if sum(place for place, _ in case) % 2 else [],
        )
        for case in itertools.product(*columns)
    ]  # fmt: skip
    return pytest.mark.parametrize(tuple(axes), cases)
