"""Gradients as typed programs: what a derivative inside of another derivative becomes.

Comes in: a typed function with one F64 result, and which of its parameters are variables. Goes out: a typed function of
the same parameters that gives the value and the derivatives by these. It is a program like any other, so it can be
differentiated again, forward or in reverse, and that as often as one likes.

It is the reverse sweep of `reverse.py`, planned by the same `plan.py`, written in instructions of `ir`. Records lie in
lists, newest first, one for each type; numbers in memory that have derivatives lie in arrays of pairs, the number and
its adjoint; adjoints and values that both sweeps need are variables (`slot_get` and `slot_set`) until registers are
made of them (slots.py). A derivative that is not finite ends the run: differentiated numbers know better.
"""

from __future__ import annotations

from collections.abc import Sequence

from eshkol.calculus import ir
from eshkol.calculus.abstract import NotFast
from eshkol.calculus.activity import Activity, memory_of
from eshkol.calculus.cfg import Flow, Loop, prepared, shape, simplify, written_arrays
from eshkol.calculus.factor_writer import FactorWriter
from eshkol.calculus.factors import factors, variables
from eshkol.calculus.ir import (
    F64,
    I1,
    I64,
    Block,
    Branch,
    Fail,
    Instruction,
    Jump,
    Return,
    Type,
    TypedFunction,
    TypedProgram,
    TypedValue,
)
from eshkol.calculus.plan import TapePlan
from eshkol.calculus.slots import settle


def gradient_function(functions: Sequence[TypedFunction], active: Sequence[bool]) -> TypedFunction:
    """The value and the gradient of the first of these functions, which may call the others."""
    program = prepared(TypedProgram(list(functions), list(active)))
    if len(program.functions) > 1:
        raise NotFast("a recursion in a derivative inside of another")
    if program.main.results != [F64]:
        raise NotFast("a derivative inside of another is of no real number")
    flow = shape(program.main)
    activity = Activity(program)
    plan = TapePlan(flow, activity, True, written_arrays(program))
    made = AdjointWriter(flow, activity, plan, list(active)).write()
    simplify(made)
    return made


class AdjointWriter(FactorWriter):
    """Both sweeps of a function."""

    def __init__(self, flow: Flow, activity: Activity, plan: TapePlan, active: list[bool]) -> None:
        made = TypedFunction("gradient", [Block("start")])
        super().__init__(made)
        self.flow, self.activity, self.plan, self.active = flow, activity, plan, active
        self.made = made
        self.kinds: dict[str, Type] = {}  # of slots
        self.room: dict[TypedValue, TypedValue] = {}  # for gradients by arrays
        self.is_released = True
        self.mark: TypedValue | None = None
        self.names: dict[TypedValue, TypedValue] = {}  # what values are in the forward sweep
        self.ahead = {block: Block(block.name) for block in flow.order}
        self.behind = {block: Block(f"{block.name}.back") for block in flow.order}
        self.numbers: dict[TypedValue, str] = {}
        self.pairs: dict[TypedValue, TypedValue] = {}  # parameters that are memory, as pairs
        self.backwards: dict[TypedValue, TypedValue] = {}  # parameters that are lists, as pairs from the last
        self._values: dict[TypedValue, TypedValue] = {}  # in the block that is being reversed
        self._local: dict[TypedValue, TypedValue] = {}  # adjoints of values of that block alone
        self._users = self._used_elsewhere()
        self.gates = self._gates()
        self.wanted: dict[Loop, dict[Block, None]] = {loop: {} for loop in self.gates}

    def write(self) -> TypedFunction:
        self._parameters()
        self.jump(self.ahead[self.flow.order[0]])
        for block in self.flow.order:
            self._forward(block)
        for block in reversed(self.flow.order):
            if block in self.plan.live:
                self._backward(block)
        self._write_gates()
        settle(self.made, self.kinds)
        return self.made

    # ---- slots and records ------------------------------------------------------------------------------------------

    def read(self, slot: str, kind: Type) -> TypedValue:
        self.kinds[slot] = kind
        return self.op("slot_get", [], kind, slot)

    def put(self, slot: str, value: TypedValue) -> None:
        self.kinds.setdefault(slot, value.type)
        self.block.body.append(Instruction("slot_set", [value], [], slot))

    def slot(self, value: TypedValue) -> str:
        return self.numbers.setdefault(value, f"v{len(self.numbers)}")

    def push(self, value: TypedValue) -> None:
        kind = I64 if value.type == I1 else value.type
        if value.type == I1:
            value = self.one_of(value, lambda: self.literal(1, I64), lambda: self.literal(0, I64), I64)
        tape = ir.cell(kind.unsized)
        before = self.read(f"tape {kind.unsized}", tape)
        self.put(f"tape {kind.unsized}", self.op("cell_new", [value, before], tape))

    def pop(self, kind: Type) -> TypedValue:
        stored = (I64 if kind == I1 else kind).unsized
        slot = f"tape {stored}"
        top = self.read(slot, ir.cell(stored))
        found = self.op("cell_value", [top], stored)
        self.put(slot, self.op("cell_next", [top], ir.cell(stored)))
        return self.op("icompare", [found, self.literal(1, I64)], I1, "eq") if kind == I1 else found

    # ---- memory of pairs --------------------------------------------------------------------------------------------

    def kind(self, given: Type) -> Type:
        """The type of memory whose numbers have adjoints."""
        if given.element is None or given.kind in ("vector", "pairs"):
            return given
        if given in self.activity.memory:
            return given if given.kind == "array" else ir.cell(ir.array(F64))
        return Type(given.kind, self.kind(given.element), given.length)

    def _twice(self, index: TypedValue) -> TypedValue:
        return self.op("iadd", [index, index], I64)

    def _adjoint_place(self, index: TypedValue) -> TypedValue:
        return self.op("iadd", [self._twice(index), self.literal(1, I64)], I64)

    def _pair(self, number: TypedValue) -> TypedValue:
        made = self.op("array_new", [self.literal(2, I64), self.literal(0.0, F64)], ir.array(F64))
        self.effect("array_set", [made, self.literal(0, I64), number])
        return made

    # ---- the forward sweep ------------------------------------------------------------------------------------------

    def _parameters(self) -> None:
        """Those that are memory of numbers with adjoints are copied, so nothing may change them."""
        changed = self._changed()
        self._make_room()
        for param, given, varies in zip(self.flow.function.params, self.made.params, self.active, strict=True):
            memory = param.type in self.activity.memory
            if varies and param.type not in (F64, ir.array(F64), ir.cell(F64)):
                raise NotFast("a derivative inside of another by nested data")
            if self.kind(param.type) != param.type and not memory:
                raise NotFast("nested data with derivatives inside of another derivative")
            if param in changed and not (varies and memory):
                raise NotFast("memory from outside is changed in a derivative inside of another")
            if not memory:
                self.names[param] = given
            elif param.type.kind == "array":
                self.names[param] = self.pairs[param] = self._as_pairs(given)
            else:
                pairs = self.kind(param.type)
                self.backwards[param] = self.mapped(given, pairs, self._pair)
                self.names[param] = self.pairs[param] = self.mapped(self.backwards[param], pairs, lambda pair: pair)
            self._define(param)

    def _make_room(self) -> None:
        """For gradients that are arrays; what is made after that is released in the end, unless some are lists."""
        for param, varies in zip(self.flow.function.params, self.active, strict=True):
            given = TypedValue(param.type, param.name)
            self.made.params.append(given)
            if varies and param.type == ir.array(F64):
                size = self.op("array_length", [given], I64)
                self.room[param] = self.op("array_new", [size, self.literal(0.0, F64)], param.type)
            self.is_released &= not (varies and param.type.kind == "cell")
        self.mark = self.op("memory_mark", [], I64) if self.is_released else None

    def _changed(self) -> set[TypedValue]:
        """The parameters whose memory may be changed."""
        flow = self.flow
        pending = [i.operands[0] for i in flow.function.instructions() if i.operation == "array_set"]
        seen: set[TypedValue] = set()
        while pending:
            value = pending.pop()
            if value in seen:
                continue
            seen.add(value)
            maker, block = flow.maker.get(value), flow.block_of[value]
            if maker is not None and maker.operation != "array_new":  # from other memory: any of its type
                seen.update(p for p in flow.function.params if p.type.is_pointer)
            elif maker is None and block is not flow.order[0]:
                pending.extend(jump.args[block.params.index(value)] for _, jump in flow.into[block])
        return seen.intersection(flow.function.params)

    def _as_pairs(self, numbers: TypedValue) -> TypedValue:
        size = self.op("array_length", [numbers], I64)
        made = self.op("array_new", [self._twice(size), self.literal(0.0, F64)], ir.array(F64))

        def step(i: TypedValue) -> list[TypedValue]:
            self.effect("array_set", [made, self._twice(i), self.op("array_get", [numbers, i], F64)])
            return []

        self.repeat(size, [], step)
        return made

    def _define(self, value: TypedValue) -> None:
        self.put(self.slot(value), self.names[value])

    def _way(self, block: Block) -> TypedValue | None:
        """The parameter that tells which way a block was come to, where it has one of its own."""
        way = self.plan.which.get(block)
        return (
            way
            if way is not None
            and way not in self.flow.maker
            and way not in block.params
            and (self.flow.block_of[way] is block)
            else None
        )

    def _forward(self, block: Block) -> None:
        self.begin(self.ahead[block])
        if block is not self.flow.order[0]:
            way = self._way(block)
            for param in [*block.params, *([way] if way is not None else [])]:
                self.names[param] = TypedValue(self.kind(param.type), param.name)
                self.block.params.append(self.names[param])
            for param in [*block.params, *([way] if way is not None else [])]:
                self._define(param)
        for item in block.body:
            operands = [self.names[v] for v in item.operands]
            if item.operation == "math" and item.name == "expt" and item.operands[1] in self.activity.values:
                below = self.op("compare", [operands[0], self.literal(0.0, F64)], I1, "lt")
                self.need(self.op("not", [below], I1))  # the derivative by the exponent is no real number
            found = self._instruction(item, operands)
            if found is not None:
                self.names[item.result] = found
                self._define(item.result)
        if block in self.plan.live:
            for value in self.plan.saved[block]:
                self.push(self.names[value])
        match block.end:
            case Jump() as to:
                self.block.end = self._jump(to, block)
            case Branch(condition=condition, yes=yes, no=no):
                self.block.end = Branch(self.names[condition], self._jump(yes, block), self._jump(no, block))
            case Return(values=values):
                self.put("value", self.names[values[0]])
                self.jump(self.behind[block])
            case Fail():
                self.block.end = Fail()

    def _jump(self, to: Jump, block: Block) -> Jump:
        args = [self.names[v] for v in to.args]
        if self._way(to.target) is not None:
            args.append(self.literal(self.plan.ways[to.target].index(block), I64))
        return Jump(self.ahead[to.target], args)

    def _instruction(self, item: Instruction, operands: list[TypedValue]) -> TypedValue | None:
        """The same, where numbers in memory are pairs."""
        memory = memory_of(item)
        if item.operation == "array_length" and item.operands[0].type in self.activity.memory:
            size = self.op("array_length", operands, I64)
            return self.op("quotient", [size, self.literal(2, I64)], I64)
        if memory is not None and memory in self.activity.memory:
            match item.operation:
                case "array_get":
                    return self.op("array_get", [operands[0], self._twice(operands[1])], F64)
                case "array_set":
                    self.effect("array_set", [operands[0], self._twice(operands[1]), operands[2]])
                    return None
                case "array_new":
                    return self._new_array(item, *operands)
                case "cell_value":
                    pair = self.op("cell_value", operands, ir.array(F64))
                    return self.op("array_get", [pair, self.literal(0, I64)], F64)
                case "cell_new":
                    return self.op("cell_new", [self._pair(operands[0]), operands[1]], self.kind(item.result.type))
        if item.operation in ("memory_mark", "memory_release"):  # its reverse needs what was made
            return self.literal(0, I64) if item.results else None
        if item.operation == "constant":
            return self.literal(item.literal, item.result.type)
        if not item.results:
            self.effect(item.operation, operands)
            return None
        return self.op(item.operation, operands, self.kind(item.result.type), item.name)

    def _new_array(self, item: Instruction, size: TypedValue, number: TypedValue) -> TypedValue:
        made = self.op("array_new", [self._twice(size), self.literal(0.0, F64)], ir.array(F64))
        maker = self.flow.maker.get(item.operands[1])
        if maker is None or repr(maker.literal) != "0.0":

            def step(i: TypedValue) -> list[TypedValue]:
                self.effect("array_set", [made, self._twice(i), number])
                return []

            self.repeat(size, [], step)
        return made

    # ---- the reverse sweep ------------------------------------------------------------------------------------------

    def _used_elsewhere(self) -> set[TypedValue]:
        """Values whose adjoints must outlive their block."""
        found: set[TypedValue] = set()
        for block in self.flow.order:
            found.update(block.params)
            for item in block.body:
                found.update(v for v in item.operands if self.flow.block_of[v] is not block)
            for jump in block.jumps():
                found.update(jump.args)
            if isinstance(block.end, Return):
                found.update(block.end.values)
        return found

    def value(self, value: TypedValue, block: Block) -> TypedValue:
        """A value in the reverse of a block."""
        if value in self._values:
            return self._values[value]
        item = self.flow.maker.get(value)
        found: TypedValue | None
        if item is not None and item.operation == "constant":
            found = self.literal(item.literal, value.type)
        elif self.plan.has_slot(value, block):
            found = self.read(self.slot(value), self.kind(value.type))
        else:
            assert item is not None
            assert self.plan.is_cheap(value), f"{item.operation} is lost in {block.name}"
            found = self._instruction(item, [self.value(v, block) for v in item.operands])
            assert found is not None
        self._values[value] = found
        return found

    def add(self, value: TypedValue, more: TypedValue) -> None:
        """Add to the adjoint of a value."""
        if value not in self.activity.values:
            return
        if value not in self._users:
            before = self._local.get(value)
            self._local[value] = more if before is None else self.op("math", [before, more], F64, "+")
            return
        slot = f"d{self.slot(value)}"
        self.put(slot, self.op("math", [self.read(slot, F64), more], F64, "+"))

    def take(self, value: TypedValue) -> TypedValue:
        """The adjoint of a value where it was computed; nothing is left of it."""
        nothing = self.literal(-0.0, F64)
        if value not in self._users:
            return self._local.pop(value, nothing)
        slot = f"d{self.slot(value)}"
        found = self.read(slot, F64)
        self.put(slot, nothing)
        return found

    def _backward(self, block: Block) -> None:
        plan, flow = self.plan, self.flow
        self.begin(self.behind[block])
        self._values, self._local = {}, {}
        for value in reversed(plan.saved[block]):
            self._values[value] = self.pop(self.kind(value.type))
            self.put(self.slot(value), self._values[value])
        for loop in flow.loops:
            if block in loop.exits and loop.parent is not None:
                for value in plan.held[loop]:
                    if not plan.has_slot(value, block):
                        self.put(self.slot(value), self.value(value, block))
        if isinstance(block.end, Return):
            self.add(block.end.values[0], self.literal(1.0, F64))
        for item in reversed(block.body):
            if self.activity.is_active(item):
                self._reverse(item, block)
        if block is flow.order[0]:
            self._finish()
        else:
            self._go_back(block)

    def _finish(self) -> None:
        results = [self.read("value", F64)]
        for param, given, varies in zip(self.flow.function.params, self.made.params, self.active, strict=True):
            if varies:
                results.append(self._by_parameter(param, given))
        if self.mark is not None:
            self.effect("memory_release", [self.mark])
        self.made.results = [value.type for value in results]
        self.block.end = Return(results)

    def _by_parameter(self, param: TypedValue, given: TypedValue) -> TypedValue:
        if param.type == F64:
            return self._finite(self.take(param) if param in self.activity.values else self.literal(0.0, F64))
        is_active = param in self.pairs
        if param.type.kind == "cell":
            if is_active:
                one = self.literal(1, I64)
                backwards = self.backwards[param]
                return self.mapped(
                    backwards, param.type, lambda pair: self._finite(self.op("array_get", [pair, one], F64))
                )
            return self.mapped(given, param.type, lambda number: self.literal(0.0, F64))
        made = self.room[param]
        size = self.op("array_length", [given], I64)

        def step(i: TypedValue) -> list[TypedValue]:
            found = self.op("array_get", [self.pairs[param], self._adjoint_place(i)], F64)
            self.effect("array_set", [made, i, self._finite(found)])
            return []

        if is_active:
            self.repeat(size, [], step)
        return made

    def _finite(self, number: TypedValue) -> TypedValue:
        """A derivative, if it is a number; what is nothing is zero, and not the zero below it."""
        zero = self.literal(0.0, F64)
        self.need(self.op("compare", [self.op("math", [number, number], F64, "-"), zero], I1, "eq"))
        return self.op("math", [number, zero], F64, "+")

    def _go_back(self, block: Block) -> None:
        """To the reverse of the block that was before."""
        plan, flow = self.plan, self.flow
        loop = next((loop for loop in flow.loops if loop.header is block), None)
        if loop is not None:
            self._go_round(block, loop)
            return
        taken = self._taken(block)
        into = dict(flow.into[block])
        if len(into) == 1:
            ((before, jump),) = into.items()
            self._transfer(before, jump.args, block, taken)
            return
        way, ways = plan.which[block], plan.ways[block]
        which = self.value(way, block)
        edges = [self.new_block("edge") for _ in ways]
        if way.type == I1:
            self.block.end = Branch(which, Jump(edges[1], []), Jump(edges[0], []))
        else:
            for k, edge in enumerate(edges[:-1]):
                other = self.new_block("other") if k + 2 < len(edges) else edges[-1]
                is_it = self.op("icompare", [which, self.literal(k, I64)], I1, "eq")
                self.block.end = Branch(is_it, Jump(edge, []), Jump(other, []))
                if other is not edges[-1]:
                    self.begin(other)
        for before, edge in zip(ways, edges, strict=True):
            self.begin(edge)
            self._transfer(before, into[before].args, block, taken)

    def _taken(self, block: Block) -> dict[TypedValue, TypedValue]:
        return {p: self.take(p) for p in block.params if p in self.activity.values}

    def _go_round(self, block: Block, loop: Loop) -> None:
        """From the header of a loop: to the turn before, or, after the first one, to where the loop was entered."""
        plan = self.plan
        assert loop.before is not None
        assert loop.latch is not None
        into = dict(self.flow.into[block])
        test = plan.test[loop]
        at, start = self.value(test.param, block), self.value(test.start, block)
        counters = [c for c in plan.counters[loop] if c.param in plan.held[loop]]
        back = [(c, self.value(c.param, block), self.value(c.step, block)) for c in counters]
        first, again = self.new_block("first"), self.new_block("again")
        self.block.end = Branch(self.op("icompare", [at, start], I1, "eq"), Jump(first, []), Jump(again, []))
        self.begin(first)
        self._transfer(loop.before, into[loop.before].args, block, self._taken(block))
        self.begin(again)
        for counter, now, step in back:
            self.put(self.slot(counter.param), self.op("isub" if counter.back == "sub" else "iadd", [now, step], I64))
        self._transfer(loop.latch, into[loop.latch].args, block, self._taken(block))

    def _transfer(
        self, before: Block, args: Sequence[TypedValue], block: Block, taken: dict[TypedValue, TypedValue]
    ) -> None:
        """Along a jump, backwards: the adjoints of parameters go to what was passed."""
        for param, arg in zip(block.params, args, strict=True):
            found = taken.get(param)
            if found is not None:
                self.add(arg, found)
        self._go(before, block)

    # ---- loops that are left from several blocks --------------------------------------------------------------------

    def _gates(self) -> dict[Loop, Block]:
        """Where reverses of loops are entered that could be in several places: there these are told apart."""
        found = {}
        for loop in self.flow.loops:
            assert loop.latch is not None
            leaving = {b for b in loop.blocks & self.plan.live if any(j.target not in loop.blocks for j in b.jumps())}
            leaving = {b for b in leaving if any(j.target in self.plan.live - loop.blocks for j in b.jumps())}
            if len(leaving) != 1 or not all(self.flow.dominates(b, loop.latch) for b in leaving):
                found[loop] = Block("gate")
        return found

    def _go(self, before: Block, block: Block) -> None:
        """From the reverse of a block to that of one before it, through the gates of the loops that are entered."""
        entered = [
            loop
            for loop in self.flow.loops_around(before)
            if loop in self.gates and (block not in loop.blocks or block is loop.header)
        ]
        for loop in entered:
            self.wanted[loop][before] = None
            self.put(f"gate {self.flow.loops.index(loop)}", self.literal(self.flow.position[before], I64))
        self.jump(self.gates[entered[-1]] if entered else self.behind[before])

    def _write_gates(self) -> None:
        for loop, gate in self.gates.items():
            if not self.wanted[loop]:  # nothing returns from there
                continue
            self.begin(gate)
            which = self.read(f"gate {self.flow.loops.index(loop)}", I64)
            *others, last = self.wanted[loop]
            for before in others:
                here, on = self.new_block("here"), self.new_block("on")
                is_it = self.op("icompare", [which, self.literal(self.flow.position[before], I64)], I1, "eq")
                self.block.end = Branch(is_it, Jump(here, []), Jump(on, []))
                self.begin(here)
                self.jump(self._inside(loop, before))
                self.begin(on)
            self.jump(self._inside(loop, last))

    def _inside(self, loop: Loop, before: Block) -> Block:
        """Behind the gate of a loop: that of the next loop inside, if that is entered, too, or the block itself."""
        around = self.flow.loops_around(before)
        inner = [other for other in around[: around.index(loop)] if other in self.gates]
        return self.gates[inner[-1]] if inner else self.behind[before]

    # ---- instructions -----------------------------------------------------------------------------------------------

    def _reverse(self, item: Instruction, block: Block) -> None:
        one = self.literal(1, I64)
        match item.operation:
            case "math":
                self._math(item, block)
            case "array_get" | "cell_value":
                found = self.take(item.result)
                memory, place = self._place(item, block)
                now = self.op("array_get", [memory, place], F64)
                self.effect("array_set", [memory, place, self.op("math", [now, found], F64, "+")])
            case "array_set":
                memory, place = self._place(item, block)
                found = self.op("array_get", [memory, place], F64)
                self.effect("array_set", [memory, place, self.literal(0.0, F64)])
                self.add(item.operands[2], found)
            case "cell_new":
                pair = self.op("cell_value", [self.value(item.result, block)], ir.array(F64))
                self.add(item.operands[0], self.op("array_get", [pair, one], F64))
            case "array_new":
                memory = self.value(item.result, block)
                size = self.op("quotient", [self.op("array_length", [memory], I64), self.literal(2, I64)], I64)

                def step(i: TypedValue, total: TypedValue) -> list[TypedValue]:
                    last = self.op("isub", [size, self.op("iadd", [i, one], I64)], I64)
                    beside = self.op("array_get", [memory, self._adjoint_place(last)], F64)
                    return [self.op("math", [total, beside], F64, "+")]

                (total,) = self.repeat(size, [self.literal(-0.0, F64)], step)
                self.add(item.operands[1], total)

    def _place(self, item: Instruction, block: Block) -> tuple[TypedValue, TypedValue]:
        memory = self.value(item.operands[0], block)
        if item.operation == "cell_value":
            return self.op("cell_value", [memory], ir.array(F64)), self.literal(1, I64)
        return memory, self._adjoint_place(self.value(item.operands[1], block))

    def _math(self, item: Instruction, block: Block) -> None:
        found = self.take(item.result)
        rule = factors(item.name, len(item.operands))
        assert rule is not None
        names = {"r": item.result} | dict(zip("xy", item.operands, strict=False))
        for operand, factor in zip(item.operands, rule, strict=True):
            if operand not in self.activity.values or factor == 0.0:
                continue
            if factor == 1.0:
                self.add(operand, found)
            elif factor == -1.0:
                self.add(operand, self.op("math", [found], F64, "-"))
            else:
                known = {name: self.value(names[name], block) for name in sorted(variables(factor))}
                self.add(operand, self.op("math", [found, self.factor(factor, known)], F64, "*"))
