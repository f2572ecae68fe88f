"""Parts of a program on lines: who wrote it says where lines end, within reason; this says where they begin.

Comes in: `Parts`. Goes out: the text. A line break stays where one was, and one is added where a line would be too
long, where something follows what has several lines, and before the body of a form that has several lines; so what came
out comes out again. Parentheses close behind what they hold.
"""

from __future__ import annotations

from eshkol.lang.deep import run_deep
from eshkol.lang.formatting.parts import Comment, Form, Item, Parts, is_skipped, width_of
from eshkol.lang.formatting.rules import (
    BESIDE_BEGIN,
    DEFINITION,
    FILLED,
    GUARD_CLAUSES,
    NAMED,
    WIDTH,
    Role,
    Rule,
    defines,
    rule_of,
)

DEEP = 150  # lists within one another; more need a large stack
BLANK_LINES_INSIDE, BLANK_LINES_OUTSIDE = 1, 2
FAR = 80  # columns behind which a first argument begins a line, if it is too long for this one, and not for that
SHORT = 16  # characters of a quoted list that stands like a name
_PLAIN = Rule(None, joins=False)


def laid_out(parts: Parts) -> str:
    """The text of a program, laid out."""
    layout = _Layout(parts)
    if parts.deepest > DEEP:
        run_deep(layout.whole)
    else:
        layout.whole()
    text = "".join(layout.out)
    if text:
        text += "\n"
    return text + parts.rest


class _Layout:
    def __init__(self, parts: Parts) -> None:
        self.top, self.rules = parts.top, parts.rules
        self.out: list[str] = []
        self.column = 0
        self.indent = 0  # of the line at hand
        self.lines = 0
        self.parted = False  # the line at hand is part of what was one line

    def whole(self) -> None:
        top = self.top
        top.breaks[:1] = [0] * len(top.breaks[:1])
        self._items(top, _Way(None, Role.CODE, base=0), Role.CODE, 0)

    # ---- pieces ------------------------------------------------------------------------------------------------------

    def _write(self, text: str) -> None:
        self.out.append(text)
        end = text.rfind("\n")
        if end < 0:
            self.column += len(text)
        else:
            self.column, self.indent = len(text) - end - 1, 0

    def _new_line(self, breaks: int, column: int) -> None:
        self.out.append("\n" * breaks + " " * column)
        self.column = self.indent = column
        self.lines += 1

    def _comment(self, comment: Comment, breaks: int, column: int, first: bool) -> None:
        if breaks:
            self._new_line(breaks, column)
            self.parted = False
        elif not first:
            space = 1
            if not comment.block:
                aligned = comment.column + self.indent - comment.indent - self.column
                space = max(1, comment.gap if comment.gap <= 2 or self.parted else aligned)
            self._write(" " * space)
        self._write(comment.text)

    # ---- lists -------------------------------------------------------------------------------------------------------

    def _item(self, item: Item, role: Role, closing: int) -> None:
        """Write an atom or a list, with so many parentheses closed behind it."""
        if type(item) is str:
            self._write(item)
        else:
            assert type(item) is Form
            flat, width = item.flat, item.width
            if flat is not None and width is not None and (self.column + width + closing <= WIDTH or not item.items):
                self._write(flat)
            else:
                self._broken(item, role, closing)

    def _broken(self, form: Form, role: Role, closing: int) -> None:
        """Write a list that has several lines, or will have."""
        self._write(form.opener)
        role = _behind_prefix(form.opener, role)
        way = self._way(form, role)
        if form.width is not None:
            _spread(form, way)
        closing += len(form.close)
        last = form.items[-1] if form.items else None
        if type(last) is Comment and not last.block:
            self._items(form, way, role, 0)
            self._new_line(1, way.column(len(form.items) + 1))
        else:
            self._items(form, way, role, closing)
        self._write(form.close)

    def _way(self, form: Form, role: Role) -> _Way:
        """How the items of a list stand to each other."""
        base = self.column
        if form.opener[-1] not in "([" or form.opener[-2:-1] in ("#", "8") or role is Role.DATA:
            return _Way(_PLAIN if _is_under_second(form) else None, Role.DATA, base)
        if role in (Role.BINDINGS, Role.BINDING):
            return _Way(None, role, base)
        if role in (Role.CLAUSE, Role.MATCH):
            return _Way(_PLAIN, role, base)
        if role is Role.GUARD:
            return _Way(GUARD_CLAUSES, Role.CODE, base)
        head = form.items[0]
        if type(head) is not str or head[0] in "\"#'`,0123456789:":
            return _Way(None, Role.TEMPLATE if role is Role.TEMPLATE else Role.CLAUSE, base)
        rule = None if role is Role.CALL else rule_of(head, self.rules)
        if rule is None:
            return self._call(form, role, base)
        if head in NAMED:
            named = next((item for item in form.items[1:] if not is_skipped(item)), None)
            if type(named) is str:
                rule = NAMED[head]
        elif head == "begin" and form.width is None and not form.breaks[1] and type(form.items[1]) is not Comment:
            rule = BESIDE_BEGIN
        return _Way(rule, Role.CODE, base)

    def _call(self, form: Form, role: Role, base: int) -> _Way:
        """A call; or, by where its author has put them, something with a body that the table does not know."""
        head = form.items[0]
        assert type(head) is str
        defining = role is not Role.CALL and defines(head)
        if form.columns and role is not Role.CALL:
            roles = DEFINITION.roles if defining else ()
            number = -1
            for index, item in enumerate(form.items):
                number += not is_skipped(item)
                if form.breaks[index] and not is_skipped(item):
                    inwards = form.columns[index] - form.column
                    if number < 2:
                        break
                    if inwards == 2:
                        return _Way(Rule(number - 1, roles, joins=False), Role.CODE, base, guessed=True)
                    if inwards == 1 and role is Role.TEMPLATE:
                        return _Way(None, Role.TEMPLATE, base)
                    break
        if defining:
            return _Way(DEFINITION, role, base, guessed=True)
        return _Way(_PLAIN, Role.DATA if role is Role.CALL else role, base)

    def _items(self, form: Form, way: _Way, role: Role, closing: int) -> None:
        items, breaks = form.items, form.breaks
        last = len(items) - 1
        blanks = BLANK_LINES_OUTSIDE if form is self.top else BLANK_LINES_INSIDE
        number = 0  # of the datum at hand
        before: Item | None = None
        several = False  # what is before it has several lines
        filled = False  # a line was too long: what is left of it goes to the next one
        for index, item in enumerate(items):
            ends = min(breaks[index], blanks + 1)
            if type(before) is Comment and not before.block:
                ends = max(ends, 1)
            if type(item) is Comment:
                self._comment(item, ends, way.column(number), index == 0)
                before, filled = item, False
                continue
            room = WIDTH - closing if index == last else WIDTH
            if filled:
                filled, ends = not ends, ends if ends > 1 else 0
            if index and not ends and not _holds(before, item) and not (index == 1 and form.is_joined()):
                if several or way.begins_line(number):
                    ends = 1
                else:
                    width = width_of(item)
                    if width is not None and self.column + 1 + width > room:
                        ends = way.may_break(number, width, room, self.column)
                        filled = filled or (ends > 0 and form is not self.top and _is_filled(form))
            lines = self.lines
            if ends:
                self._new_line(ends, way.column(number))
                self.parted = not breaks[index] or form.width is not None
                lines += 1
            elif index:
                self._write(" ")
            if number == 1 and not ends:
                way.first = self.column
            self._item(item, way.role(number, role), closing if index == last else 0)
            several = self.lines > lines
            before = item
            if not is_skipped(item):
                number += 1


class _Way:
    """How the items of one list stand: by a rule, or one under the other."""

    __slots__ = ("base", "first", "guessed", "kind", "rule")

    def __init__(self, rule: Rule | None, kind: Role, base: int, guessed: bool = False) -> None:
        self.rule = rule  # None: one under the other
        self.kind = kind  # which decides the roles of the items where no rule does
        self.base = base  # behind the parenthesis
        self.first = -1  # where the first argument stands, if it is on the line of the first word
        self.guessed = guessed

    def column(self, number: int) -> int:
        """Where an item begins that begins a line; they are counted from 0."""
        rule = self.rule
        if rule is None or number == 0:
            return self.base
        if rule.kept is None:
            return self.base if self.first < 0 else self.first
        return self.base + (3 if number <= rule.kept and not self.guessed else 1)

    def begins_line(self, number: int) -> bool:
        """Whether an item always does, where the list has several lines."""
        rule = self.rule
        if rule is None:
            return False
        if rule.each:
            return number > (1 if rule.kept is None else rule.kept)
        return rule.kept is not None and number == rule.kept + 1

    def may_break(self, number: int, width: int, room: int, column: int) -> int:
        """Whether an item that is too long for the rest of its line is to begin another one."""
        rule = self.rule
        if rule is None:
            return 1
        if rule.kept is not None:
            return int(number > rule.kept or (number > 1 and rule.role(number) is not Role.BINDINGS))
        if number == 1:
            return int(not rule.joins and column > FAR and self.base + width <= room)
        return 1

    def role(self, number: int, outer: Role) -> Role:
        """What the item with this number is."""
        rule, kind = self.rule, self.kind
        if rule is not None and rule is not _PLAIN:
            return rule.role(number) if number else Role.CODE
        if kind is Role.CLAUSE:
            return Role.CODE
        if kind in (Role.MATCH, Role.BINDING):
            return Role.CODE if number else Role.DATA
        if kind is Role.BINDINGS:
            return Role.BINDING
        return outer if kind is Role.CODE else kind


def _is_under_second(form: Form) -> bool:
    """Whether the author of a datum has put its parts under the second one, as those of a call."""
    if not form.columns or type(form.items[0]) is not str or form.breaks[1] or is_skipped(form.items[1]):
        return False
    return next(iter(form.columns.values())) == form.column + len(form.items[0]) + 2


def is_keyword(item: Item | None) -> bool:
    return type(item) is str and item[0] == ":" and len(item) > 1


def _behind_prefix(opener: str, role: Role) -> Role:
    """What a list is that has prefixes before it."""
    prefix = opener[:-1] if opener[-1] in "([{" else opener
    if prefix.endswith(("`", "#'")):
        return Role.TEMPLATE
    if prefix.endswith("'"):
        return Role.DATA
    return Role.CODE if prefix.endswith((",", "@")) else role


def _spread(form: Form, way: _Way) -> None:
    """A list that was on one line and is too long for it: which of its items begin lines.

    The expressions of a body do, and of other arguments each list, but not the first; atoms fill the lines.
    """
    body = way.rule is not None and way.rule.kept is not None
    clause = body or way.kind in (Role.CLAUSE, Role.MATCH, Role.BINDINGS)
    if not clause and _is_filled(form):
        return
    least = 1 if (way.rule is None or clause) and not form.is_joined() else 2
    if body:
        assert way.rule is not None
        assert way.rule.kept is not None
        least = way.rule.kept + 1
    number = 0
    breaks = form.breaks
    before: Item | None = None
    for index, item in enumerate(form.items):
        parted = clause or _is_long(item) or _is_long(before)
        if number >= least and parted and not _holds(before, item) and type(item) is not Comment:
            breaks[index] = 1
        number += not is_skipped(item)
        before = item


def _is_filled(form: Form) -> bool:
    """Whether the items of a list fill its lines: names, numbers, names of libraries."""
    return form.items[0] in FILLED or all(type(item) is not Form for item in form.items[1:])


def _is_long(item: Item | None) -> bool:
    """Whether an argument is more than an atom, or a constant that is no longer than one."""
    return type(item) is Form and not (item.width is not None and item.width <= SHORT and item.opener == "'(")


def _holds(before: Item | None, item: Item) -> bool:
    """Whether an item stays on the line of the one before it."""
    return before == "." or item == "..." or is_keyword(before)
