/* Marking: finds the objects that are alive.
 *
 * In: the roots of a context and the lowest address of its stack that counts; for the young, the cards that were
 * written to. Out: a bit in heap->marked for every young object that can be reached, or one in heap->reached for every
 * object at all (heap.h says what these are). Objects are traced by their type (a row of the switch below for each
 * layout); stacks, slices of continuations and arguments on their way are looked at word by word. Nothing here
 * recurses: what is found and not yet traced waits on a mark stack, long vectors in pieces. Where that cannot grow,
 * marked objects are traced again from the bitmap until nothing new is found.
 *
 * All of it is written once and compiled for each of four ways to follow a reference (Way).
 */
#define _GNU_SOURCE
#include "heap.h"
#include "threads.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

/* So that the marker is a handful of registers, and the way is known. */
#define INLINE static inline __attribute__((always_inline))

enum { AHEAD = 8 /* objects between being fetched into the cache and being traced */ };
enum { ITEMS_AHEAD = 8, GROUPS_AHEAD = 8 /* of items of vectors, and of cards */ };
enum { PIECE = 4096 /* items of a vector that are traced at once */, IS_PIECE = 1 };
enum { AT_ONCE = 512 /* objects between two looks at the clock */ };

/* Types whose objects refer to nothing: they are marked and never looked at. */
enum {
    LEAVES = 1 << TAG_STRING | 1 << TAG_BYTEVECTOR | 1 << TAG_SYMBOL | 1 << TAG_KEYWORD | 1 << TAG_BIGNUM
};

typedef enum {
    YOUNG,       /* what is not marked is young: mark it */
    YOUNG_AMONG, /* the same while all is marked in slices: the old waits for the next one, unless it was reached */
    ALL,         /* everything, young and old */
    CHECK        /* nothing may refer to what is not marked */
} Way;

/* What marking needs at every step, in variables of its own: stores into the bitmap might change those of the heap. */
typedef struct {
    uint64_t base, extent;
    uint64_t *marked;
    uintptr_t *first, *next, *end; /* of the mark stack */
    Heap *heap;
    const Object *holder; /* in a check: what is looked at */
} Marker;

INLINE MarkStack *stack_of(Heap *heap, Way way) { return way == ALL ? &heap->waiting : &heap->young; }

INLINE Marker begin(Heap *heap, Way way) {
    const MarkStack *stack = stack_of(heap, way);
    return (Marker){
        .base = (uint64_t)(uintptr_t)heap->base, .extent = heap->extent,
        .marked = way == ALL ? heap->reached : way == CHECK ? heap->alive : heap->marked,
        .first = stack->items, .next = stack->items + stack->depth, .end = stack->items + stack->room, .heap = heap,
    };
}

INLINE void finish(Marker marker, Way way) {
    stack_of(marker.heap, way)->depth = (uint64_t)(marker.next - marker.first);
}

/* Where it cannot grow, it has no room afterwards either. */
static bool grow(const Heap *heap, MarkStack *stack) {
    uint64_t room = stack->room ? stack->room * 2 : 4096;
    uintptr_t *more = room > heap->room_limit ? NULL : esk_map(room * sizeof *more);
    if (!more) return false;
    if (stack->items) {
        memcpy(more, stack->items, stack->depth * sizeof *more);
        munmap(stack->items, stack->room * sizeof *more);
    }
    stack->items = more;
    stack->room = room;
    return true;
}

__attribute__((noinline)) static void grow_or_overflow(Heap *heap, MarkStack *stack, uint64_t depth) {
    stack->depth = depth;
    if (!grow(heap, stack)) stack->overflowed = true;
}

INLINE void push(Marker *marker, Way way, Object *object) {
    if (marker->next == marker->end) {
        grow_or_overflow(marker->heap, stack_of(marker->heap, way), (uint64_t)(marker->next - marker->first));
        *marker = begin(marker->heap, way);
        if (marker->next == marker->end) return; /* marked, and traced later */
    }
    *marker->next++ = (uintptr_t)object;
}

/* The rest of a vector, from an item on. False where there is no room. */
INLINE bool push_rest(Marker *marker, Way way, const Vector *vector, uint64_t from) {
    if (marker->end - marker->next < 2) {
        finish(*marker, way);
        if (!grow(marker->heap, stack_of(marker->heap, way))) return false;
        *marker = begin(marker->heap, way);
    }
    *marker->next++ = from;
    *marker->next++ = (uintptr_t)vector | IS_PIECE;
    return true;
}

/* An old object that a slice will trace. */
__attribute__((noinline)) static void leave_waiting(Heap *heap, Object *object) {
    MarkStack *stack = &heap->waiting;
    if (stack->depth == stack->room) {
        grow_or_overflow(heap, stack, stack->depth);
        if (stack->depth == stack->room) return;
    }
    stack->items[stack->depth++] = (uintptr_t)object;
}

__attribute__((noinline, cold)) static _Noreturn void forgotten(const Heap *heap, const Object *from,
                                                                const Object *to) {
    fprintf(stderr, "Eshkol's collector: %s at %p refers to %s at %p, which %s\n", esk_tag_words[from->type],
            (const void *)from, esk_tag_words[to->type], (const void *)to,
            heap->alive == heap->marked ? "is young: a store was not followed by esk_written" : "was not reached");
    abort();
}

/* A word that may point into a unit of code that is collected, or into its data. Collections of the young free none. */
INLINE void mark_code(Heap *heap, Way way, uint64_t word) {
    if (way == YOUNG || way == CHECK) return;
    uint64_t offset = word - heap->units_base;
    if (__builtin_expect(offset < heap->units_extent, 0)) esk_reach_unit(heap, offset);
}

INLINE void reach(Marker *marker, Way way, uint64_t index, uint64_t bit, Object *object, bool leaf) {
    uint64_t *word = &marker->marked[index], before = *word;
    if (before & bit) {
        if (way != YOUNG_AMONG) return;
        word = &marker->heap->reached[index];
        if (*word & bit) return;
        *word |= bit;
        if (!leaf) leave_waiting(marker->heap, object);
        return;
    }
    if (way == CHECK) forgotten(marker->heap, marker->holder, object);
    *word = before | bit;
    if (way == YOUNG_AMONG) marker->heap->reached[index] |= bit;
    if (!leaf) push(marker, way, object);
}

/* Static objects of compiled code and of the runtime lie outside the region; they refer to nothing that is in it, but
 * keep their unit alive. */
INLINE void mark(Marker *marker, Way way, uint64_t tag, uint64_t bits) {
    if (!((uint32_t)POINTER_TAGS >> (tag & 31) & 1)) return;
    uint64_t offset = bits - marker->base;
    if (offset >= marker->extent) {
        mark_code(marker->heap, way, bits);
        return;
    }
    reach(marker, way, offset >> 9, (uint64_t)1 << (offset >> 3 & 63), (Object *)(uintptr_t)bits,
          (uint32_t)LEAVES >> (tag & 31) & 1);
}

INLINE void mark_values(Marker *marker, Way way, const Value *values, uint64_t count) {
    for (uint64_t i = 0; i < count; i++) mark(marker, way, values[i].tag, values[i].bits);
}

/* The same for many, whose objects may lie anywhere: their bits are fetched ahead. */
INLINE void mark_items(Marker *marker, Way way, const Value *values, uint64_t count) {
    for (uint64_t i = 0; i < count; i++) {
        if (i + ITEMS_AHEAD < count) {
            uint64_t offset = values[i + ITEMS_AHEAD].bits - marker->base;
            if (offset < marker->extent) __builtin_prefetch(&marker->marked[offset >> 9]);
        }
        mark(marker, way, values[i].tag, values[i].bits);
    }
}

/* A word that may be a pointer to an object or into one, or into code. */
INLINE void mark_word(Marker *marker, Way way, uint64_t word) {
    Heap *heap = marker->heap;
    uint64_t offset = word - marker->base;
    if (offset >= marker->extent) {
        mark_code(heap, way, word);
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
    if (!(heap->allocated[at] & bit)) return;
    reach(marker, way, at, bit, (Object *)(heap->base + index * BLOCK_BYTES + granule * 8), false);
}

/* Other threads' instrumentation must not watch this: it reads what lies between variables too. */
#define DEFINE_MARK_WORDS(name, way)                                                                               \
    __attribute__((no_sanitize_address, no_sanitize_thread, noinline)) static void                                 \
    name(Heap *heap, const char *from, const char *to) {                                                           \
        Marker marker = begin(heap, way);                                                                          \
        const uint64_t *word = (const uint64_t *)(((uintptr_t)from + 7) & ~(uintptr_t)7);                          \
        for (; (const char *)(word + 1) <= to; word++) mark_word(&marker, way, *word);                             \
        finish(marker, way);                                                                                       \
    }
DEFINE_MARK_WORDS(mark_words_young, YOUNG)
DEFINE_MARK_WORDS(mark_words_among, YOUNG_AMONG)
DEFINE_MARK_WORDS(mark_words_all, ALL)

INLINE void mark_words(Heap *heap, Way way, const char *from, const char *to) {
    if (way == YOUNG) mark_words_young(heap, from, to);
    else if (way == YOUNG_AMONG) mark_words_among(heap, from, to);
    else if (way == ALL) mark_words_all(heap, from, to);
    /* what looks like a reference to something young may be older than it: no check */
}

/* Whoever shows the error looks for the lines of the calls in it. */
INLINE void mark_trace(Heap *heap, Way way, const Record *error) {
    Value trace = error->fields[FIELD_TRACE];
    if (!heap->units_extent || !esk_is(trace, TAG_BYTEVECTOR)) return;
    const Bytevector *bytes = esk_pointer(trace);
    for (int64_t i = 0; i + 8 <= bytes->length; i += 8) {
        uint64_t address;
        memcpy(&address, bytes->bytes + i, 8);
        mark_code(heap, way, address);
    }
}

/* A vector from an item on; what is too much waits. */
INLINE void trace_vector(Marker *marker, Way way, const Vector *vector, uint64_t from) {
    uint64_t to = (uint64_t)vector->length;
    if (to - from > PIECE && way != CHECK && push_rest(marker, way, vector, from + PIECE)) to = from + PIECE;
    mark_items(marker, way, vector->items + from, to - from);
}

INLINE void trace(Marker *marker, Way way, Object *object) {
    switch (object->type) {
    case TAG_PAIR: {
        Pair *pair = (Pair *)object;
        mark(marker, way, object->b, pair->cdr); /* below the car on the stack: lists take no room there */
        mark(marker, way, object->a, pair->car);
        return;
    }
    case TAG_STRING: case TAG_BYTEVECTOR: case TAG_SYMBOL: case TAG_KEYWORD: case TAG_BIGNUM: return;
    case TAG_VECTOR: trace_vector(marker, way, (Vector *)object, 0); return;
    case TAG_RATIONAL: case TAG_COMPLEX: mark_values(marker, way, &((Couple *)object)->first, 2); return;
    case TAG_BOX: mark_values(marker, way, &((Box *)object)->value, 1); return;
    case TAG_RECORD_TYPE: mark_values(marker, way, &((RecordType *)object)->name, 2); return;
    case TAG_RECORD: {
        Record *record = (Record *)object;
        mark(marker, way, TAG_RECORD_TYPE, (uint64_t)(uintptr_t)record->type);
        mark_values(marker, way, record->fields, object->count);
        if (record->type == marker->heap->error_type) mark_trace(marker->heap, way, record);
        return;
    }
    case TAG_PROCEDURE:
        mark_code(marker->heap, way, (uint64_t)(uintptr_t)((Closure *)object)->entry);
        mark_values(marker, way, ((Closure *)object)->captured, object->count);
        return;
    case TAG_CONTINUATION: {
        Continuation *continuation = (Continuation *)object;
        Segment *segment = (Segment *)object;
        bool shared = object->flags & FLAG_SEGMENT;
        mark(marker, way, TAG_CONTINUATION, (uint64_t)(uintptr_t)(shared ? segment->parent : continuation->segment));
        mark_code(marker->heap, way, (uint64_t)(uintptr_t)(shared ? segment->back : continuation->back));
        if (!shared) mark_values(marker, way, &continuation->handlers, 3);
        finish(*marker, way);
        if (shared) mark_words(marker->heap, way, segment->frames, segment->frames + segment->bytes);
        else mark_words(marker->heap, way, (char *)&continuation->registers, continuation->slice + continuation->bytes);
        const Object *holder = marker->holder;
        *marker = begin(marker->heap, way);
        marker->holder = holder;
        return;
    }
    default: mark_values(marker, way, ((Generic *)object)->fields, object->count); return;
    }
}

/* ---- tracing what waits ----------------------------------------------------------------------------------------- */

static bool is_spent(Budget *budget) {
    if (!budget->until || esk_now() >= budget->until) return true;
    budget->objects = AT_ONCE;
    return false;
}

/* Traces what waits, as long as the budget lasts where there is one. A few objects are fetched ahead, since most are
 * not in the cache. Whether all is traced. */
INLINE bool drain(Heap *heap, Way way, Budget *budget) {
    Marker marker = begin(heap, way);
    Object *ahead[AHEAD] = {0};
    uint64_t at = 0, waiting = 0;
    while (marker.next > marker.first || waiting) {
        if (budget && --budget->objects < 0 && is_spent(budget)) {
            for (int i = 0; i < AHEAD; i++)
                if (ahead[i]) push(&marker, way, ahead[i]);
            finish(marker, way);
            return false;
        }
        Object *fetched = NULL;
        if (marker.next > marker.first) {
            uintptr_t entry = *--marker.next;
            if (entry & IS_PIECE) {
                uint64_t from = *--marker.next;
                if (budget) budget->objects -= PIECE;
                trace_vector(&marker, way, (const Vector *)(entry - IS_PIECE), from);
                continue;
            }
            fetched = (Object *)entry;
            __builtin_prefetch(fetched);
            waiting++;
        }
        Object *object = ahead[at];
        ahead[at] = fetched;
        at = (at + 1) % AHEAD;
        if (object) {
            waiting--;
            trace(&marker, way, object);
        }
    }
    finish(marker, way);
    return true;
}

static void drain_young(Heap *heap) { drain(heap, YOUNG, NULL); }
static void drain_among(Heap *heap) { drain(heap, YOUNG_AMONG, NULL); }
static void drain_all(Heap *heap) { drain(heap, ALL, NULL); }
static bool drain_some(Heap *heap, Budget *budget) { return drain(heap, ALL, budget); }

/* Some objects found no place on the mark stack: trace all that are marked once more. */
INLINE void trace_again(Heap *heap, Way way) {
    MarkStack *stack = stack_of(heap, way);
    const uint64_t *marked = way == ALL ? heap->reached : heap->marked;
    while (stack->overflowed) {
        stack->overflowed = false;
        for (uint64_t at = 0; at < heap->top * BITMAP_WORDS; at++) {
            for (uint64_t bits = marked[at]; bits; bits &= bits - 1) {
                Marker marker = begin(heap, way);
                trace(&marker, way, (Object *)(heap->base + (at * 64 + (uint64_t)__builtin_ctzll(bits)) * 8));
                finish(marker, way);
                if (way == ALL) drain_all(heap);
                else if (way == YOUNG) drain_young(heap);
                else drain_among(heap);
            }
        }
    }
}

static void shrink(MarkStack *stack) {
    if (stack->room <= 1 << 17) return; /* what one deep structure needed is not kept */
    munmap(stack->items, stack->room * sizeof *stack->items);
    *stack = (MarkStack){0};
}

/* ---- roots ------------------------------------------------------------------------------------------------------ */

/* The constants of units that were reached; whether there were any. */
static bool mark_constants(Heap *heap) {
    Marker marker = begin(heap, ALL);
    const Value *constants;
    uint64_t count;
    bool some = false;
    for (; esk_next_constants(heap, &constants, &count); some = true) mark_values(&marker, ALL, constants, count);
    finish(marker, ALL);
    return some;
}

/* Those of units that were loaded since the last collection. */
INLINE void mark_new_constants(Marker *marker, Way way) {
    const Value *constants;
    uint64_t count, unit = 0;
    while (esk_new_constants(marker->heap, &unit, &constants, &count)) mark_values(marker, way, constants, count);
}

/* Data of ephemerons whose keys were reached; whether there were any. One may be the key of the next. */
static bool mark_data(Heap *heap) {
    bool some = false;
    for (uint64_t i = 0; i < heap->ephemeron_count; i++) {
        const Value *datum = esk_ephemeron_due(heap, heap->ephemerons[i]);
        if (!datum) continue;
        Marker marker = begin(heap, ALL);
        mark_values(&marker, ALL, datum, 1);
        finish(marker, ALL);
        drain_all(heap);
        some = true;
    }
    return some;
}

INLINE void mark_young_ephemerons(Marker *marker, Way way) {
    const Heap *heap = marker->heap;
    for (uint64_t i = heap->ephemerons_old; i < heap->ephemeron_count; i++)
        mark_values(marker, way, esk_ephemeron_parts(heap->ephemerons[i]), 2);
}

INLINE void mark_context(Context *context, Way way) {
    Marker marker = begin(context->heap, way);
    Value *fields[] = {
        &context->handlers, &context->winders, &context->parameters, &context->raise,
        &context->input, &context->output, &context->error, &context->memory_error, &context->stack_error,
        &context->differentiated_call, &context->environment, &context->started,
    };
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) mark_values(&marker, way, fields[i], 1);
    mark(&marker, way, TAG_RECORD_TYPE, (uint64_t)(uintptr_t)context->error_type);
    for (Entry *entry = context->entry; entry; entry = entry->outer) {
        mark_values(&marker, way, entry->args, (uint64_t)entry->count);
        mark_values(&marker, way, &entry->handlers, 5);
        mark(&marker, way, TAG_CONTINUATION, (uint64_t)(uintptr_t)entry->captured);
    }
    for (const TaskFrame *frame = context->tasks; frame; frame = frame->outer) {
        mark(&marker, way, TAG_RECORD, (uint64_t)(uintptr_t)frame->task);
        mark_values(&marker, way, frame->before, ENVIRONMENT_PARTS);
    }
    finish(marker, way);
}

INLINE void mark_heap_roots(Heap *heap, Way way) {
    Marker marker = begin(heap, way);
    int64_t count;
    const uint64_t *addresses = esk_uncaught_addresses(&count);
    for (int64_t i = 0; i < count; i++) mark_code(heap, way, addresses[i]);
    mark_values(&marker, way, &heap->exit_code, 1);
    for (RootChunk *chunk = heap->roots; chunk; chunk = chunk->next)
        mark_values(&marker, way, chunk->cells, sizeof chunk->cells / sizeof *chunk->cells);
    mark_values(&marker, way, heap->statics, heap->static_count);
    if (way != ALL) {
        mark_new_constants(&marker, way);
        mark_young_ephemerons(&marker, way);
    }
    finish(marker, way);
}

/* Tasks that wait in the deque of a context (tasks.c). */
INLINE void mark_deque(Heap *heap, const Deque *deque, Way way) {
    Marker marker = begin(heap, way);
    mark_items(&marker, way, deque->items + deque->first, deque->end - deque->first);
    finish(marker, way);
}

INLINE void mark_roots(Context *collecting, char *stack_low, Way way) {
    Heap *heap = collecting->heap;
    mark_heap_roots(heap, way);
    for (Context *context = heap->first; context; context = context->next) {
        mark_context(context, way);
        const Deque *deque = __atomic_load_n(&context->deque, __ATOMIC_ACQUIRE);
        if (deque) mark_deque(heap, deque, way);
        mark_words(heap, way, (char *)context->extra, (char *)(context->extra + context->extra_count));
        const char *base = NULL;
        for (Entry *entry = context->entry; entry; entry = entry->outer) base = entry->base;
        if (base) mark_words(heap, way, context == collecting ? stack_low : context->stopped, base);
    }
}

/* ---- what was written to ---------------------------------------------------------------------------------------- */

/* What the old objects of a card refer to. Of vectors only the items that lie in it: they may be long. */
INLINE void mark_card(Heap *heap, Way way, uint64_t card) {
    uint64_t index = card >> (BLOCK_SHIFT - CARD_SHIFT), at = (card << CARD_SHIFT) & (BLOCK_BYTES - 1), cell = 0;
    const char *from = heap->base + (card << CARD_SHIFT), *to = from + ((uint64_t)1 << CARD_SHIFT);
    const Block *block = &heap->blocks[index];
    uint64_t words = BLOCK_GRANULES, cells = 1;
    if (block->kind == BLOCK_FREE) return;
    if (block->kind == BLOCK_CELLS) {
        const SizeClass *class = &heap->classes[block->class];
        words = class->words;
        cells = class->cells;
        cell = (at >> 3) * class->reciprocal >> 32;
    } else if (block->kind == BLOCK_TAIL) index -= block->span;
    for (; cell < cells; cell++) {
        uint64_t granule = cell * words;
        Object *object = (Object *)(heap->base + index * BLOCK_BYTES + granule * 8);
        if ((const char *)object >= to) return;
        if (!(heap->marked[index * BITMAP_WORDS + granule / 64] >> (granule % 64) & 1)) continue; /* young, or free */
        Marker marker = begin(heap, way);
        if (object->type == TAG_VECTOR) {
            const Vector *vector = (const Vector *)object;
            const char *items = (const char *)vector->items, *end = (const char *)(vector->items + vector->length);
            uint64_t first = from <= items ? 0 : (uint64_t)(from - items + 15) / sizeof(Value);
            uint64_t last = (uint64_t)((to < end ? to : end) - items + 15) / sizeof(Value);
            if (to > items && first < last) mark_values(&marker, way, vector->items + first, last - first);
        } else trace(&marker, way, object);
        finish(marker, way);
    }
}

/* The bits of what a written card refers to, most of which are in no cache. It may not hold values at all. */
INLINE void fetch_targets(const Heap *heap, uint64_t card) {
    const uint64_t *words = (const uint64_t *)(void *)(heap->base + (card << CARD_SHIFT));
    for (int i = 0; i < 1 << (CARD_SHIFT - 3); i++) {
        uint64_t offset = words[i] - (uint64_t)(uintptr_t)heap->base;
        if (offset < heap->extent) __builtin_prefetch(&heap->marked[offset >> 9]);
    }
}

/* Cards themselves are fetched some groups ahead, the bits of what they refer to half as many. */
INLINE void fetch_cards(const Heap *heap, uint64_t group, bool targets) {
    for (uint64_t card = group * 8; card < group * 8 + 8; card++) {
        if (!heap->cards[card]) continue;
        if (targets) fetch_targets(heap, card);
        else {
            __builtin_prefetch(heap->base + (card << CARD_SHIFT));
            __builtin_prefetch(heap->base + (card << CARD_SHIFT) + 64);
        }
    }
}

INLINE void mark_cards(Heap *heap, Way way) {
    uint64_t *groups = (uint64_t *)(void *)heap->cards, end = heap->extent >> (CARD_SHIFT + 3);
    for (uint64_t group = 0; group < end; group++) {
        uint64_t soon = group + GROUPS_AHEAD / 2, later = group + GROUPS_AHEAD;
        if (soon < end && groups[soon]) fetch_cards(heap, soon, true);
        if (later < end && groups[later]) fetch_cards(heap, later, false);
        if (__builtin_expect(!groups[group], 1)) continue;
        for (uint64_t card = group * 8; card < group * 8 + 8; card++)
            if (heap->cards[card]) mark_card(heap, way, card);
        groups[group] = 0;
    }
}

/* ---- checks ----------------------------------------------------------------------------------------------------- */

/* That what is alive refers only to what is alive. */
static void check(Heap *heap) {
    for (uint64_t at = 0; at < heap->top * BITMAP_WORDS; at++) {
        for (uint64_t bits = heap->alive[at]; bits; bits &= bits - 1) {
            Marker marker = begin(heap, CHECK);
            Object *object = (Object *)(heap->base + (at * 64 + (uint64_t)__builtin_ctzll(bits)) * 8);
            marker.holder = object;
            trace(&marker, CHECK, object);
        }
    }
}

/* ---- for collect.c ---------------------------------------------------------------------------------------------- */

/* Cards come first: what is marked by then is old. */
static __attribute__((noinline)) void mark_young(Context *context, char *stack_low) {
    mark_cards(context->heap, YOUNG);
    mark_roots(context, stack_low, YOUNG);
    drain_young(context->heap);
    trace_again(context->heap, YOUNG);
}

static __attribute__((noinline)) void mark_among(Context *context, char *stack_low) {
    mark_cards(context->heap, YOUNG_AMONG);
    mark_roots(context, stack_low, YOUNG_AMONG);
    drain_among(context->heap);
    trace_again(context->heap, YOUNG_AMONG);
}

void esk_clear_cards(Heap *heap) {
    uint64_t *groups = (uint64_t *)(void *)heap->cards;
    for (uint64_t group = 0; group < heap->extent >> (CARD_SHIFT + 3); group++)
        if (groups[group]) groups[group] = 0; /* pages that hold nothing but zero take no memory */
}

void esk_mark_young(Context *context, char *stack_low) {
    Heap *heap = context->heap;
    heap->error_type = context->error_type;
    heap->alive = heap->marked;
    if (heap->marking) mark_among(context, stack_low);
    else mark_young(context, stack_low);
    if (heap->check) check(heap);
    shrink(&heap->young);
}

bool esk_mark_slice(Heap *heap, Budget *budget) {
    do {
        if (!drain_some(heap, budget)) return false;
        trace_again(heap, ALL);
    } while (mark_constants(heap) || mark_data(heap));
    shrink(&heap->waiting);
    heap->alive = heap->reached;
    if (heap->check) check(heap);
    return true;
}

void esk_mark_all(Context *context, char *stack_low) {
    Heap *heap = context->heap;
    heap->error_type = context->error_type;
    mark_roots(context, stack_low, ALL);
    Budget all = {.objects = INT64_MAX};
    esk_mark_slice(heap, &all);
}
