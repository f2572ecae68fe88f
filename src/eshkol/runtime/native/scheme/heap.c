/* The heap: memory for objects, and collections. See heap.h for how it is built.
 *
 * In: requests of compiled code (esk_refill) and of the runtime (esk_allocate). Out: memory that was free, or a
 * condition of kind out-of-memory. A collection happens when as much was handed out as was alive after the last one
 * (at least 8 MB): marking costs what is alive, so the cost for each byte handed out is bounded.
 */
#define _GNU_SOURCE
#include "heap.h"

#include <stdlib.h>
#include <sys/mman.h>

enum { COMMIT_STEP = 64 /* blocks */, KEPT_FREE = 16 };
enum { STACK_CLEARED = 16 << 10 };

/* ---- bitmaps ---------------------------------------------------------------------------------------------------- */

static uint64_t *bitmap_of(uint64_t *bitmap, uint64_t block) { return bitmap + block * BITMAP_WORDS; }

/* The bits [from, to) of word `index`. */
static uint64_t range_mask(uint64_t index, uint64_t from, uint64_t to) {
    uint64_t first = index * 64, mask = ~(uint64_t)0;
    if (from > first) mask &= ~(uint64_t)0 << (from - first);
    if (to < first + 64) mask &= ((uint64_t)1 << (to - first)) - 1;
    return mask;
}

/* Says of the cells of a block between two granules whether they are allocated. */
static void set_cells(Heap *heap, uint64_t block, const SizeClass *class, uint64_t from, uint64_t to, bool allocated) {
    uint64_t *bits = bitmap_of(heap->allocated, block);
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

static void give_blocks(Heap *heap, uint64_t first, uint64_t count) {
    for (uint64_t block = first; block < first + count; block++) {
        heap->blocks[block].kind = BLOCK_FREE;
        set_free(heap, block);
    }
    heap->used -= count;
    if (first < heap->lowest_free) heap->lowest_free = first;
}

/* Keeps the pages of free blocks for what the next collection will allow, or for as much as there was in use not long
 * ago, and gives the rest back to the system. */
static void release_pages(Heap *heap) {
    uint64_t keep = heap->threshold / BLOCK_BYTES + KEPT_FREE, first = 0, count = 0;
    if (keep < heap->recent) keep = heap->recent;
    for (uint64_t block = heap->lowest_free; block <= heap->top; block++) {
        bool release = false;
        if (block < heap->top && is_free(heap, block) && heap->blocks[block].resident) {
            if (keep) keep--;
            else release = true;
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

/* ---- roots that other threads let go of ------------------------------------------------------------------------- */

static void free_dropped(Context *context) {
    Heap *heap = context->heap;
    if (!__atomic_load_n(&heap->dropped_count, __ATOMIC_ACQUIRE)) return;
    pthread_mutex_lock(&heap->dropping);
    for (uint64_t i = 0; i < heap->dropped_count; i++) esk_unroot(context, heap->dropped[i]);
    heap->dropped_count = 0;
    pthread_mutex_unlock(&heap->dropping);
}

/* ---- collections ------------------------------------------------------------------------------------------------ */

/* What is left of the runs is free again. */
static void drop_run(Heap *heap, Bump *bump, const SizeClass *class) {
    if (bump->next < bump->end) {
        uint64_t from = (uint64_t)(bump->next - heap->base), to = (uint64_t)(bump->end - heap->base);
        uint64_t block = from >> BLOCK_SHIFT, start = block * BLOCK_GRANULES;
        set_cells(heap, block, class, from / 8 - start, to / 8 - start, false);
        heap->handed_out -= to - from;
    }
    bump->next = bump->end = NULL;
}

static void drop_runs(Context *context) {
    Heap *heap = context->heap;
    for (int i = 0; i < CLASS_COUNT; i++) {
        SizeClass *class = &heap->classes[i];
        drop_run(heap, i < SMALL_WORDS ? &context->bump[i + 1] : &class->larger, class);
    }
}

_Thread_local uint64_t esk_outside_freed;

void esk_run_finalizers(Heap *heap, bool all) {
    uint64_t kept = 0, count = heap->finalizer_count;
    for (uint64_t i = 0; i < count; i++) {
        Finalizer finalizer = heap->finalizers[i];
        if (all || !esk_marked(heap, finalizer.object)) finalizer.last(finalizer.object);
        else heap->finalizers[kept++] = finalizer;
    }
    heap->finalizer_count = kept;
}

/* What is marked is what is allocated now. Blocks are visited from the last to the first, so that the lists of those
 * with free cells begin with the lowest. */
static void sweep(Heap *heap) {
    uint64_t live = 0;
    for (int i = 0; i < CLASS_COUNT; i++) heap->classes[i].list = heap->classes[i].block = NO_BLOCK;
    for (uint64_t index = heap->top; index-- > 0;) {
        Block *block = &heap->blocks[index];
        if (block->kind != BLOCK_CELLS && block->kind != BLOCK_LARGE) continue;
        uint64_t *allocated = bitmap_of(heap->allocated, index), *marked = bitmap_of(heap->marked, index);
        if (block->kind == BLOCK_LARGE) {
            allocated[0] = marked[0];
            marked[0] = 0;
            if (allocated[0]) live += (uint64_t)block->span * BLOCK_BYTES;
            else give_blocks(heap, index, block->span);
            continue;
        }
        uint64_t count = 0;
        for (int i = 0; i < BITMAP_WORDS; i++) {
            count += (uint64_t)__builtin_popcountll(marked[i]);
            allocated[i] = marked[i];
            marked[i] = 0;
        }
        SizeClass *class = &heap->classes[block->class];
        live += count * class->words * 8;
        if (!count) give_blocks(heap, index, 1);
        else if (count < class->cells) {
            block->next = class->list;
            class->list = (uint32_t)index;
        }
    }
    heap->live = live;
}

const HeapWatcher *esk_heap_watcher;

/* Whoever watches may stop at any moment, on another thread: the pointer is looked at once. */
static const HeapWatcher *watcher(void) { return __atomic_load_n(&esk_heap_watcher, __ATOMIC_RELAXED); }

bool esk_is_allocated(const Context *context, const void *object) {
    const Heap *heap = context->heap;
    uint64_t offset = (uint64_t)((const char *)object - heap->base);
    return offset < heap->extent && (heap->allocated[offset >> 9] >> (offset >> 3 & 63) & 1);
}

__attribute__((noinline)) static void collect_below(Context *context, char *stack_low) {
    Heap *heap = context->heap;
    heap->collecting = true;
    const HeapWatcher *watching = watcher();
    if (watching) watching->collecting(context);
    free_dropped(context);
    drop_runs(context);
    heap->recent -= heap->recent / 8;
    if (heap->recent < heap->used) heap->recent = heap->used;
    esk_mark_all(context, stack_low);
    esk_run_finalizers(heap, false);
    heap->outside -= esk_outside_freed;
    esk_outside_freed = 0;
    esk_drop_symbols(heap);
    sweep(heap);
    uint64_t stack = 0, code = esk_sweep_units(heap);
    for (Entry *entry = context->entry; entry; entry = entry->outer) stack = (uint64_t)(entry->base - stack_low);
    heap->threshold = heap->live + code + stack; /* the stack was looked at as well */
    if (heap->threshold < LEAST_THRESHOLD) heap->threshold = LEAST_THRESHOLD;
    heap->since = heap->outside_since = 0;
    heap->outside_threshold = heap->outside > LEAST_OUTSIDE ? heap->outside : LEAST_OUTSIDE;
    heap->collections++;
    heap->forced = false;
    if (heap->used <= heap->limit - heap->limit / 64) heap->in_reserve = false;
    release_pages(heap);
    if (watching) watching->collected(context);
    heap->collecting = false;
}

/* Frames to come will not find what old ones left behind, and hold on to it in places they have not written to yet. */
__attribute__((noinline)) static void clear_stack(void) {
    char below[STACK_CLEARED];
    memset(below, 0, sizeof below);
    __asm__ volatile("" : : "r"(below) : "memory");
}

/* Registers that belong to callers go to the stack, where they are looked at. */
__attribute__((noinline)) static void collect(Context *context) {
    jmp_buf registers;
    memset(&registers, 0, sizeof registers); /* not all of it is written */
    __builtin_unwind_init();
    (void)_setjmp(registers);
    collect_below(context, (char *)__builtin_frame_address(0) < (char *)&registers ? (char *)__builtin_frame_address(0)
                                                                                   : (char *)&registers);
    clear_stack();
    __asm__ volatile("" : : "r"(&registers) : "memory");
}

static bool may_collect(const Context *context) {
    return context->entry && !context->heap->paused && !context->heap->collecting;
}

void esk_collect(Context *context) {
    if (!context->heap->paused && !context->heap->collecting) collect(context);
}

void esk_collect_when_due(Context *context) {
    const Heap *heap = context->heap;
    if (heap->stress || heap->since > heap->threshold) esk_collect(context);
}

bool esk_outside(Context *context, int64_t bytes) {
    Heap *heap = context->heap;
    heap->outside += (uint64_t)bytes;
    heap->outside_since += (uint64_t)bytes;
    if (heap->outside_since <= heap->outside_threshold || !may_collect(context)) return false;
    collect(context);
    return true;
}

void esk_pause_collection(Context *context, int64_t change) { context->heap->paused += change; }

/* ---- allocation ------------------------------------------------------------------------------------------------- */

_Noreturn void esk_out_of_memory(Context *context, uint64_t bytes) {
    Heap *heap = context->heap;
    heap->failed = true;
    if (bytes <= LARGEST_CELL * 8) { /* not even small objects: what handles this needs the reserve */
        if (heap->in_reserve) esk_uncaught(context, context->memory_error);
        heap->in_reserve = true;
    }
    Value limit = esk_fixnum((int64_t)(heap->limit * BLOCK_BYTES));
    Value wanted = esk_fixnum(bytes > INT64_MAX ? INT64_MAX : (int64_t)bytes);
    esk_fail(context, ERROR_MEMORY, NULL, "out of memory: bytes wanted, and the heap limit", 2, wanted, limit);
}

uint64_t esk_heap_room(Context *context) {
    Heap *heap = context->heap;
    return heap->used < heap->limit ? (heap->limit - heap->used) * BLOCK_BYTES : 0;
}

/* Collects because the limit is reached. False where that freed so little that the next time would come at once. */
static bool collect_at_limit(Context *context) {
    Heap *heap = context->heap;
    uint64_t little = heap->limit / 64;
    bool again = heap->forced && heap->since < little * BLOCK_BYTES;
    if (!may_collect(context)) return false;
    collect(context);
    heap->forced = true;
    if (heap->in_reserve || heap->used <= heap->limit - little) return true;
    return !again && heap->live <= (heap->limit - little) * BLOCK_BYTES;
}

static void count_request(Context *context, uint64_t bytes) {
    Heap *heap = context->heap;
    bool due = heap->since && heap->since + bytes > heap->threshold;
    if (heap->stress && --heap->until_stress == 0) {
        heap->until_stress = heap->stress;
        due = true;
    }
    if (due && may_collect(context)) collect(context);
}

/* The next free run of a class, from where the last one ended; false where a block has to be taken. */
static bool find_run(Heap *heap, SizeClass *class, Bump *run) {
    for (;;) {
        if (class->block == NO_BLOCK) {
            if (class->list == NO_BLOCK) return false;
            class->block = class->list;
            class->list = heap->blocks[class->block].next;
            class->position = 0;
        }
        const uint64_t *allocated = bitmap_of(heap->allocated, class->block);
        uint64_t i = class->position / 64, mask = ~(uint64_t)0 << (class->position % 64), found = 0;
        for (; i < BITMAP_WORDS; i++, mask = ~(uint64_t)0) {
            found = class->starts[i] & ~allocated[i] & mask;
            if (found) break;
        }
        if (!found) {
            class->block = NO_BLOCK;
            continue;
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
        const HeapWatcher *watching = watcher();
        if (watching) {
            uint64_t most = watching->cells((uint64_t)class->words * 8) * class->words;
            if (start + most < end) end = start + most;
        }
        char *block = heap->base + (uint64_t)class->block * BLOCK_BYTES;
        *run = (Bump){block + start * 8, block + end * 8};
        set_cells(heap, class->block, class, start, end, true);
        class->position = (uint32_t)end;
        if (end >= class->cells * class->words) class->block = NO_BLOCK;
        return true;
    }
}

static bool find_fresh_run(Heap *heap, SizeClass *class, Bump *run) {
    if (find_run(heap, class, run)) return true;
    uint32_t index = take_blocks(heap, 1);
    if (index == NO_BLOCK) return false;
    heap->blocks[index] = (Block){BLOCK_CELLS, (uint8_t)(class - heap->classes), 1, 1, NO_BLOCK};
    memset(bitmap_of(heap->allocated, index), 0, BITMAP_WORDS * 8);
    class->block = index;
    class->position = 0;
    return find_run(heap, class, run);
}

static void *refill(Context *context, SizeClass *class, Bump *bump) {
    Heap *heap = context->heap;
    uint64_t bytes = (uint64_t)class->words * 8;
    count_request(context, bytes);
    Bump run;
    if (!find_fresh_run(heap, class, &run) && !(collect_at_limit(context) && find_fresh_run(heap, class, &run)))
        esk_out_of_memory(context, bytes);
    uint64_t size = (uint64_t)(run.end - run.next);
    heap->since += size;
    heap->handed_out += size;
    const HeapWatcher *watching = watcher();
    if (watching) watching->allocated(context, run.next, size);
    *bump = (Bump){run.next + bytes, run.end};
    return run.next;
}

void *esk_refill(Context *context, uint64_t words) {
    return refill(context, &context->heap->classes[words - 1], &context->bump[words]);
}

static void *allocate_large(Context *context, uint64_t bytes) {
    Heap *heap = context->heap;
    if (bytes > heap->limit * BLOCK_BYTES) esk_out_of_memory(context, bytes);
    uint64_t count = (bytes + BLOCK_BYTES - 1) >> BLOCK_SHIFT;
    count_request(context, count * BLOCK_BYTES);
    uint32_t first = take_blocks(heap, count);
    if (first == NO_BLOCK) {
        collect_at_limit(context);
        first = take_blocks(heap, count);
        if (first == NO_BLOCK) esk_out_of_memory(context, bytes);
    }
    heap->blocks[first] = (Block){BLOCK_LARGE, 0, 1, (uint32_t)count, NO_BLOCK};
    for (uint64_t i = 1; i < count; i++) heap->blocks[first + i] = (Block){BLOCK_TAIL, 0, 1, (uint32_t)i, NO_BLOCK};
    memset(bitmap_of(heap->allocated, first), 0, BITMAP_WORDS * 8);
    bitmap_of(heap->allocated, first)[0] = 1;
    heap->since += count * BLOCK_BYTES;
    heap->handed_out += count * BLOCK_BYTES;
    const HeapWatcher *watching = watcher();
    if (watching)
        watching->allocated(context, heap->base + (uint64_t)first * BLOCK_BYTES, count * BLOCK_BYTES);
    return heap->base + (uint64_t)first * BLOCK_BYTES;
}

__attribute__((noinline)) static void *allocate_more(Context *context, size_t bytes) {
    Heap *heap = context->heap;
    if (bytes > LARGEST_CELL * 8) return allocate_large(context, bytes);
    SizeClass *class = &heap->classes[heap->class_of[(bytes + 63) / 64]];
    char *memory = class->larger.next;
    if (memory == class->larger.end) return refill(context, class, &class->larger);
    class->larger.next = memory + class->words * 8;
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

/* Free roots are chained through their bits; as special values they mean nothing to the collector. */
Value *esk_try_root(Context *context) {
    Heap *heap = context->heap;
    if (!heap->free_root) free_dropped(context);
    if (!heap->free_root) {
        RootChunk *chunk = malloc(sizeof *chunk);
        if (!chunk) return NULL;
        chunk->next = heap->roots;
        heap->roots = chunk;
        for (size_t i = sizeof chunk->cells / sizeof *chunk->cells; i-- > 0;) esk_unroot(context, &chunk->cells[i]);
    }
    Value *root = heap->free_root;
    heap->free_root = esk_pointer(*root);
    *root = ESK_UNDEFINED;
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
    *root = esk_make(TAG_SPECIAL, (uint64_t)(uintptr_t)context->heap->free_root);
    context->heap->free_root = root;
}

void esk_finalize(Context *context, Object *object, void (*last)(Object *)) {
    Heap *heap = context->heap;
    if (heap->finalizer_count == heap->finalizer_room) {
        uint64_t room = heap->finalizer_room ? heap->finalizer_room * 2 : 16;
        Finalizer *more = realloc(heap->finalizers, room * sizeof *more);
        if (!more) esk_out_of_memory(context, room * sizeof *more);
        heap->finalizers = more;
        heap->finalizer_room = room;
    }
    heap->finalizers[heap->finalizer_count++] = (Finalizer){object, last};
}

/* ---- what is known of it ---------------------------------------------------------------------------------------- */

int64_t esk_heap_statistic(Context *context, int64_t which) {
    Heap *heap = context->heap;
    uint64_t number = 0;
    switch (which) {
    case HEAP_LIVE: number = heap->live; break;
    case HEAP_ALLOCATED:
        number = heap->handed_out;
        for (int i = 0; i < CLASS_COUNT; i++) {
            Bump *bump = i < SMALL_WORDS ? &context->bump[i + 1] : &heap->classes[i].larger;
            number -= (uint64_t)(bump->end - bump->next);
        }
        break;
    case HEAP_COLLECTIONS: number = heap->collections; break;
    case HEAP_RESIDENT:
        for (uint64_t block = 0; block < heap->top; block++) number += heap->blocks[block].resident;
        number *= BLOCK_BYTES;
        break;
    case HEAP_LIMIT: number = heap->limit * BLOCK_BYTES; break;
    default: return -1;
    }
    return (int64_t)number;
}

static Value collect_garbage(Context *context) {
    esk_collect(context);
    return ESK_UNSPECIFIED;
}

static Value heap_statistic(Context *context, Value which) {
    if (!esk_is(which, TAG_FIXNUM)) esk_wrong_type(context, "%heap-statistic", 1, which, "an integer");
    int64_t number = esk_heap_statistic(context, esk_integer(which));
    if (number < 0) esk_bad_index(context, "%heap-statistic", 1, which, HEAP_LIMIT + 1);
    return esk_fixnum(number);
}

const Primitive esk_heap_primitives[] = {
    ESK_PRIMITIVE_0("collect-garbage", "(collect-garbage)", collect_garbage,
                    "Frees the memory of objects that nothing refers to. It happens by itself when it is needed."),
    ESK_PRIMITIVE_1("%heap-statistic", "(%heap-statistic which)", heap_statistic,
                    "0: bytes alive after the last collection, 1: bytes allocated so far, 2: collections, "
                    "3: bytes of memory held, 4: the limit in bytes."),
    {0},
};
