"""What machines came to, for people: tables in the terminal, and docs/conformance.md.

Comes in: `MachineRun`s. Goes out: tables of rich, and the page, which follows from the runs alone. Every text of a run
stands in the page as text, whoever wrote it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from eshkol.conformance.outcomes import FAIL, PASS, REFUSED
from eshkol.conformance.results import KINDS, MachineRun, share

if TYPE_CHECKING:
    from rich.table import Table

AGREES, PARTLY, LACKS, WRONG, UNSEEN = "✓", "◐", "–", "✗", ""
MEANING = f"{AGREES} all cases agree, {PARTLY} some are refused by name, {LACKS} all are, {WRONG} some fail"
SHOWN_REASONS, SHOWN_FAILURES, SHOWN_CASES = 12, 40, 3
INTRODUCTION = """\
Every instruction of Atlas on every type that it takes, and every row of the op table, forward and its gradient, on each
machine: compared with the reference machine, and with the interpreter of the graph. Counts are of cases: an instruction
on a type, a sample of a row in a dtype. What a machine lacks it refuses by name (`BackendUnavailable`); nothing is
computed elsewhere without a word. This page is written by

    eshkol conformance cpu opencl --seconds 600 --json here.json
    eshkol conformance --from here.json there.json --docs docs/conformance.md

from results of one or several places; nobody edits it.
"""


def mark(counts: Counter[str]) -> str:
    """A row on a machine in one sign."""
    if not counts.total():
        return UNSEEN
    if counts[FAIL]:
        return WRONG
    return AGREES if not counts[REFUSED] else PARTLY if counts[PASS] else LACKS


def labels(runs: Sequence[MachineRun]) -> list[str]:
    """What runs are called: their machine, and of several on machines of one name their number."""
    names = [run.machine for run in runs]
    return [f"{n} ({names[: k + 1].count(n)})" if names.count(n) > 1 else n for k, n in enumerate(names)]


def counts_of(run: MachineRun, name: str, kind: str) -> Counter[str]:
    """What a row came to in a run, which need not have it."""
    row = run.rows.get((name, kind))
    return Counter() if row is None else row.counts


def _names(runs: Sequence[MachineRun], kinds: Iterable[str]) -> list[str]:
    """The rows that any run has in these kinds, in the alphabet's order."""
    wanted = set(kinds)
    return sorted({name for run in runs for name, kind in run.rows if kind in wanted}, key=lambda n: (n.lower(), n))


def _first_cases(cases: Sequence[str]) -> str:
    return ", ".join(cases[:SHOWN_CASES]) + (", …" if len(cases) > SHOWN_CASES else "")


# --- the terminal -------------------------------------------------------------------------------------------------


def _table(title: str, *headers: str, style: str = "") -> Table:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    found = Table(box=SIMPLE_HEAD, pad_edge=False, title=title, title_justify="left", title_style="bold", style=style)
    for header in headers:
        found.add_column(header.lstrip(">"), justify="right" if header.startswith(">") else "left", overflow="fold")
    return found


def tables(runs: Sequence[MachineRun], every_row: bool) -> Iterator[Table]:
    """All tables: rows (those that are not simply right, or all), reasons, failures, and counts at the end."""
    yield from _row_tables(runs, every_row)
    for run, label in zip(runs, labels(runs), strict=True):
        reasons = run.refusals()
        if reasons:
            table = _table(f"what {label} refuses", ">cases", "reason", "such as")
            for reason, cases in reasons[:SHOWN_REASONS]:
                table.add_row(str(len(cases)), escape(reason), escape(_first_cases(cases)))
            if len(reasons) > SHOWN_REASONS:
                table.add_row(str(sum(len(c) for _, c in reasons[SHOWN_REASONS:])), "other reasons (--json has all)")
            yield table
        failures = [*run.failures()]
        if failures:
            table = _table(f"what fails on {label}", "kind", "case", "what happened", style="red")
            for failure in failures[:SHOWN_FAILURES]:
                table.add_row(*map(escape, failure))
            if len(failures) > SHOWN_FAILURES:
                table.add_row("", f"and {len(failures) - SHOWN_FAILURES} others", "--json has all")
            yield table
    yield _summary(runs)


def _row_tables(runs: Sequence[MachineRun], every_row: bool) -> Iterator[Table]:
    for title, kinds in (("instructions", KINDS[:1]), ("rows of the op table", KINDS[1:])):
        names = _names(runs, kinds)
        shown = names if every_row else [name for name in names if not _agrees(runs, name, kinds)]
        if not shown:
            continue
        rest = f", without {len(names) - len(shown)} that agree everywhere" * (len(shown) < len(names))
        table = _table(f"{title}{', forward / gradient' * (len(kinds) > 1)}{rest}", "", *labels(runs))
        for name in shown:
            table.add_row(name, *(" / ".join(_cell(run, name, kind) for kind in kinds).rstrip(" /") for run in runs))
        yield table


def _agrees(runs: Sequence[MachineRun], name: str, kinds: Sequence[str]) -> bool:
    """Whether all cases of a row agree, wherever it was compared."""
    return all(mark(counts_of(run, name, kind)) in (AGREES, UNSEEN) for run in runs for kind in kinds)


def _cell(run: MachineRun, name: str, kind: str) -> str:
    """The sign of a row, and how many cases are behind it where that says more; of instructions, which types."""
    counts = counts_of(run, name, kind)
    sign = mark(counts)
    if sign == AGREES:
        return f"[green]{sign}[/] {counts[PASS]}"
    if sign == UNSEEN:
        return ""
    row = run.rows[name, kind]
    reasons = row.failed if counts[FAIL] else row.refused
    cases = [case.removeprefix(name).strip() for found in reasons.values() for case in found]
    told = f" {_first_cases(cases)}" if sign in (WRONG, PARTLY) else ""
    number = counts[FAIL] or counts[REFUSED]
    style = "red" if sign == WRONG else "yellow"
    return f"[{style}]{sign}[/] {number} of {counts.total()}{escape(told)}"


def escape(text: str) -> str:
    """Text that rich shows as it is."""
    from rich.markup import escape as escaped

    return escaped(text)


def _summary(runs: Sequence[MachineRun]) -> Table:
    table = _table(
        "conformance", "machine", "kind", ">rows", f">{PASS}", f">{REFUSED}", f">{FAIL}", ">share refused", ">seconds"
    )
    for run, label in zip(runs, labels(runs), strict=True):
        for kind in KINDS:
            counts = run.counts(kind)
            if counts.total():
                rows = sum(what == kind for _, what in run.rows)
                table.add_row(label, kind, str(rows), *_numbers(counts))
        whole = "" if run.complete else ", not everything"
        table.add_row(label, f"all{whole}", "", *_numbers(run.counts()), f"{run.seconds:.0f}", style="bold")
    return table


def _numbers(counts: Counter[str]) -> list[str]:
    return [*(str(counts[word]) for word in (PASS, REFUSED, FAIL)), share(counts[REFUSED], counts.total())]


# --- the page -----------------------------------------------------------------------------------------------------


def plain(text: str) -> str:
    """Text in a page: nothing of it is a form of Markdown or HTML."""
    return re.sub(r"([\\`*_{}\[\]<>|#~])", r"\\\1", text).replace("&", "&amp;")


def _lines(head: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """A table of Markdown; a header that begins with '>' makes a column of numbers, with '=' one of signs."""
    yield f"| {' | '.join(h.lstrip('>=') for h in head)} |"
    yield f"|{'|'.join('---:' if h.startswith('>') else ':---:' if h.startswith('=') else '---' for h in head)}|"
    for row in rows:
        yield f"| {' | '.join(row)} |"
    yield ""


def page(runs: Sequence[MachineRun]) -> str:
    """docs/conformance.md."""
    found = [*_page(runs)]
    return "\n".join(found).rstrip() + "\n"


def _page(runs: Sequence[MachineRun]) -> Iterator[str]:
    named = list(zip(runs, labels(runs), strict=True))
    yield from ("# Conformance", "", INTRODUCTION)
    yield from ("## Where", "")
    yield from _lines(
        ("machine", "device", "host", "Eshkol", "commit", "day", ">seconds", "compared"),
        ([label, *map(plain, (run.device or "the host's processor", run.platform, run.eshkol, run.commit or "unknown",
                              run.date)), f"{run.seconds:.0f}", "everything" if run.complete else "a part"]
         for run, label in named),
    )  # fmt: skip
    parts = [label for run, label in named if not run.complete]
    if parts:
        yield f"Of {', '.join(parts)} a part was compared: as much as the time allowed, or as was asked for."
        yield "First samples of rows come before second ones. Counts are of what was compared alone."
        yield ""
    yield from ("## How many", "")
    yield from _lines(
        ("machine", "", ">rows", ">pass", ">refused", ">fail", ">share refused"),
        ([label if kind is None else "", kind or "all",
          str(sum(kind in (None, what) for _, what in run.rows)), *_numbers(run.counts(kind))]
         for run, label in named for kind in (None, *KINDS) if run.counts(kind).total()),
    )  # fmt: skip
    yield from _reasons(named)
    yield from _failures(named)
    yield from ("## Instructions", "", f"{MEANING}; blank: not compared.", "")
    yield from _lines(
        ("", *(f"={label}" for _, label in named)),
        (
            [f"`{name}`", *(mark(counts_of(run, name, KINDS[0])) for run, _ in named)]
            for name in _names(runs, KINDS[:1])
        ),
    )
    yield from ("## Rows of the op table", "", f"First forward, then the gradient where there is one: {MEANING}.", "")
    yield from _lines(
        ("", *(f"={label}" for _, label in named)),
        ([f"`{name}`", *(" ".join(mark(counts_of(run, name, kind)) for kind in KINDS[1:]).strip() for run, _ in named)]
         for name in _names(runs, KINDS[1:])),
    )  # fmt: skip


def _reasons(named: Sequence[tuple[MachineRun, str]]) -> Iterator[str]:
    yield from ("## What is refused", "")
    for run, label in named:
        reasons = run.refusals()
        if reasons:
            yield from (f"### {label}", "")
            yield from _lines(
                (">cases", "reason", "such as"),
                ([str(len(cases)), plain(reason), plain(_first_cases(cases))] for reason, cases in reasons),
            )
        else:
            yield from (f"{label}: nothing.", "")


def _failures(named: Sequence[tuple[MachineRun, str]]) -> Iterator[str]:
    yield from ("## What fails", "")
    rows = [
        [label, kind, plain(case), plain(message)] for run, label in named for kind, case, message in run.failures()
    ]
    if rows:
        yield from _lines(("machine", "kind", "case", "what happened"), rows)
    else:
        yield from ("Nothing.", "")
