/* The thread pool of scheduler.h.
 *
 * A parallel loop is an object on its caller's stack: the body, and how many pieces are still to be done. A stretch of
 * pieces is an item (deque.h). A thread that has a stretch cuts halves off and leaves them in its own deque: at once
 * while the stretch is large, so that work spreads quickly, and later only when thieves have emptied the deque (lazy
 * binary splitting), so that a loop nobody helps with costs little.
 *
 * A loop called from outside the pool is dealt out instead (deal.h): every thread has a share of its pieces, takes them
 * one by one, and then takes what is left of the others'. No thread has to find the work first, and when a loop is run
 * again, its pieces meet the same threads and what those have in their caches. There is one such loop at a time;
 * another that is called meanwhile, and a loop in a body, are split and stolen as above.
 *
 * A thread with nothing to do spins for a moment, then sleeps on an event (event.h). There are two: workers without
 * any work sleep on `idle`; callers that wait for the end of their loop sleep on `joining`.
 *
 * Why nothing deadlocks: of the unfinished loops take the one begun last. Its pieces are either running, and not
 * waiting for anything, since whatever they would wait for was begun later; or they lie in the deque of a thread that
 * comes back to them, since a waiting thread first takes what it has itself pushed since it began to wait, and does not
 * leave before all of that is taken. Pieces of a loop that was dealt out are taken by its caller, if by no one else.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* sched_getaffinity */
#endif

#include "scheduler.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "deal.h"
#include "pool.h"

#define SPIN_NANOSECONDS 30000 /* a few times what falling asleep and waking cost */
#define PIECES_PER_WORKER 8 /* of a loop without a grain: enough to even out, few enough to be cheap */
#define STACK_BYTES (4 << 20) /* of a thread: native kernels keep tiles there, more than some systems give */

/* --- small things --- */

static int usable_cpus(void)
{
#ifdef __linux__
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) == 0 && CPU_COUNT(&set) > 0)
        return CPU_COUNT(&set);
#endif
    long online = sysconf(_SC_NPROCESSORS_ONLN); /* also where a set of 1024 CPUs is too small */
    return online > 0 ? (int)online : 1;
}

static uint32_t next_random(uint32_t *state)
{
    uint32_t x = *state;
    x ^= x << 13;
    x ^= x >> 17;
    x ^= x << 5;
    return *state = x;
}

/* --- running --- */

/* After a push: wake someone who can take it, unless someone is looking already. */
static void announce(eshkol_scheduler *pool)
{
    /* With the fence of those who go to sleep: either we see them, or they see what we pushed. */
    atomic_thread_fence(memory_order_seq_cst);
    if (atomic_load_explicit(&pool->searching, memory_order_relaxed) > 0)
        return;
    if (atomic_load_explicit(&pool->idle.waiters, memory_order_relaxed) > 0)
        eshkol_event_call(&pool->idle, 1);
    else if (atomic_load_explicit(&pool->joining.waiters, memory_order_relaxed) > 0)
        eshkol_event_call(&pool->joining, INT_MAX); /* not every one may take it, so all must look */
}

static void run_item(Place *me, const eshkol_item *item)
{
    Loop *loop = item->loop;
    eshkol_scheduler *pool = me->pool;
    int64_t begin = item->begin, end = item->end, done = 0;
    int64_t base = eshkol_deque_bottom(&me->deque), outer = self.depth;
    self.depth = loop->depth;
    while (begin < end) {
        int64_t length = end - begin;
        if (length > 1 && (length > loop->eager || !eshkol_deque_holds(&me->deque, base))) {
            eshkol_item half = {loop, begin + length / 2, end, loop->depth};
            if (eshkol_deque_push(&me->deque, &half)) {
                end = half.begin;
                announce(pool);
                continue;
            }
        }
        run_piece(loop, begin++);
        done++;
        if (!is_current(loop->generation))
            return; /* the body forked and this is the child: the place may be someone else's already */
    }
    self.depth = outer;
    count_up(&me->tasks, done);
    /* Release: what the bodies wrote is visible to the caller. After the last piece `loop` must not be touched. */
    if (atomic_fetch_sub_explicit(&loop->remaining, done, memory_order_acq_rel) == done) {
        atomic_thread_fence(memory_order_seq_cst); /* pairs with the one before sleeping, as in announce */
        if (atomic_load_explicit(&pool->joining.waiters, memory_order_relaxed) > 0)
            eshkol_event_call(&pool->joining, INT_MAX);
    }
}

/* --- finding work --- */

/* One victim; true with an item. `again` is set when a race was lost, that is, when there may be more. */
static bool steal_from(Place *me, Place *victim, const Loop *mine, eshkol_item *item, bool *again)
{
    if (victim == me)
        return false;
    switch (eshkol_deque_steal(&victim->deque, item, mine, mine ? mine->depth : 0)) {
    case ESHKOL_STEAL_GOT:
        count_up(&me->steals, 1);
        return true;
    case ESHKOL_STEAL_LOST:
        *again = true;
        return false;
    default:
        return false;
    }
}

/* All victims, from a random one on, until there is nothing to be had for certain. A thread that waits for the loop
 * `mine` takes only its items and deeper ones: anything else could keep it long after the loop has ended, and pile up
 * loop upon loop on its stack. */
static bool steal(Place *me, const Loop *mine, eshkol_item *item)
{
    eshkol_scheduler *pool = me->pool;
    bool again;
    do {
        again = false;
        uint32_t workers = (uint32_t)atomic_load_explicit(&pool->threads, memory_order_acquire);
        uint32_t at = next_random(&me->random) % (workers + 1);
        for (uint32_t k = 0; k <= workers; k++, at = at == workers ? 0 : at + 1) {
            if (at < workers) {
                if (steal_from(me, &pool->places[CALLERS + at], mine, item, &again))
                    return true;
                continue;
            }
            uint32_t callers = atomic_load_explicit(&pool->callers, memory_order_acquire);
            for (int c = 0; callers != 0; c++, callers >>= 1)
                if ((callers & 1) && steal_from(me, &pool->places[c], mine, item, &again))
                    return true;
        }
    } while (again);
    return false;
}

static bool work_is_visible(eshkol_scheduler *pool)
{
    int places = CALLERS + atomic_load_explicit(&pool->threads, memory_order_relaxed);
    for (int k = 0; k < places; k++)
        if (eshkol_deque_visible(&pool->places[k].deque))
            return true;
    return false;
}

/* A worker that was looking found something. If it was the only one looking, pushes since then woke nobody: make good
 * for it. */
static void end_search(eshkol_scheduler *pool)
{
    if (atomic_fetch_sub_explicit(&pool->searching, 1, memory_order_seq_cst) != 1)
        return;
    atomic_thread_fence(memory_order_seq_cst); /* with announce: it saw us looking, or we see what it pushed */
    if (atomic_load_explicit(&pool->idle.waiters, memory_order_relaxed) > 0 && work_is_visible(pool))
        eshkol_event_call(&pool->idle, 1);
}

/* Whether there is no more reason to look: the loop waited for has ended, or a worker's pool is being freed. */
static bool is_over(Place *me, unsigned generation, Loop *mine)
{
    if (!is_current(generation))
        return true;
    if (mine != NULL && mine->shares > 0)
        return !is_visited(me->pool); /* its caller asks this when all pieces are taken */
    if (mine != NULL)
        return atomic_load_explicit(&mine->remaining, memory_order_acquire) == 0;
    return atomic_load_explicit(&me->pool->stop, memory_order_seq_cst);
}

/* Whether a thread that looks for something to steal should leave off: it is over, or a worker has a share. */
static bool is_called(Place *me, unsigned generation, Loop *mine)
{
    return is_over(me, generation, mine) || (mine == NULL && deal_waits(me));
}

/* Spin for a while, then sleep once; true with an item, false if woken (or over) without one. */
static bool spin_and_sleep(Place *me, unsigned generation, Loop *mine, eshkol_item *item)
{
    eshkol_scheduler *pool = me->pool;
    eshkol_event *event = mine != NULL ? &pool->joining : &pool->idle;
    bool found = false, over = false;
    if (mine == NULL)
        atomic_fetch_add_explicit(&pool->searching, 1, memory_order_seq_cst);
    int64_t until = nanoseconds() + SPIN_NANOSECONDS;
    do {
        for (int k = 0; k < 8 && !(mine == NULL && deal_waits(me)); k++)
            relax();
        over = is_called(me, generation, mine);
        found = !over && steal(me, mine, item);
    } while (!found && !over && nanoseconds() < until);
    if (found || over) {
        if (mine == NULL)
            end_search(pool);
        return found;
    }
    atomic_fetch_add_explicit(&event->waiters, 1, memory_order_seq_cst);
    if (mine == NULL)
        atomic_fetch_sub_explicit(&pool->searching, 1, memory_order_seq_cst);
    atomic_thread_fence(memory_order_seq_cst); /* from here on, who pushes or finishes sees that we sleep ... */
    uint32_t epoch = atomic_load_explicit(&event->epoch, memory_order_seq_cst);
    found = steal(me, mine, item); /* ... and what was pushed or finished before, we see */
    if (!found && !is_called(me, generation, mine)) {
        count_up(&me->sleeps, 1);
        eshkol_event_wait(event, epoch);
    }
    atomic_fetch_sub_explicit(&event->waiters, 1, memory_order_seq_cst);
    return found;
}

/* Runs what there is until the loop `mine` has ended (for a worker, the pool): first what this thread itself has pushed
 * since its deque ended at `base`. That must be gone before it leaves even when the loop has ended, because it may
 * belong to another, deeper loop it was helping, and nobody looks for work in the place of a caller that has left. */
static void work_until_over(Place *me, int64_t base, unsigned generation, Loop *mine)
{
    eshkol_item item;
    while (is_current(generation)) {
        if (eshkol_deque_bottom(&me->deque) > base && eshkol_deque_pop(&me->deque, &item))
            run_item(me, &item);
        else if (is_over(me, generation, mine))
            return;
        else if (mine == NULL && visit(me))
            continue;
        else if (steal(me, mine, &item) || spin_and_sleep(me, generation, mine, &item))
            run_item(me, &item);
    }
}

static void *worker(void *argument)
{
    Place *me = argument;
    self.pool = me->pool;
    self.place = me;
    self.depth = 0;
    unsigned generation = atomic_load_explicit(&me->pool->generation, memory_order_relaxed);
    work_until_over(me, 0, generation, NULL);
    if (!is_current(generation)) {
        /* A body forked on this thread, and its child came back: there is no caller here to return to. Ending the
         * thread alone would leave a process without its main thread, which nobody could wait for. */
        static const char message[] = "eshkol: a child forked inside a parallel loop left it; the child ends here\n";
        ssize_t written = write(STDERR_FILENO, message, sizeof message - 1);
        _exit(written < 0 ? 2 : 1);
    }
    return NULL;
}

/* --- the pool --- */

static pthread_once_t fork_handler_once = PTHREAD_ONCE_INIT;

static void install_fork_handler(void)
{
    pthread_atfork(NULL, NULL, in_forked_child);
}

/* Everything but the memory; also after a fork. Fewer threads than wanted are no error. */
static void start(eshkol_scheduler *pool)
{
    eshkol_event_init(&pool->idle);
    eshkol_event_init(&pool->joining);
    atomic_init(&pool->stop, false);
    atomic_init(&pool->searching, 0);
    atomic_init(&pool->callers, 0);
    atomic_init(&pool->threads, 0);
    atomic_init(&pool->serial_tasks, 0);
    atomic_init(&pool->dealing, false);
    atomic_init(&pool->dealt, NULL);
    atomic_init(&pool->round, 0);
    for (int k = 0; k <= pool->wanted; k++)
        atomic_init(&pool->shares[k].taken, 0);
    for (int k = 0; k < CALLERS + pool->wanted; k++) {
        Place *place = &pool->places[k];
        eshkol_deque_init(&place->deque);
        atomic_init(&place->visiting, false);
        place->seen = 0;
        place->pool = pool;
        place->random = 2463534242u + (uint32_t)k * 2654435761u;
        if (place->random == 0)
            place->random = 1; /* the one state xorshift never leaves */
        atomic_init(&place->tasks, 0);
        atomic_init(&place->steals, 0);
        atomic_init(&place->sleeps, 0);
    }
    atomic_store_explicit(&pool->generation, atomic_load_explicit(&process_generation, memory_order_relaxed),
                          memory_order_release);
    sigset_t every, before;
    sigfillset(&every);
    pthread_sigmask(SIG_SETMASK, &every, &before); /* inherited: signals are for the program's own threads */
    pthread_attr_t attributes;
    bool sized = pthread_attr_init(&attributes) == 0;
    if (sized) /* a refusal leaves the system's own size */
        (void)pthread_attr_setstacksize(&attributes, STACK_BYTES);
    for (int k = 0; k < pool->wanted; k++) {
        Place *place = &pool->places[CALLERS + k];
        if (pthread_create(&place->thread, sized ? &attributes : NULL, worker, place) != 0)
            break;
        atomic_store_explicit(&pool->threads, k + 1, memory_order_release);
    }
    if (sized)
        pthread_attr_destroy(&attributes);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

/* In a forked child the first loop, of whichever thread, starts the pool's threads again. */
static void ensure_current(eshkol_scheduler *pool)
{
    if (is_current(atomic_load_explicit(&pool->generation, memory_order_acquire)))
        return;
    pthread_mutex_lock(&revival);
    if (!is_current(atomic_load_explicit(&pool->generation, memory_order_acquire)))
        start(pool);
    pthread_mutex_unlock(&revival);
}

eshkol_scheduler *eshkol_scheduler_new(int workers)
{
    if (workers < 0) {
        errno = EINVAL;
        return NULL;
    }
    if (workers == 0)
        workers = usable_cpus();
    if (workers > ESHKOL_MAX_WORKERS)
        workers = ESHKOL_MAX_WORKERS;
    pthread_once(&fork_handler_once, install_fork_handler);
    size_t places = sizeof(eshkol_scheduler) + (size_t)(CALLERS + workers - 1) * sizeof(Place);
    size_t bytes = places + (size_t)workers * sizeof(Share); /* both sizes are multiples of a cache line */
    void *memory = NULL;
    if (posix_memalign(&memory, ESHKOL_CACHE_LINE, bytes) != 0) {
        errno = ENOMEM;
        return NULL;
    }
    eshkol_scheduler *pool = memory;
    pool->wanted = workers - 1;
    pool->shares = (Share *)((char *)memory + places);
    start(pool);
    return pool;
}

void eshkol_scheduler_free(eshkol_scheduler *pool)
{
    if (pool == NULL)
        return;
    if (is_current(atomic_load_explicit(&pool->generation, memory_order_acquire))) {
        atomic_store_explicit(&pool->stop, true, memory_order_seq_cst);
        eshkol_event_call(&pool->idle, INT_MAX);
        for (int k = 0; k < atomic_load_explicit(&pool->threads, memory_order_relaxed); k++)
            pthread_join(pool->places[CALLERS + k].thread, NULL);
        eshkol_event_destroy(&pool->idle);
        eshkol_event_destroy(&pool->joining);
    } /* else a forked child that never used it: there are no threads, and the locks may be held by nobody */
    free(pool);
}

int eshkol_scheduler_workers(eshkol_scheduler *pool)
{
    ensure_current(pool);
    return 1 + atomic_load_explicit(&pool->threads, memory_order_acquire);
}

int eshkol_scheduler_busy(eshkol_scheduler *pool)
{
    return is_current(atomic_load_explicit(&pool->generation, memory_order_acquire))
           && atomic_load_explicit(&pool->callers, memory_order_acquire) != 0;
}

void eshkol_scheduler_stats(eshkol_scheduler *pool, eshkol_scheduler_statistics *statistics)
{
    ensure_current(pool);
    eshkol_scheduler_statistics sum = {atomic_load_explicit(&pool->serial_tasks, memory_order_relaxed), 0, 0};
    for (int k = 0; k < CALLERS + pool->wanted; k++) {
        sum.tasks += atomic_load_explicit(&pool->places[k].tasks, memory_order_relaxed);
        sum.steals += atomic_load_explicit(&pool->places[k].steals, memory_order_relaxed);
        sum.sleeps += atomic_load_explicit(&pool->places[k].sleeps, memory_order_relaxed);
    }
    *statistics = sum;
}

/* --- the loop --- */

/* A free place for a thread not of the pool, or NULL. Acquire and release hand the deque from owner to owner. */
static Place *claim_place(eshkol_scheduler *pool)
{
    uint32_t taken = atomic_load_explicit(&pool->callers, memory_order_relaxed);
    while (taken != UINT32_MAX) {
        uint32_t bit = ~taken & (taken + 1); /* the lowest free one */
        if (atomic_compare_exchange_weak_explicit(&pool->callers, &taken, taken | bit, memory_order_acq_rel,
                                                  memory_order_relaxed))
            return &pool->places[__builtin_ctz(bit)];
    }
    return NULL;
}

static void release_place(eshkol_scheduler *pool, Place *place)
{
    atomic_fetch_and_explicit(&pool->callers, ~(UINT32_C(1) << (place - pool->places)), memory_order_acq_rel);
}

static int run_alone(eshkol_scheduler *pool, const Loop *loop, int64_t pieces)
{
    for (int64_t piece = 0; piece < pieces; piece++)
        run_piece(loop, piece);
    atomic_fetch_add_explicit(&pool->serial_tasks, pieces, memory_order_relaxed);
    return 0;
}

static int run_together(Place *me, Loop *loop, int64_t pieces)
{
    int64_t base = eshkol_deque_bottom(&me->deque);
    eshkol_item all = {loop, 0, pieces, loop->depth};
    run_item(me, &all);
    work_until_over(me, base, loop->generation, loop);
    return is_current(loop->generation) ? 0 : ECANCELED;
}

static int run_dealt(Place *me, Loop *loop)
{
    eshkol_scheduler *pool = me->pool;
    int64_t base = eshkol_deque_bottom(&me->deque);
    run_shares(me, loop, 0, false);
    if (!is_current(loop->generation))
        return ECANCELED;
    atomic_store_explicit(&pool->dealt, NULL, memory_order_seq_cst);
    work_until_over(me, base, loop->generation, loop);
    if (!is_current(loop->generation))
        return ECANCELED;
    atomic_store_explicit(&pool->dealing, false, memory_order_release);
    return 0;
}

static int run_loop(eshkol_scheduler *pool, eshkol_body body, void *context, int64_t count, int64_t grain)
{
    ensure_current(pool);
    int64_t workers = 1 + atomic_load_explicit(&pool->threads, memory_order_acquire);
    if (grain < 1)
        grain = (count - 1) / (PIECES_PER_WORKER * workers) + 1;
    int64_t pieces = (count - 1) / grain + 1;
    Loop loop = {.body = body, .context = context, .count = count, .grain = grain, .pieces = pieces};
    if (workers == 1 || pieces == 1)
        return run_alone(pool, &loop, pieces);
    loop.eager = pieces / (4 * workers);
    loop.generation = atomic_load_explicit(&pool->generation, memory_order_relaxed);
    atomic_init(&loop.remaining, pieces);
    if (self.pool == pool) { /* a loop in a body */
        loop.depth = self.depth + 1;
        return run_together(self.place, &loop, pieces);
    }
    Place *me = claim_place(pool);
    if (me == NULL)
        return run_alone(pool, &loop, pieces);
    loop.depth = 1;
    eshkol_scheduler *outer_pool = self.pool; /* a body of another pool may be calling */
    Place *outer_place = self.place;
    int64_t outer_depth = self.depth;
    self.pool = pool;
    self.place = me;
    self.depth = 0;
    int status = deal(pool, &loop, workers) ? run_dealt(me, &loop) : run_together(me, &loop, pieces);
    if (status == 0) { /* else this is a forked child, where no thread has a place any more */
        self.pool = outer_pool;
        self.place = outer_place;
        self.depth = outer_depth;
        release_place(pool, me);
    }
    return status;
}

int eshkol_parallel_for(eshkol_scheduler *pool, eshkol_body body, void *context, int64_t count, int64_t grain)
{
    if (pool == NULL || body == NULL || count < 0)
        return EINVAL;
    if (count <= grain || count == 0) {
        if (count > 0)
            body(context, 0, count);
        return 0;
    }
    return run_loop(pool, body, context, count, grain);
}

int eshkol_parallel_phases(eshkol_scheduler *pool, const eshkol_phase *phases, int64_t count, void *context)
{
    for (int64_t k = 0; k < count; k++) {
        int status = eshkol_parallel_for(pool, phases[k].body, context, phases[k].count, phases[k].grain);
        if (status != 0)
            return status;
    }
    return 0;
}

int eshkol_parallel_call(const eshkol_call *call)
{
    eshkol_scheduler *pool = call->pool != NULL ? *call->pool : NULL;
    for (int64_t k = 0; k < call->count; k++) {
        const eshkol_phase *phase = &call->phases[k];
        int status = 0;
        if (phase->count > phase->grain)
            status = eshkol_parallel_for(pool, phase->body, call->context, phase->count, phase->grain);
        else if (phase->count > 0)
            phase->body(call->context, 0, phase->count);
        if (status != 0)
            return status;
    }
    return 0;
}

static int32_t barrier_of(const char *states, int64_t stride, int64_t index)
{
    int32_t number;
    memcpy(&number, states + index * stride, sizeof number);
    return number;
}

int64_t eshkol_parallel_rounds(eshkol_scheduler *pool, eshkol_body body, const uint64_t *context, int64_t count,
                               const int64_t *grains, int64_t barrier, const char *states, int64_t stride)
{
    for (;;) {
        int64_t grain = grains[barrier] < 0 ? -grains[barrier] : grains[barrier];
        int status = eshkol_parallel_for(pool, body, (void *)context, count, grain);
        if (status != 0)
            return -1000 - status;
        if (context[0] != UINT64_MAX)
            return ESHKOL_ROUNDS_FAILED;
        barrier = count > 0 ? barrier_of(states, stride, 0) : ESHKOL_ROUNDS_ENDED;
        for (int64_t k = 1; k < count; k++)
            if (barrier_of(states, stride, k) != barrier)
                return ESHKOL_ROUNDS_DIVERGED;
        if (barrier == ESHKOL_ROUNDS_ENDED || grains[barrier] < 0)
            return barrier;
    }
}
