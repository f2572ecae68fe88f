"""Transcripts (lang/transcripts.py) as programs: each form says by itself what came of it.

Comes in: the text of a transcript. Goes out: the text of a program that does the same things one after the other, and
goes on after errors. Where a form cannot stand in a program (it is wrong in itself, or defines a name again), it is
left out: whoever expands the program finds that out.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from eshkol.errors import LanguageError
from eshkol.lang.transcripts import Check, split

TRIES = 40  # forms that are left out of one program
DEFINES = re.compile(r"\((?:define|begin|import|module|require|include|provide|cond-expand|declare|:|pragma)[^\s]*\s")
PRELUDE = """\
(define (%told condition)
  (display "error: ")
  (if (error-object? condition)
      (begin (write (error-object-kind condition)) (display (error-object-message condition))
             (for-each (lambda (i) (display " ") (write i)) (error-object-irritants condition)))
      (write condition)))
(define (%said number thunk)
  (call-with-current-continuation
    (lambda (leave)
      (with-exception-handler
        (lambda (condition) (%told condition) (leave #f))
        (lambda ()
          (call-with-values thunk
            (lambda all (for-each (lambda (value) (write value) (display " ")) all)))))))
  (display " ;") (display number) (newline))
"""


def program_of(text: str, check: Callable[[str], object]) -> tuple[str, int]:
    """A program that does what a transcript does, and how many forms are left out; `check` expands one or raises."""
    checks, left_out = split(text), set[int]()
    for _ in range(TRIES):
        made, lines = _written(checks, left_out)
        try:
            check(made)
        except LanguageError as error:
            if error.span is None:
                raise
            left_out.add(lines[min(error.span.line, len(lines)) - 1])
        else:
            return made, len(left_out)
    raise AssertionError("too much of this transcript cannot stand in a program")


def _written(checks: list[Check], left_out: set[int]) -> tuple[str, list[int]]:
    """The program, and the number of the form that each of its lines belongs to."""
    imports = [check.form.removeprefix("(import").removesuffix(")") for check in checks if _imports(check)]
    head = f"(import (eshkol){' '.join(imports)})\n{PRELUDE}" if imports else PRELUDE
    parts = [head]
    lines = [-1] * head.count("\n")
    for number, check in enumerate(checks):
        if number in left_out or _imports(check):
            continue
        form = check.form if DEFINES.match(check.form) else f"(%said {number} (lambda () {check.form}))"
        parts.append(form + "\n")
        lines += [number] * (form.count("\n") + 1)
    return "".join(parts), [*lines, len(checks) - 1]


def _imports(check: Check) -> bool:
    return check.form.startswith("(import ")


def folder_of_transcripts() -> Path:
    return Path(__file__).parents[1] / "scheme"
