/* The operators + - * / and the comparisons, on every kind of number: what compiled code calls when both operands are
 * not plainly fixnums or flonums, and the procedures of any number of arguments.
 */
#include "numbers.h"
#include "tensor_numbers.h"

#include <math.h>

static _Noreturn void not_numbers(Context *context, const char *who, Value a, Value b) {
    bool first = !esk_is_number(a);
    esk_wrong_type(context, who, first ? 1 : 2, first ? a : b, "a number");
}

_Noreturn static void division_by_zero(Context *context, const char *who, Value a) {
    esk_fail(context, ERROR_ARITHMETIC, who, "division by zero", 1, a);
}

static inline bool both_numbers(Value a, Value b) { return esk_is_number(a) && esk_is_number(b); }

/* ---- rationals -------------------------------------------------------------------------------------------------- */

/* n1 / d1 + n2 / d2, after Knuth, volume 2, 4.5.1: small divisors first, so that numbers stay small. */
static Value rational_sum(Context *context, Value a, Value b, bool subtract) {
    Value n1 = numerator_of(a), d1 = denominator_of(a), n2 = numerator_of(b), d2 = denominator_of(b);
    if (subtract) n2 = integer_negate(context, n2);
    if (n1.tag == TAG_FIXNUM && d1.tag == TAG_FIXNUM && n2.tag == TAG_FIXNUM && d2.tag == TAG_FIXNUM) {
        int64_t p = esk_integer(d1), q = esk_integer(d2), g = (int64_t)natural_gcd_limb((Limb)p, (Limb)q);
        SignedWide sum = (SignedWide)esk_integer(n1) * (q / g) + (SignedWide)esk_integer(n2) * (p / g);
        if (!sum) return esk_fixnum(0);
        int64_t h = g == 1 ? 1 : (int64_t)natural_gcd_limb(fixnum_magnitude((int64_t)(sum % g)), (Limb)g);
        Value n = integer_from_wide(context, h == 1 ? sum : sum / h);
        return rational_from_reduced(context, n, integer_from_wide(context, (SignedWide)(p / g) * (q / h)));
    }
    Value g = integer_gcd(context, d1, d2);
    Value p = integer_exact_quotient(context, d1, g), q = integer_exact_quotient(context, d2, g);
    Value n = integer_add(context, integer_multiply(context, n1, q), integer_multiply(context, n2, p));
    if (is_exact_zero(n)) return n;
    Value h = fixnum_is(g, 1) ? g : integer_gcd(context, n, g);
    n = integer_exact_quotient(context, n, h);
    return rational_from_reduced(context, n, integer_multiply(context, p, integer_exact_quotient(context, d2, h)));
}

/* (n1 / d1) (n2 / d2) with n1 / d1 and n2 / d2 in lowest terms; the denominators may be negative. */
static Value rational_product(Context *context, Value n1, Value d1, Value n2, Value d2) {
    if (n1.tag == TAG_FIXNUM && d1.tag == TAG_FIXNUM && n2.tag == TAG_FIXNUM && d2.tag == TAG_FIXNUM) {
        int64_t a = esk_integer(n1), b = esk_integer(d1), c = esk_integer(n2), d = esk_integer(d2);
        Limb g = natural_gcd_limb(fixnum_magnitude(a), fixnum_magnitude(d));
        Limb h = natural_gcd_limb(fixnum_magnitude(c), fixnum_magnitude(b));
        if (g <= INT64_MAX && h <= INT64_MAX) {
            int64_t p = (int64_t)g, q = (int64_t)h;
            SignedWide n = (SignedWide)(a / p) * (c / q), m = (SignedWide)(b / q) * (d / p);
            Value numerator = integer_from_wide(context, m < 0 ? -n : n);
            return rational_from_reduced(context, numerator, integer_from_wide(context, m < 0 ? -m : m));
        }
    }
    Value g = integer_gcd(context, n1, d2), h = integer_gcd(context, n2, d1);
    Value n = integer_multiply(context, integer_exact_quotient(context, n1, g), integer_exact_quotient(context, n2, h));
    Value d = integer_multiply(context, integer_exact_quotient(context, d1, h), integer_exact_quotient(context, d2, g));
    if (integer_sign(d) < 0) {
        n = integer_negate(context, n);
        d = integer_negate(context, d);
    }
    return rational_from_reduced(context, n, d);
}

/* The parts of two complex numbers of flonums: p + q i and r + s i. */
typedef struct { double p, q, r, s; } Parts;
static inline Parts parts_of(Value a, Value b) {
    return (Parts){esk_double(couple_first(a)), esk_double(couple_second(a)), esk_double(couple_first(b)),
                   esk_double(couple_second(b))};
}
static inline Value inexact_complex(Context *context, double x, double y) {
    return complex_make(context, esk_flonum(x), esk_flonum(y));
}

/* ---- + and - ---------------------------------------------------------------------------------------------------- */

static __attribute__((noinline)) Value add_slowly(Context *context, Value a, Value b) {
    if (is_integer(a) && is_integer(b)) return integer_add(context, a, b);
    if (!both_numbers(a, b)) not_numbers(context, "+", a, b);
    if (a.tag == TAG_COMPLEX || b.tag == TAG_COMPLEX) {
        Value x = esk_add(context, real_part_of(a), real_part_of(b));
        if (a.tag != TAG_COMPLEX) return complex_make(context, x, couple_second(b));
        if (b.tag != TAG_COMPLEX) return complex_make(context, x, couple_second(a));
        return complex_make(context, x, esk_add(context, couple_second(a), couple_second(b)));
    }
    if (a.tag == TAG_FLONUM || b.tag == TAG_FLONUM)
        return esk_flonum(real_double(context, a) + real_double(context, b));
    return rational_sum(context, a, b, false);
}

Value esk_add(Context *context, Value a, Value b) {
    int64_t sum;
    if (a.tag == TAG_FIXNUM && b.tag == TAG_FIXNUM && !__builtin_add_overflow(esk_integer(a), esk_integer(b), &sum))
        return esk_fixnum(sum);
    if (a.tag == TAG_FLONUM && b.tag == TAG_FLONUM) return esk_flonum(esk_double(a) + esk_double(b));
    if (a.tag == TAG_FLONUM && b.tag == TAG_FIXNUM) return esk_flonum(esk_double(a) + (double)esk_integer(b));
    if (a.tag == TAG_FIXNUM && b.tag == TAG_FLONUM) return esk_flonum((double)esk_integer(a) + esk_double(b));
    if (are_inexact_complexes(a, b)) {
        Parts z = parts_of(a, b);
        return inexact_complex(context, z.p + z.r, z.q + z.s);
    }
    if (is_extended(a) || is_extended(b)) return extended_add(context, a, b);
    return add_slowly(context, a, b);
}

static __attribute__((noinline)) Value subtract_slowly(Context *context, Value a, Value b) {
    if (is_integer(a) && is_integer(b)) return integer_subtract(context, a, b);
    if (!both_numbers(a, b)) not_numbers(context, "-", a, b);
    if (a.tag == TAG_COMPLEX || b.tag == TAG_COMPLEX) {
        Value x = esk_subtract(context, real_part_of(a), real_part_of(b));
        if (a.tag != TAG_COMPLEX) return complex_make(context, x, number_negate(context, couple_second(b)));
        if (b.tag != TAG_COMPLEX) return complex_make(context, x, couple_second(a));
        return complex_make(context, x, esk_subtract(context, couple_second(a), couple_second(b)));
    }
    if (a.tag == TAG_FLONUM || b.tag == TAG_FLONUM)
        return esk_flonum(real_double(context, a) - real_double(context, b));
    return rational_sum(context, a, b, true);
}

Value esk_subtract(Context *context, Value a, Value b) {
    int64_t difference;
    if (a.tag == TAG_FIXNUM && b.tag == TAG_FIXNUM &&
        !__builtin_sub_overflow(esk_integer(a), esk_integer(b), &difference))
        return esk_fixnum(difference);
    if (a.tag == TAG_FLONUM && b.tag == TAG_FLONUM) return esk_flonum(esk_double(a) - esk_double(b));
    if (a.tag == TAG_FLONUM && b.tag == TAG_FIXNUM) return esk_flonum(esk_double(a) - (double)esk_integer(b));
    if (a.tag == TAG_FIXNUM && b.tag == TAG_FLONUM) return esk_flonum((double)esk_integer(a) - esk_double(b));
    if (are_inexact_complexes(a, b)) {
        Parts z = parts_of(a, b);
        return inexact_complex(context, z.p - z.r, z.q - z.s);
    }
    if (is_extended(a) || is_extended(b)) return extended_subtract(context, a, b);
    return subtract_slowly(context, a, b);
}

Value number_negate(Context *context, Value v) {
    if (v.tag == TAG_FLONUM) return esk_flonum(-esk_double(v));
    if (v.tag == TAG_RATIONAL)
        return rational_from_reduced(context, integer_negate(context, couple_first(v)), couple_second(v));
    if (v.tag == TAG_COMPLEX)
        return complex_make(context, number_negate(context, couple_first(v)), number_negate(context, couple_second(v)));
    return integer_negate(context, v);
}

Value esk_negate(Context *context, Value v) {
    if (is_extended(v)) return extended_negate(context, v);
    need_number(context, "-", 1, v);
    return number_negate(context, v);
}

/* ---- * ---------------------------------------------------------------------------------------------------------- */

static Value complex_product(Context *context, Value a, Value b) {
    if (a.tag != TAG_COMPLEX || b.tag != TAG_COMPLEX) {
        Value real = a.tag == TAG_COMPLEX ? b : a, z = a.tag == TAG_COMPLEX ? a : b;
        if (is_exact_zero(real) && is_exact(z)) return real;
        return complex_make(context, esk_multiply(context, real, couple_first(z)),
                            esk_multiply(context, real, couple_second(z)));
    }
    Value p = couple_first(a), q = couple_second(a), r = couple_first(b), s = couple_second(b);
    Value x = esk_subtract(context, esk_multiply(context, p, r), esk_multiply(context, q, s));
    return complex_make(context, x, esk_add(context, esk_multiply(context, p, s), esk_multiply(context, q, r)));
}

static __attribute__((noinline)) Value multiply_slowly(Context *context, Value a, Value b) {
    if (is_integer(a) && is_integer(b)) return integer_multiply(context, a, b);
    if (!both_numbers(a, b)) not_numbers(context, "*", a, b);
    if (a.tag == TAG_COMPLEX || b.tag == TAG_COMPLEX) return complex_product(context, a, b);
    if (a.tag == TAG_FLONUM || b.tag == TAG_FLONUM)
        return esk_flonum(real_double(context, a) * real_double(context, b));
    return rational_product(context, numerator_of(a), denominator_of(a), numerator_of(b), denominator_of(b));
}

Value esk_multiply(Context *context, Value a, Value b) {
    int64_t product;
    if (a.tag == TAG_FIXNUM && b.tag == TAG_FIXNUM && !__builtin_mul_overflow(esk_integer(a), esk_integer(b), &product))
        return esk_fixnum(product);
    if (a.tag == TAG_FLONUM && b.tag == TAG_FLONUM) return esk_flonum(esk_double(a) * esk_double(b));
    if (a.tag == TAG_FLONUM && b.tag == TAG_FIXNUM) return esk_flonum(esk_double(a) * (double)esk_integer(b));
    if (a.tag == TAG_FIXNUM && b.tag == TAG_FLONUM) return esk_flonum((double)esk_integer(a) * esk_double(b));
    if (are_inexact_complexes(a, b)) {
        Parts z = parts_of(a, b);
        double x = z.p * z.r, y = z.q * z.s, v = z.p * z.s, w = z.q * z.r; /* each rounded, as if by itself */
        return inexact_complex(context, x - y, v + w);
    }
    if (is_extended(a) || is_extended(b)) return extended_multiply(context, a, b);
    return multiply_slowly(context, a, b);
}

/* ---- / ---------------------------------------------------------------------------------------------------------- */

/* (p + q i) / (r + s i) in doubles, after Smith: no product of two parts of the divisor, which might overflow. */
static Value flonum_complex_quotient(Context *context, double p, double q, double r, double s) {
    if (fabs(r) >= fabs(s)) {
        double t = s / r, d = r + s * t;
        if (r == 0 && s == 0) return complex_make(context, esk_flonum(p / r), esk_flonum(q / r));
        return complex_make(context, esk_flonum((p + q * t) / d), esk_flonum((q - p * t) / d));
    }
    double t = r / s, d = r * t + s;
    return complex_make(context, esk_flonum((p * t + q) / d), esk_flonum((q * t - p) / d));
}

static Value complex_quotient(Context *context, Value a, Value b) {
    if (b.tag != TAG_COMPLEX)
        return complex_make(context, esk_divide(context, couple_first(a), b), esk_divide(context, couple_second(a), b));
    if (!is_exact(a) || !is_exact(b)) {
        double r = real_double(context, couple_first(b)), s = real_double(context, couple_second(b));
        double p = real_double(context, real_part_of(a));
        double q = a.tag == TAG_COMPLEX ? real_double(context, couple_second(a)) : 0.0;
        return flonum_complex_quotient(context, p, q, r, s);
    }
    Value r = couple_first(b), s = couple_second(b);
    Value norm = esk_add(context, esk_multiply(context, r, r), esk_multiply(context, s, s));
    Value product = complex_product(context, a, complex_make(context, r, number_negate(context, s)));
    return esk_divide(context, product, norm);
}

Value esk_divide(Context *context, Value a, Value b) {
    if (a.tag == TAG_FLONUM && b.tag == TAG_FLONUM) return esk_flonum(esk_double(a) / esk_double(b));
    if (is_extended(a) || is_extended(b)) return extended_divide(context, a, b);
    if (!both_numbers(a, b)) not_numbers(context, "/", a, b);
    if (is_exact_zero(b)) division_by_zero(context, "/", a);
    if (a.tag == TAG_COMPLEX || b.tag == TAG_COMPLEX) return complex_quotient(context, a, b);
    if (a.tag == TAG_FLONUM || b.tag == TAG_FLONUM)
        return esk_flonum(real_double(context, a) / real_double(context, b));
    if (is_integer(a) && is_integer(b)) return rational_make(context, a, b);
    if (is_exact_zero(a)) return a;
    return rational_product(context, numerator_of(a), denominator_of(a), denominator_of(b), numerator_of(b));
}

/* ---- comparison ------------------------------------------------------------------------------------------------- */

static int compare_fixnum_double(int64_t n, double x) {
    if (isnan(x)) return UNORDERED;
    if (x >= 0x1p63) return -1;
    if (x < -0x1p63) return 1;
    int64_t whole = (int64_t)x; /* towards zero, without error */
    if (n != whole) return n < whole ? -1 : 1;
    double rest = x - (double)whole; /* exact: a double with a fraction is small */
    return rest > 0 ? -1 : rest < 0;
}

static int compare_exact(Context *context, Value a, Value b) {
    if (is_integer(a) && is_integer(b)) return integer_compare(a, b);
    int p = real_sign(a), q = real_sign(b);
    if (p != q) return p < q ? -1 : 1;
    return integer_compare(integer_multiply(context, numerator_of(a), denominator_of(b)),
                           integer_multiply(context, numerator_of(b), denominator_of(a)));
}

static int compare_exact_double(Context *context, Value a, double x) {
    if (a.tag == TAG_FIXNUM) return compare_fixnum_double(esk_integer(a), x);
    if (isnan(x)) return UNORDERED;
    if (isinf(x)) return x > 0 ? -1 : 1;
    int p = real_sign(a), q = (x > 0) - (x < 0);
    if (p != q) return p < q ? -1 : 1;
    return compare_exact(context, a, number_exact(context, esk_flonum(x), NULL));
}

int real_compare(Context *context, Value a, Value b) {
    if (a.tag == TAG_FLONUM && b.tag == TAG_FLONUM) {
        double x = esk_double(a), y = esk_double(b);
        return x < y ? -1 : x > y ? 1 : x == y ? 0 : UNORDERED;
    }
    if (b.tag == TAG_FLONUM) return compare_exact_double(context, a, esk_double(b));
    if (a.tag == TAG_FLONUM) {
        int order = compare_exact_double(context, b, esk_double(a));
        return order == UNORDERED ? order : -order;
    }
    return compare_exact(context, a, b);
}

static bool equal_numbers(Context *context, Value a, Value b) {
    if (a.tag == TAG_COMPLEX || b.tag == TAG_COMPLEX)
        return real_compare(context, real_part_of(a), real_part_of(b)) == 0 &&
               real_compare(context, imaginary_part_of(a), imaginary_part_of(b)) == 0;
    return real_compare(context, a, b) == 0;
}

static int ordered(Context *context, const char *who, Value a, Value b) {
    need_real(context, who, 1, a);
    need_real(context, who, 2, b);
    return real_compare(context, a, b);
}

static bool in_order_equal(Context *context, Value a, Value b) {
    if (!both_numbers(a, b)) not_numbers(context, "=", a, b);
    return equal_numbers(context, a, b);
}
static bool in_order_less(Context *context, Value a, Value b) { return ordered(context, "<", a, b) == -1; }
static bool in_order_less_equal(Context *context, Value a, Value b) { return ordered(context, "<=", a, b) <= 0; }
static bool in_order_greater(Context *context, Value a, Value b) { return ordered(context, ">", a, b) == 1; }
static bool in_order_greater_equal(Context *context, Value a, Value b) {
    int order = ordered(context, ">=", a, b);
    return order == 0 || order == 1;
}

uint64_t esk_decides(Context *context, Value truth) {
    if (truth.tag == TAG_BOOLEAN) return truth.bits;
    esk_fail(context, ERROR_TYPE, NULL,
             "a comparison of tensors has a truth value for each element and decides no test; say (tensor-any c) or "
             "(tensor-all c), where c is", 1, truth);
}

/* A comparison as a value, and as what decides a test. What is differentiated counts as its value. */
#define X(name, comparison, procedure)                                                                       \
    Value esk_compared_##name(Context *context, Value a, Value b) {                                          \
        a = undifferentiated(a);                                                                             \
        b = undifferentiated(b);                                                                             \
        if (a.tag == TAG_TENSOR || b.tag == TAG_TENSOR) return tensor_##name(context, a, b);                 \
        return esk_boolean(in_order_##name(context, a, b));                                                  \
    }                                                                                                        \
    static inline uint64_t decided_##name(Context *context, Value a, Value b) {                              \
        a = undifferentiated(a);                                                                             \
        b = undifferentiated(b);                                                                             \
        if (a.tag != TAG_TENSOR && b.tag != TAG_TENSOR) return in_order_##name(context, a, b);               \
        return esk_decides(context, tensor_##name(context, a, b));                                           \
    }
TENSOR_COMPARISONS(X)
#undef X

uint64_t esk_number_equal(Context *context, Value a, Value b) {
    if (a.tag == TAG_FIXNUM && b.tag == TAG_FIXNUM) return a.bits == b.bits;
    if (a.tag == TAG_FLONUM && b.tag == TAG_FLONUM) return esk_double(a) == esk_double(b);
    return decided_equal(context, a, b);
}

uint64_t esk_less(Context *context, Value a, Value b) {
    if (a.tag == TAG_FIXNUM && b.tag == TAG_FIXNUM) return esk_integer(a) < esk_integer(b);
    if (a.tag == TAG_FLONUM && b.tag == TAG_FLONUM) return esk_double(a) < esk_double(b);
    return decided_less(context, a, b);
}

uint64_t esk_less_equal(Context *context, Value a, Value b) {
    if (a.tag == TAG_FIXNUM && b.tag == TAG_FIXNUM) return esk_integer(a) <= esk_integer(b);
    if (a.tag == TAG_FLONUM && b.tag == TAG_FLONUM) return esk_double(a) <= esk_double(b);
    return decided_less_equal(context, a, b);
}

uint64_t esk_greater(Context *context, Value a, Value b) { return decided_greater(context, a, b); }
uint64_t esk_greater_equal(Context *context, Value a, Value b) { return decided_greater_equal(context, a, b); }

/* ---- procedures of any number of arguments ---------------------------------------------------------------------- */

/* Argument i of an operator, known to be a number: what comes later has the right position in an error. */
static Value operand(Context *context, const char *who, const Value *args, int64_t i) {
    need_any_number(context, who, (int)i + 1, args[i]);
    return args[i];
}

static Value add(Context *context, const Value *args, int64_t count) {
    Value sum = count ? operand(context, "+", args, 0) : esk_fixnum(0);
    for (int64_t i = 1; i < count; i++) sum = esk_add(context, sum, operand(context, "+", args, i));
    return sum;
}

static Value multiply(Context *context, const Value *args, int64_t count) {
    Value product = count ? operand(context, "*", args, 0) : esk_fixnum(1);
    for (int64_t i = 1; i < count; i++) product = esk_multiply(context, product, operand(context, "*", args, i));
    return product;
}

static Value subtract(Context *context, const Value *args, int64_t count) {
    Value difference = operand(context, "-", args, 0);
    if (count == 1) return esk_negate(context, difference);
    for (int64_t i = 1; i < count; i++) difference = esk_subtract(context, difference, operand(context, "-", args, i));
    return difference;
}

static Value divide(Context *context, const Value *args, int64_t count) {
    Value quotient = operand(context, "/", args, 0);
    if (count == 1) return esk_divide(context, esk_fixnum(1), quotient);
    for (int64_t i = 1; i < count; i++) quotient = esk_divide(context, quotient, operand(context, "/", args, i));
    return quotient;
}

/* Where each two neighbours compare so, element by element: from argument i on, a tensor. */
static Value chain_of_tensors(Context *context, const char *who, const Value *args, int64_t count, int64_t i,
                              Value holds, bool real, Value (*compared)(Context *, Value, Value)) {
    for (; i < count; i++) {
        Value v = undifferentiated(args[i]);
        if (v.tag != TAG_TENSOR) (real ? need_real : need_number)(context, who, (int)i + 1, v);
        if (i) holds = tensor_both(context, who, holds, compared(context, args[i - 1], args[i]));
    }
    return holds;
}

static Value all_equal(Context *context, const Value *args, int64_t count) {
    bool equal = true;
    for (int64_t i = 0; i < count; i++) {
        Value v = undifferentiated(args[i]);
        if (v.tag == TAG_TENSOR)
            return chain_of_tensors(context, "=", args, count, i, esk_boolean(equal), false, esk_compared_equal);
        need_number(context, "=", (int)i + 1, v);
        if (i && equal) equal = equal_numbers(context, undifferentiated(args[i - 1]), v);
    }
    return esk_boolean(equal);
}

/* Whether each two neighbours are in one of the orders of the set: bit 0 for less, 1 for equal, 2 for greater. */
static Value chain(Context *context, const char *who, const Value *args, int64_t count, unsigned orders,
                   Value (*compared)(Context *, Value, Value)) {
    bool holds = true;
    for (int64_t i = 0; i < count; i++) {
        Value v = undifferentiated(args[i]);
        if (v.tag == TAG_TENSOR)
            return chain_of_tensors(context, who, args, count, i, esk_boolean(holds), true, compared);
        need_real(context, who, (int)i + 1, v);
        if (i && holds) holds = orders >> (real_compare(context, undifferentiated(args[i - 1]), v) + 1) & 1;
    }
    return esk_boolean(holds);
}

static Value less(Context *context, const Value *args, int64_t count) {
    return chain(context, "<", args, count, 1, esk_compared_less);
}
static Value less_equal(Context *context, const Value *args, int64_t count) {
    return chain(context, "<=", args, count, 3, esk_compared_less_equal);
}
static Value greater(Context *context, const Value *args, int64_t count) {
    return chain(context, ">", args, count, 4, esk_compared_greater);
}
static Value greater_equal(Context *context, const Value *args, int64_t count) {
    return chain(context, ">=", args, count, 6, esk_compared_greater_equal);
}

/* From the argument on that is the first extended one; `best` is that of those before. */
static Value extreme_extended(Context *context, const char *who, const Value *args, int64_t count, int wanted,
                                    int64_t from, Value best) {
    for (int64_t i = from; i < count; i++) {
        if (!holds_tensor(args[i])) need_real(context, who, (int)i + 1, undifferentiated(args[i]));
        if (!i) best = args[i];
        else if (is_extended(best) || is_extended(args[i]))
            best = wanted > 0 ? extended_max(context, best, args[i]) : extended_min(context, best, args[i]);
        else best = wanted > 0 ? esk_max(context, best, args[i]) : esk_min(context, best, args[i]);
    }
    return best;
}

static Value extreme(Context *context, const char *who, const Value *args, int64_t count, int wanted) {
    Value best = args[0];
    bool inexact = false;
    for (int64_t i = 0; i < count; i++) {
        if (is_extended(args[i]))
            return extreme_extended(context, who, args, count, wanted, i,
                                          inexact ? number_inexact(context, best) : best);
        need_real(context, who, (int)i + 1, args[i]);
        inexact |= args[i].tag == TAG_FLONUM;
        int order = real_compare(context, args[i], best);
        bool is_nan = args[i].tag == TAG_FLONUM && isnan(esk_double(args[i]));
        if (order == wanted || is_nan) best = args[i]; /* a NaN stays: nothing is in order with it */
    }
    return inexact ? number_inexact(context, best) : best;
}

static Value maximum(Context *context, const Value *args, int64_t count) {
    return extreme(context, "max", args, count, 1);
}
static Value minimum(Context *context, const Value *args, int64_t count) {
    return extreme(context, "min", args, count, -1);
}

Value esk_max(Context *context, Value a, Value b) { return maximum(context, (Value[2]){a, b}, 2); }
Value esk_min(Context *context, Value a, Value b) { return minimum(context, (Value[2]){a, b}, 2); }

static Value increment(Context *context, Value v) {
    need_any_number(context, "1+", 1, v);
    return esk_add(context, v, esk_fixnum(1));
}

static Value decrement(Context *context, Value v) {
    need_any_number(context, "-1+", 1, v);
    return esk_subtract(context, v, esk_fixnum(1));
}

Value esk_square(Context *context, Value v) {
    if (is_extended(v)) return extended_square(context, v);
    need_number(context, "square", 1, v);
    return esk_multiply(context, v, v);
}

Value esk_abs(Context *context, Value v) {
    if (is_extended(v)) return extended_abs(context, v);
    need_real(context, "abs", 1, v);
    if (v.tag == TAG_FLONUM) return esk_flonum(fabs(esk_double(v)));
    return real_sign(v) < 0 ? number_negate(context, v) : v;
}

const Primitive esk_arithmetic_primitives[] = {
    ESK_PRIMITIVE_N("+", "(+ z ...)", 0, -1, add, "The sum of the numbers."),
    ESK_PRIMITIVE_N("*", "(* z ...)", 0, -1, multiply, "The product of the numbers."),
    ESK_PRIMITIVE_N("-", "(- z1 z2 ...)", 1, -1, subtract,
                    "The first number less the others; of one number, its negative."),
    ESK_PRIMITIVE_N("/", "(/ z1 z2 ...)", 1, -1, divide,
                    "The first number divided by the others; of one number, its reciprocal."),
    ESK_PRIMITIVE_N("=", "(= z1 z2 ...)", 1, -1, all_equal, "Whether all the numbers are equal."),
    ESK_PRIMITIVE_N("<", "(< x1 x2 ...)", 1, -1, less, "Whether each number is less than the next."),
    ESK_PRIMITIVE_N("<=", "(<= x1 x2 ...)", 1, -1, less_equal, "Whether no number is greater than the next."),
    ESK_PRIMITIVE_N(">", "(> x1 x2 ...)", 1, -1, greater, "Whether each number is greater than the next."),
    ESK_PRIMITIVE_N(">=", "(>= x1 x2 ...)", 1, -1, greater_equal, "Whether no number is less than the next."),
    ESK_PRIMITIVE_N("max", "(max x1 x2 ...)", 1, -1, maximum,
                    "The greatest of the numbers; inexact if any of them is."),
    ESK_PRIMITIVE_N("min", "(min x1 x2 ...)", 1, -1, minimum, "The least of the numbers; inexact if any of them is."),
    ESK_PRIMITIVE_1("1+", "(1+ z)", increment, "The number z + 1."),
    ESK_PRIMITIVE_1("-1+", "(-1+ z)", decrement, "The number z - 1."),
    ESK_PRIMITIVE_1("square", "(square z)", esk_square, "The number z times itself."),
    ESK_PRIMITIVE_1("abs", "(abs x)", esk_abs, "The absolute value of x."),
    {0}};
