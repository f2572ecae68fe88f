"""What was typed in earlier sessions, on disk: one text in JSON per line, so that a form of several lines is one entry.

Comes in: texts, one after the other, perhaps from several sessions at once. Goes out: those of before, the newest
first. A file that cannot be read or written costs the history, and nothing else.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from prompt_toolkit.history import History

from eshkol.errors import EshkolError
from eshkol.support.store import default_directory

FILE, KEPT = "prompt-history", 10_000


class DiskHistory(History):
    """The texts of a file."""

    def __init__(self, file: Path | None = None) -> None:
        super().__init__()
        self._file: Path | None = file
        if file is None:
            with suppress(EshkolError, OSError):
                self._file = default_directory() / FILE

    def load_history_strings(self) -> Iterable[str]:
        """All texts, the newest first."""
        if self._file is None:
            return []
        try:
            lines = self._file.read_text(encoding="utf-8", errors="replace").splitlines()
        except OSError:
            return []
        if len(lines) > 2 * KEPT:
            lines = lines[-KEPT:]
            self._shorten(lines)
        found = []
        for line in reversed(lines):
            with suppress(ValueError):
                text = json.loads(line)
                if isinstance(text, str):
                    found.append(text)
        return found

    def store_string(self, string: str) -> None:
        """Add a text: one write to the end of the file, whole or not at all where several sessions write."""
        if self._file is None:
            return
        line = json.dumps(string, ensure_ascii=False) + "\n"
        with suppress(OSError):
            self._file.parent.mkdir(parents=True, exist_ok=True)
            descriptor = os.open(self._file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
            try:
                os.write(descriptor, line.encode("utf-8", "surrogatepass"))
            finally:
                os.close(descriptor)

    def _shorten(self, lines: list[str]) -> None:
        assert self._file is not None
        with suppress(OSError):
            other = self._file.with_name(f"{self._file.name}.{os.getpid()}")
            other.write_text("".join(line + "\n" for line in lines), encoding="utf-8")
            other.chmod(0o600)
            other.replace(self._file)
