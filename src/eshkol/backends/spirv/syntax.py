"""Tokens of the C that kernels are written in, and a cursor over them."""

from __future__ import annotations

import re

from eshkol.errors import BackendError

_TOKEN = re.compile(
    r"//[^\n]*|"
    r"(0[xX][0-9a-fA-F]*\.?[0-9a-fA-F]*[pP][+-]?\d+[fF]?|0[xX][0-9a-fA-F]+[uUlL]*"
    r"|\d+\.\d*(?:[eE][+-]?\d+)?[fF]?|\d+[uUlL]*|\w+"
    r"|<<=|>>=|<<|>>|\+\+|--|->|&&|\|\||[=!<>+\-*/%&|^]=|[^\s\w])"
)
END = ""


def tokens_of(text: str) -> list[str]:
    """The tokens of a text, and an end behind them."""
    return [*(t for t in _TOKEN.findall(text) if t), END]


class Cursor:
    """A place among tokens."""

    def __init__(self, text: str) -> None:
        self.tokens = tokens_of(text)
        self.at = 0

    @property
    def next(self) -> str:
        return self.tokens[self.at]

    def ahead(self, count: int) -> str:
        """A token behind the next one."""
        return self.tokens[min(self.at + count, len(self.tokens) - 1)]

    def take(self) -> str:
        found = self.tokens[self.at]
        self.at += 1
        return found

    def accept(self, token: str) -> bool:
        """Go on if this is the next one."""
        if self.tokens[self.at] != token:
            return False
        self.at += 1
        return True

    def expect(self, token: str) -> None:
        if not self.accept(token):
            raise self.error(f"'{token}' is missing")

    def skip_to_close(self) -> None:
        """Go on behind the parenthesis that closes the one before."""
        depth = 1
        while depth:
            token = self.take()
            depth += (token == "(") - (token == ")")
            if token == END:
                raise self.error("a parenthesis is not closed")

    def error(self, message: str) -> BackendError:
        around = " ".join(self.tokens[max(0, self.at - 8) : self.at + 4])
        return BackendError(f"SPIR-V cannot be made of a kernel: {message}, at: {around}")
