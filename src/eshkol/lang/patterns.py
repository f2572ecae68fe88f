"""Patterns and templates of syntax-rules and syntax-case, compiled once, where they are defined, to closures.

What is known of a pattern or template then (lengths, positions, which items are names, which parts are constant) is
settled in its closures; a use runs straight through them and looks at no pattern again.

A pattern matches a syntax object and gives the values of its variables, by position: syntax for a variable outside of
ellipses, a list (of lists ...) of syntax for one under them. A template makes syntax of such values.

    pattern = Pattern(syntax, literals, is_ellipsis)
    values = pattern.match(subject)                  # a list, or None
    template = Template(syntax, lookup, is_ellipsis)
    made = template.make(values, scopes, use)        # scopes: added to what the template itself writes

Where a variable stands under more ellipses in a template than in its pattern, it goes with the variables whose ellipses
it shares, ((a b ...) ...) giving ((a b) ... ...); else the innermost ellipses count for it, as R6RS has it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any

from eshkol.lang.datum import Datum, Labelled, List, Symbol, Vector
from eshkol.lang.meanings import free_identifier
from eshkol.lang.report import bad
from eshkol.lang.scopes import NO_SCOPES, Scopes
from eshkol.lang.source import Place
from eshkol.lang.syntax import Syntax
from eshkol.support.interrupts import check

LONGEST = 1 << 20  # items of one list that a template makes
DEEPEST = 2_000  # levels of a pattern or template

Values = list[Any]
Matcher = Callable[[Syntax, Values], bool]
_ellipsis_numbers = count(1)


@dataclass(frozen=True, slots=True, eq=False)
class PatternVariable:
    """A variable of a pattern: its position among the values, and the numbers of the ellipses that it stands under."""

    identifier: Syntax
    index: int
    ellipses: tuple[int, ...]

    @property
    def depth(self) -> int:
        return len(self.ellipses)


def _anything(subject: Syntax, values: Values) -> bool:
    return True


def _nothing(subject: Syntax, values: Values) -> bool:
    content = subject.content
    return type(content) is List and not content.items


class Pattern:
    """A compiled pattern. `is_wild` tells `_`; `literals` match what means the same as they do."""

    def __init__(
        self,
        syntax: Syntax,
        literals: Sequence[Syntax],
        is_ellipsis: Callable[[Syntax], bool],
        is_wild: Callable[[Syntax], bool],
        skip_first: bool = False,
    ) -> None:
        self.syntax = syntax
        self.literals = tuple(literals)
        self.variables: list[PatternVariable] = []
        self._literals = {(literal.content, literal.scopes): literal for literal in literals}
        self._is_ellipsis = is_ellipsis
        self._is_wild = is_wild
        self._seen: dict[tuple[Symbol, Scopes], Syntax] = {}
        content = syntax.content
        if skip_first and type(content) is List:  # the keyword of a macro is not matched
            self._match = self._sequence(content.items[1:], content.tail, (), 0, skip=1)
        else:
            self._match = self._compile(syntax, (), 0)
        self._nothing_yet = (None,) * len(self.variables)

    def match(self, subject: Syntax) -> Values | None:
        values: Values = [*self._nothing_yet]
        return values if self._match(subject, values) else None

    def _compile(self, pattern: Syntax, ellipses: tuple[int, ...], depth: int) -> Matcher:
        if depth > DEEPEST:
            raise bad(f"a pattern is nested more than {DEEPEST} levels deep", pattern)
        content = pattern.content
        kind = type(content)
        if kind is Symbol:
            return self._identifier(pattern, ellipses)
        if kind is List:
            if not content.items:
                return _nothing
            return self._sequence(content.items, content.tail, ellipses, depth)
        if kind is Vector:
            inner = self._sequence(content.items, None, ellipses, depth) if content.items else _nothing

            def match_vector(subject: Syntax, values: Values) -> bool:
                content = subject.content
                return type(content) is Vector and inner(Syntax(List(content.items), place=subject.place), values)

            return match_vector
        if kind is Labelled:
            raise bad("a pattern has no datum labels", pattern)
        return _match_datum(content)

    def _identifier(self, pattern: Syntax, ellipses: tuple[int, ...]) -> Matcher:
        key = (pattern.content, pattern.scopes)
        literal = self._literals.get(key)
        if literal is not None:
            wanted = literal
            return lambda subject, values: type(subject._content) is Symbol and free_identifier(subject, wanted)
        if self._is_ellipsis(pattern):
            raise bad("an ellipsis follows nothing", pattern, "(a ...) matches any number of a")
        if self._is_wild(pattern):
            return _anything
        if key in self._seen:
            raise bad(
                f"the pattern variable `{pattern.name}` occurs twice",
                pattern,
                notes=(("the first time here:", self._seen[key].place),),
            )
        self._seen[key] = pattern
        index = len(self.variables)
        self.variables.append(PatternVariable(pattern, index, ellipses))

        def match_variable(subject: Syntax, values: Values) -> bool:
            values[index] = subject
            return True

        return match_variable

    def _sequence(
        self,
        items: tuple[Syntax, ...],
        tail: Syntax | None,
        ellipses: tuple[int, ...],
        depth: int,
        skip: int = 0,
    ) -> Matcher:
        """A list, its first `skip` items aside."""
        at = next((i for i, item in enumerate(items) if i > 0 and self._repeats(item)), None)
        if at is None:
            return self._plain(items, tail, ellipses, depth, skip)
        for item in items[at + 1 :]:
            if self._repeats(item):
                raise bad("a list in a pattern has two ellipses", item)
        names, tests = self._row(items[: at - 1], skip, ellipses, depth)
        number, first = next(_ellipsis_numbers), len(self.variables)
        each = self._each(items[at - 1], first, (*ellipses, number), depth)
        none = [()] * (len(self.variables) - first)
        late = len(items) - at - 1
        names_after, tests_after = self._row(items[at + 1 :], -late, ellipses, depth)  # from the end
        names, tests = names + names_after, tests + tests_after
        end = None if tail is None else self._compile(tail, ellipses, depth + 1)
        early = skip + at - 1
        least = early + late

        def match_repeated(subject: Syntax, values: Values) -> bool:
            content = subject._content if subject._pending is None else subject.content
            if type(content) is not List:
                if least or end is None:
                    return False
                values[first : first + len(none)] = map(list, none)
                return end(subject, values)
            found = content.items
            size = len(found)
            if size < least or (end is None and content.tail is not None):
                return False
            for index, position in names:
                values[index] = found[position]
            for position, matcher in tests:
                if not matcher(found[position], values):
                    return False
            return each(found[early : size - late], values) and (
                end is None or end(_rest(subject, content, size), values)
            )

        return match_repeated

    def _each(self, item: Syntax, first: int, ellipses: tuple[int, ...], depth: int) -> Callable[[Any, Values], bool]:
        """What takes the items for a pattern with an ellipsis; its variables begin at `first`."""
        matcher = self._compile(item, ellipses, depth + 1)
        last = len(self.variables)
        if item.is_identifier and last > first:

            def take(items: tuple[Syntax, ...], values: Values) -> bool:
                values[first] = list(items)
                return True

            return take
        columns = range(last - first)

        def match_each(items: tuple[Syntax, ...], values: Values) -> bool:
            rows = []
            for item in items:
                check()
                if not matcher(item, values):
                    return False
                rows.append(values[first:last])
            values[first:last] = [[row[column] for row in rows] for column in columns]
            return True

        return match_each

    def _plain(
        self, items: tuple[Syntax, ...], tail: Syntax | None, ellipses: tuple[int, ...], depth: int, skip: int
    ) -> Matcher:
        first = len(self.variables)
        names, tests = self._row(items, skip, ellipses, depth)
        last, size = len(self.variables), skip + len(items)
        if tail is None and len(names) == len(items):

            def match_names(subject: Syntax, values: Values) -> bool:
                content = subject._content if subject._pending is None else subject.content
                if type(content) is not List or len(content.items) != size or content.tail is not None:
                    return False
                values[first:last] = content.items[skip:]
                return True

            return match_names
        end = None if tail is None else self._compile(tail, ellipses, depth + 1)

        def match_list(subject: Syntax, values: Values) -> bool:
            content = subject._content if subject._pending is None else subject.content
            if type(content) is not List:
                return False
            found = content.items
            if (len(found) != size or content.tail is not None) if end is None else len(found) < size:
                return False
            for index, position in names:
                values[index] = found[position]
            for position, matcher in tests:
                if not matcher(found[position], values):
                    return False
            return end is None or end(_rest(subject, content, size), values)

        return match_list

    def _row(
        self, items: tuple[Syntax, ...], start: int, ellipses: tuple[int, ...], depth: int
    ) -> tuple[list[tuple[int, int]], list[tuple[int, Matcher]]]:
        """Items from position `start` on: which of them are variables (index, position), and tests of the others."""
        names, tests = [], []
        for position, item in enumerate(items, start):
            index = len(self.variables)
            matcher = self._compile(item, ellipses, depth + 1)
            if item.is_identifier and len(self.variables) > index:
                names.append((index, position))
            elif matcher is not _anything:
                tests.append((position, matcher))
        return names, tests

    def _repeats(self, syntax: Syntax) -> bool:
        return (
            type(syntax._content) is Symbol
            and (syntax.content, syntax.scopes) not in self._literals
            and self._is_ellipsis(syntax)
        )


def _rest(subject: Syntax, content: List, size: int) -> Syntax:
    """The list after its first items."""
    if len(content.items) == size and content.tail is not None:
        rest: Syntax = content.tail
        return rest
    return Syntax(List(content.items[size:], content.tail), place=subject._place, via=subject._via)


def _match_datum(datum: Datum) -> Matcher:
    kind, shown = type(datum), repr(datum)

    def match_datum(subject: Syntax, values: Values) -> bool:
        content = subject.content
        return type(content) is kind and (content == datum if kind is not float else repr(content) == shown)

    return match_datum


# ---- templates -------------------------------------------------------------------------------------------------------

# makes a piece of these values; the sets of scopes of the template's own names, and the use that it is made for
Maker = Callable[[Values, Sequence[Scopes], "Place | None"], Any]


@dataclass(slots=True)
class _Part:
    """A compiled piece of a template."""

    make: Maker
    constant: bool = False  # whether it is the piece itself, with nothing to be put in
    index: int | None = None  # of a variable that is all of it


class Template:
    """A compiled template; `lookup` gives the pattern variable of an identifier, if it is one.

    With `wrap` false, what has variables in it is not wrapped in syntax (R6RS 12.4): the result is a `List` or `Vector`
    of syntax and more of the kind, which a transformer may take apart as ordinary lists.
    """

    def __init__(
        self,
        syntax: Syntax,
        lookup: Callable[[Syntax], PatternVariable | None],
        is_ellipsis: Callable[[Syntax], bool],
        wrap: bool = True,
    ) -> None:
        self.syntax = syntax
        self.wrap = wrap
        # the identifiers that are variables, by symbol and scopes: with the syntax, all there is to a template
        self.occurrences: dict[tuple[Symbol, Scopes], PatternVariable] = {}
        self._find = lookup
        self._is_ellipsis = is_ellipsis
        self._repeated_variables: list[tuple[PatternVariable, tuple[_Level, ...], Syntax]] = []
        self._levels: list[_Level] = []
        self._sets: dict[Scopes, int] = {NO_SCOPES: 0}  # of the names that it writes, numbered
        self._make = self._compile(syntax, (), True, 0).make

    def _lookup(self, identifier: Syntax) -> PatternVariable | None:
        variable = self._find(identifier)
        if variable is not None:
            self.occurrences[identifier._content, identifier.scopes] = variable
        return variable

    def make(self, values: Values, scopes: Scopes = NO_SCOPES, use: Place | None = None) -> Any:
        """The syntax for these values; what the template writes itself gets `scopes` and comes from `use`."""
        return self._make(values, [own | scopes for own in self._sets], use)

    def _compile(self, template: Syntax, levels: tuple[_Level, ...], live: bool, depth: int) -> _Part:
        """`levels`: the ellipses around it, the outermost first; `live`: whether ... is an ellipsis here."""
        if depth > DEEPEST:
            raise bad(f"a template is nested more than {DEEPEST} levels deep", template)
        content = template.content
        kind = type(content)
        if kind is Symbol:
            return self._identifier(template, levels, live)
        if kind is List and content.items:
            if live and len(content.items) == 2 and content.tail is None and self._repeats(content.items[0]):
                return _Part(self._compile(content.items[1], levels, False, depth + 1).make)  # (... template)
            return self._sequence(template, content.items, content.tail, levels, live, depth, List)
        if kind is Vector and content.items:
            return self._sequence(template, content.items, None, levels, live, depth, Vector)
        return self._constant(template)

    def _constant(self, template: Syntax) -> _Part:
        content, own, place = template.content, template.scopes, template.place
        if type(content) is Symbol:
            number = self._sets.setdefault(own, len(self._sets))
            return _Part(lambda values, sets, use: Syntax(content, sets[number], place, use), True)
        return _Part(lambda values, sets, use: template.changed(sets[0], NO_SCOPES, use), True)

    def _identifier(self, template: Syntax, levels: tuple[_Level, ...], live: bool) -> _Part:
        variable = self._lookup(template)
        if variable is None:
            if live and self._is_ellipsis(template):
                raise bad("an ellipsis follows nothing", template, "(... ...) stands for the symbol itself")
            return self._constant(template)
        if variable.depth > len(levels):
            raise bad(
                f"`{template.name}` needs {_ellipses(variable.depth)} behind it in the template, as in its pattern",
                template,
                f"write {template.name} {' '.join(['...'] * variable.depth)}" if not levels else None,
                notes=(("the pattern is here:", variable.identifier.place),),
            )
        if variable.depth:
            self._repeated_variables.append((variable, levels, template))
        index = variable.index
        return _Part(lambda values, sets, use: values[index], index=index)

    def _sequence(
        self,
        template: Syntax,
        items: tuple[Syntax, ...],
        tail: Syntax | None,
        levels: tuple[_Level, ...],
        live: bool,
        depth: int,
        kind: type[List] | type[Vector],
    ) -> _Part:
        pieces: list[tuple[_Part, list[_Level]]] = []
        constant = True
        index = 0
        while index < len(items):
            item = items[index]
            index += 1
            inner: list[_Level] = []
            while live and index < len(items) and self._repeats(items[index]):
                inner.append(_Level(items[index]))
                index += 1
            part = self._repeated(item, levels, inner, depth) if inner else self._compile(item, levels, live, depth + 1)
            constant = constant and part.constant and not inner
            pieces.append((part, inner))
        end = None if tail is None else self._compile(tail, levels, live, depth + 1)
        if constant and (end is None or end.constant):
            return self._constant(template)
        place, wrap = template.place, self.wrap
        if end is None and not any(inner for _, inner in pieces):
            makers = [part.make for part, _ in pieces]

            def make_plain(values: Values, sets: Sequence[Scopes], use: Place | None) -> Any:
                made = kind([make(values, sets, use) for make in makers])
                return Syntax(made, NO_SCOPES, place, use) if wrap else made

            return _Part(make_plain)
        ending = None if end is None else end.make
        steps = [(part.make, _repetition(part, inner) if inner else None) for part, inner in pieces]

        def make_sequence(values: Values, sets: Sequence[Scopes], use: Place | None) -> Any:
            out: list[Any] = []
            for make, repeat in steps:
                if repeat is None:
                    out.append(make(values, sets, use))
                else:
                    repeat(values, sets, use, out)
            if len(out) > LONGEST:
                raise bad(f"a macro makes a list of more than {LONGEST} items", use or place)
            if ending is None:
                made: Any = kind(out)
            else:
                last = ending(values, sets, use)
                content = last.content if type(last) is Syntax else last
                if not out:
                    return last
                made = List((*out, *content.items), content.tail) if type(content) is List else List(out, last)
            return Syntax(made, NO_SCOPES, place, use) if wrap else made

        return _Part(make_sequence)

    def _repeated(self, item: Syntax, levels: tuple[_Level, ...], inner: list[_Level], depth: int) -> _Part:
        self._levels += inner
        part = self._compile(item, (*levels, *inner), True, depth + 1)
        if not levels:
            self._settle()
        return part

    def _settle(self) -> None:
        """Of the outermost ellipsis and those within it: find the variables that each goes through."""
        found = self._repeated_variables
        for variable, levels, _ in found:
            depth = variable.depth
            shares = depth < len(levels) and any(
                other.depth == len(levels) and around == levels and other.ellipses[:depth] == variable.ellipses
                for other, around, _ in found
            )
            for level in levels[:depth] if shares else levels[len(levels) - depth :]:
                level.variables[variable.index] = variable
        for variable, levels, template in found:
            if sum(variable.index in level.variables for level in levels) > variable.depth:
                raise bad(f"`{template.name}` stands under ellipses that go through it twice", template)
        for level in self._levels:
            level.indices = list(level.variables)
            if not level.variables:
                raise bad(
                    "an ellipsis in a template follows no variable that has one in the pattern",
                    level.ellipsis,
                    "(... ...) stands for the symbol itself",
                )
        self._levels, self._repeated_variables = [], []

    def _repeats(self, syntax: Syntax) -> bool:
        return type(syntax._content) is Symbol and self._lookup(syntax) is None and self._is_ellipsis(syntax)


class _Level:
    """One ellipsis of a template: the variables that it goes through, by their indices."""

    __slots__ = ("ellipsis", "indices", "variables")

    def __init__(self, ellipsis: Syntax) -> None:
        self.ellipsis = ellipsis
        self.variables: dict[int, PatternVariable] = {}
        self.indices: list[int] = []

    def columns(self, values: Values, use: Place | None) -> list[list[Any]]:
        """What its variables matched: lists of one length."""
        columns = [values[index] for index in self.indices]
        size = len(columns[0])
        for column, index in zip(columns, self.indices, strict=True):
            if len(column) != size:
                names = " and ".join(f"`{self.variables[i].identifier.name}`" for i in (self.indices[0], index))
                raise bad(
                    f"{names} stand under one ellipsis, but matched {size} and {len(column)} items",
                    self.ellipsis.at(self.ellipsis.place).changed(NO_SCOPES, NO_SCOPES, use),
                )
        return columns


Repetition = Callable[[Values, Sequence[Scopes], "Place | None", list[Any]], None]


def _repetition(part: _Part, levels: list[_Level]) -> Repetition:
    """Adds to a list what a piece with these ellipses after it makes; the outermost ellipsis is the first."""
    repeat = _innermost(part, levels[-1])
    for level in reversed(levels[:-1]):
        repeat = _around(repeat, level)
    return repeat


def _innermost(part: _Part, level: _Level) -> Repetition:
    make, whole = part.make, part.index

    def repeat(values: Values, sets: Sequence[Scopes], use: Place | None, out: list[Any]) -> None:
        indices = level.indices
        if len(indices) == 1:
            (index,) = indices
            column = values[index]
            if index == whole:  # `x ...` alone
                out += column
                return
            for item in column:
                check()
                values[index] = item
                out.append(make(values, sets, use))
            values[index] = column
            return
        columns = level.columns(values, use)
        for row in zip(*columns, strict=True):
            check()
            for index, item in zip(indices, row, strict=True):
                values[index] = item
            out.append(make(values, sets, use))
        for index, column in zip(indices, columns, strict=True):
            values[index] = column

    return repeat


def _around(inner: Repetition, level: _Level) -> Repetition:
    def repeat(values: Values, sets: Sequence[Scopes], use: Place | None, out: list[Any]) -> None:
        indices, columns = level.indices, level.columns(values, use)
        for row in zip(*columns, strict=True):
            for index, item in zip(indices, row, strict=True):
                values[index] = item
            inner(values, sets, use, out)
            if len(out) > LONGEST:
                raise bad(f"a macro makes a list of more than {LONGEST} items", use)
        for index, column in zip(indices, columns, strict=True):
            values[index] = column

    return repeat


def _ellipses(number: int) -> str:
    return "an ellipsis" if number == 1 else f"{number} ellipses"
