"""Small launches put together: the same bits as one after another, whatever depends on what, and nothing shared."""

from __future__ import annotations

import threading
from itertools import combinations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import eshkol as ek
from effort import examples
from eshkol.atlas.machines import CORES
from eshkol.backends.cpu import launch, sequence
from eshkol.backends.cpu.together import Work, pieces
from eshkol.errors import IndexOutOfRange
from eshkol.graph import interpret
from eshkol.graph.function import trace
from eshkol.ops.row import Aval
from eshkol.schedule import pipeline
from eshkol.schedule.pipeline import compiled
from eshkol.schedule.plan.arena import arranged, inherited, lives
from eshkol.schedule.plan.report import reported
from eshkol.schedule.plan.show import shown_plan
from eshkol.schedule.plan.steps import Launch, Loop, Plan, Together, walk
from eshkol.schedule.run import stepwise
from eshkol.schedule.run.memory import address_of, addresses_of
from eshkol.schedule.run.native import NativePlan
from eshkol.tensors.devices import open_backend
from eshkol.tensors.value import Tensor

RNG = np.random.default_rng(11)
SIZES = (1, 7, 300, 300, 2000)


@pytest.fixture(autouse=True)
def small_tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    """A few instructions are a task, so that small tensors are split and loops have many pieces."""
    monkeypatch.setattr(launch, "STEPS_PER_TASK", 512)
    monkeypatch.setattr(sequence, "STEPS_PER_TASK", 512)


def floats(*shape):
    return RNG.uniform(0.5, 2.0, shape).astype(np.float32)


def function_of(code, arrays):
    avals = [Aval(a.shape, ek.asarray(a).dtype) for a in arrays]
    function, captured = trace(lambda *p: [t._node for t in code(*map(Tensor, p))], avals, "test")
    assert not captured
    return function


def groups(plan: Plan) -> list[Together]:
    return [s for s in walk(plan.steps) if isinstance(s, Together)]


def check(code, arrays, donated=()) -> Plan:
    """The plan against the interpreter, and bit by bit against one in which launches run one after another."""
    function = function_of(code, arrays)
    plan = compiled(function.results, function.params, CORES)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pipeline, "together", lambda plan: plan)
        apart = compiled(function.results, function.params, CORES)
    assert not groups(apart)
    machine = open_backend("cpu")
    wanted = stepwise.run(apart, arrays, machine)
    defined = interpret.evaluate(function.results, dict(zip(function.params, arrays, strict=True)))
    for kind in (NativePlan(plan, machine), NativePlan(plan, machine, donated), NativePlan(apart, machine)):
        for got, want, one in zip(kind.run([a.copy() for a in arrays]), wanted, defined, strict=True):
            np.testing.assert_array_equal(got, want)
            np.testing.assert_allclose(got, one, rtol=1e-4, atol=1e-4)
    for got, want in zip(stepwise.run(plan, arrays, machine), wanted, strict=True):
        np.testing.assert_array_equal(got, want)
    check_memory(plan, donated)
    return plan


def check_memory(plan: Plan, donated=()) -> None:
    """No launch of a step writes what another one of it touches, neither as places nor as memory."""
    where = {p: (0, offset) for p, offset in arranged(plan).offsets.items()}
    heirs = inherited(plan, [plan.params[k] for k in donated])
    own = {p: (1 + heirs.get(p, p), 0) for p in {*plan.params, *plan.given}}
    known = {**where, **own}

    def overlap(one: int, other: int) -> bool:
        if one not in known or other not in known:
            return one == other
        (base, start), (again, second) = known[one], known[other]
        sizes = plan.places[one].size, plan.places[other].size
        return base == again and start < second + sizes[1] and second < start + sizes[0]

    for step in groups(plan):
        for one, other in combinations(step.launches, 2):
            for a, b in ((one, other), (other, one)):
                touched = (*b.reads, *b.writes)
                assert not any(overlap(w, p) for w in a.writes for p in touched)
    spans = lives(plan)
    for heir, param in heirs.items():
        assert param not in spans or spans[param].last <= spans[heir].first


# --- random sets of updates ---------------------------------------------------------------------------


@st.composite
def updates(draw):
    """Steps over tensors of few sizes: most take what was given, some what an earlier one made."""
    given = [draw(st.sampled_from(SIZES)) for _ in range(draw(st.integers(2, 8)))]
    sizes = list(given)
    made = []
    for _ in range(draw(st.integers(2, 14))):
        kind = draw(st.sampled_from(["update", "update", "update", "sum", "scaled", "moved", "product"]))
        first = draw(st.integers(0, len(sizes) - 1))
        others = [k for k, size in enumerate(sizes) if size == sizes[first]]
        made.append((kind, first, draw(st.sampled_from(others)), draw(st.integers(0, len(sizes) - 1))))
        sizes.append(1 if kind == "sum" else sizes[first])
    return given, made, draw(st.sets(st.integers(0, len(given) - 1)))


def _made(kind, x, y, z):
    match kind:
        case "update":
            return x * 0.9 + y * 0.1
        case "sum":
            return (x * y).sum().reshape(1)
        case "scaled":
            return x / (1 + abs(z[:1]))
        case "moved":
            return x[::-1] + y
    return x if x.shape[0] > 500 else ek.outer(x, y) @ y / x.shape[0]


@settings(examples(60, 15), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(updates())
def test_random_updates(drawn):
    sizes, made, donated = drawn

    def code(*params):
        values = list(params)
        for kind, a, b, c in made:
            values.append(_made(kind, values[a], values[b], values[c]))
        return tuple(values[len(params) :])

    check(code, [floats(n) for n in sizes], sorted(donated))


# --- what is put together -----------------------------------------------------------------------------


def adam(state, gradients):
    made = []
    for (w, m, v), g in zip(state, gradients, strict=True):
        m, v = 0.9 * m + 0.1 * g, 0.99 * v + 0.01 * g * g
        made.append((w - 0.1 * m / (ek.sqrt(v) + 1e-8), m, v))
    return made


def test_updates_of_many_tensors_are_one_step_and_stay_in_their_memory():
    sizes = [100 + 37 * k for k in range(20)]

    def code(*params):
        state = [params[3 * k : 3 * k + 3] for k in range(20)]
        return tuple(x for one in adam(state, params[60:]) for x in one)

    arrays = [floats(n) for n in sizes for _ in range(3)] + [floats(n) for n in sizes]
    plan = check(code, arrays, range(60))
    (step,) = plan.steps
    assert isinstance(step, Together)
    assert len(step.launches) == 20
    assert len(inherited(plan, plan.params[:60])) == 60, "every result takes the memory of what it replaces"
    assert len(reported(plan).steps) == 20
    assert shown_plan(plan).count("together:") == 1
    assert [s.name for s in reported(plan).steps] == [one.kernel.program.name for one in step.launches]


def test_two_stages_of_each_become_two_steps():
    """Sums over few long rows are computed in parts, which another kernel finishes."""

    def code(*params):
        return tuple((x * x).sum(0) for x in params)

    plan = check(code, [floats(600, 60 + k) for k in range(6)])
    assert [type(s) for s in plan.steps] == [Together, Together]


def test_what_is_needed_later_bounds_what_is_put_together():
    plan = check(lambda *p: (sum((ek.tanh(x) @ x.T).sum() for x in p),), [floats(120, 120) for _ in range(16)])
    written = [sum(plan.places[p].size for one in s.launches for p in one.writes) for s in groups(plan)]
    assert max(written, default=0) <= (1 << 19) + 16 * 8


def test_large_launches_stay_by_themselves():
    plan = check(lambda x, y: (x * 2, y * 3), [floats(300_000), floats(300_000)])
    assert not groups(plan)


def test_in_loops_and_branches():
    def code(x, y, truth):
        def body(carry, e):
            a, b = carry
            return (ek.tanh(a) * e[0], b * 0.5 + e[1]), (a.sum(), b.max())

        (a, b), (c, d) = ek.scan(body, (x, y[0]), ek.stack([y[0, :2], y[1, :2], y[2, :2]]))
        e, f = ek.cond(truth[0] > 0, lambda: (a * 2, b + 1), lambda: (a[::-1] * 1, b - 1))
        return a, b, c, d, e, f

    for truth in (-1, 1):
        arrays = [floats(300), floats(3, 200), truth * floats(1)]
        plan = check(code, arrays)
        (loop,) = [s for s in plan.steps if isinstance(s, Loop)]
        assert any(isinstance(s, Together) for s in loop.body)


def test_what_two_launches_read_is_taken_by_neither():
    """Both need all of it, and run at the same time."""

    def code(x):
        y = (x @ x) * 1.0
        return ek.concatenate([ek.tanh(y[:40]), y[40:]]) @ x, (y * 2) @ x

    check(code, [floats(60, 60) * 0.1])


def test_the_dump_names_the_pass(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("ESHKOL_DUMP", "together")
    function = function_of(lambda x, y: (x * 2, y + 1), [floats(50), floats(60)])
    compiled(function.results, function.params, CORES)
    told = capfd.readouterr().err
    assert told == "--- together\n1 × add, 1 × mul\n"


# --- running them -------------------------------------------------------------------------------------


def test_a_failure_names_its_line_and_the_next_run_is_whole():
    def code(tables, places):
        first = [t * 2 for t in tables]
        return first, ek.take(tables[1], places), [t + 1 for t in tables]

    f = ek.jit(code)
    with ek.use_backend("cpu"):
        tables = [ek.tensor(floats(1000)) for _ in range(3)]
        assert groups(f.plan(tables, ek.tensor([3])))
        with pytest.raises(IndexOutOfRange) as caught:
            f(tables, ek.tensor([1000]))
        assert "ek.take(tables[1], places)" in caught.value.span.text
        np.testing.assert_array_equal(f(tables, ek.tensor([999]))[1].numpy(), tables[1].numpy()[999:])


def test_in_several_threads_at_once():
    f = ek.jit(lambda *p: [x * 2 + 1 for x in p])
    with ek.use_backend("cpu"):
        given = [ek.tensor(floats(500 + k)) for k in range(12)]
        assert len(groups(f.plan(*given))) == 1
    found: list[bool] = []

    def work():
        with ek.use_backend("cpu"):
            for _ in range(30):
                got = f(*given)
                found.append(all((y.numpy() == x.numpy() * 2 + 1).all() for x, y in zip(given, got, strict=True)))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert found == [True] * 120


COUNTS = st.tuples(st.integers(1, 300), st.integers(1, 400), st.sampled_from([0, 0, 1, 16]))


@given(st.lists(COUNTS, min_size=1, max_size=12))
def test_pieces_are_all_indexes_once(drawn):
    works = [Work(k, count, each, whole) for k, (count, each, whole) in enumerate(drawn)]
    found = pieces(works)
    assert all(found)
    for work in works:
        mine = [(begin, end) for piece in found for call, begin, end in piece if call == work.call]
        assert [i for begin, end in mine for i in range(begin, end)] == list(range(work.count))
        if work.whole:
            assert all(begin % work.whole == 0 and end - begin <= work.whole for begin, end in mine)


def test_launches_that_are_little_in_all_stay_as_they_are():
    assert len(pieces([Work(k, 1, 16) for k in range(4)])) == 1


def test_a_plan_has_launches_that_reports_count():
    plan = check(lambda x, y: (x * 2, y + 1), [floats(50), floats(60)])
    assert sum(isinstance(s, Launch) for s in walk(plan.steps)) == len(reported(plan).steps) == 2


def test_addresses_are_those_that_numpy_tells():
    arrays = [floats(3), floats(4, 5)[1:, 2:], floats(0), np.zeros((), np.int64), np.frombuffer(b"abcd", np.uint8)]
    told = [a.__array_interface__["data"][0] for a in arrays]
    assert addresses_of(arrays) == [*map(address_of, arrays)] == told
