"""What is tried, and what became of each: told as it is known, and written down, a line for each mutant."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from mutation import table


class Plan:
    """What is tried, and how many mutants there are."""

    def __init__(self) -> None:
        self.tried: list[tuple[str, Any]] = []
        self.made: dict[str, tuple[int, int]] = {}  # by package: mutants that count, and excluded ones


class Records:
    """What became of the mutants of a sample, in its order however they end: some are judged sooner than others."""

    def __init__(self, plan: Plan, out: Path) -> None:
        self.tried = plan.tried
        self.known: dict[int, dict[str, Any]] = {}
        self.broken: list[str] = []  # trials with nothing changed that failed, and how
        out.parent.mkdir(parents=True, exist_ok=True)
        self._file = open(out, "w", encoding="utf-8")  # noqa: SIM115 - a line whenever one is known

    def control(self, package: str, found: dict[str, Any]) -> None:
        if found["outcome"] != "survived":
            self.broken.append(table.control(package, found))
            print(self.broken[-1], flush=True)

    def put(self, number: int, reaching: int, found: dict[str, Any], tests: list[str]) -> None:
        """What became of a mutant; `tests`: some that reach it, if it has survived."""
        package, mutant = self.tried[number]
        record = {
            "package": package, "number": number, "id": mutant.id, "line": mutant.line, "operator": mutant.operator,
            "file": f"src/{mutant.module.replace('.', '/')}.py", "before": mutant.before, "after": mutant.after,
            "reaching": reaching, **found,
        }  # fmt: skip
        if found["outcome"] in ("survived", "not reached"):
            record["tests"] = tests
        self.known[number] = record
        self._file.write(json.dumps(record) + "\n")
        self._file.flush()
        done = f"[{len(self.known)}/{len(self.tried)}]"
        print(f"{done} {found['outcome']} ({found.get('seconds', 0)} s) {mutant.id}", flush=True)

    def counted(self) -> list[dict[str, Any]]:
        """The sample up to the first that was not judged: what is noticed soon must not count for more."""
        first = next((k for k in range(len(self.tried)) if k not in self.known), len(self.tried))
        return [self.known[k] for k in range(first)]
