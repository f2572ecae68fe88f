"""A program and all libraries that it needs as one unit, without the definitions that nothing reaches.

Comes in: a module of the world, and the names that are wanted of it from outside. Goes out: a `Whole`. What the
standard library defines can be dropped wherever nothing refers to it: its modules have no other effects
(`World.in_order` relies on the same). What a program defines can be dropped where computing its value does nothing
but give it, or where it was needed for what was compiled ahead (`models`); all else stays, in the order in which it
would have run.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from eshkol.executable.missing import Missing, missing_calls
from eshkol.executable.models import Model, take_models
from eshkol.lang import core
from eshkol.lang.core import Call, Cell, Const, DefineGlobal, Global, Lambda, Let, Letrec, Node, Unit
from eshkol.lang.files import file_name
from eshkol.lang.libraries import Module, SourceModule, cells_used, nodes
from eshkol.lang.world import World

HOST_ONLY = {"%set-differentiated-call!"}  # forms at top level that only Python would ever take notice of
# Primitives whose calls make something new and do nothing else, given values that do no more.
MAKERS = {"cons", "list", "vector", "box", "%make-record-type", "string->symbol"}


@dataclass(frozen=True)
class Whole:
    """A program as one unit, and what each of its files is called where errors are told."""

    unit: Unit
    units: dict[str, str]  # by file: the library or program that stands there
    dropped: int  # definitions that nothing reaches
    cells: dict[tuple[str, str], Cell]  # that stayed, by library and name
    models: Sequence[Model] = ()  # what was compiled ahead
    missing: Sequence[Missing] = ()  # calls that can only fail


def whole_program(
    world: World, module: SourceModule, evaluate: Callable[[Unit], None], wanted: Iterable[Cell] = ()
) -> Whole:
    """All that must run for a module, which is the last, as one unit; `wanted` are cells that others will read.

    `evaluate` runs a unit now, for what is compiled ahead.
    """
    order = [other for other in world.in_order(module) if isinstance(other, SourceModule)]
    cells = {(cell.library, cell.name): cell for other in order for cell in other.unit.cells}
    _share_cells(order, cells)
    models, used_up = take_models(world, order, evaluate)
    kept = _reached(order, used_up, [cells.get((cell.library, cell.name), cell) for cell in wanted])
    forms = [form for other in order for form in other.unit.forms if id(form) in kept]
    defined = {form.cell for form in forms if isinstance(form, DefineGlobal)}
    whole = sum(len(other.unit.forms) for other in order)
    units = {file_name(other.source): other.label for other in order}
    stayed = {key: cell for key, cell in cells.items() if cell in defined}
    own = [form for other in order if not other.standard for form in other.unit.forms if id(form) in kept]
    missing = missing_calls(own, forms)
    private = {*stayed.values()} - {cells.get((cell.library, cell.name), cell) for cell in wanted}
    typed = any(other.unit.typed for other in order)
    unit = Unit("program", forms, list(stayed.values()), typed=typed, private=private)
    return Whole(unit, units, whole - len(forms), stayed, models, missing)


def _share_cells(order: Iterable[Module], cells: dict[tuple[str, str], Cell]) -> None:
    """One object for each variable, whoever refers to it: libraries that come from the store have objects of their own.

    What is assigned anywhere is assigned for all.
    """
    for module in order:
        for node in nodes(module.unit.forms if isinstance(module, SourceModule) else []):
            if isinstance(node, (Global, core.SetGlobal, DefineGlobal)):
                shared = cells.setdefault((node.cell.library, node.cell.name), node.cell)
                if node.cell is not shared:
                    shared.assigned = shared.assigned or node.cell.assigned
                    node.cell = shared


def _reached(order: Iterable[SourceModule], used_up: set[int], wanted: Iterable[Cell]) -> set[int]:
    """The forms that must stay, by their identity; those that are used up stay where others refer to them."""
    waiting: deque[Node] = deque()
    definitions: dict[Cell, list[Node]] = {}
    for module in order:
        for form in module.unit.forms:
            can_go = id(form) in used_up
            if isinstance(form, DefineGlobal) and (can_go or module.standard or _only_gives(form.value)):
                definitions.setdefault(form.cell, []).append(form)
            elif not can_go and not _is_for_host(form):
                waiting.append(form)
    for cell in wanted:
        waiting += definitions.pop(cell, [])
    kept: set[int] = set()
    while waiting:
        form = waiting.popleft()
        kept.add(id(form))
        for cell in cells_used([form]):
            waiting += definitions.pop(cell, [])
    return kept


def _is_for_host(form: Node) -> bool:
    called = form.procedure if isinstance(form, Call) else None
    return isinstance(called, Global) and called.cell.primitive and called.cell.name in HOST_ONLY


def _only_gives(value: Node) -> bool:
    """Whether computing a value has no effect but the value, and surely gives one."""
    match value:
        case Const() | Lambda() | core.Local():
            return True
        case Global(cell=cell):
            return cell.primitive
        case Let(values=values, body=body) | Letrec(values=values, body=body):
            return all(isinstance(v, Const | Lambda) for v in values) and isinstance(body, Const | Lambda)
        case Call(procedure=Global(cell=cell), args=args):
            return cell.primitive and cell.name in MAKERS and all(isinstance(a, Const | Lambda) for a in args)
    return False
