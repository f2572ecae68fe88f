/* Complex numbers of C: to them, and back. */
#ifndef ESHKOL_SCHEME_COMPLEX_DOUBLE_H
#define ESHKOL_SCHEME_COMPLEX_DOUBLE_H

#include "differential.h"
#include "numbers.h"

#include <complex.h>
#include <math.h>

#ifndef CMPLX /* clang before C11's macro */
#define CMPLX(x, y) __builtin_complex((double)(x), (double)(y))
#endif

static inline double complex complex_double(Context *context, Value v) {
    double y = v.tag == TAG_COMPLEX ? real_double(context, couple_second(v)) : 0.0;
    return CMPLX(real_double(context, real_part_of(v)), y);
}

static inline Value from_complex(Context *context, double complex z) {
    return complex_make(context, esk_flonum(creal(z)), esk_flonum(cimag(z)));
}

/* A function of all complex numbers that is real where its argument is. */
static inline Value analytic(Context *context, const char *who, Value v, double (*real)(double),
                             double complex (*complex_)(double complex)) {
    need_number(context, who, 1, v);
    if (v.tag == TAG_COMPLEX) return from_complex(context, complex_(complex_double(context, v)));
    return esk_flonum(real(real_double(context, v)));
}

/* The procedure of such a function that C's library has for both, and what it is at exact zero. */
#define ANALYTIC_PROCEDURE(name, at_zero)                                                       \
    Value esk_##name(Context *context, Value v) {                                               \
        if (is_extended(v)) return extended_##name(context, v);                                 \
        return is_exact_zero(v) ? (at_zero) : analytic(context, #name, v, name, c##name);       \
    }

#endif
