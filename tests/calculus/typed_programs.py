"""Typed programs for tests: read from their text form, and run by an interpreter, which is the oracle.

The interpreter works on any numbers that Python's operators take; with complex ones it gives derivatives by the complex
step, for programs of analytic functions.
"""

from __future__ import annotations

import cmath
import math
import re
from typing import Any

from eshkol.calculus import ir
from eshkol.calculus.ir import (
    F64,
    I1,
    I64,
    NULL,
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
)  # fmt: skip


def parse(text: str) -> TypedProgram:
    """A program from the text that `ir.text` writes; comments begin with a semicolon."""
    lines = [line for line in (re.sub(";.*", "", raw).rstrip() for raw in text.splitlines()) if line.strip()]
    functions: dict[str, TypedFunction] = {}
    for line in lines:
        if head := re.match(r"function (\S+) -> ?(.*)", line.strip()):
            functions[head[1]] = TypedFunction(head[1], [], [_type(t) for t in head[2].split(",") if t.strip()])
    active: list[bool] = []
    current: list[str] = []
    chunks: list[tuple[TypedFunction, list[str]]] = []
    for line in lines:
        if head := re.match(r"function (\S+)", line.strip()):
            current = []
            chunks.append((functions[head[1]], current))
        else:
            current.append(line.strip())
    for function, body in chunks:
        marks = _Reader(function, functions).read(body)
        if function is chunks[0][0]:
            active = marks
    program = TypedProgram([f for f, _ in chunks], active)
    ir.verify(program)
    return program


def _type(text: str) -> Type:
    text = text.strip()
    if inner := re.match(r"(\w+)\((.*)\)$", text):
        return Type(inner[1], _type(inner[2]))
    return {"f64": F64, "i64": I64, "i1": I1, "null": NULL}[text]


class _Reader:
    def __init__(self, function: TypedFunction, functions: dict[str, TypedFunction]) -> None:
        self.function, self.functions = function, functions
        self.values: dict[str, TypedValue] = {}

    def read(self, lines: list[str]) -> list[bool]:
        blocks: dict[str, Block] = {}
        marks: list[bool] = []
        for line in lines:
            if head := re.match(r"([\w.]+)\((.*)\):$", line):
                block = blocks[head[1]] = Block(head[1])
                self.function.blocks.append(block)
                for part in head[2].split(", ") if head[2] else []:
                    name, kind = part.split(":")
                    if block is self.function.blocks[0]:
                        marks.append("varies" in kind)
                    block.params.append(self._new(name, kind.replace("varies", "")))
        block = None
        ends: list[tuple[Block, str]] = []
        for line in lines:
            if head := re.match(r"([\w.]+)\(.*\):$", line):
                block = blocks[head[1]]
            elif line.split()[0] in ("jump", "branch", "return", "fail"):
                assert block is not None
                ends.append((block, line))
            else:
                assert block is not None
                block.body.append(self._instruction(line))
        for block, line in ends:
            word, _, rest = line.partition(" ")
            jumps = [
                Jump(blocks[name], [self.values[a.strip()] for a in args.split(",") if a.strip()])
                for name, args in re.findall(r"([\w.]+)\(([^)]*)\)", rest)
            ]
            if word == "jump":
                block.end = jumps[0]
            elif word == "branch":
                block.end = Branch(self.values[rest.split()[0]], *jumps)
            elif word == "return":
                block.end = Return([self.values[a.strip()] for a in rest.split(",") if a.strip()])
            else:
                block.end = Fail()
        return marks

    def _new(self, name: str, kind: str) -> TypedValue:
        found = self.values[name.strip()] = TypedValue(_type(kind))
        return found

    def _instruction(self, line: str) -> Instruction:
        left, _, right = line.rpartition(" = ") if " = " in line else ("", "", line)
        words = right.replace(",", " ").split()
        operation, rest = words[0], words[1:]
        operands = [self.values[w] for w in rest if w.startswith("%")]
        others = [w for w in rest if not w.startswith("%")]
        made = Instruction(operation, operands, [])
        if operation == "constant":
            made.literal = {"True": True, "False": False, "None": None}.get(others[0]) if others else None
            if others and others[0] not in ("True", "False", "None"):
                made.literal = float(others[0]) if ": f64" in left else int(others[0])
        elif operation == "call":
            made.function = self.functions[others[0]]
        elif others:
            made.name = others[0]
        if left:
            made.results = [self._new(*part.split(":")) for part in left.split(", ")]
        return made


# ---- the interpreter -------------------------------------------------------------------------------------------------


class Failed(Exception):
    """The program gave up."""


class Cells:
    def __init__(self, value: Any, rest: Any) -> None:
        self.value, self.rest = value, rest


def cells(items: list[Any]) -> Cells | None:
    found = None
    for item in reversed(items):
        found = Cells(item, found)
    return found


def _real(x: Any) -> Any:
    return x.real if isinstance(x, complex) else x


def _abs(x: Any) -> Any:
    return x if _real(x) > 0 else -x


FUNCTIONS: dict[tuple[str, int], Any] = {
    ("+", 2): lambda x, y: x + y, ("-", 2): lambda x, y: x - y, ("*", 2): lambda x, y: x * y,
    ("/", 2): lambda x, y: x / y, ("-", 1): lambda x: -x, ("square", 1): lambda x: x * x, ("abs", 1): _abs,
    ("max", 2): lambda x, y: y if _real(y) > _real(x) else x, ("min", 2): lambda x, y: y if _real(y) < _real(x) else x,
    ("expt", 2): lambda x, y: x**y, ("atan", 1): lambda x: _of("atan", x),
    ("floor", 1): lambda x: math.floor(_real(x)),
}  # fmt: skip


def _of(name: str, x: Any) -> Any:
    return getattr(cmath if isinstance(x, complex) else math, name)(x)


def interpret(program: TypedProgram, args: list[Any], steps: int = 1_000_000) -> list[Any]:
    """What a program returns. Arrays are lists; constant lists are tuples (head, rest) or None."""
    return _run(program.main, args, [steps])


def _run(function: TypedFunction, args: list[Any], steps: list[int]) -> list[Any]:
    values: dict[TypedValue, Any] = dict(zip(function.params, args, strict=True))
    block = function.blocks[0]
    while True:
        for item in block.body:
            steps[0] -= 1
            if steps[0] < 0:
                raise Failed("too long")
            found = _step(item, [values[v] for v in item.operands], steps)
            values.update(zip(item.results, found, strict=True))
        match block.end:
            case Return(values=given):
                return [values[v] for v in given]
            case Fail():
                raise Failed("fail")
            case Branch(condition=condition, yes=yes, no=no):
                jump = yes if values[condition] else no
            case Jump() as jump:
                pass
        passed = [values[v] for v in jump.args]
        block = jump.target
        values.update(zip(block.params, passed, strict=True))


COMPARE: dict[str, Any] = {
    "eq": lambda x, y: x == y, "lt": lambda x, y: x < y, "le": lambda x, y: x <= y, "gt": lambda x, y: x > y,
    "ge": lambda x, y: x >= y,
}  # fmt: skip


def _step(item: Instruction, a: list[Any], steps: list[int]) -> list[Any]:
    def need(condition: bool) -> None:
        if not condition:
            raise Failed(item.operation)

    match item.operation:
        case "constant":
            return [item.literal]
        case "math":
            made = FUNCTIONS.get((item.name, len(a)))
            return [made(*a) if made else _of(item.name, *a)]
        case "compare" | "icompare":
            return [COMPARE[item.name](_real(a[0]), _real(a[1]))]
        case "not":
            return [not a[0]]
        case "iadd" | "isub" | "imul":
            found = {"iadd": a[0] + a[1], "isub": a[0] - a[1], "imul": a[0] * a[1]}[item.operation]
            need(-(1 << 63) <= found < 1 << 63)
            return [found]
        case "quotient" | "remainder" | "modulo":
            need(a[1] > 0)
            whole = abs(a[0]) // a[1] * (1 if a[0] >= 0 else -1)
            return [{"quotient": whole, "remainder": a[0] - whole * a[1], "modulo": a[0] % a[1]}[item.operation]]
        case "itof":
            return [float(a[0])]
        case "ftoi":
            need(_real(a[0]) == int(_real(a[0])))
            return [int(_real(a[0]))]
        case "vector_length" | "array_length":
            return [len(a[0])]
        case "vector_get" | "array_get":
            need(0 <= a[1] < len(a[0]))
            return [a[0][a[1]]]
        case "array_new":
            need(a[0] >= 0)
            return [[a[1]] * a[0]]
        case "array_set":
            need(0 <= a[1] < len(a[0]))
            a[0][a[1]] = a[2]
            return []
        case "cell_new":
            return [Cells(a[0], a[1])]
        case "cell_value" | "cell_next" | "pairs_car" | "pairs_cdr":
            need(a[0] is not None)
            return [a[0].value if item.operation in ("cell_value", "pairs_car") else a[0].rest]
        case "memory_mark":
            return [0]
        case "memory_release":
            return []
        case "is_null":
            return [a[0] is None]
        case "call":
            assert item.function is not None
            return _run(item.function, a, steps)
    raise AssertionError(item.operation)
