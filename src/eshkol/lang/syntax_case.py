"""syntax-case, syntax, with-syntax, quasisyntax: macros whose transformers are procedures (R6RS 12).

They become calls of primitives that take what belongs to the expander as a `SyntaxConst`:

| primitive | does |
|---|---|
| `(%syntax-match subject pattern)` | a vector with the values of the pattern's variables, by `index`; or #f |
| `(%syntax-template template value ...)` | what the template makes of these values of its variables, by `index` |
| `(%syntax-no-match subject)` | raises the error that no clause takes the subject |

A `Pattern` has `match`, a `Template` has `make` (`lang/patterns.py`). The value of a variable under ellipses is a list
of values, which only templates look into; the list that `#,@` or with-syntax gives is an ordinary one. Templates here
do not wrap what has variables in it, so that `(map f #'(x ...))` works.
"""

from __future__ import annotations

from eshkol.lang.core import Call, Clause, Const, If, Lambda, Let, Local, Node, SyntaxConst, Variable
from eshkol.lang.datum import List, Symbol, Vector
from eshkol.lang.forms import auxiliary, call_primitive, name_of, parts
from eshkol.lang.meanings import FormBinding, FormExpander, PatternBinding
from eshkol.lang.namespaces import Frame
from eshkol.lang.patterns import Pattern, PatternVariable, Template
from eshkol.lang.report import bad, brief
from eshkol.lang.rules import is_ellipsis, is_wild
from eshkol.lang.scopes import NO_SCOPES, Scope, add_binding
from eshkol.lang.source import Place
from eshkol.lang.syntax import Syntax

DEEPEST = 2_000  # levels of a quasisyntax
MAKE = "make-"


def expand_syntax_case(expander: FormExpander, form: Syntax, frame: Frame) -> Node:
    subject, listed, *clauses = parts(form, 2, None, "(syntax-case subject (literal ...) (pattern output) ...)")
    literals = listed.items
    if literals is None:
        raise bad(f"a list of literals belongs here, not {brief(listed)}", listed)
    for literal in literals:
        name_of(literal, "a literal of syntax-case")
        if is_ellipsis(literal) or is_wild(literal):
            raise bad(f"`{literal.name}` cannot be a literal of syntax-case", literal)
    value = Variable("subject", subject.place)
    node = expander.expand(subject, frame)
    return Let(form.place, [value], [node], _clauses(expander, form, value, literals, clauses, frame))


def is_short_form(form: Syntax) -> bool:
    """Whether this is `(syntax-case () (pattern output) ...)`, which stands for a whole transformer."""
    items = form.items
    return items is not None and len(items) > 1 and items[1].items == ()


def expand_short_form(expander: FormExpander, form: Syntax, frame: Frame, name: str) -> Node:
    """The transformer that a syntax-case without a subject stands for; see lang/transformers."""
    subject = Variable("use", form.place)
    before, frame.short = frame.short, True
    try:
        body = _clauses(expander, form, subject, (), list((form.items or ())[2:]), frame)
    finally:
        frame.short = before
    return Lambda(form.place, [Clause([subject], None, body)], name=name)


def _clauses(
    expander: FormExpander,
    form: Syntax,
    subject: Variable,
    literals: tuple[Syntax, ...],
    clauses: list[Syntax],
    frame: Frame,
) -> Node:
    made = call_primitive(expander, form.place, "%syntax-no-match", Local(form.place, subject))
    expanded = []
    for clause in clauses:
        items = clause.items
        if items is None or not 2 <= len(items) <= 3:
            raise bad("a clause of syntax-case is (pattern output) or (pattern fender output)", clause)
        expanded.append((clause.place, items))
    for place, items in reversed(expanded):
        made = _clause(expander, place, subject, literals, items, made, frame)
    return made


def _clause(
    expander: FormExpander,
    place: Place | None,
    subject: Variable,
    literals: tuple[Syntax, ...],
    items: tuple[Syntax, ...],
    otherwise: Node,
    frame: Frame,
) -> Node:
    """The value of a clause if its pattern matches, else that of the clauses after it."""
    pattern = Pattern(items[0], literals, is_ellipsis, is_wild)
    scope = Scope("let")
    variables = bind_pattern(pattern, scope, frame)
    found, rest = Variable("found", place), Variable("otherwise", place)
    body = [expander.expand(item.add(scope), frame) for item in items[1:]]
    output = body[-1]
    if len(body) == 2:
        output = If(place, body[0], output, Call(place, Local(place, rest), []))
    if variables:
        parts = [
            call_primitive(expander, place, "vector-ref", Local(place, found), Const(place, index))
            for index in range(len(variables))
        ]
        output = Let(place, variables, parts, output)
    match = call_primitive(expander, place, "%syntax-match", Local(place, subject), SyntaxConst(place, pattern))
    if len(body) == 1:
        return Let(place, [found], [match], If(place, Local(place, found), output, otherwise))
    decided = If(place, Local(place, found), output, Call(place, Local(place, rest), []))
    procedure = Lambda(place, [Clause([], None, otherwise)])
    return Let(place, [found, rest], [match, procedure], decided)


def bind_pattern(pattern: Pattern, scope: Scope, frame: Frame) -> list[Variable]:
    """Variables for those of a pattern, bound for the syntax that has the scope."""
    variables = []
    for item in pattern.variables:
        identifier = item.identifier.add(scope)
        variable = Variable(identifier.name, identifier.place)
        binding = PatternBinding(variable, item.depth, item.ellipses, frame.level)
        add_binding(identifier.content, identifier.scopes, binding)
        variables.append(variable)
    return variables


# ---- templates -------------------------------------------------------------------------------------------------------


class _Variables:
    """The pattern variables that a template uses, in the order of their values."""

    def __init__(self, expander: FormExpander, frame: Frame) -> None:
        self.expander = expander
        self.frame = frame
        self.values: list[Node] = []
        self.known: dict[Variable, PatternVariable] = {}
        self.holes: dict[tuple[Symbol, frozenset[Scope]], PatternVariable] = {}

    def lookup(self, identifier: Syntax) -> PatternVariable | None:
        hole = self.holes.get((identifier.content, identifier.scopes))
        if hole is not None:
            return hole
        binding = self.expander.meaning(identifier)
        if not isinstance(binding, PatternBinding):
            return self.maker(identifier) if self.frame.short and identifier.name.startswith(MAKE) else None
        if binding.level != self.frame.level:
            raise bad(f"the pattern variable `{identifier.name}` has no value here", identifier)
        known = self.known.get(binding.variable)
        if known is None:
            known = PatternVariable(identifier, len(self.values), binding.ellipses)
            self.known[binding.variable] = known
            self.values.append(Local(identifier.place, binding.variable))
        return known

    def maker(self, identifier: Syntax) -> PatternVariable | None:
        """make-V in a short form, V being a pattern variable: the name that V matched, with make- before it."""
        variable = self.expander.meaning(Syntax(Symbol(identifier.name.removeprefix(MAKE)), identifier.scopes))
        if not isinstance(variable, PatternBinding) or variable.depth or variable.level != self.frame.level:
            return None
        place = identifier.place
        args = (Const(place, MAKE), Local(place, variable.variable))
        made = PatternVariable(identifier, len(self.values), ())
        self.holes[identifier.content, identifier.scopes] = made
        self.values.append(call_primitive(self.expander, place, "%syntax-name", *args))
        return made

    def hole(self, place: Place | None, value: Node, ellipses: tuple[int, ...]) -> Syntax:
        """An identifier that stands for a computed value in a template."""
        identifier = Syntax(Symbol("hole"), frozenset((Scope("hole"),)), place)
        self.holes[identifier.content, identifier.scopes] = PatternVariable(identifier, len(self.values), ellipses)
        self.values.append(value)
        return identifier


def _template(expander: FormExpander, form: Syntax, template: Syntax, variables: _Variables) -> Node:
    made = Template(template, variables.lookup, is_ellipsis, wrap=False)
    return call_primitive(expander, form.place, "%syntax-template", SyntaxConst(form.place, made), *variables.values)


def expand_syntax(expander: FormExpander, form: Syntax, frame: Frame) -> Node:
    (template,) = parts(form, 1, 1, "(syntax template)")
    return _template(expander, form, template, _Variables(expander, frame))


_ELLIPSIS = Symbol("...")


class _Quasisyntax:
    """Takes the computed parts out of a template: each becomes a variable, `#,@` one with an ellipsis after it."""

    def __init__(self, expander: FormExpander, frame: Frame) -> None:
        self.expander = expander
        self.frame = frame
        self.variables = _Variables(expander, frame)

    def word(self, syntax: Syntax) -> str | None:
        content = syntax.content
        if type(content) is List and len(content.items) == 2 and content.tail is None:
            for word in ("unsyntax", "quasisyntax", "unsyntax-splicing"):
                if self.expander.is_form(content.items[0], word):
                    return word
        return None

    def walk(self, template: Syntax, level: int, depth: int) -> Syntax:
        if depth > DEEPEST:
            raise bad(f"a quasisyntax is nested more than {DEEPEST} levels deep", template)
        content = template.content
        if type(content) is Vector:
            return Syntax(Vector(self.items(content.items, level, depth)), NO_SCOPES, template.place)
        if type(content) is not List:
            return template
        word = self.word(template)
        if word == "unsyntax" and level == 1:
            return self.variables.hole(template.place, self.expander.expand(content.items[1], self.frame), ())
        if word == "unsyntax-splicing" and level == 1:
            raise bad("#,@ stands where there is no list to put items into", template, "use #, for one value")
        if word is not None:
            level += 1 if word == "quasisyntax" else -1
        items = content.items
        tail = content.tail
        if len(items) > 2 and tail is None and self.expander.is_form(items[-2], "unsyntax"):  # (a . #,b)
            tail = Syntax(List(items[-2:]), NO_SCOPES, template.place)
            items = items[:-2]
        made = self.items(items, level, depth)
        return Syntax(List(made, None if tail is None else self.walk(tail, level, depth + 1)), place=template.place)

    def items(self, items: tuple[Syntax, ...], level: int, depth: int) -> list[Syntax]:
        out: list[Syntax] = []
        for item in items:
            if level == 1 and self.word(item) == "unsyntax-splicing":
                value = self.expander.expand(item.content.items[1], self.frame)
                out.append(self.variables.hole(item.place, value, (0,)))
                out.append(Syntax(_ELLIPSIS, NO_SCOPES, item.place))
            else:
                out.append(self.walk(item, level, depth + 1))
        return out


def expand_quasisyntax(expander: FormExpander, form: Syntax, frame: Frame) -> Node:
    (template,) = parts(form, 1, 1, "(quasisyntax template)")
    walker = _Quasisyntax(expander, frame)
    return _template(expander, form, walker.walk(template, 1, 0), walker.variables)


def expand_with_syntax(expander: FormExpander, form: Syntax, frame: Frame) -> Node:
    """The patterns are matched at once, as one list."""
    listed, *body = parts(form, 2, None, "(with-syntax ((pattern value) ...) body ...)")
    pairs = []
    for item in listed.items or ():
        pair = item.items
        if pair is None or len(pair) != 2:
            raise bad(f"a binding of with-syntax is (pattern value), not {brief(item)}", item)
        pairs.append(pair)
    if listed.items is None:
        raise bad("a list of bindings ((pattern value) ...) belongs here", listed)
    place = form.place
    values = [expander.expand(value, frame) for _, value in pairs]
    pattern = Pattern(Syntax(List(p for p, _ in pairs), NO_SCOPES, place), (), is_ellipsis, is_wild)
    scope, inner = Scope("let"), frame.inner()
    variables = bind_pattern(pattern, scope, inner)
    node = expander.expand_body([item.add(scope) for item in body], inner, form)
    subject, found = Variable("subject", place), Variable("found", place)
    taken = [
        call_primitive(expander, place, "vector-ref", Local(place, found), Const(place, index))
        for index in range(len(variables))
    ]
    match = call_primitive(expander, place, "%syntax-match", Local(place, subject), SyntaxConst(place, pattern))
    refused = call_primitive(expander, place, "%syntax-no-match", Local(place, subject))
    output = Let(place, variables, taken, node) if variables else node
    chosen = Let(place, [found], [match], If(place, Local(place, found), output, refused))
    return Let(place, [subject], [call_primitive(expander, place, "list", *values)], chosen)


FORMS: dict[str, FormBinding] = {
    row.name: row
    for row in (
        FormBinding("syntax-case", expand_syntax_case),
        FormBinding("syntax", expand_syntax),
        FormBinding("quasisyntax", expand_quasisyntax),
        FormBinding("with-syntax", expand_with_syntax),
        auxiliary("unsyntax", ": quasisyntax"),
        auxiliary("unsyntax-splicing", ": quasisyntax"),
    )
}
