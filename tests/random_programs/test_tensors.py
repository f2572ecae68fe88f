"""Random tensor programs, computed in every way on both backends, are what the oracle says.

Hypothesis draws some and shrinks what fails; many more follow from seeds, in processes that live long
(`python -m random_programs`): programs meet what others have left in the caches.
"""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import eshkol as ek
from effort import FULL, amount
from eshkol.schedule.run import execute
from random_programs.__main__ import TESTS
from random_programs.choosing import Drawn, Seeded
from random_programs.drawing import draw_program
from random_programs.matrix_steps import OF_MATRICES, ORDERS
from random_programs.program import KINDS, Known, Step, alone
from random_programs.shrinking import smallest
from random_programs.table_steps import DECIDING, ROWS, SMOOTH
from random_programs.trying import BACKENDS, Tally, attempt
from random_programs.ways import WAYS, WEIGHTED, Run, computed_in

PARTS = 4  # for the processes that share the work
SEEDS = [100039557]  # of programs that failed; each is computed again, as long as it means the same program
STEPS = amount(10, 2)  # tried at most; longer programs are for the whole effort


def test_there_is_much_to_draw_from():
    assert len(KINDS) > 35
    assert len(ROWS) > 250
    assert len(SMOOTH) > 30
    assert len(DECIDING) > 15


@pytest.mark.parametrize("name", OF_MATRICES)
def test_the_oracle_compiles_nothing(name, monkeypatch):
    def refuse(*_):
        raise AssertionError("the oracle asked the compiler")

    monkeypatch.setattr(execute, "_compute", refuse)
    x = np.linspace(0.1, 0.6, 6).reshape(2, 3)
    assert np.isfinite(alone(Step("of matrices", (0,), name), [x])).all()


@pytest.mark.parametrize("name", ["trace", "norm"])
def test_second_derivatives_of_eigenvalues_are_asked_for_where_there_are_some(name):
    column = ek.tensor(np.array([[0.36], [0.15], [0.29]]))  # times its transpose, two eigenvalues are 0
    slope = ek.grad(lambda x: ek.grad(lambda y: OF_MATRICES[name][0](y).sum())(x).sum())
    assert np.isfinite(slope(column).numpy()).all()


@pytest.mark.parametrize("name", ORDERS)
def test_nan_has_its_place_in_every_order(name):
    x = np.array([1.0, np.nan, np.inf, -np.inf, 0.0, -2.5])
    found = alone(Step("order", (0,), (name, len(x), 0)), [x])  # compares the reference with NumPy
    where = {"last": [5], "some": [5], "spread": [5], "greatest so far": range(1, 6), "least so far": range(1, 6)}
    assert np.flatnonzero(np.isnan(found)).tolist() == list(where.get(name, [0]))


@pytest.mark.parametrize("name", [name for name, kind in KINDS.items() if kind.numpys is not None])
def test_both_oracles_say_the_same_of_what_is_not_finite(name):
    line = np.array([1.0, np.nan, np.inf, -np.inf, 0.0, -2.5])
    values = [Known(line, True), Known(line.reshape(3, 2), True), Known(np.array([[0.5, -np.inf]]), True)]
    for seed in range(10):
        step = KINDS[name].choose(Seeded(seed), values)
        if isinstance(step, Step):  # one that brings leaves of its own is compared wherever it is drawn
            alone(step, [values[k].array for k in step.args])


@pytest.mark.parametrize("seed", SEEDS)
def test_seeds_that_once_failed(seed):
    failure = attempt(seed, "reference", 2, Tally())
    assert failure is None, str(failure)


def test_one_command_covers_several_backends():
    command = [sys.executable, "-m", "random_programs", "--count", "4", "--fresh", "2", "--most", "2"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [*command, "--backend", "reference,card"], capture_output=True, text=True, env=environment, cwd=TESTS
    )
    assert done.returncode == 0, done.stdout + done.stderr
    lines = done.stdout.splitlines()
    assert [line.split(":")[0] for line in lines[-2:]] == ["reference", "card"]
    assert all("a second of one job" in line and "ms of processor each" in line for line in lines[-2:])
    unknown = subprocess.run([*command, "--backend", "cpu,abacus"], capture_output=True, text=True, env=environment)
    assert unknown.returncode == 2
    assert "there is no backend 'abacus'" in unknown.stderr


@settings(max_examples=amount(2000, 40), suppress_health_check=list(HealthCheck))
@given(st.data())
def test_drawn_by_hypothesis(data):
    c = Drawn(data.draw)
    program, values = draw_program(c, most=6)
    if program.steps:
        computed_in(c.pick(WEIGHTED), Run(program, values, c), c.pick(BACKENDS) if FULL else "reference")


@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize(("backend", "count"), [
    ("reference", amount(80_000, 1_820)), ("card", amount(20_000, 120)), ("card:1", amount(4_000, 40)),
    ("cpu", amount(20_000, 24)),
])  # fmt: skip
def test_drawn_from_seeds(backend, count, part):
    tally = Tally()
    for seed in range(part * 100_000, part * 100_000 + count // PARTS):
        failure = attempt(seed, backend, 1, tally, STEPS)
        assert failure is None, str(smallest(failure))
    few = count < 200  # of which shares say little
    assert tally.programs > (0.3 if few else 0.8) * count / PARTS
    assert sum(tally.ways.values()) > (0 if few else 0.6) * tally.programs
    assert tally.programs < 100 or len(tally.ways) == len(WAYS)
