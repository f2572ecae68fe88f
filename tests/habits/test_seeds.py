"""docs/seeds.md is true: transcripts call its samples, and its counts and names are those there are."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

from eshkol.bindings import install
from eshkol.session import Session, SessionThread

HERE = Path(__file__).parent
PAGE = (HERE.parents[1] / "docs" / "seeds.md").read_text(encoding="utf-8")
TRANSCRIPTS = HERE.parent / "scheme" / "seeds"
OWED = "owed: "

install()


def names_by_part() -> dict[str, list[str]]:
    """The parts of seed_names.txt with their names."""
    parts: dict[str, list[str]] = {}
    for line in (HERE / "seed_names.txt").read_text(encoding="utf-8").splitlines():
        if line.startswith("== "):
            part = parts.setdefault(line[3:], [])
        elif line and not line.startswith("#"):
            part.extend(line.split())
    return parts


def rows(heading: str) -> list[list[str]]:
    """The cells of the table whose first heading this is."""
    _, _, after = PAGE.partition(f"| {heading} |")
    table = after.partition("\n\n")[0].splitlines()[2:]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in table]


def in_code(text: str) -> list[str]:
    return re.findall(r"`([^`]+)`", text)


def test_every_name_is_bound_or_owed() -> None:
    names = [(part, name) for part, group in names_by_part().items() for name in group]
    assert max(Counter(name for _, name in names).values()) == 1

    def is_bound(session: Session) -> list[bool]:
        return [session.world.prompt.namespace.lookup(name) is not None for _, name in names]

    thread = SessionThread()
    try:
        bound = thread.call(is_bound)
    finally:
        thread.close()
    missing = [name for (part, name), is_there in zip(names, bound, strict=True) if not is_there and OWED not in part]
    there = [name for (part, name), is_there in zip(names, bound, strict=True) if is_there and OWED in part]
    assert not missing, "these have no definition"
    assert not there, "these are owed no more: move them to the other names, also in docs/seeds.md"


def test_the_page_lists_the_names_that_are_owed() -> None:
    owed = {part.removeprefix(OWED): group for part, group in names_by_part().items() if part.startswith(OWED)}
    assert {part: in_code(names) for part, names in rows("owed by")} == owed
    count = sum(map(len, owed.values()))
    whole = sum(map(len, names_by_part().values()))
    assert f"The designs use {whole} names. {whole - count} are bound; {count} are owed" in PAGE


def test_the_page_counts_its_samples() -> None:
    samples = rows("design")
    kinds = Counter(sample[3] for sample in samples)
    assert set(kinds) == {"runs", "differs", "owed"}
    assert f"hold {len(samples)} samples" in PAGE
    for kind, count in kinds.items():
        assert f"- **{kind}**: {count}." in PAGE
    parts = {part.removeprefix(OWED) for part in names_by_part() if part.startswith(OWED)}
    for sample in samples:
        assert sample[3] != "owed" or any(sample[4].startswith(part) for part in parts), sample


def test_every_sample_that_can_run_is_called() -> None:
    for sample in rows("design"):
        _, section, shows, kind, _, transcript = sample
        assert transcript or kind == "owed", sample
        if transcript:
            text = (TRANSCRIPTS / f"{in_code(transcript)[0]}.esk").read_text(encoding="utf-8")
            called = set(re.findall(r"[^\s()'`,#\[\]]+", text))
            absent = [name for name in in_code(shows.partition(";")[0]) if name not in called]
            assert not absent, f"{section}: {absent}"
