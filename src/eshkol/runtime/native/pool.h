/* What the pool of scheduler.c consists of: loops, the places of threads, and how a forked child is told apart. */
#ifndef ESHKOL_POOL_H
#define ESHKOL_POOL_H

#include <pthread.h>
#include <string.h>
#include <time.h>

#include "deque.h"
#include "event.h"
#include "scheduler.h"

#define CALLERS 32 /* threads not of the pool that can share their loops at one time; further ones run theirs alone */

typedef struct {
    eshkol_body body;
    void *context;
    int64_t count;
    int64_t grain;
    int64_t eager; /* stretches longer than this are split whether or not anyone is hungry */
    int64_t depth; /* 1 for a loop called from outside, 2 for a loop in its body, ... */
    unsigned generation;
    int64_t pieces;
    int64_t shares; /* of a loop that is dealt out; else 0 */
    uint32_t round; /* its number among those */
    _Atomic int64_t remaining; /* pieces of one that is not; at 0 the caller may return, and this object is gone */
} Loop;

/* A thread's share of a loop that is dealt out: the loop's round in the upper half, how many pieces are taken in the
 * lower. A share of an earlier round is one of which nothing is taken, so that nobody needs to set it up. */
typedef struct {
    _Alignas(ESHKOL_CACHE_LINE) _Atomic uint64_t taken;
} Share;

/* A thread's place in the pool. The counters are written by the owner alone. */
typedef struct {
    eshkol_deque deque;
    _Alignas(ESHKOL_CACHE_LINE) _Atomic bool visiting; /* this worker may be looking at the loop that is dealt out */
    uint32_t seen; /* its round, when this worker last found nothing left of it */
    _Alignas(ESHKOL_CACHE_LINE) eshkol_scheduler *pool;
    pthread_t thread;
    uint32_t random;
    _Atomic int64_t tasks;
    _Atomic int64_t steals;
    _Atomic int64_t sleeps;
} Place;

struct eshkol_scheduler {
    int wanted; /* threads of its own that the pool was asked for */
    _Atomic int threads; /* those there are */
    _Atomic unsigned generation; /* of the process these threads live in */
    _Atomic bool stop;
    _Atomic int64_t serial_tasks;
    eshkol_event idle;
    eshkol_event joining;
    _Alignas(ESHKOL_CACHE_LINE) _Atomic int searching; /* workers that spin: who pushes need not wake another */
    _Alignas(ESHKOL_CACHE_LINE) _Atomic uint32_t callers; /* bit k: places[k] belongs to a calling thread */
    _Atomic bool dealing; /* whether a caller has taken the following */
    /* The loop that is dealt out and its number. Who sees it through `visiting` may use it: the caller first takes it
     * away, and then waits until no worker visits. */
    _Alignas(ESHKOL_CACHE_LINE) _Atomic(Loop *) dealt;
    _Atomic uint32_t round;
    Share *shares; /* as many as there are workers, the caller included */
    Place places[]; /* CALLERS for callers, then one for each worker */
};

/* Which place of which pool this thread has now, and the depth of the loop whose body it runs. */
static _Thread_local struct {
    eshkol_scheduler *pool;
    Place *place;
    int64_t depth;
} self;

/* --- fork --- */

/* In a forked child none of the pool's threads exist and its locks are in any state. The child handler only counts
 * the process generation up; a pool of an older generation is set up again at its next use, and never locked before. */
static _Atomic unsigned process_generation = 1;
static pthread_mutex_t revival = PTHREAD_MUTEX_INITIALIZER;

static void in_forked_child(void)
{
    atomic_fetch_add_explicit(&process_generation, 1, memory_order_relaxed);
    pthread_mutex_init(&revival, NULL); /* a thread that is gone may have held it */
    memset(&self, 0, sizeof self); /* even a worker that forked in a body is a stranger to the pool now */
}

static bool is_current(unsigned generation)
{
    return generation == atomic_load_explicit(&process_generation, memory_order_relaxed);
}

/* --- small things --- */

static void relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("isb" ::: "memory"); /* `yield` does nothing on most cores; this takes some ten nanoseconds */
#else
    atomic_signal_fence(memory_order_seq_cst);
#endif
}

static int64_t nanoseconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static void count_up(_Atomic int64_t *counter, int64_t by)
{
    int64_t now = atomic_load_explicit(counter, memory_order_relaxed); /* one writer: no need for an atomic addition */
    atomic_store_explicit(counter, now + by, memory_order_relaxed);
}

static void run_piece(const Loop *loop, int64_t piece)
{
    int64_t begin = piece * loop->grain;
    int64_t left = loop->count - begin;
    loop->body(loop->context, begin, begin + (left < loop->grain ? left : loop->grain));
}

#endif
