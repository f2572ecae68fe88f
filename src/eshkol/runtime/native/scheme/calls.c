/* The procedures that compiled code alone can be, because they call others in tail position (codegen/entries.ll), as
 * rows of the table of primitives; and what they need of C. */
#include "value.h"

/* Values on their way to a consumer: the first four in `direct`, the others in context->extra; how many there are. */
int64_t esk_spread_values(Context *context, Value made, Value direct[DIRECT_ARGUMENTS]) {
    if (made.tag != TAG_VALUES) {
        direct[0] = made;
        return 1;
    }
    Values *packet = esk_pointer(made);
    int64_t count = packet->head.count;
    if (count > EXTRA_ARGUMENTS)
        esk_fail(context, ERROR_RANGE, "call-with-values", "too many values", 1, esk_fixnum(count));
    for (int64_t i = 0; i < count; i++) {
        if (i < DIRECT_ARGUMENTS)
            direct[i] = packet->items[i];
        else
            context->extra[i - DIRECT_ARGUMENTS] = packet->items[i];
    }
    return count;
}

const Primitive esk_calls_primitives[] = {
    {"apply", "(apply procedure argument ... list)", 2, -1, CALL_ENTRY, NULL,
     "Calls the procedure with the arguments and the elements of the list."},
    {"call-with-values", "(call-with-values producer consumer)", 2, 2, CALL_ENTRY, NULL,
     "Calls the producer without arguments and the consumer with the values that it returns."},
    {"%call/cc", "(%call/cc receiver)", 1, 1, CALL_ENTRY, NULL,
     "Calls the receiver with the continuation, a procedure."},
    {"%call/ec", "(%call/ec receiver)", 1, 1, CALL_ENTRY, NULL,
     "The same for a continuation that nothing goes on with once the receiver has returned or was left."},
    {"%continuation", "(%continuation value ...)", 0, -1, CALL_ENTRY, NULL,
     "What continuations are made of: goes on with the values where one was captured."},
    {0},
};
