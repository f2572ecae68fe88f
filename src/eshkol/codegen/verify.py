"""What legal core forms are, said as a check: run after the expander and after the simplifier where ESHKOL_CHECK=1.

Comes in: the forms of a unit, simplified or not. Goes out: nothing, or `MalformedForms`. Every variable is bound where
it is used, by one binding in all of the unit; whatever is assigned is marked so; bindings have as many values as
variables.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import cache
from typing import Any

from eshkol.codegen.nodes import Escape, Fix, LetValues
from eshkol.lang.core import Clause, Lambda, Let, Letrec, Local, Node, Seq, SetLocal, Variable


class MalformedForms(AssertionError):
    """Core forms that no pass should give."""


@dataclass(frozen=True, slots=True)
class _Scope:
    """Where the scope of variables begins, or ends."""

    variables: tuple[Variable, ...]
    begins: bool


def verify_forms(forms: Sequence[Node]) -> None:
    """Refuse core forms that mean nothing."""
    bound: set[Variable] = set()
    scope: set[Variable] = set()
    work: list[Node | Clause | _Scope] = list(reversed(forms))  # no recursion: programs nest as deeply as they like
    while work:
        item = work.pop()
        if isinstance(item, _Scope):
            (scope.update if item.begins else scope.difference_update)(item.variables)
            continue
        outside, within, variables = _checked(item, scope)
        if not variables:
            work += reversed(outside)
            work += reversed(within)
            continue
        if len({*variables}) < len(variables) or not bound.isdisjoint(variables):
            raise MalformedForms(f"variables are bound twice: {', '.join(v.name for v in variables)}")
        bound.update(variables)
        around = tuple(variables)
        work += [_Scope(around, False), *reversed(within), _Scope(around, True), *reversed(outside)]


def _checked(item: Any, scope: set[Variable]) -> tuple[list[Any], list[Any], list[Variable]]:
    """Of a node: what stands outside of the scope of its variables, what within, and these."""
    match item:
        case Local() | SetLocal():
            variable = item.variable
            if variable not in scope:
                raise MalformedForms(f"the variable {variable.name} is not bound where it is used")
            if isinstance(item, SetLocal) and not variable.assigned:
                raise MalformedForms(f"the variable {variable.name} is changed, but not marked as such")
            return [item.value] if isinstance(item, SetLocal) else [], [], []
        case Lambda():
            return list(item.clauses), [], []
        case Clause():
            return [], [item.body], [*item.params, *([] if item.rest is None else [item.rest])]
        case Let():
            _as_many(item.variables, item.values)
            return list(item.values), [item.body], item.variables
        case Letrec():
            _as_many(item.variables, item.values)
            return [], [*item.values, item.body], item.variables
        case Fix():
            _as_many(item.variables, item.lambdas)
            if any(v.assigned for v in item.variables):
                raise MalformedForms("a procedure that is fixed is assigned")
            return [], [*item.lambdas, item.body], item.variables
        case LetValues():
            variables = [*item.variables, *([] if item.rest is None else [item.rest])]
            return [item.value], [item.body], variables
        case Escape():
            if item.variable.assigned:
                raise MalformedForms("a continuation that is only left to is assigned")
            return [], [item.body], [item.variable]
        case Seq() if not item.items:
            raise MalformedForms("a sequence has no items")
    return _children(item), [], []


def _children(node: Node) -> list[Node]:
    found: list[Node] = []
    kind: Any = type(node)
    for name in _names(kind):
        value = getattr(node, name)
        if isinstance(value, Node):
            found.append(value)
        elif isinstance(value, list):
            found += [x for x in value if isinstance(x, Node)]
    return found


@cache
def _names(kind: Any) -> tuple[str, ...]:
    """What the parts of a node are called."""
    return tuple(field.name for field in fields(kind))


def _as_many(variables: Sequence[Variable], values: Sequence[Any]) -> None:
    if len(variables) != len(values):
        raise MalformedForms(f"{len(variables)} variables have {len(values)} values")
