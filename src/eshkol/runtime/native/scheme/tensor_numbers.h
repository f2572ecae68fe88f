/* Tensors among numbers: what the files of the numeric tower, equal?, the hashes and the printer ask of them.
 *
 * A tensor lives in the host; here it is a handle. Its arithmetic is that of the op table's rows, which the host knows
 * by the names that derivative_rules.h has of them.
 */
#ifndef ESHKOL_SCHEME_TENSOR_NUMBERS_H
#define ESHKOL_SCHEME_TENSOR_NUMBERS_H

#include "differential.h"

/* Procedures of tensors that have no derivatives: X(name, rule, Scheme name). duals.c makes a function tensor_NAME of
 * each, for operands of which at least one is a tensor. */
#define TENSOR_STEPS_1(X)                                                                                  \
    X(floor, FLOOR, "floor") X(ceiling, CEIL, "ceiling") X(round, ROUND, "round") X(truncate, TRUNC, "truncate") \
    X(sign, SIGN, "sign")
#define TENSOR_STEPS_2(X) \
    X(quotient, TRUNCATING_QUOTIENT, "quotient") X(floor_quotient, FLOOR_DIVIDE, "floor-quotient")
/* X(name, comparison of derivative_rules.h, Scheme name); what tensor_NAME gives is a boolean where the result has no
 * axes, else a tensor of booleans. */
#define TENSOR_COMPARISONS(X)                                                              \
    X(equal, EQUAL, "=") X(less, LESS, "<") X(less_equal, LESS_EQUAL, "<=")                 \
    X(greater, GREATER, ">") X(greater_equal, GREATER_EQUAL, ">=")

/* For compiled code. A comparison whose value is wanted: as esk_less and its kin, but of tensors it may be a tensor. */
#define X(name, comparison, procedure) Value esk_compared_##name(Context *, Value, Value);
TENSOR_COMPARISONS(X)
#undef X
/* The result of a comparison where it decides a test: a tensor of truth values is an error. */
uint64_t esk_decides(Context *, Value);

#pragma GCC visibility push(hidden)

/* Whether a value is a tensor under all its levels of derivatives. */
static inline bool holds_tensor(Value v) { return undifferentiated(v).tag == TAG_TENSOR; }

#define X(name, rule, procedure) Value tensor_##name(Context *, Value);
TENSOR_STEPS_1(X)
#undef X
#define X(name, rule, procedure) Value tensor_##name(Context *, Value, Value);
TENSOR_STEPS_2(X)
TENSOR_COMPARISONS(X)
#undef X

/* The host's function of numbers and tensors, some of which may be differentiated. */
Value tensor_apply(Context *, const char *function, const char *who, const Value *args, int64_t count);
/* Where both comparisons hold; each a boolean or a tensor of them. */
Value tensor_both(Context *, const char *who, Value, Value);
/* The number that a tensor without axes is; of what is no tensor, itself. */
Value tensor_number(Context *, const char *who, int position, Value);
/* The same for (inexact z): a tensor that is being traced or differentiated stays one. */
Value tensor_inexact(Context *, const char *who, Value);

bool tensors_equal(Context *, Value, Value); /* by dtype, shape and elements */
uint64_t tensor_hash(Context *, Value);      /* the same for equal ones */
/* What is printed of a tensor: text as it is (a string), or for display the data that look like it, for write a list of
 * the text before them and the data. */
Value tensor_shown(Context *, Value, bool write);

#pragma GCC visibility pop

#endif
