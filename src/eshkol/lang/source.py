"""Where a piece of a program stands in its text; every syntax object and every core form has such a place."""

from __future__ import annotations

from bisect import bisect_right
from functools import cached_property

from eshkol.errors import Span


class Source:
    """A text that was read, and the name that people know it by: a path, "<stdin>", "<-e>"."""

    def __init__(self, name: str, text: str) -> None:
        self.name, self.text = name, text

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


class Place:
    """Characters `start` to `end` of a source; what a macro wrote also knows the use that made it (`via`)."""

    __slots__ = ("end", "source", "start", "via")

    def __init__(self, source: Source, start: int, end: int, via: Place | None = None) -> None:
        self.source, self.start, self.end, self.via = source, start, end, via

    @property
    def span(self) -> Span:
        """The first line of it, for an error."""
        line, column = self.source.position(self.start)
        text = self.source.line(line)
        return Span(self.source.name, line, column, max(1, min(self.end - self.start, len(text) - column + 1)), text)
