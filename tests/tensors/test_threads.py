"""Several threads at once: gradients add up, and what one thread computes, traces or keeps is not another's concern."""

from __future__ import annotations

import random
import sys
import threading
from contextvars import copy_context

import numpy as np
import pytest

import eshkol as ek
from effort import amount
from eshkol.errors import EshkolError
from eshkol.graph import node as graph
from eshkol.graph.node import Scope
from eshkol.schedule import cache

THREADS = 4


@pytest.fixture(autouse=True)
def restless():
    """Threads take turns as often as they can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)


def at_once(*works):
    """What functions give that run at the same time, each in a thread with the context of this one."""
    results, errors = [None] * len(works), []
    ready = threading.Barrier(len(works))

    def run(k):
        try:
            ready.wait()
            results[k] = works[k]()
        except BaseException as error:  # which the test is to see
            errors.append(error)

    threads = [threading.Thread(target=copy_context().run, args=(run, k), daemon=True) for k in range(len(works))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=300)
    assert not any(thread.is_alive() for thread in threads), "threads wait for each other"
    if errors:
        raise errors[0]
    return results


# --- gradients ------------------------------------------------------------------------------------


@pytest.mark.parametrize("backend", ["reference", "cpu"])
def test_gradients_of_several_threads_add_up(backend):
    rounds = 300 if backend == "cpu" else 60
    with ek.use_backend(backend):
        w = ek.tensor([1.0, 2.0], requires_grad=True)

        def work():
            for _ in range(rounds):
                (w * 1.0).sum().backward()

        at_once(*[work] * THREADS)
        assert w.grad.tolist() == [float(THREADS * rounds)] * 2


def test_gradients_add_up_where_each_thread_has_another_program():
    w = ek.tensor(2.0, requires_grad=True)
    programs = [lambda: w * 3.0, lambda: w * w, lambda: ek.where(w > 0, w * 5.0, 0.0), lambda: (w * 7.0 - 1.0) * 2.0]

    def work(program):
        for _ in range(30):
            program().backward()

    at_once(*[lambda p=p: work(p) for p in programs])
    assert w.grad.item() == 30 * (3.0 + 4.0 + 5.0 + 14.0)


# --- the same work, alone and together ------------------------------------------------------------


def program(seed):
    """A small random program: eager, compiled, differentiated or batched; gives NumPy arrays."""
    rng = random.Random(seed)
    x = ek.tensor(np.random.default_rng(seed).uniform(-1, 1, (3, 4)).astype(np.float32))
    steps = [rng.choice(sorted(STEPS)) for _ in range(rng.randint(2, 6))]
    numbers = [rng.choice([0.5, 1.5, 2.0, seed % 5 + 1.0]) for _ in steps]

    def function(x):
        for name, number in zip(steps, numbers, strict=True):
            x = STEPS[name](x, number)
        return x

    how = seed % 5
    if how == 0:
        return [function(x).numpy()]
    if how == 1:
        return [ek.jit(function)(x).numpy(), ek.jit(function)(x).numpy()]
    if how == 2:
        return [ek.grad(lambda x: function(x).sum())(x).numpy()]
    if how == 3:
        return [ek.vmap(lambda row: function(ek.stack([row, row, row])).sum())(x).numpy()]
    leaf = ek.tensor(x.numpy(), requires_grad=True)
    value = function(leaf).sum()
    value.backward()
    return [value.detach().numpy(), leaf.grad.numpy()]


STEPS = {
    "add": lambda x, n: x + n,
    "mul": lambda x, n: x * n,
    "tanh": lambda x, n: ek.tanh(x),
    "less_mean": lambda x, n: x - x.mean(1, keepdims=True),
    "softmax": lambda x, n: ek.softmax(x * n, 1),
    "product": lambda x, n: x @ ek.full((4, 4), n / 4),
    "flip": lambda x, n: ek.flip(x, 1),
    "where": lambda x, n: ek.where(x > 0, x, x * n),
    "twice": lambda x, n: ek.concatenate((x, x), 0)[:3],
}


def test_random_programs_give_what_they_give_alone():
    seeds = range(amount(160, 16))
    alone = [program(seed) for seed in seeds]

    def work(start):
        order = [*seeds[start::2], *seeds[1 - start :: 2]]
        return {seed: program(seed) for seed in order}

    for found in at_once(*[lambda k=k: work(k % 2) for k in range(THREADS)]):
        for seed in seeds:
            for one, other in zip(found[seed], alone[seed], strict=True):
                np.testing.assert_array_equal(one, other, err_msg=f"program {seed}")


def test_one_function_is_compiled_by_several_threads_at_once():
    @ek.jit
    def function(x, n):
        for k in range(5):
            x = ek.tanh(x * n + k)
        return x.sum()

    x = ek.tensor(np.linspace(-1, 1, 12).reshape(3, 4))
    wanted = [function(x[:rows], n).item() for rows in (1, 2, 3) for n in range(30)]
    function._traces.clear()

    def work():  # more traces than are kept, so that they are thrown out while others look for them
        return [function(x[:rows], n).item() for rows in (1, 2, 3) for n in range(30)]

    for found in at_once(*[work] * THREADS):
        np.testing.assert_allclose(found, wanted, rtol=1e-6)


def test_a_value_that_waits_is_computed_once_for_all_who_ask():
    for n in range(20):
        large = ek.tensor(np.full((64, 300), float(n), np.float32))
        value = (large * 2.0).sum(1)
        del large  # nobody else has it: its memory may be taken
        assert all((found == n * 600.0).all() for found in at_once(*[lambda v=value: v.numpy()] * THREADS))


# --- what is at work ------------------------------------------------------------------------------


def test_a_trace_in_one_thread_is_not_at_work_in_another():
    inside, done = threading.Event(), threading.Event()
    seen = []

    def traced(x):
        inside.set()
        assert done.wait(60)
        return x * 2

    def other():
        assert inside.wait(60)
        try:
            seen.append(list(Scope.at_work))
            y = ek.tensor([1.0, 2.0])
            y += 1  # would be a change while tracing
            seen.append(y.tolist())
            seen.append(ek.grad(lambda x: (x * x).sum())(y).tolist())
            seen.append(ek.random.normal((2,)).shape)  # would draw the same numbers every time
        finally:
            done.set()

    found, _ = at_once(lambda: ek.jit(traced)(ek.tensor([3.0])).tolist(), other)
    assert found == [6.0]
    assert seen == [[], [2.0, 3.0], [4.0, 6.0], (2,)]
    assert not Scope.at_work


def test_no_grad_and_lines_of_errors_belong_to_a_thread():
    def forgetful():
        with ek.no_grad():
            return [(ek.tensor([1.0], requires_grad=True) * 2).requires_grad for _ in range(200)]

    def mindful():
        return [(ek.tensor([1.0], requires_grad=True) * 2).requires_grad for _ in range(200)]

    def one():
        return [_line(lambda: ek.ones((2, 3)) @ ek.ones((4, 5))) for _ in range(50)]

    def other():
        return [_line(lambda: ek.ones((2, 3)) + ek.ones((4, 5))) for _ in range(50)]

    forgotten, minded, first, second = at_once(forgetful, mindful, one, other)
    assert not any(forgotten)
    assert all(minded)
    assert set(first) == {"@"}
    assert set(second) == {"+"}


def _line(function):
    with pytest.raises(EshkolError) as caught:
        function().numpy()
    text = caught.value.span.text
    return next(sign for sign in "@+" if f" {sign} " in text)


# --- what is kept ---------------------------------------------------------------------------------


def test_caches_are_emptied_while_others_use_them(monkeypatch):
    monkeypatch.setattr(cache, "KEPT", 16)
    shared = cache.Cache()

    def work(k):
        for n in range(amount(3000, 800)):
            key = (k * n) % 61
            found = shared.get(key)
            assert found is None or found == key * 2
            shared.keep(key, key * 2)

    at_once(*[lambda k=k: work(k + 1) for k in range(THREADS)])
    assert len(shared) <= 16


def test_nodes_are_forgotten_while_others_are_made():
    def work(k):
        x = graph.constant(float(k), ek.float32)
        made = [x]
        for n in range(amount(400, 120)):
            made.append(made[-1] + (n % 7))
            if n % 50 == 0:
                del made[:-1]
        return made[-1].shape

    assert at_once(*[lambda k=k: work(k) for k in range(THREADS)]) == [()] * THREADS
