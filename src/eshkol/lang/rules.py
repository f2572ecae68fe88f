"""syntax-rules: a transformer that needs nothing but patterns and templates."""

from __future__ import annotations

from collections.abc import Callable

from eshkol.lang.datum import List, Symbol
from eshkol.lang.meanings import FormBinding, FormExpander, resolve
from eshkol.lang.patterns import Pattern, PatternVariable, Template
from eshkol.lang.report import bad, brief
from eshkol.lang.scopes import Scope
from eshkol.lang.syntax import Syntax

SHAPE = "(syntax-rules (literal ...) (pattern template) ...)"
RULES_SHOWN = 8


def is_word(name: str) -> Callable[[Syntax], bool]:
    """A test for an identifier that means this auxiliary syntax, or that nothing binds and is written so."""
    symbol = Symbol(name)

    def test(syntax: Syntax) -> bool:
        if type(syntax._content) is not Symbol:
            return False
        binding = resolve(syntax)
        if binding is None:
            return syntax._content is symbol
        return type(binding) is FormBinding and binding.name == name

    return test


is_ellipsis, is_wild = is_word("..."), is_word("_")


def _is_bare(rule: Syntax) -> bool:
    """Whether a rule says what the macro's name alone stands for: `(_ template)`."""
    both = rule.items
    return both is not None and len(both) == 2 and both[0].is_identifier and is_wild(both[0])


class SyntaxRules:
    """The transformer that a form `(syntax-rules ...)` describes; `form` is all there is to it.

    Beyond R7RS a rule `(_ template)` says what the name alone stands for, where a variable would stand.

    The rules are compiled at once, so that mistakes in them are found where they are; a form that is known to be right
    (it comes from a cache) may wait until it is used.
    """

    hygienic = True
    assignments = False

    def __init__(self, form: Syntax, name: str, checked: bool = False) -> None:
        self.form = form
        self.name = name
        self.identifiers = any(map(_is_bare, form.items or ()))
        self._rules: list[tuple[Pattern, Template]] | None = None
        if not checked:
            self._rules = self._compile()

    def _compile(self) -> list[tuple[Pattern, Template]]:
        items = self.form.items
        if items is None or len(items) < 2:
            raise bad(f"this form is not like {SHAPE}", self.form)
        rest = items[1:]
        ellipsis = is_ellipsis
        if rest[0].is_identifier:
            own, rest = rest[0], rest[1:]
            ellipsis = lambda syntax: syntax._content is own.content and syntax.scopes == own.scopes
        literals = rest[0].items if rest else None
        if literals is None:
            raise bad(f"a list of literals belongs here: {SHAPE}", rest[0] if rest else self.form)
        for literal in literals:
            if not literal.is_identifier:
                raise bad(f"a literal of syntax-rules must be a name, not {brief(literal)}", literal)
        return [self._rule(rule, literals, ellipsis) for rule in rest[1:]]

    def _rule(
        self, rule: Syntax, literals: tuple[Syntax, ...], ellipsis: Callable[[Syntax], bool]
    ) -> tuple[Pattern, Template]:
        both = rule.items
        if both is None or len(both) != 2:
            hint = "several expressions stand in (begin ...)" if both is not None and len(both) > 2 else None
            raise bad("a rule is (pattern template)", rule, hint)
        content = both[0].content
        if not _is_bare(rule) and (type(content) is not List or not content.items):
            raise bad(
                f"the pattern of a rule is a list that begins with the macro's name, not {brief(both[0])}", both[0]
            )
        pattern = Pattern(both[0], literals, ellipsis, is_wild, skip_first=not _is_bare(rule))
        known = {(v.identifier.content, v.identifier.scopes): v for v in pattern.variables}

        def lookup(syntax: Syntax) -> PatternVariable | None:
            return known.get((syntax._content, syntax.scopes))

        as_literal = any(ellipsis(literal) for literal in literals)  # then it is no ellipsis at all
        return pattern, Template(both[1], lookup, (lambda _: False) if as_literal else ellipsis)

    def transform(self, use: Syntax, expander: FormExpander) -> Syntax:
        rules = self._rules
        if rules is None:
            rules = self._rules = self._compile()
        for pattern, template in rules:
            values = pattern.match(use) if use.is_identifier is pattern.syntax.is_identifier else None
            if values is not None:
                made: Syntax = template.make(values, frozenset((Scope("macro"),)), use.place)
                return made
        raise self._no_match(use, rules)

    def _no_match(self, use: Syntax, rules: list[tuple[Pattern, Template]]) -> Exception:
        shown = [f"    {self._pattern_text(pattern)}" for pattern, _ in rules[:RULES_SHOWN]]
        if len(rules) > RULES_SHOWN:
            shown.append(f"    ... and {len(rules) - RULES_SHOWN} more")
        known = "it takes:\n" + "\n".join(shown) if shown else "it has no rules"
        return bad(f"no rule of the macro `{self.name}` takes {brief(use)}", use, known)

    def _pattern_text(self, pattern: Pattern) -> str:
        """The pattern with the macro's name in place of the `_` that usually stands for it."""
        content = pattern.syntax.content
        if pattern.syntax.is_identifier:
            return self.name
        named = Syntax(Symbol(self.name))
        return brief(Syntax(List((named, *content.items[1:]), content.tail)))
