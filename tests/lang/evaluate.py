"""Core forms interpreted in Python: an oracle for tests of the expander, small and slow.

Lists are chains of `Pair`; () is the empty tuple; other data are what lang/datum.py says. Transformers of macros run
here, too.
"""

from __future__ import annotations

import operator
from typing import Any

from eshkol.lang import core
from eshkol.lang.core import Cell
from eshkol.lang.datum import UNSPECIFIED, List, Vector, join, text
from eshkol.lang.deep import run_deep
from eshkol.lang.expander import Expander, core_forms
from eshkol.lang.meanings import CellBinding, free_identifier
from eshkol.lang.namespaces import Namespace
from eshkol.lang.reader import read
from eshkol.lang.report import bad
from eshkol.lang.source import Source
from eshkol.lang.syntax import Syntax, to_datum, to_syntax


class Pair:
    def __init__(self, car: Any, cdr: Any) -> None:
        self.car, self.cdr = car, cdr


class Undefined(Exception):
    """A variable was used before it had a value."""


def to_value(datum: Any) -> Any:
    if type(datum) is List:
        value = () if datum.tail is None else to_value(datum.tail)
        for item in reversed(datum.items):
            value = Pair(to_value(item), value)
        return value
    return [to_value(item) for item in datum.items] if type(datum) is Vector else datum


def to_list(value: Any) -> Any:
    """A value as data."""
    items = []
    while type(value) is Pair:
        items.append(to_list(value.car))
        value = value.cdr
    if items or value == ():
        return join(items, List() if value == () else to_list(value))
    return Vector(map(to_list, value)) if type(value) is list else value


def make_list(items: Any, tail: Any = ()) -> Any:
    for item in reversed(list(items)):
        tail = Pair(item, tail)
    return tail


def items_of(value: Any) -> list[Any]:
    out = []
    while type(value) is Pair:
        out.append(value.car)
        value = value.cdr
    return out


def append(*lists: Any) -> Any:
    value = lists[-1] if lists else ()
    for front in reversed(lists[:-1]):
        value = make_list(items_of(front), value)
    return value


class Values(tuple):
    pass


class RecordType:
    def __init__(self, name: Any, fields: Any) -> None:
        self.name = name


class Record:
    def __init__(self, kind: RecordType, *fields: Any) -> None:
        self.kind, self.fields = kind, list(fields)

    def ref(self, kind: RecordType, index: int, who: Any) -> Any:
        assert self.kind is kind, who
        return self.fields[index]

    def set(self, kind: RecordType, index: int, value: Any, who: Any) -> None:
        assert self.kind is kind, who
        self.fields[index] = value


def same(a: Any, b: Any) -> bool:
    return a is b or (type(a) is type(b) and not isinstance(a, (Pair, list)) and a == b)


def raw(value: Any) -> Any:
    """A value of a transformer as syntax inside of data."""
    if type(value) is Pair or value == ():
        items = []
        while type(value) is Pair:
            items.append(raw(value.car))
            value = value.cdr
        return List(items, None if value == () else raw(value))
    return Vector(map(raw, value)) if type(value) is list else value


def from_raw(made: Any) -> Any:
    if type(made) is List:
        return make_list(map(from_raw, made.items), () if made.tail is None else from_raw(made.tail))
    return list(map(from_raw, made.items)) if type(made) is Vector else made


class Matched(list):
    """What a variable under an ellipsis matched."""


def match(subject: Any, pattern: Any) -> Any:
    found = pattern.match(to_syntax(None, raw(subject)))
    return False if found is None else [Matched(v) if type(v) is list else v for v in found]


def pairs_to_syntax(value: Any) -> Any:
    """A list that a transformer computed, for a variable under an ellipsis; of a matched one, itself."""
    return list(value) if type(value) is Matched else value


def refuse(subject: Any) -> Any:
    raise bad("no clause of syntax-case takes this", to_syntax(None, raw(subject)))


class Machine:
    """A namespace, its expander, and the values of its cells."""

    def __init__(self, kind: str = "program") -> None:
        self.values: dict[Cell, Any] = {}
        self.cells: dict[str, Cell] = {}
        self.namespace = Namespace("program", kind)
        self.expander = Expander(self.cell, self.compile_transformer)
        for name, form in core_forms().items():
            self.namespace.bind(name, form)
        for name, value in self.primitives().items():
            self.values[self.cell(name)] = value
            self.namespace.bind(name, CellBinding(self.cell(name)))

    def cell(self, name: str) -> Cell:
        return self.cells.setdefault(name, Cell("(eshkol primitives)", name, primitive=True))

    def template(self, template: Any, *values: Any) -> Any:
        depths = {v.index: v.depth for v in template.occurrences.values()}
        given = []
        for index, value in enumerate(values):
            if depths.get(index, 0) and type(value) is not Matched:
                given.append([to_syntax(None, raw(item)) for item in items_of(value)])
            else:
                given.append(pairs_to_syntax(value) if depths.get(index, 0) else to_syntax(None, raw(value)))
        return from_raw(template.make(given, use=self.expander.use))

    def primitives(self) -> dict[str, Any]:
        return {
            "car": lambda p: p.car,
            "cdr": lambda p: p.cdr,
            "cadr": lambda p: p.cdr.car,
            "cons": Pair,
            "list": lambda *items: make_list(items),
            "append": append,
            "vector": lambda *items: list(items),
            "list->vector": items_of,
            "vector-ref": operator.getitem,
            "eq?": same,
            "eqv?": same,
            "%undifferentiated": lambda value: value,
            "equal?": lambda a, b: to_list(a) == to_list(b),
            "not": lambda x: x is False,
            "null?": lambda x: x == (),
            "boolean?": lambda x: type(x) is bool,
            "length": lambda x: len(items_of(x)),
            "pair?": lambda x: type(x) is Pair,
            "map": lambda f, *lists: make_list([f(*row) for row in zip(*map(items_of, lists), strict=False)]),
            "for-each": lambda f, items: [f(item) for item in items_of(items)] and UNSPECIFIED,
            "apply": lambda f, *args: f(*args[:-1], *items_of(args[-1])),
            "+": lambda *a: sum(a),
            "*": lambda *a: __import__("math").prod(a),
            "-": lambda a, *b: a - sum(b) if b else -a,
            "=": lambda a, b: a == b,
            "<": lambda a, b: a < b,
            ">": lambda a, b: a > b,
            "even?": lambda a: a % 2 == 0,
            "odd?": lambda a: a % 2 == 1,
            "values": lambda *v: v[0] if len(v) == 1 else Values(v),
            "call-with-values": lambda p, c: (lambda v: c(*v) if type(v) is Values else c(v))(p()),
            "%make-record-type": RecordType,
            "%record": Record,
            "%record?": lambda o, kind: type(o) is Record and o.kind is kind,
            "%record-ref": Record.ref,
            "%record-set!": Record.set,
            "%syntax-match": match,
            "%syntax-template": self.template,
            "%syntax-no-match": refuse,
            "syntax->datum": lambda s: to_value(to_datum(to_syntax(None, raw(s)))),
            "datum->syntax": lambda context, datum: to_syntax(context, to_list(datum)),
            "identifier?": lambda s: type(s) is Syntax and s.is_identifier,
            "free-identifier=?": free_identifier,
        }

    # ---- running -----------------------------------------------------------------------------------------------------

    def run(self, program: str, name: str = "test.esk") -> Any:
        """The value of the last form, as data."""
        unit = self.expander.expand_unit(read(Source(name, program)), self.namespace)
        return run_deep(lambda: to_list([self.evaluate(form, {}) for form in unit.forms][-1] if unit.forms else None))

    def compile_transformer(self, node: core.Node, name: str, place: Any) -> Any:
        procedure = self.evaluate(node, {})

        class Procedure:
            hygienic, identifiers, assignments = False, True, False

            def transform(self, use: Syntax, expander: Expander) -> Syntax:
                return to_syntax(None, raw(procedure(use)), use.place)

        made = Procedure()
        made.name = name  # type: ignore[attr-defined]
        return made

    def evaluate(self, node: core.Node, env: dict[core.Variable, Any]) -> Any:
        match node:
            case core.Const(datum=datum):
                return to_value(datum)
            case core.SyntaxConst(content=content):
                return content
            case core.Local(variable=variable):
                box = env[variable]
                if not box:
                    raise Undefined(variable.name)
                return box[0]
            case core.Global(cell=cell):
                if cell not in self.values:
                    raise Undefined(cell.name)
                return self.values[cell]
            case core.SetLocal(variable=variable, value=value):
                assert variable.assigned
                env[variable][:] = [self.evaluate(value, env)]
                return UNSPECIFIED
            case core.SetGlobal(cell=cell, value=value):
                assert cell.assigned
                self.values[cell] = self.evaluate(value, env)
                return UNSPECIFIED
            case core.DefineGlobal(cell=cell, value=value):
                self.values[cell] = self.evaluate(value, env)
                return UNSPECIFIED
            case core.If(test=test, then=then, otherwise=otherwise):
                return self.evaluate(otherwise if self.evaluate(test, env) is False else then, env)
            case core.Seq(items=items):
                return [self.evaluate(item, env) for item in items][-1]
            case core.Lambda(clauses=clauses):
                return lambda *args: self.call(clauses, env, args)
            case core.Let(variables=variables, values=values, body=body):
                found = [self.evaluate(value, env) for value in values]
                return self.evaluate(body, {**env, **{v: [x] for v, x in zip(variables, found, strict=True)}})
            case core.Letrec(variables=variables, values=values, body=body):
                env = {**env, **{variable: [] for variable in variables}}
                for variable, value in zip(variables, values, strict=True):
                    env[variable][:] = [self.evaluate(value, env)]
                return self.evaluate(body, env)
            case core.Call(procedure=procedure, args=args):
                return self.evaluate(procedure, env)(*[self.evaluate(arg, env) for arg in args])
        raise TypeError(node)

    def call(self, clauses: list[core.Clause], env: dict[core.Variable, Any], args: tuple[Any, ...]) -> Any:
        for clause in clauses:
            size = len(clause.params)
            if len(args) == size or (clause.rest is not None and len(args) > size):
                inner = {**env, **{v: [x] for v, x in zip(clause.params, args, strict=False)}}
                if clause.rest is not None:
                    inner[clause.rest] = [make_list(args[size:])]
                return self.evaluate(clause.body, inner)
        raise TypeError(f"{len(args)} arguments")


def result(program: str, kind: str = "program") -> str:
    """The value of a program's last form, as text."""
    return text(Machine(kind).run(program))
