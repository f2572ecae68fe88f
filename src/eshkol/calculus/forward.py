"""Tangents: a program that carries derivatives along several directions with every number.

Comes in: a program and how many directions there are (lanes). Goes out: the text of a module. The tangent of a number
is that many doubles, in pieces of a machine's vector each; pieces that are zero whatever the numbers are do not exist.
In memory a tangent lies after its number. Nothing is recorded.
"""

from __future__ import annotations

import platform
from collections.abc import Mapping, Sequence
from functools import partial

from eshkol.calculus.activity import Activity, memory_of, returns
from eshkol.calculus.cfg import Flow, prepared, shape, written_arrays
from eshkol.calculus.emit import SweepModule, SweepWriter, machine, returned
from eshkol.calculus.factors import Apply, Tree, factors
from eshkol.calculus.ir import F64, Block, Instruction, Type, TypedFunction, TypedProgram, TypedValue
from eshkol.calculus.sweep import Plain
from eshkol.llvm.text import double

WIDTH = 2 if platform.machine() in ("aarch64", "arm64") else 4  # doubles in a piece of a tangent

Tangent = Mapping[int, str]  # pieces by their numbers; a piece that is not there is zero


def tangents(program: TypedProgram, lanes: int, seeds: Mapping[int, int] | None = None) -> SweepModule:
    """The module of a program with tangents: main(ctx, run, in, out).

    Each F64 of `in` and `out` is followed by its derivatives. `seeds` has the first lane of each parameter of main
    whose numbers are directions of their own, one lane each.
    """
    program = prepared(program)
    flows = {function: shape(function) for function in program.functions}
    activity = Activity(program)
    written = written_arrays(program)
    places = {p: lane for k, lane in (seeds or {}).items() if (p := program.main.params[k]).type not in written}
    names = {f: f"f{k}" for k, f in enumerate(program.functions)}
    module = SweepModule()
    module.releases = True
    for function, flow in flows.items():
        is_main = function is program.main
        made = Tangents(SweepWriter(module, lanes), flow, names, is_main, activity, places if is_main else {})
        made.write("main" if is_main else names[function])
    return module


def _may_be_infinite(factor: Tree) -> bool:
    return isinstance(factor, Apply) and (
        factor.operator in ("/", "expt", "log") or any(map(_may_be_infinite, factor.operands))
    )


class Tangents(Plain):
    """The sweep of a function with tangents."""

    def __init__(
        self,
        writer: SweepWriter,
        flow: Flow,
        names: dict[TypedFunction, str],
        is_main: bool,
        activity: Activity,
        places: dict[TypedValue, int],
    ) -> None:
        super().__init__(writer, flow, names, is_main)
        self.activity, self.lanes = activity, writer.lanes
        self.widths = [min(WIDTH, self.lanes - k) for k in range(0, self.lanes, WIDTH)]
        self.kinds = ["double" if width == 1 else f"<{width} x double>" for width in self.widths]
        self.zeros = [double(0.0) if width == 1 else "zeroinitializer" for width in self.widths]
        self.tangents: dict[TypedValue, Tangent] = {}
        self.places = dict(places)  # numbers, arrays and lists whose first number is a direction: its lane
        self.units: dict[TypedValue, int] = {}  # numbers that are directions
        # memory whose derivatives someone looks at
        self.memory = activity.memory | {_numbers(kind) for kind in activity.program.main.results}

    def tangent(self, value: TypedValue) -> list[str]:
        """All pieces of a tangent."""
        found = self.tangents.get(value, {})
        return [found.get(k, zero) for k, zero in enumerate(self.zeros)]

    def direction(self, value: TypedValue, lane: int) -> None:
        """A number whose tangent is one in a lane, and zero in the others."""
        self.units[value] = lane
        self.tangents[value] = {lane // WIDTH: self.unit(lane, double(1.0))}

    def unit(self, lane: int, by: str) -> str:
        """A piece that has one number, in a lane."""
        piece, within = divmod(lane, WIDTH)
        width = self.widths[piece]
        if width == 1:
            return by
        if by.startswith("0x"):
            return "<" + ", ".join(f"double {by if k == within else double(0.0)}" for k in range(width)) + ">"
        return self.writer.op(f"insertelement {self.kinds[piece]} zeroinitializer, double {by}, i64 {within}")

    def splat(self, name: str, width: int) -> str:
        """The same number for every direction."""
        if width == 1:
            return name
        kind = f"<{width} x double>"
        one = self.writer.op(f"insertelement {kind} poison, double {name}, i64 0")
        return self.writer.op(f"shufflevector {kind} {one}, {kind} poison, <{width} x i32> zeroinitializer")

    # ---- blocks ---------------------------------------------------------------------------------------------------

    def extra_phis(self, block: Block) -> None:
        if block is self.flow.order[0]:
            return
        for k, param in enumerate(block.params):
            if param in self.activity.values:
                self.tangents[param] = {
                    piece: self.phi(kind, partial(self._incoming, block, k, piece))
                    for piece, kind in enumerate(self.kinds)
                }

    def _incoming(self, block: Block, index: int, piece: int) -> Sequence[tuple[str, str]]:
        return [(self.tangent(jump.args[index])[piece], self.ends[before]) for before, jump in self.flow.into[block]]

    def load_inputs(self, params: list[TypedValue]) -> None:
        writer = self.writer
        at = 0
        for param, mark in zip(params, self.activity.program.active, strict=True):
            place = writer.offset("%in", at, "i64")
            at += 1
            if machine(param.type) == "i1":
                self.names[param] = writer.op(f"trunc i64 {writer.load('i64', place)} to i1")
                continue
            self.names[param] = writer.load(machine(param.type), place)
            if param.type == F64:
                if param in self.places:
                    self.direction(param, self.places[param])
                elif mark:
                    place = writer.offset("%in", at, "i64")
                    self.tangents[param] = self._load(place)
                at += self.lanes

    def leave(self, values: list[TypedValue]) -> None:
        writer = self.writer
        writer.store_memory()
        if not self.is_main:
            self._give(values)
            return
        at = 0
        for value in values:
            place = writer.offset("%out", at, "i64")
            at += 1
            if machine(value.type) == "i1":
                writer.store("i64", writer.op(f"zext i1 {self.names[value]} to i64"), place)
                continue
            writer.store(machine(value.type), self.names[value], place)
            if value.type == F64:
                self._store(self.tangent(value), writer.offset("%out", at, "i64"))
                at += self.lanes
        writer.do("ret i64 0")

    # ---- inner functions ------------------------------------------------------------------------------------------

    def _results(self, function: TypedFunction) -> list[int]:
        """Which results of a function have tangents."""
        (leaving,) = returns(function)
        return [k for k, value in enumerate(leaving) if value in self.activity.values]

    def _returned(self, function: TypedFunction) -> list[str]:
        return [
            *(machine(kind) for kind in function.results),
            *(k for _ in self._results(function) for k in self.kinds),
        ]

    def _give(self, values: list[TypedValue]) -> None:
        writer = self.writer
        types = self._returned(self.flow.function)
        given = [
            *(self.names[v] for v in values),
            *(piece for k in self._results(self.flow.function) for piece in self.tangent(values[k])),
        ]
        kind = returned(types)
        made = f"{{ {', '.join(['i64 0', *(f'{t} poison' for t in types)])} }}"
        for k, (t, name) in enumerate(zip(types, given, strict=True)):
            made = writer.op(f"insertvalue {kind} {made}, {t} {name}, {k + 1}")
        writer.do(f"ret {kind} {made}")

    def call(self, item: Instruction) -> None:
        function = item.function
        assert function is not None
        args = [f"{machine(v.type)} {self.names[v]}" for v in item.operands]
        for param, value in zip(function.params, item.operands, strict=True):
            if param in self.activity.values:
                args += [f"{kind} {piece}" for kind, piece in zip(self.kinds, self.tangent(value), strict=True)]
        found = self.call_function(self.functions[function], args, self._returned(function))
        self.names.update(zip(item.results, found, strict=False))
        pieces = iter(found[len(item.results) :])
        for k in self._results(function):
            self.tangents[item.results[k]] = {piece: next(pieces) for piece in range(len(self.kinds))}

    def parameters(self, params: list[TypedValue]) -> list[str]:
        listed = super().parameters(params)
        for k, param in enumerate(params):
            if param in self.activity.values:
                self.tangents[param] = {piece: f"%d{k}.{piece}" for piece in range(len(self.kinds))}
                listed += [f"{kind} %d{k}.{piece}" for piece, kind in enumerate(self.kinds)]
        return listed

    def result_types(self) -> list[str]:
        return self._returned(self.flow.function)

    # ---- instructions ---------------------------------------------------------------------------------------------

    def _place(self, first: str, piece: int) -> str:
        return self.writer.offset(first, 8 * WIDTH * piece) if piece else first

    def _load(self, place: str) -> Tangent:
        return {
            piece: self.writer.load(kind, self._place(place, piece), ", align 8")
            for piece, kind in enumerate(self.kinds)
        }

    def _store(self, pieces: list[str], place: str) -> None:
        for piece, (kind, name) in enumerate(zip(self.kinds, pieces, strict=True)):
            self.writer.store(kind, name, self._place(place, piece), ", align 8")

    def after(self, item: Instruction) -> None:
        writer = self.writer
        names = [self.names[v] for v in item.operands]
        memory = memory_of(item)
        match item.operation:
            case "math":
                if item.result in self.activity.values:
                    self._math(item)
            case "array_get" if item.operands[0] in self.places and self._index(item) is not None:
                self.direction(item.result, self.places[item.operands[0]] + (self._index(item) or 0))
            case "cell_next" if self.places.get(item.operands[0], self.lanes) + 1 < self.lanes:
                self.places[item.result] = self.places[item.operands[0]] + 1
            case "cell_value" if item.operands[0] in self.places:
                self.direction(item.result, self.places[item.operands[0]])
            case "array_get" if item.result in self.activity.values:
                self.tangents[item.result] = self._load(writer.shadow(names[0], names[1]))
            case "cell_value" if item.result in self.activity.values:
                self.tangents[item.result] = self._load(writer.offset(names[0], 16))
            case "array_set" if memory in self.memory:
                self._store(self.tangent(item.operands[2]), writer.shadow(names[0], names[1]))
            case "cell_new" if memory in self.memory:
                place = writer.offset(self.names[item.result], 16)
                self._store(self.tangent(item.operands[0]), place)
            case "array_new" if memory in self.memory:
                if item.operands[1] not in self.tangents:
                    writer.clear_shadows(self.names[item.result], names[0])
                    return
                pattern = writer.slot(f"[{self.lanes} x double]")
                self._store(self.tangent(item.operands[1]), pattern)
                first = writer.element(self.names[item.result], names[0])
                spread = writer.module.helper("esk_fast_spread")
                writer.do(f"call void {spread}(ptr {first}, i64 {names[0]}, ptr {pattern}, i64 {self.lanes})")

    def _math(self, item: Instruction) -> None:
        writer = self.writer
        rule = factors(item.name, len(item.operands))
        assert rule is not None
        meanings = {"r": item.result} | dict(zip("xy", item.operands, strict=False))
        total: dict[int, str] = {}
        for operand, factor in zip(item.operands, rule, strict=True):
            tangent = self.tangents.get(operand)
            if tangent is None or factor == 0.0:
                continue
            if item.name == "expt" and operand is item.operands[1]:  # no real number below zero
                base = self.names[item.operands[0]]
                writer.give_up_if(writer.op(f"fcmp olt double {base}, {double(0.0)}"))
            for piece, part in self._scaled(operand, tangent, factor, meanings).items():
                kind = self.kinds[piece]
                total[piece] = part if piece not in total else writer.op(f"fadd {kind} {total[piece]}, {part}")
        if total:
            self.tangents[item.result] = total

    def _scaled(self, operand: TypedValue, tangent: Tangent, factor: Tree, meanings: dict[str, TypedValue]) -> Tangent:
        """A tangent times a factor of a rule."""
        writer = self.writer
        if factor == 1.0:
            return tangent
        if factor == -1.0:
            return {piece: writer.op(f"fneg {self.kinds[piece]} {part}") for piece, part in tangent.items()}
        by = writer.tree(factor, lambda name: self.names[meanings[name]])
        if operand in self.units:
            lane = self.units[operand]
            return {lane // WIDTH: self.unit(lane, by)}
        splats = {width: self.splat(by, width) for width in {self.widths[piece] for piece in tangent}}
        found = {}
        for piece, part in tangent.items():
            kind, width = self.kinds[piece], self.widths[piece]
            found[piece] = writer.op(f"fmul {kind} {splats[width]}, {part}")
            if _may_be_infinite(factor):  # a direction that is none has no derivative, whatever the factor is
                flows = writer.op(f"fcmp une {kind} {part}, {self.zeros[piece]}")
                truth = "i1" if width == 1 else f"<{width} x i1>"
                found[piece] = writer.op(f"select {truth} {flows}, {kind} {found[piece]}, {kind} {self.zeros[piece]}")
        return found

    def _index(self, item: Instruction) -> int | None:
        """The place in an array, where it is known, and a lane."""
        maker = self.flow.maker.get(item.operands[1])
        if maker is None or maker.operation != "constant":
            return None
        index = maker.literal
        assert isinstance(index, int)
        return index if 0 <= index < self.lanes - self.places[item.operands[0]] else None


def _numbers(kind: Type) -> Type:
    while kind.element is not None and kind.element != F64:
        kind = kind.element
    return kind
