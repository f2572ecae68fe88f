"""Values changed where they lie: copies are left out where nobody sees it, in straight code, loops and branches."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_plan import CPU, check, floats, function_of

import eshkol as ek
from effort import examples
from eshkol.atlas.machines import CORES
from eshkol.schedule.pipeline import compiled
from eshkol.schedule.plan.in_place import in_place
from eshkol.schedule.plan.steps import Launch, Loop, While, planned, walk
from eshkol.schedule.run.native import NativePlan
from eshkol.tensors.devices import open_backend


def copies(code, *arrays):
    """How many copies the plan of a function makes; it agrees with the interpreter and leaves its arguments alone."""
    function, given_arrays = function_of(code, *arrays)
    before = [a.copy() for a in given_arrays]
    plan = check(function, given_arrays)
    for array, old in zip(given_arrays, before, strict=True):
        np.testing.assert_array_equal(array, old)
    return [s.kernel.copies for s in walk(plan.steps) if isinstance(s, Launch)].count(True)


PLACES = np.array([3, 0, 3, 5, -1])


def test_fresh_zeros_are_changed_where_they_are_wanted():
    def code(i, u):
        return ek.index_add(ek.broadcast_to(u.sum() * 0, (40, 128)), 0, i, u)

    assert copies(code, PLACES, floats(5, 128)) == 0


def test_a_parameter_is_copied_once_however_often_it_is_changed():
    def code(x, i, u):
        for k in range(4):
            x = ek.scatter(x, i + k * 0, u * k, mode="add" if k % 2 else "set")
        return x

    assert copies(code, floats(6, 32), PLACES, floats(5, 32)) == 1


def test_what_is_still_needed_is_copied():
    def code(x, i, u):
        y = ek.tanh(x)
        return ek.index_add(y, 0, i, u), y * 2

    def onto_itself(x, i):
        y = ek.tanh(x)
        return ek.scatter(y, i, y)

    assert copies(code, floats(6, 32), PLACES, floats(5, 32)) <= 1
    assert copies(onto_itself, floats(5, 32), PLACES % 5) == 1


def test_a_loop_changes_what_it_carries_in_its_place():
    def code(x, i):
        def body(c, e):
            return ek.scatter(c, e.reshape(1), ek.take(c, e.reshape(1)) * 2 + 1), ek.take(c, e)

        return ek.scan(body, x, i)

    function, arrays = function_of(code, floats(6, 4), PLACES)
    plan = check(function, arrays)
    (loop,) = [s for s in plan.steps if isinstance(s, Loop)]
    assert loop.carries == ()
    assert not any(isinstance(s, Launch) and s.kernel.copies for s in walk(loop.body))


def test_a_loop_that_reads_the_old_state_later_has_two():
    def code(x, i):
        def body(c, e):
            new = ek.scatter(c, e.reshape(1), ek.zeros((1, 4)))
            return new, new - c

        return ek.scan(body, x, i)

    function, arrays = function_of(code, floats(6, 4), PLACES)
    plan = check(function, arrays)
    (loop,) = [s for s in plan.steps if isinstance(s, Loop)]
    assert len(loop.carries) == 1


def test_a_while_loop_that_fills_a_table():
    def code(x):
        def body(state):
            k, table = state
            return k + 1, ek.scatter(table, k.reshape(1), ek.take(table, k.reshape(1) - 1) + 1)

        return ek.while_loop(lambda s: s[0] < 6, body, (ek.tensor(1), x))[1]

    function, arrays = function_of(code, floats(6, 4))
    plan = check(function, arrays)
    (loop,) = [s for s in plan.steps if isinstance(s, While)]
    assert not any(isinstance(s, Launch) and s.kernel.copies for s in walk(loop.body))


def test_donated_memory_is_changed_without_a_copy():
    function, arrays = function_of(lambda x, i, u: ek.scatter(x, i, u), floats(6, 32), PLACES, floats(5, 32))
    wanted = arrays[0].copy()
    for place, row in zip(PLACES, arrays[2], strict=True):
        wanted[place] = row
    plan = compiled(function.results, function.params, CORES)
    (result,) = NativePlan(plan, open_backend(CPU), (0,)).run(arrays)
    np.testing.assert_array_equal(result, wanted)
    assert result is arrays[0]


def test_plans_without_copies_stay_as_they_are():
    function, _ = function_of(lambda x: ek.exp(x) @ x, floats(4, 4))
    plan = planned(function.results, function.params, CORES)
    assert in_place(plan) is plan


STEPS = ("add", "set", "max", "take", "scale", "scan", "cond", "reuse")


@st.composite
def programs(draw):
    size = draw(st.integers(2, 8))
    return [(draw(st.sampled_from(STEPS)), *(draw(st.integers(0, 5)) for _ in range(2))) for _ in range(size)]


def _apply(name, x, y, i):
    """One step on two 5×4 tensors, which gives another."""
    if name == "scan":
        return ek.scan(lambda c, e: (ek.index_add(c, 0, e.reshape(1), c[:1] * 0.5), c[0]), x, i)[0]
    if name == "cond":
        return ek.cond(x[0, 0] > y[1, 1] + 9, lambda: ek.scatter(x, i, y), lambda: ek.index_add(x * 2, 0, i, y))
    simple = {
        "add": lambda: ek.index_add(x, 0, i, y), "set": lambda: ek.scatter(x, i, y), "scale": lambda: x * 0.5 + y,
        "max": lambda: ek.scatter(x.T, i % 4, y.T[0], axis=0, mode="max").T, "take": lambda: ek.take(x, i) - y,
        "reuse": lambda: ek.scatter(x, i, x) + x.reshape(4, 5).reshape(5, 4),
    }  # fmt: skip
    return simple[name]()


@examples(20, 10)
@given(programs(), st.integers(0, 1000))
def test_random_programs(program, seed):
    places = np.random.default_rng(seed).integers(-5, 5, 5)

    def code(x, y, i):
        values = [x, y]
        for name, a, b in program:
            values.append(_apply(name, values[-1 - a % len(values)], values[b % len(values)], i))
        return tuple(values[2:][-2:])

    copies(code, floats(5, 4), floats(5, 4), places)


ELSEWHERE = {
    "flip": (lambda x: ek.flip(x, 0) + x, lambda x: np.flip(x, 0) + x),
    "flip twice used": (lambda x: ek.flip(x, 1) * x - ek.flip(x, 0), lambda x: np.flip(x, 1) * x - np.flip(x, 0)),
    "transposed": (lambda x: x.T + x * 2, lambda x: x.T + x * 2),
    "rolled": (lambda x: ek.roll(x, 1, 0) - x, lambda x: np.roll(x, 1, 0) - x),
    "rows by turns": (lambda x: ek.concatenate((x[1:], x[:1])) + x, lambda x: np.concatenate((x[1:], x[:1])) + x),
    "one element for all": (lambda x: x + x[0, 0], lambda x: x + x[0, 0]),
    "one row for all": (lambda x: x * x[3], lambda x: x * x[3]),
    "minus the sum of all": (lambda x: x - x.sum(), lambda x: x - x.sum()),
    "minus the sum of a row": (lambda x: x - x.sum(1, keepdims=True), lambda x: x - x.sum(1, keepdims=True)),
    "minus the sum of a column": (lambda x: x - x.sum(0), lambda x: x - x.sum(0)),
}


@pytest.mark.parametrize("name", ELSEWHERE)
def test_what_reads_elements_elsewhere_does_not_write_over_them(name):
    """On the CPU, where elements are written one after another: in the memory of what they read they would be lost."""
    function, numpys = ELSEWHERE[name]
    a = np.random.default_rng(1).normal(size=(64, 64))
    with ek.use_backend("cpu"):
        given = ek.jit(function, donate=(0,))(ek.tensor(a)).numpy()
        between = ek.jit(lambda x: function(x * 1.5))(ek.tensor(a)).numpy()
        changed = ek.tensor(a) * 1.0
        changed[:] = function(changed)
    np.testing.assert_allclose(given, numpys(a), rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(between, numpys(a * 1.5), rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(changed.numpy(), numpys(a), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("backend", ["cpu", "reference"])
def test_what_is_added_up_in_a_loop_is_seen_on_machines_with_memory_of_their_own(backend):
    """Seed 20003134 of the random programs: the host had looked at the zeros, and took them for the sum."""
    places = np.array([[0, 1, 2], [1, 2, 0]])

    def loss(x):
        taken = x[ek.tensor(places)]
        row = taken[0]

        def turn(carry, x):
            following = ek.tanh(carry + ek.sin(x) * row)
            return following, following * x

        carry, ys = ek.scan(turn, ek.zeros_like(row), taken)
        return (ys + carry).sum()

    x = np.array([-0.19122539, 0.57852332, -1.27734322])
    with ek.use_backend(backend):
        slope = ek.grad(loss)(ek.tensor(x)).numpy()
        moved = [(loss(ek.tensor(x + h)) - loss(ek.tensor(x - h))).item() / 2e-6 for h in 1e-6 * np.eye(3)]
    np.testing.assert_allclose(slope, moved, rtol=1e-6, atol=1e-8)
