"""Expressions and conditions of JSON kernels, as Atlas instructions.

Comes in: `KernelNode`s of expressions. Goes out: instructions on a `ProgramBuilder`, and for each expression the
`KernelValue` (register and type) that holds its result. `kernel.py` puts statements on top of this.

Types are static. A literal without a type is *flexible*: it takes the type of the operand beside it, or of
the place its value goes to, and otherwise I32 or (with a fraction) F32. Everything else has its own
type, and two different types never meet silently.

Conditions (comparisons, and, or, not, true, false) are not values: they become branches, so that the right
side of `and` and `or` is reached only when the left side leaves the question open.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import TypeVar

from eshkol.atlas.isa import COUNT_LIMIT, Kind, Opcode, Values
from eshkol.atlas.operands import (
    BLOCK,
    BLOCK_SIZE,
    GLOBAL,
    LANE,
    SPECIAL_TYPES,
    Address,
    Choice,
    Condition,
    Immediate,
    Label,
    ReduceOperation,
    Register,
    SpecialRegister,
)
from eshkol.atlas.program import Param
from eshkol.atlas.table import ROWS
from eshkol.atlas.table.rows import snake
from eshkol.atlas.translate.kernel_source import KernelNode, describe
from eshkol.atlas.translate.kernel_values import (
    Flexible,
    Guess,
    KernelValue,
    KernelVariable,
    RegisterTranslator,
    settle,
    widest,
)
from eshkol.atlas.types import INDEX_TYPES, Type

ChoiceT = TypeVar("ChoiceT", bound=Choice)


def _is_scalar_function(op: Opcode) -> bool:
    """Whether a row takes registers of one type to a register of the same type, and nothing else."""
    kinds = [f.kind for f in op.fields]
    uniform = all(f.ty == "T" for f in op.fields)
    return isinstance(op.meaning, Values) and uniform and kinds == [Kind.DEF] + [Kind.USE] * (len(kinds) - 1)


# What `call` reaches: every scalar row of the table, and the indices of the launch.
SCALAR_FUNCTIONS = {op.name.lower(): op for op in ROWS.values() if _is_scalar_function(op)}
LAUNCH_INDICES = {snake(which.name): which for which in SpecialRegister}
SPECIAL_REGISTERS = {"global_id": GLOBAL, "lane_x": LANE, "block_x": BLOCK, "block_size_x": BLOCK_SIZE}
FUNCTIONS = {name: name for name in (*SPECIAL_REGISTERS, *LAUNCH_INDICES, *SCALAR_FUNCTIONS)}

DIRECT_OPERATORS = {name: ROWS[name.upper()] for name in ("add", "sub", "mul", "div", "neg", "abs")}
COMPARISONS = {condition.name.lower(): condition for condition in Condition}
CONNECTIVES = ("and", "or")
OPERATORS = {
    "binary_op": ("add", "sub", "mul", "div", "floor_div", "mod", *COMPARISONS, *CONNECTIVES),
    "unary_op": ("neg", "abs", "not"),
}
OPPOSITES = {
    Condition.EQ: Condition.NE, Condition.LT: Condition.GE, Condition.GT: Condition.LE,
    Condition.NE: Condition.EQ, Condition.GE: Condition.LT, Condition.LE: Condition.GT,
}  # fmt: skip
NEGATED_BY_OPPOSITE = frozenset({Condition.EQ, Condition.NE})  # for NaN too; of integers every comparison is
SPELT_FLOATS = {"inf": math.inf, "-inf": -math.inf, "nan": math.nan}


def choices_by_name(choices: type[ChoiceT]) -> dict[str, ChoiceT]:
    """The operations of an array instruction by lower-case name, and by the scalar row they stand for."""
    by_row = {choice.value.lower(): choice for choice in choices}
    return by_row | {choice.name.lower(): choice for choice in choices}


class ExpressionTranslator(RegisterTranslator):
    """Emits expressions and branches on conditions."""

    def array(self, node: KernelNode) -> Param:
        """The array that a name, or a var expression, means."""
        if not isinstance(node.value, str):
            _, node = node.with_kind(("var",), "the name of an array")
            node.check_keys(("kind", "name"))
            node = node.get("name")
        found = self.lookup(node)
        if isinstance(found, KernelVariable):
            raise node.error(f"{describe(node.value)} is a scalar, not an array")
        return found

    # --- any expression --------------------------------------------------------------------------

    def open(self, node: KernelNode) -> tuple[str, KernelNode]:
        """The kind of an expression, its keys checked."""
        kind, node = node.with_kind(EXPRESSIONS, "an expression")
        form = EXPRESSIONS[kind]
        node.check_keys(("kind", *form.required), form.optional)
        return kind, node

    def expression(self, node: KernelNode, want: Type | None = None) -> KernelValue:
        """Emit an expression; where a type is wanted it must have that one."""
        kind, node = self.open(node)
        outer, self.here = self.here, node
        value = EXPRESSIONS[kind].emit(self, node, want)
        if want is not None and value.ty is not want:
            raise node.error(f"this is {value.ty}, but {want} is needed here", cast_hint(want))
        self.here = outer
        return value

    def guess(self, node: KernelNode) -> Guess:
        """The type an expression has by itself."""
        kind, node = self.open(node)
        return EXPRESSIONS[kind].guess(self, node)

    def common_type(self, node: KernelNode, operands: Sequence[tuple[str, KernelNode]], want: Type | None) -> Type:
        """The one type of these operands of a node; two different ones are an error that names both."""
        guesses = [(name, self.guess(operand)) for name, operand in operands]
        settled = [(name, guess) for name, guess in guesses if isinstance(guess, Type)]
        for name, ty in settled[1:]:
            if ty is not settled[0][1]:
                first, first_type = settled[0]
                message = f"the operands must have one type: {first} is {first_type}, {name} is {ty}"
                raise node.error(message, cast_hint(first_type))
        return settle(reduce(widest, (guess for _, guess in guesses)), want)

    # --- leaves ----------------------------------------------------------------------------------

    def _guess_var(self, node: KernelNode) -> Guess:
        return self._variable(node).ty

    def _variable(self, node: KernelNode) -> KernelVariable:
        found = self.lookup(node.get("name"))
        if isinstance(found, Param):
            raise node.error(f"'{found.name}' is an array", "take an element of it with index")
        return found

    def _emit_var(self, node: KernelNode, want: Type | None) -> KernelValue:
        variable = self._variable(node)
        return KernelValue(variable.register, variable.ty, temporary=False)

    def _guess_literal(self, node: KernelNode) -> Guess:
        declared, value = node.find("type"), node.get("value").value
        if declared is not None:
            return declared.type()
        return Flexible.FLOAT if isinstance(value, float | str) else Flexible.INTEGER

    def _emit_literal(self, node: KernelNode, want: Type | None) -> KernelValue:
        at = node.get("value")
        if isinstance(at.value, bool):
            raise at.error("true and false are conditions, not values", CONDITION_HINT)
        ty = settle(self._guess_literal(node), want)
        if isinstance(at.value, str):
            value: int | float = at.one_of(SPELT_FLOATS, "a number")
        else:
            value = at.number()
        if ty.is_integer:
            if isinstance(value, float):
                raise at.error(f"{describe(at.value)} is not an integer, as {ty} needs", cast_hint(ty))
            if not ty.min_value <= value <= ty.max_value:
                raise at.error(f"{describe(value)} does not fit {ty}")
        elif not _fits_float(value, ty) and not isinstance(at.value, str):
            raise at.error(f"{describe(value)} is too large for {ty}", 'write "inf" where you mean infinity')
        return self.constant(ty, value)

    # --- arrays ----------------------------------------------------------------------------------

    def constant_integer(self, node: KernelNode) -> int | None:
        """The value of an integer literal, or of the negation of one."""
        kind, node = self.open(node)
        if kind == "unary_op" and node.get("op").value == "neg":
            inner = self.constant_integer(node.get("operand"))
            return None if inner is None else -inner
        value = node.get("value").value if kind == "literal" else None
        return value if isinstance(value, int) and not isinstance(value, bool) else None

    def element(self, node: KernelNode, count: int = 1) -> tuple[Param, Address, KernelValue | None]:
        """The address of the element that an index expression names, `count` elements of which are used.

        The value is the index, to be freed after the access.
        """
        array, at = self.array(node.get("array")), node.get("index")
        assert array.ty is not None
        ty = self.common_type(node, [("the index", at)], None)
        if ty not in INDEX_TYPES:
            wanted = " ".join(t.name for t in Type if t in INDEX_TYPES)
            raise at.error(f"an index must be one of {wanted}, not {ty}", cast_hint(Type.I64))
        fixed = self.constant_integer(at)
        if fixed is not None:
            limit = COUNT_LIMIT // array.ty.size_bytes if array.count is None else array.count
            if not 0 <= fixed <= limit - count:
                what = f"element {describe(fixed)}" if count == 1 else f"{count} elements from {describe(fixed)} on"
                size = "" if array.count is None else f", which has {array.count}"
                raise at.error(f"{what}: not in the array '{array.name}'{size}")
            return array, array.at(fixed), None
        index = self.expression(at, ty)
        return array, array.at(index.register), index

    def stretch(self, node: KernelNode, count: int) -> tuple[Param, Address, KernelValue | None]:
        """An array operand of `count` elements: an array from its start, or from the element indexed."""
        if isinstance(node.value, str) or "array" not in node.members():
            array = self.array(node)
            if array.count is not None and count > array.count:
                raise node.error(f"{count} elements are asked of '{array.name}', which has {array.count}")
            return array, array.address, None
        _, node = node.with_kind(("index",), "an array")
        node.check_keys(("kind", "array", "index"))
        return self.element(node, count)

    def count(self, node: KernelNode) -> int:
        """The element count of an array operation: an integer, plain or as a literal."""
        if not isinstance(node.value, Mapping):
            return node.integer(0, COUNT_LIMIT)
        kind, opened = self.open(node)
        if kind != "literal":
            raise node.error("the count of an array operation must be a constant", "use a for loop over the elements")
        return opened.get("value").integer(0, COUNT_LIMIT)

    def _guess_index(self, node: KernelNode) -> Guess:
        ty = self.array(node.get("array")).ty
        assert ty is not None
        return ty

    def _emit_index(self, node: KernelNode, want: Type | None) -> KernelValue:
        array, address, index = self.element(node)
        assert array.ty is not None
        result = self.fresh(array.ty)
        self.b.ldg(array.ty, result.register, address)
        self.free(index)
        return result

    def _guess_reduce(self, node: KernelNode) -> Guess:
        source = node.get("src")
        named = isinstance(source.value, str) or "array" not in source.members()
        ty = self.array(source if named else source.get("array")).ty
        assert ty is not None
        return ty

    def _emit_reduce(self, node: KernelNode, want: Type | None) -> KernelValue:
        operation = node.get("operation").one_of(REDUCTIONS, "a reduction")
        count = self.count(node.get("count"))
        array, address, index = self.stretch(node.get("src"), count)
        assert array.ty is not None
        result = self.fresh(array.ty)
        self.b.parallel_reduce(array.ty, operation, result.register, address, count)
        self.free(index)
        return result

    # --- operators -------------------------------------------------------------------------------

    def _apply(self, op: Opcode, ty: Type, operands: Sequence[KernelValue], node: KernelNode) -> KernelValue:
        """One scalar instruction; its operands are free after it."""
        if ty not in op.types:
            raise node.error(f"{op.name.lower()} is not defined on {ty}")
        result = self.fresh(ty)
        self.b.emit(op(result.register, *(v.register for v in operands)))
        self.free(*operands)
        return result

    def _guess_binary(self, node: KernelNode) -> Guess:
        _value_operator(node)
        return widest(self.guess(node.get("left")), self.guess(node.get("right")))

    def _emit_binary(self, node: KernelNode, want: Type | None) -> KernelValue:
        name = _value_operator(node)
        left, right = node.get("left"), node.get("right")
        ty = self.common_type(node, [("left", left), ("right", right)], want)
        operands = [self.expression(left, ty), self.expression(right, ty)]
        if name in DIRECT_OPERATORS:
            return self._apply(DIRECT_OPERATORS[name], ty, operands, node)
        result = (self.floor_div if name == "floor_div" else self.modulo)(*operands)
        self.free(*operands)
        return result

    def _guess_unary(self, node: KernelNode) -> Guess:
        _value_operator(node)
        return self.guess(node.get("operand"))

    def _emit_unary(self, node: KernelNode, want: Type | None) -> KernelValue:
        name = _value_operator(node)
        fixed = self.constant_integer(node) if name == "neg" else None
        ty = settle(self.guess(node), want)
        if fixed is not None and ty.is_integer and ty.min_value <= fixed <= ty.max_value:
            return self.constant(ty, fixed)  # so that the least integer, whose opposite does not fit, can be written
        return self._apply(DIRECT_OPERATORS[name], ty, [self.expression(node.get("operand"), ty)], node)

    # --- calls, casts, choices -------------------------------------------------------------------

    def _guess_call(self, node: KernelNode) -> Guess:
        name = self._function(node)
        if name in SCALAR_FUNCTIONS:
            return reduce(widest, (self.guess(argument) for argument in arguments(node)))
        return SPECIAL_TYPES[SPECIAL_REGISTERS[name]] if name in SPECIAL_REGISTERS else Type.U32

    def _function(self, node: KernelNode) -> str:
        """The name of a function that gives a value, with the number of its arguments checked."""
        name = node.get("function").one_of(FUNCTIONS, "a function that gives a value")
        wanted = len(SCALAR_FUNCTIONS[name].fields) - 1 if name in SCALAR_FUNCTIONS else 0
        given = len(arguments(node))
        if given != wanted:
            raise node.error(f"{name} takes {wanted} argument{'s' * (wanted != 1)}, not {given}")
        return name

    def _emit_call(self, node: KernelNode, want: Type | None) -> KernelValue:
        name = self._function(node)
        if name in SPECIAL_REGISTERS:
            special = Register(SPECIAL_REGISTERS[name])
            return KernelValue(special, SPECIAL_TYPES[special.index], temporary=False)
        if name in LAUNCH_INDICES:
            result = self.fresh(Type.U32)
            self.b.sreg(LAUNCH_INDICES[name], result.register)
            return result
        given = arguments(node)
        ty = self.common_type(node, [(f"args[{k}]", argument) for k, argument in enumerate(given)], want)
        return self._apply(SCALAR_FUNCTIONS[name], ty, [self.expression(a, ty) for a in given], node)

    def _guess_cast(self, node: KernelNode) -> Guess:
        return node.get("type").type()

    def _emit_cast(self, node: KernelNode, want: Type | None) -> KernelValue:
        target, at = node.get("type").type(), node.get("value")
        guess, fixed = self.guess(at), self.constant_integer(at)
        # A flexible operand takes the target type itself where it can: 0.1 cast to F64 is not F32's 0.1.
        adopts = target.is_float or (fixed is not None and target.min_value <= fixed <= target.max_value)
        value = self.expression(at, target if isinstance(guess, Flexible) and adopts else None)
        if value.ty is target:
            return value
        result = self.fresh(target)
        self.b.cvt(value.ty, target, result.register, value.register)
        self.free(value)
        return result

    def _guess_if(self, node: KernelNode) -> Guess:
        return widest(self.guess(node.get("then")), self.guess(node.get("else")))

    def _emit_if(self, node: KernelNode, want: Type | None) -> KernelValue:
        then, otherwise = node.get("then"), node.get("else")
        ty = self.common_type(node, [("then", then), ("else", otherwise)], want)
        result, other, end = self.fresh(ty), self.label("else"), self.label("endif")
        self.branch(node.get("cond"), other, when=False)
        self._move_into(result, then)
        self.b.bra(end)
        self.b.place(other)
        self._move_into(result, otherwise)
        self.b.place(end)
        return result

    def _move_into(self, target: KernelValue, node: KernelNode) -> None:
        value = self.expression(node, target.ty)
        self.b.mov(target.register, value.register)
        self.free(value)

    # --- conditions ------------------------------------------------------------------------------

    def branch(self, node: KernelNode, target: Label, *, when: bool) -> None:
        """Go to the target if the condition is `when`, and on to the next instruction otherwise."""
        kind, node = self.open(node)
        operator = _operator(node) if kind in OPERATORS else ""
        if operator == "not":
            self.branch(node.get("operand"), target, when=not when)
        elif operator in CONNECTIVES:
            self._connective(node, target, when, decided_by=operator == "or")
        elif operator in COMPARISONS:
            self._comparison(node, COMPARISONS[operator], target, when)
        elif kind == "literal" and isinstance(node.get("value").value, bool):
            if node.get("value").value is when:
                self.b.bra(target)
        else:
            wanted = "expected a condition: a comparison, and, or, not, true or false"
            raise node.error(wanted, "compare the value with 0, for instance with ne")

    def _connective(self, node: KernelNode, target: Label, when: bool, decided_by: bool) -> None:
        """`decided_by` is the value of the left side that decides: true for or, false for and."""
        if decided_by is when:
            self.branch(node.get("left"), target, when=when)
            self.branch(node.get("right"), target, when=when)
            return
        skip = self.label("decided")
        self.branch(node.get("left"), skip, when=decided_by)
        self.branch(node.get("right"), target, when=when)
        self.b.place(skip)

    def _comparison(self, node: KernelNode, condition: Condition, target: Label, when: bool) -> None:
        left, right = node.get("left"), node.get("right")
        ty = self.common_type(node, [("left", left), ("right", right)], None)
        operands = [self.expression(left, ty), self.expression(right, ty)]
        predicate = self.b.pred()
        opposite_serves = ty.is_integer or condition in NEGATED_BY_OPPOSITE
        chosen = OPPOSITES[condition] if not when and opposite_serves else condition
        self.b.setcc(chosen, predicate, *(v.register for v in operands))
        self.free(*operands)
        if when or opposite_serves:
            self.b.bra(target, predicate)
        else:  # with NaN neither a comparison nor its opposite holds: jump around the jump
            holds = self.label("holds")
            self.b.bra(holds, predicate)
            self.b.bra(target)
            self.b.place(holds)
        self.free(predicate)


def _operator(node: KernelNode) -> str:
    """The operator of a binary_op or unary_op."""
    kind = node.get("kind").text()
    return node.get("op").one_of({name: name for name in OPERATORS[kind]}, f"an operator of {kind}")


def _value_operator(node: KernelNode) -> str:
    """An operator that gives a value."""
    name = _operator(node)
    if name in COMPARISONS or name in CONNECTIVES or name == "not":
        raise node.error(f"'{name}' gives a condition, which cannot be used as a value", CONDITION_HINT)
    return name


def arguments(call: KernelNode) -> list[KernelNode]:
    """The arguments of a call, which may leave out an empty list."""
    given = call.find("args")
    return [] if given is None else given.items()


def _fits_float(value: int | float, ty: Type) -> bool:
    """Whether a number, rounded to a float type, is still finite."""
    try:
        return math.isfinite(Immediate(ty, float(value)).value)
    except OverflowError:  # an integer beyond F64
        return False


def cast_hint(ty: Type) -> str:
    return f'convert it: {{"kind": "cast", "type": "{ty}", "value": ...}}'


CONDITION_HINT = (
    'use it in "cond"; for a number, write {"kind": "if_expr", "cond": ..., '
    '"then": {"kind": "literal", "value": 1}, "else": {"kind": "literal", "value": 0}}'
)
REDUCTIONS = choices_by_name(ReduceOperation)


@dataclass(frozen=True, slots=True)
class ExpressionForm:
    """One kind of expression: its keys, how it is emitted, and how its type is guessed."""

    required: tuple[str, ...]
    emit: Callable[[ExpressionTranslator, KernelNode, Type | None], KernelValue]
    guess: Callable[[ExpressionTranslator, KernelNode], Guess]
    optional: tuple[str, ...] = ()


_E = ExpressionTranslator
EXPRESSIONS = {
    "var": ExpressionForm(("name",), _E._emit_var, _E._guess_var),
    "literal": ExpressionForm(("value",), _E._emit_literal, _E._guess_literal, ("type",)),
    "binary_op": ExpressionForm(("op", "left", "right"), _E._emit_binary, _E._guess_binary),
    "unary_op": ExpressionForm(("op", "operand"), _E._emit_unary, _E._guess_unary),
    "index": ExpressionForm(("array", "index"), _E._emit_index, _E._guess_index),
    "call": ExpressionForm(("function",), _E._emit_call, _E._guess_call, ("args",)),
    "if_expr": ExpressionForm(("cond", "then", "else"), _E._emit_if, _E._guess_if),
    "cast": ExpressionForm(("type", "value"), _E._emit_cast, _E._guess_cast),
    "parallel_reduce": ExpressionForm(("operation", "src", "count"), _E._emit_reduce, _E._guess_reduce),
}
