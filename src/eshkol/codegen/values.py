"""Values in registers: constants, variables, closures and primitives, as LLVM instructions.

The part of writing a function that needs no control flow of its own; `body.py` builds on it.
"""

from __future__ import annotations

import struct
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

from eshkol.codegen.arithmetic import COMPARISONS, MIXED
from eshkol.codegen.blocks import FunctionWriter, Val
from eshkol.codegen.functions import LambdaFunction
from eshkol.codegen.kinds import Kind
from eshkol.codegen.nodes import Prim
from eshkol.codegen.operators import Operators
from eshkol.codegen.shared import Shared
from eshkol.codegen.simplify import MANY_ARGUMENTS
from eshkol.lang import core, datum
from eshkol.lang.core import Const, Node, Variable
from eshkol.lang.source import Place

Env = dict[Variable, Val]
EXACT_IN_DOUBLE = 1 << 53
LEFT_TO_RIGHT = ("+", "-", "*", "/")  # operators of any number of arguments


def lies_in_memory(constant: Any) -> bool:
    """Whether a constant is an object of the heap; others are written into the code."""
    kind = type(constant)
    if kind is int:
        return not -(1 << 63) <= constant < 1 << 63
    if kind is datum.List:
        return bool(constant.items)
    return kind not in (bool, float, datum.Char, datum.Special)


class ValueWriter(ABC):
    """Writes values into a function."""

    def __init__(self, shared: Shared, function: LambdaFunction, name: str | None = None) -> None:
        self.shared = shared
        self.module = shared.module
        self.table = shared.module.table
        self.analysis = shared.analysis
        self.function = function
        self.tags = shared.tags
        code = function.code
        self.writer = FunctionWriter(self.module, name or code.name or "lambda", code.place)
        self.inferred = shared.inferred
        self.operators = None if shared.inferred is None else Operators(self.writer, shared.inferred.kinds)
        self.unspecified = Val(self.tags["SPECIAL"], "0")

    @abstractmethod
    def value(self, node: Node, env: Env) -> Val:
        """An expression's value, in registers."""

    # ---- what is known ------------------------------------------------------------------------------------------

    def tagged(self, node: Node, value: Val) -> Val:
        """What an expression gives, with its tag as a literal where that is known."""
        kind = None if self.inferred is None else self.inferred.values.get(node)
        return value if kind is None else self._with(kind, value)

    def bound(self, variable: Variable, value: Val) -> Val:
        """A variable's value likewise."""
        return value if self.inferred is None else self._with(self.inferred.kind(variable), value)

    def _with(self, kind: Kind, value: Val) -> Val:
        assert self.inferred is not None
        tag = self.inferred.kinds.single(kind)
        return value if tag is None or tag == value.tag else Val(tag, value.bits)

    # ---- constants and variables --------------------------------------------------------------------------------

    def constant(self, found: Any) -> Val:
        if lies_in_memory(found) or self.module.keeps(found):
            return self.from_memory(found)
        kind = type(found)
        if kind is bool:
            return Val(self.tags["BOOLEAN"], str(int(found)))
        if kind is int:
            return Val(self.tags["FIXNUM"], str(found))
        if kind is float:
            return Val(self.tags["FLONUM"], str(struct.unpack("<q", struct.pack("<d", found))[0]))
        if kind is datum.Char:
            return Val(self.tags["CHAR"], str(found.code))
        if kind is datum.List:
            return Val(self.tags["NULL"], "0")
        return Val(self.tags["SPECIAL"], str(self.table.layout[f"SPECIAL_{found.name.upper()}"]))

    def from_memory(self, found: Any) -> Val:
        number = self.module.constant(found)
        tag, bits = (f"getelementptr (i8, ptr @constants, i64 {16 * number + word})" for word in (0, 8))
        return Val(self.writer.load("i64", tag), self.writer.load("i64", bits))

    def variable(self, variable: Variable, env: Env, place: Place | None) -> Val:
        function = self.analysis.variables.get(variable)
        if function is not None and function.is_static:
            return self.shared.static(function)
        value = env[variable]
        if not variable.assigned:
            return value
        box = self.writer.pointer(value)
        found = self.writer.load_value(self.writer.offset(box, self.table.layout["Box.value"]))
        if variable.early:
            self._check(found, "esk_used_early", variable.name, place)
        return found

    def global_(self, cell: core.Cell, place: Place | None) -> Val:
        function = self.analysis.cells.get(cell)
        if function is not None:
            return self.shared.static(function)
        checked = not cell.primitive and (cell in self.shared.own or not cell.sealed)  # other libraries have run
        if checked and self.module.is_quick:
            words = f"ptr %ctx, ptr {self.module.cell(cell)}, ptr {self.module.cell_name(cell)}"
            return self.writer.words(self.writer.call("quick.global", "%value", words, place))
        found = self.writer.load_value(self.module.cell(cell))
        if checked:
            self._check(found, "esk_unbound", cell.name, place)
        return found

    def set_global(self, cell: core.Cell, new: Val, place: Place | None) -> None:
        symbol = self.module.cell(cell)
        if self.module.is_quick:
            words = f"ptr %ctx, ptr {symbol}, ptr {self.module.cell_name(cell)}, i64 {new.tag}, i64 {new.bits}"
            self.writer.run("quick.set", words, place)
            return
        self._check(self.writer.load_value(symbol), "esk_unbound", cell.name, place)
        self.writer.store_value(new, symbol)

    def _check(self, value: Val, complaint: str, name: str, place: Place | None) -> None:
        """That a variable has a value."""
        writer = self.writer
        undefined = self.table.layout["SPECIAL_UNDEFINED"]
        special = writer.op(f"icmp eq i64 {value.tag}, {self.tags['SPECIAL']}")
        which = writer.op(f"icmp eq i64 {value.bits}, {undefined}")
        bad, good = writer.block(), writer.block()
        writer.branch(writer.op(f"and i1 {special}, {which}"), bad, good, 1)
        writer.begin(bad)
        writer.run(complaint, f"ptr %ctx, ptr {self.module.string(name)}", place)
        writer.close("unreachable")
        writer.begin(good)

    def boxed(self, value: Val) -> Val:
        pointer = self._allocate(3, self.tags["BOX"], 0)
        self.writer.store_value(value, self.writer.offset(pointer, self.table.layout["Box.value"]))
        return Val(self.tags["BOX"], self.writer.op(f"ptrtoint ptr {pointer} to i64"))

    def _allocate(self, words: int, tag: str, count: int) -> str:
        """Memory for an object, with its first word written."""
        writer = self.writer
        if words <= self.table.layout["SMALL_WORDS"]:
            pointer = writer.call("allocate", "ptr", f"ptr %ctx, i64 {words}", None)
        else:
            pointer = writer.call("esk_allocate", "ptr", f"ptr %ctx, i64 {8 * words}, i32 {tag}", None)
        writer.store("i64", int(tag) | count << 32, pointer)
        return pointer

    # ---- closures -----------------------------------------------------------------------------------------------

    def closure(self, function: LambdaFunction, env: Env, place: Place | None) -> Val:
        if not function.free:
            return self.shared.static(function)
        value = self.empty_closure(function)
        self.fill(value, function, env)
        return value

    def empty_closure(self, function: LambdaFunction) -> Val:
        """A closure whose captured values are yet to be filled in; until then they are harmless."""
        writer, count = self.writer, len(function.free)
        layout = self.table.layout
        pointer = self._allocate(3 + 2 * count, self.tags["PROCEDURE"], count)
        writer.store("ptr", self.shared.entry_symbol(function), writer.offset(pointer, layout["Closure.entry"]))
        procedure = self.shared.procedure(function)
        writer.store("ptr", procedure, writer.offset(pointer, layout["Closure.procedure"]))
        for i in range(count):
            writer.store("i64", "0", writer.offset(pointer, layout["Closure.captured"] + 16 * i))
        return Val(self.tags["PROCEDURE"], writer.op(f"ptrtoint ptr {pointer} to i64"))

    def fill(self, closure: Val, function: LambdaFunction, env: Env) -> None:
        pointer = self.writer.pointer(closure)
        base = self.table.layout["Closure.captured"]
        for i, variable in enumerate(function.free):
            self.writer.store_value(env[variable], self.writer.offset(pointer, base + 16 * i))

    # ---- primitives ---------------------------------------------------------------------------------------------

    def inline(self, name: str, result: str, args: list[Val], place: Place | None) -> str:
        words = "".join(f", i64 {word}" for value in args for word in value)
        return self.writer.call(name, result, f"ptr %ctx{words}", place)

    def list(self, items: list[Val]) -> Val:
        found = Val(self.tags["NULL"], "0")
        for item in reversed(items):
            found = self.writer.words(self.inline("inline.cons", "%value", [item, found], None))
        return found

    def test(self, node: Prim, env: Env) -> str:
        args = [self.value(arg, env) for arg in node.args]
        known = None if self.inferred is None or len(args) != 2 else self.inferred.operands.get(node)
        if known is not None and self.operators is not None:
            one, other = zip(args, known, strict=True)
            holds = self.operators.holds(node.name, one, other)
            if holds is not None:
                return holds
            if form := self.operators.form(*known):
                return self.inline(f"test.{node.name}{form}", "i1", args, node.place)
        return self.inline(f"test.{node.name}{_mixed(node)}", "i1", args, node.place)

    def _long_list(self, node: Prim, env: Env) -> Val:
        """A list of many values, each of which joins it as soon as it is computed."""
        found = Val(self.tags["NULL"], "0")
        for arg in reversed(node.args):
            value = self.value(arg, env)
            words = f"ptr %ctx, i64 {value.tag}, i64 {value.bits}, i64 {found.tag}, i64 {found.bits}"
            found = self.writer.words(self.writer.call("prim.cons", "%value", words, node.place))
        return found

    def _is_truth(self, node: Prim) -> bool:
        """Whether a comparison gives a truth value, as it does of all numbers."""
        if self.inferred is None:
            return False
        known = self.inferred.operands.get(node)
        return known is not None and self.inferred.kinds.compared(*known) == self.inferred.kinds.boolean

    def _operated(self, node: Prim, args: Sequence[Val]) -> Val | None:
        """What arithmetic gives, by what is known of its operands."""
        known = None if self.inferred is None else self.inferred.operands.get(node)
        if known is None or self.operators is None or not args or node.name in COMPARISONS:
            return None
        if len(args) == 1:
            if node.name != "-" or known[0].tags != self.operators.kinds.fixnum:
                return None
            known, args = [self.operators.kinds.constant(0), *known], [self.constant(0), *args]
        found, kind = args[0], known[0]
        for i, (value, other) in enumerate(zip(args[1:], known[1:], strict=True)):
            made = self.operators.computed(node.name, (found, kind), (value, other))
            if made is None:
                form = self.operators.form(kind, other) if node.name in MIXED and node.name != "/" else ""
                if not form and not i and len(args) == 2:
                    return None
                made = self.writer.words(self.inline(f"inline.{node.name}{form}", "%value", [found, value], node.place))
            found, kind = made, self.operators.kinds.arithmetic(node.name, kind, other)
        return found

    def primitive(self, node: Prim, env: Env) -> Val:
        name, count, place = node.name, len(node.args), node.place
        if name == "list" and count > MANY_ARGUMENTS:
            return self._long_list(node, env)
        if name in COMPARISONS and count == 2 and not self._is_truth(node):
            args = [self.value(arg, env) for arg in node.args]
            return self.writer.words(self.inline(f"compared.{name}{_mixed(node)}", "%value", args, place))
        if self.table.test(name, count) is not None:
            bits = self.writer.op(f"zext i1 {self.test(node, env)} to i64")
            return Val(self.tags["BOOLEAN"], bits)
        args = [self.value(arg, env) for arg in node.args]
        if (found := self._operated(node, args)) is not None:
            return found
        if name == "-" and count == 1:
            return self.writer.words(self.inline("negated", "%value", args, place))
        if (name in LEFT_TO_RIGHT and count > 2) or (name in ("-", "/") and count > 2):
            found = args[0]
            for arg in args[1:]:
                found = self.writer.words(self.inline(f"inline.{name}", "%value", [found, arg], place))
            return found
        if name in ("cons*", "list"):
            last = args.pop() if name == "cons*" else Val(self.tags["NULL"], "0")
            for arg in reversed(args):
                last = self.writer.words(self.inline("inline.cons", "%value", [arg, last], place))
            return last
        if self.table.inline(name, count) is not None and (name != "%record-ref" or isinstance(node.args[2], Const)):
            return self.writer.words(self.inline(f"inline.{name}{_mixed(node)}", "%value", args, place))
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
