/* All primitives in one row of rows, and the procedures that they are. Those are static objects, the same for every
 * context, so that a primitive is the same procedure wherever it is mentioned. */
#include "value.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define X(file) extern const Primitive esk_##file##_primitives[];
ESK_PRIMITIVE_FILES(X)
#undef X

static const Primitive *const tables[] = {
#define X(file) esk_##file##_primitives,
    ESK_PRIMITIVE_FILES(X)
#undef X
};
enum { TABLES = sizeof tables / sizeof *tables };

typedef struct {
    const Primitive *row;
    Procedure procedure;
    Closure closure;
} Known;

const void *esk_primitive_entries[4];
const void *esk_continuation_entry;
static Known *all;
static int64_t total;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void gather(void) {
    int64_t count = 0;
    for (int i = 0; i < TABLES; i++)
        for (const Primitive *row = tables[i]; row->name; row++) count++;
    all = calloc((size_t)count + 1, sizeof *all);
    if (!all) abort(); /* some kilobytes, at the very start */
    for (int i = 0; i < TABLES; i++)
        for (const Primitive *row = tables[i]; row->name; row++) {
            Known *known = &all[total++];
            known->row = row;
            known->procedure = (Procedure){
                .name = row->name, .signature = row->signature, .min = row->min, .max = row->max,
                .function = row->function, .doc = row->doc,
            };
            known->closure = (Closure){.head = {.type = TAG_PROCEDURE}, .procedure = &known->procedure};
        }
}

int64_t esk_primitive_count(void) {
    pthread_once(&once, gather);
    return total;
}

const Primitive *esk_primitive(int64_t index) {
    return index >= 0 && index < esk_primitive_count() ? all[index].row : NULL;
}

/* Rows of a table are neighbours in `all` too. */
static Known *find(const Primitive *row) {
    int64_t count = esk_primitive_count();
    for (int64_t i = 0; i < count; i++) {
        uintptr_t distance = (uintptr_t)row - (uintptr_t)all[i].row;
        int64_t at = i + (int64_t)(distance / sizeof *row);
        if (distance < (uintptr_t)count * sizeof *row && at < count && all[at].row == row) return &all[at];
    }
    return NULL;
}

void esk_set_primitive_entry(const Primitive *row, const void *entry) {
    Known *known = find(row);
    if (known) known->closure.entry = entry;
    if (!strcmp(row->name, "%continuation")) esk_continuation_entry = entry;
}

Value esk_primitive_procedure(Context *context, const Primitive *row) {
    Known *known = find(row);
    if (!known) esk_fail(context, ERROR_SYSTEM, NULL, "this is not a row of the primitives", 0);
    if (row->convention != CALL_ENTRY) known->closure.entry = esk_primitive_entries[row->convention];
    if (!known->closure.entry)
        esk_fail(context, ERROR_SYSTEM, row->name, "the code generator has set no entry for it", 0);
    return esk_object(&known->closure);
}
