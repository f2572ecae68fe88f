"""`python -m eshkol.conformance MACHINE`: every row of the op table there, and what came out.

The first sample of every row comes first, forward and its gradient, then the second of every row, and so on, until all
are done or the time is over. What a machine refuses by name is counted apart. The exit code is 1 where anything failed.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence

from eshkol.conformance.checks import FAIL, PASS, REFUSED, Case, Outcome, cases_of, forward, gradient, gradient_case
from eshkol.conformance.samples import rows
from eshkol.ops.row import Op
from eshkol.tensors.devices import open_backend

LOST = "has to be restarted"  # what the error of a device says that answers no more


def main(given: Sequence[str] | None = None) -> int:
    """Compare a machine with the interpreter; 0 where nothing failed."""
    parser = argparse.ArgumentParser(prog="python -m eshkol.conformance", description=__doc__.split("\n")[0])
    parser.add_argument("machine", help="a device: cuda, cuda:1, cpu, discrete, blocks, reference")
    parser.add_argument("--only", nargs="+", metavar="OP", help="these rows alone")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="begin nothing after so long")
    parser.add_argument("--samples", type=int, default=1 << 30, help="so many of each row, in any dtype")
    parser.add_argument("--no-gradients", action="store_true", help="only forward")
    options = parser.parse_args(given)
    machine = open_backend(options.machine).name
    chosen = [op for op in rows() if not options.only or op.name in options.only]
    unknown = set(options.only or ()) - {op.name for op in chosen}
    if unknown:
        parser.error(f"there is no row {', '.join(sorted(unknown))}")
    outcomes: list[Outcome] = []
    start, complete = time.monotonic(), True
    for case, run in _work(chosen, options.samples, gradients=not options.no_gradients):
        if time.monotonic() - start > options.seconds:
            complete = False
            break
        outcome = run(case, machine)
        outcomes.append(outcome)
        if outcome.result == FAIL:
            print(outcome, flush=True)
        if LOST in outcome.message:
            print("the device is lost: nothing more can be compared in this process", flush=True)
            complete = False
            break
    _summary(outcomes, machine, time.monotonic() - start, complete)
    return int(any(o.result == FAIL for o in outcomes))


def _work(
    chosen: Sequence[Op], samples: int, *, gradients: bool
) -> Iterator[tuple[Case, Callable[[Case, str], Outcome]]]:
    cases = {op.name: cases_of(op)[:samples] for op in chosen}
    for number in range(max(map(len, cases.values()), default=0)):
        for op in chosen:
            if number < len(cases[op.name]):
                yield cases[op.name][number], forward
            if number == 0 and gradients and (case := gradient_case(op)) is not None:
                yield case, gradient


def _summary(outcomes: Sequence[Outcome], machine: str, seconds: float, complete: bool) -> None:
    refused: defaultdict[str, list[Outcome]] = defaultdict(list)
    for outcome in outcomes:
        if outcome.result == REFUSED:
            refused[outcome.case.op.name].append(outcome)
    print(f"\nrefused by name, {len(refused)} rows:")
    for name, found in refused.items():
        print(f"  {name}: {len(found)} ({found[0].message})")
    for what in ("forward", "gradient"):
        counts = Counter(o.result for o in outcomes if o.what == what)
        rows_seen = len({o.case.op.name for o in outcomes if o.what == what})
        shown = ", ".join(f"{counts[result]} {result}" for result in (PASS, REFUSED, FAIL))
        print(f"{machine} {what}: {shown}, of {rows_seen} rows")
    failing = sorted({o.case.op.name for o in outcomes if o.result == FAIL})
    print(f"rows that fail: {', '.join(failing) or 'none'}")
    print(f"{len(outcomes)} comparisons in {seconds:.0f} s{'' if complete else ', not all: the time was over'}")


if __name__ == "__main__":
    sys.exit(main())
