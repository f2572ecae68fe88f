/* A program that was built ahead of time: its context, its constants, and how it is run. */
#include "program.h"
#include "heap.h"
#include "hostcalls.h"

#include <stdio.h>
#include <stdlib.h>

Value esk_unit_procedure(const void *entry, const char *name);
uint64_t esk_load_constants(Context *, const char *utf8, int64_t bytes, int64_t count, Value *result);
void esk_compiled_invoke(Context *, Closure *, int64_t count, const Value *args, Value *result);

/* Where the runtime would look for the procedure of a row of its tables: none is left here (primitives.c). */
Value esk_primitive_procedure(Context *context, const Primitive *row) {
    esk_fail(context, ERROR_SYSTEM, row->name, "this program was built without it", 0);
}

/* What the host would answer: where something was called stands in the program's tables; nothing else can be answered,
 * and derivatives are computed by differentiated numbers. */
static void answer(Context *context, int64_t operation, const Value *args, int64_t count, Value *result,
                   uint64_t *failed) {
    (void)count;
    *result = ESK_FALSE;
    if (operation == HOST_FAST_PROGRAM) return;
    if (operation == HOST_PLACE) {
        const Bytevector *trace = esk_pointer(args[0]);
        char place[1024];
        if (esk_place_of((const uint64_t *)(const void *)trace->bytes, trace->length / 8, place, sizeof place))
            *result = esk_string_utf8(context, place, (int64_t)strlen(place));
        return;
    }
    static const char message[] =
        "this needs the compiler, and the program was built without it; run it with `eshkol run`";
    *result = esk_string_utf8(context, message, (int64_t)strlen(message));
    *failed = 1 + ERROR_SYSTEM;
}

Context *esk_begin_program(uint64_t heap_limit) {
    Context *context = esk_new_context(heap_limit);
    if (!context) return NULL;
    esk_invoke = esk_compiled_invoke;
    context->host = answer;
    esk_use_this_thread(context);
    esk_keep_static(context, esk_program.values, (uint64_t)esk_program.value_count);
    if (!esk_program.constant_count) return context;
    Value made = ESK_FALSE;
    uint64_t how = esk_load_constants(context, esk_program.constants, esk_program.constant_bytes,
                                      esk_program.constant_count, &made);
    if (how) {
        fputs("eshkol: the constants of this program cannot be read\n", stderr);
        esk_free_context(context);
        return NULL;
    }
    memcpy(esk_program.values, ((Vector *)esk_pointer(made))->items, (size_t)esk_program.constant_count * sizeof made);
    return context;
}

uint64_t esk_run_program(Context *context, Value *result) {
    Value procedure = esk_unit_procedure(esk_program.entry, "program");
    context->inside = INSIDE_SCHEME;
    return esk_enter(context, procedure, NULL, 0, result);
}
