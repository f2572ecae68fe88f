"""Warnings that name the user's line, however deep in the package they are given.

Comes in: a message, and its kind. Goes out: Python's warning, as if the user's own statement had given it: of Python,
or of Scheme, whose file and line the session knows. Warnings of other packages, which name the file of ours that called
them, are shown at the line of Scheme, too, where a program of Scheme runs (`show_at_scheme`).
"""

from __future__ import annotations

import os
import sys
import warnings
from typing import Any

from eshkol.support import defaults

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_UNKNOWN = "<Scheme>", 1


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """Give a warning at the line of the user that is at work."""
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        frame, level = frame.f_back, level + 1
    if defaults.is_scheme():
        warnings.warn_explicit(message, category, *(defaults.line() or _UNKNOWN))
    else:
        warnings.warn(message, category, stacklevel=level)


class _AtScheme:
    """Shows warnings as another function does, those of Scheme's programs at their own lines."""

    def __init__(self, show: Any) -> None:
        self._show = show

    def __call__(
        self, message: Any, category: Any, filename: str, lineno: int, file: Any = None, line: str | None = None
    ) -> None:
        if defaults.is_scheme() and filename.startswith(_PACKAGE):
            filename, lineno = defaults.line() or _UNKNOWN
            line = None  # it was that of the other file
        self._show(message, category, filename, lineno, file, line)


def show_at_scheme() -> None:
    """From now on, a warning that names a file of ours while Scheme runs is shown at the line of Scheme."""
    if not isinstance(warnings.showwarning, _AtScheme):
        warnings.showwarning = _AtScheme(warnings.showwarning)
