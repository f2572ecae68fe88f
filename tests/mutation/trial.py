"""One trial, in a process of its own: the tests that may notice, on one changed module.

Runs in a child of `workers`, which has imported pytest and the libraries but nothing of Eshkol. An import hook gives
the changed tree for the one module; every other module is as it stands in the working tree.
"""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import importlib.util
import signal
import sys
import time
from dataclasses import dataclass, field
from typing import Any

import pytest

from mutation import suites
from mutation.mutants import Mutant, mutated
from mutation.reach import Reaching
from mutation.workers import Watch

ARGUMENTS = (
    "-x", "-q", "-p", "no:cacheprovider", "-p", "no:randomly", "-m", "not slow", "--no-header", "--tb=line", "-W",
    "ignore",
)  # fmt: skip
# Keep things on disk by the sources' dates, which a mutant does not change.
KEEPERS = ("eshkol.calculus.native", "eshkol.schedule.plan.kept", "eshkol.backends.cpu.translations")
LEAST_SECONDS, MORE = 15.0, 10.0  # a test hangs that takes so many seconds, and so many times as long as before


class Hook(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds the changed module before Python finds the file."""

    def __init__(self, mutant: Mutant | None, salt: str) -> None:
        self.mutant, self.salt = mutant, salt

    def find_spec(self, name: str, path: Any, target: Any = None) -> Any:
        if name not in (*KEEPERS, self.mutant and self.mutant.module):
            return None
        found = importlib.machinery.PathFinder.find_spec(name, path)
        if found is None or found.origin is None:
            return None
        return importlib.util.spec_from_file_location(
            name, found.origin, loader=self, submodule_search_locations=found.submodule_search_locations
        )

    def create_module(self, spec: Any) -> None:
        return None

    def exec_module(self, module: Any) -> None:
        with open(module.__file__, encoding="utf-8") as file:
            source = file.read()
        mutant = self.mutant
        tree: Any = mutated(source, mutant) if mutant is not None and mutant.module == module.__name__ else source
        exec(compile(tree, module.__file__, "exec", dont_inherit=True), module.__dict__)
        if module.__name__ in KEEPERS:
            before = module._source_key
            module._source_key = lambda: f"{before()}\n{self.salt}"


@dataclass(eq=False)  # pytest keeps plugins in sets
class Chosen:
    """Runs the tests that were chosen, quickest first, until one fails or the time is over."""

    order: dict[str, int]
    seconds: dict[str, float]
    until: float  # of the processor's time, so that a busy machine runs as many tests as a quiet one
    watch: Watch  # tells the parent how long the present test may wait for something, and what it is called
    ran: list[str] = field(default_factory=list)
    failed: str | None = None
    why: str = ""
    late: bool = False

    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        items[:] = sorted((i for i in items if i.nodeid in self.order), key=lambda i: self.order[i.nodeid])

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: Any) -> bool | None:
        if time.process_time() > self.until:
            self.late = True
            item.session.shouldstop = "the time is over"
            return True
        allowed = max(LEAST_SECONDS, MORE * self.seconds.get(item.nodeid, 0.0))
        # Without computing: by the clock, since whoever waits uses no time of the processor.
        self.watch(3 * allowed, item.nodeid)
        signal.setitimer(signal.ITIMER_PROF, allowed)  # ends the process, as SIGPROF does by itself
        self.ran.append(item.nodeid)
        return None

    def pytest_runtest_logfinish(self) -> None:
        signal.setitimer(signal.ITIMER_PROF, 0)

    def pytest_runtest_logreport(self, report: Any) -> None:
        if report.failed and self.failed is None:
            self.failed = report.nodeid
            crash = getattr(report.longrepr, "reprcrash", None)
            self.why = f"{report.when}: {crash.message if crash else report.longrepr}"[:300]

    def pytest_collectreport(self, report: Any) -> None:
        if report.failed and self.failed is None:
            self.failed, self.why = report.nodeid, f"collection: {str(report.longrepr)[-300:]}"


def rank(package: str, test: Reaching) -> tuple[int, int]:
    return suites.rank(package, test.test.partition("::")[0], test.seconds, test.direct)


def run(mutant: Mutant | None, tests: list[Reaching], timeout: float, watch: Watch, package: str,
        salt: str) -> dict[str, Any]:  # fmt: skip
    """What the tests say of a mutant, or of nothing changed."""
    sys.meta_path.insert(0, Hook(mutant, salt))
    began = time.process_time()
    seconds = {test.test: test.seconds for test in tests}
    ranks: dict[tuple[tuple[int, int], str], list[str]] = {}
    for test in tests:
        ranks.setdefault((rank(package, test), test.test.partition("::")[0]), []).append(test.test)
    batches = [(key, sorted(ids, key=seconds.__getitem__)) for key, ids in ranks.items()]
    # Within a rank, the file whose quickest test is quickest.
    batches.sort(key=lambda batch: (batch[0][0], seconds[batch[1][0]]))
    ran = 0
    late = False
    for (_, file), ids in batches:
        if time.process_time() - began > timeout:
            late = True
            break
        watch(120.0, file)
        chosen = Chosen({test: k for k, test in enumerate(ids)}, seconds, began + timeout, watch)
        code = pytest.main([*ARGUMENTS, file], plugins=[chosen])
        ran += len(chosen.ran)
        late |= chosen.late
        if chosen.failed is not None:
            return {"outcome": "killed", "by": chosen.failed, "why": chosen.why, "ran": ran}
        if code in (pytest.ExitCode.INTERNAL_ERROR, pytest.ExitCode.USAGE_ERROR):
            if mutant is not None:  # what the tests need cannot be imported; without a mutant it can, as controls show
                return {"outcome": "killed", "by": file, "why": "the tests cannot begin", "ran": ran}
            raise RuntimeError(f"pytest itself failed on {file}")
        if code == pytest.ExitCode.INTERRUPTED and not chosen.late:
            return {"outcome": "killed", "by": file, "why": "interrupted", "ran": ran}
    return {"outcome": "survived", "ran": ran, "late": late}
