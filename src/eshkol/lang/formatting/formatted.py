"""A program as it is to be laid out, and the check that it is the same program."""

from __future__ import annotations

from eshkol.errors import EshkolError
from eshkol.lang.formatting.layout import laid_out
from eshkol.lang.formatting.parts import Parts, comments
from eshkol.lang.reader import parse
from eshkol.lang.source import Source
from eshkol.runtime.tokens import Token, tokenize


def formatted(source: Source) -> str:
    """The text of a source, laid out. Raises ReadError where it cannot be read.

    What comes out has the same tokens as before, each written as it was, and the same comments between the same tokens;
    if not, that is a defect of this package, and an error.
    """
    tokens, incomplete = tokenize(source.text)
    parse(tokens, source, incomplete)  # for its errors
    text = laid_out(Parts(source.text, tokens))
    if contents(source.text, tokens) != contents(text, tokenize(text)[0]):
        raise EshkolError(
            f"{source.name}: laid out, it would be another program; it stays as it is",
            hint="this is a defect of `eshkol fmt`: please report it, with the file",
        )
    return text


def contents(text: str, tokens: list[Token]) -> list[str]:
    """All that a text says, without the white space between: tokens and comments, in order."""
    found: list[str] = []
    before = 0
    for kind, start, end, _ in tokens:
        if start - before > 1:
            gap = text[before:start]
            if not gap.isspace():
                found += (text[at:stop].rstrip() for at, stop in comments(text, before, start))
        found += (kind, text[start:end])
        before = end
    found.append(text[before:])
    return found
