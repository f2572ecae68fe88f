"""The forms through which a body reaches other files and the machine: include, cond-expand, import and their kin.

They are bindings like the other core forms, and exported by (eshkol syntax-core) beside them. `import`, `require`,
`provide`, `module` and `define-library` at the top level of a file are read before anything is expanded
(`lang/program.py`); what reaches the bindings here stands somewhere else, or was written by a macro.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from eshkol.lang.bodies import Body, UnitBody
from eshkol.lang.core import Const, Node, Seq
from eshkol.lang.datum import UNSPECIFIED, List, Symbol
from eshkol.lang.declarations import cond_expand, file_names
from eshkol.lang.expander import Expander, Frame
from eshkol.lang.features import features
from eshkol.lang.report import bad
from eshkol.lang.scopes import FormBinding
from eshkol.lang.syntax import Syntax

if TYPE_CHECKING:
    from eshkol.lang.world import World

Chooser = Callable[[Syntax, Frame], list[Syntax]]


def surface_forms(world: World) -> Mapping[str, FormBinding]:
    """The forms, for one world of modules."""

    def included(fold_case: bool) -> Chooser:
        def forms(form: Syntax, frame: Frame) -> list[Syntax]:
            reading = world.readings[frame.namespace]
            return [item for file in file_names(form) for item in reading.included(file, form, fold_case)]

        return forms

    def chosen(form: Syntax, frame: Frame) -> list[Syntax]:
        return list(cond_expand(form, world.readings[frame.namespace]))

    rows = [
        _spliced("include", included(False)),
        _spliced("include-ci", included(True)),
        _spliced("cond-expand", chosen),
        FormBinding("%features", _features),
    ]
    rows += [
        FormBinding("begin-for-syntax", _misplaced, _for_syntax(world, lambda form: (form.items or ())[1:])),
        FormBinding("define-for-syntax", _misplaced, _for_syntax(world, _one_definition)),
    ]
    rows += [FormBinding(name, _misplaced, _declare(world)) for name in TOP_LEVEL]
    return {row.name: row for row in rows}


DEFINE = Symbol("define")
TOP_LEVEL = ("import", "require", "provide", "module", "define-library")


def _spliced(name: str, forms: Chooser) -> FormBinding:
    """A form that stands for other forms: definitions and all in a body, a sequence in an expression."""

    def define(expander: Expander, form: Syntax, body: Body) -> None:
        body.splice(forms(form, body.frame))

    def expand(expander: Expander, form: Syntax, frame: Frame) -> Node:
        nodes = [expander.expand(item, frame) for item in forms(form, frame)]
        if not nodes:
            return Const(form.place, UNSPECIFIED)
        return nodes[0] if len(nodes) == 1 else Seq(form.place, nodes)

    return FormBinding(name, expand, define)


def _for_syntax(world: World, forms: Callable[[Syntax], Sequence[Syntax]]) -> Callable[[Expander, Syntax, Body], None]:
    """Definitions that run when the program is expanded, for the transformers of its macros."""

    def define(expander: Expander, form: Syntax, body: Body) -> None:
        if not isinstance(body, UnitBody):
            _misplaced(expander, form, body.frame)
        world.run_for_syntax(body.frame.namespace, expander, forms(form), form)

    return define


def _one_definition(form: Syntax) -> Sequence[Syntax]:
    """`(define-for-syntax ...)` as the definition that it holds; the word define has the same context."""
    items = form.items
    if not items or len(items) < 3:
        raise bad("define-for-syntax is like define: (define-for-syntax (name parameter ...) body ...)", form)
    word = Syntax(DEFINE, items[0].scopes, items[0].place)
    return (Syntax(List((word, *items[1:])), place=form.place),)


def _features(expander: Expander, form: Syntax, frame: Frame) -> Node:
    return Const(form.place, List(Symbol(name) for name in features()))


def _misplaced(expander: Expander, form: Syntax, frame: Frame) -> Node:
    name = form.head.name if form.head is not None else "this form"
    raise bad(f"{name} belongs at the top level of a file", form)


def _declare(world: World) -> Callable[[Expander, Syntax, Body], None]:
    def define(expander: Expander, form: Syntax, body: Body) -> None:
        namespace = body.frame.namespace
        interaction = world.interactions.get(namespace)
        word = form.head.name if form.head is not None else ""
        if isinstance(body, UnitBody) and interaction is not None and word in ("import", "require"):
            interaction.declare(form)
        elif isinstance(body, UnitBody):
            name = form.head.name if form.head is not None else "this form"
            raise bad(f"{name} is written by a macro, or inside another form, where it comes too late", form)
        else:
            _misplaced(expander, form, body.frame)

    return define
