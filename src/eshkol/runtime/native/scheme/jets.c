/* Taylor series as numbers: derivatives of high order in one run of a program.
 *
 * A jet is a DUAL whose tangent is a vector: the coefficients of h, h^2, ..., h^n behind the primal, which is that of
 * h^0. Comparisons and predicates see its primal, as with other duals. Where an operation meets jets, jet_result
 * makes the result's coefficients from the same rules that all derivatives come from: from r' = f(r, x) x', where f is
 * the factor of the rule, evaluated on series, follows k r_k = sum of j x_j f_(k-j) for j = 1 ... k. So a product of
 * series of order n costs n^2/2 products of numbers, and other functions at most n times that; duals within duals
 * would cost 3^n.
 */
#include "numbers.h"
#include "differential.h"

enum { STACK_FOR_ORDER = 4096 };

static bool is_jet(Value v, int64_t level) {
    if (!esk_is(v, TAG_DUAL)) return false;
    const Dual *dual = esk_pointer(v);
    return dual->level == level && esk_is(dual->tangent, TAG_VECTOR);
}

static Vector *higher(Value jet) { return esk_pointer(((Dual *)esk_pointer(jet))->tangent); }

/* Of h^k; of what is no jet of this level, zero from the first on. */
static Value coefficient(Value v, int64_t level, int64_t k) {
    if (!is_jet(v, level)) return k ? esk_fixnum(0) : v;
    return k ? higher(v)->items[k - 1] : ((Dual *)esk_pointer(v))->primal;
}

/* A jet with the first `order` of these coefficients; of none, the number itself. */
static Value make_jet(Context *context, int64_t level, Value primal, const Value *items, int64_t order) {
    if (order == 0) return primal;
    Value vector = esk_make_vector(context, order, esk_fixnum(0));
    memcpy(((Vector *)esk_pointer(vector))->items, items, (size_t)order * sizeof(Value));
    return dual_make(context, level, primal, vector);
}

static Value shortened(Context *context, Value v, int64_t level, int64_t order) {
    if (!is_jet(v, level) || higher(v)->length <= order) return v;
    return make_jet(context, level, coefficient(v, level, 0), higher(v)->items, order);
}

static Value add_product(Context *context, Value sum, Value a, Value b) {
    if (is_exact_zero(a) || is_exact_zero(b)) return sum;
    Value product = esk_multiply(context, a, b);
    return is_exact_zero(sum) ? product : esk_add(context, sum, product);
}

/* Whether the text of a factor speaks of the result. */
static bool mentions_result(const char *text) {
    for (const char *at = text; *at; at++) {
        bool begins = at == text || at[-1] == ' ' || at[-1] == '(', ends = !at[1] || at[1] == ' ' || at[1] == ')';
        if (*at == 'r' && begins && ends) return true;
    }
    return false;
}

static Value product_term(Context *context, int64_t level, Value x, Value y, int64_t k) {
    Value sum = esk_fixnum(0);
    for (int64_t j = 0; j <= k; j++)
        sum = add_product(context, sum, coefficient(x, level, j), coefficient(y, level, k - j));
    return sum;
}

/* (x_k - sum of y_j r_(k-j) for j = 1 ... k) / y_0 */
static Value quotient_term(Context *context, int64_t level, Value first, const Value *r, Value x, Value y, int64_t k) {
    Value sum = esk_fixnum(0);
    for (int64_t j = 1; j <= k; j++)
        sum = add_product(context, sum, coefficient(y, level, j), j == k ? first : r[k - j - 1]);
    Value rest = coefficient(x, level, k);
    if (!is_exact_zero(sum)) rest = esk_subtract(context, rest, sum);
    return is_exact_zero(rest) ? rest : esk_divide(context, rest, coefficient(y, level, 0));
}

/* sum of j x_j f_(k-j) for j = 1 ... k, divided by k */
static Value chain_term(Context *context, int64_t level, Value x, Value factor, int64_t k) {
    Value sum = esk_fixnum(0);
    for (int64_t j = 1; j <= k; j++) {
        Value slope = coefficient(x, level, j);
        if (is_exact_zero(slope)) continue;
        if (j > 1) slope = esk_multiply(context, esk_fixnum(j), slope);
        sum = add_product(context, sum, slope, coefficient(factor, level, k - j));
    }
    return k == 1 || is_exact_zero(sum) ? sum : esk_divide(context, sum, esk_fixnum(k));
}

/* x and y are as they came, and at least one of them is a jet of this level; of one argument, y is no jet. */
Value jet_result(Context *context, int rule, int64_t level, Value first, Value x, Value y) {
    const Value arguments[2] = {x, y};
    bool varies[2] = {false, false}, is_product = rule_is_product(rule), is_quotient = rule_is_quotient(rule);
    int arity = rule_arity(rule);
    int64_t order = INT64_MAX;
    for (int a = 0; a < arity; a++)
        if (is_jet(arguments[a], level) && higher(arguments[a])->length < order) order = higher(arguments[a])->length;
    Value vector = esk_make_vector(context, order, esk_fixnum(0)), factors[2] = {esk_fixnum(0), esk_fixnum(0)};
    Value *r = ((Vector *)esk_pointer(vector))->items;
    esk_need_stack(context, STACK_FOR_ORDER);
    for (int a = 0; a < arity && !is_product && !is_quotient; a++) {
        if (!is_jet(arguments[a], level)) continue;
        varies[a] = mentions_result(rule_factor_text(rule, a));
        if (!varies[a])
            factors[a] = rule_factor(context, rule, a, first, shortened(context, x, level, order - 1),
                                     shortened(context, y, level, order - 1));
    }
    for (int64_t k = 1; k <= order; k++) {
        if (is_product) {
            esk_store(context, &r[k - 1], product_term(context, level, x, y, k));
            continue;
        }
        if (is_quotient) {
            esk_store(context, &r[k - 1], quotient_term(context, level, first, r, x, y, k));
            continue;
        }
        Value sum = esk_fixnum(0);
        for (int a = 0; a < arity; a++) {
            if (!is_jet(arguments[a], level)) continue;
            Value factor = factors[a];
            if (varies[a])
                factor = rule_factor(context, rule, a, make_jet(context, level, first, r, k - 1),
                                     shortened(context, x, level, k - 1), shortened(context, y, level, k - 1));
            Value term = chain_term(context, level, arguments[a], factor, k);
            sum = is_exact_zero(sum) ? term : is_exact_zero(term) ? sum : esk_add(context, sum, term);
        }
        esk_store(context, &r[k - 1], sum);
    }
    return dual_make(context, level, first, vector);
}

/* ---- primitives ------------------------------------------------------------------------------------------------- */

static Value make_jet_of(Context *context, const Value *args, int64_t count) {
    static const char who[] = "%make-jet";
    (void)count;
    int64_t level = need_level(context, who, args[0]);
    need_below(context, who, 2, args[1], level);
    if (!esk_is(args[2], TAG_VECTOR)) esk_wrong_type(context, who, 3, args[2], "a vector");
    Vector *coefficients = esk_pointer(args[2]);
    for (int64_t k = 0; k < coefficients->length; k++) need_below(context, who, 3, coefficients->items[k], level);
    return make_jet(context, level, args[1], coefficients->items, coefficients->length);
}

static Value jet_order(Context *context, Value v) {
    (void)context;
    bool is = esk_is(v, TAG_DUAL) && esk_is(((Dual *)esk_pointer(v))->tangent, TAG_VECTOR);
    return is ? esk_fixnum(higher(v)->length) : ESK_FALSE;
}

static Value jet_coefficients(Context *context, const Value *args, int64_t count) {
    static const char who[] = "%jet-coefficients";
    (void)count;
    int64_t level = need_level(context, who, args[0]);
    need_any_number(context, who, 2, args[1]);
    if (!is_jet(args[1], level)) need_below(context, who, 2, args[1], level);
    if (!esk_is(args[2], TAG_FIXNUM) || esk_integer(args[2]) < 0) esk_wrong_type(context, who, 3, args[2], "an order");
    Value list = ESK_NULL;
    for (int64_t k = esk_integer(args[2]); k > 0; k--) {
        bool known = is_jet(args[1], level) && k <= higher(args[1])->length;
        list = esk_cons(context, known ? coefficient(args[1], level, k) : esk_fixnum(0), list);
    }
    return list;
}

const Primitive esk_jets_primitives[] = {
    ESK_PRIMITIVE_N("%make-jet", "(%make-jet level primal vector)", 3, 3, make_jet_of,
                    "The Taylor series in the variable of that level with these coefficients behind the first."),
    ESK_PRIMITIVE_1("%jet-order", "(%jet-order z)", jet_order, "The order of a Taylor series, or #f."),
    ESK_PRIMITIVE_N("%jet-coefficients", "(%jet-coefficients level z order)", 3, 3, jet_coefficients,
                    "The coefficients of z in the variable of that level, from the first power on, as a list."),
    {0}};
