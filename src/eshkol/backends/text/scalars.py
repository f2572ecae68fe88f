"""What each register instruction is in C-like text: one table, from a row to templates of expressions.

In a template {0}, {1}, {2} are the operands (names of variables), {T} is the type's name, {W} the unsigned type that
integers are computed in (so that they wrap), {bits} the width, {last} the width less one. Floats of 16 bits are widened
before and rounded after, but for rows that move bits or convert. Where languages have their own name for a function it
is {f[name]}.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from eshkol.atlas.isa import Instruction, Values
from eshkol.atlas.operands import Condition, ReduceOperation
from eshkol.atlas.types import Type
from eshkol.backends.text import wide
from eshkol.backends.text.dialect import Dialect
from eshkol.errors import BackendUnavailable

Fail = Callable[[str, str], None]


@dataclass(frozen=True, slots=True)
class Row:
    """Templates of an instruction: for floats, and for integers with a sign and without."""

    floating: str = ""
    integer: str = ""
    unsigned: str = ""

    def template(self, ty: Type) -> str:
        if ty.is_float:
            return self.floating
        return self.unsigned if ty.is_unsigned and self.unsigned else self.integer


def _arithmetic(sign: str) -> Row:
    return Row(f"{{0}} {sign} {{1}}", f"({{T}})(({{W}}){{0}} {sign} ({{W}}){{1}})")


def _bitwise(sign: str) -> Row:
    return Row("", f"({{T}})({{0}} {sign} {{1}})")


def _function(name: str) -> Row:
    return Row(f"{{f[{name}]}}({{0}})")


_LEAST, _GREATEST = "{1} < {0} ? {1} : {0}", "{1} > {0} ? {1} : {0}"
TABLE: dict[str, Row] = {
    "ADD": _arithmetic("+"),
    "SUB": _arithmetic("-"),
    "MUL": _arithmetic("*"),
    "DIV": Row(
        "{0} / {1}", "{1} == -1 ? ({T})(0 - ({W}){0}) : ({T})({0} / {1})", "({T})({0} / {1})"
    ),  # the least integer by -1 traps on some machines
    "REM": Row("{f[fmod]}({0}, {1})", "{1} == -1 ? ({T})0 : ({T})({0} % {1})", "({T})({0} % {1})"),
    "FMA": Row("{f[fma]}({0}, {1}, {2})", "({T})(({W}){0} * ({W}){1} + ({W}){2})"),
    "MIN": Row("{f[fmin]}({0}, {1})", _LEAST),
    "MAX": Row("{f[fmax]}({0}, {1})", _GREATEST),
    "ABS": Row("{f[fabs]}({0})", "({T})({0} < 0 ? 0 - ({W}){0} : ({W}){0})", "{0}"),
    "NEG": Row("-{0}", "({T})(0 - ({W}){0})"),
    "AND": _bitwise("&"),
    "OR": _bitwise("|"),
    "XOR": _bitwise("^"),
    "NOT": Row("", "({T})(~{0})"),
    "SHL": Row("", "({T})(({W}){0} << ({1} & {last}))"),
    "SHR": Row("", "({T})({0} >> ({1} & {last}))"),
    "SQRT": _function("sqrt"),
    "FLOOR": _function("floor"),
    "CEIL": _function("ceil"),
    "TRUNC": _function("trunc"),
    "ROUND": _function("rint"),
    "MOV": Row("{0}", "{0}"),
    "SEL": Row("{0} ? {1} : {2}", "{0} ? {1} : {2}"),
    "UnityTest": Row("", "{0} == 1 || {0} == 4"),
}
ACCUMULATED = {  # NaN where one operand is; `!=` finds it
    ReduceOperation.Sum: TABLE["ADD"],
    ReduceOperation.Product: TABLE["MUL"],
    ReduceOperation.Min: Row("{1} != {1} || {1} < {0} ? {1} : {0}", _LEAST),
    ReduceOperation.Max: Row("{1} != {1} || {1} > {0} ? {1} : {0}", _GREATEST),
}
CONDITIONS = {"EQ": "==", "NE": "!=", "LT": "<", "LE": "<=", "GT": ">", "GE": ">="}
SPECIAL = frozenset({"MOV_IMM", "CVT", "BITCAST", "PACK", "ACC", "SETcc", "ClsGet", "MIRROR", "BoundMap"})
LOWERED = frozenset(TABLE) | SPECIAL
WIDEN = {Type.F16: "f16_to_f32", Type.BF16: "bf16_to_f32"}
NARROW = {Type.F16: "f32_to_f16", Type.BF16: "f32_to_bf16"}


class Scalars:
    """Writes register instructions in a dialect. What helper functions they use is noted in `used`."""

    def __init__(self, dialect: Dialect) -> None:
        self.d = dialect
        self.used: dict[str, None] = {}  # helper functions, in the order of their use
        self.wide: dict[str, None] = {}  # those of integers of more than 64 bits
        self.wide_types: dict[int, None] = {}  # their widths

    def helper(self, name: str, *given: str) -> str:
        self.used[name] = None
        return f"{name}({', '.join(given)})"

    def widened(self, value: str, ty: Type) -> str:
        """A float of 16 bits in F32."""
        return self.helper(WIDEN[ty], value) if ty.is_half else value

    def narrowed(self, value: str, ty: Type) -> str:
        """A number of F32, rounded once to a float of 16 bits."""
        return self.helper(NARROW[ty], value) if ty.is_half else value

    def write(self, i: Instruction, ty: Type, values: list[str], fail: Fail) -> str:
        """The expression of a register instruction whose value operands are of a type."""
        meaning = i.op.meaning
        assert isinstance(meaning, Values)
        if i.op.name not in LOWERED:
            raise BackendUnavailable(f"{self.d.name} has no {i.op.name} yet", span=i.span)
        if ty.is_wide or (i.op.name in ("CVT", "MOV_IMM") and _touches_wide(i)):
            return self._wide(i, ty, values, fail)
        if meaning.raw or not ty.is_half:
            return self._plain(i, ty, values, fail)
        result = self._plain(i, Type.F32, [self.widened(v, ty) for v in values], fail)
        return result if i.op.name == "SETcc" else self.narrowed(result, ty)

    def _plain(self, i: Instruction, ty: Type, v: list[str], fail: Fail) -> str:
        name, d = i.op.name, self.d
        if name == "MOV_IMM":
            return d.constant(i.value.ty, i.value.value)
        if name == "CVT":
            return self.converted(v[0], i.src_ty, i.dst_ty)
        if name == "BITCAST":
            return d.cast_bits(i.dst_ty, v[0]) if i.src_ty is not i.dst_ty else v[0]
        if name == "PACK":
            low, high = (self.narrowed(value, i.ty) for value in v)
            return f"({d.types[Type.U32]}){low} | ({d.types[Type.U32]}){high} << 16"
        if name == "SETcc":
            condition: Condition = i.cond
            return f"{v[0]} {CONDITIONS[condition.name]} {v[1]}"
        if name in ("ClsGet", "MIRROR", "BoundMap"):
            return self._classes(i, ty, v, fail)
        if name in ("DIV", "REM") and ty.is_integer:
            fail(f"{v[1]} == 0", "integer division by zero")
        row = ACCUMULATED[i.operation] if name == "ACC" else TABLE[name]
        return self.filled(d.own.get((name, ty)) or row.template(ty), ty, v)

    def filled(self, template: str, ty: Type, v: list[str]) -> str:
        """A template with its operands and names."""
        functions = _Functions(self, ty)
        return template.format(*v, T=self.d.type(ty), W=self.d.word(ty), last=ty.bits - 1, bits=ty.bits, f=functions)

    def _classes(self, i: Instruction, ty: Type, v: list[str], fail: Fail) -> str:
        x = v[0]
        if i.op.name == "ClsGet":
            return self.helper("resonance_class", f"({self.d.types[Type.U32]}){x}")
        if i.op.name == "MIRROR":
            outside = f"{x} < 0 || {x} >= 96" if ty.is_signed else f"{x} >= 96"
            fail(outside, "the class does not exist: classes are 0 to 95")
            return f"({self.d.types[Type.U8]})({x} % 6 < 3 ? {x} + 3 : {x} - 3)"
        long = self.d.types[Type.U64]
        fail(f"({x} >> 16) >= 96 || (({x} >> 8) & 255) >= 48", "there are 96 classes of 48 pages")
        return f"({long})({x} >> 16) * 12288 + (({long}){x} >> 8 & 255) * 256 + (({long}){x} & 255)"

    # --- conversions --------------------------------------------------------------------------------

    def converted(self, value: str, source: Type, target: Type) -> str:
        """CVT between types of at most 64 bits."""
        if source is target:
            return value
        name = self.d.type(target)
        if source.is_half:
            value, source = self.widened(value, source), Type.F32
            if target is Type.F32:
                return value
        if source.is_float and target.is_integer:
            return self.helper(f"{source.name.lower()}_to_{target.name.lower()}", value)
        if target.is_half:
            if source is Type.F64:
                value = self.helper("f64_to_odd", value)
            elif source.is_integer:
                value = f"({self.d.type(Type.F32)}){value}"
            return self.narrowed(value, target)
        return f"({name}){value}"

    # --- integers of more than 64 bits --------------------------------------------------------------

    def _wide(self, i: Instruction, ty: Type, values: list[str], fail: Fail) -> str:
        name = i.op.name
        if name == "MOV_IMM":
            return wide.constant(i.value.ty, i.value.value)
        if name in ("DIV", "REM"):
            fail(self.called(wide.function("zero", ty), values[1]), "integer division by zero")
        if name in ("MOV", "BITCAST"):
            return values[0]
        if name == "SEL":
            return f"{values[0]} ? {values[1]} : {values[2]}"
        if name == "CVT":
            return self._convert_wide(values[0], i.src_ty, i.dst_ty)
        if name == "SETcc":
            return f"{self.called(wide.function('compare', ty), *values)} {CONDITIONS[i.cond.name]} 0"
        if name == "ACC":
            name = {"ADD": "ADD", "MUL": "MUL", "MIN": "MIN", "MAX": "MAX"}[i.operation.value]
        if name not in wide.OPERATIONS:
            raise BackendUnavailable(f"{self.d.name} has no {name} of {ty}", span=i.span)
        if name == "FMA":
            product = self.called(wide.function("MUL", ty), *values[:2])
            return self.called(wide.function("ADD", ty), product, values[2])
        return self.called(wide.function(name, ty), *values)

    def called(self, function: str, *given: str) -> str:
        self.wide[function] = None
        return f"{function}({', '.join(given)})"

    def _convert_wide(self, value: str, source: Type, target: Type) -> str:
        if source is target or (source.bits == target.bits and source.is_wide):
            return value
        if source.is_half:
            value, source = self.widened(value, source), Type.F32
        if source is Type.F32:
            value, source = f"({self.d.type(Type.F64)}){value}", Type.F64
        if source.is_integer and not source.is_wide:
            return self.called(wide.from_word(source, target), f"({self.d.types[Type.U64]}){value}")
        if not target.is_float and not target.is_wide:
            return f"({self.d.type(target)}){value}.w[0]"
        through = Type.F32 if target.is_half else target
        found = self.called(wide.conversion(source, through), value)
        return self.narrowed(found, target)


class _Functions:
    """The functions of floats by their names in templates: C's, or helpers that are named so with a type behind."""

    def __init__(self, scalars: Scalars, ty: Type) -> None:
        self.scalars, self.ty = scalars, ty

    def __getitem__(self, name: str) -> str:
        typed = f"{name}_{self.ty.name.lower()}"
        if typed not in self.scalars.d.helpers:
            return name
        self.scalars.used[typed] = None
        return typed


def _touches_wide(i: Instruction) -> bool:
    types = (i.value.ty,) if i.op.name == "MOV_IMM" else (i.src_ty, i.dst_ty)
    return any(ty.is_wide for ty in types)
