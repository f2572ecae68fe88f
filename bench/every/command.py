"""`python -m bench all`: which rows, on how many CPUs, and where the results go."""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from pathlib import Path

from bench.every.row import FAMILIES

CPUS = 2


def main(words: Sequence[str]) -> int:
    """1 if one of our answers differs from every peer's, or is none."""
    parser = argparse.ArgumentParser(prog="python -m bench all", description="Every family beside the best peer.")
    parser.add_argument("--family", action="append", default=[], choices=FAMILIES, help="rows of this family alone")
    parser.add_argument("--only", action="append", default=[], metavar="TEXT", help="rows with this in their names")
    parser.add_argument("--threads", type=int, default=CPUS, metavar="N", help=f"CPUs for every library ({CPUS})")
    parser.add_argument("--seconds", type=float, default=0.25, metavar="S", help="of timing a row and library (0.25)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the results, for `python -m bench compare`")
    parser.add_argument("--list", action="store_true", help="name the rows and run none")
    given = parser.parse_args(words)
    usable = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, usable[: given.threads])  # before the peers are imported: they start as many threads
    from bench.every import ROWS, TITLE, report
    from bench.every.row import OURS

    rows = [row for row in ROWS if (not given.family or row.family in given.family)
            and (not given.only or any(text.lower() in row.name.lower() for text in given.only))]  # fmt: skip
    if not rows:
        parser.error("no row is called so; --list names them")
    if given.list:
        print("\n".join(f"{row.family:18} {row.dtype:5} {row.size:>11,}  {row.name}" for row in rows))
        return 0
    found = report.run(rows, given.seconds)
    report.show(TITLE, found)
    if given.json:
        report.write(given.json, TITLE, found)
    alone = [row for row in found if row.failed and (row.best is None or OURS in row.failed)]
    return 1 if alone else 0
