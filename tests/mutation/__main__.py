"""python -m mutation: see the package's docstring, and docs/testing.md.

Only this module and `records` print. It imports nothing of Eshkol, and neither do the modules it imports: children do.
"""

from __future__ import annotations

import argparse
import hashlib
import itertools
import json
import os
import sys
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

# Before the libraries are loaded: they start their threads then, and children are forked from this process.
for _name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")
os.environ["CI"] = "1"  # the property tests take the same examples every time

from mutation import workers  # noqa: E402
from mutation.records import Plan, Records  # noqa: E402

GIB = 1 << 30
MOST_GIB = 8.0  # that planning may have: all plans take less than one


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m mutation", description="How many small mistakes the tests notice.")
    add = parser.add_argument
    add("--package", action="append", help="schedule, graph, ops or calculus; may be given several times (all)")
    add(
        "--module",
        action="append",
        help="only mutants of this module, such as eshkol.schedule.kernels.rows; several times",
    )
    add("--sample", type=int, default=100, help="mutants of each package; 0 for all (%(default)s)")
    add("--seed", type=int, default=1, help="which sample (%(default)s)")
    add("--jobs", type=int, default=2, help="processes at once (%(default)s)")
    add("--threads", type=int, default=2, help="threads of Eshkol in each (%(default)s)")
    add(
        "--timeout",
        type=float,
        default=60,
        help="seconds of the processor for a mutant's tests; then it has survived; 0 for no tests (%(default)s)",
    )
    add(
        "--plans",
        type=float,
        default=40,
        help="seconds of the processor for planning what reaches a mutant, before the tests; 0 to leave it out"
        " (%(default)s)",
    )
    add("--tests", action="append", help="only the tests of this file or folder, such as tests/schedule; several times")
    add("--minutes", type=float, default=0, help="minutes after which no mutant is begun; 0 for no end (%(default)s)")
    add("--memory", type=float, default=256, help="GiB that a process may have; 0 for any (%(default)s)")
    add("--out", type=Path, default=Path("build/mutants.jsonl"), help="the results, a line each (%(default)s)")
    add("--map", type=Path, default=Path("build/reach.json"), help="which test reaches which line (%(default)s)")
    add("--cache", type=Path, default=Path("build/mutation/programs"), help="compiled programs (%(default)s)")
    add("--controls", type=int, default=2, help="trials of each package with nothing changed (%(default)s)")
    add("--again", type=Path, help="try the survivors of these results again, instead of a sample")
    add("--measure", action="store_true", help="only find out which test reaches which line")
    add("--list", action="store_true", help="only show the sample")
    return parser.parse_args()


def main() -> int:
    given = arguments()
    if absent := workers.missing():
        print(
            f"the tests cannot run: {', '.join(absent)} missing; put them on PYTHONPATH or install them",
            file=sys.stderr,
        )
        return 2
    from mutation import reach, suites

    packages = given.package or list(reach.PACKAGES)
    if unknown := [p for p in packages if p not in reach.PACKAGES]:
        print(f"no package {', '.join(unknown)}; there are {', '.join(reach.PACKAGES)}", file=sys.stderr)
        return 2
    os.environ["ESHKOL_THREADS"] = str(given.threads)
    os.chdir(suites.ROOT)
    sys.path[:0] = [path for path in (str(suites.ROOT / "src"), str(suites.ROOT / "tests")) if path not in sys.path]
    given.cache = given.cache.absolute()
    given.cache.mkdir(parents=True, exist_ok=True)
    until = time.monotonic() + 60 * given.minutes if given.minutes else float("inf")
    workers.load()
    if "eshkol" in sys.modules:
        print("Eshkol is imported already: no change to it would show", file=sys.stderr)
        return 2
    plan = sampled(given, packages)
    if given.list:
        for package, mutant in plan.tried:
            print(f"{package}: {mutant.id}\n  - {mutant.before}\n  + {mutant.after}")
        return 0
    known = measured(given, packages, until)
    if given.measure:
        return 0
    return judged(given, plan, known, until)


def sampled(given: argparse.Namespace, packages: list[str]) -> Plan:
    from mutation import excluded, mutants, reach

    plan = Plan()
    wanted = None
    if given.again is not None:
        records = [json.loads(line) for line in given.again.read_text().splitlines()]
        wanted = {r["id"] for r in records if r["outcome"] in ("survived", "not reached")}
    samples = []
    for package in packages:
        whole = []
        for module, path in reach.sources([package]).items():
            if not given.module or module in given.module:
                whole += mutants.mutants(module, path.read_text(encoding="utf-8"))
        counted = [mutant for mutant in whole if excluded.reason(mutant) is None]
        plan.made[package] = (len(counted), len(whole) - len(counted))
        if wanted is not None:
            chosen = [mutant for mutant in counted if mutant.id in wanted]
        else:
            # By a hash of each, not by chance: what is excluded or added later leaves the rest of a sample as it is.
            counted.sort(key=lambda mutant: hashlib.sha256(f"{given.seed} {mutant.id}".encode()).digest())
            chosen = counted[: given.sample] if given.sample else counted
        samples.append([(package, mutant) for mutant in chosen])
    # In turns, so that a run that is cut short has tried as many of each.
    plan.tried = [one for turn in itertools.zip_longest(*samples) for one in turn if one is not None]
    return plan


def measured(given: argparse.Namespace, packages: list[str], until: float) -> Any:
    """The map of what tests and planned functions reach, after measuring what has changed."""
    from mutation import plans, reach

    known = reach.Map(given.map)
    wanted = [] if given.timeout <= 0 else known.stale(_files(given, packages))
    jobs: list[tuple[Any, workers.Job]] = [(file, partial(reach.measure, file)) for file in wanted]
    first = _planned(given, packages) and (known.stale([plans.FILE]) or known.files[plans.FILE]["left_out"])
    groups = plans.groups() if first else []
    jobs = [*((None, partial(plans.measure, group)) for group in groups), *jobs]
    if jobs:
        print(f"measuring what {len(wanted)} test files and {sum(map(len, groups))} plans reach ...", flush=True)
    results = workers.run(jobs, given.cache, given.jobs, links=False, memory=0, limit=300.0, until=until)
    parts = []
    for done, (file, found) in enumerate(results, 1):
        if "tests" not in found:
            print(f"  {file or plans.FILE}: not measured: {found.get('why', '')}", flush=True)
            continue
        left = f", {len(found['left_out'])} left out (skipped or failed)" if found["left_out"] else ""
        what = f"{file}: {len(found['tests'])} tests" if file else f"{plans.FILE}: {len(found['tests'])} functions"
        print(f"  [{done}/{len(jobs)}] {what}, {found['seconds']} s{left}", flush=True)
        if file is not None:
            known.put(file, found)
        else:
            parts.append(found)
            if len(parts) == len(groups):
                known.put(plans.FILE, plans.merged(parts))
        known.save()
    return known


def _files(given: argparse.Namespace, packages: list[str]) -> list[str]:
    """The test files that judge these packages."""
    from mutation import suites

    places = [place.rstrip("/") for place in given.tests or ()]
    found = suites.files(packages)
    return [file for file in found if not places or any(file == p or file.startswith(f"{p}/") for p in places)]


def _planned(given: argparse.Namespace, packages: list[str]) -> bool:
    """Whether some of the packages are judged by plans first."""
    from mutation import plans

    return given.plans > 0 and not set(plans.PACKAGES).isdisjoint(packages)


def judged(given: argparse.Namespace, plan: Plan, known: Any, until: float) -> int:
    from mutation import table

    records = Records(plan, given.out)
    left = _by_plans(given, plan, known, until, records) if given.plans > 0 else dict.fromkeys(range(len(plan.tried)))
    if given.timeout > 0:
        _by_tests(given, plan, known, until, records, left)
    else:
        for number, found in left.items():
            if found is not None:
                records.put(number, 0, found, [])
    counted = records.counted()
    print()
    for record in counted:
        if record["outcome"] in ("survived", "not reached"):
            print(table.survivor(record))
        elif record["outcome"] == "error":
            print(f"{record['id']}: the trial itself failed\n{record['why']}")
    print()
    print(table.kinds(counted))
    print()
    print(table.table(counted, plan.made))
    if len(counted) < len(plan.tried):
        print(f"cut by time: of {len(plan.tried)} the first {len(counted)} count, {len(records.known)} were judged")
    if records.broken:
        print(
            f"{len(records.broken)} trials with nothing changed failed: the figures cannot be trusted", file=sys.stderr
        )
        print(*records.broken, sep="\n", file=sys.stderr)
    return 1 if records.broken or any(r["outcome"] == "error" for r in counted) else 0


def _by_plans(given: argparse.Namespace, plan: Plan, known: Any, until: float,
              records: Records) -> dict[int, dict[str, Any] | None]:  # fmt: skip
    """The first stage: those that it leaves to the tests, with what it says of them."""
    from mutation import plans

    left: dict[int, dict[str, Any] | None] = dict.fromkeys(range(len(plan.tried)))
    trials: list[Any] = []
    controls = dict.fromkeys(plan.made, given.controls)
    reaching = {}
    for number, (package, mutant) in enumerate(plan.tried):
        if package not in plans.PACKAGES:
            continue
        reaching[number] = known.reaching(mutant, [plans.FILE])
        if not reaching[number]:
            left[number] = {"outcome": "not reached", "planned": 0}
            continue
        if controls[package]:
            controls[package] -= 1
            trials.append((-1 - number, None, reaching[number]))
        trials.append((number, mutant, reaching[number]))
    if not trials:
        return left
    results = plans.judged(
        trials, given.plans, given.cache, given.jobs, int(min(given.memory or MOST_GIB, MOST_GIB) * GIB), until
    )
    for number, found in results:
        if number < 0:
            records.control(plan.tried[-1 - number][0], found)
        elif found["outcome"] == "survived":
            left[number] = found
        else:
            del left[number]
            records.put(number, len(reaching[number]), found, [])
    return left


def _by_tests(given: argparse.Namespace, plan: Plan, known: Any, until: float, records: Records,
              left: dict[int, dict[str, Any] | None]) -> None:  # fmt: skip
    """The tests, for those that are left."""
    from mutation import trial

    def jobs() -> Iterator[tuple[Any, workers.Job]]:
        controls = dict.fromkeys(plan.made, given.controls)
        for number in left:
            package, mutant = plan.tried[number]
            tests = known.reaching(mutant, _files(given, [package]))
            if controls[package] and tests:
                controls[package] -= 1
                salt = f"control {package} {controls[package]}"
                yield (None, package, tests), partial(_trial, None, tests, given.timeout, package, salt)
            job = partial(_trial, mutant, tests, given.timeout, package, mutant.id) if tests else partial(_nothing)
            yield (number, package, tests), job

    results = workers.run(
        jobs(), given.cache, given.jobs, links=True, memory=int(given.memory * GIB), limit=120.0, until=until
    )
    for (number, package, tests), found in results:
        if number is None:
            records.control(package, found)
            continue
        before = left[number] or {"outcome": "not reached", "planned": 0}
        found["planned"] = before["planned"]
        if found["outcome"] == "not reached" and before["outcome"] == "survived":
            found["outcome"] = "survived"  # by plans alone
        ordered = sorted(tests, key=lambda test: (trial.rank(package, test), test.seconds))
        records.put(number, len(tests), found, [test.test for test in ordered[:20]])


def _trial(mutant: Any, tests: Any, timeout: float, package: str, salt: str, watch: Any) -> dict[str, Any]:
    from mutation import trial

    return trial.run(mutant, tests, timeout, watch, package, salt)


def _nothing(watch: Any) -> dict[str, Any]:
    return {"outcome": "not reached", "ran": 0}


if __name__ == "__main__":
    sys.exit(main())
