"""Plans are made of as many launches, bytes and instructions as they were."""

from __future__ import annotations

from plan_sizes import FUNCTIONS, KEPT, line


def test_sizes_are_what_they_were() -> None:
    kept = KEPT.read_text().splitlines()
    assert [text.partition(": ")[0] for text in kept] == list(FUNCTIONS)
    changed = [
        f"  {text}\n  {found}" for text, name in zip(kept, FUNCTIONS, strict=True) if (found := line(name)) != text
    ]
    assert not changed, "if that is meant, run `make generate`:\n" + "\n".join(changed[:10])
