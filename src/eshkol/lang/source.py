"""Where a piece of a program stands in its text; every syntax object and every core form has such a place."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field
from functools import cached_property

from eshkol.errors import Span


@dataclass(eq=False)
class Source:
    """A text that was read, and the name that people know it by: a path, "<stdin>", "<-e>"."""

    name: str
    text: str

    @cached_property
    def _line_starts(self) -> list[int]:
        return [0, *(i + 1 for i, char in enumerate(self.text) if char == "\n")]

    def position(self, offset: int) -> tuple[int, int]:
        """Line and column of a character, both from 1."""
        line = bisect_right(self._line_starts, offset)
        return line, offset - self._line_starts[line - 1] + 1

    def offset(self, line: int, column: int) -> int:
        """The character at a line and column."""
        return self._line_starts[min(line, len(self._line_starts)) - 1] + column - 1

    def line(self, number: int) -> str:
        start = self._line_starts[number - 1]
        end = self.text.find("\n", start)
        return self.text[start : len(self.text) if end < 0 else end]


@dataclass(frozen=True, slots=True, eq=False)
class Place:
    """Characters `start` to `end` of a source; what a macro wrote also knows the use that made it."""

    source: Source
    start: int
    end: int
    via: Place | None = field(default=None)  # the use of the macro that wrote this

    @property
    def span(self) -> Span:
        """The first line of it, for an error."""
        line, column = self.source.position(self.start)
        text = self.source.line(line)
        return Span(self.source.name, line, column, max(1, min(self.end - self.start, len(text) - column + 1)), text)
