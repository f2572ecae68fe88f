/* A persistent pool of threads that runs parallel loops by work stealing.
 *
 * Nothing here knows Python: bodies are plain C functions, and no call needs the interpreter's lock.
 */
#ifndef ESHKOL_SCHEDULER_H
#define ESHKOL_SCHEDULER_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define ESHKOL_MAX_WORKERS 1024

typedef struct eshkol_scheduler eshkol_scheduler;

/* A loop's body: does the indexes begin .. end-1. */
typedef void (*eshkol_body)(void *context, int64_t begin, int64_t end);

typedef struct {
    int64_t tasks;  /* pieces run, except those of loops that were run inline */
    int64_t steals; /* stretches of a loop taken from another thread */
    int64_t sleeps; /* times a thread found nothing to do and went to sleep */
} eshkol_scheduler_statistics;

/* A pool in which `workers` threads work on a loop: the calling one and workers - 1 of its own. 0 means one for each
 * CPU this process may use; more than ESHKOL_MAX_WORKERS are not made. Where threads cannot be had, the pool has fewer.
 * NULL with errno EINVAL (negative) or ENOMEM. */
eshkol_scheduler *eshkol_scheduler_new(int workers);

/* Ends and joins the threads. No loop may be running on the pool; NULL is allowed. */
void eshkol_scheduler_free(eshkol_scheduler *pool);

/* How many threads work on a loop, the caller included. */
int eshkol_scheduler_workers(eshkol_scheduler *pool);

/* 1 while a thread that is not the pool's own is inside eshkol_parallel_for, else 0. */
int eshkol_scheduler_busy(eshkol_scheduler *pool);

/* Totals since the pool was made (in a forked child: since its first use there). Exact only while no loop runs. */
void eshkol_scheduler_stats(eshkol_scheduler *pool, eshkol_scheduler_statistics *statistics);

/* Runs body over 0 .. count-1 in pieces of `grain` indexes (the last may be shorter) and returns when all are done.
 * Pieces always begin at multiples of the grain, whatever the number of threads, so a caller can keep one partial
 * result for each piece and combine them in the same order every time. A grain below 1 means: chosen by the pool.
 *
 * The caller takes part. A body may call this again, on this pool or another; a thread that waits for an inner loop
 * works on that loop, or on loops still deeper, so its stack grows with the nesting of loops alone. Any number of
 * threads may call at once. count <= grain runs inline, without touching anything shared.
 *
 * 0, or an errno value: EINVAL for a missing pool or body or a negative count; ECANCELED in a child process that was
 * forked inside a body, when it returns from there: the threads that had the rest of the loop are not in the child. (A
 * child forked by one of the pool's own threads has no caller to return to; it ends with status 1.) */
int eshkol_parallel_for(eshkol_scheduler *pool, eshkol_body body, void *context, int64_t count, int64_t grain);

typedef struct {
    eshkol_body body;
    int64_t count;
    int64_t grain;
} eshkol_phase;

/* Runs one loop after the other, all with the same context; ends at the first that fails. */
int eshkol_parallel_phases(eshkol_scheduler *pool, const eshkol_phase *phases, int64_t count, void *context);

/* Loops that are run again and again, in a record, so that a call has one argument. */
typedef struct {
    eshkol_scheduler *const *pool; /* where the pool is found; NULL if all loops are run inline (count <= grain) */
    const eshkol_phase *phases;
    int64_t count;
    void *context;
} eshkol_call;

/* eshkol_parallel_phases of what the record says. */
int eshkol_parallel_call(const eshkol_call *call);

#define ESHKOL_ROUNDS_ENDED (-1)    /* every index is done */
#define ESHKOL_ROUNDS_FAILED (-2)   /* the first word of the context is no longer all ones */
#define ESHKOL_ROUNDS_DIVERGED (-3) /* indexes wait at different barriers, or some wait and some are done */

/* Runs body over 0 .. count-1 again and again. Between rounds every index waits at a barrier: the 32-bit number at
 * states + index * stride says at which, from 1 on, or that the index is done (-1). The first round begins at `barrier`
 * (0: the start); one from barrier b has pieces of grains[b] indexes. Where the grain is negative, the caller has
 * something to do before the round. Returns the number of such a barrier when all wait there, one of the above, or
 * -1000 - an errno value of eshkol_parallel_for. */
int64_t eshkol_parallel_rounds(eshkol_scheduler *pool, eshkol_body body, const uint64_t *context, int64_t count,
                               const int64_t *grains, int64_t barrier, const char *states, int64_t stride);

#ifdef __cplusplus
}
#endif

#endif
