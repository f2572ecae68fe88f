"""What each register instruction is in WGSL: templates for floats, for integers of a word, of a pair, and of more.

{0}, {1}, {2} are the operands. Results of words are wrapped to their type. What floats are that must be exactly those
of other machines is in `floats.py`.
"""

from __future__ import annotations

from eshkol.atlas.isa import Instruction
from eshkol.atlas.operands import Condition, ReduceOperation
from eshkol.atlas.types import Type
from eshkol.backends.text.scalars import Fail, Scalars
from eshkol.backends.webgpu import wides
from eshkol.backends.webgpu.dialect import Wgsl, is_long
from eshkol.errors import BackendUnavailable

_FLOATS = {
    "ADD": "$x({0} + {1})", "SUB": "$x({0} - {1})", "MUL": "$x({0} * {1})", "DIV": "$x({0} / {1})",
    "REM": "fmod_$t({0}, {1})", "FMA": "fma({0}, {1}, {2})", "MIN": "min_$t({0}, {1})", "MAX": "max_$t({0}, {1})",
    "ABS": "abs({0})", "NEG": "-({0})", "SQRT": "$x(sqrt({0}))", "FLOOR": "floor({0})", "CEIL": "ceil({0})",
    "TRUNC": "trunc({0})", "ROUND": "round({0})",
}  # fmt: skip
_WORDS = {
    "ADD": "{0} + {1}", "SUB": "{0} - {1}", "MUL": "{0} * {1}", "DIV": "{0} / {1}", "REM": "{0} % {1}",
    "FMA": "({0} * {1} + {2})", "MIN": "min({0}, {1})", "MAX": "max({0}, {1})", "AND": "{0} & {1}", "OR": "{0} | {1}",
    "XOR": "{0} ^ {1}", "NOT": "~{0}", "UnityTest": "{0} == 1 || {0} == 4",
}  # fmt: skip
_LONGS = {
    "ADD": "add_64({0}, {1})", "SUB": "sub_64({0}, {1})", "MUL": "mul_64({0}, {1})", "DIV": "div_$t({0}, {1})",
    "REM": "rem_$t({0}, {1})", "FMA": "add_64(mul_64({0}, {1}), {2})", "MIN": "select({0}, {1}, lt_$t({1}, {0}))",
    "MAX": "select({0}, {1}, lt_$t({0}, {1}))", "NEG": "neg_64({0})", "AND": "{0} & {1}", "OR": "{0} | {1}",
    "XOR": "{0} ^ {1}", "NOT": "~{0}", "SHL": "shl_64({0}, {1}.x)", "SHR": "shr_$t({0}, {1}.x)",
    "UnityTest": "{0}.y == 0u && ({0}.x == 1u || {0}.x == 4u)",
}  # fmt: skip
_SUMMED = {
    ReduceOperation.Sum: "ADD", ReduceOperation.Product: "MUL", ReduceOperation.Min: "MIN", ReduceOperation.Max: "MAX",
}  # fmt: skip
_SIGNS = {"EQ": "==", "NE": "!=", "LT": "<", "LE": "<=", "GT": ">", "GE": ">="}


class WgslScalars(Scalars):
    """Writes register instructions in WGSL."""

    d: Wgsl
    in_loop = False  # whether what is written stands in a loop

    def _plain(self, i: Instruction, ty: Type, v: list[str], fail: Fail) -> str:
        name, d = i.op.name, self.d
        d.type(ty)
        if name == "MOV_IMM":
            return d.constant(i.value.ty, i.value.value)
        if name == "CVT":
            return self.converted(v[0], i.src_ty, i.dst_ty)
        if name == "BITCAST":
            return v[0] if i.src_ty is i.dst_ty else d.of_bits(i.dst_ty, d.bits_of(i.src_ty, v[0]))
        if name == "PACK":
            low, high = (self.narrowed(value, i.ty) for value in v)
            return f"{low} | ({high} << 16u)"
        if name == "SETcc":
            return self._compared(ty, i.cond, *v)
        if name == "MOV":
            return v[0]
        if name == "SEL":
            return f"select({v[2]}, {v[1]}, {v[0]})"
        if name in ("ClsGet", "MIRROR", "BoundMap"):
            return self._classes(i, ty, v, fail)
        if name in ("DIV", "REM") and ty.is_integer:
            fail(f"all({v[1]} == vec2<u32>())" if is_long(ty) else f"{v[1]} == 0", "integer division by zero")
        if ty.is_float:
            return self._float(i, ty, v)
        if name == "ACC":
            name = _SUMMED[i.operation]
        short = ty.name.lower()
        if is_long(ty):
            if name == "ABS":
                return f"abs_i64({v[0]})" if ty.is_signed else v[0]
            return _LONGS[name].replace("$t", short).format(*v)
        return self._word(name, ty, v)

    def _word(self, name: str, ty: Type, v: list[str]) -> str:
        last, d = ty.bits - 1, self.d
        if name == "ABS":
            return d.wrapped(ty, f"abs({v[0]})") if ty.is_signed else v[0]
        if name == "NEG":
            return d.wrapped(ty, f"(0{'i' if ty.is_signed else 'u'} - {v[0]})")
        if name in ("SHL", "SHR"):
            by = f"({d.word_of(ty, v[1])} & {last}u)"
            return d.wrapped(ty, f"({v[0]} << {by})") if name == "SHL" else f"{v[0]} >> {by}"
        text = _WORDS[name].format(*v)
        if name in ("MIN", "MAX", "AND", "OR", "XOR", "UnityTest", "REM"):
            return text
        return d.wrapped(ty, f"({text})" if ty.bits < 32 else text)

    def _float(self, i: Instruction, ty: Type, v: list[str]) -> str:
        name, short, d = i.op.name, ty.name.lower(), self.d
        exact = f"exact_{short}" if d.exact else ""
        if name == "ACC":
            if i.operation in (ReduceOperation.Sum, ReduceOperation.Product):
                return f"{v[0]} {'+' if i.operation is ReduceOperation.Sum else '*'} {v[1]}"
            sign = "<" if i.operation is ReduceOperation.Min else ">"
            return f"select({v[0]}, {v[1]}, is_nan_{short}({v[1]}) || {self._truth(f'{v[1]} {sign} {v[0]}')})"
        if name == "FMA" and not (d.fused or (self.in_loop and i.operands[0] is i.operands[3])):
            return f"fma_{short}({', '.join(v)})"
        if name == "SUB" and v[0] == v[1] and d.exact:  # a driver would say that it is nothing, of infinity, too
            return f"{exact}({v[0]} - {exact}({v[1]}))"
        if name in ("DIV", "SQRT") and ty is Type.F32 and not d.exact_division:
            return f"{name.lower()}_f32({', '.join(v)})"
        return _FLOATS[name].replace("$x", exact).replace("$t", short).format(*v)

    def _truth(self, comparison: str) -> str:
        return f"truth_of({comparison})" if self.d.exact else f"({comparison})"

    def _compared(self, ty: Type, condition: Condition, x: str, y: str) -> str:
        name = condition.name
        if ty.is_float:
            if name == "NE":
                return f"!({self._compared(ty, Condition.EQ, x, y)})"
            found = self._truth(f"{x} {_SIGNS[name]} {y}")  # a driver would say that all are what they are
            return f"{found} && !is_nan_{ty.name.lower()}({x})" if name in ("EQ", "LE", "GE") else found
        if not is_long(ty):
            return f"{x} {_SIGNS[name]} {y}"
        if name in ("EQ", "NE"):
            return f"{'all' if name == 'EQ' else 'any'}({x} {_SIGNS[name]} {y})"
        one, other = (x, y) if name in ("LT", "GE") else (y, x)
        return f"{'!' * (name in ('LE', 'GE'))}{self.d.is_less(ty, one, other)}"

    def _classes(self, i: Instruction, ty: Type, v: list[str], fail: Fail) -> str:
        x, short = v[0], self.d.word_of(ty, v[0])
        if i.op.name == "ClsGet":
            return f"resonance_class({short})"
        outside = "there are 96 classes of 48 pages"
        if i.op.name == "MIRROR":
            fail(f"{short} >= 96u{self._high(ty, x)}", "the class does not exist: classes are 0 to 95")
            return f"select({short} - 3u, {short} + 3u, {short} % 6u < 3u)"
        fail(f"({short} >> 16u) >= 96u || (({short} >> 8u) & 255u) >= 48u{self._high(ty, x)}", outside)
        return f"vec2<u32>(({short} >> 16u) * 12288u + (({short} >> 8u) & 255u) * 256u + ({short} & 255u), 0u)"

    def _high(self, ty: Type, x: str) -> str:
        """What is said of a number beyond its low word, in a condition."""
        return f" || {x}.y != 0u" if is_long(ty) else ""

    # --- conversions --------------------------------------------------------------------------------

    def converted(self, value: str, source: Type, target: Type) -> str:
        d = self.d
        if source is target:
            return value
        d.type(source)
        d.type(target)
        if source.is_half:
            value, source = self.widened(value, source), Type.F32
            if target is Type.F32:
                return value
        if source.is_float and target.is_integer:
            return f"{source.name.lower()}_to_{target.name.lower()}({value})"
        if target.is_half:
            if source is Type.F64:
                value = f"f64_to_odd({value})"
            elif source.is_integer:
                value = self.converted(value, source, Type.F32)
            return self.narrowed(value, target)
        if target.is_float:
            return (
                f"{source.name.lower()}_to_{d.type(target)}({value})"
                if is_long(source)
                else f"{d.type(target)}({value})"
            )
        if is_long(target):
            if source.bits == 64:
                return value
            low = d.word_of(source, value)
            return f"vec2<u32>({low}, {f'bitcast<u32>({value} >> 31u)' if source.is_signed else '0u'})"
        low = d.word_of(source, value)
        fits = source.bits < target.bits and (source.is_unsigned or target.bits == 32)
        if target.is_signed:
            low = value if source.is_signed and source.bits <= 32 else f"bitcast<i32>({low})"
        return low if fits else d.wrapped(target, low)

    # --- integers of more than 64 bits --------------------------------------------------------------

    def _wide(self, i: Instruction, ty: Type, values: list[str], fail: Fail) -> str:
        name, d = i.op.name, self.d
        d.type(ty)
        if name == "MOV_IMM":
            return wides.constant(i.value.ty, int(i.value.value))
        if name in ("MOV", "BITCAST"):
            return values[0]
        if name == "CVT":
            return self._convert_wide(values[0], i.src_ty, i.dst_ty)
        if name in ("DIV", "REM"):
            fail(f"zero_u{ty.bits}({values[1]})", "integer division by zero")
        if name == "SEL":
            return f"chosen_u{ty.bits}({', '.join(values)})"
        if name == "SETcc":
            return f"compare_{ty.name.lower()}({', '.join(values)}) {_SIGNS[i.cond.name]} 0"
        if name == "ACC":
            name = _SUMMED[i.operation]
        if name == "FMA":
            return f"add_u{ty.bits}(mul_u{ty.bits}({values[0]}, {values[1]}), {values[2]})"
        found = wides.name_of(name, ty)
        if found is None:
            raise BackendUnavailable(f"{d.name} has no {name} of {ty}", span=i.span)
        return f"{found}({', '.join(values)})"

    def _convert_wide(self, value: str, source: Type, target: Type) -> str:
        d = self.d
        if source is target or (source.bits == target.bits and source.is_wide):
            return value
        if source.is_half:
            value, source = self.widened(value, source), Type.F32
        if source.is_float:
            d.type(source)
            return f"from_{source.name.lower()}_{target.name.lower()}({value})"
        if target.is_float:
            d.type(target)
            through = Type.F32 if target.is_half else target
            return self.narrowed(f"to_{through.name.lower()}_{source.name.lower()}({value})", target)
        if target.is_wide:
            if not source.is_wide:
                value = self.converted(value, source, Type.I64 if source.is_signed else Type.U64)
                source = Type.I64 if source.is_signed else Type.U64
            return f"from_{source.name.lower()}_{target.name.lower()}({value})"
        return self.converted(f"vec2<u32>({value}.w[0], {value}.w[1])", Type.U64, target)
