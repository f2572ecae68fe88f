"""Warnings that name the user's line, however deep in the package they are given.

Comes in: a message, and its kind. Goes out: Python's warning, as if the user's own statement had given it. For a
program of Scheme there is no such statement of Python's: then it names the language instead of a file of ours.
"""

from __future__ import annotations

import os
import sys
import warnings

from eshkol.support.defaults import is_scheme

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """Give a warning at the line of the user that is at work."""
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        frame, level = frame.f_back, level + 1
    if is_scheme():
        warnings.warn_explicit(message, category, "<Scheme>", 1)
    else:
        warnings.warn(message, category, stacklevel=level)
