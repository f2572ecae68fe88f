"""define-record-type (R7RS 5.5): a record type, its constructor, predicate, accessors and modifiers.

They are procedures around the runtime's primitives: (%make-record-type name fields), (%record type value ...),
(%record? object type), (%record-ref object type index accessor), (%record-set! object type index value modifier).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from eshkol.lang.core import Cell, Clause, Const, Lambda, Local, Node, Variable
from eshkol.lang.datum import Datum, List, Symbol, Vector
from eshkol.lang.forms import call_primitive, check_distinct, name_of, parts, read_parameter
from eshkol.lang.meanings import DefiningBody, FormBinding, FormExpander
from eshkol.lang.namespaces import Frame
from eshkol.lang.report import bad, brief
from eshkol.lang.source import Place
from eshkol.lang.syntax import Syntax

SHAPE = "(define-record-type name (constructor field ...) predicate (field accessor [modifier]) ...)"


@dataclass
class _Field:
    name: Syntax
    accessor: Syntax | None
    modifier: Syntax | None
    annotation: Datum = None  # of its values, where `(name : type)` stands for the name


class _Record:
    """One use of define-record-type."""

    def __init__(
        self, expander: FormExpander, form: Syntax, body: DefiningBody, fields: list[_Field], kind: Syntax
    ) -> None:
        self.expander, self.form, self.body, self.fields, self.kind = expander, form, body, fields, kind
        self.place: Place | None = form.place

    def primitive(self, name: str, *args: Node) -> Node:
        return call_primitive(self.expander, self.place, name, *args)

    def type(self) -> Node:
        return self.expander.expand(self.kind, self.body.frame)

    def procedure(
        self,
        name: Syntax,
        params: list[str],
        make: Callable[[list[Node]], Node],
        types: Sequence[Datum] = (),
        returns: Datum = None,
    ) -> None:
        """Define a procedure; `make` gets references to its parameters."""

        def value() -> Node:
            kinds = types or (None,) * len(params)
            variables = [Variable(p, self.place, annotation=kind) for p, kind in zip(params, kinds, strict=True)]
            node = make([Local(self.place, variable) for variable in variables])
            node.place = None  # what is wrong with an argument is wrong where the procedure is called
            return Lambda(None, [Clause(variables, None, node, returns)], name.name)

        self.body.define(name, value, self.form)

    def define_type(self) -> None:
        name, fields = Symbol(self.kind.name), Vector(Symbol(field.name.name) for field in self.fields)
        made = self.body.define(
            self.kind,
            lambda: self.primitive("%make-record-type", Const(self.place, name), Const(self.place, fields)),
            self.form,
        )
        if isinstance(made, Cell):
            self.body.frame.namespace.records[self.kind.name] = made

    def define_constructor(self, name: Syntax, given: list[Syntax]) -> None:
        positions = []
        for argument in given:
            position = next((i for i, f in enumerate(self.fields) if _same(f.name, argument)), None)
            if position is None:
                raise bad(f"the constructor takes `{argument.name}`, which is no field", argument)
            positions.append(position)

        def make(args: list[Node]) -> Node:
            values: list[Node] = [Const(self.place, False) for _ in self.fields]
            for position, arg in zip(positions, args, strict=True):
                values[position] = arg
            return self.primitive("%record", self.type(), *values)

        self.procedure(
            name, [argument.name for argument in given], make, [self.fields[p].annotation for p in positions]
        )

    def define_field(self, index: int, field: _Field) -> None:
        at = Const(self.place, index)
        if field.accessor is not None:
            reader = Const(self.place, Symbol(field.accessor.name))
            self.procedure(
                field.accessor,
                ["record"],
                lambda args: self.primitive("%record-ref", args[0], self.type(), at, reader),
                returns=field.annotation,
            )
        if field.modifier is not None:
            writer = Const(self.place, Symbol(field.modifier.name))
            self.procedure(
                field.modifier,
                ["record", "value"],
                lambda args: self.primitive("%record-set!", args[0], self.type(), at, args[1], writer),
                (None, field.annotation),
            )


def _same(a: Syntax, b: Syntax) -> bool:
    return a.content is b.content and a.scopes == b.scopes


def _read_field(expander: FormExpander, syntax: Syntax, frame: Frame) -> _Field:
    if syntax.is_identifier:
        return _Field(syntax, None, None)
    items = syntax.items
    if items and not items[0].is_identifier:  # ((name : type) accessor modifier)
        name, annotation = read_parameter(expander, items[0], frame)
        return replace(
            _read_field(expander, Syntax(List((name, *items[1:])), place=syntax.place), frame), annotation=annotation
        )
    if items is None or not 1 <= len(items) <= 3:
        raise bad(f"a field is (name accessor [modifier]), not {brief(syntax)}", syntax)
    for item in items:
        name_of(item, "a field, an accessor or a modifier")
    return _Field(items[0], items[1] if len(items) > 1 else None, items[2] if len(items) > 2 else None)


def define_record_type(expander: FormExpander, form: Syntax, body: DefiningBody) -> None:
    kind, constructor, predicate, *rest = parts(form, 3, None, SHAPE)
    if not kind.is_identifier:  # (name ...), as some dialects write it
        items = kind.items
        if not items:
            raise bad(f"the name of a record type belongs here, not {brief(kind)}", kind)
        kind = name_of(items[0], "a record type")
    fields = [_read_field(expander, item, body.frame) for item in rest]
    check_distinct([field.name for field in fields], "one record type")
    record = _Record(expander, form, body, fields, kind)
    record.define_type()
    content = constructor.content
    if type(content) is List and content.items and content.tail is None:
        names = [name_of(item, "a constructor and its fields") for item in content.items]
        check_distinct(names[1:], "one constructor")
        record.define_constructor(names[0], names[1:])
    elif constructor.is_identifier:
        record.define_constructor(constructor, [field.name for field in fields])
    elif content is not False:
        raise bad(f"a constructor is (name field ...), a name or #f, not {brief(constructor)}", constructor)
    if predicate.is_identifier:
        record.procedure(predicate, ["object"], lambda args: record.primitive("%record?", args[0], record.type()))
    elif predicate.content is not False:
        raise bad(f"a predicate is a name or #f, not {brief(predicate)}", predicate)
    for index, field in enumerate(fields):
        record.define_field(index, field)


FORMS: dict[str, FormBinding] = {"define-record-type": FormBinding("define-record-type", None, define_record_type)}
