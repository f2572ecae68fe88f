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

# Tests start Python hundreds of times, which would compile its sources anew each time where it may not keep them.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

for folder in ("", "atlas", "backends", "habits", "ops", "lang", "calculus", "nn"):
    sys.path.insert(0, str(Path(__file__).parent / folder))

# Some tests press Ctrl-C. Whoever runs them in the background may ignore it, and then so would they.
signal.signal(signal.SIGINT, signal.default_int_handler)

import pytest  # noqa: E402
from hypothesis import settings  # noqa: E402

from effort import FULL, amount  # noqa: E402

if side := os.environ.get("ESHKOL_GUARD"):
    from eshkol.backends.cpu import backend as cpu
    from guarded import GuardedBuffer

    GuardedBuffer.side = side
    # It stands in for the class without deriving from it, which would allocate twice.
    cpu.Buffer = GuardedBuffer  # type: ignore[assignment, misc]

# A busy machine is slow, not wrong: no test fails for the time one example takes. `make test` takes the same examples
# every time, so that a change is judged by what it does; `make test-all` looks for new ones.
settings.register_profile("same", deadline=None, derandomize=True)
settings.register_profile("new", deadline=None)
settings.load_profile("new" if FULL else "same")


def pytest_collection_finish() -> None:
    """What is there before the first test stays to the end: the garbage collector need not look at it each time."""
    gc.collect()
    gc.freeze()


# Folders in whose tests `make test` compiles for the CPU without LLVM's optimizer: they are about something else than
# its work, which would take most of their time. Tests marked `optimized` are about it, or compute for long.
AS_WRITTEN = frozenset({"bindings", "habits", "lang", "ops", "peers", "schedule", "tensors", "tests", "train"})
OPTIMIZED = frozenset({"random_programs"})
_opened: dict[str, Backend] = {}  # the backends of tests that are optimized: they share no code with the others


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    folder = item.path.parent.name
    with pytest.MonkeyPatch.context() as patch:
        if FULL or "ESHKOL_OPTIMIZE" in os.environ:
            pass
        elif folder in OPTIMIZED or item.get_closest_marker("optimized"):
            patch.setattr("eshkol.tensors.devices._opened", _opened)
        elif folder in AS_WRITTEN:
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
