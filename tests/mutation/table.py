"""The table: for each package what was tried, and the share that the tests noticed, with what a sample leaves open."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

Z = 1.959964  # of 95 %
HEADS = ("package", "mutants", "excluded", "tried", "killed", "timeouts", "survived", "not reached", "killed %", "95 %")


def wilson(hits: int, count: int) -> tuple[float, float]:
    """Wilson's interval for a share of which a sample is known."""
    if count == 0:
        return 0.0, 1.0
    share = hits / count
    scale = 1 + Z * Z / count
    middle = (share + Z * Z / (2 * count)) / scale
    half = Z / scale * math.sqrt(share * (1 - share) / count + Z * Z / (4 * count * count))
    return max(0.0, middle - half), min(1.0, middle + half)


def table(records: Iterable[Mapping[str, Any]], made: Mapping[str, tuple[int, int]]) -> str:
    """`made`: how many mutants each package has in all, without the excluded ones, and how many those are.

    A test that never ends notices a mutant too. A mutant that no test reaches has survived.
    """
    by_package: dict[str, Counter[str]] = {package: Counter() for package in made}
    for record in records:
        by_package.setdefault(record["package"], Counter())[record["outcome"]] += 1
    rows = [HEADS]
    for package, outcomes in by_package.items():
        killed = outcomes["killed"] + outcomes["timeout"]
        count = killed + outcomes["survived"] + outcomes["not reached"]
        low, high = wilson(killed, count)
        whole, excluded = made.get(package, (0, 0))
        share = f"{100 * killed / count:.1f}" if count else "-"
        rows.append((
            package, str(whole), str(excluded), str(count), str(outcomes["killed"]), str(outcomes["timeout"]),
            str(outcomes["survived"]), str(outcomes["not reached"]), share, f"{100 * low:.1f}–{100 * high:.1f}",
        ))  # fmt: skip
    widths = [max(len(row[k]) for row in rows) for k in range(len(HEADS))]
    return "\n".join(
        "  ".join(
            cell.ljust(w) if k == 0 else cell.rjust(w) for k, (cell, w) in enumerate(zip(row, widths, strict=True))
        )
        for row in rows
    )


def kinds(records: Iterable[Mapping[str, Any]]) -> str:
    """How many of each kind of change were noticed: kinds that Python itself refuses are noticed by any test."""
    tried: Counter[str] = Counter()
    noticed: Counter[str] = Counter()
    for record in records:
        tried[record["operator"]] += 1
        noticed[record["operator"]] += record["outcome"] in ("killed", "timeout")
    return "\n".join(f"  {kind}: {noticed[kind]} of {count}" for kind, count in sorted(tried.items()))


def survivor(record: Mapping[str, Any]) -> str:
    """A survivor, as it is read: the place, the change, and the tests that did not notice."""
    tests = record["tests"]
    shown = ", ".join(tests[:3]) + (f" and {len(tests) - 3} more" if len(tests) > 3 else "") if tests else "no test"
    late = f" ({record['ran']} of {record['reaching']} run in the time)" if record.get("late") else ""
    return (
        f"{record['file']}:{record['line']}: {record['operator']}\n"
        f"  - {record['before']}\n  + {record['after']}\n  reached by {shown}{late}"
    )


def control(package: str, found: Mapping[str, Any]) -> str:
    """A trial with nothing changed that failed: which test, and why."""
    return f"CONTROL {package}: {found['outcome']} by {found.get('by', 'the trial itself')}: {found.get('why', '')}"
