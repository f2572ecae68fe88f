"""Lines from a dumb terminal, or from a pipe, where there is no prompt.

Comes in: lines. Goes out: texts of whole forms, and commands. Lines are read on the main thread, which alone hears of
Ctrl-C.
"""

from __future__ import annotations

import io
import sys
from contextlib import suppress
from typing import Any, Protocol

from eshkol.errors import EshkolError
from eshkol.session.describing import is_unfinished
from eshkol.support.interrupts import hearing
from eshkol.support.store import default_directory

HISTORY_FILE, HISTORY_LINES = "repl-history", 10_000
COMMAND = ","


class Reader(Protocol):
    """Where forms are typed."""

    def read(self, prompt: str) -> str | None:
        """The text of whole forms, or a command; None at the end."""

    def close(self) -> None:
        """Nothing more will be read."""


def is_command(text: str) -> bool:
    """Whether it is a command of the prompt, and not a form."""
    return text.lstrip().startswith(COMMAND)


def argument(text: str) -> str:
    """What stands after a command's word."""
    return text.strip().partition(" ")[2]


def is_whole(text: str) -> bool:
    """Whether it can be evaluated as it is."""
    return not is_unfinished(argument(text) if is_command(text) else text)


class PlainReader:
    """Reads line by line; on a terminal with what Python's `input` has of editing."""

    def __init__(self, interactive: bool) -> None:
        self._interactive = interactive
        self._history = _History() if interactive else None
        if isinstance(sys.stdin, io.TextIOWrapper) and not interactive:
            sys.stdin.reconfigure(errors="replace")

    def read(self, prompt: str) -> str | None:
        """The text of whole forms, or a command; None at the end."""
        text = ""
        while True:
            try:
                text += self._line(" " * len(prompt) if text else prompt) + "\n"
            except EOFError:
                if self._interactive:
                    print()
                return text if text and not self._interactive else None
            except KeyboardInterrupt:
                print("\n", end="")
                text = ""
                continue
            if not text.strip():
                text = ""
            elif is_whole(text):
                return text

    def _line(self, prompt: str) -> str:
        with hearing():  # nothing is lost while someone types
            if self._interactive:
                return input(prompt)
            line = sys.stdin.readline() if sys.stdin is not None else ""
        if not line:
            raise EOFError
        return line.removesuffix("\n")

    def close(self) -> None:
        if self._history is not None:
            self._history.save()


class _History:
    """The lines of earlier sessions, where Python has readline."""

    def __init__(self) -> None:
        self._readline: Any = None
        with suppress(ImportError, OSError, EshkolError):
            import readline

            self._readline = readline
            self._file = default_directory() / HISTORY_FILE
            readline.set_history_length(HISTORY_LINES)
            if self._file.exists():
                readline.read_history_file(self._file)

    def save(self) -> None:
        if self._readline is not None:
            with suppress(OSError, AttributeError):
                self._file.parent.mkdir(parents=True, exist_ok=True)
                self._readline.write_history_file(self._file)
