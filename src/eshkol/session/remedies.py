"""What to do about a condition that no one handled: one table, from what was said to a hint.

Comes in: the kind of an error object and its message. Goes out: a hint, or None where
the message says all that is known. Reports (report.py) ask for it; a row is a kind, a pattern of the message, and the
hint, in which {0}, {1} … are the groups of the pattern.
"""

from __future__ import annotations

import re
import sys

from eshkol.lang.guesses import near_names

NUMBER = r"[-+]?[\d./]+(?:e[-+]?\d+)?"
LONGEST = 60  # characters of a value in a hint

SEVERAL = "(receive (a b) expression body), let-values and define-values take several values apart"
ROWS: tuple[tuple[str, str, str], ...] = (
    ("wrong-type", "cannot be called: #<unspecified>$",
     "a form that gives no value, such as define or display, stands first in parentheses; perhaps there is a "
     "pair of parentheses too many"),
    ("wrong-type", "cannot be called: (.+)$",
     "what stands first in parentheses is called; without parentheses around it, {0} is a value"),
    ("wrong-type", "but got #<values ", SEVERAL),
    ("wrong-type", "expected a procedure ", "a procedure is the name of one, such as sin, or (lambda (x) ...)"),
    ("wrong-type", r"expected a number .*but got (\".*\")$",
     "(string->number {0}) reads the number that a string shows"),
    ("wrong-type", "expected a number .*but got #f$",
     "#f often means that nothing was found: string->number, assoc and member give it"),
    ("wrong-type", "expected a number .*but got #<unspecified>$",
     "the argument is a form that gives no value, such as display or set!"),
    ("wrong-type", r"expected a number .*but got \(.*\)$",
     "(apply + list) takes the elements of a list, (map f list) works on each of them"),
    ("wrong-type", rf"expected a string .*but got ({NUMBER})$", "(number->string {0}) writes a number as a string"),
    ("wrong-type", r"expected a string .*but got ([^\s\"#(\d]\S*)$", "(symbol->string '{0}) is the name of a symbol"),
    ("wrong-type", r"expected a symbol .*but got (\".*\")$", "(string->symbol {0}) is the symbol of that name"),
    ("wrong-type", r"expected a pair .*but got \(\)$",
     "the list is empty here: ask (pair? list) or (null? list) first"),
    ("wrong-type", r"expected a pair .*but got #\(",
     "a vector is read with vector-ref, or made a list by vector->list"),
    ("wrong-type", "expected a pair ", "car and cdr take lists that are not empty, and pairs made by cons"),
    ("wrong-type", "^apply: expected a list ",
     "the last argument of apply is the list of the arguments: (apply f (list 1 2))"),
    ("wrong-type", r"expected a list .*but got #\(",
     "(vector->list vector) makes a list of a vector; vector-map and vector-for-each walk along it"),
    ("wrong-type", "expected a list .*but got #<tensor", "(tensor->list tensor) makes a list of a tensor"),
    ("wrong-type", r"expected a list .*but got (\".*\")$", "(string->list {0}) is the list of the characters"),
    ("wrong-type", r"expected a list .*but got (\S+)$", "(list {0}) is a list of one element"),
    ("wrong-type", r"expected a vector .*but got \(.*\)$",
     "(list->vector list) makes a vector of a list; list-ref reads an element of a list"),
    ("wrong-type", rf"expected an index .*but got ({NUMBER})$",
     "an index is an exact integer from 0: (exact {0}) where it has no fraction"),
    ("range", "expected an index from 0 to -1 ", "there are no elements"),
    ("range", r"expected an index from 0 to (\d+) ", "indices count from 0, and the last is {0}"),
    ("range", "has no such key",
     "(hash-table-ref/default table key default) gives a default instead; (hash-table-contains? table key) asks"),
    ("arithmetic", "division by zero", "ask (zero? divisor) first; inexact numbers give infinity: (/ 1.0 0.0)"),
    ("file-error", r"No such file or directory (\".*\")$",
     "a path begins in the folder where the program was started; (file-exists? {0}) asks"),
    ("python", r"^([^:\s]+): TypeError: .*argument", ",doc {0} at the prompt tells how it is called"),
    ("python", "ModuleNotFoundError: No module named '([^']+)'", "install {0} for the Python that runs Eshkol"),
)  # fmt: skip


def remedy(kind: str, message: str) -> str | None:
    """The hint for an error of a kind with a message."""
    if kind == "wrong-arity":
        return _arguments(message)
    for of_kind, pattern, hint in ROWS:
        if of_kind == kind and (found := re.search(pattern, message, re.DOTALL)):
            return hint.format(*(part if len(part) <= LONGEST else "…" for part in found.groups()))
    return _attribute(message) if kind == "python" else None


def _arguments(message: str) -> str | None:
    found = re.search(r"takes (at least |at most )?(\d+)(?: (?:to|or) (\d+))? arguments?, but was given (\d+)", message)
    if found is None:
        return SEVERAL if re.search("expected 1 value, but got [1-9]", message) else None
    least, most, given = int(found[2]), int(found[3] or found[2]), int(found[4])
    if given < least:
        return f"{least - given} more must be given"
    return f"{given - most} must be left out, or a parenthesis stands in the wrong place"


def _attribute(message: str) -> str | None:
    """What an object of Python has that is called like what it has not."""
    found = re.search(r"AttributeError: module '([^']+)' has no attribute '([^']+)'", message)
    near = near_names(found[2], dir(sys.modules[found[1]])) if found and found[1] in sys.modules else []
    return f"did you mean `{near[0]}`?" if near else None
