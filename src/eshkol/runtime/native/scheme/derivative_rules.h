/* The derivative rules of the numeric procedures: written by `make generate` from the op table, not by hand.
 *
 * A rule has for each argument the factor of its tangent, a function of the result r and the arguments x and y (of a
 * procedure of one argument y is not looked at). Sums, products, extremes of more arguments are taken two by two.
 *
 *   factor_value   on numbers of any kind, by the operations of the numeric tower: exact stays exact, and
 *                  differentiated numbers are numbers like others. It raises where there is no derivative.
 *   factor_double  on doubles, where the result is one too. A NaN says that the other must be asked: it may be complex.
 *   factor_kind    which factors are the constants 0, 1 and -1; a rule of zeros gives plain numbers (floor, round).
 *   factor_text    the factor as Scheme writes it.
 *   function       what the procedure is on tensors: a name that the host knows.
 *
 * The comparisons have no rule; comparison_functions says what they are on tensors.
 */
#ifndef DERIVATIVE_RULES_H
#define DERIVATIVE_RULES_H

#include "numbers.h"

#include <math.h>

/* What the factors call beyond numbers.h; these take differentiated numbers, too. */
Value esk_cos(Context *, Value);
Value esk_cosh(Context *, Value);
Value esk_expt(Context *, Value, Value);
Value esk_floor(Context *, Value);
Value esk_hypot(Context *, Value, Value);
Value esk_log(Context *, Value);
Value esk_sin(Context *, Value);
Value esk_sinh(Context *, Value);
Value esk_sqrt(Context *, Value);
Value esk_truncate(Context *, Value);
bool esk_number_is_complex(Value); /* whether the number, or the innermost primal of a differentiated one, is complex */

static inline Value rule_sign(Context *context, Value x) {
    if (esk_less(context, x, esk_fixnum(0))) return esk_fixnum(-1);
    if (esk_greater(context, x, esk_fixnum(0))) return esk_fixnum(1);
    return esk_number_equal(context, x, esk_fixnum(0)) ? esk_fixnum(0) : x; /* NaN */
}

static inline double rule_sign_double(double x) { return x < 0 ? -1.0 : x > 0 ? 1.0 : x == 0 ? 0.0 : x; }

static inline Value rule_ratio(Context *context, int64_t numerator, int64_t denominator) {
    return esk_divide(context, esk_fixnum(numerator), esk_fixnum(denominator));
}

enum FactorKind { FACTOR_VARIES, FACTOR_ZERO, FACTOR_ONE, FACTOR_MINUS_ONE };
typedef Value FactorOfValues(Context *, Value r, Value x, Value y);
typedef double FactorOfDoubles(double r, double x, double y);

typedef struct {
    const char *name; /* of the row of the op table */
    int arity;
    bool steps; /* every factor is zero */
    enum FactorKind factor_kind[2];
    FactorOfValues *factor_value[2];
    FactorOfDoubles *factor_double[2];
    const char *factor_text[2];
    const char *function;
} DerivativeRule;

typedef struct { const char *procedure; int rule; } DerivativeName;

static Value rule_zero(Context *context, Value r, Value x, Value y) {
    (void)context, (void)r, (void)x, (void)y;
    return esk_fixnum(0);
}

static double rule_zero_double(double r, double x, double y) {
    (void)r, (void)x, (void)y;
    return 0.0;
}

static Value rule_one(Context *context, Value r, Value x, Value y) {
    (void)context, (void)r, (void)x, (void)y;
    return esk_fixnum(1);
}

static double rule_one_double(double r, double x, double y) {
    (void)r, (void)x, (void)y;
    return 1.0;
}

static Value rule_minus_one(Context *context, Value r, Value x, Value y) {
    (void)context, (void)r, (void)x, (void)y;
    return esk_fixnum(-1);
}

static double rule_minus_one_double(double r, double x, double y) {
    (void)r, (void)x, (void)y;
    return -1.0;
}

static Value rule_mul_0(Context *context, Value r, Value x, Value y) {
    (void)context, (void)r, (void)x;
    return y;
}

static double rule_mul_0_double(double r, double x, double y) {
    (void)r, (void)x;
    return y;
}

static Value rule_mul_1(Context *context, Value r, Value x, Value y) {
    (void)context, (void)r, (void)y;
    return x;
}

static double rule_mul_1_double(double r, double x, double y) {
    (void)r, (void)y;
    return x;
}

static Value rule_div_0(Context *context, Value r, Value x, Value y) {
    (void)r, (void)x;
    return esk_divide(context, esk_fixnum(1), y);
}

static double rule_div_0_double(double r, double x, double y) {
    (void)r, (void)x;
    return 1.0 / y;
}

static Value rule_div_1(Context *context, Value r, Value x, Value y) {
    (void)x;
    return esk_divide(context, esk_negate(context, r), y);
}

static double rule_div_1_double(double r, double x, double y) {
    (void)x;
    return (-r) / y;
}

static Value rule_power_0(Context *context, Value r, Value x, Value y) {
    (void)r;
    return esk_multiply(context, y, esk_expt(context, x, (esk_number_equal(context, y, esk_fixnum(0))
           ? esk_fixnum(1) : esk_subtract(context, y, esk_fixnum(1)))));
}

static double rule_power_0_double(double r, double x, double y) {
    (void)r;
    return y * pow(x, ((y == 0.0) ? 1.0 : (y - 1.0)));
}

static Value rule_power_1(Context *context, Value r, Value x, Value y) {
    if (esk_number_is_complex(x) || esk_number_is_complex(y)) return esk_multiply(context, r,
           (esk_number_equal(context, x, esk_fixnum(0)) ? esk_fixnum(0) : esk_log(context, x)));
    return esk_multiply(context, r, ((esk_number_equal(context, x, esk_fixnum(0)) && esk_greater_equal(context, y,
           esk_fixnum(0))) ? esk_fixnum(0) : esk_log(context, x)));
}

static double rule_power_1_double(double r, double x, double y) {
    return r * (((x == 0.0) && (y >= 0.0)) ? 0.0 : log(x));
}

static Value rule_maximum_0(Context *context, Value r, Value x, Value y) {
    return esk_number_equal(context, x, y) ? rule_ratio(context, 1, 2) : (esk_number_equal(context, r, x)
           ? esk_fixnum(1) : esk_fixnum(0));
}

static double rule_maximum_0_double(double r, double x, double y) {
    return (x == y) ? 0.5 : ((r == x) ? 1.0 : 0.0);
}

static Value rule_maximum_1(Context *context, Value r, Value x, Value y) {
    return esk_number_equal(context, y, x) ? rule_ratio(context, 1, 2) : (esk_number_equal(context, r, y)
           ? esk_fixnum(1) : esk_fixnum(0));
}

static double rule_maximum_1_double(double r, double x, double y) {
    return (y == x) ? 0.5 : ((r == y) ? 1.0 : 0.0);
}

static Value rule_minimum_0(Context *context, Value r, Value x, Value y) {
    return esk_number_equal(context, x, y) ? rule_ratio(context, 1, 2) : (esk_number_equal(context, r, x)
           ? esk_fixnum(1) : esk_fixnum(0));
}

static double rule_minimum_0_double(double r, double x, double y) {
    return (x == y) ? 0.5 : ((r == x) ? 1.0 : 0.0);
}

static Value rule_minimum_1(Context *context, Value r, Value x, Value y) {
    return esk_number_equal(context, y, x) ? rule_ratio(context, 1, 2) : (esk_number_equal(context, r, y)
           ? esk_fixnum(1) : esk_fixnum(0));
}

static double rule_minimum_1_double(double r, double x, double y) {
    return (y == x) ? 0.5 : ((r == y) ? 1.0 : 0.0);
}

static Value rule_remainder_1(Context *context, Value r, Value x, Value y) {
    return esk_negate(context, esk_floor(context, esk_add(context, esk_divide(context, esk_subtract(context, x, r),
           y), rule_ratio(context, 1, 2))));
}

static double rule_remainder_1_double(double r, double x, double y) {
    return -floor((((x - r) / y) + 0.5));
}

static Value rule_fmod_1(Context *context, Value r, Value x, Value y) {
    return esk_negate(context, esk_truncate(context, esk_add(context, esk_divide(context, esk_subtract(context, x, r),
           y), esk_multiply(context, rule_ratio(context, 1, 2), rule_sign(context, esk_multiply(context, x, y))))));
}

static double rule_fmod_1_double(double r, double x, double y) {
    return -trunc((((x - r) / y) + (0.5 * rule_sign_double((x * y)))));
}

static Value rule_atan2_0(Context *context, Value r, Value x, Value y) {
    (void)r;
    return esk_divide(context, y, esk_add(context, esk_multiply(context, x, x), esk_multiply(context, y, y)));
}

static double rule_atan2_0_double(double r, double x, double y) {
    (void)r;
    return y / ((x * x) + (y * y));
}

static Value rule_atan2_1(Context *context, Value r, Value x, Value y) {
    (void)r;
    return esk_divide(context, esk_negate(context, x), esk_add(context, esk_multiply(context, x, x),
           esk_multiply(context, y, y)));
}

static double rule_atan2_1_double(double r, double x, double y) {
    (void)r;
    return (-x) / ((x * x) + (y * y));
}

static Value rule_absolute_0(Context *context, Value r, Value x, Value y) {
    (void)r, (void)y;
    if (esk_number_is_complex(x))
        esk_fail(context, ERROR_ARITHMETIC, "magnitude", "its derivative at a complex number does not exist", 1, x);
    return rule_sign(context, x);
}

static double rule_absolute_0_double(double r, double x, double y) {
    (void)r, (void)y;
    return rule_sign_double(x);
}

static Value rule_exp_0(Context *context, Value r, Value x, Value y) {
    (void)context, (void)x, (void)y;
    return r;
}

static double rule_exp_0_double(double r, double x, double y) {
    (void)x, (void)y;
    return r;
}

static Value rule_expm1_0(Context *context, Value r, Value x, Value y) {
    (void)x, (void)y;
    return esk_add(context, r, esk_fixnum(1));
}

static double rule_expm1_0_double(double r, double x, double y) {
    (void)x, (void)y;
    return r + 1.0;
}

static Value rule_log_0(Context *context, Value r, Value x, Value y) {
    (void)r, (void)y;
    return esk_divide(context, esk_fixnum(1), x);
}

static double rule_log_0_double(double r, double x, double y) {
    (void)r, (void)y;
    return 1.0 / x;
}

static Value rule_log1p_0(Context *context, Value r, Value x, Value y) {
    (void)r, (void)y;
    return esk_divide(context, esk_fixnum(1), esk_add(context, esk_fixnum(1), x));
}

static double rule_log1p_0_double(double r, double x, double y) {
    (void)r, (void)y;
    return 1.0 / (1.0 + x);
}

static Value rule_sqrt_0(Context *context, Value r, Value x, Value y) {
    (void)x, (void)y;
    return esk_divide(context, rule_ratio(context, 1, 2), r);
}

static double rule_sqrt_0_double(double r, double x, double y) {
    (void)x, (void)y;
    return 0.5 / r;
}

static Value rule_sin_0(Context *context, Value r, Value x, Value y) {
    (void)r, (void)y;
    return esk_cos(context, x);
}

static double rule_sin_0_double(double r, double x, double y) {
    (void)r, (void)y;
    return cos(x);
}

static Value rule_cos_0(Context *context, Value r, Value x, Value y) {
    (void)r, (void)y;
    return esk_negate(context, esk_sin(context, x));
}

static double rule_cos_0_double(double r, double x, double y) {
    (void)r, (void)y;
    return -sin(x);
}

static Value rule_tan_0(Context *context, Value r, Value x, Value y) {
    (void)x, (void)y;
    return esk_add(context, esk_fixnum(1), esk_multiply(context, r, r));
}

static double rule_tan_0_double(double r, double x, double y) {
    (void)x, (void)y;
    return 1.0 + (r * r);
}

static Value rule_tanh_0(Context *context, Value r, Value x, Value y) {
    (void)x, (void)y;
    return esk_subtract(context, esk_fixnum(1), esk_multiply(context, r, r));
}

static double rule_tanh_0_double(double r, double x, double y) {
    (void)x, (void)y;
    return 1.0 - (r * r);
}

static Value rule_sinh_0(Context *context, Value r, Value x, Value y) {
    (void)r, (void)y;
    return esk_cosh(context, x);
}

static double rule_sinh_0_double(double r, double x, double y) {
    (void)r, (void)y;
    return cosh(x);
}

static Value rule_cosh_0(Context *context, Value r, Value x, Value y) {
    (void)r, (void)y;
    return esk_sinh(context, x);
}

static double rule_cosh_0_double(double r, double x, double y) {
    (void)r, (void)y;
    return sinh(x);
}

static Value rule_asin_0(Context *context, Value r, Value x, Value y) {
    (void)r, (void)y;
    return esk_divide(context, esk_fixnum(1), esk_sqrt(context, esk_multiply(context, esk_subtract(context,
           esk_fixnum(1), x), esk_add(context, esk_fixnum(1), x))));
}

static double rule_asin_0_double(double r, double x, double y) {
    (void)r, (void)y;
    return 1.0 / sqrt(((1.0 - x) * (1.0 + x)));
}

static Value rule_acos_0(Context *context, Value r, Value x, Value y) {
    (void)r, (void)y;
    return esk_divide(context, esk_fixnum(-1), esk_sqrt(context, esk_multiply(context, esk_subtract(context,
           esk_fixnum(1), x), esk_add(context, esk_fixnum(1), x))));
}

static double rule_acos_0_double(double r, double x, double y) {
    (void)r, (void)y;
    return -1.0 / sqrt(((1.0 - x) * (1.0 + x)));
}

static Value rule_atan_0(Context *context, Value r, Value x, Value y) {
    (void)r, (void)y;
    return esk_divide(context, esk_fixnum(1), esk_add(context, esk_fixnum(1), esk_multiply(context, x, x)));
}

static double rule_atan_0_double(double r, double x, double y) {
    (void)r, (void)y;
    return 1.0 / (1.0 + (x * x));
}

static Value rule_asinh_0(Context *context, Value r, Value x, Value y) {
    (void)r, (void)y;
    if (esk_number_is_complex(x)) return esk_divide(context, esk_fixnum(1), esk_sqrt(context, esk_add(context,
           esk_multiply(context, x, x), esk_fixnum(1))));
    return esk_divide(context, esk_fixnum(1), esk_hypot(context, x, esk_fixnum(1)));
}

static double rule_asinh_0_double(double r, double x, double y) {
    (void)r, (void)y;
    return 1.0 / hypot(x, 1.0);
}

static Value rule_acosh_0(Context *context, Value r, Value x, Value y) {
    (void)r, (void)y;
    return esk_divide(context, esk_fixnum(1), esk_multiply(context, esk_sqrt(context, esk_subtract(context, x,
           esk_fixnum(1))), esk_sqrt(context, esk_add(context, x, esk_fixnum(1)))));
}

static double rule_acosh_0_double(double r, double x, double y) {
    (void)r, (void)y;
    return 1.0 / (sqrt((x - 1.0)) * sqrt((x + 1.0)));
}

static Value rule_atanh_0(Context *context, Value r, Value x, Value y) {
    (void)r, (void)y;
    return esk_divide(context, esk_fixnum(1), esk_multiply(context, esk_subtract(context, esk_fixnum(1), x),
           esk_add(context, esk_fixnum(1), x)));
}

static double rule_atanh_0_double(double r, double x, double y) {
    (void)r, (void)y;
    return 1.0 / ((1.0 - x) * (1.0 + x));
}

static Value rule_hypot_0(Context *context, Value r, Value x, Value y) {
    (void)y;
    return esk_divide(context, x, (esk_number_equal(context, r, esk_fixnum(0)) ? esk_fixnum(1) : r));
}

static double rule_hypot_0_double(double r, double x, double y) {
    (void)y;
    return x / ((r == 0.0) ? 1.0 : r);
}

static Value rule_hypot_1(Context *context, Value r, Value x, Value y) {
    (void)x;
    return esk_divide(context, y, (esk_number_equal(context, r, esk_fixnum(0)) ? esk_fixnum(1) : r));
}

static double rule_hypot_1_double(double r, double x, double y) {
    (void)x;
    return y / ((r == 0.0) ? 1.0 : r);
}

static Value rule_square_0(Context *context, Value r, Value x, Value y) {
    (void)r, (void)y;
    return esk_multiply(context, esk_fixnum(2), x);
}

static double rule_square_0_double(double r, double x, double y) {
    (void)r, (void)y;
    return 2.0 * x;
}

static Value rule_reciprocal_0(Context *context, Value r, Value x, Value y) {
    (void)y;
    return esk_divide(context, esk_negate(context, r), x);
}

static double rule_reciprocal_0_double(double r, double x, double y) {
    (void)y;
    return (-r) / x;
}

static Value rule_logarithm_to_base_0(Context *context, Value r, Value x, Value y) {
    (void)r;
    return esk_multiply(context, esk_divide(context, esk_fixnum(1), esk_log(context, y)), esk_divide(context,
           esk_fixnum(1), x));
}

static double rule_logarithm_to_base_0_double(double r, double x, double y) {
    (void)r;
    return (1.0 / log(y)) * (1.0 / x);
}

static Value rule_logarithm_to_base_1(Context *context, Value r, Value x, Value y) {
    (void)x;
    return esk_multiply(context, esk_divide(context, esk_negate(context, r), esk_log(context, y)), esk_divide(context,
           esk_fixnum(1), y));
}

static double rule_logarithm_to_base_1_double(double r, double x, double y) {
    (void)x;
    return ((-r) / log(y)) * (1.0 / y);
}

enum { RULE_CAST, RULE_ADD, RULE_SUB, RULE_MUL, RULE_DIV, RULE_POWER, RULE_MAXIMUM, RULE_MINIMUM, RULE_REMAINDER,
    RULE_FMOD, RULE_ATAN2, RULE_NEG, RULE_ABSOLUTE, RULE_SIGN, RULE_FLOOR, RULE_CEIL, RULE_ROUND, RULE_TRUNC,
    RULE_EXP, RULE_EXPM1, RULE_LOG, RULE_LOG1P, RULE_SQRT, RULE_SIN, RULE_COS, RULE_TAN, RULE_TANH, RULE_SINH,
    RULE_COSH, RULE_ASIN, RULE_ACOS, RULE_ATAN, RULE_ASINH, RULE_ACOSH, RULE_ATANH, RULE_HYPOT, RULE_FLOOR_DIVIDE,
    RULE_SQUARE, RULE_RECIPROCAL, RULE_TRUNCATING_QUOTIENT, RULE_LOGARITHM_TO_BASE, RULE_INCREMENT, RULE_DECREMENT,
    RULE_COUNT };

static const DerivativeRule derivative_rules[RULE_COUNT] = {
    {"cast", 1, false, {FACTOR_ONE},
     {rule_one},
     {rule_one_double},
     {"1"}, "op:cast"},
    {"add", 2, false, {FACTOR_ONE, FACTOR_ONE},
     {rule_one, rule_one},
     {rule_one_double, rule_one_double},
     {"1", "1"}, "op:add"},
    {"sub", 2, false, {FACTOR_ONE, FACTOR_MINUS_ONE},
     {rule_one, rule_minus_one},
     {rule_one_double, rule_minus_one_double},
     {"1", "-1"}, "op:sub"},
    {"mul", 2, false, {FACTOR_VARIES, FACTOR_VARIES},
     {rule_mul_0, rule_mul_1},
     {rule_mul_0_double, rule_mul_1_double},
     {"y", "x"}, "op:mul"},
    {"div", 2, false, {FACTOR_VARIES, FACTOR_VARIES},
     {rule_div_0, rule_div_1},
     {rule_div_0_double, rule_div_1_double},
     {"(/ 1 y)", "(/ (- r) y)"}, "op:div"},
    {"power", 2, false, {FACTOR_VARIES, FACTOR_VARIES},
     {rule_power_0, rule_power_1},
     {rule_power_0_double, rule_power_1_double},
     {"(* y (expt x (if (= y 0) 1 (- y 1))))", "(* r (if (and (= x 0) (>= y 0)) 0 (log x)))"}, "op:power"},
    {"maximum", 2, false, {FACTOR_VARIES, FACTOR_VARIES},
     {rule_maximum_0, rule_maximum_1},
     {rule_maximum_0_double, rule_maximum_1_double},
     {"(if (= x y) 1/2 (if (= r x) 1 0))", "(if (= y x) 1/2 (if (= r y) 1 0))"}, "op:maximum"},
    {"minimum", 2, false, {FACTOR_VARIES, FACTOR_VARIES},
     {rule_minimum_0, rule_minimum_1},
     {rule_minimum_0_double, rule_minimum_1_double},
     {"(if (= x y) 1/2 (if (= r x) 1 0))", "(if (= y x) 1/2 (if (= r y) 1 0))"}, "op:minimum"},
    {"remainder", 2, false, {FACTOR_ONE, FACTOR_VARIES},
     {rule_one, rule_remainder_1},
     {rule_one_double, rule_remainder_1_double},
     {"1", "(- (floor (+ (/ (- x r) y) 1/2)))"}, "op:remainder"},
    {"fmod", 2, false, {FACTOR_ONE, FACTOR_VARIES},
     {rule_one, rule_fmod_1},
     {rule_one_double, rule_fmod_1_double},
     {"1", "(- (truncate (+ (/ (- x r) y) (* 1/2 (sign (* x y))))))"}, "op:fmod"},
    {"atan2", 2, false, {FACTOR_VARIES, FACTOR_VARIES},
     {rule_atan2_0, rule_atan2_1},
     {rule_atan2_0_double, rule_atan2_1_double},
     {"(/ y (+ (* x x) (* y y)))", "(/ (- x) (+ (* x x) (* y y)))"}, "op:atan2"},
    {"neg", 1, false, {FACTOR_MINUS_ONE},
     {rule_minus_one},
     {rule_minus_one_double},
     {"-1"}, "op:neg"},
    {"absolute", 1, false, {FACTOR_VARIES},
     {rule_absolute_0},
     {rule_absolute_0_double},
     {"(sign x)"}, "op:absolute"},
    {"sign", 1, true, {FACTOR_ZERO},
     {rule_zero},
     {rule_zero_double},
     {"0"}, "op:sign"},
    {"floor", 1, true, {FACTOR_ZERO},
     {rule_zero},
     {rule_zero_double},
     {"0"}, "op:floor"},
    {"ceil", 1, true, {FACTOR_ZERO},
     {rule_zero},
     {rule_zero_double},
     {"0"}, "op:ceil"},
    {"round", 1, true, {FACTOR_ZERO},
     {rule_zero},
     {rule_zero_double},
     {"0"}, "op:round"},
    {"trunc", 1, true, {FACTOR_ZERO},
     {rule_zero},
     {rule_zero_double},
     {"0"}, "op:trunc"},
    {"exp", 1, false, {FACTOR_VARIES},
     {rule_exp_0},
     {rule_exp_0_double},
     {"r"}, "op:exp"},
    {"expm1", 1, false, {FACTOR_VARIES},
     {rule_expm1_0},
     {rule_expm1_0_double},
     {"(+ r 1)"}, "op:expm1"},
    {"log", 1, false, {FACTOR_VARIES},
     {rule_log_0},
     {rule_log_0_double},
     {"(/ 1 x)"}, "op:log"},
    {"log1p", 1, false, {FACTOR_VARIES},
     {rule_log1p_0},
     {rule_log1p_0_double},
     {"(/ 1 (+ 1 x))"}, "op:log1p"},
    {"sqrt", 1, false, {FACTOR_VARIES},
     {rule_sqrt_0},
     {rule_sqrt_0_double},
     {"(/ 1/2 r)"}, "op:sqrt"},
    {"sin", 1, false, {FACTOR_VARIES},
     {rule_sin_0},
     {rule_sin_0_double},
     {"(cos x)"}, "op:sin"},
    {"cos", 1, false, {FACTOR_VARIES},
     {rule_cos_0},
     {rule_cos_0_double},
     {"(- (sin x))"}, "op:cos"},
    {"tan", 1, false, {FACTOR_VARIES},
     {rule_tan_0},
     {rule_tan_0_double},
     {"(+ 1 (* r r))"}, "op:tan"},
    {"tanh", 1, false, {FACTOR_VARIES},
     {rule_tanh_0},
     {rule_tanh_0_double},
     {"(- 1 (* r r))"}, "op:tanh"},
    {"sinh", 1, false, {FACTOR_VARIES},
     {rule_sinh_0},
     {rule_sinh_0_double},
     {"(cosh x)"}, "op:sinh"},
    {"cosh", 1, false, {FACTOR_VARIES},
     {rule_cosh_0},
     {rule_cosh_0_double},
     {"(sinh x)"}, "op:cosh"},
    {"asin", 1, false, {FACTOR_VARIES},
     {rule_asin_0},
     {rule_asin_0_double},
     {"(/ 1 (sqrt (* (- 1 x) (+ 1 x))))"}, "op:asin"},
    {"acos", 1, false, {FACTOR_VARIES},
     {rule_acos_0},
     {rule_acos_0_double},
     {"(/ -1 (sqrt (* (- 1 x) (+ 1 x))))"}, "op:acos"},
    {"atan", 1, false, {FACTOR_VARIES},
     {rule_atan_0},
     {rule_atan_0_double},
     {"(/ 1 (+ 1 (* x x)))"}, "op:atan"},
    {"asinh", 1, false, {FACTOR_VARIES},
     {rule_asinh_0},
     {rule_asinh_0_double},
     {"(/ 1 (hypot x 1))"}, "op:asinh"},
    {"acosh", 1, false, {FACTOR_VARIES},
     {rule_acosh_0},
     {rule_acosh_0_double},
     {"(/ 1 (* (sqrt (- x 1)) (sqrt (+ x 1))))"}, "op:acosh"},
    {"atanh", 1, false, {FACTOR_VARIES},
     {rule_atanh_0},
     {rule_atanh_0_double},
     {"(/ 1 (* (- 1 x) (+ 1 x)))"}, "op:atanh"},
    {"hypot", 2, false, {FACTOR_VARIES, FACTOR_VARIES},
     {rule_hypot_0, rule_hypot_1},
     {rule_hypot_0_double, rule_hypot_1_double},
     {"(/ x (if (= r 0) 1 r))", "(/ y (if (= r 0) 1 r))"}, "op:hypot"},
    {"floor_divide", 2, true, {FACTOR_ZERO, FACTOR_ZERO},
     {rule_zero, rule_zero},
     {rule_zero_double, rule_zero_double},
     {"0", "0"}, "op:floor_divide"},
    {"square", 1, false, {FACTOR_VARIES},
     {rule_square_0},
     {rule_square_0_double},
     {"(* 2 x)"}, "op:square"},
    {"reciprocal", 1, false, {FACTOR_VARIES},
     {rule_reciprocal_0},
     {rule_reciprocal_0_double},
     {"(/ (- r) x)"}, "op:reciprocal"},
    {"truncating_quotient", 2, true, {FACTOR_ZERO, FACTOR_ZERO},
     {rule_zero, rule_zero},
     {rule_zero_double, rule_zero_double},
     {"0", "0"}, "rule:truncating_quotient"},
    {"logarithm_to_base", 2, false, {FACTOR_VARIES, FACTOR_VARIES},
     {rule_logarithm_to_base_0, rule_logarithm_to_base_1},
     {rule_logarithm_to_base_0_double, rule_logarithm_to_base_1_double},
     {"(* (/ 1 (log y)) (/ 1 x))", "(* (/ (- r) (log y)) (/ 1 y))"}, "rule:logarithm_to_base"},
    {"increment", 1, false, {FACTOR_ONE},
     {rule_one},
     {rule_one_double},
     {"1"}, "rule:increment"},
    {"decrement", 1, false, {FACTOR_ONE},
     {rule_one},
     {rule_one_double},
     {"1"}, "rule:decrement"},
};

static const DerivativeName derivative_names[] = {
    {"exact", RULE_CAST},
    {"inexact", RULE_CAST},
    {"inexact->exact", RULE_CAST},
    {"exact->inexact", RULE_CAST},
    {"+", RULE_ADD},
    {"-", RULE_SUB},
    {"*", RULE_MUL},
    {"/", RULE_DIV},
    {"expt", RULE_POWER},
    {"max", RULE_MAXIMUM},
    {"min", RULE_MINIMUM},
    {"modulo", RULE_REMAINDER},
    {"floor-remainder", RULE_REMAINDER},
    {"remainder", RULE_FMOD},
    {"truncate-remainder", RULE_FMOD},
    {"atan", RULE_ATAN2},
    {"-", RULE_NEG},
    {"abs", RULE_ABSOLUTE},
    {"magnitude", RULE_ABSOLUTE},
    {"sign", RULE_SIGN},
    {"floor", RULE_FLOOR},
    {"ceiling", RULE_CEIL},
    {"round", RULE_ROUND},
    {"truncate", RULE_TRUNC},
    {"exp", RULE_EXP},
    {"expm1", RULE_EXPM1},
    {"log", RULE_LOG},
    {"log1p", RULE_LOG1P},
    {"sqrt", RULE_SQRT},
    {"sin", RULE_SIN},
    {"cos", RULE_COS},
    {"tan", RULE_TAN},
    {"tanh", RULE_TANH},
    {"sinh", RULE_SINH},
    {"cosh", RULE_COSH},
    {"asin", RULE_ASIN},
    {"acos", RULE_ACOS},
    {"atan", RULE_ATAN},
    {"asinh", RULE_ASINH},
    {"acosh", RULE_ACOSH},
    {"atanh", RULE_ATANH},
    {"hypot", RULE_HYPOT},
    {"floor-quotient", RULE_FLOOR_DIVIDE},
    {"square", RULE_SQUARE},
    {"/", RULE_RECIPROCAL},
    {"quotient", RULE_TRUNCATING_QUOTIENT},
    {"truncate-quotient", RULE_TRUNCATING_QUOTIENT},
    {"log", RULE_LOGARITHM_TO_BASE},
    {"1+", RULE_INCREMENT},
    {"-1+", RULE_DECREMENT},
    {0}};

enum { COMPARISON_EQUAL, COMPARISON_LESS, COMPARISON_LESS_EQUAL, COMPARISON_GREATER, COMPARISON_GREATER_EQUAL };

static const char *const comparison_functions[] = {
    [COMPARISON_EQUAL] = "compare:equal",
    [COMPARISON_LESS] = "compare:less",
    [COMPARISON_LESS_EQUAL] = "compare:less_equal",
    [COMPARISON_GREATER] = "compare:greater",
    [COMPARISON_GREATER_EQUAL] = "compare:greater_equal",
};

#endif
