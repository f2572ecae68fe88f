"""python -m mutation: see the package's docstring, and docs/testing.md.

Only this module prints. It imports nothing of Eshkol, and neither do the modules it imports: children do.
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

GIB = 1 << 30


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
        help="seconds of the processor for a mutant's tests; then it has survived (%(default)s)",
    )
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


class Plan:
    """What is tried, and how many mutants there are."""

    def __init__(self) -> None:
        self.tried: list[tuple[str, Any]] = []
        self.made: dict[str, tuple[int, int]] = {}  # by package: mutants that count, and excluded ones


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
    """The map of what tests reach, after measuring what has changed."""
    from mutation import reach, suites

    known = reach.Map(given.map)
    stale = known.stale(suites.files(packages))
    if stale:
        print(f"measuring what {len(stale)} test files reach ...", flush=True)
    jobs = [(file, partial(reach.measure, file)) for file in stale]
    results = workers.run(jobs, given.cache, given.jobs, links=False, memory=0, limit=300.0, until=until)
    for done, (file, found) in enumerate(results, 1):
        if "tests" not in found:
            print(f"  {file}: not measured: {found.get('why', '')}", flush=True)
            continue
        left = f", {len(found['left_out'])} left out (skipped or failed)" if found["left_out"] else ""
        print(f"  [{done}/{len(stale)}] {file}: {len(found['tests'])} tests, {found['seconds']} s{left}", flush=True)
        known.put(file, found)
        known.save()
    return known


def judged(given: argparse.Namespace, plan: Plan, known: Any, until: float) -> int:
    from mutation import suites, table, trial

    given.out.parent.mkdir(parents=True, exist_ok=True)
    records: list[dict[str, Any]] = []
    broken: list[str] = []  # trials with nothing changed that failed, and how

    def jobs() -> Iterator[tuple[Any, workers.Job]]:
        left = dict.fromkeys(plan.made, given.controls)
        for package, mutant in plan.tried:
            tests = known.reaching(mutant, suites.files([package]))
            if left[package] and tests:
                left[package] -= 1
                yield (
                    (package, None, tests),
                    partial(_trial, None, tests, given.timeout, package, f"control {package} {left[package]}"),
                )
            if tests:
                yield (package, mutant, tests), partial(_trial, mutant, tests, given.timeout, package, mutant.id)
            else:
                yield (package, mutant, tests), partial(_nothing)

    with open(given.out, "w", encoding="utf-8") as file:
        results = workers.run(
            jobs(), given.cache, given.jobs, links=True, memory=int(given.memory * GIB), limit=120.0, until=until
        )
        for (package, mutant, tests), found in results:
            if mutant is None:
                if found["outcome"] != "survived":
                    broken.append(table.control(package, found))
                    print(broken[-1], flush=True)
                continue
            record = {
                "package": package, "id": mutant.id, "line": mutant.line, "operator": mutant.operator,
                "file": f"src/{mutant.module.replace('.', '/')}.py", "before": mutant.before, "after": mutant.after,
                "reaching": len(tests), **found,
            }  # fmt: skip
            if found["outcome"] in ("survived", "not reached"):
                ordered = sorted(tests, key=lambda test: (trial.rank(package, test), test.seconds))
                record["tests"] = [test.test for test in ordered[:20]]
            records.append(record)
            file.write(json.dumps(record) + "\n")
            file.flush()
            print(
                f"[{len(records)}/{len(plan.tried)}] {found['outcome']} ({found['seconds']} s) {mutant.id}", flush=True
            )
    print()
    for record in records:
        if record["outcome"] in ("survived", "not reached"):
            print(table.survivor(record))
        elif record["outcome"] == "error":
            print(f"{record['id']}: the trial itself failed\n{record['why']}")
    print()
    print(table.kinds(records))
    print()
    print(table.table(records, plan.made))
    if broken:
        print(f"{len(broken)} trials with nothing changed failed: the figures cannot be trusted", file=sys.stderr)
        print(*broken, sep="\n", file=sys.stderr)
    return 1 if broken or any(r["outcome"] == "error" for r in records) else 0


def _trial(mutant: Any, tests: Any, timeout: float, package: str, salt: str, watch: Any) -> dict[str, Any]:
    from mutation import trial

    return trial.run(mutant, tests, timeout, watch, package, salt)


def _nothing(watch: Any) -> dict[str, Any]:
    return {"outcome": "not reached", "ran": 0}


if __name__ == "__main__":
    sys.exit(main())
