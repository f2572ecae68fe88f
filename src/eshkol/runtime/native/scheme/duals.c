/* Dual numbers, and how an operation treats differentiated operands of any kind.
 *
 * In: an operation by its rule of derivative_rules.h and operands of which at least one is differentiated, or a tensor.
 * Out: a dual number with the tangent, or a node of the tape that the operands are on. Where result and operands are
 * machine numbers, factors are computed in doubles. Where a tensor takes part, its shape does too: the rules of numbers
 * do not hold, and the operation is the host's (tensor_numbers.c).
 */
#include "heap.h"
#include "numbers.h"
#include "tensor_numbers.h"

#include "derivative_rules.h"

#define INLINE static inline __attribute__((always_inline))

enum { STACK_FOR_LEVEL = 2048 };

INLINE Value primal_of(Value v) { return ((Generic *)esk_pointer(v))->fields[0]; }
INLINE Value tangent_of(Value v) { return ((Dual *)esk_pointer(v))->tangent; }
INLINE bool is_machine(Value v) { return v.tag - TAG_FIXNUM < 2; }
_Static_assert(TAG_FLONUM == TAG_FIXNUM + 1, "is_machine");
INLINE double machine_double(Value v) { return v.tag == TAG_FLONUM ? esk_double(v) : (double)esk_integer(v); }

/* Before operands that are differentiated numbers themselves: what is to be done doubles with each level. */
static void descend(Context *context) {
    esk_need_stack(context, STACK_FOR_LEVEL);
    if (context->interrupted) esk_poll(context);
}

bool esk_number_is_complex(Value v) { return undifferentiated(v).tag == TAG_COMPLEX; }

void need_any_number(Context *context, const char *who, int position, Value v) {
    if (!is_extended(v)) need_number(context, who, position, v);
}

_Noreturn void left_derivative(Context *context, const char *who, Value v) {
    esk_fail(context, ERROR_CONTROL, who, "a differentiated number has left the derivative that it belongs to", 1, v);
}

void need_plain(Context *context, const char *who, Value v, const char *why) {
    if (is_differentiated(v)) esk_fail(context, ERROR_TYPE, who, why, 1, v);
}

Value dual_make(Context *context, int64_t level, Value primal, Value tangent) {
    Dual *dual = allocate_differentiated(context, TAG_DUAL);
    dual->primal = primal;
    dual->tangent = tangent;
    dual->level = level;
    return esk_make(TAG_DUAL, (uint64_t)(uintptr_t)dual);
}

/* ---- factors ---------------------------------------------------------------------------------------------------- */

/* The factor of argument k. A root of exactly zero is the one place where the rule has a value that exact numbers do
 * not have: it is infinite. */
INLINE Value general_factor(Context *context, int rule, int k, Value r, Value x, Value y) {
    if (rule == RULE_SQRT && is_exact_zero(undifferentiated(r))) {
        if (!is_differentiated(r)) return esk_flonum(derivative_rules[rule].factor_double[k](0.0, 0.0, 0.0));
        r = esk_inexact(context, r);
    }
    return derivative_rules[rule].factor_value[k](context, r, x, y);
}

INLINE Value factor(Context *context, int rule, int k, bool real, Value r, Value x, Value y) {
    if (real) {
        double f = derivative_rules[rule].factor_double[k](esk_double(r), machine_double(x), machine_double(y));
        if (__builtin_expect(!isnan(f), 1)) return esk_flonum(f);
    }
    Value f = general_factor(context, rule, k, r, x, y);
    return r.tag == TAG_FLONUM && is_exact_rational(f) ? number_inexact(context, f) : f;
}

/* For series (jets.c), where x and y may be any of them. */
Value rule_factor(Context *context, int rule, int k, Value r, Value x, Value y) {
    return general_factor(context, rule, k, r, x, y);
}

int rule_arity(int rule) { return derivative_rules[rule].arity; }
/* For the host: the factor of argument k of a procedure as Scheme writes it; null where there is no such rule. */
const char *esk_factor_text(const char *procedure, int64_t arity, int64_t k) {
    for (const DerivativeName *name = derivative_names; name->procedure; name++)
        if (strcmp(name->procedure, procedure) == 0 && derivative_rules[name->rule].arity == arity && k < arity)
            return derivative_rules[name->rule].factor_text[k];
    return NULL;
}
const char *rule_factor_text(int rule, int k) { return derivative_rules[rule].factor_text[k]; }
bool rule_is_product(int rule) { return rule == RULE_MUL; }
bool rule_is_quotient(int rule) { return rule == RULE_DIV; }

/* Tangents that are exactly zero stay so, whatever the factor: nothing depends on what they belong to. */
static Value scaled(Context *context, Value factor, Value tangent) {
    return is_exact_zero(tangent) || fixnum_is(factor, 1) ? tangent : esk_multiply(context, factor, tangent);
}

static Value sum(Context *context, Value a, Value b) {
    return is_exact_zero(a) ? b : is_exact_zero(b) ? a : esk_add(context, a, b);
}

static Value with_tangent(Context *context, int64_t level, Value primal, Value tangent) {
    return is_exact_zero(tangent) ? primal : dual_make(context, level, primal, tangent);
}

/* ---- operations, where all is real ------------------------------------------------------------------------------ */

/* The operators of two operands on doubles; for others there is no such thing. */
INLINE bool real_result(int rule, double x, double y, double *r) {
    switch (rule) {
    case RULE_ADD: *r = x + y; return true;
    case RULE_SUB: *r = x - y; return true;
    case RULE_MUL: *r = x * y; return true;
    case RULE_DIV: *r = x / y; return true;
    default: return false;
    }
}

INLINE double real_factor(int rule, int k, bool wanted, double r, double x, double y) {
    return wanted ? derivative_rules[rule].factor_double[k](r, x, y) : 0.0;
}

/* An operand as a double, with its index on the tape or its tangent, if it has one. False: it is something else. */
INLINE bool read_node(Value v, Tape **tape, double *x, uint32_t *index) {
    if (v.tag != TAG_AD_NODE) {
        *index = 0;
        *x = machine_double(v);
        return is_machine(v);
    }
    const TapeNode *node = esk_pointer(v);
    Tape *own = esk_pointer(node->tape);
    bool kin = !*tape || *tape == own;
    *tape = own;
    *index = (uint32_t)node->index;
    *x = esk_double(node->primal);
    return kin && node->primal.tag == TAG_FLONUM;
}

INLINE bool read_dual(Value v, int64_t *level, double *x, double *tangent, bool *has_tangent) {
    *has_tangent = v.tag == TAG_DUAL;
    if (v.tag != TAG_DUAL) {
        *tangent = 0.0;
        *x = machine_double(v);
        return is_machine(v);
    }
    const Dual *dual = esk_pointer(v);
    bool kin = *level < 0 || *level == dual->level;
    *level = dual->level;
    *tangent = esk_double(dual->tangent);
    *x = esk_double(dual->primal);
    return kin && dual->primal.tag == TAG_FLONUM && dual->tangent.tag == TAG_FLONUM;
}

/* Gives up where memory must be found first, so that this calls nothing and keeps all in registers. */
INLINE bool apply_real(Context *context, int rule, Value a, Value b, Value *result) {
    double x, y, r;
    if (!has_room(context)) return false;
    if (rule == RULE_DIV && is_exact_zero(b)) return false; /* an error */
    if (a.tag == TAG_AD_NODE || b.tag == TAG_AD_NODE) {
        Tape *tape = NULL;
        uint32_t i, j;
        if (!read_node(a, &tape, &x, &i) || !read_node(b, &tape, &y, &j) || tape->form != ENTRIES_REAL) return false;
        if (tape->used == tape->room) return false;
        if (!real_result(rule, x, y, &r)) return false;
        double f = real_factor(rule, 0, i, r, x, y), g = real_factor(rule, 1, j, r, x, y);
        if (isunordered(f, g)) return false;
        *result = tape_push_real(context, tape, esk_flonum(r), i ? (RealEntry){{f, g}, {i, j}} : (RealEntry){{g}, {j}});
        return true;
    }
    int64_t level = -1;
    double s, t;
    bool first, second;
    if (!read_dual(a, &level, &x, &s, &first) || !read_dual(b, &level, &y, &t, &second)) return false;
    if (!real_result(rule, x, y, &r)) return false;
    double f = real_factor(rule, 0, first, r, x, y), g = real_factor(rule, 1, second, r, x, y);
    if (isunordered(f, g)) return false;
    double tangent = first && second ? f * s + g * t : first ? f * s : g * t;
    *result = dual_make(context, level, esk_flonum(r), esk_flonum(tangent));
    return true;
}

/* ---- operations ------------------------------------------------------------------------------------------------- */

INLINE Value apply_1(Context *context, int rule, const char *name, Value (*plain)(Context *, Value), Value a) {
    if (holds_tensor(a)) return tensor_apply(context, derivative_rules[rule].function, name, &a, 1);
    Value x = primal_of(a), none = esk_fixnum(0);
    if (is_differentiated(x)) descend(context);
    Value r = plain(context, x);
    Value f = factor(context, rule, 0, r.tag == TAG_FLONUM && is_machine(x), r, x, none);
    if (a.tag == TAG_DUAL) {
        int64_t level = ((Dual *)esk_pointer(a))->level;
        if (tangent_of(a).tag == TAG_VECTOR) return jet_result(context, rule, level, r, a, none);
        return with_tangent(context, level, r, scaled(context, f, tangent_of(a)));
    }
    Tape *tape = tape_of(a);
    if (f.tag == TAG_FLONUM && tape->form == ENTRIES_REAL)
        return tape_push_real(context, tape, r, (RealEntry){{esk_double(f), 0.0}, {index_of(a), 0}});
    return tape_push(context, tape, name, r, (Value[2]){f, none}, (uint32_t[2]){index_of(a), 0});
}

/* Both operands of one level, where they can only be two duals or two nodes of one tape. */
INLINE void check_kin(Context *context, const char *name, Value a, Value b) {
    if (a.tag != b.tag || (a.tag == TAG_AD_NODE && tape_of(a) != tape_of(b))) left_derivative(context, name, b);
}

INLINE Value apply_generally(Context *context, int rule, const char *name, Value (*plain)(Context *, Value, Value),
                             Value a, Value b) {
    if (holds_tensor(a) || holds_tensor(b))
        return tensor_apply(context, derivative_rules[rule].function, name, (Value[2]){a, b}, 2);
    int64_t p = level_of(a), q = level_of(b);
    bool first = p >= q, second = q >= p; /* which of them has the highest level */
    Value x = first ? primal_of(a) : a, y = second ? primal_of(b) : b;
    if (first && second) check_kin(context, name, a, b);
    if (is_differentiated(x) || is_differentiated(y)) descend(context);
    Value r = plain(context, x, y), none = esk_fixnum(0);
    bool real = r.tag == TAG_FLONUM && is_machine(x) && is_machine(y);
    Value f = first ? factor(context, rule, 0, real, r, x, y) : none;
    Value g = second ? factor(context, rule, 1, real, r, x, y) : none;
    Value top = first ? a : b;
    if (top.tag == TAG_DUAL) {
        if (tangent_of(top).tag == TAG_VECTOR) return jet_result(context, rule, first ? p : q, r, a, b);
        Value s = first ? scaled(context, f, tangent_of(a)) : none;
        Value t = second ? scaled(context, g, tangent_of(b)) : none;
        return with_tangent(context, first ? p : q, r, sum(context, s, t));
    }
    Tape *tape = tape_of(top);
    Value factors[2] = {first ? f : g, first && second ? g : none};
    uint32_t parents[2] = {index_of(top), first && second ? index_of(b) : 0};
    if (tape->form == ENTRIES_REAL && factors[0].tag == TAG_FLONUM && (!parents[1] || g.tag == TAG_FLONUM)) {
        double back = parents[1] ? esk_double(g) : 0.0;
        return tape_push_real(context, tape, r, (RealEntry){{esk_double(factors[0]), back}, {parents[0], parents[1]}});
    }
    return tape_push(context, tape, name, r, factors, parents);
}

#define X(name, rule, plain, procedure)                                       \
    Value extended_##name(Context *context, Value a) {                  \
        return apply_1(context, RULE_##rule, procedure, plain, a);            \
    }
DIFFERENTIATED_1(X)
#undef X
#define X(name, rule, plain, procedure)                                                                \
    static __attribute__((noinline)) Value name##_generally(Context *context, Value a, Value b) {      \
        return apply_generally(context, RULE_##rule, procedure, plain, a, b);                          \
    }                                                                                                  \
    Value extended_##name(Context *context, Value a, Value b) {                                  \
        Value result;                                                                                  \
        return apply_real(context, RULE_##rule, a, b, &result) ? result : name##_generally(context, a, b); \
    }
DIFFERENTIATED_2(X)
#undef X

/* Of tensors alone: steps and comparisons are the same for what they are differentiated by. */
#define X(name, rule, procedure)                                                                      \
    Value tensor_##name(Context *context, Value v) {                                                  \
        return tensor_apply(context, derivative_rules[RULE_##rule].function, procedure, &v, 1);       \
    }
TENSOR_STEPS_1(X)
#undef X
#define X(name, rule, procedure)                                                                                    \
    Value tensor_##name(Context *context, Value a, Value b) {                                                       \
        return tensor_apply(context, derivative_rules[RULE_##rule].function, procedure, (Value[2]){a, b}, 2);       \
    }
TENSOR_STEPS_2(X)
#undef X
#define X(name, comparison, procedure)                                                                              \
    Value tensor_##name(Context *context, Value a, Value b) {                                                       \
        return tensor_apply(context, comparison_functions[COMPARISON_##comparison], procedure, (Value[2]){a, b}, 2); \
    }
TENSOR_COMPARISONS(X)
#undef X

/* ---- primitives ------------------------------------------------------------------------------------------------- */

/* The levels of all threads of a heap are different, as numbers may go from one to another. */
static Value fresh_level(Context *context) {
    return esk_fixnum((int64_t)__atomic_add_fetch(&context->heap->levels, 1, __ATOMIC_RELAXED));
}

int64_t need_level(Context *context, const char *who, Value v) {
    if (!esk_is(v, TAG_FIXNUM) || v.bits == 0 || v.bits > __atomic_load_n(&context->heap->levels, __ATOMIC_RELAXED))
        esk_wrong_type(context, who, 1, v, "a level of a derivative");
    return esk_integer(v);
}

void need_below(Context *context, const char *who, int position, Value v, int64_t level) {
    need_any_number(context, who, position, v);
    if (level_of(v) >= level) left_derivative(context, who, v);
}

static Value make_dual(Context *context, const Value *args, int64_t count) {
    (void)count;
    int64_t level = need_level(context, "%make-dual", args[0]);
    need_below(context, "%make-dual", 2, args[1], level);
    need_below(context, "%make-dual", 3, args[2], level);
    return dual_make(context, level, args[1], args[2]);
}

/* The part of a number at a level. A dual of a higher level that got out of its derivative is linear in its parts; what
 * such a node depends on only its tape knows. */
static Value part(Context *context, const char *who, int64_t level, Value v, bool tangent) {
    int64_t own = level_of(v);
    if (own < level) return tangent ? esk_fixnum(0) : v;
    if (v.tag != TAG_DUAL) left_derivative(context, who, v);
    if (own == level) return tangent ? tangent_of(v) : primal_of(v);
    if (tangent_of(v).tag == TAG_VECTOR) left_derivative(context, who, v);
    descend(context);
    Value primal = part(context, who, level, primal_of(v), tangent);
    return with_tangent(context, own, primal, part(context, who, level, tangent_of(v), tangent));
}

static Value dual_primal(Context *context, Value level, Value v) {
    int64_t which = need_level(context, "%dual-primal", level);
    need_any_number(context, "%dual-primal", 2, v);
    return part(context, "%dual-primal", which, v, false);
}

static Value dual_tangent(Context *context, Value level, Value v) {
    int64_t which = need_level(context, "%dual-tangent", level);
    need_any_number(context, "%dual-tangent", 2, v);
    return part(context, "%dual-tangent", which, v, true);
}

static Value highest_level(Context *context, Value v) {
    (void)context;
    return esk_fixnum(is_differentiated(v) ? level_of(v) : 0);
}

static Value highest_primal(Context *context, Value v) {
    (void)context;
    return is_differentiated(v) ? primal_of(v) : v;
}

static Value tape_under(Context *context, Value v) {
    (void)context;
    return esk_is(v, TAG_AD_NODE) ? ((TapeNode *)esk_pointer(v))->tape : ESK_FALSE;
}

static Value is_differentiated_p(Context *context, Value v) {
    (void)context;
    return esk_boolean(is_differentiated(v));
}

static Value strip(Context *context, Value v) {
    (void)context;
    return undifferentiated(v);
}

static Value rules(Context *context) {
    Value list = ESK_NULL;
    int64_t count = 0;
    while (derivative_names[count].procedure) count++;
    while (count-- > 0) {
        const DerivativeRule *rule = &derivative_rules[derivative_names[count].rule];
        const char *name = derivative_names[count].procedure;
        Value factors = ESK_NULL;
        for (int k = rule->arity; k-- > 0;) {
            Value read = esk_read_text(context, rule->factor_text[k], (int64_t)strlen(rule->factor_text[k]));
            factors = esk_cons(context, read, factors);
        }
        Value row[3] = {esk_symbol(context, name, (int64_t)strlen(name)), esk_fixnum(rule->arity), factors};
        list = esk_cons(context, esk_list(context, row, 3), list);
    }
    return list;
}

const Primitive esk_duals_primitives[] = {
    ESK_PRIMITIVE_0("%derivative-level", "(%derivative-level)", fresh_level,
                    "A level for one use of a derivative operator, greater than all before it."),
    ESK_PRIMITIVE_N("%make-dual", "(%make-dual level primal tangent)", 3, 3, make_dual,
                    "The number primal that changes by tangent with the variable of that level."),
    ESK_PRIMITIVE_2("%dual-primal", "(%dual-primal level z)", dual_primal,
                    "The number z without what it has of that level."),
    ESK_PRIMITIVE_2("%dual-tangent", "(%dual-tangent level z)", dual_tangent,
                    "How z changes with the variable of that level; exact 0 where it does not depend on it."),
    ESK_PRIMITIVE_1("%level-of", "(%level-of z)", highest_level, "The highest level of z; 0 of a plain number."),
    ESK_PRIMITIVE_1("%primal-of", "(%primal-of z)", highest_primal,
                    "The number z without what it has of its highest level."),
    ESK_PRIMITIVE_1("%tape-of", "(%tape-of z)", tape_under, "The tape that z is a node of, or #f."),
    ESK_PRIMITIVE_1("%differentiated?", "(%differentiated? object)", is_differentiated_p,
                    "Whether the object is a number that is being differentiated."),
    ESK_PRIMITIVE_1("%undifferentiated", "(%undifferentiated object)", strip,
                    "The number under all levels of derivatives; anything else is itself."),
    ESK_PRIMITIVE_0("%derivative-rules", "(%derivative-rules)", rules,
                    "A list of (procedure arity (factor ...)): what the tangent of each argument is multiplied by, "
                    "over the result r and the arguments x and y."),
    {0}};
