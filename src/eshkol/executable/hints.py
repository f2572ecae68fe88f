"""What to do about an error, for programs without Python: the table of session/remedies.py with POSIX's expressions.

Comes in: that table. Goes out: texts behind one another for runtime/native/executable/hints.c: of each row the kind of
the error, a pattern, and the hint, in which the characters 1 to 9 stand for the groups of the pattern.
"""

from __future__ import annotations

import re

from eshkol.session.remedies import ROWS, SEVERAL

_PIECE = re.compile(r"\[(?:\\.|[^\]\\])+\]|\\.|\(\?:|\(|.", re.DOTALL)
_CLASSES = {"d": "[0-9]", "s": "[[:space:]]", "S": "[^[:space:]]"}
_IN_CLASS = {"d": "0-9", "s": "[:space:]"}
_PLAIN = set("\"'-/:,#")  # characters that POSIX must not see escaped


def hint_table() -> bytes:
    """All rows, the last with an empty kind; then what errors of several values say."""
    texts: list[str] = []
    for kind, pattern, hint in ROWS:
        if kind == "python":
            continue
        posix, groups = posix_pattern(pattern)
        for number, group in enumerate(groups):
            hint = hint.replace(f"{{{number}}}", chr(group))
        texts += [kind, posix, hint]
    texts += ["", SEVERAL]
    return "\0".join([*texts, ""]).encode()


def posix_pattern(pattern: str) -> tuple[str, list[int]]:
    """An expression of Python's as POSIX writes it, and the numbers that its groups have there."""
    pieces: list[str] = []
    groups: list[int] = []
    opened = 0
    for piece in _PIECE.findall(pattern):
        if piece in ("(", "(?:"):
            opened += 1
            if piece == "(":
                groups.append(opened)
            pieces.append("(")
        elif piece[0] == "[":
            pieces.append(re.sub(r"\\(.)", lambda found: _IN_CLASS.get(found[1], found[1]), piece))
        elif piece[0] == "\\":
            pieces.append(_CLASSES.get(piece[1], piece[1] if piece[1] in _PLAIN else piece))
        else:
            pieces.append(piece)
    return "".join(pieces), groups
