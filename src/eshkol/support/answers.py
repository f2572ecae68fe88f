"""Answers that were measured: which of its choices a kernel takes on a device, for which shapes; kept on disk.

Comes in: questions of families of kernels, and what measuring them gave (`eshkol tune`). Goes out: a file for each
device in the folder of compiled programs, as JSON that a person can read, and the answers in it. A file is put in place
by an atomic rename. One that is not what is written here is refused by name; answers of kernels whose sources are
others now are left aside, and go when the file is written next. Nothing here knows what a choice means.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from blake3 import blake3

from eshkol.errors import CacheError

FORMAT = 1
FOLDER = "tuned"
MOST_BYTES = 16 << 20  # of a file: a million times less than what would be worth reading
_NUMBER = (int, float)


class Question(NamedTuple):
    """A choice of a family of kernels: its key says all that the choice depends on, but for the device."""

    family: str
    key: str

    def __str__(self) -> str:
        return f"{self.family} {self.key}"


class Answer(NamedTuple):
    """The choice that was fastest, and the one that is made without measuring, with their microseconds."""

    choice: str
    microseconds: float
    first: str
    first_microseconds: float

    @property
    def gain(self) -> float:
        return self.first_microseconds / self.microseconds


class AnswerFile:
    """What was measured on a device. `sources` has a hash for each family: what others wrote is not an answer."""

    def __init__(self, folder: Path, device: str, sources: Mapping[str, str]) -> None:
        self.device, self.sources = device, dict(sources)
        self.path = folder / FOLDER / f"{re.sub('[^A-Za-z0-9]+', '-', device).strip('-')}.json"

    def read(self) -> dict[Question, Answer]:
        """The answers of the families as they are; none where there is no file."""
        try:
            with open(self.path, "rb") as file:
                raw = file.read(MOST_BYTES + 1)
        except FileNotFoundError:
            return {}
        except OSError as error:
            raise self._refused(error.strerror or str(error)) from None
        try:
            return self._decoded(json.loads(raw) if len(raw) <= MOST_BYTES else None)
        except ValueError as error:  # no JSON, no UTF-8, or not what belongs there
            raise self._refused(str(error)) from None

    def _decoded(self, found: Any) -> dict[Question, Answer]:
        if not isinstance(found, dict) or found.get("format") != FORMAT:
            raise ValueError(f"it is not of format {FORMAT}")
        if found.get("device") != self.device:
            raise ValueError(f"it is of the device {found.get('device')!r}, not of '{self.device}'")
        sources, rows = found.get("sources"), found.get("answers")
        if not isinstance(sources, dict) or not isinstance(rows, list):
            raise ValueError("'sources' or 'answers' are missing")
        answers = {}
        for row in rows:
            question, answer = _row(row)
            if question.family in self.sources and sources.get(question.family) == self.sources[question.family]:
                answers[question] = answer
        return answers

    def keep(self, more: Mapping[Question, Answer]) -> dict[Question, Answer]:
        """Write answers down beside those that are there; all of them."""
        everything = {**self.read(), **more}
        rows = [
            {"family": q.family, "for": q.key, "choice": a.choice, "microseconds": round(a.microseconds, 3),
             "model": a.first, "model_microseconds": round(a.first_microseconds, 3)}
            for q, a in sorted(everything.items())
        ]  # fmt: skip
        content = {"format": FORMAT, "device": self.device, "sources": self.sources, "answers": rows}
        temporary = self.path.with_name(f"{self.path.name}.{os.getpid()}.{os.urandom(8).hex()}.tmp")
        try:
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            temporary.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
            os.replace(temporary, self.path)
        except OSError as error:
            raise CacheError(
                f"what was measured cannot be kept in '{self.path}': {error.strerror or error}",
                hint="set ESHKOL_CACHE_DIR to a folder of your own",
            ) from None
        finally:
            with suppress(OSError):
                temporary.unlink()
        return everything

    def _refused(self, why: str) -> CacheError:
        return CacheError(
            f"'{self.path}' should have what was measured on '{self.device}', but: {why}",
            hint="remove the file, and measure again: eshkol tune; ESHKOL_TUNE=0 does without",
        )


def _row(row: Any) -> tuple[Question, Answer]:
    try:
        question = Question(row["family"], row["for"])
        answer = Answer(row["choice"], row["microseconds"], row["model"], row["model_microseconds"])
    except (TypeError, KeyError, IndexError):
        raise ValueError(f"{str(row)[:80]} is no answer") from None
    texts, numbers = (*question, answer.choice, answer.first), (answer.microseconds, answer.first_microseconds)
    sound = all(isinstance(x, str) for x in texts) and all(type(x) in _NUMBER and x > 0 for x in numbers)
    if not sound:
        raise ValueError(f"{str(row)[:80]} is no answer")
    return question, answer


def contents_key(files: Iterable[Path]) -> str:
    """What names files by what they say, wherever they lie."""
    found = blake3()
    for path in sorted(files):
        raw = path.read_bytes()
        found.update(f"{path.name} {len(raw)}\n".encode() + raw)
    return found.hexdigest()[:16]
