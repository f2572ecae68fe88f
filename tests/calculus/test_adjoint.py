"""Gradients as typed programs: against the complex step, and differentiated once more by both compiled ways."""

from __future__ import annotations

import math

import pytest
from fast_runs import Runner, complex_step, flat, value
from hypothesis import given
from hypothesis import strategies as st
from programs_fast import PROGRAMS
from random_fast import program as random_program
from typed_programs import parse

from effort import examples
from eshkol.calculus import ir
from eshkol.calculus.abstract import NotFast
from eshkol.calculus.adjoint import gradient_function

# what a gradient inside of a derivative is not made of
LEFT_OUT = ("a recursion in", "memory from outside is changed", "nested data")


def derived(program: ir.TypedProgram) -> ir.TypedProgram | None:
    """The value and the gradient of a program, as a program; none where it is one of those that are left out."""
    try:
        function = gradient_function(program.functions, program.active)
    except NotFast as reason:
        if not any(part in str(reason) for part in LEFT_OUT):
            raise
        return None
    made = ir.TypedProgram([function], list(program.active))
    ir.verify(made)
    return made


def agree(found: object, wanted: object) -> bool:
    numbers = flat(wanted)
    return flat(found) == pytest.approx(numbers, rel=0, abs=1e-9 * max([1e-3, *map(abs, numbers)]))


def is_tame(numbers: list[float]) -> bool:
    return all(math.isfinite(x) and abs(x) < 1e6 for x in numbers)


def check(program: ir.TypedProgram, args: list[object], runner: Runner | None) -> bool:
    """Whether there is a gradient; then it is right, and so is its derivative."""
    made = derived(program)
    wanted = flat(complex_step(program, args))
    if made is None or not is_tame([*wanted, *flat(value(program, args))]):
        return False
    found = value(made, args)
    assert found[0] == value(program, args)[0]
    assert agree(found[1:], wanted)
    if runner is not None:
        second = complex_step(made, args)  # for each variable, the derivatives of the value and of the gradient
        if is_tame(flat(second)):
            result = "".join({"f64": "f", "array": "v(f)", "cell": "l(f)"}[kind.kind] for kind in made.main.results)
            if second:
                _, *tangents = runner.tangents(made, args, min(4, len(second)), f"({result})")
                assert agree(tangents, second)
    return True


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs(runner: Runner, name: str) -> None:
    text, args = PROGRAMS[name]
    check(parse(text), args, runner)


@examples(150, 25)
@given(st.integers(0, 2**32))
def test_random_programs(runner: Runner, seed: int) -> None:
    program, args = random_program(seed)
    check(program, args, runner)


def test_most_programs_have_a_gradient() -> None:
    made = [derived(parse(text)) for text, _ in PROGRAMS.values()]
    assert sum(program is not None for program in made) > len(made) / 2
