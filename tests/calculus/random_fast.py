"""Random typed programs, with random arguments: arithmetic, branches, loops in loops, arrays, lists, recursion.

Numbers stay of ordinary size, so that a derivative means something; every function used is analytic or has its corners
where no random number falls.
"""

from __future__ import annotations

import random
from typing import Any

from eshkol.calculus import ir
from eshkol.calculus.ir import (
    F64,
    I1,
    I64,
    NULL,
    Block,
    Branch,
    Instruction,
    Jump,
    Return,
    Type,
    TypedFunction,
    TypedProgram,
    TypedValue,
)

ARRAY, LIST = ir.array(F64), ir.cell(F64)


class Scope:
    """The values that may be used at a place."""

    def __init__(self, other: Scope | None = None) -> None:
        self.values: dict[Type, list[TypedValue]] = (
            {} if other is None else {t: list(v) for t, v in other.values.items()}
        )

    def add(self, *values: TypedValue) -> None:
        for value in values:
            self.values.setdefault(value.type, []).append(value)

    def of(self, kind: Type) -> list[TypedValue]:
        return self.values.get(kind, [])


class Maker:
    """Writes one random function."""

    def __init__(self, rng: random.Random, function: TypedFunction, helpers: list[TypedFunction], size: int) -> None:
        self.rng, self.function, self.helpers = rng, function, helpers
        self.left = size
        self.block = function.blocks[0]
        self.sets = rng.random() < 0.6

    def start(self, name: str, params: list[TypedValue] | None = None) -> Block:
        block = Block(f"{name}{len(self.function.blocks)}", params or [])
        self.function.blocks.append(block)
        return block

    def do(
        self, operation: str, *operands: TypedValue, kind: Type = F64, name: str = "", literal: Any = None
    ) -> TypedValue:
        result = TypedValue(kind)
        self.block.body.append(Instruction(operation, list(operands), [result], name, literal))
        return result

    def math(self, name: str, *operands: TypedValue) -> TypedValue:
        return self.do("math", *operands, name=name)

    def number(self, x: float) -> TypedValue:
        return self.do("constant", literal=x)

    def integer(self, n: int) -> TypedValue:
        return self.do("constant", kind=I64, literal=n)

    # ---- numbers ------------------------------------------------------------------------------------------------

    def some(self, scope: Scope) -> TypedValue:
        found = scope.of(F64)
        if not found or self.rng.random() < 0.1:
            return self.number(round(self.rng.uniform(-2, 2), 2))
        return self.rng.choice(found[-6:] if self.rng.random() < 0.7 else found)

    def tame(self, x: TypedValue) -> TypedValue:
        """A number of ordinary size."""
        rng = self.rng
        match rng.randrange(5):
            case 0:
                return self.math("sin", x)
            case 1:
                return self.math("atan", x)
            case 2:
                one = self.math("+", self.number(1.5), self.math("square", x))
                return self.math("/", x, one)
            case 3:
                return self.math("*", self.number(0.25), x)
        return self.math("cos", x)

    def arithmetic(self, scope: Scope) -> None:
        rng = self.rng
        x, y = self.some(scope), self.some(scope)
        match rng.randrange(13):
            case 0 | 1 | 2:
                scope.add(self.math(rng.choice("+-"), x, y))
            case 3 | 4 | 5:
                scope.add(self.math("*", self.tame(x), y))
            case 6:
                scope.add(self.tame(x))
            case 7:
                scope.add(self.math("exp", self.math("sin", x)))
            case 8:
                scope.add(self.math("log", self.math("+", self.number(1.5), self.math("cos", x))))
            case 9:
                scope.add(self.math("sqrt", self.math("+", self.number(0.5), self.math("square", self.tame(x)))))
            case 10:
                base = self.math("+", self.number(1.5), self.math("sin", x))
                scope.add(self.math("expt", base, self.math("sin", y)))
            case 11:
                scope.add(self.math(rng.choice(["max", "min"]), x, y))
            case 12:
                scope.add(self.math(rng.choice(["-", "square"]), self.tame(x)))

    # ---- control --------------------------------------------------------------------------------------------------

    def statements(self, scope: Scope, depth: int) -> None:
        for _ in range(self.rng.randint(1, 5)):
            if self.left <= 0:
                return
            self.left -= 1
            kind = self.rng.random()
            if depth < 3 and kind < 0.12:
                self.branch(scope, depth)
            elif depth < 3 and kind < 0.24:
                self.loop(scope, depth)
            elif kind < 0.38:
                self.memory(scope)
            elif kind < 0.45 and self.helpers:
                self.call(scope)
            else:
                self.arithmetic(scope)

    def condition(self, scope: Scope) -> TypedValue:
        rng = self.rng
        if scope.of(I64) and rng.random() < 0.3:
            two = self.integer(2)
            rest = self.do("modulo", rng.choice(scope.of(I64)), two, kind=I64)
            return self.do("icompare", rest, self.integer(0), kind=I1, name="eq")
        return self.do("compare", self.some(scope), self.some(scope), kind=I1, name=rng.choice(["lt", "gt"]))

    def branch(self, scope: Scope, depth: int) -> None:
        rng = self.rng
        test = self.condition(scope)
        if rng.random() < 0.2:
            test = self.do("not", test, kind=I1)
        yes, no = self.start("yes"), self.start("no")
        self.block.end = Branch(test, Jump(yes, []), Jump(no, []))
        count = rng.randint(1, 2)
        joined = [TypedValue(F64) for _ in range(count)]
        join = self.start("join", joined)
        for side in (yes, no):
            self.block = side
            inner = Scope(scope)
            if rng.random() < 0.8:
                self.statements(inner, depth + 1)
            self.block.end = Jump(join, [self.some(inner) for _ in range(count)])
        self.block = join
        scope.add(*joined)

    def loop(self, scope: Scope, depth: int) -> None:
        rng = self.rng
        turns = rng.randint(0, 4)
        count, step = rng.randint(1, 3), rng.choice([1, 1, 2, -1])
        first = self.integer(rng.randint(-2, 2))
        counted = rng.random() < 0.75
        listed = bool(scope.of(LIST)) and rng.random() < 0.4
        starts = [self.some(scope) for _ in range(count)]
        params = [TypedValue(F64) for _ in range(count)]
        walk = [TypedValue(LIST)] if listed else []
        walked = [rng.choice(scope.of(LIST))] if listed else []
        fuel = self.integer(turns)
        zero = self.integer(0)
        head = self.start("head", [i := TypedValue(I64), rest := TypedValue(I64), *params, *walk])
        self.block.end = Jump(head, [first, fuel, *starts, *walked])
        self.block = head
        inner = Scope(scope)
        inner.add(*params, *([i] if counted else []))
        if rng.random() < 0.3:
            self.arithmetic(inner)
        test = self.do("icompare", rest, zero, kind=I1, name="gt")
        body, done = self.start("body"), self.start("done")
        self.block.end = Branch(test, Jump(body, []), Jump(done, []))
        outs: list[Block] = [done]
        self.block = body
        if listed:
            empty = self.do("is_null", walk[0], kind=I1)
            out, more = self.start("out"), self.start("more")
            self.block.end = Branch(empty, Jump(out, []), Jump(more, []))
            outs.append(out)
            self.block = more
            inner.add(self.do("cell_value", walk[0]))
        self.statements(inner, depth + 1)
        if rng.random() < 0.25:
            test = self.condition(inner)
            out, more = self.start("out"), self.start("more")
            self.block.end = Branch(test, Jump(out, []), Jump(more, []))
            outs.append(out)
            self.block = more
        following = [self.tame(self.some(inner)) if rng.random() < 0.7 else self.some(inner) for _ in range(count)]
        if not counted:
            i2 = self.do("imul", i, self.integer(1), kind=I64)
        else:
            i2 = self.do("iadd", i, self.integer(step), kind=I64)
        onward = [self.do("cell_next", walk[0], kind=LIST)] if listed else []
        left = self.do("isub", rest, self.integer(1), kind=I64)
        if rng.random() < 0.3:  # the fuel is halved: no counter
            left = self.do("quotient", rest, self.integer(2), kind=I64)
        self.block.end = Jump(head, [i2, left, *following, *onward])
        result = TypedValue(F64)
        after = self.start("after", [result])
        for out in outs:
            self.block = out
            self.block.end = Jump(after, [rng.choice(params)])
        self.block = after
        scope.add(result, params[0])
        scope.add(i)

    def memory(self, scope: Scope) -> None:
        rng = self.rng
        arrays, lists = scope.of(ARRAY), scope.of(LIST)
        match rng.randrange(6):
            case 0:
                scope.add(self.do("array_new", self.integer(rng.randint(1, 4)), self.some(scope), kind=ARRAY))
            case 1 | 2 if arrays:
                array = rng.choice(arrays)
                scope.add(self.do("array_get", array, self.index(scope, array)))
            case 3 if arrays and self.sets:
                array = rng.choice(arrays)
                index = self.index(scope, array)
                self.block.body.append(Instruction("array_set", [array, index, self.tame(self.some(scope))], []))
            case 4:
                rest = rng.choice(lists) if lists else self.do("constant", kind=NULL)
                scope.add(self.do("cell_new", self.some(scope), rest, kind=LIST))
            case _:
                self.arithmetic(scope)

    def index(self, scope: Scope, array: TypedValue) -> TypedValue:
        length = self.do("array_length", array, kind=I64)
        n = self.rng.choice(scope.of(I64)) if scope.of(I64) and self.rng.random() < 0.7 else self.integer(1)
        return self.do("modulo", n, length, kind=I64)

    def call(self, scope: Scope) -> None:
        helper = self.rng.choice(self.helpers)
        results = [TypedValue(kind) for kind in helper.results]
        operands = [self.integer(self.rng.randint(0, 3)) if p.type == I64 else self.some(scope) for p in helper.params]
        self.block.body.append(Instruction("call", operands, results, function=helper))
        scope.add(*results)


def _helper(rng: random.Random, number: int) -> TypedFunction:
    """A function (n x y …) that calls itself with n - 1, before and behind other things."""
    params = [TypedValue(I64), *(TypedValue(F64) for _ in range(rng.randint(1, 2)))]
    function = TypedFunction(f"helper{number}", [Block("first", params)], [F64] * rng.randint(1, 2))
    maker = Maker(rng, function, [], 12)
    test = maker.do("icompare", params[0], maker.integer(0), kind=I1, name="le")
    base, more = maker.start("base"), maker.start("more")
    maker.block.end = Branch(test, Jump(base, []), Jump(more, []))
    scope = Scope()
    scope.add(*params)
    for block in (base, more):
        maker.block = block
        inner = Scope(scope)
        maker.left = 6
        maker.statements(inner, 1)
        if block is more:
            fewer = maker.do("isub", params[0], maker.integer(1), kind=I64)
            results = [TypedValue(F64) for _ in function.results]
            args = [maker.tame(maker.some(inner)) for _ in params[1:]]
            maker.block.body.append(Instruction("call", [fewer, *args], results, function=function))
            inner.add(*results)
            maker.left = 3
            maker.statements(inner, 1)
        maker.block.end = Return([maker.tame(maker.some(inner)) for _ in function.results])
    return function


def program(seed: int, results: int = 1) -> tuple[TypedProgram, list[Any]]:
    """A program and arguments for it."""
    rng = random.Random(seed)
    helpers = [_helper(rng, k) for k in range(rng.randint(0, 2))]
    kinds = [F64, *(rng.choice([F64, ARRAY, LIST, I64]) for _ in range(rng.randint(0, 3)))]
    params = [TypedValue(kind) for kind in kinds]
    main = TypedFunction("main", [Block("main", params)], [F64] * results)
    maker = Maker(rng, main, helpers, rng.randint(4, 40))
    scope = Scope()
    scope.add(*params)
    while maker.left > 0:
        maker.statements(scope, 0)
    totals = []
    for _ in range(results):
        total = maker.some(scope)
        for value in rng.sample(scope.of(F64), min(4, len(scope.of(F64)))):
            total = maker.math("+", total, value)
        totals.append(total)
    maker.block.end = Return(totals)
    made = TypedProgram(
        [main, *helpers], [kind != I64 and (k == 0 or rng.random() < 0.8) for k, kind in enumerate(kinds)]
    )
    ir.verify(made)
    return made, [_argument(rng, kind) for kind in kinds]


def _argument(rng: random.Random, kind: Type) -> Any:
    if kind == I64:
        return rng.randint(-3, 3)
    if kind == F64:
        return rng.uniform(-2, 2)
    items = [rng.uniform(-2, 2) for _ in range(rng.randint(1, 4))]
    return items if kind == ARRAY else tuple(items)
