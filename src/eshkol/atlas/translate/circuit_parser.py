"""The text of a circuit, read into a tree.

Comes in: a phrase (the grammar stands in `circuit.py`). Goes out: a tree of `InOrder` and `Parallel` nodes over
`Term`s, whose places name the classes after all transforms; or an `IsaError` with the span of the
token that does not belong. Which generators there are, and what they do, is `circuit.py`'s matter.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass
from enum import Enum
from itertools import accumulate

from eshkol.atlas.classes import CLASSES, PAGES
from eshkol.errors import IsaError, Span

FILE = "<circuit>"
NESTING_LIMIT = 100  # parentheses inside one another
DIGITS_LIMIT = 9  # of a number; no class, page or amount is longer
LEVELS, PARTS, LANES = 4, 3, 8  # the digits h2, d and ℓ of class = 24·h2 + 8·d + ℓ
TOKEN = re.compile(
    r"(?P<space>\s+)|(?P<name>[A-Za-z_][A-Za-z_0-9]*)|(?P<number>[0-9]+)"
    r"|(?P<sign><->|->|\|\||\.\.|[@.()\[\],^~+:-])"
)


@dataclass(frozen=True, slots=True)
class CircuitTransform:
    """A motion of the classes: R adds to h2, T adds to ℓ, and the mirror exchanges d = 1 and d = 2."""

    rotate: int = 0
    twist: int = 0
    mirrored: bool = False

    def __call__(self, cls: int) -> int:
        h2, d, lane = cls // (PARTS * LANES), cls // LANES % PARTS, cls % LANES
        if self.mirrored:
            d = -d % PARTS
        return PARTS * LANES * ((h2 + self.rotate) % LEVELS) + LANES * d + (lane + self.twist) % LANES

    def then(self, other: CircuitTransform) -> CircuitTransform:
        return CircuitTransform(
            self.rotate + other.rotate, self.twist + other.twist, self.mirrored is not other.mirrored
        )


class TargetForm(Enum):
    """How the places of a target are joined; the value shows it."""

    ONE = "c00"
    ARROW = "c00->c01"
    EXCHANGE = "c00<->c01"
    CONTEXT = "c00[c01,c02]"


@dataclass(frozen=True, slots=True)
class CircuitPlace:
    """One page of a class, or of each class of a range."""

    classes: tuple[int, ...]
    page: int
    span: Span


@dataclass(frozen=True, slots=True)
class Word:
    """A name in the text."""

    text: str
    span: Span


@dataclass(frozen=True, slots=True)
class Term:
    """A generator on a target."""

    generator: Word
    variant: Word | None
    form: TargetForm
    places: tuple[CircuitPlace, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class InOrder:
    """Parts that run one after another."""

    parts: tuple[Tree, ...]


@dataclass(frozen=True, slots=True)
class Parallel:
    """Sides that do not depend on one another."""

    sides: tuple[Tree, ...]


Tree = Term | InOrder | Parallel


@dataclass(frozen=True, slots=True)
class CircuitToken:
    kind: str  # name, number, sign or end
    text: str
    start: int


def parse_circuit(source: str) -> Tree:
    """The tree of a phrase."""
    if not isinstance(source, str):
        raise IsaError(f"a circuit is text, not a {type(source).__name__}")
    return _Parser(source).phrase()


class _Parser:
    """Recursive descent, one method per rule of the grammar."""

    def __init__(self, source: str) -> None:
        self.source = source
        self.lines = source.split("\n")
        self.line_starts = [0, *accumulate(len(line) + 1 for line in self.lines)]
        self.tokens = self._tokenize()
        self.position = 0
        self.depth = 0
        self.transform = CircuitTransform()  # of the whole phrase

    # --- tokens ----------------------------------------------------------------------------------

    def _tokenize(self) -> list[CircuitToken]:
        tokens: list[CircuitToken] = []
        start = 0
        while start < len(self.source):
            match = TOKEN.match(self.source, start)
            if match is None:
                character = self.source[start]
                hint = {"|": "parallel sides are joined by ||", "<": "swap joins its places by <->"}.get(character)
                raise IsaError(f"{character!r} does not belong in a circuit", span=self._span(start, 1), hint=hint)
            assert match.lastgroup is not None
            if match.lastgroup != "space":
                tokens.append(CircuitToken(match.lastgroup, match.group(), start))
            start = match.end()
        end = len(self.source.rstrip())  # errors about the end point just after the last token
        return [*tokens, CircuitToken("end", "", end)]

    def _span(self, start: int, length: int) -> Span:
        line = bisect_right(self.line_starts, start) - 1
        column = start - self.line_starts[line] + 1
        return Span(FILE, line + 1, column, max(length, 1), self.lines[line].rstrip("\r"))

    def _span_from(self, first: CircuitToken) -> Span:
        """From a token to the last one taken, or to the end of its line where that comes sooner."""
        last = self.tokens[self.position - 1]
        line_end = self.line_starts[bisect_right(self.line_starts, first.start)] - 1
        return self._span(first.start, min(last.start + len(last.text), line_end) - first.start)

    @property
    def next(self) -> CircuitToken:
        return self.tokens[self.position]

    def fail(self, token: CircuitToken, message: str, hint: str | None = None) -> IsaError:
        return IsaError(message, span=self._span(token.start, len(token.text)), hint=hint)

    def expected(self, wanted: str, hint: str | None = None) -> IsaError:
        found = "the circuit ends" if self.next.kind == "end" else f"got '{self.next.text[:40]}'"
        return self.fail(self.next, f"expected {wanted}, but {found}", hint)

    def take(self) -> CircuitToken:
        token = self.next
        self.position += 1
        return token

    def accept(self, sign: str) -> bool:
        """Take this sign if it comes next."""
        found = self.next.kind == "sign" and self.next.text == sign
        self.position += found
        return found

    def require(self, sign: str, where: str, hint: str | None = None) -> None:
        if not self.accept(sign):
            raise self.expected(f"'{sign}' {where}", hint)

    # --- the grammar -----------------------------------------------------------------------------

    def phrase(self) -> Tree:
        if self._transform_comes():
            while self._transform_comes():
                self.transform = self.transform.then(self._transform())
            self.require("@", "after the transforms of a phrase", "as in R+1@mark@c00")
        tree = self.par()
        if self.next.kind != "end":
            raise self.expected("'.', '||' or the end")
        return tree

    def par(self) -> Tree:
        sides = [self.seq()]
        while self.accept("||"):
            sides.append(self.seq())
        return sides[0] if len(sides) == 1 else Parallel(tuple(sides))

    def seq(self) -> Tree:
        parts = [self.term()]
        while self.accept("."):
            parts.append(self.term())
        return parts[0] if len(parts) == 1 else InOrder(tuple(parts))

    def term(self) -> Tree:
        first = self.next
        if self.accept("("):
            if self.depth >= NESTING_LIMIT:
                raise self.fail(first, f"parentheses are nested more than {NESTING_LIMIT} deep")
            self.depth += 1
            tree = self.par()
            self.depth -= 1
            self.require(")", "to close the parenthesis")
            return tree
        if self._transform_comes():
            raise self.fail(first, "a transform stands only at the start of the circuit", "or use ^ and ~ on a class")
        generator = self._word("a generator or '('")
        variant = self._word("the name of a variant") if self.accept(":") else None
        self.require("@", "between a generator and its target", f"as in {generator.text[:40]}@c00")
        form, places = self._target()
        return Term(generator, variant, form, places, self._span_from(first))

    def _word(self, wanted: str) -> Word:
        if self.next.kind != "name":
            raise self.expected(wanted)
        token = self.take()
        return Word(token.text, self._span(token.start, len(token.text)))

    # --- transforms ------------------------------------------------------------------------------

    def _transform_comes(self) -> bool:
        return self.next.text == "~" or re.fullmatch("[RT][0-9]*", self.next.text) is not None

    def _transform(self) -> CircuitTransform:
        if self.accept("~"):
            return CircuitTransform(mirrored=True)
        token = self.take()
        if len(token.text) > 1:
            hint = f"write {token.text[0]}+{token.text[1:]} or {token.text[0]}-{token.text[1:]}"
            raise self.fail(token, "a transform needs a sign", hint)
        amount = self._signed(f"after {token.text}")
        return CircuitTransform(rotate=amount) if token.text == "R" else CircuitTransform(twist=amount)

    def _signed(self, where: str) -> int:
        """A number with its sign."""
        negative = self.accept("-")
        if not negative:
            self.require("+", f"or '-' {where}")
        amount = self._number(f"a number {where}")
        return -amount if negative else amount

    def _number(self, wanted: str) -> int:
        if self.next.kind != "number":
            raise self.expected(wanted)
        token = self.take()
        if len(token.text) > DIGITS_LIMIT:
            raise self.fail(token, f"a number of {len(token.text)} digits is too large")
        return int(token.text)

    # --- targets ---------------------------------------------------------------------------------

    def _target(self) -> tuple[TargetForm, tuple[CircuitPlace, ...]]:
        first = self._place()
        if self.accept("->"):
            return TargetForm.ARROW, (first, self._place())
        if self.accept("<->"):
            return TargetForm.EXCHANGE, (first, self._place())
        if self.accept("["):
            context = self._place()
            self.require(",", "between the context and the destination")
            destination = self._place()
            self.require("]", "after the destination")
            return TargetForm.CONTEXT, (first, context, destination)
        return TargetForm.ONE, (first,)

    def _place(self) -> CircuitPlace:
        first = self.next
        classes = self._classes()
        own = CircuitTransform()
        if self.accept("^"):
            own = own.then(CircuitTransform(twist=self._signed("after ^")))
        if self.accept("~"):
            own = own.then(CircuitTransform(mirrored=True))
        page = 0
        if self.accept("@"):
            at = self.next
            page = self._number("a page after @")
            if page >= PAGES:
                raise self.fail(at, f"page {page} does not exist", f"pages are 0 to {PAGES - 1}")
        move = own.then(self.transform)
        return CircuitPlace(tuple(move(cls) for cls in classes), page, self._span_from(first))

    def _classes(self) -> range:
        token = self.next
        if token.kind == "name" and re.fullmatch("c[0-9]+", token.text):
            self.take()
            number = self._class(token, token.text[1:])
            return range(number, number + 1)
        if token.text != "c":
            raise self.expected("a class", "classes are c0 to c95, ranges c[0..95]")
        self.take()
        self.require("[", "after c", "classes are c0 to c95, ranges c[0..95]")
        first = self._range_end()
        self.require("..", "between the ends of a range")
        last = self._range_end()
        self.require("]", "after a range")
        if first > last:
            raise self.fail(token, f"the range from {first} to {last} is empty", "write the lesser class first")
        return range(first, last + 1)

    def _range_end(self) -> int:
        token = self.next
        self._number("a class number")
        return self._class(token, token.text)

    def _class(self, token: CircuitToken, digits: str) -> int:
        if len(digits) > DIGITS_LIMIT or int(digits) >= CLASSES:
            raise self.fail(token, f"class {digits[:40]} does not exist", f"classes are 0 to {CLASSES - 1}")
        return int(digits)
