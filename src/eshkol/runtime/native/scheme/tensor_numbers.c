/* Tensors among numbers: procedures of numbers that are given a tensor are the host's functions of that name.
 *
 * In: the name of a function and operands, numbers, tensors, or differentiated numbers. Out: what the function gives.
 * Numbers go along as they are, but for those that no tensor has: ratios become flonums, integers of more than 64 bits
 * are refused. Where an operand is differentiated, a procedure of the library takes the derivative (python.c).
 */
#include "tensor_numbers.h"
#include "numbers.h"
#include "python.h"

/* ---- operands --------------------------------------------------------------------------------------------------- */

static Value operand(Context *context, const char *who, int position, Value v) {
    if (is_extended(v) || v.tag == TAG_FIXNUM || v.tag == TAG_FLONUM || v.tag == TAG_BOOLEAN) return v;
    need_number(context, who, position, v);
    if (v.tag != TAG_BIGNUM) return number_inexact(context, v);
    if (integer_sign(v) < 0 || integer_length(v) > 64)
        esk_fail(context, ERROR_RANGE, who,
                 "tensors have integers of at most 64 bits; (inexact n) is a number that goes with them, where n is", 1,
                 v);
    return v;
}

Value tensor_apply(Context *context, const char *function, const char *who, const Value *args, int64_t count) {
    Value given[2];
    for (int64_t i = 0; i < count; i++) given[i] = operand(context, who, (int)i + 1, args[i]);
    return esk_tensor_apply(context, function, who, given, count);
}

Value tensor_both(Context *context, const char *who, Value a, Value b) {
    if (a.tag == TAG_BOOLEAN && a.bits) return b;
    if (a.tag == TAG_BOOLEAN && b.tag == TAG_BOOLEAN) return a;
    return tensor_apply(context, "op:logical_and", who, (Value[2]){a, b}, 2);
}

/* ---- tensors as numbers ----------------------------------------------------------------------------------------- */

static Value as_number(Context *context, const char *function, const char *who, int position, Value v) {
    Value number = esk_tensor_call(context, function, &v, 1);
    if (!esk_is_false(number)) return number;
    esk_wrong_type(context, who, position, v, "a number or a tensor without axes");
}

Value tensor_number(Context *context, const char *who, int position, Value v) {
    if (v.tag == TAG_TENSOR) return as_number(context, "numbers:number", who, position, v);
    if (holds_tensor(v))
        esk_fail(context, ERROR_TYPE, who,
                 "a tensor that is being differentiated is no plain number; (stop-gradient x) takes the value alone of",
                 1, v);
    return v;
}

Value tensor_inexact(Context *context, const char *who, Value v) {
    Value number = as_number(context, "numbers:inexact", who, 1, undifferentiated(v));
    return is_differentiated(v) ? v : number; /* what is differentiated is inexact */
}

/* ---- sameness and looks ----------------------------------------------------------------------------------------- */

bool tensors_equal(Context *context, Value a, Value b) {
    return !esk_is_false(esk_tensor_call(context, "numbers:same", (Value[2]){a, b}, 2));
}

uint64_t tensor_hash(Context *context, Value v) {
    return (uint64_t)esk_integer(esk_tensor_call(context, "numbers:hashed", &v, 1));
}

Value tensor_shown(Context *context, Value v, bool write) {
    return esk_tensor_call(context, "shown:shown", (Value[2]){v, esk_boolean(write)}, 2);
}
