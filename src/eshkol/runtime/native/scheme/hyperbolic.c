/* The hyperbolic functions and their inverses, of real and complex numbers, and a few more that derivatives are said
 * with: expm1, log1p, hypot, sign. Exact arguments give exact results where the answer is one at a glance. Branch cuts
 * are those of the formulas in terms of log, as in transcendental.c.
 */
#include "complex_double.h"
#include "tensor_numbers.h"

ANALYTIC_PROCEDURE(sinh, v)
ANALYTIC_PROCEDURE(cosh, esk_fixnum(1))
ANALYTIC_PROCEDURE(tanh, v)
ANALYTIC_PROCEDURE(asinh, v)

Value esk_acosh(Context *context, Value v) {
    if (is_extended(v)) return extended_acosh(context, v);
    if (fixnum_is(v, 1)) return esk_fixnum(0);
    if (is_real(v)) {
        double x = real_double(context, v);
        if (x < 1) return from_complex(context, cacosh(CMPLX(x, 0.0)));
    }
    return analytic(context, "acosh", v, acosh, cacosh);
}

Value esk_atanh(Context *context, Value v) {
    if (is_extended(v)) return extended_atanh(context, v);
    if (is_exact_zero(v)) return v;
    if (fixnum_is(v, 1) || fixnum_is(v, -1))
        esk_fail(context, ERROR_ARITHMETIC, "atanh", "1 and -1 have no inverse hyperbolic tangent", 1, v);
    if (is_real(v)) {
        double x = real_double(context, v);
        if (fabs(x) > 1) return from_complex(context, catanh(CMPLX(x, x > 0 ? -0.0 : 0.0)));
    }
    return analytic(context, "atanh", v, atanh, catanh);
}

/* e^z - 1 = expm1(x) - 2 e^x sin(y/2)^2 + i e^x sin(y) wherever z is small. */
static double complex complex_expm1(double complex z) {
    double x = creal(z), y = cimag(z), half = sin(y / 2);
    return CMPLX(expm1(x) - 2 * exp(x) * half * half, exp(x) * sin(y));
}

Value esk_expm1(Context *context, Value v) {
    if (is_extended(v)) return extended_expm1(context, v);
    return is_exact_zero(v) ? v : analytic(context, "expm1", v, expm1, complex_expm1);
}

/* The modulus of 1 + z is near 1 where x (2 + x) + y y is small. */
static double complex complex_log1p(double complex z) {
    double x = creal(z), y = cimag(z), more = x * (2 + x) + y * y;
    double complex whole = CMPLX(1 + x, y);
    return fabs(more) < 0.5 ? CMPLX(0.5 * log1p(more), carg(whole)) : clog(whole);
}

Value esk_log1p(Context *context, Value v) {
    if (is_extended(v)) return extended_log1p(context, v);
    if (is_exact_zero(v)) return v;
    need_number(context, "log1p", 1, v);
    if (fixnum_is(v, -1)) esk_fail(context, ERROR_ARITHMETIC, "log1p", "zero has no logarithm", 1, v);
    if (is_real(v) && (real_double(context, v) < -1 || !isfinite(real_double(context, v))))
        return esk_log(context, esk_add(context, esk_fixnum(1), v)); /* complex, or too large for a double */
    return analytic(context, "log1p", v, log1p, complex_log1p);
}

Value esk_hypot(Context *context, Value x, Value y) {
    if (is_extended(x) || is_extended(y)) return extended_hypot(context, x, y);
    need_real(context, "hypot", 1, x);
    need_real(context, "hypot", 2, y);
    if (is_exact(x) && is_exact(y))
        return number_root(context, esk_add(context, esk_multiply(context, x, x), esk_multiply(context, y, y)));
    return esk_flonum(hypot(real_double(context, x), real_double(context, y)));
}

static Value sign(Context *context, Value v) {
    v = undifferentiated(v);
    if (v.tag == TAG_TENSOR) return tensor_sign(context, v);
    need_real(context, "sign", 1, v);
    if (v.tag != TAG_FLONUM) return esk_fixnum(real_sign(v));
    double x = esk_double(v);
    return x > 0 ? esk_flonum(1.0) : x < 0 ? esk_flonum(-1.0) : v; /* zeros and NaN are themselves */
}

const Primitive esk_hyperbolic_primitives[] = {
    ESK_PRIMITIVE_1("sinh", "(sinh z)", esk_sinh, "The hyperbolic sine of z."),
    ESK_PRIMITIVE_1("cosh", "(cosh z)", esk_cosh, "The hyperbolic cosine of z."),
    ESK_PRIMITIVE_1("tanh", "(tanh z)", esk_tanh, "The hyperbolic tangent of z."),
    ESK_PRIMITIVE_1("asinh", "(asinh z)", esk_asinh, "The inverse hyperbolic sine of z."),
    ESK_PRIMITIVE_1("acosh", "(acosh z)", esk_acosh, "The inverse hyperbolic cosine of z."),
    ESK_PRIMITIVE_1("atanh", "(atanh z)", esk_atanh, "The inverse hyperbolic tangent of z."),
    ESK_PRIMITIVE_1("expm1", "(expm1 z)", esk_expm1, "e to the power z, less 1, accurate near 0."),
    ESK_PRIMITIVE_1("log1p", "(log1p z)", esk_log1p, "The natural logarithm of 1 + z, accurate near 0."),
    ESK_PRIMITIVE_2("hypot", "(hypot x y)", esk_hypot, "The root of x x + y y, without overflow on the way."),
    ESK_PRIMITIVE_1("sign", "(sign x)", sign, "-1, 0 or 1, as the real number x is negative, zero or positive."),
    {0}};
