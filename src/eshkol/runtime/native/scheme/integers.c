/* Procedures on integers: division with its several roundings, divisors and multiples, bits, integer square roots.
 * Those of R7RS take inexact integers too and then give inexact ones; those on bits take exact integers alone.
 */
#include "numbers.h"
#include "tensor_numbers.h"

enum Rounding { TRUNCATE, FLOOR };

/* The operands as exact integers; whether one of them was inexact. */
static bool integers(Context *context, const char *who, Value *a, Value *b) {
    need_integer(context, who, 1, *a);
    need_integer(context, who, 2, *b);
    bool inexact = a->tag == TAG_FLONUM || b->tag == TAG_FLONUM;
    if (a->tag == TAG_FLONUM) *a = integer_from_double(context, esk_double(*a));
    if (b->tag == TAG_FLONUM) *b = integer_from_double(context, esk_double(*b));
    return inexact;
}

static void divide(Context *context, const char *who, enum Rounding rounding, Value a, Value b, Value *quotient,
                   Value *remainder) {
    Value dividend = undifferentiated(a);
    if (quotient && !remainder) { /* a step: its derivative is zero wherever there is one */
        a = undifferentiated(a);
        b = undifferentiated(b);
    }
    bool inexact = integers(context, who, &a, &b);
    if (is_exact_zero(b)) esk_fail(context, ERROR_ARITHMETIC, who, "division by zero", 1, dividend);
    if (rounding == TRUNCATE) {
        integer_divide(context, a, b, quotient, remainder);
    } else {
        Value q = integer_floor_divide(context, a, b, remainder);
        if (quotient) *quotient = q;
    }
    if (inexact && quotient) *quotient = number_inexact(context, *quotient);
    if (inexact && remainder) *remainder = number_inexact(context, *remainder);
}

static Value quotient_of(Context *context, const char *who, enum Rounding rounding, Value a, Value b) {
    if (holds_tensor(a) || holds_tensor(b)) {
        a = undifferentiated(a);
        b = undifferentiated(b);
        return (rounding == FLOOR ? tensor_floor_quotient : tensor_quotient)(context, a, b);
    }
    Value q;
    divide(context, who, rounding, a, b, &q, NULL);
    return q;
}

static Value remainder_of(Context *context, const char *who, enum Rounding rounding, Value a, Value b) {
    Value r;
    divide(context, who, rounding, a, b, NULL, &r);
    return r;
}

static Value both_of(Context *context, const char *who, enum Rounding rounding, Value a, Value b) {
    Value pair[2];
    if (is_extended(a) || is_extended(b)) {
        pair[0] = quotient_of(context, who, rounding, a, b);
        pair[1] = (rounding == FLOOR ? extended_modulo : extended_remainder)(context, a, b);
    } else divide(context, who, rounding, a, b, &pair[0], &pair[1]);
    return esk_values(context, pair, 2);
}

/* Fixnums whose quotient is one, too. */
static inline bool plain(Value a, Value b) {
    return a.tag == TAG_FIXNUM && b.tag == TAG_FIXNUM && esk_integer(b) != 0 && esk_integer(b) != -1;
}

Value esk_quotient(Context *context, Value a, Value b) {
    if (plain(a, b)) return esk_fixnum(esk_integer(a) / esk_integer(b));
    return quotient_of(context, "quotient", TRUNCATE, a, b);
}

Value esk_remainder(Context *context, Value a, Value b) {
    if (plain(a, b)) return esk_fixnum(esk_integer(a) % esk_integer(b));
    if (is_extended(a) || is_extended(b)) return extended_remainder(context, a, b);
    return remainder_of(context, "remainder", TRUNCATE, a, b);
}

Value esk_modulo(Context *context, Value a, Value b) {
    if (plain(a, b)) {
        int64_t d = esk_integer(b), r = esk_integer(a) % d;
        return esk_fixnum(r && (r < 0) != (d < 0) ? r + d : r);
    }
    if (is_extended(a) || is_extended(b)) return extended_modulo(context, a, b);
    return remainder_of(context, "modulo", FLOOR, a, b);
}

static Value floor_both(Context *c, Value a, Value b) { return both_of(c, "floor/", FLOOR, a, b); }
static Value floor_quotient(Context *c, Value a, Value b) { return quotient_of(c, "floor-quotient", FLOOR, a, b); }
static Value floor_remainder(Context *c, Value a, Value b) {
    if (is_extended(a) || is_extended(b)) return extended_modulo(c, a, b);
    return remainder_of(c, "floor-remainder", FLOOR, a, b);
}
static Value truncate_both(Context *c, Value a, Value b) { return both_of(c, "truncate/", TRUNCATE, a, b); }
static Value truncate_quotient(Context *c, Value a, Value b) {
    return quotient_of(c, "truncate-quotient", TRUNCATE, a, b);
}
static Value truncate_remainder(Context *c, Value a, Value b) {
    if (is_extended(a) || is_extended(b)) return extended_remainder(c, a, b);
    return remainder_of(c, "truncate-remainder", TRUNCATE, a, b);
}

/* ---- divisors and multiples ------------------------------------------------------------------------------------- */

static Value multiple(Context *context, Value a, Value b) {
    if (is_exact_zero(a) || is_exact_zero(b)) return esk_fixnum(0);
    Value part = integer_exact_quotient(context, a, integer_gcd(context, a, b));
    return integer_magnitude(context, integer_multiply(context, part, b));
}

static Value fold(Context *context, const char *who, const Value *args, int64_t count, Value start,
                  Value (*step)(Context *, Value, Value)) {
    bool inexact = false;
    Value result = start;
    for (int64_t i = 0; i < count; i++) {
        Value v = args[i];
        need_integer(context, who, (int)i + 1, v);
        if (v.tag == TAG_FLONUM) {
            inexact = true;
            v = integer_from_double(context, esk_double(v));
        }
        result = step(context, result, v);
    }
    return inexact ? number_inexact(context, result) : result;
}

static Value gcd(Context *context, const Value *args, int64_t count) {
    return fold(context, "gcd", args, count, esk_fixnum(0), integer_gcd);
}

static Value lcm(Context *context, const Value *args, int64_t count) {
    return fold(context, "lcm", args, count, esk_fixnum(1), multiple);
}

static Value exact_integer_sqrt(Context *context, Value n) {
    if (!is_integer(n) || integer_sign(n) < 0)
        esk_wrong_type(context, "exact-integer-sqrt", 1, n, "an exact integer that is not negative");
    Value pair[2];
    pair[0] = integer_root(context, n, &pair[1]);
    return esk_values(context, pair, 2);
}

/* ---- bits ------------------------------------------------------------------------------------------------------- */

static Value fold_bits(Context *context, const char *who, const Value *args, int64_t count, int operation) {
    Value result = esk_fixnum(operation == '&' ? -1 : 0);
    for (int64_t i = 0; i < count; i++) {
        need_exact_integer(context, who, (int)i + 1, args[i]);
        result = integer_bitwise(context, operation, result, args[i]);
    }
    return result;
}

static Value bitwise_and(Context *c, const Value *args, int64_t count) {
    return fold_bits(c, "bitwise-and", args, count, '&');
}
static Value bitwise_ior(Context *c, const Value *args, int64_t count) {
    return fold_bits(c, "bitwise-ior", args, count, '|');
}
static Value bitwise_xor(Context *c, const Value *args, int64_t count) {
    return fold_bits(c, "bitwise-xor", args, count, '^');
}

static Value bitwise_not(Context *context, Value n) {
    need_exact_integer(context, "bitwise-not", 1, n);
    return integer_subtract(context, esk_fixnum(-1), n);
}

static Value arithmetic_shift(Context *context, Value n, Value bits) {
    need_exact_integer(context, "arithmetic-shift", 1, n);
    need_exact_integer(context, "arithmetic-shift", 2, bits);
    if (bits.tag == TAG_FIXNUM) return integer_shift(context, n, esk_integer(bits));
    if (is_exact_zero(n)) return n;
    if (integer_sign(bits) < 0) return esk_fixnum(integer_sign(n) < 0 ? -1 : 0);
    esk_fail(context, ERROR_MEMORY, "arithmetic-shift", "the number is too large for the memory", 1, bits);
}

static Value bit_count(Context *context, Value n) {
    need_exact_integer(context, "bit-count", 1, n);
    return esk_fixnum((int64_t)integer_bit_count(n));
}

static Value bit_length(Context *context, Value n) {
    need_exact_integer(context, "integer-length", 1, n);
    int64_t bits = (int64_t)integer_length(n);
    /* -2^k needs one bit less than 2^k */
    if (integer_sign(n) < 0 && (int64_t)integer_trailing_zeros(n) == bits - 1) bits--;
    return esk_fixnum(bits);
}

const Primitive esk_integers_primitives[] = {
    ESK_PRIMITIVE_2("quotient", "(quotient n d)", esk_quotient, "n / d, rounded towards zero."),
    ESK_PRIMITIVE_2("remainder", "(remainder n d)", esk_remainder, "What the quotient leaves; it has the sign of n."),
    ESK_PRIMITIVE_2("modulo", "(modulo n d)", esk_modulo, "What a division rounded down leaves; it has the sign of d."),
    ESK_PRIMITIVE_2("floor/", "(floor/ n d)", floor_both, "Two values: n / d rounded down, and what is left."),
    ESK_PRIMITIVE_2("floor-quotient", "(floor-quotient n d)", floor_quotient, "n / d, rounded down."),
    ESK_PRIMITIVE_2("floor-remainder", "(floor-remainder n d)", floor_remainder, "The same as modulo."),
    ESK_PRIMITIVE_2("truncate/", "(truncate/ n d)", truncate_both,
                    "Two values: n / d rounded towards zero, and what is left."),
    ESK_PRIMITIVE_2("truncate-quotient", "(truncate-quotient n d)", truncate_quotient, "The same as quotient."),
    ESK_PRIMITIVE_2("truncate-remainder", "(truncate-remainder n d)", truncate_remainder, "The same as remainder."),
    ESK_PRIMITIVE_N("gcd", "(gcd n ...)", 0, -1, gcd, "The greatest common divisor, which is not negative."),
    ESK_PRIMITIVE_N("lcm", "(lcm n ...)", 0, -1, lcm, "The least common multiple, which is not negative."),
    ESK_PRIMITIVE_1("exact-integer-sqrt", "(exact-integer-sqrt k)", exact_integer_sqrt,
                    "Two values: the largest s with s s <= k, and k - s s."),
    ESK_PRIMITIVE_N("bitwise-and", "(bitwise-and n ...)", 0, -1, bitwise_and, "The bits that all the integers have."),
    ESK_PRIMITIVE_N("bitwise-ior", "(bitwise-ior n ...)", 0, -1, bitwise_ior, "The bits that any of the integers has."),
    ESK_PRIMITIVE_N("bitwise-xor", "(bitwise-xor n ...)", 0, -1, bitwise_xor,
                    "The bits that an odd number of the integers have."),
    ESK_PRIMITIVE_1("bitwise-not", "(bitwise-not n)", bitwise_not,
                    "The integer with each bit of n turned over, -1 - n."),
    ESK_PRIMITIVE_2("arithmetic-shift", "(arithmetic-shift n bits)", arithmetic_shift, "n 2^bits, rounded down."),
    ESK_PRIMITIVE_1("bit-count", "(bit-count n)", bit_count, "How many bits of n differ from its sign."),
    ESK_PRIMITIVE_1("integer-length", "(integer-length n)", bit_length, "How many bits n needs besides its sign."),
    {0}};
