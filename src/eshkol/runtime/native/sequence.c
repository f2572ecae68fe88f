/* See sequence.h. */
#define _POSIX_C_SOURCE 200809L
#include "sequence.h"

#include <string.h>
#include <time.h>

#define NOTHING_WRONG UINT64_MAX

static int run_call(eshkol_scheduler *const *pool, const eshkol_sequence_call *call, const uint64_t *places)
{
    eshkol_bind(call->record, call->bindings, call->binding_count, places);
    const eshkol_call loops = {pool, call->phases, call->phase_count, call->record};
    int status = eshkol_parallel_call(&loops);
    if (status != 0)
        return status;
    return call->record[0] == NOTHING_WRONG ? 0 : -1;
}

typedef struct {
    const eshkol_region *region;
    const eshkol_sequence_call *calls;
} Together;

static void run_pieces(void *context, int64_t begin, int64_t end)
{
    const Together *together = context;
    const eshkol_region *region = together->region;
    for (int64_t k = region->starts[begin]; k < region->starts[end]; k++) {
        const eshkol_stretch *stretch = &region->stretches[k];
        const eshkol_sequence_call *call = &together->calls[stretch->call];
        call->phases[0].body(call->record, stretch->begin, stretch->end);
    }
}

/* The calls of `count` steps from `first` on, as one loop; of those that found something wrong, the first ends it. */
static int run_together(eshkol_sequence *sequence, const eshkol_region *region, int64_t first, int64_t count)
{
    const eshkol_step *steps = &sequence->steps[first];
    for (int64_t k = 0; k < count; k++) {
        const eshkol_sequence_call *call = &sequence->calls[steps[k].a];
        eshkol_bind(call->record, call->bindings, call->binding_count, sequence->places);
    }
    Together together = {region, sequence->calls};
    eshkol_phase loop = {run_pieces, region->piece_count, 1};
    const eshkol_call whole = {sequence->pool, &loop, 1, &together};
    sequence->failed = first;
    int status = eshkol_parallel_call(&whole);
    for (int64_t k = 0; k < count && status == 0; k++)
        if (sequence->calls[steps[k].a].record[0] != NOTHING_WRONG) {
            sequence->failed = first + k;
            status = -1;
        }
    return status;
}

void (*eshkol_sequence_watcher)(const eshkol_sequence *, int64_t step, uint64_t begin, uint64_t end);

static uint64_t now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

int eshkol_sequence_run(eshkol_sequence *sequence)
{
    void (*const watcher)(const eshkol_sequence *, int64_t, uint64_t, uint64_t) =
        __atomic_load_n(&eshkol_sequence_watcher, __ATOMIC_RELAXED);
    uint64_t *places = sequence->places;
    int64_t at = 0;
    while (at < sequence->step_count) {
        const int64_t number = at++;
        const eshkol_step *step = &sequence->steps[number];
        const bool watched = watcher && (step->kind == ESHKOL_CALL || step->kind == ESHKOL_TOGETHER);
        const uint64_t begin = watched ? now() : 0;
        switch (step->kind) {
        case ESHKOL_CALL: {
            int status = run_call(sequence->pool, &sequence->calls[step->a], places);
            if (status != 0) {
                sequence->failed = number;
                return status;
            }
            break;
        }
        case ESHKOL_COPY: {
            char *target = (char *)(uintptr_t)places[step->a] + step->d;
            const char *source = (const char *)(uintptr_t)places[step->b] + step->e;
            if (target != source)
                memcpy(target, source, (size_t)step->c);
            break;
        }
        case ESHKOL_UNLESS:
            if (((const uint8_t *)(uintptr_t)places[step->a])[step->b] == 0)
                at = step->c;
            break;
        case ESHKOL_TOGETHER: {
            int status = run_together(sequence, &sequence->regions[step->a], at, step->b);
            if (status != 0)
                return status;
            at += step->b;
            break;
        }
        default:
            at = eshkol_go_on(step, at, places, sequence->counters);
        }
        if (watched) watcher(sequence, number, begin, now());
    }
    return 0;
}
