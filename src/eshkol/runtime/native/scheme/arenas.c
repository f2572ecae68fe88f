/* Arenas: memory of bytevectors that is given back at once, when the region ends that they belong to.
 *
 * In: a region that opens, sizes, its end. Out: bytevectors that lie outside the heap, so that the collector neither
 * counts, marks nor sweeps them; they refer to nothing. Nothing here asks whether someone still refers to one when its
 * arena ends: that no one can is what the language's checker proved before it let a program come here
 * (types/regions.py), and what it could not prove goes to the heap. An arena that is forgotten without having ended is
 * given back when it is collected.
 */
#include "data.h"

#include <stdlib.h>

enum {
    ARENA_MARK = 'A', /* in head.a: an object that make-object gives has none */
    CHUNK_BYTES = 1 << 16,
    LARGE_BYTES = CHUNK_BYTES / 4, /* from here on a bytevector has a chunk of its own */
    KEPT_CHUNKS = 8   /* of a thread, for the next region */
};

typedef struct Chunk {
    struct Chunk *next;
    int64_t bytes; /* of the whole */
} Chunk;

typedef struct {
    Object head;
    Chunk *chunks;
    char *next, *end; /* what is free of the chunk at hand */
    int64_t bytes, count; /* that were handed out */
    int64_t ended;
} Arena;

static _Thread_local Chunk *kept;
static _Thread_local int kept_count;
static _Thread_local int64_t held; /* bytes in the arenas of this thread */

static void give_back(Arena *arena) {
    while (arena->chunks) {
        Chunk *chunk = arena->chunks;
        arena->chunks = chunk->next;
        held -= chunk->bytes;
        if (chunk->bytes == CHUNK_BYTES && kept_count < KEPT_CHUNKS) {
            chunk->next = kept;
            kept = chunk;
            kept_count++;
        } else {
            free(chunk);
        }
    }
    arena->next = arena->end = NULL;
    arena->ended = 1;
}

static void finalize_arena(Object *object) { give_back((Arena *)object); }

static Arena *arena_argument(Context *context, const char *who, Value v) {
    if (!esk_is(v, TAG_IDENTITY) || ((Object *)esk_pointer(v))->a != ARENA_MARK)
        esk_wrong_type(context, who, 1, v, "the memory of a region");
    return esk_pointer(v);
}

static char *new_chunk(Context *, Arena *, int64_t bytes);

static Value make_arena(Context *context, Value size) {
    int64_t reserve = need_size(context, "with-region", 1, size);
    Arena *arena = esk_allocate(context, sizeof *arena, TAG_IDENTITY);
    arena->head.a = ARENA_MARK;
    arena->chunks = NULL;
    arena->next = arena->end = NULL;
    arena->bytes = arena->count = arena->ended = 0;
    esk_finalize(context, &arena->head, finalize_arena);
    if (reserve > CHUNK_BYTES) {
        int64_t bytes = (int64_t)sizeof(Chunk) + ((reserve + 15) & ~(int64_t)15);
        arena->next = new_chunk(context, arena, bytes);
        arena->end = (char *)arena->chunks + bytes;
    }
    return esk_object(arena);
}

static char *new_chunk(Context *context, Arena *arena, int64_t bytes) {
    if (held + bytes > esk_heap_statistic(context, HEAP_LIMIT))
        esk_fail(context, ERROR_MEMORY, "region-alloc", "the regions that are open hold more than the heap's limit", 1,
                 esk_fixnum(held));
    Chunk *chunk = bytes == CHUNK_BYTES ? kept : NULL;
    if (chunk) {
        kept = chunk->next;
        kept_count--;
    } else if (!(chunk = malloc((size_t)bytes))) {
        esk_fail(context, ERROR_MEMORY, "region-alloc", "the system gives no more memory", 1, esk_fixnum(bytes));
    }
    *chunk = (Chunk){arena->chunks, bytes};
    arena->chunks = chunk;
    held += bytes;
    return (char *)(chunk + 1);
}

static Value arena_bytes(Context *context, Value v, Value size) {
    Arena *arena = arena_argument(context, "region-alloc", v);
    int64_t length = need_size(context, "region-alloc", 1, size);
    if (arena->ended) esk_fail(context, ERROR_CONTROL, "region-alloc", "this region has ended", 0);
    int64_t bytes = ((int64_t)sizeof(Bytevector) + length + 15) & ~(int64_t)15;
    char *at;
    if (bytes >= LARGE_BYTES) {
        at = new_chunk(context, arena, (int64_t)sizeof(Chunk) + bytes);
    } else {
        if (arena->end - arena->next < bytes) {
            arena->next = new_chunk(context, arena, CHUNK_BYTES);
            arena->end = (char *)arena->chunks + CHUNK_BYTES;
        }
        at = arena->next;
        arena->next += bytes;
    }
    arena->bytes += length;
    arena->count++;
    Bytevector *vector = (Bytevector *)(void *)at;
    vector->head = (Object){TAG_BYTEVECTOR, 0, 0, 0, 0};
    vector->length = length;
    memset(vector->bytes, 0, (size_t)length);
    return esk_object(vector);
}

static Value end_arena(Context *context, Value v) {
    give_back(arena_argument(context, "with-region", v));
    return ESK_UNSPECIFIED;
}

static Value arena_used(Context *context, Value v) {
    Arena *arena = arena_argument(context, "region-used", v);
    return esk_cons(context, esk_fixnum(arena->count), esk_fixnum(arena->bytes));
}

static Value arenas_held(Context *context) {
    (void)context;
    return esk_fixnum(held);
}

const Primitive esk_arenas_primitives[] = {
    ESK_PRIMITIVE_1("%arena", "(%arena k)", make_arena, "New memory for a region, which has k bytes at once."),
    ESK_PRIMITIVE_2("%arena-bytes", "(%arena-bytes arena k)", arena_bytes,
                    "A bytevector of k bytes, all 0, which is there until the arena ends."),
    ESK_PRIMITIVE_1("%arena-end", "(%arena-end arena)", end_arena, "Give back all memory of an arena."),
    ESK_PRIMITIVE_1("%arena-used", "(%arena-used arena)", arena_used,
                    "How many bytevectors an arena has, and of how many bytes, as a pair."),
    ESK_PRIMITIVE_0("%arenas-held", "(%arenas-held)", arenas_held, "How many bytes the arenas of this thread have."),
    {0},
};
