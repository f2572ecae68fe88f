"""A large unit in parts, each of which LLVM compiles by itself: some on other cores, some later, some never.

Comes in: the simplified forms of a unit and their `Analysis`. Goes out: LLVM text for each `PartPlan`, and for the data
that all parts share: constants, and the static closures of the unit's procedures. Parts know nothing of each other but
these. A call of a procedure in another part loads the entry from its closure, and so other code for the procedure may
take its place at any time; what pieces of the top level go on to is found in a table likewise.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from eshkol.codegen.emit import TopForm, emit_functions, emit_piece, piece_symbol, pieces_of
from eshkol.codegen.functions import Analysis, LambdaFunction
from eshkol.codegen.inference import Inference
from eshkol.codegen.module import CLOSURES, PIECES, UnitModule
from eshkol.codegen.primitives import PrimitiveTable
from eshkol.codegen.shared import Shared, Split
from eshkol.codegen.sources import source_text
from eshkol.codegen.values import lies_in_memory
from eshkol.lang.core import Cell, Const, Global, Node, SetGlobal, SyntaxConst, Unit
from eshkol.lang.libraries import nodes

LATER = "entry.later"  # the entry of a procedure that is not compiled yet (entries.ll)
ENTRIES = "entries"  # of a part: which closure, or piece, has which entry


@dataclass
class PartPlan:
    """What stands in a part: functions, and pieces of the top level by their numbers."""

    functions: list[LambdaFunction] = field(default_factory=list)
    pieces: list[int] = field(default_factory=list)
    size: int = 0  # in core forms


class UnitParts:
    """A unit that is written in parts."""

    def __init__(self, unit: Unit, forms: list[Node], analysis: Analysis, table: PrimitiveTable) -> None:
        self.unit, self.analysis, self.table = unit, analysis, table
        self._forms = forms
        functions = [f for f in analysis.functions.values() if not f.inside]
        self.slots = {f: number for number, f in enumerate(f for f in functions if f.is_static)}
        self.pieces = pieces_of(analysis, forms)
        self.procedures: dict[LambdaFunction, PartPlan] = {}  # those of the program, each with what stands in it
        self.constants: list[Any] = []
        self.cells: dict[Cell, None] = {}  # that some part may refer to
        self._numbers: dict[int, int] = {}
        self._collect(forms)
        made = set(analysis.top.made)
        of_cells = {id(f.code): f for f in analysis.cells.values()}
        self._plain: list[PartPlan] = []  # pieces whose code runs once, and of which nothing else remains
        self._lambdas: list[PartPlan] = []  # the static procedures of those
        self._others: list[PartPlan] = []  # pieces with loops, and with closures
        for number, piece in enumerate(self.pieces):
            own: list[TopForm] = []
            for form in piece.forms:
                procedure = of_cells.get(id(getattr(form.node, "value", None)))
                if procedure is None:
                    own.append(form)
                else:
                    self.procedures[procedure] = PartPlan(_outside(form), size=form.size)
            inner = [f for form in own for f in _outside(form)]
            size = sum(form.size for form in own)
            if piece.loops or not all(f in self.slots for f in inner if f in made):
                self._others.append(PartPlan(inner, [number], size))
            else:
                self._plain.append(PartPlan([], [number], size))
                self._lambdas += [PartPlan(found, [], form.size) for form in own if (found := _outside(form))]

    def _collect(self, forms: list[Node]) -> None:
        for node in nodes(forms):
            kind = type(node)
            if kind is Const or kind is SyntaxConst:
                found = node.datum if kind is Const else node.content
                if (kind is SyntaxConst or lies_in_memory(found)) and id(found) not in self._numbers:
                    self._numbers[id(found)] = len(self.constants)
                    self.constants.append(found)
            elif kind is Global or kind is SetGlobal:
                self.cells[node.cell] = None

    # ---- plans --------------------------------------------------------------------------------------------------

    def once(self, size: int) -> list[PartPlan]:
        """The top level as far as it runs once: in every tier compiled as it is written."""
        return batches(self._plain, size)

    def others(self, size: int) -> list[PartPlan]:
        """The rest of the top level, with its procedures."""
        return batches([*self._others, *self._lambdas], size)

    def called_by(self, function: LambdaFunction, done: Iterable[LambdaFunction], size: int) -> PartPlan:
        """A procedure, and those that it calls and that are small: they are likely to be called next."""
        plan, seen = PartPlan(), {*done}
        waiting = [function]
        while waiting:
            at = waiting.pop(0)
            if at in seen or at not in self.procedures:
                continue
            part = self.procedures[at]
            if plan.functions and plan.size + part.size > size:
                continue
            seen.add(at)
            plan.functions += part.functions
            plan.size += part.size
            waiting += [called for inner in part.functions for called in inner.called]
        return plan

    # ---- text ---------------------------------------------------------------------------------------------------

    def data(self) -> str:
        """The module of what all parts share."""
        module = UnitModule(self.table)
        module.constants = self.constants
        shared = Shared(module, self.analysis, self.unit.cells, source_text, Split(self.slots, frozenset(), True))
        rows = [module.closure_value(f'@"{LATER}"', shared.procedure(f)) for f in self.slots]
        module.globals.append(f'declare void @"{LATER}"()')
        kind = "{ i64, ptr, ptr }"
        listed = f"[{', '.join(rows)}]" if rows else "zeroinitializer"
        module.globals.append(f"@{CLOSURES} = global [{len(rows)} x {kind}] {listed}")
        module.globals.append(f"@{PIECES} = global [{len(self.pieces)} x ptr] zeroinitializer")
        return module.text(self._name)

    def text(self, plan: PartPlan, *, quick: bool) -> tuple[str, UnitModule, int, str]:
        """The module of a part, how many entries it has, and the symbol of one of them."""
        module = UnitModule(self.table, is_part=True, is_quick=quick)
        module.constants, module._constant_numbers = self.constants, self._numbers
        split = Split(self.slots, frozenset(plan.functions), quick)
        inferred = None if quick else self._inferred
        shared = Shared(module, self.analysis, self.unit.cells, source_text, split, inferred)
        emit_functions(shared)
        entries = [(self.slots[f], shared.entry_symbol(f)) for f in shared.functions if f in self.slots]
        for number in plan.pieces:
            following = None
            if number + 1 < len(self.pieces):
                following = f"getelementptr (i8, ptr @{PIECES}, i64 {8 * (number + 1)})"
            emit_piece(shared, number, self.pieces[number], self.unit.name, False, following)
            entries.append((-1 - number, f'@"{piece_symbol(number)}"'))
        rows = ", ".join(f"{{ i64, ptr }} {{ i64 {slot}, ptr {symbol} }}" for slot, symbol in entries)
        module.globals.append(f"@{ENTRIES} = global [{len(entries)} x {{ i64, ptr }}] [{rows}]")
        return module.text(self._name), module, len(entries), entries[0][1][2:-1]

    @cached_property
    def _inferred(self) -> Inference:
        """What is known of the whole unit, for those parts that are optimized."""
        return Inference(self._forms, self.analysis, self.table, self.unit.private)

    @property
    def _name(self) -> str:
        return self.unit.name.replace("\n", " ")


def _outside(form: TopForm) -> list[LambdaFunction]:
    """The functions in a form that are LLVM functions of their own."""
    return [f for f in form.functions if not f.inside]


def batches(plans: Iterable[PartPlan], size: int) -> list[PartPlan]:
    """The same in fewer plans, of about this size."""
    found: list[PartPlan] = []
    for plan in plans:
        if not found or found[-1].size + plan.size > size:
            found.append(PartPlan())
        last = found[-1]
        last.functions = last.functions + plan.functions
        last.pieces = last.pieces + plan.pieces
        last.size += plan.size
    return found
