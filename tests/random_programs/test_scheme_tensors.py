"""Random programs of tensors in Scheme: values and derivatives, all in one session with every cache shared."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings

from effort import amount
from random_programs.scheme_checks import by_interpreter, check, described
from random_programs.scheme_tensors import Program, programs

SLOWLY = [HealthCheck.too_slow, HealthCheck.data_too_large]


@settings(max_examples=amount(4000, 20), deadline=None, suppress_health_check=SLOWLY)
@given(programs())
def test_what_scheme_makes_of_a_program_is_what_numpy_says(program: Program) -> None:
    with by_interpreter():
        wrong = check(program)
    assert not wrong, "\n".join([described(program), *wrong])


@pytest.mark.slow
@settings(max_examples=amount(60, 5), deadline=None, suppress_health_check=SLOWLY)
@given(programs(most_forms=8))
def test_kernels_compute_what_scheme_makes_of_a_program(program: Program) -> None:
    wrong = check(program)
    assert not wrong, "\n".join([described(program), *wrong])
