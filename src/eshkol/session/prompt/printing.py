"""Values on a terminal: laid out in lines, and cut short where they are large.

Comes in: a session and a value. Goes out: lines, and whether anything was left out. A pipe is given everything
(`Session.written`); what is shown here is for people, and an ellipsis is not read back.
"""

from __future__ import annotations

from dataclasses import dataclass

from eshkol.runtime.scheme import Machine, Root, Value
from eshkol.session import Session

ELLIPSIS = "…"


@dataclass(frozen=True, slots=True)
class Limits:
    """How much of a value is shown."""

    items: int = 100  # of one list or vector
    whole: int = 1000  # data in all
    depth: int = 40
    letters: int = 1000  # of one string, number or anything else that is no list


@dataclass(slots=True)
class _Group:
    """A list or vector that is to be laid out."""

    opening: str
    items: list[str | _Group]


class _Circle(Exception):
    """There is a way from a datum to itself: the runtime's printer knows labels."""


class _Walk:
    def __init__(self, machine: Machine, limits: Limits) -> None:
        self.machine, self.limits = machine, limits
        self.left = limits.whole
        self.cut = False
        self._around: set[int] = set()  # addresses of what the walk is inside of

    def datum(self, value: Value, depth: int) -> str | _Group:
        tags = self.machine.tags
        self.left -= 1
        if value.tag not in (tags["PAIR"], tags["VECTOR"]):
            return self.atom(value)
        if depth > self.limits.depth or self.left <= 0:
            self.cut = True
            return ELLIPSIS
        if value.bits in self._around:
            raise _Circle
        before = set(self._around)
        try:
            return self.list(value, depth) if value.tag == tags["PAIR"] else self.vector(value, depth)
        finally:
            self._around = before

    def atom(self, value: Value) -> str:
        text, most = self.machine.written(value), self.limits.letters
        if len(text) <= most:
            return text
        self.cut = True
        half = most // 2
        return f"{text[:half]}{ELLIPSIS}{text[-half // 4 :]}"

    def vector(self, value: Value, depth: int) -> _Group:
        self._around.add(value.bits)
        elements, length = self.machine.elements(value, self.limits.items)
        items: list[str | _Group] = []
        for element in elements:
            if self.left <= 0:
                break
            items.append(self.datum(element, depth + 1))
        if len(items) < length:
            self.cut = True
            items.append(ELLIPSIS)
        return _Group("#(", items)

    def list(self, value: Value, depth: int) -> _Group:
        pair, null = self.machine.tags["PAIR"], self.machine.tags["NULL"]
        items: list[str | _Group] = []
        while value.tag == pair:
            if value.bits in self._around:
                raise _Circle
            if len(items) >= self.limits.items or self.left <= 0:
                self.cut = True
                items.append(ELLIPSIS)
                return _Group("(", items)
            self._around.add(value.bits)
            first, value = self.machine.pair(value)
            items.append(self.datum(first, depth + 1))
        if value.tag != null:
            items += [".", self.datum(value, depth + 1)]
        return _Group("(", items)


def printed(session: Session, value: Value, width: int, limits: Limits | None = None) -> tuple[list[str], bool]:
    """A value as people want to see it, or several, each from a line of its own; and whether something is left out."""
    machine, limits = session.machine, limits or Limits()
    keeper = Root(machine, value)
    if value.tag == machine.tags["VALUES"]:
        parts = [printed(session, item, width, limits) for item in machine.several(keeper.get())]
        return [line for lines, _ in parts for line in lines], any(cut for _, cut in parts)
    if machine.is_unspecified(value):
        return [], False
    walk = _Walk(machine, limits)
    try:
        return _laid_out(walk.datum(value, 0), 0, width, 0).split("\n"), walk.cut
    except _Circle:
        return [walk.atom(keeper.get())], walk.cut


def _laid_out(item: str | _Group, column: int, width: int, closing: int) -> str:
    """The text of a datum that begins at a column, with so many parentheses after it."""
    if isinstance(item, str):
        return item
    flat = _flat(item, width - column - closing)
    if flat is not None:
        return flat
    inner = column + len(item.opening)
    out, at = item.opening, inner
    after = False  # whether an atom stands before: what follows one may stand on its line
    for number, part in enumerate(item.items):
        behind = closing + 1 if number == len(item.items) - 1 else 0
        text = _flat(part, width - at - 1 - behind) if after else None
        if text is not None:
            out, at = f"{out} {text}", at + 1 + len(text)
        else:
            text = _laid_out(part, inner, width, behind)
            out, at = f"{out}\n{' ' * inner}{text}" if number else out + text, inner + len(text.rpartition("\n")[2])
        after = isinstance(part, str)
    return out + ")"


def _flat(item: str | _Group, room: int) -> str | None:
    """A datum on one line, if there is room for it."""
    if isinstance(item, str):
        return item if len(item) <= room else None
    parts = []
    room -= len(item.opening) + 1 + max(0, len(item.items) - 1)
    for part in item.items:
        text = _flat(part, room)
        if text is None:
            return None
        parts.append(text)
        room -= len(text)
    return f"{item.opening}{' '.join(parts)})" if room >= 0 else None
