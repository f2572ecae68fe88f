/* Ephemerons (SRFI 124): a key and a datum that are kept alive only as long as something else keeps the key alive.
 *
 * In: keys and data, and from mark.c and collect.c the moments of a collection. Out: more that is alive, and ephemerons
 * that are broken: they have #f for both. An ephemeron is a record without fields, as far as the marker and others that
 * look at records can tell; what it refers to lies behind them. While it is young it keeps all of it, and so breaks
 * only in a collection of all: when the other marking is done, the datum of every key that was reached is marked too.
 */
#include "heap.h"

#include <stdlib.h>

struct Ephemeron { Record record; Value key, datum; };

static bool is_ephemeron(const Heap *heap, Value value) {
    if (!esk_is(value, TAG_RECORD)) return false;
    return heap->ephemeron_type && ((Record *)esk_pointer(value))->type == heap->ephemeron_type;
}

static Ephemeron *check(Context *context, const char *who, Value value) {
    if (!is_ephemeron(context->heap, value)) esk_wrong_type(context, who, 1, value, "an ephemeron");
    return esk_pointer(value);
}

/* ---- what programs do ------------------------------------------------------------------------------------------- */

/* The type is made with the first of them, and stays for ever. */
static RecordType *type_of_ephemerons(Context *context) {
    Heap *heap = context->heap;
    if (!heap->ephemeron_type) {
        Value name = esk_symbol(context, "ephemeron", 9), fields = esk_make_vector(context, 0, ESK_FALSE);
        RecordType *type = esk_allocate(context, sizeof *type, TAG_RECORD_TYPE);
        type->name = name;
        type->fields = fields;
        *esk_root(context) = esk_object(type);
        esk_lock(heap);
        if (!heap->ephemeron_type) heap->ephemeron_type = type; /* another thread may have been first */
        esk_unlock(heap);
    }
    return heap->ephemeron_type;
}

static Value make_ephemeron(Context *context, Value key, Value datum) {
    RecordType *type = type_of_ephemerons(context);
    Ephemeron *ephemeron = esk_allocate(context, sizeof *ephemeron, TAG_RECORD);
    ephemeron->record.type = type;
    ephemeron->key = key;
    ephemeron->datum = datum;
    Heap *heap = context->heap;
    esk_lock(heap);
    if (heap->ephemeron_count == heap->ephemeron_room) {
        uint64_t room = heap->ephemeron_room ? heap->ephemeron_room * 2 : 16;
        Ephemeron **more = realloc(heap->ephemerons, room * sizeof *more);
        if (!more) {
            esk_unlock(heap);
            esk_out_of_memory(context, room * sizeof *more);
        }
        heap->ephemerons = more;
        heap->ephemeron_room = room;
    }
    heap->ephemerons[heap->ephemeron_count++] = ephemeron;
    esk_unlock(heap);
    return esk_object(ephemeron);
}

static Value is_one(Context *context, Value value) { return esk_boolean(is_ephemeron(context->heap, value)); }

static Value is_broken(Context *context, Value value) {
    return esk_boolean(check(context, "ephemeron-broken?", value)->record.head.a);
}

static Value key_of(Context *context, Value value) { return check(context, "ephemeron-key", value)->key; }
static Value datum_of(Context *context, Value value) { return check(context, "ephemeron-datum", value)->datum; }

/* Its argument is alive when it is called. */
static Value keep(Context *context, Value value) {
    (void)context;
    __asm__ volatile("" : : "r"(value.bits) : "memory");
    return ESK_UNSPECIFIED;
}

/* ---- what collections do ---------------------------------------------------------------------------------------- */

const Value *esk_ephemeron_parts(const Ephemeron *ephemeron) { return &ephemeron->key; }

static bool is_marked(const Heap *heap, Value value) {
    if (!esk_is_pointer(value)) return true;
    uint64_t offset = value.bits - (uint64_t)(uintptr_t)heap->base;
    return offset >= heap->extent || (heap->reached[offset >> 9] >> (offset >> 3 & 63) & 1);
}

/* The datum is marked, if it must be, where the key is. */
const Value *esk_ephemeron_due(const Heap *heap, const Ephemeron *ephemeron) {
    if (!is_marked(heap, esk_object((void *)ephemeron)) || !is_marked(heap, ephemeron->key)) return NULL;
    return is_marked(heap, ephemeron->datum) ? NULL : &ephemeron->datum;
}

void esk_sweep_ephemerons(Heap *heap, bool all) {
    uint64_t kept = all ? 0 : heap->ephemerons_old;
    for (uint64_t i = kept; i < heap->ephemeron_count; i++) {
        Ephemeron *ephemeron = heap->ephemerons[i];
        if (!esk_is_alive(heap, ephemeron)) continue;
        if (all && !is_marked(heap, ephemeron->key)) {
            ephemeron->key = ephemeron->datum = ESK_FALSE;
            ephemeron->record.head.a = 1;
        }
        heap->ephemerons[kept++] = ephemeron;
    }
    heap->ephemeron_count = heap->ephemerons_old = kept;
}

const Primitive esk_ephemerons_primitives[] = {
    ESK_PRIMITIVE_2("make-ephemeron", "(make-ephemeron key datum)", make_ephemeron,
                    "An ephemeron, which holds the datum as long as something else holds the key."),
    ESK_PRIMITIVE_1("ephemeron?", "(ephemeron? object)", is_one, "Whether the object is an ephemeron."),
    ESK_PRIMITIVE_1("ephemeron-broken?", "(ephemeron-broken? ephemeron)", is_broken,
                    "Whether nothing else held the key any more, and the ephemeron has let go of both."),
    ESK_PRIMITIVE_1("ephemeron-key", "(ephemeron-key ephemeron)", key_of, "The key, or #f when it is broken."),
    ESK_PRIMITIVE_1("ephemeron-datum", "(ephemeron-datum ephemeron)", datum_of, "The datum, or #f when it is broken."),
    ESK_PRIMITIVE_1("reference-barrier", "(reference-barrier object)", keep,
                    "Nothing; the object is held until then."),
    {0},
};
