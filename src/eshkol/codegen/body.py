"""The body of a function: expressions and where their values go.

Comes in: the clause of a lambda, or the forms of a unit. Goes out: one LLVM function (two where easy cases are split
off). Code is written for a destination: the end of the function, a join that waits for values, or a test.
"""

from __future__ import annotations

from dataclasses import dataclass

from eshkol.codegen.arithmetic import COMPARISONS
from eshkol.codegen.blocks import Block, Val
from eshkol.codegen.functions import Analysis, LambdaFunction, calls_inside, recurs_once, rest_of
from eshkol.codegen.nodes import Escape, Fix, LetValues, Prim
from eshkol.codegen.passing import registers
from eshkol.codegen.primitives import QUICK_ARGUMENTS
from eshkol.codegen.shared import Shared, given, taken
from eshkol.codegen.simplify import first_of_two
from eshkol.codegen.values import Env, ValueWriter
from eshkol.lang import core
from eshkol.lang.copying import MACHINE
from eshkol.lang.core import Call, Clause, Const, Global, If, Lambda, Let, Local, Node, Seq, Variable
from eshkol.lang.source import Place

SEVERAL = frozenset(
    {"floor/", "truncate/", "exact-integer-sqrt", "%python-apply"}
)  # primitives that give several values
COMING_BACK = frozenset(f"(eshkol tensors {part})" for part in ("rows", "values", "random", "devices"))  # libraries
REST = ":rest"  # what the names of functions for the rest of another end with


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


class Body(ValueWriter):
    """The body of one LLVM function."""

    def __init__(self, shared: Shared, function: LambdaFunction, name: str | None = None) -> None:
        super().__init__(shared, function, name)
        self.writer.once = shared.split is not None and shared.split.is_quick
        self.labels: dict[LambdaFunction, Block] = {}
        self.escapes: dict[Variable, Destination] = {}
        self.again: tuple[Clause, Block] | None = None
        self.rest: tuple[Node, str, list[str]] | None = None  # what stands in a function of its own, that, its words
        self.is_deep = False  # whether it returns to itself again and again
        self.polled = 0  # on the path that is being written: 1 for interrupts, 2 for the stack too

    # ---- whole functions ----------------------------------------------------------------------------------------

    def clause(self, clause: Clause, part: str = "") -> None:
        """Write the function of a clause, or the rest of it."""
        writer, function = self.writer, self.function
        variables = [*clause.params, *([clause.rest] if clause.rest else [])]
        closure = function.escapes and bool(function.free)
        passed = [] if function.escapes else function.free
        tags, flonum = self.shared.tags_of(function, clause), self.tags["FLONUM"]
        words = taken(len(tags), tags, flonum, "%self" if closure else None)
        writer.receive(words)
        env: Env = {}
        for i, (variable, tag) in enumerate(zip([*variables, *passed], tags, strict=True)):
            bits = writer.op(f"bitcast double %a{i}d to i64") if tag == flonum else f"%a{i}p"
            env[variable] = Val(f"%a{i}t" if tag is None else tag, bits)
        if closure:
            base = self.table.layout["Closure.captured"]
            for i, variable in enumerate(function.free):
                env[variable] = self.bound(variable, writer.load_value(writer.offset("%self", base + 16 * i)))
            if function.variable is not None:
                env[function.variable] = Val(self.tags["PROCEDURE"], writer.op("ptrtoint ptr %self to i64"))
        again = self.shared.is_direct(function) and function.loops and not calls_inside(self.analysis, clause.body)
        if again:  # a call of itself is a jump back to here
            start = writer.block("again")
            awaited = writer.awaited(start, len(variables))
            writer.meet(start, [env[variable] for variable in variables])
            writer.begin(start)
            env.update((v, self.bound(v, value)) for v, value in zip(variables, awaited, strict=True))
            self.again = (clause, start)
        for variable in variables:
            if variable.assigned:
                env[variable] = self.boxed(env[variable])
        whole = writer.once or self.again is not None or any(v.assigned for v in variables)
        rest = None if whole else rest_of(clause.body)
        deep = registers().forgets and function.loops and not (writer.once or self.module.is_quick)
        deep = deep and recurs_once(self.analysis, function, clause.body)
        # the beginning is where callers stand; but where the function ends with a call of itself, that is one
        self.is_deep = deep and (rest is None or part == REST or function.ends_with_itself)
        if rest is None or not function.loops:
            self.emit(clause.body, env, RETURN)
        elif part == REST:
            self._poll(True, function.code.place)
            self.emit(rest, env, RETURN)
        else:
            self.rest = (rest, self.shared.symbols[clause][:-1] + f'{REST}"', words)
            self.emit(clause.body, env, RETURN)
            Body(self.shared, function).clause(clause, REST)
        writer.symbol = self.shared.symbols[clause][2:-1] + part
        writer.finish("noinline" if part == REST else "")

    def _poll(self, deeper: bool, place: Place | None) -> None:
        """Before a call: look whether someone interrupts and, where a frame stays behind, whether there is stack left.

        Once on every path through the function is enough.
        """
        if self.polled < (wanted := 2 if deeper else 1):
            self.writer.run("poll" if deeper else "poll_interrupt", "ptr %ctx", place)
            self.polled = wanted

    def emit_all(self, forms: list[Node], tail: bool) -> None:
        """The forms of a unit."""
        for form in forms[:-1]:
            self.effect(form, {})
        if forms and tail:
            self.emit(forms[-1], {}, RETURN)
        else:
            self.deliver(self.value(forms[-1], {}) if forms else self.unspecified, RETURN, None)

    # ---- destinations -------------------------------------------------------------------------------------------

    def deliver(self, value: Val, to: Destination, place: Place | None) -> None:
        writer = self.writer
        if isinstance(to, Return) and self.is_deep:
            self.module.called.add("returned")
            words = [registers().context, f"i64 {value.tag}", f"i64 {value.bits}"]
            writer.jump_to("@returned", words, place)
        elif isinstance(to, Return):
            writer.close(f"ret %value {writer.pair(value)}")
        elif isinstance(to, Test):
            if value.tag.isdigit() and (value.tag != self.tags["BOOLEAN"] or value.bits.isdigit()):
                writer.jump(to.no if value == (self.tags["BOOLEAN"], "0") else to.yes)
            else:
                false = self.inline("test.not", "i1", [value], place)
                writer.branch(false, to.no, to.yes)
        elif isinstance(to, Join):
            writer.meet(to.block, [value] if to.count == 1 else self._unpacked(value, to.count, place))

    def deliver_test(self, condition: str, to: Destination, place: Place | None) -> None:
        """A truth value, as an i1."""
        if isinstance(to, Test):
            self.writer.branch(condition, to.yes, to.no)
        else:
            bits = self.writer.op(f"zext i1 {condition} to i64")
            self.deliver(Val(self.tags["BOOLEAN"], bits), to, place)

    def _unpacked(self, value: Val, count: int, place: Place | None) -> list[Val]:
        """Several values out of the object that holds them."""
        if count == 0:
            return []
        writer = self.writer
        look, good, bad = writer.block(), writer.block(), writer.block()
        writer.branch(writer.op(f"icmp eq i64 {value.tag}, {self.tags['VALUES']}"), look, bad, 0)
        writer.begin(look)
        pointer = writer.pointer(value)
        found = writer.load("i32", writer.offset(pointer, 4))
        writer.branch(writer.op(f"icmp eq i32 {found}, {count}"), good, bad, 0)
        writer.begin(bad)
        writer.run("esk_wrong_values", f"ptr %ctx, i64 {count}, i64 {value.tag}, i64 {value.bits}", place)
        writer.close("unreachable")
        writer.begin(good)
        base = self.table.layout["Values.items"]
        return [writer.load_value(writer.offset(pointer, base + 16 * i)) for i in range(count)]

    def value(self, node: Node, env: Env) -> Val:
        """An expression's value, in registers."""
        simple = self._simple(node, env)
        if simple is not None:
            return simple
        return self.tagged(node, self.values(node, env, 1)[0])

    def values(self, node: Node, env: Env, count: int) -> list[Val]:
        join = Join(self.writer.block("join"), count)
        found = self.writer.awaited(join.block, count)
        self.emit(node, env, join)
        self.writer.begin(join.block)
        if found and not join.block.phis[0].incoming:  # nothing comes here
            return [Val("undef", "undef")] * count
        return found

    def effect(self, node: Node, env: Env) -> None:
        """An expression whose value nothing wants."""
        if isinstance(node, If | Seq | Let | Fix | LetValues | Escape):
            join = Join(self.writer.block("then"), 0)
            self.emit(node, env, join)
            self.writer.begin(join.block)
        else:
            self.value(node, env)

    # ---- expressions --------------------------------------------------------------------------------------------

    def _simple(self, node: Node, env: Env) -> Val | None:
        """The value of an expression that has no branches of its own."""
        found = self._straight(node, env)
        return None if found is None else self.tagged(node, found)

    def _straight(self, node: Node, env: Env) -> Val | None:
        match node:
            case Const(datum=found):
                return self.constant(found)
            case core.SyntaxConst(content=content):
                return self.from_memory(content)
            case Local(variable=variable):
                return self.variable(variable, env, node.place)
            case Global(cell=cell):
                return self.global_(cell, node.place)
            case Lambda():
                return self.closure(self.analysis.functions[node], env, node.place)
            case core.SetLocal(variable=variable, value=value):
                new = self._single(value, env)
                box = self.writer.pointer(env[variable])
                self.writer.store_value(new, self.writer.offset(box, self.table.layout["Box.value"]))
                self.writer.run("stored_at", f"ptr %ctx, ptr {box}, i64 {new.tag}", None)
                return self.unspecified
            case core.SetGlobal(cell=cell, value=value):
                self.set_global(cell, self._single(value, env), node.place)
                return self.unspecified
            case core.DefineGlobal(cell=cell, value=value):
                self.writer.store_value(self._single(value, env), self.module.cell(cell))
                return self.unspecified
            case Prim(name="%results", args=[arg]):
                return self.value(arg, env)
            case Prim(name="not", args=[If() | Seq() | Let() | Fix() | LetValues() | Prim()]):
                return None  # what is negated decides where to go on
            case Prim():
                return self.primitive(node, env)
            case Call():
                return self._call(node, env)
        return None

    def emit(self, node: Node, env: Env, to: Destination) -> None:
        """Write an expression whose value goes somewhere."""
        if self.rest is not None and node is self.rest[0]:
            self.writer.jump_to(self.rest[1], self.rest[2], node.place)
            return
        match node:
            case If(test=test, then=then, otherwise=otherwise):
                yes, no = self.writer.block("yes"), self.writer.block("no")
                self.emit(test, env, Test(yes, no))
                before = self.polled
                self.writer.begin(yes)
                self.emit(then, env, to)
                after, self.polled = self.polled, before
                self.writer.begin(no)
                self.emit(otherwise, env, to)
                self.polled = min(after, self.polled)
            case Seq(items=items):
                for item in items[:-1]:
                    self.effect(item, env)
                self.emit(items[-1], env, to)
            case Let() if isinstance(to, Test) and (first := first_of_two(node)) is not None:
                more = self.writer.block("or")
                self.emit(first[0], env, Test(to.yes, more))
                before = self.polled
                self.writer.begin(more)
                self.emit(first[1], {**env, node.variables[0]: self.constant(False)}, to)
                self.polled = before
            case Let(variables=variables, values=values, body=body):
                inner = dict(env)
                found = [self._single(value, env) for value in values]
                for variable, value in zip(variables, found, strict=True):
                    inner[variable] = self.boxed(value) if variable.assigned else value
                self.emit(body, inner, to)
            case LetValues():
                self._let_values(node, env, to)
            case Fix():
                self._fix(node, env, to)
            case Escape(variable=variable, body=body):
                self.escapes[variable], before = to, self.polled
                self.emit(body, env, to)
                self.polled = before
            case Call():
                self._emit_call(node, env, to)
            case Prim(name="values", args=args) if isinstance(to, Join) and to.count != 1 and len(args) == to.count:
                self.writer.meet(to.block, [self.value(arg, env) for arg in args])
            case Prim(name="not", args=[arg]) if isinstance(to, Test):
                self.emit(arg, env, Test(to.no, to.yes))
            case Prim(name="not", args=[If() | Seq() | Let() | Fix() | LetValues() | Prim() as arg]):
                self.emit(If(node.place, arg, Const(node.place, False), Const(node.place, True)), env, to)
            case Prim(name=name) if name in COMPARISONS and not isinstance(to, Test):
                self.deliver(self.primitive(node, env), to, node.place)
            case Prim(name=name, args=args) if name in COMPARISONS and len(args) != 2:
                words = self.primitive(node, env)
                answer = self.writer.call(
                    "esk_decides", "i64", f"ptr %ctx, i64 {words.tag}, i64 {words.bits}", node.place
                )
                self.deliver_test(self.writer.op(f"icmp ne i64 {answer}, 0"), to, node.place)
            case Prim(name=name, args=args):
                if self.table.test(name, len(args)) is None:
                    self.deliver(self.value(node, env), to, node.place)
                else:
                    self.deliver_test(self.test(node, env), to, node.place)
            case _:
                simple = self._simple(node, env)
                assert simple is not None
                self.deliver(simple, to, node.place)

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
                env[function.variable] = self.empty_closure(function)
            for function in closures:
                assert function.variable is not None
                self.fill(env[function.variable], function, env)
                if len(closures) > 1:  # those that came later may have made this one old
                    self.writer.run("written", f"ptr %ctx, ptr {self.writer.pointer(env[function.variable])}", None)
        self.emit(node.body, env, to)

    def _labels(self, node: Fix, functions: list[LambdaFunction], env: Env, to: Destination) -> None:
        """Functions that are places in this one."""
        writer = self.writer
        inner: list[Env] = []
        for function in functions:
            params = function.code.clauses[0].params
            block = writer.block("loop" if function.loops else "label")
            self.labels[function] = block
            awaited = zip(params, writer.awaited(block, len(params)), strict=True)
            inner.append({**env, **{v: self.bound(v, value) for v, value in awaited}})
        before = self.polled
        self.emit(node.body, env, to)
        waiting = list(zip(functions, inner, strict=True))
        while waiting:  # a function that nothing goes to is not written
            ready = next((w for w in waiting if self.labels[w[0]].reached), None)
            if ready is None:
                break
            waiting.remove(ready)
            function, env_inside = ready
            writer.begin(self.labels[function])
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
            inner[variable] = self.boxed(value) if variable.assigned else self.bound(variable, value)
        self.emit(node.body, inner, to)

    def _single(self, node: Node, env: Env) -> Val:
        """The value of a variable, which is one; a call may have given another number of them.

        Arguments of calls are not looked at: that costs programs which do little else a fifth of their time, where
        variables cost nothing that can be measured, and a primitive that gets several values says so.
        """
        if self.inferred is not None:
            kind = self.inferred.values.get(node)
            if kind is not None and not kind.tags & self.inferred.kinds.several:
                return self.value(node, env)
        return self._one(node, env) if may_be_several(self.analysis, node) else self.value(node, env)

    def _one(self, node: Node, env: Env) -> Val:
        """A value that must not be several."""
        value = self.value(node, env)
        writer = self.writer
        if self.module.is_quick:
            writer.run("quick.single", f"ptr %ctx, i64 {value.tag}, i64 {value.bits}", node.place)
            return value
        bad, good = writer.block(), writer.block()
        writer.branch(writer.op(f"icmp eq i64 {value.tag}, {self.tags['VALUES']}"), bad, good, 1)
        writer.begin(bad)
        writer.run("esk_wrong_values", f"ptr %ctx, i64 1, i64 {value.tag}, i64 {value.bits}", node.place)
        writer.close("unreachable")
        writer.begin(good)
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
        writer.branch(writer.op(f"icmp {compare} i64 {count}, {wanted}"), good, bad, 0)
        writer.begin(bad)
        writer.run("esk_wrong_values", f"ptr %ctx, i64 {wanted}, i64 {value.tag}, i64 {value.bits}", node.place)
        writer.close("unreachable")
        writer.begin(good)
        layout = self.table.layout
        found = []
        for i in range(wanted):
            if i < 4:
                found.append(writer.load_value(writer.offset(direct, 16 * i)))
            else:
                extra = writer.load("ptr", writer.offset("%ctx", layout["Context.extra"]))
                found.append(writer.load_value(writer.offset(extra, 16 * (i - 4))))
        if node.rest is not None:
            arguments = f"ptr %ctx, i64 {count}, i64 {wanted}, ptr {direct}"
            found.append(writer.words(writer.call("esk_rest", "%value", arguments, node.place)))
        return found

    # ---- calls --------------------------------------------------------------------------------------------------

    def _emit_call(self, node: Call, env: Env, to: Destination) -> None:
        function = self.analysis.known(node.procedure)
        if (place := self._place(node)) is not None:
            self.emit(node.args[0], env, place)
            self.writer.shut()
        elif function is not None and function.inside:
            args = [self.value(arg, env) for arg in node.args]
            self.writer.meet(self.labels[function], args)
            self.writer.shut()
        elif isinstance(to, Return) and function is self.function and self._goes_back(node):
            assert self.again is not None
            clause, start = self.again
            args = [self.value(arg, env) for arg in node.args]
            if clause.rest is not None:
                args = [*args[: len(clause.params)], self.list(args[len(clause.params) :])]
            self._poll(False, node.place)
            self.writer.meet(start, args)
            self.writer.shut()
        elif isinstance(to, Return) and not _comes_back(node):
            apart = " noinline" if self._hands_on(function) else ""
            self.writer.jump_to(*self._prepared(node, env, deeper=False), node.place, apart)
        else:
            self.deliver(self._call(node, env), to, node.place)

    def _hands_on(self, function: LambdaFunction | None) -> bool:
        """Whether a call is of what the procedure is once more, for machine numbers.

        LLVM would put it here, and what is the same in both together: then calls in there have no places.
        """
        if function is None or function.cell is None:
            return False
        return function.cell.name.endswith(MACHINE) and function.code.name == self.function.code.name

    def _place(self, node: Call) -> Destination | None:
        """Where a call goes on that is one of a continuation that is only left to."""
        return self.escapes.get(node.procedure.variable) if isinstance(node.procedure, Local) else None

    def _goes_back(self, node: Call) -> bool:
        """Whether a call of the function being written is of the clause being written."""
        return self.again is not None and self.function.clause(len(node.args)) is self.again[0]

    def _call(self, node: Call, env: Env) -> Val:
        function = self.analysis.known(node.procedure)
        if (function is not None and function.inside) or self._place(node) is not None:
            return self.values(node, env, 1)[0]
        if self.module.is_quick and self._is_looked_up(node, function) and len(node.args) <= QUICK_ARGUMENTS:
            procedure, *args = [self.value(part, env) for part in (node.procedure, *node.args)]
            self.polled = 2  # it does that itself
            return self.writer.words(self.inline(f"quick.call.{len(args)}", "%value", [procedure, *args], node.place))
        call = self.writer.passed(*self._prepared(node, env, deeper=True))
        return self.writer.words(self.writer.op(f"call tailcc %value {call}{self.writer.debug(node.place)}"))

    def _is_looked_up(self, node: Call, function: LambdaFunction | None) -> bool:
        """Whether the entry of a closure is what is called."""
        if function is None:
            return True
        return not self.shared.is_direct(function) and function.clause(len(node.args)) is not None

    def _prepared(self, node: Call, env: Env, deeper: bool) -> tuple[str, list[str]]:
        """Evaluates procedure and arguments; the function and the words of the call."""
        function = self.analysis.known(node.procedure)
        clause = function.clause(len(node.args)) if function is not None else None
        if function is None or clause is None or not self.shared.is_direct(function):
            return self._prepared_unknown(node, env, deeper)
        args = [self.value(arg, env) for arg in node.args]
        self._poll(deeper, node.place)
        wanted = len(clause.params)
        if clause.rest is not None:
            args = [*args[:wanted], self.list(args[wanted:])]
        closure = None
        if function.escapes and function.free:
            if function is self.function:
                closure = "%self"
            else:
                assert function.variable is not None
                closure = self.writer.pointer(env[function.variable])
        args += [] if function.escapes else [env[variable] for variable in function.free]
        return self.shared.symbols[clause], given(self.writer, args, self.shared.tags_of(function, clause), closure)

    def _prepared_unknown(self, node: Call, env: Env, deeper: bool) -> tuple[str, list[str]]:
        writer, layout = self.writer, self.table.layout
        procedure = self.value(node.procedure, env)
        args = [self.value(arg, env) for arg in node.args]
        function = self.analysis.known(node.procedure)
        if function is not None and function.clause(len(args)) is None:
            writer.run("esk_wrong_arity", f"ptr %ctx, ptr {writer.pointer(procedure)}, i64 {len(args)}", node.place)
        self._poll(deeper, node.place)  # before context->extra is filled: a handler may call procedures
        if procedure.tag != self.tags["PROCEDURE"]:
            good, bad = writer.block(), writer.block()
            writer.branch(writer.op(f"icmp eq i64 {procedure.tag}, {self.tags['PROCEDURE']}"), good, bad, 0)
            writer.begin(bad)
            writer.run("esk_not_procedure", f"ptr %ctx, i64 {procedure.tag}, i64 {procedure.bits}", node.place)
            writer.close("unreachable")
            writer.begin(good)
        closure = writer.pointer(procedure)
        entry = writer.load("ptr", writer.offset(closure, layout["Closure.entry"]))
        if len(args) > 4:
            extra = writer.load("ptr", writer.offset("%ctx", layout["Context.extra"]))
            for i, value in enumerate(args[4:]):
                writer.store_value(value, writer.offset(extra, 16 * i))
        direct = [*args[:4], *[Val("undef", "undef")] * (4 - len(args))]
        words = [f"i64 {word}" for value in direct for word in value]
        return entry, [registers().context, f"ptr {closure}", f"i64 {len(args)}", *words]


def _comes_back(node: Call) -> bool:
    """Whether a call in tail position is made like any other, so that an error in it is shown at its line.

    Tensor procedures call nothing that could call them again and again.
    """
    procedure = node.procedure
    return isinstance(procedure, Global) and procedure.cell.library in COMING_BACK


def may_be_several(analysis: Analysis, node: Node) -> bool:
    """Whether an expression may end with none or several values: with a call, or with a primitive that gives such.

    Loops end as their bodies do.
    """
    seen: set[LambdaFunction] = set()

    def may(node: Node) -> bool:
        match node:
            case Prim(name="values", args=args):
                return len(args) != 1
            case Prim(name=name):
                return name in SEVERAL
            case Escape():
                return True
            case Call(procedure=procedure):
                function = analysis.known(procedure)
                if function is None or not function.inside:
                    return True
                if function in seen:
                    return False
                seen.add(function)
                return may(function.code.clauses[0].body)
            case If(then=then, otherwise=otherwise):
                return may(then) or may(otherwise)
            case Seq(items=items):
                return may(items[-1])
            case Let(body=body) | LetValues(body=body) | Fix(body=body):
                return may(body)
        return False

    return may(node)
