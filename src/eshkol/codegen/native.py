"""Compiled code as the expander sees it: values to trees and back, calls of transformers, answers to what code asks.

This is `lang.transformers.Native` on a machine of the runtime. Values are `Root`s, so that they live while Python holds
them. Syntax objects and environments are handles: native objects with a number, by which Python finds its own.
"""

from __future__ import annotations

import ctypes
import struct
from typing import Any

from eshkol.codegen.units import Engine
from eshkol.errors import SchemeError
from eshkol.lang import datum
from eshkol.lang.core import Unit
from eshkol.lang.reader import LONGEST_INTEGER
from eshkol.lang.transformers import Native, Opaque, Tree
from eshkol.runtime.conditions import is_interrupt, message
from eshkol.runtime.scheme import Machine, Root, SchemeRaised, Value
from eshkol.runtime.scheme_table import layout

RELEASED_AT_ONCE = 1024
SIGN = 1 << 63


class MachineNative(Native):
    """Values of a machine, code compiled by an engine."""

    def __init__(self, machine: Machine, engine: Engine, effort: int) -> None:
        self.machine = machine
        self.engine = engine
        self.effort = effort
        self.tags = machine.tags
        self._names = {number: name for name, number in machine.tags.items()}
        self._handles: dict[int, Any] = {}
        self._last = 0
        layout_ = layout()
        self._vector_length, self._vector_items = layout_["Vector.length"], layout_["Vector.items"]
        self._specials = {
            layout_[f"SPECIAL_{special.name.upper()}"]: special
            for special in (datum.UNSPECIFIED, datum.EOF, datum.DEFAULT, datum.UNDEFINED)
        }

    # ---- running ------------------------------------------------------------------------------------------------

    def evaluate(self, unit: Unit) -> Root:
        return Root(self.machine, self._enter(self.thunk(unit).get(), []))

    def thunk(self, unit: Unit) -> Root:
        return Root(self.machine, self.engine.load(self.engine.compile(unit, self.effort, tail=True)))

    def call(self, procedure: Root, argument: Root) -> Root:
        return Root(self.machine, self._enter(procedure.get(), [argument.get()]))

    def _enter(self, procedure: Value, args: list[Value]) -> Value:
        try:
            return self.machine.enter(procedure, args)
        except SchemeRaised as error:
            if is_interrupt(self.machine, error.value.get()):
                raise KeyboardInterrupt from None
            raise SchemeError(message(self.machine, error.value.get())) from error

    # ---- trees to values ----------------------------------------------------------------------------------------

    def make(self, tree: Tree) -> Root:
        machine, kind = self.machine, type(tree)
        if kind is Opaque:
            found: Root = tree.value
            return found
        if kind is datum.List:
            root = self.make(datum.List()) if tree.tail is None and tree.items else None
            if not tree.items:
                return Root(machine, Value(self.tags["NULL"], 0))
            root = root or self.make(tree.tail)
            for item in reversed(tree.items):
                made = self.make(item)
                root.set(machine.library.esk_cons(machine.context, made.get(), root.get()))
            return root
        if kind is datum.Vector:
            items = [self.make(item) for item in tree.items]
            root = Root(machine, machine.vector(len(items)))
            start = root.get().bits + self._vector_items
            for i, made in enumerate(items):
                ctypes.memmove(start + 16 * i, made.address, 16)
            return root
        return Root(machine, self._atom(tree))

    def _atom(self, tree: Tree) -> Value:
        machine, kind = self.machine, type(tree)
        if kind is bool:
            return Value(self.tags["BOOLEAN"], int(tree))
        if kind is int and -SIGN <= tree < SIGN:
            return machine.fixnum(tree)
        if kind is float:
            return Value(self.tags["FLONUM"], struct.unpack("<Q", struct.pack("<d", tree))[0])
        if kind is str:
            return machine.string(tree)
        if kind is datum.Symbol:
            return machine.symbol(tree.name)
        if kind is datum.Char:
            return Value(self.tags["CHAR"], tree.code)
        if kind is datum.Special:
            return machine.special(tree.name.upper())
        if kind in (int, bytes, datum.Number, datum.Keyword):
            vector = machine.constants(datum.text(tree), 1).get()
            return Value.from_buffer_copy(Value.from_address(vector.bits + self._vector_items))
        return self._handle(tree)

    def _handle(self, content: Any) -> Value:
        self._forget()
        self._last += 1
        self._handles[self._last] = content
        tag = self.tags["ENVIRONMENT" if hasattr(content, "namespace") else "SYNTAX"]
        found: Value = self.machine.library.esk_handle(self.machine.context, tag, self._last)
        return found

    def _forget(self) -> None:
        """Let go of what no Scheme value refers to any more."""
        numbers = (ctypes.c_uint64 * RELEASED_AT_ONCE)()
        for number in numbers[: self.machine.library.esk_released(numbers, RELEASED_AT_ONCE)]:
            self._handles.pop(number, None)

    # ---- values to trees ----------------------------------------------------------------------------------------

    def take(self, value: Root | Value) -> Tree:
        return self._tree(value.get() if isinstance(value, Root) else value, set())

    def _tree(self, value: Value, around: set[int]) -> Tree:
        name = self._names[value.tag]
        if name == "PAIR":
            return self._list(value, around)
        if name == "VECTOR":
            self._enclosed(value, around)
            length = ctypes.c_int64.from_address(value.bits + self._vector_length).value
            items = (Value * length).from_address(value.bits + self._vector_items)
            tree = datum.Vector([self._tree(Value.from_buffer_copy(item), around) for item in items])
            around.discard(value.bits)
            return tree
        return self._leaf(value, name)

    def _enclosed(self, value: Value, around: set[int]) -> None:
        if value.bits in around:
            raise SchemeError("syntax cannot be cyclic")
        around.add(value.bits)

    def _list(self, value: Value, around: set[int]) -> Tree:
        items, seen = [], []
        while value.tag == self.tags["PAIR"]:
            self._enclosed(value, around)
            seen.append(value.bits)
            head, car, cdr = (ctypes.c_uint64 * 3).from_address(value.bits)
            items.append(self._tree(Value(head >> 8 & 255, car), around))
            value = Value(head >> 16 & 255, cdr)
        tail = None if value.tag == self.tags["NULL"] else self._tree(value, around)
        around.difference_update(seen)
        return datum.List(items, tail)

    def _leaf(self, value: Value, name: str) -> Tree:
        machine = self.machine
        match name:
            case "NULL":
                return datum.List()
            case "FIXNUM":
                return value.bits - (value.bits >> 63 << 64)
            case "FLONUM":
                return struct.unpack("<d", struct.pack("<Q", value.bits))[0]
            case "BOOLEAN":
                return bool(value.bits)
            case "CHAR":
                return datum.Char(value.bits)
            case "STRING":
                return machine.text(value)
            case "SYMBOL":
                return datum.Symbol(machine.symbol_name(value))
            case "KEYWORD":
                return datum.Keyword(machine.symbol_name(value))
            case "SPECIAL":
                return self._specials[value.bits]
            case "BIGNUM":
                digits = machine.written(value)
                return int(digits) if len(digits) <= LONGEST_INTEGER else datum.Number(digits)
            case "RATIONAL" | "COMPLEX":
                return datum.Number(machine.written(value))
            case "BYTEVECTOR":
                return machine.bytes(value)
            case "SYNTAX" | "ENVIRONMENT":
                return self._handles[machine.library.esk_handle_number(value)]
        return Opaque(name.lower().replace("_", " "), Root(machine, value))
