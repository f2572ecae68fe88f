"""The forms that the expander knows itself: quote, lambda, if, set!, definitions, binding forms, local macros.

Each is a function from a use to a core form, or to what it defines; `FORMS` gives them their names.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, NamedTuple

from eshkol.errors import LanguageError
from eshkol.lang.core import (
    Call,
    Clause,
    Const,
    Global,
    If,
    Lambda,
    Let,
    Letrec,
    Local,
    Node,
    Seq,
    SetGlobal,
    SetLocal,
    Variable,
)
from eshkol.lang.datum import UNSPECIFIED, Datum, Keyword, List, Symbol, text
from eshkol.lang.guesses import undefined
from eshkol.lang.meanings import (
    CellBinding,
    DefiningBody,
    FormBinding,
    FormExpander,
    LocalBinding,
    MacroBinding,
    PatternBinding,
)
from eshkol.lang.namespaces import Frame
from eshkol.lang.report import bad, brief
from eshkol.lang.scopes import NO_SCOPES, Scope, add_binding
from eshkol.lang.source import Place
from eshkol.lang.syntax import Syntax, to_datum

# ---- helpers for all forms -------------------------------------------------------------------------------------------


def parts(form: Syntax, least: int, most: int | None, shape: str) -> tuple[Syntax, ...]:
    """The items of a form after its name; an error that shows the shape where their number is wrong."""
    items = form.items
    if items is None or not least < len(items) or (most is not None and len(items) - 1 > most):
        raise bad(f"this form is not like {shape}", form)
    return items[1:]


def name_of(syntax: Syntax, what: str) -> Syntax:
    """An identifier, or an error that says what it should name."""
    if not syntax.is_identifier:
        raise bad(f"{what} must be a name, not {brief(syntax)}", syntax)
    return syntax


def bind_local(identifier: Syntax, frame: Frame, annotation: Datum = None) -> Variable:
    """A new variable for an identifier that has the scope of its binding already."""
    variable = Variable(identifier.name, identifier.place, annotation=annotation)
    add_binding(identifier.content, identifier.scopes, LocalBinding(variable, frame.level))
    return variable


def check_distinct(identifiers: Iterable[Syntax], what: str) -> None:
    seen: dict[Any, Syntax] = {}
    for identifier in identifiers:
        key = (identifier.content, identifier.scopes)
        if key in seen:
            raise bad(
                f"`{identifier.name}` is bound twice by {what}",
                identifier,
                notes=(("the first time here:", seen[key].place),),
            )
        seen[key] = identifier


def sequence(place: Place | None, nodes: list[Node]) -> Node:
    return nodes[0] if len(nodes) == 1 else Seq(place, nodes)


def unspecified(place: Place | None) -> Node:
    return Const(place, UNSPECIFIED)


def call_primitive(expander: FormExpander, place: Place | None, name: str, *args: Node) -> Node:
    return Call(place, Global(place, expander.primitive(name)), list(args))


class Bound(NamedTuple):
    """A binding of let and its kin: `(name value)`, or `(name : type value)`."""

    name: Syntax
    value: Syntax
    annotation: Datum = None


def bindings_of(expander: FormExpander, clauses: Syntax, form: Syntax, frame: Frame) -> list[Bound]:
    """The bindings in the second part of let and its kin."""
    items = clauses.items
    if items is None:
        raise bad("a list of bindings ((name value) ...) belongs here", clauses)
    pairs = []
    for item in items:
        pair = item.items
        if pair is not None and len(pair) == 4 and expander.is_form(pair[1], ":"):
            pairs.append(Bound(name_of(pair[0], "what is bound"), pair[3], read_type(pair[2], frame)))
            continue
        if pair is None or len(pair) != 2:
            hint = "each binding has its own parentheses: ((name value) ...)" if pair is None else None
            raise bad(f"a binding is (name value), not {brief(item)}", item, hint)
        pairs.append(Bound(name_of(pair[0], "what is bound"), pair[1]))
    return pairs


# ---- constants -------------------------------------------------------------------------------------------------------


def expand_quote(expander: FormExpander, form: Syntax, frame: Frame) -> Node:
    (datum,) = parts(form, 1, 1, "(quote datum)")
    return Const(form.place, to_datum(datum))


# ---- procedures ------------------------------------------------------------------------------------------------------


def read_type(syntax: Syntax, frame: Frame) -> Datum:
    """A type as data, in a body. What types there are is for later stages to say; the shape is checked here."""
    frame.namespace.typed = True
    todo = [syntax]
    while todo:
        part = todo.pop()
        content = part.content
        if type(content) in (Symbol, Keyword, int):
            continue
        if type(content) is not List or not content.items or content.tail is not None:
            raise bad(f"a type is a name or (constructor type ...), not {brief(part)}", part)
        todo.extend(content.items)
    return to_datum(syntax)


def read_parameter(expander: FormExpander, syntax: Syntax, frame: Frame) -> tuple[Syntax, Datum]:
    """The name of a parameter and its type, if it has one: `x` or `(x : type)`."""
    if syntax.is_identifier:
        return syntax, None
    items = syntax.items
    if items is not None and len(items) == 3 and items[0].is_identifier and expander.is_form(items[1], ":"):
        return items[0], read_type(items[2], frame)
    keyword = type((items[0] if items else syntax).content) is Keyword
    hint = "keywords are parameters of define* and lambda*, after (import (eshkol keywords))" if keyword else None
    raise bad(f"a parameter is a name or (name : type), not {brief(syntax)}", syntax, hint)


def lambda_clause(
    expander: FormExpander, params: Syntax, body: Sequence[Syntax], frame: Frame, form: Syntax
) -> tuple[Clause, str | None]:
    """One clause of a procedure, and its doc string."""
    scope = Scope("lambda")
    inner = frame.inner()
    content = params.content
    if type(content) is Symbol:
        names, tail = [], params
    elif type(content) is List:
        names, tail = list(content.items), content.tail
    else:
        raise bad(f"parameters are names in a list, or one name for all, not {brief(params)}", params)
    typed = [read_parameter(expander, name, frame) for name in names]
    rest = None if tail is None else name_of(tail, "a rest parameter").add(scope)
    identifiers = [name.add(scope) for name, _ in typed]
    if len(identifiers) + (rest is not None) > 1:
        check_distinct([*identifiers, rest] if rest is not None else identifiers, "one list of parameters")
    variables = [bind_local(identifier, inner) for identifier in identifiers]
    for variable, (_, annotation) in zip(variables, typed, strict=True):
        variable.annotation = annotation
    rest_variable = None if rest is None else bind_local(rest, inner)
    returns = returns_at = None
    if len(body) > 1 and type(body[0].content) is Symbol and body[0].name == ":" and expander.is_form(body[0], ":"):
        returns, returns_at, body = read_type(body[1], frame), body[1].place, body[2:]
    doc = body[0].content if len(body) > 1 and type(body[0].content) is str else None
    node = expander.expand_body([item.add(scope) for item in body], inner, form)
    return Clause(variables, rest_variable, node, returns, returns_at), doc


_LAMBDA, _CASE_LAMBDA = Symbol("lambda"), Symbol("case-lambda")


def make_lambda(
    expander: FormExpander, params: Syntax, body: Sequence[Syntax], frame: Frame, form: Syntax, name: str | None = None
) -> Lambda:
    clause, doc = lambda_clause(expander, params, body, frame, form)
    return Lambda(form.place, [clause], name, List((_LAMBDA, params, *body)), doc)


def expand_lambda(expander: FormExpander, form: Syntax, frame: Frame) -> Node:
    params, *body = parts(form, 2, None, "(lambda (parameter ...) body ...)")
    return make_lambda(expander, params, body, frame, form)


def expand_named_lambda(expander: FormExpander, form: Syntax, frame: Frame) -> Node:
    header, *body = parts(form, 2, None, "(named-lambda (name parameter ...) body ...)")
    name, params = split_header(header)
    return make_lambda(expander, params, body, frame, form, name_of(name, "the procedure's name").name)


def expand_case_lambda(expander: FormExpander, form: Syntax, frame: Frame) -> Node:
    made = []
    clauses = parts(form, 0, None, "(case-lambda ((parameter ...) body ...) ...)")
    for clause in clauses:
        items = clause.items
        if items is None or len(items) < 2:
            raise bad("a clause of case-lambda is ((parameter ...) body ...)", clause)
        made.append(lambda_clause(expander, items[0], items[1:], frame, clause))
    doc = next((doc for _, doc in made if doc is not None), None)
    return Lambda(form.place, [clause for clause, _ in made], None, List((_CASE_LAMBDA, *clauses)), doc)


def split_header(header: Syntax) -> tuple[Syntax, Syntax]:
    """`(name parameter ...)` as the name and the rest."""
    content = header.content
    if type(content) is not List or not content.items:
        raise bad("(name parameter ...) belongs here", header)
    rest = content.items[1:]
    if not rest and content.tail is not None:
        return content.items[0], content.tail
    return content.items[0], Syntax(List(rest, content.tail), header.scopes, header.place)


# ---- conditions, assignment, sequences -------------------------------------------------------------------------------


def expand_if(expander: FormExpander, form: Syntax, frame: Frame) -> Node:
    test, then, *otherwise = parts(form, 2, 3, "(if test then else)")
    place = form.place
    return If(
        place,
        expander.expand(test, frame),
        expander.expand(then, frame),
        expander.expand(otherwise[0], frame) if otherwise else unspecified(place),
    )


def expand_set(expander: FormExpander, form: Syntax, frame: Frame) -> Node:
    target, value = parts(form, 2, 2, "(set! name value)")
    name = name_of(target, "what set! changes").name
    binding = expander.meaning(target)
    if isinstance(binding, MacroBinding) and binding.transformer.assignments:
        return expander.expand(expander.use_macro(binding, form, frame), frame)
    if isinstance(binding, LocalBinding):
        if binding.level != frame.level:
            expander.expand(target, frame)  # says why not
        binding.variable.assigned = True
        return SetLocal(form.place, binding.variable, expander.expand_named(value, frame, name))
    if binding is None:
        if frame.namespace.kind == "repl" and frame.level == 0:
            cell = expander.unbound(target, frame)
        else:
            raise unknown_target(expander, target)
    elif isinstance(binding, CellBinding):
        cell = binding.cell
        if frame.namespace.cells.get(cell.name) is not cell:
            raise bad(
                f"`{name}` belongs to the library {cell.library} and cannot be changed here",
                target,
                f"(define {name} ...) makes a variable of your own",
            )
    elif isinstance(binding, PatternBinding):
        raise bad(f"`{name}` is a pattern variable, which cannot be changed", target)
    else:
        raise bad(f"`{name}` is syntax, not a variable", target, "define-syntax gives it another meaning")
    cell.assigned = True
    return SetGlobal(form.place, cell, expander.expand_named(value, frame, name))


def unknown_target(expander: FormExpander, target: Syntax) -> LanguageError:
    hint = undefined(target.name, expander.visible(target))
    return bad(f"set! of `{target.name}`, which is not defined", target, hint)


def expand_begin(expander: FormExpander, form: Syntax, frame: Frame) -> Node:
    items = parts(form, 1, None, "(begin expression ...)")
    return sequence(form.place, [expander.expand(item, frame) for item in items])


def define_begin(expander: FormExpander, form: Syntax, body: DefiningBody) -> None:
    body.splice(parts(form, 0, None, "(begin form ...)"))


# ---- definitions -----------------------------------------------------------------------------------------------------


def define_variable(expander: FormExpander, form: Syntax, body: DefiningBody) -> None:
    target, *rest = parts(form, 1, None, "(define name value) or (define (name parameter ...) body ...)")
    frame = body.frame
    if target.is_identifier:
        name = target.name
        if not rest:
            raise bad(f"`{name}` is defined without a value", form, f"(define {name} #f) gives it one")
        if len(rest) == 3 and expander.is_form(rest[0], ":"):  # (define name : type value)
            body.declare(target, read_type(rest[1], frame))
            rest = rest[2:]
        if len(rest) > 1:
            raise bad(
                f"the definition of `{name}` has {len(rest)} values",
                form,
                f"a procedure is defined by (define ({name} parameter ...) body ...)",
            )
        body.define(target, lambda: expander.expand_named(rest[0], frame, name), form)
        return
    identifier, params = split_header(target)
    if not rest:
        raise bad("the procedure that is defined here has no body", form)
    name = name_of(identifier, "what is defined").name
    body.define(identifier, lambda: make_lambda(expander, params, rest, frame, form, name), form)


def define_values(expander: FormExpander, form: Syntax, body: DefiningBody) -> None:
    """The values are collected in a vector, of which each variable takes its part."""
    formals, value = parts(form, 2, 2, "(define-values (name ...) expression)")
    frame, place = body.frame, form.place
    content = formals.content
    if type(content) is Symbol:
        names, rest = [], formals
    elif type(content) is List:
        names, rest = [name_of(item, "what is defined") for item in content.items], content.tail
    else:
        raise bad(f"define-values defines names in a list, not {brief(formals)}", formals)
    if rest is not None:
        name_of(rest, "what is defined")
    check_distinct([*names, rest] if rest is not None else names, "define-values")

    def collect() -> Node:
        params = [Variable(name.name, name.place) for name in names]
        others = None if rest is None else Variable(rest.name, rest.place)
        taken: list[Node] = [Local(place, param) for param in [*params, *([others] if others is not None else [])]]
        receiver = Lambda(
            place, [Clause(params, others, call_primitive(expander, place, "vector", *taken))], "define-values"
        )
        producer = Lambda(place, [Clause([], None, expander.expand(value, frame))])
        return call_primitive(expander, place, "call-with-values", producer, receiver)

    hidden = Syntax(Symbol("values"), frame.namespace.scopes | {Scope("macro")}, place)
    body.define(hidden, collect, form)

    def item(index: int) -> Node:
        return call_primitive(expander, place, "vector-ref", expander.expand(hidden, frame), Const(place, index))

    for index, name in enumerate([*names, *([rest] if rest is not None else [])]):
        body.define(name, partial(item, index), form)


def define_syntax(expander: FormExpander, form: Syntax, body: DefiningBody) -> None:
    target, *rest = parts(form, 2, None, "(define-syntax name transformer)")
    frame = body.frame
    if target.is_identifier:
        if len(rest) != 1:
            raise bad("this form is not like (define-syntax name transformer)", form)
        name = target.name
        body.define_syntax(target, lambda _: expander.transformer(rest[0], name, frame), form)
        return
    identifier, params = split_header(target)
    name = name_of(identifier, "the macro").name

    def make(_: Syntax) -> MacroBinding:
        if expander.compile_transformer is None:
            raise bad("transformers that are procedures cannot be run here", form, "use syntax-rules")
        node = make_lambda(expander, params, rest, frame.transformer(), form, name)
        return MacroBinding(expander.compile_transformer(node, name, form.place), frame)

    body.define_syntax(identifier, make, form)


def declare_type(expander: FormExpander, form: Syntax, body: DefiningBody) -> None:
    """`(: name type)`: the type of a variable that is defined in the same body."""
    target, kind = parts(form, 2, 2, "(: name type)")
    body.declare(name_of(target, "what has a type"), read_type(kind, body.frame))


def define_type(expander: FormExpander, form: Syntax, body: DefiningBody) -> None:
    """`(define-type name type)`: a name for a type, which may stand within it."""
    target, kind = parts(form, 2, 2, "(define-type name type)")
    name = name_of(target, "a type").name
    body.frame.namespace.types[name] = (read_type(kind, body.frame), target.place)


# ---- binding forms ---------------------------------------------------------------------------------------------------


def expand_let(expander: FormExpander, form: Syntax, frame: Frame) -> Node:
    first, *rest = parts(form, 2, None, "(let ((name value) ...) body ...)")
    if first.is_identifier:
        if len(rest) < 2:
            raise bad("this form is not like (let name ((variable value) ...) body ...)", form)
        return expand_named_let(expander, form, first, bindings_of(expander, rest[0], form, frame), rest[1:], frame)
    pairs = bindings_of(expander, first, form, frame)
    values = [expander.expand_named(pair.value, frame, pair.name.name) for pair in pairs]
    scope, inner = Scope("let"), frame.inner()
    names = [pair.name.add(scope) for pair in pairs]
    check_distinct(names, "one let")
    variables = [bind_local(name, inner, pair.annotation) for name, pair in zip(names, pairs, strict=True)]
    body = expander.expand_body([item.add(scope) for item in rest], inner, form)
    return Let(form.place, variables, values, body) if variables else body


def expand_named_let(
    expander: FormExpander,
    form: Syntax,
    name: Syntax,
    pairs: list[Bound],
    body: Sequence[Syntax],
    frame: Frame,
) -> Node:
    place = form.place
    values = [expander.expand_named(pair.value, frame, pair.name.name) for pair in pairs]
    scope = Scope("let")
    loop = bind_local(name.add(scope), frame)
    params = Syntax(List([pair.name.add(scope) for pair in pairs]), place=place)
    procedure = make_lambda(expander, params, [item.add(scope) for item in body], frame, form, name.name)
    for variable, pair in zip(procedure.clauses[0].params, pairs, strict=True):
        variable.annotation = pair.annotation
    return Letrec(place, [loop], [procedure], Call(place, Local(place, loop), values))


def expand_letrec(expander: FormExpander, form: Syntax, frame: Frame) -> Node:
    clauses, *rest = parts(form, 2, None, "(letrec ((name value) ...) body ...)")
    scope, inner = Scope("let"), frame.inner()
    pairs = [
        Bound(name.add(scope), value.add(scope), kind)
        for name, value, kind in bindings_of(expander, clauses, form, frame)
    ]
    check_distinct([pair.name for pair in pairs], "one letrec")
    variables = [bind_local(pair.name, inner, pair.annotation) for pair in pairs]
    values = [expander.expand_named(pair.value, frame, pair.name.name) for pair in pairs]
    body = expander.expand_body([item.add(scope) for item in rest], inner, form)
    return Letrec(form.place, variables, values, body) if variables else body


def local_syntax(recursive: bool) -> Callable[[FormExpander, Syntax, Frame], Node]:
    def expand(expander: FormExpander, form: Syntax, frame: Frame) -> Node:
        clauses, *rest = parts(form, 2, None, "(let-syntax ((name transformer) ...) body ...)")
        scope, inner = Scope("let"), frame.inner()
        pairs = bindings_of(expander, clauses, form, frame)
        names = [pair.name.add(scope) for pair in pairs]
        check_distinct(names, "one form")
        made = [
            expander.transformer(value.add(scope) if recursive else value, name.name, frame) for name, value, _ in pairs
        ]
        for name, binding in zip(names, made, strict=True):
            add_binding(name.content, name.scopes, binding)
        around = frozenset((scope, Scope("let")))  # what the body defines is not what templates refer to
        return expander.expand_body([item.changed(around, NO_SCOPES) for item in rest], inner, form)

    return expand


def expand_syntax_error(expander: FormExpander, form: Syntax, frame: Frame) -> Node:
    raise syntax_error(form)


def define_syntax_error(expander: FormExpander, form: Syntax, body: DefiningBody) -> None:
    raise syntax_error(form)


def syntax_error(form: Syntax) -> LanguageError:
    """The error that a macro asks for, at the use of the macro."""
    message, *irritants = parts(form, 1, None, '(syntax-error "message" form ...)')
    written = message.content if type(message.content) is str else text(message)
    place = form.place
    return bad(" ".join([written, *map(brief, irritants)]), place.via if place is not None and place.via else place)


def auxiliary(name: str, where: str = "") -> FormBinding:
    return FormBinding(name, doc=where)


FORMS: dict[str, FormBinding] = {
    row.name: row
    for row in (
        FormBinding("quote", expand_quote),
        FormBinding("lambda", expand_lambda),
        FormBinding("λ", expand_lambda),
        FormBinding("named-lambda", expand_named_lambda),
        FormBinding("case-lambda", expand_case_lambda),
        FormBinding("if", expand_if),
        FormBinding("set!", expand_set),
        FormBinding("begin", expand_begin, define_begin),
        FormBinding("define", None, define_variable),
        FormBinding("define-values", None, define_values),
        FormBinding("define-syntax", None, define_syntax),
        FormBinding(":", None, declare_type),
        FormBinding("define-type", None, define_type),
        FormBinding("let", expand_let),
        FormBinding("letrec", expand_letrec),
        FormBinding("letrec*", expand_letrec),
        FormBinding("let-syntax", local_syntax(False)),
        FormBinding("letrec-syntax", local_syntax(True)),
        FormBinding("syntax-error", expand_syntax_error, define_syntax_error),
        auxiliary("syntax-rules", ": it stands behind define-syntax, let-syntax, letrec-syntax"),
        auxiliary("else", ": the last clause of cond, case, guard"),
        auxiliary("=>", ": a clause of cond, case, guard"),
        auxiliary("...", ": patterns and templates"),
        auxiliary("_", ": patterns"),
        auxiliary("unquote", ": quasiquote"),
        auxiliary("unquote-splicing", ": quasiquote"),
    )
}
