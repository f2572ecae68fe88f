"""The error of arguments that make no sense; `main.py` turns it into a line and an exit code."""

from __future__ import annotations


class UsageError(Exception):
    """Arguments that make no sense. The message becomes one line."""

    def __init__(self, message: str, prog: str = "eshkol") -> None:
        super().__init__(message)
        self.message, self.prog = message, prog
