"""Many trials at once, each in a child of this process.

This process imports what the tests need and nothing of Eshkol, and forks: a child starts with the libraries loaded and
ends with everything it did forgotten. A child has a folder of compiled programs of its own, made of links to the ones
that unchanged sources make, and is ended when it waits for far too long without computing, when it has computed for far
too long, or when the memory it may have is used up. How busy the machine is makes no difference to any of these.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import json
import mmap
import os
import resource
import shutil
import signal
import struct
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

NEEDED = ("pytest", "hypothesis", "numpy", "scipy", "llvmlite", "ml_dtypes", "blake3", "rich")
LOADED = (
    "numpy", "scipy.linalg", "scipy.special", "scipy.fft", "scipy.ndimage", "scipy.signal", "scipy.stats",
    "scipy.sparse", "llvmlite.binding", "llvmlite.ir", "hypothesis", "hypothesis.strategies", "hypothesis.extra.numpy",
    "ml_dtypes", "blake3", "rich.console", "mpmath", "pytest", "_pytest.assertion.rewrite",
)  # fmt: skip
MOST_SECONDS = (
    900  # of the processor for one child: an endless loop outside of the tests, which have limits of their own
)
NAMED = 400  # bytes of the name of the test that runs
Watch = Callable[..., None]  # takes the seconds that a test may wait without computing, and what it is called
Job = Callable[[Watch], dict[str, Any]]


def missing() -> list[str]:
    """What the tests need that is not installed."""
    return [name for name in NEEDED if importlib.util.find_spec(name) is None]


def load() -> None:
    """Import what every child would import."""
    for name in LOADED:
        with contextlib.suppress(ImportError):  # only some tests need it, and they say so
            importlib.import_module(name)


def processor_seconds(process: int) -> float:
    """What a process has computed, with the children that it has waited for; 0 where the system does not say."""
    try:
        with open(f"/proc/{process}/stat", encoding="ascii", errors="replace") as file:
            times = file.read().rpartition(")")[2].split()[11:15]  # utime, stime, cutime, cstime: see proc(5)
    except OSError:
        return 0.0
    return sum(map(int, times)) / os.sysconf("SC_CLK_TCK")


class Child:
    """A job in a process of its own."""

    def __init__(self, name: Any, job: Job, cache: Path, links: bool, memory: int, limit: float) -> None:
        self.name = name
        self.folder = Path(tempfile.mkdtemp(prefix="mutant-", dir=cache.parent))
        # How many seconds the present test may wait without computing, and what it is called.
        self._shared = mmap.mmap(-1, 8 + NAMED)
        self._watch(limit)
        self.began = self._moved = time.monotonic()
        self._computed = 0.0  # seconds of the processor when it was last seen to compute, at `_moved`
        sys.stdout.flush()
        self.process = os.fork()
        if self.process == 0:
            self._run(job, cache, links, memory)

    def _watch(self, seconds: float, what: str = "") -> None:
        self._shared[:] = struct.pack(f"d{NAMED}s", seconds, what.encode()[:NAMED])

    def _waits_too_long(self) -> bool:
        """Whether it has not computed for longer than it may; where that cannot be seen, it has not computed at all."""
        now, computed = time.monotonic(), processor_seconds(self.process)
        if computed >= self._computed + 0.05:
            self._computed, self._moved = computed, now
        return now - self._moved > struct.unpack("d", self._shared[:8])[0]

    def _run(self, job: Job, cache: Path, links: bool, memory: int) -> None:
        code = 1
        try:
            os.setsid()
            output = os.open(self.folder / "output", os.O_WRONLY | os.O_CREAT)
            os.dup2(output, 1)
            os.dup2(output, 2)
            os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            resource.setrlimit(resource.RLIMIT_CPU, (MOST_SECONDS, MOST_SECONDS + 5))
            if memory:
                # Of what can be written: each heap of Scheme's reserves addresses for more than all of the memory.
                resource.setrlimit(resource.RLIMIT_DATA, (memory, memory))
            own = cache
            if links:
                own = self.folder / "cache"
                shutil.copytree(cache, own, copy_function=os.link)
            os.environ["ESHKOL_CACHE_DIR"] = str(own)
            found = job(self._watch)
            (self.folder / "found").write_text(json.dumps(found))
            code = 0
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)

    def poll(self) -> dict[str, Any] | None:
        """What came of it, once it has ended."""
        done, status = os.waitpid(self.process, os.WNOHANG)
        hung = False
        if not done:
            if not self._waits_too_long():
                return None
            hung = True
            self.end()
            _, status = os.waitpid(self.process, 0)
        found = self._found(status, hung)
        found["seconds"] = round(time.monotonic() - self.began, 2)
        self.end()  # what the tests have left running
        shutil.rmtree(self.folder, ignore_errors=True)
        return found

    def _found(self, status: int, hung: bool) -> dict[str, Any]:
        written = self.folder / "found"
        if not hung and written.exists():
            return dict(json.loads(written.read_text()))
        with open(self.folder / "output", errors="replace") as file:
            tail = file.read()[-600:]
        within = self._shared[8:].rstrip(b"\0").decode(errors="replace") or "what comes before the tests"
        if hung:
            return {"outcome": "timeout", "by": within, "why": f"it waits for something: {tail}"}
        if os.WIFSIGNALED(status) and os.WTERMSIG(status) in (signal.SIGPROF, signal.SIGXCPU):
            return {"outcome": "timeout", "by": within, "why": f"it computes for too long: {tail}"}
        if os.WIFSIGNALED(status):
            return {"outcome": "killed", "by": within, "why": f"a crash, signal {os.WTERMSIG(status)}: {tail}"}
        return {"outcome": "error", "by": within, "why": tail}

    def end(self) -> None:
        """End the process and all that it started: they are a session of their own."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process, signal.SIGKILL)


def run(jobs: Iterable[tuple[Any, Job]], cache: Path, count: int, *, links: bool, memory: int, limit: float,
        until: float) -> Iterator[tuple[Any, dict[str, Any]]]:  # fmt: skip
    """The jobs, so many at a time, and what came of each as it ends; those not begun by `until` are left out."""
    waiting = iter(jobs)
    running: list[Child] = []
    more = True
    try:
        while more or running:
            while more and len(running) < count:
                if time.monotonic() > until:
                    more = False
                    break
                try:
                    name, job = next(waiting)
                except StopIteration:
                    more = False
                    break
                running.append(Child(name, job, cache, links, memory, limit))
            for child in list(running):
                found = child.poll()
                if found is not None:
                    running.remove(child)
                    yield child.name, found
            time.sleep(0.02)
    finally:
        for child in running:
            child.end()
            shutil.rmtree(child.folder, ignore_errors=True)
