/* Powers and square roots of exact integers, and their way to and from doubles, always rounded correctly. */
#include <math.h>

#include "bignum.h"

double double_from_parts(Limb high, bool sticky, int64_t exponent) {
    if (!high) return 0.0;
    int zeros = __builtin_clzll(high);
    high <<= zeros;
    exponent -= zeros;
    int64_t order = exponent + 63; /* 2^order <= the number < 2^(order + 1) */
    if (order > 1023) return INFINITY;
    int64_t keep = order >= -1022 ? 53 : 53 - (-1022 - order); /* bits that a double holds there */
    if (keep < 0) return 0.0;
    unsigned drop = (unsigned)(64 - keep);
    Limb kept = drop == 64 ? 0 : high >> drop, half = (Limb)1 << (drop - 1);
    Limb low = drop == 64 ? high : high - (kept << drop);
    if (low > half || (low == half && (sticky || (kept & 1)))) kept++;
    return ldexp((double)kept, (int)(exponent + drop));
}

double integer_double(Value v) {
    if (v.tag == TAG_FIXNUM) return (double)esk_integer(v);
    Limb s;
    View x = view(v, &s);
    if (x.count > 16) return x.negative ? -INFINITY : INFINITY;
    Limb high = x.limbs[x.count - 1], lost = 0;
    int64_t exponent = (int64_t)(x.count - 1) * 64;
    int zeros = __builtin_clzll(high);
    size_t below = x.count - 1;
    if (zeros && below) {
        high = high << zeros | x.limbs[below - 1] >> (64 - zeros);
        lost = x.limbs[below - 1] << zeros;
        exponent -= zeros;
        below--;
    }
    for (size_t i = 0; i < below && !lost; i++) lost = x.limbs[i];
    double r = double_from_parts(high, lost != 0, exponent);
    return x.negative ? -r : r;
}

double integer_ratio(Context *context, Value n, Value d) {
    const int64_t exact = (int64_t)1 << 53;
    if (n.tag == TAG_FIXNUM && d.tag == TAG_FIXNUM) {
        int64_t p = esk_integer(n), q = esk_integer(d);
        if (p >= -exact && p <= exact && q <= exact) return (double)p / (double)q;
    }
    bool negative = integer_sign(n) < 0;
    if (!integer_sign(n)) return 0.0;
    int64_t shift = (int64_t)integer_length(d) - (int64_t)integer_length(n) + 63;
    double r;
    if (shift < -1100) {
        r = INFINITY;
    } else if (shift > 1300) {
        r = 0.0;
    } else {
        n = integer_magnitude(context, n);
        if (shift > 0) n = integer_shift(context, n, shift);
        else d = integer_shift(context, d, -shift);
        Value q, rest;
        integer_divide(context, n, d, &q, &rest);
        Limb s;
        View x = view(q, &s);
        r = double_from_parts(x.limbs[0], !fixnum_is(rest, 0), -shift); /* 63 or 64 bits */
    }
    return negative ? -r : r;
}

Value integer_from_double(Context *context, double x) {
    if (x >= -0x1p63 && x < 0x1p63) return esk_fixnum((int64_t)x);
    int exponent;
    double fraction = frexp(x, &exponent);
    return integer_shift(context, esk_fixnum((int64_t)ldexp(fraction, 53)), exponent - 53);
}

/* ---- roots ------------------------------------------------------------------------------------------------------ */

static Limb root_limb(Limb w) {
    Limb r = (Limb)sqrt((double)w);
    while ((Wide)r * r > w) r--;
    while ((Wide)(r + 1) * (r + 1) <= w) r++;
    return r;
}

/* Newton's iteration with a precision that doubles at each step: with c and d as bits of the root, a is within one of
 * the root of n's leading 2 d + 1 or 2 d + 2 bits. */
static Value root_large(Context *context, Value n) {
    uint64_t c = (integer_length(n) - 1) / 2, d;
    int64_t step = 0;
    while (c >> step > 31) step++;
    d = c >> step;
    Limb s;
    View leading = view(integer_shift(context, n, -(int64_t)(2 * (c - d))), &s);
    Value a = integer_from_limb(context, root_limb(leading.limbs[0]));
    while (step-- > 0) {
        uint64_t e = d;
        d = c >> step;
        Value q = integer_shift(context, n, -(int64_t)(2 * c - e - d + 1));
        integer_divide(context, q, a, &q, NULL);
        a = integer_add(context, integer_shift(context, a, (int64_t)(d - e - 1)), q);
    }
    return a;
}

Value integer_root(Context *context, Value n, Value *rest) {
    if (n.tag == TAG_FIXNUM) {
        int64_t r = (int64_t)root_limb((Limb)esk_integer(n));
        if (rest) *rest = esk_fixnum(esk_integer(n) - r * r);
        return esk_fixnum(r);
    }
    Value a = root_large(context, n);
    Value left = integer_subtract(context, n, integer_multiply(context, a, a));
    if (integer_sign(left) < 0) {
        a = integer_subtract(context, a, esk_fixnum(1));
        if (rest) left = integer_subtract(context, n, integer_multiply(context, a, a));
    }
    if (rest) *rest = left;
    return a;
}

/* ---- powers ----------------------------------------------------------------------------------------------------- */

void integer_expect(Context *context, uint64_t bits, uint64_t times, const char *who) {
    if (__builtin_mul_overflow(bits, times, &bits) || bits / 64 > LIMBS_MAXIMUM)
        esk_fail(context, ERROR_MEMORY, who, "the number is too large for the memory", 0);
    if (bits > (uint64_t)1 << 24) (void)*(volatile Limb *)integer_scratch(context, bits / 64);
}

Value integer_power(Context *context, Value base, uint64_t exponent, const char *who) {
    if (!exponent || fixnum_is(base, 1)) return esk_fixnum(1);
    if (fixnum_is(base, 0)) return base;
    if (fixnum_is(base, -1)) return esk_fixnum(exponent & 1 ? -1 : 1);
    integer_expect(context, integer_length(base) - 1, exponent, who);
    uint64_t zeros = integer_trailing_zeros(base);
    Value odd = zeros ? integer_shift(context, base, -(int64_t)zeros) : base, r = odd;
    if (fixnum_is(odd, 1)) return integer_shift(context, odd, (int64_t)(zeros * exponent));
    for (int i = 62 - __builtin_clzll(exponent); i >= 0; i--) {
        r = integer_multiply(context, r, r);
        if (exponent >> i & 1) r = integer_multiply(context, r, odd);
    }
    return zeros ? integer_shift(context, r, (int64_t)(zeros * exponent)) : r;
}
