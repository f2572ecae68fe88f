/* Powers, roots, logarithms and the trigonometric functions, of real and complex numbers, with exact results where the
 * arguments are exact and so is the answer. Branch cuts are those of R7RS 6.2.6; where a cut's side is told by the sign
 * of an imaginary zero that a real argument does not have, the side that the formulas there give is taken.
 */
#include "complex_double.h"
#include "differential.h"

static const double LN2 = 0x1.62e42fefa39efp-1, PI = 0x1.921fb54442d18p+1;

/* ---- square roots ----------------------------------------------------------------------------------------------- */

/* The exact square root of an exact number that is not negative, if it has one. */
static bool exact_root(Context *context, Value v, Value *root) {
    Value rest, n = integer_root(context, numerator_of(v), &rest);
    if (!is_exact_zero(rest)) return false;
    if (v.tag != TAG_RATIONAL) {
        *root = n;
        return true;
    }
    Value d = integer_root(context, couple_second(v), &rest);
    if (!is_exact_zero(rest)) return false;
    *root = rational_from_reduced(context, n, d);
    return true;
}

/* The root of an exact positive number as a double, rounded correctly whatever its size. */
static double inexact_root(Context *context, Value v) {
    Value n = numerator_of(v), d = denominator_of(v);
    if (n.tag == TAG_FIXNUM && fixnum_is(d, 1) && esk_integer(n) < (int64_t)1 << 53)
        return sqrt((double)esk_integer(n));
    /* floor(sqrt(v 4^shift)) with 64 bits, and whether anything is left */
    int64_t bits = (int64_t)integer_length(n) - (int64_t)integer_length(d);
    int64_t shift = (126 - bits) >> 1;
    Value scaled = shift > 0 ? integer_shift(context, n, 2 * shift) : n;
    Value below = shift < 0 ? integer_shift(context, d, -2 * shift) : d;
    Value q, rest, left, root;
    integer_divide(context, scaled, below, &q, &rest);
    root = integer_root(context, q, &left);
    Limb s;
    return double_from_parts(view(root, &s).limbs[0], !is_exact_zero(rest) || !is_exact_zero(left), -shift);
}

static Value real_root(Context *context, Value v) { /* v >= 0 */
    Value root;
    if (v.tag == TAG_FLONUM) return esk_flonum(sqrt(esk_double(v)));
    if (exact_root(context, v, &root)) return root;
    return esk_flonum(inexact_root(context, v));
}

Value number_root(Context *context, Value v) {
    if (v.tag == TAG_COMPLEX) {
        /* with r = |v|: sqrt((r + x) / 2) + sign(y) sqrt((r - x) / 2) i, where all of that is exact */
        if (is_exact(v)) {
            Value x = couple_first(v), y = couple_second(v), r, p, q;
            Value norm = esk_add(context, esk_multiply(context, x, x), esk_multiply(context, y, y));
            if (exact_root(context, norm, &r) &&
                exact_root(context, esk_divide(context, esk_add(context, r, x), esk_fixnum(2)), &p) &&
                exact_root(context, esk_divide(context, esk_subtract(context, r, x), esk_fixnum(2)), &q))
                return complex_make(context, p, real_sign(y) < 0 ? number_negate(context, q) : q);
        }
        return from_complex(context, csqrt(complex_double(context, v)));
    }
    if (real_sign(v) >= 0) return real_root(context, v); /* NaN and -0.0, too */
    return complex_make(context, esk_fixnum(0), real_root(context, number_negate(context, v)));
}

Value esk_sqrt(Context *context, Value v) {
    if (is_extended(v)) return extended_sqrt(context, v);
    need_number(context, "sqrt", 1, v);
    return number_root(context, v);
}

/* ---- exp and log ------------------------------------------------------------------------------------------------ */

Value esk_exp(Context *context, Value v) {
    if (is_extended(v)) return extended_exp(context, v);
    need_number(context, "exp", 1, v);
    if (is_exact_zero(v)) return esk_fixnum(1);
    if (v.tag == TAG_COMPLEX) return from_complex(context, cexp(complex_double(context, v)));
    return esk_flonum(exp(real_double(context, v)));
}

/* The logarithm of a positive real, also of an exact one that no double can hold. */
static double real_logarithm(Context *context, Value v) {
    double x = real_double(context, v);
    if (v.tag == TAG_FLONUM || (isfinite(x) && x >= 0x1p-1000)) return log(x);
    int64_t bits = (int64_t)integer_length(numerator_of(v)) - (int64_t)integer_length(denominator_of(v));
    Value scaled = bits > 0 ? esk_divide(context, v, integer_shift(context, esk_fixnum(1), bits))
                            : esk_multiply(context, v, integer_shift(context, esk_fixnum(1), -bits));
    return log(real_double(context, scaled)) + (double)bits * LN2;
}

/* The modulus of a complex number may overflow where its logarithm does not; clog sees to that for doubles. */
static Value natural_logarithm(Context *context, const char *who, int position, Value v) {
    need_number(context, who, position, v);
    if (fixnum_is(v, 1)) return esk_fixnum(0);
    if (is_exact_zero(v)) esk_fail(context, ERROR_ARITHMETIC, who, "zero has no logarithm", 1, v);
    if (v.tag == TAG_COMPLEX) return from_complex(context, clog(complex_double(context, v)));
    if (v.tag == TAG_FLONUM ? !(esk_double(v) < 0) : real_sign(v) > 0) {
        if (v.tag == TAG_FLONUM && esk_double(v) == 0) return esk_flonum(-INFINITY);
        return esk_flonum(real_logarithm(context, v));
    }
    return complex_make(context, esk_flonum(real_logarithm(context, number_negate(context, v))), esk_flonum(PI));
}

Value esk_log(Context *context, Value v) {
    return is_extended(v) ? extended_log(context, v) : natural_logarithm(context, "log", 1, v);
}

Value esk_log_base(Context *context, Value v, Value to) {
    if (is_extended(v) || is_extended(to)) return extended_log_base(context, v, to);
    Value top = natural_logarithm(context, "log", 1, v);
    need_number(context, "log", 2, to);
    if (is_real(v) && is_real(to) && real_sign(v) > 0) {
        double x = real_double(context, v), base = real_double(context, to);
        /* these two are exact where they can be */
        if (base == 2 && isfinite(x) && x > 0 && !is_exact_zero(top)) return esk_flonum(log2(x));
        if (base == 10 && isfinite(x) && x > 0 && !is_exact_zero(top)) return esk_flonum(log10(x));
    }
    Value bottom = natural_logarithm(context, "log", 2, to);
    if (is_exact_zero(bottom)) esk_fail(context, ERROR_ARITHMETIC, "log", "no logarithm has the base 1", 1, v);
    return esk_divide(context, top, bottom);
}

static Value logarithm(Context *context, const Value *args, int64_t count) {
    return count == 1 ? esk_log(context, args[0]) : esk_log_base(context, args[0], args[1]);
}

/* ---- powers ----------------------------------------------------------------------------------------------------- */

/* z^n by squaring, for numbers that are not integers; n > 0. */
static Value repeated_product(Context *context, Value z, uint64_t n) {
    Value r = z;
    for (int i = 62 - __builtin_clzll(n); i >= 0; i--) {
        r = esk_multiply(context, r, r);
        if (n >> i & 1) r = esk_multiply(context, r, z);
    }
    return r;
}

static Value exact_power(Context *context, Value base, Value exponent) {
    bool negative = integer_sign(exponent) < 0;
    if (fixnum_is(base, 1)) return base;
    if (fixnum_is(base, -1)) return integer_odd(exponent) ? base : esk_fixnum(1);
    if (is_exact_zero(base)) {
        if (negative)
            esk_fail(context, ERROR_ARITHMETIC, "expt", "division by zero: a negative power of zero", 1, exponent);
        return base;
    }
    if (exponent.tag != TAG_FIXNUM) {
        if (base.tag == TAG_COMPLEX) { /* the powers of i and -i come around */
            Value fourth;
            integer_divide(context, exponent, esk_fixnum(4), NULL, &fourth);
            if (is_exact_zero(couple_first(base)) &&
                (fixnum_is(couple_second(base), 1) || fixnum_is(couple_second(base), -1)))
                return exact_power(context, base, is_exact_zero(fourth) ? esk_fixnum(4) : fourth);
        }
        esk_fail(context, ERROR_MEMORY, "expt", "the power is too large for the memory", 1, exponent);
    }
    uint64_t n = fixnum_magnitude(esk_integer(exponent));
    Value power;
    if (is_integer(base)) power = integer_power(context, base, n, "expt");
    else if (base.tag == TAG_RATIONAL)
        power = rational_from_reduced(context, integer_power(context, couple_first(base), n, "expt"),
                                      integer_power(context, couple_second(base), n, "expt"));
    else {
        Value norm = esk_add(context, esk_multiply(context, couple_first(base), couple_first(base)),
                             esk_multiply(context, couple_second(base), couple_second(base)));
        uint64_t over = integer_length(numerator_of(norm)), under = integer_length(denominator_of(norm));
        integer_expect(context, (over > under ? over : under) - 1, n / 2, "expt");
        power = repeated_product(context, base, n);
    }
    return negative ? esk_divide(context, esk_fixnum(1), power) : power;
}

static Value inexact_power(Context *context, Value base, Value exponent) {
    if (is_real(base) && is_real(exponent)) {
        double x = real_double(context, base), y = real_double(context, exponent);
        bool beyond = base.tag != TAG_FLONUM && real_sign(base) > 0 && (isinf(x) || x < 0x1p-1000);
        if (beyond && isfinite(y)) return esk_flonum(exp(y * real_logarithm(context, base))); /* no double holds base */
        if (!(x < 0) || y == trunc(y) || isnan(y) || isinf(y)) return esk_flonum(pow(x, y));
    }
    double complex z = complex_double(context, base), w = complex_double(context, exponent);
    if (creal(z) == 0 && cimag(z) == 0) {
        if (creal(w) > 0) return is_exact(base) ? esk_fixnum(0) : esk_flonum(0.0);
        esk_fail(context, ERROR_ARITHMETIC, "expt", "zero has no such power", 1, exponent);
    }
    return from_complex(context, cexp(w * clog(z)));
}

Value esk_expt(Context *context, Value base, Value exponent) {
    if (is_extended(base) || is_extended(exponent)) return extended_expt(context, base, exponent);
    need_number(context, "expt", 1, base);
    need_number(context, "expt", 2, exponent);
    if (is_exact_zero(exponent)) return esk_fixnum(1);
    if (is_integer(exponent)) {
        if (is_exact(base)) return exact_power(context, base, exponent);
        if (base.tag == TAG_FLONUM) {
            double n = integer_double(exponent);
            bool odd = integer_odd(exponent); /* which a double may no longer tell */
            double r = pow(fabs(esk_double(base)), n);
            return esk_flonum(odd && signbit(esk_double(base)) ? -r : r);
        }
        if (exponent.tag == TAG_FIXNUM && fixnum_magnitude(esk_integer(exponent)) <= 1024) {
            Value r = repeated_product(context, base, fixnum_magnitude(esk_integer(exponent)));
            return esk_integer(exponent) < 0 ? esk_divide(context, esk_fixnum(1), r) : r;
        }
        return inexact_power(context, base, exponent);
    }
    if (is_exact_zero(base)) {
        if (real_sign(real_part_of(exponent)) > 0) return base;
        esk_fail(context, ERROR_ARITHMETIC, "expt", "zero has no such power", 1, exponent);
    }
    if (fixnum_is(base, 1) && is_exact(exponent)) return base;
    if (exponent.tag == TAG_RATIONAL && fixnum_is(couple_second(exponent), 2) && is_exact(base)) {
        Value root = number_root(context, base);
        if (is_exact(root)) return exact_power(context, root, couple_first(exponent));
    }
    return inexact_power(context, base, exponent);
}

/* ---- the circular functions ------------------------------------------------------------------------------------- */

ANALYTIC_PROCEDURE(sin, v)
ANALYTIC_PROCEDURE(cos, esk_fixnum(1))
ANALYTIC_PROCEDURE(tan, v)

/* Outside of -1 to 1 the sides of the cuts are those of -i log(i x + sqrt(1 - x x)): below on the right, above on the
 * left. */
static double complex beside_cut(double x) { return CMPLX(x, x > 0 ? -0.0 : 0.0); }

Value esk_asin(Context *context, Value v) {
    if (is_extended(v)) return extended_asin(context, v);
    if (is_exact_zero(v)) return v;
    if (is_real(v)) {
        double x = real_double(context, v);
        if (fabs(x) > 1) return from_complex(context, casin(beside_cut(x)));
    }
    return analytic(context, "asin", v, asin, casin);
}

Value esk_acos(Context *context, Value v) {
    if (is_extended(v)) return extended_acos(context, v);
    if (fixnum_is(v, 1)) return esk_fixnum(0);
    if (is_real(v)) {
        double x = real_double(context, v);
        if (fabs(x) > 1) return from_complex(context, cacos(beside_cut(x)));
    }
    return analytic(context, "acos", v, acos, cacos);
}

Value esk_atan(Context *context, Value v) {
    if (is_extended(v)) return extended_atan(context, v);
    if (is_exact_zero(v)) return v;
    if (esk_is(v, TAG_COMPLEX) && is_exact(v) && is_exact_zero(couple_first(v))) {
        Value y = couple_second(v);
        if (fixnum_is(y, 1) || fixnum_is(y, -1))
            esk_fail(context, ERROR_ARITHMETIC, "atan", "i and -i have no arc tangent", 1, v);
        double side = real_double(context, y);
        return from_complex(context, catan(CMPLX(side > 0 ? 0.0 : -0.0, side)));
    }
    return analytic(context, "atan", v, atan, catan);
}

Value esk_atan2(Context *context, Value y, Value x) {
    if (is_extended(y) || is_extended(x)) return extended_atan2(context, y, x);
    need_real(context, "atan", 1, y);
    need_real(context, "atan", 2, x);
    if (is_exact_zero(y) && x.tag != TAG_FLONUM) {
        if (is_exact_zero(x))
            esk_fail(context, ERROR_ARITHMETIC, "atan", "the direction from zero to zero is undefined", 0);
        if (real_sign(x) > 0) return y;
    }
    double p = real_double(context, y), q = real_double(context, x);
    if (!is_exact(x) || !is_exact(y) || (isfinite(p) && isfinite(q) && fabs(p) >= 0x1p-1000 && fabs(q) >= 0x1p-1000) ||
        is_exact_zero(x) || is_exact_zero(y))
        return esk_flonum(atan2(p, q));
    /* exact numbers that doubles cannot hold: their ratio may be an ordinary one */
    double t = real_double(context, esk_divide(context, y, x));
    if (real_sign(x) > 0) return esk_flonum(atan(t));
    return esk_flonum(real_sign(y) > 0 ? atan(t) + PI : atan(t) - PI);
}

static Value arc_tangent(Context *context, const Value *args, int64_t count) {
    return count == 1 ? esk_atan(context, args[0]) : esk_atan2(context, args[0], args[1]);
}

/* ---- polar form ------------------------------------------------------------------------------------------------- */

Value complex_from_polar(Context *context, Value magnitude, Value angle) {
    if (is_exact_zero(angle)) return magnitude;
    if (is_exact_zero(magnitude)) return magnitude;
    double r = real_double(context, magnitude), t = real_double(context, angle);
    return complex_make(context, esk_flonum(r * cos(t)), esk_flonum(r * sin(t)));
}

static Value make_polar(Context *context, Value magnitude, Value angle) {
    need_plain(context, "make-polar", magnitude, COMPLEX_FROM_PARTS);
    need_plain(context, "make-polar", angle, COMPLEX_FROM_PARTS);
    need_real(context, "make-polar", 1, magnitude);
    need_real(context, "make-polar", 2, angle);
    return complex_from_polar(context, magnitude, angle);
}

/* The root of the sum of two squares. The library's takes five times as long to be right where squares are too large or
 * too small for a double. */
static inline double modulus(double x, double y) {
    double sum = x * x + y * y;
    return sum > 0x1p-960 && sum < 0x1p1000 ? sqrt(sum) : hypot(x, y);
}

Value esk_magnitude(Context *context, Value v) {
    if (is_extended(v)) return extended_magnitude(context, v);
    need_number(context, "magnitude", 1, v);
    if (v.tag != TAG_COMPLEX) {
        if (v.tag == TAG_FLONUM) return esk_flonum(fabs(esk_double(v)));
        return real_sign(v) < 0 ? number_negate(context, v) : v;
    }
    Value x = couple_first(v), y = couple_second(v);
    if (!is_exact(v)) return esk_flonum(modulus(esk_double(x), esk_double(y)));
    return real_root(context, esk_add(context, esk_multiply(context, x, x), esk_multiply(context, y, y)));
}

static Value angle(Context *context, Value v) {
    need_plain(context, "angle", v, NOT_HOLOMORPHIC);
    need_number(context, "angle", 1, v);
    if (v.tag == TAG_COMPLEX) {
        return esk_atan2(context, couple_second(v), couple_first(v));
    }
    if (is_exact_zero(v)) esk_fail(context, ERROR_ARITHMETIC, "angle", "zero has no angle", 1, v);
    if (v.tag == TAG_FLONUM)
        return esk_flonum(isnan(esk_double(v)) ? esk_double(v) : signbit(esk_double(v)) ? PI : 0.0);
    return real_sign(v) > 0 ? esk_fixnum(0) : esk_flonum(PI);
}

const Primitive esk_transcendental_primitives[] = {
    ESK_PRIMITIVE_1("sqrt", "(sqrt z)", esk_sqrt,
                    "The square root of z with the angle of half of z's; exact where it can be."),
    ESK_PRIMITIVE_1("exp", "(exp z)", esk_exp, "e to the power z."),
    ESK_PRIMITIVE_N("log", "(log z [base])", 1, 2, logarithm, "The natural logarithm of z, or the one to the base."),
    ESK_PRIMITIVE_2("expt", "(expt z1 z2)", esk_expt,
                    "z1 to the power z2; exact where both are and the answer can be."),
    ESK_PRIMITIVE_1("sin", "(sin z)", esk_sin, "The sine of z, in radians."),
    ESK_PRIMITIVE_1("cos", "(cos z)", esk_cos, "The cosine of z, in radians."),
    ESK_PRIMITIVE_1("tan", "(tan z)", esk_tan, "The tangent of z, in radians."),
    ESK_PRIMITIVE_1("asin", "(asin z)", esk_asin, "The arc sine of z."),
    ESK_PRIMITIVE_1("acos", "(acos z)", esk_acos, "The arc cosine of z."),
    ESK_PRIMITIVE_N("atan", "(atan z [x])", 1, 2, arc_tangent,
                    "The arc tangent of z; of two reals, the angle of the point (x, z)."),
    ESK_PRIMITIVE_2("make-polar", "(make-polar magnitude angle)", make_polar,
                    "The complex number of that magnitude and angle."),
    ESK_PRIMITIVE_1("magnitude", "(magnitude z)", esk_magnitude, "The distance of z from zero."),
    ESK_PRIMITIVE_1("angle", "(angle z)", angle, "The angle of z, in radians, greater than -pi and at most pi."),
    {0}};
