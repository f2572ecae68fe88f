/* A loop that is dealt out: every thread of the pool has a share of its pieces (see scheduler.c).
 *
 * The loop is an object on its caller's stack. A worker first says that it is visiting, and then looks whether the loop
 * is still there; the caller first takes the loop away, and then waits until nobody visits.
 */
#ifndef ESHKOL_DEAL_H
#define ESHKOL_DEAL_H

#include "pool.h"

#define WOKEN 2 /* threads that a thread wakes when it begins with a loop that was dealt out: a tree of calls */

/* The number of a piece of a share that has `length`, now this thread's; -1 when all are taken. */
static int64_t claim_piece(Share *share, uint32_t round, int64_t length)
{
    uint64_t seen = atomic_load_explicit(&share->taken, memory_order_relaxed);
    for (;;) {
        uint32_t taken = (uint32_t)(seen >> 32) == round ? (uint32_t)seen : 0;
        if (taken >= length)
            return -1;
        if (atomic_compare_exchange_weak_explicit(&share->taken, &seen, (uint64_t)round << 32 | (taken + 1),
                                                  memory_order_relaxed, memory_order_relaxed))
            return taken;
    }
}

static void wake_more(eshkol_scheduler *pool, int64_t pieces)
{
    if (pieces > 0 && atomic_load_explicit(&pool->idle.waiters, memory_order_relaxed) > 0)
        eshkol_event_call(&pool->idle, pieces < WOKEN ? (int)pieces : WOKEN);
}

/* Pieces of the share `own`, then of those behind it. A visitor, if it finds something to do, wakes others; the caller
 * has done so already, and has its first piece. */
static void run_shares(Place *me, const Loop *loop, int64_t own, bool visitor)
{
    eshkol_scheduler *pool = me->pool;
    unsigned generation = loop->generation;
    int64_t outer = self.depth, done = 0, steals = 0;
    self.depth = loop->depth;
    for (int64_t k = 0; k < loop->shares; k++) {
        int64_t at = (own + k) % loop->shares;
        int64_t begin = loop->pieces * at / loop->shares, end = loop->pieces * (at + 1) / loop->shares;
        int64_t before = done;
        for (;; done++) {
            bool dealt = !visitor && done == 0;
            int64_t piece = dealt ? 0 : claim_piece(&pool->shares[at], loop->round, end - begin);
            if (piece < 0)
                break;
            if (visitor && done == 0)
                wake_more(pool, loop->pieces - 2);
            run_piece(loop, begin + piece);
            if (!is_current(generation))
                return; /* as in run_item */
        }
        steals += done > before && (visitor || k > 0);
        if (k == 0) /* the others' are in their caches: ask for all at once */
            for (int64_t other = 0; other < loop->shares; other++)
                __builtin_prefetch(&pool->shares[other]);
    }
    self.depth = outer;
    count_up(&me->tasks, done);
    count_up(&me->steals, steals);
}

/* Whether a loop is dealt out that this worker has not yet seen the end of. */
static bool deal_waits(Place *me)
{
    eshkol_scheduler *pool = me->pool;
    return atomic_load_explicit(&pool->dealt, memory_order_relaxed) != NULL
           && atomic_load_explicit(&pool->round, memory_order_relaxed) != me->seen;
}

/* A worker takes part in the loop that is dealt out; false when there is none. */
static bool visit(Place *me)
{
    eshkol_scheduler *pool = me->pool;
    if (!deal_waits(me))
        return false;
    /* With the caller's end: either it sees that we are here, or we see that the loop is gone. */
    atomic_store_explicit(&me->visiting, true, memory_order_seq_cst);
    Loop *loop = atomic_load_explicit(&pool->dealt, memory_order_seq_cst);
    if (loop != NULL) {
        unsigned generation = loop->generation;
        me->seen = loop->round;
        run_shares(me, loop, (me - pool->places - CALLERS + 1) % loop->shares, true);
        if (!is_current(generation))
            return true;
    }
    atomic_store_explicit(&me->visiting, false, memory_order_seq_cst); /* what the bodies wrote is visible to it */
    atomic_thread_fence(memory_order_seq_cst); /* pairs with the one before sleeping, as in announce */
    if (atomic_load_explicit(&pool->joining.waiters, memory_order_relaxed) > 0)
        eshkol_event_call(&pool->joining, INT_MAX);
    return loop != NULL;
}

static bool is_visited(eshkol_scheduler *pool)
{
    int workers = atomic_load_explicit(&pool->threads, memory_order_relaxed);
    for (int k = 0; k < workers; k++)
        if (atomic_load_explicit(&pool->places[CALLERS + k].visiting, memory_order_seq_cst))
            return true;
    return false;
}

/* Deals the loop out; false where another loop is. */
static bool deal(eshkol_scheduler *pool, Loop *loop, int64_t workers)
{
    if (loop->pieces > UINT32_MAX || atomic_load_explicit(&pool->dealing, memory_order_relaxed)
        || atomic_exchange_explicit(&pool->dealing, true, memory_order_acquire))
        return false;
    loop->shares = loop->pieces < workers ? loop->pieces : workers;
    loop->round = atomic_load_explicit(&pool->round, memory_order_relaxed) + 1;
    atomic_store_explicit(&pool->round, loop->round, memory_order_relaxed);
    atomic_store_explicit(&pool->shares[0].taken, (uint64_t)loop->round << 32 | 1, memory_order_relaxed);
    atomic_store_explicit(&pool->dealt, loop, memory_order_seq_cst);
    atomic_thread_fence(memory_order_seq_cst); /* as in announce: we see who sleeps, or they see the loop */
    wake_more(pool, loop->pieces - 1);
    return true;
}

#endif
