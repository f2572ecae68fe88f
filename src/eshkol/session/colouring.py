"""Errors in colours: for the prompt at a terminal, and for notebooks.

Comes in: an error. Goes out: lines with ANSI colours.
"""

from __future__ import annotations

from eshkol.errors import EshkolError, Interrupted

RESET, BOLD, DIM, RED, GREEN, CYAN = "\x1b[0m", "\x1b[1m", "\x1b[2m", "\x1b[31m", "\x1b[32m", "\x1b[36m"


def coloured(error: BaseException) -> list[str]:
    """An error as lines with colours: the message, the line with its caret, who called whom, the hint."""
    if isinstance(error, Interrupted) or not isinstance(error, EshkolError):
        word = "interrupted" if isinstance(error, (Interrupted, KeyboardInterrupt)) else type(error).__name__
        lines = str(error).splitlines()
        return [f"{BOLD}{RED}{word}{RESET}", *map(_coloured_line, lines[1:] if lines[:1] == [word] else lines)]
    first, *rest = str(error).splitlines() or [type(error).__name__]
    return [f"{BOLD}{RED}error:{RESET} {BOLD}{first}{RESET}", *map(_coloured_line, rest)]


def _coloured_line(line: str) -> str:
    bare = line.strip()
    if bare.startswith("-->"):
        return f"{CYAN}{line}{RESET}"
    if bare and not bare.strip("^~"):
        return f"{RED}{line}{RESET}"
    if bare.startswith("hint:"):
        return f"{GREEN}{line}{RESET}"
    if line.startswith(("  in ", "  and ")):
        return f"{DIM}{line}{RESET}"
    return line
