/* Which parts of a datum the printer must label. See labels.c. */
#ifndef ESHKOL_SCHEME_LABELS_H
#define ESHKOL_SCHEME_LABELS_H

#include "value.h"

/* A table of objects (by address) in a bytevector on the heap. */
typedef struct ObjectTable {
    struct ObjectSlot *slots;
    uint64_t mask, count; /* places - 1, or 0 where there is no table; objects */
} ObjectTable;

typedef struct Labels {
    ObjectTable table;
    uint64_t count; /* of objects with labels */
    uint64_t used;  /* labels given so far */
} Labels;

/* Finds the objects that contain themselves, or (`shared`) that occur more than once. */
void esk_find_labels(Context *, Value, bool shared, Labels *);
/* Where the label of an object is kept: zero, or its number + 1; null for objects that get none. */
uint64_t *esk_find_label(Labels *, Value);

/* The parts of an object that is neither pair nor atom: a vector, a record, a box, multiple values, a differentiated
 * number. */
static inline Value *esk_parts(Value value, int64_t *count) {
    switch (value.tag) {
    case TAG_VECTOR: *count = ((Vector *)esk_pointer(value))->length; return ((Vector *)esk_pointer(value))->items;
    case TAG_RECORD: *count = ((Record *)esk_pointer(value))->head.count; return ((Record *)esk_pointer(value))->fields;
    case TAG_BOX: *count = 1; return &((Box *)esk_pointer(value))->value;
    case TAG_DUAL: *count = 2; return ((Generic *)esk_pointer(value))->fields;    /* primal and tangent */
    case TAG_AD_NODE: *count = 1; return ((Generic *)esk_pointer(value))->fields; /* primal */
    case TAG_VALUES: *count = ((Values *)esk_pointer(value))->head.count; return ((Values *)esk_pointer(value))->items;
    default: *count = 0; return NULL;
    }
}

#endif
