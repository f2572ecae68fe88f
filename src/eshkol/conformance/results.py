"""What comparisons with a machine came to, all together: counted by row and kind, written as JSON and read again.

Comes in: outcomes, or a file that another machine wrote, which is not believed before it was looked at. Goes out:
`MachineRun`s. What agrees is counted; of what is refused or fails, the cases stand under the reason.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from eshkol.conformance.outcomes import FAIL, PASS, REFUSED, Outcome
from eshkol.errors import EshkolError

FORMAT = 1
KINDS = ("instruction", "forward", "gradient")
LARGEST = 1 << 26  # bytes of a file: of every backend there is, ten times over
LONGEST = 600  # characters of a text in a file
MOST = 1 << 32  # comparisons of a row
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")  # of an instruction or a row
_MACHINE = re.compile(r"[a-z][a-z0-9_]*(:[0-9]{1,4})?")


class ResultsError(EshkolError):
    """A file of results that is none, or holds what no run could have come to."""


@dataclass(slots=True)
class RowResult:
    """A row in one kind: how many cases agree, and which are refused or fail, by the reason."""

    passed: int = 0
    refused: dict[str, list[str]] = field(default_factory=dict)
    failed: dict[str, list[str]] = field(default_factory=dict)

    def add(self, outcome: Outcome) -> None:
        if outcome.result == PASS:
            self.passed += 1
        else:
            reasons = self.refused if outcome.result == REFUSED else self.failed
            reasons.setdefault(outcome.message[:LONGEST], []).append(outcome.name)

    @property
    def counts(self) -> Counter[str]:
        """How many agree, are refused and fail."""
        return Counter({
            PASS: self.passed, REFUSED: sum(map(len, self.refused.values())), FAIL: sum(map(len, self.failed.values()))
        })  # fmt: skip


@dataclass(slots=True)
class MachineRun:
    """Everything that was compared on a machine, and what it was measured on."""

    machine: str
    device: str  # what it is like, for people
    platform: str
    eshkol: str
    commit: str  # of the sources; empty where nobody knows
    date: str
    seconds: float = 0.0
    complete: bool = False  # whether nothing was left out for want of time, or because it was not asked for
    rows: dict[tuple[str, str], RowResult] = field(default_factory=dict)  # by name and kind

    def add(self, outcome: Outcome) -> None:
        self.rows.setdefault((outcome.row, outcome.what), RowResult()).add(outcome)

    def counts(self, kind: str | None = None) -> Counter[str]:
        """How many cases of a kind, or of all, agree, are refused and fail."""
        found: Counter[str] = Counter()
        for (_, what), row in self.rows.items():
            if kind in (None, what):
                found.update(row.counts)
        return found

    def refusals(self) -> list[tuple[str, list[str]]]:
        """Reasons for which cases are refused, those of most cases first, each with the cases.

        Reasons that differ in numbers alone, or in what they call the value, are one: the first stands for them.
        """
        groups: dict[str, tuple[str, list[str]]] = {}
        for row in self.rows.values():
            for reason, cases in row.refused.items():
                groups.setdefault(_alike(reason), (reason, []))[1].extend(cases)
        return sorted(groups.values(), key=lambda group: (-len(group[1]), group[0]))

    def failures(self) -> Iterator[tuple[str, str, str]]:
        """The kind, the case and the message of all that fails."""
        for (_, kind), row in self.rows.items():
            for message, cases in row.failed.items():
                yield from ((kind, case, message) for case in cases)


def _alike(reason: str) -> str:
    return re.sub(r"\[[^\]]*\]", "[]", re.sub(r"\d+", "0", reason))


def share(part: int, whole: int) -> str:
    """A part of all, in percent; of nothing, nothing."""
    return f"{100 * part / whole:.1f} %" if whole else ""


# --- files --------------------------------------------------------------------------------------------------------


def written(runs: Iterable[MachineRun]) -> str:
    """Runs as JSON, a row to each line."""
    texts = ",\n".join(map(_run_text, runs))
    return f'{{"format": {FORMAT}, "runs": [\n{texts}\n]}}\n'


def _run_text(run: MachineRun) -> str:
    facts = {
        "machine": run.machine, "device": run.device, "platform": run.platform, "eshkol": run.eshkol,
        "commit": run.commit, "date": run.date, "seconds": round(run.seconds, 1), "complete": run.complete,
    }  # fmt: skip
    rows = ",\n  ".join(json.dumps(_row_form(*key, row)) for key, row in run.rows.items())
    return f'{json.dumps(facts)[:-1]}, "rows": [\n  {rows}]}}'


def _row_form(name: str, kind: str, row: RowResult) -> dict[str, Any]:
    reasons = {word: found for word, found in (("refused", row.refused), ("fail", row.failed)) if found}
    return {"name": name, "kind": kind, "pass": row.passed} | reasons


def read(path: Path) -> list[MachineRun]:
    """The runs of a file, in which everything is what it should be; ResultsError says what is not."""
    try:
        with path.open("rb") as file:
            raw = file.read(LARGEST + 1)
    except OSError as error:
        raise ResultsError(f"{path}: {error.strerror or error}") from None
    if len(raw) > LARGEST:
        raise ResultsError(f"{path} has more than {LARGEST >> 20} MiB: these are no results")
    try:
        given = json.loads(raw)
    except (ValueError, RecursionError) as error:
        raise ResultsError(f"{path} is no JSON: {' '.join(str(error).split())[:200]}") from None
    return Reader(str(path)).runs(given)


class Reader:
    """Reads what someone else wrote."""

    def __init__(self, path: str) -> None:
        self.path = path

    def runs(self, given: Any) -> list[MachineRun]:
        if not isinstance(given, dict) or given.get("format") != FORMAT or not isinstance(given.get("runs"), list):
            raise ResultsError(
                f"{self.path} holds no results of this format ({FORMAT})", hint="write them with --json FILE"
            )
        return [self._run(run, f"runs[{k}]") for k, run in enumerate(given["runs"])]

    def _run(self, given: Any, where: str) -> MachineRun:
        self._must(isinstance(given, dict), where, "is no object")
        machine = self._text(given, "machine", where)
        self._must(_MACHINE.fullmatch(machine) is not None, f"{where}.machine", "is no name of a machine")
        seconds = given.get("seconds")
        sound = isinstance(seconds, int | float) and not isinstance(seconds, bool) and 0 <= seconds < 1e9
        self._must(sound, f"{where}.seconds", "is no number of seconds")
        self._must(isinstance(given.get("complete"), bool), f"{where}.complete", "is neither true nor false")
        self._must(isinstance(given.get("rows"), list), f"{where}.rows", "is no list")
        device, platform, eshkol, commit, date = (
            self._text(given, name, where) for name in ("device", "platform", "eshkol", "commit", "date")
        )
        run = MachineRun(machine, device, platform, eshkol, commit, date, float(seconds or 0), given["complete"])
        for k, row in enumerate(given["rows"]):
            self._row(run, row, f"{where}.rows[{k}]")
        return run

    def _row(self, run: MachineRun, given: Any, where: str) -> None:
        self._must(isinstance(given, dict), where, "is no object")
        name, kind = self._text(given, "name", where), given.get("kind")
        self._must(_NAME.fullmatch(name) is not None, f"{where}.name", "is no name of an instruction or a row")
        self._must(isinstance(kind, str) and kind in KINDS, f"{where}.kind", f"is none of {', '.join(KINDS)}")
        passed = given.get("pass")
        sound = isinstance(passed, int) and not isinstance(passed, bool) and 0 <= passed <= MOST
        self._must(sound, f"{where}.pass", "is no number of cases")
        self._must((name, kind) not in run.rows, where, f"is {name} a second time")
        reasons = [self._reasons(given.get(word, {}), name, f"{where}.{word}") for word in ("refused", "fail")]
        run.rows[name, str(kind)] = RowResult(int(passed or 0), *reasons)

    def _reasons(self, given: Any, name: str, where: str) -> dict[str, list[str]]:
        """Cases by the reason."""
        self._must(isinstance(given, dict), where, "is no object")
        for reason, cases in given.items():
            self._printable(reason, where)
            self._must(isinstance(cases, list) and bool(cases), where, "has a reason without cases")
            for case in cases:
                self._printable(case, where)
                self._must(case.split(" ")[0] == name, where, f"has a case that is not of {name}")
        return dict(given)

    def _text(self, given: Mapping[str, Any], name: str, where: str) -> str:
        return self._printable(given.get(name), f"{where}.{name}")

    def _printable(self, text: Any, where: str) -> str:
        self._must(
            isinstance(text, str) and len(text) <= LONGEST and text.isprintable(), where, "is no short plain text"
        )
        return str(text)

    def _must(self, holds: bool, where: str, what: str) -> None:
        if not holds:
            raise ResultsError(f"{self.path}: {where} {what}")


def together(runs: Sequence[MachineRun]) -> list[MachineRun]:
    """Runs of several files: on one machine the later takes the earlier one's place, of the same sources row by row.

    So the parts of a comparison that is made in several turns come together, and nothing is counted twice.
    """
    found: dict[tuple[str, str, str], MachineRun] = {}
    for run in runs:
        key = run.machine, run.device, run.platform
        earlier = found.get(key)
        if earlier is None or (earlier.eshkol, earlier.commit) != (run.eshkol, run.commit):
            found[key] = run
            continue
        found[key] = replace(
            run, seconds=earlier.seconds + run.seconds, complete=earlier.complete or run.complete,
            rows=earlier.rows | run.rows,
        )  # fmt: skip
    return list(found.values())
