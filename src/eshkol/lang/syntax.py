"""Syntax objects: data with the scopes that their identifiers stand in, and their places in the source.

A `Syntax` is immutable to its users. Its content is an atom, a `Symbol` (then it is an identifier, with `scopes`), or a
`List`, `Vector` or `Labelled` whose parts are syntax objects. Adding a scope to a large piece of syntax costs nothing:
the change waits at the top (`_pending`) until someone looks at the content, and then moves one level down.

What a template of a macro writes has a place in the template and knows the use (`Place.via`); the two are put
together when someone asks.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from eshkol.lang.datum import Datum, Labelled, List, Symbol, Vector, text
from eshkol.lang.scopes import NO_SCOPES, Scope, Scopes
from eshkol.lang.source import Place
from eshkol.support.interrupts import check

COMPOUND = frozenset({List, Vector, Labelled})

# A change of sets of scopes: s becomes (s | first) ^ second; with a third, that is the use that made the syntax.
Change = tuple[Scopes, Scopes, "Place | None"]


class Syntax:
    """A datum, the scopes of its identifiers, its place."""

    __slots__ = ("_content", "_pending", "_place", "_via", "scopes")

    def __init__(
        self,
        content: Datum,
        scopes: Scopes = NO_SCOPES,
        place: Place | None = None,
        via: Place | None = None,
        pending: Change | None = None,
    ) -> None:
        self._content = content
        self.scopes = scopes  # of an identifier
        self._place = place
        self._via = via
        self._pending = pending  # of a compound: what its parts have yet to go through

    @property
    def content(self) -> Datum:
        """The atom, or the `List`, `Vector` or `Labelled` with parts that are syntax objects."""
        if self._pending is not None:
            self._push()
        return self._content

    @property
    def place(self) -> Place | None:
        if self._via is not None:
            if self._place is None:
                self._place = self._via
            else:
                self._place = Place(self._place.source, self._place.start, self._place.end, self._via)
            self._via = None
        return self._place

    def _push(self) -> None:
        assert self._pending is not None
        add, flip, via = self._pending
        content = self._content
        if type(content) is List:
            tail = content.tail
            self._content = List(
                [item.changed(add, flip, via) for item in content.items],
                None if tail is None else tail.changed(add, flip, via),
            )
        elif type(content) is Vector:
            self._content = Vector([item.changed(add, flip, via) for item in content.items])
        else:
            self._content = Labelled(content.number, content.datum.changed(add, flip, via))
        self._pending = None

    def changed(self, add: Scopes, flip: Scopes, via: Place | None = None) -> Syntax:
        """This, with every set of scopes s in it changed to (s | add) ^ flip; `via` is the use that made it, if any."""
        content = self._content
        kind = type(content)
        if kind is Symbol:
            scopes = self.scopes | add if add else self.scopes
            return Syntax(content, scopes ^ flip if flip else scopes, self._place, via or self._via)
        if kind not in COMPOUND:
            return self if via is None else Syntax(content, NO_SCOPES, self._place, via)
        if self._pending is not None:
            before_add, before_flip, before_via = self._pending
            if before_flip:
                flip = (before_flip - add) ^ flip
            add = before_add | add
            return Syntax(content, NO_SCOPES, self._place, via or self._via, (add, flip, via or before_via))
        return Syntax(content, NO_SCOPES, self._place, via or self._via, (add, flip, via))

    def add(self, scope: Scope) -> Syntax:
        return self.changed(frozenset((scope,)), NO_SCOPES)

    def flip(self, scope: Scope) -> Syntax:
        return self.changed(NO_SCOPES, frozenset((scope,)))

    def without(self, scopes: Iterable[Scope]) -> Syntax:
        """Of an identifier: this one outside the scopes."""
        left = self.scopes.difference(scopes)
        return self if len(left) == len(self.scopes) else Syntax(self._content, left, self._place, self._via)

    def at(self, place: Place | None) -> Syntax:
        """The same at another place."""
        return Syntax(self._content, self.scopes, place, None, self._pending)

    # ---- what it is --------------------------------------------------------------------------------------------------

    @property
    def is_identifier(self) -> bool:
        return type(self._content) is Symbol

    @property
    def name(self) -> str:
        """Of an identifier."""
        return str(self._content.name)

    @property
    def items(self) -> tuple[Syntax, ...] | None:
        """The items of a proper list; None for anything else."""
        content = self.content
        if type(content) is List and content.tail is None:
            return content.items
        return None

    @property
    def head(self) -> Syntax | None:
        """The identifier that a list begins with."""
        content = self.content
        if type(content) is List and content.items:
            first: Syntax = content.items[0]
            if type(first._content) is Symbol:
                return first
        return None

    def __repr__(self) -> str:
        return f"#<syntax {text(to_datum(self))}>"


def syntax_list(items: Iterable[Syntax], place: Place | None = None, via: Place | None = None) -> Syntax:
    return Syntax(List(items), NO_SCOPES, place, via)


def syntax_join(items: Iterable[Syntax], tail: Syntax, place: Place | None = None, via: Place | None = None) -> Syntax:
    """`(item ... . tail)`; a tail that is a list is spliced in."""
    items = tuple(items)
    if not items:
        return tail
    content = tail.content
    if type(content) is List:
        return Syntax(List(items + content.items, content.tail), NO_SCOPES, place, via)
    return Syntax(List(items, tail), NO_SCOPES, place, via)


def identifier(name: str, scopes: Scopes = NO_SCOPES, place: Place | None = None) -> Syntax:
    return Syntax(Symbol(name), scopes, place)


# ---- syntax and data -------------------------------------------------------------------------------------------------


def to_datum(syntax: Syntax) -> Datum:
    """syntax->datum: the data alone. Data that are already without syntax pass through."""
    return _rebuild(syntax, _strip, lambda content, _: content)


def to_syntax(context: Syntax | None, datum: Datum, place: Place | None = None) -> Syntax:
    """datum->syntax: its symbols get the scopes of the identifier `context`; syntax in it stays as it is."""
    scopes = NO_SCOPES if context is None else context.scopes
    made: Syntax = _rebuild(
        datum,
        lambda item: (type(item) is not Syntax, item),
        lambda content, item: (
            item if type(item) is Syntax else Syntax(content, scopes if type(content) is Symbol else NO_SCOPES, place)
        ),
    )
    return made


def _strip(item: Any) -> tuple[bool, Any]:
    return True, item.content if type(item) is Syntax else item


def _rebuild(root: Any, enter: Any, leave: Any) -> Any:
    """Make a structure anew from its leaves up, without recursion.

    `enter(item)` says whether to go into the item, and its content; `leave(content, item)` gives what stands for it.
    """
    done: list[Any] = []
    todo: list[tuple[int, Any, Any]] = [(0, root, None)]
    while todo:
        step, item, content = todo.pop()
        if step:  # the parts of a compound are done: they are the last ones of `done`
            kind = type(content)
            check()
            if kind is List:
                size = len(content.items)
                tail = done.pop() if content.tail is not None else None
                parts = done[len(done) - size :]
                del done[len(done) - size :]
                if type(tail) is List:
                    parts, tail = parts + list(tail.items), tail.tail
                done.append(leave(List(parts, tail), item))
            elif kind is Vector:
                size = len(content.items)
                parts = done[len(done) - size :]
                del done[len(done) - size :]
                done.append(leave(Vector(parts), item))
            else:
                done.append(leave(Labelled(content.number, done.pop()), item))
            continue
        inside, content = enter(item)
        kind = type(content)
        if not inside or kind not in COMPOUND:
            done.append(leave(content, item))
            continue
        todo.append((1, item, content))
        if kind is Labelled:
            todo.append((0, content.datum, None))
        else:
            if kind is List and content.tail is not None:
                todo.append((0, content.tail, None))
            todo.extend((0, part, None) for part in reversed(content.items))
    return done[0]
