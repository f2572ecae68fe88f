/* Collections: when they happen, what they do, and what becomes of memory afterwards. See heap.h for their kinds.
 *
 * In: requests for memory that are due, and the wishes of programs. Out: free cells and blocks, finalizers that have
 * run, names that are forgotten, and statistics. A collection of the young costs what survives it, the roots and the
 * stack; it comes after so many bytes that this is little. One of all begins when the old are half as many again as the
 * last one left, and ends, slice by slice, when they are about twice as many. It happens at once where a program asks
 * for it and where memory has run out.
 */
#define _GNU_SOURCE
#include "heap.h"

#include <time.h>

enum { STACK_CLEARED = 16 << 10 };
enum { LEAST_GROWTH = 8 << 20 /* of the old */, SMALL = 64 << 20 /* bytes alive */ };
enum { LONG = 10000000, SHORT = 4000000 /* nanoseconds of a collection of the young */, LEAST_SHARE = 1 << 20 };
enum { LONG_VECTOR = 1 << 16 /* items: more than a cell holds */ };
enum { MOST_SHARES = 64 /* as much for each thread, up to so many */ };
enum { SLICE = 8000000 /* nanoseconds */, SLICE_OBJECTS = 1 << 16, MOST_OBJECTS = 1 << 20 };
enum { OBJECT = 32 /* bytes, roughly */ };
enum { RELEASED = 512 /* blocks whose pages go back to the system at a time */ };

static uint64_t read_clock(clockid_t clock) {
    struct timespec now;
    clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

uint64_t esk_now(void) { return read_clock(CLOCK_MONOTONIC); }

/* ---- when ------------------------------------------------------------------------------------------------------- */

static uint64_t all_alive(const Heap *heap) { return heap->live + esk_units_weight(heap); }

static void set_threshold(Context *context, const char *stack_low) {
    Heap *heap = context->heap;
    uint64_t stack = 0;
    for (Entry *entry = context->entry; entry; entry = entry->outer) stack = (uint64_t)(entry->base - stack_low);
    uint64_t threads = heap->contexts < MOST_SHARES ? heap->contexts : MOST_SHARES;
    heap->threshold = threads * heap->share + stack; /* the stack is looked at as well */
    heap->since = 0;
}

/* Much may survive, or much may have been written to: then it is better to look sooner. */
static void set_share(Heap *heap, uint64_t took) {
    if (took > LONG && heap->share > LEAST_SHARE) heap->share /= 2;
    else if (took < SHORT && heap->share < THRESHOLD) heap->share *= 2;
}

static void set_goal(Heap *heap) {
    uint64_t alive = all_alive(heap), growth = alive / 2;
    heap->whole_at = alive + (growth > LEAST_GROWTH ? growth : LEAST_GROWTH);
}

static void set_outside(Heap *heap) {
    heap->outside_since = 0;
    heap->outside_threshold = heap->outside > LEAST_OUTSIDE ? heap->outside : LEAST_OUTSIDE;
}

void esk_set_up_collections(Heap *heap) {
    heap->threshold = heap->share = THRESHOLD;
    heap->outside_threshold = LEAST_OUTSIDE;
    heap->touched = NO_BLOCK;
    set_goal(heap);
}

/* ---- what is not alive ------------------------------------------------------------------------------------------ */

_Thread_local uint64_t esk_outside_freed;

static void run_finalizers(Heap *heap, uint64_t from, bool all) {
    uint64_t kept = from, count = heap->finalizer_count;
    for (uint64_t i = from; i < count; i++) {
        Finalizer finalizer = heap->finalizers[i];
        if (all || !esk_is_alive(heap, finalizer.object)) finalizer.last(finalizer.object);
        else heap->finalizers[kept++] = finalizer;
    }
    heap->finalizer_count = heap->finalizers_old = kept;
    heap->outside -= esk_outside_freed;
    esk_outside_freed = 0;
}

void esk_run_finalizers(Heap *heap, bool all) { run_finalizers(heap, 0, all); }

/* In a few instructions; __builtin_popcountll is a call of a function where not every processor has one for it. */
static uint64_t bits_in(uint64_t word) {
    word -= word >> 1 & 0x5555555555555555u;
    word = (word & 0x3333333333333333u) + (word >> 2 & 0x3333333333333333u);
    return ((word + (word >> 4)) & 0x0F0F0F0F0F0F0F0Fu) * 0x0101010101010101u >> 56;
}

static bool is_empty(const uint64_t *bits) {
    uint64_t any = 0;
    for (int i = 0; i < BITMAP_WORDS; i++) any |= bits[i];
    return !any;
}

/* What is alive is what is allocated, and old now. */
static void sweep_cells(Heap *heap, uint32_t index, bool all) {
    Block *block = &heap->blocks[index];
    SizeClass *class = &heap->classes[block->class];
    uint64_t *allocated = esk_bitmap(heap->allocated, index), *marked = esk_bitmap(heap->marked, index);
    uint64_t *reached = esk_bitmap(heap->reached, index), count = 0;
    if (!all && is_empty(marked)) { /* as most blocks of the young are; what is allocated there counts no more */
        heap->live -= (uint64_t)block->span * class->words * 8;
        block->span = 0;
        esk_give_blocks(heap, index, 1);
        return;
    }
    for (int i = 0; i < BITMAP_WORDS; i++) {
        if (all) {
            marked[i] = reached[i];
            reached[i] = 0;
        }
        allocated[i] = marked[i];
        if (marked[i]) count += bits_in(marked[i]);
    }
    heap->live += (count - block->span) * class->words * 8;
    block->span = (uint32_t)count;
    if (!count) esk_give_blocks(heap, index, 1);
    else if (count < class->cells) {
        block->next = class->list;
        class->list = index;
    }
}

static void sweep_large(Heap *heap, uint32_t index, bool all) {
    Block *block = &heap->blocks[index];
    uint64_t *allocated = esk_bitmap(heap->allocated, index), *marked = esk_bitmap(heap->marked, index);
    uint64_t *reached = esk_bitmap(heap->reached, index), bytes = (uint64_t)block->span * BLOCK_BYTES;
    if (all) {
        marked[0] = reached[0];
        reached[0] = 0;
    }
    allocated[0] = marked[0];
    if (allocated[0]) heap->live += block->counted ? 0 : bytes;
    else heap->live -= block->counted ? bytes : 0;
    block->counted = 1;
    if (!allocated[0]) esk_give_blocks(heap, index, block->span);
}

static void sweep_young(Heap *heap) {
    for (uint32_t index = heap->touched, next; index != NO_BLOCK; index = next) {
        next = heap->blocks[index].next_touched;
        heap->blocks[index].touched = 0;
        if (heap->blocks[index].kind == BLOCK_LARGE) sweep_large(heap, index, false);
        else sweep_cells(heap, index, false);
    }
    heap->touched = NO_BLOCK;
}

/* From the last block to the first, so that the lists of those with free cells begin with the lowest. */
static void sweep_all(Heap *heap) {
    for (int i = 0; i < CLASS_COUNT; i++) heap->classes[i].list = NO_BLOCK;
    for (uint64_t index = heap->top; index-- > 0;) {
        Block *block = &heap->blocks[index];
        block->touched = 0;
        if (block->kind == BLOCK_LARGE) sweep_large(heap, (uint32_t)index, true);
        else if (block->kind == BLOCK_CELLS) sweep_cells(heap, (uint32_t)index, true);
    }
    heap->touched = NO_BLOCK;
}

/* Tracing it as one of the young would be a long pause; as an old one it is looked at where it was written to. */
void esk_make_old(Context *context, Vector *vector) {
    Heap *heap = context->heap;
    uint64_t offset = (uint64_t)((char *)vector - heap->base), granule = offset >> 3;
    if (vector->length < LONG_VECTOR || offset >= heap->extent) return;
    esk_lock(heap);
    heap->marked[granule / 64] |= (uint64_t)1 << (granule % 64);
    if (heap->marking) heap->reached[granule / 64] |= (uint64_t)1 << (granule % 64);
    esk_unlock(heap);
    esk_written(context, vector->items);
}

/* ---- collections ------------------------------------------------------------------------------------------------ */

/* Gives who watches the heap: the same hears of the end. */
static const HeapWatcher *begin(Context *context) {
    Heap *heap = context->heap;
    const HeapWatcher *watcher = esk_watcher();
    heap->collecting = true;
    if (watcher) watcher->collecting(context);
    esk_free_dropped(context);
    for (Context *each = heap->first; each; each = each->next) {
        esk_drop_runs(each);
        esk_drop_areas(each);
    }
    heap->recent -= heap->recent / 64;
    if (heap->recent < heap->used) heap->recent = heap->used;
    return watcher;
}

static void end(Context *context, const HeapWatcher *watcher, const char *stack_low, uint64_t released) {
    Heap *heap = context->heap;
    set_threshold(context, stack_low);
    heap->collections++;
    heap->forced = false;
    if (heap->used <= heap->limit - heap->limit / 64) heap->in_reserve = false;
    esk_release_pages(heap, released);
    if (watcher) watcher->collected(context);
    heap->collecting = false;
}

/* What was not reached is free. */
static void finish_all(Heap *heap) {
    run_finalizers(heap, 0, false);
    esk_sweep_ephemerons(heap, true);
    esk_drop_symbols(heap, true);
    sweep_all(heap);
    esk_sweep_units(heap);
    heap->recent -= heap->recent / 8;
    heap->marking = false;
    heap->wholes++;
    set_goal(heap);
    set_outside(heap);
}

/* At least three times as much is marked as the old have grown by. What is freed in the end waits for the next time, if
 * marking has taken long: then there will be little to mark. */
static void mark_slice(Heap *heap, uint64_t grown) {
    uint64_t objects = SLICE_OBJECTS + 3 * grown / OBJECT; /* large ones grow by much, and are few */
    Budget budget = {(int64_t)(objects < MOST_OBJECTS ? objects : MOST_OBJECTS), esk_now() + SLICE};
    if (heap->stress) budget = (Budget){(int64_t)1 << (heap->slices / 8 < 40 ? heap->slices / 8 : 40), 0};
    heap->slices++;
    int64_t most = budget.objects;
    bool marked = esk_mark_slice(heap, &budget);
    if (marked && (budget.objects > most / 2 || heap->stress || heap->live < SMALL)) finish_all(heap);
}

static void collect_young(Context *context, char *stack_low) {
    Heap *heap = context->heap;
    const HeapWatcher *watcher = begin(context);
    uint64_t before = heap->live, start = read_clock(CLOCK_THREAD_CPUTIME_ID);
    esk_mark_young(context, stack_low);
    set_share(heap, read_clock(CLOCK_THREAD_CPUTIME_ID) - start);
    run_finalizers(heap, heap->finalizers_old, false);
    esk_sweep_ephemerons(heap, false);
    esk_drop_symbols(heap, false);
    sweep_young(heap);
    if (heap->marking) mark_slice(heap, heap->live > before ? heap->live - before : 0);
    else if (heap->stress || all_alive(heap) > heap->whole_at) {
        heap->marking = true; /* the next collection of the young begins it, and has more to do */
        if (heap->share >= 4 * LEAST_SHARE) heap->share /= 4;
        heap->slices = 0;
    }
    end(context, watcher, stack_low, RELEASED);
}

static void collect_all(Context *context, char *stack_low) {
    Heap *heap = context->heap;
    const HeapWatcher *watcher = begin(context);
    if (heap->marking) memset(heap->reached, 0, heap->top * BITMAP_WORDS * 8);
    heap->waiting.depth = 0;
    heap->waiting.overflowed = false;
    esk_forget_reached(heap);
    esk_clear_cards(heap);
    esk_mark_all(context, stack_low);
    finish_all(heap);
    end(context, watcher, stack_low, UINT64_MAX);
}

/* Frames to come will not find what old ones left behind, and hold on to it in places they have not written to yet. */
__attribute__((noinline)) void esk_clear_stack(void) {
    char below[STACK_CLEARED];
    memset(below, 0, sizeof below);
    __asm__ volatile("" : : "r"(below) : "memory");
}

/* Registers that belong to callers go to the stack, where they are looked at. False where another thread has collected
 * instead. */
__attribute__((noinline)) static bool collect(Context *context, void kind(Context *, char *)) {
    jmp_buf registers;
    memset(&registers, 0, sizeof registers); /* not all of it is written */
    __builtin_unwind_init();
    (void)_setjmp(registers);
    char *frame = __builtin_frame_address(0), *low = frame < (char *)&registers ? frame : (char *)&registers;
    Heap *heap = context->heap;
    if (heap->several) {
        uint64_t start = esk_now();
        if (!esk_stop_others(context, low)) return false;
        heap->pauses.stopping += esk_now() - start;
    }
    /* another thread may have begun to pause it */
    if (!__atomic_load_n(&heap->paused, __ATOMIC_RELAXED)) kind(context, low);
    if (heap->several) esk_let_others_go(context);
    esk_clear_stack();
    __asm__ volatile("" : : "r"(&registers) : "memory");
    return true;
}

static bool collect_unasked(Context *context, void kind(Context *, char *)) {
    Heap *heap = context->heap;
    Pauses *pauses = &heap->pauses;
    uint64_t start = esk_now(), worked = read_clock(CLOCK_THREAD_CPUTIME_ID);
    if (!collect(context, kind)) return false;
    uint64_t took = esk_now() - start;
    worked = read_clock(CLOCK_THREAD_CPUTIME_ID) - worked;
    esk_lock(heap);
    pauses->count++;
    pauses->total += took;
    if (took > pauses->longest) pauses->longest = took;
    if (worked > pauses->most_work) pauses->most_work = worked;
    esk_unlock(heap);
    return true;
}

static void collect_all_unasked(Context *context) {
    while (!collect_unasked(context, collect_all)) continue; /* others may have collected the young alone */
}

void esk_step(Context *context) { collect_unasked(context, collect_young); }

void esk_collect(Context *context) {
    if (__atomic_load_n(&context->heap->paused, __ATOMIC_RELAXED) || context->heap->collecting) return;
    while (!collect(context, collect_all)) continue;
}

void esk_collect_when_due(Context *context) {
    const Heap *heap = context->heap;
    if (heap->stress || __atomic_load_n(&heap->since, __ATOMIC_RELAXED) > heap->threshold) esk_collect(context);
}

bool esk_collect_at_limit(Context *context) {
    Heap *heap = context->heap;
    uint64_t little = heap->limit / 64;
    if (!esk_may_collect(context)) return false;
    esk_lock(heap);
    bool again = heap->forced && __atomic_load_n(&heap->since, __ATOMIC_RELAXED) < little * BLOCK_BYTES;
    esk_unlock(heap);
    collect_all_unasked(context);
    esk_lock(heap);
    heap->forced = true;
    bool enough = heap->in_reserve || heap->used <= heap->limit - little ||
                  (!again && heap->live <= (heap->limit - little) * BLOCK_BYTES);
    esk_unlock(heap);
    return enough;
}

/* What is outside may be held by objects that are old, but not alive: only where marking all takes long, the young come
 * first. */
bool esk_outside(Context *context, int64_t bytes) {
    Heap *heap = context->heap;
    heap->outside += (uint64_t)bytes;
    heap->outside_since += (uint64_t)bytes;
    if (heap->outside_since <= heap->outside_threshold || !esk_may_collect(context)) return false;
    uint64_t before = heap->outside;
    if (heap->live > SMALL) esk_step(context);
    if (heap->live <= SMALL || before - heap->outside < heap->outside_threshold / 2)
        collect_all_unasked(context);
    heap->outside_since = 0;
    return true;
}

void esk_pause_collection(Context *context, int64_t change) {
    __atomic_add_fetch(&context->heap->paused, change, __ATOMIC_RELAXED);
}
