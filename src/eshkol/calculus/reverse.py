"""Gradients: a program and its reverse sweep as one LLVM module.

Comes in: a program with one F64 result. Goes out: the text of a module whose `main` computes the result and the
derivative of it by every active parameter. The forward sweep leaves records on the tape (plan.py says which); the
reverse sweep goes through the blocks backwards. The adjoint of a value that is used in its own block alone is a name;
others have slots, which LLVM makes registers of; numbers in memory have their adjoints beside them. Adjoints are summed
in the reverse order of execution.
"""

from __future__ import annotations

from collections.abc import Sequence

from eshkol.calculus.abstract import NotFast
from eshkol.calculus.activity import Activity, memory_of, returns
from eshkol.calculus.cfg import Flow, Loop, prepared, shape, written_arrays
from eshkol.calculus.checkpoint import Checkpoints, calls, is_repeatable, outside_values
from eshkol.calculus.emit import RUN_PEAK, SweepModule, SweepWriter, machine, returned
from eshkol.calculus.factors import factors
from eshkol.calculus.ir import F64, I1, Block, Instruction, Return, TypedFunction, TypedProgram, TypedValue
from eshkol.calculus.plan import TapePlan
from eshkol.calculus.sweep import Plain
from eshkol.llvm.text import double

NOTHING = double(-0.0)  # what an adjoint is before anything is added to it: LLVM drops sums with it


def gradient(program: TypedProgram, checkpoint: bool = False) -> SweepModule:
    """The module of a program's gradient: main(ctx, run, in, out), out[0] the value, out[1 + k] by parameter k.

    With `checkpoint`, loops that allow it are not recorded whole (checkpoint.py).
    """
    program = prepared(program)
    if program.main.results != [F64]:
        raise NotFast("a gradient is of one number")
    flows = {function: shape(function) for function in program.functions}
    activity = Activity(program)
    written = written_arrays(program)
    names = {f: f"f{k}.forward" for k, f in enumerate(program.functions)}
    unrecorded = {f: name.replace(".forward", ".plain") for f, name in names.items()}
    module = SweepModule()
    repeated = False
    for function, flow in flows.items():
        is_main = function is program.main
        writer = SweepWriter(module, 1)
        if is_main or function in activity.functions:
            plan = TapePlan(flow, activity, is_main, written)
            made = Recording(writer, flow, names, is_main, activity, plan)
            if is_main and checkpoint:
                made.use_checkpoints(unrecorded)
                repeated = any(map(calls, made.checkpoints))
            made.write("main" if is_main else names[function])
        else:
            Plain(writer, flow, names, False).write(names[function])
    if repeated:
        for function in program.functions[1:]:
            Plain(SweepWriter(module, 1), flows[function], unrecorded, False).write(unrecorded[function])
    return module


class Records(Plain):
    """A sweep that leaves records."""

    def __init__(
        self,
        writer: SweepWriter,
        flow: Flow,
        names: dict[TypedFunction, str],
        is_main: bool,
        activity: Activity,
        plan: TapePlan,
    ) -> None:
        super().__init__(writer, flow, names, is_main)
        self.activity, self.plan = activity, plan
        self._way: TypedValue | None = None

    def extra_phis(self, block: Block) -> None:
        self._way = None
        way = self.plan.which.get(block)
        if way is not None and self.flow.block_of[way] is block:
            ways = self.plan.ways[block]
            self.names[way] = self.phi("i64", lambda: [(str(k), self.ends[b]) for k, b in enumerate(ways)])
            self._way = way

    def begin(self, block: Block) -> None:
        super().begin(block)
        if self._way is not None:
            self.defined(self._way)

    def after(self, item: Instruction) -> None:
        writer = self.writer
        if item.operation in ("array_new", "cell_new") and memory_of(item) in self.activity.memory:
            made = self.names[item.result]
            if item.operation == "array_new":
                writer.clear_shadows(made, self.names[item.operands[0]])
            else:
                shadow = writer.offset(made, 16)
                writer.store("double", double(0.0), shadow)
        if item.operation == "math" and item.name == "expt" and item.operands[1] in self.activity.values:
            # the derivative by the exponent is no real number below zero
            writer.give_up_if(writer.op(f"fcmp olt double {self.names[item.operands[0]]}, {double(0.0)}"))

    def ending(self, block: Block) -> None:
        if block in self.plan.live:
            self.writer.push([(machine(v.type), self.names[v]) for v in self.plan.saved[block]])


class Recording(Records):
    """The forward sweep of a function: it leaves records, and in the main function goes over to the reverse sweep."""

    def __init__(
        self,
        writer: SweepWriter,
        flow: Flow,
        names: dict[TypedFunction, str],
        is_main: bool,
        activity: Activity,
        plan: TapePlan,
    ) -> None:
        super().__init__(writer, flow, names, is_main, activity, plan)
        self.checkpoints: dict[Loop, Checkpoints] = {}
        self.checkpoint_of: dict[Block, Checkpoints] = {}
        self.unrecorded: dict[TypedFunction, str] = {}
        self.reverse = Reverse(self)

    def use_checkpoints(self, unrecorded: dict[TypedFunction, str]) -> None:
        """Do not record loops that may be run again."""
        self.unrecorded = unrecorded
        for loop in self.flow.loops:
            recorded = any(self.plan.saved.get(b) for b in loop.blocks) or calls(loop)
            if is_repeatable(loop) and recorded and loop.header in self.plan.live:
                made = self.checkpoints[loop] = Checkpoints(self.writer, loop, len(self.checkpoints))
                self.checkpoint_of.update(dict.fromkeys(loop.blocks, made))

    def write(self, name: str) -> None:
        writer = self.writer
        if self.is_main:
            writer.begin_memory()
            forward, writer.lines = writer.lines, []
            self.reverse.blocks()
            for made in self.checkpoints.values():
                Replay(self, made).write("")
            backward, writer.lines = writer.lines, forward
            self.load_inputs(self.flow.order[0].params)
            writer.br("b0")
            self.blocks(self.flow.order)
            writer.lines += backward
            writer.finish(f"i64 @{name}(ptr %ctx, ptr %run, ptr %in, ptr %out)", "i64")
            return
        super().write(name)
        other = SweepWriter(writer.module, 1)
        Reverse(self, other).write(name.replace(".forward", ".reverse"))

    def defined(self, value: TypedValue) -> None:
        if value in self.reverse.kept:
            self.writer.store(machine(value.type), self.names[value], self.reverse.slot(value))

    def begin(self, block: Block) -> None:
        super().begin(block)
        self.here = block
        found = self.checkpoint_of.get(block)
        if found is not None and block is found.loop.header:
            found.make(self.names)

    def call(self, item: Instruction) -> None:
        if self.here in self.checkpoint_of:
            recorded, self.functions = self.functions, self.unrecorded
            super().call(item)
            self.functions = recorded
        else:
            super().call(item)

    def ending(self, block: Block) -> None:
        found = self.checkpoint_of.get(block)
        if found is None:
            super().ending(block)
        elif block is found.loop.latch:
            found.count(found.at, 1)
        for made in self.checkpoints.values():
            if block is made.loop.before:
                made.begin()

    def leave(self, values: list[TypedValue]) -> None:
        if not self.is_main:
            super().leave(values)
            return
        writer = self.writer
        writer.store("double", self.names[values[0]], "%out")
        place = writer.offset("%run", RUN_PEAK)
        writer.store("ptr", writer.load("ptr", writer.tape), place)
        (last,) = (b for b in self.flow.order if isinstance(b.end, Return))
        writer.br(self.reverse.labels[last])


class Replay(Records):
    """A piece of a loop, run again with records: the turns between two checkpoints, or those after the last one."""

    def __init__(self, recording: Recording, checkpoints: Checkpoints) -> None:
        whole = recording
        super().__init__(whole.writer, whole.flow, whole.functions, True, whole.activity, whole.plan)
        self.reverse, self.checkpoints, self.loop = whole.reverse, checkpoints, checkpoints.loop
        self.prefix = checkpoints.prefix

    def write(self, name: str) -> None:
        writer, flow, loop = self.writer, self.flow, self.loop
        self._start = dict(zip(loop.header.params, self.checkpoints.restore(), strict=True))
        for item in flow.maker.values():
            if item.operation == "constant":
                self.names[item.result] = writer.constant(item)
        for value in outside_values(flow, loop):
            self.reverse.kept.add(value)
            self.names[value] = writer.load(machine(value.type), self.reverse.slot(value))
        for block in loop.blocks:
            for jump in block.jumps():
                if jump.target not in loop.blocks:  # where the loop was left, its reverse begins
                    self.labels[jump.target] = self.reverse.labels[block] if jump.target in self.plan.live else "up.2"
                    if jump.target not in self.plan.live:
                        writer.gives_up.add(2)
        order = [block for block in flow.order if block in loop.blocks]
        writer.br(f"{self.prefix}0")
        self.blocks(order)

    def incoming(self, block: Block, index: int) -> list[tuple[str, str]]:
        if block is not self.loop.header:
            return super().incoming(block, index)
        latch = self.loop.latch
        assert latch is not None
        again = next(jump for before, jump in self.flow.into[block] if before is latch)
        return [
            (self._start[block.params[index]], self.checkpoints.replay),
            (self.names[again.args[index]], self.ends[latch]),
        ]

    def begin(self, block: Block) -> None:
        super().begin(block)
        if block is self.loop.header:
            self.checkpoints.end_of_piece()

    def ending(self, block: Block) -> None:
        super().ending(block)
        if block is self.loop.latch:
            self.checkpoints.count(self.checkpoints.turn, 1)


class Reverse:
    """The reverse sweep of a function."""

    def __init__(self, forward: Recording, writer: SweepWriter | None = None) -> None:
        self.forward = forward
        self.writer = writer or forward.writer
        self.flow, self.plan, self.activity = forward.flow, forward.plan, forward.activity
        self.kept: set[TypedValue] = set()  # main: values that the forward sweep stores in their slots
        self._slots: dict[TypedValue, str] = {}
        self._adjoints: dict[TypedValue, str] = {}
        self._names: dict[TypedValue, str] = {}  # in the block that is being reversed
        self._local: dict[TypedValue, str] = {}  # adjoints of values of that block alone
        self.labels = {block: f"r{k}" for k, block in enumerate(self.flow.order)}
        self._users = self._used_elsewhere()

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

    # ---- values ---------------------------------------------------------------------------------------------------

    def slot(self, value: TypedValue) -> str:
        """Where a value lies during the reverse sweep."""
        if value not in self._slots:
            self._slots[value] = self.writer.slot(machine(value.type))
        return self._slots[value]

    def _keep(self, value: TypedValue, block: Block) -> None:
        """In the main function: see to it that the forward sweep stores a value."""
        plan, flow = self.plan, self.flow
        if not plan.is_main or value in plan.saved[block] or value in plan.known[block]:
            return
        around = flow.loops_around(block)
        if not around or flow.block_of[value] not in around[-1].blocks:
            self.kept.add(value)
        loop = plan.counted.get(value)
        if loop is not None and loop.parent is None:
            self.kept.add(value)

    def value(self, value: TypedValue, block: Block) -> str:
        """The name of a value in the reverse of a block."""
        if value in self._names:
            return self._names[value]
        item = self.flow.maker.get(value)
        writer = self.writer
        if item is not None and item.operation == "constant":
            found = writer.constant(item)
        elif self.plan.has_slot(value, block):
            self._keep(value, block)
            found = writer.load(machine(value.type), self.slot(value))
        else:
            assert item is not None
            assert self.plan.is_cheap(value), f"{item.operation} is lost in {block.name}"
            found = writer.instruction(item, [self.value(v, block) for v in item.operands], False)
        self._names[value] = found
        return found

    # ---- adjoints -------------------------------------------------------------------------------------------------

    def _adjoint(self, value: TypedValue) -> str:
        if value not in self._adjoints:
            name = self._adjoints[value] = self.writer.slot("double")
            self.writer.slots.append(f"  store double {NOTHING}, ptr {name}")
        return self._adjoints[value]

    def add(self, value: TypedValue, name: str) -> None:
        """Add to the adjoint of a value."""
        if value not in self.activity.values:
            return
        writer = self.writer
        if value not in self._users:
            before = self._local.get(value)
            self._local[value] = name if before is None else writer.op(f"fadd double {before}, {name}")
            return
        slot = self._adjoint(value)
        before = writer.load("double", slot)
        writer.store("double", writer.op(f"fadd double {before}, {name}"), slot)

    def take(self, value: TypedValue) -> str:
        """The adjoint of a value where it was computed; nothing is left of it."""
        if value not in self._users:
            return self._local.pop(value, NOTHING)
        slot = self._adjoint(value)
        found = self.writer.load("double", slot)
        self.writer.store("double", NOTHING, slot)
        return found

    # ---- blocks ---------------------------------------------------------------------------------------------------

    def write(self, name: str) -> None:
        """The reverse of an inner function: adjoints of results in, of parameters out."""
        writer, flow = self.writer, self.flow
        (leaving,) = returns(flow.function)
        writer.begin_memory()
        writer.poll_stack()
        (last,) = (b for b in flow.order if isinstance(b.end, Return))
        writer.br(self.labels[last])
        self.blocks()
        seeds = [f"double %d{k}" for k, v in enumerate(leaving) if v in self.activity.values]
        listed = ", ".join(["ptr %ctx", "ptr %run", *seeds])
        result = returned(["double"] * len(active_params(flow.function, self.activity)))
        writer.finish(f"internal {result} @{name}({listed})", result)

    def blocks(self) -> None:
        for block in reversed(self.flow.order):
            if block in self.plan.live:
                self._block(block)

    def _block(self, block: Block) -> None:
        writer, plan, flow = self.writer, self.plan, self.flow
        writer.place(self.labels[block])
        self._names, self._local = {}, {}
        saved = plan.saved[block]
        for value, name in zip(saved, writer.pop([machine(v.type) for v in saved]), strict=True):
            self._names[value] = name
            writer.store(machine(value.type), name, self.slot(value))
        for loop in flow.loops:
            if block in loop.exits and not (plan.is_main and loop.parent is None):
                for value in plan.held[loop]:
                    if not plan.has_slot(value, block):
                        name = self.value(value, block)
                        writer.store(machine(value.type), name, self.slot(value))
                    else:
                        self._keep(value, block)
        if isinstance(block.end, Return):
            self._seed(block.end.values)
        for item in reversed(block.body):
            if self.activity.is_active(item):
                self._reverse(item, block)
        if block is flow.order[0]:
            self._finish()
        else:
            self._go_back(block)

    def _seed(self, values: Sequence[TypedValue]) -> None:
        if self.plan.is_main:
            self.add(values[0], double(1.0))
            return
        for k, value in enumerate(values):
            if value in self.activity.values:
                self.add(value, f"%d{k}")

    def _finish(self) -> None:
        writer, function = self.writer, self.flow.function
        if self.plan.is_main:
            for k, param in enumerate(function.params):
                if param.type == F64:
                    place = writer.offset("%out", 1 + k, "double")
                    found = self.take(param) if param in self.activity.values else double(0.0)
                    # nothing at all is zero, and not the zero below it
                    writer.store("double", writer.op(f"fadd double {found}, {double(0.0)}"), place)
            writer.store_memory()
            writer.do("ret i64 0")
            return
        params = active_params(function, self.activity)
        kind = returned(["double"] * len(params))
        made = f"{{ {', '.join(['i64 0', *('double poison' for _ in params)])} }}"
        writer.store_memory()
        for k, param in enumerate(params):
            made = writer.op(f"insertvalue {kind} {made}, double {self.take(param)}, {k + 1}")
        writer.do(f"ret {kind} {made}")

    def _go_back(self, block: Block) -> None:
        """To the reverse of the block that was before."""
        writer, plan, flow = self.writer, self.plan, self.flow
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
        name = self.value(way, block)
        edges = [writer.new_block("back") for _ in ways]
        if way.type == I1:
            writer.br_if(name, edges[1], edges[0])
        else:
            cases = " ".join(f"i64 {k}, label %{edge}" for k, edge in enumerate(edges[1:], 1))
            writer.do(f"switch i64 {name}, label %{edges[0]} [ {cases} ]")
        for before, edge in zip(ways, edges, strict=True):
            writer.place(edge)
            self._transfer(before, into[before].args, block, taken)

    def _taken(self, block: Block) -> dict[TypedValue, str]:
        return {p: self.take(p) for p in block.params if p in self.activity.values}

    def _go_round(self, block: Block, loop: Loop) -> None:
        """From the header of a loop: to the turn before, or, after the first one, to where the loop was entered."""
        writer, plan = self.writer, self.plan
        assert loop.before is not None
        assert loop.latch is not None
        into = dict(self.flow.into[block])
        test = plan.test[loop]
        at, start = self.value(test.param, block), self.value(test.start, block)
        first, again = writer.new_block("first"), writer.new_block("again")
        checkpoints = self.forward.checkpoints.get(loop)
        writer.br_if(writer.op(f"icmp eq i64 {at}, {start}"), first, again)
        writer.place(first)
        if checkpoints is not None:
            checkpoints.drop()
        self._transfer(loop.before, into[loop.before].args, block, self._taken(block))
        writer.place(again)
        writer.poll()
        if checkpoints is not None:  # where a piece begins, the one before is run again first
            turn = writer.load("i64", checkpoints.turn)
            is_first = writer.op(f"icmp eq i64 {turn}, 0")
            writer.br_if(is_first, checkpoints.previous, checkpoints.step)
            writer.place(checkpoints.step)
            self._names = {}
            checkpoints.count(checkpoints.turn, -1)
        for counter in plan.counters[loop]:
            if counter.param in plan.held[loop]:
                now, step = self.value(counter.param, block), self.value(counter.step, block)
                before = writer.op(f"{counter.back} i64 {now}, {step}")
                writer.store("i64", before, self.slot(counter.param))
        self._transfer(loop.latch, into[loop.latch].args, block, self._taken(block))

    def _transfer(self, before: Block, args: Sequence[TypedValue], block: Block, taken: dict[TypedValue, str]) -> None:
        """Along a jump, backwards: the adjoints of parameters go to what was passed."""
        for param, arg in zip(block.params, args, strict=True):
            found = taken.get(param)
            if found is not None:
                self.add(arg, found)
        checkpoints = self.forward.checkpoint_of.get(before)
        if checkpoints is not None and block not in checkpoints.loop.blocks:
            self.writer.br(checkpoints.last)
        else:
            self.writer.br(self.labels[before])

    # ---- instructions ---------------------------------------------------------------------------------------------

    def _reverse(self, item: Instruction, block: Block) -> None:
        writer = self.writer
        match item.operation:
            case "math":
                self._math(item, block)
            case "array_get" | "cell_value":
                found, shadow = self.take(item.result), self._shadow(item, block)
                before = writer.load("double", shadow)
                writer.store("double", writer.op(f"fadd double {before}, {found}"), shadow)
            case "array_set":
                shadow = self._shadow(item, block)
                found = writer.load("double", shadow)
                writer.store("double", double(0.0), shadow)
                self.add(item.operands[2], found)
            case "cell_new":
                shadow = writer.offset(self.value(item.result, block), 16)
                self.add(item.operands[0], writer.load("double", shadow))
            case "array_new":
                array = self.value(item.result, block)
                length = writer.load("i64", array)
                total = writer.module.helper("esk_fast_sum")
                first = writer.element(array, length)
                self.add(
                    item.operands[1], writer.op(f"call double {total}(ptr {first}, i64 {length}, double {NOTHING})")
                )
            case "call":
                self._call(item)

    def _shadow(self, item: Instruction, block: Block) -> str:
        place = self.value(item.operands[0], block)
        if item.operation == "cell_value":
            return self.writer.offset(place, 16)
        return self.writer.shadow(place, self.value(item.operands[1], block))

    def _math(self, item: Instruction, block: Block) -> None:
        writer = self.writer
        elsewhere = item.result in self._users
        found = self.take(item.result)
        rule = factors(item.name, len(item.operands))
        assert rule is not None
        names = {"r": item.result} | dict(zip("xy", item.operands, strict=False))
        flows = ""
        for operand, factor in zip(item.operands, rule, strict=True):
            if operand not in self.activity.values or factor == 0.0:
                continue
            if factor == 1.0:
                self.add(operand, found)
            elif factor == -1.0:
                self.add(operand, writer.op(f"fneg double {found}"))
            else:
                by = writer.tree(factor, lambda name: self.value(names[name], block))
                if elsewhere and not isinstance(
                    factor, float
                ):  # where nothing flows, an infinite factor counts nothing
                    flows = flows or writer.op(f"fcmp une double {found}, {double(0.0)}")
                    by = writer.select(flows, by, double(0.0))
                self.add(operand, writer.op(f"fmul double {found}, {by}"))

    def _call(self, item: Instruction) -> None:
        function = item.function
        assert function is not None
        writer, active = self.writer, self.activity
        (leaving,) = returns(function)
        seeds = []
        for result, value in zip(item.results, leaving, strict=True):
            if value in active.values:
                seeds.append(f"double {self.take(result) if result in active.values else NOTHING}")
        params = active_params(function, active)
        name = self.forward.functions[function].replace(".forward", ".reverse")
        kind = returned(["double"] * len(params))
        writer.store_memory()
        found = writer.op(f"call {kind} @{name}({', '.join(['ptr %ctx', 'ptr %run', *seeds])})")
        status = writer.op(f"extractvalue {kind} {found}, 0")
        for given in (2, 4):
            writer.give_up_if(writer.op(f"icmp eq i64 {status}, {given}"), given)
        writer.load_memory()
        adjoints = {p: writer.op(f"extractvalue {kind} {found}, {k + 1}") for k, p in enumerate(params)}
        for param, arg in zip(function.params, item.operands, strict=True):
            if param in adjoints:
                self.add(arg, adjoints[param])


def active_params(function: TypedFunction, activity: Activity) -> list[TypedValue]:
    """The parameters of an inner function that it gives adjoints of."""
    return [p for p in function.params if p in activity.values]
