"""Forms that could be macros, but are used so much that the expander makes their core forms itself.

That is quicker, and their errors can say what is wrong.
"""

from __future__ import annotations

from collections.abc import Sequence

from eshkol.lang.core import Call, Clause, Const, If, Lambda, Let, Letrec, Local, Node, Variable
from eshkol.lang.datum import Char, Keyword, List, Number, Symbol
from eshkol.lang.forms import (
    bind_local,
    bindings_of,
    call_primitive,
    check_distinct,
    make_lambda,
    name_of,
    parts,
    read_type,
    sequence,
    unspecified,
)
from eshkol.lang.meanings import FormBinding, FormExpander, LocalBinding
from eshkol.lang.namespaces import Frame
from eshkol.lang.quasiquote import expand_quasiquote
from eshkol.lang.reader import BRACES
from eshkol.lang.report import bad, brief
from eshkol.lang.scopes import Scope
from eshkol.lang.source import Place
from eshkol.lang.syntax import Syntax, to_datum


def expand_all(expander: FormExpander, items: Sequence[Syntax], frame: Frame) -> list[Node]:
    return [expander.expand(item, frame) for item in items]


def expand_let_star(expander: FormExpander, form: Syntax, frame: Frame) -> Node:
    clauses, *rest = parts(form, 2, None, "(let* ((name value) ...) body ...)")
    pairs = bindings_of(expander, clauses, form, frame)
    inner = frame.inner()
    scopes: frozenset[Scope] = frozenset()
    bound: list[tuple[Variable, Node]] = []
    for name, value, annotation in pairs:
        node = expander.expand_named(value.changed(scopes, frozenset()) if scopes else value, frame, name.name)
        scopes = scopes | {Scope("let")}
        bound.append((bind_local(name.changed(scopes, frozenset()), inner, annotation), node))
    body = expander.expand_body([item.changed(scopes, frozenset()) for item in rest], inner, form)
    for variable, node in reversed(bound):
        body = Let(form.place, [variable], [node], body)
    return body


def expand_and(expander: FormExpander, form: Syntax, frame: Frame) -> Node:
    nodes = expand_all(expander, parts(form, 0, None, "(and expression ...)"), frame)
    if not nodes:
        return Const(form.place, True)
    made = nodes.pop()
    while nodes:
        made = If(form.place, nodes.pop(), made, Const(form.place, False))
    return made


def either(place: Place | None, test: Node, otherwise: Node) -> Node:
    """The value of the test if it is true."""
    value = Variable("t", test.place)
    return Let(place, [value], [test], If(place, Local(place, value), Local(place, value), otherwise))


def expand_or(expander: FormExpander, form: Syntax, frame: Frame) -> Node:
    nodes = expand_all(expander, parts(form, 0, None, "(or expression ...)"), frame)
    if not nodes:
        return Const(form.place, False)
    made = nodes.pop()
    while nodes:
        made = either(form.place, nodes.pop(), made)
    return made


def expand_when(expander: FormExpander, form: Syntax, frame: Frame) -> Node:
    test, *body = parts(form, 2, None, "(when test expression ...)")
    made = expander.expand(test, frame)
    return If(form.place, made, _stretch(expander, body, frame, form), unspecified(form.place))


def _stretch(expander: FormExpander, body: Sequence[Syntax], frame: Frame, form: Syntax) -> Node:
    """Expressions in turn; where a definition stands among them, a body of its own."""
    if not any(_defines(expander, item) for item in body):
        return sequence(form.place, expand_all(expander, body, frame))
    scope = Scope("body")
    return expander.expand_body([item.add(scope) for item in body], frame.inner(), form)


def _defines(expander: FormExpander, item: Syntax) -> bool:
    items = item.items
    if not items or not items[0].is_identifier:
        return False
    binding = expander.meaning(items[0])
    return isinstance(binding, FormBinding) and binding.definition is not None and binding.expression is None


def expand_unless(expander: FormExpander, form: Syntax, frame: Frame) -> Node:
    test, *body = parts(form, 2, None, "(unless test expression ...)")
    made = expander.expand(test, frame)
    return If(form.place, made, unspecified(form.place), _stretch(expander, body, frame, form))


# ---- cond and case ---------------------------------------------------------------------------------------------------


def expand_cond(expander: FormExpander, form: Syntax, frame: Frame) -> Node:
    clauses = parts(form, 1, None, "(cond (test expression ...) ... (else expression ...))")
    steps: list[tuple[Place | None, Node, str, Node | None]] = []
    made = unspecified(form.place)
    for number, clause in enumerate(clauses):
        items = clause.items
        if not items:
            raise bad(f"a clause of cond is (test expression ...), not {brief(clause)}", clause)
        if expander.is_form(items[0], "else"):
            if number != len(clauses) - 1:
                raise bad("else is not the last clause of this cond", clause, "the clauses behind it are never reached")
            if len(items) < 2:
                raise bad("nothing follows else", clause)
            made = sequence(clause.place, expand_all(expander, items[1:], frame))
            break
        test = expander.expand(items[0], frame)
        if len(items) == 1:
            steps.append((clause.place, test, "or", None))
        elif expander.is_form(items[1], "=>"):
            if len(items) != 3:
                raise bad("a clause with => is (test => procedure)", clause)
            steps.append((clause.place, test, "=>", expander.expand(items[2], frame)))
        else:
            steps.append((clause.place, test, "if", sequence(clause.place, expand_all(expander, items[1:], frame))))
    for place, test, kind, node in reversed(steps):
        if node is None:
            made = either(place, test, made)
        elif kind == "if":
            made = If(place, test, node, made)
        else:
            value = Variable("t", place)
            called = Call(place, node, [Local(place, value)])
            made = Let(place, [value], [test], If(place, Local(place, value), called, made))
    return made


def expand_case(expander: FormExpander, form: Syntax, frame: Frame) -> Node:
    key, *clauses = parts(form, 1, None, "(case key ((datum ...) expression ...) ... (else expression ...))")
    place = form.place
    value, essence = Variable("key", key.place), Variable("key", key.place)
    numeric = False
    steps: list[tuple[Place | None, Node, Node]] = []
    made = unspecified(place)
    subject = expander.expand(key, frame)
    for number, clause in enumerate(clauses):
        items = clause.items
        if items is None or len(items) < 2:
            raise bad(f"a clause of case is ((datum ...) expression ...), not {brief(clause)}", clause)
        if expander.is_form(items[1], "=>"):
            if len(items) != 3:
                raise bad("a clause with => is ((datum ...) => procedure)", clause)
            node: Node = Call(clause.place, expander.expand(items[2], frame), [Local(clause.place, value)])
        else:
            node = sequence(clause.place, expand_all(expander, items[1:], frame))
        if expander.is_form(items[0], "else"):
            if number != len(clauses) - 1:
                raise bad("else is not the last clause of this case", clause, "the clauses behind it are never reached")
            made = node
            break
        data = items[0].items
        if data is None:
            raise bad(f"the data of a clause of case stand in a list, not {brief(items[0])}", items[0])
        numeric = numeric or any(type(item.content) is int for item in data)
        steps.append((clause.place, _any_of(expander, clause.place, essence, data), node))
    for at, test, node in reversed(steps):
        made = If(at, test, node, made)
    stripped: Node = Local(key.place, value)
    if numeric:  # a number that is being differentiated is eqv? to its value
        stripped = call_primitive(expander, key.place, "%undifferentiated", stripped)
    return Let(place, [value], [subject], Let(place, [essence], [stripped], made))


def _any_of(expander: FormExpander, place: Place | None, value: Variable, data: tuple[Syntax, ...]) -> Node:
    """Whether the value is one of the data."""
    made: Node = Const(place, False)
    for index, item in enumerate(reversed(data)):
        datum = to_datum(item)
        same = "eq?" if _by_identity(datum) else "eqv?"
        test = call_primitive(expander, item.place, same, Local(item.place, value), Const(item.place, datum))
        made = test if index == 0 else If(place, test, Const(place, True), made)
    return made


def _by_identity(datum: object) -> bool:
    """Whether eq? tells this datum as well as eqv?, from a key that is not a number being differentiated."""
    if isinstance(datum, int):  # booleans, too
        return -(2**63) <= datum < 2**63
    return isinstance(datum, (Symbol, Char)) or (isinstance(datum, List) and not datum.items)


# ---- do --------------------------------------------------------------------------------------------------------------


def expand_do(expander: FormExpander, form: Syntax, frame: Frame) -> Node:
    shape = "(do ((variable start step) ...) (test result ...) expression ...)"
    clauses, exit_clause, *commands = parts(form, 2, None, shape)
    specs, ending = clauses.items, exit_clause.items
    if specs is None or not ending:
        raise bad(f"this form is not like {shape}", form)
    place, scope, inner = form.place, Scope("let"), frame.inner()
    names, starts, steps = [], [], []
    for spec in specs:
        items = spec.items
        if items is None or not 2 <= len(items) <= 3:
            raise bad(f"a variable of do is (variable start step), not {brief(spec)}", spec)
        names.append(name_of(items[0], "a variable of do").add(scope))
        starts.append(expander.expand_named(items[1], frame, items[0].name))
        steps.append(items[2] if len(items) == 3 else items[0])
    check_distinct(names, "one do")
    variables = [bind_local(name, inner) for name in names]
    loop = Variable("do-loop", place)
    test = expander.expand(ending[0].add(scope), inner)
    results = [expander.expand(item.add(scope), inner) for item in ending[1:]]
    effects = [expander.expand(item.add(scope), inner) for item in commands]
    again = Call(place, Local(place, loop), [expander.expand(step.add(scope), inner) for step in steps])
    result = sequence(exit_clause.place, results) if results else unspecified(place)
    body = If(place, test, result, sequence(place, [*effects, again]))
    procedure = Lambda(place, [Clause(variables, None, body)], "do-loop")
    return Letrec(place, [loop], [procedure], Call(place, Local(place, loop), starts))


# ---- rows of numbers -------------------------------------------------------------------------------------------------


def expand_rows(expander: FormExpander, form: Syntax, frame: Frame) -> Node:
    """A call with parts of which those that are rows of numbers become lists; `tensor` is written with it.

    A row is a list that begins with a number or a truth value, which no expression does, or with a row. Before the
    parts stands whether there is but one, in front of any keyword, and that is no row.
    """
    procedure, *given = parts(form, 1, None, "(%rows procedure part ...)")
    place = form.place
    keywords = [k for k, part in enumerate(given) if isinstance(part.content, Keyword)]
    count = keywords[0] if keywords else len(given)
    alone = count == 1 and not _is_row(given[0])
    nodes = [_row(expander, part, frame) for part in given]
    return Call(place, expander.expand(procedure, frame), [Const(place, alone), *nodes])


def _is_row(part: Syntax) -> bool:
    items = part.items
    return items is not None and bool(items) and (_is_number(items[0]) or _is_row(items[0]))


def _is_number(item: Syntax) -> bool:
    return isinstance(item.content, bool | int | float | Number)


def _row(expander: FormExpander, part: Syntax, frame: Frame) -> Node:
    if not _is_row(part):
        return expander.expand(part, frame)
    items = [_row(expander, item, frame) for item in part.items or ()]
    return call_primitive(expander, part.place, "list", *items)


# ---- segments --------------------------------------------------------------------------------------------------------


def expand_segment(expander: FormExpander, form: Syntax, frame: Frame) -> Node:
    """A stretch of a program as a procedure of the variables around it that it reads, for `checkpoint-segment`.

    With a text in the third place, the second procedure is called with it, that procedure, and the variables' values;
    without one, the first is called with what is given. Assignments would be lost, and are refused.
    """
    plain, named, *given = parts(form, 3, None, "(%segment plain named part ...)")
    if type(given[0].content) is not str:
        return Call(form.place, expander.expand(plain, frame), expand_all(expander, given, frame))
    if len(given) < 2:
        raise bad("a segment has an expression after its name", form)
    found: dict[Variable, Syntax] = {}
    for item in given[1:]:
        _read(expander, item, found)
    scope = Scope("segment")
    parameters = Syntax(List([name.add(scope) for name in found.values()]), place=form.place)
    made = make_lambda(expander, parameters, [item.add(scope) for item in given[1:]], frame, form, "segment")
    values = expand_all(expander, list(found.values()), frame)
    return Call(form.place, expander.expand(named, frame), [expander.expand(given[0], frame), made, *values])


def _read(expander: FormExpander, item: Syntax, found: dict[Variable, Syntax]) -> None:
    """The local variables that stand in an expression, each with an identifier of it."""
    if item.is_identifier:
        binding = expander.meaning(item)
        if isinstance(binding, LocalBinding):
            found.setdefault(binding.variable, item)
        elif isinstance(binding, FormBinding) and binding.name == "set!":
            raise bad("a segment is computed again for its derivative, so it cannot assign to a variable", item)
        return
    for part in item.items or ():
        _read(expander, part, found)


def expand_proof(expander: FormExpander, form: Syntax, frame: Frame) -> Node:
    """`(proof {n = m})`: the proposition as data, and the local variables that it names."""
    (braces,) = parts(form, 1, 1, "(proof {n = m})")
    items = braces.items
    if not items or not items[0].is_identifier or items[0].name != BRACES:
        raise bad(f"a proof is of a proposition in braces, not of {brief(braces)}", braces, "such as {n = m}")
    found: dict[Variable, Syntax] = {}
    _read(expander, braces, found)
    said = Const(braces.place, read_type(braces, frame))
    return call_primitive(expander, form.place, "%proof", said, *expand_all(expander, list(found.values()), frame))


def expand_cast_shape(expander: FormExpander, form: Syntax, frame: Frame) -> Node:
    """`(cast-shape object proof)`: who knows types looks at it, and leaves the object."""
    given = parts(form, 2, 2, "(cast-shape object proof)")
    frame.namespace.typed = True
    return call_primitive(expander, form.place, "%cast-shape", *expand_all(expander, given, frame))


FORMS: dict[str, FormBinding] = {
    row.name: row
    for row in (
        FormBinding("let*", expand_let_star),
        FormBinding("and", expand_and),
        FormBinding("or", expand_or),
        FormBinding("when", expand_when),
        FormBinding("unless", expand_unless),
        FormBinding("cond", expand_cond),
        FormBinding("case", expand_case),
        FormBinding("do", expand_do),
        FormBinding("quasiquote", expand_quasiquote),
        FormBinding("%rows", expand_rows),
        FormBinding("%segment", expand_segment),
        FormBinding("proof", expand_proof),
        FormBinding("cast-shape", expand_cast_shape),
    )
}
