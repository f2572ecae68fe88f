/* What the loader of compiled units needs: their constants, read from text, and the procedures that evaluate them. */
#include "reader.h"

#include <stdlib.h>

/* (text, bytes, count), the text as an address: a vector of so many data that were read from it. */
static Value read_constants(Context *context, const Value *args, int64_t given) {
    (void)given;
    int64_t count = esk_integer(args[2]);
    Value keeper = esk_make_vector(context, count, ESK_FALSE);
    Vector *vector = esk_pointer(keeper);
    const char *text = (const char *)(uintptr_t)args[0].bits;
    int64_t found = esk_read_all(context, text, esk_integer(args[1]), vector->items, count, 1);
    if (found != count) esk_fail(context, ERROR_READ, NULL, "constants of a unit are missing", 1, esk_fixnum(found));
    return keeper;
}

static const Primitive constants_row = {
    "%read-constants", "(%read-constants text bytes count)", 3, 3, CALL_N, (const void *)read_constants, "",
};

/* The constants of a unit as a vector, or the condition that says what was wrong with them; 0 or 1, as of an entry. */
uint64_t esk_load_constants(Context *context, const char *utf8, int64_t bytes, int64_t count, Value *result) {
    Value args[] = {esk_make(TAG_FIXNUM, (uint64_t)(uintptr_t)utf8), esk_fixnum(bytes), esk_fixnum(count)};
    return esk_enter_primitive(context, &constants_row, args, 3, result);
}

typedef struct { Procedure procedure; Closure closure; } UnitProcedure;

/* A procedure without parameters whose entry is given. It is never freed, as the code is not; null when there is no
 * memory left for it. */
Value esk_unit_procedure(const void *entry, const char *name) {
    size_t size = strlen(name) + 1;
    UnitProcedure *made = calloc(1, sizeof *made);
    char *kept = malloc(size);
    if (!made || !kept) {
        free(made);
        free(kept);
        return ESK_NULL;
    }
    memcpy(kept, name, size);
    made->procedure = (Procedure){.name = kept, .signature = "()"};
    made->closure = (Closure){.head = {.type = TAG_PROCEDURE}, .entry = entry, .procedure = &made->procedure};
    return esk_object(&made->closure);
}
