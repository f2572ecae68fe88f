/* Kinds of numbers, their parts and exactness: predicates, rationals and complex numbers from their parts, conversion
 * between exact and inexact, rounding, equality in the sense of eqv? and hashing.
 */
#include "numbers.h"
#include "tensor_numbers.h"

#include <math.h>

/* ---- kinds ------------------------------------------------------------------------------------------------------ */

enum { NUMBER_TAGS = 1u << TAG_FIXNUM | 1u << TAG_FLONUM | 1u << TAG_BIGNUM | 1u << TAG_RATIONAL | 1u << TAG_COMPLEX };

bool esk_is_number(Value v) { return (unsigned)NUMBER_TAGS >> v.tag & 1; }

bool is_whole(Value v) {
    if (v.tag == TAG_FLONUM) {
        double x = esk_double(v);
        return isfinite(x) && x == trunc(x);
    }
    return is_integer(v);
}

void need_number(Context *context, const char *who, int position, Value v) {
    if (!esk_is_number(v)) esk_wrong_type(context, who, position, v, "a number");
}

void need_real(Context *context, const char *who, int position, Value v) {
    if (!is_real(v)) esk_wrong_type(context, who, position, v, "a real number");
}

void need_integer(Context *context, const char *who, int position, Value v) {
    if (!is_whole(v)) esk_wrong_type(context, who, position, v, "an integer");
}

void need_exact_integer(Context *context, const char *who, int position, Value v) {
    if (!is_integer(v)) esk_wrong_type(context, who, position, v, "an exact integer");
}

int real_sign(Value v) {
    if (v.tag == TAG_FLONUM) return (esk_double(v) > 0) - (esk_double(v) < 0);
    return integer_sign(numerator_of(v));
}

/* ---- parts ------------------------------------------------------------------------------------------------------ */

static Value couple(Context *context, int type, Value first, Value second) {
    Couple *c = esk_allocate(context, sizeof(Couple), type);
    c->first = first;
    c->second = second;
    return esk_object(c);
}

Value rational_from_reduced(Context *context, Value n, Value d) {
    return fixnum_is(d, 1) ? n : couple(context, TAG_RATIONAL, n, d);
}

Value rational_make(Context *context, Value n, Value d) {
    if (integer_sign(d) < 0) {
        n = integer_negate(context, n);
        d = integer_negate(context, d);
    }
    if (fixnum_is(d, 1)) return n;
    Value g = integer_gcd(context, n, d);
    if (!fixnum_is(g, 1)) {
        n = integer_exact_quotient(context, n, g);
        d = integer_exact_quotient(context, d, g);
    }
    return rational_from_reduced(context, n, d);
}

Value complex_make(Context *context, Value real, Value imaginary) {
    if (real.tag == TAG_FLONUM && imaginary.tag == TAG_FLONUM) return couple(context, TAG_COMPLEX, real, imaginary);
    if (is_exact_zero(imaginary)) return real;
    if (real.tag == TAG_FLONUM || imaginary.tag == TAG_FLONUM) {
        real = number_inexact(context, real);
        imaginary = number_inexact(context, imaginary);
    }
    return couple(context, TAG_COMPLEX, real, imaginary);
}

double real_double(Context *context, Value v) {
    if (v.tag == TAG_FLONUM) return esk_double(v);
    return v.tag == TAG_RATIONAL ? integer_ratio(context, couple_first(v), couple_second(v)) : integer_double(v);
}

Value number_inexact(Context *context, Value v) {
    if (v.tag == TAG_FLONUM) return v;
    if (v.tag == TAG_COMPLEX && !is_exact(v)) return v;
    if (v.tag == TAG_COMPLEX) {
        Value x = number_inexact(context, couple_first(v));
        return complex_make(context, x, number_inexact(context, couple_second(v)));
    }
    return esk_flonum(real_double(context, v));
}

Value number_exact(Context *context, Value v, const char *who) {
    if (v.tag == TAG_COMPLEX && !is_exact(v))
        return complex_make(context, number_exact(context, couple_first(v), who),
                            number_exact(context, couple_second(v), who));
    if (v.tag != TAG_FLONUM) return v;
    double x = esk_double(v);
    if (!isfinite(x)) esk_wrong_type(context, who, 1, v, "a finite number");
    if (x == trunc(x)) return integer_from_double(context, x);
    int exponent;
    int64_t fraction = (int64_t)ldexp(frexp(x, &exponent), 53);
    int zeros = __builtin_ctzll((uint64_t)fraction);
    Value d = integer_shift(context, esk_fixnum(1), 53 - exponent - zeros);
    return rational_from_reduced(context, esk_fixnum(fraction >> zeros), d);
}

/* ---- sameness --------------------------------------------------------------------------------------------------- */

bool esk_numbers_eqv(Value a, Value b) {
    if (a.tag != b.tag) return false;
    switch (a.tag) {
    case TAG_FLONUM: return a.bits == b.bits || (isnan(esk_double(a)) && isnan(esk_double(b)));
    case TAG_BIGNUM: return integer_compare(a, b) == 0;
    case TAG_RATIONAL:
    case TAG_COMPLEX:
        return esk_numbers_eqv(couple_first(a), couple_first(b)) && esk_numbers_eqv(couple_second(a), couple_second(b));
    default: return a.bits == b.bits;
    }
}

static uint64_t mix(uint64_t h) {
    h = (h ^ h >> 32) * 0xd6e8feb86659fd93u;
    h = (h ^ h >> 32) * 0xd6e8feb86659fd93u;
    return h ^ h >> 32;
}

uint64_t esk_number_hash(Value v) {
    switch (v.tag) {
    case TAG_FLONUM: return mix(isnan(esk_double(v)) ? TAG_FLONUM : v.bits + TAG_FLONUM);
    case TAG_BIGNUM: {
        const Bignum *b = esk_pointer(v);
        uint64_t h = b->head.flags & FLAG_NEGATIVE;
        for (uint32_t i = 0; i < b->head.count; i++) h = mix(h + b->limbs[i]);
        return h;
    }
    case TAG_RATIONAL:
    case TAG_COMPLEX: return mix(esk_number_hash(couple_first(v)) * 31 + esk_number_hash(couple_second(v)) + v.tag);
    default: return mix(v.bits);
    }
}

/* ---- predicates ------------------------------------------------------------------------------------------------- */

static Value number_p(Context *context, Value v) {
    (void)context;
    return esk_boolean(esk_is_number(undifferentiated(v)));
}

static Value real_p(Context *context, Value v) {
    (void)context;
    return esk_boolean(is_real(undifferentiated(v)));
}

static Value integer_p(Context *context, Value v) {
    (void)context;
    return esk_boolean(is_whole(undifferentiated(v)));
}

static Value fixnum_p(Context *context, Value v) {
    (void)context;
    return esk_boolean(v.tag == TAG_FIXNUM);
}

static Value flonum_p(Context *context, Value v) {
    (void)context;
    return esk_boolean(v.tag == TAG_FLONUM);
}

static Value exact_integer_p(Context *context, Value v) {
    (void)context;
    return esk_boolean(is_integer(undifferentiated(v)));
}

static Value exact_rational_p(Context *context, Value v) {
    (void)context;
    return esk_boolean(is_exact_rational(undifferentiated(v)));
}


static Value rational_p(Context *context, Value v) {
    (void)context;
    v = undifferentiated(v);
    return esk_boolean(v.tag == TAG_FLONUM ? isfinite(esk_double(v)) : is_exact_rational(v));
}

static Value natural_p(Context *context, Value v) {
    (void)context;
    v = undifferentiated(v);
    return esk_boolean(is_integer(v) && integer_sign(v) >= 0);
}

static Value exact_p(Context *context, Value v) {
    v = undifferentiated(v);
    need_number(context, "exact?", 1, v);
    return esk_boolean(is_exact(v));
}

static Value inexact_p(Context *context, Value v) {
    v = undifferentiated(v);
    need_number(context, "inexact?", 1, v);
    return esk_boolean(!is_exact(v));
}

static bool part_is_nan(Value v) { return v.tag == TAG_FLONUM && isnan(esk_double(v)); }
static bool part_is_infinite(Value v) { return v.tag == TAG_FLONUM && isinf(esk_double(v)); }

static Value nan_p(Context *context, Value v) {
    v = tensor_number(context, "nan?", 1, undifferentiated(v));
    need_number(context, "nan?", 1, v);
    return esk_boolean(part_is_nan(real_part_of(v)) || part_is_nan(imaginary_part_of(v)));
}

static Value infinite_p(Context *context, Value v) {
    v = tensor_number(context, "infinite?", 1, undifferentiated(v));
    need_number(context, "infinite?", 1, v);
    return esk_boolean(part_is_infinite(real_part_of(v)) || part_is_infinite(imaginary_part_of(v)));
}

static Value finite_p(Context *context, Value v) {
    v = tensor_number(context, "finite?", 1, undifferentiated(v));
    need_number(context, "finite?", 1, v);
    Value x = real_part_of(v), y = imaginary_part_of(v);
    return esk_boolean(!(part_is_nan(x) || part_is_nan(y) || part_is_infinite(x) || part_is_infinite(y)));
}

/* A tensor without axes compared with zero. */
static Value beside_zero(Context *context, const char *comparison, const char *who, Value tensor) {
    Value found = tensor_apply(context, comparison, who, (Value[2]){tensor, esk_fixnum(0)}, 2);
    if (found.tag != TAG_BOOLEAN) esk_wrong_type(context, who, 1, tensor, "a number or a tensor without axes");
    return found;
}

static Value zero_p(Context *context, Value v) {
    v = undifferentiated(v);
    if (v.tag == TAG_TENSOR) return beside_zero(context, "compare:equal", "zero?", v);
    v = tensor_number(context, "zero?", 1, v);
    need_number(context, "zero?", 1, v);
    if (v.tag == TAG_COMPLEX)
        return esk_boolean(!is_exact(v) && esk_double(couple_first(v)) == 0 && esk_double(couple_second(v)) == 0);
    return esk_boolean(v.tag == TAG_FLONUM ? esk_double(v) == 0 : is_exact_zero(v));
}

static Value positive_p(Context *context, Value v) {
    v = undifferentiated(v);
    if (v.tag == TAG_TENSOR) return beside_zero(context, "compare:greater", "positive?", v);
    v = tensor_number(context, "positive?", 1, v);
    need_real(context, "positive?", 1, v);
    return esk_boolean(real_sign(v) > 0);
}

static Value negative_p(Context *context, Value v) {
    v = undifferentiated(v);
    if (v.tag == TAG_TENSOR) return beside_zero(context, "compare:less", "negative?", v);
    v = tensor_number(context, "negative?", 1, v);
    need_real(context, "negative?", 1, v);
    return esk_boolean(real_sign(v) < 0);
}

static bool odd(Value v) { return v.tag == TAG_FLONUM ? fmod(esk_double(v), 2) != 0 : integer_odd(v); }

static Value odd_p(Context *context, Value v) {
    need_integer(context, "odd?", 1, v);
    return esk_boolean(odd(v));
}

static Value even_p(Context *context, Value v) {
    need_integer(context, "even?", 1, v);
    return esk_boolean(!odd(v));
}

/* ---- parts and exactness, as procedures ------------------------------------------------------------------------- */

static Value exact(Context *context, const char *who, Value v) {
    v = tensor_number(context, who, 1, v);
    if (is_differentiated(v)) return extended_exact(context, v);
    need_number(context, who, 1, v);
    return number_exact(context, v, who);
}

static Value inexact(Context *context, const char *who, Value v) {
    if (holds_tensor(v)) return tensor_inexact(context, who, v);
    if (is_differentiated(v)) return extended_inexact(context, v);
    need_number(context, who, 1, v);
    return number_inexact(context, v);
}

Value esk_exact(Context *context, Value v) { return exact(context, "exact", v); }
Value esk_inexact(Context *context, Value v) { return inexact(context, "inexact", v); }
static Value inexact_to_exact(Context *context, Value v) { return exact(context, "inexact->exact", v); }
static Value exact_to_inexact(Context *context, Value v) { return inexact(context, "exact->inexact", v); }

static Value fraction_part(Context *context, Value v, const char *who, Value (*part)(Value)) {
    need_real(context, who, 1, v);
    if (v.tag != TAG_FLONUM) return part(v);
    if (!isfinite(esk_double(v))) esk_wrong_type(context, who, 1, v, "a rational number");
    return number_inexact(context, part(number_exact(context, v, who)));
}

static Value numerator(Context *context, Value v) { return fraction_part(context, v, "numerator", numerator_of); }
static Value denominator(Context *context, Value v) { return fraction_part(context, v, "denominator", denominator_of); }

static Value real_part(Context *context, Value v) {
    need_plain(context, "real-part", v, NOT_HOLOMORPHIC);
    need_number(context, "real-part", 1, v);
    return real_part_of(v);
}

static Value imaginary_part(Context *context, Value v) {
    need_plain(context, "imag-part", v, NOT_HOLOMORPHIC);
    need_number(context, "imag-part", 1, v);
    return imaginary_part_of(v);
}

static Value make_rectangular(Context *context, Value x, Value y) {
    need_plain(context, "make-rectangular", x, COMPLEX_FROM_PARTS);
    need_plain(context, "make-rectangular", y, COMPLEX_FROM_PARTS);
    need_real(context, "make-rectangular", 1, x);
    need_real(context, "make-rectangular", 2, y);
    return complex_make(context, x, y);
}

/* ---- rounding --------------------------------------------------------------------------------------------------- */

static Value round_down(Context *context, Value v) {
    return integer_floor_divide(context, couple_first(v), couple_second(v), NULL);
}

Value esk_floor(Context *context, Value v) {
    v = undifferentiated(v); /* its derivative is zero wherever there is one */
    if (v.tag == TAG_TENSOR) return tensor_floor(context, v);
    need_real(context, "floor", 1, v);
    if (v.tag == TAG_FLONUM) return esk_flonum(floor(esk_double(v)));
    return v.tag == TAG_RATIONAL ? round_down(context, v) : v;
}

static Value ceiling(Context *context, Value v) {
    v = undifferentiated(v); /* its derivative is zero wherever there is one */
    if (v.tag == TAG_TENSOR) return tensor_ceiling(context, v);
    need_real(context, "ceiling", 1, v);
    if (v.tag == TAG_FLONUM) return esk_flonum(ceil(esk_double(v)));
    return v.tag == TAG_RATIONAL ? integer_add(context, round_down(context, v), esk_fixnum(1)) : v;
}

Value esk_truncate(Context *context, Value v) {
    v = undifferentiated(v); /* its derivative is zero wherever there is one */
    if (v.tag == TAG_TENSOR) return tensor_truncate(context, v);
    need_real(context, "truncate", 1, v);
    if (v.tag == TAG_FLONUM) return esk_flonum(trunc(esk_double(v)));
    if (v.tag != TAG_RATIONAL) return v;
    Value q;
    integer_divide(context, couple_first(v), couple_second(v), &q, NULL);
    return q;
}

static Value round_(Context *context, Value v) {
    v = undifferentiated(v); /* its derivative is zero wherever there is one */
    if (v.tag == TAG_TENSOR) return tensor_round(context, v);
    need_real(context, "round", 1, v);
    if (v.tag == TAG_FLONUM) return esk_flonum(nearbyint(esk_double(v)));
    if (v.tag != TAG_RATIONAL) return v;
    Value rest, d = couple_second(v), q = integer_floor_divide(context, couple_first(v), d, &rest);
    int order = integer_compare(integer_shift(context, rest, 1), d);
    return order > 0 || (order == 0 && integer_odd(q)) ? integer_add(context, q, esk_fixnum(1)) : q;
}

/* The simplest rational in the closed interval from low to high, 0 < low <= high: along the continued fraction that
 * both have in common. The terms are gathered from the first to the last in convergents p / q. */
static Value simplest_between(Context *context, Value low, Value high) {
    Value p0 = esk_fixnum(0), q0 = esk_fixnum(1), p1 = esk_fixnum(1), q1 = esk_fixnum(0);
    for (;;) {
        Value rest, d = denominator_of(low), term = integer_floor_divide(context, numerator_of(low), d, &rest);
        bool last = is_exact_zero(rest);
        if (!last && real_compare(context, integer_add(context, term, esk_fixnum(1)), high) <= 0) {
            term = integer_add(context, term, esk_fixnum(1));
            last = true;
        }
        Value p = integer_add(context, integer_multiply(context, term, p1), p0);
        Value q = integer_add(context, integer_multiply(context, term, q1), q0);
        if (last) return rational_from_reduced(context, p, q);
        p0 = p1;
        q0 = q1;
        p1 = p;
        q1 = q;
        Value above = esk_subtract(context, high, term);
        high = rational_make(context, d, rest);
        low = esk_divide(context, esk_fixnum(1), above);
    }
}

static Value rationalize(Context *context, Value x, Value y) {
    need_real(context, "rationalize", 1, x);
    need_real(context, "rationalize", 2, y);
    bool flonum = x.tag == TAG_FLONUM || y.tag == TAG_FLONUM;
    if (flonum) {
        double p = real_double(context, x), q = real_double(context, y);
        if (isnan(p) || isnan(q) || (isinf(p) && isinf(q))) return esk_flonum(NAN);
        if (isinf(q)) return esk_flonum(0.0);
        if (isinf(p)) return esk_flonum(p);
    }
    Value middle = number_exact(context, x, "rationalize"), width = number_exact(context, y, "rationalize");
    if (real_sign(width) < 0) width = number_negate(context, width);
    Value low = esk_subtract(context, middle, width), high = esk_add(context, middle, width), result;
    if (real_sign(low) > 0) result = simplest_between(context, low, high);
    else if (real_sign(high) >= 0) result = esk_fixnum(0);
    else {
        result = simplest_between(context, number_negate(context, high), number_negate(context, low));
        result = number_negate(context, result);
    }
    return flonum ? number_inexact(context, result) : result;
}

const Primitive esk_numbers_primitives[] = {
    ESK_PRIMITIVE_1("number?", "(number? object)", number_p, "Whether object is a number."),
    ESK_PRIMITIVE_1("complex?", "(complex? object)", number_p,
                    "Whether object is a complex number, as every number is."),
    ESK_PRIMITIVE_1("real?", "(real? object)", real_p, "Whether object is a real number."),
    ESK_PRIMITIVE_1("rational?", "(rational? object)", rational_p, "Whether object is a finite real number."),
    ESK_PRIMITIVE_1("integer?", "(integer? object)", integer_p, "Whether object is an integer, exact or inexact."),
    ESK_PRIMITIVE_1("%fixnum?", "(%fixnum? object)", fixnum_p, "Whether object is an exact integer of 64 bits."),
    ESK_PRIMITIVE_1("%flonum?", "(%flonum? object)", flonum_p,
                    "Whether object is an inexact real number, and none that is differentiated."),
    ESK_PRIMITIVE_1("exact-integer?", "(exact-integer? object)", exact_integer_p,
                    "Whether object is an exact integer."),
    ESK_PRIMITIVE_1("exact-rational?", "(exact-rational? object)", exact_rational_p,
                    "Whether object is an exact rational number."),
    ESK_PRIMITIVE_1("exact-nonnegative-integer?", "(exact-nonnegative-integer? object)", natural_p,
                    "Whether object is an exact integer that is not negative."),
    ESK_PRIMITIVE_1("exact?", "(exact? z)", exact_p, "Whether z is exact."),
    ESK_PRIMITIVE_1("inexact?", "(inexact? z)", inexact_p, "Whether z is inexact."),
    ESK_PRIMITIVE_1("finite?", "(finite? z)", finite_p, "Whether no part of z is infinite or NaN."),
    ESK_PRIMITIVE_1("infinite?", "(infinite? z)", infinite_p, "Whether a part of z is infinite."),
    ESK_PRIMITIVE_1("nan?", "(nan? z)", nan_p, "Whether a part of z is NaN."),
    ESK_PRIMITIVE_1("zero?", "(zero? z)", zero_p, "Whether z is zero."),
    ESK_PRIMITIVE_1("positive?", "(positive? x)", positive_p, "Whether x is greater than zero."),
    ESK_PRIMITIVE_1("negative?", "(negative? x)", negative_p, "Whether x is less than zero."),
    ESK_PRIMITIVE_1("odd?", "(odd? n)", odd_p, "Whether n is odd."),
    ESK_PRIMITIVE_1("even?", "(even? n)", even_p, "Whether n is even."),
    ESK_PRIMITIVE_1("exact", "(exact z)", esk_exact, "The exact number that is equal to z."),
    ESK_PRIMITIVE_1("inexact", "(inexact z)", esk_inexact, "The inexact number closest to z."),
    ESK_PRIMITIVE_1("inexact->exact", "(inexact->exact z)", inexact_to_exact, "The exact number that is equal to z."),
    ESK_PRIMITIVE_1("exact->inexact", "(exact->inexact z)", exact_to_inexact, "The inexact number closest to z."),
    ESK_PRIMITIVE_1("numerator", "(numerator q)", numerator, "The numerator of q in lowest terms."),
    ESK_PRIMITIVE_1("denominator", "(denominator q)", denominator,
                    "The denominator of q in lowest terms, which is positive."),
    ESK_PRIMITIVE_1("real-part", "(real-part z)", real_part, "The real part of z."),
    ESK_PRIMITIVE_1("imag-part", "(imag-part z)", imaginary_part, "The imaginary part of z."),
    ESK_PRIMITIVE_2("make-rectangular", "(make-rectangular x y)", make_rectangular, "The complex number x + yi."),
    ESK_PRIMITIVE_1("floor", "(floor x)", esk_floor, "The largest integer that is not greater than x."),
    ESK_PRIMITIVE_1("ceiling", "(ceiling x)", ceiling, "The smallest integer that is not less than x."),
    ESK_PRIMITIVE_1("truncate", "(truncate x)", esk_truncate,
                    "The integer closest to x among those that are not farther from zero."),
    ESK_PRIMITIVE_1("round", "(round x)", round_, "The integer closest to x; of two, the even one."),
    ESK_PRIMITIVE_2("rationalize", "(rationalize x y)", rationalize,
                    "The simplest rational number that differs from x by at most y."),
    {0}};
