"""Many random programs: `python -m random_programs --count 10000 --seed 1 --jobs 2 --backend cpu,reference`.

Each job is a process that lives long, so that what one program leaves in a cache meets the next; with `--fresh N` it is
replaced after N programs. Jobs differ in backend, in the number of threads, in whether what is compiled is kept on disk
and in whether LLVM optimizes: it does in one of four, since it takes several times as long as everything else
(ESHKOL_OPTIMIZE and ESHKOL_CACHE_BYTES decide for all). What fails is made small, tried again in a process of its own,
and printed; then the programs in a second of each backend and the processor's milliseconds for each of them. The exit
code says whether anything failed.
"""

from __future__ import annotations

import argparse
import gc
import itertools
import json
import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

TESTS = Path(__file__).resolve().parent.parent
BACKENDS = (
    "cpu", "discrete", "blocks", "card", "card:1", "reference", "cuda", "opencl", "webgpu", "vulkan", "wasm", "xla",
)  # fmt: skip
HOWS = (  # threads, whether LLVM optimizes, and whether what was compiled is kept on disk, for whoever comes next
    {"ESHKOL_THREADS": "1", "ESHKOL_OPTIMIZE": "1"},
    {"ESHKOL_THREADS": "3", "ESHKOL_OPTIMIZE": "0", "ESHKOL_CACHE_BYTES": "0"},
    {"ESHKOL_THREADS": "1", "ESHKOL_OPTIMIZE": "0"},
    {"ESHKOL_THREADS": "3", "ESHKOL_OPTIMIZE": "0", "ESHKOL_CACHE_BYTES": "0"},
)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m random_programs", description=__doc__)
    parser.add_argument("--count", type=int, default=1000, help="programs in all")
    parser.add_argument("--seed", type=int, default=0, help="the first of their numbers")
    parser.add_argument("--jobs", type=int, default=1, help="processes at a time")
    parser.add_argument("--fresh", type=int, default=2000, help="programs of one process")
    parser.add_argument("--ways", type=int, default=2, help="ways in which each is computed")
    parser.add_argument("--most", type=int, default=10, help="steps of each, at most")
    parser.add_argument("--backend", default="cpu,reference", type=_backends, help=f"some of {', '.join(BACKENDS)}")
    parser.add_argument("--minutes", type=float, default=1e9, help="stop after so long")
    parser.add_argument("--work", help=argparse.SUPPRESS)  # of a process: first, count, backend
    return parser.parse_args()


def _backends(text: str) -> list[str]:
    found = text.split(",")
    if unknown := [name for name in found if name not in BACKENDS]:
        raise argparse.ArgumentTypeError(f"there is no backend {unknown[0]!r}; there are {', '.join(BACKENDS)}")
    return found


def work(given: argparse.Namespace) -> None:
    """A process: some programs, one line of JSON for each that fails, and one at the end."""
    began = time.monotonic()
    sys.path[:0] = [str(TESTS), str(TESTS / "ops")]
    from random_programs.shrinking import smallest
    from random_programs.trying import Tally, attempt

    gc.collect()
    gc.freeze()  # what was imported is not looked at again and again: a tenth of the time
    gc.set_threshold(50_000, 20, 100)
    first, count, backend = given.work.split(",")
    tally, end = Tally(), began + given.minutes * 60
    for seed in range(int(first), int(first) + int(count)):
        if time.monotonic() > end:
            break
        print(json.dumps({"at": seed}), flush=True)
        failure = attempt(seed, backend, given.ways, tally, given.most)
        if failure is not None:
            print(json.dumps({"seed": seed, "backend": backend, "shown": str(smallest(failure))}), flush=True)
    counts = {"programs": tally.programs, "steps": tally.steps, "ways": tally.ways, "skipped": tally.skipped}
    print(json.dumps({**counts, "backend": backend, "busy": time.process_time(), "took": time.monotonic() - began}))


def process(
    first: int, count: int, backend: str, how: dict[str, str], given: argparse.Namespace, end: float
) -> list[dict[str, Any]]:
    """What a process found."""
    left = (end - time.monotonic()) / 60
    if left <= 0:
        return []
    command = [
        sys.executable, "-m", "random_programs", "--work", f"{first},{count},{backend}", "--ways", str(given.ways),
        "--most", str(given.most), "--minutes", str(left),
    ]  # fmt: skip
    place = os.pathsep.join([str(TESTS), os.environ.get("PYTHONPATH", "")])
    environment = {**how, **os.environ, "ESHKOL_THREADS": how["ESHKOL_THREADS"], "PYTHONPATH": place}
    environment["PYTHONFAULTHANDLER"] = "1"  # a process that is ended by a signal says where it was
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    found = [line for line in lines if "at" not in line]
    if done.returncode:
        last = max((line["at"] for line in lines if "at" in line), default=first)
        began = f"of the programs {first} to {first + count - 1} on {backend}, with {how}, ended with {done.returncode}"
        found.append({
            "seed": last, "backend": backend, "shown": f"a process {began} at {last}: {done.stderr[-3000:]}"
        })  # fmt: skip
    return found


def main() -> int:
    given = arguments()
    if given.work:
        work(given)
        return 0
    end = time.monotonic() + given.minutes * 60
    starts = range(given.seed, given.seed + given.count, given.fresh)
    kinds = itertools.cycle((backend, how) for how in HOWS for backend in given.backend)
    totals: dict[str, int] = {"programs": 0, "steps": 0, "computed": 0, "skipped": 0, "failed": 0}
    spent: dict[str, list[float]] = {backend: [0, 0.0, 0.0] for backend in given.backend}
    with ThreadPoolExecutor(given.jobs) as pool:
        tasks = [
            (kind, pool.submit(process, first, min(given.fresh, given.seed + given.count - first), *kind, given, end))
            for first, kind in zip(starts, kinds, strict=False)
        ]
        for (_, how), task in tasks:
            for line in task.result():
                if "shown" in line:
                    totals["failed"] += 1
                    again = process(line["seed"], 1, line["backend"], how, given, time.monotonic() + 300)
                    alone = any("shown" in x for x in again)
                    print(line["shown"], "\n  fails", "alone" if alone else "only after others", "\n", flush=True)
                else:
                    totals["programs"] += line["programs"]
                    totals["steps"] += line["steps"]
                    totals["computed"] += sum(line["ways"].values())
                    totals["skipped"] += sum(line["skipped"].values())
                    for k, name in enumerate(("programs", "took", "busy")):
                        spent[line["backend"]][k] += line[name]
            print(json.dumps(totals), file=sys.stderr, flush=True)
    print(json.dumps(totals))
    for backend, (programs, took, busy) in spent.items():
        if programs:
            speed = f"{programs / took:.1f} a second of one job, {1000 * busy / programs:.1f} ms of processor each"
            print(f"{backend}: {programs:.0f} programs, {speed}")
    return 1 if totals["failed"] else 0


if __name__ == "__main__":
    sys.exit(main())
