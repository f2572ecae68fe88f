/* Exact integers as values: fixnums and bignums in, fixnums and bignums out, always the fixnum where one fits.
 * Scratch memory is on the stack when small and a bytevector otherwise, so that nothing leaks when an error unwinds.
 */
#include "bignum.h"

/* The name `scratch` for so many limbs: a variable on the stack, or memory of the heap. */
#define SCRATCH(name, limbs)                                    \
    Limb name##_small[STACK_LIMBS];                             \
    size_t name##_limbs = (limbs);                              \
    Limb *name = name##_limbs <= STACK_LIMBS ? name##_small : integer_scratch(context, name##_limbs)

Limb *integer_scratch(Context *context, size_t limbs) {
    if (limbs > 8 * LIMBS_MAXIMUM) esk_fail(context, ERROR_MEMORY, NULL, "an integer is too large", 0);
    size_t bytes = limbs * sizeof(Limb);
    Bytevector *b = esk_allocate(context, sizeof(Bytevector) + bytes, TAG_BYTEVECTOR);
    b->length = (int64_t)bytes;
    return (Limb *)(void *)b->bytes;
}

Bignum *integer_room(Context *context, size_t limbs) {
    if (limbs > LIMBS_MAXIMUM) esk_fail(context, ERROR_MEMORY, NULL, "an integer is too large", 0);
    Bignum *b = esk_allocate(context, sizeof(Bignum) + limbs * sizeof(Limb), TAG_BIGNUM);
    b->head.count = (uint32_t)limbs;
    return b;
}

/* Whether the number is a fixnum; then it is put into *fixnum. */
static bool fits(const Limb *limbs, size_t count, bool negative, Value *fixnum) {
    if (count > 1) return false;
    Limb w = count ? limbs[0] : 0;
    if (w > (Limb)INT64_MAX + negative) return false;
    *fixnum = esk_fixnum((int64_t)(negative ? -w : w));
    return true;
}

Value integer_finish(Bignum *b, size_t count, bool negative) {
    Value fixnum;
    count = natural_trim(b->limbs, count);
    if (fits(b->limbs, count, negative, &fixnum)) return fixnum;
    b->head.count = (uint32_t)count;
    b->head.flags = negative ? FLAG_NEGATIVE : 0;
    return esk_object(b);
}

Value integer_from_limbs(Context *context, const Limb *limbs, size_t count, bool negative) {
    Value fixnum;
    count = natural_trim(limbs, count);
    if (fits(limbs, count, negative, &fixnum)) return fixnum;
    Bignum *b = integer_room(context, count);
    memcpy(b->limbs, limbs, count * sizeof(Limb));
    b->head.flags = negative ? FLAG_NEGATIVE : 0;
    return esk_object(b);
}

Value integer_from_wide(Context *context, SignedWide n) {
    if (n == (int64_t)n) return esk_fixnum((int64_t)n);
    Wide w = n < 0 ? -(Wide)n : (Wide)n;
    Limb limbs[2] = {(Limb)w, (Limb)(w >> 64)};
    return integer_from_limbs(context, limbs, 2, n < 0);
}

Value integer_from_limb(Context *context, Limb w) { return integer_from_limbs(context, &w, 1, false); }

int integer_sign(Value v) {
    if (v.tag == TAG_FIXNUM) return (esk_integer(v) > 0) - (esk_integer(v) < 0);
    return ((Bignum *)esk_pointer(v))->head.flags & FLAG_NEGATIVE ? -1 : 1;
}

int integer_compare(Value a, Value b) {
    if (a.tag == TAG_FIXNUM && b.tag == TAG_FIXNUM)
        return (esk_integer(a) > esk_integer(b)) - (esk_integer(a) < esk_integer(b));
    Limb s, t;
    View x = view(a, &s), y = view(b, &t);
    if (x.negative != y.negative) return x.negative ? -1 : 1;
    int order = natural_compare(x.limbs, x.count, y.limbs, y.count);
    return x.negative ? -order : order;
}

bool integer_odd(Value v) {
    Limb s;
    View x = view(v, &s);
    return x.count && (x.limbs[0] & 1);
}

uint64_t integer_length(Value v) {
    Limb s;
    View x = view(v, &s);
    return x.count ? x.count * 64 - (uint64_t)__builtin_clzll(x.limbs[x.count - 1]) : 0;
}

uint64_t integer_trailing_zeros(Value v) {
    Limb s;
    View x = view(v, &s);
    size_t i = 0;
    while (!x.limbs[i]) i++;
    return i * 64 + (uint64_t)__builtin_ctzll(x.limbs[i]);
}

/* ---- sums, products --------------------------------------------------------------------------------------------- */

static Value add_signed(Context *context, View x, View y, bool negate) {
    bool negative = y.negative ^ negate;
    if (x.count < y.count) {
        View swap = x;
        x = y;
        y = swap;
        bool sign = y.negative;
        x.negative = negative;
        negative = sign;
    }
    if (x.negative == negative) {
        Bignum *b = integer_room(context, x.count + 1);
        b->limbs[x.count] = natural_add(b->limbs, x.limbs, x.count, y.limbs, y.count);
        return integer_finish(b, x.count + 1, negative);
    }
    int order = natural_compare(x.limbs, x.count, y.limbs, y.count);
    if (!order) return esk_fixnum(0);
    if (order < 0) {
        View swap = x;
        x = y;
        y = swap;
        x.negative = negative;
    }
    if (x.count <= STACK_LIMBS) { /* it may get much shorter */
        Limb difference[STACK_LIMBS];
        natural_subtract(difference, x.limbs, x.count, y.limbs, y.count);
        return integer_from_limbs(context, difference, x.count, x.negative);
    }
    Bignum *b = integer_room(context, x.count);
    natural_subtract(b->limbs, x.limbs, x.count, y.limbs, y.count);
    return integer_finish(b, x.count, x.negative);
}

Value integer_add(Context *context, Value a, Value b) {
    if (a.tag == TAG_FIXNUM && b.tag == TAG_FIXNUM)
        return integer_from_wide(context, (SignedWide)esk_integer(a) + esk_integer(b));
    Limb s, t;
    return add_signed(context, view(a, &s), view(b, &t), false);
}

Value integer_subtract(Context *context, Value a, Value b) {
    if (a.tag == TAG_FIXNUM && b.tag == TAG_FIXNUM)
        return integer_from_wide(context, (SignedWide)esk_integer(a) - esk_integer(b));
    Limb s, t;
    return add_signed(context, view(a, &s), view(b, &t), true);
}

Value integer_negate(Context *context, Value a) {
    if (a.tag == TAG_FIXNUM) return integer_from_wide(context, -(SignedWide)esk_integer(a));
    Limb s;
    View x = view(a, &s);
    return integer_from_limbs(context, x.limbs, x.count, !x.negative);
}

Value integer_magnitude(Context *context, Value a) { return integer_sign(a) < 0 ? integer_negate(context, a) : a; }

Value integer_multiply(Context *context, Value a, Value b) {
    if (a.tag == TAG_FIXNUM && b.tag == TAG_FIXNUM)
        return integer_from_wide(context, (SignedWide)esk_integer(a) * esk_integer(b));
    Limb s, t;
    View x = view(a, &s), y = view(b, &t);
    if (x.count < y.count) {
        View swap = x;
        x = y;
        y = swap;
    }
    if (!y.count) return esk_fixnum(0);
    bool negative = x.negative ^ y.negative;
    Bignum *product = integer_room(context, x.count + y.count);
    if (y.count == 1) {
        product->limbs[x.count] = natural_multiply_limb(product->limbs, x.limbs, x.count, y.limbs[0], 0);
    } else {
        SCRATCH(scratch, natural_multiply_scratch(x.count, y.count));
        natural_multiply(context, product->limbs, x.limbs, x.count, y.limbs, y.count, scratch);
    }
    return integer_finish(product, x.count + y.count, negative);
}

/* ---- quotients -------------------------------------------------------------------------------------------------- */

void integer_divide(Context *context, Value a, Value b, Value *quotient, Value *remainder) {
    if (a.tag == TAG_FIXNUM && b.tag == TAG_FIXNUM) {
        int64_t n = esk_integer(a), d = esk_integer(b);
        if (d == -1) { /* the one quotient that overflows is this way */
            if (quotient) *quotient = integer_negate(context, a);
            if (remainder) *remainder = esk_fixnum(0);
        } else {
            if (quotient) *quotient = esk_fixnum(n / d);
            if (remainder) *remainder = esk_fixnum(n % d);
        }
        return;
    }
    Limb s, t;
    View x = view(a, &s), y = view(b, &t);
    if (natural_compare(x.limbs, x.count, y.limbs, y.count) < 0) {
        if (quotient) *quotient = esk_fixnum(0);
        if (remainder) *remainder = a;
        return;
    }
    bool negative = x.negative ^ y.negative;
    if (y.count == 1) {
        SCRATCH(q, x.count);
        Limb rest = natural_divide_limb(q, x.limbs, x.count, y.limbs[0]);
        if (quotient) *quotient = integer_from_limbs(context, q, x.count, negative);
        if (remainder) *remainder = integer_from_limbs(context, &rest, 1, x.negative);
        return;
    }
    size_t m = x.count - y.count, whole = x.count + 1, digits = m + 1;
    SCRATCH(room, whole + y.count + digits + natural_divide_scratch(m, y.count));
    Limb *numerator = room, *divisor = room + whole, *q = divisor + y.count;
    memcpy(numerator, x.limbs, x.count * sizeof(Limb));
    memcpy(divisor, y.limbs, y.count * sizeof(Limb));
    natural_divide(context, q, numerator, m, divisor, y.count, q + digits);
    if (quotient) *quotient = integer_from_limbs(context, q, digits, negative);
    if (remainder) *remainder = integer_from_limbs(context, numerator, y.count, x.negative);
}

Value integer_exact_quotient(Context *context, Value a, Value b) {
    if (fixnum_is(b, 1)) return a;
    Value q;
    integer_divide(context, a, b, &q, NULL);
    return q;
}

Value integer_floor_divide(Context *context, Value a, Value b, Value *remainder) {
    Value q, r;
    integer_divide(context, a, b, &q, &r);
    if (!fixnum_is(r, 0) && integer_sign(r) != integer_sign(b)) {
        q = integer_subtract(context, q, esk_fixnum(1));
        if (remainder) r = integer_add(context, r, b);
    }
    if (remainder) *remainder = r;
    return q;
}

Value integer_gcd(Context *context, Value a, Value b) {
    Limb s, t;
    View x = view(a, &s), y = view(b, &t);
    if (natural_compare(x.limbs, x.count, y.limbs, y.count) < 0) {
        View swap = x;
        x = y;
        y = swap;
        Value v = a;
        a = b;
        b = v;
    }
    if (!y.count) return integer_magnitude(context, a);
    if (y.count == 1) {
        Limb w = y.limbs[0], rest;
        if (x.count == 1) {
            rest = x.limbs[0];
        } else {
            SCRATCH(q, x.count);
            rest = natural_divide_limb(q, x.limbs, x.count, w);
        }
        return integer_from_limb(context, natural_gcd_limb(w, rest));
    }
    SCRATCH(room, x.count + y.count + 4 + natural_gcd_scratch(x.count));
    Limb *u = room, *v = room + x.count + 2;
    memcpy(u, x.limbs, x.count * sizeof(Limb));
    memcpy(v, y.limbs, y.count * sizeof(Limb));
    size_t count = natural_gcd(context, u, x.count, v, y.count, v + y.count + 2);
    return integer_from_limbs(context, u, count, false);
}

/* ---- bits ------------------------------------------------------------------------------------------------------- */

Value integer_shift(Context *context, Value a, int64_t bits) {
    Limb s;
    View x = view(a, &s);
    if (!x.count || !bits) return a;
    uint64_t distance = fixnum_magnitude(bits);
    size_t limbs = distance / 64;
    unsigned rest = distance % 64;
    if (bits > 0) {
        if (limbs >= LIMBS_MAXIMUM) esk_fail(context, ERROR_MEMORY, "arithmetic-shift", "an integer is too large", 0);
        Bignum *b = integer_room(context, x.count + limbs + 1);
        memset(b->limbs, 0, limbs * sizeof(Limb));
        b->limbs[x.count + limbs] = natural_shift_left(b->limbs + limbs, x.limbs, x.count, rest);
        return integer_finish(b, x.count + limbs + 1, x.negative);
    }
    if (limbs >= x.count) return esk_fixnum(x.negative ? -1 : 0);
    if (a.tag == TAG_FIXNUM) return esk_fixnum(esk_integer(a) >> rest);
    size_t count = x.count - limbs;
    Bignum *b = integer_room(context, count + 1);
    Limb lost = natural_shift_right(b->limbs, x.limbs + limbs, count, rest);
    b->limbs[count] = 0;
    if (x.negative) { /* down, not towards zero */
        for (size_t i = 0; i < limbs && !lost; i++) lost = x.limbs[i];
        if (lost) natural_add_limb(b->limbs, b->limbs, count + 1, 1);
    }
    return integer_finish(b, count + 1, x.negative);
}

/* Limb i of the two's complement; *borrow starts as the sign. */
static inline Limb complement_limb(const View *x, size_t i, Limb *borrow) {
    Limb w = i < x->count ? x->limbs[i] : 0;
    if (!x->negative) return w;
    Limb r = w - *borrow;
    *borrow = w < *borrow;
    return ~r;
}

Value integer_bitwise(Context *context, int operation, Value a, Value b) {
    if (a.tag == TAG_FIXNUM && b.tag == TAG_FIXNUM) {
        int64_t m = esk_integer(a), n = esk_integer(b);
        return esk_fixnum(operation == '&' ? m & n : operation == '|' ? m | n : m ^ n);
    }
    Limb s, t;
    View x = view(a, &s), y = view(b, &t);
    size_t count = (x.count > y.count ? x.count : y.count) + 1;
    bool negative = operation == '&'   ? x.negative & y.negative
                    : operation == '|' ? x.negative | y.negative
                                       : x.negative ^ y.negative;
    Bignum *result = integer_room(context, count);
    Limb p = x.negative, q = y.negative, carry = negative;
    for (size_t i = 0; i < count; i++) {
        Limb m = complement_limb(&x, i, &p), n = complement_limb(&y, i, &q);
        Limb w = operation == '&' ? m & n : operation == '|' ? m | n : m ^ n;
        if (negative) {
            w = ~w + carry;
            carry = carry && !w;
        }
        result->limbs[i] = w;
    }
    return integer_finish(result, count, negative);
}

uint64_t integer_bit_count(Value v) {
    Limb s, borrow;
    View x = view(v, &s);
    uint64_t ones = 0;
    borrow = x.negative; /* the complement of -n is n - 1 */
    for (size_t i = 0; i < x.count; i++) {
        Limb w = x.limbs[i] - borrow;
        borrow = x.limbs[i] < borrow;
        ones += (uint64_t)__builtin_popcountll(w);
    }
    return ones;
}
