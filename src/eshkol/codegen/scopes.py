"""Which procedure a place in a program belongs to.

Inlining takes code out of its function, so the function that an address lies in is not always the one that was written
there. Comes in: the procedures of a unit. Goes out: a table as text, kept with the unit's code and read only when an
error is to be shown.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable

from eshkol.lang.core import Lambda
from eshkol.lang.files import file_name
from eshkol.lang.source import Place, Source

ANONYMOUS = "lambda"
ENTRY = Place(Source("<entry>", ""), 0, 0)  # of code that checks how a procedure was called: an error of the caller


def written_at(place: Place) -> Place:
    """Where the user wrote something: what a macro wrote is shown where the macro is used."""
    while place.via is not None:
        place = place.via
    return place


def scopes_of(procedures: Iterable[Lambda]) -> str:
    """The table of some procedures: file → [[first line, column, last line, column, name] ...]."""
    files: dict[str, list[tuple[int, int, int, int, str]]] = {}
    for node in procedures:
        if node.place is not None:
            place = written_at(node.place)
            position = place.source.position
            row = (*position(place.start), *position(place.end), node.name or ANONYMOUS)
            files.setdefault(file_name(place.source), []).append(row)
    return json.dumps(files, ensure_ascii=False, separators=(",", ":"))


def procedures_at(scopes: str) -> Callable[[str, int, int], list[str]]:
    """What gives, by file, line and column, the procedures around a place: the outermost first.

    Those without a name are among them only where none has one.
    """
    files = json.loads(scopes)

    def found(file: str, line: int, column: int) -> list[str]:
        around = sorted(
            (row[0], row[1], row[4])
            for row in files.get(file, ())
            if (row[0], row[1]) <= (line, column) < (row[2], row[3])
        )
        names = [name for _, _, name in around]
        return [name for name in names if name != ANONYMOUS] or names

    return found
