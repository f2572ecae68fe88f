"""What each register instruction is in LLVM: one function per mnemonic, from operand values to a result.

16-bit floats are widened before and narrowed after by `lower`, except for rows that move bits or convert.
Instructions that can fail call `fail(condition, message)`, which leaves the lane where the condition holds.
"""

from __future__ import annotations

from collections.abc import Callable

from eshkol.atlas.isa import Instruction, Values
from eshkol.atlas.operands import Condition, ReduceOperation
from eshkol.atlas.types import Type
from eshkol.backends.lanes.convert import convert
from eshkol.backends.lanes.emitter import Emitter, constant, llvm_type
from eshkol.backends.lanes.wide import INLINE_BITS, product
from eshkol.errors import BackendUnavailable
from eshkol.llvm.builtins import DIVISION

Fail = Callable[[str, str], None]
Lowering = Callable[["Context", list[str]], str]


class Context:
    """An instruction being lowered: where to write, its type, how it fails, and the words for its not wrapping."""

    __slots__ = ("e", "exact", "fail", "i", "t", "ty")

    def __init__(self, e: Emitter, i: Instruction, ty: Type, fail: Fail, exact: str = "") -> None:
        self.e, self.i, self.ty, self.fail, self.exact = e, i, ty, fail, exact
        self.t = llvm_type(ty)


def lower(e: Emitter, i: Instruction, ty: Type, values: list[str], fail: Fail, exact: str = "") -> str:
    """The LLVM value of a register instruction. `ty` is the type of its value operands."""
    meaning = i.op.meaning
    assert isinstance(meaning, Values)
    lowering = LOWERINGS.get(i.op.name)
    if lowering is None:
        raise BackendUnavailable(f"native code has no {i.op.name} yet", span=i.span)
    if meaning.raw or not ty.is_half:
        return lowering(Context(e, i, ty, fail, exact), values)
    wide = [e.widen(v, ty) for v in values]
    result = lowering(Context(e, i, Type.F32, fail), wide)
    return result if i.op.name == "SETcc" else e.narrow(result, ty)


def _pair(floating: str, integer: str) -> Lowering:
    return lambda c, v: c.e.op(f"{floating if c.ty.is_float else f'{integer} {c.exact}'} {c.t} {v[0]}, {v[1]}")


def _signed(signed: str, unsigned: str, c: Context) -> str:
    return signed if c.ty.is_signed else unsigned


def _nonzero_divisor(c: Context, divisor: str) -> str:
    zero = c.e.op(f"icmp eq {c.t} {divisor}, 0")
    c.fail(zero, "integer division by zero")
    return divisor


def _divide(c: Context, v: list[str]) -> str:
    if c.ty.is_float:
        return c.e.op(f"fdiv {c.t} {v[0]}, {v[1]}")
    divisor = _nonzero_divisor(c, v[1])
    if c.ty.is_unsigned:
        return _integer_division("udiv", c, v[0], divisor)
    minus_one, safe = _away_from_minus_one(c, divisor)
    quotient = _integer_division("sdiv", c, v[0], safe)
    negated = c.e.op(f"sub {c.t} 0, {v[0]}")  # wraps for the least integer
    return c.e.op(f"select i1 {minus_one}, {c.t} {negated}, {c.t} {quotient}")


def _integer_division(word: str, c: Context, a: str, b: str) -> str:
    """udiv, sdiv, urem or srem."""
    if c.ty.bits > INLINE_BITS and word.endswith("rem"):
        quotient = c.e.op(f"{word[0]}div {c.t} {a}, {b}")
        return c.e.op(f"sub {c.t} {a}, {c.e.op(product(c.ty.bits, quotient, b))}")
    if c.ty.bits != 128:
        return c.e.op(f"{word} {c.t} {a}, {b}")
    if word[0] == "s":
        magnitudes = [c.e.call("i128", "llvm.abs.i128", ("i128", x), ("i1", "false")) for x in (a, b)]
        quotient = c.e.op(f"call i128 @{DIVISION}(i128 {magnitudes[0]}, i128 {magnitudes[1]})")
        differ = c.e.op(f"icmp slt i128 {c.e.op(f'xor i128 {a}, {b}')}, 0")
        quotient = c.e.op(f"select i1 {differ}, i128 {c.e.op(f'sub i128 0, {quotient}')}, i128 {quotient}")
    else:
        quotient = c.e.op(f"call i128 @{DIVISION}(i128 {a}, i128 {b})")
    if word.endswith("div"):
        return quotient
    return c.e.op(f"sub i128 {a}, {c.e.op(f'mul i128 {quotient}, {b}')}")


def _away_from_minus_one(c: Context, divisor: str) -> tuple[str, str]:
    """Division of the least integer by -1 traps on some machines: divide by 1 instead and correct."""
    minus_one = c.e.op(f"icmp eq {c.t} {divisor}, -1")
    return minus_one, c.e.op(f"select i1 {minus_one}, {c.t} 1, {c.t} {divisor}")


def _remainder(c: Context, v: list[str]) -> str:
    if c.ty.is_float:
        return c.e.op(f"frem {c.t} {v[0]}, {v[1]}")
    divisor = _nonzero_divisor(c, v[1])
    if c.ty.is_unsigned:
        return _integer_division("urem", c, v[0], divisor)
    _, safe = _away_from_minus_one(c, divisor)
    return _integer_division("srem", c, v[0], safe)


def _extreme(floating: str, signed: str, unsigned: str) -> Lowering:
    """Of floats the number, where one is NaN. (Folding by maxnum makes LLVM's vectorizer fail an assertion.)

    Which zero is the lesser is not defined. LLVM is told so: where it orders zeros with AVX-512, and knows that one
    operand is no NaN, LLVM 22 gives NaN for the other one, in code of single numbers.
    """

    def emit(c: Context, v: list[str]) -> str:
        if c.ty.is_float:
            return c.e.intrinsic(floating, c.t, *v, flags="nsz")
        return c.e.intrinsic(_signed(signed, unsigned, c), c.t, *v)

    return emit


def _multiply(c: Context, v: list[str]) -> str:
    if c.ty.is_integer and c.ty.bits > INLINE_BITS:
        return c.e.op(product(c.ty.bits, v[0], v[1]))
    return _pair("fmul", "mul")(c, v)


def _accumulate(c: Context, v: list[str]) -> str:
    """A step of a reduction, of which LLVM may take the steps in any order.

    Which zero is the lesser is not defined: to order them too takes x86 twice as many instructions.
    """
    operation: ReduceOperation = c.i.operation
    if operation in (ReduceOperation.Sum, ReduceOperation.Product):
        floating, integer = ("fadd", "add") if operation is ReduceOperation.Sum else ("fmul", "mul")
        return c.e.op(f"{f'{floating} reassoc' if c.ty.is_float else integer} {c.t} {v[0]}, {v[1]}")
    least = operation is ReduceOperation.Min
    if c.ty.is_float:
        return c.e.intrinsic("minimum" if least else "maximum", c.t, *v, flags="nsz")
    return c.e.intrinsic(f"{_signed('s', 'u', c)}{'min' if least else 'max'}", c.t, *v)


def _fma(c: Context, v: list[str]) -> str:
    if c.ty.is_float:
        return c.e.intrinsic("fma", c.t, *v)
    return c.e.op(f"add {c.t} {c.e.op(product(c.ty.bits, v[0], v[1]))}, {v[2]}")


def _absolute(c: Context, v: list[str]) -> str:
    if c.ty.is_float:
        return c.e.intrinsic("fabs", c.t, v[0])
    if c.ty.is_unsigned:
        return v[0]
    return c.e.call(c.t, f"llvm.abs.{c.t}", (c.t, v[0]), ("i1", "false"))


def _negate(c: Context, v: list[str]) -> str:
    return c.e.op(f"fneg {c.t} {v[0]}" if c.ty.is_float else f"sub {c.t} 0, {v[0]}")


def _shift(left: bool) -> Lowering:
    def emit(c: Context, v: list[str]) -> str:
        amount = c.e.op(f"and {c.t} {v[1]}, {c.ty.bits - 1}")
        word = f"shl {c.exact}" if left else _signed("ashr", "lshr", c)
        return c.e.op(f"{word} {c.t} {v[0]}, {amount}")

    return emit


_FLOAT_CONDITIONS = {"EQ": "oeq", "NE": "une", "LT": "olt", "LE": "ole", "GT": "ogt", "GE": "oge"}


def _compare(c: Context, v: list[str]) -> str:
    condition: Condition = c.i.cond
    if c.ty.is_float:
        return c.e.op(f"fcmp {_FLOAT_CONDITIONS[condition.name]} {c.t} {v[0]}, {v[1]}")
    name = condition.name.lower()
    sign = "" if condition in (Condition.EQ, Condition.NE) else _signed("s", "u", c)
    return c.e.op(f"icmp {sign}{name} {c.t} {v[0]}, {v[1]}")


def _unary(name: str) -> Lowering:
    return lambda c, v: c.e.intrinsic(name, c.t, v[0])


def _as_u32(c: Context, value: str) -> str:
    if c.ty.bits == 32:
        return value
    return c.e.op(f"{'trunc' if c.ty.bits > 32 else _signed('sext', 'zext', c)} {c.t} {value} to i32")


def _resonance_class(c: Context, v: list[str]) -> str:
    byte = c.e.op(f"and i32 {_as_u32(c, v[0])}, 255")
    high = c.e.op(f"and i32 {c.e.op(f'lshr i32 {byte}, 5')}, 3")
    total = c.e.op(f"urem i32 {high}, 3")
    for bit, weight in enumerate((48, 24, 12, 6, 3)):
        one = c.e.op(f"and i32 {c.e.op(f'lshr i32 {byte}, {bit}')}, 1")
        total = c.e.op(f"add i32 {total}, {c.e.op(f'mul i32 {one}, {weight}')}")
    return c.e.op(f"trunc i32 {total} to i8")


def _mirror(c: Context, v: list[str]) -> str:
    limit = c.e.op(f"icmp uge {c.t} {v[0]}, 96")
    c.fail(limit, "the class does not exist: classes are 0 to 95")
    cls = _as_u32(c, v[0])
    low = c.e.op(f"icmp ult i32 {c.e.op(f'urem i32 {cls}, 6')}, 3")
    step = c.e.op(f"select i1 {low}, i32 3, i32 -3")
    return c.e.op(f"trunc i32 {c.e.op(f'add i32 {cls}, {step}')} to i8")


def _unity(c: Context, v: list[str]) -> str:
    first, second = c.e.op(f"icmp eq {c.t} {v[0]}, 1"), c.e.op(f"icmp eq {c.t} {v[0]}, 4")
    return c.e.op(f"or i1 {first}, {second}")


def _boundary(c: Context, v: list[str]) -> str:
    packed = c.e.op(f"zext i32 {v[0]} to i64") if c.ty.bits == 32 else v[0]
    cls = c.e.op(f"lshr i64 {packed}, 16")
    page = c.e.op(f"and i64 {c.e.op(f'lshr i64 {packed}, 8')}, 255")
    bad = c.e.op(f"or i1 {c.e.op(f'icmp uge i64 {cls}, 96')}, {c.e.op(f'icmp uge i64 {page}, 48')}")
    c.fail(bad, "there are 96 classes of 48 pages")
    start = c.e.op(f"add i64 {c.e.op(f'mul i64 {cls}, 12288')}, {c.e.op(f'mul i64 {page}, 256')}")
    return c.e.op(f"add i64 {start}, {c.e.op(f'and i64 {packed}, 255')}")


LOWERINGS: dict[str, Lowering] = {
    "MOV": lambda c, v: v[0],
    "MOV_IMM": lambda c, v: constant(c.i.value.ty, c.i.value.value),
    "CVT": lambda c, v: convert(c.e, v[0], c.i.src_ty, c.i.dst_ty, c.exact),
    "BITCAST": lambda c, v: c.e.op(f"bitcast {llvm_type(c.i.src_ty)} {v[0]} to {llvm_type(c.i.dst_ty)}"),
    "PACK": lambda c, v: c.e.packed(v[0], v[1], c.i.ty),
    "ADD": _pair("fadd", "add"),
    "SUB": _pair("fsub", "sub"),
    "MUL": _multiply,
    "DIV": _divide,
    "REM": _remainder,
    "FMA": _fma,
    "MIN": _extreme("minimumnum", "smin", "umin"),
    "MAX": _extreme("maximumnum", "smax", "umax"),
    "ACC": _accumulate,
    "ABS": _absolute,
    "NEG": _negate,
    "AND": _pair("", "and"),
    "OR": _pair("", "or"),
    "XOR": _pair("", "xor"),
    "NOT": lambda c, v: c.e.op(f"xor {c.t} {v[0]}, -1"),
    "SHL": _shift(left=True),
    "SHR": _shift(left=False),
    "SETcc": _compare,
    "SEL": lambda c, v: c.e.op(f"select i1 {v[0]}, {c.t} {v[1]}, {c.t} {v[2]}"),
    "SQRT": _unary("sqrt"),
    "FLOOR": _unary("floor"),
    "CEIL": _unary("ceil"),
    "TRUNC": _unary("trunc"),
    "ROUND": _unary("roundeven"),
    "ClsGet": _resonance_class,
    "MIRROR": _mirror,
    "UnityTest": _unity,
    "BoundMap": _boundary,
}
