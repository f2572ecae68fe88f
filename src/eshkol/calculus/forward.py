"""Tangents: a program that carries derivatives along several directions with every number.

Comes in: a program and how many directions there are (lanes). Goes out: the text of a module. The tangent of a number
is an LLVM vector of that many doubles; in memory it lies behind the number. Nothing is recorded.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from eshkol.calculus.activity import Activity, memory_of, returns
from eshkol.calculus.cfg import Flow, prepared, shape
from eshkol.calculus.emit import Module, Writer, machine, number, returned
from eshkol.calculus.factors import Apply, Tree, factors
from eshkol.calculus.ir import F64, Block, Function, Instruction, Program, Type, Value
from eshkol.calculus.sweep import Plain


def primal(program: Program) -> Module:
    """The module of a program as it is."""
    program = prepared(program)
    names = {f: f"f{k}" for k, f in enumerate(program.functions)}
    module = Module()
    for function in program.functions:
        is_main = function is program.main
        Plain(Writer(module, 1), shape(function), names, is_main).write("main" if is_main else names[function])
    return module


def tangents(program: Program, lanes: int) -> Module:
    """The module of a program with tangents: main(ctx, run, in, out).

    Each F64 of `in` and `out` is followed by its derivatives.
    """
    program = prepared(program)
    flows = {function: shape(function) for function in program.functions}
    activity = Activity(program)
    names = {f: f"f{k}" for k, f in enumerate(program.functions)}
    module = Module()
    for function, flow in flows.items():
        is_main = function is program.main
        Tangents(Writer(module, lanes), flow, names, is_main, activity).write("main" if is_main else names[function])
    return module


def _may_be_infinite(factor: Tree) -> bool:
    return isinstance(factor, Apply) and (
        factor.operator in ("/", "expt", "log") or any(map(_may_be_infinite, factor.operands))
    )


class Tangents(Plain):
    """The sweep of a function with tangents."""

    def __init__(
        self, writer: Writer, flow: Flow, names: dict[Function, str], is_main: bool, activity: Activity
    ) -> None:
        super().__init__(writer, flow, names, is_main)
        self.activity, self.lanes = activity, writer.lanes
        self.kind = "double" if self.lanes == 1 else f"<{self.lanes} x double>"
        self.zero = number(0.0) if self.lanes == 1 else "zeroinitializer"
        self.tangents: dict[Value, str] = {}
        # memory whose derivatives somebody looks at
        self.memory = activity.memory | {_numbers(kind) for kind in activity.program.main.results}

    def tangent(self, value: Value) -> str:
        return self.tangents.get(value, self.zero)

    def splat(self, name: str) -> str:
        """The same number for every direction."""
        if self.lanes == 1:
            return name
        one = self.writer.op(f"insertelement {self.kind} poison, double {name}, i64 0")
        mask = f"<{self.lanes} x i32> zeroinitializer"
        return self.writer.op(f"shufflevector {self.kind} {one}, {self.kind} poison, {mask}")

    # ---- blocks ---------------------------------------------------------------------------------------------------

    def extra_phis(self, block: Block) -> None:
        if block is self.flow.order[0]:
            return
        for k, param in enumerate(block.params):
            if param in self.activity.values:
                self.tangents[param] = self.phi(self.kind, partial(self._incoming, block, k))

    def _incoming(self, block: Block, index: int) -> Sequence[tuple[str, str]]:
        return [(self.tangent(jump.args[index]), self.ends[before]) for before, jump in self.flow.into[block]]

    def load_inputs(self, params: list[Value]) -> None:
        writer = self.writer
        at = 0
        for param, mark in zip(params, self.activity.program.active, strict=True):
            place = writer.op(f"getelementptr i64, ptr %in, i64 {at}")
            at += 1
            if machine(param.type) == "i1":
                self.names[param] = writer.op(f"trunc i64 {writer.op(f'load i64, ptr {place}')} to i1")
                continue
            self.names[param] = writer.op(f"load {machine(param.type)}, ptr {place}")
            if param.type == F64:
                if mark:
                    place = writer.op(f"getelementptr i64, ptr %in, i64 {at}")
                    self.tangents[param] = self._load(place)
                at += self.lanes

    def leave(self, values: list[Value]) -> None:
        writer = self.writer
        writer.store_memory()
        if not self.is_main:
            self._give(values)
            return
        at = 0
        for value in values:
            place = writer.op(f"getelementptr i64, ptr %out, i64 {at}")
            at += 1
            if machine(value.type) == "i1":
                writer.line(f"store i64 {writer.op(f'zext i1 {self.names[value]} to i64')}, ptr {place}")
                continue
            writer.line(f"store {machine(value.type)} {self.names[value]}, ptr {place}")
            if value.type == F64:
                self._store(self.tangent(value), writer.op(f"getelementptr i64, ptr %out, i64 {at}"))
                at += self.lanes
        writer.line("ret i64 0")

    # ---- inner functions ------------------------------------------------------------------------------------------

    def _results(self, function: Function) -> list[int]:
        """Which results of a function have tangents."""
        (leaving,) = returns(function)
        return [k for k, value in enumerate(leaving) if value in self.activity.values]

    def _returned(self, function: Function) -> list[str]:
        return [*(machine(kind) for kind in function.results), *(self.kind for _ in self._results(function))]

    def _give(self, values: list[Value]) -> None:
        writer = self.writer
        types = self._returned(self.flow.function)
        given = [
            *(self.names[v] for v in values),
            *(self.tangent(values[k]) for k in self._results(self.flow.function)),
        ]
        kind = returned(types)
        made = f"{{ {', '.join(['i64 0', *(f'{t} poison' for t in types)])} }}"
        for k, (t, name) in enumerate(zip(types, given, strict=True)):
            made = writer.op(f"insertvalue {kind} {made}, {t} {name}, {k + 1}")
        writer.line(f"ret {kind} {made}")

    def call(self, item: Instruction) -> None:
        function = item.function
        assert function is not None
        args = [f"{machine(v.type)} {self.names[v]}" for v in item.operands]
        for param, value in zip(function.params, item.operands, strict=True):
            if param in self.activity.values:
                args.append(f"{self.kind} {self.tangent(value)}")
        found = self.call_function(self.functions[function], args, self._returned(function))
        self.names.update(zip(item.results, found, strict=False))
        for k, tangent in zip(self._results(function), found[len(item.results) :], strict=True):
            self.tangents[item.results[k]] = tangent

    def parameters(self, params: list[Value]) -> list[str]:
        listed = super().parameters(params)
        for k, param in enumerate(params):
            if param in self.activity.values:
                self.tangents[param] = f"%d{k}"
                listed.append(f"{self.kind} %d{k}")
        return listed

    def result_types(self) -> list[str]:
        return self._returned(self.flow.function)

    # ---- instructions ---------------------------------------------------------------------------------------------

    def _load(self, place: str) -> str:
        return self.writer.op(f"load {self.kind}, ptr {place}, align 8")

    def _store(self, name: str, place: str) -> None:
        self.writer.line(f"store {self.kind} {name}, ptr {place}, align 8")

    def after(self, item: Instruction) -> None:
        writer = self.writer
        names = [self.names[v] for v in item.operands]
        memory = memory_of(item)
        match item.operation:
            case "math":
                if item.result in self.activity.values:
                    self._math(item)
            case "array_get" if item.result in self.activity.values:
                self.tangents[item.result] = self._load(writer.shadow(names[0], names[1]))
            case "cell_value" if item.result in self.activity.values:
                self.tangents[item.result] = self._load(writer.op(f"getelementptr i8, ptr {names[0]}, i64 16"))
            case "array_set" if memory in self.memory:
                self._store(self.tangent(item.operands[2]), writer.shadow(names[0], names[1]))
            case "cell_new" if memory in self.memory:
                place = writer.op(f"getelementptr i8, ptr {self.names[item.result]}, i64 16")
                self._store(self.tangent(item.operands[0]), place)
            case "array_new" if memory in self.memory:
                if item.operands[1] not in self.tangents:
                    writer.clear_shadows(self.names[item.result], names[0])
                    return
                pattern = writer.slot(f"[{self.lanes} x double]")
                self._store(self.tangents[item.operands[1]], pattern)
                first = writer.element(self.names[item.result], names[0])
                spread = writer.module.helper("esk_fast_spread")
                writer.line(f"call void {spread}(ptr {first}, i64 {names[0]}, ptr {pattern}, i64 {self.lanes})")

    def _math(self, item: Instruction) -> None:
        writer = self.writer
        rule = factors(item.name, len(item.operands))
        assert rule is not None
        meanings = {"r": item.result} | dict(zip("xy", item.operands, strict=False))
        total = ""
        for operand, factor in zip(item.operands, rule, strict=True):
            tangent = self.tangents.get(operand)
            if tangent is None or factor == 0.0:
                continue
            if item.name == "expt" and operand is item.operands[1]:  # no real number below zero
                base = self.names[item.operands[0]]
                writer.give_up_if(writer.op(f"fcmp olt double {base}, {number(0.0)}"))
            if factor == 1.0:
                part = tangent
            elif factor == -1.0:
                part = writer.op(f"fneg {self.kind} {tangent}")
            else:
                by = self.splat(writer.tree(factor, lambda name: self.names[meanings[name]]))
                part = writer.op(f"fmul {self.kind} {by}, {tangent}")
                if _may_be_infinite(factor):  # a direction that is none has no derivative, whatever the factor is
                    flows = writer.op(f"fcmp une {self.kind} {tangent}, {self.zero}")
                    truth = "i1" if self.lanes == 1 else f"<{self.lanes} x i1>"
                    part = writer.op(f"select {truth} {flows}, {self.kind} {part}, {self.kind} {self.zero}")
            total = part if not total else writer.op(f"fadd {self.kind} {total}, {part}")
        if total:
            self.tangents[item.result] = total


def _numbers(kind: Type) -> Type:
    while kind.element is not None and kind.element != F64:
        kind = kind.element
    return kind
