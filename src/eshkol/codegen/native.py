"""Compiled code as the expander sees it: values to trees and back, calls of transformers, answers to what code asks.

This is `lang.transformers.Native` on a machine of the runtime. Values are `Root`s, so that they live while Python holds
them. Syntax objects and environments are handles: native objects with a number, by which Python finds its own.
"""

from __future__ import annotations

import ctypes
import struct
from itertools import count
from typing import Any, ClassVar
from weakref import WeakSet

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
NUMBERS = count(1)  # of handles: the list of those that are released is the process's, whatever machine had them


class MachineNative(Native):
    """Values of a machine, code compiled by an engine."""

    living: ClassVar[WeakSet[MachineNative]] = WeakSet()

    def __init__(self, machine: Machine, engine: Engine, effort: int) -> None:
        self.living.add(self)
        self.machine = machine
        self.engine = engine
        self.effort = effort
        self.tags = machine.tags
        self._names = {number: name for name, number in machine.tags.items()}
        self._handles: dict[int, Any] = {}
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
        return Root(self.machine, self.engine.load(self.engine.compile(unit, self.effort, tail=True), collected=True))

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
        """A value; lists and vectors may be nested as deeply as they like."""
        machine = self.machine
        opened: list[tuple[type, Root, Any, int]] = []  # what is being filled from its end on, and what comes next
        while True:
            kind = type(tree)
            if kind is datum.List and tree.items:
                opened.append((kind, Root(machine), tree.items, len(tree.items)))
                tree = datum.List() if tree.tail is None else tree.tail
                continue
            if kind is datum.Vector and tree.items:
                last = len(tree.items) - 1
                opened.append((kind, Root(machine, machine.vector(last + 1)), tree.items, last))
                tree = tree.items[-1]
                continue
            made = self._made(tree)
            while True:
                if not opened:
                    return made
                kind, root, items, index = opened.pop()
                if kind is datum.Vector:
                    ctypes.memmove(root.get().bits + self._vector_items + 16 * index, made.address, 16)
                elif index == len(items):
                    root.set(made.get())
                else:
                    root.set(machine.library.esk_cons(machine.context, made.get(), root.get()))
                if index:
                    break
                made = root
            opened.append((kind, root, items, index - 1))
            tree = items[index - 1]

    def _made(self, tree: Tree) -> Root:
        """The value of what has no parts."""
        if type(tree) is Opaque:
            found: Root = tree.value
            return found
        if type(tree) is datum.Vector:
            return Root(self.machine, self.machine.vector(0))
        return Root(self.machine, Value(self.tags["NULL"], 0) if type(tree) is datum.List else self._atom(tree))

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
        number = next(NUMBERS)
        self._handles[number] = content
        tag = self.tags["ENVIRONMENT" if hasattr(content, "namespace") else "SYNTAX"]
        found: Value = self.machine.library.esk_handle(self.machine.context, tag, number)
        return found

    def _forget(self) -> None:
        """Let go of what no Scheme value refers to any more."""
        numbers = (ctypes.c_uint64 * RELEASED_AT_ONCE)()
        for number in numbers[: self.machine.library.esk_released(numbers, RELEASED_AT_ONCE)]:
            for native in tuple(self.living):
                native._handles.pop(number, None)

    # ---- values to trees ----------------------------------------------------------------------------------------

    def take(self, value: Root | Value) -> Tree:
        """A tree; it may be as deep as it likes, but not cyclic."""
        around: set[int] = set()  # addresses of pairs and vectors that are not complete yet
        opened: list[_Open] = []
        value = value.get() if isinstance(value, Root) else value
        while True:
            tree: Tree
            if value.tag == self.tags["PAIR"]:
                opened.append(_Open(value, around))
                value = opened[-1].first()
                continue
            if value.tag == self.tags["VECTOR"]:
                length = ctypes.c_int64.from_address(value.bits + self._vector_length).value
                items = (Value * length).from_address(value.bits + self._vector_items)
                if length:
                    opened.append(_Open(value, around, items))
                    value = Value.from_buffer_copy(items[0])
                    continue
                tree = datum.Vector([])
            else:
                tree = self._leaf(value, self._names[value.tag])
            while True:
                if not opened:
                    return tree
                following = opened[-1].add(tree, self.tags)
                if following is not None:
                    value = following
                    break
                tree = opened.pop().tree()

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


class _Open:
    """A list or a vector of which some items are trees already."""

    __slots__ = ("_around", "_at", "_seen", "_tail", "_vector", "items")

    def __init__(self, value: Value, around: set[int], vector: Any = None) -> None:
        self.items: list[Tree] = []
        self._at, self._vector, self._around = value, vector, around
        self._seen: list[int] = []
        self._tail: Tree | None = None
        self._enter(value)

    def _enter(self, value: Value) -> None:
        if value.bits in self._around:
            raise SchemeError("syntax cannot be cyclic")
        self._around.add(value.bits)
        self._seen.append(value.bits)
        self._at = value

    def first(self) -> Value:
        """The car of the pair at hand."""
        head, car, _ = (ctypes.c_uint64 * 3).from_address(self._at.bits)
        return Value(head >> 8 & 255, car)

    def add(self, tree: Tree, tags: dict[str, int]) -> Value | None:
        """One more part; the value of the next one, or None where this was the last."""
        if self._vector is not None:
            self.items.append(tree)
            count = len(self.items)
            return Value.from_buffer_copy(self._vector[count]) if count < len(self._vector) else None
        if self._at.tag != tags["PAIR"]:
            self._tail = tree
            return None
        self.items.append(tree)
        head, _, cdr = (ctypes.c_uint64 * 3).from_address(self._at.bits)
        following = Value(head >> 16 & 255, cdr)
        if following.tag == tags["NULL"]:
            return None
        if following.tag == tags["PAIR"]:
            self._enter(following)
            return self.first()
        self._at = following
        return following

    def tree(self) -> Tree:
        self._around.difference_update(self._seen)
        return datum.Vector(self.items) if self._vector is not None else datum.List(self.items, self._tail)
