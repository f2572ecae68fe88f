/* Regions: memory of bytevectors that is given back at once, when the region ends that they belong to.
 *
 * In: a region that begins, sizes, its end. Out: bytevectors that lie outside the heap, so that the collector neither
 * counts, marks nor sweeps them; they refer to nothing. Nothing here asks whether someone still refers to one when its
 * region ends: that no one can is what the language's checker proved before it let a program come here
 * (types/regions.py), and what it could not prove goes to the heap. A region that is forgotten without having ended is
 * given back when it is collected.
 */
#include "data.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

enum {
    CHUNK_BYTES = 1 << 16,
    LARGE_BYTES = CHUNK_BYTES / 4, /* from here on a bytevector has a chunk of its own */
    KEPT_CHUNKS = 8, /* for the next region, */
    KEPT_BYTES = 1 << 26, /* and of the larger ones those of so many bytes together, */
    LOOKED_AT = 8 /* of which so many are looked at for one of the right size */
};

typedef struct RegionChunk {
    struct RegionChunk *next;
    int64_t bytes; /* of the whole */
} Chunk;

/* For whoever comes first: a thread that finds another at it asks the system instead. */
static pthread_mutex_t keeping = PTHREAD_MUTEX_INITIALIZER;
static Chunk *kept, *kept_large;
static int64_t kept_bytes, kept_large_bytes;
static _Atomic int64_t held; /* bytes in all regions */

static bool keep(Chunk *chunk) {
    bool plain = chunk->bytes == CHUNK_BYTES;
    int64_t *bytes = plain ? &kept_bytes : &kept_large_bytes;
    if (pthread_mutex_trylock(&keeping)) return false;
    bool fits = *bytes + chunk->bytes <= (plain ? KEPT_CHUNKS * CHUNK_BYTES : KEPT_BYTES);
    if (fits) {
        Chunk **list = plain ? &kept : &kept_large;
        *bytes += chunk->bytes;
        chunk->next = *list;
        *list = chunk;
    }
    pthread_mutex_unlock(&keeping);
    return fits;
}

static void give_back(RegionMemory *region) {
    while (region->chunks) {
        Chunk *chunk = region->chunks;
        region->chunks = chunk->next;
        held -= chunk->bytes;
        if (!keep(chunk)) free(chunk);
    }
    region->next = region->end = NULL;
    region->ended = 1;
}

static void finalize_region(Object *object) { give_back((RegionMemory *)object); }

static bool is_region(Value v) { return esk_is(v, TAG_IDENTITY) && ((Object *)esk_pointer(v))->a == REGION_MARK; }

static RegionMemory *region_argument(Context *context, const char *who, int position, Value v) {
    if (!is_region(v)) esk_wrong_type(context, who, position, v, "a region");
    return esk_pointer(v);
}

/* One of those that were kept, if it has just this size; the newest are warm. */
static Chunk *kept_chunk(int64_t bytes) {
    bool plain = bytes == CHUNK_BYTES;
    int looked = 0;
    Chunk *found = NULL;
    if (pthread_mutex_trylock(&keeping)) return NULL;
    for (Chunk **at = plain ? &kept : &kept_large; *at && looked < LOOKED_AT; at = &(*at)->next, looked++)
        if ((*at)->bytes == bytes) {
            found = *at;
            *at = found->next;
            *(plain ? &kept_bytes : &kept_large_bytes) -= bytes;
            break;
        }
    pthread_mutex_unlock(&keeping);
    return found;
}

static char *new_chunk(Context *context, RegionMemory *region, int64_t bytes) {
    if (held + bytes > esk_heap_statistic(context, HEAP_LIMIT))
        esk_fail(context, ERROR_MEMORY, "region-alloc", "the regions that are open hold more than the heap's limit", 1,
                 esk_fixnum(held));
    Chunk *chunk = kept_chunk(bytes);
    if (!chunk && !(chunk = malloc((size_t)bytes)))
        esk_fail(context, ERROR_MEMORY, "region-alloc", "the system gives no more memory", 1, esk_fixnum(bytes));
    *chunk = (Chunk){region->chunks, bytes};
    region->chunks = chunk;
    held += bytes;
    return (char *)(chunk + 1);
}

static Value make_region(Context *context, Value name, Value size) {
    int64_t reserve = need_size(context, "with-region", 2, size);
    RegionMemory *region = esk_allocate(context, sizeof *region, TAG_IDENTITY);
    region->head.a = REGION_MARK;
    region->head.count = 1;
    region->name = name;
    region->chunks = NULL;
    region->next = region->end = NULL;
    region->bytes = region->count = region->ended = 0;
    esk_finalize(context, &region->head, finalize_region);
    if (reserve > CHUNK_BYTES) {
        int64_t bytes = (int64_t)sizeof(Chunk) + ((reserve + 15) & ~(int64_t)15);
        region->next = new_chunk(context, region, bytes);
        region->end = (char *)region->chunks + bytes;
    }
    return esk_object(region);
}

static Value region_bytes(Context *context, Value v, Value size) {
    RegionMemory *region = region_argument(context, "region-alloc", 2, v);
    int64_t length = need_size(context, "region-alloc", 1, size);
    if (region->ended)
        esk_fail(context, ERROR_CONTROL, "region-alloc", "this region has ended:", 1, region->name);
    int64_t bytes = ((int64_t)sizeof(Bytevector) + length + 15) & ~(int64_t)15;
    char *at;
    if (region->end - region->next >= bytes) { /* as compiled code does by itself (codegen/inline.ll) */
        at = region->next;
        region->next += bytes;
    } else if (bytes >= LARGE_BYTES) {
        at = new_chunk(context, region, (int64_t)sizeof(Chunk) + bytes);
    } else {
        at = new_chunk(context, region, CHUNK_BYTES);
        region->next = at + bytes;
        region->end = (char *)region->chunks + CHUNK_BYTES;
    }
    region->bytes += length;
    region->count++;
    Bytevector *vector = (Bytevector *)(void *)at;
    vector->head = (Object){TAG_BYTEVECTOR, 0, 0, 0, 0};
    vector->length = length;
    memset(vector->bytes, 0, (size_t)length);
    return esk_object(vector);
}

static Value end_region(Context *context, Value v) {
    give_back(region_argument(context, "with-region", 1, v));
    return ESK_UNSPECIFIED;
}

static Value region_p(Context *context, Value v) {
    (void)context;
    return esk_boolean(is_region(v));
}

static Value is_ended(Context *context, Value v) {
    return esk_boolean(region_argument(context, "region-alloc", 2, v)->ended != 0);
}

static Value region_name(Context *context, Value v) { return region_argument(context, "region-name", 1, v)->name; }

static Value region_used(Context *context, Value v) {
    RegionMemory *region = region_argument(context, "region-used", 1, v);
    return esk_cons(context, esk_fixnum(region->count), esk_fixnum(region->bytes));
}

static Value regions_held(Context *context) {
    (void)context;
    return esk_fixnum(held);
}

const Primitive esk_arenas_primitives[] = {
    ESK_PRIMITIVE_2("%region", "(%region name k)", make_region, "A new region, which has k bytes at once."),
    ESK_PRIMITIVE_1("region?", "(region? object)", region_p, "Whether the object is a region."),
    ESK_PRIMITIVE_2("%region-bytes", "(%region-bytes region k)", region_bytes,
                    "A bytevector of k bytes, all 0, which is there until the region ends."),
    ESK_PRIMITIVE_1("%region-end", "(%region-end region)", end_region, "Give back all memory of a region."),
    ESK_PRIMITIVE_1("%region-ended?", "(%region-ended? region)", is_ended, "Whether a region has ended."),
    ESK_PRIMITIVE_1("region-name", "(region-name region)", region_name, "The name of a region."),
    ESK_PRIMITIVE_1("region-used", "(region-used region)", region_used,
                    "How many bytevectors lie in the memory of a region, and of how many bytes, as a pair; of those "
                    "that are left to the collector none."),
    ESK_PRIMITIVE_0("%regions-held", "(%regions-held)", regions_held,
                    "How many bytes all regions have."),
    {0},
};
