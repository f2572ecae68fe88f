"""The tables by which a program that runs without Python tells where an error was.

Comes in: the object of a program, whose line table LLVM wrote, and what is known of its files. Goes out: `Places`, as
the runtime has them (runtime/native/executable/program.h): from which address on code belongs to which site, and of
each site all that an error says of it. Texts are made here as session/report.py makes them, so that both say the same.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from eshkol.codegen.lines import LineTable, Site
from eshkol.codegen.scopes import ENTRY, procedures_at
from eshkol.errors import LINE_SHOWN
from eshkol.lang.source import Source
from eshkol.session.report import RAISING, is_standard, shown_site, span_of

NO_SITE = 0xFFFFFFFF
STANDARD_SITE, HIDDEN, IN_RAISE = 1, 2, 4  # flags, as in program.h
SITE = struct.Struct("<8I")


@dataclass
class Strings:
    """Texts behind one another, equal ones once."""

    data: bytearray = field(default_factory=bytearray)
    _known: dict[str, int] = field(default_factory=dict)

    def add(self, text: str) -> int:
        found = self._known.get(text)
        if found is None:
            found = self._known[text] = len(self.data)
            self.data += text.replace("\0", " ").encode("utf-8", "replace") + b"\0"
        return found


@dataclass
class Places:
    """Addresses, counted from the first of the code, and sites."""

    starts: list[int] = field(default_factory=list)
    places: list[int] = field(default_factory=list)
    sites: bytearray = field(default_factory=bytearray)
    strings: Strings = field(default_factory=Strings)


def places_of(table: LineTable, scopes: str, units: Mapping[str, str], find: Callable[[str], Source | None]) -> Places:
    """The places of a program: `units` says what stands in a file, `find` gives the text of one."""
    made, numbers = Places(), {}  # type: tuple[Places, dict[tuple[str, int, int], int]]
    where = procedures_at(scopes)
    for start, site in table.ranges():
        number = NO_SITE
        if site is not None and site.line and site.file != ENTRY.source.name:
            key = (site.file, site.line, site.column)
            if key not in numbers:
                procedures = tuple(where(site.file, site.line, site.column))
                unit = units.get(site.file, "program")
                whole = Site(site.file, site.line, site.column, procedures, unit)
                numbers[key] = len(made.sites) // SITE.size
                made.sites += _site(whole, made.strings, find)
            number = numbers[key]
        if not made.places or made.places[-1] != number:
            made.starts.append(start)
            made.places.append(number)
    return made


def _site(site: Site, strings: Strings, find: Callable[[str], Source | None]) -> bytes:
    standard = is_standard(site)
    hidden = standard and bool(site.procedures) and site.procedures[0].startswith("%")
    flags = STANDARD_SITE * standard | HIDDEN * hidden | IN_RAISE * (site.unit == RAISING)
    trace = strings.add(shown_site(site))
    source = None if standard else find(site.file)
    if source is None:
        return SITE.pack(trace, strings.add(Path(site.file).name), site.line, site.column, 0, 0, 0, flags)
    span = span_of(source, site)
    left_out, text = _window(span.text.expandtabs(1), span.column - 1)
    before = span.column - 1 - left_out
    marked = max(1, min(span.length, len(text) - before))
    file, shown = strings.add(span.file), strings.add(text)
    return SITE.pack(trace, file, span.line, span.column, shown, before, marked, flags)


def _window(text: str, place: int) -> tuple[int, str]:
    """As much of a line as is shown, and how many characters before the place are left out of it."""
    first = max(0, min(place - LINE_SHOWN // 2, len(text) - LINE_SHOWN))
    shown = f"{'…' * (first > 0)}{text[first : first + LINE_SHOWN]}{'…' * (first + LINE_SHOWN < len(text))}"
    return first - (first > 0), shown
