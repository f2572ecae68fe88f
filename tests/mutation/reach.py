"""Which test executes which line of the packages: measured once, kept as JSON, and asked for every mutant.

Each test file runs in a process of its own, with an empty memory of compiled kernels before every test: a test reaches
what it would reach alone, whatever ran before it. Lines that run when a module is imported are kept apart, since every
test of the file depends on them.

A file is measured again when it changes; all are when a source does, since its lines move.
"""

from __future__ import annotations

import gc
import hashlib
import importlib
import inspect
import json
import sys
import threading
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from mutation import suites
from mutation.mutants import Mutant

PACKAGES = ("schedule", "graph", "ops", "calculus")
SOURCES = suites.ROOT / "src" / "eshkol"
_PREFIXES = tuple(f"{SOURCES / package}/" for package in PACKAGES)
Hits = dict[str, set[int]]  # lines by file


class Reaching(NamedTuple):
    """A test that may notice a mutant: it runs the line, or what the line makes when its module is imported."""

    test: str
    seconds: float
    direct: bool


def sources(packages: Iterable[str] = PACKAGES) -> dict[str, Path]:
    """The modules of packages and of the packages within them, by their dotted names."""
    return {_module(file): file for package in packages for file in sorted((SOURCES / package).rglob("*.py"))}


def digest(*paths: Path) -> str:
    found = hashlib.sha256()
    for path in paths:
        found.update(path.read_bytes())
    return found.hexdigest()


# ---- measuring -------------------------------------------------------------------------------------------------------


class Tracer:
    """Collects executed lines of the packages, in all threads."""

    def __init__(self) -> None:
        self.hits: Hits = {}
        self.imported: Hits = {}
        self._monitored = sys.version_info >= (3, 12)

    def start(self) -> None:
        if self._monitored:
            monitoring: Any = sys.monitoring  # type: ignore[attr-defined, unused-ignore]
            monitoring.use_tool_id(monitoring.COVERAGE_ID, "mutation")
            monitoring.register_callback(monitoring.COVERAGE_ID, monitoring.events.LINE, self._line)
            monitoring.set_events(monitoring.COVERAGE_ID, monitoring.events.LINE)
        else:
            threading.settrace(self._call)
            sys.settrace(self._call)

    def again(self) -> Hits:
        """What was hit since the last time."""
        found, self.hits = self.hits, {}
        if self._monitored:
            sys.monitoring.restart_events()  # type: ignore[attr-defined, unused-ignore]
        elif sys.gettrace() != self._call:  # a test may have traced by itself
            sys.settrace(self._call)
        return found

    def _into(self, code: Any) -> Hits:
        """Bodies of modules and classes run when they are imported, whichever test that happens in."""
        return self.hits if code.co_flags & inspect.CO_OPTIMIZED else self.imported

    def _line(self, code: Any, line: int) -> Any:
        file = code.co_filename
        if file.startswith(_PREFIXES):
            self._into(code).setdefault(file, set()).add(line)
        return sys.monitoring.DISABLE  # type: ignore[attr-defined, unused-ignore]

    def _call(self, frame: Any, event: str, argument: Any) -> Any:
        file = frame.f_code.co_filename
        if not file.startswith(_PREFIXES):
            return None
        lines = self._into(frame.f_code).setdefault(file, set())
        lines.add(frame.f_lineno)

        def local(frame: Any, event: str, argument: Any) -> Any:
            if event == "line":
                lines.add(frame.f_lineno)
            return local

        return local


class Measuring:
    """A plugin that notes for each test how long it takes, whether it passes, and what it reaches."""

    def __init__(self, watch: Callable[[float], None]) -> None:
        self.tracer, self.watch = Tracer(), watch
        self.tests: dict[str, dict[str, Any]] = {}
        self._caches: list[Any] | None = None

    def pytest_collection_finish(self) -> None:
        """All modules are imported by now, so that no test seems to reach what the first import of a module does."""
        for name in sources():
            importlib.import_module(name)
        for file, lines in self.tracer.again().items():
            self.tracer.imported.setdefault(file, set()).update(lines)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: Any) -> Any:
        if self._caches is None:
            cache = getattr(sys.modules.get("eshkol.schedule.cache"), "Cache", None)
            self._caches = [] if cache is None else [x for x in gc.get_objects() if type(x) is cache]
        for kept in self._caches:
            kept.clear()
        self.watch(300.0)
        self.tests[item.nodeid] = {"passed": True}
        self.tracer.again()
        began = time.process_time()  # the order of the tests goes by it: a busy machine must not give another one
        try:
            return (yield)
        finally:
            self.tests[item.nodeid] |= {"seconds": time.process_time() - began, "hits": self.tracer.again()}

    def pytest_runtest_logreport(self, report: Any) -> None:
        if not report.passed:  # what is skipped cannot notice anything either
            self.tests[report.nodeid]["passed"] = False


def measure(file: str, watch: Callable[[float], None]) -> dict[str, Any]:
    """What the tests of a file reach: runs in a child, like a trial."""
    from mutation.trial import ARGUMENTS, Hook

    sys.meta_path.insert(0, Hook(None, "measured"))
    measuring = Measuring(watch)
    measuring.tracer.start()
    code = pytest.main([*ARGUMENTS[1:], file], plugins=[measuring])
    sys.settrace(None)
    if code not in (0, 1, 5):
        raise RuntimeError(f"{file} cannot be measured: pytest ended with {code}")
    tests = {
        test: {"seconds": round(noted["seconds"], 3), "hits": masks(noted["hits"])}
        for test, noted in measuring.tests.items() if noted["passed"]
    }  # fmt: skip
    failed = [test for test, noted in measuring.tests.items() if not noted["passed"]]
    return {"tests": tests, "imported": masks(measuring.tracer.imported), "left_out": failed}


def masks(hits: Hits) -> dict[str, str]:
    """Lines as the bits of a number, by module."""
    return {_module(file): f"{sum(1 << line for line in lines):x}" for file, lines in hits.items() if lines}


def _module(file: str | Path) -> str:
    return ".".join(("eshkol", *Path(file).relative_to(SOURCES).with_suffix("").parts)).removesuffix(".__init__")


# ---- asking ----------------------------------------------------------------------------------------------------------


class Map:
    """What every test reaches."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.sources = digest(*sources().values())
        kept: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}
        self.files: dict[str, Any] = kept.get("files", {}) if kept.get("sources") == self.sources else {}

    def stale(self, files: Iterable[str]) -> list[str]:
        """The files that must be measured."""
        return [file for file in files if self.files.get(file, {}).get("digest") != self._digest(file)]

    def put(self, file: str, measured: dict[str, Any]) -> None:
        self.files[file] = measured | {"digest": self._digest(file)}

    def save(self) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.path.write_text(json.dumps({"sources": self.sources, "files": self.files}))

    @staticmethod
    def _digest(file: str) -> str:
        """Of a test file and the helpers beside it."""
        path = suites.ROOT / file
        helpers = [other for other in sorted(path.parent.glob("*.py")) if not other.name.startswith("test_")]
        return digest(path, *helpers)

    def reaching(self, mutant: Mutant, files: Iterable[str]) -> list[Reaching]:
        """The tests that reach a mutant; none if no test does."""
        own, around = _bits(mutant.line, mutant.last_line), _bits(*mutant.statement)
        known = [self.files[file] for file in files if file in self.files]
        masks = [
            (test, noted["seconds"], int(noted["hits"].get(mutant.module, "0"), 16))
            for file in known for test, noted in file["tests"].items()
        ]  # fmt: skip
        # A line in the midst of a statement may have no code of its own.
        lines = own if any(mask & own for _, _, mask in masks) else around
        found = [Reaching(test, seconds, True) for test, seconds, mask in masks if mask & lines]
        if any(int(file["imported"].get(mutant.module, "0"), 16) & around for file in known):
            # What a module is made of shows wherever it is used.
            users = [Reaching(test, seconds, False) for test, seconds, mask in masks if mask and not mask & lines]
            found += users
            if not found:
                found = [Reaching(test, seconds, False) for test, seconds, _ in masks]
        return found


def _bits(first: int, last: int) -> int:
    return (1 << (last + 1)) - (1 << first)
