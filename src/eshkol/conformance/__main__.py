"""`python -m eshkol.conformance MACHINE`: every instruction and every row of the op table there, and what came out.

Instructions come first, each on all its types. Then the first sample of every row, forward and its gradient, then the
second of every row, and so on, until all are done or the time is over. What a machine refuses by name is counted apart.
The exit code is 1 where anything failed.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from eshkol.backends.base import Backend
from eshkol.conformance.checks import cases_of, forward, gradient, gradient_case
from eshkol.conformance.instructions import instruction, instruction_cases
from eshkol.conformance.outcomes import FAIL, PASS, REFUSED, Outcome
from eshkol.conformance.samples import rows
from eshkol.ops.row import Op
from eshkol.tensors.devices import open_backend

LOST = "has to be restarted"  # what the error of a device says that answers no more
KINDS = ("instruction", "forward", "gradient")


def main(given: Sequence[str] | None = None) -> int:
    """Compare a machine with the interpreters; 0 where nothing failed."""
    parser = argparse.ArgumentParser(prog="python -m eshkol.conformance", description=__doc__.split("\n")[0])
    parser.add_argument("machine", help="a device: cuda, cuda:1, opencl, vulkan, cpu, discrete, blocks, reference")
    parser.add_argument("--only", nargs="+", metavar="NAME", help="these instructions and rows alone")
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=KINDS, help="what is compared")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="begin nothing after so long")
    parser.add_argument("--samples", type=int, default=1 << 30, help="so many of each row, in any dtype")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write every outcome there")
    options = parser.parse_args(given)
    backend = open_backend(options.machine)
    work = [(name, run) for name, run in _work(backend, options.kinds, options.samples) if _chosen(name, options.only)]
    unknown = set(options.only or ()) - {name.split()[0] for name, _ in work}
    if unknown:
        parser.error(f"there is no instruction or row {', '.join(sorted(unknown))}")
    outcomes: list[Outcome] = []
    start, complete = time.monotonic(), True
    for _, run in work:
        if time.monotonic() - start > options.seconds:
            complete = False
            break
        outcome = run()
        outcomes.append(outcome)
        if outcome.result == FAIL:
            print(outcome, flush=True)
        if LOST in outcome.message:
            print("the device is lost: nothing more can be compared in this process", flush=True)
            complete = False
            break
    _summary(outcomes, backend.name, time.monotonic() - start, complete)
    if options.json is not None:
        found = [{"name": o.name, "kind": o.what, "result": o.result, "message": o.message} for o in outcomes]
        options.json.write_text(
            json.dumps({"machine": backend.name, "complete": complete, "outcomes": found}, indent=1)
        )
    return int(any(o.result == FAIL for o in outcomes))


def _chosen(name: str, only: Sequence[str] | None) -> bool:
    return not only or name.split()[0] in only


def _work(backend: Backend, kinds: Sequence[str], samples: int) -> Iterator[tuple[str, Callable[[], Outcome]]]:
    """The names of all cases, and how each is compared."""
    if "instruction" in kinds:
        for case in instruction_cases():
            yield case.name, lambda case=case: instruction(case, backend)  # type: ignore[misc]
    for op, number in _in_turn([*rows()], samples):
        cases = cases_of(op)
        if "forward" in kinds:
            yield op.name, lambda case=cases[number]: forward(case, backend.name)  # type: ignore[misc]
        if number == 0 and "gradient" in kinds and (found := gradient_case(op)) is not None:
            yield op.name, lambda case=found: gradient(case, backend.name)  # type: ignore[misc]


def _in_turn(ops: Sequence[Op], samples: int) -> Iterator[tuple[Op, int]]:
    """The first sample of every row, then the second of every row, and so on."""
    counts = {op: min(len(cases_of(op)), samples) for op in ops}
    for number in range(max(counts.values(), default=0)):
        yield from ((op, number) for op in ops if number < counts[op])


def _summary(outcomes: Sequence[Outcome], machine: str, seconds: float, complete: bool) -> None:
    refused: defaultdict[str, list[Outcome]] = defaultdict(list)
    for outcome in outcomes:
        if outcome.result == REFUSED:
            refused[outcome.row].append(outcome)
    print(f"\nrefused by name, {len(refused)} rows:")
    for name, found in refused.items():
        print(f"  {name}: {len(found)} ({found[0].message})")
    for what in KINDS:
        counts = Counter(o.result for o in outcomes if o.what == what)
        rows_seen = len({o.row for o in outcomes if o.what == what})
        shown = ", ".join(f"{counts[result]} {result}" for result in (PASS, REFUSED, FAIL))
        print(f"{machine} {what}: {shown}, of {rows_seen} rows")
    failing = sorted({o.row for o in outcomes if o.result == FAIL})
    print(f"rows that fail: {', '.join(failing) or 'none'}")
    print(f"{len(outcomes)} comparisons in {seconds:.0f} s{'' if complete else ', not all: the time was over'}")


if __name__ == "__main__":
    sys.exit(main())
