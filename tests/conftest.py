"""Shared set-up: helper modules beside the tests can be imported by name."""

from __future__ import annotations

import gc
import os
import signal
import sys
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from eshkol.backends.base import Backend

# Compiled programs are kept beside the tests' other leftovers, not in the user's own cache.
os.environ.setdefault("ESHKOL_CACHE_DIR", str(Path(__file__).parent.parent / ".pytest_cache" / "eshkol"))

# Beside other workers, each computes on one thread: on more of them, workers wait for each other's. It must be said
# before NumPy is loaded. What is about threads, or about compiled code, has as many as there are (`_threads`).
SHARED_MACHINE = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1")) > 1
if SHARED_MACHINE:
    for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ.setdefault(variable, "1")

# Tests start Python hundreds of times, which would compile its sources anew each time where it may not keep them.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

for folder in ("", "atlas", "backends", "habits", "ops", "lang", "calculus", "nn", "executable", "types"):
    sys.path.insert(0, str(Path(__file__).parent / folder))

# Some tests press Ctrl-C. Whoever runs them in the background may ignore it, and then so would they.
signal.signal(signal.SIGINT, signal.default_int_handler)

import pytest  # noqa: E402
from hypothesis import settings  # noqa: E402
from hypothesis.internal.conjecture import providers  # noqa: E402

from brief import Brief  # noqa: E402
from effort import FULL, amount, beyond_the_sample  # noqa: E402

if side := os.environ.get("ESHKOL_GUARD"):
    from eshkol.backends.cpu import backend as cpu
    from guarded import GuardedBuffer

    GuardedBuffer.side = side
    # It stands in for the class without deriving from it, which would allocate twice.
    cpu.Buffer = GuardedBuffer  # type: ignore[assignment, misc]

# A busy machine is slow, not wrong: no test fails for the time one example takes. `make test` takes the same examples
# every time, so that a change is judged by what it does; `make test-all` looks for new ones.
settings.register_profile("same", deadline=None, derandomize=True, max_examples=50)
settings.register_profile("new", deadline=None)
settings.load_profile("new" if FULL else "same")
if not FULL:
    # Hypothesis draws some numbers and texts from the modules that are loaded: other examples after every change of any
    # of them and in every order of the tests, for which each worker would read all sources.
    providers.is_local_module_file = lambda path: False


def pytest_configure(config: pytest.Config) -> None:
    """Each worker begins to collect at another file: what one has rewritten for its asserts the others find."""
    told = getattr(config, "workerinput", None)
    if told is not None and config.option.xmlpath is None and config.option.durations is None:
        config.pluginmanager.register(Brief())
    here = Path(__file__).parent
    if told is None or [Path(place).absolute() for place in config.args] != [here]:
        return
    files = sorted(here.rglob("test_*.py"))
    start = int(told["workerid"].removeprefix("gw")) * len(files) // told["workercount"]
    config.args[:] = map(str, files[start:] + files[:start])


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """All workers have the tests in the same order, and what is not in a sample is slow."""
    items.sort(key=lambda item: item.path)
    for item in beyond_the_sample(items):
        item.add_marker("slow")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """What is collected stays: there is no garbage to look for among thousands of tests."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()


def pytest_collection_finish() -> None:
    """The garbage collector looks less often than it does by itself: that takes a tenth of the time of small tests."""
    gc.set_threshold(10_000, 10, 10)


_file: Path | None = None  # whose tests run now


def _set_aside(path: Path) -> None:
    """What is there before the tests of a file stays: neither the collector nor who counts objects need look at it.

    The caches of a process that has run thousands of tests hold millions of objects, and a test that collects garbage
    would take a second.
    """
    global _file
    if path != _file:
        _file = path
        gc.collect()
        gc.freeze()


# Folders and files in whose tests `make test` compiles for the CPU without LLVM's optimizer: they are about something
# else than its work, which would take most of their time. Tests marked `optimized` are about it, or compute for long.
AS_WRITTEN = frozenset({
    "bindings", "habits", "lang", "nn", "ops", "parallel", "peers", "schedule", "tensors", "tests", "train",
    "test_cpu_linear", "test_cpu_order",  # of the runtime's C; kernels only bring values there
    "test_code_sizes", "test_every_primitive",  # of derivatives, which have passes of their own
})  # fmt: skip
OPTIMIZED = frozenset({"random_programs"})
_opened: dict[str, Backend] = {}  # the backends of tests that are optimized: they share no code with the others

# Folders and files whose tests compute on all threads beside other workers, too.
THREADED = frozenset({"backends", "random_programs", "runtime", "test_in_place", "test_threads", "test_together"})


def _threads(patch: pytest.MonkeyPatch, path: Path) -> None:
    """How many threads a test computes on."""
    if FULL or not SHARED_MACHINE or "ESHKOL_THREADS" in os.environ:
        return
    threaded = path.parent.name in THREADED or path.stem in THREADED
    if not threaded:
        patch.setenv("ESHKOL_THREADS", "1")
    scheduler = sys.modules.get("eshkol.runtime.scheduler")
    if scheduler is not None and (pool := scheduler._default) is not None and scheduler._Wanted.workers is None:
        pool.resize(scheduler.usable_cpus() if threaded else 1)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    folder = item.path.parent.name
    _set_aside(item.path)
    with pytest.MonkeyPatch.context() as patch:
        _threads(patch, item.path)
        if FULL or "ESHKOL_OPTIMIZE" in os.environ:
            pass
        elif folder in OPTIMIZED or item.get_closest_marker("optimized"):
            patch.setattr("eshkol.tensors.devices._opened", _opened)
        elif folder in AS_WRITTEN or item.path.stem in AS_WRITTEN:
            patch.setenv("ESHKOL_OPTIMIZE", "0")
        return (yield)


# Folders whose tests compute with tensors: all that they compile is compared with the interpreter of the graph.
VALIDATED = frozenset({"bindings", "graph", "metrics", "nn", "ops", "optim", "schedule", "tensors", "train"})


@pytest.fixture(autouse=True)
def _validated(request: pytest.FixtureRequest) -> Iterator[None]:
    """Translation validation, but for tests that say why not (`unchecked`); ESHKOL_CHECK=0 goes without."""
    if request.path.parent.name not in VALIDATED or os.environ.get("ESHKOL_CHECK") == "0":
        yield
        return
    from eshkol.schedule.check.switch import check

    with check(request.node.get_closest_marker("unchecked") is None, draws=amount(3, 0)):
        yield
