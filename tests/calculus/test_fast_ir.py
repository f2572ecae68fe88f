"""Derivatives of typed programs, compiled: against the complex step through an interpreter of the same programs."""

from __future__ import annotations

import pytest
from fast_runs import Runner, complex_step, flat, value
from programs_fast import PROGRAMS
from typed_programs import parse


@pytest.fixture(scope="module")
def runner() -> Runner:
    return Runner()


@pytest.mark.parametrize("name", PROGRAMS)
def test_gradients(runner: Runner, name: str) -> None:
    text, args = PROGRAMS[name]
    program = parse(text)
    found, *gradients = runner.gradient(program, args)
    assert found == value(program, args)[0]
    assert flat(gradients) == pytest.approx(flat(complex_step(program, args)), rel=1e-11, abs=1e-300)


@pytest.mark.parametrize("name", PROGRAMS)
def test_tangents(runner: Runner, name: str) -> None:
    text, args = PROGRAMS[name]
    program = parse(text)
    wanted = flat(complex_step(program, args))
    for lanes in (1, 4):
        found, *tangents = runner.tangents(program, args, lanes)
        assert found == value(program, args)[0]
        assert flat(tangents) == pytest.approx(wanted, rel=1e-11, abs=1e-300)
