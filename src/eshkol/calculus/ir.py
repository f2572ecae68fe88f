"""Typed numeric programs: what a procedure becomes on its way to a fast derivative.

Comes in: nothing. Goes out: the shapes that `specialize` makes, `forward` and `reverse` turn into derivatives, and
`emit` writes as LLVM. A program is functions; a function is basic blocks with parameters (static single assignment);
every value has one machine type. There are no closures, no tags and no garbage here. What cannot go on (a number that
overflows, an index out of range, a pair where a number was) *fails*: the run is given up and the dynamic path, which
knows how to say what is wrong, does it all again. So a program must have no effect but on its own memory.

Types of values:

- F64, I64, I1;
- pointers to memory of the run, which holds a derivative beside each F64: `Array` (a length and elements) and `Cell`
  (one element and the next cell, null at the end of a list);
- pointers to constant data of the Scheme heap: `Vector`, and `Pairs` (a list, null at its end). Vectors were checked
  when the run began: every element is of the type that the pointer's type says. Lists are as the program comes to them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Type:
    """A machine type; of a pointer, also what it points to."""

    kind: str  # "f64", "i64", "i1", "array", "cell", "vector", "pairs"
    element: Type | None = None
    length: int | None = None  # of pairs: how many there are, where the program knows

    @property
    def is_pointer(self) -> bool:
        return self.element is not None

    @property
    def unsized(self) -> Type:
        """The same, of any length."""
        return Type(self.kind, self.element)

    def __str__(self) -> str:
        if self.element is None:
            return self.kind
        return f"{self.kind}{'' if self.length is None else self.length}({self.element})"


F64, I64, I1 = Type("f64"), Type("i64"), Type("i1")
NULL = Type("null")  # the type of the null pointer, until it meets a list


def array(element: Type) -> Type:
    return Type("array", element)


def cell(element: Type) -> Type:
    return Type("cell", element)


def vector(element: Type) -> Type:
    return Type("vector", element)


def pairs(element: Type, length: int | None = None) -> Type:
    return Type("pairs", element, length)


# The kinds of an operation's operands ("=" for an element of the memory, "..." for any number); behind each what it
# gives, "=" again for an element. `math` has a rule's name in `Instruction.name` ("sin", "expt", …: calculus/rules.py).
OPERATIONS: dict[str, str] = {
    "constant": "",  # f64 i64 i1 null: A number, a truth value or the null pointer; `Instruction.literal`.
    "math": "f64 ...",  # f64: A function of the table of rules; the four operations are such functions, too.
    "compare": "f64 f64",  # i1: name: eq lt le gt ge; false with a NaN.
    "icompare": "i64 i64",  # i1: name: eq lt le gt ge.
    "not": "i1",  # i1: The other truth value.
    "iadd": "i64 i64",  # i64: The sum; fails where it overflows.
    "isub": "i64 i64",  # i64: The difference; fails where it overflows.
    "imul": "i64 i64",  # i64: The product; fails where it overflows.
    "quotient": "i64 i64",  # i64: Rounded towards zero; fails unless the divisor is positive.
    "remainder": "i64 i64",  # i64: With the sign of the dividend; fails unless the divisor is positive.
    "modulo": "i64 i64",  # i64: Not negative; fails unless the divisor is positive.
    "itof": "i64",  # f64: The closest double.
    "ftoi": "f64",  # i64: The same number; fails where it is no integer of 53 bits.
    "vector_length": "vector",  # i64: Of constant data.
    "vector_get": "vector i64",  # =: Of constant data; fails out of range.
    "pairs_car": "pairs",  # =: Of constant data; fails at the end, or where it is of another type.
    "pairs_cdr": "pairs",  # pairs: Of constant data; fails at the end, or where it is no list.
    "array_new": "i64 =",  # array: So many elements, all alike; fails below zero.
    "array_length": "array",  # i64
    "array_get": "array i64",  # =: Fails out of range.
    "array_set": "array i64 =",  # Fails out of range.
    "cell_new": "= cell",  # cell: A longer list; the second operand is a cell or null.
    "cell_value": "cell",  # =: Fails for null.
    "cell_next": "cell",  # cell: Fails for null.
    "is_null": "cell pairs",  # i1: Whether a list is at its end.
    "memory_mark": "",  # i64: Where the memory of the run ends.
    "memory_release": "i64",  # What was made since a mark is not used any more. (A reverse sweep keeps it.)
    "call": "...",  # ...: Call of `Instruction.function`; several results.
}

# A call that also gives the derivatives of its only result by so many first operands (`Instruction.literal`): what the
# specializer writes, and expand.py replaces, so that nothing else sees it.
GRADIENT = "gradient"


@dataclass(eq=False)
class TypedValue:
    """What is computed once: the result of an instruction, or a parameter of a block."""

    type: Type
    name: str = ""

    def __repr__(self) -> str:
        return f"%{self.name or hex(id(self))[-5:]}"


@dataclass(eq=False)
class Instruction:
    operation: str
    operands: list[TypedValue]
    results: list[TypedValue]  # one, but for array_set (none) and call (as many as the function returns)
    name: str = ""  # of math and the comparisons
    literal: float | int | bool | None = None  # of constants
    function: TypedFunction | None = None  # of calls

    @property
    def result(self) -> TypedValue:
        (found,) = self.results
        return found


@dataclass(eq=False)
class Jump:
    """Go on at a block, whose parameters become these values."""

    target: Block
    args: list[TypedValue]


@dataclass(eq=False)
class Branch:
    condition: TypedValue
    yes: Jump
    no: Jump


@dataclass(eq=False)
class Return:
    values: list[TypedValue]


@dataclass(eq=False)
class Fail:
    """Give the run up."""


Terminator = Jump | Branch | Return | Fail


@dataclass(eq=False)
class Block:
    name: str
    params: list[TypedValue] = field(default_factory=list)
    body: list[Instruction] = field(default_factory=list)
    end: Terminator = field(default_factory=Fail)

    def jumps(self) -> list[Jump]:
        match self.end:
            case Jump() as jump:
                return [jump]
            case Branch(yes=yes, no=no):
                return [yes, no]
        return []


@dataclass(eq=False)
class TypedFunction:
    """Begins at its first block, whose parameters are its own and which nothing jumps to."""

    name: str
    blocks: list[Block] = field(default_factory=list)
    results: list[Type] = field(default_factory=list)

    @property
    def params(self) -> list[TypedValue]:
        return self.blocks[0].params

    def instructions(self) -> Iterator[Instruction]:
        for block in self.blocks:
            yield from block.body


@dataclass(eq=False)
class TypedProgram:
    """Functions, the first of which is the one to differentiate.

    `active` says which of its parameters are variables (F64, Array or Cell); the others are constants.
    """

    functions: list[TypedFunction]
    active: list[bool]

    @property
    def main(self) -> TypedFunction:
        return self.functions[0]


def predecessors(function: TypedFunction) -> dict[Block, list[tuple[Block, Jump]]]:
    """Who jumps to each block, in a fixed order."""
    found: dict[Block, list[tuple[Block, Jump]]] = {block: [] for block in function.blocks}
    for block in function.blocks:
        for jump in block.jumps():
            found[jump.target].append((block, jump))
    return found


# ---- text: for people, dumps and tests -------------------------------------------------------------------------------


def text(program: TypedProgram) -> str:
    """A program as text."""
    return "\n\n".join(
        _function_text(function, program if i == 0 else None) for i, function in enumerate(program.functions)
    )


def _function_text(function: TypedFunction, program: TypedProgram | None) -> str:
    names: dict[TypedValue, str] = {}

    def name(value: TypedValue) -> str:
        return names.setdefault(value, f"%{len(names)}{'.' + value.name if value.name else ''}")

    def jump(to: Jump) -> str:
        return f"{to.target.name}({', '.join(map(name, to.args))})"

    lines = [f"function {function.name} -> {', '.join(map(str, function.results))}"]
    for index, block in enumerate(function.blocks):
        marks = program.active if program is not None and index == 0 else [False] * len(block.params)
        params = [f"{name(p)}: {p.type}{' varies' if m else ''}" for p, m in zip(block.params, marks, strict=True)]
        lines.append(f"{block.name}({', '.join(params)}):")
        for item in block.body:
            left = f"{', '.join(f'{name(r)}: {r.type}' for r in item.results)} = " if item.results else ""
            words = [item.operation, item.name, item.function.name if item.function else ""]
            words += [] if item.literal is None else [repr(item.literal)]
            lines.append(f"  {left}{' '.join(w for w in words if w)} {', '.join(map(name, item.operands))}".rstrip())
        match block.end:
            case Jump() as to:
                lines.append(f"  jump {jump(to)}")
            case Branch(condition=condition, yes=yes, no=no):
                lines.append(f"  branch {name(condition)} {jump(yes)} {jump(no)}")
            case Return(values=values):
                lines.append(f"  return {', '.join(map(name, values))}")
            case Fail():
                lines.append("  fail")
    return "\n".join(lines)


# ---- verifying -------------------------------------------------------------------------------------------------------


class Malformed(AssertionError):
    """A program that breaks the rules: a mistake of whoever made it."""


def verify(program: TypedProgram) -> None:
    """Raise Malformed unless types fit and every value is computed before it is used."""
    for function in program.functions:
        _verify(function)
    if len(program.active) != len(program.main.params):
        raise Malformed("one mark for each parameter")


def _verify(function: TypedFunction) -> None:
    def need(condition: bool, what: str) -> None:
        if not condition:
            raise Malformed(f"{function.name}: {what}")

    blocks = set(function.blocks)
    need(all(jump.target in blocks for block in blocks for jump in block.jumps()), "a jump out of the function")
    into = predecessors(function)
    need(not into[function.blocks[0]], "something jumps to the first block")
    known = _available(function, into)
    for block in function.blocks:
        have = set(known[block]) | set(block.params)
        for item in block.body:
            need(item.operation in OPERATIONS, f"no operation {item.operation}")
            need(all(value in have for value in item.operands), f"{item.operation} in {block.name} before its operands")
            wanted = OPERATIONS[item.operation].split()
            if "..." not in wanted and item.operation != "is_null":
                need(len(wanted) == len(item.operands), f"{item.operation} takes {len(wanted)} operands")
                for kind, value in zip(wanted, item.operands, strict=True):
                    fits = kind in ("=", value.type.kind) or (kind in ("cell", "pairs") and value.type == NULL)
                    need(fits, f"{item.operation} in {block.name} takes {kind}, not {value.type}")
            have.update(item.results)
        for jump in block.jumps():
            need(
                len(jump.args) == len(jump.target.params),
                f"{block.name} jumps to {jump.target.name} with too few or many",
            )
            for value, param in zip(jump.args, jump.target.params, strict=True):
                need(value in have, f"{block.name} passes a value that it does not have")
                fits = param.type in (value.type, value.type.unsized) or value.type == NULL
                need(fits, f"{jump.target.name} takes {param.type}, not {value.type}")
        match block.end:
            case Branch(condition=condition):
                need(condition in have and condition.type == I1, "a branch on what is no truth value")
            case Return(values=values):
                need([v.type for v in values] == function.results and all(v in have for v in values), "a wrong return")


def _available(
    function: TypedFunction, into: dict[Block, list[tuple[Block, Jump]]]
) -> dict[Block, frozenset[TypedValue]]:
    """The values that are surely computed when a block begins."""
    everything = frozenset(v for b in function.blocks for v in [*b.params, *(r for i in b.body for r in i.results)])
    found = dict.fromkeys(function.blocks, everything)
    found[function.blocks[0]] = frozenset()
    changed = True
    while changed:
        changed = False
        for block in function.blocks[1:]:
            before = [found[b] | set(b.params) | {r for i in b.body for r in i.results} for b, _ in into[block]]
            now = frozenset.intersection(*before) if before else frozenset()
            if now != found[block]:
                found[block] = now
                changed = True
    return found
