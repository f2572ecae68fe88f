/* The heap: memory for objects, and places that are roots. See heap.h for how it is built.
 *
 * In: requests of compiled code (esk_refill) and of the runtime (esk_allocate). Out: memory that was free, or a
 * condition of kind out-of-memory. Requests that are due make a collection (collect.c) first.
 */
#define _GNU_SOURCE
#include "heap.h"

#include <stdlib.h>
#include <sys/mman.h>

enum { COMMIT_STEP = 64 /* blocks */, KEPT_FREE = 16 };

/* ---- bitmaps ---------------------------------------------------------------------------------------------------- */

/* The bits [from, to) of word `index`. */
static uint64_t range_mask(uint64_t index, uint64_t from, uint64_t to) {
    uint64_t first = index * 64, mask = ~(uint64_t)0;
    if (from > first) mask &= ~(uint64_t)0 << (from - first);
    if (to < first + 64) mask &= ((uint64_t)1 << (to - first)) - 1;
    return mask;
}

/* Says of the cells of a block between two granules whether they are allocated. */
static void set_cells(const Heap *heap, uint64_t block, const SizeClass *class, uint64_t from, uint64_t to,
                      bool allocated) {
    uint64_t *bits = esk_bitmap(heap->allocated, block);
    for (uint64_t i = from / 64; i * 64 < to; i++) {
        uint64_t cells = class->starts[i] & range_mask(i, from, to);
        bits[i] = allocated ? bits[i] | cells : bits[i] & ~cells;
    }
}

/* ---- blocks ----------------------------------------------------------------------------------------------------- */

static bool is_free(const Heap *heap, uint64_t block) { return heap->free[block / 64] >> (block % 64) & 1; }
static void set_free(Heap *heap, uint64_t block) { heap->free[block / 64] |= (uint64_t)1 << (block % 64); }
static void set_taken(Heap *heap, uint64_t block) { heap->free[block / 64] &= ~((uint64_t)1 << (block % 64)); }

/* The first of `count` free neighbours below top, or where the last free ones begin that may be lengthened above it. */
static uint64_t find_free(Heap *heap, uint64_t count) {
    uint64_t run = 0, block = heap->lowest_free;
    bool seen = false;
    while (block < heap->top) {
        uint64_t word = heap->free[block / 64] >> (block % 64);
        if (!word) {
            block = (block / 64 + 1) * 64;
            run = 0;
            continue;
        }
        if (!(word & 1)) {
            block += (uint64_t)__builtin_ctzll(word);
            run = 0;
            continue;
        }
        if (!seen) heap->lowest_free = block;
        seen = true;
        block++;
        if (++run == count) return block - count;
    }
    if (!seen) heap->lowest_free = heap->top;
    return heap->top - (block == heap->top ? run : 0);
}

static uint32_t take_blocks(Heap *heap, uint64_t count) {
    uint64_t allowed = heap->limit + (heap->in_reserve ? heap->reserve : 0);
    if (heap->used + count > allowed) return NO_BLOCK;
    uint64_t first = find_free(heap, count), end = first + count;
    if (end > heap->capacity) return NO_BLOCK;
    if (end > heap->committed) {
        uint64_t step = end - heap->committed < COMMIT_STEP ? COMMIT_STEP : end - heap->committed;
        if (step > heap->capacity - heap->committed) step = heap->capacity - heap->committed;
        char *fresh = heap->base + heap->committed * BLOCK_BYTES;
        if (mprotect(fresh, step * BLOCK_BYTES, PROT_READ | PROT_WRITE)) return NO_BLOCK;
        heap->committed += step;
    }
    if (end > heap->top) {
        heap->top = end;
        heap->extent = end * BLOCK_BYTES;
    }
    for (uint64_t block = first; block < end; block++) {
        set_taken(heap, block);
        heap->blocks[block].resident = 1;
    }
    heap->used += count;
    return (uint32_t)first;
}

void esk_give_blocks(Heap *heap, uint64_t first, uint64_t count) {
    for (uint64_t block = first; block < first + count; block++) {
        heap->blocks[block].kind = BLOCK_FREE;
        set_free(heap, block);
    }
    heap->used -= count;
    if (first < heap->lowest_free) heap->lowest_free = first;
}

/* Keeps the pages of free blocks for what the next collection will allow, or for as much as there was in use not long
 * ago, and gives the rest back to the system. */
void esk_release_pages(Heap *heap, uint64_t most) {
    uint64_t keep = heap->threshold / BLOCK_BYTES + KEPT_FREE, first = 0, count = 0;
    if (keep < heap->recent) keep = heap->recent;
    for (uint64_t block = heap->lowest_free; block <= heap->top; block++) {
        bool release = false;
        if (block < heap->top && is_free(heap, block) && heap->blocks[block].resident) {
            if (keep) keep--;
            else if (most) {
                most--;
                release = true;
            }
        }
        if (release) {
            heap->blocks[block].resident = 0;
            if (!count++) first = block;
        } else if (count) {
            madvise(heap->base + first * BLOCK_BYTES, count * BLOCK_BYTES, MADV_DONTNEED);
            count = 0;
        }
    }
    while (heap->top && is_free(heap, heap->top - 1) && !heap->blocks[heap->top - 1].resident)
        set_taken(heap, --heap->top);
    heap->extent = heap->top * BLOCK_BYTES;
    if (heap->lowest_free > heap->top) heap->lowest_free = heap->top;
}

/* ---- runs ------------------------------------------------------------------------------------------------------- */

/* What is left of the runs is free again. */
static void drop_run(Heap *heap, Bump *bump, const SizeClass *class) {
    if (bump->next < bump->end) {
        uint64_t from = (uint64_t)(bump->next - heap->base), to = (uint64_t)(bump->end - heap->base);
        uint64_t block = from >> BLOCK_SHIFT, start = block * BLOCK_GRANULES;
        set_cells(heap, block, class, from / 8 - start, to / 8 - start, false);
        __atomic_sub_fetch(&heap->handed_out, to - from, __ATOMIC_RELAXED);
    }
    bump->next = bump->end = NULL;
}

void esk_drop_runs(Context *context) {
    Heap *heap = context->heap;
    for (int i = 0; i < CLASS_COUNT; i++) {
        SizeClass *class = &heap->classes[i];
        drop_run(heap, i < SMALL_WORDS ? &context->bump[i + 1] : &context->larger[i - SMALL_WORDS], class);
    }
}

/* The next collection finds what is free in them. */
void esk_drop_areas(Context *context) {
    for (int i = 0; i < CLASS_COUNT; i++) context->areas[i] = (Area){NO_BLOCK, 0};
}

/* ---- roots that other threads let go of ------------------------------------------------------------------------- */

/* Free roots are chained through their bits; as special values they mean nothing to the collector. */
static void free_root(Heap *heap, Value *root) {
    *root = esk_make(TAG_SPECIAL, (uint64_t)(uintptr_t)heap->free_root);
    heap->free_root = root;
}

void esk_free_dropped(Context *context) {
    Heap *heap = context->heap;
    if (!__atomic_load_n(&heap->dropped_count, __ATOMIC_ACQUIRE)) return;
    pthread_mutex_lock(&heap->dropping);
    for (uint64_t i = 0; i < heap->dropped_count; i++) free_root(heap, heap->dropped[i]);
    heap->dropped_count = 0;
    pthread_mutex_unlock(&heap->dropping);
}

bool esk_is_allocated(const Context *context, const void *object) {
    const Heap *heap = context->heap;
    uint64_t offset = (uint64_t)((const char *)object - heap->base);
    return offset < heap->extent && heap->blocks[offset >> BLOCK_SHIFT].kind != BLOCK_FREE &&
           (heap->allocated[offset >> 9] >> (offset >> 3 & 63) & 1);
}

const HeapWatcher *esk_heap_watcher;

/* Whoever watches may stop at any moment, on another thread: the pointer is looked at once. */
const HeapWatcher *esk_watcher(void) { return __atomic_load_n(&esk_heap_watcher, __ATOMIC_RELAXED); }

/* ---- allocation ------------------------------------------------------------------------------------------------- */

_Noreturn void esk_out_of_memory(Context *context, uint64_t bytes) {
    Heap *heap = context->heap;
    context->failed = true;
    if (bytes <= LARGEST_CELL * 8) { /* not even small objects: what handles this needs the reserve */
        esk_lock(heap);
        bool in_reserve = heap->in_reserve;
        heap->in_reserve = true;
        esk_unlock(heap);
        if (in_reserve) esk_uncaught(context, context->memory_error);
    }
    Value limit = esk_fixnum((int64_t)(heap->limit * BLOCK_BYTES));
    Value wanted = esk_fixnum(bytes > INT64_MAX ? INT64_MAX : (int64_t)bytes);
    esk_fail(context, ERROR_MEMORY, NULL, "out of memory: bytes wanted, and the heap limit", 2, wanted, limit);
}

uint64_t esk_heap_room(Context *context) {
    Heap *heap = context->heap;
    esk_lock(heap);
    uint64_t used = heap->used;
    esk_unlock(heap);
    return used < heap->limit ? (heap->limit - used) * BLOCK_BYTES : 0;
}

/* Bytes that were handed out. */
static void count_bytes(Heap *heap, uint64_t bytes) {
    if (heap->several) {
        __atomic_add_fetch(&heap->since, bytes, __ATOMIC_RELAXED);
        __atomic_add_fetch(&heap->handed_out, bytes, __ATOMIC_RELAXED);
    } else {
        heap->since += bytes;
        heap->handed_out += bytes;
    }
}

static void count_request(Context *context, uint64_t bytes) {
    Heap *heap = context->heap;
    uint64_t since = __atomic_load_n(&heap->since, __ATOMIC_RELAXED);
    bool due = since && since + bytes > heap->threshold;
    if (heap->stress) {
        esk_lock(heap);
        if (--heap->until_stress == 0) {
            heap->until_stress = heap->stress;
            due = true;
        }
        esk_unlock(heap);
    }
    bool paused = __atomic_load_n(&heap->paused, __ATOMIC_RELAXED);
    if (__atomic_load_n(&heap->stopping, __ATOMIC_RELAXED) && context->entry && !paused) esk_stop_here(context);
    else if (due && esk_may_collect(context)) esk_step(context);
}

/* The next free run of this thread's block, from where the last one ended; false where nothing of it is left. */
static bool find_run(const Heap *heap, const SizeClass *class, Area *area, Bump *run) {
    if (area->block == NO_BLOCK) return false;
    const uint64_t *allocated = esk_bitmap(heap->allocated, area->block);
    uint64_t i = area->position / 64, mask = ~(uint64_t)0 << (area->position % 64), found = 0;
    for (; i < BITMAP_WORDS; i++, mask = ~(uint64_t)0) {
        found = class->starts[i] & ~allocated[i] & mask;
        if (found) break;
    }
    if (!found) {
        area->block = NO_BLOCK;
        return false;
    }
    uint64_t start = i * 64 + (uint64_t)__builtin_ctzll(found), end = class->cells * class->words;
    for (mask = ~(uint64_t)0 << (start % 64); i < BITMAP_WORDS; i++, mask = ~(uint64_t)0) {
        found = allocated[i] & mask;
        if (found) {
            end = i * 64 + (uint64_t)__builtin_ctzll(found);
            break;
        }
    }
    if (heap->stress) end = start + class->words;
    const HeapWatcher *watching = esk_watcher();
    if (watching) {
        uint64_t most = watching->cells((uint64_t)class->words * 8) * class->words;
        if (start + most < end) end = start + most;
    }
    char *block = heap->base + (uint64_t)area->block * BLOCK_BYTES;
    *run = (Bump){block + start * 8, block + end * 8};
    set_cells(heap, area->block, class, start, end, true);
    area->position = (uint32_t)end;
    if (end >= class->cells * class->words) area->block = NO_BLOCK;
    return true;
}

/* A block for this thread alone, until the next collection: one with free cells, or a fresh one. */
static bool take_area(Heap *heap, SizeClass *class, Area *area) {
    uint32_t index = class->list;
    if (index != NO_BLOCK) class->list = heap->blocks[index].next;
    else {
        index = take_blocks(heap, 1);
        if (index == NO_BLOCK) return false;
        heap->blocks[index] = (Block){.kind = BLOCK_CELLS, .class = (uint8_t)(class - heap->classes), .resident = 1};
        memset(esk_bitmap(heap->allocated, index), 0, BITMAP_WORDS * 8);
    }
    esk_touch(heap, index);
    *area = (Area){index, 0};
    return true;
}

/* A run, which is counted. */
static bool take_run(Context *context, SizeClass *class, Bump *run) {
    Heap *heap = context->heap;
    Area *area = &context->areas[class - heap->classes];
    while (!find_run(heap, class, area, run)) {
        esk_lock(heap);
        bool found = take_area(heap, class, area);
        esk_unlock(heap);
        if (!found) return false;
    }
    uint64_t size = (uint64_t)(run->end - run->next);
    count_bytes(heap, size);
    const HeapWatcher *watching = esk_watcher();
    if (watching) {
        esk_lock(heap);
        watching->allocated(context, run->next, size);
        esk_unlock(heap);
    }
    return true;
}

static void *refill(Context *context, SizeClass *class, Bump *bump) {
    uint64_t bytes = (uint64_t)class->words * 8;
    count_request(context, bytes);
    Bump run;
    if (!take_run(context, class, &run) && !(esk_collect_at_limit(context) && take_run(context, class, &run)))
        esk_out_of_memory(context, bytes);
    *bump = (Bump){run.next + bytes, run.end};
    return run.next;
}

void *esk_refill(Context *context, uint64_t words) {
    return refill(context, &context->heap->classes[words - 1], &context->bump[words]);
}

/* So many blocks as one object, which is counted; NO_BLOCK where there are none. */
static uint32_t take_large(Context *context, uint64_t count) {
    Heap *heap = context->heap;
    esk_lock(heap);
    uint32_t first = take_blocks(heap, count);
    if (first != NO_BLOCK) {
        heap->blocks[first] = (Block){.kind = BLOCK_LARGE, .resident = 1, .span = (uint32_t)count};
        for (uint64_t i = 1; i < count; i++)
            heap->blocks[first + i] = (Block){.kind = BLOCK_TAIL, .resident = 1, .span = (uint32_t)i};
        esk_touch(heap, first);
        memset(esk_bitmap(heap->allocated, first), 0, BITMAP_WORDS * 8);
        esk_bitmap(heap->allocated, first)[0] = 1;
        count_bytes(heap, count * BLOCK_BYTES);
        const HeapWatcher *watching = esk_watcher();
        if (watching)
            watching->allocated(context, heap->base + (uint64_t)first * BLOCK_BYTES, count * BLOCK_BYTES);
    }
    esk_unlock(heap);
    return first;
}

static void *allocate_large(Context *context, uint64_t bytes) {
    Heap *heap = context->heap;
    if (bytes > heap->limit * BLOCK_BYTES) esk_out_of_memory(context, bytes);
    uint64_t count = (bytes + BLOCK_BYTES - 1) >> BLOCK_SHIFT;
    count_request(context, count * BLOCK_BYTES);
    uint32_t first = take_large(context, count);
    if (first == NO_BLOCK) {
        esk_collect_at_limit(context);
        first = take_large(context, count);
        if (first == NO_BLOCK) esk_out_of_memory(context, bytes);
    }
    return heap->base + (uint64_t)first * BLOCK_BYTES;
}

__attribute__((noinline)) static void *allocate_more(Context *context, size_t bytes) {
    Heap *heap = context->heap;
    if (bytes > LARGEST_CELL * 8) return allocate_large(context, bytes);
    uint8_t number = heap->class_of[(bytes + 63) / 64];
    SizeClass *class = &heap->classes[number];
    Bump *bump = &context->larger[number - SMALL_WORDS];
    char *memory = bump->next;
    if (memory == bump->end) return refill(context, class, bump);
    bump->next = memory + class->words * 8;
    return memory;
}

void *esk_allocate(Context *context, size_t bytes, int type) {
    Object *object;
    if (bytes > SMALL_WORDS * 8) object = allocate_more(context, bytes);
    else {
        uint64_t words = bytes <= 8 ? 1 : (bytes + 7) / 8;
        Bump *bump = &context->bump[words];
        if (bump->next == bump->end) object = esk_refill(context, words);
        else {
            object = (Object *)bump->next;
            bump->next += words * 8;
        }
    }
    *object = (Object){.type = (uint8_t)type};
    return object;
}

/* ---- roots and finalizers --------------------------------------------------------------------------------------- */

Value *esk_try_root(Context *context) {
    Heap *heap = context->heap;
    esk_lock(heap);
    if (!heap->free_root) esk_free_dropped(context);
    RootChunk *chunk = heap->free_root ? NULL : malloc(sizeof *chunk);
    if (chunk) {
        chunk->next = heap->roots;
        heap->roots = chunk;
        for (size_t i = sizeof chunk->cells / sizeof *chunk->cells; i-- > 0;) free_root(heap, &chunk->cells[i]);
    }
    Value *root = heap->free_root;
    if (root) {
        heap->free_root = esk_pointer(*root);
        *root = ESK_UNDEFINED;
    }
    esk_unlock(heap);
    return root;
}

Value *esk_root(Context *context) {
    Value *root = esk_try_root(context);
    if (!root) esk_out_of_memory(context, sizeof(RootChunk));
    return root;
}

void esk_keep_static(Context *context, Value *values, uint64_t count) {
    context->heap->statics = values;
    context->heap->static_count = count;
}

void esk_unroot_later(Context *context, Value *root) {
    Heap *heap = context->heap;
    pthread_mutex_lock(&heap->dropping);
    if (heap->dropped_count == heap->dropped_room) {
        uint64_t room = heap->dropped_room ? 2 * heap->dropped_room : 256;
        Value **more = realloc(heap->dropped, room * sizeof *more);
        if (more) {
            heap->dropped = more;
            heap->dropped_room = room;
        }
    }
    if (heap->dropped_count < heap->dropped_room) /* else one root stays for ever, which does no harm */
        heap->dropped[heap->dropped_count++] = root;
    pthread_mutex_unlock(&heap->dropping);
}

void esk_unroot(Context *context, Value *root) {
    esk_lock(context->heap);
    free_root(context->heap, root);
    esk_unlock(context->heap);
}

void esk_finalize(Context *context, Object *object, void (*last)(Object *)) {
    Heap *heap = context->heap;
    esk_lock(heap);
    if (heap->finalizer_count == heap->finalizer_room) {
        uint64_t room = heap->finalizer_room ? heap->finalizer_room * 2 : 16;
        Finalizer *more = realloc(heap->finalizers, room * sizeof *more);
        if (!more) {
            esk_unlock(heap);
            esk_out_of_memory(context, room * sizeof *more);
        }
        heap->finalizers = more;
        heap->finalizer_room = room;
    }
    heap->finalizers[heap->finalizer_count++] = (Finalizer){object, last};
    esk_unlock(heap);
}

/* ---- what is known of it ---------------------------------------------------------------------------------------- */

int64_t esk_heap_statistic(Context *context, int64_t which) {
    Heap *heap = context->heap;
    uint64_t number = 0;
    bool known = true;
    esk_lock(heap);
    switch (which) {
    case HEAP_LIVE: number = heap->live; break;
    case HEAP_ALLOCATED:
        number = __atomic_load_n(&heap->handed_out, __ATOMIC_RELAXED);
        for (int i = 0; i < CLASS_COUNT; i++) {
            const Bump *bump = i < SMALL_WORDS ? &context->bump[i + 1] : &context->larger[i - SMALL_WORDS];
            number -= (uint64_t)(bump->end - bump->next);
        }
        break;
    case HEAP_COLLECTIONS: number = heap->collections; break;
    case HEAP_RESIDENT:
        for (uint64_t block = 0; block < heap->top; block++) number += heap->blocks[block].resident;
        number *= BLOCK_BYTES;
        break;
    case HEAP_LIMIT: number = heap->limit * BLOCK_BYTES; break;
    case HEAP_WHOLE: number = heap->wholes; break;
    case HEAP_PAUSES: number = heap->pauses.count; break;
    case HEAP_PAUSED: number = heap->pauses.total; break;
    case HEAP_LONGEST_PAUSE: number = heap->pauses.longest; break;
    case HEAP_MOST_WORK: number = heap->pauses.most_work; break;
    case HEAP_STOPPING: number = heap->pauses.stopping; break;
    default: known = false;
    }
    esk_unlock(heap);
    return known ? (int64_t)number : -1;
}

static Value collect_garbage(Context *context) {
    esk_collect(context);
    return ESK_UNSPECIFIED;
}

static Value heap_statistic(Context *context, Value which) {
    if (!esk_is(which, TAG_FIXNUM)) esk_wrong_type(context, "%heap-statistic", 1, which, "an integer");
    int64_t number = esk_heap_statistic(context, esk_integer(which));
    if (number < 0) esk_bad_index(context, "%heap-statistic", 1, which, HEAP_STATISTICS);
    return esk_fixnum(number);
}

static Value heap_statistics(Context *context) {
    static const char *const words[] = {
#define X(name, word) word,
        ESK_HEAP_STATISTICS(X)
#undef X
    };
    int64_t numbers[HEAP_STATISTICS]; /* all of them before the list takes memory */
    for (int i = 0; i < HEAP_STATISTICS; i++) numbers[i] = esk_heap_statistic(context, i);
    Value list = ESK_NULL;
    for (int i = HEAP_STATISTICS; i-- > 0;) {
        Value name = esk_symbol(context, words[i], (int64_t)strlen(words[i]));
        list = esk_cons(context, esk_cons(context, name, esk_fixnum(numbers[i])), list);
    }
    return list;
}

const Primitive esk_heap_primitives[] = {
    ESK_PRIMITIVE_0("collect-garbage", "(collect-garbage)", collect_garbage,
                    "Frees the memory of objects that nothing refers to. It happens by itself when it is needed."),
    ESK_PRIMITIVE_1("%heap-statistic", "(%heap-statistic which)", heap_statistic,
                    "One of the numbers of heap-statistics, by its place in that list, from 0."),
    ESK_PRIMITIVE_0("heap-statistics", "(heap-statistics)", heap_statistics,
                    "What is known of the heap, an association list. Bytes: live after the last collection, allocated "
                    "so far, resident in memory, and the limit. Collections: all of them, and those that went through "
                    "the whole heap. Pauses, in which the program waited for a collection that it had not asked for: "
                    "how many, how long together, and the longest, by the clock and by the processor time of one. "
                    "Stopping: how long together they waited until all other threads stood still."),
    {0},
};
