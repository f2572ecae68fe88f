/* Differentiated numbers: what duals.c (numbers with a tangent, and how procedures treat differentiated numbers),
 * tapes.c (reverse tapes) and the files of the numeric tower share.
 *
 * Each use of a derivative operator takes a fresh level, a number greater than all before it. A dual number carries a
 * tangent of its level; a node stands for an entry of a tape, which has the level. An operation looks at the highest
 * level among its operands: those of that level are taken apart, all others are constants to it. The result's primal is
 * the same operation on the primals, which may be differentiated numbers of lower levels, so nesting works to any depth
 * and perturbations are never confused. Factors of tangents come from derivative_rules.h alone.
 */
#ifndef ESHKOL_SCHEME_DIFFERENTIAL_H
#define ESHKOL_SCHEME_DIFFERENTIAL_H

#include "value.h"

/* The operations that are taught about differentiated numbers and tensors: X(name, rule, the procedure itself, its
 * Scheme name). duals.c makes a function extended_NAME of each, for operands of which at least one is one of these. It
 * calls the procedure itself with operands of lower levels, which raises its own errors. */
#define DIFFERENTIATED_1(X)                                                                            \
    X(negate, NEG, esk_negate, "-") X(square, SQUARE, esk_square, "square") X(abs, ABSOLUTE, esk_abs, "abs") \
    X(magnitude, ABSOLUTE, esk_magnitude, "magnitude") X(exact, CAST, esk_exact, "exact")              \
    X(inexact, CAST, esk_inexact, "inexact") X(sqrt, SQRT, esk_sqrt, "sqrt") X(exp, EXP, esk_exp, "exp") \
    X(log, LOG, esk_log, "log") X(sin, SIN, esk_sin, "sin") X(cos, COS, esk_cos, "cos")                \
    X(tan, TAN, esk_tan, "tan") X(asin, ASIN, esk_asin, "asin") X(acos, ACOS, esk_acos, "acos")        \
    X(atan, ATAN, esk_atan, "atan") X(sinh, SINH, esk_sinh, "sinh") X(cosh, COSH, esk_cosh, "cosh")    \
    X(tanh, TANH, esk_tanh, "tanh") X(asinh, ASINH, esk_asinh, "asinh") X(acosh, ACOSH, esk_acosh, "acosh") \
    X(atanh, ATANH, esk_atanh, "atanh") X(expm1, EXPM1, esk_expm1, "expm1") X(log1p, LOG1P, esk_log1p, "log1p")
#define DIFFERENTIATED_2(X)                                                                            \
    X(add, ADD, esk_add, "+") X(subtract, SUB, esk_subtract, "-") X(multiply, MUL, esk_multiply, "*")  \
    X(divide, DIV, esk_divide, "/") X(expt, POWER, esk_expt, "expt") X(max, MAXIMUM, esk_max, "max")   \
    X(min, MINIMUM, esk_min, "min") X(modulo, REMAINDER, esk_modulo, "modulo")                         \
    X(remainder, FMOD, esk_remainder, "remainder") X(atan2, ATAN2, esk_atan2, "atan")                  \
    X(log_base, LOGARITHM_TO_BASE, esk_log_base, "log") X(hypot, HYPOT, esk_hypot, "hypot")

#define X(name, rule, plain, procedure) Value plain(Context *, Value);
DIFFERENTIATED_1(X)
#undef X
#define X(name, rule, plain, procedure) Value plain(Context *, Value, Value);
DIFFERENTIATED_2(X)
#undef X
/* Steps: of differentiated numbers, they give plain ones. */
Value esk_floor(Context *, Value);
Value esk_truncate(Context *, Value);

#pragma GCC visibility push(hidden)

typedef struct { Object head; Value primal, tangent; int64_t level; } Dual; /* count 2 */
typedef struct { Object head; Value primal, tape; int64_t index; } TapeNode;    /* count 2 */

_Static_assert(TAG_DUAL == 4 && TAG_AD_NODE == 5, "is_differentiated looks at all bits but the last");
static inline bool is_differentiated(Value v) { return (v.tag | 1) == TAG_AD_NODE; }

/* What the procedures of numbers are taught besides plain ones: differentiated numbers and tensors. A differentiated
 * number may have a tensor as its primal. */
static inline bool is_extended(Value v) { return v.tag - TAG_DUAL <= TAG_TENSOR - TAG_DUAL; }
_Static_assert(TAG_TENSOR == TAG_AD_NODE + 1, "is_extended");

/* Whether there is memory at once for a dual number or a node, both of which are of one size; and that memory. */
static inline bool has_room(const Context *context) {
    const Bump *bump = &context->bump[sizeof(Dual) / 8];
    return bump->next != bump->end;
}

static inline void *allocate_differentiated(Context *context, int type) {
    Bump *bump = &context->bump[sizeof(Dual) / 8];
    Object *object = (Object *)bump->next;
    if (bump->next == bump->end) object = esk_refill(context, sizeof(Dual) / 8);
    else bump->next += sizeof(Dual);
    *object = (Object){.type = (uint8_t)type, .count = 2};
    return object;
}
_Static_assert(sizeof(Dual) == sizeof(TapeNode), "allocate_differentiated");

/* The number under all its levels; what is no differentiated number is itself. */
static inline Value undifferentiated(Value v) {
    while (is_differentiated(v)) v = ((Generic *)esk_pointer(v))->fields[0];
    return v;
}

#define X(name, rule, plain, procedure) Value extended_##name(Context *, Value);
DIFFERENTIATED_1(X)
#undef X
#define X(name, rule, plain, procedure) Value extended_##name(Context *, Value, Value);
DIFFERENTIATED_2(X)
#undef X

/* ---- tapes (tapes.c) -------------------------------------------------------------------------------------------- */

/* An entry is one operation: for each parent its index and the factor of its adjoint. Index 0 is no entry; an input has
 * no parents, and an entry with a rule of its own only the second, which means nothing. Entries are kept in chunks,
 * each twice as long as the one before up to a bound, linked from the last to the first. As long as all factors are
 * flonums, entries are real and the collector does not look at them; from the first other factor on they are values.
 * A traced tape keeps more of each. */
typedef struct { double factors[2]; uint32_t parents[2]; } RealEntry;
typedef struct { Value factors[2], parents; } ValueEntry; /* parents: a fixnum, the second in the upper half */
/* name: of the operation, as bits of a fixnum; place: return addresses, innermost first, in a bytevector */
typedef struct { ValueEntry entry; Value primal, name, place; } TracedEntry;

enum { ENTRIES_REAL, ENTRIES_VALUES, ENTRIES_TRACED };

typedef struct {
    Object head;    /* flags: the form of the entries; count: these values, and those of entries */
    Value previous; /* chunk, or #f */
    Value first;    /* fixnum: the index of its first entry */
    union {
        RealEntry real[1];
        ValueEntry values[1];
        TracedEntry traced[1];
    } entries;
} Chunk;
enum { CHUNK_VALUES = 2 };

typedef struct {
    Object head;         /* of type FOREIGN */
    Value chunk;         /* the last one, or #f */
    Value adjoints;      /* by index: doubles in a bytevector, or a vector; or #f */
    Value customs;       /* list of (index procedure inputs), the last one first */
    Value custom;        /* the part of it that the backward sweep has not passed, and */
    Value sweeping;      /* the chunk where it is */
    int64_t level;
    int64_t bytes;       /* of chunks */
    uint32_t used, room; /* entries, counting entry 0; how many fit */
    uint32_t first;      /* entry of the last chunk */
    uint32_t form;       /* of its entries */
    uint32_t cursor;     /* entries from here on have been swept */
    uint32_t traced;
} Tape;
enum { TAPE_VALUES = 5, FLAG_TAPE = 64 };

static inline Tape *tape_of(Value node) { return esk_pointer(((TapeNode *)esk_pointer(node))->tape); }
static inline uint32_t index_of(Value node) { return (uint32_t)((TapeNode *)esk_pointer(node))->index; }

/* Room for one more entry, of this form from now on. */
void tape_reserve(Context *, Tape *, uint32_t form);
/* A node for the next entry. */
Value tape_push(Context *, Tape *, const char *name, Value primal, const Value factors[2], const uint32_t parents[2]);

static inline TapeNode *tape_node(Context *context, Tape *tape, Value primal) {
    TapeNode *node = allocate_differentiated(context, TAG_AD_NODE);
    node->primal = primal;
    node->tape = esk_make(TAG_FOREIGN, (uint64_t)(uintptr_t)tape);
    node->index = tape->used;
    return node;
}

/* The same for real entries of a tape that has no others. */
static inline Value tape_push_real(Context *context, Tape *tape, Value primal, RealEntry entry) {
    if (tape->used == tape->room) tape_reserve(context, tape, ENTRIES_REAL);
    TapeNode *node = tape_node(context, tape, primal);
    ((Chunk *)esk_pointer(tape->chunk))->entries.real[tape->used++ - tape->first] = entry;
    return esk_make(TAG_AD_NODE, (uint64_t)(uintptr_t)node);
}

/* duals.c */
static inline int64_t level_of(Value v) { /* -1 of a plain number */
    if (v.tag == TAG_DUAL) return ((Dual *)esk_pointer(v))->level;
    return v.tag == TAG_AD_NODE ? tape_of(v)->level : -1;
}
Value dual_make(Context *, int64_t level, Value primal, Value tangent);
/* A rule by its number: the factor of argument k as a function of result and arguments, and what is known of it. */
Value rule_factor(Context *, int rule, int k, Value r, Value x, Value y);
int rule_arity(int rule);
const char *rule_factor_text(int rule, int k);
bool rule_is_product(int rule);
bool rule_is_quotient(int rule);
/* jets.c: what an operation gives for Taylor series, duals whose tangent is a vector; its primal is `first` */
Value jet_result(Context *, int rule, int64_t level, Value first, Value x, Value y);
void need_any_number(Context *, const char *who, int position, Value); /* a differentiated one or a tensor, too */
int64_t need_level(Context *, const char *who, Value);
void need_below(Context *, const char *who, int position, Value, int64_t level); /* a number of a lower level */
_Noreturn void left_derivative(Context *, const char *who, Value);
/* For procedures whose derivative would not be one: nothing happens where the number is plain. */
void need_plain(Context *, const char *who, Value, const char *why);

/* errors.c: the return addresses of the frames, innermost first, at most so many, in a bytevector */
Value esk_trace(Context *, int most);

#pragma GCC visibility pop

#endif
