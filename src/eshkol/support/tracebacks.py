"""Tracebacks of Eshkol's errors end in the user's line.

Comes in: an error that no one caught. Goes out: the traceback that Python, or IPython, prints, without the frames of
this package, which are no one's business who has made a mistake in a call: the message has the line and the hint.
Errors of other kinds, such as those of a defect of ours, are shown whole, and so is everything with ESHKOL_DEBUG=1.
"""

from __future__ import annotations

import sys
from pathlib import Path
from types import TracebackType
from typing import Any

from eshkol.errors import EshkolError
from eshkol.support import flags

PACKAGE = str(Path(__file__).parents[1])


def show(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """Print an uncaught exception, as `sys.excepthook` does."""
    if isinstance(error, EshkolError) and not flags.is_on("ESHKOL_DEBUG"):
        trace = without_ours(trace) or trace
        error.__traceback__ = trace
    sys.__excepthook__(kind, error, trace)


def show_in_ipython(shell: Any) -> None:
    """Let IPython, and with it Jupyter, show them so, unless the user has told it to show errors in another way."""
    if shell is not None and not shell.custom_exceptions:
        shell.set_custom_exc((EshkolError,), _shown)


def _shown(
    shell: Any, kind: type[BaseException], error: BaseException, trace: Any, tb_offset: int | None = None
) -> Any:
    """What IPython calls for an error of ours. The first frame is its own, of the call of the cell."""
    if not flags.is_on("ESHKOL_DEBUG"):
        trace = without_ours(trace) or trace
        error.__traceback__ = trace
    shell.showtraceback((kind, error, trace), tb_offset=tb_offset, running_compiled_code=True)
    return None


def without_ours(trace: TracebackType | None) -> TracebackType | None:
    """A traceback of the frames that are not of this package."""
    if trace is None:
        return None
    rest = without_ours(trace.tb_next)
    if trace.tb_frame.f_code.co_filename.startswith(PACKAGE):
        return rest
    return TracebackType(rest, trace.tb_frame, trace.tb_lasti, trace.tb_lineno)
