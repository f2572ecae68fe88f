"""What `compile-ahead` stands for in a program that is built: the procedures are compiled now, with their weights.

Comes in: the modules of a program. Each call of compile-ahead in them is evaluated here, as `eshkol run` would evaluate
it, after the definitions that it needs; in its place stands the number of what came of it, so that the executable keeps
of those definitions only what it needs otherwise. Goes out: `Model`s, and the objects that they are linked from.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from eshkol.errors import BadSyntax, EshkolError, LanguageError
from eshkol.executable.targets import Destination
from eshkol.lang import core
from eshkol.lang.core import Call, Cell, Const, DefineGlobal, Global, Node, Unit
from eshkol.lang.datum import List, Symbol, symbol_text
from eshkol.lang.libraries import SourceModule, cells_used, nodes
from eshkol.lang.report import bad
from eshkol.lang.source import Place
from eshkol.lang.world import World

if TYPE_CHECKING:  # programs without tensors are built without importing them
    from eshkol.tensors.ahead import Ahead, Operand

LIBRARY = "(eshkol ahead)"
CALLED, BUILT = "compile-ahead", "%built-ahead"
# Calls at the top level of a program that say how tensors are made; they are done at the build as well.
SETTINGS = {"set-default-dtype!", "rng-seed"}


@dataclass(frozen=True)
class Model:
    """A procedure that was compiled, and where it is asked for."""

    ahead: Ahead
    place: Place | None


def take_models(
    world: World, order: Sequence[SourceModule], evaluate: Callable[[Unit], None]
) -> tuple[list[Model], set[int]]:
    """Evaluate the calls of compile-ahead, and put numbers in their places; `order` are modules whose cells are shared.

    Also, by their identity, the forms that such calls needed: where nothing else needs them they can be left out.
    """
    own = [form for module in order if not module.standard for form in module.unit.forms]
    calls = _calls(own)
    if not calls:
        return [], set()
    from eshkol.tensors.ahead import noting

    needed = _needed(order, own, calls)
    for cell in cells_used([*needed, *calls]):
        if not any(isinstance(form, DefineGlobal) and form.cell is cell for form in own):
            world.ensure_cell(cell)
    if needed:
        evaluate(Unit("program", [*needed], [form.cell for form in needed if isinstance(form, DefineGlobal)]))
    (built,) = (cell for module in order for cell in module.unit.cells if (cell.library, cell.name) == (LIBRARY, BUILT))
    models = []
    for number, call in enumerate(calls):
        with noting() as found:
            evaluate(Unit("program", [Call(call.place, call.procedure, [*call.args])]))
        (ahead,) = found
        models.append(Model(ahead, call.place))
        told = [List(tuple(map(_told, some))) for some in (ahead.inputs, ahead.outputs)]
        call.procedure = Global(call.place, built)
        call.args = [Const(call.place, datum) for datum in (number, Symbol(ahead.name), *told)]
    return models, set(map(id, needed))


def _told(operand: Operand) -> List:
    return List((Symbol(operand.dtype), *operand.shape))


def _calls(forms: Iterable[Node]) -> list[Call]:
    """The calls of compile-ahead, which must be such that they can be evaluated before the program runs."""
    found = nodes(forms)
    calls = [node for node in found if type(node) is Call and _is_it(node.procedure)]
    procedures = {id(call.procedure) for call in calls}
    for node in found:
        if _is_it(node) and id(node) not in procedures:
            raise bad(f"{CALLED} is no value in an executable: it must be called where it is named", node.place)
    for call in calls:
        inside = nodes(call.args)
        known = {variable for node in inside for variable in _binds(node)}
        for node in inside:
            if isinstance(node, core.Local | core.SetLocal) and node.variable not in known:
                name = symbol_text(node.variable.name)
                raise bad(
                    f"{CALLED} is evaluated when the program is built, and {name} has no value then",
                    node.place or call.place,
                    hint="define what it needs at top level",
                    notes=((f"{name} is bound here", node.variable.place),),
                )  # fmt: skip
            if _is_it(node):
                raise bad(f"one {CALLED} stands inside another", node.place)
    return calls


def _is_it(node: Node) -> bool:
    return type(node) is Global and (node.cell.library, node.cell.name) == (LIBRARY, CALLED)


def _binds(node: object) -> list[object]:
    match node:
        case core.Clause(params=params, rest=rest):
            return [*params, rest]
        case core.Let(variables=variables) | core.Letrec(variables=variables):
            return [*variables]
    return []


def _needed(order: Iterable[SourceModule], own: Sequence[Node], calls: Sequence[Call]) -> list[Node]:
    """The forms of the program and its libraries that must have run before the calls, in order."""
    definitions = {form.cell: form for form in own if isinstance(form, DefineGlobal)}
    wanted: dict[Cell, None] = {}
    waiting: list[Node] = [argument for call in calls for argument in call.args]
    kept = {id(form) for form in own if _is_setting(form)}
    while waiting:
        node = waiting.pop()
        for cell in cells_used([node]):
            form = definitions.get(cell)
            if form is None or cell in wanted:
                continue
            wanted[cell] = None
            if cell.assigned:
                raise _changed(cell, own, calls)
            inner = next((one for one in nodes([form]) if _is_it(one)), None)
            if inner is not None:
                raise bad(
                    f"{symbol_text(cell.name)} is compiled ahead itself, and gives numbers, not tensors", inner.place
                )
            waiting.append(form)
            kept.add(id(form))
    _refuse_changes(own, definitions, kept, [cell for cell in wanted if not _is_fixed(definitions[cell])], calls)
    return [form for form in own if id(form) in kept]


def _is_fixed(form: Node) -> bool:
    return isinstance(form, DefineGlobal) and isinstance(form.value, core.Lambda | Const)


def _refuse_changes(
    own: Sequence[Node], definitions: Mapping[Cell, Node], kept: set[int], data: Sequence[Cell], calls: Sequence[Call]
) -> None:
    """Nothing that the build leaves out may change what the calls need: it might train the very model."""
    theirs = set(map(id, calls))
    holders = [number for number, form in enumerate(own) if any(id(node) in theirs for node in nodes([form]))]
    later = any(_is_fixed(own[number]) for number in holders)  # in a procedure, called who knows when
    for number, form in enumerate(own[: None if later else holders[-1]]):
        if id(form) in kept or number in holders or _is_fixed(form):
            continue
        reached, waiting = set[Cell](), [form]
        while waiting:
            for cell in cells_used([waiting.pop()]):
                if cell not in reached and cell in definitions:
                    reached.add(cell)
                    waiting += [definitions[cell]] * _is_fixed(definitions[cell])
        for cell in data:
            if cell in reached:
                name = symbol_text(cell.name)
                raise bad(
                    f"{CALLED} needs {name}, and this uses it before, which the build does not do", form.place,
                    hint=f"put it into the definition of {name}, or behind the call, or read {name} from a checkpoint",
                    notes=((f"{CALLED} is called here", calls[-1].place),),
                )  # fmt: skip


def _changed(cell: Cell, own: Sequence[Node], calls: Sequence[Call]) -> LanguageError:
    where = next((node.place for node in nodes(own) if type(node) is core.SetGlobal and node.cell is cell), None)
    name = symbol_text(cell.name)
    return bad(
        f"{CALLED} is evaluated when the program is built, and {name}, which it needs, is changed when it runs",
        where or cell.place, notes=((f"{CALLED} is called here", calls[0].place),),
    )  # fmt: skip


def _is_setting(form: Node) -> bool:
    if not isinstance(form, Call) or not isinstance(form.procedure, Global):
        return False
    cell = form.procedure.cell
    return cell.name in SETTINGS and cell.library.startswith("(eshkol ")


# ---- objects ---------------------------------------------------------------------------------------------------------


def objects_of(models: Sequence[Model], where: Destination, native: bool, flags: Sequence[str]) -> dict[str, bytes]:
    """The objects of models, by file; `native` compiles for processors like this one alone."""
    from eshkol.backends.cpu.backend import PROGRAMS_ALONE
    from eshkol.backends.cpu.export import model_objects
    from eshkol.backends.cpu.simd import Level
    from eshkol.tensors.export import model_of

    written = []
    for number, model in enumerate(models):
        ahead, name = model.ahead, symbol(number)
        try:
            exported = model_of(ahead.function, ahead.examples, name, PROGRAMS_ALONE, "program without Python")
        except EshkolError as error:
            raise _at(model, error) from None
        written.append((name, exported, _row(name, ahead)))
    level = Level.NEON if where.target.is_arm else Level.NONE  # what every processor of the kind has
    return model_objects(where.compiler, written, None if native else level, flags)


def symbol(number: int) -> str:
    """What a model is called among symbols."""
    return f"esk_model_{number}"


def _at(model: Model, error: EshkolError) -> EshkolError:
    if error.span is None and model.place is not None:
        return BadSyntax(error.message, span=model.place.span, hint=error.hint)
    return error


def _row(name: str, ahead: Ahead) -> str:
    """What stands behind the tables of a model: its row, as runtime/native/executable/program.h has it."""
    from eshkol.backends.cpu.export_text import array_text, quoted
    from eshkol.tensors.ahead import DTYPES

    inputs, outputs = (
        array_text("Numbers", kind, [(DTYPES.index(one.dtype), one.count) for one in some])
        for kind, some in (("row_inputs", ahead.inputs), ("row_outputs", ahead.outputs))
    )
    return f"""\
#include <program.h>
{inputs}
{outputs}
__attribute__((visibility("hidden"))) const BuiltModel {name} = {{
    {quoted(ahead.name)}, &plan, row_inputs, row_outputs, {len(ahead.inputs)}, {len(ahead.outputs)}
}};"""
