"""Very many random programs through the whole compiler: several processes, until a time has passed.

    python tests/lang/fuzz_mass.py --seconds 500 --workers 16 --seed 1000000 --oracle scheme --out DIR

Each worker compiles its programs with full optimization, many in one process, and compares what they write with what
another Scheme writes; some are run again as twins (fuzz_programs.py), compiled as at a prompt. Other workers do so with
a collector that runs all the time, or try texts that are mutated programs (fuzz.py), which need only end with a value
or an error for people. A worker that dies or hangs is started again behind what it was at, which is told of.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import fuzz
from fuzz_programs import PRELUDES, programs

GROUP, BATCH = 200, 20  # programs for one process of the oracle, and for one compilation
WRONG = 0.01  # the share of expressions with a wrong type
LIFE = 2000  # cases after which a worker ends, for its memory
SILENT = 90.0  # seconds without a word after which a worker is ended
STRIDE = 10_000_000  # between the seeds of workers


def text_of(seed: int, count: int, twin: int | None = None) -> str:
    """Programs; one batch in eighty is of large ones."""
    small = (seed // BATCH) % 80 != 7
    return programs(seed, count, twin, WRONG, small)


def oracle_values(command: str, seed: int) -> dict[str, str]:
    """What another Scheme says about a group of programs."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "group.scm"
        texts = [text_of(first, BATCH) for first in range(seed, seed + GROUP, BATCH)]
        path.write_text(PRELUDES["chez"] + "\n".join(texts))
        done = subprocess.run([command, "--script", str(path)], capture_output=True, text=True, timeout=300)
    return fuzz.values(done.stdout)


class Worker:
    """What one process does: cases from a seed on, and notes of what went wrong."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options, self.done = options, dict[str, int]()
        self.session: Any = None
        self.end = time.time() + options.seconds
        self.report = Path(options.out) / f"worker{options.worker}.jsonl"

    def note(self, **what: Any) -> None:
        with self.report.open("a") as file:
            print(json.dumps(what), file=file)

    def at(self, seed: int, what: str) -> None:
        Path(f"{self.report}.at").write_text(f"{seed} {what}")

    def count(self, what: str, cases: int = 1) -> None:
        self.done[what] = self.done.get(what, 0) + cases

    def written(self, work: Callable[[], Any]) -> str:
        """What a piece of work writes."""
        from eshkol.runtime.scheme import Root

        machine = self.session.machine
        port, one = Root(machine, machine.call("open-output-string")), machine.fixnum(1)
        before = Root(machine, machine.call("%current-port", one))
        machine.call("%set-current-port!", one, port.get())
        timer = fuzz.Interrupter(self.session, 60.0)
        try:
            work()
        finally:
            timer.stop()
            machine.call("%set-current-port!", one, before.get())
        text: str = machine.text(machine.call("get-output-string", port.get()))
        return text

    def fresh_session(self) -> None:
        from eshkol.session import Session

        if self.session is not None:
            self.session.close()
        self.session = Session(heap_limit=1 << 31)
        self.session.evaluate(PRELUDES["eshkol"])

    def values(self, seed: int, what: str, text: str) -> dict[str, str]:
        """What the programs of a batch write."""
        import traceback

        session: Any = self.session

        def run() -> None:
            if what == "twin":
                session.evaluate(text)
            else:
                session.run_text(PRELUDES["eshkol"] + text)

        try:
            return fuzz.values(self.written(run))
        except BaseException as error:
            self.note(
                seed=seed,
                what=what,
                error=f"{type(error).__name__}: {error}"[:400],
                trace=traceback.format_exc()[-600:],
            )
            return {}

    def run_programs(self, seed: int) -> int:
        """A group of programs; the next seed."""
        wanted = oracle_values(self.options.oracle, seed) if self.options.oracle else None
        for first in range(seed, seed + GROUP, BATCH):
            if time.time() > self.end:
                break
            if self.session is None or first % GROUP == 0:
                self.fresh_session()
            self.at(first, "programs")
            found = self.values(first, "programs", text_of(first, BATCH))
            kinds = [("programs", found, wanted)] if wanted is not None else []
            if wanted is None or (first // BATCH) % 5 == 2:
                self.at(first, "twin")
                again = self.values(first, "twin", text_of(first, BATCH, twin=1))
                kinds.append(("twin", again, found if wanted is None else wanted))
            for what, own, other in kinds:
                for number in range(first, first + BATCH):
                    a, b = own.get(str(number)), other.get(str(number))
                    if a is None or a != b:
                        self.note(seed=number, what=what, own=str(a)[:3000], other=str(b)[:3000])
                self.count(what, BATCH)
        return seed + GROUP

    def run_garbage(self, seed: int) -> int:
        self.at(seed, "garbage")
        log = Path(f"{self.report}.text")
        tally: dict[str, int] = {}
        for defect in fuzz.try_garbage(seed, 100, 1.0, log, tally):
            self.note(seed=seed, what="garbage", error=defect)
        self.count("garbage", 100)
        for what, cases in tally.items():
            self.count(what, cases)
        return seed + 100

    def work(self) -> None:
        from eshkol.lang.deep import mark_deep
        from eshkol.runtime.worker import on_large_stack

        seed, last = self.options.seed, self.options.seed + LIFE
        step = self.run_garbage if self.options.what == "garbage" else self.run_programs

        def on_thread() -> None:
            nonlocal seed
            mark_deep()
            while time.time() < self.end and seed < last:
                seed = step(seed)
            if self.session is not None:
                self.session.close()

        if self.options.what == "garbage":
            while time.time() < self.end and seed < last:
                seed = step(seed)
        else:
            on_large_stack(on_thread)
        self.note(done=self.done, seed=seed)


def one(options: argparse.Namespace, number: int, kind: str, seed: int, seconds: float) -> subprocess.Popen[bytes]:
    environment = os.environ | {"ESHKOL_CACHE_DIR": str(Path(options.cache) / f"cache{number}")}
    if kind == "stress":
        environment["ESHKOL_GC_STRESS"] = "97"
    words = ["--worker", str(number), "--what", kind, "--seed", str(seed), "--seconds", str(seconds)]
    words += ["--out", options.out, "--oracle", options.oracle]
    log = (Path(options.out) / f"worker{number}.log").open("ab")
    return subprocess.Popen(
        [sys.executable, __file__, *words], env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log
    )


def lead(options: argparse.Namespace) -> None:
    """Start workers, and start them again."""
    end = time.time() + options.seconds
    kinds = ["garbage" if n % 16 == 1 else "stress" if n % 8 == 2 else "programs" for n in range(options.workers)]
    seeds = [options.seed + STRIDE * n for n in range(options.workers)]
    running: dict[int, subprocess.Popen[bytes]] = {}
    began: dict[int, float] = {}
    crashes = []
    while time.time() < end + 60:
        for number, kind in enumerate(kinds):
            child, at = running.get(number), Path(options.out) / f"worker{number}.jsonl.at"
            if child is not None and child.poll() is None:
                if at.exists() and time.time() - max(at.stat().st_mtime, began[number]) > SILENT:
                    child.kill()
                continue
            if child is not None:
                report = at.with_suffix("")
                last = json.loads(report.read_text().splitlines()[-1]) if report.exists() else {}
                if child.returncode == 0 and "done" in last:
                    seeds[number] = last["seed"]
                else:
                    place = at.read_text() if at.exists() else "-"
                    text = Path(f"{report}.text")
                    case = text.read_text(errors="replace") if kind == "garbage" and text.exists() else ""
                    crashes.append({"worker": number, "kind": kind, "rc": child.returncode, "at": place, "text": case})
                    seeds[number] = (
                        max(seeds[number], int(place.split()[0]) if place != "-" else 0) // GROUP * GROUP + GROUP
                    )
                del running[number]
            if time.time() < end - 5:
                began[number] = time.time()
                running[number] = one(options, number, kind, seeds[number], end - time.time())
        if not running:
            break
        time.sleep(0.3)
    for child in running.values():
        child.kill()
    summary(options, crashes)


def summary(options: argparse.Namespace, crashes: list[dict[str, Any]]) -> None:
    counts: dict[str, int] = {}
    defects = []
    for path in sorted(Path(options.out).glob("worker*.jsonl")):
        stress = ""
        for line in path.read_text().splitlines():
            entry = json.loads(line)
            for what, cases in entry.get("done", {}).items():
                counts[what + stress] = counts.get(what + stress, 0) + cases
            if "done" not in entry:
                defects.append(entry | {"worker": path.stem})
    whole = {"counts": counts, "crashes": crashes, "defects": defects}
    (Path(options.out) / "summary.json").write_text(json.dumps(whole, indent=1))
    print(json.dumps(counts), f"{len(crashes)} crashes, {len(defects)} defects")
    for crash in crashes[:10]:
        print(str(crash)[:300])
    for defect in defects[:30]:
        print(str(defect)[:500])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--seed", type=int, default=1_000_000)
    parser.add_argument("--oracle", default="", help="the command of a Scheme")
    parser.add_argument("--out", default=tempfile.gettempdir())
    parser.add_argument("--cache", default=tempfile.gettempdir())
    parser.add_argument("--worker", type=int)
    parser.add_argument("--what", default="programs")
    options = parser.parse_args()
    Path(options.out).mkdir(parents=True, exist_ok=True)
    if options.worker is None:
        lead(options)
    else:
        Worker(options).work()


if __name__ == "__main__":
    main()
