/* What the loader of compiled units needs: their constants, read from text, and the procedures that evaluate them. For
 * units that are collected see also units.c. */
#include "heap.h"
#include "reader.h"

#include <stdlib.h>

static void read_into(Context *context, const Value *args, Value *items) {
    const char *text = (const char *)(uintptr_t)args[0].bits;
    int64_t count = esk_integer(args[2]), found = esk_read_all(context, text, esk_integer(args[1]), items, count, 1);
    if (found != count) esk_fail(context, ERROR_READ, NULL, "constants of a unit are missing", 1, esk_fixnum(found));
}

/* (text, bytes, count), the text as an address: a vector of so many data that were read from it. */
static Value read_constants(Context *context, const Value *args, int64_t given) {
    (void)given;
    Value keeper = esk_make_vector(context, esk_integer(args[2]), ESK_FALSE);
    read_into(context, args, ((Vector *)esk_pointer(keeper))->items);
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

/* The same for a unit that is collected; the vector has one item more, the procedure that will evaluate the unit. What
 * was loaded before and is not needed any more goes first. */
static Value read_unit_constants(Context *context, const Value *args, int64_t given) {
    (void)given;
    esk_collect_when_due(context);
    int64_t count = esk_integer(args[2]);
    Value keeper = esk_make_vector(context, count + 1, ESK_FALSE);
    Vector *vector = esk_pointer(keeper);
    Closure *closure = esk_allocate(context, sizeof *closure, TAG_PROCEDURE);
    closure->entry = NULL;
    closure->procedure = NULL;
    esk_store(context, &vector->items[count], esk_object(closure));
    read_into(context, args, vector->items);
    return keeper;
}

static const Primitive unit_constants_row = {
    "%read-unit-constants", "(%read-unit-constants text bytes count)", 3, 3, CALL_N, (const void *)read_unit_constants,
    "",
};

uint64_t esk_load_unit_constants(Context *context, const char *utf8, int64_t bytes, int64_t count, Value *result) {
    Value args[] = {esk_make(TAG_FIXNUM, (uint64_t)(uintptr_t)utf8), esk_fixnum(bytes), esk_fixnum(count)};
    return esk_enter_primitive(context, &unit_constants_row, args, 3, result);
}

typedef struct { Procedure procedure; Closure closure; } UnitProcedure;

/* A procedure without parameters whose entry is given, in code that is never freed, as it is not itself; null when
 * there is no memory left for it. */
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
