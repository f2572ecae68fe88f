/* What the files of the numeric tower share beyond value.h: kinds of numbers, rationals, complex numbers.
 *
 * The tower: exact integers (bignum.h), exact rationals (a Couple in lowest terms, denominator at least 2), flonums,
 * and complex numbers (a Couple whose parts are both exact, the imaginary one not zero, or both flonums).
 */
#ifndef ESHKOL_SCHEME_NUMBERS_H
#define ESHKOL_SCHEME_NUMBERS_H

#include "bignum.h"

/* What compiled code calls when its own fast paths do not apply; the operators' errors bear their Scheme names. */
Value esk_add(Context *, Value, Value);
Value esk_subtract(Context *, Value, Value);
Value esk_multiply(Context *, Value, Value);
Value esk_divide(Context *, Value, Value);
Value esk_negate(Context *, Value); /* (- z) */
Value esk_quotient(Context *, Value, Value);
Value esk_remainder(Context *, Value, Value);
Value esk_modulo(Context *, Value, Value);
uint64_t esk_number_equal(Context *, Value, Value);
uint64_t esk_less(Context *, Value, Value);
uint64_t esk_less_equal(Context *, Value, Value);
uint64_t esk_greater(Context *, Value, Value);
uint64_t esk_greater_equal(Context *, Value, Value);

#pragma GCC visibility push(hidden)

static inline bool is_exact_rational(Value v) { return is_integer(v) || v.tag == TAG_RATIONAL; }
static inline bool is_real(Value v) { return is_exact_rational(v) || v.tag == TAG_FLONUM; }
static inline Value couple_first(Value v) { return ((Couple *)esk_pointer(v))->first; }
static inline Value couple_second(Value v) { return ((Couple *)esk_pointer(v))->second; }
static inline Value numerator_of(Value v) { return v.tag == TAG_RATIONAL ? couple_first(v) : v; }
static inline Value denominator_of(Value v) { return v.tag == TAG_RATIONAL ? couple_second(v) : esk_fixnum(1); }
static inline Value real_part_of(Value v) { return v.tag == TAG_COMPLEX ? couple_first(v) : v; }
static inline Value imaginary_part_of(Value v) { return v.tag == TAG_COMPLEX ? couple_second(v) : esk_fixnum(0); }
/* Of numbers alone. */
static inline bool is_exact(Value v) {
    return v.tag == TAG_COMPLEX ? couple_first(v).tag != TAG_FLONUM : v.tag != TAG_FLONUM;
}
/* Two complex numbers of flonums: what most programs with complex numbers compute with. */
static inline bool are_inexact_complexes(Value a, Value b) {
    return a.tag == TAG_COMPLEX && b.tag == TAG_COMPLEX && couple_first(a).tag == TAG_FLONUM &&
           couple_first(b).tag == TAG_FLONUM;
}
static inline bool is_exact_zero(Value v) { return fixnum_is(v, 0); }

/* Why some procedures refuse differentiated numbers. */
#define NOT_HOLOMORPHIC \
    "the parts of complex numbers have no complex derivatives; (stop-gradient x) takes the value alone of"
#define COMPLEX_FROM_PARTS \
    "a complex number is not made of differentiated parts, but (+ x (* y +i)) is one; (stop-gradient x) takes the " \
    "value alone of"

/* numbers.c */
Value rational_make(Context *, Value numerator, Value denominator); /* of integers, the second not zero */
Value rational_from_reduced(Context *, Value numerator, Value denominator); /* in lowest terms, denominator > 0 */
Value complex_make(Context *, Value real, Value imaginary); /* of reals; a real where the second is exactly zero */
double real_double(Context *, Value); /* of a real */
int real_sign(Value);                 /* -1, 0, 1; of NaN 0 */
Value number_exact(Context *, Value, const char *who); /* raises for what is not finite */
Value number_inexact(Context *, Value);
void need_number(Context *, const char *who, int position, Value);
void need_real(Context *, const char *who, int position, Value);
void need_integer(Context *, const char *who, int position, Value); /* a flonum that is whole, too */
void need_exact_integer(Context *, const char *who, int position, Value);
bool is_whole(Value); /* whether a number is an integer, exact or not */

/* arithmetic.c */
enum { UNORDERED = 2 };
int real_compare(Context *, Value, Value); /* -1, 0, 1, or UNORDERED with a NaN; exact against inexact exactly */
Value number_negate(Context *, Value);

/* transcendental.c */
Value number_root(Context *, Value);
Value complex_from_polar(Context *, Value magnitude, Value angle);

/* decimal.c: doubles and decimal digits */
typedef struct { uint64_t digits; int exponent; } Decimal; /* digits 10^exponent */
Decimal decimal_shortest(double);                     /* of a positive finite number, no zero at the end */
bool decimal_double(uint64_t digits, int64_t exponent, double *result); /* rounded correctly, or false: not decided */

#pragma GCC visibility pop

#endif
