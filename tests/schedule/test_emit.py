"""What rows write with the emitter, run: arithmetic of indices, loops, reductions, conversions, registers."""

from __future__ import annotations

import math

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eshkol.atlas.machines import CORES
from eshkol.atlas.program import LaunchConfig
from eshkol.atlas.types import Type
from eshkol.errors import ExecutionFailed, IsaError, TensorError
from eshkol.graph.node import buffer, make
from eshkol.ops import dtypes
from eshkol.ops.elementwise import Cast, cast
from eshkol.ops.row import Aval, Op, Pull, Push
from eshkol.schedule.kernels.code import IndexedPlace, Item, Virtual, assign
from eshkol.schedule.kernels.emit import Emitter
from eshkol.schedule.kernels.lower import lowered
from eshkol.schedule.kernels.reads import Read, Write
from eshkol.schedule.kernels.scalars import Pair
from eshkol.schedule.run.execute import realize
from eshkol.tensors.devices import open_backend

pytestmark = pytest.mark.unchecked  # the ops made here have no meaning but their code

REFERENCE, CPU = open_backend("reference"), open_backend("cpu")
INDEX = dtypes.int64


def kernel(shape, dtype, code, *arrays):
    """A node of an op that is only this code."""
    op = Op(
        name="test", doc="A test.", function=None, infer=lambda a, *x: Aval(shape, dtype), reference=lambda a, *x: None,
        lower=Pull(code) if not isinstance(code, Push) else code,
    )  # fmt: skip
    return make(op, tuple(buffer(a, dtypes.of(a.dtype)) for a in arrays), None)


def computed(shape, dtype, code, *arrays, machine=REFERENCE):
    return realize([kernel(shape, dtype, code, *arrays)], machine)[0]


# --- indices ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("machine", [REFERENCE, CPU])
def test_index_arithmetic(machine):
    def code(e, a, i):
        j = i[0] * 7 + i[1]
        return e.convert((j // 3) * 5 - 2 + j % 4 + (100 - i[1]) + e.ravel(i, (4, 7)) * 0, INDEX)

    wanted = [[((r * 7 + c) // 3) * 5 - 2 + (r * 7 + c) % 4 + 100 - c for c in range(7)] for r in range(4)]
    assert computed((4, 7), INDEX, code, machine=machine).tolist() == wanted


@pytest.mark.parametrize(
    "way", [lambda k: 2 + k, lambda k: 50 - k, lambda k: 3 * k, lambda k: 60 // k, lambda k: 60 % k]
)
def test_numbers_may_stand_before_an_index(way):
    found = computed((9,), INDEX, lambda e, a, i: e.convert(way(i[0] + 1), INDEX))
    assert found.tolist() == [way(k) for k in range(1, 10)]


def test_small_indices_are_narrow_and_large_ones_wide():
    small, large = Emitter((10, 10)), Emitter((1 << 20, 1 << 20))
    for e, ty in ((small, Type.U32), (large, Type.I64)):
        assert e.ravel([e.here[0], e.here[1] * 1], (1 << 20, 1 << 20)).register is not None
        (found,) = {item.operands[0].ty for item in e.prologue if item.name in ("DIV", "REM")}
        assert found is ty
    product = small.here[0] * (1 << 31)
    assert product.register.ty is Type.I64  # 9 · 2^31 does not fit 32 bits


def test_addresses_beyond_32_bits_do_not_wrap():
    """The code that a huge array would have, run over one lane far behind: it must be out of range, not wrapped."""
    e = Emitter((1 << 34,))
    x, out = Read(e, "x0", (1 << 17, 1 << 17), dtypes.uint8), Write(e, "out", (1 << 34,), dtypes.uint8)
    row = e.number(1 << 16) + e.here[0] * 0
    out(e.here, x([row, 0]))
    program = e.finish("far", [x], [out])
    buffers = {name: CPU.array(np.zeros(4, np.uint8)) for name in ("x0", "out")}
    with pytest.raises(ExecutionFailed, match="out of range"):
        CPU.execute(program, LaunchConfig.linear(1), {"n": 1, **buffers})


@given(st.lists(st.integers(1, 5), max_size=4), st.integers(0, 2**31))
def test_ravel_and_unravel(shape, seed):
    shape = tuple(shape)
    total = math.prod(shape)

    def code(e, a, i):
        there = e.unravel(e.number(total - 1) - e.ravel(i, shape), shape)
        return e.ravel(list(there), shape)

    got = computed(shape, INDEX, code)
    np.testing.assert_array_equal(got.ravel(), np.arange(total)[::-1])


def test_read_if_and_an_empty_input():
    x, empty = np.arange(3, dtype=np.int32), np.zeros((0,), np.int32)

    def code(e, a, i, x, empty):
        place = i[0] - 1
        valid = e.op("AND", e.compare("GE", place, 0), e.compare("LT", place, 3))
        return e.read_if(valid, x, [place], e.read_if(valid, empty, [place], -7))

    for machine in (REFERENCE, CPU):
        assert computed((5,), dtypes.int32, code, x, empty, machine=machine).tolist() == [-7, 0, 1, 2, -7]


# --- loops ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("machine", [REFERENCE, CPU])
def test_loops_carry_state(machine):
    """Fibonacci, which exchanges its state, with a count that depends on the element."""

    def code(e, a, i):
        return e.loop(i[0], [0, 1], lambda j, state: [state[1], e.op("ADD", *state)])[0]

    assert computed((10,), INDEX, code, machine=machine).tolist() == [0, 1, 1, 2, 3, 5, 8, 13, 21, 34]


@pytest.mark.parametrize("machine", [REFERENCE, CPU])
def test_push_writes_rows(machine):
    def rows(e, a, r, write, x):
        def step(j, state):
            total = e.op("ADD", state[0], x([r[0], j]))
            write([r[0], j], total)
            return [total]

        e.loop(x.shape[1], [e.constant(0, x.dtype)], step)

    x = np.arange(12, dtype=np.float64).reshape(3, 4)
    got = computed((3, 4), dtypes.float64, Push(lambda a, x: (x.shape[0],), rows), x, machine=machine)
    np.testing.assert_array_equal(got, x.cumsum(1))


def test_what_is_computed_first_inside_a_loop_is_there_behind_it():
    def code(e, a, i, x):
        total = e.reduce("ADD", [0 if not x.shape else 3], lambda j: e.op("ADD", x(i), x([i[0]])), 0)
        return e.op("ADD", total, x(i))

    x = np.array([1.0, 2.0], np.float32)
    assert computed((2,), dtypes.float32, code, x).tolist() == [7.0, 14.0]


def test_wrong_states_are_refused():
    with pytest.raises(TensorError, match="gives 1 values"):
        computed((1,), INDEX, lambda e, a, i: e.loop(2, [0, 1], lambda j, state: state[:1])[0])
    with pytest.raises(TensorError, match="changes from"):
        computed((1,), INDEX, lambda e, a, i: e.loop(2, [0], lambda j, s: [e.constant(1.5, dtypes.float32)])[0])
    with pytest.raises(TensorError, match="the code of a row gives"):
        computed((1,), INDEX, lambda e, a, i: e.constant(1.5, dtypes.float32))
    with pytest.raises(TypeError, match=r"e\.select"):
        computed((1,), INDEX, lambda e, a, i: 1 if e.compare("LT", i[0], 3) else 2)
    one = lambda e: Pair(e, e.constant(1.0, dtypes.float32), e.constant(2.0, dtypes.float32))
    with pytest.raises(TensorError, match="complex numbers are not in order: LT"):
        computed((1,), dtypes.bool_, lambda e, a, i: e.compare("LT", one(e), one(e)))


# --- reductions -------------------------------------------------------------------------------------


def along(instruction, axes, first, convert=None):
    def code(e, a, i, x):
        def body(j):
            inner, outer = iter(j), iter(i)
            index = [next(inner) if k in axes else next(outer) for k in range(len(x.shape))]
            return x(index) if convert is None else e.convert(x(index), convert)

        return e.reduce(instruction, [x.shape[k] for k in axes], body, first)

    return code


@pytest.mark.parametrize("axes", [(0,), (1,), (2,), (0, 1), (1, 2), (0, 2), (0, 1, 2)])
@pytest.mark.parametrize("dtype", ["float32", "float16", "int32", "uint8"])
def test_sums_along_all_axes(axes, dtype):
    x = np.random.default_rng(0).integers(0, 9, (3, 4, 5)).astype(dtype)
    wanted = x.sum(axes, dtype=dtype)
    for instruction, first, want in (
        ("ADD", 0, wanted), ("MAX", lambda d: d.limits()[0], x.max(axes)),
        ("MIN", lambda d: d.limits()[1], x.min(axes)),
    ):  # fmt: skip
        got = computed(wanted.shape, dtypes.of(dtype), along(instruction, axes, first), x)
        np.testing.assert_array_equal(got, want)


def test_trailing_axes_become_array_instructions():
    x = buffer(np.zeros((3, 4, 5), np.float32), dtypes.float32)
    text = str(lowered(kernel((3,), dtypes.float32, along("ADD", (1, 2), 0), x.data), CORES).program)
    assert "ReduceAdd.F32" in text
    assert "count=20" in text
    assert "ReduceAdd" not in str(lowered(kernel((4, 5), dtypes.float32, along("ADD", (0,), 0), x.data), CORES).program)


@pytest.mark.parametrize("machine", [REFERENCE, CPU])
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_extremes_keep_nan(machine, axis, dtype):
    x = np.array([[1, np.nan, 3], [np.inf, 2, np.nan], [-1, 0, -np.inf]], dtype)
    wanted = x.max(axis)
    got = computed((3,), dtypes.of(dtype), along("MAX", (axis,), -math.inf), x, machine=machine)
    np.testing.assert_array_equal(got, wanted)


@pytest.mark.parametrize("length", [1, 127, 128, 257, 1000, 20_000, 300_001])
def test_long_sums_are_accurate(length):
    x = (np.random.default_rng(3).random(length) + 0.5).astype(np.float32)
    exact = math.fsum(x.astype(np.float64))
    flat = computed((), dtypes.float32, along("ADD", (0,), 0), x, machine=CPU)
    column = computed((1,), dtypes.float32, along("ADD", (0,), 0), x[:, None].copy(), machine=CPU)
    squares = computed(
        (), dtypes.float32, lambda e, a, i, x: e.reduce("ADD", [length], lambda j: e.op("MUL", x(j), x(j)), 0), x,
        machine=CPU,
    )  # fmt: skip
    for got in (flat, column[0]):
        assert abs(float(got) - exact) <= 8 * np.finfo(np.float32).eps * exact
    assert float(squares) == pytest.approx(math.fsum(x.astype(np.float64) ** 2), rel=1e-6)


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
@pytest.mark.parametrize("axis", [0, 1])
def test_halves_are_rounded_once(dtype, axis):
    x = np.full((300, 300), 0.1, dtype)
    got = computed((300,), dtypes.of(dtype), along("ADD", (axis,), 0), x, machine=CPU)
    wanted = (x.astype(np.float64).sum(axis)).astype(dtype)
    np.testing.assert_array_equal(got.astype(np.float32), wanted.astype(np.float32))


# --- conversions ------------------------------------------------------------------------------------


def test_conversions_as_the_cast_row_says():
    values = np.array([0, 1, -1, 0.5, -2.7, 200, 1e10, -1e10, 1e30, np.inf, -np.inf, np.nan, -0.0])
    for source in (d for d in dtypes.ALL if not d.is_complex):
        x = cast.reference(Cast(source), values)
        for target in (d for d in dtypes.ALL if not d.is_complex):
            got = computed(x.shape, target, lambda e, a, i, x, t=target: e.convert(x(i), t), x)
            with np.errstate(all="ignore"):
                wanted = cast.reference(Cast(target), x)
            if target.is_float:  # NumPy takes a NaN in bfloat16 for none
                got, wanted = got.astype(np.float64), wanted.astype(np.float64)
            np.testing.assert_array_equal(got, wanted, err_msg=f"{source} to {target}")


# --- registers --------------------------------------------------------------------------------------


def test_registers_are_used_again():
    def code(e, a, i, x):
        value = x(i)
        for k in range(1000):
            value = e.op("ADD", value, e.constant(float(k), value.dtype))
        return value

    x = np.zeros(2, np.float32)
    program = lowered(kernel((2,), dtypes.float32, code, x), CORES).program
    used = {r.index for i in program.instructions for r in i.writes()}
    assert len(used) < 10
    assert computed((2,), dtypes.float32, code, x).tolist() == [499500.0] * 2


def test_what_is_needed_in_every_round_lives_through_the_loop():
    a, b, c, d, counter = (Virtual(k, Type.U32) for k in range(5))
    items = [
        Item("MOV_IMM", (a,)), Item("LOOP", (counter, 3)), Item("MOV", (b, a)), Item("MOV", (c, b)),
        Item("LDG", (Type.U32, d, IndexedPlace("x", c, 4))), Item("ENDLOOP", ()),
    ]  # fmt: skip
    found = assign(items)
    assert found[a] not in {found[b], found[c], found[d]}  # a is read again in the next round
    assert found[d] != found[c]  # never both ends of one instruction


def test_too_many_values_at_once():
    def code(e, a, i, x):
        values = [e.op("ADD", x(i), float(k)) for k in range(300)]
        total = values[0]
        for value in reversed(values):
            total = e.op("MUL", total, value)
        return total

    with pytest.raises(TensorError, match="registers at once") as found:
        computed((2,), dtypes.float32, code, np.zeros(2, np.float32))
    assert isinstance(found.value.__cause__, IsaError)
