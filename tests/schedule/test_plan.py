"""Plans: memory shared only by what is not needed together; natively and step by step the same, with loops inside."""

from __future__ import annotations

import threading

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import eshkol as ek
from effort import examples
from eshkol.atlas.machines import CORES
from eshkol.errors import IndexOutOfRange, TensorError
from eshkol.graph import interpret
from eshkol.graph.function import trace
from eshkol.ops.row import Aval
from eshkol.schedule.pipeline import compiled
from eshkol.schedule.plan.arena import arranged, inherited, lives
from eshkol.schedule.plan.report import reported
from eshkol.schedule.plan.show import shown_plan
from eshkol.schedule.plan.steps import Launch, Loop, OnHost, Plan, walk
from eshkol.schedule.run import stepwise
from eshkol.schedule.run.native import NativePlan
from eshkol.tensors.devices import open_backend
from eshkol.tensors.value import Tensor

CPU = "cpu"


def function_of(code, *arrays):
    """A function of the graph, and the arrays of its parameters, captures too."""
    avals = [Aval(np.shape(a), ek.asarray(a).dtype) for a in arrays]

    def run(*params):
        found = code(*map(Tensor, params))
        return [t._node for t in (found if isinstance(found, tuple) else (found,))]

    function, captured = trace(run, avals, "test")
    return function, [np.array(a, order="C") for a in (*arrays, *interpret.evaluate(captured))]


def check(function, arrays) -> Plan:
    """The plan agrees with the interpreter, natively and step by step; overlapping places are never both needed."""
    wanted = interpret.evaluate(function.results, dict(zip(function.params, arrays, strict=True)))
    plan = compiled(function.results, function.params, CORES)
    machine = open_backend(CPU)
    native = NativePlan(plan, machine)
    for results in (native.run(arrays), native.run(arrays), stepwise.run(plan, arrays, machine)):
        for got, want in zip(results, wanted, strict=True):
            assert got.shape == want.shape
            np.testing.assert_allclose(got, want, rtol=2e-5, atol=2e-5)
    check_memory(plan)
    return plan


def check_memory(plan: Plan) -> None:
    arena, spans = arranged(plan), lives(plan)
    launches = [s for s in walk(plan.steps) if isinstance(s, Launch)]
    heirs = {(w, r) for s in launches for w in s.writes for r in s.same}  # who may write where another is read
    places = sorted(arena.offsets, key=arena.offsets.__getitem__)
    for k, one in enumerate(places):
        assert arena.offsets[one] + plan.places[one].size <= arena.size
        for other in places[k + 1 :]:
            if arena.offsets[other] >= arena.offsets[one] + plan.places[one].size:
                break
            a, b = spans[one], spans[other]
            apart = a.last < b.first or b.last < a.first
            handed = (a.last == b.first and (other, one) in heirs) or (b.last == a.first and (one, other) in heirs)
            assert apart or handed, f"places {one} and {other} share memory while both are needed"


RNG = np.random.default_rng(7)


def floats(*shape):
    return RNG.normal(size=shape).astype(np.float32)


# --- random programs with loops and branches --------------------------------------------------------

STEPS = ("tanh", "add", "matmul", "sum", "scan", "cond", "while", "transpose", "sort", "slice")


@st.composite
def programs(draw):
    return [(draw(st.sampled_from(STEPS)), draw(st.integers(0, 5)), draw(st.integers(0, 5))) for _ in range(
        draw(st.integers(2, 9)))]  # fmt: skip


def _apply(name, x, y):
    """One step on two 4×4 tensors, which gives another."""
    if name == "scan":
        last, stack = ek.scan(lambda c, e: (ek.tanh(c * 0.5 + e), c.sum(0) - e), x[0], y)
        return stack + last
    if name == "cond":
        return ek.cond(x[0, 0] > y[1, 1], lambda: ek.sin(x) + y, lambda: x - y)
    if name == "while":
        return ek.while_loop(lambda c: ek.max(ek.abs(c)) > 1, lambda c: c * 0.5 + y * 0, x)
    simple = {
        "tanh": lambda: ek.tanh(x), "add": lambda: x * 0.5 + y, "matmul": lambda: x @ y * 0.1,
        "sort": lambda: ek.sort(x)[0], "sum": lambda: x - x.mean(0) + y.max(axis=1)[:, None], "transpose": lambda: x.T,
        "slice": lambda: ek.concatenate([x[1:], y[:1]]),
    }  # fmt: skip
    return simple[name]()


@examples(25, 10)
@given(programs(), st.booleans())
def test_random_programs(program, inside):
    def code(x, y):
        values = [x, y]
        for name, a, b in program:
            values.append(_apply(name, values[a % len(values)], values[b % len(values)]))
        return tuple(values[2:][-3:])

    if inside:  # the whole as the body of a loop: host steps, loops and branches in it

        def looped(x, y):
            return ek.scan(lambda c, e: (code(c, e)[-1] * 0.5, code(c, e)[-1]), x, ek.stack([y, y * 0.5]))

        check(*function_of(looped, floats(4, 4), floats(4, 4)))
    else:
        check(*function_of(code, floats(4, 4), floats(4, 4)))


# --- what plans are made of --------------------------------------------------------------------------


def test_a_loop_of_kernels_is_one_step_and_its_state_is_exchanged():
    def lstm(x, w):
        return ek.scan(lambda h, e: (ek.tanh(h @ w + e), h), ek.zeros((2, 8)), x)

    plan = check(*function_of(lstm, floats(50, 2, 8), floats(8, 8) * 0.3))
    (loop,) = [s for s in plan.steps if isinstance(s, Loop)]
    assert len(loop.carries) == 1
    assert len(NativePlan(plan, open_backend(CPU)).parts) == 1, "all is one call"
    assert "for 50 rounds" in shown_plan(plan)


def test_carries_that_change_places_and_ones_that_stay():
    def code(x):
        (a, b, _), stack = ek.scan(lambda c, e: ((c[1], c[0] + e, c[2]), (c[0], c[0])), (x[0], x[1], x[2]), x)
        return a, b, *stack

    check(*function_of(code, floats(5, 3)))


def test_what_the_host_computes_stands_between_native_calls():
    plan = check(*function_of(lambda x: ek.real(ek.acos(ek.cast(x, "complex128"))) + ek.cumsum(x, 0), floats(3, 3)))
    assert sum(isinstance(s, OnHost) for s in plan.steps) == 1
    assert len(NativePlan(plan, open_backend(CPU)).parts) == 3


@pytest.mark.parametrize("reverse", [False, True])
def test_loops_in_which_the_host_computes(reverse):
    """Every round is done, in its order, and what is carried is exchanged after each."""

    def hosted(y):
        return ek.real(ek.acos(ek.cast(y, "complex64")))

    def scanned(x):
        return ek.scan(lambda c, e: (hosted(c * 0.5 + e), c + e), x[0], x, reverse=reverse)

    def whiled(x):
        def step(s):
            return s[0] + 1, hosted(s[1] * 0.1) + s[2], s[1]

        return ek.while_loop(lambda s: s[0] < (3 if reverse else 2), step, (ek.zeros(()), x[0], x[1]))

    def branched(x):
        sign = -1 if reverse else 1
        return ek.cond((x * x).sum() * sign > 0, lambda y: hosted(y) + y, lambda y: y * 2 - hosted(-y), x[0])

    for code in (scanned, whiled, branched):
        plan = check(*function_of(code, floats(4, 3, 3) * 0.5))
        assert any(isinstance(s, OnHost) for s in walk(plan.steps))


def test_results_that_are_parameters_constants_or_each_other():
    def code(x):
        y = ek.exp(x)
        return x, y, y.reshape(6), ek.full((), 3.0), x.reshape(3, 2), y

    plan = check(*function_of(code, floats(2, 3)))
    assert len([s for s in plan.steps if isinstance(s, Launch)]) == 1


def test_empty_tensors():
    check(
        *function_of(lambda x: (ek.tanh(x), x.sum(0), ek.scan(lambda c, e: (c + e, c), x.sum(0), x)[0]), floats(0, 3))
    )


def test_elementwise_results_take_the_place_of_their_inputs():
    def code(x):
        for _ in range(6):
            x = ek.tanh(x @ x)
        return x

    plan = check(*function_of(code, floats(64, 64) * 0.1))
    assert arranged(plan).size <= 3 * 64 * 64 * 4


# --- threads and errors ------------------------------------------------------------------------------


def test_a_plan_runs_in_several_threads_at_once():
    f = ek.jit(lambda x, w: ek.scan(lambda c, e: (ek.tanh(c @ w + e), c), x[0], x)[0].sum())
    x, w = floats(40, 16, 16), floats(16, 16)
    wanted = float(f(x, w))
    found = []

    def work():
        found.extend(float(f(x, w)) for _ in range(20))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert found == [wanted] * 80


@pytest.mark.parametrize("native", [True, False])
def test_a_failure_in_a_loop_names_the_line_and_the_next_run_is_whole(native):
    def code(table, places):
        return ek.scan(lambda c, e: (c + ek.take(table, e).sum(), c), ek.zeros(()), places)[0]

    f = ek.jit(code) if native else code
    table = ek.arange(4.0)
    with pytest.raises(IndexOutOfRange) as caught:
        float(f(table, ek.tensor([[0], [1], [9]])))
    assert caught.value.span.file == __file__
    assert "ek.take(table, e)" in caught.value.span.text
    assert float(f(table, ek.tensor([[0], [1], [3]]))) == 4.0


# --- donation ----------------------------------------------------------------------------------------


def address(tensor) -> int:
    return tensor._array().__array_interface__["data"][0]


def test_donated_memory_is_taken_where_that_is_safe():
    step = ek.jit(lambda w, m, g: (w - 0.1 * (m * 0.9 + g), m * 0.9 + g), donate=(0, 1))
    w, m, g = (ek.tensor(floats(3000)) for _ in range(3))
    old = [t.numpy().copy() for t in (w, m, g)]
    before = address(w), address(m)
    w2, m2 = step(w, m, g)
    assert {address(w2), address(m2)} == set(before)
    np.testing.assert_allclose(m2.numpy(), old[1] * 0.9 + old[2], rtol=1e-6)
    np.testing.assert_allclose(w2.numpy(), old[0] - 0.1 * (old[1] * 0.9 + old[2]), rtol=1e-5, atol=1e-6)
    with pytest.raises(TensorError, match="donated"):
        (w + 1).realize()


def test_what_others_see_is_not_overwritten():
    step = ek.jit(lambda w: w * 2, donate=0)
    w = ek.tensor(floats(3000))
    seen, twin = w.numpy(), ek.tensor(w.numpy())
    assert np.array_equal(step(w).numpy(), 2 * seen)
    assert np.array_equal(seen, twin.numpy())
    shared = floats(3000)
    outside = ek.from_numpy(shared)
    before = shared.copy()
    step(outside)
    assert np.array_equal(shared, before)


def test_a_parameter_that_is_read_after_the_result_is_written_is_not_taken():
    def code(w):
        return ek.tanh(w), ek.tanh(w) @ w

    function, arrays = function_of(code, floats(30, 30))
    plan = check(function, arrays)
    assert not inherited(plan, plan.params)
    got = ek.jit(code, donate=0)(ek.tensor(arrays[0]))
    np.testing.assert_allclose(got[1].numpy(), np.tanh(arrays[0]) @ arrays[0], rtol=1e-4, atol=1e-4)


def test_donating_what_is_not_there():
    with pytest.raises(TensorError, match="no argument 3 to donate among 1"):
        ek.jit(lambda x: x, donate=3)(ek.ones(2))


# --- memory ------------------------------------------------------------------------------------------


def _loss(checkpointed):
    def block(x, w):
        for _ in range(3):
            x = ek.tanh(x @ w)
        return x

    def loss(ws, x):
        for w in ws:
            x = ek.checkpoint(block)(x, w) if checkpointed else block(x, w)
        return (x * x).sum()

    return loss


def test_checkpoints_save_memory_and_change_nothing():
    ws, x = [ek.tensor(floats(32, 32) * 0.2) for _ in range(8)], ek.tensor(floats(512, 32))
    found = [ek.jit(ek.value_and_grad(_loss(on)))(ws, x) for on in (False, True)]
    for one, other in zip(ek.tree_leaves(found[0]), ek.tree_leaves(found[1]), strict=True):
        np.testing.assert_allclose(one.numpy(), other.numpy(), rtol=1e-4, atol=1e-5)
    plain, again = (ek.memory_report(ek.value_and_grad(_loss(on)), ws, x) for on in (False, True))
    size = 512 * 32 * 4
    assert plain.arena >= 24 * size, "all activations are kept"
    assert again.arena <= 15 * size, "those between blocks are, and one block's"


def test_reports_and_counters():
    x = ek.tensor(floats(256, 256))
    report = ek.memory_report(lambda x: ek.tanh(x @ x) @ x, x)
    assert report.inputs == report.results == 256 * 256 * 4
    assert sum(report.by_op.values()) == sum(s.written for s in report.steps) >= 2 * 256 * 256 * 4
    assert "in between" in str(report)
    assert "test_plan.py:" in str(report)
    del report
    before = ek.memory_usage()["used"]
    ek.reset_peak_memory()
    y = (x + 1).realize()
    assert ek.memory_usage()["used"] >= before + 256 * 256 * 4
    assert ek.peak_memory_allocated() >= before + 256 * 256 * 4
    del y
    assert ek.memory_usage()["used"] == before


def test_memory_stays_flat_over_many_steps():
    step = ek.jit(lambda w, x: w - 0.01 * ek.grad(lambda w: ek.tanh(x @ w).sum())(w), donate=0)
    w, x = ek.tensor(floats(64, 64)), ek.tensor(floats(64, 64))
    seen = []
    for k in range(300):
        w = step(w, x)
        if k >= 100:
            seen.append(ek.memory_usage()["used"])
    assert max(seen) == min(seen)


def test_reported_steps_are_those_of_loops_too():
    function, _ = function_of(lambda x: ek.scan(lambda c, e: (ek.tanh(c @ c + e), c), x[0], x)[0], floats(5, 4, 4))
    plan = compiled(function.results, function.params, CORES)
    assert len(reported(plan).steps) == sum(isinstance(s, Launch) for s in walk(plan.steps))


# --- in place ----------------------------------------------------------------------------------------


def test_changes_in_place_take_the_memory_of_what_they_change():
    w, g = ek.tensor(floats(40000)), ek.tensor(floats(40000))
    wanted = w.numpy().copy()
    before = address(w)
    for _ in range(3):
        w -= 0.1 * g
        w.mul_(0.5)
        wanted = (wanted - np.float32(0.1) * g.numpy()) * np.float32(0.5)
        assert address(w) == before
    np.testing.assert_allclose(w.numpy(), wanted, rtol=1e-5, atol=1e-6)


def test_updates_of_leaves_that_require_grad():
    w, x = ek.tensor(floats(40000), requires_grad=True), ek.tensor(floats(40000))
    wanted = w.detach().numpy().copy()
    places = set()
    for _ in range(6):
        (w * w * x).sum().backward()
        with ek.no_grad():
            w -= 0.1 * w.grad
        w.grad = None
        w.realize()
        places.add(address(w))
        wanted = wanted - np.float32(0.1) * 2 * wanted * x.numpy()
    np.testing.assert_allclose(w.detach().numpy(), wanted, rtol=1e-4, atol=1e-5)
    assert len(places) == 1
    np.testing.assert_allclose(w.requires_grad_(False).numpy(), wanted, rtol=1e-4, atol=1e-5)


def test_what_was_computed_from_the_old_value_or_shows_it_keeps_it():
    x = ek.tensor(floats(40000))
    old = x.numpy().copy()
    seen, twin, later = x.numpy(), ek.tensor(x), x * 2
    x += 1
    x.realize()
    assert np.array_equal(seen, old)
    assert np.array_equal(twin.numpy(), old)
    assert np.array_equal(later.numpy(), old * 2)
    w = ek.tensor(floats(40000), requires_grad=True)
    y = w * 3
    y *= w
    y.realize()
    y.sum().backward()
    np.testing.assert_allclose(w.grad.numpy(), 6 * w.detach().numpy(), rtol=1e-5)
