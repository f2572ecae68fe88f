"""Errors of the front: a message with its place, and the uses of macros that led there."""

from __future__ import annotations

import re

from eshkol.errors import BadSyntax, LanguageError, Span
from eshkol.lang.datum import text
from eshkol.lang.source import Place
from eshkol.lang.syntax import Syntax

USES_SHOWN = 4  # of a long chain of macro uses, so many from either end
TEXT_SHOWN = 70  # characters of a form

_HEAD = re.compile(r"[(\[]\s*([^\s()\[\]\"';]+)")


def uses_of(place: Place | None) -> list[Place]:
    """The uses of macros that led to a place, the innermost first."""
    uses = []
    use = place.via if place is not None else None
    while use is not None:
        uses.append(use)
        use = use.via
    return uses


def macro_name(use: Place) -> str:
    """The name of the macro that is used at a place."""
    written = use.source.text[use.start : use.end]
    found = _HEAD.match(written)
    return found.group(1) if found else written[:TEXT_SHOWN]


def bad(
    message: str,
    where: Syntax | Place | None,
    hint: str | None = None,
    *,
    kind: type[LanguageError] = BadSyntax,
    notes: tuple[tuple[str, Place | None], ...] = (),
) -> LanguageError:
    """An error to raise."""
    place = where.place if isinstance(where, Syntax) else where
    shown: list[tuple[str, Span | None]] = [(what, None if at is None else at.span) for what, at in notes]
    uses = uses_of(place)
    for number, use in enumerate(uses):
        if number < USES_SHOWN or len(uses) - number <= USES_SHOWN:
            shown.append((f"in the expansion of `{macro_name(use)}` used here:", use.span))
        elif number == USES_SHOWN:
            shown.append((f"... and {len(uses) - 2 * USES_SHOWN} more ...", None))
    return kind(message, span=None if place is None else place.span, hint=hint, notes=tuple(shown))


def brief(syntax: Syntax) -> str:
    """A form as text, on one line, cut where it is long."""
    place = syntax.place
    if place is not None and place.end - place.start > 20 * TEXT_SHOWN:
        written = place.source.text[place.start : place.start + 20 * TEXT_SHOWN]
    else:
        written = text(syntax)
    written = " ".join(written.split())
    return written if len(written) <= TEXT_SHOWN else written[: TEXT_SHOWN - 3] + "..."
