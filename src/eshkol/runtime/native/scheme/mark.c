/* Marking: finds every object that is alive.
 *
 * In: the roots of a context and the lowest address of its stack that counts. Out: a bit in heap->marked for every
 * object that can be reached. Objects are traced by their type (a row of the switch below for each layout); stacks,
 * slices of continuations and arguments on their way are looked at word by word. Nothing here recurses: what is found
 * and not yet traced waits on the mark stack. Where that cannot grow, marked objects are traced again from the bitmap
 * until nothing new is found.
 */
#define _GNU_SOURCE
#include "heap.h"

#include <sys/mman.h>

/* So that the marker is a handful of registers. */
#define INLINE static inline __attribute__((always_inline))

enum { AHEAD = 8 /* objects between being fetched into the cache and being traced */ };

/* Types whose objects refer to nothing: they are marked and never looked at. */
enum {
    LEAVES = 1 << TAG_STRING | 1 << TAG_BYTEVECTOR | 1 << TAG_SYMBOL | 1 << TAG_KEYWORD | 1 << TAG_BIGNUM
};

/* What marking needs at every step, in variables of its own: stores into the bitmap might change those of the heap. */
typedef struct {
    uint64_t base, extent;
    uint64_t *marked;
    Object **next, **end; /* of the mark stack */
    Heap *heap;
} Marker;

INLINE Marker begin(Heap *heap) {
    return (Marker){
        .base = (uint64_t)(uintptr_t)heap->base, .extent = heap->extent, .marked = heap->marked,
        .next = heap->stack + heap->depth, .end = heap->stack + heap->room, .heap = heap,
    };
}

INLINE void finish(Marker marker) { marker.heap->depth = (uint64_t)(marker.next - marker.heap->stack); }

/* Where it cannot grow, it has no room afterwards either. */
__attribute__((noinline)) static Marker grow_stack(Heap *heap, Object **next) {
    heap->depth = (uint64_t)(next - heap->stack);
    uint64_t room = heap->room ? heap->room * 2 : 4096;
    Object **more = room > heap->room_limit ? NULL : esk_map(room * sizeof *more);
    if (more) {
        if (heap->stack) {
            memcpy(more, heap->stack, heap->depth * sizeof *more);
            munmap(heap->stack, heap->room * sizeof *more);
        }
        heap->stack = more;
        heap->room = room;
    } else heap->overflowed = true;
    return begin(heap);
}

INLINE void push(Marker *marker, Object *object) {
    if (marker->next == marker->end) {
        *marker = grow_stack(marker->heap, marker->next);
        if (marker->next == marker->end) return; /* marked, and traced later */
    }
    *marker->next++ = object;
}

/* A word that may point into a unit of code that is collected, or into its data. */
INLINE void mark_code(Heap *heap, uint64_t word) {
    uint64_t offset = word - heap->units_base;
    if (__builtin_expect(offset < heap->units_extent, 0)) esk_reach_unit(heap, offset);
}

/* Static objects of compiled code and of the runtime lie outside the region; they refer to nothing that is in it, but
 * keep their unit alive. */
INLINE void mark(Marker *marker, uint64_t tag, uint64_t bits) {
    if (!((uint32_t)POINTER_TAGS >> (tag & 31) & 1)) return;
    uint64_t offset = bits - marker->base;
    if (offset >= marker->extent) {
        mark_code(marker->heap, bits);
        return;
    }
    uint64_t *word = &marker->marked[offset >> 9], bit = (uint64_t)1 << (offset >> 3 & 63), before = *word;
    if (before & bit) return;
    *word = before | bit;
    if (!((uint32_t)LEAVES >> (tag & 31) & 1)) push(marker, (Object *)(uintptr_t)bits);
}

INLINE void mark_values(Marker *marker, const Value *values, uint64_t count) {
    for (uint64_t i = 0; i < count; i++) mark(marker, values[i].tag, values[i].bits);
}

/* A word that may be a pointer to an object or into one, or into code. */
INLINE void mark_word(Marker *marker, uint64_t word) {
    Heap *heap = marker->heap;
    uint64_t offset = word - marker->base;
    if (offset >= marker->extent) {
        mark_code(marker->heap, word);
        return;
    }
    uint64_t index = offset >> BLOCK_SHIFT, granule = 0;
    const Block *block = &heap->blocks[index];
    if (block->kind == BLOCK_CELLS) {
        const SizeClass *class = &heap->classes[block->class];
        granule = ((offset & (BLOCK_BYTES - 1)) >> 3) * class->reciprocal >> 32;
        if (granule >= class->cells) return;
        granule *= class->words;
    } else if (block->kind == BLOCK_TAIL) index -= block->span;
    else if (block->kind == BLOCK_FREE) return;
    uint64_t at = index * BITMAP_WORDS + granule / 64, bit = (uint64_t)1 << (granule % 64);
    if (!(heap->allocated[at] & bit) || heap->marked[at] & bit) return;
    heap->marked[at] |= bit;
    push(marker, (Object *)(heap->base + index * BLOCK_BYTES + granule * 8));
}

/* Other threads' instrumentation must not watch this: it reads what lies between variables too. */
__attribute__((no_sanitize_address, noinline)) static void mark_words(Heap *heap, const char *from, const char *to) {
    Marker marker = begin(heap);
    const uint64_t *word = (const uint64_t *)(((uintptr_t)from + 7) & ~(uintptr_t)7);
    for (; (const char *)(word + 1) <= to; word++) mark_word(&marker, *word);
    finish(marker);
}

/* Whoever shows the error looks for the lines of the calls in it. */
__attribute__((noinline)) static void mark_trace(Heap *heap, const Record *error) {
    Value trace = error->fields[FIELD_TRACE];
    if (!heap->units_extent || !esk_is(trace, TAG_BYTEVECTOR)) return;
    const Bytevector *bytes = esk_pointer(trace);
    for (int64_t i = 0; i + 8 <= bytes->length; i += 8) {
        uint64_t address;
        memcpy(&address, bytes->bytes + i, 8);
        mark_code(heap, address);
    }
}

INLINE void trace(Marker *marker, Object *object) {
    switch (object->type) {
    case TAG_PAIR: {
        Pair *pair = (Pair *)object;
        mark(marker, object->b, pair->cdr); /* below the car on the stack: lists take no room there */
        mark(marker, object->a, pair->car);
        return;
    }
    case TAG_STRING: case TAG_BYTEVECTOR: case TAG_SYMBOL: case TAG_KEYWORD: case TAG_BIGNUM: return;
    case TAG_VECTOR: mark_values(marker, ((Vector *)object)->items, (uint64_t)((Vector *)object)->length); return;
    case TAG_RATIONAL: case TAG_COMPLEX: mark_values(marker, &((Couple *)object)->first, 2); return;
    case TAG_BOX: mark_values(marker, &((Box *)object)->value, 1); return;
    case TAG_RECORD_TYPE: mark_values(marker, &((RecordType *)object)->name, 2); return;
    case TAG_RECORD: {
        Record *record = (Record *)object;
        mark(marker, TAG_RECORD_TYPE, (uint64_t)(uintptr_t)record->type);
        mark_values(marker, record->fields, object->count);
        if (record->type == marker->heap->error_type) mark_trace(marker->heap, record);
        return;
    }
    case TAG_PROCEDURE:
        mark_code(marker->heap, (uint64_t)(uintptr_t)((Closure *)object)->entry);
        mark_values(marker, ((Closure *)object)->captured, object->count);
        return;
    case TAG_CONTINUATION: {
        Continuation *continuation = (Continuation *)object;
        Segment *segment = (Segment *)object;
        bool shared = object->flags & FLAG_SEGMENT;
        mark(marker, TAG_CONTINUATION, (uint64_t)(uintptr_t)(shared ? segment->parent : continuation->segment));
        mark_code(marker->heap, (uint64_t)(uintptr_t)(shared ? segment->back : continuation->back));
        if (!shared) mark_values(marker, &continuation->handlers, 3);
        finish(*marker);
        if (shared) mark_words(marker->heap, segment->frames, segment->frames + segment->bytes);
        else mark_words(marker->heap, (char *)&continuation->registers, continuation->slice + continuation->bytes);
        *marker = begin(marker->heap);
        return;
    }
    default: mark_values(marker, ((Generic *)object)->fields, object->count); return;
    }
}

/* Traces what waits. A few objects are fetched ahead, since most are not in the cache. */
static void drain(Heap *heap) {
    Marker marker = begin(heap);
    Object *ahead[AHEAD] = {0};
    uint64_t at = 0, waiting = 0;
    while (marker.next > heap->stack || waiting) {
        Object *fetched = NULL;
        if (marker.next > heap->stack) {
            fetched = *--marker.next;
            __builtin_prefetch(fetched);
            waiting++;
        }
        Object *object = ahead[at];
        ahead[at] = fetched;
        at = (at + 1) % AHEAD;
        if (object) {
            waiting--;
            trace(&marker, object);
        }
    }
    finish(marker);
}

/* Some objects found no place on the mark stack: trace all that are marked once more. */
static void trace_again(Heap *heap) {
    while (heap->overflowed) {
        heap->overflowed = false;
        for (uint64_t at = 0; at < heap->top * BITMAP_WORDS; at++) {
            for (uint64_t bits = heap->marked[at]; bits; bits &= bits - 1) {
                Marker marker = begin(heap);
                trace(&marker, (Object *)(heap->base + (at * 64 + (uint64_t)__builtin_ctzll(bits)) * 8));
                finish(marker);
                drain(heap);
            }
        }
    }
}

/* Whether a unit was reached whose constants had not been marked. */
static bool mark_constants(Heap *heap) {
    Marker marker = begin(heap);
    const Value *constants;
    uint64_t count;
    bool some = false;
    for (; esk_next_constants(heap, &constants, &count); some = true) mark_values(&marker, constants, count);
    finish(marker);
    return some;
}

static void mark_context(Context *context) {
    Heap *heap = context->heap;
    Marker marker = begin(heap);
    int64_t count;
    const uint64_t *addresses = esk_uncaught_addresses(&count);
    for (int64_t i = 0; i < count; i++) mark_code(heap, addresses[i]);
    Value *fields[] = {
        &context->handlers, &context->winders, &context->parameters, &context->raise,
        &context->input, &context->output, &context->error, &context->memory_error, &context->stack_error,
        &context->differentiated_call,
    };
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) mark_values(&marker, fields[i], 1);
    mark(&marker, TAG_RECORD_TYPE, (uint64_t)(uintptr_t)context->error_type);
    for (Entry *entry = context->entry; entry; entry = entry->outer) {
        mark_values(&marker, entry->args, (uint64_t)entry->count);
        mark_values(&marker, &entry->handlers, 5);
        mark(&marker, TAG_CONTINUATION, (uint64_t)(uintptr_t)entry->captured);
    }
    for (RootChunk *chunk = heap->roots; chunk; chunk = chunk->next)
        mark_values(&marker, chunk->cells, sizeof chunk->cells / sizeof *chunk->cells);
    mark_values(&marker, heap->statics, heap->static_count);
    finish(marker);
}

void esk_mark_all(Context *context, char *stack_low) {
    Heap *heap = context->heap;
    heap->overflowed = false;
    heap->error_type = context->error_type;
    mark_context(context);
    mark_words(heap, (char *)context->extra, (char *)(context->extra + context->extra_count));
    const char *base = NULL;
    for (Entry *entry = context->entry; entry; entry = entry->outer) base = entry->base;
    if (base) mark_words(heap, stack_low, base);
    do {
        drain(heap);
        trace_again(heap);
    } while (mark_constants(heap));
    if (heap->room > (1 << 17)) { /* what one deep structure needed is not kept */
        munmap(heap->stack, heap->room * sizeof *heap->stack);
        heap->stack = NULL;
        heap->room = 0;
    }
}
