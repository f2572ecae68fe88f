"""The table of forms and how they are indented: one row for each form that is no plain call.

In goes the word that a list begins with, out comes its `Rule`, or None for a call, whose arguments stand under the
first. Whatever indents programs reads this table. A file may add rows of its own: a macro whose pattern ends in a body
is indented like a `let`, and so is what a comment names, with the number of arguments before its body:

    ;; indent: with-each 1
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import IntEnum

WIDTH = 120  # characters of a line


class Role(IntEnum):
    """What a list is to the form it stands in, which decides how its parts stand to each other."""

    CODE = 0  # by the row of its first word, or as a call
    CALL = 1  # as a call, whatever its first word is: the name and parameters behind `define`
    DATA = 2  # one part under the other
    CLAUSE = 3  # (test expression ...): one under the other, and all of them code
    MATCH = 4  # (pattern expression ...): the first is data
    BINDINGS = 5  # ((name value) ...)
    BINDING = 6
    GUARD = 7  # (name clause ...)
    TEMPLATE = 8  # what stands behind a quasiquote: code, or data with holes


@dataclass(frozen=True, slots=True)
class Rule:
    """How a form is indented.

    `kept` parts follow its first word on the same line, the others are its body, which begins another line, two columns
    in. Where `kept` is None, all stand under the first. `roles` are those of the parts in order, `rest` is that of the
    others; `joins`: the first part is never parted from the word before it; `each`: every part of the body, or every
    argument but the first, has a line of its own as soon as there are several lines.
    """

    kept: int | None
    roles: tuple[Role, ...] = ()
    rest: Role = Role.CODE
    joins: bool = True
    each: bool = False

    def role(self, number: int) -> Role:
        """Of a part, counted from 1."""
        return self.roles[number - 1] if number <= len(self.roles) else self.rest


def _rows(words: str, rule: Rule) -> dict[str, Rule]:
    return dict.fromkeys(words.split(), rule)


_BINDING_FORM = Rule(1, (Role.BINDINGS,))
DEFINITION = Rule(1, (Role.CALL,))
NAMED: dict[str, Rule] = {  # forms whose first part may be a name, and then one more is kept
    "let": Rule(2, (Role.DATA, Role.BINDINGS)),
    "syntax-rules": Rule(2, (Role.DATA, Role.DATA), Role.MATCH, each=True),
}

RULES: dict[str, Rule] = {
    **_rows("define define-values define-syntax define-for-syntax define-record-type define-struct", DEFINITION),
    **_rows("define-model define-model/parts", Rule(2, (Role.CODE, Role.DATA))),
    **_rows("lambda λ named-lambda", Rule(1, (Role.DATA,))),
    **_rows("let let* letrec letrec* let-values let*-values let-syntax letrec-syntax fluid-let", _BINDING_FORM),
    **_rows("parameterize with-syntax and-let* let-optionals let-optionals*", _BINDING_FORM),
    **_rows("when unless while until with-python with-device with-dtype with-ad-trace gpu-context", Rule(1)),
    **_rows("with-profile with-profiling with-memory-profile", Rule(1)),
    **_rows("define-library library module define-module", Rule(1, (Role.DATA,))),
    **_rows("test-case test-group test-suite", Rule(1)),
    **_rows("begin begin-for-syntax", Rule(0, joins=False)),
    **_rows("receive", Rule(2, (Role.DATA,))),
    **_rows("do", Rule(2, (Role.BINDINGS, Role.CLAUSE))),
    **_rows("guard", Rule(1, (Role.GUARD,))),
    **_rows("cond cond-expand", Rule(None, rest=Role.CLAUSE, joins=False, each=True)),
    **_rows("case match", Rule(1, rest=Role.MATCH, each=True)),
    **_rows("case-lambda match-lambda", Rule(0, rest=Role.MATCH, joins=False, each=True)),
    **_rows("syntax-rules", Rule(1, (Role.DATA,), Role.MATCH, each=True)),
    **_rows("syntax-case", Rule(2, (Role.CODE, Role.DATA), Role.MATCH, each=True)),
    **_rows("quote", Rule(None, rest=Role.DATA)),
    **_rows("quasiquote quasisyntax syntax", Rule(None, rest=Role.TEMPLATE)),
}
GUARD_CLAUSES = Rule(None, rest=Role.CLAUSE, each=True)
BESIDE_BEGIN = Rule(None, joins=False, each=True)  # (begin (one)
FILLED = frozenset({"export", "import", "only", "except", "rename", "provide", "require"})  # names fill their lines

_DEFINES = ("define-", "define/")  # words that begin like this define something
_BODY = re.compile(r"(?:body|form|expr|expression|command|statement|action)s?[0-9*+]*\Z")
_COMMENT = re.compile(r";+ *indent: +(\S+) +([0-9])\s*\Z")


def rule_of(word: str, own: dict[str, Rule] | None = None) -> Rule | None:
    """The row of the form that begins with a word, in a file with rows of its own; None for a call."""
    if own is not None and word in own:
        return own[word]
    return RULES.get(word)


def defines(word: str) -> bool:
    """Whether a word that is not in the table looks like one that defines something."""
    return word.startswith(_DEFINES)


def rule_of_pattern(parts: list[str]) -> Rule | None:
    """The row for a macro, by its pattern behind the name: `(condition body ...)` has one part and a body."""
    if len(parts) < 2 or parts[-1] != "..." or not _BODY.match(parts[-2]):
        return None
    return Rule(next(number for number, part in enumerate(parts) if _BODY.match(part)), joins=False)


def rule_of_comment(text: str) -> tuple[str, Rule] | None:
    """The row that a comment adds, and its word."""
    found = _COMMENT.match(text)
    return (found[1], Rule(int(found[2]), joins=False)) if found else None
