"""Runs of compiled derivatives for tests: Python data in, Python data out, through the runtime's own `esk_fast_run`.

A vector is a Python list, a Scheme list a tuple.
"""

from __future__ import annotations

import ctypes
from typing import Any

from typed_programs import Cells, cells, interpret

from eshkol.calculus import ir, native
from eshkol.calculus.native import FastCode, Native, Where
from eshkol.llvm.linking import CodeMemory
from eshkol.runtime.scheme import Machine, Root, Value
from eshkol.runtime.scheme_table import layout

LETTERS = {"f64": "f", "i64": "i", "i1": "b", "array": "v", "cell": "l", "vector": "V", "pairs": "L"}


def descriptor(kind: ir.Type) -> str:
    inner = "" if kind.element is None else f"({descriptor(kind.element)})"
    return LETTERS[kind.kind] + inner


class Runner:
    """A machine and code for it."""

    def __init__(self) -> None:
        self.machine = Machine()
        self.code = CodeMemory()
        library = self.machine.library
        library.esk_fast_run.restype = ctypes.c_int64
        library.esk_fast_run.argtypes = (
            ctypes.c_void_p, ctypes.POINTER(FastCode), ctypes.POINTER(Value), ctypes.c_int64, ctypes.POINTER(Value),
            ctypes.POINTER(ctypes.c_bool),
        )  # fmt: skip
        self.machine.prepare()
        self.used = 0
        self.kept: list[Root] = []

    def value(self, data: Any) -> Value:
        """A Scheme value."""
        return self.values(_written(data), 1)[0]

    def values(self, text: str, count: int) -> list[Value]:
        """So many Scheme values, as they are written."""
        root = self.machine.constants(text, count)
        self.kept.append(root)
        items = (Value * count).from_address(root.get().bits + layout()["Vector.items"])
        return [Value.from_buffer_copy(item) for item in items]

    def data(self, value: Value) -> Any:
        tags, at = self.machine.tags, value.bits
        if value.tag == tags["FLONUM"]:
            return ctypes.c_double.from_buffer_copy(ctypes.c_uint64(at)).value
        if value.tag == tags["FIXNUM"]:
            return ctypes.c_int64(at).value
        if value.tag == tags["VECTOR"]:
            length = ctypes.c_int64.from_address(at + 8).value
            return [self.data(Value.from_address(at + 16 + 16 * k)) for k in range(length)]
        found = []
        while value.tag == tags["PAIR"]:
            head = (ctypes.c_uint8 * 8).from_address(value.bits)
            car, cdr = (ctypes.c_uint64 * 2).from_address(value.bits + 8)
            found.append(self.data(Value(head[1], car)))
            value = Value(head[2], cdr)
        assert value.tag == tags["NULL"], value.tag
        return tuple(found)

    def run(self, code: FastCode, values: list[Value]) -> tuple[int, Any]:
        """The status and the result."""
        result = Value()
        args = (Value * max(1, len(values)))(*values)
        whole = ctypes.byref(ctypes.c_bool(False))
        run = self.machine.library.esk_fast_run
        status = run(self.machine.context, ctypes.byref(code), args, len(values), result, whole)
        self.used = code.used
        return status, self.data(result) if status == native.OK else None

    def described(self, made: Native, program: ir.TypedProgram, result: str = "f", limit: int = 0) -> FastCode:
        wheres = [
            Where([(native.ARGUMENT, k)], descriptor(p.type), mark)
            for k, (p, mark) in enumerate(zip(program.main.params, program.active, strict=True))
        ]
        return made.describe(wheres, result, limit)

    def gradient(
        self, program: ir.TypedProgram, args: list[Any], checkpoint: bool = False, limit: int = 0
    ) -> tuple[Any, ...]:
        made = native.compile_gradient(program, self.code, checkpoint=checkpoint)
        status, found = self.run(self.described(made, program, limit=limit), [self.value(a) for a in args])
        assert status == native.OK, status
        return tuple(found)

    def tangents(self, program: ir.TypedProgram, args: list[Any], lanes: int, result: str = "f") -> tuple[Any, ...]:
        made = native.compile_forward(program, lanes, self.code)
        status, found = self.run(self.described(made, program, result), [self.value(a) for a in args])
        assert status == native.OK, status
        return tuple(found)


def _written(data: Any) -> str:
    if isinstance(data, list):
        return f"#({' '.join(map(_written, data))})"
    if isinstance(data, tuple):
        return f"({' '.join(map(_written, data))})"
    return ("#t" if data else "#f") if isinstance(data, bool) else repr(data)


# ---- the oracle ------------------------------------------------------------------------------------------------------


def _inside(data: Any, step: Any) -> Any:
    """Data for the interpreter; `step` changes every number."""
    if isinstance(data, list):
        return [_inside(d, step) for d in data]
    if isinstance(data, tuple):
        return cells([_inside(d, step) for d in data])
    return step(data) if isinstance(data, float) else data


def value(program: ir.TypedProgram, args: list[Any]) -> list[Any]:
    """What the interpreter says."""
    return [outside(v) for v in interpret(program, [_inside(a, lambda x: x) for a in args])]


def outside(data: Any) -> Any:
    if isinstance(data, list):
        return [outside(d) for d in data]
    if data is None or isinstance(data, Cells):
        found = []
        while data is not None:
            found.append(outside(data.value))
            data = data.rest
        return tuple(found)
    return data


def complex_step(program: ir.TypedProgram, args: list[Any]) -> list[list[Any]]:
    """For each number in the variables, the derivatives of all results by it."""
    found = []
    for k in range(leaves([a for a, mark in zip(args, program.active, strict=True) if mark])):
        count = -1

        def step(x: float, k: int = k) -> complex | float:
            nonlocal count
            count += 1
            return x + 1e-40j if count == k else x

        given = [_inside(a, step if mark else lambda x: x) for a, mark in zip(args, program.active, strict=True)]
        found.append([_imaginary(outside(v)) for v in interpret(program, given)])
    return found


def _imaginary(data: Any) -> Any:
    if isinstance(data, list | tuple):
        return type(data)(map(_imaginary, data))
    return data.imag / 1e-40 if isinstance(data, complex) else 0.0


def leaves(data: Any) -> int:
    return sum(map(leaves, data)) if isinstance(data, list | tuple) else int(isinstance(data, float))


def flat(data: Any) -> list[float]:
    return [x for d in data for x in flat(d)] if isinstance(data, list | tuple) else [data]
