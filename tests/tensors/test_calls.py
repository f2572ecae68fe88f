"""Calls of compiled functions that are like the one before: all in C, and whatever has changed is noticed."""

from __future__ import annotations

import gc
import random
import sys
import threading
import weakref
from collections import OrderedDict, namedtuple
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest

import eshkol as ek
from effort import amount
from eshkol.errors import EshkolError
from eshkol.runtime import front
from eshkol.schedule.run.native import BRIEF, is_brief
from eshkol.schedule.run.stepwise import StepwisePlan
from eshkol.support import defaults

pytestmark = pytest.mark.unchecked("calls that are validated go another way")


@pytest.fixture(autouse=True)
def on_the_cpu():
    with ek.use_backend("cpu"):
        yield


def frames(call):
    """The result of a call, and the functions of Python's that ran in it."""
    seen = []
    sys.setprofile(lambda frame, event, what: seen.append(frame.f_code.co_qualname) if event == "call" else None)
    try:
        result = call()
    finally:
        sys.setprofile(None)
    return result, [name for name in seen if not name.endswith("<lambda>")]


def numbers(*shape, start=0):
    return ek.tensor(np.arange(start, start + np.prod(shape), dtype=np.float32).reshape(shape)).realize()


class Config:
    rate = 2.0

    def __init__(self, scale):
        self.scale = scale

    def scaled(self, x):
        return x * self.scale


factor = 2.0
weight = None
settings = SimpleNamespace(rate=3.0)


def by_global(x):
    return x * factor


def by_attribute(x):
    return x * settings.rate


def by_tensor(x):
    return x + weight


def test_a_call_like_the_one_before_runs_no_function_of_pythons(monkeypatch):
    monkeypatch.setitem(globals(), "weight", numbers(4, start=10))
    x, y, cell, cells = numbers(4), numbers(4, start=1), 5.0, [2, {"k": 3.0}]
    layers = {"a": numbers(2), "b": y}
    for function, args, wanted in [
        (lambda a, b: a + b, (x, y), x + y),
        (lambda a: a.sum(), (x,), x.sum()),
        (lambda a: a[2] + 0, (x,), x[2]),
        (lambda a: (a, a * 2), (x,), None),
        (by_global, (x,), x * 2),
        (by_attribute, (x,), x * 3),
        (by_tensor, (x,), x + weight),
        (lambda a: a * cell, (x,), x * 5),
        (partial(lambda k, a: a * k, 7.0), (x,), x * 7),
        (Config(4.0).scaled, (x,), x * 4),
        (lambda a: a["k"][0] + a["l"][0], ({"l": (y,), "k": [x]},), x + y),
        (lambda a: a * cells[1]["k"], (x,), x * 3),
        (lambda a: a * layers["b"], (x,), x * y),
    ]:
        f = ek.jit(function)
        f(*args)
        f(*args)  # where it is asked how floats are kept, once
        result, ran = frames(partial(f, *args))
        assert ran == []
        if wanted is None:
            assert type(result) is tuple
            assert [r.tolist() for r in result] == [x.tolist(), (x * 2).tolist()]
            continue
        np.testing.assert_array_equal(result.numpy(), wanted.numpy())
        assert result.shape == wanted.shape
        assert result.dtype is wanted.dtype
        assert result.device == wanted.device


Pair = namedtuple("Pair", "first second")


def structures(x, y):
    """Ways to put two tensors together, and others of as many leaves that are not the same."""
    return [
        (x, y), [x, y], {"a": x, "b": y}, {"b": y, "a": x}, {"a": x, "c": y}, (x, (y,)), ((x,), y), [[x, y]], [(x, y)],
        {"a": [x], "b": {"c": (y,)}}, Pair(x, y), [x, y, []], {1: x, 2: y}, OrderedDict(a=x, b=y),
    ]  # fmt: skip


def test_structures_of_arguments_and_results_are_kept_whichever_comes_after_which():
    """Each comes out as it went in, at first and when calls are like the one before."""
    rng, f = random.Random(3), ek.jit(lambda given: ek.tree_map(lambda a: a * 2, given))
    for _ in range(amount(600, 60)):
        number = rng.randrange(14)
        for _ in range(rng.randint(1, 3)):
            x, y = numbers(3, start=rng.randrange(9)), numbers(2)
            given = structures(x, y)[number]
            found = f(given)
            wanted = ek.tree_map(lambda a: (a.numpy() * 2).tolist(), given)
            assert type(found) is type(given)
            assert ek.tree_map(lambda a: a.tolist(), found) == wanted
    deep = numbers(2)
    for _ in range(100):
        deep = [deep]
    for _ in range(3):
        assert ek.tree_leaves(f(deep))[0].tolist() == [0.0, 2.0]


def test_arguments_that_change_while_a_call_is_made_do_no_harm():
    """A list that another thread takes apart, and a dict whose key does so when it is compared."""
    f, x = ek.jit(lambda given: given["a"][0] + given["b"]), numbers(200_000)
    given = {"a": [x], "b": x}
    f(given)

    class Key:
        def __hash__(self):
            return hash("b")

        def __eq__(self, other):
            odd["a"].clear()
            return False

    odd = {"a": [numbers(200_000)], Key(): x}
    with pytest.raises((TypeError, IndexError, EshkolError)):
        f(odd)
    assert f(given)[1].tolist() == 2.0
    stop = threading.Event()

    def swap():
        while not stop.is_set():
            given["a"][:] = [numbers(200_000)]

    other = threading.Thread(target=swap)
    other.start()
    try:
        for _ in range(200):
            assert f(given)[3].tolist() == 6.0
    finally:
        stop.set()
        other.join()


def test_what_is_in_captured_lists_and_dicts_is_seen():
    x, numbers_of, nested, params = numbers(2), [1.0, 2.0], {"a": [3.0], "b": {"c": 4.0}}, {"w": numbers(2, start=1)}
    f = ek.jit(lambda a: a * numbers_of[-1] * nested["a"][0] * nested["b"]["c"] * params["w"])

    def seen(wanted):
        assert [f(x).tolist()[1] for _ in range(3)] == [wanted] * 3

    seen(48.0)
    numbers_of[1] = 5.0
    seen(120.0)
    numbers_of.append(1.0)
    seen(24.0)
    nested["a"][0] = 1.0
    seen(8.0)
    nested["b"] = {"c": 1.0}
    seen(2.0)
    nested["b"]["c"] = 2.0
    seen(4.0)
    params["w"] = numbers(2, start=2)
    seen(6.0)
    params["w"] += 1
    seen(8.0)
    numbers_of.clear()
    with pytest.raises(IndexError):
        f(x)


def test_other_shapes_dtypes_numbers_and_names_of_arguments_are_seen():
    f = ek.jit(lambda x, y=1.0: x * 2 + y)
    for _ in range(3):
        for given in (numbers(3), numbers(4), numbers(2, 2), numbers(3).to(ek.float64), numbers(3).to(ek.int32)):
            result = f(given)
            np.testing.assert_array_equal(result.numpy(), given.numpy() * 2 + 1)
            assert result.shape == given.shape
            assert result.dtype is (given * 2 + 1.0).dtype
    assert f(numbers(3), 2.0).tolist() == [2.0, 4.0, 6.0]
    assert f(numbers(3), y=3.0).tolist() == [3.0, 5.0, 7.0]
    assert f(np.ones(3, np.float32)).tolist() == [3.0] * 3
    with pytest.raises(TypeError):
        f()
    assert f(numbers(3)).tolist() == [1.0, 3.0, 5.0]
    assert f(numbers(6)[::2]).tolist() == [1.0, 5.0, 9.0], "a part that does not lie together is copied"
    x = numbers(3)
    x._node.data = np.arange(6, dtype=np.float32)[::2]
    assert f(x).tolist() == [1.0, 5.0, 9.0], "and so is what someone else laid out"


def test_a_captured_value_that_changed_is_seen(monkeypatch):
    x, cell, config = numbers(2), 5.0, Config(4.0)
    calls = [ek.jit(f) for f in (by_global, by_attribute, lambda a: a * cell, config.scaled, lambda a: a * config.rate)]
    every = lambda: [f(x).tolist()[1] for f in calls]
    for _ in range(3):
        assert every() == [2.0, 3.0, 5.0, 4.0, 2.0]
    monkeypatch.setitem(globals(), "factor", 20.0)
    monkeypatch.setattr(settings, "rate", 30.0)
    cell, config.scale, config.rate = 50.0, 40.0, 22.0
    for _ in range(3):
        assert every() == [20.0, 30.0, 50.0, 40.0, 22.0]
    del config.rate  # that of its class is left
    assert every()[-1] == 2.0
    monkeypatch.setitem(globals(), "factor", 20)  # equal, and of another type
    assert calls[0](numbers(2).to(ek.int32)).dtype is ek.int32


def test_a_captured_name_that_is_taken_away_is_an_error_and_comes_back(monkeypatch):
    f, x = ek.jit(by_global), numbers(2)
    f(x)
    f(x)
    monkeypatch.delitem(globals(), "factor")
    with pytest.raises(NameError):
        f(x)
    monkeypatch.setitem(globals(), "factor", 3.0)
    assert f(x).tolist() == [0.0, 3.0]


def test_a_captured_tensor_has_its_value_of_now(monkeypatch):
    w = numbers(2, start=10)
    monkeypatch.setitem(globals(), "weight", w)
    f, x = ek.jit(by_tensor), numbers(2)
    for _ in range(3):
        assert f(x).tolist() == [10.0, 12.0]
    w += 1  # the same tensor
    for _ in range(3):
        assert f(x).tolist() == [11.0, 13.0]
    monkeypatch.setitem(globals(), "weight", numbers(2, start=5))
    for _ in range(3):
        assert f(x).tolist() == [5.0, 7.0]
    monkeypatch.setitem(globals(), "weight", numbers(3, start=5))
    with pytest.raises(EshkolError):
        f(x)
    monkeypatch.setitem(globals(), "weight", ek.tensor([1.0, 2.0], requires_grad=True))
    with pytest.raises(EshkolError, match="requires grad"):
        f(x)


def test_a_captured_tensor_that_was_donated_is_refused(monkeypatch):
    w, x = numbers(2, start=10), numbers(2)
    monkeypatch.setitem(globals(), "weight", w)
    f, take = ek.jit(by_tensor), ek.jit(lambda a: a * 2, donate=0)
    f(x)
    assert f(x).tolist() == [10.0, 12.0]
    assert take(w).tolist() == [20.0, 22.0]
    with pytest.raises(EshkolError, match="donated"):
        f(x)


def test_an_argument_that_was_donated_is_refused_and_results_can_be_donated():
    f, take, x = ek.jit(lambda a: a + 1), ek.jit(lambda a: a * 2, donate=0), numbers(2)
    f(x)
    result = f(x)
    place = result._node.data.ctypes.data
    taken = take(result)
    assert taken._node.data.ctypes.data == place, "nobody but the tensor holds its memory"
    with pytest.raises(EshkolError, match="donated"):
        f(result)
    with pytest.raises(EshkolError, match="donated"):
        take(result)
    assert f(taken).tolist() == [3.0, 5.0]


def test_the_default_dtype_of_now_counts_in_each_thread():
    g, x = ek.jit(lambda a: a + ek.zeros(2)), numbers(2).to(ek.int32)
    of_g = lambda: [g(x).dtype for _ in range(3)]
    assert of_g() == [ek.float32] * 3
    found = []

    def elsewhere():
        with ek.use_backend("cpu"), defaults.floats_as("float64"):
            found.extend(of_g())
            ready.set()
            done.wait(60)
            found.extend(of_g())

    ready, done = threading.Event(), threading.Event()
    thread = threading.Thread(target=elsewhere)
    thread.start()
    assert ready.wait(60)
    assert of_g() == [ek.float32] * 3, "that of this thread is as it was"
    done.set()
    thread.join(60)
    assert found == [ek.float64] * 6
    assert of_g() == [ek.float32] * 3
    ek.set_default_dtype("float64")
    try:
        assert of_g() == [ek.float64] * 3
    finally:
        ek.set_default_dtype("float32")
    assert of_g() == [ek.float32] * 3
    before = defaults.Here.defaults
    defaults.computes_for(defaults.BARE)  # as in a procedure of Scheme's
    try:
        assert of_g() == [ek.float64] * 3
    finally:
        defaults.computes_for(before)
    assert of_g() == [ek.float32] * 3


def test_checks_are_made_from_the_moment_that_they_are_asked_for():
    f, x = ek.jit(lambda a: a / a), numbers(2, start=1)
    f(x)
    f(x)
    zeros = ek.zeros(2).realize()
    assert np.isnan(f(zeros).numpy()).all()
    with ek.check_nan(), pytest.raises(EshkolError, match="NaN"):
        f(zeros)
    assert np.isnan(f(zeros).numpy()).all()
    with ek.check() as counts:
        before = counts.plans
        f(x)
        assert counts.plans > before
    after = counts.plans
    f(x)
    assert counts.plans == after


def test_another_machine_is_another_call():
    f, x = ek.jit(lambda a: a + 1), numbers(3)
    for _ in range(2):
        for device in ("cpu", "discrete", "reference"):
            for _ in range(2):
                result = f(x.to(device))
                assert result.device == device
                assert result.tolist() == [1.0, 2.0, 3.0]
    g = ek.jit(lambda a, b: a + b)
    g(x, x)
    assert g(x, x).tolist() == [0.0, 2.0, 4.0]
    with pytest.raises(EshkolError, match="discrete"):
        g(x, x.to("discrete").realize())


def test_values_that_belong_to_no_machine_are_computed_with_where_tensors_are_made(monkeypatch):
    loose, x, f, g = ek.arange(3).realize(), numbers(3), ek.jit(lambda a: a + 1), ek.jit(lambda a, b: a + b)
    assert loose._node.device is None
    for _ in range(2):
        for device in ("cpu", "discrete", "cpu", "reference"):
            with ek.use_backend(device):
                found = [f(loose) for _ in range(3)]
            assert [y.device for y in found] == [device] * 3
            assert [y.tolist() for y in found] == [[1, 2, 3]] * 3
    f(loose)
    assert frames(lambda: f(loose))[1] == ["current_name"]
    for _ in range(3):
        assert g(x, loose).tolist() == [0.0, 2.0, 4.0]
        assert g(loose, x).device == "cpu"
    assert frames(lambda: g(loose, x))[1] == []
    monkeypatch.setitem(globals(), "weight", ek.arange(3).to(ek.float32).realize())
    h = ek.jit(by_tensor)
    assert [h(x).tolist() for _ in range(2)] == [[0.0, 2.0, 4.0]] * 2
    result, ran = frames(lambda: h(x))
    assert (result.tolist(), ran) == ([0.0, 2.0, 4.0], [])


def test_within_transformations_it_is_traced_through():
    f, x = ek.jit(lambda a: (a * a).sum()), numbers(3)
    f(x)
    assert f(x).item() == 5.0
    assert ek.grad(f)(x).tolist() == [0.0, 2.0, 4.0]
    assert ek.vmap(f)(numbers(2, 2)).tolist() == [1.0, 13.0]
    w = ek.tensor([1.0, 2.0, 3.0], requires_grad=True)
    f(w).backward()
    assert w.grad.tolist() == [2.0, 4.0, 6.0]
    assert f(x).item() == 5.0


def test_an_error_of_a_call_names_its_line_and_the_next_call_is_right():
    f, x = ek.jit(lambda a, i: ek.take(a, i)), numbers(3)
    good, bad = ek.tensor([0, 2]).realize(), ek.tensor([0, 7]).realize()
    for _ in range(3):
        assert f(x, good).tolist() == [0.0, 2.0]
        with pytest.raises(EshkolError) as error:
            f(x, bad)
        assert error.value.span is not None
        assert "test_calls.py" in str(error.value.span)
    assert f(x, good).tolist() == [0.0, 2.0]


def test_results_have_memory_of_their_own_as_numpy_makes_it():
    f, x = ek.jit(lambda a: a + 1), numbers(3)
    f(x)
    results = [f(x) for _ in range(10)]
    assert len({r._node.data.ctypes.data for r in results}) == 10
    kept = results[0].numpy()
    del results
    f(x * 5)
    assert kept.tolist() == [1.0, 2.0, 3.0]
    for function, given in [
        (lambda a: a + 1, numbers(3)), (lambda a: a.sum(), numbers(3)), (lambda a: a[:0] * 2, numbers(3)),
        (lambda a: a * 1, numbers(2, 2).to(ek.bfloat16)), (lambda a: a[None] + 1, numbers(2, 3)),
        (lambda a: a > 1, numbers(3)), (lambda a: ek.complex(a, a) * 2, numbers(3)),
    ]:  # fmt: skip
        f = ek.jit(function)
        f(given)
        got, wanted = f(given), function(given)
        array = got._node.data
        assert (array.shape, array.dtype) == (wanted.shape, wanted._node.dtype.numpy)
        assert array.flags.carray or not array.size
        assert array.flags.owndata
        assert got.shape == wanted.shape
        assert got.tolist() == wanted.tolist()


def test_results_of_calls_are_told_from_each_other():
    f, x, y = ek.jit(lambda a: a + 1), numbers(3), numbers(3, start=5)
    f(x)
    one, other = f(x), f(y)
    assert (other - one).tolist() == [5.0] * 3
    assert (one + one).tolist() == [2.0, 4.0, 6.0]
    assert one._node.attrs is one._node.attrs
    assert one._node.attrs != other._node.attrs
    assert one._node.attrs[1:] == ((3,), ek.float32)
    with pytest.raises(AttributeError):
        _ = type(one._node)().attrs


def test_nothing_is_left_behind_by_many_calls(monkeypatch):
    monkeypatch.setitem(globals(), "weight", numbers(4))
    x, y = numbers(4), numbers(2, 4)
    watched = [np.dtype(np.float32), x._node.shape, x._node, x._node.data, ek.float32, "cpu"]
    calls = [
        partial(ek.jit(lambda a: a + 1), x), partial(ek.jit(by_tensor), x), partial(ek.jit(lambda a: (a, a * 2)), x),
        partial(ek.jit(lambda a: {"k": [a["x"][0] * 2]}), {"x": (x,)}),
        partial(ek.jit(by_global), x), partial(ek.jit(lambda a, b: a @ b), y, x),
    ]  # fmt: skip
    other = ek.jit(lambda a: a + 1)

    def rounds(count):
        for _ in range(count):
            for call in calls:
                call()
            other(x)
            other(y)  # each is another call than the one before

    rounds(5)
    gc.collect()
    before = [sys.getallocatedblocks(), *map(sys.getrefcount, watched)]
    rounds(300)
    gc.collect()
    after = [sys.getallocatedblocks(), *map(sys.getrefcount, watched)]
    assert all(abs(now - then) < 100 for now, then in zip(after, before, strict=True)), (before, after)


def test_a_function_can_be_let_go_of_even_in_a_circle():
    f, x = ek.jit(lambda a: a + 1), numbers(2)
    f(x)
    f(x)
    f.itself = f
    gone = weakref.ref(f)
    del f
    gc.collect()
    assert gone() is None


def test_threads_at_once_each_get_their_own_results(monkeypatch):
    f, failed = ek.jit(by_global), []
    inputs = [numbers(3, start=k) for k in range(4)]
    f(inputs[0])
    barrier = threading.Barrier(5)

    def work(k):
        barrier.wait()
        for _ in range(400):
            got = f(inputs[k]).tolist()
            if got not in ([v * 2.0 for v in inputs[k].tolist()], [v * 3.0 for v in inputs[k].tolist()]):
                failed.append((k, got))

    def change():
        barrier.wait()
        for k in range(100):
            globals()["factor"] = 2.0 + k % 2

    monkeypatch.setitem(globals(), "factor", 2.0)  # which is set back at the end
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        threads = [threading.Thread(target=work, args=(k,)) for k in range(4)] + [threading.Thread(target=change)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(120)
    finally:
        sys.setswitchinterval(before)
    assert not failed
    globals()["factor"] = 7.0
    assert f(inputs[0]).tolist() == [0.0, 7.0, 14.0], "what was remembered belongs to what was captured then"


def test_plans_of_a_few_bytes_keep_the_lock_and_no_others():
    cpu = ek.jit(lambda a: ek.tanh(a) + 1)
    small, large = numbers(10), numbers(BRIEF)
    plan = cpu.plan(small)
    assert is_brief(plan, [place.size for place in plan.places])
    plan = cpu.plan(large)
    assert not is_brief(plan, [place.size for place in plan.places])
    for long in (lambda a: ek.linalg.eigvalsh(a @ a.T), lambda a: ek.fori_loop(0, 9, lambda k, b: b * 2, a)):
        plan = ek.jit(long).plan(numbers(3, 3))
        assert not is_brief(plan, [place.size for place in plan.places]), "who knows how long it takes"


def test_what_is_not_as_c_takes_it_is_refused():
    x = numbers(2)
    for wrong in (lambda: front.read_place(3), lambda: front.read_place((False,)),
                  lambda: front.unchanged([(False, 1)], [], [], []), lambda: front.unchanged([1], [1], [], []),
                  lambda: front.unchanged([], [], [(1, 2)], []), lambda: front.unchanged([], [], [x], []),
                  lambda: front.unchanged([], [], [], [(1, ())]), lambda: front.unchanged([], [], [], [([], [])]),
                  lambda: front.unchanged((), [], [], []), lambda: front.unchanged([], [], []),
                  lambda: front.call_again(1, 2), lambda: front.plan(1),
                  lambda: front.arrays_by("somewhere")):  # fmt: skip
        with pytest.raises((TypeError, SystemError)):
            wrong()
    assert front.read_place((False, 3)) == 3
    assert front.read_place((True, {"a": SimpleNamespace(b=4)}, "a", "b")) == 4
    assert front.read_place((True, {}, "a")) is None
    assert front.read_place((False, x, "nothing")) is None
    assert front.unchanged([(True, {"a": x}, "a")], [x], [(x, x._node)], [([3], (3,)), ({1: x}, (1, x))]) is True
    assert front.unchanged([(True, {"a": x}, "a")], [3], [(x, x._node)], []) is False
    assert front.unchanged([], [], [(x, None)], []) is False
    for container, items in (([3], ()), ([3], (4,)), ([], (3,)), ({1: 2}, ()), ({1: 2}, (1, 3)), ({}, (1, 2))):
        assert front.unchanged([], [], [], [(container, items)]) is False


def test_a_plan_that_is_gone_through_step_by_step_is_called_again_too():
    with ek.use_backend("reference"):
        f, x = ek.jit(lambda a: a + 1), ek.tensor([1.0, 2.0]).realize()
        assert [f(x).tolist() for _ in range(3)] == [[2.0, 3.0]] * 3
        assert isinstance(f._again.plan, StepwisePlan)


def test_whatever_changes_at_random_a_call_is_what_the_function_says(monkeypatch):
    """Shapes, dtypes, places in memory, machines, names, tensors, checks: any of them before any call."""
    rng, config, others = random.Random(5), Config(1.5), {}
    monkeypatch.setitem(globals(), "weight", numbers(2, 3))
    monkeypatch.setitem(globals(), "factor", 2.0)

    def plain(a, b):
        return a * factor + weight * b * config.scale - ek.ones(3)

    f = ek.jit(plain)
    kinds = [ek.float32, ek.int32]
    like = lambda: numbers(2, 3, start=rng.randrange(5)).to(rng.choice(kinds)).realize()
    args, device, floats = [like(), like()], "cpu", "float32"
    changes = {
        "nothing": lambda: None,
        "value": lambda: args.__setitem__(rng.randrange(2), like()),
        "shape": lambda: args.__setitem__(rng.randrange(2), rng.choice([numbers(3), numbers(1, 3), ek.arange(3)])),
        "laid out": lambda: args.__setitem__(0, ek.tensor(np.arange(6.0, dtype=np.float32).reshape(3, 2).T)),
        "pending": lambda: args.__setitem__(0, like() + 1),
        "number": lambda: args.__setitem__(1, rng.choice([2.0, 3, np.float32(4)])),
        "global": lambda: globals().__setitem__("factor", rng.choice([2.0, 3.0, 3, True])),
        "attribute": lambda: setattr(config, "scale", rng.choice([1.5, 0.5])),
        "tensor": lambda: globals().__setitem__("weight", rng.choice([like(), numbers(3), ek.arange(3)])),
        "in place": lambda: globals()["weight"].add_(1),
        "device": lambda: others.__setitem__("device", rng.choice(["cpu", "cpu", "reference"])),
        "floats": lambda: others.__setitem__("floats", rng.choice(["float32", "float64"])),
        "checks": lambda: others.__setitem__("checks", rng.random() < 0.3),
    }
    for step in range(amount(500, 50)):
        change = rng.choice([*changes]) if step % 2 else "nothing"
        changes[change]()
        device, floats = others.get("device", "cpu"), others.get("floats", "float32")
        with defaults.floats_as(floats), ek.use_backend(device):
            given = [x.to(device) if isinstance(x, ek.Tensor) and x._node.device is not None else x for x in args]
            globals()["weight"] = weight.to(device) if weight._node.device is not None else weight
            wanted = plain(*given)
            with ek.check_nan(others.get("checks", False)):
                got = f(*given)
            assert (got.shape, got.dtype, got.device) == (wanted.shape, wanted.dtype, wanted.device), (step, change)
            np.testing.assert_allclose(got.numpy(), wanted.numpy(), rtol=1e-6, err_msg=f"{step}: {change}")
