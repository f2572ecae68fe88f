/* Random calls of the primitives about differentiated numbers, and of those that meet them, with odd arguments: numbers
 * of other levels, nodes of other tapes, things that are no numbers. Nothing may crash; every call ends with a value or
 * an error. test_dynamic.py compiles this with the runtime under sanitizers. Arguments: seed, number of calls. */
#include "differential.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { POOL = 48, MOST_ARGUMENTS = 4, MOST_LEVELS = 6, LONGEST = 300 };

static const char *const names[] = {
    "%make-dual", "%dual-primal", "%dual-tangent", "%make-tape", "%tape-input", "%tape-value", "%tape-backward!",
    "%tape-accumulate!", "%tape-adjoint", "%tape-reset!", "%tape-custom", "%tape-size", "%tape-length", "%tape-nodes",
    "%tape-level", "%tape-of", "%level-of", "%primal-of", "%make-jet", "%jet-order", "%jet-coefficients",
    "%differentiated?", "%undifferentiated", "+", "-", "*", "/", "+", "-", "*", "/", "=", "<", "<=", ">", ">=", "max",
    "min", "1+", "-1+", "square", "abs", "magnitude", "sqrt", "exp", "log", "expt", "sin", "cos", "tan", "asin", "acos",
    "atan", "floor", "ceiling", "round", "truncate", "quotient", "remainder", "modulo", "floor/", "truncate/",
    "floor-remainder", "truncate-remainder", "gcd", "exact", "inexact", "number?", "integer?", "exact-integer?",
    "exact?", "zero?", "positive?", "nan?", "even?", "real-part", "angle", "make-rectangular", "make-polar",
    "numerator", "rationalize", "number->string", "eqv?", "equal?", "equal-hash", "eqv-hash", "memv", "member", "assv",
    "list", "vector", "iota", "vector-ref", "%table-ref", "%table-set!", "%table-delete!", "%table-contains?",
    "%table-copy", "exact-integer-sqrt",
};
enum { NAMES = sizeof names / sizeof *names };

static const Primitive *rows[NAMES];
static Value *pool[POOL];
static uint64_t state;

static uint64_t below(uint64_t limit) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (state >> 11) % limit;
}

static void never(Context *context, Closure *closure, int64_t count, const Value *args, Value *result) {
    (void)context, (void)closure, (void)count, (void)args, (void)result;
    abort();
}

static const Primitive *find(const char *name) {
    for (int64_t i = 0; i < esk_primitive_count(); i++)
        if (!strcmp(esk_primitive(i)->name, name)) return esk_primitive(i);
    fprintf(stderr, "no primitive %s\n", name);
    exit(1);
}

static uint64_t call(Context *context, const Primitive *row, const Value *args, int64_t count, Value *result) {
    return esk_enter_primitive(context, row, args, count, result);
}

static Value one_of_the_pool(void) { return *pool[below(POOL)]; }

/* Something to begin with. */
static Value fresh(Context *context) {
    static const double reals[] = {0.0, -0.0, 1.0, -2.5, 1e300, 5e-324, INFINITY, NAN};
    Value result = ESK_FALSE;
    switch (below(9)) {
    case 0: return esk_fixnum((int64_t)below(9) - 4);
    case 1: return esk_flonum(reals[below(8)]);
    case 2: return esk_flonum((double)below(1000) / 128 - 3);
    case 3: return esk_parse_number(context, "3/7", 3, 10);
    case 4: return esk_parse_number(context, "1.5-2i", 6, 10);
    case 5: return below(2) ? esk_fixnum(INT64_MAX) : esk_parse_number(context, "123456789012345678901", 21, 10);
    case 6: return context->levels ? esk_fixnum((int64_t)below(context->levels + 1)) : ESK_FALSE;
    case 7: {
        static const char *const makers[] = {"%make-dual", "%make-tape", "%make-jet"};
        Value args[3] = {esk_fixnum((int64_t)below(context->levels) + 1), one_of_the_pool(), one_of_the_pool()};
        uint64_t which = below(3);
        call(context, find(makers[which]), args, which == 1 ? 1 + (int64_t)below(2) : 3, &result);
        return result;
    }
    default: {
        Value kind = below(2) ? esk_symbol(context, "eqv", 3) : esk_symbol(context, "equal", 5);
        Value args[2] = {kind, ESK_FALSE};
        call(context, find("%make-table"), args, 2, &result);
        return below(3) ? esk_list(context, &result, 1) : result;
    }
    }
}

/* Numbers must not grow without end: an answer that takes long to write is not kept. */
static bool is_short(Context *context, Value v) {
    Value text;
    Value args[2] = {v, esk_fixnum(1)};
    return !call(context, find("%text"), args, 2, &text) && ((String *)esk_pointer(text))->length < LONGEST;
}

static bool is_small(Value v) {
    v = undifferentiated(v);
    return esk_is(v, TAG_FLONUM) || (esk_is(v, TAG_FIXNUM) && esk_integer(v) < 9 && esk_integer(v) > -9);
}

int main(int count, char **args) {
    if (count < 3) return 2;
    state = 88172645463325252u + 7919 * strtoull(args[1], NULL, 10);
    int64_t calls = strtoll(args[2], NULL, 10), values = 0;
    esk_invoke = never;
    Context *context = esk_new_context(64 << 20);
    for (int i = 0; i < NAMES; i++) rows[i] = find(names[i]);
    for (int i = 0; i < POOL; i++) *(pool[i] = esk_root(context)) = esk_fixnum(i % 5);
    context->levels = MOST_LEVELS;
    for (int64_t i = 0; i < calls; i++) {
        if (!below(4)) *pool[below(POOL)] = fresh(context);
        const Primitive *row = rows[below(NAMES)];
        int64_t most = row->max < 0 || row->max > MOST_ARGUMENTS ? MOST_ARGUMENTS : row->max;
        int64_t given = row->min + (int64_t)below((uint64_t)(most - row->min + 1));
        Value chosen[MOST_ARGUMENTS] = {ESK_FALSE, ESK_FALSE, ESK_FALSE, ESK_FALSE}, result = ESK_FALSE;
        for (int64_t k = 0; k < given; k++) chosen[k] = below(30) ? one_of_the_pool() : ESK_FALSE;
        if (!strcmp(row->name, "expt") && !is_small(chosen[1])) continue;
        if (!strcmp(row->name, "iota") && !is_small(chosen[0])) continue;
        if (!strcmp(row->name, "%jet-coefficients") && !is_small(chosen[2])) continue;
        if (call(context, row, chosen, given, &result)) continue;
        values++;
        if (is_short(context, result)) *pool[below(POOL)] = result;
    }
    printf("%lld values of %lld calls\n", (long long)values, (long long)calls);
    esk_free_context(context);
    return 0;
}
