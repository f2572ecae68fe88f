"""What instructions are made of: constants are rounded once, equality is that of the text, errors are always ours."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import oracle
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from batches import of_each
from eshkol.atlas.isa import Instruction
from eshkol.atlas.jsonform import dumps, from_json, loads
from eshkol.atlas.operands import (
    AtomicOperation,
    BinaryMapOperation,
    BufferOffset,
    ClassOffset,
    Immediate,
    Predicate,
    Register,
)
from eshkol.atlas.program import LaunchConfig, Param, ParamKind, Program, disassemble, to_json
from eshkol.atlas.rounding import to_array
from eshkol.atlas.table import ROWS
from eshkol.atlas.text import assemble
from eshkol.atlas.types import Type
from eshkol.errors import IsaError

FLOATS = [t for t in Type if t.is_float]

# --- constants are rounded once -------------------------------------------------------------------


@st.composite
def near_ties(draw: st.DrawFn) -> int:
    """Integers close to halfway between two floats of few bits, where a first rounding would decide the second."""
    precision, extra = draw(st.sampled_from([8, 11, 24, 53])), draw(st.integers(1, 120))
    kept = draw(st.integers(1 << (precision - 1), (1 << precision) - 1))
    value = (kept << extra) + (1 << (extra - 1)) + draw(st.integers(-1, 1))
    return draw(st.sampled_from([1, -1])) * value


@pytest.mark.parametrize("ty", FLOATS, ids=str)
@settings(max_examples=150)
@given(st.one_of(near_ties(), st.integers(), st.integers(-(1 << 1100), 1 << 1100)))
@example((1 << 60) + (1 << 52) + 1)  # to F64 it would lose its last bit, and BF16 would see a tie
@example((1 << 60) + (1 << 36) + 1)  # the same for F32
@example(-(1 << 128) + (1 << 119))
@example(65519)
@example(65520)
def test_integers_are_rounded_once(ty: Type, value: int) -> None:
    assert Immediate(ty, value).value == oracle.round_exact(Fraction(value), ty)
    assert assemble(f"MOV_IMM.{ty} r0, {value}").instructions[0].value == Immediate(ty, value)
    with np.errstate(over="ignore"):
        assert float(to_array([value], ty)[0]) == Immediate(ty, value).value


@pytest.mark.parametrize("ty", FLOATS, ids=str)
@settings(max_examples=150)
@given(st.one_of(st.floats(allow_nan=False, allow_infinity=False), near_ties().map(lambda v: math.ldexp(v, -140))))
@example(1 + 2.0**-8 + 2.0**-40)  # to F32 it would be a tie of BF16
@example(1 + 2.0**-11 + 2.0**-50)  # and to F16
@example(-(2.0**-134) * (1 + 2.0**-50))  # just above half the least BF16
@example(2.0**-134)
@example(2.0**-200)
@example((2 - 2.0**-8) * 2.0**127)  # half a place beyond the greatest BF16
@example((2 - 2.0**-8 - 2.0**-40) * 2.0**127)
def test_floats_are_rounded_once(ty: Type, value: float) -> None:
    found = Immediate(ty, value).value
    assert found == oracle.round_exact(Fraction(value), ty)
    assert math.copysign(1, found) == math.copysign(1, value)
    with np.errstate(over="ignore"):
        assert float(to_array([value], ty)[0]) == found


@pytest.mark.parametrize("ty", FLOATS, ids=str)
def test_numbers_of_numpy_are_numbers(ty: Type) -> None:
    assert Immediate(ty, np.int64(-(1 << 60) - (1 << 52) - 1)) == Immediate(ty, -(1 << 60) - (1 << 52) - 1)
    assert Immediate(ty, np.float32(0.1)) == Immediate(ty, float(np.float32(0.1)))
    assert Immediate(ty, True) == Immediate(ty, 1)


# --- equality -------------------------------------------------------------------------------------


def gemm(alpha: float, beta: float) -> Instruction:
    a, b, c = (BufferOffset(name) for name in "abc")
    return ROWS["GEMM"](Type.F32, c, a, b, 1, 1, 1, alpha, beta)


def copies(instruction: Instruction) -> list[Instruction]:
    program = Program((instruction,))
    there_and_back: list[Callable[[Program], Program]] = [
        lambda p: assemble(disassemble(p)),
        lambda p: loads(dumps(p)),
        lambda p: from_json(to_json(p)),
    ]
    return [copy(program).instructions[0] for copy in there_and_back]


@given(st.floats(), st.floats())
@example(float("nan"), -0.0)
@example(float("-nan"), 0.0)
def test_instructions_are_equal_to_themselves_after_a_round_trip(alpha: float, beta: float) -> None:
    for copy in copies(gemm(alpha, beta)):
        assert copy == gemm(alpha, beta)
        assert hash(copy) == hash(gemm(alpha, beta))


def test_equal_instructions_have_the_same_text() -> None:
    """As with immediates, NaN is NaN, and the two zeros, which the text tells apart, are two."""
    assert gemm(float("nan"), 1.0) == gemm(float("nan") * -1, 1.0)
    assert gemm(0.0, 1.0) != gemm(-0.0, 1.0)
    assert gemm(1, 1.0) == gemm(1.0, 1)
    assert gemm(1.0, 1.0) != gemm(1.0, 2.0)
    assert len({gemm(v, 1.0) for v in (math.nan, float("nan"), 0.0, -0.0, 0)}) == 3
    assert gemm(1.0, 1.0) != ROWS["EXIT"]()


# --- numbers too long to print --------------------------------------------------------------------

HUGE = 10**5000  # Python does not print integers of more than 4300 digits
X = BufferOffset("x")
TOO_LONG: dict[str, Callable[[], Any]] = {
    "count": lambda: ROWS["ReduceAdd"](Type.F32, Register(0), X, HUGE),
    "negative count": lambda: ROWS["ReduceAdd"](Type.F32, Register(0), X, -HUGE),
    "real": lambda: gemm(HUGE, 0.0),
    "negative real": lambda: gemm(-HUGE, 0.0),
    "list": lambda: ROWS["TensorContract"](Type.F32, X, X, X, (HUGE,), (1,), ()),
    "pairs": lambda: ROWS["TensorContract"](Type.F32, X, X, X, (1,), (1,), ((HUGE, 0),)),
    "trips": lambda: ROWS["LOOP"](Register(0), HUGE),
    "wrong kind": lambda: ROWS["MOV"](Register(0), HUGE),
    "offset": lambda: ROWS["LDG"](Type.F32, Register(0), BufferOffset("x", HUGE)),
    "scale": lambda: ROWS["LDG"](Type.F32, Register(0), X.at(Register(1), HUGE)),
    "class": lambda: ROWS["LDG"](Type.F32, Register(0), ClassOffset(HUGE)),
    "immediate": lambda: Immediate(Type.I64, HUGE),
    "register": lambda: Register(HUGE),
    "predicate": lambda: Predicate(HUGE),
    "parameter": lambda: Param("x", ParamKind.BUFFER, Type.F32, HUGE),
    "grid": lambda: LaunchConfig((HUGE, 1, 1)),
    "lanes": lambda: LaunchConfig.linear(HUGE),
    "no lanes": lambda: LaunchConfig.grid_2d(1, -HUGE),
    "shared memory": lambda: LaunchConfig(shared_memory=HUGE),
    "JSON version": lambda: from_json({"atlas": HUGE}),
    "JSON name": lambda: from_json({"atlas": 1, "name": [HUGE]}),
    "JSON operation": lambda: from_json({"atlas": 1, "code": [{"op": HUGE}]}),
    "JSON operand": lambda: from_json({"atlas": 1, "code": [{"op": "LOOP", "counter": "r0", "iterations": HUGE}]}),
}


@of_each("name", TOO_LONG)
def test_numbers_too_long_to_print_are_refused_like_any_other(name: str) -> None:
    with pytest.raises(IsaError) as caught:
        TOO_LONG[name]()
    assert len(caught.value.message) < 250


def test_a_long_number_is_shortened_in_a_message() -> None:
    with pytest.raises(IsaError, match=r"must be between 0 and 281474976710656, not ~-1\.00e5000"):
        TOO_LONG["negative count"]()
    with pytest.raises(IsaError, match=r"^~1\.00e5000 does not fit I64"):
        TOO_LONG["immediate"]()
    with pytest.raises(IsaError, match="'alpha' must be a number that F64 can hold"):
        TOO_LONG["real"]()
    assert gemm(10**308, 0.0).alpha == 1e308


def test_a_choice_is_taken_by_its_name_and_one_of_another_kind_is_named_by_that() -> None:
    def together(operation: object) -> Instruction:
        return ROWS["ParallelMapBinary"](Type.F32, operation, X, X, X, 4)

    assert together("Add") == together(BinaryMapOperation.Add)
    with pytest.raises(IsaError, match="must be of BinaryMapOperation, and it is of AtomicOperation, not Add"):
        together(AtomicOperation.Add)
    with pytest.raises(IsaError, match=r"must be one of Add .*, not Plus"):
        together("Plus")


# --- parameters -----------------------------------------------------------------------------------


@pytest.mark.parametrize(("kind", "ty"), [(ParamKind.SCALAR, Type.F32), (ParamKind.POOL, None)])
def test_only_buffers_have_a_count(kind: ParamKind, ty: Type | None) -> None:
    """The text form could not say it."""
    with pytest.raises(IsaError, match=f"the {kind.value} 'x' cannot have a count"):
        Param("x", kind, ty, 4)
    program = Program(params=(Param("x", kind, ty), Param("y", ParamKind.BUFFER, Type.F32, 4)))
    assert assemble(disassemble(program)) == program
