"""CVT in LLVM: between all types, rounded, truncated and saturated as the ISA says."""

from __future__ import annotations

from eshkol.atlas.types import Type
from eshkol.backends.lanes.emitter import Emitter, llvm_type


def convert(e: Emitter, value: str, source: Type, target: Type, exact: str = "") -> str:
    """A value of one type as a value of another; `exact` says of a narrowed integer that it loses nothing."""
    if source is target:
        return value
    if source.is_float:
        return _from_float(e, value, source, target)
    if target.is_integer:
        return _resize(e, value, source, target, exact)
    if source.is_wide:
        return _wide_to_float(e, value, source, target)
    through = "double" if target is Type.F64 else "float"
    number = e.op(f"{'sitofp' if source.is_signed else 'uitofp'} {llvm_type(source)} {value} to {through}")
    return e.narrow(number, target)


def _resize(e: Emitter, value: str, source: Type, target: Type, exact: str = "") -> str:
    if source.bits == target.bits:
        return value
    word = f"trunc {exact}" if target.bits < source.bits else ("sext" if source.is_signed else "zext")
    return e.op(f"{word} {llvm_type(source)} {value} to {llvm_type(target)}")


def _from_float(e: Emitter, value: str, source: Type, target: Type) -> str:
    if source.is_half:
        value, source = e.widen(value, source), Type.F32
        if target is Type.F32:
            return value
    if target is Type.F64:
        return e.op(f"fpext float {value} to double")
    if target.is_float:
        if source is Type.F64:
            if target is Type.F32:
                return e.op(f"fptrunc double {value} to float")
            value = _to_odd(e, value)
        return e.narrow(value, target)
    if target.is_wide:
        if source is Type.F32:
            value = e.op(f"fpext float {value} to double")
        return _float_to_wide(e, value, target)
    return _saturated(e, value, source, target)


def _saturated(e: Emitter, value: str, source: Type, target: Type) -> str:
    """A float truncated to an integer of at most 64 bits; NaN is 0, and what is out of range the nearest there is.

    LLVM's own saturating conversions say the same, but become code for one lane after another on x86.
    """
    t, digits = llvm_type(source), 24 if source is Type.F32 else 53
    size = target.max_value.bit_length()
    exact = size <= digits
    top = target.max_value if exact else (1 << size) - (1 << (size - digits))  # the greatest float that is in range
    low, high = f"{target.min_value}.0", f"{top}.0"
    inside = e.op(f"select i1 {e.op(f'fcmp ogt {t} {value}, {low}')}, {t} {value}, {t} {low}")
    inside = e.op(f"select i1 {e.op(f'fcmp olt {t} {inside}, {high}')}, {t} {inside}, {t} {high}")
    wide = "i32" if target.bits < 32 else llvm_type(target)
    word = "fptosi" if target.is_signed or target.bits < 32 else "fptoui"
    found = e.op(f"{word} {t} {inside} to {wide}")
    if not exact:
        beyond = e.op(f"fcmp oge {t} {value}, {1 << size}.0")
        found = e.op(f"select i1 {beyond}, {wide} {target.max_value}, {wide} {found}")
    found = e.op(f"select i1 {e.op(f'fcmp uno {t} {value}, {value}')}, {wide} 0, {wide} {found}")
    return found if target.bits >= 32 else e.op(f"trunc {wide} {found} to {llvm_type(target)}")


def _to_odd(e: Emitter, value: str) -> str:
    """A double as a float rounded to odd, so that a further rounding to 16 bits is the only one."""
    single = e.op(f"fptrunc double {value} to float")
    back = e.op(f"fpext float {single} to double")
    bits = e.op(f"bitcast float {single} to i32")
    inexact = e.op(f"fcmp one double {back}, {value}")  # false for NaN
    finite = e.op(f"icmp ne i32 {e.op(f'and i32 {bits}, 2139095040')}, 2139095040")
    even = e.op(f"icmp eq i32 {e.op(f'and i32 {bits}, 1')}, 0")
    # Where the rounding went away from zero, step back to the truncated value; then set the last bit.
    magnitude = e.intrinsic("fabs", "double", value)
    grew = e.op(f"fcmp ogt double {e.intrinsic('fabs', 'double', back)}, {magnitude}")
    lower = e.op(f"select i1 {grew}, i32 {e.op(f'sub i32 {bits}, 1')}, i32 {bits}")
    odd = e.op(f"or i32 {lower}, 1")
    adjust = e.op(f"and i1 {inexact}, {e.op(f'and i1 {finite}, {even}')}")
    return e.op(f"bitcast i32 {e.op(f'select i1 {adjust}, i32 {odd}, i32 {bits}')} to float")


def _float_to_wide(e: Emitter, value: str, target: Type) -> str:
    """A double truncated to a wide integer: its 53-bit mantissa shifted into place, saturated by exponent."""
    t = llvm_type(target)
    bits = e.op(f"bitcast double {value} to i64")
    exponent = e.op(f"and i64 {e.op(f'lshr i64 {bits}, 52')}, 2047")
    power = e.op(f"sub i64 {exponent}, 1023")
    fraction = e.op(f"and i64 {bits}, 4503599627370495")
    mantissa = e.op(f"zext i64 {e.op(f'or i64 {fraction}, 4503599627370496')} to {t}")
    left, right = e.op(f"sub i64 {power}, 52"), e.op(f"sub i64 52, {power}")
    up = e.op(f"icmp sge i64 {left}, 0")
    small = e.op(f"icmp slt i64 {power}, 0")
    limit = min(target.bits - target.is_signed, 1024)  # the exponent of infinity and NaN
    huge = e.op(f"icmp sge i64 {power}, {limit}")
    # Shift amounts are kept in range where their result is not used.
    safe_left = e.op(f"select i1 {up}, i64 {left}, i64 0")
    safe_left = e.op(f"select i1 {huge}, i64 0, i64 {safe_left}")
    safe_right = e.op(f"select i1 {e.op(f'or i1 {up}, {small}')}, i64 0, i64 {right}")
    shifted = e.op(f"shl {t} {mantissa}, {_as(e, safe_left, t)}")
    shifted = e.op(f"lshr {t} {shifted}, {_as(e, safe_right, t)}")
    negative = e.op(f"icmp slt i64 {bits}, 0")
    if target.is_signed:
        signed = e.op(f"select i1 {negative}, {t} {e.op(f'sub {t} 0, {shifted}')}, {t} {shifted}")
        extreme = e.op(f"select i1 {negative}, {t} {target.min_value}, {t} {target.max_value}")
    else:
        signed = e.op(f"select i1 {negative}, {t} 0, {t} {shifted}")
        extreme = e.op(f"select i1 {negative}, {t} 0, {t} {target.max_value}")
    result = e.op(f"select i1 {huge}, {t} {extreme}, {t} {signed}")
    result = e.op(f"select i1 {small}, {t} 0, {t} {result}")
    return e.op(f"select i1 {e.op(f'fcmp uno double {value}, {value}')}, {t} 0, {t} {result}")


def _as(e: Emitter, amount: str, t: str) -> str:
    return e.op(f"zext i64 {amount} to {t}")


def _wide_to_float(e: Emitter, value: str, source: Type, target: Type) -> str:
    """The top 64 bits, the rest folded into the last one, converted and scaled by a power of two."""
    t, bits = llvm_type(source), source.bits
    negative = e.op(f"icmp slt {t} {value}, 0") if source.is_signed else "false"
    magnitude = value
    if source.is_signed:
        magnitude = e.op(f"select i1 {negative}, {t} {e.op(f'sub {t} 0, {value}')}, {t} {value}")
    zeros = e.call(t, f"llvm.ctlz.{t}", (t, magnitude), ("i1", "false"))
    is_zero = e.op(f"icmp eq {t} {magnitude}, 0")
    safe = e.op(f"select i1 {is_zero}, {t} 0, {t} {zeros}")
    aligned = e.op(f"shl {t} {magnitude}, {safe}")
    top = e.op(f"trunc {t} {e.op(f'lshr {t} {aligned}, {bits - 64}')} to i64")
    rest = e.op(f"icmp ne {t} {e.op(f'shl {t} {aligned}, 64')}, 0")
    sticky = e.op(f"or i64 {top}, {e.op(f'zext i1 {rest} to i64')}")
    through, short, mantissa, bias = ("double", "i64", 52, 1023) if target is Type.F64 else ("float", "i32", 23, 127)
    number = e.op(f"uitofp i64 {sticky} to {through}")
    # value = top · 2^(bits - 64 - zeros); a power that cannot be represented means infinity, or a small value
    power = e.op(f"sub i32 {bits - 64}, {e.op(f'trunc {t} {safe} to i32')}")
    too_large = e.op(f"icmp sgt i32 {power}, {bias}")
    capped = e.op(f"select i1 {too_large}, i32 0, i32 {power}")
    biased = e.op(f"add i32 {capped}, {bias}")
    if short == "i64":
        biased = e.op(f"zext i32 {biased} to i64")
    scale = e.op(f"bitcast {short} {e.op(f'shl {short} {biased}, {mantissa}')} to {through}")
    scaled = e.op(f"fmul {through} {number}, {scale}")
    infinity = "0x7FF0000000000000"
    result = e.op(f"select i1 {too_large}, {through} {infinity}, {through} {scaled}")
    zero = "0x0000000000000000"
    result = e.op(f"select i1 {is_zero}, {through} {zero}, {through} {result}")
    result = e.op(f"select i1 {negative}, {through} {e.op(f'fneg {through} {result}')}, {through} {result}")
    return e.narrow(result, target)
