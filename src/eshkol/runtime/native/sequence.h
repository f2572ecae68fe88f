/* Calls one after another over numbered places of memory, with loops and branches: what a compiled plan runs as.
 *
 * The steps are data, so that a plan needs one call from its host however many kernels it consists of.
 */
#ifndef ESHKOL_SEQUENCE_H
#define ESHKOL_SEQUENCE_H

#include "scheduler.h"

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
    ESHKOL_CALL,     /* calls[a] */
    ESHKOL_COPY,     /* c bytes from place b + e to place a + d */
    ESHKOL_SWAP,     /* places a and b exchange their addresses */
    ESHKOL_POINT,    /* place a = place b + c bytes */
    ESHKOL_VIEW,     /* place a = place b + c + counter d × e bytes */
    ESHKOL_SET,      /* counter a = b */
    ESHKOL_NEXT,     /* counter a += b; unless it is c now, go on at step d */
    ESHKOL_UNLESS,   /* where the byte at place a + b is 0, go on at step c */
    ESHKOL_JUMP,     /* go on at step a */
    ESHKOL_TOGETHER  /* regions[a]: the calls of the next b steps, which need nothing of each other, as one loop */
};

typedef struct {
    int64_t kind, a, b, c, d, e;
} eshkol_step;

/* word `word` of a call's record is the address of a place plus an offset */
typedef struct {
    int64_t word, place, offset;
} eshkol_binding;

/* Fills in the addresses of a record. */
static inline void eshkol_bind(uint64_t *record, const eshkol_binding *bindings, int64_t count, const uint64_t *places)
{
    for (int64_t k = 0; k < count; k++)
        record[bindings[k].word] = places[bindings[k].place] + (uint64_t)bindings[k].offset;
}

/* Steps that only change places and counters, and which comes next. `at` is the one after this. */
static inline int64_t eshkol_go_on(const eshkol_step *step, int64_t at, uint64_t *places, int64_t *counters)
{
    switch (step->kind) {
    case ESHKOL_SWAP: {
        uint64_t one = places[step->a];
        places[step->a] = places[step->b];
        places[step->b] = one;
        return at;
    }
    case ESHKOL_POINT:
        places[step->a] = places[step->b] + (uint64_t)step->c;
        return at;
    case ESHKOL_VIEW:
        places[step->a] = places[step->b] + (uint64_t)(step->c + counters[step->d] * step->e);
        return at;
    case ESHKOL_SET:
        counters[step->a] = step->b;
        return at;
    case ESHKOL_NEXT:
        counters[step->a] += step->b;
        return counters[step->a] != step->c ? step->d : at;
    default: /* ESHKOL_JUMP */
        return step->a;
    }
}

/* Loops with a record as their context; its first word is all ones unless one of them found something wrong. */
typedef struct {
    const eshkol_phase *phases;
    int64_t phase_count;
    uint64_t *record;
    const eshkol_binding *bindings;
    int64_t binding_count;
} eshkol_sequence_call;

/* indexes of the one loop of a call */
typedef struct {
    int64_t call, begin, end;
} eshkol_stretch;

/* Calls that are one loop: its piece k does the stretches starts[k] .. starts[k + 1] - 1. */
typedef struct {
    const eshkol_stretch *stretches;
    const int64_t *starts;
    int64_t piece_count;
} eshkol_region;

typedef struct {
    eshkol_scheduler *const *pool; /* where the pool is found; NULL if there is none */
    const eshkol_step *steps;
    int64_t step_count;
    const eshkol_sequence_call *calls;
    uint64_t *places;
    int64_t *counters;
    int64_t failed; /* the step at which it ended early */
    const eshkol_region *regions;
} eshkol_sequence;

/* Told of the calls that a step made, with their times in nanoseconds of the clock that only goes on; null: nobody. */
extern void (*eshkol_sequence_watcher)(const eshkol_sequence *, int64_t step, uint64_t begin, uint64_t end);

/* Runs the steps. 0; or -1 where a call has written its record's first word; or an errno value of a loop. */
int eshkol_sequence_run(eshkol_sequence *sequence);

#ifdef __cplusplus
}
#endif

#endif
