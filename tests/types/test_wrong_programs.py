"""Wrong programs and what is said of them, as `wrong.txt` has it.

    python tests/types/test_wrong_programs.py       # writes the messages anew: read them before they are kept

A part of the file is a program and, behind a line of dashes, the messages.
"""

from __future__ import annotations

from pathlib import Path

from eshkol.bindings import install
from eshkol.lang.source import Source

FILE = Path(__file__).parent / "wrong.txt"


def parts() -> list[tuple[str, str, str]]:
    """Names, programs, messages."""
    found = []
    for part in FILE.read_text(encoding="utf-8").split("=== ")[1:]:
        name, _, rest = part.partition("\n")
        program, _, messages = rest.partition("---\n")
        found.append((name, program, messages))
    return found


def said(programs: list[str]) -> list[str]:
    """What the checker says of each program."""
    from eshkol.session import Session, on_session
    from eshkol.session.typing import checked

    install()
    found: list[str] = []

    def work(session: Session) -> None:
        for program in programs:
            errors = checked(session, Source("a.esk", program)).errors
            found.append("".join(f"{error}\n" for error in errors))

    on_session(work, ["wrong programs"])
    return found


def test_messages() -> None:
    known = parts()
    found = said([program for _, program, _ in known])
    for (name, _, messages), text in zip(known, found, strict=True):
        assert text, f"nothing is said of: {name}"
        assert text == messages, name


if __name__ == "__main__":
    known = parts()
    texts = said([program for _, program, _ in known])
    FILE.write_text(
        "".join(f"=== {n}\n{p}---\n{text}" for (n, p, _), text in zip(known, texts, strict=True)), encoding="utf-8"
    )
