"""What `make test` does less of: examples of property tests, reports of workers."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis.internal.conjecture import providers

import brief
from effort import FULL, SAMPLED, beyond_the_sample


@pytest.mark.skipif(FULL, reason="`make test-all` looks for new examples")
def test_make_test_draws_nothing_from_the_modules_that_are_loaded():
    """It takes the same examples every time, whatever a module says."""
    import eshkol.atlas.types  # noqa: F401

    assert len(providers._get_local_constants()) == 0


def test_workers_tell_of_calls_and_of_what_fails(monkeypatch):
    parts = [
        ("setup", True),
        ("call", True),
        ("teardown", True),
        ("setup", False),
        ("call", False),
        ("teardown", False),
    ]
    reports = [SimpleNamespace(when=when, passed=passed) for when, passed in parts]
    monkeypatch.setattr(brief, "runtestprotocol", lambda item, log, nextitem: reports)
    told = []
    begun = lambda nodeid, location: told.append((nodeid, location))
    hook = SimpleNamespace(
        pytest_runtest_logstart=begun,
        pytest_runtest_logreport=lambda report: told.append((report.when, report.passed)),
        pytest_runtest_logfinish=begun,
    )
    item = SimpleNamespace(nodeid="test", location="place", ihook=hook)
    assert brief.Brief().pytest_runtest_protocol(item, None)
    assert told == [("test", "place"), parts[1], *parts[3:], ("test", "place")]


def test_of_large_tables_a_part_is_run_and_never_none():
    def item(file, test, row=None):
        told = (
            {"nodeid": f"{file}::{test}[{row}]", "callspec": row} if row is not None else {"nodeid": f"{file}::{test}"}
        )
        return SimpleNamespace(path=Path(file), **told)

    sampled = next(name for name, share in SAMPLED.items() if share == 3)
    table = [item(f"tests/{sampled}.py", "test_table", row) for row in range(10)]
    others = [
        item(f"tests/{sampled}.py", "test_alone"),
        item(f"tests/{sampled}.py", "test_of_one", "row"),
        *(item("tests/test_of_others.py", "test_table", row) for row in range(10)),
    ]
    left_out = [*beyond_the_sample([*table, *others])]
    assert len(left_out) == 6
    assert all(one in table for one in left_out)
    assert [*beyond_the_sample([*others, *reversed(table)])] == left_out  # whatever their order


def test_what_is_sampled_is_there():
    tests = Path(__file__).parent
    files = {path.relative_to(tests).with_suffix("").as_posix() for path in tests.rglob("test_*.py")}
    assert not SAMPLED.keys() - files
