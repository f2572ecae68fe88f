"""The thread pool from Python: every index exactly once, nesting, callers, exceptions, fork, and what a call costs."""

from __future__ import annotations

import ctypes
import os
import random
import subprocess
import sys
import threading
import time
from collections import Counter
from pathlib import Path

import pytest

from eshkol.errors import EshkolError
from eshkol.runtime import library, scheduler
from eshkol.runtime.library import NativeRuntimeMissing
from eshkol.runtime.scheduler import Body, Scheduler, SchedulerError, default_scheduler

SOURCE = Path(__file__).parents[2] / "src"


@pytest.fixture
def pool():
    with Scheduler(4) as pool:
        yield pool


def eventually(condition) -> bool:
    """Whether it comes true within a minute: a busy machine is slow, not wrong."""
    until = time.monotonic() + 60
    while not condition() and time.monotonic() < until:
        time.sleep(0.002)
    return bool(condition())


def threads_alive() -> int:
    return len(os.listdir("/proc/self/task"))  # the kernel may list a thread for a moment after it was joined


def pieces_of(pool: Scheduler, count: int, grain: int) -> list[tuple[int, int]]:
    pieces: list[tuple[int, int]] = []
    pool.parallel_for(lambda begin, end: pieces.append((begin, end)), count, grain)
    return sorted(pieces)


# --- correctness --------------------------------------------------------------------------------------


@pytest.mark.parametrize("workers", range(1, 9))
def test_every_index_exactly_once_in_pieces_of_the_grain(workers):
    source = random.Random(workers)
    with Scheduler(workers) as pool:
        assert pool.workers == workers
        for _ in range(40):
            count, grain = source.randrange(2000), source.randrange(1, 80)
            expected = [(begin, min(begin + grain, count)) for begin in range(0, count, grain)]
            assert pieces_of(pool, count, grain) == expected


@pytest.mark.parametrize("count", [0, 1, 2, 31, 32, 33, 1000])
def test_the_pool_chooses_a_grain(pool, count):
    pieces = pieces_of(pool, count, 0)
    assert [k for begin, end in pieces for k in range(begin, end)] == list(range(count))
    assert count < 32 or len(pieces) >= pool.workers


def test_huge_counts_do_not_overflow(pool):
    top = 2**63 - 1
    assert pieces_of(pool, top, 2**61) == [(0, 2**61), (2**61, 2**62), (2**62, 3 * 2**61), (3 * 2**61, top)]


def test_small_loops_run_inline(pool):
    before = pool.statistics().tasks
    here: list[int] = []
    pool.parallel_for(lambda begin, end: here.append(threading.get_ident()), 64, 64)
    assert here == [threading.get_ident()]
    assert pool.statistics().tasks == before


def test_three_levels_of_nesting(pool):
    seen: Counter[tuple[int, int, int]] = Counter()

    def outer(i: int, _: int) -> None:
        def middle(j: int, _: int) -> None:
            pool.parallel_for(lambda k, _: seen.update([(i, j, k)]), 5, 1)

        pool.parallel_for(middle, 4, 1)

    for _ in range(10):
        seen.clear()
        pool.parallel_for(outer, 6, 1)
        assert seen == {(i, j, k): 1 for i in range(6) for j in range(4) for k in range(5)}


def test_deep_recursion_helps_instead_of_blocking():
    with Scheduler(2) as pool:

        def fibonacci(n: int) -> int:
            if n < 2:
                return n
            parts = [0, 0]

            def part(k: int, _: int) -> None:
                parts[k] = fibonacci(n - 1 - k)

            pool.parallel_for(part, 2, 1)
            return sum(parts)

        assert fibonacci(13) == 233


def test_callers_from_several_threads(pool):
    sums: dict[int, list[int]] = {}

    def call(name: int) -> None:
        for repeat in range(20):
            seen: list[int] = []
            pool.parallel_for(lambda begin, end, seen=seen: seen.extend(range(begin, end)), 200 + name, 1 + repeat)
            sums.setdefault(name, []).append(sum(seen))

    threads = [threading.Thread(target=call, args=(name,)) for name in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert sums == {name: [sum(range(200 + name))] * 20 for name in range(6)}


def test_native_functions_and_contexts(pool):
    data = (ctypes.c_int64 * 1000)()

    @Body
    def square(context: int, begin: int, end: int) -> None:
        view = (ctypes.c_int64 * 1000).from_address(context)
        for k in range(begin, end):
            view[k] = k * k

    address = ctypes.cast(square, ctypes.c_void_p).value
    pool.parallel_for_native(address, ctypes.addressof(data), 1000, 50)
    assert list(data) == [k * k for k in range(1000)]


def test_work_is_shared(pool):
    """A body that waits for another thread to come can only end if one does."""
    barrier = threading.Barrier(pool.workers, timeout=60)
    assert eventually(lambda: pool.statistics().sleeps >= pool.workers - 1)
    pool.parallel_for(lambda begin, end: barrier.wait(), pool.workers, 1)
    statistics = pool.statistics()
    assert statistics.tasks == pool.workers
    assert statistics.steals >= 1


# --- life ---------------------------------------------------------------------------------------------


def test_no_thread_is_left_behind():
    before = threads_alive()
    for k in range(60):
        with Scheduler(1 + k % 6) as pool:
            pieces_of(pool, 20, 1 + k % 3)
    forgotten = Scheduler(3)
    assert eventually(lambda: threads_alive() == before + 2)
    del forgotten
    assert eventually(lambda: threads_alive() == before)


def test_idle_workers_do_not_burn(pool):
    pieces_of(pool, 100, 1)
    time.sleep(0.05)
    began = time.process_time()
    time.sleep(0.3)
    assert time.process_time() - began < 0.1


def test_a_closed_scheduler_says_so():
    pool = Scheduler(2)
    pool.close()
    pool.close()
    for use in (lambda: pool.workers, pool.statistics, lambda: pieces_of(pool, 10, 1), lambda: pieces_of(pool, 1, 1)):
        with pytest.raises(SchedulerError, match="closed"):
            use()


def test_closing_inside_a_loop_is_refused(pool):
    with pytest.raises(SchedulerError, match="while a loop runs"):
        pool.parallel_for(lambda begin, end: pool.close(), 10, 1)
    assert len(pieces_of(pool, 10, 1)) == 10


@pytest.mark.parametrize("workers", [0, -1, 1025])
def test_senseless_worker_counts(workers):
    with pytest.raises(SchedulerError, match="1 to 1024"):
        Scheduler(workers)


def test_negative_counts(pool):
    with pytest.raises(SchedulerError, match="cannot have -3 indexes"):
        pieces_of(pool, -3, 1)


# --- exceptions ---------------------------------------------------------------------------------------


def test_an_exception_reaches_the_caller(pool):
    def body(begin: int, end: int) -> None:
        if begin == 37:
            raise ValueError("thirty-seven")

    with pytest.raises(ValueError, match="thirty-seven"):
        pool.parallel_for(body, 100, 1)
    assert len(pieces_of(pool, 100, 1)) == 100


def test_the_earliest_of_several_is_raised(pool):
    barrier = threading.Barrier(pool.workers, timeout=60)

    def body(begin: int, end: int) -> None:
        barrier.wait()
        raise KeyError(begin)

    with pytest.raises(KeyError, match="0") as caught:
        pool.parallel_for(body, pool.workers, 1)
    assert len(caught.value.__notes__) == pool.workers - 1


def test_exceptions_through_nested_loops(pool):
    def inner(begin: int, end: int) -> None:
        raise LookupError("inside")

    with pytest.raises(LookupError, match="inside"):
        pool.parallel_for(lambda begin, end: pool.parallel_for(inner, 5, 1), 5, 1)


# --- fork ---------------------------------------------------------------------------------------------


def run_python(code: str, **environment: str) -> str:
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code],
        env={**os.environ, "PYTHONPATH": str(SOURCE), **environment},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_fork_while_threads_run():
    """Forked between loops and while other threads run loops; the child uses the pool, the parent goes on."""
    run_python("""
import os, threading
from eshkol.runtime.scheduler import Scheduler
pool, stop = Scheduler(4), threading.Event()
def check():
    seen = []
    pool.parallel_for(lambda begin, end: seen.extend(range(begin, end)), 300, 7)
    assert sorted(seen) == list(range(300))
def caller():
    while not stop.is_set():
        check()
threads = [threading.Thread(target=caller) for _ in range(2)]
for thread in threads:
    thread.start()
for _ in range(8):
    child = os.fork()
    if child == 0:
        for _ in range(5):
            check()
        assert pool.workers == 4
        pool.close()
        os._exit(0)
    check()
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
stop.set()
for thread in threads:
    thread.join()
check()
""")


def test_a_child_forked_inside_a_loop_is_told():
    run_python("""
import os, threading
from eshkol.runtime.scheduler import Scheduler, SchedulerError
pool, parent, main, children = Scheduler(2), os.getpid(), threading.get_ident(), []
def body(begin, end):
    if begin == 0:  # the first piece is the caller's own
        assert threading.get_ident() == main
        child = os.fork()
        if child:
            children.append(child)
try:
    pool.parallel_for(body, 10, 1)
except SchedulerError as error:
    assert os.getpid() != parent and "forked inside a parallel loop" in str(error)
    pool.parallel_for(lambda begin, end: None, 10, 1)
    os._exit(0)
assert os.getpid() == parent
assert os.waitstatus_to_exitcode(os.waitpid(children[0], 0)[1]) == 0
""")


# --- the shared pool and the library ------------------------------------------------------------------


def test_the_default_scheduler_is_one_and_obeys_the_environment():
    code = """
from eshkol.runtime.scheduler import default_scheduler
assert default_scheduler() is default_scheduler()
print(default_scheduler().workers)
"""
    assert run_python(code, ESHKOL_THREADS="3").strip() == "3"
    assert run_python(code, ESHKOL_THREADS=" ").strip() == str(len(os.sched_getaffinity(0)))


@pytest.mark.parametrize("text", ["0", "-2", "four", "1.5", "1025", "²", "9" * 5000])
def test_a_bad_number_of_threads_is_refused(text, monkeypatch):
    monkeypatch.setenv("ESHKOL_THREADS", text)
    monkeypatch.setattr(scheduler, "_default", None)
    monkeypatch.setattr(scheduler._Wanted, "workers", None)  # what a test of this process may have asked for
    with pytest.raises(EshkolError, match=f"ESHKOL_THREADS is '{text}', but must be a whole number from 1 to 1024"):
        default_scheduler()


CHANGES = """
import os, threading
import numpy as np
import eshkol as ek
from eshkol.runtime.scheduler import SchedulerError, default_scheduler

x = ek.tensor(np.linspace(-1, 1, 700 * 300, dtype=np.float32).reshape(700, 300))
f = ek.jit(lambda x: (ek.tanh(x @ x.T).sum(axis=1), ek.exp(x).mean(), ek.softmax(x, axis=1)))
values = lambda: [np.array(r) for r in f(x)]
wanted = values()
pool = default_scheduler()

def same(count):
    ek.set_num_threads(count)
    assert ek.get_num_threads() == pool.workers == count
    assert default_scheduler() is pool
    for a, b in zip(values(), wanted):
        np.testing.assert_array_equal(a, b)
    fresh = np.array(ek.jit(lambda y: ek.exp(y).sum(axis=0) + count)(x))  # compiled for this number
    np.testing.assert_allclose(fresh, np.exp(np.array(x)).sum(axis=0) + count, rtol=1e-5)

for count in (1, 3, 2, 3):
    same(count)
before = pool.statistics().tasks
values()
assert pool.statistics().tasks > before  # the pool that is at work now

stop, failed = threading.Event(), []
def compute():
    while not stop.is_set():
        if not all(np.array_equal(a, b) for a, b in zip(values(), wanted)):
            failed.append("another value")
others = [threading.Thread(target=compute) for _ in range(2)]
for other in others: other.start()
for k in range(200): ek.set_num_threads(1 + k % 4)
stop.set()
for other in others: other.join()
assert not failed

def body(begin, end):
    ek.set_num_threads(2)
try:
    pool.parallel_for(body, 8, 1)
    raise SystemExit("it was let through")
except SchedulerError as error:
    assert "inside a parallel loop" in error.message and error.hint
ek.set_num_threads(2)

child = os.fork()
if not child:
    code = 1
    try:
        same(2); same(3); same(1)
        code = 0
    finally:
        os._exit(code)
assert os.waitpid(child, 0)[1] == 0
same(3)
pool.close()
print("done")
"""


def test_the_number_of_threads_changes_at_any_time():
    """While others compute, with what was compiled before, after a fork; but not inside a loop."""
    assert run_python(CHANGES, ESHKOL_THREADS="2") == "done\n"


def test_a_missing_library_is_explained(monkeypatch, tmp_path):
    for name, words in (("absent.so", "not built"), ("broken.so", "does not load")):
        if name == "broken.so":
            (tmp_path / name).write_text("not a library")
        monkeypatch.setattr(library, "PATH", tmp_path / name)
        library.native.cache_clear()
        try:
            with pytest.raises(NativeRuntimeMissing, match=rf"(?s){words}.*make test.*pip install -e"):
                library.native()
        finally:
            library.native.cache_clear()


# --- cost ---------------------------------------------------------------------------------------------


def best_of(repeats: int, call) -> float:
    best = float("inf")
    for _ in range(repeats):
        began = time.perf_counter()
        call()
        best = min(best, time.perf_counter() - began)
    return best


def test_calls_are_cheap(pool):
    """Bounds many times what is usual: a busy machine is slow, not wrong. `make bench` measures."""
    nothing = ctypes.cast(ctypes.CDLL(None).labs, ctypes.c_void_p).value  # any function that takes such arguments
    call = pool.parallel_for_native

    def often(count: int) -> None:
        for _ in range(200):
            call(nothing, None, count, 1)

    assert best_of(20, lambda: often(1)) / 200 < 10e-6
    assert best_of(20, lambda: often(16)) / 200 < 1e-3
