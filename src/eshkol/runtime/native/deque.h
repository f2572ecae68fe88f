/* The work-stealing deque of Chase and Lev, with the memory orders of Lê, Pop, Cohen and Zappa Nardelli,
 * "Correct and Efficient Work-Stealing for Weak Memory Models" (PPoPP 2013).
 *
 * One owner pushes and pops at the bottom; any thread steals from the top. Three things differ from the paper:
 *
 *  - Capacity is fixed. A full deque already offers plenty to steal, so its owner simply keeps the work instead of
 *    splitting it further. No memory is ever allocated here, and nothing can fail.
 *  - An item is four words, not one, so that work needs no task object. A thief may read a torn item while the owner
 *    writes over it, but then `top` has moved and its compare-and-swap fails, and the torn item is dropped.
 *  - `bottom` is stored with release order instead of after a release fence. It means the same to the hardware's
 *    observers, does not lean on release sequences, and thread sanitizers (which know no fences) understand it.
 */
#ifndef ESHKOL_DEQUE_H
#define ESHKOL_DEQUE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ESHKOL_CACHE_LINE 128 /* two lines of 64: neighbours are prefetched in pairs */
#define ESHKOL_DEQUE_CAPACITY 128 /* a power of two */

/* A stretch of the pieces of a loop. The depth lies in the item because a thief must judge the item before it owns
 * it, when `loop` may already point to a stack frame that is gone. */
typedef struct {
    void *loop;
    int64_t begin;
    int64_t end;
    int64_t depth;
} eshkol_item;

typedef struct {
    _Atomic(void *) loop;
    _Atomic int64_t begin;
    _Atomic int64_t end;
    _Atomic int64_t depth;
} eshkol_cell;

typedef struct {
    _Alignas(ESHKOL_CACHE_LINE) _Atomic int64_t top; /* written by thieves (and by the owner for the last item) */
    _Alignas(ESHKOL_CACHE_LINE) _Atomic int64_t bottom; /* written by the owner alone */
    eshkol_cell cells[ESHKOL_DEQUE_CAPACITY];
} eshkol_deque;

typedef enum { ESHKOL_STEAL_EMPTY, ESHKOL_STEAL_LOST, ESHKOL_STEAL_UNWANTED, ESHKOL_STEAL_GOT } eshkol_steal;

static inline void eshkol_deque_init(eshkol_deque *deque)
{
    atomic_init(&deque->top, 0);
    atomic_init(&deque->bottom, 0);
}

static inline void eshkol_deque_write(eshkol_deque *deque, int64_t at, const eshkol_item *item)
{
    eshkol_cell *cell = &deque->cells[at & (ESHKOL_DEQUE_CAPACITY - 1)];
    atomic_store_explicit(&cell->loop, item->loop, memory_order_relaxed);
    atomic_store_explicit(&cell->begin, item->begin, memory_order_relaxed);
    atomic_store_explicit(&cell->end, item->end, memory_order_relaxed);
    atomic_store_explicit(&cell->depth, item->depth, memory_order_relaxed);
}

static inline void eshkol_deque_read(eshkol_deque *deque, int64_t at, eshkol_item *item)
{
    eshkol_cell *cell = &deque->cells[at & (ESHKOL_DEQUE_CAPACITY - 1)];
    item->loop = atomic_load_explicit(&cell->loop, memory_order_relaxed);
    item->begin = atomic_load_explicit(&cell->begin, memory_order_relaxed);
    item->end = atomic_load_explicit(&cell->end, memory_order_relaxed);
    item->depth = atomic_load_explicit(&cell->depth, memory_order_relaxed);
}

/* Owner only: where the next item would go. Items at and above a remembered bottom were pushed since. */
static inline int64_t eshkol_deque_bottom(eshkol_deque *deque)
{
    return atomic_load_explicit(&deque->bottom, memory_order_relaxed);
}

/* Owner only: whether an item at or above `base` is still waiting, as far as the owner can see. */
static inline bool eshkol_deque_holds(eshkol_deque *deque, int64_t base)
{
    int64_t bottom = eshkol_deque_bottom(deque);
    return bottom > base && bottom > atomic_load_explicit(&deque->top, memory_order_relaxed);
}

/* Any thread: whether there seems to be something to steal. */
static inline bool eshkol_deque_visible(eshkol_deque *deque)
{
    int64_t top = atomic_load_explicit(&deque->top, memory_order_relaxed);
    return atomic_load_explicit(&deque->bottom, memory_order_relaxed) > top;
}

/* Owner only; false when full. */
static inline bool eshkol_deque_push(eshkol_deque *deque, const eshkol_item *item)
{
    int64_t bottom = atomic_load_explicit(&deque->bottom, memory_order_relaxed);
    /* acquire: the thief that freed the cell has finished reading it before we write over it */
    int64_t top = atomic_load_explicit(&deque->top, memory_order_acquire);
    if (bottom - top >= ESHKOL_DEQUE_CAPACITY)
        return false;
    eshkol_deque_write(deque, bottom, item);
    /* release: who sees the new bottom sees the item, and all that the owner did before */
    atomic_store_explicit(&deque->bottom, bottom + 1, memory_order_release);
    return true;
}

/* Owner only; the newest item, or false when there is none. */
static inline bool eshkol_deque_pop(eshkol_deque *deque, eshkol_item *item)
{
    int64_t bottom = atomic_load_explicit(&deque->bottom, memory_order_relaxed) - 1;
    atomic_store_explicit(&deque->bottom, bottom, memory_order_release);
    /* The heart of the algorithm: our claim on the item must be visible before we look at what thieves took. The
     * same fence stands between the two loads of steal: of an owner and a thief after one item, one sees the other. */
    atomic_thread_fence(memory_order_seq_cst);
    int64_t top = atomic_load_explicit(&deque->top, memory_order_relaxed);
    if (top > bottom) { /* it was empty */
        atomic_store_explicit(&deque->bottom, bottom + 1, memory_order_release);
        return false;
    }
    eshkol_deque_read(deque, bottom, item);
    if (top < bottom)
        return true; /* more than one item: no thief can reach this one */
    /* the last item: whoever moves top has it */
    bool won = atomic_compare_exchange_strong_explicit(&deque->top, &top, top + 1, memory_order_seq_cst,
                                                       memory_order_relaxed);
    atomic_store_explicit(&deque->bottom, bottom + 1, memory_order_release);
    return won;
}

/* Any thread; the oldest item. With a `loop`, only an item of that loop or one deeper than `depth` is taken. */
static inline eshkol_steal eshkol_deque_steal(eshkol_deque *deque, eshkol_item *item, const void *loop, int64_t depth)
{
    int64_t top = atomic_load_explicit(&deque->top, memory_order_acquire);
    atomic_thread_fence(memory_order_seq_cst); /* see pop */
    int64_t bottom = atomic_load_explicit(&deque->bottom, memory_order_acquire);
    if (top >= bottom)
        return ESHKOL_STEAL_EMPTY;
    eshkol_deque_read(deque, top, item);
    if (loop != NULL && item->loop != loop && item->depth <= depth)
        return ESHKOL_STEAL_UNWANTED;
    /* The release half of seq_cst keeps the reads above before the moment the owner may reuse the cell. */
    if (!atomic_compare_exchange_strong_explicit(&deque->top, &top, top + 1, memory_order_seq_cst,
                                                 memory_order_relaxed))
        return ESHKOL_STEAL_LOST;
    return ESHKOL_STEAL_GOT;
}

#endif
