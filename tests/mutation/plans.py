"""The first stage: whether the plans of the kept functions are others with a mutant than `plan_sizes.txt` has them.

Comes in: mutants of the packages that make plans. Goes out: what became of each, without a test being run. A process
imports the compiler once; for every mutant it forks, changes the functions that the mutant is in (`swapped`), plans
those of the kept functions that reach its line, the quick ones first, and ends with the first plan that is another, or
that cannot be made. A mutant of what is made while a module is imported is judged by a process that imports it anew.
What survives here the tests judge.
"""

from __future__ import annotations

import gc
import importlib
import itertools
import json
import os
import signal
import sys
import time
import traceback
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from mutation import reach, suites, swapped, workers
from mutation.mutants import Mutant
from mutation.reach import Reaching
from mutation.trial import Hook
from mutation.workers import Watch

PACKAGES = ("schedule", "graph")  # whose mutants show in plans
FILE = "tests/schedule/plan_sizes.py"  # what the functions are called in the map of what reaches which line
GROUP = 12  # functions that one process measures
LEAST_SECONDS, MORE = 10.0, 10.0  # planning hangs that takes so many seconds, and so many times as long as before
WHY = 300  # letters of an error


def load() -> Any:
    """The planned functions, with all of the compiler that they may need."""
    folder = str(suites.ROOT / "tests" / "schedule")
    if folder not in sys.path:
        sys.path.insert(0, folder)
    found = importlib.import_module("plan_sizes")
    for name in reach.sources():
        importlib.import_module(name)
    return found


def expected() -> dict[str, list[str]]:
    """What is kept of each function: a text for each of its plans."""
    text = (suites.ROOT / "tests" / "schedule" / "plan_sizes.txt").read_text(encoding="utf-8")
    return {name: kept.split(" | ") for name, kept in (line.split(": ", 1) for line in text.splitlines())}


def difference(planned: Any, name: str, kept: list[str]) -> str | None:
    """The first plan of a function that is another than is kept, or why there is none."""
    from eshkol.schedule.cache import nothing_kept

    with nothing_kept():
        for before, each in itertools.zip_longest(kept, planned.plans(name)):
            if before is None or each is None:
                return f"{name}: another number of plans"
            if each.kept != before:
                return f"{each.way}: was {before}, is {each.kept}"
    return None


# ---- measuring -------------------------------------------------------------------------------------------------------


def measure(names: list[str], watch: Watch) -> dict[str, Any]:
    """What the planning of some functions reaches: runs in a child, with nothing imported."""
    tracer = reach.Tracer()
    tracer.start()
    planned, kept = load(), expected()
    for file, lines in tracer.again().items():
        tracer.imported.setdefault(file, set()).update(lines)
    tests, wrong = {}, []
    for name in names:
        watch(300.0, name)
        tracer.again()
        began = time.process_time()
        changed = difference(planned, name, kept[name])
        seconds, hits = time.process_time() - began, tracer.again()
        if changed is None:
            tests[name] = {"seconds": round(seconds, 3), "hits": reach.masks(hits)}
        else:
            wrong.append(changed)
    sys.settrace(None)
    return {"tests": tests, "imported": reach.masks(tracer.imported), "left_out": wrong}


def merged(parts: Iterable[dict[str, Any]]) -> dict[str, Any]:
    """What several processes have measured, as one."""
    whole: dict[str, Any] = {"tests": {}, "imported": {}, "left_out": [], "seconds": 0.0}
    for part in parts:
        whole["tests"] |= part["tests"]
        whole["left_out"] += part["left_out"]
        whole["seconds"] = round(whole["seconds"] + part["seconds"], 2)
        for module, mask in part["imported"].items():
            whole["imported"][module] = f"{int(whole['imported'].get(module, '0'), 16) | int(mask, 16):x}"
    return whole


def groups() -> list[list[str]]:
    """The functions in the groups that are measured together."""
    names = [*expected()]
    return [names[first : first + GROUP] for first in range(0, len(names), GROUP)]


# ---- judging ---------------------------------------------------------------------------------------------------------


def judged(mutants: list[tuple[int, Mutant | None, list[Reaching]]], limit: float, cache: Path, count: int, memory: int,
           until: float) -> Iterator[tuple[int, dict[str, Any]]]:  # fmt: skip
    """What became of each, by its number, as it is known; None is a control: nothing is changed.

    The work is done below a process of its own, which has imported the compiler.
    """
    again = set()  # those that show only in a process that imports the changed module
    reading, writing = os.pipe()
    sys.stdout.flush()
    process = os.fork()
    if process == 0:
        _served(writing, mutants, limit, cache, count, memory, until)
    os.close(writing)
    with os.fdopen(reading, encoding="utf-8") as lines:
        for line in lines:
            number, found = json.loads(line)
            if found["outcome"] == "imported":
                again.add(number)
            else:
                yield number, found
    _, status = os.waitpid(process, 0)
    if status:
        raise RuntimeError("the process that plans has failed")
    jobs = [
        (number, partial(_anew, mutant, reaching, limit)) for number, mutant, reaching in mutants if number in again
    ]
    yield from workers.run(jobs, cache, count, links=True, memory=memory, limit=120.0, until=until)


def _served(writing: int, mutants: list[tuple[int, Mutant | None, list[Reaching]]], limit: float, cache: Path,
            count: int, memory: int, until: float) -> None:  # fmt: skip
    """Import the compiler, and fork for every mutant."""
    code = 1
    try:
        planned, kept = load(), expected()
        gc.collect()
        swapped.remember()
        gc.freeze()  # children share what is there
        jobs = ((number, partial(_swapped, planned, kept, mutant, reaching, limit))
                for number, mutant, reaching in mutants)  # fmt: skip
        with os.fdopen(writing, "w", encoding="utf-8") as lines:
            for found in workers.run(jobs, cache, count, links=True, memory=memory, limit=120.0, until=until):
                lines.write(json.dumps(found) + "\n")
                lines.flush()
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(code)


def _swapped(planned: Any, kept: dict[str, list[str]], mutant: Mutant | None, reaching: list[Reaching], limit: float,
             watch: Watch) -> dict[str, Any]:  # fmt: skip
    """Judge in a process that has imported everything."""
    if mutant is None:
        if not swapped.renew(reach.sources(PACKAGES)):
            raise RuntimeError("no function was found that could be changed")
    elif not all(one.direct for one in reaching) or not swapped.swap(mutant):
        return {"outcome": "imported"}
    return _judged(planned, kept, reaching, limit, watch)


def _anew(mutant: Mutant | None, reaching: list[Reaching], limit: float, watch: Watch) -> dict[str, Any]:
    """Judge in a process that has imported nothing yet."""
    sys.meta_path.insert(0, Hook(mutant, mutant.id if mutant is not None else FILE))
    try:
        planned, kept = load(), expected()
    except Exception as error:
        return {"outcome": "killed", "by": FILE, "why": f"imported: {error!r}"[:WHY], "planned": 0}
    return _judged(planned, kept, reaching, limit, watch)


def _judged(planned: Any, kept: dict[str, list[str]], reaching: list[Reaching], limit: float,
            watch: Watch) -> dict[str, Any]:  # fmt: skip
    began = time.process_time()
    for done, one in enumerate(sorted(reaching, key=lambda one: (not one.direct, one.seconds)), 1):
        if time.process_time() - began > limit:
            return {"outcome": "survived", "planned": done - 1, "late": True}
        allowed = max(LEAST_SECONDS, MORE * one.seconds)
        name = f"{FILE}::{one.test}"
        watch(3 * allowed, name)
        signal.setitimer(signal.ITIMER_PROF, allowed)
        try:
            why = difference(planned, one.test, kept[one.test])
        except Exception as error:
            why = repr(error)
        signal.setitimer(signal.ITIMER_PROF, 0)
        if why is not None:
            return {"outcome": "killed", "by": name, "why": why[:WHY], "planned": done}
    return {"outcome": "survived", "planned": len(reaching)}
