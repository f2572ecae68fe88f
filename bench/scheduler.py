"""The work-stealing scheduler beside concurrent.futures: cost of a call, scaling over threads, waking up.

The bodies are C, compiled here, so that what is measured is the two ways of handing them out and not Python's lock.
"""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

from build_support import compiler

from bench.harness import Result, race
from eshkol.runtime.scheduler import Scheduler

TITLE = "The scheduler: calls, scaling and waking, beside ThreadPoolExecutor"

BODIES = """
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>

void nothing(void *context, int64_t begin, int64_t end) { (void)context; (void)begin; (void)end; }

/* some arithmetic on each index, the same for all */
void compute(void *context, int64_t begin, int64_t end)
{
    double *sums = context;
    for (int64_t k = begin; k < end; k++) {
        double x = 0.5 + 1e-9 * (double)k;
        for (int step = 0; step < 200; step++)
            x = 3.7 * x * (1.0 - x);
        sums[k] = x;
    }
}

/* comes back when so many indexes are inside at the same time as expected: context points to {inside, expected} */
void meet(void *context, int64_t begin, int64_t end)
{
    _Atomic int64_t *state = context;
    atomic_fetch_add(&state[0], end - begin);
    while (atomic_load(&state[0]) < state[1])
        sched_yield(); /* on a busy machine the other one may need this CPU */
}
"""
PIECES, GRAIN = 256, 64
COUNT = PIECES * GRAIN
REPEATS = 200  # of calls too short for the clock


@contextmanager
def _bodies() -> Iterator[ctypes.CDLL]:
    with tempfile.TemporaryDirectory() as folder:
        source, library = Path(folder, "bodies.c"), Path(folder, "bodies.so")
        source.write_text(BODIES)
        subprocess.run([*compiler.compiler(), *compiler.FLAGS, "-shared", source, "-o", library], check=True)
        yield ctypes.CDLL(str(library))


def _address(function: object) -> int:
    value = ctypes.cast(function, ctypes.c_void_p).value  # type: ignore[arg-type]
    assert value is not None
    return value


def _often(call: Callable[[], object]) -> Callable[[], object]:
    def calls() -> None:
        for _ in range(REPEATS):
            call()

    return calls


def _calls(bodies: ctypes.CDLL, workers: int) -> list[Result]:
    nothing, raw = _address(bodies.nothing), bodies.nothing
    raw.argtypes = [ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64]
    with Scheduler(workers) as pool, ThreadPoolExecutor(workers) as executor:
        call = pool.parallel_for_native
        inline = race(
            "an empty loop that runs inline",
            {
                "scheduler": _often(lambda: call(nothing, None, 64, 64)),
                "the C function through ctypes": _often(lambda: raw(None, 0, 64)),
                "executor, one task": _often(lambda: executor.submit(raw, None, 0, 64).result()),
            },
            work=REPEATS, unit="calls",
        )  # fmt: skip
        starts = range(0, 1024, 64)
        parallel = race(
            f"an empty loop of {len(starts)} pieces, {workers} threads",
            {
                "scheduler": _often(lambda: call(nothing, None, 1024, 64)),
                "executor": _often(lambda: list(executor.map(lambda begin: raw(None, begin, begin + 64), starts))),
            },
            work=REPEATS, unit="calls",
        )  # fmt: skip
        many = race(
            f"an empty loop of 100,000 pieces, {workers} threads",
            {"scheduler": lambda: call(nothing, None, 100_000, 1)},
            work=100_000, unit="pieces",
        )  # fmt: skip
    return [inline, parallel, many]


def _scaling(bodies: ctypes.CDLL, workers: int) -> Result:
    """The same loop on 1, 2, 4 … threads; ratios to the first line below 1 are speed-ups."""
    compute, raw = _address(bodies.compute), bodies.compute
    raw.argtypes = [ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64]
    data = (ctypes.c_double * COUNT)()
    where = ctypes.addressof(data)
    sizes = sorted({1, workers, *(2**k for k in range(1, workers.bit_length()) if 2**k < workers)})
    pools = {size: (Scheduler(size), ThreadPoolExecutor(size)) for size in sizes}

    def by_executor(executor: ThreadPoolExecutor) -> None:
        list(executor.map(lambda begin: raw(where, begin, begin + GRAIN), range(0, COUNT, GRAIN)))

    contestants: dict[str, Callable[[], object]] = {"plain C loop": lambda: raw(where, 0, COUNT)}
    for size, (pool, executor) in pools.items():
        plural = "s" if size > 1 else ""
        contestants[f"scheduler, {size} thread{plural}"] = lambda pool=pool: pool.parallel_for_native(
            compute, where, COUNT, GRAIN
        )
        contestants[f"executor, {size} thread{plural}"] = lambda executor=executor: by_executor(executor)
    try:
        return race(f"arithmetic, {PIECES} pieces", contestants, work=COUNT, unit="elem")
    finally:
        for pool, executor in pools.values():
            pool.close()
            executor.shutdown()


def _waking(bodies: ctypes.CDLL, idle: float) -> Result:
    """Two pieces that wait for each other, after a pause: the time until a second thread is at work."""
    meet, raw = _address(bodies.meet), bodies.meet
    raw.argtypes = [ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64]
    state = (ctypes.c_int64 * 2)(0, 2)
    where = ctypes.addressof(state)
    times: dict[str, list[float]] = {"scheduler": [], "executor": []}
    with Scheduler(2) as pool, ThreadPoolExecutor(2) as executor:

        def by_executor() -> None:
            other = executor.submit(raw, where, 1, 2)
            raw(where, 0, 1)
            other.result()

        calls = {"scheduler": lambda: pool.parallel_for_native(meet, where, 2, 1), "executor": by_executor}
        for _ in range(300):
            for who, call in calls.items():
                state[0] = 0
                time.sleep(idle)  # not part of the time, so `race` cannot be used
                began = time.perf_counter()
                call()
                times[who].append(time.perf_counter() - began)
    seconds = {who: sorted(values)[len(values) // 2] for who, values in times.items()}
    return Result(f"a second thread at work, after {idle * 1e3:g} ms of rest", 1, "wakes", seconds)


def run() -> list[Result]:
    if compiler.system_compiler() is None:
        print("bench.scheduler needs a C compiler for its loop bodies", file=sys.stderr)
        return []
    workers = len(os.sched_getaffinity(0))
    with _bodies() as bodies:
        waking = [_waking(bodies, idle) for idle in (0.0, 0.003)] if workers > 1 else []
        return [*_calls(bodies, workers), _scaling(bodies, workers), *waking]
