"""What the functions of a unit share while they are written: symbols, descriptors, closures, how calls are made."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Set
from dataclasses import dataclass
from typing import Any

from eshkol.codegen import passing
from eshkol.codegen.blocks import FunctionWriter, Val
from eshkol.codegen.functions import Analysis, LambdaFunction
from eshkol.codegen.inference import Inference
from eshkol.codegen.module import CLOSURES, UnitModule
from eshkol.lang.core import Cell, Clause
from eshkol.llvm.text import quoted


def given(writer: FunctionWriter, args: list[Val], tags: list[str | None], closure: str | None) -> list[str]:
    """The words of a call of a clause's function, whose arguments have these tags, as far as they are known."""
    words = []
    for value, tag in zip(args, tags, strict=True):
        if tag is None:
            words += [f"i64 {value.tag}", f"i64 {value.bits}"]
        elif tag == writer.module.table.tags["FLONUM"]:
            words.append(f"double {writer.op(f'bitcast i64 {value.bits} to double')}")
        else:
            words.append(f"i64 {value.bits}")
    return [passing.registers().context, *([] if closure is None else [f"ptr {closure}"]), *words]


def taken(names: int, tags: list[str | None], flonum: str, closure: str | None) -> list[str]:
    """The same words as the function takes them: those of argument i are %a{i}t and %a{i}p, or %a{i}d of a double."""
    words = []
    for i, tag in zip(range(names), tags, strict=True):
        if tag is None:
            words += [f"i64 %a{i}t", f"i64 %a{i}p"]
        else:
            words.append(f"double %a{i}d" if tag == flonum else f"i64 %a{i}p")
    return [passing.registers().context, *([] if closure is None else [f"ptr {closure}"]), *words]


def argument(writer: FunctionWriter, module: UnitModule, index: int) -> Val:
    """An argument of an entry."""
    if index < 4:
        return Val(f"%t{index}", f"%p{index}")
    at = writer.offset("%ctx", module.table.layout["Context.extra"])
    extra = writer.load("ptr", at)
    return writer.load_value(writer.offset(extra, 16 * (index - 4)))


@dataclass(frozen=True)
class Split:
    """Which part of a unit is written, where the unit has several (parts.py)."""

    slots: Mapping[LambdaFunction, int]  # where static closures lie among those of the unit
    here: Set[LambdaFunction]  # functions that stand in the part
    is_quick: bool  # whether calls of procedures look for better code: then none is direct


class Shared:
    """The unit that functions are written for, or the part of it."""

    def __init__(
        self,
        module: UnitModule,
        analysis: Analysis,
        own: Iterable[Cell],
        source_text: Callable[[Any], str | None],
        split: Split | None = None,
        inferred: Inference | None = None,
    ) -> None:
        self.module = module
        self.inferred = inferred  # nothing, where code is written quickly
        self.analysis = analysis
        self.own = set(own)  # cells that the unit itself defines
        self.split = split
        self.source_text = source_text
        self.tags = module.table.tags
        self.symbols: dict[Clause, str] = {}
        self.entries: dict[LambdaFunction, str] = {}
        self.statics: dict[LambdaFunction, str] = {}
        self.procedures: dict[LambdaFunction, str] = {}
        self.functions = [f for f in analysis.functions.values() if not f.inside and (split is None or f in split.here)]
        for function in self.functions:
            for clause in function.code.clauses:
                self.symbols[clause] = self._symbol(function)

    def _symbol(self, function: LambdaFunction) -> str:
        return f'@"{quoted(self.module.unique(function.code.name or "lambda"))}"'

    def tags_of(self, function: LambdaFunction, clause: Clause) -> list[str | None]:
        """The tags of the arguments of a clause's function: of parameters, and of free variables that are passed."""
        passed = [] if function.escapes else function.free
        variables = [*clause.params, *([clause.rest] if clause.rest else []), *passed]
        return [None if self.inferred is None else self.inferred.tag(v) for v in variables]

    def procedure(self, function: LambdaFunction) -> str:
        found = self.procedures.get(function)
        if found is None:
            code = function.code
            text = self.source_text(code.source)
            found = self.procedures[function] = self.module.procedure(code, text, function.number, function.is_plain)
        return found

    def static(self, function: LambdaFunction) -> Val:
        """The value of a closure that captures nothing."""
        if self.split is not None:
            offset = self.module.table.layout["Closure"] * self.split.slots[function]
            return Val(
                self.tags["PROCEDURE"], f"ptrtoint (ptr getelementptr (i8, ptr @{CLOSURES}, i64 {offset}) to i64)"
            )
        found = self.statics.get(function)
        if found is None:
            symbol = self.module.static_closure(self.entry_symbol(function), self.procedure(function))
            found = self.statics[function] = f"ptrtoint (ptr {symbol} to i64)"
        return Val(self.tags["PROCEDURE"], found)

    def is_direct(self, function: LambdaFunction) -> bool:
        """Whether calls of a known function go to it, rather than to the entry of its closure."""
        split = self.split
        return split is None or (function in split.here and not (split.is_quick and function in split.slots))

    def entry_symbol(self, function: LambdaFunction) -> str:
        found = self.entries.get(function)
        if found is None:
            found = self.entries[function] = self._symbol(function)
        return found
