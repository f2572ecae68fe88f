"""Simplified core forms to LLVM functions.

Comes in: the forms of a unit and their `Analysis`. Goes out: functions in a `Module`. Every lambda that is a function
of its own becomes one LLVM function for each clause, which takes the context, its closure if it has one, the two words
of each argument, and the words of free variables that are passed; where its value is needed it also gets an entry,
which takes arguments as closures are called and checks their number. Code is written for a destination: the end of the
function, a join that waits for values, or a test.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from eshkol.codegen.arithmetic import MIXED
from eshkol.codegen.blocks import Block, Val, Writer
from eshkol.codegen.functions import Analysis, Function
from eshkol.codegen.module import Module, quoted
from eshkol.codegen.nodes import Fix, LetValues, Prim
from eshkol.codegen.primitives import ENTRY_PARAMETERS
from eshkol.codegen.simplify import children
from eshkol.lang import core, datum
from eshkol.lang.core import Call, Clause, Const, Global, If, Lambda, Let, Local, Node, Seq, Variable
from eshkol.lang.source import Place

Env = dict[Variable, Val]
EXACT_IN_DOUBLE = 1 << 53
REST = ":rest"  # what the names of such functions end with
EASY_SIZE = 24  # expressions in the beginning of a function that its callers may take over
FEWEST_REGISTERS = 6  # words that every machine passes in registers
LEFT_TO_RIGHT = {"+": 0, "*": 1}  # operators of any number of arguments, with their identities


class Destination:
    """Where the value of an expression goes."""

    count = 1  # values that are waited for


class Return(Destination):
    """The value is the function's."""


@dataclass
class Join(Destination):
    """The values are awaited in a block."""

    block: Block
    count: int = 1


@dataclass
class Test(Destination):
    """The value only decides where to go on."""

    yes: Block
    no: Block


RETURN = Return()


@dataclass
class Label:
    """A function that is a place in another one."""

    block: Block
    function: Function


class Emitter:
    """Writes the functions of a unit."""

    def __init__(
        self, module: Module, analysis: Analysis, own: Iterable[core.Cell], source_text: Callable[[Any], str | None]
    ) -> None:
        self.module = module
        self.own = set(own)  # cells that the unit itself defines
        self.analysis = analysis
        self.source_text = source_text
        self.tags = {
            name.removeprefix("TAG_"): str(n) for name, n in module.table.layout.items() if name.startswith("TAG_")
        }
        self.symbols: dict[Clause, str] = {}
        self.entries: dict[Function, str] = {}
        self.statics: dict[Function, str] = {}
        self.procedures: dict[Function, str] = {}

    def unit(self, forms: list[Node], name: str) -> None:
        """All functions, and `main`: an entry that evaluates the forms in order and gives the last value."""
        for function in self.analysis.functions.values():
            if not function.inside:
                for clause in function.code.clauses:
                    self.symbols[clause] = f'@"{_symbol(self.module, function)}"'
        for function in self.analysis.functions.values():
            if not function.inside:
                for clause in function.code.clauses:
                    Body(self, function).clause(clause)
                if function.escapes:
                    self._entry(function)
        body = Body(self, self.analysis.top, name)
        body.writer.run("anchor", "", None)
        body.emit_all(forms)
        body.writer.symbol = "main"
        body.writer.finish(ENTRY_PARAMETERS, linkage="")

    def procedure(self, function: Function) -> str:
        found = self.procedures.get(function)
        if found is None:
            code = function.code
            found = self.procedures[function] = self.module.procedure(code, self.source_text(code.source))
        return found

    def static(self, function: Function) -> Val:
        """The value of a closure that captures nothing."""
        found = self.statics.get(function)
        if found is None:
            symbol = self.module.static_closure(self.entry_symbol(function), self.procedure(function))
            found = self.statics[function] = f"ptrtoint (ptr {symbol} to i64)"
        return Val(self.tags["PROCEDURE"], found)

    def entry_symbol(self, function: Function) -> str:
        found = self.entries.get(function)
        if found is None:
            found = self.entries[function] = f'@"{_symbol(self.module, function)}"'
        return found

    def _entry(self, function: Function) -> None:
        """The entry of a closure: finds the clause for the number of arguments and goes to its function."""
        symbol = self.entry_symbol(function)
        writer = Writer(self.module, function.code.name or "lambda", function.code.place)
        writer.symbol = symbol[2:-1]
        writer.run("anchor", "", None)
        for clause in function.code.clauses:
            fits, other = writer.block(), writer.block()
            wanted = len(clause.params)
            writer.branch(writer.let(f"icmp {'uge' if clause.rest else 'eq'} i64 %count, {wanted}"), fits, other, 0)
            writer.start(fits)
            args = [_argument(writer, self.module, i) for i in range(wanted)]
            if clause.rest is not None:
                direct = writer.room([Val(f"%t{i}", f"%p{i}") for i in range(4)])
                args.append(writer.words(
                    writer.call("esk_rest", "%value", f"ptr %ctx, i64 %count, i64 {wanted}, ptr {direct}", None)
                ))  # fmt: skip
            given = _given(args, "%self" if function.free else None, [])
            writer.close(f"ret %value {_tail_call(writer, self.symbols[clause], given)}")
            writer.start(other)
        writer.run("esk_wrong_arity", "ptr %ctx, ptr %self, i64 %count", None)
        writer.close("unreachable")
        writer.finish(ENTRY_PARAMETERS)


def _symbol(module: Module, function: Function) -> str:
    return quoted(module.unique(function.code.name or "lambda"))


def _argument(writer: Writer, module: Module, index: int) -> Val:
    """An argument of an entry."""
    if index < 4:
        return Val(f"%t{index}", f"%p{index}")
    at = writer.offset("%ctx", module.table.layout["Context.extra"])
    extra = writer.let(f"load ptr, ptr {at}")
    return writer.load(writer.offset(extra, 16 * (index - 4)))


REGISTERS = 8  # for arguments, on AArch64


def even(words: list[str], pad: str) -> list[str]:
    """The words of a call, with one more where an odd number of them would lie on the stack.

    A function with the convention tailcc takes its arguments off the stack in units of 16 bytes. LLVM lets the caller
    keep values of its own in the last eight bytes of an odd number, where the callee's callees then write (AArch64).
    """
    return [*words, pad] if len(words) > REGISTERS and len(words) % 2 else words


def _given(args: list[Val], closure: str | None, passed: list[Val]) -> str:
    """The arguments of a call of a clause's function."""
    words = [f"i64 {word}" for value in (*args, *passed) for word in value]
    return ", ".join(even(["ptr %ctx", *([] if closure is None else [f"ptr {closure}"]), *words], "i64 undef"))


def _tail_call(writer: Writer, symbol: str, args: str, place: Place | None = None) -> str:
    return writer.let(f"musttail call tailcc %value {symbol}({args}){writer.debug(place)}")


class Body:
    """The body of one LLVM function."""

    def __init__(self, emitter: Emitter, function: Function, name: str | None = None) -> None:
        self.emitter = emitter
        self.module = emitter.module
        self.table = emitter.module.table
        self.analysis = emitter.analysis
        self.function = function
        self.tags = emitter.tags
        code = function.code
        self.writer = Writer(self.module, name or code.name or "lambda", code.place)
        self.labels: dict[Function, Label] = {}
        self.unspecified = Val(self.tags["SPECIAL"], "0")
        self.again: tuple[Clause, Block] | None = None
        self.rest: tuple[Node, str, str] | None = None  # what stands in a function of its own, that, its parameters
        self.polled = 0  # on the path that is being written: 1 for interrupts, 2 for the stack too

    # ---- whole functions ----------------------------------------------------------------------------------------

    def clause(self, clause: Clause, part: str = "") -> None:
        """Write the function of a clause, or the rest of it."""
        writer, function = self.writer, self.function
        variables = [*clause.params, *([clause.rest] if clause.rest else [])]
        closure = function.escapes and bool(function.free)
        env: Env = {}
        parameters = ["ptr %ctx"]
        if closure:
            parameters.append("ptr %self")
            base = self.table.layout["Closure.captured"]
            for i, variable in enumerate(function.free):
                env[variable] = writer.load(writer.offset("%self", base + 16 * i))
            if function.variable is not None:
                env[function.variable] = Val(self.tags["PROCEDURE"], writer.let("ptrtoint ptr %self to i64"))
        passed = [] if function.escapes else function.free
        for i, variable in enumerate([*variables, *passed]):
            parameters += [f"i64 %a{i}t", f"i64 %a{i}p"]
            env[variable] = Val(f"%a{i}t", f"%a{i}p")
        if len(parameters) > FEWEST_REGISTERS:
            writer.run("anchor", "", None)
        if function.loops and not self._calls_inside(clause.body):  # a call of itself is a jump back to here
            start = writer.block("again")
            again = writer.awaited(start, len(variables))
            writer.meet(start, [env[variable] for variable in variables])
            writer.start(start)
            env.update(zip(variables, again, strict=True))
            self.again = (clause, start)
        for variable in variables:
            if variable.assigned:
                env[variable] = self.boxed(env[variable])
        rest = None if self.again is not None or any(v.assigned for v in variables) else self._rest(clause.body)
        if rest is None or not function.loops:
            self.emit(clause.body, env, RETURN)
        elif part == REST:
            self._poll(True, function.code.place)
            self.emit(rest, env, RETURN)
        else:
            self.rest = (rest, self.emitter.symbols[clause][:-1] + f'{REST}"', ", ".join(parameters))
            self.emit(clause.body, env, RETURN)
            Body(self.emitter, function).clause(clause, REST)
        writer.symbol = self.emitter.symbols[clause][2:-1] + part
        writer.finish(", ".join(even(parameters, "i64 %pad")), "noinline" if part == REST else "")

    def _rest(self, body: Node) -> Node | None:
        """What is left of a body behind tests and results that need no calls; None where it has no such beginning.

        Such a beginning and the rest become two functions. LLVM puts the first into its callers, so that the easy cases
        of a recursion cost no call at all.
        """
        rest, peeled = body, 0
        while isinstance(rest, If) and self._is_easy(rest.test):
            easy = [self._is_easy(branch) for branch in (rest.then, rest.otherwise)]
            if easy[0] == easy[1]:
                break
            peeled += self._size(rest.test) + self._size(rest.then if easy[0] else rest.otherwise)
            rest = rest.otherwise if easy[0] else rest.then
        return rest if rest is not body and peeled <= EASY_SIZE and not self._is_easy(rest) else None

    def _is_easy(self, node: Node) -> bool:
        if isinstance(node, Const | Local | Prim | If):
            return all(map(self._is_easy, children(node)))
        return False

    def _size(self, node: Node) -> int:
        return 1 + sum(map(self._size, children(node)))

    def _calls_inside(self, node: Node, last: bool = True) -> bool:
        """Whether an expression calls procedures other than as the last thing that is done.

        If a function does, it needs a frame; then it is better to begin anew for a call of itself than to jump back,
        since paths without calls get along without the frame.
        """
        match node:
            case Call(procedure=procedure, args=args):
                function = self.analysis.known(procedure)
                if not last and (function is None or not function.inside):
                    return True
                return any(self._calls_inside(inner, False) for inner in (procedure, *args))
            case If(test=test, then=then, otherwise=otherwise):
                return self._calls_inside(test, False) or any(self._calls_inside(n, last) for n in (then, otherwise))
            case Seq(items=items):
                return any(self._calls_inside(n, False) for n in items[:-1]) or self._calls_inside(items[-1], last)
            case Let(values=values, body=body):
                return any(self._calls_inside(n, False) for n in values) or self._calls_inside(body, last)
            case LetValues(value=value, body=body):
                return self._calls_inside(value, False) or self._calls_inside(body, last)
            case Fix(lambdas=lambdas, body=body):
                bodies = [code.clauses[0].body for code in lambdas if self.analysis.functions[code].inside]
                return any(self._calls_inside(n, last) for n in (*bodies, body))
            case Lambda():
                return False
        return any(self._calls_inside(inner, False) for inner in children(node))

    def _poll(self, deeper: bool, place: Place | None) -> None:
        """Before a call: look whether somebody interrupts and, where a frame stays behind, whether there is stack left.

        Once on every path through the function is enough.
        """
        if self.polled < (wanted := 2 if deeper else 1):
            self.writer.run("poll" if deeper else "poll_interrupt", "ptr %ctx", place)
            self.polled = wanted

    def emit_all(self, forms: list[Node]) -> None:
        if not forms:
            self.deliver(self.unspecified, RETURN, None)
        for form in forms[:-1]:
            self.effect(form, {})
        if forms:
            self.emit(forms[-1], {}, RETURN)

    # ---- destinations -------------------------------------------------------------------------------------------

    def deliver(self, value: Val, to: Destination, place: Place | None) -> None:
        writer = self.writer
        if isinstance(to, Return):
            writer.close(f"ret %value {writer.pair(value)}")
        elif isinstance(to, Test):
            if value.tag.isdigit() and (value.tag != self.tags["BOOLEAN"] or value.bits.isdigit()):
                writer.jump(to.no if value == (self.tags["BOOLEAN"], "0") else to.yes)
            else:
                false = self._inline("test.not", "i1", [value], place)
                writer.branch(false, to.no, to.yes)
        elif isinstance(to, Join):
            writer.meet(to.block, [value] if to.count == 1 else self._unpacked(value, to.count, place))

    def deliver_test(self, condition: str, to: Destination, place: Place | None) -> None:
        """A truth value, as an i1."""
        if isinstance(to, Test):
            self.writer.branch(condition, to.yes, to.no)
        else:
            bits = self.writer.let(f"zext i1 {condition} to i64")
            self.deliver(Val(self.tags["BOOLEAN"], bits), to, place)

    def _unpacked(self, value: Val, count: int, place: Place | None) -> list[Val]:
        """Several values out of the object that holds them."""
        if count == 0:
            return []
        writer = self.writer
        look, good, bad = writer.block(), writer.block(), writer.block()
        writer.branch(writer.let(f"icmp eq i64 {value.tag}, {self.tags['VALUES']}"), look, bad, 0)
        writer.start(look)
        pointer = writer.pointer(value)
        found = writer.let(f"load i32, ptr {writer.offset(pointer, 4)}")
        writer.branch(writer.let(f"icmp eq i32 {found}, {count}"), good, bad, 0)
        writer.start(bad)
        writer.run("esk_wrong_values", f"ptr %ctx, i64 {count}, i64 {value.tag}, i64 {value.bits}", place)
        writer.close("unreachable")
        writer.start(good)
        base = self.table.layout["Values.items"]
        return [writer.load(writer.offset(pointer, base + 16 * i)) for i in range(count)]

    def value(self, node: Node, env: Env) -> Val:
        """An expression's value, in registers."""
        simple = self._simple(node, env)
        if simple is not None:
            return simple
        return self.values(node, env, 1)[0]

    def values(self, node: Node, env: Env, count: int) -> list[Val]:
        join = Join(self.writer.block("join"), count)
        found = self.writer.awaited(join.block, count)
        self.emit(node, env, join)
        self.writer.start(join.block)
        if found and not join.block.phis[0][1]:  # nobody comes here
            return [Val("undef", "undef")] * count
        return found

    def effect(self, node: Node, env: Env) -> None:
        """An expression whose value nobody wants."""
        if isinstance(node, If | Seq | Let | Fix | LetValues):
            join = Join(self.writer.block("then"), 0)
            self.emit(node, env, join)
            self.writer.start(join.block)
        else:
            self.value(node, env)

    # ---- expressions --------------------------------------------------------------------------------------------

    def _simple(self, node: Node, env: Env) -> Val | None:
        """The value of an expression that has no branches of its own."""
        match node:
            case Const(datum=found):
                return self.constant(found)
            case core.SyntaxConst(content=content):
                return self._from_memory(content)
            case Local(variable=variable):
                return self._variable(variable, env, node.place)
            case Global(cell=cell):
                return self._global(cell, node.place)
            case Lambda():
                return self._closure(self.analysis.functions[node], env, node.place)
            case core.SetLocal(variable=variable, value=value):
                new = self.value(value, env)
                box = self.writer.pointer(env[variable])
                self.writer.store(new, self.writer.offset(box, self.table.layout["Box.value"]))
                return self.unspecified
            case core.SetGlobal(cell=cell, value=value):
                new = self.value(value, env)
                self._check_defined(cell, node.place)
                self.writer.store(new, self.module.cell(cell))
                return self.unspecified
            case core.DefineGlobal(cell=cell, value=value):
                self.writer.store(self.value(value, env), self.module.cell(cell))
                return self.unspecified
            case Prim():
                return self._primitive(node, env)
            case Call():
                return self._call(node, env)
        return None

    def emit(self, node: Node, env: Env, to: Destination) -> None:
        """Write an expression whose value goes somewhere."""
        if self.rest is not None and node is self.rest[0]:
            result = _tail_call(self.writer, self.rest[1], self.rest[2], node.place)
            self.writer.close(f"ret %value {result}")
            return
        match node:
            case If(test=test, then=then, otherwise=otherwise):
                yes, no = self.writer.block("yes"), self.writer.block("no")
                self.emit(test, env, Test(yes, no))
                before = self.polled
                self.writer.start(yes)
                self.emit(then, env, to)
                after, self.polled = self.polled, before
                self.writer.start(no)
                self.emit(otherwise, env, to)
                self.polled = min(after, self.polled)
            case Seq(items=items):
                for item in items[:-1]:
                    self.effect(item, env)
                self.emit(items[-1], env, to)
            case Let(variables=variables, values=values, body=body):
                inner = dict(env)
                found = [self.value(value, env) for value in values]
                for variable, value in zip(variables, found, strict=True):
                    inner[variable] = self.boxed(value) if variable.assigned else value
                self.emit(body, inner, to)
            case LetValues():
                self._let_values(node, env, to)
            case Fix():
                self._fix(node, env, to)
            case Call():
                self._emit_call(node, env, to)
            case Prim(name="values", args=args) if isinstance(to, Join) and to.count != 1 and len(args) == to.count:
                self.writer.meet(to.block, [self.value(arg, env) for arg in args])
            case Prim(name=name, args=args):
                if self.table.test(name, len(args)) is None:
                    self.deliver(self.value(node, env), to, node.place)
                else:
                    self.deliver_test(self._test(node, env), to, node.place)
            case _:
                simple = self._simple(node, env)
                assert simple is not None
                self.deliver(simple, to, node.place)

    def constant(self, found: Any) -> Val:
        kind = type(found)
        if kind is bool:
            return Val(self.tags["BOOLEAN"], str(int(found)))
        if kind is int and -(1 << 63) <= found < 1 << 63:
            return Val(self.tags["FIXNUM"], str(found))
        if kind is float:
            return Val(self.tags["FLONUM"], str(struct.unpack("<q", struct.pack("<d", found))[0]))
        if kind is datum.Char:
            return Val(self.tags["CHAR"], str(found.code))
        if kind is datum.List and not found.items:
            return Val(self.tags["NULL"], "0")
        if kind is datum.Special:
            return Val(self.tags["SPECIAL"], str(self.table.layout[f"SPECIAL_{found.name.upper()}"]))
        return self._from_memory(found)

    def _from_memory(self, found: Any) -> Val:
        number = self.module.constant(found)
        return self.writer.load(f"getelementptr (i8, ptr @constants, i64 {16 * number})")

    def _variable(self, variable: Variable, env: Env, place: Place | None) -> Val:
        function = self.analysis.variables.get(variable)
        if function is not None and function.is_static:
            return self.emitter.static(function)
        value = env[variable]
        if not variable.assigned:
            return value
        box = self.writer.pointer(value)
        found = self.writer.load(self.writer.offset(box, self.table.layout["Box.value"]))
        if variable.early:
            self._check(found, "esk_used_early", variable.name, place)
        return found

    def _global(self, cell: core.Cell, place: Place | None) -> Val:
        function = self.analysis.cells.get(cell)
        if function is not None:
            return self.emitter.static(function)
        found = self.writer.load(self.module.cell(cell))
        if not cell.primitive and (cell in self.emitter.own or not cell.sealed):  # other libraries have run
            self._check(found, "esk_unbound", cell.name, place)
        return found

    def _check_defined(self, cell: core.Cell, place: Place | None) -> None:
        self._check(self.writer.load(self.module.cell(cell)), "esk_unbound", cell.name, place)

    def _check(self, value: Val, complaint: str, name: str, place: Place | None) -> None:
        """That a variable has a value."""
        writer = self.writer
        undefined = self.table.layout["SPECIAL_UNDEFINED"]
        special = writer.let(f"icmp eq i64 {value.tag}, {self.tags['SPECIAL']}")
        which = writer.let(f"icmp eq i64 {value.bits}, {undefined}")
        bad, good = writer.block(), writer.block()
        writer.branch(writer.let(f"and i1 {special}, {which}"), bad, good, 1)
        writer.start(bad)
        writer.run(complaint, f"ptr %ctx, ptr {self.module.string(name)}", place)
        writer.close("unreachable")
        writer.start(good)

    def boxed(self, value: Val) -> Val:
        pointer = self._allocate(3, self.tags["BOX"], 0)
        self.writer.store(value, self.writer.offset(pointer, self.table.layout["Box.value"]))
        return Val(self.tags["BOX"], self.writer.let(f"ptrtoint ptr {pointer} to i64"))

    def _allocate(self, words: int, tag: str, count: int) -> str:
        """Memory for an object, with its first word written."""
        writer = self.writer
        if words <= self.table.layout["SMALL_WORDS"]:
            pointer = writer.call("allocate", "ptr", f"ptr %ctx, i64 {words}", None)
        else:
            pointer = writer.call("esk_allocate", "ptr", f"ptr %ctx, i64 {8 * words}, i32 {tag}", None)
        writer.line(f"store i64 {int(tag) | count << 32}, ptr {pointer}")
        return pointer

    # ---- procedures ---------------------------------------------------------------------------------------------

    def _closure(self, function: Function, env: Env, place: Place | None) -> Val:
        if not function.free:
            return self.emitter.static(function)
        value = self._empty_closure(function)
        self._fill(value, function, env)
        return value

    def _empty_closure(self, function: Function) -> Val:
        """A closure whose captured values are yet to be filled in; until then they are harmless."""
        writer, count = self.writer, len(function.free)
        layout = self.table.layout
        pointer = self._allocate(3 + 2 * count, self.tags["PROCEDURE"], count)
        writer.line(
            f"store ptr {self.emitter.entry_symbol(function)}, ptr {writer.offset(pointer, layout['Closure.entry'])}"
        )
        procedure = self.emitter.procedure(function)
        writer.line(f"store ptr {procedure}, ptr {writer.offset(pointer, layout['Closure.procedure'])}")
        for i in range(count):
            writer.line(f"store i64 0, ptr {writer.offset(pointer, layout['Closure.captured'] + 16 * i)}")
        return Val(self.tags["PROCEDURE"], writer.let(f"ptrtoint ptr {pointer} to i64"))

    def _fill(self, closure: Val, function: Function, env: Env) -> None:
        pointer = self.writer.pointer(closure)
        base = self.table.layout["Closure.captured"]
        for i, variable in enumerate(function.free):
            self.writer.store(env[variable], self.writer.offset(pointer, base + 16 * i))

    def _fix(self, node: Fix, env: Env, to: Destination) -> None:
        functions = [self.analysis.variables[variable] for variable in node.variables]
        if functions[0].inside:
            self._labels(node, functions, env, to)
            return
        closures = [f for f in functions if f.escapes and f.free]
        if closures:
            env = dict(env)
            for function in closures:
                assert function.variable is not None
                env[function.variable] = self._empty_closure(function)
            for function in closures:
                assert function.variable is not None
                self._fill(env[function.variable], function, env)
        self.emit(node.body, env, to)

    def _labels(self, node: Fix, functions: list[Function], env: Env, to: Destination) -> None:
        """Functions that are places in this one."""
        writer = self.writer
        inner: list[Env] = []
        for function in functions:
            params = function.code.clauses[0].params
            block = writer.block("loop" if function.loops else "label")
            self.labels[function] = Label(block, function)
            inner.append({**env, **dict(zip(params, writer.awaited(block, len(params)), strict=True))})
        before = self.polled
        self.emit(node.body, env, to)
        waiting = list(zip(functions, inner, strict=True))
        while waiting:  # a function that nobody goes to is not written
            ready = next((w for w in waiting if self.labels[w[0]].block.reached), None)
            if ready is None:
                break
            waiting.remove(ready)
            function, env_inside = ready
            writer.start(self.labels[function].block)
            self.polled = before
            if function.loops:
                writer.run("poll_interrupt", "ptr %ctx", function.code.place)
            for variable in function.code.clauses[0].params:
                if variable.assigned:
                    env_inside[variable] = self.boxed(env_inside[variable])
            self.emit(function.code.clauses[0].body, env_inside, to)
        self.polled = before

    def _let_values(self, node: LetValues, env: Env, to: Destination) -> None:
        inner = dict(env)
        variables = list(node.variables)
        if node.rest is None and len(variables) != 0:
            found = self.values(node.value, env, len(variables)) if len(variables) > 1 else [self._one(node.value, env)]
        else:
            found = self._listed(node, env)
            variables += [node.rest] if node.rest is not None else []
        for variable, value in zip(variables, found, strict=True):
            inner[variable] = self.boxed(value) if variable.assigned else value
        self.emit(node.body, inner, to)

    def _one(self, node: Node, env: Env) -> Val:
        """A value that must not be several."""
        value = self.value(node, env)
        writer = self.writer
        bad, good = writer.block(), writer.block()
        writer.branch(writer.let(f"icmp eq i64 {value.tag}, {self.tags['VALUES']}"), bad, good, 1)
        writer.start(bad)
        writer.run("esk_wrong_values", f"ptr %ctx, i64 1, i64 {value.tag}, i64 {value.bits}", node.place)
        writer.close("unreachable")
        writer.start(good)
        return value

    def _listed(self, node: LetValues, env: Env) -> list[Val]:
        """Values for some variables and a list of the rest."""
        writer, wanted = self.writer, len(node.variables)
        value = self.value(node.value, env)
        direct = writer.room([self.unspecified] * max(4, wanted))
        count = writer.call(
            "esk_spread_values", "i64", f"ptr %ctx, i64 {value.tag}, i64 {value.bits}, ptr {direct}", node.place
        )
        compare = "uge" if node.rest is not None else "eq"
        good, bad = writer.block(), writer.block()
        writer.branch(writer.let(f"icmp {compare} i64 {count}, {wanted}"), good, bad, 0)
        writer.start(bad)
        writer.run("esk_wrong_values", f"ptr %ctx, i64 {wanted}, i64 {value.tag}, i64 {value.bits}", node.place)
        writer.close("unreachable")
        writer.start(good)
        layout = self.table.layout
        found = []
        for i in range(wanted):
            if i < 4:
                found.append(writer.load(writer.offset(direct, 16 * i)))
            else:
                extra = writer.let(f"load ptr, ptr {writer.offset('%ctx', layout['Context.extra'])}")
                found.append(writer.load(writer.offset(extra, 16 * (i - 4))))
        if node.rest is not None:
            arguments = f"ptr %ctx, i64 {count}, i64 {wanted}, ptr {direct}"
            found.append(writer.words(writer.call("esk_rest", "%value", arguments, node.place)))
        return found

    # ---- calls --------------------------------------------------------------------------------------------------

    def _emit_call(self, node: Call, env: Env, to: Destination) -> None:
        function = self.analysis.known(node.procedure)
        if function is not None and function.inside:
            args = [self.value(arg, env) for arg in node.args]
            self.writer.meet(self.labels[function].block, args)
            self.writer.current.closed = True
        elif isinstance(to, Return) and function is self.function and self._goes_back(node):
            assert self.again is not None
            clause, start = self.again
            args = [self.value(arg, env) for arg in node.args]
            if clause.rest is not None:
                args = [*args[: len(clause.params)], self._list(args[len(clause.params) :])]
            self._poll(False, node.place)
            self.writer.meet(start, args)
            self.writer.current.closed = True
        elif isinstance(to, Return):
            call = self._prepared(node, env, deeper=False)
            result = self.writer.let(f"musttail call tailcc %value {call}{self.writer.debug(node.place)}")
            self.writer.close(f"ret %value {result}")
        else:
            self.deliver(self._call(node, env), to, node.place)

    def _goes_back(self, node: Call) -> bool:
        """Whether a call of the function being written is of the clause being written."""
        return self.again is not None and self.function.clause(len(node.args)) is self.again[0]

    def _call(self, node: Call, env: Env) -> Val:
        function = self.analysis.known(node.procedure)
        if function is not None and function.inside:
            return self.values(node, env, 1)[0]
        call = self._prepared(node, env, deeper=True)
        return self.writer.words(self.writer.let(f"call tailcc %value {call}{self.writer.debug(node.place)}"))

    def _prepared(self, node: Call, env: Env, deeper: bool) -> str:
        """Evaluates procedure and arguments; the function and the arguments of the LLVM call."""
        function = self.analysis.known(node.procedure)
        clause = function.clause(len(node.args)) if function is not None else None
        if function is None or clause is None:
            return self._prepared_unknown(node, env, deeper)
        args = [self.value(arg, env) for arg in node.args]
        self._poll(deeper, node.place)
        wanted = len(clause.params)
        if clause.rest is not None:
            args = [*args[:wanted], self._list(args[wanted:])]
        closure = None
        if function.escapes and function.free:
            if function is self.function:
                closure = "%self"
            else:
                assert function.variable is not None
                closure = self.writer.pointer(env[function.variable])
        passed = [] if function.escapes else [env[variable] for variable in function.free]
        return f"{self.emitter.symbols[clause]}({_given(args, closure, passed)})"

    def _list(self, items: list[Val]) -> Val:
        found = Val(self.tags["NULL"], "0")
        for item in reversed(items):
            found = self.writer.words(self._inline("inline.cons", "%value", [item, found], None))
        return found

    def _prepared_unknown(self, node: Call, env: Env, deeper: bool) -> str:
        writer, layout = self.writer, self.table.layout
        procedure = self.value(node.procedure, env)
        args = [self.value(arg, env) for arg in node.args]
        self._poll(deeper, node.place)  # before context->extra is filled: a handler may call procedures
        if procedure.tag != self.tags["PROCEDURE"]:
            good, bad = writer.block(), writer.block()
            writer.branch(writer.let(f"icmp eq i64 {procedure.tag}, {self.tags['PROCEDURE']}"), good, bad, 0)
            writer.start(bad)
            writer.run("esk_not_procedure", f"ptr %ctx, i64 {procedure.tag}, i64 {procedure.bits}", node.place)
            writer.close("unreachable")
            writer.start(good)
        closure = writer.pointer(procedure)
        entry = writer.let(f"load ptr, ptr {writer.offset(closure, layout['Closure.entry'])}")
        if len(args) > 4:
            extra = writer.let(f"load ptr, ptr {writer.offset('%ctx', layout['Context.extra'])}")
            for i, value in enumerate(args[4:]):
                writer.store(value, writer.offset(extra, 16 * i))
        direct = [*args[:4], *[Val("undef", "undef")] * (4 - len(args))]
        words = ", ".join(f"i64 {word}" for value in direct for word in value)
        return f"{entry}(ptr %ctx, ptr {closure}, i64 {len(args)}, {words}, i64 undef)"

    # ---- primitives ---------------------------------------------------------------------------------------------

    def _inline(self, name: str, result: str, args: list[Val], place: Place | None) -> str:
        words = "".join(f", i64 {word}" for value in args for word in value)
        return self.writer.call(name, result, f"ptr %ctx{words}", place)

    def _test(self, node: Prim, env: Env) -> str:
        args = [self.value(arg, env) for arg in node.args]
        return self._inline(f"test.{node.name}{_mixed(node)}", "i1", args, node.place)

    def _primitive(self, node: Prim, env: Env) -> Val:
        name, count, place = node.name, len(node.args), node.place
        if self.table.test(name, count) is not None:
            bits = self.writer.let(f"zext i1 {self._test(node, env)} to i64")
            return Val(self.tags["BOOLEAN"], bits)
        args = [self.value(arg, env) for arg in node.args]
        if name == "-" and count == 1:
            return self.writer.words(self._inline("negated", "%value", args, place))
        if (name in LEFT_TO_RIGHT and count > 2) or (name in ("-", "/") and count > 2):
            found = args[0]
            for arg in args[1:]:
                found = self.writer.words(self._inline(f"inline.{name}", "%value", [found, arg], place))
            return found
        if name in ("cons*", "list"):
            last = args.pop() if name == "cons*" else Val(self.tags["NULL"], "0")
            for arg in reversed(args):
                last = self.writer.words(self._inline("inline.cons", "%value", [arg, last], place))
            return last
        if self.table.inline(name, count) is not None and (name != "%record-ref" or isinstance(node.args[2], Const)):
            return self.writer.words(self._inline(f"inline.{name}{_mixed(node)}", "%value", args, place))
        row = self.table.rows[name]
        if row.convention == "N":
            given = f"ptr %ctx, ptr {self.writer.room(args) if args else 'null'}, i64 {count}"
        else:
            given = "ptr %ctx" + "".join(f", i64 {word}" for value in args for word in value)
        return self.writer.words(self.writer.call(f"prim.{name}", "%value", given, place))


def _mixed(node: Prim) -> str:
    """Whether an operator has a small integer constant as one operand."""
    if node.name not in MIXED or len(node.args) != 2:
        return ""
    if node.name == "/" and isinstance(node.args[1], Const) and node.args[1].datum == 0:
        return ""  # an error, which the runtime raises
    small = [isinstance(a, Const) and type(a.datum) is int and abs(a.datum) < EXACT_IN_DOUBLE for a in node.args]
    return ":mixed" if small[0] != small[1] else ""
