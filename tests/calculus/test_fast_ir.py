"""Derivatives of typed programs, compiled: against the complex step through an interpreter of the same programs."""

from __future__ import annotations

import ctypes
import math

import pytest
from fast_runs import Runner, complex_step, flat, value
from hypothesis import given
from hypothesis import strategies as st
from programs_fast import PROGRAMS
from random_fast import program as random_program
from typed_programs import parse

from effort import examples
from eshkol.calculus import checkpoint, native, plan
from eshkol.calculus.native import ARGUMENT, CAR, CDR, ELEMENT, Where
from eshkol.runtime.scheme_table import layout

CLOSE = {"rel": 1e-11, "abs": 1e-300}


@pytest.mark.parametrize("name", PROGRAMS)
def test_derivatives(runner: Runner, name: str) -> None:
    text, args = PROGRAMS[name]
    program = parse(text)
    wanted = flat(complex_step(program, args))
    found, *gradients = runner.gradient(program, args)
    assert found == value(program, args)[0]
    assert flat(gradients) == pytest.approx(wanted, **CLOSE)
    assert [type(g) for g in gradients] == [type(a) for a, mark in zip(args, program.active, strict=True) if mark]
    for lanes in (1, 4):
        found, *tangents = runner.tangents(program, args, lanes)
        assert found == value(program, args)[0]
        assert flat(tangents) == pytest.approx(wanted, **CLOSE)


@examples(300, 20)
@given(st.integers(0, 2**32))
def test_random_programs(runner: Runner, seed: int) -> None:
    program, args = random_program(seed)
    wanted, is_ = flat(complex_step(program, args)), value(program, args)[0]
    if not all(math.isfinite(x) and abs(x) < 1e6 for x in [*wanted, is_]):
        return
    close = 1e-9 * max(1e-3, *map(abs, wanted))
    found, *gradients = runner.gradient(program, args)
    assert found == is_
    assert flat(gradients) == pytest.approx(wanted, rel=0, abs=close)
    found, *tangents = runner.tangents(program, args, 1 + seed % 3)
    assert found == is_
    assert flat(tangents) == pytest.approx(wanted, rel=0, abs=close)


@pytest.mark.parametrize("name", ["nested_loops", "stepped", "loops_of_a_function"])
def test_records_of_large_functions(runner: Runner, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where no smallest cut is looked for, more is recorded, and the same comes out."""
    text, args = PROGRAMS[name]
    wanted = runner.gradient(parse(text), args)
    monkeypatch.setattr(plan, "LARGEST_CUT", 0)
    assert runner.gradient(parse(text), args) == wanted


# ---- checkpoints -----------------------------------------------------------------------------------------------------

DECAY = """
function main -> f64
b0(%a: f64 varies, %n: i64):
  %z: i64 = constant 0
  %one: i64 = constant 1
  %h: f64 = constant 0.001
  jump loop(%z, %a)
loop(%i: i64, %x: f64):
  %c: i1 = icompare lt %i, %n
  branch %c body() done()
body():
  %xx: f64 = math * %x, %x
  %d: f64 = math * %h, %xx
  %y: f64 = math - %x, %d
  %j: i64 = iadd %i, %one
  jump loop(%j, %y)
done():
  return %x
"""


@pytest.mark.parametrize("turns", [0, 1, 2, 3, 4, 5, 63, 64, 65, 1000])
def test_checkpoints_change_nothing(runner: Runner, turns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checkpoint, "SLOTS", 4)
    program = parse(DECAY)
    whole = runner.gradient(program, [0.75, turns])
    assert runner.gradient(program, [0.75, turns], checkpoint=True) == whole


FLAGGED = """
function main -> f64
b0(%a: f64 varies, %n: i64):
  %z: i64 = constant 0
  %one: i64 = constant 1
  %three: i64 = constant 3
  %yes: i1 = icompare lt %z, %one
  jump loop(%z, %a, %yes)
loop(%i: i64, %x: f64, %flag: i1):
  %c: i1 = icompare lt %i, %n
  branch %c body() done()
body():
  %j: i64 = iadd %i, %one
  %few: i1 = icompare lt %i, %three
  branch %flag up() down()
up():
  %y: f64 = math sin %x
  jump loop(%j, %y, %few)
down():
  %w: f64 = math * %x, %x
  jump loop(%j, %w, %few)
done():
  return %x
"""


@pytest.mark.parametrize("turns", [1, 4, 5, 9])
def test_checkpoints_keep_truth_values(runner: Runner, turns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A flag that a loop carries decides which way a piece goes that is run again."""
    monkeypatch.setattr(checkpoint, "SLOTS", 2)
    program = parse(FLAGGED)
    found = runner.gradient(program, [0.75, turns], checkpoint=True)
    assert found == runner.gradient(program, [0.75, turns])
    x, slope = 0.75, 1.0
    for k in range(turns):
        x, slope = (math.sin(x), math.cos(x) * slope) if k < 4 else (x * x, 2 * x * slope)
    assert found == pytest.approx([x, slope], rel=1e-12)


@examples(100, 8)
@given(st.integers(0, 2**32))
def test_checkpoints_of_random_programs(runner: Runner, seed: int) -> None:
    program, args = random_program(seed)
    slots, checkpoint.SLOTS = checkpoint.SLOTS, 2
    try:
        assert repr(runner.gradient(program, args, checkpoint=True)) == repr(runner.gradient(program, args))
    finally:
        checkpoint.SLOTS = slots


def test_long_loops_take_little_memory_with_checkpoints(runner: Runner) -> None:
    program = parse(DECAY)
    whole = runner.gradient(program, [0.75, 300_000])
    assert runner.used == 8 * 300_000
    assert runner.gradient(program, [0.75, 300_000], checkpoint=True) == whole
    assert runner.used < 32_000
    assert whole[1] == pytest.approx((1 + 0.001 * 300_000 * 0.75) ** -2, rel=0.01)  # x' = -x²


def test_a_full_tape_is_told(runner: Runner) -> None:
    program = parse(DECAY)
    made = native.compile_gradient(program, runner.code)
    args = [runner.value(0.75), runner.value(100_000)]
    assert runner.run(runner.described(made, program, limit=1 << 16), args) == (native.FULL, None)
    assert runner.run(runner.described(made, program, limit=1 << 20), args)[0] == native.OK


# ---- inputs and results ----------------------------------------------------------------------------------------------

SUM = """
function main -> f64
b0(%l: cell(f64) varies, %v: array(f64) varies, %x: f64, %n: i64):
  %f0: f64 = constant 0.0
  %i0: i64 = constant 0
  jump loop(%l, %f0)
loop(%p: cell(f64), %s: f64):
  %e: i1 = is_null %p
  branch %e done() body()
body():
  %a: f64 = cell_value %p
  %t: f64 = math + %s, %a
  %r: cell(f64) = cell_next %p
  jump loop(%r, %t)
done():
  %b: f64 = array_get %v, %n
  %c: f64 = math sqrt %x
  %d: f64 = math * %b, %c
  %u: f64 = math + %s, %d
  return %u
"""


@pytest.mark.parametrize(
    ("text", "status"),
    [
        ("(1. 2.) #(3. 4.) 4. 1", native.OK),
        ("() #(3.) 4. 0", native.OK),
        ("(1. 2) #(3. 4.) 4. 1", native.MISMATCH),
        ("(1. . 2.) #(3. 4.) 4. 1", native.MISMATCH),
        ("#0=(1. . #0#) #(3. 4.) 4. 1", native.MISMATCH),
        ("#0=(1. 2. 3. . #0#) #(3. 4.) 4. 1", native.MISMATCH),
        ("(1. 2.) (3. 4.) 4. 1", native.MISMATCH),
        ("(1. 2.) #(3. 4.) 4 1", native.MISMATCH),
        ("(1. 2.) #(3. 4.) 4. 1.", native.MISMATCH),
        ("(1. 2.) #(3. 4.) 4. 2", native.FAILED),
        ("(1. 2.) #(3. 4.) 4. -1", native.FAILED),
        ("(1. 2.) #(3. 4.) -4. 1", native.FAILED),
    ],
)
def test_inputs_are_checked(runner: Runner, text: str, status: int) -> None:
    program = parse(SUM)
    code = runner.described(native.compile_gradient(program, runner.code), program)
    found, result = runner.run(code, runner.values(text, 4))
    assert found == status
    if status == native.OK:
        _, along_list, along_vector = result
        assert along_list == (1.0,) * len(along_list)
        assert along_vector[-1] == 2.0


def test_constant_data_are_checked(runner: Runner) -> None:
    program = parse(PROGRAMS["constant_data"][0])
    code = runner.described(native.compile_gradient(program, runner.code), program)
    assert runner.run(code, runner.values(".5 -.25 (1. 2.) #(#(0. 3.) #(1. 2.))", 4))[0] == native.OK
    for wrong in ("#(#(0. 3.) #(1. 2))", "#(#(0. 3.) (1. 2.))", "(#(0. 3.))", "1."):
        assert runner.run(code, runner.values(f".5 -.25 (1. 2.) {wrong}", 4))[0] == native.MISMATCH
    assert runner.run(code, runner.values(".5 -.25 (1. 2.) #(#(0. 3.) #(1.))", 4))[0] == native.FAILED
    assert runner.run(code, runner.values(".5 -.25 #0=(1. . #0#) #(#(0. 3.))", 4))[0] == native.MISMATCH


def test_ways_and_guards(runner: Runner) -> None:
    program = parse("function main -> f64\nb0(%x: f64 varies, %y: f64):\n  %z: f64 = math * %x, %y\n  return %z")
    made = native.compile_gradient(program, runner.code)
    one, other = (runner.machine.unit_procedure(made.entry, name) for name in ("one", "other"))  # never called
    procedure = ctypes.c_uint64.from_address(one.bits + 16).value
    cell = runner.value(7.0)
    place = runner.kept[-1].get().bits + layout()["Vector.items"]
    inputs = [
        Where([(ARGUMENT, 1)], "P", expected=procedure),
        Where([(ARGUMENT, 0), (CDR, 0), (CAR, 0), (ELEMENT, 1)], "f", active=True),
        Where([], "f", cell=place),
    ]
    assert cell.tag == runner.machine.tags["FLONUM"]
    code = made.describe(inputs)
    assert runner.run(code, [*runner.values("(1 #(2 3.5))", 1), one]) == (native.OK, (24.5, 7.0))
    assert runner.run(code, [*runner.values("(1 #(2 3.5))", 1), other])[0] == native.MISMATCH
    for wrong in ("(1)", "(1 2)", "(1 #(2))", "(1 #(2 3))", "1"):
        assert runner.run(code, [*runner.values(wrong, 1), one])[0] == native.MISMATCH


SHAPES = """
function main -> f64, array(f64), cell(f64), i64
b0(%x: f64 varies, %v: array(f64) varies):
  %i0: i64 = constant 0
  %i1: i64 = constant 1
  %two: f64 = constant 2.0
  %e: null = constant None
  %a: f64 = array_get %v, %i0
  %b: f64 = array_get %v, %i1
  %xa: f64 = math * %x, %a
  %bb: f64 = math * %b, %b
  %n: i64 = constant 3
  %w: array(f64) = array_new %n, %xa
  array_set %w, %i1, %two
  %l: cell(f64) = cell_new %bb, %e
  %m: cell(f64) = cell_new %x, %l
  return %bb, %w, %m, %n
"""


@pytest.mark.parametrize("lanes", [1, 2, 3, 5])
def test_results_of_every_shape(runner: Runner, lanes: int) -> None:
    found = runner.tangents(parse(SHAPES), [5.0, [2.0, 3.0]], lanes, "(f#(v(f)l(f))i)")
    assert found == (
        (9.0, [[10.0, 2.0, 10.0], (5.0, 9.0)], 3),
        (0.0, [[2.0, 0.0, 2.0], (1.0, 0.0)], 0),
        (0.0, [[5.0, 0.0, 5.0], (0.0, 0.0)], 0),
        (6.0, [[0.0, 0.0, 0.0], (0.0, 6.0)], 0),
    )


def test_along_a_direction(runner: Runner) -> None:
    program = parse(SHAPES)
    made = native.compile_forward(program, 1, runner.code, directed=True)
    code = runner.described(made, program, "(f#(v(f)l(f))i)")
    status, found = runner.run(code, runner.values("5. #(2. 3.) 1 #(10. 100.)", 4))
    assert (status, found[1:]) == (native.OK, ((600.0, [[52.0, 0.0, 52.0], (1.0, 600.0)], 0),))
    assert runner.run(code, runner.values("5. #(2. 3.) 1 #(10.)", 4))[0] == native.MISMATCH
    assert runner.run(code, runner.values("5. #(2. 3.) a #(10. 1.)", 4))[0] == native.MISMATCH


def test_what_is_not_reached_has_no_infinite_part(runner: Runner) -> None:
    text = """
function main -> f64
b0(%x: f64 varies, %y: f64 varies):
  %r: f64 = math sqrt %x
  %z: f64 = constant 0.0
  %c: i1 = compare gt %x, %z
  branch %c yes() no()
yes():
  jump join(%r)
no():
  jump join(%y)
join(%s: f64):
  return %s
"""
    assert runner.gradient(parse(text), [0.0, 3.0]) == (3.0, 0.0, 1.0)
    assert runner.gradient(parse(text), [4.0, 3.0]) == (2.0, 0.25, 0.0)


# ---- runs ------------------------------------------------------------------------------------------------------------


def test_deep_recursion_gives_up(runner: Runner) -> None:
    program = parse(PROGRAMS["recursion"][0])
    code = runner.described(native.compile_gradient(program, runner.code), program)
    assert runner.run(code, runner.values("1000 1.1", 2))[0] == native.OK
    assert runner.run(code, runner.values("100000000 1.1", 2))[0] == native.FAILED


def test_a_look_for_interrupts_that_finds_none(runner: Runner) -> None:
    """Where somebody interrupts, the limit of the stack is the highest address; here nobody does after all."""
    program = parse(DECAY)
    code = runner.described(native.compile_gradient(program, runner.code), program)
    assert runner.machine.context is not None
    limit = ctypes.c_uint64.from_address(runner.machine.context + layout()["Context.stack_limit"])
    limit.value = (1 << 64) - 1
    status, found = runner.run(code, runner.values(".5 1000", 2))
    assert (status, limit.value == (1 << 64) - 1) == (native.OK, False)
    assert found == runner.gradient(program, [0.5, 1000])


def test_memory_is_given_back(runner: Runner) -> None:
    program = parse(DECAY)
    code = runner.described(native.compile_gradient(program, runner.code), program)

    def resident() -> int:
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * 4096

    small, large = runner.values(".5 100", 2), runner.values(".5 16000000", 2)
    for _ in range(100):
        assert runner.run(code, small)[0] == native.OK
    before = resident()
    assert runner.run(code, large)[0] == native.OK
    assert code.used == 128_000_000
    assert resident() - before < 32 << 20
    for _ in range(2000):
        assert runner.run(code, small)[0] == native.OK
    assert resident() - before < 32 << 20
