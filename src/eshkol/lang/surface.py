"""The forms through which a body reaches other files and the machine: include, cond-expand, import and their kin.

They are bindings like the other core forms, and exported by (eshkol syntax-core) beside them. `import`, `require`,
`provide`, `module` and `define-library` at the top level of a file are read before anything is expanded
(`lang/program.py`); what reaches the bindings here stands somewhere else, or was written by a macro.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from eshkol.lang.bodies import UnitBody
from eshkol.lang.contents import Reading
from eshkol.lang.core import Const, Node, Seq
from eshkol.lang.datum import UNSPECIFIED, List, Symbol
from eshkol.lang.declarations import cond_expand, file_names
from eshkol.lang.features import features
from eshkol.lang.meanings import DefiningBody, FormBinding, FormExpander
from eshkol.lang.namespaces import Frame, Namespace
from eshkol.lang.report import bad
from eshkol.lang.syntax import Syntax

Chooser = Callable[[Syntax, Frame], list[Syntax]]


class Prompt(Protocol):
    """An environment in which forms are evaluated one after the other; see `Interaction` in `lang/program.py`."""

    def declare(self, form: Syntax) -> None: ...


class SurfaceWorld(Protocol):
    """What these forms ask of the world of modules."""

    @property
    def readings(self) -> Mapping[Namespace, Reading]: ...
    @property
    def interactions(self) -> Mapping[Namespace, Prompt]: ...
    def run_for_syntax(
        self, namespace: Namespace, expander: FormExpander, forms: Sequence[Syntax], form: Syntax
    ) -> None: ...


def surface_forms(world: SurfaceWorld) -> Mapping[str, FormBinding]:
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

    def define(expander: FormExpander, form: Syntax, body: DefiningBody) -> None:
        body.splice(forms(form, body.frame))

    def expand(expander: FormExpander, form: Syntax, frame: Frame) -> Node:
        nodes = [expander.expand(item, frame) for item in forms(form, frame)]
        if not nodes:
            return Const(form.place, UNSPECIFIED)
        return nodes[0] if len(nodes) == 1 else Seq(form.place, nodes)

    return FormBinding(name, expand, define)


def _for_syntax(
    world: SurfaceWorld, forms: Callable[[Syntax], Sequence[Syntax]]
) -> Callable[[FormExpander, Syntax, DefiningBody], None]:
    """Definitions that run when the program is expanded, for the transformers of its macros."""

    def define(expander: FormExpander, form: Syntax, body: DefiningBody) -> None:
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


def _features(expander: FormExpander, form: Syntax, frame: Frame) -> Node:
    return Const(form.place, List(Symbol(name) for name in features()))


def _misplaced(expander: FormExpander, form: Syntax, frame: Frame) -> Node:
    name = form.head.name if form.head is not None else "this form"
    raise bad(f"{name} belongs at the top level of a file", form)


def _declare(world: SurfaceWorld) -> Callable[[FormExpander, Syntax, DefiningBody], None]:
    def define(expander: FormExpander, form: Syntax, body: DefiningBody) -> None:
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
