"""`python -m bench compare A B`: two files of `python -m bench all --json` side by side, the greatest loss first.

By default a row's measure is our time beside the best peer's in the same run: what the machine did besides slows both.
With `--by time` it is our time alone. Rows without a peer are compared by time.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

from bench import harness
from bench.every.report import Measured, read
from bench.every.row import OURS

SHARE = 0.25


@dataclass(frozen=True)
class Change:
    """A row in both files."""

    before: Measured
    after: Measured
    factor: float  # more than 1: slower than before


def changes(before: Mapping[str, Measured], after: Mapping[str, Measured], by: str) -> list[Change]:
    """Rows that were timed both times, those that became slower first."""
    found = []
    for name in before.keys() & after.keys():
        a, b = before[name], after[name]
        if OURS not in a.seconds or OURS not in b.seconds:
            continue
        if by == "ratio" and a.ratio is not None and b.ratio is not None:
            found.append(Change(a, b, a.ratio / b.ratio))
        else:
            found.append(Change(a, b, b.seconds[OURS] / a.seconds[OURS]))
    return sorted(found, key=lambda change: (-change.factor, change.before.name))


def lost(before: Mapping[str, Measured], after: Mapping[str, Measured]) -> list[str]:
    """Rows that we had a time of, and have none of any more though they are still there."""
    return sorted(n for n in before.keys() & after.keys() if OURS in before[n].seconds and OURS not in after[n].seconds)


def main(words: Sequence[str]) -> int:
    """1 if a row is slower by more than the share, or has failed since."""
    parser = argparse.ArgumentParser(prog="python -m bench compare", description="Two runs of `python -m bench all`.")
    parser.add_argument("before", type=Path)
    parser.add_argument("after", type=Path)
    parser.add_argument("--share", type=float, default=SHARE, help=f"how much slower a row may be ({SHARE})")
    parser.add_argument("--by", choices=("ratio", "time"), default="ratio", help="beside the peer (ratio), or alone")
    given = parser.parse_args(words)
    before, after = read(given.before), read(given.after)
    found, failed = changes(before, after, given.by), lost(before, after)
    table = Table(title=f"{given.before} → {given.after}, slower first", title_justify="left")
    for column in ("row", "ours before", "after", "peer / ours before", "after", "takes times as long"):
        table.add_column(column, justify="left" if column == "row" else "right")
    for change in found:
        a, b = change.before, change.after
        cells = [harness.duration(x.seconds[OURS]) for x in (a, b)]
        cells += ["" if x.ratio is None else f"{x.ratio:.2f}" for x in (a, b)]
        table.add_row(a.name, *cells, f"{change.factor:.2f}")
    Console(width=140).print(table)
    for name in failed:
        print(f"failed since: {name}")
    for words_of, names in (
        ("only before", before.keys() - after.keys()),
        ("only after", after.keys() - before.keys()),
    ):
        if names:
            print(f"{words_of}: {', '.join(sorted(names))}")
    slower = [change for change in found if change.factor > 1 + given.share]
    print(f"{len(found)} rows in both; {len(slower)} slower by more than {given.share:.0%}")
    return 1 if slower or failed else 0
