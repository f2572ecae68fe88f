"""Streams of a GPU, on a driver that does nothing before it must: values, memory, what waits for what, names."""

from __future__ import annotations

import gc

import numpy as np
import pytest
from interpreted_driver import installed
from lazy_driver import LazyDriver

import eshkol as ek
from eshkol.backends.cuda import backend as backends
from eshkol.backends.cuda.streams import MOST
from eshkol.errors import IndexOutOfRange
from eshkol.runtime.launches import MOST_EARLY, NativeLaunch, early_steps
from eshkol.runtime.sequence import CALL, JUMP, NEXT, SET, UNLESS

RNG = np.random.default_rng(8)
pytestmark = pytest.mark.unchecked("validation reads what it compares, and waits for it")


@pytest.fixture
def driver(monkeypatch):
    with installed(monkeypatch, LazyDriver()) as made, ek.device("cuda"):
        # The interpreter's programs look for faults, after which the host waits; those that are run here have none.
        plain = backends.Loaded
        monkeypatch.setattr(backends, "Loaded", lambda a, b, c, can_fail, d: plain(a, b, c, False, d))
        yield made


def pending(driver, stream):
    return len(driver.queues.get(stream.cuda_stream, ()))


def test_a_value_of_one_stream_is_waited_for_by_another(driver):
    aside, main = ek.cuda.Stream(), ek.cuda.current_stream()
    x = ek.tensor(np.arange(6.0))
    with ek.cuda.stream(aside):
        assert ek.cuda.current_stream() == aside
        y = (x * 2).realize()
    assert ek.cuda.current_stream() == main == ek.cuda.default_stream()
    assert pending(driver, aside), "nothing has waited yet"
    waits = driver.calls.count("cuStreamWaitEvent")
    z = (y + x).realize()
    assert driver.calls.count("cuStreamWaitEvent") == waits + 1
    other = (y - x).realize()
    assert driver.calls.count("cuStreamWaitEvent") == waits + 1, "what was waited for is not waited for again"
    np.testing.assert_array_equal(z.numpy(), np.arange(6.0) * 3)
    np.testing.assert_array_equal(other.numpy(), np.arange(6.0))


def test_values_are_read_from_whichever_stream(driver):
    aside, another = ek.cuda.Stream(), ek.cuda.Stream()
    with ek.cuda.stream(aside):
        x = (ek.tensor(np.arange(4.0)) + 1).realize()
    with ek.cuda.stream(another):
        y = (x * x).realize()
    np.testing.assert_array_equal(y.numpy(), [1.0, 4.0, 9.0, 16.0])
    with ek.cuda.stream(another):
        np.testing.assert_array_equal(x.numpy(), [1.0, 2.0, 3.0, 4.0])


def test_streams_do_not_wait_for_what_they_do_not_need(driver):
    aside, main = ek.cuda.Stream(), ek.cuda.default_stream()
    batches = iter(ek.data.DataLoader(np.arange(16, dtype=np.float32), 8, pin=True))
    twice = ek.jit(lambda x: x * 2)
    x = (ek.tensor(np.ones(8, np.float32)) * 3).realize()
    with ek.cuda.stream(aside):
        twice(next(batches))  # compiled, and after what was before there were streams
    ek.cuda.synchronize()
    y = (x @ x).realize()
    asked = pending(driver, main)
    assert asked
    with ek.cuda.stream(aside):
        copied = driver.calls.count("cuMemcpyHtoDAsync_v2")
        given = next(batches)
        assert driver.calls.count("cuMemcpyHtoDAsync_v2") == copied + 1, "it is copied at once"
        assert pending(driver, main) == asked, "and nothing of the other stream was waited for"
        given = twice(given)
    aside.synchronize()
    assert pending(driver, main) == asked, "the copy and what follows it were made beside"
    assert aside.query()
    assert not main.query()
    np.testing.assert_array_equal(given.numpy(), 2 * np.arange(8, 16))
    assert y.item() == 72


def test_memory_is_not_used_again_while_another_stream_reads_it(driver):
    aside, twice = ek.cuda.Stream(), ek.jit(lambda x: x * 2)
    given = ek.tensor(np.full(1000, 5.0)).realize()
    x = twice(given)
    with ek.cuda.stream(aside):
        twice(given)
    ek.cuda.synchronize()
    address = x._node.data.address()
    with ek.cuda.stream(aside):
        y = twice(x)
    x = None
    gc.collect()
    others = [twice(given) for _ in range(3)]
    ek.cuda.default_stream().synchronize()
    assert all(other._node.data.address() != address for other in others), "it is held"
    np.testing.assert_array_equal(y.numpy(), np.full(1000, 20.0))
    ek.cuda.synchronize()
    again = [twice(given) for _ in range(3)]
    assert any(value._node.data.address() == address for value in again), "and let go of"


def test_memory_returns_to_the_stream_that_it_was_taken_for(driver):
    aside = ek.cuda.Stream()
    with ek.cuda.stream(aside):
        x = (ek.tensor(np.full(1000, 5.0)) + 0).realize()
        address = x._node.data.address()
        y = (x * 2).realize()
        x = None
    gc.collect()
    z = (ek.tensor(np.full(1000, 1.0)) + 1).realize()
    assert z._node.data.address() != address, "the other stream may still read it"
    z.numpy()
    np.testing.assert_array_equal(y.numpy(), np.full(1000, 10.0))


def test_one_function_on_several_streams(driver):
    """Its graph and the statuses of its launches are one for all streams."""

    @ek.jit
    def function(x, k):
        y = ek.cumsum(x * 2, 0)
        return (y.sum() + ek.take(y, k, 0)) * x

    streams = [ek.cuda.default_stream(), ek.cuda.Stream(), ek.cuda.Stream()]
    found, wanted = [], []
    for number in range(9):
        x = RNG.standard_normal(7)
        with ek.cuda.stream(streams[number % 3]):
            found.append(function(ek.tensor(x), ek.tensor(number % 7)))
        y = np.cumsum(x * 2)
        wanted.append((y.sum() + y[number % 7]) * x)
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_allclose(one.numpy(), other)


def test_runs_of_one_sequence_wait_for_each_other(driver):
    aside, twice = ek.cuda.Stream(), ek.jit(lambda x: x * 2)
    x = ek.tensor(np.arange(4.0)).realize()
    twice(x)
    with ek.cuda.stream(aside):
        twice(x)
    waits = driver.calls.count("cuStreamWaitEvent")
    twice(x)  # what it reads was made on this stream, but its statuses are in use on the other
    assert driver.calls.count("cuStreamWaitEvent") == waits + 1


def test_training_on_a_stream(driver):
    given = RNG.standard_normal((8, 3)).astype(np.float32)
    losses = []
    for aside in (None, ek.cuda.Stream()):
        ek.manual_seed(1)
        model = ek.nn.Linear(3, 2)
        step = ek.train.Step(model, lambda y, t: ((y - t) ** 2).mean(), ek.optim.SGD(model.parameters(), lr=0.1))
        with ek.cuda.stream(aside):
            losses.append([step(ek.tensor(given), ek.tensor(given[:, :2])).loss for _ in range(4)])
    assert [a.item() for a in losses[0]] == [b.item() for b in losses[1]]
    assert losses[0][3].item() < losses[0][0].item()


@pytest.mark.parametrize("seed", range(4))
def test_random_programs_on_random_streams(driver, seed):
    rng = np.random.default_rng(seed)
    streams = [None, ek.cuda.Stream(), ek.cuda.Stream()]
    arrays = [rng.standard_normal(64) for _ in range(3)]
    values = [ek.tensor(a) for a in arrays]
    for _ in range(40):
        i, j, k = rng.integers(0, len(arrays), 3)
        with ek.cuda.stream(streams[rng.integers(3)]):
            if rng.integers(4) == 0:
                array = rng.standard_normal(64)
                value = ek.tensor(array)
            else:
                array, value = arrays[i] * 0.5 - arrays[j], (values[i] * 0.5 - values[j]).realize()
        if len(arrays) < 8:
            arrays.append(array)
            values.append(value)
        else:
            arrays[k], values[k] = array, value
        if rng.integers(8) == 0:
            np.testing.assert_allclose(values[i].numpy(), arrays[i])
    for value, array in zip(values, arrays, strict=True):
        np.testing.assert_allclose(value.numpy(), array)


def test_events_and_streams_as_pytorch_names_them(driver):
    one, other = ek.cuda.Stream(), ek.cuda.Stream()
    assert one != other
    assert len({one, other, ek.cuda.current_stream()}) == 3
    assert "of cuda" in repr(one)
    with ek.cuda.stream(one):
        x = (ek.ones(4) * 2).realize()
        start = one.record_event(ek.cuda.Event(enable_timing=True))
    assert not start.query()
    other.wait_event(start)
    other.wait_stream(one)
    end = ek.cuda.Event(enable_timing=True)
    end.record(other)
    other.synchronize()
    assert start.query(), "the other stream has waited for it"
    assert end.query()
    assert start.elapsed_time(end) == 2.5
    assert one.query()
    end.wait()
    np.testing.assert_array_equal(x.numpy(), [2.0] * 4)
    with ek.cuda.stream(None):
        assert ek.cuda.current_stream() == ek.cuda.default_stream()
    numbers = {ek.cuda.Stream()._number for _ in range(2 * MOST)}
    assert numbers == set(range(1, MOST + 1))


def test_a_machine_that_stands_for_a_gpu_has_streams_by_name(monkeypatch):
    monkeypatch.setenv("ESHKOL_DEVICE", "cpu")
    aside = ek.cuda.Stream()
    with ek.cuda.stream(aside):
        x = ek.ones(3) + 1
    aside.wait_stream(ek.cuda.current_stream())
    aside.synchronize()
    assert aside.query()
    assert x.sum().item() == 6


def test_the_host_waits_for_launches_that_can_fail_alone(monkeypatch):
    """Where only the first can, others are still to be done when a call returns; as launches and as a graph."""

    def checks(a, b, c, can_fail, d, shared=0):
        return plain(a, b, c, len(made) < 1 and not made.append(a), d)  # the first module of a sequence alone

    with installed(monkeypatch, LazyDriver()) as driver, ek.device("cuda"):
        x, places = ek.tensor(np.arange(6.0)), ek.tensor(np.array([1, 5]))
        stream = ek.cuda.current_stream()
        made: list[object] = []
        plain = backends.Loaded
        monkeypatch.setattr(backends, "Loaded", checks)
        f = ek.jit(lambda x, i: ek.cumsum(ek.cumsum(x[i] * 2 + x.sum())))
        want = np.cumsum(np.cumsum(np.array([2.0, 10.0]) + 15))
        for _ in range(5):
            waits = driver.calls.count("cuStreamSynchronize")
            found = f(x, places)
            assert driver.calls.count("cuStreamSynchronize") == waits
            assert pending(driver, stream), "the host has waited for everything"
            np.testing.assert_array_equal(found.numpy(), want)
        assert driver.calls.count("cuEventSynchronize") >= 5
        with pytest.raises(IndexOutOfRange, match="an index is out of range for an axis of extent 6"):
            f(x, ek.tensor(np.array([1, 6])))
        np.testing.assert_array_equal(f(x, places).numpy(), want)


def test_which_launches_are_waited_for():
    """Those up to the last that can fail, where they are few, are done once, and nothing is looked at."""
    sure, unsure = (NativeLaunch(0, 1, 1, 0, b"", [], 0, can_fail) for can_fail in (False, True))
    call = [(CALL, k, 0, 0, 0, 0) for k in range(3)]
    launches = [sure, unsure, sure]
    assert early_steps(call, launches) == 2
    assert early_steps(call, [sure, sure, sure]) == 0, "there is none"
    assert early_steps([*call, (NEXT, 0, 1, 9, 2, 0)], launches) == 2, "a loop behind them"
    assert early_steps([*call, (NEXT, 0, 1, 9, 1, 0)], launches) == 0, "a loop that has them"
    assert early_steps([(SET, 0, 0, 0, 0, 0), *call, (NEXT, 0, 1, 9, 3, 0)], launches) == 0, "a loop that they begin"
    assert early_steps([*call, (UNLESS, 0, 0, 1, 0, 0)], launches) == 0, "the host looks at something else"
    assert early_steps([(JUMP, 1, 0, 0, 0, 0), *call], launches) == 3
    assert early_steps([(JUMP, 4, 0, 0, 0, 0), *call], launches) == 0, "they are left out"
    assert early_steps([call[0]] * MOST_EARLY + call, launches) == 0, "they are many"
